"""Runs whose workers share no folder with the program that starts them.

    with ApartRun(run, workers=4, memory=1 << 30, host="10.0.0.5") as apart:    # of a PlacedRun; the engine `apart` has begun
        ...                                     # have the system call, in as many places as it has, apart.worker(command)()
        values = apart.finish()                 # what the text prints

This program keeps the store and writes all files. Workers connect to it; what their tasks need of earlier stages, and what they
make, goes over these connections. Inputs they read themselves."""
import contextlib
import ctypes as c
import functools
import os
import socket
import threading
import time

from . import _library as l
from . import _placed_worker
from ._compute import printed
from ._errors import Error, OutOfMemory, raise_status
from ._prepared import Result, raise_failures

ENGINE_BEGINS = 60  # seconds, at most


def address_towards(host, port=9):
    """The address of this machine on the way to another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        probe.connect((host, port))
        return probe.getsockname()[0]


def _is_own(host):
    """The address that a name stands for, if it is one of this machine that can be listened at."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        address = socket.gethostbyname(host)
        probe.bind((address, 0))
        return address
    return None


class ApartRun:
    """The engine at work in a thread of this program. workers: how many processes are expected to connect; memory: of each.
    host: the address by which they reach this machine."""

    def __init__(self, run, workers, memory, host):
        self.run, self.host, self.error, self.result, self.status = run, host, l.ErrorStruct(), c.c_void_p(), 0
        self.cancel = c.c_int(0)
        self.options = l.RunOptions(engine=b"apart", workers=workers, memory=workers * int(memory),
                                    overwrite=run.run_options.overwrite, cancel=c.addressof(self.cancel))
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        folder = os.fsencode(self.run.folder)
        self.status = l.lib.fv_work(folder, l.WorkOptions(alone=True), self.options, self.result, self.error)

    def __enter__(self):
        path, own = os.path.join(self.run.folder, "apart"), _is_own(self.host)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if own:
            os.environ["FOVEA_LISTEN"] = own
        self.thread.start()
        end = time.monotonic() + ENGINE_BEGINS
        self.port = self.key = None
        while self.thread.is_alive() and self.port is None:
            with contextlib.suppress(FileNotFoundError), open(path) as file:
                port, self.key = file.read().split()
                self.port = int(port)
            if time.monotonic() > end:
                raise Error("the engine that workers connect to did not begin")
            time.sleep(0.01)
        os.environ.pop("FOVEA_LISTEN", None)
        return self

    def __exit__(self, *_):
        self.cancel.value = 1
        self.thread.join()
        Result(self.result.value)  # frees what nobody asked for

    @property
    def over(self):
        """Whether workers have nothing left to do, or it has failed."""
        return not self.thread.is_alive() or not os.path.exists(os.path.join(self.run.folder, "apart"))

    def worker(self, command, cores=1, environment=None):
        """A function for a worker: takes part until there is nothing left to do."""
        return functools.partial(_placed_worker.work_apart, command, self.host, self.port, self.key, self.run.where, cores,
                                 environment)

    def finish(self):
        """Waits for the end: what the text prints, in order. Raises what failed, as fovea.run does."""
        self.thread.join()
        result = Result(self.result.value)
        self.result = c.c_void_p()
        if self.status:
            raise_failures(result, self.status, self.error)
            raise_status(self.status, self.error)
        return printed(result)


def check_memory(run, memory):
    """Refuses workers that have not enough for one task."""
    least = run.look()["least"]
    if memory < least:
        raise OutOfMemory(f"a worker may use {memory >> 20} MiB, and a task of this run needs more: at least --memory "
                          f"{-(-least >> 20)}M for each")
