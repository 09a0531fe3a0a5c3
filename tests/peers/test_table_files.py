"""Tables that Fovea writes, as Python's csv and sqlite3 read them."""
import csv
import math
import os
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

TABLE = 'c = phantom("cells", [300, 300], seed = {seed})\nt = measure(label(c > 60), c)\n'


def read_csv(folder, name):
    with open(os.path.join(folder, name), newline="") as file:
        rows = list(csv.reader(file))
    return rows[0], rows[1:]


def read_sqlite(folder, name, table):
    with sqlite3.connect(os.path.join(folder, name)) as database:
        cursor = database.execute(f'SELECT * FROM "{table}"')
        return [column[0] for column in cursor.description], cursor.fetchall()


@test
def csv_and_sqlite_hold_the_same_numbers_to_the_last_bit(folder):
    sinks = 'write(t, "t.csv")\nwrite(t, "t.db")\nwrite(t, "u.sqlite", table = "cells of a dish")'
    run("run", "-e", TABLE.format(seed=1) + sinks, folder=folder)
    names, lines = read_csv(folder, "t.csv")
    for columns, rows in (read_sqlite(folder, "t.db", "t"), read_sqlite(folder, "u.sqlite", "cells of a dish")):
        assert columns == names and len(rows) == len(lines) > 20
        for row, line in zip(rows, lines):
            for value, text in zip(row, line):
                assert (text == "") if value is None else type(value)(text) == value, (value, text)
    assert all(math.isfinite(float(text)) for line in lines for text in line if text)


@test
def appended_results_stand_one_after_the_other_and_each_once(folder):
    sinks = 'write(t, "all.csv", append = true)\nwrite(t, "all.db", append = true)'
    for seed in (1, 2, 1, 2, 3):
        run("run", "-e", TABLE.format(seed=seed) + sinks, folder=folder)
    sizes = []
    for seed in (1, 2, 3):
        run("run", "-e", TABLE.format(seed=seed) + f'write(t, "{seed}.csv")', folder=folder)
        sizes.append(read_csv(folder, f"{seed}.csv")[1])
    expected = sum(sizes, [])
    assert read_csv(folder, "all.csv")[1] == expected
    rows = read_sqlite(folder, "all.db", "all")[1]
    assert [row[0] for row in rows] == [int(line[0]) for line in expected]


main()
