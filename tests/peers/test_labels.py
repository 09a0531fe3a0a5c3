#!/usr/bin/python3
"""relabel, boundaries and expand_labels against scikit-image, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.segmentation as segmentation
    from skimage.filters import threshold_otsu
except ImportError as missing:
    print(f"skip labels: {missing}")
    sys.exit(0)

from pipelines import Difference, run, same, test

CHUNKS = ((), ("--chunk", "17"))
TYPES = "uint8 int8 uint16 int16 uint32 int32 uint64 int64".split()


def images():
    coins = skimage.data.coins()
    yield ndimage.label(coins > threshold_otsu(coins))[0].astype(np.int32)
    noise = ndimage.gaussian_filter(np.random.default_rng(1).random((20, 31, 43)), 1.5)
    yield np.digitize(noise, np.quantile(noise, [0.3, 0.5, 0.8])).astype(np.int32)


@test
def relabel_equals_scikit_image():
    values = np.random.default_rng(2).choice([0, 3, 4, 9, 77, 120], (30, 40))
    for dtype in TYPES:
        for offset in (1, 7):
            peer, _, _ = segmentation.relabel_sequential(values, offset)
            for chunk in CHUNKS:
                ours = run(f"relabel(a, offset = {offset})", *chunk, a=values.astype(dtype))
                same(ours, peer.astype(dtype), f"{dtype} {chunk}")
    signs = np.array([[5, -3, 0], [-3, 100, 5]], np.int16)
    same(run("relabel(a)", a=signs), np.array([[2, 1, 0], [1, 3, 2]], np.int16), "the order of the values")


@test
def boundaries_equal_scikit_image():
    for labels in images():
        for mode in ("thick", "inner", "outer"):
            for connectivity in range(1, labels.ndim + 1):
                peer = segmentation.find_boundaries(labels, connectivity, mode)
                for chunk in CHUNKS:
                    same(run(f'boundaries(a, connectivity = {connectivity}, mode = "{mode}")', *chunk, a=labels), peer,
                         f"{mode} {connectivity} {chunk}")
    values = np.random.default_rng(3).integers(0, 3, (25, 30)).astype(np.uint8)  # scikit-image errs at borders of int64
    for dtype in TYPES:
        same(run('boundaries(a, mode = "outer")', a=values.astype(dtype)),
             segmentation.find_boundaries(values, mode="outer"), dtype)
    same(run("boundaries(a)", a=values > 1), segmentation.find_boundaries(values > 1), "bool")
    same(run('boundaries(a, mode = "inner", background = 2)', a=values),
         segmentation.find_boundaries(values, mode="inner", background=2), "background")


def expansion(labels, distance):
    """The peer's result where it is defined: where only one label is nearest."""
    peer = segmentation.expand_labels(labels, distance)
    near = [ndimage.distance_transform_edt(labels != label) for label in np.unique(labels[labels > 0])]
    clear = np.sum(np.array(near) == np.min(near, axis=0), axis=0) == 1 if near else np.ones(labels.shape, bool)
    return peer, clear


@test
def expanded_labels_equal_scikit_image_where_one_label_is_nearest():
    random = np.random.default_rng(4)
    for shape in ((60, 70), (15, 20, 25)):
        labels = np.where(random.random(shape) < 0.01, random.integers(1, 9, shape), 0).astype(np.int32)
        for distance in (0, 1, 2.5, 6, 40):
            peer, clear = expansion(labels, distance)
            ours = [run(f"expand_labels(a, {distance})", *chunk, a=labels) for chunk in CHUNKS]
            same(ours[0], ours[1], f"chunks, {distance}")
            assert ((ours[0] > 0) == (peer > 0)).all(), f"another extent at {distance}"
            same(np.where(clear, ours[0], 0), np.where(clear, peer, 0), f"{shape} {distance}")
    for dtype in TYPES:
        peer, clear = expansion(labels, 3)
        same(np.where(clear, run("expand_labels(a, 3)", a=labels.astype(dtype)), 0).astype(dtype),
             np.where(clear, peer, 0).astype(dtype), dtype)


@test
def of_equally_near_labels_the_first_in_raster_order_wins():
    same(run("expand_labels(a, 5)", a=np.array([[9, 0, 0, 0, 3]], np.int32)), np.array([[9, 9, 9, 3, 3]], np.int32))
    same(run("expand_labels(a, 5)", a=np.array([[9], [0], [3]], np.int32)), np.array([[9], [9], [3]], np.int32))


@test
def tiny_and_constant_images():
    for shape in ((1, 1), (1, 5), (2, 2, 2)):
        for value in (0, 4):
            flat = np.full(shape, value, np.int32)
            assert not run("boundaries(a)", a=flat).any()
            same(run("expand_labels(a, 9)", a=flat), flat)
            same(run("relabel(a)", a=flat), np.minimum(flat, 1))


@test
def bad_input_is_named():
    image = np.zeros((5, 6), np.float32)
    many = np.arange(300).reshape(10, 30).astype(np.uint16)
    for call, words in (("relabel(a)", "float32"), ("boundaries(a)", "float32"), ("expand_labels(a)", "float32"),
                        ("expand_labels(label(a > 0), 0 - 1)", "distance"),
                        ("boundaries(a > 0, connectivity = 3)", "connectivity"),
                        ('boundaries(a > 0, mode = "subpixel")', "thick"), ("relabel(b, offset = 65500)", "offset = 65500")):
        try:
            run(call, a=image, b=many)
        except Difference as reason:
            assert words in str(reason), f"{call}: {reason}"
        else:
            raise Difference(f"{call} is accepted")


test.main()
