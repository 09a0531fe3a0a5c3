"""Seams where work could be lost, wrong or stuck: turns and locks, shared results, odd names, sizes and tables."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test

RNG = np.random.default_rng(5)


def save(folder, name, array):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return array


def load(folder, name):
    return np.load(os.path.join(folder, name))


def summary(*arguments, folder, **options):
    return json.loads(run("run", "--json", *arguments, folder=folder, **options).stdout)


# ---- turns and locks

@test
def many_items_with_one_worker_never_wait_for_each_other(folder):
    """A thread that syncs gave its turn away; those who wait for what it holds must do so too."""
    for i in range(60):
        save(folder, f"in/{i:03}.npy", np.full((32, 32), i, np.uint8))
    run("run", "-q", "--workers", "1", "--patience", "0.001", "-e", 'read("in/*.npy") + 1 |> write("out/{stem}.npy")', folder=folder, timeout=60)
    assert all((load(folder, f"out/{i:03}.npy") == i + 1).all() for i in range(60))


@test
def a_scalar_that_comes_from_disk_stops_nobody(folder):
    text = 'a = phantom("noise", [32, 64, 64])\nwrite(a > mean(a), "b.npy")'
    for _ in range(3):
        pathlib.Path(folder, "b.npy").unlink(missing_ok=True)
        run("run", "-q", "--workers", "1", "--chunk", "2x64x64", "--patience", "0.001", "-e", text, folder=folder, timeout=60)


main()
