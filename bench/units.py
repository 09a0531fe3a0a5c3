#!/usr/bin/env python3
"""What it costs to start a program: fovea each beside xargs and GNU parallel, thousands of /bin/true on all processors.

    bench/units.py [build/fovea] [UNITS]

Each runs three times, in turn; the medians of processor time (their own and that of what they started) and of the clock are
printed, and the ratio to xargs, which keeps nothing of what was done.
"""
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def measure(command, text, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, cwd=folder, input=text, text=True, check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    fovea = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/fovea")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    cores = str(os.cpu_count())
    lines = "".join(f"{n}\n" for n in range(count))
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "units.csv").write_text("n\n" + lines)
        commands = {"xargs": ["xargs", "-P", cores, "-n", "1", "/bin/true"],
                    "fovea each": [fovea, "each", "-q", "--again", "/bin/true {n}", "--from", "units.csv"]}
        if shutil.which("parallel"):
            commands["parallel"] = ["parallel", "-j", cores, "/bin/true"]
        else:
            print("GNU parallel is not here: apt-get install parallel")
        taken = {name: [] for name in commands}
        for _ in range(3):
            for name, command in commands.items():
                taken[name].append(measure(command, lines, folder))
    clock, processor = ({name: statistics.median(run[k] for run in runs) for name, runs in taken.items()} for k in (0, 1))
    print(f"{count} units of /bin/true, {cores} processors")
    for name in commands:
        print(f"{name:12} {clock[name]:7.2f} s by the clock, {count / clock[name]:6.0f} units/s ({clock[name] / clock['xargs']:.2f} of "
              f"xargs), {processor[name]:7.2f} s of processors ({processor[name] / processor['xargs']:.2f})")


if __name__ == "__main__":
    main()
