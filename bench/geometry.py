#!/usr/bin/python3
"""Times Fovea's geometry operators beside SciPy, OpenCV, SimpleITK and a copy of the memory, in one run.

usage: geometry.py [BUILD] [WORD...]

BUILD is the folder of the build (default build; make its target kernel_time first); WORDs take only the cases whose name has one
of them. Fovea and its peer take turns; the times are medians of the turns:

  peer, fovea   milliseconds of two quiet cores: processor time over the threads that each can use (Fovea and OpenCV 2, SciPy 1)
  x, target     their ratio, and what it has to be; of a copy: how much longer than it

Fovea's time is the operators' own in warm buffers (kernel_time.c); of order 3, with the prefilter. A copy is numpy's of the whole
image into an array that was used before (memcpy).
"""
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.ndimage as ndimage

TURN = np.array([[0.95, 0.2], [-0.2, 0.95]])
OBLIQUE = np.array([[0.95, 0.15, -0.1], [-0.12, 0.96, 0.14], [0.1, -0.13, 0.97]])
TURNS = 3


def flat(matrix):
    return "[" + ",".join(repr(float(v)) for v in np.ravel(matrix)) + "]"


def cases():
    plane = np.random.default_rng(1).random((4000, 4000), dtype=np.float32)
    volume = np.random.default_rng(1).random((256, 256, 256), dtype=np.float32)
    affine2, affine3 = f"matrix={flat(TURN)}; offset=[-300,500]", f"matrix={flat(OBLIQUE)}; offset=[5,20,-10]"
    offset3 = [5, 20, -10]
    out = np.empty_like(plane)
    yield ("affine 1, 4000²", [("affine", affine2 + "; order=1", plane)],
           lambda: ndimage.affine_transform(plane, TURN, [-300, 500], order=1), 1, 20, "scipy")
    yield ("affine 1, 256³", [("affine", affine3 + "; order=1", volume)],
           lambda: ndimage.affine_transform(volume, OBLIQUE, offset3, order=1), 1, 20, "scipy")
    yield ("affine 3, 256³", [("spline_filter", "mode=mirror", volume), ("affine", affine3 + "; prefilter=false", volume)],
           lambda: ndimage.affine_transform(volume, OBLIQUE, offset3, order=3), 1, 15, "scipy")
    for factor in (0.5, 0.8, 1.25):
        yield (f"zoom 1 by {factor}, 4000²", [("zoom", f"zoom={factor}; order=1; grid_mode=true; mode=mirror", plane)],
               lambda: ndimage.zoom(plane, factor, order=1, grid_mode=True, mode="mirror"), 1, 20, "scipy")
    yield ("zoom 1 by 0.8, 256³", [("zoom", "zoom=0.8; order=1; grid_mode=true; mode=mirror", volume)],
           lambda: ndimage.zoom(volume, 0.8, order=1, grid_mode=True, mode="mirror"), 1, 20, "scipy")
    try:
        import cv2
        cv2.setNumThreads(1)
        matrix = np.array([[0.95, -0.2, 500], [0.2, 0.95, -300]])
        yield ("affine 1, 4000² (OpenCV)", [("affine", affine2 + "; order=1", plane)],
               lambda: cv2.warpAffine(plane, matrix, (4000, 4000), out, cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP), 2, 1.5, "OpenCV")
        for factor in (0.8, 1.25):
            size = round(4000 * factor)
            yield (f"zoom 1 by {factor}, 4000² (OpenCV)", [("zoom", f"zoom={factor}; order=1; grid_mode=true; mode=nearest", plane)],
                   lambda: cv2.resize(plane, (size, size), interpolation=cv2.INTER_LINEAR), 2, 1.5, "OpenCV")
    except ImportError as missing:
        print(f"without OpenCV: {missing}", file=sys.stderr)
    try:
        import SimpleITK
        SimpleITK.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
        image = SimpleITK.GetImageFromArray(volume)
        transform = SimpleITK.AffineTransform(OBLIQUE[::-1, ::-1].ravel().tolist(), offset3[::-1])
        yield ("resample 1, 256³ (SimpleITK)", [("affine", affine3 + "; order=1", volume)],
               lambda: SimpleITK.Resample(image, image, transform, SimpleITK.sitkLinear, 0.0), 2, 5, "SimpleITK")
    except ImportError as missing:
        print(f"without SimpleITK: {missing}", file=sys.stderr)
    narrow = (plane * 255).astype(np.uint8)
    for image in (plane, narrow):
        copy = np.empty_like(image)
        for label, name, params in (("transpose", "transpose", ""), ("rotate90", "rotate90", "times=1"),
                                    ("flip", "slice", "step=[-1,-1]; single=[0,0]"), ("bin 2", "bin", "size=2")):
            yield (f"{label}, 4000² {image.dtype}", [(name, params, image)], lambda: np.copyto(copy, image), 2, 1.3, "copy")


def fovea(build, calls):
    """Processor milliseconds of all calls together, over two threads."""
    total = 0
    for name, params, image in calls:
        shape = "x".join(map(str, image.shape))
        done = subprocess.run([f"{build}/bench/kernel_time", name, params, str(image.dtype), shape, "3"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} {params}: {done.stderr}")
        total += float(done.stdout.split()[2])
    return total / 2


def peer(call, threads):
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start) / threads


def main():
    words = sys.argv[1:]
    build = words.pop(0) if words and os.path.isdir(words[0]) else "build"
    print(f"{'case':36}{'peer':>10}{'fovea':>10}{'x':>8}{'target':>8}")
    for name, calls, call, threads, target, who in cases():
        if words and not any(word in name for word in words):
            continue
        times = [(peer(call, threads), fovea(build, calls)) for _ in range(TURNS)]
        theirs, ours = (statistics.median(column) for column in zip(*times))
        ratio = ours / theirs if who == "copy" else theirs / ours
        print(f"{name:36}{theirs:10.2f}{ours:10.2f}{ratio:8.1f}{'<' if who == 'copy' else '>'}{target:7}  {who}", flush=True)


main()
