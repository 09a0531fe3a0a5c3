"""Distributed places the workers of a run: one long task on each of its workers.

Which of Fovea's tasks a worker takes is settled among the workers, without dask: a task of dask costs a millisecond, one of Fovea
some microseconds. Dask sees one task for each worker and job, under the names of the operators."""
import re
import time
import uuid

from .. import _placed_worker
from .._errors import Error, OutOfMemory, UsageError
from .._placed import Job, placed_run, share_of_memory
from .._placed_apart import ApartRun, address_towards, check_memory

FIRST_WORKER = 60  # seconds for the cluster to give one
NO_WORKER = 120  # seconds without any before a run is given up
LOOK = 0.05  # seconds between looks at the futures
LOOK_AROUND = 0.5  # seconds between looks at the cluster
TELL = 1, 30  # seconds between looks at how far the run is, or so many times as long as one takes
OWN_PART = 0.85  # of a dask worker's memory limit: its Python takes the rest
ANSWER = 5  # seconds for an answer that is there to come over
MOST_FAILURES = 3  # of the long task on one worker, one after another


class _ByValue:
    """A function that is sent whole: a worker needs neither this package nor its version to be told that it lacks them."""

    def __init__(self, function):
        import cloudpickle
        cloudpickle.register_pickle_by_value(_placed_worker)
        self.data = cloudpickle.dumps(function)

    def __reduce__(self):
        import cloudpickle
        return cloudpickle.loads, (self.data,)

    def __call__(self):
        raise TypeError("this function is for dask's workers")


def _careful(function):
    """The function, giving ("done", value) or ("problem", sentence): dask would try a failure again."""
    import functools
    return _ByValue(functools.partial(_placed_worker.outcome, function))


# ---------------------------------------------------------------- the cluster

def workers_of(client, resources=None):
    """Facts of the workers that are there now and have these resources, by address."""
    try:
        known = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before 2025 it always told of all
        known = client.scheduler_info()["workers"]
    there = client.nthreads()
    return {address: known.get(address, {"nthreads": there[address], "resources": {}}) for address in there
            if all((known.get(address, {}).get("resources") or {}).get(name, 0) >= amount
                   for name, amount in (resources or {}).items())}


def check_client(client):
    """Whether this is a client that can be used from here."""
    if not all(hasattr(client, name) for name in ("submit", "nthreads", "scheduler_info")):
        raise TypeError(f"a dask.distributed.Client is needed, not {type(client).__name__}")
    if getattr(client, "asynchronous", False):
        raise UsageError("the client is asynchronous; a run needs one that waits: Client(address)")
    if client.status != "running":
        raise UsageError(f"the client has no connection to its scheduler (it is {client.status})")


def wait_for_workers(client, resources):
    """Until there is one at least. A task that may run anywhere waits meanwhile, so that a cluster that grows by need does."""
    if workers_of(client, resources):
        return
    end, wish = time.monotonic() + FIRST_WORKER, client.submit(int, key=f"fovea.wait-{uuid.uuid4().hex}", resources=resources)
    try:
        while not workers_of(client, resources):
            if time.monotonic() > end:
                wanted = f" with the resources {resources}" if resources else ""
                raise Error(f"the scheduler at {client.scheduler.address} has no worker{wanted}, and none came in "
                            f"{FIRST_WORKER} s")
            time.sleep(LOOK)
    finally:
        client.cancel([wish])


def answers(futures):
    """What finished tasks gave, but for those whose worker died with its answer. Raises what workers could not do."""
    import concurrent.futures
    from distributed import TimeoutError
    found = []
    for future in futures:
        try:
            kind, value = future.result(timeout=ANSWER)
        except (TimeoutError, concurrent.futures.CancelledError):
            continue
        if kind == "problem":
            raise (OutOfMemory if "--memory" in value else UsageError)(value)
        found.append(value)
    return found


# ---------------------------------------------------------------- one job

class _Crew:
    """The long tasks of one job: one on each worker, and on each that comes later."""

    def __init__(self, client, run, job, settings):
        """settings["apart"]: an ApartRun that the workers connect to; None: they see the run's folder."""
        self.client, self.run, self.job, self.settings = client, run, job, settings
        self.futures, self.failures, self.done, self.alone = {}, {}, [], time.monotonic()
        words = [part.split(";")[0] if part.split(";")[0].strip() else part for part in job.name.split(" | ")]
        self.name = ".".join(["fovea", *dict.fromkeys(re.findall(r"\w+", " ".join(words)))])

    def fill(self, there):
        """Begins on workers that have nothing to do."""
        places = max(min(self.settings["most"] or len(there), self.job.tasks), 1)
        for address, facts in there.items():
            if address in self.futures or len(self.futures) >= places:
                continue
            work = self.task(address, facts["nthreads"], places)
            self.futures[address] = self.client.submit(
                _careful(work), key=f"{self.name}-{uuid.uuid4().hex}", workers=[address], allow_other_workers=False, pure=False,
                resources=self.settings["resources"])

    def task(self, address, threads, places):
        """What a worker does."""
        if self.settings["apart"]:
            return self.settings["apart"].worker(self.settings["command"], threads)
        memory = self.settings["memory"] or share_of_memory([self.settings["facts"](address)])
        return self.run.worker(self.settings["command"], len(self.futures), places, self.job, threads, memory)

    def look(self, there):
        """Takes note of tasks that are over and of workers that are gone."""
        for address, future in list(self.futures.items()):
            if future.status == "finished":
                self.done += answers([future])
                self.failures.pop(address, None)
            elif future.status == "error":
                self.fail(address, future.exception())
            elif address in there and future.status == "pending":
                continue
            del self.futures[address]
            self.client.cancel([future])

    def fail(self, address, failure):
        """A worker whose task failed gets it again, but not for ever; one that was lost has not failed."""
        if type(failure).__name__ == "KilledWorker":
            return
        self.failures[address] = self.failures.get(address, 0) + 1
        if self.failures[address] >= MOST_FAILURES:
            raise Error(f"the worker at {address} cannot work on the run: {failure}") from None

    def work(self, tell):
        """Until the job is done: then one of them has found nothing left, and the others are about to."""
        looked, there = 0, {}
        try:
            while not self.done or self.futures:
                if time.monotonic() - looked > LOOK_AROUND:
                    tell(self.name)
                    there, looked = workers_of(self.client, self.settings["resources"]), time.monotonic()
                    self.check_alone(there)
                self.look(there)
                if not self.done:
                    self.fill(there)
                time.sleep(LOOK)
        except BaseException:
            self.run.stop()
            self.client.cancel(list(self.futures.values()))
            raise

    def check_alone(self, there):
        """Gives up if there is no worker for long."""
        if self.client.status not in ("running", "connecting"):
            raise Error("the connection to dask's scheduler is lost; what is done is kept, and the same call goes on from there")
        self.alone = time.monotonic() if there else self.alone
        if time.monotonic() - self.alone > NO_WORKER:
            raise Error(f"all workers of {self.client.scheduler.address} are lost, and none came back in {NO_WORKER} s; what is "
                        "done is kept, and the same call goes on from there")


# ---------------------------------------------------------------- a run

def _ask_workers(client, run, command, resources, apart, end):
    """What each worker that is there says of itself, by address; raises if one cannot take part. Those that are lost meanwhile
    are left out."""
    asked = {address: client.submit(_careful(run.check(command, apart)), key=f"fovea.check-{uuid.uuid4().hex}", pure=False,
                                    workers=[address], allow_other_workers=False, resources=resources)
             for address in workers_of(client, resources)}
    found = {}
    while asked:
        there = workers_of(client, resources)
        for address, future in list(asked.items()):
            if future.status == "pending" and address in there and time.monotonic() < end:
                continue
            for fact in answers([future]) if future.status == "finished" else ():
                found[address] = fact
            client.cancel([asked.pop(address)])
        time.sleep(LOOK)
    return found


def _look_at_workers(client, run, command, resources, apart):
    """The same, until at least one has answered."""
    found, end = {}, time.monotonic() + FIRST_WORKER
    while not found:
        wait_for_workers(client, resources)
        found = _ask_workers(client, run, command, resources, apart, end)
        if not found and time.monotonic() > end:
            raise Error(f"no worker of {client.scheduler.address} has answered in {FIRST_WORKER} s")
    return found


def _memory_of(known, facts, wanted):
    """Bytes for the long task of a worker; None: a part of what is free."""
    limits = [known[address].get("memory_limit") for address in facts if address in known]
    return wanted or (int(OWN_PART * min(limits)) if limits and all(limits) else None)


class _Teller:
    """Tells how far a run is, as an event of topic fovea and to the caller's function."""

    def __init__(self, client, run, told):
        self.client, self.run, self.told, self.next = client, run, told, time.monotonic() + TELL[0]

    def __call__(self, name):
        began = time.monotonic()
        if began < self.next:
            return
        state = self.run.look()
        self.client.log_event("fovea", {"run": self.run.name, "working on": name, "fraction": state["fraction"]})
        if self.told:
            self.told(state["fraction"])
        self.next = began + max(TELL[0], TELL[1] * (time.monotonic() - began))


def _settings(client, run, memory, command, resources, most, apart=False):
    """What all jobs of a run have in common."""
    from ..__main__ import command as own_command
    command = command or own_command()
    facts = _look_at_workers(client, run, command, resources, apart)
    hosts = [f["host"] for f in facts.values()]

    def facts_of(address):
        mine = facts.get(address) or next(iter(facts.values()))
        return {**mine, "free": mine["free"] / max(hosts.count(mine["host"]), 1)}
    return {"memory": _memory_of(workers_of(client), facts, memory), "facts": facts_of, "command": command,
            "resources": resources, "most": most, "apart": None}


def place(client, run, memory=None, command=None, told=None, resources=None, most=None):
    """Has workers work on a run until nothing is left but its end."""
    settings = _settings(client, run, memory, command, resources, most)
    tell = _Teller(client, run, told)
    for job in run.jobs():
        _Crew(client, run, job, settings).work(tell)


def place_apart(client, run, memory=None, command=None, told=None, resources=None, most=None):
    """The same for workers that share no folder with this program: the whole run, and what it prints."""
    settings = _settings(client, run, memory, command, resources, most, apart=True)
    there, jobs = workers_of(client, resources), run.jobs()
    chosen = list(there)[:most or len(there)]
    cores = sum(there[address]["nthreads"] for address in chosen)
    each = [(settings["memory"] or share_of_memory([settings["facts"](a)])) // there[a]["nthreads"] for a in chosen]
    check_memory(run, min(each))
    scheduler = re.sub(r"^\w+://|:\d+$", "", client.scheduler.address).strip("[]")
    whole = Job(0, " | ".join(job.name for job in jobs), max(job.tasks for job in jobs))
    with ApartRun(run, cores, min(each), address_towards(scheduler)) as apart:
        try:
            if not apart.over:
                _Crew(client, run, whole, {**settings, "apart": apart}).work(_Teller(client, run, told))
        except Error:  # of a worker that came too late, it may be
            if not apart.over:
                raise
        return apart.finish()


def run(client, pipeline, params=None, *, memory=None, workers=None, command=None, resources=None, apart=False, progress=None,
        **options):
    """Runs a pipeline on the workers of a dask cluster: what fovea.run gives, and the same files.

    pipeline: the path of a `.fov` file, or its text. params: values of its `param` statements. memory: what each worker may use
    ("4G"); if left out, most of its memory limit, or half of what is free there. workers: how many of them at most. command:
    the path of the fovea command on the workers, if it is neither at this program's path nor in their Python. resources: only
    workers that were started with these, as {"GPU": 1}, and so much of them is taken. apart: the workers share no folder with
    this program, which then keeps the store and writes all files. progress: called with the fraction that is done. Other
    options are those of fovea.run: store, fresh, overwrite. The working directory and the store must lie where all workers see
    them, unless they are apart. fovea.dask.read gives what was written as a dask array."""
    from .._compute import _bytes
    check_client(client)
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise UsageError(f"workers = {workers!r}: expected how many workers of the cluster may take part, 1 or more")
    with placed_run(pipeline, params, **options) as placed:
        arguments = client, placed, _bytes(memory), command, progress, resources, workers
        if apart or placed.without_folder:
            return place_apart(*arguments)
        place(*arguments)
        return placed.finish()
