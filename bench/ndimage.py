#!/usr/bin/env python3
"""fovea.ndimage beside scipy.ndimage, call by call, in one process: medians of the time by the clock and of processors.

    bench/ndimage.py [--sizes 64,512,4000,256^3] [--seconds 0.3] [FUNCTION ...]

Calls of the two alternate, so that a busy machine slows both. A ratio above 1 says how many times as fast ours is."""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import numpy as np  # noqa: E402
from scipy import ndimage as theirs  # noqa: E402

from fovea import ndimage as ours  # noqa: E402

TURN = {2: [[0.98, 0.17], [-0.17, 0.98]], 3: [[1, 0, 0], [0, 0.98, 0.17], [0, -0.17, 0.98]]}


def cases(shape):
    """Functions with arguments, for an image of this shape."""
    ndim = len(shape)
    rng = np.random.default_rng(0)
    a = theirs.gaussian_filter(rng.random(shape, np.float32), 2)
    a = ((a - a.min()) / np.ptp(a)).astype(np.float32)
    byte, mask = (a * 255).astype(np.uint8), a > 0.5
    labels = theirs.label(mask)[0]
    index = np.arange(1, labels.max() + 1)
    foot = theirs.generate_binary_structure(ndim, 1)
    weights = rng.random((3,) * ndim)
    return {
        "correlate1d": (a, [1, 2, 3, 2, 1]), "convolve": (a, weights), "correlate": (byte, weights),
        "gaussian_filter": (a, 2), "gaussian_filter1d": (a, 2), "gaussian_laplace": (a, 2),
        "gaussian_gradient_magnitude": (a, 2), "uniform_filter": (a, 5), "uniform_filter1d": (a, 5), "sobel": (a,), "prewitt": (a,),
        "laplace": (a,), "minimum_filter": (byte, 5), "maximum_filter": (a, 5), "maximum_filter1d": (a, 7),
        "median_filter": (byte, 3), "percentile_filter": (a, 20, 3), "rank_filter": (byte, 2, 3),
        "binary_erosion": (mask,), "binary_dilation": (mask, None, 2), "binary_opening": (mask,), "binary_closing": (mask,),
        "binary_fill_holes": (mask,), "binary_propagation": (mask & (a > 0.6), None, mask),
        "grey_erosion": (byte, 5), "grey_dilation": (byte, None, foot), "grey_opening": (byte, 3), "grey_closing": (a, 3),
        "morphological_gradient": (byte, 3), "white_tophat": (byte, 5), "black_tophat": (byte, 5),
        "distance_transform_edt": (mask,), "distance_transform_cdt": (mask,), "label": (mask,), "find_objects": (labels,),
        "sum_labels": (a, labels, index), "mean": (a, labels, index), "variance": (a, labels, index),
        "minimum": (a, labels, index), "maximum": (a, labels, index), "median": (a, labels, index),
        "center_of_mass": (a, labels, index), "extrema": (a, labels, index), "histogram": (a, 0, 1, 10, labels, index[:50]),
        "zoom": (a, 0.7), "shift": (a, 1.3), "rotate": (a, 20), "affine_transform": (a, TURN[ndim]),
        "map_coordinates": (a, np.indices(shape, np.float64) * 0.9), "spline_filter": (a,),
    }


def timed(function, arguments):
    """Seconds by the clock and of processors of one call."""
    clock, work = time.perf_counter(), time.process_time()
    function(*arguments)
    return time.perf_counter() - clock, time.process_time() - work


def compared(name, arguments, seconds):
    """Medians (clock, processors) of ours and of scipy's, over some seconds but three calls at least."""
    results, end = ([], []), time.perf_counter() + seconds
    pair = (getattr(ours, name), getattr(theirs, name))
    timed(pair[0], arguments)
    while len(results[0]) < 3 or time.perf_counter() < end:
        for k in (0, 1):
            results[k].append(timed(pair[k], arguments))
    return [tuple(statistics.median(times) for times in zip(*r)) for r in results]


def shape_of(size):
    """64 is a plane of 64 × 64, 256^3 a volume."""
    edge, _, power = size.partition("^")
    return (int(edge),) * int(power or 2)


def main():
    """Prints a line for each function and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64,512,4000,256^3")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each line")
    parser.add_argument("functions", nargs="*")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, milliseconds")
    print(f"{'function':28} {'size':>7} {'clock':>9} {'scipy':>9} {'ratio':>6} {'work':>9} {'scipy':>9} {'ratio':>6}")
    slower = 0
    for size in options.sizes.split(","):
        for name, arguments in cases(shape_of(size)).items():
            if options.functions and name not in options.functions:
                continue
            (clock, work), (their_clock, their_work) = compared(name, arguments, options.seconds)
            slower += clock > their_clock
            print(f"{name:28} {size:>7} {clock * 1e3:9.3f} {their_clock * 1e3:9.3f} {their_clock / clock:6.2f} "
                  f"{work * 1e3:9.3f} {their_work * 1e3:9.3f} {their_work / max(work, 1e-9):6.2f}", flush=True)
    print(f"slower than scipy by the clock: {slower}")


if __name__ == "__main__":
    main()
