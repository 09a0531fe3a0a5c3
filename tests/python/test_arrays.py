#!/usr/bin/env python3
"""Arrays of a program as images: no copy where none is needed, and a clear exception for what is no image."""
import copy
import pathlib
import resource
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import main, raises, test  # noqa: E402

import fovea as fv  # noqa: E402


@test
def every_element_type_goes_in_and_comes_out(folder):
    for name in ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64",
                 "complex64", "complex128"):
        a = (np.arange(24).reshape(4, 6) % 2 if name == "bool" else np.arange(24).reshape(4, 6)).astype(name)
        x = fv.array(a)
        assert x.dtype == a.dtype and (np.asarray(x) == a).all() and np.asarray(x[1:3]).dtype == a.dtype, name
        assert (np.asarray(x[1:3]) == a[1:3]).all(), name


@test
def layouts_do_not_matter(folder):
    a = np.random.default_rng(1).random((6, 8, 10)).astype(np.float32)
    for b in (np.asfortranarray(a), a[::-1, :, ::-2], a.transpose(2, 0, 1), a.astype(">f4"), a[:, 3], a[..., None][..., 0],
              np.broadcast_to(a[0], (3, 8, 10))):
        assert (np.asarray(fv.array(b)[0]) == b[0]).all()
        assert np.allclose(np.asarray(fv.array(b) + 1), b + 1)
    read_only = a.copy()
    read_only.flags.writeable = False
    assert (np.asarray(fv.array(read_only) * 2) == a * 2).all()


@test
def what_is_no_image_is_told_so(folder):
    raises(TypeError, "object", lambda: fv.array(np.array([None, 1])))
    raises(TypeError, "elements of", lambda: fv.array(np.array(["a", "b"])))
    raises(TypeError, "float16", lambda: fv.array(np.zeros((3, 3), np.float16)))
    raises(TypeError, "mask", lambda: fv.array(np.ma.masked_array([[1, 2]], [[True, False]])))
    raises(ValueError, "0", lambda: fv.array(np.float32(3)))
    raises(ValueError, "at least one voxel|(0, 3)", lambda: fv.array(np.zeros((0, 3))))
    raises(ValueError, "7", lambda: fv.array(np.zeros((1,) * 7)))
    raises(ValueError, "axes", lambda: fv.array(np.zeros((2, 2)), axes="z y x"))
    raises(ValueError, "twice", lambda: fv.array(np.zeros((2, 2)), axes="x x"))
    raises(ValueError, "spacing", lambda: fv.array(np.zeros((2, 2)), spacing=[1, 2, 3]))
    raises(ValueError, "affine", lambda: fv.array(np.zeros((2, 2)), affine=np.eye(3)))


@test
def strange_operands_are_told_or_taken(folder):
    x = fv.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    masked = np.ma.masked_array(np.ones((3, 4)), np.eye(3, 4) > 0)
    raises(TypeError, "mask", lambda: x + masked)
    raises(TypeError, "mask", lambda: fv.gaussian(masked, 1))
    raises(TypeError, "object", lambda: x + np.array([[None] * 4] * 3))
    raises(ValueError, "at least one voxel", lambda: x + np.zeros((0, 4)))
    raises(ValueError, "3 voxels in the first and 5 in the second", lambda: x + np.zeros((5, 5)))
    raises(fv.UsageError, "image must be an image, not a number", lambda: fv.gaussian(np.array(3.0), 1))
    raises(fv.UsageError, "sigma is not a number", lambda: x.gaussian(float("nan")))
    raises(IndexError, "ndarray", lambda: x[np.array([0, 1])])
    raises(TypeError, "no argument 'sigm'", lambda: x.gaussian(sigm=2))
    assert ((x + np.array(3.0)).compute() == np.asarray(x) + 3).all() and (x * np.int16(2)).compute()[2, 3] == 22
    assert np.isnan((x + float("nan")).compute()).all() and np.isinf((x * np.inf).compute()[1]).all()
    assert np.minimum(x, -np.inf).compute()[0, 0] == -np.inf
    assert float(np.mean(x)) == 5.5 and float(np.max(x)) == 11
    assert (x[::-1, ..., ::-2].compute() == np.asarray(x)[::-1, ::-2]).all()
    assert copy.copy(x) is x and copy.deepcopy(x[1:]).shape == (2, 4)
    assert (np.asarray(x, dtype=np.int8) == np.asarray(x)).all() and np.asarray(x, dtype=np.int8).dtype == np.int8


@test
def axes_are_named(folder):
    x = fv.array(np.zeros((2, 3, 20, 20), np.uint8), axes="t c y x")
    assert x.axes == ("t", "c", "y", "x") and x.gaussian(1).axes == x.axes
    a = np.random.default_rng(0).random((3, 9, 9))
    from scipy import ndimage
    assert np.allclose(np.asarray(fv.array(a, axes="tyx").gaussian(1)), ndimage.gaussian_filter(a, (0, 1, 1)))


@test
def a_large_array_is_not_copied(folder):
    """Half a gigabyte in and out: the array, and the result, and nothing else of that size."""
    a = np.ones((128, 1024, 1024), np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    x = fv.array(a)
    assert x._array is a
    result = (x + 1).compute(memory="200M")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert result[5, 5, 5] == 2 and result.flags.owndata is False
    assert after - before < result.nbytes + (400 << 20), (after - before) >> 20


@test
def buffers_and_other_arrays_are_taken(folder):
    assert np.asarray(fv.array(memoryview(np.arange(6, dtype=np.int32)))).tolist() == [0, 1, 2, 3, 4, 5]
    assert fv.array([[1, 2], [3, 4]]).shape == (2, 2)

    class Foreign:
        """Has numpy's interface and nothing else."""
        def __init__(self):
            self.held = np.arange(12, dtype=np.uint8).reshape(3, 4)
            self.__array_interface__ = self.held.__array_interface__
    assert np.asarray(fv.array(Foreign()) + 0).shape == (3, 4)


main()
