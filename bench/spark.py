#!/usr/bin/python3
"""Fovea on Spark beside scikit-image in PySpark tasks, beside Fovea on threads, and beside plain MPI, in one run.

    bench/spark.py [NAME ...]      names: study minute dispatch allreduce
    environment: ITEMS (4096) of the study, ROUNDS (3), DEPTH (800) of the volume that takes about a minute on two cores

Runs in the environment of `scripts/bootstrap.sh spark`, with executors of one core each, as many as there are cores (2 at least,
4 for allreduce). The start of the cluster is not counted. Runs are done in turns, and the median of each counts.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from spark_session import session, use_environment  # noqa: E402

use_environment("build/spark")
import numpy as np  # noqa: E402

import fovea  # noqa: E402
import fovea.spark  # noqa: E402

ITEMS = int(os.environ.get("ITEMS", 4096))
ROUNDS = int(os.environ.get("ROUNDS", 3))
DEPTH = int(os.environ.get("DEPTH", 800))
CORES = max(len(os.sched_getaffinity(0)), 2)
STUDY = """
image  = read("in/*.npy")
smooth = gaussian(image, 2)
cells  = label(smooth > otsu(smooth))
write(measure(cells, image, properties = "voxels mean"), "cells.csv")
"""


def spent():
    """Processor seconds of this process, of all that it has started, and of what these have waited for."""
    parents, used = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        parents[pid], used[pid] = int(words[1]), sum(int(word) for word in words[11:15])
    ours, found = {os.getpid()}, True
    while found:
        found = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= found
    return sum(used.get(pid, 0) for pid in ours) / os.sysconf("SC_CLK_TCK")


class Seconds(float):
    """By the clock, and of processors."""


def clock(function):
    """How long it takes."""
    start, before = time.perf_counter(), spent()
    function()
    taken = Seconds(time.perf_counter() - start)
    taken.processor = spent() - before
    return taken


def in_turns(functions, rounds=ROUNDS):
    """The median seconds of each function."""
    found = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            found[name].append(clock(function))
    return {name: statistics.median_low(times) for name, times in found.items()}


def of_processors(found, first, second, *more):
    """The same comparison by the time of processors, which other programs on the machine disturb less."""
    times = ", ".join(f"{name} {found[name].processor:.1f} s" for name in (first, second, *more))
    return f"of processors: {times}: {found[first].processor / found[second].processor:.2f} times"


def clean(*names):
    """Removes what the run before has made."""
    for name in names:
        shutil.rmtree(name, ignore_errors=True)
        pathlib.Path(name).unlink(missing_ok=True)


def peer(paths):
    """What a user of PySpark writes: scikit-image on each partition."""
    def work(part):
        from skimage.filters import gaussian, threshold_otsu
        from skimage.measure import label, regionprops_table
        for path in part:
            image = np.load(path)
            smooth = gaussian(image, 2, preserve_range=True)
            table = regionprops_table(label(smooth > threshold_otsu(smooth)), image, ["label", "area", "mean_intensity"])
            yield len(table["label"])
    return session().sparkContext.parallelize(paths, 8 * CORES).mapPartitions(work).collect()


def bench_study():
    """A study of many images: each smoothed, thresholded, labelled and measured."""
    pathlib.Path("in").mkdir()
    rng = np.random.default_rng(1)
    for k in range(ITEMS):
        np.save(f"in/{k:05}.npy", rng.integers(0, 4000, (512, 512), np.uint16))
    paths = [os.path.abspath(p) for p in sorted(map(str, pathlib.Path("in").glob("*.npy")))]

    def ours():
        clean(".fovea", "cells.csv")
        fovea.spark.run(session(), STUDY)

    def threads():
        clean(".fovea", "cells.csv")
        fovea.run(STUDY, workers=CORES)
    ours()  # executors load what they need
    peer(paths[:CORES])
    found = in_turns({"spark": ours, "threads": threads})
    found["peer"] = clock(lambda: peer(paths))
    print(f"study of {ITEMS} images: Fovea on Spark {found['spark']:.2f} s, scikit-image in PySpark {found['peer']:.2f} s: "
          f"{found['peer'] / found['spark']:.1f} times as fast, target >= 8; Fovea on threads {found['threads']:.2f} s; "
          f"{of_processors(found, 'peer', 'spark', 'threads')}", flush=True)


def bench_minute():
    """A volume that takes a while: the same cores with and without Spark."""
    text = (f'x = phantom("foam", [{DEPTH}, 700, 700], seed = 1)\n'
            'write(median(median(median(x, 9), 15), 21), "out.npy")\n'
            'write(measure(label(gaussian(x, 3) > 100)), "out.csv")\n')

    def ours():
        clean(".fovea", "out.npy", "out.csv")
        fovea.spark.run(session(), text)

    def threads():
        clean(".fovea", "out.npy", "out.csv")
        fovea.run(text, workers=CORES)
    found = in_turns({"spark": ours, "threads": threads})
    print(f"a volume of {DEPTH}x700x700: Spark {found['spark']:.1f} s, threads {found['threads']:.1f} s: "
          f"{found['threads'] / found['spark']:.0%} of its speed, target >= 85 %; {of_processors(found, 'threads', 'spark')}",
          flush=True)


def bench_dispatch():
    """100,000 tasks that do nearly nothing."""
    text = 'max(phantom("noise", [100000, 8]))\n'

    def ours():
        clean(".fovea")
        fovea.spark.run(session(), text, chunk=[1, 8])

    def nothing():
        clean(".fovea")
        fovea.spark.run(session(), 'max(phantom("noise", [8, 8]))\n')
    nothing()  # executors load what they need
    found = in_turns({"ours": ours, "nothing": nothing})
    seconds, empty, tasks = found["ours"] - found["nothing"], found["nothing"], 40
    used = found["ours"].processor - found["nothing"].processor
    plain = clock(lambda: session().sparkContext.parallelize(range(tasks), tasks).map(lambda x: x).collect()) / tasks
    print(f"dispatch of 100,000 tasks: {seconds / 1e5 * 1e6:.1f} us each, target <= 50; {used / 1e5 * 1e6:.1f} us "
          f"of processors (a plain Python task of Spark {plain * 1e3:.1f} ms; starting the workers {empty:.2f} s, not counted)",
          flush=True)


def spark_reduce(values, parts):
    """The same sum by Spark itself: collected in the driver, added, and broadcast."""
    sc = session("local-cluster[4,1,512]").sparkContext
    data = sc.parallelize(range(parts), parts).map(lambda k: np.full(values, k, np.float32)).cache()
    data.count()

    def once():
        total = sum(data.collect())
        shared = sc.broadcast(total)
        data.map(lambda x: float(shared.value[0])).collect()
    return in_turns({"spark": once})["spark"]


def bench_allreduce():
    """A sum of 2,000,000 floats over 4 ranks."""
    program = str(ROOT / "build" / "bench" / "bench_allreduce")
    spark = session("local-cluster[4,1,512]")

    def milliseconds(text):
        return [float(number) for number in re.findall(r"([0-9.]+) ms", text)]
    inside, plain = [], []
    for _ in range(ROUNDS):
        inside.append(milliseconds(fovea.spark.mpi(spark, 4, [program])))
        plain.append(milliseconds(subprocess.run(["mpiexec.mpich", "-n", "4", program], check=True, capture_output=True,
                                                 text=True).stdout))
    here, there = (statistics.median(row[0] for row in rows) for rows in (inside, plain))
    own = spark_reduce(2000000, 4) * 1e3
    print(f"allreduce of 2,000,000 floats on 4 ranks: {here:.1f} ms in executors, {there:.1f} ms by plain mpiexec: "
          f"{here / there:.2f} times, target <= 1.1; Spark's own {own:.0f} ms: {own / here:.0f} times as long, target >= 10",
          flush=True)


def main():
    names = sys.argv[1:] or ["study", "minute", "dispatch", "allreduce"]
    if len(names) > 1:  # each with a cluster of its own
        for name in names:
            subprocess.run([sys.executable, __file__, name], check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        globals()[f"bench_{names[0]}"]()
        os.chdir("/")


if __name__ == "__main__":
    main()
