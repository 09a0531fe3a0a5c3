"""Results of solvers that are written while they are solved: steps under their own names, the same bits as a shorter solve gives,
nothing computed twice, and a list that names complete steps only, whenever a run is killed."""
import os
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

CALLS = ("sirt(p, g, iterations = {n})", "cgls(p, g, iterations = {n}, nonnegative = true)",
         "mlem(p, g, iterations = {n})", "sart(p, g, iterations = {n})", "art(p, g, iterations = {n})",
         "sirt(p, g, iterations = {n}, stop = 0.3, nonnegative = true, mask = disc)")
SOLVE = """g = parallel(range(-72, 72, 8))
p = xray(phantom("shepp-logan", [5, 32, 32]), g)
disc = phantom("shepp-logan", [5, 32, 32]) > 0
"""


def listed(folder, name="live.pvd"):
    """The steps of the list, by number."""
    text = pathlib.Path(folder, name).read_text()
    return {int(number): file for number, file in re.findall(r'timestep="(\d+)" part="0" file="([^"]+)"', text)}


def voxels(folder, name):
    run("convert", "-q", "--overwrite", "--store", "other", name, "seen.npy", folder=folder)
    return np.load(f"{folder}/seen.npy")


@test
def every_step_has_the_bits_of_a_solve_that_ends_there(folder):
    for call in CALLS:
        text = SOLVE + f'v = {call.format(n=7)}\nwrite(v, "live.npy", every = 3)\nwrite(v, "end.npy")\n'
        run("run", "-q", "--overwrite", "-e", text, folder=folder)
        alone = SOLVE + "".join(f'write({call.format(n=n)}, "alone{n}.npy")\n' for n in (3, 6, 7))
        run("run", "-q", "--overwrite", "--store", "other", "-e", alone, folder=folder)
        for n in (3, 6, 7):
            step = pathlib.Path(folder, f"live-000{n}.npy").read_bytes()
            assert step == pathlib.Path(folder, f"alone{n}.npy").read_bytes(), (call, n)
        assert pathlib.Path(folder, "end.npy").read_bytes() == step, call
        assert len({pathlib.Path(folder, f"live-000{n}.npy").read_bytes() for n in (3, 6, 7)}) > 1, call


@test
def no_iteration_is_made_twice(folder):
    def work(every):
        text = SOLVE + f'v = sirt(p, g, iterations = 24)\nwrite(v, "live.npy"{every})\nwrite(v, "end.tif")\n'
        done = run("plan", "-e", text, folder=folder)
        return float(re.search(r"work: about ([0-9.e-]+) core-seconds", done.stdout)[1])

    assert work("") <= work(", every = 4") < 1.2 * work(""), (work(""), work(", every = 4"))  # alone they would take 3.5 times


@test
def cones_and_ptychography_have_steps_too_and_so_has_what_is_made_of_them(folder):
    text = """c = cone(range(0, 360, 60), source = 60, detector = 30)
p = xray(phantom("shepp-logan", [8, 16, 16]), c)
v = sirt(p, c, iterations = 4)
write(gaussian(v, 1), "smooth.npy", every = 2)
o = complex_image(ones([48, 48]), phantom("cells", [48, 48]) / 255)
at = scan_positions("fermat", 24, 6)
light = make_probe(24, radius = 6, defocus = 60, counts = 1e5)
write(phase(ptycho(diffract(o, light, at), light, positions = at, iterations = 4)), "phase.npy", every = 2)
"""
    run("run", "-q", "-e", text, folder=folder)
    short = text.replace("iterations = 4", "iterations = 2").replace(", every = 2", "").replace(".npy", "-alone.npy")
    run("run", "-q", "--store", "other", "-e", short, folder=folder)
    for name in ("smooth", "phase"):
        steps = [pathlib.Path(folder, f"{name}-000{n}.npy").read_bytes() for n in (2, 4)]
        assert steps[0] == pathlib.Path(folder, f"{name}-alone.npy").read_bytes(), name
        assert steps[0] != steps[1], name


LIVE = SOLVE + 'write(sirt(p, g, iterations = 9), "live.pvti", every = 2, chunk = [2, 32, 32])\n'


@test
def a_list_names_complete_steps_only_and_a_killed_run_goes_on(folder):
    run("run", "-q", "-e", LIVE, folder=folder)
    whole = {n: voxels(folder, file) for n, file in listed(folder).items()}
    assert sorted(whole) == [2, 4, 6, 8, 9], sorted(whole)
    pathlib.Path(folder, "live.pvd").unlink()
    run("run", "-q", "--fresh", "-e", LIVE, folder=folder)
    assert sorted(listed(folder)) == sorted(whole), sorted(listed(folder))
    seen = set()
    for point in ("task:5", "task:8", "task:11", "rename:9", "rename:14", "rename:16", "rename:17", "rename:20", "replace:3"):
        place = pathlib.Path(folder, point.replace(":", ""))
        place.mkdir()
        done = run("run", "-q", "--workers", "1", "-e", LIVE, folder=place, code=None,
                   environment={"FOVEA_FAULT": f"{point}:kill"})
        steps = listed(place) if place.joinpath("live.pvd").exists() else {}
        seen.add((done.returncode == 137, len(steps)))
        for n, file in steps.items():
            assert np.array_equal(voxels(place, file), whole[n]), (point, n)
        run("run", "-q", "-e", LIVE, folder=place)
        assert sorted(listed(place)) == sorted(whole), point
        assert all(np.array_equal(voxels(place, file), whole[n]) for n, file in listed(place).items()), point
    assert len({count for killed, count in seen if killed}) >= 3, seen  # killed with none, some and more of them there


@test
def the_list_is_made_again_and_reads_as_its_last_step(folder):
    run("run", "-q", "-e", LIVE, folder=folder)
    last = voxels(folder, "live-0009.pvti")
    assert np.array_equal(voxels(folder, "live.pvd"), last)
    run("run", "-q", "-e", 'write(read("live.pvd", path = "4"), "fourth.npy")', folder=folder)
    assert np.array_equal(np.load(f"{folder}/fourth.npy"), voxels(folder, "live-0004.pvti"))
    os.remove(f"{folder}/live.pvd")
    run("run", "-q", "-e", LIVE, folder=folder)
    assert sorted(listed(folder)) == [2, 4, 6, 8, 9]
    done = run("info", "live.pvd", folder=folder)
    assert "9, in live-0009.pvti" in done.stdout and "live-0002.pvti" in done.stdout, done.stdout
    pathlib.Path(folder, "empty.pvd").write_text('<VTKFile type="Collection"><Collection></Collection></VTKFile>')
    assert "no step in it yet" in run("info", "empty.pvd", folder=folder, code=2).stderr


@test
def engines_and_chunks_do_not_change_a_step(folder):
    run("run", "-q", "-e", LIVE, folder=folder)
    first = {file: voxels(folder, file) for file in listed(folder).values()}
    place = pathlib.Path(folder, "other-way")
    place.mkdir()
    run("run", "-q", "--engine", "processes", "--chunk", "2x16x16", "-e", LIVE, folder=place)
    for file, expected in first.items():
        assert np.array_equal(voxels(place, file), expected), file


@test
def mistakes_are_said_before_the_work(folder):
    wrong = {'write(phantom("cells", [20, 20]), "a.npy", every = 2)': "iterative solver",
             SOLVE + 'write(residuals(p, g, "sirt", iterations = 4), "a.csv", every = 2)': "iterative solver",
             SOLVE + 'write(sirt(p, g, iterations = 5000), "a.npy", every = 1)': "at most 1000",
             SOLVE + 'write(sirt(p, g, iterations = 5), "a.npy", every = -1)': "every"}
    for text, word in wrong.items():
        assert word in run("run", "-q", "-e", text, folder=folder, code=2).stderr, text
    pathlib.Path(folder, "live.pvd").write_text("mine")
    done = run("run", "-q", "-e", LIVE, folder=folder, code=None)
    assert done.returncode and "not made by Fovea" in done.stderr, done
    assert pathlib.Path(folder, "live.pvd").read_text() == "mine"
    run("run", "-q", "--overwrite", "-e", LIVE, folder=folder)
    assert sorted(listed(folder)) == [2, 4, 6, 8, 9]


main()
