"""Functions of this program in processes of their own. They are forked, so they see its arrays without a copy."""
import collections
import ctypes
import mmap
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import tempfile
import traceback
import warnings

import numpy as np

MOST_DEATHS = 3  # processes that may die on one task
_HEAD = struct.Struct("<cq")  # kind of answer, bytes of it
_TASK = struct.Struct("<q")
_VALUE, _ARRAY, _FAILURE = b"v", b"a", b"f"

Failure = collections.namedtuple("Failure", "why exception")
Failure.__doc__ = "Why a task gave nothing: a text, with the traceback if there is one, and the exception or None."


def default_workers():
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0))


# ---------------------------------------------------------------- in a worker

def _failure_of(exception):
    own, trace = os.path.dirname(__file__), exception.__traceback__
    while trace and os.path.dirname(trace.tb_frame.f_code.co_filename) == own:
        trace = trace.tb_next  # what the program's author has to look at begins in the function
    why = "".join(traceback.format_exception(type(exception), exception, trace)).rstrip() if trace else str(exception)
    try:
        pickle.loads(pickle.dumps(exception))
    except Exception:  # an exception of any kind may not be made for travelling
        exception = None
    return pickle.dumps(Failure(why, exception))


def _answer(link, value):
    """Sends a value. An array goes through memory that both processes see."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.nbytes < 1 << 16:
        data = pickle.dumps(value, 5)
        link.sendall(_HEAD.pack(_VALUE, len(data)) + data)
        return
    fd = os.memfd_create("fovea-array")
    os.ftruncate(fd, value.nbytes)
    with mmap.mmap(fd, value.nbytes) as memory:
        np.frombuffer(memory, value.dtype, value.size).reshape(value.shape)[...] = value
    data = pickle.dumps((value.dtype, value.shape))
    link.sendall(_HEAD.pack(_ARRAY, len(data)) + data)
    socket.send_fds(link, [b"m"], [fd])
    os.close(fd)


def _serve(link, work):
    while True:
        order = link.recv(_TASK.size)
        if not order:
            return
        try:
            value = work(_TASK.unpack(order)[0])
            sys.stdout.flush()
            _answer(link, value)
        except Exception as exception:
            data = _failure_of(exception)
            link.sendall(_HEAD.pack(_FAILURE, len(data)) + data)


# ---------------------------------------------------------------- in this process

class _Worker:
    """A process and the socket to it."""

    def __init__(self, work, others):
        self.link, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy's libraries do not matter to the child
            self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
                self.link.close()
                for other in others:
                    other.link.close()  # so that these see the end when our parent is gone
                _serve(theirs, work)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        self.task = None

    def give(self, task):
        """Has the worker begin a task."""
        self.task = task
        try:
            self.link.sendall(_TASK.pack(task))
        except BrokenPipeError:
            pass  # it is dead, which its answer tells

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.link.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def answer(self):
        """What the worker says of its task: value, failure. EOFError: it has died."""
        try:
            kind, size = _HEAD.unpack(self._read(_HEAD.size))
            found = pickle.loads(self._read(size))
            if kind == _FAILURE:
                return None, found
            if kind == _VALUE:
                return found, None
            _, (fd,), _, _ = socket.recv_fds(self.link, 1, 1)
        except ConnectionResetError:
            raise EOFError from None
        dtype, shape = found
        memory = mmap.mmap(fd, 0)
        os.close(fd)
        return np.frombuffer(memory, dtype).reshape(shape), None

    def end(self):
        """Ends the process, if it lives, and says how it ended."""
        os.kill(self.pid, signal.SIGKILL)  # it is ours until we wait for it, even if it is dead
        self.link.close()
        return os.waitpid(self.pid, 0)[1]


def _how(status):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        why = " (the system does that when memory is short)" if number == signal.SIGKILL else ""
        return f"was ended by signal {number}, {signal.Signals(number).name}{why}"
    return f"ended with exit status {os.WEXITSTATUS(status)}"


def run(work, tasks, workers, report):
    """Runs work(task) for each task, a number, in other processes, and calls report(task, value, failure) here for each.

    failure is None or a Failure. If report gives False no new tasks begin; those that are running are still reported. A task
    whose process dies is tried again in a new one."""
    waiting, deaths, alive = collections.deque(tasks), collections.Counter(), []
    idle, going = [], True
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                while going and waiting and (idle or len(alive) < workers):
                    if not idle:
                        idle.append(_Worker(work, alive))
                        alive.append(idle[-1])
                        selector.register(idle[-1].link, selectors.EVENT_READ, idle[-1])
                    idle.pop().give(waiting.popleft())
                if len(idle) == len(alive):
                    return
                for key, _ in selector.select():
                    worker = key.data
                    task = worker.task
                    try:
                        value, failure = worker.answer()
                        idle.append(worker)
                    except EOFError:
                        selector.unregister(worker.link)
                        alive.remove(worker)
                        how = _how(worker.end())
                        deaths[task] += 1
                        if deaths[task] < MOST_DEATHS and going:
                            waiting.appendleft(task)
                            continue
                        value, failure = None, Failure(f"the process that ran it {how}; {deaths[task]} were tried", None)
                    worker.task = None
                    going = report(task, value, failure) is not False and going
        finally:
            for worker in alive:
                worker.end()


# ---------------------------------------------------------------- arrays that all processes see

class _Mapping:
    """Memory of a file, unmapped when the last array in it is gone. Unlike Python's own it keeps no descriptor open."""

    def __init__(self, fd, offset, dtype, shape):
        size = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self.size, self.address = size, _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if self.address == ctypes.c_void_p(-1).value:
            self.address = None
            raise MemoryError(f"no address space for an array of {size} bytes")
        self.__array_interface__ = {"data": (self.address + offset, False), "shape": tuple(shape), "typestr": dtype.str,
                                    "version": 3}

    def __del__(self):
        if self.address is not None:
            _munmap(self.address, self.size)


_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _munmap = _libc.mmap, _libc.munmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class SharedArray:
    """An array in a file, maybe one of memory alone, that forked processes fill together."""

    def __init__(self, file, offset, dtype, shape):
        self.file, self.offset = file, offset
        self.array = np.asarray(_Mapping(file.fileno(), offset, dtype, shape))

    @classmethod
    def in_memory(cls, dtype, shape):
        """One without a name or a place on disk."""
        return cls._sized(os.fdopen(os.memfd_create("fovea-array"), "r+b"), dtype, shape)

    @classmethod
    def in_folder(cls, folder, dtype, shape):
        """One on disk without a name."""
        return cls._sized(tempfile.TemporaryFile(prefix="fovea-", dir=folder), dtype, shape)

    @classmethod
    def _sized(cls, file, dtype, shape):
        file.truncate(dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
        return cls(file, 0, dtype, shape)

    def put(self, where, value, durable):
        """Fills a part. Writing what lies in one piece spares the system to clear its pages first."""
        target = self.array[where]
        if target.flags.c_contiguous and value.flags.c_contiguous:
            at = self.offset + target.__array_interface__["data"][0] - self.array.__array_interface__["data"][0]
            data = memoryview(value).cast("B")
            while data:
                written = os.pwrite(self.file.fileno(), data, at)
                data, at = data[written:], at + written
        else:
            target[...] = value
        if durable:
            os.fdatasync(self.file.fileno())
