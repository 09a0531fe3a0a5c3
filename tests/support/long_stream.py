"""Whether a stream that runs for long keeps its memory and its open files."""
import os
import pathlib
import statistics


def sample(pid):
    """KiB in memory and open descriptors of a process now."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def check_flat(samples, allowed=8 << 10):
    """The last quarter has what the second one had, but for `allowed` KiB and a few files that are open at the moment."""
    quarter = len(samples) // 4
    assert quarter >= 4, f"only {len(samples)} samples"
    early, late = samples[quarter:2 * quarter], samples[-quarter:]
    for what, number, more in (("KiB of memory", 0, allowed), ("open files", 1, 16)):
        before, after = (statistics.median(one[number] for one in part) for part in (early, late))
        assert after <= before + more, f"{after:.0f} {what} at the end, {before:.0f} before"
    return statistics.median(one[0] for one in late), statistics.median(one[1] for one in late)
