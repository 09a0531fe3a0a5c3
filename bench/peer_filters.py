#!/usr/bin/python3
"""Times Fovea's filters beside OpenCV, SciPy and scikit-image in one run.

usage: peer_filters.py [KERNEL_TIME] [WORD...]     (default build/bench/kernel_time; only cases whose name has one of the words)

Both sides use all threads they have. Wall times are the best of a few runs; on a busy machine the ratio of processor times
("cpu x") says more than that of wall times.
"""
import os, subprocess, sys, time

import cv2
import numpy as np
import scipy.ndimage as ndimage
from skimage.filters import rank as skimage_rank
from skimage.filters import threshold_sauvola
from skimage.morphology import ball, disk

RANDOM = np.random.default_rng(1)


def noise(dtype, shape):
    if dtype == "bool":  # foreground with holes some way apart, so that distances are not all short
        return RANDOM.random(shape, dtype=np.float32) > 2e-4
    if dtype == "float32":
        return RANDOM.random(shape, dtype=np.float32)
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def best(call, seconds=2.0):
    """Least wall and processor time of a call, in milliseconds; at least two runs."""
    wall = cpu = float("inf")
    end = time.perf_counter() + seconds
    for turn in range(50):
        start, used = time.perf_counter(), time.process_time()
        call()
        wall = min(wall, time.perf_counter() - start)
        cpu = min(cpu, time.process_time() - used)
        if turn >= 1 and time.perf_counter() > end:
            break
    return wall * 1e3, cpu * 1e3


def gaussian_cv(image, sigma):
    out = np.empty_like(image)
    return lambda: cv2.GaussianBlur(image, (0, 0), sigma, out, borderType=cv2.BORDER_REFLECT)


def median_cv(image, size):
    out = np.empty_like(image)
    return lambda: cv2.medianBlur(image, size, out)


def blur_cv(image, size):
    out = np.empty_like(image)
    return lambda: cv2.blur(image, (size, size), out, borderType=cv2.BORDER_REFLECT)


def erode_cv(image, radius, shape=None):
    out = np.empty_like(image)
    element = cv2.getStructuringElement(shape, (2 * radius + 1,) * 2) if shape is not None else disk(radius)
    return lambda: cv2.erode(image, element, out)


def sobel_cv(image):
    out = np.empty_like(image)
    return lambda: cv2.Sobel(image, -1, 1, 0, out, borderType=cv2.BORDER_REFLECT)


def laplace_cv(image):
    out = np.empty_like(image)
    return lambda: cv2.Laplacian(image, -1, out, borderType=cv2.BORDER_REFLECT)


KERNEL = [float(k % 7 - 3) for k in range(25)]


def convolve_cv(image):
    out, kernel = np.empty_like(image), np.array(KERNEL, np.float32).reshape(5, 5)
    return lambda: cv2.filter2D(image, -1, kernel, out, borderType=cv2.BORDER_REFLECT)


CASES = [  # name of the peer, operator, parameters, dtype, shape, the peer's call
    ("OpenCV", "gaussian", "sigma=1", "float32", (4000, 4000), lambda a: gaussian_cv(a, 1)),
    ("OpenCV", "gaussian", "sigma=2", "float32", (4000, 4000), lambda a: gaussian_cv(a, 2)),
    ("OpenCV", "gaussian", "sigma=10", "float32", (4000, 4000), lambda a: gaussian_cv(a, 10)),
    ("SciPy", "gaussian", "sigma=2", "float32", (256, 256, 256), lambda a: lambda: ndimage.gaussian_filter(a, 2)),
    ("SciPy", "gaussian", "sigma=2", "uint8", (256, 256, 256), lambda a: lambda: ndimage.gaussian_filter(a, 2, output=np.float32)),
    ("SciPy", "gaussian", "sigma=10", "float32", (256, 256, 256), lambda a: lambda: ndimage.gaussian_filter(a, 10)),
    ("OpenCV", "uniform", "size=5", "float32", (4000, 4000), lambda a: blur_cv(a, 5)),
    ("OpenCV", "uniform", "size=21", "float32", (4000, 4000), lambda a: blur_cv(a, 21)),
    ("SciPy", "uniform", "size=5", "float32", (256, 256, 256), lambda a: lambda: ndimage.uniform_filter(a, 5)),
    ("SciPy", "uniform", "size=21", "float32", (256, 256, 256), lambda a: lambda: ndimage.uniform_filter(a, 21)),
    ("OpenCV", "median", "size=3", "uint8", (4000, 4000), lambda a: median_cv(a, 3)),
    ("OpenCV", "median", "size=3", "uint16", (4000, 4000), lambda a: median_cv(a, 3)),
    ("OpenCV", "median", "size=5", "uint8", (4000, 4000), lambda a: median_cv(a, 5)),
    ("OpenCV", "median", "size=5", "uint16", (4000, 4000), lambda a: median_cv(a, 5)),
    ("OpenCV", "median", "size=5", "float32", (4000, 4000), lambda a: median_cv(a, 5)),
    ("OpenCV", "median", "size=7", "uint8", (2000, 2000), lambda a: median_cv(a, 7)),
    ("OpenCV", "median", "size=9", "uint8", (2000, 2000), lambda a: median_cv(a, 9)),
    ("OpenCV", "median", "size=13", "uint8", (2000, 2000), lambda a: median_cv(a, 13)),
    ("OpenCV", "median", "size=21", "uint8", (2000, 2000), lambda a: median_cv(a, 21)),
    ("OpenCV", "median", "size=51", "uint8", (2000, 2000), lambda a: median_cv(a, 51)),
    ("SciPy", "median", "size=13", "uint16", (500, 500), lambda a: lambda: ndimage.median_filter(a, 13)),
    ("SciPy", "median", "size=21", "float32", (500, 500), lambda a: lambda: ndimage.median_filter(a, 21)),
    ("skimage", "median", "size=5", "uint8", (256, 256, 256), lambda a: lambda: skimage_rank.median(a, np.ones((5, 5, 5), np.uint8))),
    ("SciPy", "median", "size=3", "uint8", (128, 256, 256), lambda a: lambda: ndimage.median_filter(a, 3)),
    ("SciPy", "median", "size=5", "uint8", (1000, 1000), lambda a: lambda: ndimage.median_filter(a, 5)),
    ("SciPy", "median", "size=5", "uint16", (1000, 1000), lambda a: lambda: ndimage.median_filter(a, 5)),
    ("EDT", "erode", "footprint=ball(12)", "bool", (256, 256, 256), lambda a: lambda: ndimage.distance_transform_edt(a) > 12),
    ("OpenCV", "erode", "footprint=disk(12)", "uint8", (4000, 4000), lambda a: erode_cv(a, 12)),
    ("OpenCV", "erode", "footprint=box(25)", "uint8", (4000, 4000), lambda a: erode_cv(a, 12, cv2.MORPH_RECT)),
    ("SciPy", "erode", "footprint=ball(3)", "uint8", (128, 128, 128), lambda a: lambda: ndimage.grey_erosion(a, footprint=ball(3))),
    ("SciPy", "minimum_filter", "size=25", "float32", (256, 256, 256), lambda a: lambda: ndimage.minimum_filter(a, 25)),
    ("SciPy", "gaussian_laplace", "sigma=2", "float32", (256, 256, 256), lambda a: lambda: ndimage.gaussian_laplace(a, 2)),
    ("SciPy", "gaussian_gradient_magnitude", "sigma=2", "float32", (2000, 2000),
     lambda a: lambda: ndimage.gaussian_gradient_magnitude(a, 2)),
    ("OpenCV", "sobel", "axis=1", "float32", (4000, 4000), lambda a: sobel_cv(a)),
    ("OpenCV", "laplace", "", "float32", (4000, 4000), lambda a: laplace_cv(a)),
    ("OpenCV", "convolve", "kernel=" + str(KERNEL).replace(" ", ""), "float32", (4000, 4000), lambda a: convolve_cv(a)),
    ("SciPy", "variance", "size=5", "float32", (2000, 2000),
     lambda a: lambda: ndimage.uniform_filter(a * a, 5) - ndimage.uniform_filter(a, 5) ** 2),
    ("skimage", "sauvola", "window_size=15", "uint8", (2000, 2000), lambda a: lambda: threshold_sauvola(a, 15)),
    ("SciPy", "percentile", "percentile=20;size=5", "uint8", (1000, 1000), lambda a: lambda: ndimage.percentile_filter(a, 20, 5)),
]


def main():
    words = sys.argv[1:]
    program = words.pop(0) if words and os.path.exists(words[0]) else "build/bench/kernel_time"
    print(f"{'':44} {'1 thread':>9} {'2 threads':>9} {'peer':>9} {'x':>6} {'cpu x':>6}")
    for peer, operator, parameters, dtype, shape, make in CASES:
        name = f"{operator} {parameters} {dtype} {'x'.join(map(str, shape))} ({peer})"
        if words and not any(word in name for word in words):
            continue
        wall, cpu = best(make(noise(dtype, shape)))
        ours = subprocess.run([program, operator, parameters, dtype, "x".join(map(str, shape))], capture_output=True, text=True, check=True)
        one, two, both = map(float, ours.stdout.split())
        print(f"{name:44} {one:9.2f} {two:9.2f} {wall:9.2f} {wall / two:6.1f} {cpu / both:6.1f}", flush=True)


if __name__ == "__main__":
    main()
