"""A real HDFS on this machine: a NameNode and a DataNode on loopback and on ports of their own."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.request

from fovea_test import Skip, wait_for
from maven import find_jars
from spark_session import SHORT_LIVED

VERSION = "3.3.6"
SETTINGS = {"dfs.namenode.name.dir": "file://{folder}/name", "dfs.datanode.data.dir": "file://{folder}/data",
            "dfs.namenode.http-address": "127.0.0.1:{web}", "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0", "dfs.datanode.ipc.address": "127.0.0.1:0", "dfs.replication": "1"}
SERVER = "org.apache.hadoop.hdfs.server"


def free_ports(count):
    """Ports that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Hdfs:
    """Runs while a with block does. Its user is ada."""

    def __init__(self, folder):
        if not shutil.which("java"):
            raise Skip("no java: scripts/bootstrap.sh spark could not install it")
        self.jars = find_jars("hdfs", "HDFS_JARS", f"org.apache.hadoop:hadoop-hdfs:{VERSION}",
                              f"org.apache.hadoop:hadoop-hdfs-client:{VERSION}", f"org.apache.hadoop:hadoop-common:{VERSION}")
        self.folder, self.daemons = pathlib.Path(folder).resolve(), []

    def _write(self, name, settings):
        inner = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
        (self.folder / "conf" / name).write_text(f"<configuration>{inner}</configuration>")

    def _start(self, name, program, *arguments):
        command = ["java", *SHORT_LIVED.split(), "-Xmx256m", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp",
                   f"{self.folder}/conf:{self.jars}/*", f"{SERVER}.{program}", *arguments]
        with open(self.folder / f"{name}.log", "w") as log:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env={**os.environ, "HADOOP_USER_NAME": "ada"}, start_new_session=True)

    def _is_up(self):
        if any(daemon.poll() is not None for daemon in self.daemons):
            raise AssertionError("a part of HDFS has ended: " + " ".join((self.folder / f"{name}.log").read_text()[-500:]
                                                                         for name in ("name", "data")))
        about = f"{self.web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        try:
            with urllib.request.urlopen(about, timeout=10) as answer:
                return json.load(answer)["beans"][0]["NumLiveDataNodes"] == 1
        except (OSError, IndexError):
            return False

    def __enter__(self):
        rpc, web = free_ports(2)
        self.web, self.root = f"http://127.0.0.1:{web}", f"hdfs://127.0.0.1:{rpc}"
        for part in ("hdfs", "datanode", "static"):  # pages for people, which the jars lack; the programs look for them
            (self.folder / "conf" / "webapps" / part).mkdir(parents=True)
        self._write("core-site.xml", {"fs.defaultFS": self.root})
        self._write("hdfs-site.xml", {key: value.format(folder=self.folder, web=web) for key, value in SETTINGS.items()})
        assert self._start("format", "namenode.NameNode", "-format", "-nonInteractive").wait() == 0
        self.daemons = [self._start("name", "namenode.NameNode"), self._start("data", "datanode.DataNode")]
        wait_for("HDFS", self._is_up)
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait()

    def environment(self):
        """Variables for programs that use it."""
        return {"FOVEA_WEBHDFS": self.web, "HADOOP_USER_NAME": "ada"}
