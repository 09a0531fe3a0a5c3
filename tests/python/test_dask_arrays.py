#!/usr/bin/env python3
"""Operators on dask arrays: lazy, exact across chunks, with no more of the array in one place than a task needs."""
import pathlib
import pickle
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import Skip, main, raises, test  # noqa: E402

import fovea as fv  # noqa: E402

try:
    import dask
    import dask.array as da
    from fovea import dask as fd
except ImportError:
    dask = None

A = np.random.default_rng(0).random((40, 50, 60)).astype(np.float32)
SMOOTH = fv.gaussian(A, 1).compute()
MASK = SMOOTH > np.float32(0.55)
CHUNKS = ((15, 15, 10), (20, 30), (25, 7, 28))  # of different sizes, as after slicing


def x_of(array=A):
    """A dask array; the test is skipped without dask."""
    if dask is None:
        raise Skip("no dask: scripts/bootstrap.sh peers could not install it")
    return da.from_array(array, chunks=CHUNKS)


def same(lazy, want):
    """Whether a dask array gives exactly what fovea gives for the whole array."""
    assert isinstance(lazy, da.Array), type(lazy)
    got, want = lazy.compute(scheduler="threads"), np.asarray(want)
    assert lazy.dtype == got.dtype == want.dtype and lazy.shape == got.shape == want.shape, (lazy, got.dtype, want.dtype)
    assert np.array_equal(got, want), f"{np.count_nonzero(got != want)} of {want.size} differ"


@test
def a_filter_gives_what_it_gives_for_the_whole_array(folder):
    x = x_of()
    same(fd.gaussian(x, 2), fv.gaussian(A, 2))
    same(fd.gaussian(x, sigma=[1, 2, 3], mode="wrap"), fv.gaussian(A, sigma=[1, 2, 3], mode="wrap"))
    same(fd.median(x, 5), fv.median(A, 5))
    same(fd.erode(x, fv.ball(4)), fv.erode(A, fv.ball(4)))
    same(fd.gaussian(x, 30), fv.gaussian(A, 30))  # its halo is larger than the array


@test
def shapes_and_types_may_change(folder):
    x = x_of()
    same(fd.project(x, "z", "max"), fv.project(A, "z", "max"))
    same(fd.convert(x * 255, "uint8"), fv.convert(fv.array(A) * 255, "uint8"))
    same(fd.zoom(x, 2), fv.zoom(A, 2))
    same(fd.rotate(x, 30), fv.rotate(A, 30))


@test
def labels_distances_and_watersheds_do_not_stop_at_chunks(folder):
    mask, x = x_of(MASK), x_of(SMOOTH)
    labels = fv.label(MASK).compute()
    assert labels.max() > 10
    same(fd.label(mask), labels)
    same(fd.distance(mask), fv.distance(MASK))
    same(fd.watershed(x, fd.label(mask)), fv.watershed(SMOOTH, labels))
    same(fd.fill_holes(mask), fv.fill_holes(MASK))
    blockwise = mask.map_blocks(lambda block: fv.label(block).compute(), dtype="int32").compute()
    assert len(np.unique(blockwise)) != len(np.unique(labels)), "the mistake that this is about"


@test
def numbers_are_arrays_without_axes(folder):
    x = x_of()
    for name in ("mean", "sum", "std", "min", "max", "otsu"):
        lazy = getattr(fd, name)(x)
        same(lazy, getattr(fv, name)(A).compute())
        assert lazy.shape == ()
    same(fd.quantile(x, 0.3), fv.quantile(A, 0.3).compute())
    same((x > fd.otsu(x)).astype("uint8"), (fv.array(A) > fv.array(A).otsu()).compute().astype("uint8"))
    same(fd.clip(x, fd.quantile(x, 0.1), 0.9), fv.clip(A, fv.quantile(A, 0.1), 0.9))


@test
def computing_again_gives_the_same(folder):
    smooth = fd.gaussian(x_of(), 1)
    labels, want = fd.label(smooth > fd.otsu(smooth)), fv.gaussian(A, 1)
    for _ in range(4):
        same(labels, (want > want.otsu()).label())


@test
def tables_are_delayed(folder):
    lazy = fd.measure(fd.label(x_of(MASK)), x_of())
    got, want = lazy.compute(scheduler="threads"), fv.measure(fv.label(MASK), A).compute()
    assert got.columns == want.columns and len(got) == len(want) > 10
    for name in want.columns:
        assert np.array_equal(got[name], want[name]), name
    assert list(pickle.loads(pickle.dumps(got))) == list(want)


@test
def a_whole_expression_is_one_graph(folder):
    def chain(image):
        smooth = image.gaussian(1)
        labels = (smooth > smooth.otsu()).label()
        return labels, smooth.mean(), labels.measure(image)
    lazy, whole = fd.lazy(*chain(fv.array(x_of()))), fv.compute(*chain(fv.array(A)))
    labels, mean, table = dask.compute(*lazy, scheduler="threads")
    assert np.array_equal(labels, whole[0]) and mean == whole[1]
    assert all(np.array_equal(table[name], whole[2][name]) for name in table.columns)


@test
def a_conditional_takes_the_branch_that_is_needed(folder):
    def chain(image):
        return fv.choose(image.mean() > 0.9, image.median(5), image.gaussian(2))
    same(fd.lazy(chain(fv.array(x_of()))), chain(fv.array(A)))


@test
def nothing_is_computed_before_it_is_asked_for_and_then_once(folder):
    calls = []

    def tick(block, block_info=None):
        if block_info and block.size:
            calls.append(tuple(block_info[0]["chunk-location"]))
        return block
    x = x_of().map_blocks(tick, dtype=A.dtype, meta=np.empty((0, 0, 0), A.dtype))
    smooth = fd.gaussian(x, 1)
    assert not calls and smooth.chunks == ((15, 15, 10), (30, 20), (28, 28, 4)), smooth.chunks
    part = smooth[:5, :5, :5].compute(scheduler="synchronous")
    assert np.array_equal(part, fv.gaussian(A, 1).compute()[:5, :5, :5])
    assert len(calls) < 18 and len(set(calls)) == len(calls), calls
    del calls[:]
    smooth.compute(scheduler="synchronous")
    assert sorted(calls) == sorted(np.ndindex(3, 2, 3)), calls


@test
def only_halos_of_neighbours_are_handed_over(folder):
    smooth = fd.gaussian(da.zeros((300, 300), chunks=100, dtype="float32"), 1)
    graph = dict(smooth.dask)
    halos = [task for key, task in graph.items() if isinstance(key, tuple) and key[0].startswith("fovea.halo")]
    sizes = [[b - a for a, b in zip(task[2], task[3])] for task in halos]
    assert sizes and all(4 in size for size in sizes), sizes  # 4 sigma


@test
def spacing_and_axes_are_taken_from_fovea_images(folder):
    image = fv.array(x_of(MASK), spacing=[3, 1, 1])
    same(fd.distance(image), fv.distance(fv.array(MASK, spacing=[3, 1, 1])))
    colour = np.random.default_rng(1).integers(0, 255, (30, 40, 3), np.uint8)
    lazy = fv.array(da.from_array(colour, chunks=(10, 40, 3)), axes="y x c")
    same(fd.gaussian(lazy, 2), fv.gaussian(fv.array(colour, axes="y x c"), 2))


@test
def files_are_read_by_the_workers(folder):
    x_of()
    fv.array(A).write(f"{folder}/a.zarr", store=f"{folder}/store")
    lazy = fd.read(f"{folder}/a.zarr")
    same(lazy, A)
    same(fd.gaussian(lazy, 1), fv.gaussian(A, 1))


@test
def arrays_of_numpy_and_dask_can_be_mixed(folder):
    same(fd.subtract(x_of(), fv.array(SMOOTH)), fv.array(A) - fv.array(SMOOTH))


@test
def elements_of_chunks_are_what_the_array_says(folder):
    same(fd.gaussian(x_of(A.astype(">f4")), 2), fv.gaussian(A, 2))
    counts = (A * 1000).astype(np.uint16)
    same(fd.median(x_of(counts.astype(">u2")), 3), fv.median(counts, 3))
    whole = x_of().map_blocks(lambda block: (block * 1000).astype(np.int32), dtype=np.float32)  # it says too much
    same(fd.gaussian(whole, 2), fv.gaussian((A * 1000).astype(np.int32).astype(np.float32), 2))
    real = x_of().map_blocks(lambda block: block * 1000, dtype=np.int32)  # it says too little
    raises(TypeError, "holds float32|said int32", lambda: fd.median(real, 3).compute(scheduler="synchronous"))


@test
def mistakes_are_told_when_they_are_made(folder):
    x = x_of()
    raises(TypeError, "a masked array", lambda: fd.gaussian(da.ma.masked_greater(x, 0.5), 1))
    raises(fv.UsageError, "sigma = -1", lambda: fd.gaussian(x, -1))
    raises(AttributeError, "no operator or attribute 'gausian'", lambda: fd.gausian)
    raises(TypeError, "an image has elements of", lambda: fd.gaussian(x.astype("float16"), 1))
    raises(ValueError, "compute_chunk_sizes", lambda: fd.gaussian(x[x > 0.5], 1))
    raises(TypeError, "not Array", lambda: fd.lazy(x))
    raises(fv.UsageError, "a table of this program is not known to dask's workers",
           lambda: fd.lazy(fv.join(fv.label(x > 1).measure(), {"label": [1]}, on="label")))


@test
def a_failing_chunk_is_told_with_its_reason(folder):
    def broken(block):
        if block.size:
            raise OSError("the disk is gone")
        return block
    lazy = fd.label(x_of(MASK).map_blocks(broken, dtype=bool, meta=np.empty((0, 0, 0), bool)))
    raises(OSError, "the disk is gone", lambda: lazy.compute(scheduler="synchronous"))
    same(fd.label(x_of(MASK)), fv.label(MASK).compute())


@test
def another_version_on_a_worker_is_told(folder):
    from fovea import _tasks
    x_of()
    spec = _tasks.Spec("0.0.9", "a = 1\n", (), (), None, ())
    raises(RuntimeError, "made by Fovea 0.0.9, and this process has", lambda: _tasks.Tasks(spec))


main()
