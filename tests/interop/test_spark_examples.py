#!/usr/bin/python3
"""The examples for Spark, as a user starts them: tomography as one text and as four steps, a sum over ranks of MPI in executors,
counted words."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, run, test  # noqa: E402
from spark_session import SHORT_LIVED  # noqa: E402

PYTHON = ROOT / "build" / "spark" / "bin" / "python"


def environment(slots):
    """Variables for a Spark of this machine with so many executors of one core."""
    if not PYTHON.exists() or not shutil.which("java"):
        raise Skip("no build/spark or no java: scripts/bootstrap.sh spark could not make it")
    return {"PYTHONPATH": str(ROOT / "python"), "PYSPARK_PYTHON": str(PYTHON), "FOVEA_PYTHON": str(PYTHON),
            "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": SHORT_LIVED,
            "PYSPARK_SUBMIT_ARGS": f"--master local-cluster[{slots},1,512] --conf spark.executor.memory=512m "
                                   "--conf spark.ui.enabled=false pyspark-shell"}


def start(folder, slots, name, *arguments):
    """What an example prints."""
    done = subprocess.run([PYTHON, ROOT / "examples" / name, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment(slots)})
    assert done.returncode == 0, done.stderr[-800:]
    return done.stdout


@test
def tomography_as_one_text_and_as_four_steps_is_the_same(folder):
    said = start(folder, 2, "spark_tomography.py")
    assert "both ways are the same: True" in said and os.path.getsize(f"{folder}/volume.png") > 500, said
    for column in ("path", "item", "shape", "dtype", "spacing", "angles", "bytes"):
        assert f"|-- {column}: " in said, (column, said)


@test
def a_sum_over_ranks_in_executors_is_printed_beside_that_of_spark(folder):
    program = ROOT / "build" / "bench" / "bench_allreduce"
    if not program.exists() or not shutil.which("mpiexec.mpich"):
        raise Skip("no MPICH, or bench_allreduce is not built")
    said = start(folder, 4, "spark_allreduce.py", str(program), "4")
    assert "in executors: " in said and " ms" in said.split("by Spark itself: ")[1], said


@test
def words_are_counted_as_on_threads(folder):
    for name in ("threads", "spark"):
        os.makedirs(f"{folder}/{name}/texts")
        for page in ("runs", "spark"):
            shutil.copy(ROOT / "docs" / f"{page}.md", f"{folder}/{name}/texts/{page}.txt")
    text, files = ROOT / "examples" / "wordcount.fov", ("frequencies.csv", "texts.csv")
    want = run("run", text, folder=f"{folder}/threads").stdout
    found = run("run", text, "--engine", "spark", "--master", "local-cluster[2,1,512]", "--spark-conf",
                "spark.executor.memory=512m", folder=f"{folder}/spark", environment=environment(2)).stdout
    assert found == want
    for name in files:
        assert pathlib.Path(folder, "spark", name).read_bytes() == pathlib.Path(folder, "threads", name).read_bytes(), name


main()
