#!/usr/bin/env python3
"""Functions of fovea.ndimage that are called again and again: what is kept ready is never seen in the results."""
import os
import pathlib
import sys
import threading
import warnings

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import main, test  # noqa: E402

import numpy as np  # noqa: E402
from scipy import ndimage as theirs  # noqa: E402

from fovea import _prepared  # noqa: E402
from fovea import ndimage as ours  # noqa: E402

RNG = np.random.default_rng(5)
CALLS = [  # function, type of the image, further arguments
    ("gaussian_filter", np.float32, (2,), {}), ("gaussian_filter", np.float64, ([1, 3],), {"mode": "wrap"}),
    ("gaussian_filter1d", np.float32, (2,), {"axis": 0}), ("uniform_filter", np.float32, (5,), {}),
    ("uniform_filter1d", np.float32, (4,), {}), ("correlate1d", np.float32, ([1, 2, 3, 2, 1],), {}),
    ("convolve", np.uint8, (np.full((3, 3), 0.125),), {}), ("sobel", np.float32, (), {"axis": 0}),
    ("laplace", np.float32, (), {}),
    ("median_filter", np.uint8, (3,), {}), ("maximum_filter", np.int16, ((3, 5),), {}), ("rank_filter", np.uint8, (2, 3), {}),
    ("grey_opening", np.uint8, (3,), {}), ("grey_dilation", np.uint8, (None, np.array([[0, 1, 0], [1, 1, 1]])), {}),
    ("binary_erosion", bool, (), {}), ("binary_dilation", np.uint8, (None, 2), {}),
    ("binary_closing", bool, (np.ones((3, 3)),), {}),
    ("binary_fill_holes", bool, (), {}), ("distance_transform_edt", bool, (), {}),
    ("distance_transform_cdt", bool, ("taxicab",), {}), ("distance_transform_cdt", np.uint8, (), {}), ("label", bool, (), {}),
    ("zoom", np.float32, (0.7,), {}), ("shift", np.float64, ((1.3, -2),), {}), ("spline_filter", np.float32, (), {}),
]


def image(dtype, shape=(30, 41)):
    values = RNG.random(shape)
    return (values > 0.4).astype(dtype) if dtype is bool else (values * 200).astype(dtype)


def same(a, b):
    a, b = (x[0] if isinstance(x, tuple) else x for x in (a, b))
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    if a.dtype.kind == "f":
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-3)
    else:
        np.testing.assert_array_equal(a, b)


@test
def every_call_gives_the_values_of_its_own_array(folder):
    for name, dtype, arguments, named in CALLS:
        found = []
        for _ in range(4):
            a = image(dtype)
            before = a.copy()
            found.append((getattr(ours, name)(a, *arguments, **named), getattr(theirs, name)(a, *arguments, **named)))
            np.testing.assert_array_equal(a, before)
        for a, b in found:  # only now: a later call must not write into what an earlier one gave
            same(a, b)


@test
def arrays_that_lie_in_another_way_are_taken_after_usual_ones(folder):
    a = image(np.float32, (60, 80))
    for b in (a[:30, :40].copy(), a[::2, ::2], a[:40, :30].T, a[29::-1, :40], a[:30, :40].astype(">f4"), a[:30, :40].tolist(),
              np.frombuffer(b"." + a[:30, :40].tobytes(), np.float32, offset=1).reshape(30, 40), a[:30, :40].copy()):
        np.testing.assert_allclose(ours.gaussian_filter(b, 2), theirs.gaussian_filter(b, 2), rtol=1e-5)
    read_only = a[:30, :40].copy()
    read_only.flags.writeable = False
    np.testing.assert_allclose(ours.gaussian_filter(read_only, 2), theirs.gaussian_filter(read_only, 2), rtol=1e-5)


@test
def what_is_wrong_is_told_each_time(folder):
    a, footprint = image(np.uint8), np.ones((3, 3))
    for _ in range(3):
        ours.maximum_filter(a, 3)
        for size in 3.5, 3.0, 0:
            try:
                ours.maximum_filter(a, size)
            except (TypeError, RuntimeError):
                continue
            raise AssertionError("nothing was told")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ours.median_filter(a, 3, footprint)
        assert [w.filename for w in told] == [__file__], told


@test
def a_given_output_is_filled_each_time(folder):
    for _ in range(3):
        a, out = image(np.uint8, (6, 7)), np.zeros((6, 7), np.uint8)
        assert ours.maximum_filter(a, 3, output=out) is out
        np.testing.assert_array_equal(out, theirs.maximum_filter(a, 3))
        np.testing.assert_array_equal(ours.maximum_filter(a, 3, output=float), theirs.maximum_filter(a, 3, output=float))
        ours.maximum_filter(a, 3, output=a)
        np.testing.assert_array_equal(a, out)


@test
def many_threads_make_the_same_call_at_once(folder):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            a = rng.random((50, 60)).astype(np.float32)
            for name, arguments in (("gaussian_filter", (2,)), ("maximum_filter", (5,)), ("binary_erosion", ())):
                if not np.allclose(getattr(ours, name)(a, *arguments), getattr(theirs, name)(a, *arguments), rtol=1e-5):
                    wrong.append(name)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


@test
def ten_thousand_calls_leave_nothing(folder):
    a = image(np.float32, (40, 40))

    def go(n):
        for _ in range(n):
            ours.gaussian_filter(a, 2)
    go(1000)
    before, files, threads = resident(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    go(10000)
    assert resident() - before < 2e6, resident() - before
    assert len(os.listdir("/proc/self/fd")) == files and len(os.listdir("/proc/self/task")) == threads


@test
def what_is_kept_ready_is_bounded(folder):
    """Of many shapes the oldest go; they are right when they come back."""
    first = image(np.float32, (100, 100))
    wanted = ours.gaussian_filter(first, 2)
    for n in range(60):
        ours.gaussian_filter(image(np.float32, (500, 450 + n)), 2)
    kept = [r for r in _prepared._ready.values() if r.idle]
    assert sum(r.nbytes for r in kept) <= _prepared.MOST_READY_BYTES and len(_prepared._ready) <= _prepared.MOST_READY
    assert len(kept) < 50
    for _ in range(2):
        np.testing.assert_array_equal(ours.gaussian_filter(first, 2), wanted)


@test
def a_fork_computes_with_what_its_parent_had_ready(folder):
    a = image(np.float32)
    wanted = ours.gaussian_filter(a, 2)
    for _ in range(3):
        child = os.fork()
        if not child:
            os._exit(not all(np.array_equal(ours.gaussian_filter(a, 2), wanted) for _ in range(3)))
        assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(ours.gaussian_filter(a, 2), wanted)


if __name__ == "__main__":
    main()
