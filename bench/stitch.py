#!/usr/bin/python3
"""Stitching a grid of tiles beside reading and writing its bytes once, in one run.

The floor reads every tile and writes as many bytes as the stitched image has, with numpy, and syncs them, as Fovea does. Fovea and
the floor go by turns; medians of processor and wall time are compared, and the places found with those the tiles were cut at.

usage: bench/stitch.py [ROUNDS [GRID [EDGE]]]
"""
import csv
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import tifffile

FOVEA = os.environ.get("FOVEA", str(pathlib.Path(__file__).resolve().parent.parent / "build" / "fovea"))
ROUNDS, GRID, EDGE = (int(a) for a in (sys.argv[1:] + ["3", "10", "2048"][len(sys.argv) - 1:])[:3])
OVERLAP = 0.2


def timed(function):
    """Processor and wall seconds, of children and of this process."""
    def spent():
        return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)))
    processor, wall = spent(), time.monotonic()
    function()
    return spent() - processor, time.monotonic() - wall


def make_tiles(folder):
    """Parts of one textured plane, each up to 5 pixels from its place in the grid."""
    rng = np.random.default_rng(1)
    step = round(EDGE * (1 - OVERLAP))
    side = step * (GRID - 1) + EDGE + 20
    coarse = rng.random((side // 8 + 2, side // 8 + 2))
    places = []
    for number in range(GRID * GRID):
        y, x = np.array(divmod(number, GRID)) * step + 10 + rng.integers(-5, 6, 2)
        rows, columns = np.arange(y, y + EDGE) / 8, np.arange(x, x + EDGE) / 8
        top, left = rows.astype(int), columns.astype(int)
        fy, fx = (rows - top)[:, None], (columns - left)[None]
        part = coarse[top[0]:top[-1] + 2, left[0]:left[-1] + 2]
        a, b = top - top[0], left - left[0]
        tile = (part[a][:, b] * (1 - fy) * (1 - fx) + part[a + 1][:, b] * fy * (1 - fx) +
                part[a][:, b + 1] * (1 - fy) * fx + part[a + 1][:, b + 1] * fy * fx)
        tile = tile * 20000 + rng.normal(0, 300, tile.shape) + 1000
        tifffile.imwrite(f"{folder}/tile_{number:04d}.tif", tile.clip(0, 65535).astype("uint16"))
        places.append((y, x))
    return np.array(places), step * (GRID - 1) + EDGE


def floor(folder, side):
    """Every byte read once and as many as the result has written once."""
    left = side * side * 2
    with open(f"{folder}/floor.raw", "wb") as out:
        for path in sorted(pathlib.Path(folder).glob("tile_*.tif")):
            data = path.read_bytes()[:left]
            out.write(data)
            left -= len(data)
        out.flush()
        os.fsync(out.fileno())


def main():
    call = f'stitch("tile_*.tif", grid = [{GRID}, {GRID}], overlap = {1 - round(EDGE * (1 - OVERLAP)) / EDGE})'
    with tempfile.TemporaryDirectory() as folder:
        truth, side = make_tiles(folder)

        def fovea(text):
            subprocess.run([FOVEA, "run", "--quiet", "--fresh", "--overwrite", "-e", text], cwd=folder, check=True)
        results = [(timed(lambda: floor(folder, side)), timed(lambda: fovea(f'{call} |> write("whole.tif", compression = "none")')),
                    timed(lambda: fovea(f'{call} |> write("whole.zarr")')),
                    timed(lambda: fovea(f'{call} |> write("whole.zarr", compression = "none")'))) for _ in range(ROUNDS)]
        names = ("reading and writing once", "stitch to TIFF", "stitch to OME-Zarr with its pyramid", "the same, not compressed")
        times = [[statistics.median(r[k][i] for r in results) for i in range(2)] for k in range(len(names))]
        print(f"{GRID} x {GRID} tiles of {EDGE} x {EDGE} uint16, {OVERLAP:.0%} overlap")
        for name, (processor, wall) in zip(names, times):
            print(f"{name:36} processor {processor:7.2f} s, wall {wall:7.2f} s: {processor / times[0][0]:5.2f} and "
                  f"{wall / times[0][1]:5.2f} times the first")
        fovea(f'{call.replace("stitch", "stitch_positions", 1)} |> write("places.csv")')
        with open(f"{folder}/places.csv") as file:
            off = np.array([[float(row["y"]), float(row["x"])] for row in csv.DictReader(file)]) - truth
        print(f"places are within {np.sqrt(((off - off.mean(0)) ** 2).sum(1).mean()):.3f} px (rms)")


if __name__ == "__main__":
    main()
