"""Spark places the workers of a run: one long task for each slot."""
import re
import time
import weakref

from .. import _placed_worker
from .._errors import Error, OutOfMemory, UsageError
from .._placed import placed_run, share_of_memory
from .._placed_apart import ApartRun, check_memory

FIRST_EXECUTOR = 90  # seconds for the cluster to give one
SETTLED = 2  # seconds without a new executor, after which no more are expected
NO_EXECUTOR = 120  # seconds without any before a run is given up
OF_OVERHEAD = 0.8  # of an executor's memory beside the JVM is for workers: their Python takes the rest
STEP = 0.1  # of a run: so often a line in Spark's pages says how far it is
_settled = weakref.WeakSet()  # contexts whose executors have come


def context_of(spark):
    """The SparkContext of a session."""
    if "connect" in type(spark).__module__:
        raise UsageError("workers are placed through a SparkContext, which a session of Spark Connect does not have: use a "
                         "session of the cluster itself")
    context = getattr(spark, "sparkContext", spark)
    if not hasattr(context, "parallelize"):
        raise UsageError(f"the first argument must be a session of Spark, as SparkSession.builder.getOrCreate() gives it, not "
                         f"{type(spark).__name__}")
    if context._jsc is None:
        raise UsageError("this session of Spark was stopped: SparkSession.builder.getOrCreate() makes a new one")
    from pyspark import cloudpickle
    cloudpickle.register_pickle_by_value(_placed_worker)  # executors may have no package to import it from
    return context


def setting(sc, key, otherwise=None):
    """A setting of Spark's. The context's own object is asked: getConf() would copy it, key by key, through a socket."""
    found = sc._conf.get(key)
    return otherwise if found is None else found


def executors_of(sc):
    """How many there are now; that of a local master is the driver itself."""
    count = sc._jsc.sc().getExecutorMemoryStatus().size()
    return count if sc.master.startswith("local") and not sc.master.startswith("local-cluster") else count - 1


def executors_asked(sc):
    """How many the session has asked for; 0: as many as there are."""
    local = re.match(r"local-cluster\[\s*(\d+)", sc.master)
    return int(local[1] if local else setting(sc, "spark.executor.instances", 0) or 0)


def wait_for_executors(sc, slots=1, seconds=FIRST_EXECUTOR):
    """Until there are so many slots, or at least one executor and no more come: those of a new session arrive one by one."""
    began = changed = time.monotonic()
    wanted, count = executors_asked(sc), 0
    young = time.time() - sc.startTime / 1000 < seconds and not wanted and sc not in _settled
    while True:
        now, before, count = time.monotonic(), count, executors_of(sc)
        changed = now if count != before else changed
        enough = count >= max(wanted, 1) and slots_of(sc) >= slots
        if enough and (not young or now - changed > SETTLED) or count and now - began > seconds:
            _settled.add(sc)
            return
        if now - began > seconds:
            raise UsageError(f"{sc.master} has started no executor in {seconds} s: it is busy, or has no machine with the "
                             f"{setting(sc, 'spark.executor.memory', '1g')} of memory and the cores that spark.executor.memory "
                             "and spark.executor.cores ask for")
        time.sleep(0.05)


def slots_of(sc):
    """How many tasks run at once."""
    cores = max(sc.defaultParallelism, 1)
    most = setting(sc, "spark.dynamicAllocation.maxExecutors")
    if setting(sc, "spark.dynamicAllocation.enabled", "false") == "true" and most:
        cores = max(cores, int(most) * int(setting(sc, "spark.executor.cores", 1)))
    return max(cores // cores_of_task(sc), 1)


def cores_of_task(sc):
    """Threads of a worker."""
    return max(int(setting(sc, "spark.task.cpus", 1)), 1)


class _Job:
    """A Spark job in a thread of its own, so that this one can look at it and end it."""

    def __init__(self, sc, group, description, collect):
        from pyspark import InheritableThread
        self.sc, self.group, self.found, self.failure = sc, group, None, None

        def work():
            sc.setJobGroup(group, description, interruptOnCancel=True)
            try:
                self.found = collect()
            except Exception as failure:
                self.failure = failure
        self.thread = InheritableThread(target=work, daemon=True)
        self.thread.start()

    def wait(self, look):
        """Until it is over; look is called twice a second and may raise. Gives what was collected."""
        alone = time.monotonic()
        try:
            while self.thread.is_alive():
                self.thread.join(0.5)
                if not self.thread.is_alive():
                    break
                alone = time.monotonic() if executors_of(self.sc) else alone
                if time.monotonic() - alone > NO_EXECUTOR:
                    raise Error(f"all executors of {self.sc.master} are lost, and none came back in {NO_EXECUTOR} s; what is "
                                "done is kept, and the same call goes on from there")
                look()
        except BaseException:
            self.sc.cancelJobGroup(self.group)
            self.thread.join(15)
            raise
        if self.failure is not None:
            raise Error(explain(self.failure)) from None
        return self.found


def explain(failure):
    """What a failure of Spark's comes to, without the traces of Java and Python around it."""
    java = getattr(failure, "java_exception", None)
    text = str(java.getMessage() if java is not None else failure) or type(failure).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "Java gateway process exited" in text:
        return ("Java ended before Spark began. What it said is in spark.log in the run's folder, and shown with -v; most often "
                "Java is too old (Spark 4 needs Java 17), or a --spark-conf is wrong")
    if "sun.nio.ch" in text:
        return "this Spark is too old for this Java: Spark before 3.3 needs Java 8 or 11"
    told = [line for line in lines if not line.startswith(("File ", "at ", "Traceback", "Driver stacktrace", "^"))]
    last = [line for line in told if "Error: " in line or "Exception: " in line]
    first = told[0] if told else "no reason was given"
    return f"Spark could not run the workers: {first[:300]}" + (f" ({last[-1][:500]})" if last and last[-1] != first else "")


def problems(found):
    """Raises what workers could not do; gives what they did."""
    said = [text for kind, text in found if kind == "problem"]
    if said:
        raise (OutOfMemory if "--memory" in said[0] else UsageError)(said[0])
    return [value for _, value in found]


def _bodies(functions):
    """What each task of a Spark job does: one function."""
    outcome = _placed_worker.outcome

    def body(index, _):
        import os
        from pyspark import TaskContext
        devices = TaskContext.get().resources().get("gpu")
        if devices is not None:
            os.environ["FOVEA_DEVICE"] = devices.addresses[0]  # the one that Spark has given to this task
        return [outcome(functions[index])]
    return body


def _on_all(sc, run, description, functions, look=lambda: None, resources=None):
    """Calls each function in a Spark task of its own."""
    rdd = sc.parallelize(range(len(functions)), len(functions)).mapPartitionsWithIndex(_bodies(functions))
    if resources is not None:
        rdd = rdd.withResources(resources)
    return problems(_Job(sc, f"fovea-{run.token}", description, rdd.collect).wait(look))


class _Accumulator:
    """A number of the driver's that Spark's pages show among the accumulators of the stages that run. Tasks in Python can add to
    none that has a name, so the driver puts it there; where a version of Spark keeps its stages otherwise, it is not shown."""

    def __init__(self, sc, name):
        self.sc, self.stages = sc, sc._jsc.sc().dagScheduler().stageIdToStage
        self.long = sc._jsc.sc().longAccumulator(name)

    def show(self, value):
        """The number from now on."""
        self.long.add(value - self.long.value())
        option = self.sc._jvm.scala.Option.apply
        info = self.long.toInfo(option(None), option(self.long.value()))
        for stage in self.sc.statusTracker().getActiveStageIds():
            self.stages().apply(stage).latestInfo().accumulables().put(self.long.id(), info)


class _Milestones:
    """How far a run is in Spark's pages: an accumulator, and lines in the list of jobs: jobs without tasks, which cost little."""

    def __init__(self, sc, run, told):
        self.sc, self.run, self.told, self.next = sc, run, told, STEP
        self.accumulator, self.shown = None, 0

    def _show(self, what, done):
        """In the accumulator, which is not worth a run."""
        from py4j.protocol import Py4JError
        if done == self.shown:
            return
        self.shown = done
        try:
            self.accumulator = self.accumulator or _Accumulator(self.sc, f"{self.run.name}: {what} done")
            self.accumulator.show(done)
        except Py4JError:  # the stage has just ended, or Spark has changed inside
            pass

    def look(self):
        """Tells how far it is, if that is news."""
        state = self.run.look()
        if self.told:
            self.told(state["fraction"])
        done, tasks = (sum(s[key] for s in state["stages"]) for key in ("done", "tasks"))
        what = "items" if state["collection"] else "tasks"
        self._show(what, done)
        if state["fraction"] < self.next or state["fraction"] >= 1:
            return
        self.next = state["fraction"] + STEP
        self.sc.setJobGroup(f"fovea-{self.run.token}", f"{self.run.name}: {state['fraction']:.0%}, {done} of {tasks} {what}")
        self.sc.emptyRDD().collect()


def _of_profile(profile):
    """What executors of a ResourceProfile have for a worker beside the JVM, in bytes; None: it does not say."""
    asked = profile.executorResources.get("memoryOverhead") if profile is not None else None
    if asked is None:
        return None
    cores, cpus = profile.executorResources.get("cores"), profile.taskResources.get("cpus")
    workers = max(int((cores.amount if cores else 1) // (cpus.amount if cpus else 1)), 1)
    return int(OF_OVERHEAD * (int(asked.amount) << 20) / workers)


def memory_of_worker(sc, facts, wanted=None, profile=None):
    """Bytes that a worker may use: a part of what its executor may use beside the JVM, if that is known."""
    from .._compute import _bytes
    if not wanted and _of_profile(profile):
        return _of_profile(profile)
    cores = int(setting(sc, "spark.executor.cores", 0) or 0)
    overhead = setting(sc, "spark.executor.memoryOverhead")
    slots = max((cores or max((f["cores"] for f in facts), default=1)) // cores_of_task(sc), 1)
    if not wanted and overhead:
        text = overhead.lower().rstrip("b")
        wanted = OF_OVERHEAD * _bytes(text.upper() if text[-1:].isalpha() else text + "M")
    return share_of_memory(facts, int(wanted / slots) if wanted else None)


def _look_around(sc, run, memory, command, resources, apart=False):
    """What the executors can be asked: the command there, and the bytes that a worker may use."""
    from ..__main__ import command as own_command
    command = command or own_command()
    wait_for_executors(sc)
    facts = _on_all(sc, run, f"{run.name}: looking for Fovea in the executors", [run.check(command, apart)] * slots_of(sc))
    return command, memory_of_worker(sc, facts, memory, resources)


def place(sc, run, memory=None, command=None, told=None, resources=None):
    """Has workers work on a run until nothing is left but its end."""
    command, memory = _look_around(sc, run, memory, command, resources)
    jobs = run.jobs()
    milestones = _Milestones(sc, run, told)
    for number, job in enumerate(jobs, 1):
        places = min(slots_of(sc), max(job.tasks, 1))  # there may be more by now
        stage = f"stage {number} of {len(jobs)}: " if len(jobs) > 1 else ""
        workers = [run.worker(command, k, places, job, cores_of_task(sc), memory) for k in range(places)]
        try:
            _on_all(sc, run, f"{run.name}, {stage}{job.name} ({job.tasks} {'items' if not job.last else 'tasks'})", workers,
                    milestones.look, resources)
        except BaseException:
            run.stop()
            raise


def place_apart(sc, run, memory=None, command=None, told=None, resources=None):
    """The same for executors that share no folder with the driver: the whole run, and what it prints."""
    command, memory = _look_around(sc, run, memory, command, resources, apart=True)
    jobs, cores = run.jobs(), cores_of_task(sc)
    places = min(slots_of(sc), max(job.tasks for job in jobs) or 1)
    check_memory(run, memory // cores)
    name = f"{run.name}, through the driver: {' | '.join(job.name for job in jobs)}"
    with ApartRun(run, places * cores, memory // cores, setting(sc, "spark.driver.host", "127.0.0.1")) as apart:
        try:
            if not apart.over:
                _on_all(sc, run, name, [apart.worker(command, cores)] * places, _Milestones(sc, run, told).look, resources)
        except Error:  # of a worker that came too late, it may be
            if not apart.over:
                raise
        return apart.finish()


def run(spark, pipeline, params=None, *, memory=None, command=None, mpi=False, apart=False, progress=None, resources=None,
        **options):
    """Runs a pipeline on the executors of a Spark session: what fovea.run gives, and the same files.

    pipeline: the path of a `.fov` file, or its text. params: values of its `param` statements. memory: what the workers of one
    executor may use together ("4G"); if left out, what spark.executor.memoryOverhead says, else half of what is free there.
    command: the path of the fovea command on the executors, if it is neither at the driver's path nor in their Python.
    mpi: the workers are ranks of MPI, which solvers with many small steps are faster on.
    apart: the executors share no folder with the driver, which then keeps the store and writes all files.
    progress: called with the fraction that is done, from 0 to 1. resources: a ResourceProfile for the tasks. Other options are
    those of fovea.run: store, fresh, overwrite; chunk: sizes of the chunks, a list. The working directory and the store
    must lie where all executors see them, unless they are apart."""
    from .._compute import _bytes
    sc = context_of(spark)
    with placed_run(pipeline, params, **options) as placed:
        apart = apart or placed.without_folder
        if mpi and apart:
            raise UsageError("ranks of MPI need a folder in common: mpi goes neither with apart nor with store=\"s3://...\"")
        if apart:
            return place_apart(sc, placed, _bytes(memory), command, progress, resources)
        if mpi:
            from ._mpi import work_on_ranks
            work_on_ranks(sc, placed, _bytes(memory), command=command)
        else:
            place(sc, placed, _bytes(memory), command, progress, resources)
        return placed.finish()
