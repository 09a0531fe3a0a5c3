#!/usr/bin/env python3
"""Tables of the program as inputs: pandas, pyarrow, dictionaries, computed tables; types, missing cells, bad ones."""
import glob
import os
import pathlib
import sys
import tempfile

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import main, test  # noqa: E402

import fovea as fv  # noqa: E402

CELLS = (fv.phantom("cells", [64, 64], seed=1).gaussian(1) > 60).label()
COLUMNS = {"label": [1, 2, 3], "who": ["ada", 'b "quoted"', None], "weight": [1.5, float("nan"), 2.0]}


@test
def a_data_frame_is_joined_to_a_measurement(folder):
    import pandas
    frame = pandas.DataFrame(COLUMNS)
    joined = fv.join(CELLS.measure(properties="voxels"), frame, on="label").compute()
    assert joined.columns == ("label", "voxels", "who", "weight") and len(joined) == min(3, int(CELLS.max()))
    assert list(joined["who"][:2]) == ["ada", 'b "quoted"'] and joined["weight"][0] == 1.5 and np.isnan(joined["weight"][1])


@test
def whatever_is_like_a_table_is_one(folder):
    import pandas
    same = fv.table(COLUMNS).compute()
    assert [c.dtype.kind for c in same._columns] == ["i", "O", "f"]
    records = np.array([(1, "a"), (2, "b")], [("label", int), ("who", "U8")])
    for given, rows in ((pandas.DataFrame(COLUMNS), 3), (records, 2), (same, 3), (fv.table(COLUMNS), 3)):
        got = fv.filter(given, "label > 1").compute()
        assert list(got["label"]) == list(range(2, rows + 1)), got
    days = fv.table({"day": np.array(["2026-01-02", "NaT"], "datetime64[D]"), "ok": [True, False]}).compute()
    assert list(days["day"]) == ["2026-01-02", None] and list(days["ok"]) == [1, 0]
    text = fv.table({"id": ["001", "02"]}).compute()
    assert list(text["id"]) == ["001", "02"], "texts of digits stay texts"


@test
def the_text_of_a_pipeline_names_a_file_instead(folder):
    text = fv.filter(COLUMNS, "label > 1").text()
    assert 'table1 = read("table1.csv")' in text and "sqlite" not in text, text


@test
def nothing_is_left_behind(folder):
    before = set(glob.glob(os.path.join(tempfile.gettempdir(), "fovea-*.sqlite")))
    fv.filter(COLUMNS, "label > 1").compute()
    assert not set(glob.glob(os.path.join(tempfile.gettempdir(), "fovea-*.sqlite"))) - before


@test
def bad_tables_are_refused(folder):
    for bad, word in (({"a": [1], "b": [1, 2]}, "lengths"), ({}, "at least one column"), (3, "no table"),
                      ({"a": np.zeros((2, 2))}, "one axis")):
        try:
            fv.table(bad)
        except (TypeError, ValueError) as error:
            assert word in str(error), (bad, error)
        else:
            raise AssertionError(f"{bad} was taken")


main()
