#!/usr/bin/env python3
"""Large graphs from Python: what costs more with each operator, and what must not."""
import pathlib
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import main, test  # noqa: E402

import fovea as fv  # noqa: E402


def chain(operators):
    """A chain of so many operators, half of them with neighbours."""
    x = fv.array(np.ones((16, 16), np.float32))
    for k in range(operators // 2):
        x = (x + k).gaussian(0.5)
    return x


def seconds(function):
    """Processor time."""
    began = time.process_time()
    function()
    return time.process_time() - began


@test
def a_thousand_operators_compute_what_numpy_does(folder):
    del folder
    x, expected = fv.array(np.full((8, 8), 3, np.float64)), np.full((8, 8), 3, np.float64)
    for k in range(500):
        x, expected = (x + k) * 0.5, (expected + k) * 0.5
    assert (x.compute() == expected).all()
    assert x.text().count("\n") == 1001


@test
def time_grows_with_the_operators_and_not_with_their_square(folder):
    del folder
    chain(100).plan()
    few, many = (min(seconds(lambda n=n: chain(n).plan()) for _ in range(3)) for n in (400, 3200))
    assert many < 50 * few, (few, many)  # 8 times the operators: 64 if it were the square


@test
def one_operator_of_many_types_is_typed_by_each(folder):
    del folder
    for dtype in np.uint8, np.float32, np.float64:
        for shape in (4, 5), (6,), (2, 3, 4):
            x = fv.array(np.ones(shape, dtype)).gaussian(1)
            assert x.shape == shape and x.dtype == (np.float64 if dtype == np.float64 else np.float32)
    mean = fv.array(np.ones((4, 4), np.float32)).mean()
    assert (fv.array(np.ones((3, 5), np.uint8)) - mean).shape == (3, 5)
    x = fv.array(np.ones((3, 5), np.float32))
    assert (x + x).shape == (3, 5) and (x - x.mean() + x.max()).shape == (3, 5)


main()
