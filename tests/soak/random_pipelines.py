#!/usr/bin/python3
"""Pipelines by chance, run as a whole and in chunks (tests/support/random_pipelines.py), for as long as wanted.

Usage: tests/soak/random_pipelines.py [--minutes 5] [--seed 1] [--count N]

With --count it ends after so many, whatever the time. What fails is printed with its seed: --seed SEED --count 1 runs it again.
FOVEA names another command, one with a sanitizer for example."""
import argparse
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import random_pipelines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int)
    given = parser.parse_args()
    fovea = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
    known = random_pipelines.operators(fovea)
    end, tried, ended, failed = time.monotonic() + 60 * given.minutes, 0, 0, 0
    while tried < given.count if given.count else time.monotonic() < end:
        seed = given.seed + tried
        with tempfile.TemporaryDirectory() as folder:
            trial = random_pipelines.Trial(fovea, known, seed, folder)
        tried, ended = tried + 1, ended + trial.ended
        if trial.wrong:
            failed += 1
            print(f"--seed {seed}: {trial.wrong}\n", flush=True)
    print(f"{ended} of {tried} pipelines ran to their end\n{tried - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
