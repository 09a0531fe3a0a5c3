"""A session of a real Spark for tests, with two executors on this machine."""
import atexit
import os
import shutil
import sys

from fovea_test import ROOT

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for virtual machines of Java: compile and clean up little
_session = None


def use_environment(folder):
    """Goes on with the Python that has pyspark, or ends the test program with a line that says what is missing."""
    python = ROOT / folder / "bin" / "python"
    name = os.path.basename(sys.argv[0])
    if not python.exists():
        print(f"skip {name}: no {folder}: scripts/bootstrap.sh spark could not make it")
        sys.exit(0)
    if not shutil.which("java"):
        print(f"skip {name}: no java: scripts/bootstrap.sh spark could not install it")
        sys.exit(0)
    if os.environ.get("FOVEA_SPARK") != folder:
        os.environ.update(FOVEA_SPARK=folder, PYSPARK_PYTHON=str(python), PYSPARK_DRIVER_PYTHON=str(python),
                          SPARK_LOCAL_IP="127.0.0.1", JAVA_TOOL_OPTIONS=SHORT_LIVED)
        os.execv(python, [str(python), *sys.argv])
    sys.path.insert(0, str(ROOT / "python"))


def session(master="local-cluster[2,1,512]"):
    """The session that all tests of a program share."""
    global _session
    if _session is None:
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master(master).appName("fovea tests")
        for key, value in (("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false"),
                           ("spark.executor.memory", "512m"), ("spark.driver.memory", "512m"), ("spark.log.level", "ERROR"),
                           ("spark.sql.shuffle.partitions", "2"), ("spark.sql.execution.arrow.pyspark.enabled", "true"),
                           ("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "5s")):
            builder = builder.config(key, value)
        _session = builder.getOrCreate()
        atexit.register(_session.stop)
    return _session
