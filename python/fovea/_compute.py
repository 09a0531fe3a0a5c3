"""Running pipelines of lazy values and of texts."""
import ctypes as c
import os

import numpy as np

from . import _descriptors as d
from . import _library as l
from . import _text
from ._errors import UsageError, raise_status
from ._prepared import Pipeline, kept, made, make, value_of
from ._prepared import run as run_pipeline
from ._tables import Table
from ._values import ArrayImage, Image, SourceImage, Value


# ---------------------------------------------------------------- pipelines

_NO_PIXELS = np.zeros(1, np.uint8)


class _Texts(Pipeline):
    """A pipeline that is made of lazy values."""
    __slots__ = ()

    def add_values(self, values, more=(), planned=False):
        """Statements and arrays that make the values; gives their variables. more: makes further lines from the names. planned:
        nobody will look at pixels, so that a function's need not be computed."""
        lines, names, _ = _text.lines_of(values)
        for value in _sources_of(values):
            if isinstance(value, SourceImage):
                self.provide(names[id(value)].encode(), value)
                continue
            self.held.append(_NO_PIXELS if planned else value._array)
            self.bind(names[id(value)].encode(), value._type.image, self.held[-1])
        lines += [line(names) for line in more]
        if not lines:
            lines = ["# nothing but arrays"]
        self.add("\n".join(lines) + "\n")
        return [names[id(v)] for v in values]


def _sources_of(values):
    """The arrays that values are made of, each once."""
    return list({id(s): s for v in values for s in v._sources()}.values())


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


def _options(memory=None, workers=None, engine=None, device=None, store=None, fresh=False, overwrite=False, progress=None,
             allow_commands=False, **unknown):
    """The struct for a run. progress: called with a fraction from 0 to 1, or True for a bar."""
    if unknown:
        raise TypeError(f"a run has no option {next(iter(unknown))!r}; there are {', '.join(_RUN_OPTIONS)}")
    if workers is not None and int(workers) < 1:
        raise UsageError(f"workers = {workers}: at least one is needed")
    options = l.RunOptions(memory=_bytes(memory), workers=int(workers or 0), fresh=fresh, overwrite=overwrite,
                           allow_commands=allow_commands, transient=True)
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

def _compute(values, options):
    """Values that are no arrays themselves, in one run."""
    lines, names, operators = _text.lines_of(values)
    sources = _sources_of(values)
    if any(isinstance(s, SourceImage) for s in sources):
        return _compute_pieces(values, options)
    arrays = [s._array for s in sources]
    text = "\n".join(lines) + "\n"
    wanted = list(dict.fromkeys(names[id(v)] for v in values))
    types = [(names[id(s)].encode(), s._type.image) for s in sources]
    if d.file_operators().isdisjoint(operators) and len(text) < 10000:
        prepared = kept((text, *wanted, *[(n, bytes(t)) for n, t in types]), arrays, lambda: make(text, types, wanted))
    else:  # files may be others the next time
        prepared = made(text, types, wanted, arrays)
    with prepared as pipeline:
        result = run_pipeline(pipeline, options)
        found = {name: value_of(pipeline, result, name.encode()) for name in wanted}
    return [found[names[id(v)]] for v in values]


def _compute_pieces(values, options):
    """The same of arrays that are read piece by piece."""
    with _Texts() as pipeline:
        names = pipeline.add_values(values)
        for name in dict.fromkeys(names):
            pipeline.keep(name)
        result = run_pipeline(pipeline, options)
        return [value_of(pipeline, result, name.encode()) for name in names]


def compute(*values, **options):
    """Computes values together, in one run: numpy arrays, numbers and tables in the order in which they were given. A number of
    each item of a collection is a table with a row for each.

    Options: memory ("2G"), workers, engine ("threads", "processes"), device, store, fresh, progress. What reads no file leaves
    nothing on disk, unless a store is given."""
    for value in values:
        if not isinstance(value, Value) or value._type is None:
            raise TypeError(f"fovea.compute takes images, numbers and tables of fovea, not {type(value).__name__}")
        if isinstance(value, Image) and value.items:
            raise UsageError(f"an image of each of {value.items} items is no single array: image.write(\"{{stem}}.npy\") makes a "
                             "file of each, fovea.together(image) one image of all, and fovea.map_items goes through the files")
    run_options = _options(**options)
    wanted = [v for v in values if not isinstance(v, ArrayImage)]
    found = iter(_compute(wanted, run_options) if wanted else ())
    return tuple(v._array if isinstance(v, ArrayImage) else next(found) for v in values)


_RUN_OPTIONS = ("memory", "workers", "engine", "device", "store", "fresh", "overwrite", "progress", "allow_commands")


def write(value, path, **arguments):
    """Computes a value and writes it to a file; gives the paths of all files made or found current."""
    options = {k: arguments.pop(k) for k in _RUN_OPTIONS if k in arguments}
    own = "".join(f", {k} = {_text.literal(v)}" for k, v in arguments.items())
    with _Texts() as pipeline:
        pipeline.add_values([value], [lambda names: f"write({names[id(value)]}, {_text.literal(os.fspath(path))}{own})"])
        result = run_pipeline(pipeline, _options(**options))
        return [l.lib.fv_result_output(result.pointer, k).decode() for k in range(l.lib.fv_result_outputs(result.pointer))]


def run(pipeline, params=None, **options):
    """Runs a pipeline: the path of a `.fov` file, or its text if it has more than one line or no such ending.

    Gives what the text prints, in order: numbers and tables. params: values of its `param` statements; a list tries several."""
    text = os.fspath(pipeline)
    with Pipeline() as p:
        _load(p, text, params)
        return printed(run_pipeline(p, _options(**options)))


def printed(result):
    """What a text prints, in order: numbers and tables."""
    found, scalar = [], c.c_bool()
    for k in range(l.lib.fv_result_printed(result.pointer)):
        table = Table(l.lib.fv_result_printed_table(result.pointer, k, scalar).contents)
        found.append(table.cell() if scalar.value and len(table.columns) == 1 else table)
    return found


def _load(p, text, params):
    if text.endswith(".fov") and "\n" not in text:
        p.check(l.lib.fv_pipeline_add_file(p.pointer, os.fsencode(text), p.error))
    else:
        p.check(l.lib.fv_pipeline_add(p.pointer, b"fovea", text.encode(), p.error))
    if params is not None and not hasattr(params, "items"):
        raise TypeError(f"params must be a dictionary such as {{\"radius\": 12}}, not {type(params).__name__}")
    for name, value in (params or {}).items():
        several = isinstance(value, (list, tuple)) and not isinstance(value, str)
        words = [_word(v) for v in (value if several else [value])]
        p.check(l.lib.fv_pipeline_set(p.pointer, f"{name}={','.join(words)}".encode(), p.error))


def _word(value):
    return value if isinstance(value, str) else _text.literal(value)


def _asked(value, params, function):
    """The text that a question to the library gives about a value or a pipeline's text."""
    with _Texts() as p:
        if isinstance(value, Value):
            for name in p.add_values([value], planned=True):
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


def estimate(value, params=None, items=None, workers=None, memory=None, seconds=20, store=None):
    """What a value or a pipeline's text will cost: a dictionary with the times and memory of 1, 2, 4 ... workers, what takes most
    of the time, and what to ask Slurm for. A few items, or slabs of an image, are run to find out, for about so many seconds.

    items: predict for so many items of the collection; workers: for at most so many workers."""
    import json
    from .__main__ import command
    options = l.EstimateOptions(items=int(items or 0), workers=int(workers or 0), memory=_bytes(memory), budget=float(seconds),
                                store=os.fsencode(store) if store else None, command=os.fsencode(command() or "fovea"))
    if isinstance(value, Value):
        if value._sources():
            raise UsageError("an estimate runs parts of the pipeline in other processes, which do not see arrays of this "
                             "program: write them to files and read these")
        last = list(_text.lines_of([value])[1].values())[-1]
        value = value.text() + (f'write({last}, "result.npy")\n' if isinstance(value, Image) else f"{last}\n")
    return json.loads(_asked(value, params, lambda p, out: l.lib.fv_pipeline_estimate_text(p.pointer, options, 1, out, p.error)))


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
