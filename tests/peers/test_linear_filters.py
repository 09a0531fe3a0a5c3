#!/usr/bin/python3
"""Derivatives and differences (gaussian with order, Laplacians, gradients, sobel and the like) against scipy and scikit-image."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.filters
except ImportError as missing:
    print(f"skip linear_filters: {missing}")
    sys.exit(0)

from pipelines import MODES, as_dtypes, near, refused, run, test, tolerance, wide

CAMERA = skimage.data.camera()[100:260, 120:330]  # 160 x 210 uint8
VOLUME = ndimage.gaussian_filter(np.random.default_rng(3).random((23, 40, 51)), 1) * 1000
TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64"
CHUNK = ("--chunk", "19")


def compare(expression, peer, images=(CAMERA, VOLUME), **named):
    """In every type on the whole image, and every mode on a lattice of small chunks. The tolerance is relative to the image."""
    for image in images:
        for typed in as_dtypes(image, TYPES):
            ours = run(expression("reflect"), a=typed, **named)
            assert ours.dtype == wide(typed), f"{ours.dtype} of {typed.dtype}"
            near(ours, peer(typed.astype(float), "reflect"), f"{expression('reflect')} {typed.dtype}",
                 2 * tolerance(typed), typed)
        for mode in MODES:
            near(run(expression(mode), *CHUNK, a=image, **named), peer(image.astype(float), mode), f"{expression(mode)}",
                 2 * tolerance(image), image)


@test
def gaussian_derivatives_equal_scipy():
    for order in (1, 2, 3):
        compare(lambda mode: f'gaussian(a, 1.6, order = {order}, mode = "{mode}", cval = 9)',
                lambda a, mode: ndimage.gaussian_filter(a, 1.6, order=order, mode=mode, cval=9), images=[CAMERA])
    compare(lambda mode: f'gaussian(a, [1, 2, 0.7], order = [0, 1, 2], mode = "{mode}", cval = 9, truncate = 3)',
            lambda a, mode: ndimage.gaussian_filter(a, [1, 2, 0.7], order=[0, 1, 2], mode=mode, cval=9, truncate=3), [VOLUME])
    near(run("gaussian(a, [0, 2], order = 1)", a=CAMERA), ndimage.gaussian_filter(CAMERA.astype(float), [0, 2], order=1),
         relative=2e-6)


@test
def gaussian_laplace_equals_scipy():
    compare(lambda mode: f'gaussian_laplace(a, 1.5, mode = "{mode}", cval = 9)',
            lambda a, mode: ndimage.gaussian_laplace(a, 1.5, mode=mode, cval=9))


@test
def gaussian_gradient_magnitude_equals_scipy():
    compare(lambda mode: f'gaussian_gradient_magnitude(a, 1.5, mode = "{mode}", cval = 9)',
            lambda a, mode: ndimage.gaussian_gradient_magnitude(a, 1.5, mode=mode, cval=9))


@test
def difference_of_gaussians_equals_skimage():
    compare(lambda mode: f'difference_of_gaussians(a, 1, 2.5, mode = "{mode}", cval = 9)',
            lambda a, mode: skimage.filters.difference_of_gaussians(a, 1, 2.5, mode=mode, cval=9))
    near(run("difference_of_gaussians(a, 2)", a=VOLUME), skimage.filters.difference_of_gaussians(VOLUME, 2), relative=1e-12)


@test
def laplace_equals_scipy():
    compare(lambda mode: f'laplace(a, mode = "{mode}", cval = 9)', lambda a, mode: ndimage.laplace(a, mode=mode, cval=9))


def surrounded(peer, image, mode, constant):
    """The peer's result; for mode constant on an image that has the constant around it."""
    if mode != "constant":
        return peer(image, mode=mode)
    return peer(np.pad(image, 2, constant_values=constant))[(slice(2, -2),) * image.ndim]


@test
def sobel_and_prewitt_equal_scipy_along_every_axis():
    for name in ("sobel", "prewitt"):
        peer = getattr(ndimage, name)
        compare(lambda mode: f'{name}(a, mode = "{mode}", cval = 9)', lambda a, mode: surrounded(peer, a, mode, 9))
        for axis in (0, 1, -3):
            near(run(f"{name}(a, {axis})", a=VOLUME), peer(VOLUME, axis), f"{name} {axis}", 1e-12)


@test
def scharr_equals_skimage():
    compare(lambda mode: f'scharr(a, mode = "{mode}")', lambda a, mode: skimage.filters.scharr(a, mode=mode))
    near(run("scharr(a, 1)", a=VOLUME), skimage.filters.scharr(VOLUME, axis=1), "scharr of axis 1", 1e-12)


@test
def unsharp_equals_skimage_with_preserve_range():
    for image in (CAMERA.astype(float), VOLUME):
        near(run("unsharp(a, 2, 1.5)", *CHUNK, a=image),
             skimage.filters.unsharp_mask(image, 2, 1.5, preserve_range=True), "unsharp", 1e-12)


@test
def convolve_equals_scipy():
    rng = np.random.default_rng(8)
    for image, shape in ((CAMERA, (3, 3)), (CAMERA, (2, 5)), (CAMERA, (7, 1)), (VOLUME, (3, 3, 3)), (VOLUME, (2, 3, 4)),
                         (VOLUME[:2, :3, :4], (5, 3, 4))):
        weights = np.round(rng.normal(size=shape), 2)
        text = ", ".join(map(str, weights.ravel()))
        compare(lambda mode: f'convolve(a, [{text}], shape = {list(shape)}, mode = "{mode}", cval = 9) / {np.abs(weights).sum()}',
                lambda a, mode: ndimage.convolve(a, weights, mode=mode, cval=9) / np.abs(weights).sum(), [image])
    big = rng.normal(size=(9, 10)).astype(np.float32)
    near(run("convolve(a, w)", *CHUNK, a=CAMERA / 255, w=big), ndimage.convolve(CAMERA / 255, big.astype(float)), "9 x 10", 1e-12)
    near(run("convolve(a, gaussian(w, 1))", a=CAMERA / 255, w=big.astype(float)),
         ndimage.convolve(CAMERA / 255, ndimage.gaussian_filter(big.astype(float), 1)), "weights that are computed", 1e-12)


@test
def convolve_ignores_nan_under_weights_of_zero():
    image = np.ones((5, 6))
    image[2, 2] = np.nan
    ours = run("convolve(a, [1, 1, 1, 1, 0, 1, 1, 1, 1])", a=image)
    same_as = ndimage.convolve(image, np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]]))
    assert np.array_equal(ours, same_as, equal_nan=True) and ours[2, 2] == 8, "nan under a weight of 0"


@test
def variance_equals_numpy():
    def peer(image, size, mode, cval=9):
        size = (size,) * image.ndim if np.isscalar(size) else size
        return ndimage.generic_filter(image.astype(float), np.var, size, mode=mode, cval=cval)

    for image in (CAMERA[:40, :50], VOLUME[:9, :12, :13], VOLUME[:2, :3, :2]):
        for size in (1, 3, 4, 7):
            for mode in MODES:
                near(run(f'variance(a, {size}, mode = "{mode}", cval = 9)', *CHUNK, a=image), peer(image, size, mode),
                     f"{size} {mode}", 2 * tolerance(image))
    for image in as_dtypes(CAMERA[:40, :50], TYPES):
        ours = run("variance(a, [3, 5])", a=image)
        assert ours.dtype == wide(image), f"{ours.dtype} of {image.dtype}"
        near(ours, peer(image, (3, 5), "reflect"), str(image.dtype), 2 * tolerance(image))


@test
def variance_of_a_small_spread_around_a_large_value_keeps_its_digits():
    small = np.round(np.random.default_rng(2).random((20, 30)) * 2**20) / 2**20
    near(run("variance(a, 5)", a=small + 2**30), run("variance(a, 5)", a=small), "1e9 added", 1e-7)
    assert not run("variance(a, 7)", a=np.full((9, 11), 0.1)).any(), "of a constant image"


@test
def matmul_equals_numpy():
    rng = np.random.default_rng(4)
    for dtype in TYPES.split():
        a, b = ((rng.random(shape) * 50).astype(dtype) for shape in ((37, 70), (70, 83)))
        expected = a.astype(float) @ b.astype(float)
        ours = run("matmul(a, b)", *CHUNK, a=a, b=b)
        assert ours.dtype == wide(a), f"{ours.dtype} of {dtype}"
        near(ours, expected, dtype, tolerance(a))
    stack, matrix, one = rng.random((5, 6, 7)), rng.random((7, 3)), rng.random((1, 1))
    near(run("matmul(a, b)", *CHUNK, a=stack, b=matrix), stack @ matrix, "a stack and a matrix")
    near(run("matmul(a, b)", a=stack, b=stack.transpose(0, 2, 1).copy()), stack @ stack.transpose(0, 2, 1), "two stacks")
    near(run("matmul(a, b)", a=one, b=one), one @ one, "one voxel")


@test
def images_smaller_than_the_kernel_and_constant_ones_are_as_in_scipy():
    for shape in ((1, 1), (2, 3), (1, 7), (3, 1, 2)):
        image = np.random.default_rng(1).random(shape)
        for mode in MODES:
            for name, peer in (("gaussian_laplace(a, 3", lambda m: ndimage.gaussian_laplace(image, 3, mode=m)),
                               ("gaussian(a, 2, order = 1", lambda m: ndimage.gaussian_filter(image, 2, order=1, mode=m)),
                               ("laplace(a", lambda m: ndimage.laplace(image, mode=m)),
                               ("sobel(a", lambda m: ndimage.sobel(image, mode=m))):
                near(run(f'{name}, mode = "{mode}")', a=image), peer(mode), f"{name} {mode} {shape}", 1e-12)
    flat = np.full((20, 30), 7.0)
    for name in ("laplace(a)", "sobel(a)", "prewitt(a)", "scharr(a)"):
        assert not run(name, a=flat).any(), f"{name} of a constant image"
    near(run("gaussian_gradient_magnitude(a, 2)", a=flat), np.zeros_like(flat), "gradient of a constant image", 1e-14)


@test
def not_a_number_spoils_what_the_kernel_reaches_and_nothing_else():
    image = np.random.default_rng(1).random((30, 40))
    image[10, 20] = np.nan
    image[25, 3] = np.inf
    for name, peer in (("gaussian_laplace(a, 1)", ndimage.gaussian_laplace(image, 1)), ("laplace(a)", ndimage.laplace(image)),
                       ("gaussian(a, 1, order = 1)", ndimage.gaussian_filter(image, 1, order=1))):
        ours = run(name, *CHUNK, a=image)
        finite = np.isfinite(peer)
        assert (np.isfinite(ours) == finite).all(), name
        near(ours[finite], peer[finite], name, 1e-12)


@test
def bad_parameters_are_named():
    refused("gaussian_laplace(a, 0)", "sigma", a=CAMERA)
    refused("gaussian(a, -1)", "sigma", a=CAMERA)
    refused("gaussian(a, 1, order = 1.5)", "order = 1.5", a=CAMERA)
    refused("gaussian(a, 1, order = [1, 2, 3])", "order", a=CAMERA)
    refused("sobel(a, axis = 2)", "axis = 2", a=CAMERA)
    refused("scharr(a, axis = -3)", "axis = -3", a=CAMERA)
    refused("difference_of_gaussians(a, 3, 1)", "high_sigma = 1", a=CAMERA)
    refused("convolve(a)", "weights are missing", a=CAMERA)
    refused("convolve(a, [1, 2, 3])", "no square", a=CAMERA)
    refused("convolve(a, [1, 2, 3], shape = [2, 2])", "its shape holds 4", a=CAMERA)
    refused("convolve(a, b)", "weights have 3 axes", a=CAMERA, b=VOLUME)
    refused("variance(a, 0.5)", "size", a=CAMERA)
    refused("matmul(a, a)", "they must agree", a=CAMERA)


test.main()
