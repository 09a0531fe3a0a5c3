#!/usr/bin/env python3
"""What a worker costs beyond Slurm itself: arrays of workers that find nothing to do against arrays that do nothing, on a Slurm
that is started here. usage: bench/slurm.py [ELEMENTS]
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import numpy as np
import slurm

FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
ITEMS = 1024
AT_ONCE = 2  # as many as this machine has cores, so that none waits for another


def array(cluster, folder, elements, command):
    """Seconds that an array of jobs takes, from submission to its end."""
    script = pathlib.Path(folder, "job.sh")
    script.write_text(f"#!/bin/bash\n#SBATCH --array=0-{elements - 1}%{AT_ONCE}\n#SBATCH --mem=300M\n#SBATCH -o /dev/null\n{command}\n")
    start = time.monotonic()
    cluster.call("sbatch", str(script))
    while cluster.call("squeue", "-h"):  # sbatch --wait looks too rarely
        time.sleep(0.05)
    return time.monotonic() - start


def done_run(folder):
    """A run of many items that is complete; gives its folder."""
    os.mkdir(f"{folder}/in")
    for i in range(ITEMS):
        np.save(f"{folder}/in/{i:05}.npy", np.full((64, 64), i % 251, np.uint8))
    pathlib.Path(folder, "p.fov").write_text('read("in/*.npy") |> gaussian(1) |> write("out/{stem}.npy")\n')
    freeze = [FOVEA, "submit", "p.fov", "--dry-run", "--measure", "0"]
    run = subprocess.run(freeze, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()[0]
    for more in [[], ["--finish"]]:
        subprocess.run([FOVEA, "work", run, "-q", *more], cwd=folder, check=True)
    return f"{folder}/{run}"


def main():
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    why = slurm.missing()
    if why:
        print(f"skipped: {why}")
        return
    with tempfile.TemporaryDirectory() as folder, slurm.Cluster() as cluster:
        run, times = done_run(folder), {"true": [], "worker": []}
        for _ in range(3):
            times["true"].append(array(cluster, folder, elements, "true"))
            worker = f"cd {folder} && {FOVEA} work {run} --workers 1 --memory 256M -q"
            times["worker"].append(array(cluster, folder, elements, worker))
        nothing, worker = (statistics.median(times[name]) for name in ("true", "worker"))
        print(f"{elements} elements, {AT_ONCE} at once, {ITEMS} items in the run: Slurm alone {nothing:.2f} s, with workers {worker:.2f} s")
        print(f"a worker adds {max(worker - nothing, 0) / elements * AT_ONCE:.3f} s to its element")


if __name__ == "__main__":
    main()
