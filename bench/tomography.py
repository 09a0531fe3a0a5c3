#!/usr/bin/env python3
"""Tomography beside scikit-image, ratios in one run: python3 bench/tomography.py [--quick]

Times of Fovea are whole commands less the same command without the reconstruction. scikit-image reconstructs a few slices, and its
time is scaled to all of them. Updates: voxels times angles, per second and core."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from skimage.transform import iradon, iradon_sart

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
SIDE = 128 if "--quick" in sys.argv else 256
ANGLES = 74
CORES = len(os.sched_getaffinity(0))


def best(function, times=3):
    """Least wall time and least processor time of a few runs."""
    walls, works = [], []
    for _ in range(times):
        start, before = time.perf_counter(), os.times()
        function()
        after = os.times()
        walls.append(time.perf_counter() - start)
        works.append(sum(after[:4]) - sum(before[:4]))
    return min(walls), min(works)


def fovea(text, folder):
    subprocess.run([FOVEA, "run", "--quiet", "--fresh", "-e", text], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def main():
    print(f"{CORES} cores; ratios are of processor times, which depend less on what else runs here")
    with tempfile.TemporaryDirectory() as folder:
        projections = np.random.default_rng(0).random((ANGLES, SIDE, SIDE), dtype=np.float32)
        np.save(f"{folder}/p.npy", projections)
        angles = np.arange(-73.0, 74, 2)
        read = 'p = read("p.npy", axes = "angle z x"); g = parallel(angles = range(-73, 73, 2)); '
        plain = best(lambda: fovea(f"{read}mean(p)", folder))
        slices = [0, SIDE // 2]
        peers = {
            "fbp": lambda: [iradon(projections[:, z].T, angles, circle=True) for z in slices],
            "sart": lambda: [iradon_sart(projections[:, z].T, angles) for z in slices],
        }
        peer = {name: best(function, 1)[1] * SIDE / len(slices) for name, function in peers.items()}
        for call, against in (("fbp(p, g)", "fbp"), ("sirt(p, g, iterations = 1)", "sart"), ("art(p, g, iterations = 1)", "sart"),
                              ("sart(p, g, iterations = 1)", "sart")):
            wall, work = best(lambda call=call: fovea(f"{read}mean({call})", folder))
            wall, work = max(wall - plain[0], 1e-3), max(work - plain[1], 1e-3)
            print(f"{call:28s} {SIDE}x{SIDE}x{ANGLES}: wall {wall:6.2f} s, processor {work:6.2f} s; scikit-image, which uses one core, "
                  f"{peer[against]:6.1f} s; {CORES * peer[against] / work:5.0f}x on {CORES} quiet cores")
        count = 90 if "--quick" in sys.argv else 360
        cone = (f'p = name_axes(phantom("noise", [{count}, {SIDE}, {SIDE}]), "angle z x"); '
                f"g = cone(range(0, 360, count = {count}), {4 * SIDE}, {SIDE}, 1.25); ")
        plain = best(lambda: fovea(f"{cone}mean(p)", folder), 1)
        wall, work = best(lambda: fovea(f"{cone}mean(fdk(p, g))", folder), 2)
        updates = SIDE**3 * count
        print(f"fdk {SIDE}^3 from {count}: {wall - plain[0]:6.2f} s, processor {work - plain[1]:6.2f} s; "
              f"{updates / (work - plain[1]) / 1e9:.2f} billion updates a second and core, filtering included")


main()
