"""What the processes of a run use of memory, from what the kernel tells of each."""
import os
import pathlib
import re

from fovea_test import FOVEA


def family(pid):
    """A process and all that descend from it."""
    found = [pid]
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [each for child in path.read_text().split() for each in family(int(child))]
        except OSError:
            pass
    return found


def memory_of(pids):
    """Bytes that the fovea processes among these use; of what they share with others, their part. The child that is about to
    start another program still has the memory of its parent (vfork), which the kernel tells of both: the larger counts."""
    most = {}
    for pid in pids:
        try:
            if os.path.realpath(f"/proc/{pid}/exe") != os.path.realpath(FOVEA):
                continue
            addresses, _, facts = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\n")
            used = 1024 * int(re.search(r"^Pss:\s+(\d+)", facts, re.M)[1])
        except (OSError, TypeError):
            continue
        most[addresses] = max(most.get(addresses, 0), used)
    return sum(most.values())
