#!/usr/bin/env python3
"""Tables in Python: columns, pandas, and Arrow's stream."""
import gc
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import Skip, main, test  # noqa: E402

import fovea as fv  # noqa: E402
from fovea import _arrow  # noqa: E402


def bubbles(folder):
    x = fv.phantom("cells", [96, 96], seed=3)
    return (x > x.otsu()).label().measure(x).compute(store=folder)


@test
def a_table_of_one_row_outlives_its_run(folder):
    del folder
    tables = [fv.array(np.full((9, 9 + k), 1, np.uint8)).label().measure().compute() for k in range(50)]
    fv.phantom("noise", [200, 200]).gaussian(1).compute()
    assert [int(t["voxels"][0]) for t in tables] == [9 * (9 + k) for k in range(50)]


@test
def columns_are_arrays(folder):
    t = bubbles(folder)
    assert t["label"].dtype == np.int64 and t["mean"].dtype == np.float64 and len(t) == len(t["label"]) > 3
    assert t["label"].tolist() == list(range(1, len(t) + 1))
    assert len(next(iter(t))) == len(t.columns) and set(dict(t)) == set(t.columns)
    try:
        t["volum"]
    except KeyError as error:
        assert "volume" in str(error)
    else:
        raise AssertionError("a column that is not there was found")


@test
def a_table_of_one_row_outlives_its_run(folder):
    tables = [fv.array(np.full((8, 8), k + 1)).measure(properties="voxels").compute() for k in range(50)]
    assert [list(t) for t in tables] == [[(k + 1, 64)] for k in range(50)]


@test
def texts_come_through(folder):
    folder = pathlib.Path(folder)
    (folder / "t.csv").write_text('name,size\n"Zürich, ""west""",3\nb<i>,4\n')
    t = fv.read_table(folder / "t.csv").compute(store=folder / "s")
    assert t["name"].tolist() == ['Zürich, "west"', "b<i>"] and t["size"].tolist() == [3, 4]
    html = t._repr_html_()
    assert "b&lt;i&gt;" in html and "<i>" not in html


@test
def pandas_takes_a_table(folder):
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise Skip("no pandas") from None
    t = bubbles(folder)
    frame = t.to_pandas()
    assert list(frame.columns) == list(t.columns) and (frame["voxels"].to_numpy() == t["voxels"]).all()


@test
def arrow_s_stream_holds_the_table(folder):
    """Read back through the interface itself, as a consumer does; nothing is held once it is released."""
    import ctypes as c
    pathlib.Path(folder, "t.csv").write_text("name,size,x\nalpha,3,0.5\nb,4,\n")
    t = fv.read_table(f"{folder}/t.csv").compute(store=f"{folder}/s")
    held = len(_arrow._alive)
    capsule = t.__arrow_c_stream__()
    stream = c.cast(_arrow._pointer(id(capsule), b"arrow_array_stream"), c.POINTER(_arrow.Stream))
    schema, array = _arrow.Schema(), _arrow.Array()
    assert stream.contents.get_schema(stream, c.byref(schema)) == 0 and schema.format == b"+s" and schema.n_children == 3
    names = [schema.children[k].contents.name for k in range(3)]
    assert names == [b"name", b"size", b"x"] and [schema.children[k].contents.format for k in range(3)] == [b"U", b"l", b"g"]
    assert stream.contents.get_next(stream, c.byref(array)) == 0 and array.length == 2
    offsets = c.cast(array.children[0].contents.buffers[1], c.POINTER(c.c_int64))
    assert offsets[:3] == [0, 5, 6] and c.string_at(array.children[0].contents.buffers[2], 6) == b"alphab"
    assert c.cast(array.children[1].contents.buffers[1], c.POINTER(c.c_int64))[:2] == [3, 4]
    array.release(c.byref(array))
    schema.release(c.byref(schema))
    end = _arrow.Array()
    assert stream.contents.get_next(stream, c.byref(end)) == 0 and not end.release
    del capsule
    gc.collect()
    assert len(_arrow._alive) == held, "memory of the stream is still held"


@test
def pyarrow_takes_a_table(folder):
    try:
        import pyarrow
    except ImportError:
        raise Skip("no pyarrow: Debian has none; pip install pyarrow") from None
    t = bubbles(folder)
    assert pyarrow.RecordBatchReader.from_stream(t).read_all()["mean"].to_pylist() == t["mean"].tolist()


@test
def a_notebook_shows_values(folder):
    x = fv.phantom("cells", [300, 200], seed=1)
    html = x._repr_html_()
    assert "data:image/png;base64," in html and "300 × 200" in html and "phantom" in html
    from fovea._notebook import thumbnail
    assert thumbnail(x)[1:4] == b"PNG" and thumbnail(fv.array(np.zeros((3, 4, 5)))) and thumbnail(fv.array(np.arange(5.)))


@test
def a_table_of_one_row_or_one_column_outlives_its_run(folder):
    """Its cells lie in the result's memory as numpy would have them, and were once taken without a copy."""
    row = fv.filter({"n": np.arange(5), "half": np.arange(5) / 2}, "n == 3").compute()
    column = fv.select({"n": np.arange(5000), "half": np.zeros(5000)}, "n").compute()
    for _ in range(50):
        fv.phantom("cells", [64, 64]).mean().compute()
    assert list(row) == [(3, 1.5)] and np.array_equal(column["n"], np.arange(5000))


main()
