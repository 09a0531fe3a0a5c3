"""A standalone Spark on this machine: a master and two workers of one core each, on loopback and on ports of their own."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

from fovea_test import ROOT, Skip, wait_for
from placed import processes
from spark_session import SHORT_LIVED


class Cluster:
    """Runs while a with block does."""

    def __init__(self, environment, folder, workers=2, hidden=None):
        """hidden: a folder that is empty for workers and executors, as if they were on other machines."""
        self.python = ROOT / environment / "bin" / "python"
        if not self.python.exists():
            raise Skip(f"no {environment}: scripts/bootstrap.sh spark or interop could not make it")
        if not shutil.which("java"):
            raise Skip("no java: scripts/bootstrap.sh spark could not install it")
        self.folder, self.count, self.daemons, self.master = pathlib.Path(folder), workers, [], None
        cover = f"mount -t tmpfs none '{hidden}'; exec \"$@\""
        self.elsewhere = ["unshare", "-rm", "sh", "-ec", cover, "sh"] if hidden else []

    def environment(self):
        """Variables for programs that use it."""
        return {"FOVEA_PYTHON": str(self.python), "PYSPARK_PYTHON": str(self.python), "SPARK_LOCAL_IP": "127.0.0.1",
                "JAVA_TOOL_OPTIONS": SHORT_LIVED}

    def _start(self, name, *arguments, elsewhere=()):
        home = subprocess.run([self.python, "-c", "import os, pyspark; print(os.path.dirname(pyspark.__file__))"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()
        own = {**self.environment(), "SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m",
               "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        log = self.folder / f"{name}.log"
        with open(log, "w") as out:
            self.daemons.append(subprocess.Popen([*elsewhere, f"{home}/bin/spark-class", *arguments], stdin=subprocess.DEVNULL,
                                                 stdout=out, stderr=out, env={**os.environ, **own}, start_new_session=True))
        return log

    def __enter__(self):
        (self.folder / "local").mkdir(parents=True)
        log = self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0",
                          "--webui-port", "0")
        address = r"Starting Spark master at (spark://127.0.0.1:\d+)"
        self.master = wait_for("Spark's master", lambda: self._found(log, address, 1))[0]
        for k in range(self.count):
            self._start(f"worker{k}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                        "--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work"), self.master,
                        elsewhere=self.elsewhere)
        wait_for("Spark's workers", lambda: self._found(log, "Registering worker", self.count))
        return self

    def _found(self, log, pattern, count):
        if any(daemon.poll() is not None for daemon in self.daemons):
            raise AssertionError(f"a part of Spark has ended: {log.read_text()[-500:]}")
        found = re.findall(pattern, log.read_text())
        return found if len(found) >= count else None

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait()
        for pid in self.executors():
            os.kill(pid, signal.SIGKILL)

    def executors(self):
        """Process ids of the executors of this cluster."""
        work = os.path.realpath(self.folder / "work") + os.sep
        return [pid for pid in processes("CoarseGrainedExecutorBackend") if os.path.realpath(f"/proc/{pid}/cwd").startswith(work)]

    def drivers(self, folder):
        """Process ids of the drivers that the command has started for runs of this folder."""
        return [pid for pid in processes("-m fovea.spark ") if os.path.realpath(f"/proc/{pid}/cwd") == os.path.realpath(folder)]

    def workers(self, folder):
        """Process ids of workers on runs of this folder."""
        return processes(" work ", str(folder), "--tied")
