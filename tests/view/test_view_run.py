#!/usr/bin/python3
"""fovea view RUN: the results of a run from its folder, and of a solver that goes on, its last step."""
import pathlib
import signal
import subprocess
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test, wait_for  # noqa: E402
from view_client import View  # noqa: E402

SOLVE = """g = parallel(range(-72, 72, 4))
p = xray(phantom("shepp-logan", [16, 96, 96]), g)
v = sirt(p, g, iterations = {iterations})
write(v, "live.{kind}", every = {every})"""


def only_run(folder):
    return next((pathlib.Path(folder) / ".fovea" / "runs").iterdir())


def images(view):
    return view.json("/api/session")["images"]


@test
def images_labels_and_tables_of_a_run_are_shown(folder):
    run("run", "-q", "-e", 'x = phantom("cells", [90, 80])\nb = label(x > otsu(x))\nwrite(b, "b.tif")\nwrite(x, "x.npy")\n'
        'write(measure(b), "b.csv")', folder=folder)
    name = only_run(folder)
    for words in (name, name.name[:6]):
        with View(words, folder=folder) as view:
            session = view.json("/api/session")
            names = [(i["name"], i["role"]) for i in session["images"]]
            assert names == [("x.npy", "image"), ("b.tif", "labels")], names
            assert [t["name"] for t in session["tables"]] == ["b.csv"] and session["tables"][0]["labels"] == 1, session["tables"]
            assert numpy.array_equal(view.plane(image=0), numpy.load(pathlib.Path(folder) / "x.npy"))


@test
def labels_alone_have_their_colours(folder):
    run("run", "-q", "-e", 'x = phantom("cells", [90, 80])\nwrite(label(x > otsu(x)), "b.tif")', folder=folder)
    with View(only_run(folder), folder=folder) as view:
        assert [(i["name"], i["role"]) for i in images(view)] == [("b.tif", "labels")]


@test
def a_name_that_no_run_has_is_told(folder):
    run("run", "-q", "-e", 'phantom("cells", [9, 9]) |> write("x.npy")', folder=folder)
    wrong = "0" if only_run(folder).name[0] == "1" else "1"
    for words in (wrong, "cafe" + 60 * "0"):
        said = run("view", words, folder=folder, code=2).stderr
        assert f"there is no file {words}" in said and f"begins with {words}" in said, said


@test
def results_of_many_items_are_one_collection(folder):
    for k in range(8):
        text = f'phantom("cells", [20, 30], seed = {k + 1}) |> write("in{k}.npy")'
        run("run", "-q", "-e", text, "--store", "first", folder=folder)
    run("run", "-q", "-e", 'read("in*.npy") |> gaussian(1) |> write("out/{stem}.tif")', folder=folder)
    with View(only_run(folder), folder=folder) as view:
        one, = images(view)
        assert one["collection"] == [f"in{k}.tif" for k in range(8)], one


@test
def last_step_of_a_solver_is_shown(folder):
    for kind, name in (("pvti", "live.pvd"), ("tif", "live-0006.tif")):
        run("run", "-q", "-e", SOLVE.format(iterations=6, kind=kind, every=2), "--store", kind, folder=folder)
        run("run", "-q", "-e", f'write(read("live-0006.{kind}"), "end.npy")', "--overwrite", "--store", "other", folder=folder)
        path, = (pathlib.Path(folder) / kind / "runs").iterdir()
        with View(path, folder=folder) as view:
            one, = images(view)
            assert one["name"] == name, one["name"]
            assert numpy.array_equal(view.plane(axis="z", index=8), numpy.load(pathlib.Path(folder) / "end.npy")[8])


@test
def a_running_solve_shows_its_last_committed_step(folder):
    solve = subprocess.Popen([FOVEA, "run", "-q", "-e", SOLVE.format(iterations=4000, kind="pvti", every=20)], cwd=folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        series = pathlib.Path(folder) / "live.pvd"
        wait_for("the second step", lambda: series.exists() and "live-0040" in series.read_text())
        solve.send_signal(signal.SIGSTOP)
        with View(only_run(folder), folder=folder) as view:
            one, = images(view)
            assert one["name"] == "live.pvd" and one["shape"] == [16, 96, 96], one
            shown = view.plane(axis="z", index=8)
        last = series.read_text().rpartition('file="')[2].partition('"')[0]
        run("run", "-q", "-e", f'write(read("{last}"), "last.npy")', "--store", "other", folder=folder)
        assert numpy.array_equal(shown, numpy.load(pathlib.Path(folder) / "last.npy")[8]), last
    finally:
        solve.kill()
        solve.wait()


@test
def a_run_without_results_is_refused_with_a_reason(folder):
    run("run", "-q", "-e", 'mean(phantom("cells", [9, 9]))', folder=folder)
    said = run("view", only_run(folder), folder=folder, code=2).stderr
    assert "no image or table of this run is complete" in said and "fovea watch" in said, said


main()
