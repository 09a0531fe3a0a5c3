"""Operators on tables beside pandas: computed columns, summaries, distinct rows, pivots, tables below one another, histograms."""
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

try:
    import numpy as np
    import pandas as pd
except ImportError:
    pd = None

NAMES = ["plain", "a,b", 'say "hi"', "two\nlines", "tab\there", "é", "wt_3_left", "ko_4"]


def frame_of(rows, seed):
    rng = random.Random(seed)
    return pd.DataFrame({
        "k": [rng.randrange(40) for _ in range(rows)],
        "t": [rng.choice(NAMES) for _ in range(rows)],
        "v": [rng.choice([float("nan"), rng.gauss(0, 1), rng.gauss(5, 2)]) for _ in range(rows)],
        "n": [rng.randrange(-5, 5) for _ in range(rows)],
    })


def made(folder, expression, *options, name="out.csv"):
    run("run", "-q", "--overwrite", *options, "-e", f'a = read("a.csv")\nb = read("b.csv")\nwrite({expression}, "{name}")',
        folder=folder)
    return pd.read_csv(os.path.join(folder, name), sep="\t" if name.endswith("tsv") else ",", float_precision="round_trip",
                       keep_default_na=False, na_values=[""])


def same(ours, theirs, exact=True):
    theirs = theirs.reset_index(drop=True)
    assert list(ours.columns) == list(theirs.columns), (list(ours.columns), list(theirs.columns))
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_exact=exact, rtol=1e-13)


def prepared(folder, rows=2000):
    if pd is None:
        raise Skip("pandas is not installed")
    a, b = frame_of(rows, 1), frame_of(50, 2)
    a.to_csv(os.path.join(folder, "a.csv"), index=False)
    b.rename(columns={"n": "m"}).to_csv(os.path.join(folder, "b.csv"), index=False)
    return a, b.rename(columns={"n": "m"})


@test
def computed_columns_equal_pandas(folder):
    a, _ = prepared(folder)
    ours = made(folder, "with(a, \"ratio = v / (n + 0.5), whole = k * n - 3, twice = whole * 2, big = v > 1 & n != 2, "
                        "root = sqrt(abs(v)) ** 2, top = max(k, n), side = if(n < 0, 'left', 'right'), "
                        "first = part(t, '_', 0), last = part(t, '_', -1), third = part(t, '_', 2), bytes = length(t)\")")
    t = a.t.str.split("_")
    same(ours, a.assign(
        ratio=a.v / (a.n + 0.5), whole=a.k * a.n - 3, twice=(a.k * a.n - 3) * 2, big=((a.v > 1) & (a.n != 2)).astype(int),
        root=np.sqrt(a.v.abs()) ** 2, top=np.maximum(a.k, a.n), side=np.where(a.n < 0, "left", "right"), first=t.str[0],
        last=t.str[-1], third=t.str[2], bytes=a.t.map(lambda x: len(x.encode()))), exact=False)
    kinds = {c: ours[c].dtype.kind for c in ("whole", "twice", "big", "top", "bytes")}
    assert set(kinds.values()) == {"i"}, kinds


@test
def summaries_of_groups_equal_pandas(folder):
    a, _ = prepared(folder)
    ours = made(folder, 'group(a, "t", "count(v) as c, sum(n) as s, mean(v) as m, std(v) as d, median(v) as h, quantile(v, 0.9) '
                        'as q, count_distinct(n) as x, first(v) as f, last(k) as l, count_distinct(t), first(t) as w")')
    g = a.groupby("t")
    theirs = pd.DataFrame({"c": g.v.count(), "s": g.n.sum(), "m": g.v.mean(), "d": g.v.std(ddof=0), "h": g.v.median(),
                           "q": g.v.quantile(0.9), "x": g.n.nunique(), "f": g.v.first(), "l": g.k.last(),
                           "count_distinct_t": g.t.nunique(), "w": g.t.first()})
    theirs = theirs.sort_index(key=lambda i: i.map(lambda x: x.encode())).reset_index()
    same(ours, theirs, exact=False)
    same(made(folder, 'group(a, "t", "median(v) as h, first(v) as f")')[["h", "f"]], theirs[["h", "f"]])
    empty = made(folder, 'group(filter(a, "k > 99"), "", "count(), median(v), count_distinct(n), first(n), first(t)")')
    assert empty.iloc[0, :1].tolist() == [0] and empty.iloc[0, 1:].isna().tolist() == [True, False, True, True], empty


@test
def rows_and_columns_are_chosen_as_by_pandas(folder):
    a, b = prepared(folder)
    same(made(folder, 'distinct(a, "t, n")'), a.drop_duplicates(["t", "n"]))
    same(made(folder, 'distinct(select(a, "n, t"))'), a[["n", "t"]].drop_duplicates())
    same(made(folder, 'select(a, "v, k as key")'), a[["v", "k"]].rename(columns={"k": "key"}))
    same(made(folder, "top(a, 7)"), a.head(7))
    same(made(folder, 'top(a, 30, by = "-v")'), a.nlargest(30, "v"))
    same(made(folder, 'concat(a, b, select(b, "t, m as n"))'), pd.concat([a, b, b[["t", "m"]].rename(columns={"m": "n"})]))
    same(made(folder, 'concat(a, a)', name="out.tsv"), pd.concat([a, a]))


@test
def pivots_equal_pandas(folder):
    a, _ = prepared(folder)
    numbers = ", ".join(str(n) for n in range(-5, 5))
    ours = made(folder, f'pivot(group(a, "k, n", "mean(v) as v"), "k", "n", "v", "{numbers}")')
    theirs = a.pivot_table(index="k", columns="n", values="v", aggfunc="mean")
    theirs.columns = [f"v_{n}" for n in theirs.columns]
    same(ours, theirs.reset_index(), exact=False)
    twice = run("run", "-q", "-e", 'a = read("a.csv")\npivot(a, "k", "n", "v", "1") |> write("x.csv")', folder=folder, code=None)
    assert twice.returncode and "names does not list" in twice.stderr, twice.stderr
    twice = run("run", "-q", "-e", f'a = read("a.csv")\npivot(a, "k", "n", "v", "{numbers}") |> write("x.csv")', folder=folder,
                code=None)
    assert twice.returncode and "make one of them with group" in twice.stderr, twice.stderr


@test
def histograms_of_columns_equal_numpy(folder):
    a, _ = prepared(folder)
    for column, options, arguments in (("v", "", {}), ("n", ", bins = 3", {"bins": 3}),
                                       ("v", ", bins = 7, range = [-1, 1.5]", {"bins": 7, "range": (-1, 1.5)})):
        ours = made(folder, f'column_histogram(a, "{column}"{options})')
        counts, edges = np.histogram(a[column].dropna(), **arguments)
        assert ours["count"].tolist() == counts.tolist(), (column, options)
        assert ours.low.tolist() == edges[:-1].tolist() and ours.high.tolist() == edges[1:].tolist(), (column, options)


@test
def tables_larger_than_a_run_are_sorted_on_disk(folder):
    a, _ = prepared(folder, 150000)
    a = pd.read_csv(os.path.join(folder, "a.csv"), float_precision="round_trip")
    little = ("--memory", "60M")
    same(made(folder, 'sort(a, "-n, t, v")', *little),
         a.assign(o=a.t.map(lambda x: x.encode())).sort_values(["n", "o", "v"], ascending=[False, True, True],
                                                               kind="stable").drop(columns="o"))
    same(made(folder, 'group(a, "k, n", "median(v), count_distinct(t)")', *little)[["median_v", "count_distinct_t"]],
         a.groupby(["k", "n"]).agg(median_v=("v", "median"), count_distinct_t=("t", "nunique")))
    same(made(folder, 'distinct(a, "v")', *little), a.drop_duplicates("v"))


@test
def tab_separated_files_are_written_and_read(folder):
    a, _ = prepared(folder, 50)
    run("convert", "-q", "a.csv", "a.tsv", folder=folder)
    lines = pathlib.Path(folder, "a.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "k\tt\tv\tn", lines[0]
    same(pd.read_csv(os.path.join(folder, "a.tsv"), sep="\t", float_precision="round_trip"), a)
    run("convert", "-q", "a.tsv", "again.csv", folder=folder)
    run("convert", "-q", "a.csv", "plain.csv", folder=folder)
    assert pathlib.Path(folder, "again.csv").read_bytes() == pathlib.Path(folder, "plain.csv").read_bytes()
    for _ in range(2):
        run("run", "-q", "-e", 'write(read("a.tsv"), "more.tsv", append = true)', folder=folder)
    assert len(pathlib.Path(folder, "more.tsv").read_text().splitlines()) == len(lines)


@test
def a_part_of_the_name_groups_a_collection(folder):
    for name, level in (("wt_1", 60), ("wt_2", 70), ("ko_1", 80)):
        run("run", "-q", "-e", f'write(phantom("cells", [64, 64], seed = {level}), "dish/{name}.tif")', folder=folder)
    text = ('c = read("dish/*.tif")\ncells = measure(label(c > 60), c)\n'
            'write(with(cells, "strain = part(item, \'_\', 0)"), "all.csv")\n'
            'write(group(with(cells, "strain = part(item, \'_\', 0)"), "strain", "count(), median(mean)"), "strains.csv")')
    run("run", "-q", "-e", text, folder=folder)
    cells, strains = (pd.read_csv(os.path.join(folder, name)) for name in ("all.csv", "strains.csv"))
    theirs = cells.groupby("strain").agg(count=("label", "size"), median_mean=("mean", "median")).reset_index()
    assert set(cells.strain) == {"wt", "ko"}
    same(strains, theirs)


@test
def mistakes_are_told_in_a_sentence(folder):
    prepared(folder, 5)
    for text, words in (
        ('with(a, "x")', "a name and = belong here"),
        ('with(a, "v = 1")', "has a column of this name already"),
        ('with(a, "x = vv + 1")', "did you mean v?"),
        ('with(a, "x = sin(v)")', "there is no such function; there are sqrt"),
        ('with(a, "x = part(v, 1, 2)")', "a text belongs here"),
        ('with(a, "x = 1 y = 2")', "a comma belongs between two columns"),
        ('group(a, "t", "quantile(v)")', "quantile(volume, 0.9)"),
        ('group(a, "t", "quantile(v, 2)")', "a number from 0 to 1"),
        ('group(a, "t", "median(t)")', "t is text"),
        ('group(a, "t", "mode(v)")', "first or last belongs here"),
        ('concat(a, select(a, "t as v"))', "column v is text here and numbers in a table before it"),
        ('select(a, "k, k")', "k is there twice"),
        ('select(a, "k of x")', "neither a column nor like volume as size"),
        ('pivot(a, "k", "n", "v", "1, x")', "x\" is no number"),
        ('column_histogram(a, "t")', "counts its values"),
        ('top(a, 0)', "count"),
    ):
        done = run("run", "-q", "-e", f'a = read("a.csv")\nwrite({text}, "out.csv")', folder=folder, code=2)
        assert words in done.stderr, (text, done.stderr)


main()
