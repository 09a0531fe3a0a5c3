#!/usr/bin/env python3
"""fovea.ndimage beside scipy.ndimage on images of real sizes: element types, layouts, modes, origins, axes and outputs."""
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import Skip, main, test  # noqa: E402

from fovea import ndimage as ours  # noqa: E402

MODES = ("reflect", "nearest", "mirror", "constant", "wrap")


def peer():
    """scipy.ndimage, or a skipped test."""
    try:
        from scipy import ndimage
    except ImportError:
        raise Skip("scipy is not installed") from None
    return ndimage


def picture(shape, dtype, seed=0):
    """Whole numbers, smooth and noisy, that fit any type."""
    values = np.random.default_rng(seed).integers(0, 120, shape)
    return (values > 60 if dtype == "bool" else values).astype(dtype)


def same(name, a, *arguments, within=None, **named):
    """Calls a function of both and compares everything about what they give."""
    expected, found = getattr(peer(), name)(a, *arguments, **named), getattr(ours, name)(a, *arguments, **named)
    assert found.dtype == expected.dtype and found.shape == expected.shape, (name, named, found.dtype, expected.dtype)
    scale = max(float(np.abs(expected).max()), 1.0)
    within = within if within is not None else 3e-6 * scale if expected.dtype.name == "float32" else 1e-10 * scale
    difference = np.abs(found.astype(np.complex128) - expected.astype(np.complex128)).max()
    assert difference <= within, (name, arguments, named, a.dtype, a.shape, float(difference))


@test
def filters_of_every_type_and_mode(folder):
    os.chdir(folder)
    for k, dtype in enumerate(("bool", "uint8", "int16", "uint32", "int64", "float32", "float64", ">f4", ">i2")):
        a = picture((37, 53), dtype, k)
        mode = MODES[k % 5]
        whole = a.dtype.kind in "biu"
        for name, arguments in (("median_filter", (3,)), ("minimum_filter", ((3, 4),)), ("maximum_filter", (5,)),
                                ("percentile_filter", (30, 3)), ("rank_filter", (-2, 3))):
            same(name, a, *arguments, mode=mode, cval=1)
        same("gaussian_filter", a, 1.5, mode=mode, within=2 if whole else None)  # cut off after each axis: 1 off at each
        same("uniform_filter", a, 4, mode=mode, within=1 if whole else None)
        for name in ("sobel", "prewitt", "laplace"):
            if a.dtype.kind in "fi":
                same(name, a, mode=mode, cval=2)
        same("correlate", a, [[1, 2, 0], [0, 1, 1]], mode=mode, output=np.float64)
        same("gaussian_laplace", a.astype(np.float32), 2, mode=mode)
        same("gaussian_gradient_magnitude", a.astype(np.float64), (1, 2), mode=mode)


@test
def origins_footprints_and_axes(folder):
    os.chdir(folder)
    odd = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 0], [1, 1, 1]], bool)
    for mode in MODES:
        a = picture((20, 31), np.float32, 3)
        for name in ("minimum_filter", "maximum_filter", "median_filter"):
            same(name, a, footprint=odd, origin=(1, -1), mode=mode, cval=50)
            same(name, a, size=(4, 3), origin=(-2, 1), mode=mode)
        same("percentile_filter", a, 70, footprint=odd, mode=mode)
        same("uniform_filter", a, (5, 4), origin=(2, -1), mode=mode)
        same("correlate", a, odd * 2.5, origin=(1, 0), mode=mode, cval=3)
        same("convolve", a, odd * 2.5, origin=(1, 0), mode=mode, cval=3)
    volume = picture((6, 9, 10, 11), np.float64, 4)
    same("gaussian_filter", volume, (1, 0, 2, 1), order=(0, 0, 1, 0))
    same("median_filter", volume, (1, 3, 1, 3))
    same("maximum_filter", volume, 3)
    same("correlate", volume[:3], np.arange(16.0).reshape(2, 2, 2, 2))
    assert np.allclose(ours.gaussian_filter(volume, 2, axes=(1, 3)), peer().gaussian_filter(volume, (0, 2, 0, 2)))
    assert (ours.median_filter(volume, 3, axes=(2,)) == peer().median_filter(volume, (1, 1, 3, 1))).all()


@test
def morphology_of_masks_and_grey_images(folder):
    os.chdir(folder)
    odd = np.array([[0, 1, 1], [1, 1, 0]], bool)
    mask, room = picture((61, 47), "uint8") > 40, picture((61, 47), "uint8", 5) > 30
    for name in ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing"):
        same(name, mask)
        same(name, mask, iterations=3, border_value=1)
        same(name, mask, structure=odd, origin=(0, 1), mask=room)
    same("binary_propagation", mask & room, mask=~room)
    same("binary_propagation", mask & ~room, mask=room, structure=np.ones((3, 3)))
    same("binary_fill_holes", mask)
    same("binary_fill_holes", mask, structure=odd)
    same("binary_hit_or_miss", mask, structure1=odd)
    volume = picture((12, 20, 22), "int16", 6)
    for name in ("grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
                 "morphological_laplace", "white_tophat", "black_tophat"):
        same(name, volume, size=(3, 4, 3), mode="mirror")
        same(name, volume[4], footprint=odd)
        same(name, volume[5], structure=odd * 7, origin=(0, -1), mode="nearest")


@test
def distances(folder):
    os.chdir(folder)
    solid = peer().gaussian_filter(picture((70, 90), "float32"), 3) > 58
    volume = peer().gaussian_filter(picture((20, 31, 25), "float32"), 2) > 58
    for a in (solid, volume, solid[3]):
        for sampling in (None, 2.5, [0.7, 1.3, 2.0][:a.ndim]):
            same("distance_transform_edt", a, sampling=sampling)
            where = ours.distance_transform_edt(a, sampling=sampling, return_distances=False, return_indices=True)
            apart = (where - np.indices(a.shape)) * np.reshape(1.0 if sampling is None else sampling, (-1,) + (1,) * a.ndim)
            assert not a[tuple(where)].any()
            assert np.allclose(np.sqrt((apart**2).sum(axis=0)), peer().distance_transform_edt(a, sampling=sampling))
        for metric in ("chessboard", "taxicab"):
            same("distance_transform_cdt", a, metric)
            same("distance_transform_bf", a, metric)


@test
def interpolation_of_every_order_and_mode(folder):
    os.chdir(folder)
    plane, volume = picture((23, 30), "float64"), picture((9, 10, 11), "float32", 3)
    turn = np.array([[0.9, 0.3], [-0.2, 1.1]])
    places = np.random.default_rng(1).uniform(-4, 33, (2, 200))
    for order in range(6):
        for mode in (*MODES, "grid-wrap", "grid-mirror", "grid-constant"):
            named = {"order": order, "mode": mode, "cval": 7.0}
            same("affine_transform", plane, turn, offset=(1.5, -2), **named)
            same("map_coordinates", plane, places, **named)
            same("shift", volume, (0.4, 2, -1.7), **named, within=1e-3)
        same("zoom", plane, (1.7, 0.6), order=order)
        same("zoom", volume, 1.4, order=order, grid_mode=True, mode="grid-constant", within=1e-3)
        same("rotate", plane, 33, order=order)
        same("rotate", volume, -120, axes=(2, 0), reshape=False, order=order, mode="nearest", within=1e-3)
        same("spline_filter", plane, max(order, 2), mode="reflect")
    same("zoom", picture((12, 14), "bool"), 2, order=0)
    for dtype in ("uint8", "int16", "uint32"):
        same("zoom", picture((12, 14), dtype), 2, order=1)
        same("rotate", picture((12, 14), dtype), 17, order=3)
    same("geometric_transform", plane, lambda o: (o[0] * 0.5 + 1, o[1] - 0.25), order=3)
    same("map_coordinates", plane + 1j * plane[::-1], places, order=3, mode="mirror")


@test
def labels_and_objects(folder):
    os.chdir(folder)
    line, slant = np.zeros((3, 3), int), np.eye(3, dtype=int)
    line[1] = 1
    mask, volume = picture((50, 61), "uint8") > 55, picture((9, 14, 15), "uint8", 2) > 70
    for a, structure in ((mask, None), (mask, np.ones((3, 3))), (mask, line), (mask, line.T), (mask, slant), (mask[0], None),
                         (volume, None), (volume, np.ones((3, 3, 3))), (volume, line[None] * [[[0]], [[1]], [[0]]]),
                         (volume[:, :, :, None], None)):
        expected, found = peer().label(a, structure), ours.label(a, structure)
        assert found[1] == expected[1] and found[0].dtype == expected[0].dtype and (found[0] == expected[0]).all(), structure
        assert ours.find_objects(found[0]) == peer().find_objects(expected[0])
    out = np.zeros(mask.shape, np.int16)
    assert ours.label(mask, output=out) == out.max()
    few = np.array([[0, 5, 5], [2, 0, 5]])
    assert ours.find_objects(few, 3) == peer().find_objects(few, 3) and ours.find_objects(few) == peer().find_objects(few)


@test
def numbers_of_regions(folder):
    os.chdir(folder)
    labels = peer().label(picture((40, 50), "uint8") > 70)[0]
    for dtype in ("uint8", "int32", "float32", "float64"):
        a = picture((40, 50), dtype, 9)
        for index in (None, 3, [1, 2, 7, 40], np.arange(1, labels.max() + 1), [5, 5, 1]):
            for name in ("sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "median",
                         "center_of_mass"):
                expected, found = getattr(peer(), name)(a, labels, index), getattr(ours, name)(a, labels, index)
                assert np.allclose(found, expected) and np.shape(found) == np.shape(expected), (name, dtype, index)
            for name, value in (("minimum_position", "minimum"), ("maximum_position", "maximum")):
                places = np.atleast_2d(getattr(ours, name)(a, labels, index))
                values = np.ravel(getattr(peer(), value)(a, labels, index))
                assert [a[tuple(p)] for p in places] == values.tolist(), (name, index)
    expected, found = (n.histogram(a, 0, 120, 6, labels, [1, 4]) for n in (peer(), ours))
    assert all((e == f).all() for e, f in zip(expected, found))


def raised(kind, word, call):
    """The call raises this, and the message has the word."""
    try:
        call()
    except kind as error:
        assert word in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__} about {word}")


@test
def what_cannot_be_done_is_told(folder):
    a, read_only, labels = picture((6, 7), np.float64), np.zeros((6, 7)), np.ones((6, 7))
    read_only.flags.writeable, labels[0, 0] = False, np.nan
    for strange in (a.astype(object), np.array([["a", "b"]]), np.zeros((2, 3), "M8[s]"), np.zeros((2, 3), [("x", "f4")])):
        for call in (lambda b: ours.gaussian_filter(b, 1), lambda b: ours.median_filter(b, 3), ours.label,
                     lambda b: ours.zoom(b, 2)):
            raised(RuntimeError, "data type not supported", lambda b=strange, f=call: f(b))
    raised(ValueError, "read-only", lambda: ours.gaussian_filter(a, 1, output=read_only))
    raised(RuntimeError, "(6, 6)", lambda: ours.gaussian_filter(a, 1, output=np.zeros((6, 6))))
    raised(RuntimeError, "not int", lambda: ours.gaussian_filter(a, 1, output=3))
    raised(RuntimeError, "whole numbers", lambda: ours.find_objects(labels))
    for name in ("mean", "sum_labels", "center_of_mass", "maximum"):  # nan is no label
        assert np.array_equal(getattr(ours, name)(a, labels, [1]), getattr(peer(), name)(a, labels, [1])), name
    same("gaussian_filter", np.array(3.0), 1)
    assert ours.gaussian_filter(np.zeros((0, 5)), 1).shape == (0, 5)
    same("gaussian_filter", np.ma.masked_less(a, 0.5), 1)  # the mask does not count there either
    assert (read_only == 0).all()


@test
def outputs_and_layouts(folder):
    os.chdir(folder)
    a = picture((24, 30), np.float32)
    out = np.zeros((24, 30), np.float64)
    assert ours.gaussian_filter(a, 1, output=out) is out and np.allclose(out, peer().gaussian_filter(a, 1), atol=1e-4)
    for b in (a.T, a[::-1, ::2], np.asfortranarray(a), a[:, None, :], a[:1], a[0]):
        same("gaussian_filter", b, 1)
        same("median_filter", b, 3)
    both = a.copy()
    ours.uniform_filter(both, 3, output=both)
    assert np.allclose(both, peer().uniform_filter(a, 3), atol=1e-4)
    strided = np.zeros((48, 60), np.int16)[::2, ::2]
    ours.maximum_filter(a, 3, output=strided)
    assert (strided == peer().maximum_filter(a, 3)).all()
    for bad in (np.zeros((3, 3)), "nonsense", 7):
        try:
            ours.gaussian_filter(a, 1, output=bad)
        except RuntimeError as error:
            assert "output" in str(error)
        else:
            raise AssertionError(f"output={bad!r} was taken")
    try:
        ours.nothing_like_this
    except AttributeError as error:
        assert "gaussian_filter" in str(error)


if __name__ == "__main__":
    main()
