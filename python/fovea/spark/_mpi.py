"""MPI inside of Spark: ranks of MPICH that live in the executors, one in each task of a barrier stage.

MPICH's mpiexec can be told to start nothing: it prints one command for each host, a proxy, and waits for these to report. Task 0
runs it, all tasks get its lines, and task k starts proxy k.

1. mpiexec runs in the stage and not in the driver, because its lines are worth nothing for a second attempt of the stage.
2. Each task is a host of its own name, or else several ranks would come to one proxy.
3. A barrier stage is tried again only if a shuffle follows it, and as a whole only if all of its tasks fail.
4. Each process dies with its parent, so that a killed executor leaves none behind."""
import os

from .. import _placed_worker
from .._errors import Error
from ._place import _Job, context_of, memory_of_worker, problems, slots_of, wait_for_executors, _on_all, cores_of_task


def _rank(n, command, folder, environment, refusal):
    """What a task of the barrier stage does. refusal: an exit status that says that another try would end the same way."""
    problem = _placed_worker.Problem
    tied = ["setpriv", "--pdeathsig", "KILL"]

    def start(arguments, **more):
        import subprocess
        try:
            return subprocess.Popen([*tied, *arguments], stdin=subprocess.DEVNULL, cwd=folder, text=True,
                                    env={**os.environ, **environment}, **more)
        except FileNotFoundError as missing:
            raise problem(f"{os.uname().nodename} has no {missing.filename}: Debian: apt-get install util-linux") from None

    def launch(addresses):
        """mpiexec, and its lines."""
        import shutil
        import subprocess
        program = shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra")
        if not program:
            raise problem(f"{os.uname().nodename} has no mpiexec.mpich: Debian: apt-get install mpich")
        hosts = ",".join(f"task{k}-{address}" for k, address in enumerate(addresses))
        launcher = start([program, "-localhost", addresses[0], "-launcher", "manual", "-hosts", hosts, "-n", str(len(addresses)),
                          *tied, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines, mark = [], "HYDRA_LAUNCH: "
        for line in launcher.stdout:
            if line.startswith("HYDRA_LAUNCH_END"):
                break
            lines.append(line)
        found = [line[len(mark):] for line in lines if line.startswith(mark)]
        if len(found) != len(addresses):
            raise problem(f"mpiexec names {len(found)} proxies for {len(addresses)} tasks: {''.join(lines)[-500:]}")
        return launcher, found

    def attempt(task):
        import json
        import shlex
        import threading
        addresses = [info.address.split(":")[0] for info in task.getTaskInfos()]
        me, said, launcher, mine = task.partitionId(), [], None, {}
        if me == 0:
            try:
                launcher, lines = launch(addresses)
                mine = {"lines": lines}
                reader = threading.Thread(target=lambda: said.extend(launcher.stdout), daemon=True)
                reader.start()  # a full pipe would stop the ranks
            except problem as why:
                mine = {"problem": str(why)}
        told = json.loads(task.allGather(json.dumps(mine))[0])
        if "lines" in told:
            if len(told["lines"]) != n:
                raise RuntimeError(f"{len(told['lines'])} of {n} tasks were tried again without the others")
            start(shlex.split(told["lines"][me])).wait()
            mine = {}
            if launcher:
                code = launcher.wait()
                reader.join(5)
                text = "".join(said)
                mine = {"done": text} if code == 0 else {"problem": text[-2000:]} if code == refusal else \
                    {"failed": f"MPI ended with {code}: {text[-2000:]}"}
            told = json.loads(task.allGather(json.dumps(mine))[0])  # all succeed, or all are tried again
        if "failed" in told:
            raise RuntimeError(told["failed"])
        return list(told.items()) if me == 0 else []

    def body(_):
        from pyspark import BarrierTaskContext
        return attempt(BarrierTaskContext.get())
    return body


def _run(sc, n, command, folder, environment, group, description, look=lambda: None, refusal=None):
    slots = slots_of(sc)
    if n > slots:
        raise Error(f"{n} ranks need {n} slots of Spark at the same time, and there are {slots}")
    rdd = sc.parallelize(range(n), n).barrier().mapPartitions(_rank(n, command, folder, environment, refusal))
    rdd = rdd.coalesce(1, shuffle=True)
    return problems(_Job(sc, group, description, rdd.collect).wait(look))[0]


def mpi(spark, n, command, folder=None, environment=None):
    """Runs an MPI program on n ranks inside of Spark's executors, and gives what it prints.

    command: a list, the program's path first, as the executors see it. folder: its working directory, by default that of this
    program. environment: variables in addition to those of the executors. If an executor is lost or a rank dies, Spark tries the
    whole stage again; a program that keeps what it has done goes on from there."""
    sc = context_of(spark)
    wait_for_executors(sc, int(n))
    command = [os.fspath(word) for word in command]
    return _run(sc, int(n), command, folder or os.getcwd(), environment or {}, f"fovea-mpi-{os.urandom(4).hex()}",
                f"MPI on {n} ranks: {' '.join(command)}")


def work_on_ranks(sc, run, memory=None, ranks=None, command=None):
    """Has all of a run done by ranks of MPI in the executors."""
    from ..__main__ import command as own_command
    wait_for_executors(sc, ranks or 1)
    n = ranks or slots_of(sc)
    facts = _on_all(sc, run, f"{run.name}: looking for Fovea in the executors", [run.check(command or own_command())] * n)
    hosts = [fact["host"] for fact in facts]
    memory = memory_of_worker(sc, facts, memory) * min(hosts.count(host) for host in hosts)  # a host's, which its ranks divide
    command = [facts[0]["command"], "work", run.folder, "--alone", "--engine", "mpi", "--quiet", "--workers",
               str(cores_of_task(sc)), "--memory", str(memory), *(["--overwrite"] if run.run_options.overwrite else [])]
    try:
        _run(sc, n, command, run.where, {"FOVEA_MPI": "mpich"}, f"fovea-{run.token}", f"{run.name}, {n} ranks of MPI",
             run.look, refusal=2)
    except BaseException:
        run.stop()
        raise
