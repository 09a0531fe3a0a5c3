#!/usr/bin/env python3
"""Arrays of dask, zarr, h5py and xarray: read piece by piece, each piece once, with their axes and coordinates."""
import pathlib
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import Skip, main, test  # noqa: E402

import fovea as fv  # noqa: E402

A = np.random.default_rng(0).random((60, 70, 80)).astype(np.float32)


def wanted(name):
    """A module, or the reason why there is none."""
    try:
        return __import__(name, fromlist=["*"])
    except ImportError:
        raise Skip(f"no {name}: scripts/bootstrap.sh peers could not install it") from None


def counted(array):
    """A dask array that counts how often a piece is computed."""
    calls = []

    def tick(block, block_info=None):
        if block_info and block.size:
            calls.append(block_info[0]["chunk-location"])
        return block
    return array.map_blocks(tick, dtype=array.dtype, meta=np.empty((0,) * array.ndim, array.dtype)), calls


@test
def a_dask_array_is_read_piece_by_piece(folder):
    dask = wanted("dask.array")
    array, calls = counted(dask.from_array(A, chunks=((20, 40), (35, 35), (30, 40, 10))))
    image = fv.array(array, spacing=[2, 1, 1])
    assert not calls and image.shape == A.shape and image.dtype == A.dtype and image.spacing == (2, 1, 1)
    assert np.array_equal(image.gaussian(1.5).compute(store=folder), fv.array(A, spacing=[2, 1, 1]).gaussian(1.5).compute())
    assert sorted(calls) == sorted(set(calls)) and len(calls) == 12, ("each piece is computed once, borders included", calls)
    array, calls = counted(dask.from_array(A, chunks=(20, 35, 40)))
    image = fv.array(array)
    assert np.array_equal(image[:10, :10, :10].compute(), A[:10, :10, :10])
    assert calls == [(0, 0, 0)], "of a slice only what is needed"


@test
def other_engines_get_the_same_pixels(folder):
    dask = wanted("dask.array")
    image = fv.array(dask.from_array(A, chunks=(20, 35, 40)))
    one = (image.median(3) > 0.5).label(connectivity=1)
    there = one.compute(engine="processes", workers=2, store=folder)
    assert np.array_equal(one.compute(), there) and there.max() > 1


@test
def operators_take_such_arrays_as_they_are(folder):
    dask, zarr, h5py = wanted("dask.array"), wanted("zarr"), wanted("h5py")
    want = fv.array(A).gaussian(1).compute()
    with h5py.File(pathlib.Path(folder) / "a.h5", "w") as file:
        for array in (dask.from_array(A, chunks=30), zarr.array(A, chunks=(16, 16, 16)), file.create_dataset("a", data=A),
                      file.create_dataset("b", data=A, chunks=(10, 20, 30))):
            assert np.array_equal(fv.gaussian(array, 1).compute(), want), type(array)


@test
def xarray_keeps_its_axes_and_coordinates(folder):
    xarray = wanted("xarray")
    given = xarray.DataArray(A, dims=("z", "y", "x"), coords={"z": ("z", 5 + 2.0 * np.arange(60), {"units": "micrometer"}),
                                                            "y": 0.5 * np.arange(70), "x": 0.25 * np.arange(80)})
    image = fv.array(given)
    assert image.axes == ("z", "y", "x") and image.spacing == (2, 0.5, 0.25) and image.origin == (5, 0, 0)
    back = image.to_xarray()
    assert back.identical(given) or (np.array_equal(back, given) and back.dims == given.dims), back
    assert np.allclose(back.z, given.z) and back.z.attrs["units"] == "micrometer"
    half = image[::2, 10:].to_xarray()
    assert np.allclose(half.z, given.z[::2]) and np.allclose(half.y, given.y[10:])
    lazy = fv.array(given.chunk({"z": 20}))
    assert np.array_equal(lazy.gaussian(1).compute(), fv.array(A).gaussian(1).compute())
    movie = fv.array(xarray.DataArray(A[:3], dims=("t", "y", "x"), coords={"t": [0, 1, 5]}))
    assert movie.axes == ("t", "y", "x")


@test
def uneven_coordinates_are_refused(folder):
    xarray = wanted("xarray")
    try:
        fv.array(xarray.DataArray(A[0], dims=("y", "x"), coords={"x": np.arange(80) ** 2}))
    except ValueError as error:
        assert "along x" in str(error) and "drop_vars" in str(error)
    else:
        raise AssertionError("uneven coordinates were taken")


@test
def a_piece_that_fails_is_told_with_its_reason(folder):
    dask = wanted("dask.array")

    def broken(block, block_info=None):
        if block_info and block_info[0]["chunk-location"] == (1, 0, 1):
            raise RuntimeError("the detector was asleep")
        return block
    array = dask.from_array(A, chunks=(30, 70, 40)).map_blocks(broken, dtype=A.dtype, meta=np.empty((0, 0, 0), A.dtype))
    try:
        fv.array(array).mean().compute()
    except fv.InputError as error:
        assert "the detector was asleep" in str(error) and isinstance(error.__cause__, RuntimeError), error
    else:
        raise AssertionError("a failed piece went unnoticed")
    assert float(fv.array(dask.from_array(A, chunks=30)).mean()) > 0, "the next run is not hurt"


main()
