#!/usr/bin/python3
"""Fovea on a real Spark: executors of its own on this machine, one session for all tests."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, raises, run, wait_for  # noqa: E402
from placed import alone, blind, files, processes, there, values  # noqa: E402
from spark_session import session, use_environment  # noqa: E402

use_environment("build/spark")
import numpy as np  # noqa: E402

import fovea as fv  # noqa: E402
import fovea.spark  # noqa: E402
from fovea._placed import placed_run  # noqa: E402

FOAM = """
param level = 100
foam = phantom("cells", [32, 96, 96])
bubbles = label(gaussian(foam, 1) > level)
write(bubbles, "bubbles-{level}.npy")
write(measure(bubbles, foam), "bubbles.csv")
max(bubbles)
"""


def executors(spark):
    """Process ids of the session's executors."""
    return processes("CoarseGrainedExecutorBackend", spark.sparkContext.applicationId)


def workers_of(folder):
    """Process ids of all that work on runs in this folder."""
    return processes(" work ", str(folder))


@there
def a_run_is_that_of_threads_and_shows_in_the_pages_of_spark(folder):
    spark = session()
    want, made = alone(folder, FOAM, {"level": [90, 110]})
    told = []
    found = fovea.spark.run(spark, FOAM, {"level": [90, 110]}, progress=told.append)
    assert values(found) == values(want) and files(folder) == made
    status = spark.sparkContext.statusTracker()
    assert told == sorted(told) and not status.getActiveJobsIds()


@there
def its_pages_name_stages_and_operators_and_count_what_is_done(folder):
    spark, told = session(), []
    text = "".join(f'write(median(phantom("cells", [60, 120, 120], seed = {k}), 7), "out{k}.npy")\n' for k in range(24))
    (folder / "many.fov").write_text(text)
    fovea.spark.run(spark, "many.fov", progress=told.append)
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs, counts = store.jobsList(None), []
    for k in range(jobs.size()):
        description, stages = str(jobs.apply(k).description().getOrElse(None)), jobs.apply(k).stageIds()
        if "many.fov, " not in description or "median" not in description:
            continue
        for stage in range(stages.size()):
            found = store.lastStageAttempt(stages.apply(stage)).accumulatorUpdates()
            counts += [(found.apply(i).name(), int(found.apply(i).value())) for i in range(found.size())]
    assert [name for name, _ in counts] == ["many.fov: tasks done"] and 0 < counts[0][1] <= 48, (counts, told)


@there
def a_bad_item_is_named_and_the_others_are_done(folder):
    for k in range(8):
        np.save(folder / f"in{k}.npy", np.random.default_rng(k).integers(0, 255, (64, 64), np.uint8))
    (folder / "in3.npy").write_bytes(b"no image")
    try:
        fovea.spark.run(session(), 'write(median(read("in*.npy"), 3), "out-{index}.npy")\n')
        raise AssertionError("nothing failed")
    except fv.InputError as error:
        assert "in3.npy" in str(error), error
    assert sorted(name for name in files(folder) if "out-" in name) == [f"out-{k}.npy" for k in range(8) if k != 3]


@there
def what_cannot_work_is_said_before_anything_is_computed(folder):
    other = folder / "another"
    other.write_text("#!/bin/sh\necho fovea 0.0.1\n")
    other.chmod(0o755)
    for options, words in (({"command": str(other)}, "0.0.1"), ({"memory": "8M"}, "at least --memory"),
                           ({"memory": "1M"}, "at least --memory")):
        try:
            fovea.spark.run(session(), FOAM, **options)
            raise AssertionError("nothing was refused")
        except fv.Error as error:
            assert words in str(error) and "Traceback" not in str(error), error
    try:
        fovea.spark.run(session(), "write(nothing, 1)")
        raise AssertionError("a mistake was not found")
    except fv.UsageError as error:
        assert "nothing" in str(error)
    raises(fv.UsageError, "a session of Spark|not NoneType", lambda: fovea.spark.run(None, FOAM))
    raises(TypeError, "dictionary", lambda: fovea.spark.run(session(), FOAM, 90))
    assert list(files(folder)) == ["another"]


@there
def an_executor_is_killed_and_the_bytes_are_the_same(folder):
    text = "\n".join(f'write(median(phantom("cells", [60, 80, 80], seed = {k}), 5), "out{k}.npy")' for k in range(30))
    _, made = alone(folder, text)
    spark = session()
    found, failure = [], []

    def work():
        try:
            found.append(fovea.spark.run(spark, text))
        except Exception as error:
            failure.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    wait_for("a worker", lambda: workers_of(folder) or not thread.is_alive())
    victims = workers_of(folder)
    parents = {int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) for pid in victims}
    if thread.is_alive():
        os.kill(executors(spark)[0], signal.SIGKILL)
    thread.join()
    assert not failure and found == [[]], failure
    assert files(folder) == made and parents
    wait_for("the end of the killed executor's worker", lambda: not workers_of(folder))


@there
def executors_that_see_no_folder_of_the_driver_make_the_same(folder):
    (folder / "driver").mkdir()
    os.chdir(folder / "driver")
    want, made = alone(folder / "driver", FOAM)
    command = blind(folder / "blind", folder / "driver")
    assert values(fovea.spark.run(session(), FOAM, apart=True, command=command)) == values(want)
    assert files(folder / "driver") == made
    raises(fv.OutOfMemory, "at least --memory", lambda: fovea.spark.run(session(), FOAM, apart=True, memory="8M"))


@there
def what_a_run_needs_is_a_profile_of_executors(folder):
    session()
    profile = fovea.spark.resources('write(median(phantom("cells", [400, 900, 900]) * 1.5, 5), "x.npy")', tasks=2, cores=3)
    with placed_run('write(median(phantom("cells", [400, 900, 900]) * 1.5, 5), "x.npy")') as placed:
        ask = placed.look()["ask"]
    asked = {name: request.amount for name, request in profile.executorResources.items()}
    assert asked["cores"] == 6 and asked["memoryOverhead"] == int(6 * ask / 0.8) >> 20, (asked, ask)
    assert {name: request.amount for name, request in profile.taskResources.items()} == {"cpus": 3}


@there
def ranks_of_mpi_live_in_executors(folder):
    if subprocess.run(["which", "mpiexec.mpich"], stdout=subprocess.DEVNULL).returncode:
        raise Skip("no mpiexec.mpich: scripts/bootstrap.sh mpi could not install it")
    said = fovea.spark.mpi(session(), 2, ["/bin/sh", "-c", "echo rank $PMI_RANK of $PMI_SIZE in $(pwd)"])
    assert sorted(said.splitlines()) == [f"rank {k} of 2 in {folder}" for k in range(2)], said
    want, made = alone(folder, FOAM)
    assert fovea.spark.run(session(), FOAM, mpi=True) == want and files(folder) == made


@there
def images_are_rows_and_measurements_are_rows(folder):
    rng = np.random.default_rng(1)
    for k in range(4):
        np.save(folder / f"scan{k}.npy", rng.integers(0, 255, (40, 50), np.uint8))
    (folder / "scan4.npy").write_bytes(b"no image")
    frame = fovea.spark.read("scan*.npy", session(), partitions=2).cache()
    rows = {row.item: row for row in frame.collect()}
    assert sorted(rows) == list(range(5)) and "scan4.npy" in rows[4].error and rows[4].bytes is None
    assert np.array_equal(np.frombuffer(rows[2].bytes, rows[2].dtype).reshape(rows[2].shape), np.load(folder / "scan2.npy"))
    text = "gaussian(image, 2)\nlabel(image > 128) |> measure".splitlines()
    smooth = frame.transform(fovea.spark.apply(text[0]))
    one = smooth.filter("item = 1").collect()[0]
    expected = np.asarray(fv.array(np.load(folder / "scan1.npy")).gaussian(2))
    assert one.dtype == "float32" and np.array_equal(np.frombuffer(one.bytes, "float32").reshape(one.shape), expected)
    measure = fovea.spark.apply(text[1], dtype="uint8")
    table = frame.mapInArrow(measure, measure.schema)
    counts = {row["item"]: row["count"] for row in table.filter("error IS NULL").groupBy("item").count().collect()}
    assert counts == {k: int((fv.array(np.load(folder / f"scan{k}.npy")) > 128).label().max()) for k in range(4)}
    assert fovea.spark.table(fv.run('measure(label(read("scan0.npy") > 128))')[0], session()).count() == counts[0]


@there
def images_that_differ_are_rows_of_one_frame(folder):
    rng = np.random.default_rng(2)
    images = [rng.integers(0, 255, (30, 20), np.uint8), rng.random((12, 16)).astype(np.float32), np.ones((4, 6, 8), np.uint8),
              (rng.random((9, 9)) * 1j).astype(np.complex64), np.full((5, 5), np.nan, np.float32)]
    for k, image in enumerate(images):
        np.save(folder / f"scan{k}.npy", image)
    frame = fovea.spark.read("scan*.npy", session(), partitions=1).orderBy("item").cache()
    smooth = frame.transform(fovea.spark.apply("gaussian(image,\n  1)  # over two lines\n# the end"))
    smooth = {row.item: row for row in smooth.collect()}
    for k, image in enumerate(images):
        found = np.frombuffer(smooth[k].bytes, smooth[k].dtype).reshape(smooth[k].shape)
        assert np.array_equal(found, np.asarray(fv.array(image).gaussian(1)), equal_nan=True), k
    text = "bright = image > 0.5\nmeasure(label(bright),\n  image)"
    table = frame.transform(fovea.spark.apply(text)).collect()
    errors = {row.item: row.error for row in table if row.error}
    assert sum(row.item == 0 for row in table) == len(fv.array(images[0]).__gt__(0.5).label().measure().compute())
    assert sorted(errors) == [2, 3] and "does not fit the columns" in errors[2] and "complex64" in errors[3], errors
    measured = frame.filter("item = 2").transform(fovea.spark.apply(text)).collect()
    assert measured and all(row.error is None for row in measured)


@there
def what_apply_cannot_do_is_said(folder):
    np.save(folder / "scan.npy", np.zeros((8, 8), np.uint8))
    frame = fovea.spark.read("scan.npy", session()).cache()
    for text, words in (('write(image, "x.npy")', "fovea.spark.run"), ("x = gaussian(image, 2)", "last statement"),
                        ("", "last statement"), ("gaussian(image, 2", "is never closed"), ("gausian(image, 2)", "did you mean")):
        raises(fv.UsageError, words, lambda: frame.transform(fovea.spark.apply(text)))
    numbers = session().range(3)
    raises(fv.UsageError, "no column path", lambda: numbers.transform(fovea.spark.apply("mean(image)")))
    raises(fv.UsageError, "no column path", lambda: fovea.spark.slices(numbers))
    raises(fv.UsageError, "apply(text, dtype=", lambda: fovea.spark.apply("mean(image)")(iter([])))


@there
def a_tilt_series_goes_to_spark_and_back(folder):
    run("run", "-q", "-e", 'write(phantom("cells", [4, 8, 6]), "t.mrc")', folder=folder)
    (folder / "t.tlt").write_text("-60\n-20\n20\n60\n")
    row = fovea.spark.read("t.mrc", session()).collect()[0]
    assert row.angles == [-60, -20, 20, 60] and row.axes[0] == "angle" and row.units[1] == "angstrom"
    if not (ROOT / "build/libraries/libduckdb.so").exists():
        raise Skip("no libduckdb.so: scripts/duckdb.sh could not fetch it")
    image = np.frombuffer(row.bytes, row.dtype).reshape(row.shape)
    slices = session().createDataFrame([(k, a, bytearray(image[k].tobytes())) for k, a in enumerate(row.angles)],
                                       "slice bigint, angle double, pixels binary")
    about = {"shape": row.shape, "dtype": row.dtype, "axes": row.axes, "spacing": [1, 2.5, 2.5], "units": row.units,
             "angles": row.angles}
    fovea.spark.write_image(slices.repartition(2), folder / "back.parquet", about)
    facts = fv.info("back.parquet")
    assert facts["spacing"] == [1, 2.5, 2.5] and facts["angles"] == row.angles, facts
    assert np.array_equal(np.asarray(fv.read("back.parquet")), image)


@there
def the_command_says_what_is_wrong(folder):
    (folder / "foam.fov").write_text(FOAM)
    environment = {"FOVEA_PYTHON": sys.executable}
    for arguments, words in (((), "needs --master"), (("--master", "nonsense"), "expected spark://"),
                             (("--master", "spark://127.0.0.1:1"), "no Spark master answers"),
                             (("--master", "yarn"), "HADOOP_CONF_DIR must name"),
                             (("--master", "local[1]", "--spark-conf", "nonsense"), "expected KEY=VALUE")):
        said = run("run", "foam.fov", "--engine", "spark", *arguments, folder=folder, code=2, environment=environment).stderr
        assert words in said and "Traceback" not in said, said
    said = run("run", "foam.fov", "--engine", "spark", "--master", "local[1]", folder=folder, code=2,
               environment={**environment, "JAVA_HOME": "/nowhere"}).stderr
    assert "needs Java" in said, said
    if sys.version_info >= (3, 11):
        old = folder / ".old" / "pyspark-3.1.3.dist-info"
        old.mkdir(parents=True)
        (old / "METADATA").write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 3.1.3\n")
        said = run("run", "foam.fov", "--engine", "spark", "--master", "local[1]", folder=folder, code=2,
                   environment={**environment, "PYTHONPATH": str(old.parent)}).stderr
        assert "pyspark 3.1.3 does not know Python 3." in said, said
        shutil.rmtree(old.parent)
    said = run("run", "foam.fov", "--engine", "spark", "--master", "local[1]", folder=folder, code=2,
               environment={"FOVEA_PYTHON": "/nowhere/python"}).stderr
    assert "cannot be started" in said, said
    assert list(files(folder)) == ["foam.fov"]


@there
def the_examples_of_the_page_run(folder):
    page = (ROOT / "docs" / "spark.md").read_text()
    names = {}
    session()
    for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(block, names)
    assert names["count"] == fv.run(names["text"], {"level": 90}, store="alone", overwrite=True)[0]
    assert sorted(names["ranks"].split("\n")) == ["", "rank 0 of 2", "rank 1 of 2"]
    assert names["most"] == ("the", 4) and len(list(names["peaks"])) == 3 and 120 < names["total"] < 135
    whole = np.asarray(fv.read("tilts.zarr").art(fv.parallel(list(range(-72, 73, 6))), iterations=4))
    assert np.array_equal(names["volume"], whole) and whole.max() > 0.5 and np.asarray(fv.read("volume.png")).max() == 255
    assert names["same"].count() >= 3 and names["large"].count() == 3 and names["smooth"].first().dtype == "float32"


main()
