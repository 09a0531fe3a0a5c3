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

from pipelines import MODES, as_dtypes, near, refused, run, same, test, tolerance, wide

TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64"
CHUNKS = ((), ("--chunk", "19"))
CAMERA = skimage.data.camera()[100:260, 120:330]  # 160 x 210 uint8
VOLUME = ndimage.gaussian_filter(np.random.default_rng(3).random((23, 40, 51)), 1) * 1000


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
def even_boxes_around_chunks_of_one_column_see_what_is_mirrored():
    image = CAMERA[:20, :7]
    for mode in MODES:
        for size in (2, 4, 6, 16):
            near(run(f'uniform(a, {size}, mode = "{mode}", cval = 9)', "--chunk", "20x1", a=image),
                 ndimage.uniform_filter(image.astype(float), size, mode=mode, cval=9), f"{size} {mode}", 2e-6)


@test
def extrema_of_boxes_much_wider_than_the_image_equal_those_of_what_lies_around_it():
    names = {"reflect": "symmetric", "nearest": "edge", "mirror": "reflect"}
    for image in (CAMERA[:40, :3], CAMERA[:1, :9], VOLUME[:2, :3, :4]):
        for mode in MODES:
            around = np.pad(image, 31, mode=names.get(mode, mode), **({"constant_values": 50} if mode == "constant" else {}))
            inside = tuple(slice(31, 31 + n) for n in image.shape)
            for size in (8, 13, 61):
                for name in ("minimum_filter", "maximum_filter"):
                    ours = run(f'{name}(a, {size}, mode = "{mode}", cval = 50)', "--chunk", "5", a=image)
                    same(ours, getattr(ndimage, name)(around, size)[inside], f"{name} {size} {mode} {image.shape}")


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


@test
def rank_and_percentile_equal_scipy_bit_for_bit():
    for image in (*as_dtypes(CAMERA, TYPES), *as_dtypes(VOLUME, TYPES)):
        for place in (0, 2, -1):
            same(run(f"rank(a, {place}, size = 3)", a=image), ndimage.rank_filter(image, place, 3), f"{image.dtype} {place}")
        for share in (0, 20, 77.5, 100, -5):
            same(run(f"percentile(a, {share}, size = 4)", a=image), ndimage.percentile_filter(image, share, 4),
                 f"{image.dtype} {share}")
    for mode in MODES:
        for chunk in CHUNKS:
            same(run(f'percentile(a, 30, size = 9, mode = "{mode}", cval = 9)', *chunk, a=CAMERA),
                 ndimage.percentile_filter(CAMERA, 30, 9, mode=mode, cval=9), mode)


@test
def rank_filters_refuse_what_lies_outside_the_box():
    refused("rank(a, 9, size = 3)", "rank = 9", a=CAMERA)
    refused("rank(a, -10, size = 3)", "rank = -10", a=CAMERA)
    refused("percentile(a, 101, size = 3)", "percentile", a=CAMERA)
    refused("percentile(a, 10, size = 2.5)", "size = 2.5", a=CAMERA)


test.main()
