#!/usr/bin/python3
"""erode, dilate, open and close against scipy.ndimage and scikit-image, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.morphology as morphology
except ImportError as missing:
    print(f"skip morphology: {missing}")
    sys.exit(0)

from pipelines import run, same, test


def blobs(shape, seed=0, level=0.5, sigma=2):
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).random(shape), sigma)
    return noise > np.quantile(noise, level)


def footprints(ndim):
    """Names and the peer's arrays."""
    yield "cross()", ndimage.generate_binary_structure(ndim, 1)
    yield "box(5)", np.ones((5,) * ndim, bool)
    yield "ball(3)", morphology.ball(3).astype(bool) if ndim == 3 else morphology.disk(3).astype(bool)
    if ndim == 3:
        yield "box([1, 3, 7])", np.ones((1, 3, 7), bool)
        yield "disk(4)", morphology.disk(4).astype(bool)[None]


CHUNKS = ((), ("--chunk", "17"), ("--chunk", "64", "--workers", "1"))


@test
def all_four_equal_scipy_in_planes_and_volumes():
    for mask in (blobs((90, 130), level=0.3), blobs((30, 41, 52), level=0.3)):
        for name, array in footprints(mask.ndim):
            erode = lambda x: ndimage.binary_erosion(x, array, border_value=1)
            dilate = lambda x: ndimage.binary_dilation(x, array)
            for chunk in CHUNKS:
                same(run(f"erode(a, {name})", *chunk, a=mask), erode(mask), f"erode {name} {chunk}")
                same(run(f"dilate(a, {name})", *chunk, a=mask), dilate(mask), f"dilate {name} {chunk}")
            same(run(f"open(a, {name})", a=mask), dilate(erode(mask)), f"open {name}")
            same(run(f"close(a, {name})", a=mask), erode(dilate(mask)), f"close {name}")


def pattern(array):
    """A footprint as it is written in a call."""
    return f"pattern({[int(v) for v in array.flat]}, shape = {list(array.shape)})"


@test
def any_pattern_equals_scipy():
    """Asymmetric ones too, larger than the image, and without their middle voxel; nothing outside the image counts."""
    rng = np.random.default_rng(5)
    for shape, sizes in (((40, 57), (5, 3)), ((40, 57), (1, 9)), ((9, 30, 33), (3, 5, 7)), ((3, 4), (7, 9)), ((1, 1), (3, 3))):
        array = rng.random(sizes) < 0.4
        array.flat[[0, array.size // 2]] = True, False
        name = pattern(array)
        mask = rng.random(shape) < 0.8
        same(run(f"erode(a, {name})", a=mask), ndimage.binary_erosion(mask, array, border_value=1), f"erode {sizes}")
        same(run(f"dilate(a, {name})", "--chunk", "16", a=~mask), ndimage.binary_dilation(~mask, array), f"dilate {sizes}")
        for dtype in (np.uint8, np.int16, np.float32, np.int32):
            a = (rng.random(shape) * 200 - (100 if np.dtype(dtype).kind != "u" else 0)).astype(dtype)
            limit = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
            low, high = (limit.min, limit.max) if limit else (-np.inf, np.inf)
            eroded = ndimage.minimum_filter(a, footprint=array, mode="constant", cval=high)
            dilated = ndimage.maximum_filter(a, footprint=array[(slice(None, None, -1),) * a.ndim], mode="constant", cval=low)
            outside = ndimage.binary_erosion(np.zeros(shape, bool), array, border_value=1)  # the window sees no voxel
            found = run(f"erode(a, {name})", "--chunk", "16", a=a)
            same(found[~outside], eroded[~outside], f"erode {sizes} {dtype}")
            turned = ndimage.binary_dilation(np.ones(shape, bool), array)
            found = run(f"dilate(a, {name})", a=a)
            same(found[turned], dilated[turned], f"dilate {sizes} {dtype}")
    square = rng.random((3, 3)) < 0.5
    square[1, 1] = True
    a = rng.random((30, 31)).astype(np.float32)
    text = f"pattern({[int(v) for v in square.flat]})"
    same(run(f"erode(a, {text})", a=a), run(f"erode(a, {pattern(square)})", a=a))


@test
def binary_operators_equal_scikit_image_at_the_border():
    mask = blobs((60, 70), level=0.4)
    disk = morphology.disk(5)
    same(run("erode(a, disk(5))", a=mask), morphology.binary_erosion(mask, disk))
    same(run("dilate(a, disk(5))", a=mask), morphology.binary_dilation(mask, disk))
    same(run("open(a, disk(5))", a=mask), morphology.binary_opening(mask, disk))
    same(run("erode(a)", a=mask), morphology.binary_erosion(mask))


@test
def a_large_ball_is_a_threshold_of_the_distance():
    mask = ~(np.random.default_rng(2).random((60, 70, 80)) < 0.0003)
    same(run("erode(a, ball(12))", a=mask), ndimage.distance_transform_edt(mask) > 12)
    same(run("erode(a, ball(12))", "--chunk", "31", a=mask), ndimage.distance_transform_edt(mask) > 12)
    same(run("erode(a, ball(20))", a=mask), ndimage.distance_transform_edt(mask) > 20)


test.main()
