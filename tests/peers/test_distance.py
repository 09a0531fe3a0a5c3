#!/usr/bin/python3
"""distance against scipy.ndimage.distance_transform_edt, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    from skimage.filters import threshold_otsu
except ImportError as missing:
    print(f"skip distance: {missing}")
    sys.exit(0)

from pipelines import near, run, same, test

CHUNKS = ((), ("--chunk", "17"), ("--chunk", "40", "--engine", "processes", "--workers", "2"))


def blobs(shape, seed, level):
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).random(shape), 3)
    return noise > np.quantile(noise, level)


def check(mask, chunks=CHUNKS):
    peer = ndimage.distance_transform_edt(mask)
    for chunk in chunks:
        same(run("distance(a)", *chunk, a=mask), peer.astype(np.float32), f"chunk {chunk}:")
    same(run("distance(a, squared = true)", a=mask), np.round(peer * peer), "squared")


@test
def real_images_and_volumes_equal_scipy():
    coins = skimage.data.coins()
    check(coins > threshold_otsu(coins))
    check(blobs((40, 70, 90), 1, 0.3))


@test
def far_background_equals_scipy():
    mask = np.ones((330, 610), bool)
    mask[0, 0] = mask[200, 100] = False
    check(mask, CHUNKS[:2])
    mask = np.ones((30, 20, 600), bool)
    mask[29, 3, 1] = False
    check(mask, CHUNKS[:1])


@test
def anisotropic_spacing_is_within_one_rounding_of_scipy():
    for shape, sampling in (((40, 50, 60), [2.5, 1, 1]), ((40, 50, 60), [0.3, 0.108, 0.108]), ((40, 50, 60), [1.7, 2.3, 0.9]),
                            ((90, 130), [3.14159, 2.71828])):
        mask = blobs(shape, 2, 0.2)
        peer = ndimage.distance_transform_edt(mask, sampling=sampling)
        for chunk in CHUNKS[:2]:
            near(run(f"distance(a, sampling = {sampling})", *chunk, a=mask), peer, f"{sampling}", 7e-8)
        near(run(f"distance(a, sampling = {sampling}, squared = true)", a=mask), peer * peer, f"{sampling} squared", 1e-9)


@test
def every_type_and_odd_values_equal_scipy():
    values = np.random.default_rng(3).integers(0, 3, (40, 50))
    peer = ndimage.distance_transform_edt(values).astype(np.float32)
    for dtype in "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64".split():
        same(run("distance(a)", a=values.astype(dtype)), peer, dtype)
    odd = values.astype(np.float32)
    odd[values == 1] = np.nan
    odd[values == 2] = -np.inf
    same(run("distance(a)", a=odd), peer, "nan and infinity")


@test
def tiny_and_constant_images():
    for shape in ((1, 1), (1, 7), (7, 1), (1, 1, 1), (3, 1, 5)):
        mask = np.ones(shape, bool)
        assert np.isinf(run("distance(a)", a=mask)).all(), "no background: infinitely far"
        same(run("distance(a)", a=~mask), np.zeros(shape, np.float32))
        mask.flat[0] = False
        same(run("distance(a)", a=mask), ndimage.distance_transform_edt(mask).astype(np.float32), str(shape))


@test
def a_slice_of_the_distance_is_a_slice_of_scipys():
    mask = blobs((40, 50, 60), 4, 0.2)
    peer = ndimage.distance_transform_edt(mask).astype(np.float32)
    same(run("distance(a)[17:23, 5:50, 11:13]", "--chunk", "16", a=mask), peer[17:23, 5:50, 11:13])


test.main()
