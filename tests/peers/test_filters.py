#!/usr/bin/python3
"""gaussian, uniform and median against scipy.ndimage and scikit-image, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.filters
except ImportError as missing:
    print(f"skip filters: {missing}")
    sys.exit(0)

from pipelines import near, run, same, test

MODES = ("reflect", "nearest", "mirror", "constant", "wrap")
CHUNKS = ((), ("--chunk", "19"))
CAMERA = skimage.data.camera()[100:260, 120:330]  # 160 x 210 uint8
VOLUME = ndimage.gaussian_filter(np.random.default_rng(3).random((23, 40, 51)), 1) * 1000


def wide(array):
    """Type in which Fovea gives a linear filter of the array."""
    return np.float64 if array.dtype.itemsize == 8 or array.dtype in (np.int32, np.uint32) else np.float32


def tolerance(array):
    return 1e-12 if wide(array) == np.float64 else 2e-6


def as_dtypes(array):
    for dtype in "uint8 int16 uint16 int32 float32 float64".split():
        yield (array * (100 / array.max())).astype(dtype)


@test
def gaussian_equals_scipy_in_every_mode_and_type():
    for image in (*as_dtypes(CAMERA), *as_dtypes(VOLUME)):
        for mode in MODES:
            ours = run(f'gaussian(a, 1.7, mode = "{mode}", cval = 9)', a=image)
            peer = ndimage.gaussian_filter(image.astype(np.float64), 1.7, mode=mode, cval=9)
            assert ours.dtype == wide(image), f"{ours.dtype} of {image.dtype}"
            near(ours, peer, f"{image.dtype} {mode}", tolerance(image))


@test
def gaussian_equals_scipy_for_lists_truncation_and_large_sigma():
    for chunk in CHUNKS:
        near(run("gaussian(a, [0.5, 0, 3])", *chunk, a=VOLUME), ndimage.gaussian_filter(VOLUME, [0.5, 0, 3]), relative=1e-12)
        near(run("gaussian(a, 2, truncate = 2.5)", *chunk, a=VOLUME),
             ndimage.gaussian_filter(VOLUME, 2, truncate=2.5), relative=1e-12)
        near(run("gaussian(a, 30)", *chunk, a=CAMERA), ndimage.gaussian_filter(CAMERA.astype(float), 30), relative=2e-6)


@test
def gaussian_equals_skimage():
    image = CAMERA / 255
    near(run("gaussian(a, 2)", a=image), skimage.filters.gaussian(image, 2, mode="reflect"), relative=1e-12)


@test
def uniform_equals_scipy_for_odd_and_even_sizes():
    for size in (1, 2, 3, 8, 9, 20, [1, 4, 31]):
        for mode in MODES:
            ours = run(f'uniform(a, {size}, mode = "{mode}", cval = 9)', a=VOLUME)
            near(ours, ndimage.uniform_filter(VOLUME, size, mode=mode, cval=9), f"{size} {mode}", 1e-12)
    for image in as_dtypes(CAMERA):
        near(run("uniform(a, 7)", *CHUNKS[1], a=image),
             ndimage.uniform_filter(image.astype(float), 7), str(image.dtype), tolerance(image))


@test
def median_equals_scipy_bit_for_bit():
    for image in as_dtypes(CAMERA):
        for size in (2, 3, 5, 7, 11, 20, [1, 9]):
            same(run(f"median(a, {size})", a=image), ndimage.median_filter(image, size), f"{image.dtype} {size}")
    for image in as_dtypes(VOLUME):
        for size in (3, 5, [2, 3, 4]):
            for chunk in CHUNKS:
                same(run(f"median(a, {size})", *chunk, a=image), ndimage.median_filter(image, size), f"{image.dtype} {size}")


@test
def median_equals_scipy_in_every_mode():
    volume = VOLUME.astype(np.uint16)
    for mode in MODES:
        for size in (3, [3, 4, 7], [1, 17, 15]):
            peer = ndimage.median_filter(volume, size, mode=mode, cval=9)
            same(run(f'median(a, {size}, mode = "{mode}", cval = 9)', a=volume), peer, f"{mode} {size}")


@test
def median_equals_skimage_inside():
    ours = run("median(a, 5)", a=CAMERA)
    peer = skimage.filters.median(CAMERA, np.ones((5, 5)), mode="reflect")
    same(ours, peer)


test.main()
