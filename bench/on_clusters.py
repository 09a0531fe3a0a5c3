#!/usr/bin/python3
"""All rows of bench/spark.py and bench/on_dask.py, one after another and each with a limit of time: what Fovea on Spark and on Dask
is worth, in one command.

    bench/on_clusters.py [SECONDS]      for each row, 600 if left out

Sizes are those of these two (ITEMS, ROUNDS; IMAGES, SIDE, TASKS). Rows whose Python environment is missing, or that take too long, are
named. Processes that a row has started end with it.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent
BUILD = BENCH.parent / "build"
ROWS = [("spark.py", BUILD / "spark" / "bin" / "python", ["study", "minute", "dispatch", "allreduce"]),
        ("on_dask.py", BUILD / "interop" / "dask" / "bin" / "python", ["study", "threads", "dispatch", "label"])]


def measure(python, script, row, limit):
    """Runs one row and prints what it says, without what Spark and Dask say."""
    began = time.monotonic()
    process = subprocess.Popen([str(python), str(BENCH / script), row], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[0] + f"not done in {limit:.0f} s"
    lines = said.strip() or f"ended with status {process.returncode} and said nothing"
    print(f"{script} {row} ({time.monotonic() - began:.0f} s): {lines}", flush=True)


def main():
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    for script, python, rows in ROWS:
        if not python.exists():
            print(f"{script}: no {python}: scripts/bootstrap.sh spark dask makes it", flush=True)
            continue
        for row in rows:
            measure(python, script, row, limit)
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
