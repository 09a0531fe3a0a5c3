"""plot(): marks equal to what NumPy computes, pictures that are small and right, and the same whatever the engine."""
import csv
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

CELLS = 'image = phantom("cells", [300, 300]); t = measure(label(gaussian(image, 1) > 60), image); '


def numpy():
    try:
        import numpy
        return numpy
    except ImportError:
        raise Skip("no NumPy here") from None


def write_csv(folder, name, columns, rows):
    with open(pathlib.Path(folder, name), "w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def marks(folder, call):
    run("run", "-q", "--overwrite", "-e", f'{call} |> write("marks.csv")', folder=folder)
    with open(pathlib.Path(folder, "marks.csv")) as file:
        return [m for m in csv.DictReader(file) if m["mark"] != "series"]


def svg(folder, call, name="p.svg"):
    """The texts of a picture."""
    run("run", "-q", "--overwrite", "-e", f'{call} |> write("{name}")', folder=folder)
    root = xml.etree.ElementTree.parse(pathlib.Path(folder, name)).getroot()
    return ["".join(e.itertext()) for e in root.iter() if e.tag.endswith("text")]


def some_rows(np, count=300):
    random = np.random.default_rng(7)
    groups = [f"g{i % 3}" for i in range(count)]
    return groups, random.normal(5, 2, count), random.lognormal(1, 1, count)


@test
def boxes_are_quartiles_and_whiskers_of_numpy(folder):
    np = numpy()
    groups, a, b = some_rows(np)
    write_csv(folder, "t.csv", ["group", "a", "b"], zip(groups, a, b))
    found = marks(folder, 'plot(read("t.csv"), x = "group", y = "b")')
    for name in ("g0", "g1", "g2"):
        values = np.sort([v for g, v in zip(groups, b) if g == name])
        q1, median, q3 = np.quantile(values, [0.25, 0.5, 0.75])
        own = [m for m in found if m["x_name"] == name]
        box = next(m for m in own if m["mark"] == "box")
        assert np.allclose([float(box[k]) for k in ("from", "y", "to", "value")], [q1, median, q3, len(values)]), box
        whisker = next(m for m in own if m["mark"] == "whisker")
        inside = values[(values >= q1 - 1.5 * (q3 - q1)) & (values <= q3 + 1.5 * (q3 - q1))]
        assert np.allclose([float(whisker["from"]), float(whisker["to"])], [inside[0], inside[-1]]), whisker
        outliers = sorted(float(m["y"]) for m in own if m["mark"] == "point")
        assert len(outliers) == len(values) - len(inside) and all(o not in inside for o in outliers), own


@test
def histograms_lines_and_bars_are_those_of_numpy(folder):
    np = numpy()
    groups, a, b = some_rows(np)
    write_csv(folder, "t.csv", ["group", "a", "b"], zip(groups, a, b))
    bins = marks(folder, 'plot(read("t.csv"), x = "a", bins = 12)')
    assert [int(float(m["y"])) for m in bins] == list(np.histogram(a, 12)[0])
    several = marks(folder, 'plot(read("t.csv"), x = "a", by = "group", bins = 12)')
    assert len(several) == 36 and sum(float(m["y"]) for m in several) == len(a)
    bars = marks(folder, 'plot(read("t.csv"), x = "group", y = "a", kind = "bar")')
    for m in bars:
        own = np.array([v for g, v in zip(groups, a) if g == m["x_name"]])
        assert np.allclose([float(m["y"]), float(m["to"]) - float(m["y"])], [own.mean(), own.std(ddof=1)]), m
    counted = marks(folder, 'plot(read("t.csv"), x = "group", kind = "bar")')
    assert [float(m["y"]) for m in counted] == [100, 100, 100]
    write_csv(folder, "l.csv", ["x", "y"], [(3, 1), (1, 5), (2, 2), (2, 4)])
    line = marks(folder, 'plot(read("l.csv"), x = "x", y = "y", kind = "line")')
    assert [(float(m["x"]), float(m["y"])) for m in line] == [(1, 5), (2, 3), (3, 1)]
    assert np.isclose(float(line[1]["to"]) - 3, 2 ** 0.5)
    heat = marks(folder, 'plot(read("l.csv"), x = "x", y = "y", kind = "heatmap")')
    assert [(m["x_name"], m["y_name"], float(m["value"])) for m in heat] == [
        ("3", "1", 1), ("2", "2", 1), ("2", "4", 1), ("1", "5", 1)]


@test
def violins_are_densities_within_the_values(folder):
    np = numpy()
    groups, a, b = some_rows(np)
    write_csv(folder, "t.csv", ["group", "a", "b"], zip(groups, a, b))
    for log, values in (("none", b), ("y", b)):
        found = marks(folder, f'plot(read("t.csv"), y = "b", kind = "violin", log = "{log}")')
        found = [m for m in found if m["mark"] == "density"]
        y, height = np.array([float(m["y"]) for m in found]), np.array([float(m["value"]) for m in found])
        points = np.log(values) if log == "y" else values
        q1, q3 = np.quantile(values, [0.25, 0.75])
        spread = min(points.std(ddof=1), (np.log(q3 / q1) if log == "y" else q3 - q1) / 1.34)
        width = 0.9 * spread * len(values) ** -0.2
        at = np.log(y) if log == "y" else y
        expected = np.exp(-0.5 * ((at[:, None] - points) / width) ** 2).sum(1)
        assert np.isclose(y[0], values.min()) and np.isclose(y[-1], values.max())
        assert np.allclose(height, expected / expected.max(), atol=1e-6), abs(height - expected / expected.max()).max()


@test
def axes_carry_names_and_units(folder):
    words = svg(folder, CELLS + 'plot(t, x = "volume", y = "mean", title = "all of them")')
    assert "volume (px²)" in words and "mean" in words and "all of them" in words, words
    words = svg(folder, CELLS + 'plot(sort(filter(t, "volume > 3"), "volume"), x = "volume", y = "mean")')
    assert "volume (px²)" in words, words
    words = svg(folder, CELLS + 'plot(t, x = "volume", y = "mean", x_label = "size")')
    assert "size" in words and "volume (px²)" not in words, words
    words = svg(folder, 'plot(histogram(phantom("cells", [100, 100])))')
    assert "value" in words and "count" in words, words


@test
def long_names_are_broken_between_words_or_run_upwards(folder):
    long, wide = "treated for ten days with it", "x" * 60
    write_csv(folder, "t.csv", ["g", "v"], [(name, k) for name in ("control", long) for k in range(5)])
    words = svg(folder, 'plot(read("t.csv"), x = "g", y = "v", size = [60, 50])')
    lines = words[words.index("control") + 1:-1]
    assert len(lines) > 1 and " ".join(lines) == long, words
    write_csv(folder, "u.csv", ["g", "v"], [(name, k) for name in ("control", wide) for k in range(5)])
    svg(folder, 'plot(read("u.csv"), x = "g", y = "v")')
    drawn = pathlib.Path(folder, "p.svg").read_text()
    assert drawn.count("rotate(-90)") == 3, drawn  # both names, and that of the axis


@test
def large_tables_make_small_pictures(folder):
    np = numpy()
    random = np.random.default_rng(3)
    table = np.column_stack([random.normal(0, 1, 300000), random.normal(0, 1, 300000)])
    np.savetxt(pathlib.Path(folder, "big.csv"), table, delimiter=",", header="a,b", comments="", fmt="%.6g")
    svg(folder, 'plot(read("big.csv"), x = "a", y = "b")')
    assert pathlib.Path(folder, "p.svg").stat().st_size < 2e6
    counted = marks(folder, 'plot(read("big.csv"), x = "a", y = "b")')
    assert sum(float(m["value"]) for m in counted) == 300000
    svg(folder, 'plot(read("big.csv"), x = "a", y = "b", kind = "line")')
    assert pathlib.Path(folder, "p.svg").stat().st_size < 2e5


@test
def groups_have_the_same_order_in_every_picture(folder):
    write_csv(folder, "t.csv", ["g", "a", "b"], [("b", 1, 2), ("a", 2, 3), ("c10", 1, 1), ("c9", 4, 4)])
    for kind in ("scatter", "line", "bar", "box", "violin"):
        words = svg(folder, f'plot(read("t.csv"), x = "a", y = "b", by = "g", kind = "{kind}")')
        assert [w for w in words if w in ("a", "b", "c9", "c10")][-4:] == ["a", "b", "c9", "c10"], (kind, words)


@test
def rows_without_numbers_are_counted_and_empty_tables_drawn(folder):
    write_csv(folder, "t.csv", ["a", "b"], [(1, 2), (2, ""), (-3, 4), (5, 6)])
    words = svg(folder, 'plot(read("t.csv"), x = "a", y = "b", log = "x")')
    assert any("2 rows without a number are not shown" in w for w in words), words
    for kind in ("scatter", "line", "box", "violin", "heatmap", "bar", "histogram"):
        y = "" if kind == "histogram" else ', y = "b"'
        words = svg(folder, f'plot(filter(read("t.csv"), "a > 99"), x = "a"{y}, kind = "{kind}")')
        assert "no rows to draw" in words, (kind, words)
        words = svg(folder, f'plot(filter(read("t.csv"), "a == 5"), x = "a"{y}, kind = "{kind}")')
        assert "no rows to draw" not in words, (kind, words)


@test
def every_format_is_written_and_does_not_change(folder):
    call = CELLS + 'plot(t, x = "volume", by = "label")'.replace(', by = "label"', "")
    for name, head in (("p.svg", b"<svg"), ("p.png", b"\x89PNG"), ("p.pdf", b"%PDF")):
        run("run", "-q", "-e", f'{call} |> write("{name}")', folder=folder)
        first = pathlib.Path(folder, name).read_bytes()
        assert first.startswith(head), first[:10]
        for engine in ("threads", "processes"):
            run("run", "-q", "--fresh", "--engine", engine, "--chunk", "64", "-e", f'{call} |> write("{name}")', folder=folder)
            assert pathlib.Path(folder, name).read_bytes() == first, (name, engine)


@test
def a_collection_is_one_picture_or_one_of_each(folder):
    for seed in (1, 2, 3):
        run("run", "-q", "-e", f'phantom("cells", [100, 100], seed = {seed}) |> write("in/{seed}.tif")', folder=folder)
    words = svg(folder, 'plot(histogram(read("in/*.tif"), bins = 20), over = "item")')
    assert all(name in words for name in ("item", "1", "2", "3")), words
    run("run", "-q", "-e", 'plot(histogram(read("in/*.tif"), bins = 20)) |> write("out/{stem}.svg")', folder=folder)
    assert sorted(p.name for p in pathlib.Path(folder, "out").glob("*.svg")) == ["1.svg", "2.svg", "3.svg"]
    said = run("run", "-q", "-e", 'plot(histogram(read("in/*.tif"))) |> write("one.svg")', folder=folder, code=None)
    assert said.returncode and "{stem}" in said.stderr and 'over = "item"' in said.stderr, said.stderr
    objects = 'measure(label(read("in/*.tif") > 60))'
    run("run", "-q", "-e", f'plot({objects}, x = "item", y = "volume", over = "item") |> write("b.svg")', folder=folder)
    text = 'param bins = 8\nplot(histogram(read("in/1.tif"), bins = bins)) |> write("s-{bins}.svg")'
    pathlib.Path(folder, "sweep.fov").write_text(text)
    run("run", "-q", "sweep.fov", "--set", "bins=8,16", folder=folder)
    assert pathlib.Path(folder, "s-8.svg").exists() and pathlib.Path(folder, "s-16.svg").exists()


@test
def an_output_that_is_there_is_kept_or_refused(folder):
    call = CELLS + 'plot(t, x = "volume") |> write("p.svg")'
    run("run", "-q", "-e", call, folder=folder)
    before = pathlib.Path(folder, "p.svg").stat().st_mtime_ns
    run("run", "-q", "-e", call, folder=folder)
    assert pathlib.Path(folder, "p.svg").stat().st_mtime_ns == before
    pathlib.Path(folder, "other.svg").write_text("mine")
    said = run("run", "-q", "-e", call.replace("p.svg", "other.svg"), folder=folder, code=None)
    assert said.returncode and "--overwrite" in said.stderr and pathlib.Path(folder, "other.svg").read_text() == "mine"
    killed = run("run", "-q", "-e", call.replace("p.svg", "k.svg"), folder=folder, code=None,
                 environment={"FOVEA_FAULT": "table.rows:1"})
    assert killed.returncode and not pathlib.Path(folder, "k.svg").exists()
    run("run", "-q", "-e", call.replace("p.svg", "k.svg"), folder=folder)
    assert pathlib.Path(folder, "k.svg").read_bytes() == pathlib.Path(folder, "p.svg").read_bytes()


@test
def mistakes_are_told_before_anything_runs(folder):
    write_csv(folder, "t.csv", ["name", "a", "b"], [("x", 1, 2)])
    for call, words in (
            ('read("t.csv") |> write("p.svg")', "a picture is drawn of a plot"),
            ('max(ones([4])) |> write("p.png")', "this is a number"),
            ('plot(read("t.csv")) |> write("p.svg")', "which columns?"),
            ('plot(read("t.csv"), x = "aa", y = "b") |> write("p.svg")', "no column aa"),
            ('plot(read("t.csv"), x = "a", y = "name") |> write("p.svg")', "the column holds text"),
            ('plot(read("t.csv"), x = "a", kind = "scatter") |> write("p.svg")', "y is missing"),
            ('plot(read("t.csv"), x = "name", y = "a", log = "x") |> write("p.svg")', "no numbers"),
            ('plot(read("t.csv"), x = "a") |> write("p.svg", append = true)', "leave append out")):
        said = run("run", "-q", "-e", call, folder=folder, code=None)
        assert said.returncode and words in said.stderr, (call, said.stderr)
    write_csv(folder, "many.csv", ["name", "a"], [(f"n{i}", i) for i in range(100)])
    said = run("run", "-q", "-e", 'plot(read("many.csv"), x = "a", by = "name") |> write("p.svg")', folder=folder, code=None)
    assert said.returncode and "more than 64 different values" in said.stderr, said.stderr


@test
def without_cairo_a_sentence_says_what_is_missing(folder):
    call = CELLS + 'plot(t, x = "volume") |> write("p.{}")'
    missing = {"FOVEA_PLUGINS": str(folder)}
    run("run", "-q", "-e", call.replace("{}", "svg"), folder=folder, environment=missing)
    said = run("run", "-q", "-e", call.replace("{}", "pdf"), folder=folder, code=None, environment=missing)
    assert said.returncode and "libcairo2-dev" in said.stderr, said.stderr


if __name__ == "__main__":
    main()
