#!/usr/bin/python3
"""reconstruct, h_maxima, h_minima, local_maxima and local_minima against scikit-image, through the command."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.morphology as morphology
except ImportError as missing:
    print(f"skip reconstruct: {missing}")
    sys.exit(0)

from pipelines import Difference, run, same, test

CHUNKS = ((), ("--chunk", "19"))


def structure(ndim, connectivity):
    return ndimage.generate_binary_structure(ndim, connectivity)


def images():
    yield skimage.data.coins()
    yield np.random.default_rng(1).integers(0, 50, (15, 25, 30)).astype(np.int16)
    yield ndimage.gaussian_filter(np.random.default_rng(2).random((20, 30, 40)), 1.5).astype(np.float32)


@test
def reconstruction_equals_scikit_image():
    for mask in images():
        step = mask.dtype.type((mask.max() - mask.min()) / 5)
        low = np.maximum(mask, mask.min() + step) - step
        high = np.minimum(mask, mask.max() - step) + step
        sparse = np.where(np.random.default_rng(3).random(mask.shape) < 0.01, mask, mask.min())
        for connectivity, pairs in ((1, ((sparse, "dilation"),)), (mask.ndim, ((low, "dilation"), (high, "erosion")))):
            shape = structure(mask.ndim, connectivity)
            for seed, method in pairs:
                peer = morphology.reconstruction(seed, mask, method, shape).astype(mask.dtype)
                for chunk in CHUNKS:
                    call = f'reconstruct(s, m, method = "{method}", connectivity = {connectivity})'
                    same(run(call, *chunk, s=seed, m=mask), peer, f"{method} {connectivity} {chunk}")


@test
def h_maxima_and_minima_of_integers_equal_scikit_image():
    for image in list(images())[:2]:
        for h, connectivity in ((1, 1), (7, image.ndim), (30, image.ndim)):
            for name in ("h_maxima", "h_minima"):
                peer = getattr(morphology, name)(image, h, structure(image.ndim, connectivity)).astype(bool)
                for chunk in CHUNKS:
                    same(run(f"{name}(a, {h}, connectivity = {connectivity})", *chunk, a=image), peer, f"{name} {h} {chunk}")
    fraction = np.random.default_rng(4).integers(0, 9, (20, 30)).astype(np.int16)
    same(run("h_maxima(a, 2.5)", a=fraction), morphology.h_maxima(fraction.astype(float), 2.5).astype(bool), "2.5")


@test
def h_maxima_and_minima_of_floats_equal_scikit_image():
    image = ndimage.gaussian_filter(np.random.default_rng(5).random((40, 50)), 1)
    for h in (0.01, 0.05, 0.2):
        for name in ("h_maxima", "h_minima"):
            same(run(f"{name}(a, {h})", *CHUNKS[1], a=image), getattr(morphology, name)(image, h).astype(bool), f"{name} {h}")


@test
def local_maxima_and_minima_of_every_type_equal_scikit_image():
    values = np.random.default_rng(6).integers(0, 12, (40, 50))
    for dtype in "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64".split():
        image = values.astype(dtype)
        for name in ("local_maxima", "local_minima"):
            peer = getattr(morphology, name)(image)
            same(run(f"{name}(a)", *CHUNKS[values.sum() % 2], a=image), peer.astype(bool), f"{name} {dtype}")
    for image in images():
        for name in ("local_maxima", "local_minima"):
            for connectivity in (1, image.ndim):
                peer = getattr(morphology, name)(image, connectivity=connectivity)
                for chunk in CHUNKS[1:]:
                    same(run(f"{name}(a, connectivity = {connectivity})", *chunk, a=image), peer.astype(bool), f"{name} {chunk}")


@test
def constant_tiny_and_odd_images():
    for shape in ((1, 1), (1, 7), (5, 5), (2, 3, 4)):
        flat = np.full(shape, 7, np.uint8)
        for call in ("local_maxima(a)", "local_minima(a)", "h_maxima(a, 1)", "h_minima(a, 1)"):
            assert not run(call, a=flat).any(), f"{call} of a constant image"
        same(run("reconstruct(a, a)", a=flat), flat)
    odd = np.array([[0, np.inf, 0, -np.inf, 1, 0, 5]], np.float32)
    same(run("local_maxima(a)", a=odd), np.array([[0, 1, 0, 0, 1, 0, 1]], bool))
    odd[0, 1] = np.nan
    same(run("local_maxima(a)", a=odd), np.array([[0, 1, 0, 0, 1, 0, 1]], bool), "nan is the highest value")
    above = run("reconstruct(a + 9, a)", a=np.array([[1, 2, 3]], np.float32))
    same(above, np.array([[1, 2, 3]], np.float32), "a seed above the mask")


@test
def bad_input_is_named():
    image = np.zeros((5, 6), np.float32)
    for call, words in (("h_maxima(a, 0)", "h = 0"), ("h_minima(a, 0 - 1)", "h"), ("reconstruct(a, a[0:4, :])", "another shape"),
                        ("reconstruct(a > 0, a)", "seed is bool and mask is float32"),
                        ("local_maxima(a, connectivity = 3)", "connectivity = 3"),
                        ('reconstruct(a, a, method = "opening")', "dilation")):
        try:
            run(call, a=image)
        except Difference as reason:
            assert words in str(reason), f"{call}: {reason}"
        else:
            raise Difference(f"{call} is accepted")


test.main()
