#!/usr/bin/python3
"""Workers that share no folder with the program that started the run: they find its folders empty, and inputs behind addresses.
Here threads of this program stand for the tasks of Spark or Dask."""
import contextlib
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, Skip, main, raises, wait_for  # noqa: E402
from placed import alone, blind, files, processes, there, values  # noqa: E402
from remote_server import serve  # noqa: E402

sys.path.insert(0, str(ROOT / "python"))
try:
    import numpy as np
    import fovea as fv
    from fovea._placed import placed_run
    from fovea._placed_apart import ApartRun, address_towards
    from fovea._placed_worker import Problem
except ImportError as missing:
    print(f"skip apart: {missing}")
    sys.exit(0)

MEMORY = 400 << 20
FOAM = """
param level = 100
foam = phantom("cells", [32, 96, 96])
smooth = gaussian(foam, 1)
bubbles = label(smooth > level)
write(bubbles, "bubbles-{level}.npy")
write(smooth, "smooth-{level}.tif", compression = "deflate")
write(distance(bubbles > 0), "distance-{level}.zarr")
write(measure(bubbles, foam), "bubbles.csv")
max(bubbles)
otsu(smooth)
"""


def apart(folder, text, params=None, workers=2, meanwhile=lambda run: None, environment=None, **options):
    """What a run prints whose workers do not see this folder. meanwhile: called when they have begun."""
    command = blind(folder.parent / "blind", folder)
    with placed_run(text, params, **options) as placed, ApartRun(placed, workers, MEMORY, "127.0.0.1") as run:
        threads = [threading.Thread(target=run.worker(command, environment=environment)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        meanwhile(run)
        try:
            return run.finish()
        finally:
            for thread in threads:
                thread.join()


def inside(function):
    """A test in a folder below its own, so that something lies beside that."""
    def in_driver(folder):
        (folder / "driver").mkdir()
        os.chdir(folder / "driver")
        function(folder / "driver")
    in_driver.__name__ = function.__name__
    return there(in_driver)


@inside
def they_make_what_threads_make(folder):
    want, made = alone(folder, FOAM, {"level": [90, 110]})
    folders = []
    found = apart(folder, FOAM, {"level": [90, 110]}, meanwhile=lambda run: folders.append(run.run), chunk=[16, 48, 96])
    assert values(found) == values(want) and files(folder) == made
    state = folders[0].look()
    assert state["finished"] and state["tasks_repeated"] == 0 and state["stages"][0]["tasks"] == 4, state
    assert not os.path.exists(os.path.join(folders[0].folder, "apart"))  # nobody can connect any more


@inside
def solvers_and_files_that_they_see_are_fine(folder):
    text = ('g = parallel(range(-72, 72, 6))\nviews = xray(phantom("shepp-logan", [8, 32, 32]), g)\n'
            'write(sirt(views, g, iterations = 4), "volume.npy")\n')
    _, made = alone(folder, text)
    assert apart(folder, text) == [] and files(folder) == made
    np.save(folder.parent / "x.npy", np.random.default_rng(3).integers(0, 255, (40, 50), np.uint8))  # seen by all
    text = f'mean(median(read("{folder.parent}/x.npy"), 5))'
    assert apart(folder, text) == fv.run(text, store="alone")


@inside
def a_collection_comes_from_a_bucket_and_goes_to_one(folder):
    if not (pathlib.Path(FOVEA).resolve().parent / "fovea-remote.so").exists():
        raise Skip("no fovea-remote.so; libcurl is missing")
    data = folder.parent / "data"
    (data / "bucket" / "in").mkdir(parents=True)
    for k in range(6):
        np.save(data / "bucket" / "in" / f"{k}.npy", np.random.default_rng(k).integers(0, 255, (40 + k, 60), np.uint8))
    (data / "bucket" / "in" / "5.npy").write_bytes(b"no image")
    text = ('scan = read("s3://bucket/in/*.npy")\nwrite(median(scan, 3), "s3://bucket/WHERE/{stem}.npy")\n'
            'write(measure(label(scan > otsu(scan)), scan), "scans.csv")\n')
    with serve(data, key=("KEY", "SECRET")) as server:
        access = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET"}
        os.environ.update(access)
        raises(fv.InputError, "5.npy", lambda: fv.run(text.replace("WHERE", "alone"), store="alone"))
        (folder / "scans.csv").rename(folder / "want.csv")
        raises(fv.InputError, "5.npy", lambda: apart(folder, text.replace("WHERE", "out")))
        for name in access:
            del os.environ[name]
    assert (folder / "scans.csv").read_bytes() == (folder / "want.csv").read_bytes()
    want, found = ({p.name: p.read_bytes() for p in (data / "bucket" / where).iterdir()} for where in ("alone", "out"))
    assert found == want and len(want) == 5


@inside
def a_killed_worker_costs_nothing_but_its_task(folder):
    text = "\n".join(f'write(median(phantom("cells", [40, 80, 80], seed = {k}), 5), "out{k}.npy")' for k in range(12))
    _, made = alone(folder, text)

    def kill(run):
        victims = wait_for("a worker", lambda: processes(FOVEA, "task --apart") or run.over)
        if not run.over:
            os.kill(victims[0], signal.SIGKILL)
    assert apart(folder, text, meanwhile=kill) == [] and files(folder) == made


@inside
def what_was_stopped_goes_on(folder):
    text = "\n".join(f'write(median(phantom("cells", [40, 80, 80], seed = {k}), 5), "out{k}.npy")' for k in range(12))
    _, made = alone(folder, text)

    def stop(run):
        wait_for("the first file", lambda: list(folder.glob("out*")) or run.over)
        run.cancel.value = 1
    try:
        apart(folder, text, meanwhile=stop)
    except fv.Error as error:
        assert "goes on" in str(error), error
    first = len(list(folder.glob("out*.npy")))
    assert first and apart(folder, text) == [] and files(folder) == made


@inside
def a_store_in_a_bucket_outlives_the_machine(folder):
    if not (pathlib.Path(FOVEA).resolve().parent / "fovea-remote.so").exists():
        raise Skip("no fovea-remote.so; libcurl is missing")
    data, second = folder.parent / "data", folder.parent / "second"
    (data / "bucket").mkdir(parents=True)
    second.mkdir()
    line = 'write(median(phantom("cells", [40, 80, 80], seed = {0}), 5), "s3://bucket/WHERE/{0}.npy")\n'
    text = "".join(line.format(k) for k in range(12))

    def stop(run):
        wait_for("the first commit", lambda: list(data.rglob("*.log")) or run.over)
        for victim in processes(FOVEA, "task --apart")[:1]:
            os.kill(victim, signal.SIGKILL)
        wait_for("some files", lambda: len(list(data.rglob("[0-9]*.npy"))) > 13 or run.over)
        run.cancel.value = 1
    with serve(data, key=("KEY", "SECRET")) as server:
        os.environ.update(AWS_ENDPOINT_URL=server.url, AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="SECRET")
        fv.run(text.replace("WHERE", "alone"), store="alone")
        for there_is, meanwhile in (folder, stop), (second, lambda run: None):
            os.environ["XDG_CACHE_HOME"] = str(there_is / "cache")
            os.chdir(there_is)
            with contextlib.suppress(fv.Error):
                apart(there_is, text.replace("WHERE", "out"), meanwhile=meanwhile, store="s3://bucket/runs")
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "XDG_CACHE_HOME"):
            del os.environ[name]
    want, found = ({p.name: p.read_bytes() for p in (data / "bucket" / where).iterdir()} for where in ("alone", "out"))
    assert found == want and len(want) == 12


@inside
def what_cannot_work_is_said_in_a_sentence(folder):
    np.save(folder / "x.npy", np.zeros((4, 4), np.uint8))
    text = 'write(median(read("x.npy"), 3), "y.npy")'
    with placed_run('write(median(read("*.npy"), 3), "{stem}-y.npy")') as placed:
        assert placed.check(FOVEA, apart=True)()["cores"] > 0
        placed.where = "/another machine"
        raises(Problem, "does not see /another machine/x.npy|s3://", placed.check(FOVEA, apart=True))
    if blind(folder.parent / "blind", folder) != FOVEA:
        raises(fv.Error, "x.npy|shares no folder|s3://", lambda: apart(folder, text))
    with placed_run(text) as placed, ApartRun(placed, 1, MEMORY, "127.0.0.1") as run:
        port, run.port = run.port, 1
        raises(Problem, "cannot reach the program that started the run at 127.0.0.1:1", run.worker(FOVEA))
        run.port, key, run.key = port, run.key, "0" * 32
        raises(RuntimeError, "closed the connection", run.worker(FOVEA))
        run.key = key
        assert run.worker(FOVEA)() == {} and run.finish() == []
    assert (folder / "y.npy").exists() and address_towards("127.0.0.1") == "127.0.0.1"

main()
