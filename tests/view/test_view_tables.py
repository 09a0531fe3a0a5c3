"""Tables in `fovea view`: rows, order, conditions, histograms and objects are what pandas and numpy say."""
import pathlib
import sys

import numpy
import pandas

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test
from view_client import View

RANDOM = numpy.random.default_rng(3)


def table(folder, rows=500):
    frame = pandas.DataFrame({"label": numpy.arange(1, rows + 1), "volume": RANDOM.normal(100, 30, rows).round(3),
                              "kind": RANDOM.choice(["round", "Long", "a:b \"odd\" <b>"], rows),
                              "count": RANDOM.integers(0, 9, rows)})
    frame.loc[5, "volume"] = numpy.nan
    frame.to_csv(pathlib.Path(folder) / "t.csv", index=False)
    return frame


def as_rows(frame):
    return [[None if isinstance(cell, float) and numpy.isnan(cell) else cell for cell in row]
            for row in frame.itertuples(index=False, name=None)]


@test
def rows_come_in_the_order_that_is_asked_for(folder):
    frame = table(folder)
    with View("t.csv", folder=folder) as view:
        [told] = view.json("/api/session")["tables"]
        assert told["rows"] == 500 and told["label_column"] == "label" and told["labels"] is None, told
        assert [(c["name"], c["type"]) for c in told["columns"]] == [("label", "integer"), ("volume", "real"), ("kind", "text"),
                                                                     ("count", "integer")]
        got = view.json("/api/rows", table=0, offset=10, limit=20)
        assert got == {"total": 500, "rows": as_rows(frame[10:30])}
        for down in (0, 1):
            ordered = frame.sort_values(["volume", "label"], ascending=not down, na_position="last" if down else "first")
            got = view.json("/api/rows", table=0, sort="volume", desc=down, limit=500)
            assert got["rows"] == as_rows(ordered), down
            ordered = frame.sort_values(["count", "label"], ascending=not down)
            for label in (1, 6, 77, 500):
                row = view.json("/api/row", table=0, label=label, sort="count", desc=down)
                assert row["index"] == list(ordered["label"]).index(label) and row["row"] == as_rows(frame[label - 1:label])[0]
            ordered = frame.sort_values(["volume", "label"], ascending=not down, na_position="last" if down else "first")
            for label in (1, 6, 7, 500):
                row = view.json("/api/row", table=0, label=label, sort="volume", desc=down)
                assert row["index"] == list(ordered["label"]).index(label)
        assert view.json("/api/row", table=0, label=9)["index"] == 8
        assert "no row of label" in view.json("/api/row", status=404, table=0, label=999)["error"]


@test
def conditions_choose_rows(folder):
    frame = table(folder)
    with View("t.csv", folder=folder) as view:
        cases = [(["volume:90:110"], frame.volume.between(90, 110)), (["volume::80"], frame.volume <= 80),
                 (["count:3:"], frame["count"] >= 3), (["kind:long:"], frame.kind == "Long"),
                 (["volume:90:", "count:2:4"], (frame.volume >= 90) & frame["count"].between(2, 4)),
                 (["kind:\"ODD\":", "count:1:1"], (frame.kind.str.len() > 6) & (frame["count"] == 1))]
        for where, expected in cases:
            chosen = frame[expected]
            got = view.json("/api/rows", table=0, where=where, limit=1000)
            assert got == {"total": len(chosen), "rows": as_rows(chosen)}, where
            ids = view.json("/api/rows", table=0, where=where, ids=1)
            assert ids == {"total": len(chosen), "labels": chosen.label.tolist()}, where
        hidden = frame[~frame.volume.between(90, 110)].label.iloc[0]
        assert view.json("/api/row", table=0, label=hidden, where="volume:90:110")["index"] == -1
        for where in ("volume", "volume:1", "nothing:1:2", "volume:a:b", "volume:1:2;DROP TABLE t", "x' OR 1=1:1:2"):
            view.json("/api/rows", status=400, table=0, where=where)
        assert view.json("/api/rows", table=0)["total"] == 500


@test
def histograms_scatter_and_values_are_those_of_the_columns(folder):
    frame = table(folder)
    with View("t.csv", folder=folder) as view:
        for column in ("volume", "count"):
            values = frame[column].dropna()
            got = view.json("/api/column", table=0, column=column, bins=20)
            assert numpy.allclose(got["edges"], [values.min(), values.max()])
            assert abs(numpy.array(got["counts"]) - numpy.histogram(values, 20)[0]).sum() <= 2
            assert sum(got["counts"]) == len(values)
        part = view.json("/api/column", table=0, column="volume", bins=20, where="count:0:3")
        assert sum(part["counts"]) == frame[frame["count"] <= 3].volume.notna().sum()
        assert "holds texts" in view.json("/api/column", status=400, table=0, column="kind")["error"]
        points = view.json("/api/scatter", table=0, x="volume", y="count")
        assert points["y"] == frame["count"].tolist() and points["label"] == frame.label.tolist() and points["x"][5] is None
        few = view.json("/api/scatter", table=0, x="volume", y="count", limit=50)
        assert 25 <= len(few["x"]) <= 50 and few["total"] == 500
        values = view.json("/api/labels-values", table=0, column="count")
        assert values == {"labels": frame.label.tolist(), "values": frame["count"].tolist()}


@test
def every_table_format_is_shown(folder):
    frame = table(folder)[["label", "volume", "count"]]
    run("run", "-q", "-e", 't = read_table("t.csv") |> select("label, volume, count")\nwrite(t, "t.db")\nwrite(t, "t.tsv")\n'
        'write(t, "t.jsonl")', folder=folder)
    names = ["t.db", "t.tsv", "t.jsonl"]
    with View(*names, folder=folder) as view:
        for number, name in enumerate(names):
            got = view.json("/api/rows", table=number, limit=1000)
            assert got == {"total": 500, "rows": as_rows(frame)}, name


@test
def objects_are_found_with_and_without_a_table(folder):
    labels = numpy.zeros((20, 40, 50), numpy.int32)
    labels[3:6, 10:15, 20:22] = 4
    labels[10:12, 5, 7] = 9
    numpy.save(pathlib.Path(folder) / "l.npy", labels)
    run("run", "-q", "-e", 'write(measure(read("l.npy")), "m.csv")', folder=folder)
    numpy.save(pathlib.Path(folder) / "a.npy", labels.astype(numpy.uint8))
    for more in ((), ("--table", "m.csv")):
        with View("a.npy", "--labels", "l.npy", *more, folder=folder) as view:
            session = view.json("/api/session")
            assert [image["role"] for image in session["images"]] == ["image", "labels"]
            assert [entry["labels"] for entry in session["tables"]] == [1] * len(session["tables"])
            assert view.json("/api/object", image=1, label=4) == {"first": [3, 10, 20], "box": [[3, 6], [10, 15], [20, 22]]}
            assert view.json("/api/object", image=1, label=9)["box"] == [[10, 12], [5, 6], [7, 8]]
            assert "no object of label 5" in view.json("/api/object", status=404, image=1, label=5)["error"]
            assert view.json("/api/value", image=1, z=3, y=10, x=20)["label"] == 4


@test
def a_large_table_keeps_its_order(folder):
    rows = 200000
    frame = pandas.DataFrame({"label": numpy.arange(1, rows + 1), "x": RANDOM.normal(size=rows)})
    frame.to_csv(pathlib.Path(folder) / "t.csv", index=False)
    ordered = frame.sort_values(["x", "label"])
    with View("t.csv", folder=folder) as view:
        for offset in (0, 123456, rows - 100):
            got = view.json("/api/rows", table=0, sort="x", offset=offset, limit=100)
            assert [row[0] for row in got["rows"]] == ordered.label[offset:offset + 100].tolist()
        assert len(view.json("/api/rows", table=0, ids=1, where="x:0:")["labels"]) == (frame.x >= 0).sum()
        assert len(view.json("/api/scatter", table=0, x="label", y="x")["x"]) <= 20000


if __name__ == "__main__":
    main()
