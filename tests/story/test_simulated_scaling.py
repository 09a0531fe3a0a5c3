#!/usr/bin/env python3
"""fovea scale --simulate: replays a recorded run, agrees with it where it was measured, and says that it is simulated."""
import csv
import html.parser
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test  # noqa: E402

TEXT = 'x = phantom("foam", [40, 120, 120]) |> gaussian(2)\nlabel(x > otsu(x)) |> write("l.npy")'


def simulate(folder, *arguments):
    return json.loads(run("scale", "-q", "--json", "--simulate", *arguments, folder=folder).stdout)


@test
def one_worker_takes_what_it_took(folder):
    run("run", "-q", "-e", TEXT, "--chunk", "20x40x40", "--workers", "1", folder=folder)
    name = next(pathlib.Path(folder, ".fovea/runs").iterdir()).name
    answer = simulate(folder, "1,24,1000", "--run", name, "--cores", "8")
    one = answer["rows"][0]
    assert answer["simulated"] is True and one["workers"] == 1
    assert abs(one["seconds"] / answer["measured"] - 1) < 0.05, (one, answer["measured"])
    assert [r["workers"] for r in answer["rows"]] == sorted({1, 24, 1000} | {2 ** k for k in range(10)})
    assert all(r["efficiency"] <= 1.01 and r["nodes"] == -(-r["workers"] // 8) for r in answer["rows"])
    for r in answer["rows"]:  # of one node: never slower than one worker alone, never faster than if all were always busy
        if r["workers"] <= 8:
            assert one["seconds"] / r["workers"] * 0.99 <= r["seconds"] <= one["seconds"] * 1.001, (one, r)


@test
def more_work_is_worth_more_workers(folder):
    run("run", "-q", "-e", TEXT, "--chunk", "20x40x40", "--workers", "1", folder=folder)
    few, many = (simulate(folder, "4096", "--run", "", "--times", times, "--engine", "threads")
                 for times in ("1", "100"))
    assert many["tasks"] == 100 * few["tasks"] and many["worth"] >= few["worth"]
    assert many["rows"][0]["seconds"] > 5 * few["rows"][0]["seconds"]


@test
def volumes_do_not_wait_for_each_other(folder):
    run("run", "-q", "-e", TEXT, "--chunk", "20x40x40", "--workers", "1", folder=folder)
    one, many = (simulate(folder, "64", "--run", "", "--volumes", volumes, "--engine", "threads", "--cores", "64")
                 for volumes in ("1", "50"))
    assert many["tasks"] == 50 * one["tasks"] and many["together"] == 1
    more = many["rows"][0]["seconds"] / one["rows"][0]["seconds"]  # start and end are there once
    assert 5 < more <= 50.1, (one["rows"][0], many["rows"][0])
    assert many["rows"][-1]["efficiency"] > 2 * one["rows"][-1]["efficiency"], (one["rows"][-1], many["rows"][-1])


@test
def very_many_tasks_are_played_in_batches(folder):
    """The same work one by one and in batches, and a thousand volumes of 1000 GVx, which only batches can do."""
    run("run", "-q", "-e", TEXT, "--chunk", "20x40x40", "--workers", "1", folder=folder)
    common = ("--run", "", "--cores", "64", "--stragglers", "0")
    for size in (("--times", "2000"), ("--times", "100", "--volumes", "20", "--engine", "mpi")):
        whole, batched = (simulate(folder, "64,512", *common, *size, "--most-tasks", most) for most in ("4000000", "8000"))
        assert whole["together"] == 1 and whole["tasks"] == whole["all_tasks"] == batched["all_tasks"], whole
        assert batched["together"] > 20 and batched["tasks"] < 9000, batched
        for a, b in zip(whole["rows"], batched["rows"]):
            assert a["unsure"] == 0 < b["unsure"]
            seen = 0.1 if "--volumes" in size else 0.01  # beside each other: what is said was seen, and is no bound
            assert abs(b["seconds"] / a["seconds"] - 1) <= b["unsure"] + seen, (a, b)
    shown = run("scale", "-q", "--simulate", "24000", "--cores", "24", "--run", "", "--times", "100000", "--volumes", "1000",
                "--most-tasks", "100000", folder=folder).stdout
    assert "tasks, played as" in shown and "can be off by up to" in shown, shown
    page = pathlib.Path(folder, "scaling/simulated.html").read_text()
    assert "can be off by up to" in page and "Worth it" in page


@test
def a_slow_disk_is_named(folder):
    run("run", "-q", "-e", 'phantom("foam", [60, 200, 200]) |> write("a.npy")', "--store", "other", folder=folder)
    run("run", "-q", "-e", 'read("a.npy") |> gaussian(1) |> write("b.npy")', "--chunk", "10x50x50", "--workers", "1",
        folder=folder)
    answer = simulate(folder, "64", "--run", "", "--times", "100", "--disk", "1M", "--engine", "threads")
    assert "disk" in answer["rows"][-1]["bottleneck"], answer["rows"][-1]
    moved = 100 * 2 * 4 * 60 * 200 * 200
    assert answer["rows"][-1]["seconds"] > 0.3 * moved / 2 ** 20, answer["rows"][-1]


@test
def every_file_says_that_it_is_simulated(folder):
    done = run("scale", "-q", "-e", TEXT, "--chunk", "20x40x40", "--simulate", "24", "--repeats", "1", folder=folder)
    assert done.stdout.startswith("SIMULATED") and "check on this machine" in done.stdout and "Worth it" in done.stdout
    sheets = pathlib.Path(folder, "scaling")
    with open(sheets / "simulated.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(r["simulated_workers"]) for r in rows] == [1, 2, 4, 8, 16, 24]
    for r in rows:
        parts = ("compute", "disk", "handing", "start", "straggle", "lost", "idle")
        assert abs(sum(float(r[p]) for p in parts) - 1) < 2e-3, r
    assert "SIMULATED" in (sheets / "simulated.svg").read_text()
    page = (sheets / "simulated.html").read_text()
    parser = html.parser.HTMLParser()
    parser.feed(page)
    assert "<b>Simulated.</b>" in page and "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


@test
def mistakes_get_a_sentence(folder):
    assert "--simulate many: expected" in run("scale", "--simulate", "many", "-e", TEXT, folder=folder, code=2).stderr
    assert "--run is for --simulate" in run("scale", "--run", "x", folder=folder, code=2).stderr
    assert "no run" in run("scale", "--simulate", "4", "--run", "x", folder=folder, code=2).stderr
    assert "can be simulated" in run("scale", "--simulate", "4", "--engine", "dask", "-e", TEXT, folder=folder, code=2).stderr


main()
