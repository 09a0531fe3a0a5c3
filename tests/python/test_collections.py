#!/usr/bin/env python3
"""Collections in Python: what is one value of each item, and what is one value of all."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import main, raises, test  # noqa: E402

import fovea as fv  # noqa: E402


def collection(folder, shapes):
    for k, shape in enumerate(shapes):
        np.save(f"{folder}/i{k}.npy", np.full(shape, k + 1, np.float32))
    return fv.read(f"{folder}/i*.npy")


@test
def images_of_a_collection_are_no_single_array(folder):
    c = collection(folder, [(900, 900), (3, 3), (4, 4)]).gaussian(1)
    for compute in (c.compute, lambda: np.asarray(c), lambda: fv.compute(c.mean(), c)):
        raises(fv.UsageError, "an image of each of 3 items|together", compute)
    for count in (len, list):
        raises(TypeError, "no common length", lambda count=count: count(c))
    assert len(c.write(f"{folder}/out/{{stem}}.npy")) == 3


@test
def numbers_of_a_collection_are_a_table(folder):
    c = collection(folder, [(5, 5), (3, 3), (4, 4)])
    number = c.mean() + 1
    table = number.compute()
    assert number.items == 3 and table.columns[:2] == ("item", "path") and list(table)[2][0] == "i2"
    assert [row[-1] for row in table] == [2, 3, 4]
    for one in (float, int, np.asarray):
        raises(TypeError, "a number of each of 3 items", lambda one=one: one(number))
    assert float(fv.together(c.mean()).max()) == 3


@test
def one_value_of_all_items(folder):
    c = collection(folder, [(4, 5)] * 3)
    for one in (fv.fold(c, "mean"), c.fold(), fv.project(c, "item", "mean")):
        assert one.items == 0 and (one.compute() == 2).all() and one.shape == (4, 5)
    assert fv.together(c).shape == (3, 4, 5) and fv.together(c).axes[0] == "item"
    assert [row[-1] for row in c.filter("mean > 1").mean().compute()] == [2, 3]
    centred = c - fv.fold(c)
    assert centred.items == 3 and [row[-1] for row in centred.max().compute()] == [-1, 0, 1]
    raises(fv.UsageError, "one image", lambda: fv.fold(fv.array(np.ones((3, 3)))))
    raises(fv.UsageError, "axis", lambda: fv.project(c, "nothing", "mean"))


main()
