#!/usr/bin/python3
"""Residuals and times in the record: on every engine, for every chunk and after a kill, and what `fovea report` shows of them."""
import json
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test

SCAN = 'g = parallel(range(0, 170, 10)); p = xray(phantom("shepp-logan", [20, 32, 32]), g)\n'
ALL = SCAN + "".join(f'write({method}(p, g, iterations = 4), "{method}.npy")\n'
                     for method in ("art", "sart", "sirt", "cgls", "mlem")) \
    + 'write(sirt(p, g, iterations = 40, stop = 0.2), "stopped.npy")\n'
# Two parts of a second or two.
LONG = 'g = parallel(range(0, 178, 2)); p = xray(phantom("shepp-logan", [4, 128, 128]), g)\n' \
       'write(cgls(p, g, iterations = 420, stop = 1e-5), "v.npy")\n'


def report(folder):
    return json.loads(run("report", "--json", folder=folder).stdout)["residuals"]


def clean(folder):
    shutil.rmtree(pathlib.Path(folder, ".fovea"))
    for path in pathlib.Path(folder).glob("*.npy"):
        path.unlink()


@test
def residuals_are_the_same_on_every_engine_and_for_every_chunk(folder):
    run("run", "-q", "-e", ALL, folder=folder)
    expected = report(folder)
    assert [call["operator"] for call in expected] == ["art", "sart", "sirt", "cgls", "mlem", "sirt"], expected
    for options in (("--chunk", "6x10x7"), ("--engine", "processes", "--workers", "2")):
        clean(folder)
        run("run", "-q", *options, "-e", ALL, folder=folder)
        assert report(folder) == expected, options


def same(told, found):
    """Reports round to 15 digits."""
    return len(told) == len(found) and all(abs(a - b) <= 1e-14 * abs(b) for a, b in zip(told, found))


@test
def residuals_are_those_that_the_operator_of_this_name_finds(folder):
    run("run", "-q", "-e", ALL, folder=folder)
    stopped = report(folder)[-1]["iterations"]
    table = json.loads(run("run", "-q", "--json", "-e", SCAN + "residuals(p, g, iterations = 40, stop = 0.2)",
                           folder=folder).stdout)["values"][0]
    for row in stopped:
        slices = [each["residual"] for each in table if each["iteration"] == row["iteration"]]
        assert len(slices) == row["slices"] and same([min(slices), max(slices)], [row["best"], row["worst"]]), row
    assert stopped[0]["slices"] == 16, "four slices are empty, which nothing is to be done about"
    assert stopped[-1]["slices"] < 16, "slices stop one after the other"
    falling = [row["residual"] for row in stopped]
    assert falling == sorted(falling, reverse=True) and falling[0] == 1, falling


@test
def residuals_of_cones_are_those_of_the_record(folder):
    scan = 'g = cone(range(0, 350, 10), 60, 30); p = xray(phantom("shepp-logan", [6, 16, 16]), g)\n'
    calls = [(method, f"iterations = {4 if method in ('art', 'sart') else 9}, stop = 0.2{subsets}") for method, subsets in
             (("sirt", ""), ("cgls", ""), ("mlem", ""), ("art", ", subsets = 3"), ("sart", ", subsets = 3"))]
    for method, options in calls:
        text = scan + f'write({method}(p, g, {options}), "v.npy")\nwrite(residuals(p, g, "{method}", {options}), "r.csv")\n'
        run("run", "-q", "-e", text, "--overwrite", folder=folder)
        told = [(0, row["iteration"], row["residual"]) for row in report(folder)[0]["iterations"]]
        lines = pathlib.Path(folder, "r.csv").read_text().splitlines()[1:]
        found = [(int(a), int(b), float(c)) for a, b, c in (line.split(",") for line in lines)]
        assert len(found) == len(told) > 1, (method, found, told)
        assert all(a[:2] == b[:2] and abs(a[2] / b[2] - 1) < 1e-14 for a, b in zip(found, told)), (method, found, told)
        clean(folder)
    fan = run("run", "-q", "--json", "-e", 'g = cone(range(0, 350, 10), 60, 30); p = xray(phantom("shepp-logan", [16, 16]), g)\n'
              'residuals(p, g, "sart", iterations = 2)', folder=folder)
    assert [row["iteration"] for row in json.loads(fan.stdout)["values"][0]] == [1, 2], fan.stdout


@test
def a_far_cone_stops_where_parallel_beams_do(folder):
    """One slice; residuals are those before an iteration, and one that is small enough prevents it."""
    for method, stop in (("sirt", 0.3), ("cgls", 0.15), ("mlem", 0.3), ("sirt", 1), ("cgls", 1), ("sart", 0.3), ("sart", 1)):
        found = []
        for geometry in ("parallel(range(0, 170, 10))", "cone(range(0, 170, 10), 1e7, 0)"):
            text = f'g = {geometry}; p = xray(phantom("shepp-logan", [16, 16]), g)\n' \
                   f'write({method}(p, g, iterations = 12, stop = {stop}), "v.npy")\n' \
                   f'residuals(p, g, "{method}", iterations = 12, stop = {stop})\n' \
                   f'max({method}(p, g, iterations = 12, stop = {stop}))'
            done = json.loads(run("run", "-q", "--json", "-e", text, "--overwrite", folder=folder).stdout)["values"]
            found.append([row["residual"] for row in done[0]] + [*done[1][0].values()])
            told = [row["residual"] for call in report(folder) for row in call["iterations"]]
            assert same(told, found[-1][:-1]), (geometry, told, found)
            clean(folder)
        assert len(found[0]) == len(found[1]), (method, stop, found)
        assert all(abs(a - b) < 1e-3 for a, b in zip(*found)), (method, stop, found)
        if stop == 1 and method != "sart":
            assert found[0] == [0], found  # the start is good enough


@test
def a_device_tells_the_same_but_for_rounding(folder):
    text = SCAN + 'write(sirt(p, g, iterations = 3, size = 20), "v.npy")'  # rays that miss the volume count too
    run("run", "-q", "-e", text, folder=folder)
    expected = [row["residual"] for row in report(folder)[0]["iterations"]]
    clean(folder)
    done = run("run", "-q", "--device", "opencl", "-e", text, folder=folder, code=None)
    if done.returncode:
        raise Skip("no OpenCL device: " + done.stderr.strip()[:80])
    found = [row["residual"] for row in report(folder)[0]["iterations"]]
    assert len(found) == 3 and all(abs(a / b - 1) < 1e-5 for a, b in zip(found, expected)), (found, expected)


@test
def residuals_are_printed_as_a_table(folder):
    assert "there is no run" in run("report", folder=folder, code=2).stderr
    run("run", "-q", "-e", SCAN + 'write(sirt(p, g, iterations = 2), "v.npy")', folder=folder)
    lines = run("report", folder=folder).stdout.splitlines()
    at = lines.index("sirt, line 2")
    assert lines[at + 1].split("  ")[1:] == ["iteration", " residual", "best slice", "worst slice", "slices"], lines
    assert lines[at + 2].split()[:2] == ["1", "1.000000"] and lines[at + 3].split()[0] == "2", lines
    name = next(pathlib.Path(folder, ".fovea", "runs").iterdir()).name
    assert run("report", name[:6], folder=folder).stdout.splitlines() == lines
    assert "begins with zz" in run("report", "zz", folder=folder, code=2).stderr


@test
def what_operators_took_is_told_by_every_engine(folder):
    for options in (("--engine", "threads"), ("--engine", "processes")):
        done = run("run", *options, "-e", SCAN + 'write(sirt(p, g, iterations = 2), "v.npy")', folder=folder)
        assert "simulate " in done.stderr and "reconstruct " in done.stderr and "write " in done.stderr, done.stderr
        found = {row["operator"]: row for row in json.loads(run("report", "--json", folder=folder).stdout)["seconds"]}
        assert {"phantom", "xray", "sirt", "write"} <= set(found) and found["sirt"]["stage"] == "reconstruct", found
        assert all(row["seconds"] >= 0 for row in found.values()) and found["sirt"]["seconds"] > 0, found
        clean(folder)


@test
def an_iteration_written_by_hand_tells_its_residual(folder):
    step = "checkpoint(sirt(p, g, iterations = 1), sum(square(p - 1)), sum(square(p)), iteration = 3)"
    run("run", "-q", "-e", SCAN + f'write({step}, "v.npy")', folder=folder)
    call, = [each for each in report(folder) if each["operator"] == "checkpoint"]
    want = float(run("run", "-q", "-e", SCAN + "sqrt(sum(square(p - 1)) / sum(square(p)))", folder=folder).stdout)
    row, = call["iterations"]
    assert row["iteration"] == 3 and row["slices"] == 1 and abs(row["residual"] / want - 1) < 1e-12, row
    refused = run("run", "-q", "-e", SCAN + f'write({step.replace("= 3", "= 1000000000")}, "v.npy")', folder=folder, code=2)
    assert "iteration = 1e+09: must be between 0 and 1e+06" in refused.stderr, refused.stderr


@test
def a_solve_in_steps_has_the_same_bits(folder):
    text = ('g = parallel(range(-72, 72, 6))\np = xray(phantom("shepp-logan", [8, 48, 48]), g)\n'
            'a = sirt(p, g, iterations = 4)\nb = sirt(p, g, start = a, iterations = 3)\n'
            'a |> write("live_4.pvti")\nb |> write("live_7.npy")\nsirt(p, g, iterations = 7) |> write("whole.npy")\n')
    run("run", "-q", "-e", text, folder=folder)
    assert pathlib.Path(folder, "live_4.pvti").exists()
    assert pathlib.Path(folder, "live_7.npy").read_bytes() == pathlib.Path(folder, "whole.npy").read_bytes()


@test
def a_killed_solver_goes_on_from_its_last_part(folder):
    run("run", "-q", "--store", "whole", "-e", LONG, folder=folder)
    whole = json.loads(run("report", "--store", "whole", "--json", folder=folder).stdout)["residuals"]
    expected = pathlib.Path(folder, "v.npy").read_bytes()
    pathlib.Path(folder, "v.npy").unlink()
    with subprocess.Popen([FOVEA, "run", "-q", "--patience", "0.01", "-e", LONG], cwd=folder) as process:
        while process.poll() is None and run("report", folder=folder, code=None).stdout.count("\n") < 100:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "it was to be killed in its second part"
    assert 100 < len(report(folder)[0]["iterations"]) < len(whole[0]["iterations"])
    run("run", "-q", "-e", LONG, folder=folder)
    assert pathlib.Path(folder, "v.npy").read_bytes() == expected
    assert report(folder) == whole
    record, = pathlib.Path(folder, ".fovea").rglob("record.db")
    times = dict(sqlite3.connect(record).execute("SELECT stage, count(*) FROM task WHERE status = 'ok' GROUP BY stage"))
    assert times[1] == 1 and times[2] == 1, f"parts were made again: {times}"


main()
