#!/usr/bin/env python3
"""fovea report -o: the page says what the record says, after kills and failures too, holds nothing but text where it shows a
text, and asks for nothing from elsewhere."""
import base64
import hashlib
import html.parser
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, TESTS, main, run  # noqa: E402
from stopped_run import PIECES, TASKS, TEXT, stopped  # noqa: E402



def test(function):
    """Marks a function as a test, which gets its folder as a path."""
    def called(folder):
        function(pathlib.Path(folder))
    called.__name__ = function.__name__
    TESTS.append(called)


VOID = {"meta", "br", "img", "link", "input", "hr"}
CELLS = """param sigma = 2
cells = phantom("cells", [120, 160])
smooth = gaussian(cells, sigma)
objects = label(smooth > otsu(smooth))
objects |> write("objects.npy")
measure(objects, smooth) |> write("cells.csv")
max(objects)
"""


class Page(html.parser.HTMLParser):
    """Tags that are open, all texts and all attributes of a page."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open, self.words, self.attributes, self.tags, self.rows, self.scripts = [], [], [], [], [], []
        self.source = pathlib.Path(path).read_text()
        self.feed(self.source)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> where {self.open[-3:]} are open"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif not (self.open and self.open[-1] == "style"):
            self.words.append(data + " ")
            if {"td", "th"} & set(self.open) and self.rows:
                self.rows[-1][-1] += data

    def row(self, first):
        return next(row for row in self.rows if row and row[0].strip() == first)


def report(folder, *arguments):
    run("report", "-o", "report.html", *arguments, folder=folder)
    return Page(folder / "report.html")


def record(folder, question):
    path = next((folder / ".fovea/runs").glob("*/record.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        return connection.execute(question).fetchall()


@test
def the_page_says_what_the_record_says(folder):
    (folder / "cells.fov").write_text(CELLS)
    run("run", "-q", "cells.fov", "--set", "sigma=1.5", folder=folder)
    page = report(folder)
    tasks, = record(folder, "SELECT count(*) FROM task WHERE status = 'ok'")[0]
    assert f"Everything was done: {tasks} tasks" in page.text, page.text[:300]
    assert CELLS.split("\n")[3] in page.text and page.row("sigma")[1] == "1.5"
    for name in ("version", "host", "engine", "isa", "workers", "processor"):
        value = record(folder, f"SELECT value FROM run WHERE name = '{name}'")
        assert not value or value[0][0] in page.text, name
    count, = record(folder, "SELECT value FROM run WHERE name = 'value max(objects)'")[0]
    assert re.search(r"max\(objects\)\s*=\s*" + count, page.text), count
    rows = (folder / "cells.csv").read_text().count("\n") - 1
    assert f"{rows} rows, 13 columns" in page.text
    spent = dict(record(folder, "SELECT operator, seconds FROM spent"))
    all_of_it = sum(spent.values())
    for op, seconds in spent.items():
        assert page.row(op)[2] == f"{100 * seconds / all_of_it:.1f} %", (op, page.row(op))
    assert "fovea run cells.fov --set sigma=1.5" in page.text
    assert "gaussian (smooth" in page.text.replace("gaussian  (", "gaussian (") and "sigma = [1.5, 1.5]" in page.text
    graph, = record(folder, "SELECT value FROM run WHERE name = 'graph'")[0]
    assert '"op":"gaussian"' in graph and graph == next(folder.glob(".fovea/runs/*/graph.json")).read_text()


@test
def seconds_of_nodes_and_counts_of_stages_add_up(folder):
    (folder / "cells.fov").write_text(CELLS)
    run("run", "-q", "cells.fov", "--chunk", "40", folder=folder)
    tasks, = record(folder, "SELECT count(*) FROM task")[0]
    assert record(folder, "SELECT sum(tasks), sum(found), sum(spared) FROM stage")[0] == (tasks, 0, 0)
    nodes, = record(folder, "SELECT sum(seconds) FROM node")[0]
    spent, = record(folder, "SELECT sum(seconds) FROM spent")[0]
    assert abs(nodes - spent) < 1e-6 + 1e-3 * spent, (nodes, spent)
    process, = record(folder, "SELECT DISTINCT process FROM task")[0]
    samples = record(folder, "SELECT process, time, resident FROM memory")
    begin, end = (float(record(folder, f"SELECT value FROM run WHERE name = '{name}'")[0][0]) for name in ("begin", "end"))
    assert len(samples) >= 2 and all(p == process and begin - 1 < t < end + 1 and r > 1 << 20 for p, t, r in samples), samples


@test
def labels_are_shown_in_colours_and_contrast_is_said(folder):
    run("run", "-q", "-e", 'x = phantom("cells", [90, 130])\nlabel(x > 100) |> write("l.npy")\nx |> write("x.npy")',
        folder=folder)
    page = report(folder)
    images = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert len(images) == 2 and all(i.startswith("data:image/png;base64,") for i in images)
    png = base64.b64decode(images[0].split(",")[1])
    assert png[16:24] == (130).to_bytes(4, "big") + (90).to_bytes(4, "big")
    size = int.from_bytes(png[33:37], "big")
    raw = zlib.decompress(png[41:41 + size])
    labels = (folder / "l.npy").read_bytes()[-4 * 90 * 130:]
    colours = {}
    for y in range(90):
        row, left = raw[y * (3 * 130 + 1) + 1:(y + 1) * (3 * 130 + 1)], [0, 0, 0]
        for x in range(130):
            left = [(left[c] + row[3 * x + c]) % 256 for c in range(3)]
            label = int.from_bytes(labels[4 * (y * 130 + x):][:4], "little")
            assert colours.setdefault(label, tuple(left)) == tuple(left), "a label of two colours"
    assert colours[0] == (0, 0, 0) and len(set(colours.values())) > 0.9 * len(colours) > 5
    assert "a colour for each label" in page.text and re.search(r"contrast [\d.]+ to [\d.]+ \(0.1 to 99.9 %", page.text)


@test
def inputs_have_the_hash_that_others_compute(folder):
    run("run", "-q", "-e", 'phantom("foam", [20, 30, 40]) |> write("in.npy")', "--store", "other", folder=folder)
    run("run", "-q", "-e", 'read("in.npy") |> gaussian(1) |> write("out.npy")', folder=folder)
    assert hashlib.sha256((folder / "in.npy").read_bytes()).hexdigest() in report(folder).text
    os.utime(folder / "in.npy", (1, 1))
    assert "changed since the run" in report(folder).text
    (folder / "in.npy").unlink()
    assert "not there any more" in report(folder).text


@test
def a_killed_run_has_a_page_and_its_continuation_tells_both(folder):
    with stopped(folder):
        page = report(folder)
        assert "The run goes on" in page.text, page.text[:200]
    page = report(folder)
    assert "The run was killed before its end" in page.text and "The same command continues it" in page.text
    done, total = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) of ([\d,]+) tasks", page.text).groups())
    assert 0 < done < total == TASKS, page.text[:200]
    run("run", "-q", "-e", TEXT, *PIECES, folder=folder)
    page = report(folder)
    assert "Everything was done" in page.text and "in 2 attempts" in page.text, page.text[:300]
    run("run", "-q", "-e", TEXT, *PIECES, folder=folder)  # everything is there
    assert report(folder).text.split(".")[0] == page.text.split(".")[0]


@test
def a_stopped_run_says_so(folder):
    with stopped(folder) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait() == 130
    assert "The run was stopped" in report(folder).text


@test
def failures_come_with_their_reasons(folder):
    (folder / "in").mkdir()
    run("run", "-q", "-e", 'phantom("cells", [50, 50]) |> write("in/good.png")', "--store", "other", folder=folder)
    (folder / "in/bad.png").write_text("no picture")
    done = run("run", "-e", 'read("in/*.png") |> gaussian(1) |> write("out/{stem}.npy")', folder=folder, code=1)
    page = report(folder)
    reason = page.row("in/bad.png")[1]
    assert reason and reason in done.stderr and "1 of 2 items failed" in page.text, reason
    (folder / "in/bad.png").write_bytes((folder / "in/good.png").read_bytes())
    run("run", "-q", "-e", 'read("in/*.png") |> gaussian(1) |> write("out/{stem}.npy")', folder=folder)
    assert "What failed" not in report(folder).text


@test
def what_is_reused_is_named_with_the_reason(folder):
    text = 'x = phantom("foam", [30, 100, 100]) |> median(1)\nt = otsu(x)\nlabel(x > t) |> write("a.npy")\n'
    run("run", "-q", "-e", text, folder=folder)
    first = {p.name for p in (folder / ".fovea/runs").iterdir()}
    run("run", "-q", "-e", text + 'max(x)', folder=folder)
    second, = {p.name for p in (folder / ".fovea/runs").iterdir()} - first
    page = report(folder, second)
    assert "nothing that was still to be made needed them" in page.text or "the store had their results" in page.text
    assert "1 files were up to date" in page.text, page.text[page.text.index("What was reused"):][:300]


@test
def hostile_names_and_texts_stay_texts(folder):
    (folder / "in").mkdir()
    names = ["<script>alert(1)<!--", '"onload="x', "a&amp;b", "'><img src=x onerror=y>", "\u202egnp.exe", "new\nline"]
    text = '# <script>alert("x")</script></pre>\nread("in/*.npy") |> gaussian(1) |> write("out/{stem}.npy")\n'
    run("run", "-q", "-e", 'phantom("cells", [20, 20]) |> write("ok.npy")', "--store", "other", folder=folder)
    for i, name in enumerate(names):
        (folder / "in" / f"{name}.npy").write_bytes((folder / "ok.npy").read_bytes() if i % 2 else b"broken")
    (folder / os.fsdecode(b"in/\xff\xfe.npy")).write_bytes(b"broken")
    subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    page = report(folder)
    assert page.tags.count("script") == 1 and "alert" not in page.scripts[0]
    assert 'alert("x")</script></pre>' in page.text and "<script>alert(1)<!--" in page.text
    assert "\u202e" not in page.source
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        asks = name in ("src", "href", "srcset", "action", "data", "xlink:href")
        assert not asks or value.startswith("data:"), (tag, name, value)
        assert "url(" not in value, (tag, name)
    assert not {"iframe", "object", "embed", "link", "base", "form", "video", "audio"} & set(page.tags)
    style = page.source[page.source.index("<style>"):page.source.index("</style>")]
    assert "url(" not in style and "@import" not in style


@test
def the_content_policy_allows_this_script_and_no_other(folder):
    run("run", "-q", "-e", 'max(phantom("cells", [20, 20]))', "--store", ".fovea", folder=folder)
    page = report(folder)
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy


@test
def residuals_of_solvers_are_drawn(folder):
    run("run", "-q", "-e", 'g = parallel(range(-72, 72, 6))\np = xray(phantom("shepp-logan", [64, 64]), g)\n'
        'sirt(p, g, iterations = 6) |> write("r.npy")', folder=folder)
    calls = record(folder, "SELECT count(DISTINCT call) FROM residual")[0][0]
    page = report(folder)
    assert calls >= 1 and page.text.count("after 6 iterations") == calls, (calls, "Residuals" in page.text)


@test
def mistakes_get_a_sentence(folder):
    done = run("report", "-o", "report.html", folder=folder, code=2)
    assert "there is no run" in done.stderr
    run("run", "-q", "-e", 'max(phantom("cells", [20, 20]))', "--store", ".fovea", folder=folder)
    assert "ends with .html" in run("report", "-o", "report.pdf", folder=folder, code=2).stderr
    done = run("report", "-o", "no/such/folder.html", folder=folder, code=None)
    assert done.returncode and "no/such/folder.html" in done.stderr


main()
