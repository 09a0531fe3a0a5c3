"""Runs whose workers another system places: Spark, Dask or any other that can start a long task.

    with placed_run("p.fov", {"radius": 12}) as run:        # checked and frozen in a folder; nothing is computed yet
        for job in run.jobs():                              # stages, one after another
            ...                                             # have the system call, in as many places as it has
                                                            #     run.worker(place, places, job)()
        values = run.finish()                               # does what is missing, gathers tables: as on threads

The system places and restarts workers; which of them does what is settled among them, in the run's folder. Two that do the same
do no harm, and one that dies loses nothing but what it had in hand."""
import contextlib
import ctypes as c
import functools
import json
import os
import uuid

from . import _library as l
from . import _placed_worker
from ._compute import _load, _options, printed
from ._errors import raise_status
from ._prepared import Pipeline, Result, raise_failures

MOST_JOBS = 16  # of a run: each job costs the system a moment
LEAST_WORK = 5  # seconds of one core that a job should be worth
FREE_PART = 0.5  # of a machine's free memory, if nobody says how much may be used
HIDDEN_FOLDER = ("the working directory and the store must lie on a file system that all workers share. Where there is none, run "
                 "it apart (--apart, apart=True): inputs then come from s3://, hdfs:// or http:// addresses, and the rest by the "
                 "network")
HIDDEN_INPUT = "what a run reads must be behind an s3://, hdfs:// or http:// address, or lie where all workers see it"


class Job:
    """Stages that are worked on together: their place among all, from 1, and what they do."""

    def __init__(self, last, name, tasks):
        self.last, self.name, self.tasks = last, name, tasks

    def options(self):
        """For `fovea work`."""
        return ["--stage", str(self.last), "--end"] if self.last else []


class PlacedRun:
    """A frozen run, seen from the program that has workers placed on it."""

    def __init__(self, folder, where=None, options=None, name=None):
        self.folder, self.where = os.path.abspath(folder), where or os.getcwd()
        self.run_options, self.name = options or l.RunOptions(), name or os.path.basename(folder)
        self.token = uuid.uuid4().hex[:12]
        self.error = l.ErrorStruct()

    def _check(self, status):
        if status:
            raise_status(status, self.error)

    def begin(self):
        """Forgets what earlier workers have died on. Before the first worker."""
        self._check(l.lib.fv_run_renew(os.fsencode(self.folder), self.error))

    def look(self):
        """How far the workers are, and what the run consists of: a dictionary."""
        pointer = c.c_void_p()
        status = l.lib.fv_run_describe(os.fsencode(self.folder), pointer, self.error)
        text = l.taken(pointer.value)
        self._check(status)
        return json.loads(text)

    def jobs(self, most=MOST_JOBS, least=LEAST_WORK):
        """What the workers have to do, one Job after another: stages that should take seconds each, or several that take less.
        Of a collection there is one."""
        found = self.look()
        stages = found["stages"]
        if found["collection"]:
            return [Job(0, stages[0]["name"], stages[0]["tasks"])]
        enough, jobs, first, work = max(least, sum(s["work_seconds"] for s in stages) / most), [], 0, 0
        for k, stage in enumerate(stages):
            work += stage["work_seconds"]
            if work < enough and k + 1 < len(stages):
                continue
            group = stages[first:k + 1]
            jobs.append(Job(k + 1, " | ".join(s["name"] for s in group), max(s["tasks"] for s in group)))
            first, work = k + 1, 0
        return jobs

    @property
    def without_folder(self):
        """Whether what is done is kept behind an address (--store s3://...), and so no folder is shared."""
        return os.path.exists(os.path.join(self.folder, "..", "..", "address"))

    def inputs(self):
        """One of the files of each pattern that the run reads, but for those behind addresses."""
        with open(os.path.join(self.folder, "manifest.json")) as file:
            items = json.load(file)["items"]
        first = [found["files"][0][0] for found in items if found["files"]]
        return [os.path.join(self.where, path) for path in first if "://" not in path]

    def check(self, command=None, apart=False):
        """A function for a worker: whether it can take part. It gives facts about its machine, or raises a Problem."""
        if apart:
            return functools.partial(_placed_worker.check, command, version(), self.inputs(), HIDDEN_INPUT)
        return functools.partial(_placed_worker.check, command, version(), [self.folder], HIDDEN_FOLDER)

    def worker(self, command, place, places, job=None, workers=1, memory=None, environment=None):
        """A function for a worker: takes part until the job is done, and gives a summary. memory: bytes that it may use."""
        options = [*(job.options() if job else []), "--workers", str(workers)]
        if memory:
            options += ["--memory", str(int(memory))]
        if self.run_options.overwrite:
            options += ["--overwrite"]
        return functools.partial(_placed_worker.work, command, self.folder, self.where, self.token, place, places, options,
                                 environment)

    def stop(self):
        """Asks all workers of this object to commit what they have and end."""
        with open(_placed_worker.stop_path(self.folder, self.token), "w"):
            pass

    def finish(self):
        """Does whatever is missing and gathers tables: what the text prints, in order. Raises what failed, as fovea.run does."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_placed_worker.stop_path(self.folder, self.token))
        pointer, work = c.c_void_p(), l.WorkOptions(finish=True, level=_placed_worker.MOST_TRIES - 1)
        status = l.lib.fv_work(os.fsencode(self.folder), work, self.run_options, pointer, self.error)
        result = Result(pointer.value)
        if status:
            raise_failures(result, status, self.error)
            self._check(status)
        return printed(result)


def version():
    """That of the library, which all workers must have."""
    return l.lib.fv_version().decode()


@contextlib.contextmanager
def placed_run(pipeline, params=None, chunk=None, **options):
    """Checks a pipeline as fovea.run does, and freezes it for workers elsewhere. chunk: its sizes; chosen if left out."""
    text = os.fspath(pipeline)
    run_options, folder = _options(**options), c.c_void_p()
    with Pipeline() as p:
        _load(p, text, params)
        if chunk:
            p.check(l.lib.fv_pipeline_chunk(p.pointer, (c.c_int64 * len(chunk))(*chunk), len(chunk), p.error))
        status = l.lib.fv_pipeline_freeze(p.pointer, run_options, folder, p.error)
        name = l.taken(folder.value)
        p.check(status)
        run_options.fresh = False
        run = PlacedRun(name, options=run_options, name=os.path.basename(text) if text.endswith(".fov") else "pipeline")
        run.begin()
        yield run


def share_of_memory(facts, wanted=None):
    """Bytes for each worker, by what `check` said of them: as wanted, or so that the workers of a machine divide what is free."""
    if wanted:
        return wanted
    hosts = {}
    for fact in facts:
        hosts.setdefault(fact["host"], []).append(fact["free"])
    return int(min(FREE_PART * min(free) / len(free) for free in hosts.values()))
