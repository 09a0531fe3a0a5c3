"""Pipelines that are kept from one computation to the next, so that a small one costs little more than its work."""
import contextlib
import ctypes as c
import mmap
import os
import signal
import threading
import time

import numpy as np

from . import _library as l
from . import _remember
from ._errors import raise_status
from ._tables import Table

MOST_KEPT = 32  # pipelines of lazy values
MOMENT = 0.01  # seconds that nobody minds who wants to stop a program
LARGEST_KEPT = 1 << 20  # bytes of a pipeline's arrays: beyond that nobody notices what making it costs, and its buffers are large


# ---------------------------------------------------------------- pipelines

class Pipeline:
    """A pipeline of the library, freed with this object or at the end of a with block."""
    __slots__ = ("pointer", "error", "held", "types", "forms", "sources", "room", "brief")

    def __init__(self):
        self.pointer, self.error, self.held = l.lib.fv_pipeline_new(), l.ErrorStruct(), []
        self.types, self.forms, self.sources = [], {}, []
        self.room, self.brief = None, False  # for the addresses of arrays and images; it took less than a moment the last time

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.__del__()

    def __del__(self):
        l.lib.fv_pipeline_free(self.pointer)
        self.pointer = None

    def check(self, status):
        """Raises what a failed call means."""
        if status:
            raise_status(status, self.error, l.lib.fv_pipeline_messages(self.pointer).decode("utf-8", "replace"))

    def add(self, text):
        """Adds statements."""
        self.check(l.lib.fv_pipeline_add(self.pointer, b"fovea", text.encode(), self.error))

    def bind(self, name, image_type, array):
        """Makes an array a variable, in the place of an earlier one."""
        address = array.__array_interface__["data"][0]
        status = l.lib.fv_pipeline_array(self.pointer, name, image_type, address, self.error)
        if status:
            self.check(status)

    def provide(self, name, value):
        """Makes an image that is read piece by piece a variable."""
        source = value._source
        read = source.callback(value.dtype, value.ndim)
        self.held.append(read)
        self.sources.append(source)
        source.failure = None
        identity = source.identity.encode() if source.identity else None
        self.check(l.lib.fv_pipeline_source(self.pointer, name, value._type.image, (c.c_int64 * value.ndim)(*source.chunk),
                                            identity, read, None, self.error))

    def apply(self, arrays, images):
        """Computes images, in C order, from arrays of the pipeline's types."""
        given, wanted = self.room
        for k, array in enumerate(arrays):
            given[k] = array.__array_interface__["data"][0]
        for k, image in enumerate(images):
            wanted[k] = image.__array_interface__["data"][0]
        if self.brief:
            status = l.lib.fv_pipeline_apply(self.pointer, given, wanted, None, self.error)
        else:
            began = time.perf_counter()
            status = l.CANCELLED
            while status == l.CANCELLED:  # by a signal that does not end the program: Python's handler has run by now
                status = _stoppable(lambda cancel: l.lib.fv_pipeline_apply(self.pointer, given, wanted, cancel, self.error))
            self.brief = time.perf_counter() - began < MOMENT
        if status:
            self.check(status)

    def keep(self, name):
        """Asks for the value of a variable."""
        self.check(l.lib.fv_pipeline_keep(self.pointer, name.encode(), self.error))


# ---------------------------------------------------------------- running

class _Interrupt:
    """Lets Ctrl-C end a run: Python's handler writes the signal's number into memory that the run looks at.

    A handler in Python itself would wait for the end of the call. Only the main thread gets signals."""

    def __init__(self):
        self.fd = os.memfd_create("fovea-interrupt")
        os.ftruncate(self.fd, mmap.PAGESIZE)
        os.set_blocking(self.fd, False)
        self.memory = mmap.mmap(self.fd, mmap.PAGESIZE)
        self.flag = c.c_int.from_buffer(self.memory)
        self.address = c.addressof(self.flag)

    def clear(self):
        """Forgets signals of earlier calls."""
        if self.flag.value:
            self.flag.value = 0
        os.lseek(self.fd, 0, os.SEEK_SET)


_interrupt = None


def _stoppable(work):
    """What a function gives that is called with the address of a flag, other than 0 once a signal has come, or None."""
    global _interrupt
    if threading.get_ident() != threading.main_thread().ident:
        return work(None)
    if _interrupt is None:
        _interrupt = _Interrupt()
    _interrupt.clear()
    before = signal.set_wakeup_fd(_interrupt.fd, warn_on_full_buffer=False)
    try:
        return work(_interrupt.address)
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)


class Result:
    """The results of a run, freed when the last array that lies in them is gone."""
    __slots__ = ("pointer",)

    def __init__(self, pointer):
        self.pointer = pointer

    def __del__(self):
        l.lib.fv_result_free(self.pointer)


def run(pipeline, options):
    """Runs a pipeline: its result, or the exception that tells what failed."""
    while True:
        pointer = c.c_void_p()

        def once(cancel):
            options.cancel = cancel
            return l.lib.fv_pipeline_run(pipeline.pointer, options, pointer, pipeline.error)
        status = _stoppable(once)
        result = Result(pointer.value)
        if status != l.CANCELLED:
            break  # a signal that does not end the program: Python's handler has run by now, and the work goes on
    if status:
        for source in pipeline.sources:
            source.raise_failure()
        raise_failures(result, status, pipeline.error)
        pipeline.check(status)
    return result


def raise_failures(result, status, error):
    """Raises what became of the items of a run that failed, if any did."""
    failures = [(l.lib.fv_result_failure(result.pointer, k, error).decode("utf-8", "replace"),
                 error.message.decode("utf-8", "replace")) for k in range(l.lib.fv_result_failures(result.pointer))]
    if failures:
        raise_status(status, error, "\n".join(f"{item}: {why}" if item and item not in why else why for item, why in failures))


class _Pixels:
    """An array's memory, with the result that owns it."""
    __slots__ = ("result", "__array_interface__")

    def __init__(self, result, address, form):
        self.result = result
        self.__array_interface__ = {"data": (address, False), "shape": form[1], "typestr": form[2], "version": 3}


def value_of(pipeline, result, name):
    """What a variable has become: an array, a number or a table."""
    form = pipeline.forms.get(name)
    if form is None:
        t = l.ValueType()
        pipeline.check(l.lib.fv_pipeline_type(pipeline.pointer, name, t, pipeline.error))
        form = pipeline.forms[name] = (t.kind, tuple(t.image.shape[:t.image.ndim]), np.dtype(l.DTYPES[t.dtype]).str, t.items)
    if form[0] == l.IMAGE:
        return np.asarray(_Pixels(result, l.lib.fv_result_array(result.pointer, name, None), form))
    table = Table(l.lib.fv_result_table(result.pointer, name).contents)
    return table.cell() if form[0] == l.SCALAR and not form[3] else table


# ---------------------------------------------------------------- keeping pipelines

_idle, _lock = {}, threading.Lock()  # by what they compute, those used last at the end


def _after_fork():
    global _lock, _interrupt
    _lock, _interrupt = threading.Lock(), None  # another thread may have held the one, and the parent looks at the other


os.register_at_fork(after_in_child=_after_fork)


def make(text, types, outputs):
    """A new pipeline of a text, with arrays (name, type) whose pixels come later, and variables that are wanted back."""
    pipeline = Pipeline()
    pipeline.types = types
    for name, image_type in types:
        pipeline.check(l.lib.fv_pipeline_array(pipeline.pointer, name, image_type, None, pipeline.error))
    pipeline.add(text)
    for name in outputs:
        pipeline.keep(name)
    return pipeline


def made(text, types, outputs, arrays):
    """A pipeline that is not kept, bound to the arrays."""
    pipeline = make(text, types, outputs)
    pipeline.held = arrays
    for (name, image_type), array in zip(types, arrays):
        pipeline.bind(name, image_type, array)
    return pipeline


@contextlib.contextmanager
def kept(key, arrays, maker):
    """The idle pipeline of this key, or a new one, bound to the arrays. It is kept for the next time if nothing goes wrong."""
    with _lock:
        pipeline = _idle.pop(key, None)
    if pipeline is None:
        pipeline = maker()
    for (name, image_type), array in zip(pipeline.types, arrays):
        pipeline.bind(name, image_type, array)
    yield pipeline
    if sum(a.nbytes for a in arrays) > LARGEST_KEPT:
        return
    with _lock:
        _idle[key] = pipeline
        if len(_idle) > MOST_KEPT:
            del _idle[next(iter(_idle))]


def _type_of(array, axes):
    if array.dtype.name not in l.DTYPES:
        raise TypeError(f"an image has elements of {', '.join(l.DTYPES)}; this array has {array.dtype}")
    image_type = l.ImageType()
    l.lib.fv_image_type_init(image_type, l.DTYPES.index(array.dtype.name), array.ndim, (c.c_int64 * array.ndim)(*array.shape))
    for k, name in enumerate(axes or ()):
        image_type.axis[k].value = name.encode()
    return image_type


# ---------------------------------------------------------------- texts that are computed again and again

class Ready:
    """A text for arrays of certain types, and pipelines of it that nobody uses at the moment."""
    __slots__ = ("text", "types", "outputs", "forms", "idle", "nbytes", "kept")

    def __init__(self, text, types, outputs, nbytes):
        self.text, self.types, self.outputs, self.nbytes = text, types, outputs, nbytes
        self.idle, self.forms = [], None  # forms: shape and type of each output; (): some are no images
        self.kept = nbytes <= LARGEST_KEPT  # pipelines are, until others took its place

    def _make(self):
        pipeline = make(self.text, self.types, [name.decode() for name in self.outputs])
        if self.forms is None:
            known = [l.ValueType() for _ in self.outputs]
            for name, t in zip(self.outputs, known):
                pipeline.check(l.lib.fv_pipeline_type(pipeline.pointer, name, t, pipeline.error))
            self.forms = tuple((tuple(t.image.shape[:t.image.ndim]), np.dtype(l.DTYPES[t.dtype])) for t in known) \
                if all(t.kind == l.IMAGE for t in known) else ()
        pipeline.room = (c.c_void_p * len(self.types))(), (c.c_void_p * max(len(self.outputs), 1))()
        return pipeline

    def run(self, arrays):
        """What the outputs are for these arrays: a list of arrays, numbers and tables."""
        try:
            pipeline = self.idle.pop()
        except IndexError:
            pipeline = self._make()
        if self.forms:
            found = [np.empty(shape, dtype) for shape, dtype in self.forms]
            pipeline.apply(arrays, found)
        else:
            for (name, image_type), array in zip(self.types, arrays):
                pipeline.bind(name, image_type, array)
            result = run(pipeline, l.RunOptions(transient=True))
            found = [value_of(pipeline, result, name) for name in self.outputs]
        if self.kept and len(self.idle) < MOST_IDLE:
            self.idle.append(pipeline)
        return found


MOST_IDLE = 8  # pipelines of one text: as many threads compute it at once without making one
_ready = {}  # by what they compute, those used last at the end


def ready(text, arrays, outputs, axes=None):
    """What is ready to compute a text for arrays like these, which lie in C order."""
    key = (text, *outputs, axes, *[(name, a.shape, a.dtype) for name, a in arrays.items()])
    with _lock:
        found = _ready.pop(key, None)
        if found is not None:
            _ready[key] = found
            return found
    types = [(name.encode(), _type_of(a, axes)) for name, a in arrays.items()]
    found = Ready(text, types, [name.encode() for name in outputs], sum(a.nbytes for a in arrays.values()))
    if found.kept:
        with _lock:
            _ready[key] = found
            while len(_ready) > MOST_READY or sum(r.nbytes for r in _ready.values()) > MOST_READY_BYTES:
                oldest = _ready.pop(next(iter(_ready)))
                oldest.kept = False
                oldest.idle.clear()
    return found


MOST_READY, MOST_READY_BYTES = 256, 32 << 20  # texts, and bytes of their arrays: pipelines hold a few times as many


def call(text, arrays, outputs, axes=None):
    """What the variables `outputs` of a text are, computed at once: a list of arrays, numbers and tables.

    arrays: numpy arrays by the variable that the text has for them. axes: names for the axes of all of them, or None. The text
    is parsed once for the same types: use it for functions that are called again and again."""
    given = {name: a if a.flags.c_contiguous and a.dtype.isnative else np.ascontiguousarray(a, a.dtype.newbyteorder("="))
             for name, a in arrays.items()}
    prepared = ready(text, given, outputs, axes)
    found = prepared.run(list(given.values()))
    _remember.told(prepared, given, found)
    return found
