#!/usr/bin/env python3
"""Tomography beside scikit-image, and ASTRA where it is installed, ratios in one run: bench/tomography.py [--quick] [--large]

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

try:
    import astra
except ImportError:
    astra = None

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


def with_astra(name, projections, angles, slices):
    """A run of an ASTRA algorithm on one core, slice after slice: one filtered back-projection or one iteration."""
    beam = astra.create_proj_geom("parallel", 1.0, SIDE, np.radians(angles))
    volume = astra.create_vol_geom(SIDE, SIDE)
    projector = astra.create_projector("linear", beam, volume)
    for z in slices:
        settings = astra.astra_dict(name)
        settings["ProjectorId"] = projector
        settings["ProjectionDataId"] = astra.data2d.create("-sino", beam, projections[:, z])
        settings["ReconstructionDataId"] = astra.data2d.create("-vol", volume, 0)
        astra.algorithm.run(astra.algorithm.create(settings), 1)
    astra.clear()


def cones(folder):
    """Cone beams: whole commands less the same without the work. fdk with its filters; the projector and its adjoint."""
    runs = [("fdk(p, g)", SIDE, 90 if "--quick" in sys.argv else 360), ("xray(v, g)", SIDE, 90), ("backproject(p, g)", SIDE, 90),
            ("sirt(p, g, iterations = 2)", SIDE, 90)]
    if "--large" in sys.argv:
        runs.append(("fdk(p, g)", 512, 360))
    for call, side, count in runs:
        text = (f'p = name_axes(phantom("noise", [{count}, {side}, {side}]), "angle z x"); '
                f'v = phantom("noise", [{side}, {side}, {side}]); '
                f"g = cone(range(0, 360, count = {count}), {4 * side}, {side}, 1.25); ")
        plain = best(lambda text=text, call=call: fovea(f"{text}mean({'v' if call[0] == 'x' else 'p'})", folder), 1)
        wall, work = best(lambda text=text, call=call: fovea(f"{text}mean({call})", folder), 2)
        passes = 5 if call[0] == "s" else 1  # of sirt: weights, and all but the first projection
        print(f"{call:28s} {side}^3 from {count}: {wall - plain[0]:6.2f} s, processor {work - plain[1]:6.2f} s; "
              f"{passes * side**3 * count / (work - plain[1]) / 1e9:.2f} billion updates a second and core")


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
        beside = {"fbp(p, g)": "FBP", "sirt(p, g, iterations = 1)": "SIRT"} if astra else {}
        for call, against in (("fbp(p, g)", "fbp"), ("sirt(p, g, iterations = 1)", "sart"), ("art(p, g, iterations = 1)", "sart"),
                              ("sart(p, g, iterations = 1)", "sart")):
            wall, work = best(lambda call=call: fovea(f"{read}mean({call})", folder))
            wall, work = max(wall - plain[0], 1e-3), max(work - plain[1], 1e-3)
            print(f"{call:28s} {SIDE}x{SIDE}x{ANGLES}: wall {wall:6.2f} s, processor {work:6.2f} s; scikit-image, which uses one core, "
                  f"{peer[against]:6.1f} s; {CORES * peer[against] / work:5.0f}x on {CORES} quiet cores")
            if call in beside:
                other = best(lambda call=call: with_astra(beside[call], projections, angles, range(8)))[1] * SIDE / 8
                print(f"{'':28s} ASTRA's processor code {other:6.1f} s; {other / work:5.0f}x, core for core")
        cones(folder)


main()
