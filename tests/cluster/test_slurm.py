"""A real Slurm, started here: arrays, dependencies, requeue, memory, cancel, pilot. One cluster for all tests."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
import slurm
from fovea_test import Skip, main, run, test

WHY_NOT = slurm.missing()
CLUSTER = None
VOLUME = """
foam = phantom("foam", [48, 120, 120], seed = 1)
walls = gaussian(1 - foam / 255, sigma = [3, 6, 6])
bubbles = label(erode(walls > 0.9, ball(4)))
write(bubbles, "bubbles.zarr")
write(walls, "walls.npy")
write(measure(bubbles, foam), "bubbles.csv")
"""
CHUNK = ["--chunk", "16x48x48"]
FOLDER = """
image = read("in/*.npy")
write(gaussian(image, 2), "out/{stem}.npy")
write(measure(label(image > 128)), "all.csv")
"""


def cluster():
    """The cluster, started by the first test that needs it."""
    global CLUSTER
    if WHY_NOT:
        raise Skip(WHY_NOT)
    if CLUSTER is None:
        CLUSTER = slurm.Cluster()
        CLUSTER.__enter__()
    return CLUSTER


def prepare(folder, text, items=0):
    os.makedirs(folder, exist_ok=True)
    pathlib.Path(folder, "p.fov").write_text(text)
    rng = np.random.default_rng(7)
    os.makedirs(os.path.join(folder, "in"), exist_ok=True)
    for i in range(items):
        np.save(os.path.join(folder, "in", f"{i:02}.npy"), rng.integers(0, 255, (60 + i, 90)).astype(np.uint8))


def results(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in (".fovea", "in", "p.fov", "alone"):
            found[str(relative)] = path.read_bytes()
    return found


def alone(folder, text, items=0, *options):
    """What one process on this machine makes of it."""
    other = os.path.join(folder, "alone")
    prepare(other, text, items)
    run("run", "p.fov", *options, folder=other)
    return results(other)


def submit(folder, *options, code=0):
    return run("submit", "p.fov", *options, folder=folder, code=code, environment=cluster().environment).stdout.splitlines()


def logs(folder):
    found = [p for p in sorted(pathlib.Path(folder, ".fovea").rglob("*.log")) if "slurm" in str(p)]
    return "\n".join(f"{p.name}: {p.read_text()}" for p in found)


@test
def a_volume_runs_as_arrays_with_merges_between(folder):
    c = cluster()
    prepare(folder, VOLUME)
    expected = alone(folder, VOLUME, 0, *CHUNK)
    printed = submit(folder, *CHUNK, "--min-time", "0.005", "--array-size", "3", "--at-once", "2")
    jobs = [line.split() for line in pathlib.Path(folder, printed[0], "slurm", "1", "jobs").read_text().splitlines()]
    assert [job[1] for job in jobs][-2:] == ["finish", "again"] and any(job[3] == "3" for job in jobs), jobs
    c.idle()
    assert results(folder) == expected, logs(folder)
    states = c.wait_for("accounting", lambda: set(c.call("sacct", "-n", "-X", "-o", "State").split()) == {"COMPLETED"}
                        or None, 20)
    assert states


try:
    main()
finally:
    if CLUSTER:
        CLUSTER.stop()
