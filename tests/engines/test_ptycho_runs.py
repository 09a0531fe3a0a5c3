"""Ptychographic solves that are killed, shared by ranks, or larger than their memory: always the same bits."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test
from memory_used import family, memory_of

SCAN = """at     = scan_positions("fermat", 24, 4)
object = complex_image(1 - 0.2 * gaussian(phantom("cells", [72, 72]) / 255, 1), gaussian(phantom("noise", [72, 72]), 1))
frames = diffract(object, make_probe(32, radius = 8, defocus = 60, counts = 1e5), at)
"""
SOLVE = SCAN + """start  = make_probe(32, radius = 9, defocus = 50)
found  = ptycho(frames, start, positions = at, method = "{method}", iterations = 4, group = 20, block = 8)
write(found, "object.npy")
"""
LARGE = """at     = scan_positions("raster", [240, 230], 10)
object = complex_image(ones([384, 384]), phantom("cells", [384, 384]) / 255)
frames = diffract(object, make_probe(128, radius = 24, defocus = 400, counts = 1e6), at)
write(ptycho(frames, make_probe(128, radius = 26, defocus = 300), positions = at, iterations = 3), "object.npy")
"""
LIMIT = 160 << 20  # the exit waves of LARGE alone have 75 MiB, and two iterations of them are there at a time, beside amplitudes


def made(folder):
    return pathlib.Path(folder, "object.npy").read_bytes()


@test
def a_killed_solve_goes_on_with_the_same_bits(folder):
    for method in ("raar", "lsq", "rpie"):
        whole = pathlib.Path(folder, method)
        whole.mkdir()
        run("run", "-q", "-e", SOLVE.format(method=method), folder=whole)
        killed = 0
        for task in (6, 17, 29):
            place = pathlib.Path(folder, f"{method}-{task}")
            place.mkdir()
            done = run("run", "-q", "--workers", "1", "-e", SOLVE.format(method=method), folder=place, code=None,
                       environment={"FOVEA_FAULT": f"task:{task}:kill"})
            killed += done.returncode == 137
            assert done.returncode in (0, 137), done.stderr
            run("run", "-q", "-e", SOLVE.format(method=method), folder=place)
            assert made(place) == made(whole), (method, task)
        assert killed >= 2, (method, killed)


@test
def waves_that_took_the_place_of_older_ones_are_not_made_again(folder):
    """Blocks leave memory one by one while the next iteration makes its own: wherever a run is killed, what is left suffices."""
    def count(done):
        return int(re.search(r"(\d+) tasks in", done.stderr).group(1))
    text = SOLVE.format(method="raar")
    whole = pathlib.Path(folder, "whole")
    whole.mkdir()
    tasks = count(run("run", "--workers", "1", "-e", text, folder=whole))
    for task in range(tasks // 2, tasks // 2 + 24, 2):  # a millisecond of work may be lost, which is a few tasks here
        place = pathlib.Path(folder, str(task))
        place.mkdir()
        done = run("run", "-q", "--workers", "1", "--patience", "0.001", "-e", text, folder=place, code=None,
                   environment={"FOVEA_FAULT": f"task:{task}:kill"})
        assert done.returncode == 137, done.stderr
        left = count(run("run", "--workers", "1", "-e", text, folder=place))
        assert left <= tasks - task // 2, (task, left, tasks)
        assert made(place) == made(whole), task


@test
def two_ranks_find_the_same_bits(folder):
    launchers = {"mpich": ["mpiexec.mpich"], "openmpi": ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"]}
    flavours = [flavour for flavour in launchers if shutil.which(launchers[flavour][0]) and
                pathlib.Path(FOVEA).with_name(f"fovea-mpi-{flavour}.so").exists()]
    if not flavours:
        raise Skip("there is no mpiexec, or fovea was built without MPI")
    for method in ("raar", "lsq"):
        alone = pathlib.Path(folder, method)
        alone.mkdir()
        run("run", "-q", "-e", SOLVE.format(method=method), folder=alone)
        for flavour in flavours:
            place = pathlib.Path(folder, f"{method}-{flavour}")
            place.mkdir()
            command = [*launchers[flavour], "-n", "2", FOVEA, "run", "-q", "-e", SOLVE.format(method=method)]
            environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=PATIENCE, env=environment)
            assert done.returncode == 0, done.stderr
            assert made(place) == made(alone), (method, flavour)


@test
def waves_larger_than_memory_are_kept_on_disk(folder):
    free, bound = pathlib.Path(folder, "free"), pathlib.Path(folder, "bound")
    for place in (free, bound):
        place.mkdir()
    run("run", "-q", "-e", LARGE, folder=free)
    process = subprocess.Popen([FOVEA, "run", "-q", "--memory", str(LIMIT), "-e", LARGE], cwd=bound, stderr=subprocess.PIPE,
                               text=True)
    most = 0
    while process.poll() is None:
        most = max(most, memory_of(family(process.pid)))
    assert process.returncode == 0, process.stderr.read()
    assert most <= LIMIT, f"{most >> 20} MiB of {LIMIT >> 20}"
    assert made(bound) == made(free)


main()
