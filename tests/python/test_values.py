#!/usr/bin/env python3
"""Lazy values of the Python package: what they know before they are computed, and that they compute what numpy and scipy do."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import Skip, data, main, raises, run, test  # noqa: E402
from scipy import ndimage  # noqa: E402

import fovea as fv  # noqa: E402


def noise(*shape, dtype=np.float32):
    return (np.random.default_rng(3).random(shape) * 200).astype(dtype)


@test
def a_value_knows_its_type_without_being_computed(folder):
    image = fv.array(noise(5, 40, 60), spacing=[3, 1, 0.5], units="micrometer")
    smooth = image.gaussian(2)
    assert smooth.shape == (5, 40, 60) and smooth.dtype == np.float32 and smooth.axes == ("z", "y", "x")
    assert smooth.spacing == (3, 1, 0.5) and smooth.units == ("micrometer",) * 3 and smooth.nbytes == 5 * 40 * 60 * 4
    labels = (smooth > smooth.otsu()).label()
    assert labels.dtype == np.int32 and (smooth > 3).dtype == bool
    assert labels.measure(image).columns[:2] == ("label", "voxels")
    assert isinstance(smooth.otsu(), fv.Scalar)


@test
def operators_are_functions_and_methods(folder):
    a = noise(30, 50)
    expected = ndimage.gaussian_filter(a, 2)
    for found in fv.gaussian(a, 2), fv.array(a).gaussian(sigma=2), fv.gaussian(fv.array(a), sigma=2):
        assert np.abs(np.asarray(found) - expected).max() < 1e-4
    assert (np.asarray(fv.array(a).median(3)) == ndimage.median_filter(a, 3)).all()


@test
def arithmetic_comparison_and_ufuncs_do_what_numpy_does(folder):
    a, b = noise(20, 30), noise(20, 30)[::-1].copy()
    x, y = fv.array(a), fv.array(b)
    for lazy, eager in (((x + y) * 2 - 1, (a + b) * 2 - 1), (3 - x, 3 - a), (np.sqrt(x), np.sqrt(a)), (-x, -a),
                        (abs(x - y), abs(a - b)), (x / (y + 1), a / (b + 1)), (a + y, a + b),
                        (np.maximum(x, y), np.maximum(a, b)), (x ** 2, a ** 2)):
        assert np.allclose(np.asarray(lazy), eager, rtol=1e-6), lazy
    for lazy, eager in (((x > 50) & (y < 100), (a > 50) & (b < 100)), (~(x > 50), ~(a > 50)), (x == y, a == b), (50 < x, a > 50),
                        ((x > 50) | (y > 5), (a > 50) | (b > 5))):
        found = np.asarray(lazy)
        assert found.dtype == bool and (found == eager).all(), lazy


@test
def slices_do_what_numpy_does(folder):
    a = noise(7, 20, 30)
    x = fv.array(a)
    for index in (3, -1, slice(2, 5), (slice(None), 4), (slice(None, None, 2), slice(3, 17, 3)), (..., 5), (1, ..., 2),
                  (slice(1, 3), ..., slice(0, 10))):
        lazy = x[index]
        assert lazy.shape == a[index].shape, index
        assert (np.asarray(lazy) == a[index]).all(), index
    assert np.allclose(np.asarray(np.sqrt(x)[2:5, 1]), np.sqrt(a)[2:5, 1])
    raises(IndexError, "out of bounds|(z)", lambda: x[9])
    raises(IndexError, "too many indices", lambda: x[0, 0, 0, 0])
    raises(IndexError, "whole numbers", lambda: x[[1, 2]])


@test
def numbers_come_out_as_numbers(folder):
    a = noise(40, 40, dtype=np.uint16)
    x = fv.array(a)
    assert float(x.mean()) == a.mean(dtype=float) and int(x.max()) == a.max()
    assert isinstance(x.sum().compute(), np.integer) and x.sum().compute() == a.sum()
    low, high, smooth = fv.compute(x.min(), x.max(), x.gaussian(1))
    assert (low, high) == (a.min(), a.max()) and smooth.shape == a.shape


@test
def a_lazy_value_has_no_truth(folder):
    x = fv.array(noise(5, 5))
    raises(TypeError, "not known before it is computed", lambda: bool(x > 3))


@test
def a_lazy_number_is_a_number(folder):
    a = noise(20, 30)
    x = fv.array(a)
    assert x.max() > 3 and not x.max() < 0 and 3 < x.mean() < 250 and float(max(x.max(), 3)) == a.max()
    mean = float(x.mean())
    assert round(x.mean(), 2) == round(mean, 2) and f"{x.mean():.2f}" == f"{mean:.2f}"


@test
def statistics_of_numpy_work_on_images(folder):
    a = noise(20, 30)
    x = fv.array(a)
    for function in (np.max, np.min, np.mean, np.sum, np.std):
        for axis in (0, 1, -1):
            found = function(x, axis=axis)
            assert isinstance(found, fv.Image) and np.allclose(found, function(a, axis=axis), rtol=1e-6), (function, axis)
        assert np.isclose(float(function(x)), function(a)), function
    assert np.isclose(float(np.var(x)), a.var()) and x.mean(axis="y").axes == ("x",)
    assert np.any(x > 3) and not np.all(x > 3) and np.ptp(x) == np.ptp(a)
    total = a.astype(float)
    total += x
    assert (total == 2.0 * a).all() and (np.hypot(x, a) == np.hypot(a, a)).all() and (np.floor_divide(x, 7) == a // 7).all()
    raises(IndexError, "axis = 2: the image has 2 axes", lambda: x.mean(axis=2))
    raises(TypeError, "project", lambda: x.mean(axis=(0, 1)))
    raises(TypeError, "keepdims|numpy.max", lambda: np.max(x, axis=0, keepdims=True))
    raises(TypeError, "ddof|numpy.std", lambda: x.std(axis=0, ddof=1))
    raises(TypeError, "dtype|numpy.mean", lambda: np.mean(x, axis=0, dtype=np.float32))
    raises(TypeError, "ddof", lambda: np.std(x, ddof=1))


@test
def arrays_are_parameters(folder):
    a = noise(20, 30)
    x = fv.array(a)
    assert np.array_equal(x.gaussian(np.array([1, 2.5])), x.gaussian([1, 2.5]))
    assert fv.phantom("cells", np.array([20, 30])).shape == (20, 30)
    angles = np.linspace(0, 180, 12, endpoint=False)
    assert np.array_equal(x.xray(fv.parallel(angles)), x.xray(fv.parallel(list(angles))))
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    for footprint in (cross, cross.astype(bool), cross.astype(float)):
        assert np.array_equal(x.erode(footprint), x.erode(fv.cross()))
    raises(ValueError, "each must be a number above 0", lambda: fv.array(a, spacing=[1, 0]))
    raises(ValueError, "spacing", lambda: fv.array(a, spacing=-1))


@test
def attributes_that_are_not_there_are_told_with_advice(folder):
    x = fv.array(noise(5, 5))
    raises(AttributeError, "'gausian'; did you mean gaussian?", lambda: x.gausian)
    raises(AttributeError, "called convert here", lambda: x.astype)
    raises(AttributeError, "called read here", lambda: fv.imread)
    table = (x > 3).label().measure()
    raises(AttributeError, ".compute()['volume']", lambda: table.volume)
    raises(TypeError, "before it is computed", lambda: table["volume"])
    raises(TypeError, "before it is computed", lambda: len(table))
    assert not hasattr(x, "nothing_like_it")


@test
def mistakes_are_told_where_they_are_made(folder):
    x = fv.array(noise(20, 30))
    raises(fv.UsageError, "sigma = -1|between 0 and", lambda: x.gaussian(-1))
    raises(ValueError, "sigma", lambda: x.gaussian([1, 2, 3]))
    raises(TypeError, "no argument 'sgima'|sigma", lambda: x.gaussian(sgima=2))
    raises(AttributeError, "gausian", lambda: x.gausian(2))
    raises(AttributeError, "gausian", lambda: fv.gausian)
    raises(OSError, "nothing.tif", lambda: fv.read("nothing.tif"))
    raises(fv.UsageError, "20 voxels in the first and 7 in the second", lambda: x + fv.array(noise(7, 7)))


@test
def a_value_is_a_text_that_the_command_runs(folder):
    folder = pathlib.Path(folder)
    cells = fv.phantom("cells", [64, 64], seed=5)
    smooth = cells.gaussian(1.5)
    labels = (smooth > smooth.otsu()).label()
    (folder / "p.fov").write_text(labels.text() + 'write(label1, "labels.npy")\n')
    run("run", "p.fov", folder=folder)
    assert (np.load(folder / "labels.npy") == np.asarray(labels)).all()


@test
def files_are_read_and_written(folder):
    folder = pathlib.Path(folder)
    a = noise(20, 30, dtype=np.uint8)
    made = fv.array(a, spacing=0.5).write(folder / "a.tif")
    assert made == [str(folder / "a.tif")], made
    x = fv.read(folder / "a.tif")
    assert x.shape == (20, 30) and (np.asarray(x) == a).all()
    assert (np.asarray(x[3:8, ::2]) == a[3:8, ::2]).all()
    x.gaussian(1).write(folder / "g.zarr", workers=1)
    assert np.asarray(fv.read(folder / "g.zarr")).shape == (20, 30)
    assert fv.info(folder / "a.tif")["shape"] == [20, 30]
    (folder / "theirs.npy").write_bytes(b"not ours")
    raises(fv.Error, "theirs.npy", lambda: x.write(folder / "theirs.npy"))
    assert (folder / "theirs.npy").read_bytes() == b"not ours"


@test
def a_pipeline_s_text_is_run_with_its_parameters(folder):
    text = 'param level = 100\nc = phantom("cells", [64, 64], seed = 2)\ncount(label(c > level))\nmeasure(label(c > level))\n'
    number, table = fv.run(text, store=folder)
    assert len(table) > 0 and number > 0
    (pathlib.Path(folder) / "p.fov").write_text(text)
    other, _ = fv.run(pathlib.Path(folder) / "p.fov", {"level": 1000}, store=folder)
    assert other == 0
    raises(fv.UsageError, "levl", lambda: fv.run(text, {"levl": 3}, store=folder))
    raises(fv.UsageError, "no operator", lambda: fv.run("gausian(3)"))


@test
def plans_and_graphs_are_told_without_computing(folder):
    smooth = fv.phantom("cells", [4000, 4000, 4000]).gaussian(2)
    assert "gaussian" in smooth.plan(memory="1G") and smooth.graph().startswith("digraph")
    assert smooth.nbytes == 4000 ** 3 * 4


@test
def the_manual_comes_from_the_descriptors(folder):
    import inspect
    signature = inspect.signature(fv.gaussian)
    assert list(signature.parameters)[:2] == ["image", "sigma"] and signature.parameters["mode"].default == "reflect"
    assert "standard deviation" in fv.gaussian.__doc__ and "gaussian" in dir(fv)


@test
def examples_in_the_documentation_of_the_package_run(folder):
    import doctest
    assert doctest.testmod(fv).failed == 0 and doctest.testmod(fv).attempted >= 4


@test
def real_files_come_out_as_their_peers_read_them(folder):
    try:
        import nibabel
    except ImportError:
        raise Skip("no nibabel") from None
    path = next(iter(sorted(data().rglob("*.nii.gz"))), None)
    if path is None:
        raise Skip("no NIfTI file among the test data")
    x, peer = fv.read(path), nibabel.load(path)
    assert np.array_equal(np.asarray(x), np.asarray(peer.dataobj).T)
    assert np.allclose(x.voxel_to_world, peer.affine)


main()
