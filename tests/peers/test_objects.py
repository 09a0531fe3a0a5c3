#!/usr/bin/python3
"""fill_holes, remove_small and clear_border against scipy.ndimage and scikit-image, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.measure
    import skimage.morphology
    import skimage.segmentation
    from skimage.filters import threshold_otsu
except ImportError as missing:
    print(f"skip objects: {missing}")
    sys.exit(0)

from pipelines import Difference, remove_small_objects, run, same, test

CHUNKS = ((), ("--chunk", "13"))


def images():
    coins = skimage.data.coins()
    yield coins > threshold_otsu(coins)
    yield np.random.default_rng(1).random((20, 31, 43)) < 0.62
    noise = ndimage.gaussian_filter(np.random.default_rng(2).random((40, 50, 60)), 2)
    yield np.abs(noise - 0.5) < 0.02  # shells


@test
def fill_holes_equals_scipy():
    for mask in images():
        for connectivity in range(1, mask.ndim + 1):
            structure = ndimage.generate_binary_structure(mask.ndim, connectivity)
            for chunk in CHUNKS if connectivity == 1 else CHUNKS[1:]:
                same(run(f"fill_holes(a, connectivity = {connectivity})", *chunk, a=mask),
                     ndimage.binary_fill_holes(mask, structure), f"connectivity {connectivity} {chunk}")


@test
def remove_small_equals_scikit_image():
    for mask in images():
        for connectivity, size in ((1, 5), (mask.ndim, 64)):
            for chunk in CHUNKS:
                same(run(f"remove_small(a, {size}, connectivity = {connectivity})", *chunk, a=mask),
                     remove_small_objects(mask, size, connectivity), f"{size} {connectivity} {chunk}")
        same(run("remove_small(a)", a=mask), remove_small_objects(mask, 64), "default")


@test
def remove_small_of_labels_of_every_type_equals_scikit_image():
    values = np.random.default_rng(3).integers(0, 60, (30, 40))
    for dtype in "uint8 int8 uint16 int16 uint32 int32 uint64 int64".split():
        peer = remove_small_objects(values.astype(np.int64), 21).astype(dtype)
        for chunk in CHUNKS:
            same(run("remove_small(a, 21)", *chunk, a=values.astype(dtype)), peer, f"{dtype} {chunk}")


@test
def clear_border_equals_scikit_image():
    for mask in images():
        for size in (0, 2):
            peer = skimage.segmentation.clear_border(mask, size)
            for chunk in CHUNKS[1:]:
                same(run(f"clear_border(a, {size})", *chunk, a=mask), peer, f"{size} {chunk}")
        labels, _ = ndimage.label(mask, np.ones((3,) * mask.ndim))
        labels = labels.astype(np.int32)
        same(run("clear_border(a, 1)", *CHUNKS[1], a=labels), skimage.segmentation.clear_border(labels, 1), "labels")


@test
def tiny_constant_and_hollow_images():
    for shape in ((1, 1), (1, 9), (3, 3), (1, 1, 1), (3, 3, 3)):
        for mask in (np.zeros(shape, bool), np.ones(shape, bool)):
            same(run("fill_holes(a)", a=mask), ndimage.binary_fill_holes(mask), f"fill_holes {shape}")
            same(run("remove_small(a, 3)", a=mask), remove_small_objects(mask, 3), f"remove_small {shape}")
            same(run("clear_border(a)", a=mask), np.zeros(shape, bool), f"clear_border {shape}")
        hollow = np.ones(shape, bool)
        hollow[tuple(n // 2 for n in shape)] = False
        same(run("fill_holes(a)", a=hollow), ndimage.binary_fill_holes(hollow), f"hollow {shape}")


@test
def bad_input_is_named():
    image = np.zeros((5, 6), np.float32)
    for call, words in (("fill_holes(a)", "float32"), ("remove_small(a > 0, 0 - 1)", "min_size"),
                        ("fill_holes(a > 0, connectivity = 3)", "connectivity = 3"), ("clear_border(a)", "float32"),
                        ("clear_border(a > 0, buffer_size = 5)", "buffer_size = 5"),
                        ("fill_holes(label(a > 0))", "int32")):
        try:
            run(call, a=image)
        except Difference as reason:
            assert words in str(reason), f"{call}: {reason}"
        else:
            raise Difference(f"{call} is accepted")


test.main()
