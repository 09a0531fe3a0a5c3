"""Pipelines taken apart into tasks that another system runs: what include/fovea/tasks.h declares."""
import collections
import ctypes as c
import dataclasses
import itertools
import threading

import numpy as np

from . import _library as l
from ._errors import raise_status
from ._prepared import Pipeline, Result
from ._tables import Table

END, VALUES = -1, -1  # instead of a task, instead of a stage
ARRAY, CHUNK, PARTIAL, RESULTS = range(4)
MOST_KEPT = 16  # kinds of pipelines that a process keeps open


class Region(c.Structure):
    _fields_ = [("ndim", c.c_int), ("start", c.c_int64 * l.MAX_DIMS), ("size", c.c_int64 * l.MAX_DIMS)]

    def box(self):
        """Start and stop along each axis."""
        return [(self.start[k], self.start[k] + self.size[k]) for k in range(self.ndim)]

    @classmethod
    def of(cls, box):
        """The region of such a box."""
        found = cls(ndim=len(box))
        for k, (start, stop) in enumerate(box):
            found.start[k], found.size[k] = start, stop - start
        return found


class Need(c.Structure):
    _fields_ = [("kind", c.c_int), ("array", c.c_int), ("stage", c.c_int), ("target", c.c_int), ("task", c.c_int64),
                ("region", Region), ("chunk", Region)]


class StageFacts(c.Structure):
    _fields_ = [("tasks", c.c_int64), ("targets", c.c_int), ("ends", c.c_bool), ("memory", c.c_int64), ("brief", c.c_char * 96)]


class ImageFacts(c.Structure):
    _fields_ = [("stage", c.c_int), ("target", c.c_int), ("type", l.ImageType), ("chunk", c.c_int64 * l.MAX_DIMS)]


class Made(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_int64), ("voxels", c.c_bool), ("dtype", c.c_int), ("chunk", Region)]


_P, _E, _NEED = c.c_void_p, c.POINTER(l.ErrorStruct), c.POINTER(Need)
for _name, _result, *_arguments in (
        ("fv_tasks_open", c.c_int, _P, c.POINTER(_P), _E),
        ("fv_tasks_close", None, _P),
        ("fv_tasks_stages", c.c_int, _P),
        ("fv_tasks_stage_facts", StageFacts, _P, c.c_int),
        ("fv_tasks_find", c.c_bool, _P, c.c_char_p, c.POINTER(ImageFacts)),
        ("fv_tasks_needs", c.c_int, _P, c.c_int, c.c_int64, c.POINTER(_NEED), c.POINTER(c.c_int64), _E),
        ("fv_tasks_give", c.c_int, _P, _NEED, _P, c.c_int64, _E),
        ("fv_tasks_run", c.c_int, _P, c.c_int, c.c_int64, _E),
        ("fv_tasks_made", c.c_int, _P, c.c_int, c.c_int64, c.c_int, c.POINTER(Made), _E),
        ("fv_tasks_values", c.c_int, _P, c.POINTER(_P), _E),
        ("fv_tasks_forget", None, _P),
):
    _function = getattr(l.lib, _name)
    _function.restype, _function.argtypes = _result, _arguments


@dataclasses.dataclass(frozen=True)
class Spec:
    """A pipeline that any process can open. No tuple, because dask looks for tasks in these."""
    version: str
    text: str
    arrays: tuple  # of each its name, the bytes of its ImageType, and the sizes of its chunks along each axis
    wanted: tuple  # names of the values
    chunk: tuple  # of the lattice, or None
    identity: tuple  # tells it from those of the same text on other voxels


class Tasks:
    """A pipeline taken apart, open in this process. One thread at a time."""

    pointer = None

    def __init__(self, spec):
        version = l.lib.fv_version().decode()
        if spec.version != version:
            raise RuntimeError(f"the graph was made by Fovea {spec.version}, and this process has Fovea {version}; "
                               "install the same version everywhere")
        self.spec, self.pointer, self.pipeline, self.error = spec, c.c_void_p(), Pipeline(), l.ErrorStruct()
        p = self.pipeline
        for name, image_type, _ in spec.arrays:
            p.check(l.lib.fv_pipeline_array(p.pointer, name.encode(), l.ImageType.from_buffer_copy(image_type), None, p.error))
        p.add(spec.text)
        for name in spec.wanted:
            p.keep(name)
        if spec.chunk:
            p.check(l.lib.fv_pipeline_chunk(p.pointer, (c.c_int64 * len(spec.chunk))(*spec.chunk), len(spec.chunk), p.error))
        p.check(l.lib.fv_tasks_open(p.pointer, self.pointer, p.error))
        self.stages = [l.lib.fv_tasks_stage_facts(self.pointer, k) for k in range(l.lib.fv_tasks_stages(self.pointer))]

    def __del__(self):
        if self.pointer:
            l.lib.fv_tasks_close(self.pointer)
            self.pointer = None

    def check(self, status):
        """Raises what a failed call means."""
        if status:
            raise_status(status, self.error)

    def image(self, name):
        """Where the chunks of a wanted image are made; None: it is no image."""
        found = ImageFacts()
        return found if l.lib.fv_tasks_find(self.pointer, name.encode(), found) else None

    def needs(self, stage, task):
        """What a task needs, as Needs in order; an array's voxels are split at the borders of its chunks."""
        pointer, count = _NEED(), c.c_int64()
        self.check(l.lib.fv_tasks_needs(self.pointer, stage, task, pointer, count, self.error))
        found = [Need.from_buffer_copy(pointer[k]) for k in range(count.value)]
        l.free(c.cast(pointer, c.c_void_p))
        for need in found:
            if need.kind != ARRAY:
                yield need, None
                continue
            for index, part in _split(need.region.box(), self.spec.arrays[need.array][2]):
                need.region = Region.of(part)
                yield need, index

    def _as_said(self, value, array):
        """A piece of an array with the elements that the array was said to have: others differ in their bytes."""
        name, image_type, _ = self.spec.arrays[array]
        said = np.dtype(l.DTYPES[l.ImageType.from_buffer_copy(image_type).dtype])
        if not np.can_cast(value.dtype, said, "same_kind"):
            raise TypeError(f"a chunk of {name} holds {value.dtype}, and the dask array said {said}: the function that makes it "
                            f"gives something else than its dtype= says")
        return np.ascontiguousarray(value, said)

    def give(self, stage, task, values):
        """Hands over what a task needs, in the order of needs; gives what must stay in memory until it has run."""
        held, values = [], iter(values)
        for need, _ in self.needs(stage, task):
            value = np.ascontiguousarray(next(values))
            if need.kind == ARRAY:
                value = self._as_said(value, need.array)
            held.append(value)
            self.check(l.lib.fv_tasks_give(self.pointer, need, value.ctypes.data, value.nbytes, self.error))
        return held

    def run(self, stage, task, values):
        """Runs a task on what it needs: a list with one array for each thing that it makes."""
        held = self.give(stage, task, values)
        try:
            self.check(l.lib.fv_tasks_run(self.pointer, stage, task, self.error))
            return [self.made(stage, task, k) for k in range(1 if task == END else self.stages[stage].targets)]
        finally:
            l.lib.fv_tasks_forget(self.pointer)
            del held

    def made(self, stage, task, target):
        """A copy of one thing that a task has made: a chunk of an image, or bytes."""
        made = Made()
        self.check(l.lib.fv_tasks_made(self.pointer, stage, task, target, made, self.error))
        found = np.empty(made.size, np.uint8)
        if made.size:
            c.memmove(found.ctypes.data, made.data, made.size)
        return found.view(l.DTYPES[made.dtype]).reshape(made.chunk.size[:made.chunk.ndim]) if made.voxels else found

    def values(self, values):
        """Numbers and tables that are wanted, by name."""
        held, pointer = self.give(VALUES, 0, values), c.c_void_p()
        status = l.lib.fv_tasks_values(self.pointer, pointer, self.error)
        result = Result(pointer.value)
        self.check(status)
        del held
        found = {}
        for name in self.spec.wanted:
            table = l.lib.fv_result_table(result.pointer, name.encode())
            if table:
                found[name] = Table(table.contents)
        return found


def _split(box, chunks):
    """A box cut at the borders of chunks: (index of the chunk, part)."""
    axes = []
    for (start, stop), sizes in zip(box, chunks):
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [start, stop - 1], "right")
        axes.append([(k, (max(start, int(ends[k]) - sizes[k]), min(stop, int(ends[k])))) for k in range(first, last + 1)])
    for piece in itertools.product(*axes):
        yield tuple(k for k, _ in piece), [part for _, part in piece]


# ---------------------------------------------------------------- open pipelines of this process

_idle, _lock = collections.OrderedDict(), threading.Lock()  # lists of Tasks by their spec, those used last at the end


class opened:
    """Lends a process's own Tasks of a spec for a with block: each thread its own, opened once and used again."""

    def __init__(self, spec):
        self.spec, self.tasks = spec, None

    def __enter__(self):
        with _lock:
            idle = _idle.get(self.spec)
            self.tasks = idle.pop() if idle else None
        self.tasks = self.tasks or Tasks(self.spec)
        return self.tasks

    def __exit__(self, kind, *_):
        if kind is not None:
            return  # who knows what it still holds
        with _lock:
            _idle.setdefault(self.spec, []).append(self.tasks)
            _idle.move_to_end(self.spec)
            if len(_idle) > MOST_KEPT:
                _idle.popitem(last=False)
