"""The MPI engine under real MPICH and Open MPI: same bits on any number of ranks, dying ranks, refused launches."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, ROOT, TESTS, Skip, main, run, test

BUILD = pathlib.Path(FOVEA).parent
LAUNCH = {"mpich": ["mpiexec.mpich"], "openmpi": ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"]}
RANKS = {"mpich": (2, 4, 7), "openmpi": (1, 3)}  # of the conformance suite: one source for both, so they share the numbers
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
BUBBLES = """foam    = phantom("foam", [60, 100, 120], seed = 1)
walls   = gaussian(1 - foam / 255, sigma = [2, 3, 3])
bubbles = label(erode(walls > 0.8, ball(3)))
write(bubbles, "bubbles.zarr")
write(walls, "walls.npy")
write(bubbles, "bubbles.nii.gz")
write(measure(bubbles, foam), "bubbles.csv")
mean(foam)
"""
LONG = 'phantom("foam", [800, 256, 256], seed = 1) |> median(9) |> write("long.npy")'


def every_flavour(function):
    """Makes a test of each flavour; it gets the flavour and a folder in memory, because disks of test machines are slow."""
    def make(flavour):
        def one(folder):
            if not shutil.which(LAUNCH[flavour][0]):
                raise Skip(f"{LAUNCH[flavour][0]} is not installed")
            if not (BUILD / f"fovea-mpi-{flavour}.so").exists():
                raise Skip(f"fovea-mpi-{flavour}.so was not built: no mpicc.{flavour}")
            shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
            with tempfile.TemporaryDirectory(prefix="fovea-mpi-", dir=shared) as memory:
                function(flavour, memory)
        one.__name__ = f"{function.__name__}_{flavour}"
        TESTS.append(one)
    for flavour in LAUNCH:
        make(flavour)


def launch(flavour, ranks, *command, folder, environment=None):
    """A running mpiexec."""
    return subprocess.Popen([*LAUNCH[flavour], "-n", str(ranks), *map(str, command)], cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **AS_ROOT, "TMPDIR": str(folder), **(environment or {})})


def finish(process, code=0):
    """Standard output and error of a process that must end with this exit status (None: any but 0)."""
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, errors = process.communicate()
        raise AssertionError(f"still running after {PATIENCE} s: {errors[-600:]}")
    good = process.returncode == code if code is not None else process.returncode != 0
    assert good, f"exit status {process.returncode}, not {code}: {errors[-800:]}"
    return output, errors


def mpi(flavour, ranks, *arguments, folder, code=0, environment=None):
    """fovea on so many ranks."""
    return finish(launch(flavour, ranks, FOVEA, *arguments, folder=folder, environment=environment), code)


def contents(folder):
    """Bytes of all results, by name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*"))
            if p.is_file() and ".fovea" not in str(p) and p.suffix != ".fov"}


def separate(folder, *names):
    made = []
    for name in names:
        made.append(pathlib.Path(folder, name))
        made[-1].mkdir()
        (made[-1] / "bubbles.fov").write_text(BUBBLES)
    return made


@every_flavour
def the_conformance_suite_gives_the_same_bits_on_any_number_of_ranks(flavour, folder):
    program = BUILD / "tests" / "test_conformance"
    for ranks in RANKS[flavour]:
        process = subprocess.Popen([*LAUNCH[flavour], "-n", str(ranks), str(program), "lattice_with_threads"], cwd=ROOT,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **AS_ROOT, "FOVEA_TEST_ROUNDS": "1", "TMPDIR": str(folder)})
        output, errors = finish(process)
        assert [line.split()[0] for line in output.splitlines()] == ["ok"], f"{ranks} ranks: {output} {errors[-500:]}"


@every_flavour
def ranks_with_threads_write_the_same_files_and_only_one_speaks(flavour, folder):
    alone, together = separate(folder, "alone", "together")
    said = run("run", "bubbles.fov", "--chunk", "16x32x32", folder=alone).stdout
    output, errors = mpi(flavour, 3, "run", "bubbles.fov", "--chunk", "16x32x32", "--workers", 2, folder=together)
    assert output == said and len(said.splitlines()) == 1, output
    assert errors.count("fovea: bubbles.csv") == 1, errors
    assert contents(alone) == contents(together)
    [record] = together.glob(".fovea/runs/*/record.db")
    workers = sqlite3.connect(record).execute("select distinct worker from task").fetchall()
    assert len({worker // 4 for worker, in workers}) == 3, workers  # every rank took part


@every_flavour
def a_folder_of_files_with_a_bad_one_finishes_all_others(flavour, folder):
    alone, together = separate(folder, "alone", "together")
    for place in (alone, together):
        (place / "in").mkdir()
        for index in range(12):
            text = f'phantom("cells", [{40 + index}, 50], seed = {index}) |> write("in/{index:02}.png")'
            run("run", "-q", "-e", text, folder=place)
        (place / "in" / "05.png").write_bytes(b"no image")
    text = 'a = read("in/*.png")\nwrite(gaussian(a, 1), "out/{stem}.npy")\nwrite(measure(label(a > 90)), "cells.csv")'
    run("run", "-e", text, folder=alone, code=1)
    output, errors = mpi(flavour, 3, "run", "-e", text, folder=together, code=1)
    assert "05.png" in errors and "1 of 12 items failed" in errors, errors
    assert contents(alone) == contents(together) and len(list(together.glob("out/*.npy"))) == 11


def rank_processes(folder):
    """Process ids of the ranks that work (not of those that guard them), by rank."""
    found = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            words = [pathlib.Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0") for p in (status.parent.name, parent)]
            where = os.readlink(status.parent / "cwd")
            settings = dict(x.split(b"=", 1) for x in (status.parent / "environ").read_bytes().split(b"\0") if b"=" in x)
        except (OSError, ValueError, IndexError):
            continue
        if where == os.path.realpath(folder) and words[0][:2] == words[1][:2] == [FOVEA.encode(), b"run"]:
            found[int(settings.get(b"OMPI_COMM_WORLD_RANK", settings.get(b"PMI_RANK", b"-1")))] = int(status.parent.name)
    return found


def start_and_kill(flavour, rank, folder):
    """Kills a rank in the middle of the work; what was said, and how long the others lived on."""
    def logged():
        return sum(p.stat().st_size for p in pathlib.Path(folder).glob(".fovea/store/*.log"))

    before = logged()
    process = launch(flavour, 3, FOVEA, "run", "-e", LONG, "--workers", 1, "--chunk", "16x64x64", folder=folder)
    end = time.monotonic() + 60
    while logged() < before + 3000:
        assert process.poll() is None and time.monotonic() < end, finish(process, None)
        time.sleep(0.01)
    os.kill(rank_processes(folder)[rank], signal.SIGKILL)
    return finish(process, None)[1]


@every_flavour
def after_a_rank_was_killed_any_number_of_ranks_or_threads_go_on(flavour, folder):
    alone, broken = separate(folder, "alone", "broken")
    whole = json.loads(run("run", "--json", "-e", LONG, "--chunk", "16x64x64", folder=alone).stdout)["tasks_run"]
    said = start_and_kill(flavour, 2, broken)
    host = os.uname().nodename
    assert f"rank 2 on {host} was killed (signal 9, Killed) at stage 1, task " in said or \
        f"rank 2 on {host} was killed (signal 9, Killed) after stage 1, task " in said, said
    said = start_and_kill(flavour, 0, broken)
    assert f"rank 0 on {host} was killed" in said, said
    copy = pathlib.Path(folder, "copy")
    shutil.copytree(broken, copy)
    output, _ = mpi(flavour, 2, "run", "--json", "-e", LONG, "--chunk", "16x64x64", folder=broken)
    assert 0 < json.loads(output)["tasks_run"] < whole
    left = json.loads(run("run", "--json", "-e", LONG, "--chunk", "16x64x64", folder=copy).stdout)["tasks_run"]
    assert 0 < left < whole
    assert contents(alone) == contents(broken) == contents(copy)


SCAN = """g = cone(angles = range(0, 360, count = 24), source = 120, detector = 60, pitch = 1.5)
v = phantom("shepp-logan", [40, 48, 48])
p = xray(v, g)
"""
SOLVES = SCAN + """write(sirt(p, g, iterations = 3), "sirt.npy")
write(cgls(p, g, iterations = 3), "cgls.npy")
write(sirt(p, g, iterations = 3, mask = v > 0, start = gaussian(v, 2)), "sirt-masked.npy")
write(cgls(p, g, iterations = 3, mask = v > 0, start = gaussian(v, 2)), "cgls-masked.npy")
write(sirt(p, g, iterations = 7, stop = 0.25), "sirt-stopped.npy")
write(cgls(p, g, iterations = 7, stop = 0.1), "cgls-stopped.npy")
"""
LONG_SOLVE = SCAN + 'write(sirt(p, g, iterations = 20), "long.npy")'


@every_flavour
def solves_of_cones_have_the_same_bits_on_any_number_of_ranks(flavour, folder):
    alone, *together = separate(folder, "alone", "two", "three", "four")
    run("run", "-q", "-e", SOLVES, "--chunk", "8x48x48", folder=alone)
    for place, ranks, workers in zip(together, (2, 3, 4), (1, 2, 1)):
        mpi(flavour, ranks, "run", "-q", "-e", SOLVES, "--chunk", "8x48x48", "--workers", workers, folder=place)
        assert contents(place) == contents(alone), ranks


def packed(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).glob(".fovea/store/*.pack"))


@every_flavour
def slabs_of_a_solve_go_through_the_store_where_memory_is_scarce(flavour, folder):
    text = SCAN.replace("[40, 48, 48]", "[96, 96, 96]").replace("120", "300") + 'write(sirt(p, g, iterations = 1), "one.npy")'
    ample, scarce = separate(folder, "ample", "scarce")
    command = ["run", "-q", "-e", text, "--chunk", "16x96x96", "--workers", 1, "--patience", 1000]
    mpi(flavour, 2, *command, "--memory", "2G", folder=ample)
    mpi(flavour, 2, *command, "--memory", "180M", folder=scarce)
    assert contents(ample) == contents(scarce)
    assert packed(ample) < packed(scarce) / 4, (packed(ample), packed(scarce))


def break_exchange(flavour, fault, ranks, folder):
    """A solve in which some of three ranks fail at an exchange; everything is committed at once. What was said."""
    shell = f'case {ranks} in *${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}*) export FOVEA_FAULT={fault};; esac; exec "$0" "$@"'
    process = launch(flavour, 3, "sh", "-c", shell, FOVEA, "run", "-e", LONG_SOLVE, "--chunk", "8x48x48", "--workers", 1,
                     "--patience", 0.001, folder=folder)
    return finish(process, None)[1]


@every_flavour
def a_solve_whose_ranks_die_goes_on_from_its_last_committed_iteration(flavour, folder):
    alone, one, all_of_them = separate(folder, "alone", "one", "all")
    whole = json.loads(run("run", "--json", "-e", LONG_SOLVE, "--chunk", "8x48x48", folder=alone).stdout)["tasks_run"]
    break_exchange(flavour, "exchange:50:kill", "1", one)  # of about 80
    break_exchange(flavour, "exchange:50:kill", "012", all_of_them)
    output, _ = mpi(flavour, 2, "run", "--json", "-e", LONG_SOLVE, "--chunk", "8x48x48", folder=one)
    assert json.loads(output)["tasks_run"] < 0.6 * whole, (output, whole)
    output = run("run", "--json", "-e", LONG_SOLVE, "--chunk", "8x48x48", folder=all_of_them).stdout
    assert json.loads(output)["tasks_run"] < 0.6 * whole, (output, whole)
    assert contents(alone) == contents(one) == contents(all_of_them)


@every_flavour
def a_rank_that_cannot_take_part_in_an_exchange_says_why_and_ends_the_run(flavour, folder):
    said = break_exchange(flavour, "exchange:20:error", "2", folder)
    assert "rank 2: cannot write: No space left on device (injected at exchange)" in said, said
    said = break_exchange(flavour, "exchange:20:error", "0", folder)
    assert "rank 0: cannot write: No space left on device (injected at exchange)" in said, said


@every_flavour
def a_sum_over_blocks_has_the_same_bits_on_any_number_of_ranks_and_threads(flavour, folder):
    program = BUILD / "bench" / "bench_allreduce"
    subprocess.run([str(program), folder, "2"], check=True)
    expected = pathlib.Path(folder, "sum-0").read_bytes()
    half = len(expected) // 2
    assert half > 100000 and expected[:half] == expected[half:]  # blocks in runs, and dealt out one by one
    for ranks, threads in (1, 1), (2, 2), (3, 1), (5, 1):
        finish(launch(flavour, ranks, program, folder, threads, folder=folder))
        for rank in range(ranks):
            assert pathlib.Path(folder, f"sum-{rank}").read_bytes() == expected, f"rank {rank} of {ranks}"


@every_flavour
def the_example_adds_two_million_numbers_of_every_rank(flavour, folder):
    prefix = pathlib.Path(folder, "installed")
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    [pc] = prefix.rglob("fovea.pc")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fovea"], check=True, stdout=subprocess.PIPE, text=True,
                           env={"PKG_CONFIG_PATH": str(pc.parent), "PATH": "/usr/bin:/bin"}).stdout.split()
    program = pathlib.Path(folder, "allreduce")
    subprocess.run(["cc", str(ROOT / "examples" / "allreduce.c"), *flags, "-o", str(program)], check=True)
    [library] = {str(p.parent) for p in prefix.rglob("libfovea.so*")}
    output, _ = finish(launch(flavour, 3, program, folder=folder, environment={"LD_LIBRARY_PATH": library}))
    lines = sorted(output.splitlines())
    assert len(lines) == 3 and all(line.startswith(f"rank {i} of 3: ") for i, line in enumerate(lines)), output
    assert all(line.endswith("for 2000000 numbers, sum right") for line in lines), output


@every_flavour
def scaling_is_measured_with_ranks(flavour, folder):
    pathlib.Path(folder, "p.fov").write_text('mean(gaussian(phantom("foam", [40, 64, 64]), 2))\n')
    done = run("scale", "p.fov", "--engine", "mpi", "--launcher", " ".join(LAUNCH[flavour]), "--workers", "1,3", "--repeats", "1",
               "--chunk", "8x64x64", "--json", "-q", folder=folder, environment={**AS_ROOT, "TMPDIR": str(folder)})
    one, three = json.loads(done.stdout)["rows"]
    assert (one["workers"], three["workers"]) == (1, 3) and one["tasks"] == three["tasks"] >= 5, (one, three)


@every_flavour
def a_mistake_in_the_text_is_told_once_and_nothing_starts(flavour, folder):
    output, errors = mpi(flavour, 3, "run", "-e", 'gausian(phantom("cells", [9, 9]), 2)', folder=folder, code=2)
    assert errors.count("did you mean gaussian?") == 1 and not output, errors


@every_flavour
def ranks_that_would_not_know_each_other_are_refused(flavour, folder):
    other = {"mpich": "openmpi", "openmpi": "mpich"}[flavour]
    if not (BUILD / f"fovea-mpi-{other}.so").exists():
        raise Skip(f"fovea-mpi-{other}.so was not built: no mpicc.{other}")
    _, errors = mpi(flavour, 2, "run", "-e", 'mean(phantom("cells", [9, 9]))', folder=folder, code=2,
                    environment={"FOVEA_MPI": other})
    assert "2 ranks were started" in errors and f"mpiexec.{other}" in errors, errors


@every_flavour
def a_plug_in_that_is_missing_is_named_with_its_packages(flavour, folder):
    _, errors = mpi(flavour, 2, "run", "-e", 'mean(phantom("cells", [9, 9]))', folder=folder, code=2,
                    environment={"FOVEA_PLUGINS": "/nowhere"})
    packages = {"mpich": "mpich libmpich-dev", "openmpi": "openmpi-bin libopenmpi-dev"}[flavour]
    assert f"fovea-mpi-{flavour}.so" in errors and f"apt-get install {packages}" in errors, errors


@test
def tasks_of_srun_without_mpi_are_refused_and_a_batch_script_is_not(folder):
    text = 'mean(phantom("cells", [9, 9]))'
    step = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
    refused = run("run", "-e", text, folder=folder, code=2, environment=step).stderr
    assert "--mpi=pmi2" in refused and "--mpi=pmix" in refused, refused
    run("run", "-e", text, folder=folder, environment={"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"})
    run("run", "-e", text, "--engine", "threads", folder=folder, environment=step)


@test
def the_mpi_engine_without_a_launcher_says_how_to_start_it(folder):
    assert "mpiexec -n" in run("run", "--engine", "mpi", "-e", 'mean(phantom("cells", [9, 9]))', folder=folder, code=2).stderr


main()
