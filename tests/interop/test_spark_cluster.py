#!/usr/bin/python3
"""A standalone Spark with two workers, in both versions: what the command makes there is that of threads, also when executors,
workers and drivers are killed at random.

FOVEA_KILLS: how many of each (10)."""
import contextlib
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
from placed import processes  # noqa: E402
from s3_bucket import boto, bucket, upload  # noqa: E402
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


def on_spark(cluster, name, folder, *more, code=0, place=None):
    """Runs a pipeline by the command."""
    return run("run", name, "--engine", "spark", "--master", cluster.master, "--spark-conf", "spark.executor.memory=512m",
               "--spark-conf", "spark.ui.enabled=false", *more, folder=folder, code=code,
               environment={**cluster.environment(), **(place or {})})


def begin(cluster, name, folder, *more, place=None):
    """The same without waiting for it."""
    return subprocess.Popen([FOVEA, "run", name, "--engine", "spark", "--master", cluster.master, "--spark-conf",
                             "spark.executor.memory=512m", "--spark-conf", "spark.ui.enabled=false", *more], cwd=folder,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **cluster.environment(), **(place or {})})


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


def check_kills(environment, folder):
    chance = random.Random(7)
    with Cluster(environment, pathlib.Path(folder, "cluster")) as cluster:
        threads, spark, _ = prepare(folder, MANY, "many.fov")
        left, going = [who for who in ("executors", "workers", "drivers") for _ in range(KILLS)], None
        chance.shuffle(left)
        while left:
            if going is None or going.poll() is not None:
                if going is not None and going.returncode == 0:  # it was through: once more from the beginning
                    assert digest(spark) == digest(threads)
                    shutil.rmtree(spark / ".fovea")
                    for path in [*spark.glob("out*"), *spark.glob("all*")]:
                        path.unlink()
                going = begin(cluster, "many.fov", spark)
                wait_for("a worker", lambda: cluster.workers(spark) or going.poll() is not None)
            time.sleep(chance.uniform(0, 1))  # there is work for little more than that
            victims = cluster.executors() if left[-1] == "executors" else getattr(cluster, left[-1])(spark)
            if victims and going.poll() is None:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    left.pop()
        going.communicate()
        wait_for("the end of all workers", lambda: not cluster.workers(spark))
        on_spark(cluster, "many.fov", spark)
        assert digest(spark) == digest(threads)


@test
def on_spark_3_whoever_is_killed_at_random_the_bytes_are_the_same(folder):
    check_kills("build/spark", folder)


@test
def on_spark_4_whoever_is_killed_at_random_the_bytes_are_the_same(folder):
    check_kills("build/spark4", folder)


@test
def speculation_and_dynamic_allocation_change_nothing(folder):
    with Cluster("build/spark", pathlib.Path(folder, "cluster")) as cluster:
        threads, spark, _ = prepare(folder, MANY, "many.fov")
        for settings in (("speculation=true", "speculation.interval=100ms", "speculation.multiplier=1.01",
                          "speculation.quantile=0.1", "speculation.minTaskRuntime=0ms"),
                         ("dynamicAllocation.enabled=true", "dynamicAllocation.shuffleTracking.enabled=true",
                          "dynamicAllocation.minExecutors=0", "dynamicAllocation.initialExecutors=1",
                          "dynamicAllocation.maxExecutors=2", "dynamicAllocation.executorIdleTimeout=2s", "executor.cores=1")):
            on_spark(cluster, "many.fov", spark, "--fresh", "--overwrite",
                     *(word for setting in settings for word in ("--spark-conf", f"spark.{setting}")))
            assert digest(spark) == digest(threads), settings
            wait_for("the end of all workers", lambda: not cluster.workers(spark))


BUCKET = """
scan = read("s3://bucket/in/*.npy")
write(median(scan, 15), "s3://bucket/out/{stem}.npy")
write(measure(label(scan > 128)), "all.csv")
"""
VOLUME = """
foam = phantom("foam", [48, 120, 110], seed = 3)
cells = label(median(foam, 7) < 120)
write(cells, "s3://bucket/cells.zarr")
write(measure(cells, foam), "cells.csv")
max(cells)
"""


def contents(folder, place):
    """What lies in the bucket, but for the inputs: digests by name."""
    return boto("""
import hashlib
keys = [o["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="bucket") for o in page.get("Contents", [])]
print(json.dumps({k: hashlib.sha256(s3.get_object(Bucket="bucket", Key=k)["Body"].read()).hexdigest() for k in keys
                  if not k.startswith("in/")}))""", folder, place)


def empty(folder, place):
    """Takes all but the inputs out of the bucket, and gives the digests of what it was."""
    found = contents(folder, place)
    boto(f"for key in {list(found)!r}:\n    s3.delete_object(Bucket='bucket', Key=key)\nprint('true')", folder, place)
    return found


@test
def a_bucket_is_all_that_driver_and_executors_share(folder):
    import numpy as np
    folder = pathlib.Path(folder)
    threads, driver = folder / "threads", folder / "driver"
    for there in (threads, driver, folder / "up" / "in"):
        there.mkdir(parents=True)
    for k in range(24):
        np.save(folder / "up" / "in" / f"{k}.npy", np.random.default_rng(k).integers(0, 255, (400, 400), np.uint8))
    with bucket(folder) as place, Cluster("build/spark", folder / "cluster", hidden=driver) as cluster:
        upload(folder, place)
        settings = [word for name, value in place.items() for word in ("--spark-conf", f"spark.executorEnv.{name}={value}")]
        for text, name in ((BUCKET, "many.fov"), (VOLUME, "volume.fov")):
            for there in (threads, driver):
                (there / name).write_text(text)
            printed = run("run", name, folder=threads, environment=place).stdout
            want = empty(folder, place)
            going = begin(cluster, name, driver, "--apart", *settings, place=place)
            wait_for("a worker", lambda: processes("task --apart") or going.poll() is not None)
            if going.poll() is None:
                os.kill(random.Random(3).choice(cluster.executors()), signal.SIGKILL)
            out, said = going.communicate()
            assert going.returncode == 0 and out == printed, said
            assert empty(folder, place) == want and digest(driver) == digest(threads)
        (driver / "local.fov").write_text('write(median(read("local.npy"), 3), "s3://bucket/local.npy")')
        np.save(driver / "local.npy", np.zeros((4, 4), np.uint8))
        said = on_spark(cluster, "local.fov", driver, "--apart", *settings, code=1, place=place).stderr
        assert "local.npy" in said and "shares no folder" in said, said
        said = on_spark(cluster, "many.fov", driver, "--fresh", *settings, code=2, place=place).stderr
        assert "does not see" in said and "--apart" in said, said


@test
def another_driver_goes_on_from_a_store_in_the_bucket(folder):
    folder = pathlib.Path(folder)
    threads, drivers = folder / "threads", folder / "drivers"
    line = 'write(median(phantom("foam", [40, 100, 100], seed = {0}), 7), "s3://bucket/out/{0}.npy")\n'
    text = "".join(line.format(k) for k in range(24))
    for there in (threads, drivers / "0" / "home", drivers / "1" / "home", drivers / "2" / "home"):
        there.mkdir(parents=True)
        (there if there == threads else there.parent).joinpath("many.fov").write_text(text)
    with bucket(folder) as place, Cluster("build/spark", folder / "cluster", hidden=drivers) as cluster:
        settings = [word for name, value in place.items() for word in ("--spark-conf", f"spark.executorEnv.{name}={value}")]
        run("run", "many.fov", folder=threads, environment=place)
        want = empty(folder, place)
        for k in range(3):
            here = drivers / str(k)
            going = begin(cluster, "many.fov", here, "--store", "s3://bucket/runs", *settings,
                          place={**place, "HOME": str(here / "home"), "XDG_CACHE_HOME": ""})
            wait_for("a worker", lambda: processes("task --apart") or going.poll() is not None)
            if k < 2:
                time.sleep(1 + k)
                victims = cluster.drivers(here) if k else cluster.executors()
                for victim in victims[:1]:
                    os.kill(victim, signal.SIGKILL)
                if not k:  # the machine of the driver goes, with the command that started it
                    time.sleep(3)
                    going.kill()
            out, said = going.communicate()
            wait_for("the end of all workers", lambda: not processes("task --apart"))
        assert going.returncode == 0, said
        found = contents(folder, place)
        assert {name: value for name, value in found.items() if name.startswith("out/")} == want


ALIEN = """
import sys
import fovea
from pyspark.sql import SparkSession
import fovea.spark
builder = SparkSession.builder.master(sys.argv[1]).config("spark.executor.memory", "512m")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
try:
    print("found:", fovea.spark.run(builder.getOrCreate(), 'max(phantom("cells", [32, 32]))', command="/nowhere/fovea"))
except fovea.UsageError as error:
    print("refused:", error)
"""


def without_command(cluster, folder, *settings):
    """What a program prints whose executors do not find the command where the driver has it."""
    return subprocess.run([cluster.python, "-c", ALIEN, cluster.master, *settings], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, **cluster.environment(), "PYTHONPATH": str(ROOT / "python")}).stdout


@test
def executors_without_fovea_are_named_and_an_archive_brings_it(folder):
    package = pathlib.Path(folder, "package", "fovea")
    shutil.copytree(ROOT / "python" / "fovea", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "bin").mkdir(exist_ok=True)
    for path in (pathlib.Path(FOVEA), *pathlib.Path(FOVEA).parent.glob("libfovea.so*")):
        shutil.copy(path, package / "bin")
    shutil.make_archive(f"{folder}/env", "gztar", package.parent)
    with Cluster("build/spark", pathlib.Path(folder, "cluster")) as cluster:
        said = without_command(cluster, folder)
        assert "refused:" in said and "has no Fovea" in said and "Install the wheel" in said and "Traceback" not in said, said
        said = without_command(cluster, folder, "spark.archives=env.tar.gz#env", "spark.executorEnv.PYTHONPATH=./env")
        assert "found: [" in said and "refused" not in said, said


@test
def too_little_memory_and_too_large_executors_are_refused(folder):
    with Cluster("build/spark", pathlib.Path(folder, "cluster")) as cluster:
        _, spark, _ = prepare(folder, SAMPLE, "sample.fov")
        said = on_spark(cluster, "sample.fov", spark, "--memory", "20M", code=2).stderr
        assert "at least --memory" in said and "Traceback" not in said, said
        said = on_spark(cluster, "sample.fov", spark, "--spark-conf", "spark.executor.memory=900g", code=2).stderr
        assert "no executor" in said, said


main()
