"""Tables as inputs of pipelines, beside Python's sqlite3, and the command sql on what comes out."""
import csv
import json
import math
import os
import pathlib
import random
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

ANIMALS = "id,weight\n1,100\n2,40\n3,80\n"
CELLS = "animal,type,anisotropy,volume\n1,cancer,0,1\n1,healthy,0.5,0.1\n2,cancer,0.5,0.95\n"


def put(folder, name, text):
    pathlib.Path(folder, name).write_text(text, encoding="utf-8")


def rows_of(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@test
def the_average_volume_of_cancer_cells_is_0_975(folder):
    put(folder, "animals.csv", ANIMALS)
    put(folder, "cells.csv", CELLS)
    done = run("sql", "--csv", "animals.csv", "cells.csv", "SELECT avg(volume) FROM cells WHERE type = 'cancer'", folder=folder)
    assert done.stdout == "avg(volume)\n0.975\n", done.stdout
    text = ('animals = read("animals.csv")\ncells = read("cells.csv")\nall = join(cells, animals, on="animal")\n'
            'write(all, "all.csv")\nwrite(group(filter(all, "type == \'cancer\'"), "type", "mean(volume)"), "mean.csv")')
    run("run", "-q", "-e", text, folder=folder)
    assert rows_of(folder, "all.csv") == [["animal", "type", "anisotropy", "volume", "weight"], ["1", "cancer", "0", "1", "100"],
                                          ["1", "healthy", "0.5", "0.1", "100"], ["2", "cancer", "0.5", "0.95", "40"]]
    assert rows_of(folder, "mean.csv") == [["type", "mean_volume"], ["cancer", "0.975"]]


def random_tables(folder, seed):
    """Two tables with duplicates, gaps and odd texts, as CSV files and in sqlite3."""
    rng = random.Random(seed)
    names = ["plain", "a,b", 'say "hi"', "two\nlines", "é", ""]
    left = [(rng.randrange(40), rng.choice(names), rng.choice([None, rng.gauss(0, 1)])) for _ in range(3000)]
    right = [(rng.randrange(50), rng.choice(names), rng.randrange(-5, 5)) for _ in range(60)]
    database = sqlite3.connect(":memory:")
    for name, columns, rows in (("a", "k, t, v", left), ("b", "k, t, n", right)):
        database.execute(f"CREATE TABLE {name} ({columns})")
        database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        with open(os.path.join(folder, name + ".csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(columns.split(", "))
            writer.writerows([["" if x is None else x for x in row] for row in rows])
    return database


def same(found, expected):
    if expected is None:
        return found == ""
    return found == expected if isinstance(expected, str) else math.isclose(float(found), expected, rel_tol=1e-12)


def compare(folder, database, pipeline, query):
    run("run", "-q", "--overwrite", "-e", f'a = read("a.csv")\nb = read("b.csv")\nwrite({pipeline}, "out.csv")', folder=folder)
    found, expected = rows_of(folder, "out.csv")[1:], database.execute(query).fetchall()
    assert len(found) == len(expected), (pipeline, len(found), len(expected))
    for mine, theirs in zip(found, expected):
        assert len(mine) == len(theirs) and all(map(same, mine, theirs)), (pipeline, mine, theirs)


@test
def filter_sort_join_and_group_equal_sqlite(folder):
    database = random_tables(folder, 1)
    for pipeline, query in (
        ("filter(a, \"t == 'a,b' & v > 0.5 | k <= 2\")", "SELECT * FROM a WHERE t = 'a,b' AND v > 0.5 OR k <= 2"),
        ("filter(a, \"t >= 'plain' & !(k / 2 < 7)\")", "SELECT * FROM a WHERE t >= 'plain' AND k / 2.0 >= 7"),
        ('sort(a, "t, -v, k")', "SELECT * FROM a ORDER BY t, v DESC NULLS LAST, k, rowid"),
        ('sort(b, "-n")', "SELECT * FROM b ORDER BY n DESC, rowid"),
        ('join(a, b, on = "k")', "SELECT a.*, b.t, n FROM a JOIN b ON a.k = b.k ORDER BY a.rowid, b.rowid"),
        ('join(a, b, on = "t = t", how = "left")',
         "SELECT a.*, b.k, n FROM a LEFT JOIN b ON a.t = b.t ORDER BY a.rowid, b.rowid"),
        ('join(a, filter(b, "n > 2"), on = "k", how = "left")',
         "SELECT a.*, c.t, n FROM a LEFT JOIN (SELECT rowid AS r, * FROM b WHERE n > 2) c ON a.k = c.k ORDER BY a.rowid, c.r"),
        ('group(a, "t", "count(), count(v) as there, sum(v), mean(v), min(v), max(k)")',
         "SELECT t, count(*), count(v), total(v), avg(v), min(v), max(k) FROM a GROUP BY t ORDER BY t"),
        ('group(a, "t")', "SELECT t, count(*) FROM a GROUP BY t ORDER BY t"),
        ('group(a, "k, t", "sum(k)")', "SELECT k, t, sum(k) FROM a GROUP BY k, t ORDER BY k, t"),
        ('group(filter(a, "k > 99"), "", "count(), mean(v), max(k)")', "SELECT count(*), avg(v), max(k) FROM a WHERE k > 99"),
        ('group(join(a, b, on = "k"), "n", "mean(v)")',
         "SELECT n, avg(v) FROM a JOIN b ON a.k = b.k GROUP BY n ORDER BY n"),
    ):
        compare(folder, database, pipeline, query)


@test
def tables_convert_into_each_other_and_back(folder):
    random_tables(folder, 2)
    for step, (source, target) in enumerate((("a.csv", "a.db"), ("a.db", "a.jsonl"), ("a.jsonl", "again.csv"))):
        run("convert", "-q", source, target, folder=folder)
        assert os.path.exists(os.path.join(folder, target)), step
    run("convert", "-q", "a.csv", "plain.csv", folder=folder)
    assert rows_of(folder, "again.csv") == rows_of(folder, "plain.csv")
    lines = pathlib.Path(folder, "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3000 and all(set(json.loads(line)) == {"k", "t", "v"} for line in lines)


@test
def measurements_meet_a_table_from_outside_and_labels_follow(folder):
    put(folder, "names.csv", "label,name\n1,first\n2,second\n4,fourth\n")
    text = ('image = phantom("cells", [200, 300], seed = 4)\nlabels = label(image > 60)\n'
            'named = join(measure(labels, image), read("names.csv"), on = "label")\nwrite(named, "named.csv")\n'
            'kept = keep(labels, named, "name != \'second\'")\nwrite(measure(kept), "kept.csv")')
    run("run", "-q", "-e", text, folder=folder)
    assert [row[-1] for row in rows_of(folder, "named.csv")] == ["name", "first", "second", "fourth"]
    assert [row[0] for row in rows_of(folder, "kept.csv")] == ["label", "1", "4"]


@test
def a_folder_of_tables_is_a_collection(folder):
    for name, first in (("a", 1), ("b", 10)):
        put(folder, f"part-{name}.csv", f"n,t\n{first},x\n{first + 1},y{first}\n")
    run("run", "-q", "-e", 'filter(read("part-*.csv"), "n > 1") |> write("all.csv")', folder=folder)
    assert rows_of(folder, "all.csv") == [["item", "path", "n", "t"], ["part-a", "part-a.csv", "2", "y1"],
                                          ["part-b", "part-b.csv", "10", "x"], ["part-b", "part-b.csv", "11", "y10"]]


@test
def numbers_become_rows(folder):
    text = ('a = phantom("noise", [20, 30])\none = row(1, mean(a), count(a > 0.5), names = "number, mean above")\n'
            'write(row(2, second = 0.25, third = 7, after = one, names = "number mean above"), "rows.csv")\n'
            'mean(a)\ncount(a > 0.5)\n')
    mean, count = run("run", "-q", "-e", text, folder=folder).stdout.split()
    names, first, last = rows_of(folder, "rows.csv")
    assert names == ["number", "mean", "above"] and last == ["2", "0.25", "7"], (names, last)
    assert (first[0], float(first[1]), first[2]) == ("1", float(mean), count), (first, mean, count)


@test
def mistakes_are_told_at_their_place(folder):
    put(folder, "cells.csv", CELLS)
    for text, words in (
        ('filter(cells, "typ == 1")', "did you mean type?"),
        ('filter(cells, "type == 1")', "only a number with a number and a text with a text"),
        ("filter(cells, \"type == 'x\")", "the closing quote is missing"),
        ('sort(cells, "volum")', "did you mean volume?"),
        ('sort(cells, "")', "by is empty"),
        ('join(cells, cells, on = "type = volume")', "text"),
        ('group(cells, "type", "mode(volume)")', "count, sum, mean, std, min, max"),
        ('group(cells, "type", "mean(type)")', "type is text"),
        ('group(cells, "type", "mean()")', "a column belongs into the brackets"),
        ("gaussian(cells, 2)", "must be an image, not a table"),
        ('row(1, second = 2, names = "a")', "must be 2 short words, one for each number"),
        ('row(1, second = 2, names = "a a")', "a is there twice"),
        ('row(1, third = 2, names = "a b")', "a gap between the numbers"),
        ('row(1, after = cells, names = "a")', "after must have the columns a, of the same kinds"),
        ('row(cells, names = "a")', "first must be a number or a scalar"),
    ):
        done = run("run", "-q", "-e", f'cells = read("cells.csv")\nwrite({text}, "out.csv")', folder=folder, code=2)
        assert words in done.stderr, (text, done.stderr)


@test
def a_second_table_larger_than_memory_is_joined_part_by_part(folder):
    """A text of 120 bytes in each of 300,000 rows is more than twice what is held at a time."""
    rng = random.Random(4)
    right = [(rng.randrange(200000), f"{k:06}" + "x" * 114) for k in range(300000)]
    left = [rng.randrange(400000) for _ in range(3000)] + [right[0][0], right[-1][0]]
    with open(os.path.join(folder, "right.csv"), "w", encoding="utf-8") as file:
        file.write("k,t\n" + "".join(f"{k},{t}\n" for k, t in right))
    with open(os.path.join(folder, "left.csv"), "w", encoding="utf-8") as file:
        file.write("n,k\n" + "".join(f"{n},{k}\n" for n, k in enumerate(left)))
    partners = {}
    for k, t in right:
        partners.setdefault(k, []).append(t)
    for how in ("inner", "left"):
        run("run", "--memory", "100M", "-e",
            f'join(read("left.csv"), read("right.csv"), on = "k", how = "{how}") |> write("joined-{how}.csv")', folder=folder)
        with open(os.path.join(folder, f"joined-{how}.csv"), newline="", encoding="utf-8") as file:
            found = [(int(row["n"]), int(row["k"]), row["t"]) for row in csv.DictReader(file)]
        none = [""] if how == "left" else []
        assert found == [(n, k, t) for n, k in enumerate(left) for t in partners.get(k, none)], how
    said = run("run", "-e", 'join(with(read("left.csv"), "j = k + 1000000"), read("right.csv"), on = "j = k")', folder=folder,
               code=1).stderr
    assert "no row has a partner" in said and str(right[0][0]) in said, said


@test
def columns_may_be_written_without_quotes(folder):
    pathlib.Path(folder, "t.csv").write_text("item,a,b\nx_1,3,2\ny_2,9,\n", encoding="utf-8")
    quoted = run("run", "-e", """with(read("t.csv"), "r = a / b, s = if(a > 5, 'large', 'small'), n = part(item, '_', 1)")""",
                 folder=folder).stdout
    plain = run("run", "-e", """read("t.csv") |> with(r = a / b,   # of this row
     s = if(a > 5, "large", 'small'), n = part(item, "_", 1))""", folder=folder).stdout
    assert plain == quoted and "1.5" in plain and "large" in plain, (plain, quoted)
    for text, words in (('with(read("t.csv"), r = c)', "no column c"), ('with(read("t.csv"), "r = a", s = 1)', "given twice"),
                        ('filter(read("t.csv"), a = 3)', "equality is written ==")):
        said = run("run", "-e", text, folder=folder, code=2).stderr
        assert words in said, said


main()
