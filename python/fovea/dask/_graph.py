"""Fovea's tasks as tasks of a dask graph.

The plan of a pipeline is a graph of tasks already: this file gives it dask's form. A task takes the parts of chunks that its
operators declare to need, cut out where they lie, so that only halos travel. The end of a stage takes the partials of all its
tasks, which are small. No voxel passes through the process that makes the graph."""
import dataclasses
import os
import re

import numpy as np
from dask.array import Array, from_array
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from .. import _descriptors as d
from .. import _library as l
from .. import _tasks, _text
from .._compute import _sources_of
from .._errors import UsageError
from .._values import GivenTable, Image, Scalar, SourceImage, Value, _all_before


# ---------------------------------------------------------------- what dask's workers call

def run_task(spec, stage, task, values):
    """One task, or the end of a stage: an array, or a list of them if its stage has several targets."""
    with _tasks.opened(spec) as tasks:
        made = tasks.run(stage, task, values)
    return made if len(made) > 1 else made[0]


def pick(made, name):
    """One of the things that a task has made."""
    return made[name]


def cut(chunk, starts, stops):
    """A part of a chunk; nothing of a chunk that was not made, because nobody needs it."""
    return np.ascontiguousarray(chunk[tuple(slice(a, b) for a, b in zip(starts, stops))]) if chunk.size else chunk


def find_values(spec, values):
    """Numbers and tables, once all passes have ended."""
    with _tasks.opened(spec) as tasks:
        return tasks.values(values)


def pick_number(found, name, dtype):
    """A number as an array without axes."""
    return np.asarray(found[name].cell(), dtype)


# ---------------------------------------------------------------- the graph

class _Graph:
    """Builds dask's dictionary of one spec."""

    def __init__(self, spec, sources, token):
        self.spec, self.sources, self.token, self.tasks, self.graph = spec, sources, token, _tasks.Tasks(spec), {}
        self.names = [f"fovea.{stage.brief.decode() or 'array'}-{tokenize(token, k)}"
                      for k, stage in enumerate(self.tasks.stages)]
        self.part_names = [f"fovea.part-{tokenize(token, k)}" for k in range(len(self.names))]
        for stage, facts in enumerate(self.tasks.stages):
            for task in range(facts.tasks):
                self.add(stage, task, (self.names[stage], task))
                for target in range(facts.targets if facts.targets > 1 else 0):
                    self.graph[self.part_names[stage], task, target] = (pick, (self.names[stage], task), target)
            if facts.ends:
                self.add(stage, _tasks.END, self.end(stage))

    def add(self, stage, task, key):
        """A task under its key."""
        needs = [self.needed(need, index) for need, index in self.tasks.needs(stage, task)]
        self.graph[key] = (run_task, self.spec, stage, task, needs)

    def end(self, stage):
        """The key of a stage's results."""
        return f"fovea.end-{tokenize(self.token, stage)}"

    def made(self, stage, task, target):
        """The key of what a task makes."""
        several = self.tasks.stages[stage].targets > 1
        return (self.part_names[stage], task, target) if several else (self.names[stage], task)

    def needed(self, need, index):
        """The key of one need."""
        if need.kind == _tasks.RESULTS:
            return self.end(need.stage)
        if need.kind == _tasks.PARTIAL:
            return self.made(need.stage, need.task, need.target)
        if need.kind == _tasks.CHUNK:
            return self.part(self.made(need.stage, need.task, need.target), need.region.box(), need.chunk.box())
        chunks = self.spec.arrays[need.array][2]
        begins = [sum(sizes[:k]) for sizes, k in zip(chunks, index)]
        chunk = [(begin, begin + sizes[k]) for begin, sizes, k in zip(begins, chunks, index)]
        return self.part((self.sources[need.array].name, *index), need.region.box(), chunk)

    def part(self, whole, box, chunk):
        """The key of a part of a chunk: a task of its own cuts it out, where the chunk lies."""
        if box == chunk:
            return whole
        starts, stops = zip(*[(a - f, b - f) for (a, b), (f, _) in zip(box, chunk)])
        key = (f"fovea.halo-{tokenize(whole[0])}", *whole[1:], *starts, *stops)
        self.graph[key] = (cut, whole, list(starts), list(stops))
        return key

    def add_values(self):
        """A task that finds all numbers and tables; gives its key."""
        key = f"fovea.values-{self.token}"
        needs = [self.needed(need, index) for need, index in self.tasks.needs(_tasks.VALUES, 0)]
        self.graph[key] = (find_values, self.spec, needs)
        return key

    def own(self, name, value):
        """The name of a value's collection."""
        return f"fovea.{value._hint}-{tokenize(self.token, name)}"

    def collection(self, name, value, values_key):
        """The layer and the maker of the dask collection that a wanted value becomes."""
        own = self.own(name, value)
        if isinstance(value, Scalar):
            return {(own,): (pick_number, values_key, name, value.dtype.str)}, lambda g: Array(g, own, (), value.dtype)
        if not isinstance(value, Image):
            return {own: (pick, values_key, name)}, lambda g: Delayed(own, g)
        image = self.tasks.image(name)
        sizes = tuple(tuple(min(step, n - at) for at in range(0, n, step)) for n, step in zip(value.shape, image.chunk))
        layer = {(own, *index): self.made(image.stage, task, image.target)
                 for task, index in enumerate(np.ndindex(*map(len, sizes)))}
        return layer, lambda g: Array(g, own, sizes, value.dtype)


def _source_array(value):
    """The dask array behind an image of the program."""
    if not isinstance(value, SourceImage):
        return from_array(value._array, chunks="auto", name="fovea.array-" + tokenize(value._array))
    if value._source.array is None:
        raise UsageError("only dask arrays and numpy arrays can be parts of a dask graph; dask.array.from_array takes zarr and "
                         "h5py arrays, dask.array.from_zarr opens them in each worker")
    return value._source.array


def _lattice(values, sources):
    """The chunks of the result: those of the arrays, if it has their shape; otherwise Fovea chooses."""
    if not sources:
        return None
    first = max(sources, key=lambda a: a.ndim)
    shapes = {v.shape for v in values if isinstance(v, Image)}
    return tuple(max(sizes) for sizes in first.chunks) if shapes <= {first.shape} else None


def _with_whole_paths(lines, operators):
    """The text with names of files as workers in other folders have to know them."""
    for name in operators & d.file_operators():
        for parameter in (p["name"] for p in d.all_operators()[name]["parameters"] if p.get("file")):
            call = re.compile(rf'( = {name}\(.*\b{parameter} = )"((?:[^"\\]|\\.)*)"')
            lines = [call.sub(lambda m: m[1] + _text.quoted(_whole_path(m[2].replace('\\"', '"').replace("\\\\", "\\"))), line)
                     for line in lines]
    return lines


def _whole_path(name):
    return name if "://" in name else os.path.abspath(name)


def collections_of(values):
    """Dask collections of fovea values, one for each, on one graph."""
    for value in values:
        if not isinstance(value, Value) or value._type is None:
            raise TypeError(f"an image, a number or a table of fovea is needed, not {type(value).__name__}")
        if any(isinstance(v, GivenTable) for v in _all_before(value)):
            raise UsageError("a table of this program is not known to dask's workers: write it to a file that they can read")
    lines, names, operators = _text.lines_of(values)
    lines = _with_whole_paths(lines, operators)
    images = _sources_of(values)
    sources = [_source_array(image) for image in images]
    arrays = tuple((names[id(i)], bytes(i._type.image), a.chunks) for i, a in zip(images, sources))
    wanted = tuple(dict.fromkeys(names[id(v)] for v in values))
    text = "\n".join(lines or ["# nothing but arrays"]) + "\n"
    spec = _tasks.Spec(l.lib.fv_version().decode(), text, arrays, wanted, _lattice(values, sources),
                       tuple(a.name for a in sources))
    token = tokenize(*dataclasses.astuple(spec))
    graph = _Graph(spec, sources, token)
    values_key = graph.add_values() if any(not isinstance(v, Image) for v in values) else None
    found = []
    shared = f"fovea.tasks-{token}"
    layers = HighLevelGraph.from_collections(shared, graph.graph, dependencies=sources)
    for value in values:
        layer, make = graph.collection(names[id(value)], value, values_key)
        own = graph.own(names[id(value)], value)
        found.append(make(HighLevelGraph({**layers.layers, own: layer}, {**layers.dependencies, own: {shared}})))
    return found
