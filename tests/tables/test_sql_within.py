"""fovea sql --within: counts, sums and means of a table from a random part of its rows."""
import csv
import json
import pathlib
import sqlite3
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

QUERY = "SELECT type, count(*) AS n, avg(volume) AS v, sum(volume) AS total FROM cells WHERE volume > 1 GROUP BY type"


def make(folder, rows=60000):
    numbers = np.random.default_rng(4)
    types = numbers.choice(["a", "b", "c"], rows, p=[0.2, 0.5, 0.3])
    volumes = np.exp(numbers.normal(1, 0.6, rows)) * (1 + np.arange(rows) / rows)  # grows from row to row
    with sqlite3.connect(pathlib.Path(folder, "data.db")) as database:
        database.execute("CREATE TABLE cells (type TEXT, volume REAL, day INTEGER)")
        database.executemany("INSERT INTO cells VALUES (?, ?, ?)",
                             zip(types.tolist(), volumes.tolist(), (np.arange(rows) % 7).tolist()))
    return types, volumes


def ask(folder, *words):
    return json.loads(run("sql", "--json", *words, folder=folder).stdout)


@test
def intervals_hold_what_the_whole_table_says(folder):
    make(folder)
    exact = {row["type"]: row for row in ask(folder, "data.db", QUERY)}
    found = ask(folder, "--within-error", "10%", "--joint", "data.db", QUERY)
    assert [row["type"] for row in found] == ["a", "b", "c"], found
    for row in found:
        assert row["seen"] < row["blocks"], row
        for name in ("n", "v", "total"):
            assert row[name + "_low"] <= exact[row["type"]][name] <= row[name + "_high"], (row, exact)
            assert max(row[name + "_high"] - row[name], row[name] - row[name + "_low"]) <= 0.1001 * row[name], row
    [row] = ask(folder, "--within", "60s", "data.db", "SELECT count(*), avg(volume) FROM cells;")
    [whole] = ask(folder, "data.db", "SELECT count(*), avg(volume) FROM cells")
    assert row["method"] == "all rows" and row["count(*)"] == whole["count(*)"], row
    assert abs(row["avg(volume)"] / whole["avg(volume)"] - 1) < 1e-12, (row, whole)


@test
def numbers_that_make_groups_stay_numbers_and_the_order_is_kept(folder):
    make(folder)
    found = ask(folder, "--within-error", "20%", "data.db",
                "SELECT day, count(*) AS n FROM cells WHERE type = 'b' GROUP BY day ORDER BY day DESC LIMIT 3")
    assert [row["day"] for row in found] == [6, 5, 4], found


@test
def groups_and_their_order_go_by_name_text_or_place(folder):
    make(folder, 20000)
    named = "SELECT type AS t, day, count(*) AS n FROM cells GROUP BY {} ORDER BY {} DESC, t LIMIT 4"
    ways = [ask(folder, "--within-error", "40%", "data.db", named.format(*way))
            for way in (("t, day", "n"), ("1, 2", "3"), ("type, day", "count(*)"), ("day, type", "N"))]
    assert all(way == ways[0] for way in ways) and len(ways[0]) == 4, ways
    counts = [row["n"] for row in ways[0]]
    assert counts == sorted(counts, reverse=True) and ways[0][0]["seen"] < ways[0][0]["blocks"], ways[0]
    with sqlite3.connect(pathlib.Path(folder, "close.db")) as database:
        database.execute("CREATE TABLE close (x REAL)")
        database.executemany("INSERT INTO close VALUES (?)", [(0.3,), (0.1 + 0.2,), (0.3,), (float("inf"),)])
    whole = ask(folder, "--within", "60s", "close.db", "SELECT x, count(*) AS n FROM close GROUP BY x")
    assert [row["n"] for row in whole] == [2, 1, 1], whole  # numbers that differ in their last digits are different groups


@test
def parts_of_a_table_whose_rows_are_in_order_are_strata(folder):
    numbers = np.random.default_rng(3)
    item = np.repeat(np.arange(32), 1000)
    volume = 100 * (1 + item % 8) + numbers.normal(0, 20, item.size)
    with sqlite3.connect(pathlib.Path(folder, "data.db")) as database:
        for name, order in (("ordered", np.arange(item.size)), ("mixed", numbers.permutation(item.size // 64))):
            rows = order if name == "ordered" else (order[:, None] * 64 + np.arange(64)).ravel()
            database.execute(f"CREATE TABLE {name} (item INTEGER, volume REAL)")
            database.executemany(f"INSERT INTO {name} VALUES (?, ?)", zip(item[rows].tolist(), volume[rows].tolist()))
    ways = {name: ask(folder, "--within-error", "2%", "data.db", f"SELECT avg(volume) AS v FROM {name}")[0]
            for name in ("ordered", "mixed")}
    assert ways["ordered"]["method"] == "stratified" and ways["mixed"]["method"] != "stratified", ways
    assert ways["ordered"]["seen"] < ways["mixed"]["seen"], ways
    assert all(way["v_low"] <= volume.mean() <= way["v_high"] for way in ways.values()), (ways, volume.mean())


@test
def no_rows_are_a_row_as_in_sql(folder):
    make(folder, 1000)
    with sqlite3.connect(pathlib.Path(folder, "none.db")) as database:
        database.execute("CREATE TABLE none (volume REAL)")
    for file, table in (("data.db", "cells WHERE volume < 0"), ("none.db", "none")):
        query = f"SELECT count(*) AS n, avg(volume) AS v, sum(volume) AS s FROM {table}"
        [row], exact = ask(folder, "--within-error", "5%", file, query), ask(folder, file, query)
        assert [{name: row[name] for name in "nvs"}] == exact, (row, exact)


@test
def csv_and_the_stem_of_a_database_work_too(folder):
    types, volumes = make(folder, 5000)
    with open(pathlib.Path(folder, "cells.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("type", "volume"), *zip(types, volumes)])
    for name, table in (("cells.csv", "cells"), ("data.db", "data")):
        [row] = ask(folder, "--within-error", "10%", name, f"SELECT avg(volume) AS v FROM {table}")
        assert row["v_low"] <= row["v"] <= row["v_high"] and abs(row["v"] / volumes.mean() - 1) < 0.3, row


@test
def what_cannot_be_estimated_is_refused(folder):
    make(folder, 1000)
    for query, *words in (("SELECT max(volume) FROM cells", "max(volume)"), ("SELECT avg(volume) + 1 FROM cells", "computed"),
                          ("SELECT count(DISTINCT type) FROM cells", "other values"),
                          ("SELECT type FROM cells", "nothing to count"),
                          ("SELECT type, avg(volume) FROM cells", "GROUP BY"), ("SELECT avg(volume) FROM nowhere", "nowhere"),
                          ("SELECT count(*) FROM cells GROUP BY type", "type: ", "behind SELECT"),
                          ("SELECT type, day, count(*) FROM cells GROUP BY type", "behind GROUP BY"),
                          ("SELECT avg(a.volume) FROM cells a JOIN cells b", "more than sums"),
                          ("SELECT count(*) FROM cells, cells AS other", "one table")):
        text = run("sql", "--within", "1s", "data.db", query, folder=folder, code=2).stderr
        assert all(word in text for word in words), (query, text)
    for bad in (("--within", "soon"), ("--within-error", "0"), ("--within", "1s", "--within-error", "1%")):
        assert "--within" in run("sql", *bad, "data.db", "SELECT count(*) FROM cells", folder=folder, code=2).stderr


main()
