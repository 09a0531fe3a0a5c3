"""Running pipelines of lazy values and of texts."""
import contextlib
import ctypes as c
import mmap
import os
import signal
import threading

import numpy as np

from . import _descriptors as d
from . import _library as l
from . import _text
from ._errors import UsageError, raise_status
from ._tables import Table
from ._values import ArrayImage, Image, Scalar, Value


# ---------------------------------------------------------------- pipelines

class _Pipeline:
    """A pipeline of the library, freed at the end of a with block."""

    def __init__(self):
        self.pointer, self.error, self.held = l.lib.fv_pipeline_new(), l.ErrorStruct(), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        l.lib.fv_pipeline_free(self.pointer)

    def check(self, status):
        """Raises what a failed call means."""
        if status:
            raise_status(status, self.error, l.lib.fv_pipeline_messages(self.pointer).decode("utf-8", "replace"))

    def add_values(self, values, more=()):
        """Statements and arrays that make the values; gives their variables. more: makes further lines from the names."""
        lines, names = _text.lines_of(values)
        for value in {id(s): s for v in values for s in v._sources()}.values():
            self.held.append(value._array)
            self.check(l.lib.fv_pipeline_array(self.pointer, names[id(value)].encode(), value._type.image,
                                               value._array.ctypes.data, self.error))
        lines += [line(names) for line in more]
        if not lines:
            lines = ["# nothing but arrays"]
        self.check(l.lib.fv_pipeline_add(self.pointer, b"fovea", ("\n".join(lines) + "\n").encode(), self.error))
        return [names[id(v)] for v in values]

    def keep(self, name):
        """Asks for the value of a variable."""
        self.check(l.lib.fv_pipeline_keep(self.pointer, name.encode(), self.error))


# ---------------------------------------------------------------- options

def _bytes(memory):
    if memory is None:
        return 0
    if isinstance(memory, str):
        found = c.c_int64()
        if not l.lib.fv_size_parse(memory.encode(), found):
            raise UsageError(f'memory = "{memory}" is no size; write 2G, 500M or a number of bytes')
        return found.value
    if int(memory) <= 0:
        raise UsageError(f"memory = {memory}: at least one byte is needed")
    return int(memory)


def _options(memory=None, workers=None, engine=None, device=None, store=None, fresh=False, overwrite=False, progress=None):
    """The struct for a run. progress: called with a fraction from 0 to 1, or True for a bar."""
    if workers is not None and int(workers) < 1:
        raise UsageError(f"workers = {workers}: at least one is needed")
    options = l.RunOptions(memory=_bytes(memory), workers=int(workers or 0), fresh=fresh, overwrite=overwrite)
    if engine not in (None, "threads"):
        from .__main__ import command
        options.command = os.fsencode(command() or "fovea")
    for name, value in (("engine", engine), ("device", device), ("store", store)):
        if value is not None:
            setattr(options, name, os.fsencode(value))
    if progress is not None and progress is not False:
        from ._notebook import shower
        show = shower() if progress is True else progress
        options.progress = l.PROGRESS(lambda _, state: show(state.contents))
    return options


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

    def clear(self):
        """Forgets signals of earlier calls."""
        self.flag.value = 0
        os.lseek(self.fd, 0, os.SEEK_SET)


_interrupt = None


@contextlib.contextmanager
def _stoppable(options):
    global _interrupt
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _interrupt is None:
        _interrupt = _Interrupt()
    _interrupt.clear()
    before = signal.set_wakeup_fd(_interrupt.fd, warn_on_full_buffer=False)
    options.cancel = c.addressof(_interrupt.flag)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)


class _Result:
    """The results of a run, freed when the last array that lies in them is gone."""

    def __init__(self, pointer):
        self.pointer = pointer

    def __del__(self):
        l.lib.fv_result_free(self.pointer)


def _run(pipeline, options):
    while True:
        pointer = c.c_void_p()
        with _stoppable(options):
            status = l.lib.fv_pipeline_run(pipeline.pointer, options, pointer, pipeline.error)
        result = _Result(pointer.value)
        if status != l.CANCELLED:
            break  # a signal that does not end the program: Python's handler has run by now, and the work goes on
    failures = [(l.lib.fv_result_failure(result.pointer, k, pipeline.error).decode("utf-8", "replace"),
                 pipeline.error.message.decode("utf-8", "replace")) for k in range(l.lib.fv_result_failures(result.pointer))]
    if failures and status:
        raise_status(status, pipeline.error, "\n".join(f"{item}: {why}" if item and item not in why else why
                                                       for item, why in failures))
    pipeline.check(status)
    return result


class _Pixels:
    """An array's memory, with the result that owns it."""

    def __init__(self, result, address, image_type):
        shape = tuple(image_type.shape[:image_type.ndim])
        self.result = result
        self.__array_interface__ = {"data": (address, False), "shape": shape, "version": 3,
                                    "typestr": np.dtype(l.DTYPES[image_type.dtype]).str}


def _value_of(result, name, value):
    if isinstance(value, Image):
        image_type = l.ImageType()
        address = l.lib.fv_result_array(result.pointer, name.encode(), image_type)
        return np.asarray(_Pixels(result, address, image_type))
    table = Table(l.lib.fv_result_table(result.pointer, name.encode()).contents)
    return table.cell() if isinstance(value, Scalar) else table


def compute(*values, **options):
    """Computes values together, in one run: numpy arrays, numbers and tables in the order in which they were given.

    Options: memory ("2G"), workers, engine ("threads", "processes"), device, store, fresh, progress."""
    for value in values:
        if not isinstance(value, Value) or value._type is None:
            raise TypeError(f"fovea.compute takes images, numbers and tables of fovea, not {type(value).__name__}")
    run_options = _options(**options)
    with _Pipeline() as pipeline:
        wanted = [v for v in values if not isinstance(v, ArrayImage)]
        found = {}
        if wanted:
            names = pipeline.add_values(wanted)
            for name in set(names):
                pipeline.keep(name)
            result = _run(pipeline, run_options)
            found = {id(v): _value_of(result, n, v) for v, n in zip(wanted, names)}
        return tuple(v._array if isinstance(v, ArrayImage) else found[id(v)] for v in values)


_RUN_OPTIONS = ("memory", "workers", "engine", "device", "store", "fresh", "overwrite", "progress")


def write(value, path, **arguments):
    """Computes a value and writes it to a file; gives the paths of all files made or found current."""
    options = {k: arguments.pop(k) for k in _RUN_OPTIONS if k in arguments}
    own = "".join(f", {k} = {_text.literal(v)}" for k, v in arguments.items())
    with _Pipeline() as pipeline:
        pipeline.add_values([value], [lambda names: f"write({names[id(value)]}, {_text.literal(os.fspath(path))}{own})"])
        result = _run(pipeline, _options(**options))
        return [l.lib.fv_result_output(result.pointer, k).decode() for k in range(l.lib.fv_result_outputs(result.pointer))]


def run(pipeline, params=None, **options):
    """Runs a pipeline: the path of a `.fov` file, or its text if it has more than one line or no such ending.

    Gives what the text prints, in order: numbers and tables. params: values of its `param` statements; a list tries several."""
    text = os.fspath(pipeline)
    with _Pipeline() as p:
        _load(p, text, params)
        result = _run(p, _options(**options))
        found, scalar = [], c.c_bool()
        for k in range(l.lib.fv_result_printed(result.pointer)):
            table = Table(l.lib.fv_result_printed_table(result.pointer, k, scalar).contents)
            found.append(table.cell() if scalar.value else table)
        return found


def _load(p, text, params):
    if text.endswith(".fov") and "\n" not in text:
        p.check(l.lib.fv_pipeline_add_file(p.pointer, os.fsencode(text), p.error))
    else:
        p.check(l.lib.fv_pipeline_add(p.pointer, b"fovea", text.encode(), p.error))
    for name, value in (params or {}).items():
        several = isinstance(value, (list, tuple)) and not isinstance(value, str)
        words = [_word(v) for v in (value if several else [value])]
        p.check(l.lib.fv_pipeline_set(p.pointer, f"{name}={','.join(words)}".encode(), p.error))


def _word(value):
    return value if isinstance(value, str) else _text.literal(value)


def _asked(value, params, function):
    """The text that a question to the library gives about a value or a pipeline's text."""
    with _Pipeline() as p:
        if isinstance(value, Value):
            for name in p.add_values([value]):
                p.keep(name)
        else:
            _load(p, os.fspath(value), params)
        pointer = c.c_void_p()
        p.check(function(p, pointer))
        return l.taken(pointer.value)


def plan(value, params=None, json=False, **options):
    """What a run of a value or of a pipeline's text would do, without reading a pixel."""
    run_options = _options(**options)
    return _asked(value, params, lambda p, out: l.lib.fv_pipeline_plan(p.pointer, run_options, int(json), out, p.error))


def graph(value, params=None, chunks=False):
    """The graph of a value or of a pipeline's text in the language of Graphviz."""
    return _asked(value, params, lambda p, out: l.lib.fv_pipeline_graph(p.pointer, chunks, out, p.error))


def info(path, inside=None):
    """What a file holds, from its header: a dictionary."""
    import json
    pointer, error = c.c_void_p(), l.ErrorStruct()
    status = l.lib.fv_describe_file(os.fsencode(path), os.fsencode(inside) if inside else None, 1, pointer, error)
    found = l.taken(pointer.value)
    if status:
        raise_status(status, error)
    return json.loads(found)
