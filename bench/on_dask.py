#!/usr/bin/python3
"""Fovea on dask beside scikit-image on dask, beside Fovea on threads, and beside dask-image: one cluster of this machine for all.

Processor time of this process, of dask's workers and of what they start is compared, which other programs on the machine disturb
less than the time on the wall; both are printed. The start of the cluster is not counted.

usage: bench/on_dask.py [ROW...]    rows: study threads dispatch label
environment: IMAGES (4096) of the study, SIDE (512) of the labelled volume and PARTS (4) into which each of its axes is cut, TASKS
(100000), WORKERS (2), ROUNDS (3) and DEPTH (800) of the volume that takes about a minute on two cores
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT / "python")
os.environ["PYTHONPATH"] = str(ROOT / "python")
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
IMAGES, SIDE, PARTS, TASKS, WORKERS, ROUNDS, DEPTH = (int(os.environ.get(name, usual)) for name, usual in (
    ("IMAGES", 4096), ("SIDE", 512), ("PARTS", 4), ("TASKS", 100000), ("WORKERS", 2), ("ROUNDS", 3), ("DEPTH", 800)))
STUDY = """
cells = read("images/*.npy")
smooth = gaussian(cells, 2)
write(measure(label(smooth > otsu(smooth), connectivity = 2), cells), "cells.csv")
"""


def spent():
    """Processor seconds of this process and of all that it has waited for."""
    import psutil
    t = psutil.Process().cpu_times()
    return t.user + t.system + t.children_user + t.children_system


class Clock:
    """Processor and wall seconds of a with block, those of a cluster included."""

    def __init__(self, client=None):
        self.client = client

    def now(self):
        return spent() + (sum(self.client.run(spent).values()) if self.client else 0)

    def __enter__(self):
        self.begin, self.processor = time.monotonic(), self.now()
        return self

    def __exit__(self, *_):
        self.wall, self.processor = time.monotonic() - self.begin, self.now() - self.processor


def row(what, other, theirs, ours, work=1):
    """Prints one comparison."""
    print(f"{what}: {other} {theirs.processor / work:.3g} s of processors ({theirs.wall / work:.3g} s), Fovea "
          f"{ours.processor / work:.3g} s ({ours.wall / work:.3g} s): {theirs.processor / ours.processor:.2f}x, by the wall "
          f"{theirs.wall / ours.wall:.2f}x", flush=True)


# ---------------------------------------------------------------- rows

def with_skimage(path):
    """One image of the study, as a task of dask."""
    import numpy as np
    from scipy import ndimage
    from skimage import filters, measure
    image = np.load(path)
    smooth = ndimage.gaussian_filter(image.astype(np.float32), 2)
    labels = measure.label(smooth > filters.threshold_otsu(smooth))
    columns = ("label", "area", "centroid", "bbox", "mean_intensity", "min_intensity", "max_intensity")
    return len(measure.regionprops_table(labels, image, properties=columns)["label"])


def make_images(count):
    """The images of the study."""
    import numpy as np
    import fovea as fv
    os.mkdir("images")
    for k in range(8):
        np.save(f"images/{k:05}.npy", fv.phantom("cells", [256, 256], seed=k + 1).compute())
    for k in range(8, count):
        np.save(f"images/{k:05}.npy", np.roll(np.load(f"images/{k % 8:05}.npy"), k, 1))


def study(client):
    """Objects of many small images."""
    import fovea.dask
    make_images(IMAGES)
    paths = sorted(str(p.absolute()) for p in pathlib.Path("images").glob("*.npy"))
    client.gather(client.map(with_skimage, paths[:2 * WORKERS], pure=False))  # imports are not counted
    with Clock(client) as theirs:
        objects = sum(client.gather(client.map(with_skimage, paths, pure=False)))
    with Clock(client) as ours:
        fovea.dask.run(client, STUDY)
    rows = len(pathlib.Path("cells.csv").read_text().splitlines()) - 1
    row(f"{IMAGES} images of 256x256, {objects} objects there and {rows} here", "scikit-image on dask", theirs, ours)


FOAM = """
foam = phantom("foam", [{depth}, 700, 700], seed = 1)
write(median(median(median(foam, 9), 15), 21), "clean.npy")
write(measure(label(gaussian(foam, 3) > 100)), "bubbles.csv")
"""


def threads(client):
    """The same pipeline on threads and on dask, on as many cores."""
    import fovea as fv
    import fovea.dask
    text, found = FOAM.format(depth=DEPTH), {"threads": [], "dask": []}
    for _ in range(ROUNDS):
        with Clock(client) as clock:
            fv.run(text, workers=WORKERS, store="a", fresh=True, overwrite=True)
        found["threads"].append(clock)
        with Clock(client) as clock:
            fovea.dask.run(client, text, store="b", fresh=True, overwrite=True)
        found["dask"].append(clock)
    middle = {name: sorted(clocks, key=lambda c: c.processor)[(ROUNDS - 1) // 2] for name, clocks in found.items()}
    row(f"foam of {DEPTH}x700x700 on {WORKERS} cores", "Fovea on threads", middle["threads"], middle["dask"])


def dispatch(client):
    """Tasks that do next to nothing."""
    side = int(TASKS ** 0.5 + 0.5)
    text = f'max(phantom("cells", [{4 * side}, {4 * side}]))'
    for engine in (["dask", "--scheduler", client.scheduler.address], ["threads"]):
        command = [FOVEA, "run", "-q", "--fresh", "-e", text, "--chunk", "4x4", "--engine", *engine]
        with Clock(client) as clock:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "FOVEA_PYTHON": sys.executable})
        print(f"{side * side} tasks of 4x4 voxels on {engine[0]}: {clock.processor / side ** 2 * 1e6:.1f} us of processors each, "
              f"{clock.wall / side ** 2 * 1e6:.1f} us by the wall", flush=True)
    few = client.map(lambda k: k, range(1000), pure=False)
    with Clock(client) as clock:
        client.gather(client.map(lambda k: k + 1, range(1000, 3000), pure=False))
    del few
    print(f"2000 empty tasks of dask: {clock.processor / 2000 * 1e6:.0f} us of processors each, {clock.wall / 2000 * 1e6:.0f} us "
          "by the wall", flush=True)


def label(client):
    """Connected components of a dask array."""
    import dask.array as da
    import numpy as np
    from fovea import dask as fd
    rng = da.random.default_rng(1) if hasattr(da.random, "default_rng") else da.random.RandomState(1)
    noise = rng.random((SIDE, SIDE, SIDE), chunks=SIDE // PARTS).astype("float32")
    mask = (fd.gaussian(noise, 2) > 0.51).persist()
    mask.sum().compute()
    with Clock(client) as ours:
        count = int(fd.label(mask, connectivity=3).max().compute())
    print(f"label of {SIDE}^3: Fovea {ours.processor:.3g} s of processors ({ours.wall:.3g} s), {count} objects; now "
          "dask-image, which may take long", flush=True)
    try:
        from dask_image import ndmeasure
    except ImportError:
        print("dask-image is not installed: skipped", flush=True)
        return
    with Clock(client) as theirs:
        labels, number = ndmeasure.label(mask, structure=np.ones((3, 3, 3)))
        number = int(labels.max().compute())
    row(f"label of {SIDE}^3, {number} objects there and {count} here", "dask-image", theirs, ours)


def main():
    import distributed
    wanted = sys.argv[1:] or ["study", "threads", "dispatch", "label"]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder, \
            distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster, \
            distributed.Client(cluster) as client:
        os.chdir(folder)
        for name in wanted:
            {"study": study, "threads": threads, "dispatch": dispatch, "label": label}[name](client)
        os.chdir("/")


if __name__ == "__main__":
    main()
