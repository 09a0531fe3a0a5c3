#!/usr/bin/python3
"""Grey morphology, minimum and maximum filters against scipy.ndimage and scikit-image: every voxel equal."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.morphology as morphology
except ImportError as missing:
    print(f"skip extrema: {missing}")
    sys.exit(0)

from pipelines import MODES, as_dtypes, refused, run, same, test

TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64"
CAMERA = skimage.data.camera()[100:230, 120:290]  # 130 x 170 uint8
VOLUME = ndimage.gaussian_filter(np.random.default_rng(3).random((19, 33, 47)), 1) * 1000
CHUNK = ("--chunk", "17")


def footprints(ndim):
    """Names and the peer's arrays."""
    yield "cross()", ndimage.generate_binary_structure(ndim, 1)
    yield "box(5)", np.ones((5,) * ndim, bool)
    yield "ball(3)", morphology.ball(3).astype(bool) if ndim == 3 else morphology.disk(3).astype(bool)
    if ndim == 3:
        yield "box([1, 3, 7])", np.ones((1, 3, 7), bool)
        yield "disk(6)", morphology.disk(6).astype(bool)[None]


@test
def minimum_and_maximum_equal_scipy_in_every_type():
    for image in (*as_dtypes(CAMERA, TYPES), *as_dtypes(VOLUME, TYPES)):
        for size in (3, 8):
            same(run(f"minimum_filter(a, {size})", *CHUNK, a=image), ndimage.minimum_filter(image, size), f"{image.dtype} {size}")
            same(run(f"maximum_filter(a, {size})", *CHUNK, a=image), ndimage.maximum_filter(image, size), f"{image.dtype} {size}")


@test
def minimum_and_maximum_equal_scipy_in_every_mode():
    for image in (CAMERA, VOLUME, VOLUME[:3, :2, :4], VOLUME[:1, :1, :1]):
        for mode in MODES:
            for size in (2, 9, 30):
                peer = ndimage.minimum_filter(image, size, mode=mode, cval=9)
                same(run(f'minimum_filter(a, {size}, mode = "{mode}", cval = 9)', a=image), peer, f"{mode} {size} {image.shape}")
    for mode in MODES:
        peer = ndimage.maximum_filter(VOLUME, [1, 4, 11], mode=mode, cval=900)
        same(run(f'maximum_filter(a, [1, 4, 11], mode = "{mode}", cval = 900)', *CHUNK, a=VOLUME), peer, mode)


@test
def grey_erosion_and_dilation_equal_scipy_for_every_footprint_and_type():
    for whole in (CAMERA, VOLUME):
        for name, array in footprints(whole.ndim):
            for image in as_dtypes(whole, TYPES[5:]):
                same(run(f"erode(a, {name})", *CHUNK, a=image), ndimage.grey_erosion(image, footprint=array),
                     f"{name} {image.dtype}")
                same(run(f"dilate(a, {name})", a=image), ndimage.grey_dilation(image, footprint=array), f"{name} {image.dtype}")


@test
def grey_operators_equal_scikit_image():
    for image, name, array in ((CAMERA, "disk(4)", morphology.disk(4)), (VOLUME.astype(np.uint16), "ball(2)", morphology.ball(2)),
                               (VOLUME, "box(3)", np.ones((3, 3, 3)))):
        for ours, peer in (("erode", "erosion"), ("dilate", "dilation"), ("open", "opening"), ("close", "closing"),
                           ("tophat", "white_tophat"), ("bottomhat", "black_tophat")):
            same(run(f"{ours}(a, {name})", *CHUNK, a=image), getattr(morphology, peer)(image, array), f"{ours} {name}")
        same(run(f"gradient(a, {name})", *CHUNK, a=image), ndimage.morphological_gradient(image, footprint=array),
             f"gradient {name}")


@test
def binary_top_hats_equal_scikit_image():
    mask = CAMERA > 100
    same(run("tophat(a, disk(3))", a=mask), morphology.white_tophat(mask, morphology.disk(3)))
    same(run("bottomhat(a, disk(3))", a=mask), morphology.black_tophat(mask, morphology.disk(3)))


@test
def images_smaller_than_the_footprint_and_constant_ones_keep_the_rules():
    for shape in ((1, 1), (2, 3), (1, 9)):
        image = np.random.default_rng(1).integers(0, 99, shape).astype(np.int16)
        for name, array in footprints(2):
            same(run(f"erode(a, {name})", a=image), ndimage.grey_erosion(image, footprint=array), f"{name} {shape}")
    flat = np.full((20, 30), 7, np.float32)
    same(run("open(a, ball(5))", a=flat), flat)
    assert not run("tophat(a, ball(5))", a=flat).any(), "of a constant image"


@test
def nan_is_greater_than_all_numbers():
    image = np.random.default_rng(1).random((20, 30)).astype(np.float32)
    image[5, 6] = np.nan
    image[12, 20] = -np.inf
    image[15, 3] = np.inf
    low, high = run("erode(a, box(3))", *CHUNK, a=image), run("dilate(a, box(3))", *CHUNK, a=image)
    same(low, ndimage.grey_erosion(np.where(np.isnan(image), np.float32(9), image), size=3), "erode")
    assert np.isnan(high[4:7, 5:8]).all() and np.isnan(high).sum() == 9, "dilate spreads nan"
    assert np.isposinf(high[14:17, 2:5]).all() and np.isneginf(low[11:14, 19:22]).all(), "infinities are numbers"


@test
def bad_parameters_are_named():
    refused("minimum_filter(a, 0)", "size", a=CAMERA)
    refused("maximum_filter(a, 2.5)", "size = 2.5", a=CAMERA)
    refused("maximum_filter(a, [1, 2, 3])", "size", a=CAMERA)
    refused("erode(a, box(4))", "size = 4", a=CAMERA)
    refused("gradient(a, 3)", "footprint", a=CAMERA)


test.main()
