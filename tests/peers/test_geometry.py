#!/usr/bin/python3
"""zoom, rotate, shift, affine and spline_filter against scipy.ndimage."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
except ImportError as missing:
    print(f"skip geometry: {missing}")
    sys.exit(0)

import warnings

from pipelines import as_dtypes, near, refused, run, run_all, same, test, tolerance, wide

warnings.filterwarnings("ignore")
MODES = "reflect mirror nearest wrap constant grid-wrap grid-mirror grid-constant".split()
TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64"
RANDOM = np.random.default_rng(5)
PLANE = ndimage.gaussian_filter(RANDOM.random((41, 53)), 1) * 100
VOLUME = ndimage.gaussian_filter(RANDOM.random((17, 23, 31)), 1) * 100
TURN = np.array([[0.9, -0.3, 0.1], [0.25, 1.1, -0.2], [-0.1, 0.3, 0.8]])
CHUNK = ("--chunk", "13")


def numbers(values):
    return "[" + ", ".join(repr(float(v)) for v in np.ravel(values)) + "]"


def every(image, expression, peer, options=CHUNK):
    """All orders and modes, on chunks: exactly for order 0, up to rounding of the computing type else."""
    jobs = [(order, mode) for order in (0, 1, 3) for mode in MODES]
    texts = [expression(f'order = {order}, mode = "{mode}", cval = 7') for order, mode in jobs]
    for (order, mode), text, ours in zip(jobs, texts, run_all(texts, *options, a=image)):
        theirs = peer(image.astype(image.dtype if order == 0 else float), order=order, mode=mode, cval=7)
        if order == 0:
            same(ours, theirs, text)
        else:
            assert ours.dtype == wide(image), f"{text}: {ours.dtype}"
            # beyond the 12 voxels that scipy puts around, it leaves the border's value by some 1e-8 in mode nearest
            near(ours, theirs, text, max(tolerance(image), 1e-7 * (order == 3 and mode == "nearest")), image)


@test
def affine_equals_scipy_in_every_order_and_mode():
    offset = [3.2, -5.1, 2.7]
    for image in (PLANE, PLANE.astype(np.float32), VOLUME, VOLUME.astype(np.float32), VOLUME[0, 0]):
        n = image.ndim
        every(image, lambda rest: f"affine(a, {numbers(TURN[:n, :n])}, {numbers(offset[:n])}, {rest})",
              lambda a, **named: ndimage.affine_transform(a, TURN[:n, :n], offset[:n], **named))


@test
def affine_equals_scipy_with_a_diagonal_and_far_outside():
    for scale, offset in (([0.6, -0.37, 1.7], [-4.3, 20, 1.5]), ([1, 1, 1], [0, 0, 0.25]), ([1, 0.5, 1], [-2, 1, 3]),
                          ([1, 1, 6.5], [30.2, -60.1, 90.7]), ([2, 2, 2], [500, 0, 0])):
        for image in (VOLUME, VOLUME.astype(np.float32)):
            every(image, lambda rest: f"affine(a, {numbers(scale)}, {numbers(offset)}, [19, 20, 37], {rest})",
                  lambda a, **named: ndimage.affine_transform(a, np.diag(scale), offset, output_shape=(19, 20, 37), **named))


@test
def long_and_many_rows_equal_scipy():
    """More than a tile of 512 x 8 in all directions, in one chunk and in several."""
    flat, deep = [[0.7, 0.02], [-0.2, 0.05]], [[0.8, 0.1, 0.004], [0.2, 0.7, -0.006], [-0.1, 0.2, 0.04]]
    for image, matrix, shape in ((PLANE, flat, (61, 1100)), (VOLUME.astype(np.float32), deep, (11, 21, 700))):
        offset = [3] * image.ndim
        for order in (1, 3):
            text = f'affine(a, {numbers(matrix)}, {offset}, {list(shape)}, order = {order}, mode = "grid-constant")'
            whole, parts = run(text, a=image), run(text, "--chunk", "37", a=image)
            same(whole, parts, text)
            theirs = ndimage.affine_transform(image.astype(float), matrix, offset, shape, order=order, mode="grid-constant")
            near(whole, theirs, text, tolerance(image), image)


@test
def zoom_equals_scipy_in_every_order_and_mode():
    for factors in ([1.7, 0.6, 2.3], [1, 1, 0.45], [3, 1, 1], [0.3, 5, 1]):
        for grid in (False, True):
            every(VOLUME.astype(np.float32), lambda rest: f"zoom(a, {numbers(factors)}, {rest}, grid_mode = {str(grid).lower()})",
                  lambda a, **named: ndimage.zoom(a, factors, grid_mode=grid, **named))
    every(PLANE, lambda rest: f"zoom(a, 0.07, {rest})", lambda a, **named: ndimage.zoom(a, 0.07, **named))


@test
def rotate_equals_scipy_in_every_order_and_mode():
    for angle in (30, -77.5, 90, 180, 405):
        every(PLANE, lambda rest: f"rotate(a, {angle}, {rest})", lambda a, **named: ndimage.rotate(a, angle, **named))
    for axes, pair in (("y x", (1, 2)), ("x z", (0, 2)), ("z y", (0, 1))):
        every(VOLUME, lambda rest: f'rotate(a, 25, axes = "{axes}", reshape = false, {rest})',
              lambda a, **named: ndimage.rotate(a, 25, axes=pair, reshape=False, **named))


@test
def shift_equals_scipy_in_every_order_and_mode():
    for by in ([0.5, -2.25, 7.9], [3, 0, -2], [0, 0, 0.1], [100, 0, 0]):
        every(VOLUME.astype(np.float32), lambda rest: f"shift(a, {numbers(by)}, {rest})",
              lambda a, **named: ndimage.shift(a, by, **named))


@test
def every_element_type_is_interpolated():
    for image in as_dtypes(VOLUME, TYPES):
        for order in (0, 1, 3):
            text = f'affine(a, {numbers(TURN)}, [1, 2, 3], order = {order}, mode = "mirror")'
            theirs = ndimage.affine_transform(image if order == 0 else image.astype(float), TURN, [1, 2, 3], order=order,
                                              mode="mirror")
            ours = run(text, *CHUNK, a=image)
            if order == 0:
                same(ours, theirs, f"{text} {image.dtype}")
            else:
                assert ours.dtype == wide(image)
                near(ours, theirs, f"{text} {image.dtype}", tolerance(image), image)
    for dtype in (np.complex64, np.complex128):
        image = (VOLUME + 1j * VOLUME[::-1]).astype(dtype)
        for text, peer in (("zoom(a, 1.5, order = 1)", lambda a: ndimage.zoom(a, 1.5, order=1)),
                           ('rotate(a, 20, order = 3, mode = "mirror")', lambda a: ndimage.rotate(a, 20, (1, 2), mode="mirror"))):
            ours, theirs = run(text, *CHUNK, a=image), peer(image.astype(np.complex128))
            assert ours.dtype == dtype
            near(ours.real, theirs.real, text, 2e-6 if dtype == np.complex64 else 1e-12, image.real)
            near(ours.imag, theirs.imag, text, 2e-6 if dtype == np.complex64 else 1e-12, image.imag)


@test
def channels_are_interpolated_one_by_one():
    colour = (RANDOM.random((30, 40, 3)) * 255).astype(np.uint8)
    text = 'rotate(name_axes(a, "y x c"), 33, order = 1, mode = "nearest")'
    theirs = np.stack([ndimage.rotate(colour[..., c].astype(float), 33, order=1, mode="nearest") for c in range(3)], -1)
    near(run(text, *CHUNK, a=colour), theirs, text, 2e-6, colour)
    text = 'zoom(name_axes(a, "t y x"), [1.5, 0.7], order = 3, mode = "reflect")'
    theirs = np.stack([ndimage.zoom(plane, [1.5, 0.7], mode="reflect") for plane in VOLUME])
    near(run(text, *CHUNK, a=VOLUME), theirs, text, 1e-12, VOLUME)


TURN2 = np.array([[0.9, 0.2], [-0.3, 1.1]])


def reflected_spline(image):
    """Coefficients for mode reflect by solving the equations: scipy 1.10 is wrong by 0.268^(2 n) on n voxels."""
    for axis, n in enumerate(image.shape):
        matrix = np.zeros((n, n))
        for i in range(n):
            for j, weight in ((i - 1, 1), (i, 4), (i + 1, 1)):
                matrix[i, -1 - j if j < 0 else 2 * n - 1 - j if j >= n else j] += weight / 6
        image = np.moveaxis(np.linalg.solve(matrix, np.moveaxis(image, axis, 0).reshape(n, -1)).reshape(
            np.moveaxis(image, axis, 0).shape), 0, axis)
    return image


@test
def degenerate_sizes_are_interpolated():
    def peer(a, order, mode, cval):
        if order == 3 and mode in ("reflect", "grid-mirror"):
            return ndimage.affine_transform(reflected_spline(a), TURN2, [0.4, -0.3], (5, 6), None, 3, mode, cval, False)
        return ndimage.affine_transform(a, TURN2, [0.4, -0.3], (5, 6), None, order, mode, cval)
    for shape in ((1, 1), (1, 9), (2, 1), (2, 2), (3, 2)):
        every(RANDOM.random(shape), lambda rest: f"affine(a, [0.9, 0.2, -0.3, 1.1], [0.4, -0.3], [5, 6], {rest})", peer)


@test
def nan_spreads_as_in_scipy_for_order_1():
    image = PLANE.copy()
    image[20, 30] = np.nan
    image[5, 5] = np.inf
    for text, peer in (("rotate(a, 30, order = 1)", ndimage.rotate(image, 30, order=1)),
                       ("affine(a, [0.9, 0.2, -0.3, 1.1], order = 1)", ndimage.affine_transform(image, TURN2, order=1))):
        ours = run(text, *CHUNK, a=image)
        assert np.array_equal(np.isnan(ours), np.isnan(peer)), text
        assert np.array_equal(np.isinf(ours), np.isinf(peer)), text
        good = np.isfinite(peer)
        near(ours[good], peer[good], text, 1e-12)


@test
def spline_filter_equals_scipy_and_its_tail_is_below_half_an_ulp():
    for mode in MODES:
        for image in (VOLUME, VOLUME.astype(np.float32)):
            near(run(f'spline_filter(a, mode = "{mode}")', *CHUNK, a=image),
                 ndimage.spline_filter(image.astype(float), 3, mode=mode), mode, tolerance(image), image)
    near(run('spline_filter(a, axes = "y")', a=VOLUME), ndimage.spline_filter1d(VOLUME, 3, axis=1), "y", 1e-12)
    for dtype, reach in ((np.float32, 14), (np.float64, 29)):
        point = np.zeros((1, 201), dtype)
        point[0, 100] = 1
        ours = run("spline_filter(a)", a=point)[0]
        exact = np.sqrt(np.longdouble(3)) * (np.sqrt(np.longdouble(3)) - 2) ** np.abs(np.arange(-100, 101))
        assert np.flatnonzero(ours)[0] == 100 - reach and np.flatnonzero(ours)[-1] == 100 + reach, np.flatnonzero(ours)
        half = np.finfo(dtype).eps / 2 * ours[100]  # half an ulp of the largest weight
        assert np.abs(ours - exact).max() <= half, np.abs(ours - exact).max() / half
        rest = 2 * np.abs(exact[100 + reach + 1:]).sum()  # all that was cut off, on both sides
        assert rest <= half, rest / half


@test
def a_prefiltered_image_gives_the_same():
    near(run('shift(spline_filter(a, mode = "mirror"), [0, 1.5, 2], mode = "mirror", prefilter = false)', a=VOLUME),
         ndimage.shift(ndimage.spline_filter(VOLUME, mode="mirror"), [0, 1.5, 2], mode="mirror", prefilter=False), 1e-5)
    near(run('zoom(spline_filter(a), 1.5, mode = "mirror", prefilter = false)', a=VOLUME),
         ndimage.zoom(VOLUME, 1.5, mode="mirror"))


@test
def mistakes_are_named_before_anything_runs():
    refused("affine(a, [1, 2, 2, 4])", "singular", a=PLANE)
    refused("affine(a, [1, 2, 3])", "matrix has 3 numbers", a=PLANE)
    refused("affine(a, [1, 0, 0, 1], [1, 2, 3])", "offset has 3 numbers", a=PLANE)
    refused("affine(a, [1, 0, 0, 1], order = 2)", "order = 2: must be 0, 1 or 3", a=PLANE)
    refused("zoom(a, 0.001)", "zoom gives 0 voxels along y", a=PLANE)
    refused("zoom(a, -1)", "zoom", a=PLANE)
    refused('rotate(a, 10, axes = "z x")', "no axis z; it has y, x", a=PLANE)
    refused('rotate(a, 10, axes = "x")', "two spatial axes", a=PLANE)
    refused("shift(a, [1, 2, 3])", "shift has 3 numbers", a=PLANE)
    refused('pad(a, 1, axes = "q")', "no axis q", a=PLANE)


test.main()
