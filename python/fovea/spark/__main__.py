"""The program that `fovea run --engine spark` starts: `python -m fovea.spark RUN_FOLDER --master URL ...`.

It is the driver of a Spark application that places workers on a run that is frozen in a folder."""
import os
import re
import socket
import sys

from .._errors import UsageError
from .._placed_program import arguments, program
from ._find import find_pyspark
from ._mpi import work_on_ranks
from ._place import OF_OVERHEAD, context_of, explain, place, place_apart


def _arguments():
    parser = arguments("spark")
    parser.add_argument("--master")
    parser.add_argument("--executors", type=int)
    parser.add_argument("--mpi")
    parser.add_argument("--conf", action="append", default=[])
    return parser.parse_args()


def _check_master(master):
    """Says at once what Spark would find out after a minute."""
    if not re.match(r"(spark|k8s)://.|yarn$|local($|\[.*\]$|-cluster\[.*\]$)", master):
        raise UsageError(f"--master {master}: expected spark://host:port, yarn, k8s://..., local[N] or "
                         "local-cluster[EXECUTORS,CORES,MEMORY]")
    if master == "yarn" and not os.environ.get("HADOOP_CONF_DIR") and not os.environ.get("YARN_CONF_DIR"):
        raise UsageError("--master yarn: HADOOP_CONF_DIR must name the folder with the settings of the cluster (yarn-site.xml)")
    if not master.startswith("spark://"):
        return
    reasons = []
    for place in master[len("spark://"):].split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"--master {master}: {place} is no host:port")
        try:
            socket.create_connection((host.strip("[]"), int(port)), 10).close()
            return
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
    raise UsageError(f"--master {master}: no Spark master answers ({'; '.join(reasons)})")


def settings(given, run):
    """The settings of the session: those that were given, and what follows from the run and from the other options."""
    conf = {}
    for pair in given.conf:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise UsageError(f"--spark-conf {pair}: expected KEY=VALUE")
        conf[key] = value
    own = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "WARN",
           "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
           "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "5s"}
    cores = int(conf.get("spark.executor.cores", given.workers or 1))
    if given.executors or given.workers:
        own["spark.executor.cores"] = cores
    if given.executors:
        own["spark.executor.instances"] = given.executors
        own["spark.cores.max"] = given.executors * cores
    tasks = max(cores // int(conf.get("spark.task.cpus", 1)), 1)
    wanted = given.memory or run.look()["ask"] * tasks * (2 if given.mpi else 1)  # each rank has buffers for its messages
    own["spark.executor.memoryOverhead"] = f"{max(int(wanted / OF_OVERHEAD) >> 20, 384)}m"
    return {**own, **conf}


def _session(given, run):
    find_pyspark()
    master = given.master or os.environ.get("MASTER")
    if not master:
        raise UsageError("--engine spark needs --master: spark://host:port, yarn, or local[4] to try it out")
    _check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master(master).appName(f"fovea {run.name}")
    for key, value in settings(given, run).items():
        builder = builder.config(key, str(value))
    try:
        return builder.getOrCreate()
    except Exception as failure:
        raise UsageError(f"no session of Spark at {master}: {explain(failure)}") from None


def _work(given, run):
    apart = given.apart or run.without_folder
    if given.mpi and apart:
        raise UsageError("ranks of MPI need a folder in common: --mpi goes neither with --apart nor with --store s3://...")
    spark = _session(given, run)
    try:
        sc = context_of(spark)
        if apart:
            place_apart(sc, run, given.memory)
        elif given.mpi:
            work_on_ranks(sc, run, given.memory, given.executors)
        else:
            place(sc, run, given.memory)
    finally:
        spark.stop()


def main():
    """The exit status, after the workers have done what there was."""
    given = _arguments()
    return program(given, lambda run: _work(given, run))


if __name__ == "__main__":
    sys.exit(main())
