"""--memory: the least that plans and messages name is the least that works, on every engine, and no run uses more."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from device_service import no_pocl
from fovea_test import FOVEA, Skip, main, run, test
from memory_used import family, memory_of

SMOOTH = 'phantom("foam", [100, 160, 160]) |> gaussian(3) |> write("out.npy")'
LABELS = ('a = phantom("foam", [120, 160, 160])\nl = label(gaussian(a, 2) < 60)\n'
          'write(l, "out.zarr")\nwrite(measure(l), "out.csv")')
WATERSHED = 'a = phantom("foam", [100, 100, 100])\nwrite(watershed(a, label(a < 4)), "out.npy")'
SMALL = 'phantom("cells", [64, 64]) |> gaussian(2) |> write("out.npy")'
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def peak(command, folder, environment=None):
    """Exit status, messages, and the most that all fovea processes of a command used at once."""
    process = subprocess.Popen(list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, **AS_ROOT, **(environment or {})})
    most = 0
    while process.poll() is None:
        most = max(most, memory_of(family(process.pid)))
        time.sleep(0.004)
    return process.returncode, process.stderr.read(), most


def check(text, folder, *options, start=(), ranks=(), environment=None):
    """Plan and run agree to the byte, the whole mebibytes of the message are the least that works, and the bound holds."""
    engine = options if not start else [*options, "--engine", "mpi", *ranks]
    plan = json.loads(run("plan", "--json", "-e", text, *engine, folder=folder, environment=environment).stdout)
    least = int(plan["least_memory"])
    command = [*start, FOVEA, "run", "-q", "--fresh", "-e", text, *options, "--memory"]
    status, errors, _ = peak([*command, least - 1], folder, environment)
    named = re.search(r"at least --memory (\d+)M is needed", errors)
    assert status == 2 and named, (status, errors)
    mebibytes = int(named[1])
    assert (mebibytes - 1) << 20 < least <= mebibytes << 20, (mebibytes, least)
    assert peak([*command, f"{mebibytes - 1}M"], folder, environment)[0] == 2
    for bound, given in ((least, least), (mebibytes << 20, f"{mebibytes}M")):
        status, errors, most = peak([*command, given], folder, environment)
        assert status == 0 and 0 < most <= bound, (options, status, errors, most / 2**20, bound / 2**20)


def both(name, text, *options):
    def names_the_least(folder):
        check(text, folder, *options)
    names_the_least.__name__ = f"{name}_names_the_least_and_keeps_to_it"
    test(names_the_least)


both("one_thread", LABELS, "--workers", "1")
both("four_threads", LABELS, "--workers", "4", "--chunk", "40x80x80")
both("smoothing", SMOOTH, "--workers", "2")
both("a_watershed", WATERSHED, "--workers", "2", "--chunk", "50x50x100")
both("a_small_image", SMALL, "--workers", "3")
both("one_process", SMOOTH, "--engine", "processes", "--workers", "1")
both("three_processes", LABELS, "--engine", "processes", "--workers", "3", "--chunk", "40x80x80")


@test
def ranks_name_the_least_and_keep_to_it(folder):
    found = False
    for launcher in (["mpiexec.mpich"], ["mpiexec.openmpi", "--oversubscribe"]):
        if not shutil.which(launcher[0]):
            continue
        found = True
        for count in "1", "3":
            check(SMOOTH, folder, "--workers", "1", start=[*launcher, "-n", count], ranks=["--ranks", count])
    if not found:
        raise Skip("no mpiexec")


@test
def a_device_whose_kernels_were_never_compiled_names_the_least_and_keeps_to_it(folder):
    """The first run that is not refused compiles them, with the memory that takes."""
    if no_pocl():
        raise Skip(no_pocl())
    for engine in "threads", "processes":
        home = os.path.join(folder, engine)
        new = {"HOME": home, "XDG_CACHE_HOME": home, "POCL_CACHE_DIR": os.path.join(home, "pocl"), "FOVEA_DEVICES": ""}
        for name in home, new["POCL_CACHE_DIR"]:
            os.makedirs(name)
        check(SMALL, folder, "--device", "opencl:0", "--engine", engine, "--workers", "2", environment=new)
    small = run("run", "-e", SMALL, "--device", "opencl:0", "--memory", "200M", folder=folder, code=2)
    assert "are for OpenCL, whose compiler takes so much when a kernel is new" in small.stderr, small.stderr


@test
def a_device_that_needs_too_much_memory_is_left_alone_where_the_choice_is_free(folder):
    if no_pocl():
        raise Skip(no_pocl())
    card = {"FOVEA_DEVICE_CARD": "1", "FOVEA_DEVICES": ""}
    done = run("run", "-e", SMALL, "--device", "auto", "--memory", "200M", folder=folder, environment=card)
    assert "on the CPU: " in done.stderr and "are for OpenCL" in done.stderr, done.stderr
    less = run("run", "-e", SMALL, "--device", "auto", "--memory", "80M", folder=folder, environment=card, code=2)
    assert "OpenCL, which --device cpu does without" in less.stderr, less.stderr
    run("run", "-q", "-e", SMALL, "--device", "cpu", "--memory", "80M", folder=folder, environment=card)


@test
def what_a_plan_says_in_words_is_enough(folder):
    said = re.search(r"at least --memory (\d+M)", run("plan", "-e", LABELS, "--workers", "2", folder=folder).stdout)[1]
    run("run", "-q", "-e", LABELS, "--workers", "2", "--memory", said, folder=folder)


@test
def a_folder_of_files_is_refused_item_by_item(folder):
    """The first one fits, another does not: it is named with the least that it needs, and the others are done."""
    for name, side in ("a", 40), ("b", 700), ("c", 40):
        run("run", "-q", "-e", f'phantom("noise", [{side}, {side}]) |> write("in-{name}.npy")', folder=folder)
    text = 'write(distance(read("in-*.npy") > 100), "out-{stem}.npy")'
    done = run("run", "-e", text, "--memory", "35M", folder=folder, code=1)
    least = re.search(r"in-b.npy: .*at least --memory (\d+)M is needed", done.stderr)
    assert least and sorted(p.name for p in pathlib.Path(folder).glob("out-*")) == ["out-in-a.npy", "out-in-c.npy"], done.stderr
    run("run", "-q", "-e", text, "--memory", f"{int(least[1]) - 1}M", folder=folder, code=1)
    run("run", "-q", "-e", text, "--memory", f"{least[1]}M", folder=folder)


@test
def items_that_are_too_large_as_a_whole_fit_in_smaller_tasks(folder):
    for name in "ab":
        run("run", "-q", "-e", f'ones([100, 100, 200]) |> convert("uint8") |> write("in/{name}.npy")', folder=folder)
    text = 'x = read("in/*.npy"); write(measure(label(x > 0), x), "m.csv")'
    assert "or smaller tasks (--chunk 64)" in run("plan", "--memory", "90M", "-e", text, folder=folder).stdout
    done = run("run", "-q", "--memory", "90M", "-e", text, folder=folder, code=1)
    assert "M is needed, or smaller tasks (--chunk 64)" in done.stderr, done.stderr
    small = ["--memory", "35M", "--chunk", "64", "-e", 'median(ones([400, 400, 400]), 61) |> write("m.npy")']
    done = run("run", "-q", *small, folder=folder, code=2)
    assert "M is needed" in done.stderr and "smaller tasks" not in done.stderr, done.stderr
    plan = run("plan", *small, folder=folder)
    assert "M" in plan.stdout and "smaller tasks" not in plan.stdout, plan.stdout
    run("run", "-q", "--memory", "90M", "--chunk", "64", "-e", text, folder=folder)
    small = pathlib.Path(folder, "m.csv").read_text()
    run("run", "-q", "--fresh", "--overwrite", "-e", text, folder=folder)
    assert pathlib.Path(folder, "m.csv").read_text() == small and small.count("\n") == 3, small


main()
