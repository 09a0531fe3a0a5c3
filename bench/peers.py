#!/usr/bin/python3
"""Fovea and its peers side by side, in one run: medians of wall times, and ratios.

    bench/peers.py [NAME ...]      names: foam foam400 nifti cells tasks

The peers are Debian's: scipy, dask, OpenCV, nibabel. Each is given the same data and all cores it can use. Filters, distance and
label: peer_filters.py.
"""
import json
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
BUILD = pathlib.Path(FOVEA).parent
ROWS = []


def clock(function, repeats):
    """Median wall time in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def fovea(*arguments, folder):
    done = subprocess.run([FOVEA, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"fovea {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def row(work, peer, peer_seconds, own_seconds, target, note=""):
    ratio = peer_seconds / own_seconds
    ROWS.append((work, peer, peer_seconds, own_seconds, ratio, target, note))
    print(f"{work:42} {peer:26} {peer_seconds:9.3f} s   fovea {own_seconds:8.3f} s   {ratio:7.1f}x   target {target} {note}", flush=True)


# ---------------------------------------------------------------- foam

FOAM = """foam    = read("foam.npy")
walls   = gaussian(1 - foam / 255, sigma = [3, 6, 6])
bubbles = label(erode(walls > 0.9, ball(12)))
write(measure(bubbles), "sizes.csv")
"""


def foam_with_edt(path):
    from scipy import ndimage
    foam = np.load(path)
    walls = ndimage.gaussian_filter(1 - foam.astype(np.float32) / 255, (3, 6, 6)) > 0.9
    padded = np.pad(walls, 13, constant_values=True)
    core = (ndimage.distance_transform_edt(padded) > 12)[13:-13, 13:-13, 13:-13]
    labels, count = ndimage.label(core)
    return np.bincount(labels.ravel(), minlength=count + 1)


def foam_with_dask(path):
    import dask.array as da
    from scipy import ndimage
    from skimage.morphology import ball
    foam = da.from_array(np.load(path), chunks=(100, 200, 200)).astype(np.float32)
    walls = (1 - foam / 255).map_overlap(ndimage.gaussian_filter, depth=(12, 24, 24), boundary="reflect", sigma=(3, 6, 6)) > 0.9
    core = walls.map_overlap(ndimage.binary_erosion, depth=12, boundary=1, structure=ball(12), border_value=1)
    labels, count = ndimage.label(core.compute(scheduler="threads"))
    return np.bincount(labels.ravel(), minlength=count + 1)


def foam(folder, shape, name, with_dask, memory, target):
    fovea("run", "-q", "-e", f'phantom("foam", {list(shape)}, seed = 1) |> write("foam.npy")', "--fresh", "--overwrite", folder=folder)
    pathlib.Path(folder, "foam.fov").write_text(FOAM)
    path = os.path.join(folder, "foam.npy")
    options = ["--memory", memory] if memory else []
    facts = []
    own = clock(lambda: facts.append(json.loads(fovea("run", "--json", "--fresh", "foam.fov", *options, folder=folder))), 5)
    peak = max(f["peak_memory"] for f in facts) / 2**20
    row(f"foam {name}", "scipy with EDT", clock(lambda: foam_with_edt(path), 1), own, target, f"(peak {peak:.0f} MiB)")
    if with_dask:
        row(f"foam {name}", "dask", clock(lambda: foam_with_dask(path), 1), own, ">= 100x")


def bench_foam(folder):
    foam(folder, (100, 400, 400), "100x400x400", True, None, ">= 20x")


def bench_foam400(folder):
    foam(folder, (400, 400, 400), "400^3, --memory 512M", False, "512M", ">= 15x")


# ---------------------------------------------------------------- NIfTI

def smooth_nifti(path):
    import nibabel
    from scipy import ndimage
    image = nibabel.load(path)
    data = ndimage.gaussian_filter(np.asarray(image.dataobj, dtype=np.float32), 2)
    nibabel.save(nibabel.Nifti1Image(data, image.affine), path.replace("scan", "peer"))


def synced_rate(folder, megabytes=400):
    """What the disk itself takes, in MB/s, written and synced."""
    block = np.random.default_rng(0).bytes(1 << 20)
    start = time.perf_counter()
    with open(os.path.join(folder, "rate"), "wb") as file:
        for _ in range(megabytes):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    rate = megabytes / (time.perf_counter() - start)
    os.unlink(os.path.join(folder, "rate"))
    return rate


def denoise(folder, place, count, target):
    """Ours is durable when the command ends, the peer's files are in the page cache only."""
    for index in range(count):
        fovea("run", "-q", "-e", f'phantom("t1", [182, 218, 182], seed = {index}) |> convert("int16") |> write("scan{index:02}.nii.gz")', folder=folder)
    paths = sorted(str(p) for p in pathlib.Path(folder).glob("scan*.nii.gz"))
    facts = []
    own = clock(lambda: facts.append(json.loads(fovea("run", "--json", "--fresh", "-e", 'read("scan*.nii.gz") |> gaussian(2) |> write("smooth-{stem}.nii.gz")', folder=folder))), 3)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        peer = clock(lambda: pool.map(smooth_nifti, paths, chunksize=1), 1)
    written = sum(p.stat().st_size for p in pathlib.Path(folder).glob("smooth-*.nii.gz")) / 1e6
    row(f"{count} NIfTI 182x218x182, gaussian 2, gz, {place}", f"nibabel+scipy, {os.cpu_count()} processes", peer, own, target,
        f"(peak {max(f['peak_memory'] for f in facts) / 2**20:.0f} MiB, {written:.0f} MB written)")


def bench_nifti(folder):
    denoise(folder, "disk", 40, ">= 8x")
    print(f"    the disk takes {synced_rate(folder):.0f} MB/s, synced", flush=True)
    if os.path.isdir("/dev/shm"):
        with tempfile.TemporaryDirectory(prefix="fovea-bench-", dir="/dev/shm") as memory:
            denoise(memory, "memory", 20, "")


# ---------------------------------------------------------------- cells

def cells_with_skimage(path):
    from scipy import ndimage
    from skimage.feature import peak_local_max
    from skimage.filters import threshold_otsu
    from skimage.segmentation import watershed
    image = np.load(path)
    mask = image > threshold_otsu(image)
    distance = ndimage.distance_transform_edt(mask)
    markers = np.zeros(image.shape, np.int32)
    peaks = peak_local_max(distance, min_distance=5, exclude_border=False)
    markers[tuple(peaks.T)] = np.arange(1, len(peaks) + 1)
    return watershed(-distance, markers, mask=mask).max()


def cells_with_opencv(path):
    import cv2
    image = np.load(path)
    _, mask = cv2.threshold(image, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    distance = cv2.distanceTransform(mask, cv2.DIST_L2, 5)
    peaks = ((distance == cv2.dilate(distance, np.ones((11, 11)))) & (distance > 0)).astype(np.uint8)
    _, markers = cv2.connectedComponents(peaks)
    markers += 1
    markers[(mask > 0) & (peaks == 0)] = 0
    return cv2.watershed(cv2.merge([image] * 3), markers).max()


def bench_cells(folder):
    """64 images: the chain on two processes each, beside the operators' own time and the whole command."""
    for index in range(64):
        fovea("run", "-q", "-e", f'phantom("cells", [1000, 1000], seed = {index}) |> write("cells{index:02}.npy")', folder=folder)
    paths = sorted(str(p) for p in pathlib.Path(folder).glob("cells*.npy"))
    np.stack([np.load(p) for p in paths]).tofile(os.path.join(folder, "cells.raw"))
    words = subprocess.run([str(BUILD / "bench" / "bench_cells"), os.path.join(folder, "cells.raw")], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(words, end="")
    own = float(words.splitlines()[-1].split("together")[1].split()[0]) / 1e3
    text = ('a = read("cells*.npy")\nk = a > otsu(a)\nd = distance(k)\n'
            'write(measure(watershed(0 - d, label(peaks(d, min_distance = 5, exclude_border = false)), k)), "cells.csv")')
    whole = clock(lambda: fovea("run", "-q", "--fresh", "--overwrite", "-e", text, folder=folder), 3)
    import cv2
    cv2.setNumThreads(1)
    with multiprocessing.Pool(2) as pool:
        for name, function, target in (("skimage", cells_with_skimage, ">= 15x"), ("OpenCV", cells_with_opencv, ">= 4x")):
            pool.map(function, paths[:4], chunksize=1)
            wall = clock(lambda: pool.map(function, paths, chunksize=1), 3)
            row("64 x 1000^2 otsu, distance, peaks, watershed", f"{name}, 2 processes", wall, own, target, "(ours: inside the operators)")
            row("64 x 1000^2 the same, whole command", f"{name}, 2 processes", wall, whole, "", "(reads files, measures, writes a table)")


def bench_tasks(folder):
    facts = []
    seconds = clock(lambda: facts.append(json.loads(fovea("run", "--json", "--fresh", "-e", "sum(ones([1000000, 4]))", "--chunk", "1x4", folder=folder))), 1)
    tasks = facts[0]["tasks_run"]
    print(f"{'tiny tasks':42} {tasks} in {seconds:.2f} s: {seconds / tasks * 1e6:.1f} us each   target <= 20 us", flush=True)

    import dask
    from dask import delayed
    count = 20000
    peer = clock(lambda: dask.compute(*[delayed(int)(1) for _ in range(count)], scheduler="threads"), 1)
    row("a tiny task", "dask, threads", peer / count, seconds / tasks, ">= 10x")


def main():
    names = sys.argv[1:] or ["foam", "foam400", "nifti", "cells", "tasks"]
    for name in names:
        folder = tempfile.mkdtemp(prefix="fovea-bench-")
        try:
            globals()["bench_" + name](folder)
        finally:
            shutil.rmtree(folder)


main()
