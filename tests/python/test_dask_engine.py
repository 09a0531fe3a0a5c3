#!/usr/bin/env python3
"""Runs on the workers of a real dask cluster: the same files as on threads, also when workers are killed.

FOVEA_KILLS: how many are killed at random moments (2); make interop kills more."""
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import FOVEA, ROOT, Skip, main, raises, run, test, wait_for  # noqa: E402
from placed import alone, blind, files, there, values  # noqa: E402

try:
    import dask
    import dask.array as da
    import distributed
except ImportError:
    dask = None
import numpy as np  # noqa: E402

import fovea as fv  # noqa: E402

KILLS = int(os.environ.get("FOVEA_KILLS", 2))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])

CELLS = """
param level = 100
cells = phantom("cells", [24, 160, 160])
smooth = gaussian(cells, 1)
objects = label(smooth > level)
write(objects, "objects-{level}.npy")
write(smooth, "smooth-{level}.tif", compression = "deflate")
write(measure(objects, cells), "objects.csv")
otsu(smooth)
max(objects)
"""
SCANS = """
scan = read("scans/*.npy")
write(median(scan, 3), "out/{stem}.npy")
write(measure(label(scan > otsu(scan)), scan), "scans.csv")
"""

_cluster = []


def client():
    """A client of a cluster of two workers that all tests share."""
    if dask is None:
        raise Skip("no dask.distributed: scripts/bootstrap.sh peers could not install it")
    if not _cluster:
        dask.config.set({"distributed.comm.timeouts.connect": "60s"})
        _cluster.append(distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"))
        _cluster.append(distributed.Client(_cluster[0]))
    return _cluster[1]


def fd():
    """The module, which needs dask."""
    client()
    from fovea import dask as module
    return module


@there
def a_run_makes_what_threads_make(folder):
    want, made = alone(folder, CELLS)
    fractions = []
    assert values(fd().run(client(), CELLS, progress=fractions.append)) == values(want)
    assert files(folder) == made
    names = [event["working on"] for _, event in client().get_events("fovea")]
    assert not names or all(name.startswith("fovea.") for name in names), names


@there
def a_sweep_and_a_collection_run_there_too(folder):
    (folder / "scans").mkdir()
    for k in range(6):
        np.save(folder / "scans" / f"s{k}.npy", np.random.default_rng(k).integers(0, 255, (40 + k, 60), np.uint8))
    for text, params in ((CELLS, {"level": [90, 110]}), (SCANS, None)):
        want, made = alone(folder, text, params)
        (folder / "p.fov").write_text(text)
        assert values(fd().run(client(), "p.fov", params, workers=2)) == values(want)
        (folder / "p.fov").unlink()
        assert files(folder, ["scans"]) == made
        for name in made:
            (folder / name).unlink()


@there
def the_result_is_an_array_of_dask_that_workers_read(folder):
    fd().run(client(), CELLS)
    lazy = fd().read("objects-100.npy")
    want = np.load("objects-100.npy")
    kept = lazy.persist()
    assert np.array_equal(kept.compute(), want) and int((kept > 0).sum().compute()) == np.count_nonzero(want)


@there
def arrays_on_a_cluster_give_the_same_bits(folder):
    a = np.random.default_rng(0).random((30, 40, 50)).astype(np.float32)
    x = da.from_array(a, chunks=(12, 20, 30))
    smooth = fd().gaussian(x, 2)
    labels = fd().label(smooth > fd().otsu(smooth))
    whole = fv.gaussian(a, 2)
    want = fv.compute((whole > whole.otsu()).label(), (whole > whole.otsu()).label().measure(a))
    table = fd().measure(labels, x)
    got = client().gather(client().compute([labels, table]))
    assert np.array_equal(got[0], want[0]) and list(got[1]) == list(want[1])


def start_worker(address, *options):
    """A worker of dask whose Python does not know the package; nobody starts it again when it dies."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    code = "import sys; from distributed.cli.dask_worker import main; sys.exit(main())"
    return subprocess.Popen([sys.executable, "-c", code, address, "--no-nanny", "--nthreads", "1", "--no-dashboard", *options],
                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def bare_worker(address, *options):
    """Such a worker for a with block."""
    process = start_worker(address, *options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Mortals:
    """Two workers of which one after another is killed at random moments and replaced by a new one."""

    def __init__(self, address, kills):
        self.address, self.kills, self.rng, self.over = address, kills, random.Random(7), threading.Event()
        self.workers = [start_worker(address) for _ in range(2)]
        self.thread = threading.Thread(target=self._kill)

    def _kill(self):
        while self.kills and not self.over.wait(self.rng.uniform(0.3, 2)):
            at, self.kills = self.rng.randrange(2), self.kills - 1
            self._end(at)
            self.workers[at] = start_worker(self.address)

    def _end(self, at):
        self.workers[at].send_signal(signal.SIGKILL)
        self.workers[at].wait()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self._end(0)
        self._end(1)


@there
def killed_workers_change_nothing(folder):
    client()
    want, made = alone(folder, CELLS)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as cluster, \
            distributed.Client(cluster) as own, Mortals(cluster.scheduler_address, KILLS) as mortals:
        runs = 0
        while runs < 2 or mortals.kills:
            assert values(fd().run(own, CELLS, fresh=True, command=FOVEA)) == values(want)
            assert files(folder) == made
            runs += 1


@there
def who_started_the_run_may_be_killed(folder):
    want, made = alone(folder, CELLS)
    (folder / "start.py").write_text("import sys, distributed, fovea.dask\n"
                                     "client = distributed.Client(sys.argv[1])\nprint('ready', flush=True)\n"
                                     f"fovea.dask.run(client, {CELLS!r})\n")
    started = subprocess.Popen([sys.executable, "start.py", client().scheduler.address], stdout=subprocess.PIPE, text=True)
    started.stdout.readline()
    time.sleep(0.7)
    started.kill()
    started.wait()
    started.stdout.close()
    (folder / "start.py").unlink()
    assert values(fd().run(client(), CELLS)) == values(want)
    assert files(folder) == made


@there
def workers_that_see_no_folder_of_the_client_make_the_same(folder):
    (folder / "client").mkdir()
    os.chdir(folder / "client")
    want, made = alone(folder / "client", CELLS)
    command = blind(folder / "blind", folder / "client")
    assert values(fd().run(client(), CELLS, apart=True, command=command)) == values(want) and files(folder / "client") == made
    raises(fv.OutOfMemory, "at least", lambda: fd().run(client(), CELLS, apart=True, memory="1M"))


@there
def items_that_fail_are_named_and_the_others_are_done(folder):
    (folder / "scans").mkdir()
    for k in range(3):
        np.save(folder / "scans" / f"s{k}.npy", np.zeros((20, 30), np.uint8))
    (folder / "scans" / "s1.npy").write_bytes(b"nonsense")
    raises(fv.Error, "s1.npy", lambda: fd().run(client(), 'write(median(read("scans/*.npy"), 3), "out/{stem}.npy")\n'))
    assert sorted(files(folder, ["scans"])) == ["out/s0.npy", "out/s2.npy"]


@there
def the_command_runs_a_pipeline_there(folder):
    want, made = alone(folder, CELLS)
    (folder / "p.fov").write_text(CELLS)
    done = run("run", "-q", "p.fov", "--engine", "dask", "--scheduler", client().scheduler.address, folder=folder,
               environment={"FOVEA_PYTHON": sys.executable})
    (folder / "p.fov").unlink()
    assert done.stdout.split() == [str(v) for v in want] and files(folder) == made, done.stdout


# ---------------------------------------------------------------- what can be wrong

@there
def the_command_says_which_scheduler_does_not_answer(folder):
    client()
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    address = f"tcp://127.0.0.1:{free.getsockname()[1]}"  # taken, but nobody listens
    for given, words in ((["--scheduler", address], f"--scheduler {address}: no scheduler of dask answers there"),
                         (["--scheduler", "nonsense"], "--scheduler nonsense: no scheduler of dask answers there"),
                         ([], "--engine dask needs --scheduler"),
                         (["--master", "local"], "--master goes with --engine spark, and this run is on dask")):
        done = run("run", "-e", 'max(phantom("cells", [20, 30]))', "--engine", "dask", *given, folder=folder, code=2,
                   environment={"FOVEA_PYTHON": sys.executable})
        assert words in done.stderr, done.stderr


def false_command(folder, says):
    """A command that gives another version."""
    path = folder / "fovea"
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return str(path)


@there
def mistakes_are_told_before_anything_is_computed(folder):
    raises(TypeError, "a dask.distributed.Client is needed, not str", lambda: fd().run("tcp://host:8786", CELLS))
    raises(fv.UsageError, "workers = 0", lambda: fd().run(client(), CELLS, workers=0))
    raises(fv.UsageError, "gausian", lambda: fd().run(client(), 'x = gausian(phantom("cells", [20, 20]), 1)\nmax(x)\n'))
    raises(fv.UsageError, "is Fovea 0.0.7, but the program that started the run has",
           lambda: fd().run(client(), CELLS, command=false_command(folder, "fovea 0.0.7")))
    raises(fv.UsageError, "does not start|broken", lambda: fd().run(
        client(), CELLS, command=false_command(folder, "broken; exit 3")))
    (folder / "fovea").unlink()
    assert not files(folder)


@there
def too_little_memory_is_told(folder):
    raises(fv.OutOfMemory, "at least", lambda: fd().run(client(), CELLS, memory="1M"))


@there
def a_worker_without_the_package_says_what_it_lacks(folder):
    client()
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as cluster, \
            distributed.Client(cluster) as lonely, bare_worker(cluster.scheduler_address):
        wait_for("a worker", lonely.nthreads)
        raises(fv.UsageError, "has no Fovea: neither /nowhere/fovea|Install the wheel there",
               lambda: fd().run(lonely, CELLS, command="/nowhere/fovea"))
        want, made = alone(folder, CELLS)
        assert values(fd().run(lonely, CELLS, command=FOVEA)) == values(want) and files(folder) == made


@there
def only_workers_with_the_resources_are_taken(folder):
    from fovea.dask import _place
    client()
    before, _place.FIRST_WORKER = _place.FIRST_WORKER, 0.5
    try:
        raises(fv.Error, "has no worker with the resources {'GPU': 1}", lambda: fd().run(client(), CELLS, resources={"GPU": 1}))
    finally:
        _place.FIRST_WORKER = before
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as cluster, \
            distributed.Client(cluster) as both:
        address = cluster.scheduler_address
        with bare_worker(address, "--resources", "GPU=1", "--name", "with"), bare_worker(address, "--name", "without"):
            wait_for("two workers", lambda: len(both.nthreads()) == 2)
            wait_for("facts of both", lambda: len(_place.workers_of(both, {"GPU": 1})) == 1)
            want, made = alone(folder, CELLS)
            assert values(fd().run(both, CELLS, command=FOVEA, resources={"GPU": 1})) == values(want) and files(folder) == made


if __name__ == "__main__":  # not in processes that are spawned
    try:
        main()
    finally:
        for part in reversed(_cluster):
            part.close()
