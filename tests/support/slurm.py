"""A real Slurm on this machine for the time of a test: controller, four pretend nodes, accounting, all on loopback.

    with slurm.Cluster() as cluster:
        run("submit", "p.fov", folder=folder, environment=cluster.environment)

Everything lies in a folder of its own, the daemons are children of this process and die with it, and what jobs have left behind
is ended at the end: it is known by the folder's name in its environment.
"""
import ctypes
import getpass
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

from fovea_test import PATIENCE

PROGRAMS = ["munged", "mariadbd", "mysql_install_db", "slurmdbd", "slurmctld", "slurmd", "sbatch", "sacct", "sacctmgr"]
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
NODES = ["n1", "n2", "n3", "n4"]


def missing():
    """Why there can be no cluster here; None if there can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    return f"Slurm is not installed: no {', '.join(absent)}" if absent else None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def read(pid, name):
    """A file about a process; empty if it is gone."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def parent(pid):
    return int((read(pid, "stat").rpartition(b")")[2].split() or [0, 0])[1])


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


CONFIGURATION = """ClusterName=fovea
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={d}/munge/sock,cred_expire=5
CredType=cred/munge
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd.%n.pid
SlurmctldLogFile={d}/log/slurmctld
SlurmdLogFile={d}/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
TmpFS={d}/tmp
SlurmctldTimeout=10
KillWait=2
MinJobAge=300
InactiveLimit=0
MaxArraySize=33
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0,requeue_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
JobRequeue=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={dbd}
AccountingStoragePass={d}/munge/sock
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
"""

ACCOUNTING = """AuthType=auth/munge
AuthInfo=socket={d}/munge/sock
DbdHost=localhost
DbdPort={dbd}
SlurmUser={user}
LogFile={d}/log/slurmdbd
PidFile={d}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct_db
"""


class Cluster:
    """Four nodes of two cores and 4 GB each, as far as Slurm knows."""

    def __init__(self, devices=0):
        """devices: pretend cards of type a100 on every node; Slurm tells jobs which ones if we may make device files, else only
        how many."""
        self.devices = devices
        self.folder = tempfile.mkdtemp(prefix="fovea-slurm-")
        self.environment = {"SLURM_CONF": f"{self.folder}/slurm.conf", "MYSQL_UNIX_PORT": f"{self.folder}/my.sock", "PATH": PATH}
        self.daemons = {}

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- calling

    def call(self, *command, timeout=PATIENCE):
        """Runs one of Slurm's commands and gives what it printed."""
        done = subprocess.run(command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
        return done.stdout

    def wait_for(self, what, condition):
        """Waits until the condition gives something true, and gives that."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                value = condition()
            except (RuntimeError, subprocess.TimeoutExpired):
                value = None
            if value:
                return value
            time.sleep(0.1)
        queue = self.call("squeue", "-h", "-o", "%i %j %T %r %N")
        raise AssertionError(f"waited {PATIENCE} s in vain for {what}; queue: {queue!r}")

    def idle(self):
        """Waits until no job is left."""
        self.wait_for("an empty queue", lambda: not self.call("squeue", "-h").strip())

    # ---- starting

    def daemon(self, name, *command):
        log = open(f"{self.folder}/log/{name}.out", "ab")
        self.daemons[name] = subprocess.Popen(command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                                              stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent)
        log.close()

    def start_node(self, name):
        pathlib.Path(self.folder, "spool", name).mkdir(parents=True, exist_ok=True)
        self.daemon(name, "slurmd", "-D", "-f", f"{self.folder}/slurm.conf", "-N", name)

    def start(self):
        d = self.folder
        os.chmod(d, 0o755)
        for part in ["state", "log", "spool", "munge", "tmp"]:
            os.mkdir(f"{d}/{part}")
        host, user, ports = socket.gethostname().split(".")[0], getpass.getuser(), free_ports(6)
        nodes = "\n".join(f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={p} CPUs=2 RealMemory=4000 State=UNKNOWN"
                          + (f" Gres=gpu:a100:{self.devices}" if self.devices else "") for n, p in zip(NODES, ports))
        if self.devices:
            nodes += "\nGresTypes=gpu"
            self.make_cards()
        values = {"d": d, "host": host, "user": user, "ctld": ports[4], "dbd": ports[5], "nodes": nodes}
        pathlib.Path(d, "slurm.conf").write_text(CONFIGURATION.format(**values))
        pathlib.Path(d, "slurmdbd.conf").write_text(ACCOUNTING.format(**values))
        os.chmod(f"{d}/slurmdbd.conf", 0o600)
        self.start_munge()
        self.start_database(user)
        self.daemon("slurmdbd", "slurmdbd", "-D")
        self.wait_for("the accounting daemon", lambda: self.call("sacctmgr", "-i", "add", "cluster", "fovea", timeout=60))
        self.daemon("slurmctld", "slurmctld", "-D", "-i", "-f", f"{d}/slurm.conf")
        for name in NODES:
            self.start_node(name)
        self.wait_for("four idle nodes", lambda: self.call("sinfo", "-h", "-t", "idle", "-o", "%D", timeout=60).strip() == "4")

    def make_cards(self):
        for k in range(self.devices):
            path = pathlib.Path(self.folder, f"card{k}")
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except PermissionError:
                path.touch()
        pathlib.Path(self.folder, "gres.conf").write_text(
            "NodeName=n[1-4] Name=gpu Type=a100 Flags=nvidia_gpu_env,amd_gpu_env,opencl_env "
            f"File={self.folder}/card[0-{self.devices - 1}]\n")

    def start_munge(self):
        d = self.folder
        pathlib.Path(d, "munge", "key").write_bytes(os.urandom(1024))
        os.chmod(f"{d}/munge/key", 0o400)
        self.daemon("munged", "munged", "--foreground", "--force", f"--key-file={d}/munge/key", f"--socket={d}/munge/sock",
                    f"--pid-file={d}/munge/pid", f"--log-file={d}/munge/log", f"--seed-file={d}/munge/seed")
        self.wait_for("munge", lambda: os.path.exists(f"{d}/munge/sock"))

    def start_database(self, user):
        d = self.folder
        subprocess.run(["mysql_install_db", "--no-defaults", "--auth-root-authentication-method=normal", f"--user={user}",
                        f"--datadir={d}/my", "--skip-test-db"], env={**os.environ, "PATH": PATH}, check=True, capture_output=True)
        self.daemon("mariadbd", "mariadbd", "--no-defaults", f"--user={user}", f"--datadir={d}/my", f"--socket={d}/my.sock",
                    f"--pid-file={d}/my.pid", "--skip-networking", "--innodb-buffer-pool-size=32M",
                    "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=4M")
        self.wait_for("the database", lambda: self.call("mysqladmin", "--no-defaults", "-S", f"{d}/my.sock", "-uroot", "ping"))
        self.call("mysql", "--no-defaults", "-S", f"{d}/my.sock", "-uroot", "-e",
                  "create database slurm_acct_db; create user slurm@localhost identified by 'x'; "
                  "grant all on slurm_acct_db.* to slurm@localhost")

    # ---- ending

    def ours(self):
        """Processes that have our folder in their environment."""
        mark, found = self.folder.encode(), []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            if mark in read(entry, "environ"):
                found.append(int(entry))
        return found

    def kill_node(self, name):
        """A power cut of a node: its daemon and everything it runs is gone at once."""
        self.daemons[name].kill()
        self.daemons[name].wait()
        lost = [pid for pid in self.ours() if f"SLURMD_NODENAME={name}\0".encode() in read(pid, "environ")]
        keepers = {pid for pid in map(parent, lost) if read(pid, "comm") == b"slurmstepd\n"}
        for pid in [*keepers, *lost]:  # those who would tell of the others' end first
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def stop(self):
        try:
            if "slurmctld" in self.daemons:
                self.call("scancel", "-u", getpass.getuser(), timeout=60)
        except (RuntimeError, subprocess.TimeoutExpired, OSError):
            pass
        for name in [*NODES, "slurmctld", "slurmdbd", "mariadbd", "munged"]:
            daemon = self.daemons.get(name)
            if daemon and daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(5)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        for pid in self.ours():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
