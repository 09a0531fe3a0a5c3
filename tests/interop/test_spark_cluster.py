#!/usr/bin/python3
"""A standalone Spark with two workers, in both versions: what the command makes there is that of threads, also when executors and
drivers are killed at random."""
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, main, run, test, wait_for  # noqa: E402
from spark_cluster import Cluster  # noqa: E402

KILLS = int(os.environ.get("FOVEA_KILLS", 10))
if not (ROOT / "build" / "spark4").exists():
    print("skip spark_cluster: no build/spark4; `make interop` makes it and runs this")
    sys.exit(0)
SAMPLE = """
x = phantom("foam", [48, 120, 110], seed = 3)
g = gaussian(x, [1, 2, 2])
l = label(g < 120)
write(l, "labels.zarr")
write(distance(l > 0), "distance.tif")
write(median(x, 5), "median.nii.gz")
write(measure(l, x), "cells.csv")
write(watershed(g, l), "basins.npy")
sum(convert(x, "int64"))
mean(g)
"""
MANY = 'x = read("in/*.npy")\nwrite(median(x, 7), "out-{index}.npy")\nwrite(measure(label(x > 128)), "all.csv")\n'


def digest(folder):
    """What a folder holds, without the store."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and inside.parts[0] not in ("in", ".fovea", "cluster"):
            found[str(inside)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def on_spark(cluster, name, folder, *more, code=0):
    """Runs a pipeline by the command."""
    return run("run", name, "--engine", "spark", "--master", cluster.master, "--spark-conf", "spark.executor.memory=512m",
               "--spark-conf", "spark.ui.enabled=false", *more, folder=folder, code=code, environment=cluster.environment())


def begin(cluster, name, folder):
    """The same without waiting for it."""
    return subprocess.Popen([FOVEA, "run", name, "--engine", "spark", "--master", cluster.master, "--spark-conf",
                             "spark.executor.memory=512m", "--spark-conf", "spark.ui.enabled=false"], cwd=folder,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, **cluster.environment()))


def prepare(folder, text, name):
    """Two folders with a pipeline and its input: one that is done on threads, one for Spark."""
    import numpy as np
    folders = [pathlib.Path(folder, word) for word in ("threads", "spark")]
    for there in folders:
        (there / "in").mkdir(parents=True)
        (there / name).write_text(text)
        for k in range(40):
            np.save(there / "in" / f"{k}.npy", np.random.default_rng(k).integers(0, 255, (300, 300), np.uint8))
    done = run("run", name, folder=folders[0])
    return folders[0], folders[1], done.stdout


def check_sample(environment, folder):
    with Cluster(environment, pathlib.Path(folder, "cluster")) as cluster:
        threads, spark, printed = prepare(folder, SAMPLE, "sample.fov")
        assert on_spark(cluster, "sample.fov", spark).stdout == printed and digest(spark) == digest(threads)
        shutil.rmtree(spark / ".fovea")
        for path in [p for p in spark.iterdir() if p.name not in ("in", "sample.fov")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if shutil.which("mpiexec.mpich"):
            assert on_spark(cluster, "sample.fov", spark, "--mpi").stdout == printed and digest(spark) == digest(threads)


@test
def the_sample_is_that_of_threads_on_spark_3(folder):
    check_sample("build/spark", folder)


@test
def the_sample_is_that_of_threads_on_spark_4(folder):
    check_sample("build/spark4", folder)


@test
def executors_and_drivers_are_killed_at_random_and_the_bytes_are_the_same(folder):
    chance = random.Random(7)
    with Cluster("build/spark", pathlib.Path(folder, "cluster")) as cluster:
        threads, spark, _ = prepare(folder, MANY, "many.fov")
        kills, going = 0, None
        while kills < KILLS:
            if going is None or going.poll() is not None:
                if going is not None and going.returncode == 0:  # it was through: once more from the beginning
                    assert digest(spark) == digest(threads)
                    shutil.rmtree(spark / ".fovea")
                    for path in [*spark.glob("out*"), *spark.glob("all*")]:
                        path.unlink()
                going = begin(cluster, "many.fov", spark)
                wait_for("a worker", lambda: cluster.workers(spark) or going.poll() is not None)
            time.sleep(chance.uniform(0, 3))
            victims = cluster.executors() if kills % 3 else cluster.drivers(spark)
            if victims and going.poll() is None:
                os.kill(chance.choice(victims), signal.SIGKILL)
                kills += 1
        going.communicate()
        wait_for("the end of all workers", lambda: not cluster.workers(spark))
        on_spark(cluster, "many.fov", spark)
        assert digest(spark) == digest(threads)


@test
def too_little_memory_and_too_large_executors_are_refused(folder):
    with Cluster("build/spark", pathlib.Path(folder, "cluster")) as cluster:
        _, spark, _ = prepare(folder, SAMPLE, "sample.fov")
        said = on_spark(cluster, "sample.fov", spark, "--memory", "20M", code=2).stderr
        assert "at least --memory" in said and "Traceback" not in said, said
        said = on_spark(cluster, "sample.fov", spark, "--spark-conf", "spark.executor.memory=900g", code=2).stderr
        assert "no executor" in said, said


main()
