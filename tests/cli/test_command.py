"""What people type at the prompt and what they are told."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test

CELLS = 'phantom("cells", [40, 50], seed = 1)'


def values(text, folder, *options):
    done = run("run", "-q", "--json", "-e", text, *options, folder=folder)
    return json.loads(done.stdout)["values"]


# ---------------------------------------------------------------- printed values

@test
def any_scalar_or_table_on_a_line_of_its_own_is_printed_under_its_text(folder):
    names = ["x", "otsu(a) + 1", "max(a) - min(a)", "(-x)", "(x)", "x > 3", "mean(a)", "2 * 3", "a |> max"]
    text = f"a = {CELLS}; x = otsu(a)\n" + "\n".join(names)
    printed = values(text, folder)
    assert [list(rows[0]) for rows in printed] == [[name] for name in names], printed
    x, more, span = (list(rows[0].values())[0] for rows in printed[:3])
    assert more == x + 1 and span > 0
    assert run("run", "-q", "-e", f"a = {CELLS}; t = measure(label(a > 60)); t", folder=folder).stdout.startswith("label")


@test
def the_text_of_a_value_is_one_line_without_comments(folder):
    text = f"a = {CELLS}\nmax(a)   -\n   min(a,  # the least\n  )"
    assert list(values(text, folder)[0][0]) == ["max(a) - min(a, )"]
    long = "max(a) + " * 30 + "0"
    [name] = values(f"a = {CELLS}\n{long}", folder)[0][0]
    assert name.startswith("max(a) + max(a)") and name.endswith("...") and len(name) < 40


@test
def an_image_or_a_text_alone_is_told_what_to_do_with_it(folder):
    for text in (f"a = {CELLS}; a", f"a = {CELLS}; a + 1", f"{CELLS}[3:5]"):
        said = run("run", "-e", text, folder=folder, code=2).stderr
        assert "this image goes nowhere: write it" in said and "measure" in said, said
    assert "a text alone does nothing" in run("run", "-e", '"text"', folder=folder, code=2).stderr


# ---------------------------------------------------------------- what is typed and what is shown

@test
def several_texts_are_the_lines_of_one_pipeline(folder):
    assert run("run", "-q", "-e", "a = 3", "-e", "b = a + 1; a", "-e", "b", folder=folder).stdout.split() == ["3", "4"]
    said = run("run", "-e", "a = 3", "-e", "c + 1", folder=folder, code=2).stderr
    assert "-e:2:1" in said and "there is no variable c" in said, said


@test
def info_of_a_pattern_describes_each_file(folder):
    for name, width in ("s10", 30), ("s2", 20):
        run("run", "-q", "-e", f'phantom("cells", [10, {width}]) |> write("in/{name}.png")', folder=folder)
    said = run("info", "in/*.png", folder=folder).stdout
    assert said.index("in/s2.png") < said.index("x 20") < said.index("in/s10.png") < said.index("x 30"), said
    pathlib.Path(folder, "in/s3.png").write_text("no image")
    found = json.loads(run("info", "--json", "in/**/*.png", folder=folder, code=1).stdout)
    assert [entry["file"] for entry in found] == ["in/s2.png", "in/s3.png", "in/s10.png"] and "error" in found[1], found
    assert 'no file matches "in/*.tif"' in run("info", "in/*.tif", folder=folder, code=2).stderr
    pathlib.Path(folder, "a[1].png").write_bytes(pathlib.Path(folder, "in/s2.png").read_bytes())
    assert "x 20" in run("info", "a[1].png", folder=folder).stdout  # a file of that very name is no pattern


@test
def what_is_no_number_has_no_sign(folder):
    for text in "0/0", "1 - 0/0", "log(0 - 1)":
        assert run("run", "-q", "-e", text, folder=folder).stdout == "nan\n", text
    text = 'z = min(zeros([2, 2])); row(z / z, (z - 1) / z, names = "a b")'
    said = run("run", "-q", "-e", text, folder=folder).stdout
    assert said.split() == ["a", "b", "nan", "-inf"], said


@test
def clean_counts_one_run_and_two_runs(folder):
    run("run", "-q", "-e", f'{CELLS} |> write("a.npy")', folder=folder)
    assert re.search(r" 1 run +\d", run("clean", folder=folder).stdout)
    run("run", "-q", "-e", f'{CELLS} |> write("b.npy")', folder=folder)
    assert re.search(r" 2 runs +\d", run("clean", folder=folder).stdout)


@test
def a_file_that_cannot_be_opened_is_refused_as_every_missing_input(folder):
    os.symlink("loop.png", os.path.join(folder, "loop.png"))
    pathlib.Path(folder, "bad.png").write_text("no image")
    for name in "loop.png", "bad.png", "none.png":
        for words in (("run", "-e", f'mean(read("{name}"))'), ("plan", "-e", f'mean(read("{name}"))'), ("info", name),
                      ("convert", name, "a.tif")):
            assert name in run(*words, folder=folder, code=2).stderr, words


@test
def json_lists_what_was_not_made(folder):
    run("run", "-q", "-e", f'{CELLS} |> write("in/a.png")', folder=folder)
    pathlib.Path(folder, "in/b.png").write_text("no image")
    text = 'c = read("in/*.png"); write(c + 1, "out/{stem}.tif"); write(project(c, "item", "mean"), "mean.tif")'
    told = json.loads(run("run", "-q", "--json", "-e", text, folder=folder, code=1).stdout)
    assert told["outputs"] == ["out/a.tif"] and told["not_made"] == ["mean.tif", "out/b.tif"], told
    assert json.loads(run("run", "-q", "--json", "-e", "1 + 1", folder=folder).stdout)["not_made"] == []


@test
def a_plan_names_the_tables_that_are_written(folder):
    for seed, name in (1, "a"), (2, "b"):
        run("run", "-q", "-e", f'phantom("cells", [40, 50], seed = {seed}) |> write("in/{name}.png")', folder=folder)
    text = 'c = read("in/*.png"); t = measure(label(c > 90), c); write(t, "cells.csv"); write(t, "all.db", table = "cells")\n' \
           'write(max(c), "most.csv"); write(group(t, "item", "count()"), "counts.csv")'
    said = run("plan", "-e", text, folder=folder).stdout
    for line in ("cells.csv, with the rows of all items", "cells of all.db, with the rows of all items",
                 "most.csv, with the rows of all items", "counts.csv"):
        assert said.count(f"write table {line}\n") == 1, (line, said)
    parts = json.loads(run("plan", "--json", "-e", text, folder=folder).stdout)["parts"]
    assert parts[0]["tables"][1] == {"file": "all.db", "table": "cells"} and len(parts[1]["tables"]) == 1, parts
    text = f'param t = 1\nwrite(measure(label({CELLS} > t)), "one.csv")'
    said = run("plan", "-e", text, "--set", "t=1,2", folder=folder).stdout
    assert said.count("write table one.csv\n") == 1, said


@test
def a_graph_says_what_makes_the_numbers_that_items_get(folder):
    run("run", "-q", "-e", f'{CELLS} |> write("in/a.png")', folder=folder)
    text = 'g = read("in/*.png"); level = yen(together(g))\n' \
           'write(where((g > otsu(together(g))) & (g > level), g, 0), "{stem}.tif")'
    said = run("graph", "-e", text, folder=folder).stdout
    items = said[said.index("for each item"):]
    assert '"otsu(...) made before\\nscalar"' in items and '"level = yen(...) made before\\nscalar"' in items, items
    assert items.count('label="0\\nscalar"') == 1, items  # the 0 of where alone


@test
def a_line_may_begin_with_minus_where_nothing_is_before_it(folder):
    for text, wanted in (("-2**2", ["-4"]), ("# four\n\n-2**2 |> abs", ["4"]), ("a = 3; -a + 1; -a", ["-2", "-3"]),
                         ("(-2)**2", ["4"])):
        assert run("run", "-q", "-e", text, folder=folder).stdout.split() == wanted, text
    said = run("run", "-e", "a = 3\n-2**2", folder=folder, code=2).stderr
    assert "-e:2:1" in said and "stands in brackets" in said, said
    assert run("run", "-q", "-e", "a = 3\n(-2**2)", folder=folder).stdout.split() == ["-4"]


@test
def a_value_that_is_set_is_of_the_kind_that_the_text_has(folder):
    text = f"# first\nparam t = 5\nx = {CELLS}\ncount(x > t)"
    for value in "abc", '"7"', "1,abc":
        said = run("run", "-e", text, "--set", f"t={value}", folder=folder, code=2).stderr
        assert "-e:2:11: error: --set t=" in said and "expected a number" in said and "greater" not in said, said
    run("run", "-q", "-e", text, "--set", "t=7", folder=folder)
    said = run("run", "-e", "param on = true\non", "--set", "on=abc", folder=folder, code=2).stderr
    assert "expected true or false" in said, said
    run("run", "-q", "-e", f'{CELLS} |> write("7.png")', folder=folder)
    pathlib.Path(folder, "7").write_bytes(pathlib.Path(folder, "7.png").read_bytes())
    text = 'param name = "a"\nmax(read(name))'
    run("run", "-q", "-e", text, "--set", "name=7", folder=folder)  # a name that looks like a number stays a name


@test
def numbers_that_are_typed_in_stand_where_computed_ones_do(folder):
    first, = values('param t = 5\nrow(1, t, 2.5, names = "a b c")', folder)
    assert first == [{"a": 1, "b": 5, "c": 2.5}], first
    first, = values(f'x = {CELLS}; row(max(x), 2, "most two")', folder)
    assert first[0]["two"] == 2, first
    run("run", "-q", "-e", f'x = {CELLS}; write(colorize(x, 10, 100, "grey"), "a.npy"); '
        'write(colorize(x, "grey", low = 10, high = 100), "b.npy")', folder=folder)
    assert pathlib.Path(folder, "a.npy").read_bytes() == pathlib.Path(folder, "b.npy").read_bytes()
    one, two = values(f"x = {CELLS}; count(peaks(x, 5)); count(peaks(x, min_distance = 5))", folder)  # a parameter wants it
    assert list(one[0].values()) == list(two[0].values()), (one, two)


# ---------------------------------------------------------------- drawings

@test
def a_drawing_is_what_its_name_says(folder):
    text = f"label({CELLS} > 60) |> write('l.npy')"
    for name in ("g.dot", "g.gv", "G.DOT"):
        run("graph", "-e", text, "-o", name, folder=folder)
        assert pathlib.Path(folder, name).read_text().startswith("digraph")
    for name in ("g.txt", "g", "g.jpeg"):
        said = run("graph", "-e", text, "-o", name, folder=folder, code=2).stderr
        assert ".svg, .png, .pdf, .dot and .gv are possible" in said and not pathlib.Path(folder, name).exists(), said
    empty = pathlib.Path(folder, "empty")
    empty.mkdir()
    said = run("graph", "-e", text, "-o", "g.png", folder=folder, code=1, environment={"PATH": str(empty)}).stderr
    assert "apt-get install graphviz" in said and not pathlib.Path(folder, "g.png").exists(), said
    assert "No such file" in run("graph", "-e", text, "-o", "none/g.dot", folder=folder, code=1).stderr


@test
def dot_is_called_with_the_right_words(folder):
    program = pathlib.Path(folder, "bin", "dot")
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho \"$@\" > called\ncat > \"$3\"\n")
    program.chmod(0o755)
    name = "a $(touch bad) b.PNG"
    run("graph", "-e", f"mean({CELLS})", "-o", name, folder=folder,
        environment={"PATH": f"{program.parent}:{os.environ['PATH']}"})
    assert pathlib.Path(folder, "called").read_text() == f"-Tpng -o {name}\n"
    assert pathlib.Path(folder, name).read_text().startswith("digraph") and not pathlib.Path(folder, "bad").exists()
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    said = run("graph", "-e", f"mean({CELLS})", "-o", "x.svg", folder=folder, code=1,
               environment={"PATH": f"{program.parent}:{os.environ['PATH']}"}).stderr
    assert "broken" in said and "has failed" in said, said


@test
def graphviz_draws(folder):
    if not shutil.which("dot"):
        raise Skip("no dot here")
    for name, head in (("g.svg", b"<?xml"), ("g.png", b"\x89PNG"), ("g.pdf", b"%PDF")):
        run("graph", "-e", f"mean({CELLS})", "-o", name, folder=folder)
        assert pathlib.Path(folder, name).read_bytes().startswith(head), name


# ---------------------------------------------------------------- messages

@test
def long_values_are_cut_in_messages(folder):
    said = run("run", "-e", 'g = parallel(angles = range(0, 179, 1)); mean(gaussian(zeros([9, 9]), g))', folder=folder,
               code=2).stderr
    message = next(line for line in said.splitlines() if "error:" in line)
    assert "parallel(angles = [0, 1, 2" in message and "..." in message and len(message) < 200, said
    said = run("run", "-e", f'mean(gaussian(zeros([9, 9]), 1, mode = "{"x" * 500}"))', folder=folder, code=2).stderr
    message = next(line for line in said.splitlines() if "error:" in line)
    assert len(message) < 250 and "reflect" in message, said


@test
def why_a_result_is_made_again_shows_what_differs(folder):
    text = 'xray(phantom("shepp-logan", [32, 32]), parallel(angles = range(0, {last}, 1))) |> write("p.npy")'
    run("run", "-q", "-e", text.format(last=179), folder=folder)
    said = run("run", "-e", text.format(last=180), folder=folder).stderr
    [line] = [line for line in said.splitlines() if "made again" in line]
    assert "179, 180]" in line and len(line) < 500, line


@test
def names_as_long_as_the_file_system_takes_work(folder):
    longest = os.pathconf(folder, "PC_NAME_MAX")
    for extension in ("npy", "tif", "zarr", "csv", "nhdr"):
        for length in (99, 101, 222, longest - (17 if extension == "nhdr" else 0)):
            name = "é" + "n" * (length - len(extension) - 3) + "." + extension
            assert len(name.encode()) == length
            value = "max(a)" if extension == "csv" else "a"
            run("run", "-q", "-e", f'a = {CELLS}; write({value}, "{name}")', folder=folder)
            assert pathlib.Path(folder, name).exists(), (extension, length)
    left = [name for name in os.listdir(folder) if name.startswith(".") and name != ".fovea"]
    assert not left, left


@test
def a_long_name_is_taken_up_after_a_kill(folder):
    name = "n" * 240 + ".npy"
    text = f'gaussian(phantom("foam", [64, 64, 64]), 1) |> write("{name}")'
    killed = run("run", "-q", "--chunk", "16", "--patience", "0.001", "-e", text, folder=folder, code=None,
                 environment={"FOVEA_FAULT": "task:3"})
    assert killed.returncode != 0
    assert any(entry.endswith(".fovea") and entry.startswith(".n") for entry in os.listdir(folder)), os.listdir(folder)
    run("run", "-q", "--chunk", "16", "-e", text, folder=folder)
    left = [entry for entry in os.listdir(folder) if entry.startswith(".") and entry != ".fovea"]
    assert not left and os.path.exists(os.path.join(folder, name)), left


@test
def the_reason_why_nothing_can_be_written_is_the_real_one(folder):
    said = run("run", "-e", f'{CELLS} |> write("/proc/a.npy")', folder=folder, code=None).stderr
    assert "does not exist" not in said and "/proc/a.npy" in said and "in /proc" in said, said
    pathlib.Path(folder, "file").write_text("")
    said = run("run", "-e", f'{CELLS} |> write("file/a.npy")', folder=folder, code=None).stderr
    assert "file/a.npy" in said or "file" in said, said


@test
def one_repeat_tells_nothing_about_noise(folder):
    pathlib.Path(folder, "p.fov").write_text(f"mean(gaussian({CELLS}, 2))\n")
    said = run("scale", "p.fov", "--workers", "1", "--repeats", "1", "-q", folder=folder).stdout
    assert "noise: unknown with one repeat" in said, said
    done = run("scale", "p.fov", "--workers", "1", "--repeats", "1", "-q", "--json", folder=folder)
    assert json.loads(done.stdout)["noise"] is None


@test
def the_beginning_of_several_names_of_runs_asks_for_more(folder):
    for seed in range(40):
        run("run", "-q", "-e", f'mean(phantom("cells", [9, 9], seed = {seed}))', folder=folder)
        names = sorted(os.listdir(os.path.join(folder, ".fovea", "runs")))
        same = [a[:1] for a, b in zip(names, names[1:]) if a[0] == b[0]]
        if same:
            break
    said = run("report", same[0], folder=folder, code=2).stderr
    assert "give more letters" in said and all(n[:12] in said for n in names if n.startswith(same[0])), said
    run("report", names[0], folder=folder)
    run("report", folder=folder)


@test
def the_hint_for_png_does_not_destroy_labels(folder):
    said = run("run", "-e", f'write(label({CELLS} > 60), "x.png")', folder=folder, code=2).stderr
    assert 'convert(image, "uint16")' in said and "colorize(" in said and "rescale" not in said, said
    run("run", "-q", "-e", f'labels = label({CELLS} > 60)\nwrite(convert(labels, "uint16"), "x.png")\n'
        'write(colorize(labels), "c.png")', folder=folder)
    said = run("run", "-e", f'write(gaussian({CELLS}, 1), "x.png")', folder=folder, code=2).stderr
    assert "rescale(image, 0, 255)" in said, said


# ---------------------------------------------------------------- familiar names

@test
def names_of_other_programs_lead_to_what_does_it(folder):
    known = {"bwlabel": "label", "regionprops": "measure", "iradon": "fbp", "radon": "xray", "gridrec": "fbp",
             "medfilt": "median", "imgaussfilt": "gaussian", "gaussian_blur": "gaussian", "GaussianBlur": "gaussian",
             "binary_erosion": "erode", "edt": "distance", "bwdist": "distance", "distance_transform_edt": "distance",
             "astype": "convert", "imread": "read",
             "imwrite": "write",
             "subsample": "slice", "peak_local_max": "peaks", "threshold_otsu": "otsu", "z_project": "project",
             "remove_small_objects": "remove_small", "label2rgb": "overlay", "imfill": "fill_holes",
             "find_center_vo": "find_center"}
    for word, name in known.items():
        said = run("run", "-e", f"a = {CELLS}; b = {word}(a); mean(b)", folder=folder, code=2).stderr
        assert f"there is no operator {word}" in said and f"it is called {name} here" in said, said
        assert f"{word} is called {name} here." in run("ops", word, folder=folder).stdout
    assert "cv2.blur is called uniform here." in run("ops", "cv2.blur", folder=folder).stdout  # a mean over a box
    assert "blur is called gaussian here." in run("ops", "blur", folder=folder).stdout
    others = {"imshow": "write(image", "threshold": "image > otsu(image)", "print": "on a line of its own"}
    for word, part in others.items():
        said = run("run", "-e", f"a = {CELLS}; b = {word}(a); mean(b)", folder=folder, code=2).stderr
        assert part in said, said
    assert others["imshow"] in run("ops", "imshow", folder=folder, code=2).stderr


@test
def no_alias_is_an_operator_or_stands_twice(folder):
    operators = json.loads(run("ops", "--json", folder=folder).stdout)["operators"]
    names, seen = {op["name"] for op in operators}, {}
    for op in operators:
        for word in op["also"].split(", ") if "also" in op else []:
            assert word not in seen, (word, op["name"], seen[word])
            assert word not in names, word
            seen[word] = op["name"]
        if "also" in op:
            assert "also known as" in run("ops", op["name"], folder=folder).stdout
    assert len(seen) > 250


@test
def a_word_finds_the_operators_that_speak_of_it(folder):
    text = run("ops", "Gaussian_", folder=folder).stdout
    assert "gaussian_laplace" in text and "median " not in text
    assert "hysteresis" in run("ops", "hysteresis_threshold", folder=folder).stdout
    assert isinstance(json.loads(run("ops", "edges", "--json", folder=folder).stdout), list)
    assert "no such operator" in run("ops", "xyzzy", folder=folder, code=2).stderr


# ---------------------------------------------------------------- running

@test
def why_items_failed_is_shown_even_to_those_who_want_no_messages(folder):
    run("run", "-q", "-e", f'{CELLS} |> write("a.png")', folder=folder)
    pathlib.Path(folder, "b.png").write_bytes(b"no picture")
    said = run("run", "-q", "-e", 'read("?.png") |> gaussian(1) |> write("{stem}.npy")', folder=folder, code=1).stderr
    assert "b.png" in said.splitlines()[0] and "1 of 2 items failed" in said, said


def as_nobody(arguments, folder, **environment):
    def become():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    return subprocess.run([FOVEA, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=become, check=False,
                          env={"PATH": "/usr/bin", **environment})


@test
def a_folder_that_cannot_be_written_does_not_stop_a_mean(folder):
    if os.getuid():
        raise Skip("needs root, to become somebody who may not write")
    closed, cache = pathlib.Path(folder, "closed"), pathlib.Path(folder, "cache")
    closed.mkdir()
    cache.mkdir()
    run("run", "-q", "-e", f'{CELLS} |> write("a.npy")', "--store", "../store", folder=closed)
    for path in (folder, closed):
        os.chmod(path, 0o755)
    os.chmod(cache, 0o777)
    done = as_nobody(["run", "-e", 'mean(read("a.npy"))'], closed, XDG_CACHE_HOME=str(cache))
    if "Permission denied" in done.stderr and not os.access(FOVEA, os.X_OK):
        raise Skip("nobody may not run the command here")
    assert done.returncode == 0 and float(done.stdout) > 0, done.stderr
    assert "--store FOLDER" in done.stderr and sorted(os.listdir(closed)) == ["a.npy"], done.stderr
    again = as_nobody(["report"], closed, XDG_CACHE_HOME=str(cache))
    assert again.returncode == 0 and "read" in again.stdout, again.stderr
    refused = as_nobody(["run", "-e", 'read("a.npy") |> write("b.npy")'], closed, XDG_CACHE_HOME=str(cache))
    assert refused.returncode and "cannot write b.npy" in refused.stderr and "Permission denied" in refused.stderr, refused.stderr


@test
def the_plan_counts_only_memory_that_is_used(folder):
    text = f'{CELLS} |> gaussian(2) |> write("s.npy")'
    plan = json.loads(run("plan", "--json", "-e", text, "--memory", "8G", folder=folder).stdout)
    assert plan["peak_memory"] < 100 << 20, plan["peak_memory"]
    used = json.loads(run("run", "-q", "--json", "-e", text, "--memory", "8G", folder=folder).stdout)["peak_memory"]
    assert used <= plan["peak_memory"], (used, plan["peak_memory"])
    large = 'label(gaussian(phantom("foam", [400, 400, 400]), 3) < 60) |> write("l.zarr")'
    plan = json.loads(run("plan", "--json", "-e", large, "--memory", "1G", folder=folder).stdout)
    assert 200 << 20 < plan["peak_memory"] <= 1 << 30, plan["peak_memory"]


@test
def sweeps_take_ranges_and_texts_with_commas(folder):
    text = "param t = 1; param s = \"x\"; a = zeros([2, 2]) + t; max(a)"
    for given, expected in (("t=0..4", [0, 1, 2, 3, 4]), ("t=0..10:5", [0, 5, 10]), ("t=0..1:0.25", [0, 0.25, 0.5, 0.75, 1]),
                            ("t=3..1", [3, 2, 1]), ("t=1,5..6,9", [1, 5, 6, 9]), ("t=0..1:0.1", [i / 10 for i in range(11)])):
        rows = values(text, folder, "--set", given)[0]
        assert [row["t"] for row in rows] == expected and [abs(row["max(a)"] - row["t"]) < 1e-6 for row in rows], (given, rows)
    rows = values(text, folder, "--set", 's="a,b",c')[0]
    assert [row["s"] for row in rows] == ["a,b", "c"], rows
    rows = values(text, folder, "--set", "s=O'Brien,x")[0]
    assert [row["s"] for row in rows] == ["O'Brien", "x"], rows
    assert "does not lead from 0 to 4" in run("run", "-e", text, "--set", "t=0..4:-1", folder=folder, code=2).stderr
    assert "more than the 10000" in run("run", "-e", text, "--set", "t=0..100000", folder=folder, code=2).stderr
    run("run", "-q", "-e", 'param f = "none"; read(f) |> mean', "--set", "f=../a.npy", folder=folder, code=2)


@test
def a_reader_that_wants_only_the_first_lines_hears_no_complaint(folder):
    text = 'f = phantom("cells", [2000, 2000]); write(f, "f.npy"); measure(label(f > 128))'
    shell = {"shell": True, "cwd": folder, "capture_output": True, "text": True, "check": False}
    done = subprocess.run(f"{FOVEA} run -q -e '{text}' | head -2", **shell)
    assert len(done.stdout.splitlines()) == 2 and done.stderr == "", done
    assert os.path.getsize(f"{folder}/f.npy") > 4000000
    full = subprocess.run(f"{FOVEA} run -q -e '{text}' > /dev/full", **shell)
    assert full.returncode == 1 and full.stderr == "fovea: cannot write to standard output\n", full


def typed(arguments, text, folder):
    return subprocess.run([FOVEA, *arguments], input=text, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)


@test
def a_text_from_standard_input_is_a_pipeline(folder):
    text = f"a = {CELLS}\nmax(a)\n"
    for command in (["run", "-q", "-"], ["plan", "-"], ["graph", "-"]):
        done = typed(command, text, folder)
        assert done.returncode == 0 and done.stdout, done.stderr
    done = typed(["run", "-"], "a = nosuch(3)\n", folder)
    assert done.returncode == 2 and "standard input:1:5: error" in done.stderr, done.stderr


@test
def an_estimate_tells_how_busy_the_machine_was(folder):
    done = run("estimate", "-q", "--json", "--seconds", "0.2", "-e", f"mean(gaussian({CELLS}, 2))", folder=folder)
    found = json.loads(done.stdout)
    assert found["load"] >= 0 and isinstance(found["disturbed"], bool)
    text = run("estimate", "-q", "--seconds", "0.2", "-e", f"mean(gaussian({CELLS}, 2))", folder=folder).stdout
    assert "workers" in text


# ---------------------------------------------------------------- cleaning

def tree(folder):
    return {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")}


@test
def clean_shows_first_and_removes_what_it_is_told(folder):
    text = 'label(gaussian(phantom("foam", [64, 64, 64]), 1) > 60) |> write("out/l.npy")'
    run("run", "-q", "--chunk", "16", "--patience", "0.001", "-e", text, folder=folder, code=None,
        environment={"FOVEA_FAULT": "task:40"})
    run("run", "-q", "-e", f'{CELLS} |> write("a.png")', folder=folder)
    before = tree(folder)
    assert any(name.endswith(".fovea") and name.startswith("out/.l.npy") for name in before), before
    said = run("clean", folder=folder).stdout
    assert "2 runs" in said and "nothing was removed" in said and tree(folder) == before, said
    said = run("clean", "--all", "-n", folder=folder).stdout
    assert "would remove out/.l.npy" in said and tree(folder) == before, said
    run("clean", "--all", "--older", "7d", folder=folder)
    assert tree(folder) == before
    run("clean", "--leftovers", folder=folder)
    assert {name for name in tree(folder) if name.startswith("out")} == {"out"}
    run("clean", "--results", folder=folder)
    assert not list(pathlib.Path(folder, ".fovea").glob("store/*"))
    run("report", folder=folder)
    run("clean", "--runs", folder=folder)
    assert "there is no run" in run("report", folder=folder, code=2).stderr
    run("run", "-q", "-e", f'{CELLS} + 1 |> convert("uint8") |> write("a.png")', folder=folder)  # still known as ours
    run("clean", "--all", folder=folder)
    assert tree(folder) == {"a.png", "out"}, tree(folder)
    assert "--overwrite" in run("run", "-e", f'{CELLS} |> write("a.png")', folder=folder, code=None).stderr
    assert "expected a time" in run("clean", "--all", "--older", "7", folder=folder, code=2).stderr
    assert "is no folder" in run("clean", "none", folder=folder, code=2).stderr


@test
def a_run_that_lives_is_not_cleaned_away(folder):
    text = ('g = parallel(range(0, 179, 1)); p = xray(phantom("shepp-logan", [60, 96, 96]), g)\n'
            'sirt(p, g, iterations = 400)')
    child = subprocess.Popen([FOVEA, "run", "-q", "--patience", "0.01", "-e", text + ' |> write("v.npy")'], cwd=folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while child.poll() is None and not list(pathlib.Path(folder).glob(".v.npy.*.fovea")):
            time.sleep(0.02)
        assert child.poll() is None, child.stderr.read()
        said = run("clean", "--all", folder=folder).stdout
        assert "1 run lives" in said and "v.npy" not in said, said
        assert list(pathlib.Path(folder).glob(".v.npy.*.fovea")) and list(pathlib.Path(folder, ".fovea", "runs").glob("*/*"))
    finally:
        child.kill()
        child.wait()
    said = run("clean", "--all", folder=folder).stdout
    assert "lives" not in said and not tree(folder), (said, tree(folder))


main()
