#!/usr/bin/python3
"""Times measure and blobs_log beside scikit-image in one run, and says how far they are from the machine's limits.

    bench/peer_measures.py [NAME ...]      names: measure blobs

Fovea's figures are the operators' own time on two threads (bench_measure, bench_blobs). scikit-image runs on one core a call:
of blobs, two processes are taken to need half the time of one; regionprops_table cannot be shared out. On a busy machine
processor times (Fovea's divided by its two threads) say more than wall times, so both are printed.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import skimage.feature
import skimage.measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
BENCH = pathlib.Path(FOVEA).parent / "bench"
BYTES_A_SECOND, OPERATIONS_A_SECOND = 31e9, 227e9  # of two cores


def own_times(program, folder):
    """{case: (wall seconds on two threads, processor seconds)}; the program leaves its images in the folder."""
    words = subprocess.run([str(BENCH / program), folder], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.findall(r"^(.+?) +[\d.]+ ms +([\d.]+) ms \(2 threads\) +([\d.]+) ms processor time$", words, re.M)
    return {case: (float(wall) / 1e3, float(cpu) / 1e3) for case, wall, cpu in found}


def peer_times(function, repeats):
    """Medians of wall and processor seconds."""
    walls, cpus = [], []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        function()
        walls.append(time.perf_counter() - start)
        cpus.append(time.process_time() - used)
    return statistics.median(walls), statistics.median(cpus)


def row(work, own, peer, processes, target, limit):
    """own, peer: wall and processor seconds; limit: the seconds that the machine itself would need, and why."""
    quiet, theirs = own[1] / 2, peer[1] / processes  # what quiet cores would take
    print(f"{work:44} wall: skimage {peer[0] / processes:7.2f} s, fovea {own[0]:6.3f} s, {peer[0] / processes / own[0]:5.1f}x   "
          f"cpu: {theirs * 1e3:7.0f} ms, {quiet * 1e3:6.1f} ms, {theirs / quiet:5.1f}x   target {target}   "
          f"{100 * limit[0] / quiet:.0f} % of {limit[1]}", flush=True)


def bench_measure(folder):
    own = own_times("bench_measure", folder)
    labels = np.fromfile(f"{folder}/labels.raw", np.int32).reshape(400, 400, 400)
    places = ("label", "area", "bbox", "centroid")
    cases = (("measure 400^3", None, places, 1),
             ("measure 400^3, axis lengths", None, (*places, "extent", "inertia_tensor_eigvals"), 1),
             ("measure 400^3 with uint8", "uint8", (*places, "intensity_mean", "intensity_min", "intensity_max"), 1),
             ("measure 400^3 with float32", "float32", (*places, "intensity_mean", "intensity_min", "intensity_max"), 1))
    print(f"{len(np.unique(labels)) - 1} labels")
    for case, name, properties, repeats in cases:
        image = None if name is None else np.fromfile(f"{folder}/{name}.raw", name).reshape(labels.shape)
        peer = peer_times(lambda: skimage.measure.regionprops_table(labels, image, properties), repeats)
        size = labels.nbytes + (image.nbytes if name else 0)
        row(case, own[case], peer, 1, ">= 50x", (size / BYTES_A_SECOND, "31 GB/s"))


def operations_of_blobs(side):
    """Additions and multiplications that an image needs: two sums along each axis, of which one shares its additions."""
    taps = sum(int(4 * sigma + 0.5) for sigma in np.linspace(1, 30, 10))
    return taps * side * side * (5 + 6)


def bench_blobs(folder):
    [(case, own)] = own_times("bench_blobs", folder).items()
    images = np.fromfile(f"{folder}/spots.raw", np.uint8).reshape(-1, 1000, 1000)
    few = iter(images[:3])
    peer = peer_times(lambda: skimage.feature.blob_log(next(few), max_sigma=30, num_sigma=10, threshold=0.1), 3)
    share = 64 / len(images)
    limit = 64 * operations_of_blobs(1000) / OPERATIONS_A_SECOND
    row("64 x 1000^2 blobs_log, 10 scales to 30 (own)", [t * share for t in own], [64 * t for t in peer], 2, ">= 15x",
        (limit, "227 GFLOP/s"))
    for index in range(64):
        np.save(f"{folder}/spots{index:02}.npy", images[index % len(images)])
    text = 'write(blobs_log(read("spots*.npy"), max_sigma = 30, num_sigma = 10, threshold = 0.1), "blobs.csv")'
    start = time.perf_counter()
    subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, check=True)
    whole = time.perf_counter() - start
    print(f"  the same, whole command with files and table: {whole:.2f} s   {64 * peer[0] / 2 / whole:.1f}x", flush=True)


def main():
    for name in sys.argv[1:] or ["measure", "blobs"]:
        folder = tempfile.mkdtemp(prefix="fovea-bench-")
        try:
            globals()["bench_" + name](folder)
        finally:
            shutil.rmtree(folder)


main()
