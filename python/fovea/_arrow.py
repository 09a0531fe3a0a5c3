"""Tables through Arrow's C data interface, so that pandas, polars, DuckDB and pyarrow take them without one of them being needed.

The layout is Arrow's published one (arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html)."""
import ctypes as c

import numpy as np

from . import _library as l


class Schema(c.Structure):
    pass


class Array(c.Structure):
    pass


class Stream(c.Structure):
    pass


_RELEASE_SCHEMA = c.CFUNCTYPE(None, c.POINTER(Schema))
_RELEASE_ARRAY = c.CFUNCTYPE(None, c.POINTER(Array))
_RELEASE_STREAM = c.CFUNCTYPE(None, c.POINTER(Stream))
_GET_SCHEMA = c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Schema))
_GET_NEXT = c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Array))
_LAST_ERROR = c.CFUNCTYPE(c.c_void_p, c.POINTER(Stream))
Schema._fields_ = [("format", c.c_char_p), ("name", c.c_char_p), ("metadata", c.c_char_p), ("flags", c.c_int64),
                   ("n_children", c.c_int64), ("children", c.POINTER(c.POINTER(Schema))), ("dictionary", c.c_void_p),
                   ("release", _RELEASE_SCHEMA), ("private", c.c_void_p)]
Array._fields_ = [("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64), ("n_buffers", c.c_int64),
                  ("n_children", c.c_int64), ("buffers", c.POINTER(c.c_void_p)), ("children", c.POINTER(c.POINTER(Array))),
                  ("dictionary", c.c_void_p), ("release", _RELEASE_ARRAY), ("private", c.c_void_p)]
Stream._fields_ = [("get_schema", _GET_SCHEMA), ("get_next", _GET_NEXT), ("get_last_error", _LAST_ERROR),
                   ("release", _RELEASE_STREAM), ("private", c.c_void_p)]

_FORMATS = {l.INTEGER: b"l", l.REAL: b"g", l.NATURAL: b"L", l.TEXT: b"U"}
_NULLABLE = 2
_alive = {}  # what a consumer still holds, by the address of its parts


def _hold(struct, parts):
    key = id(parts)
    _alive[key] = parts
    struct.private = key


def _let_go(pointer, empty):
    struct = pointer.contents
    _alive.pop(struct.private, None)
    struct.release = empty


@_RELEASE_SCHEMA
def _release_schema(pointer):
    for k in range(pointer.contents.n_children):
        child = pointer.contents.children[k]
        if child.contents.release:
            child.contents.release(child)
    _let_go(pointer, _RELEASE_SCHEMA())


@_RELEASE_ARRAY
def _release_array(pointer):
    for k in range(pointer.contents.n_children):
        child = pointer.contents.children[k]
        if child.contents.release:
            child.contents.release(child)
    _let_go(pointer, _RELEASE_ARRAY())


def _fill_schema(to, form, name, children=()):
    pointers = (c.POINTER(Schema) * max(len(children), 1))(*(c.pointer(child) for child in children))
    parts = [form, name, pointers, children]
    to.format, to.name, to.metadata, to.flags = form, name, None, 0 if children else _NULLABLE
    to.n_children, to.children, to.dictionary, to.release = len(children), pointers, None, _release_schema
    _hold(to, parts)


def _fill_array(to, length, buffers, nulls=0, children=()):
    addresses = (c.c_void_p * len(buffers))(*(None if b is None else b.ctypes.data for b in buffers))
    pointers = (c.POINTER(Array) * max(len(children), 1))(*(c.pointer(child) for child in children))
    to.length, to.null_count, to.offset, to.n_buffers, to.n_children = length, nulls, 0, len(buffers), len(children)
    to.buffers, to.children, to.dictionary, to.release = addresses, pointers, None, _release_array
    _hold(to, [buffers, addresses, pointers, children])


def _column(column, kind):
    array = Array()
    if kind != l.TEXT:
        _fill_array(array, len(column), [None, column])
        return array
    texts = [b"" if v is None else v.encode() for v in column]
    missing = np.array([v is None for v in column], bool)
    valid = np.packbits(~missing, bitorder="little") if missing.any() else None
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(t) for t in texts], out=offsets[1:])
    _fill_array(array, len(texts), [valid, offsets, np.frombuffer(b"".join(texts) + b"\0", np.uint8)], int(missing.sum()))
    return array


class _Source:
    """One batch: the table's columns, with the memory in which they lie."""

    def __init__(self, table):
        self.table, self.done = table, False
        self.stream = Stream(_GET_SCHEMA(self.schema), _GET_NEXT(self.next), _LAST_ERROR(lambda _: None),
                             _RELEASE_STREAM(self.release), None)
        _hold(self.stream, self)

    def schema(self, _, out):
        children = []
        for name, kind in zip(self.table._names, self.table._kinds):
            child = Schema()
            _fill_schema(child, _FORMATS[kind], name.encode())
            children.append(child)
        _fill_schema(out.contents, b"+s", b"", children)
        return 0

    def next(self, _, out):
        if self.done:
            out.contents.release = _RELEASE_ARRAY()
            return 0
        self.done = True
        children = [_column(column, kind) for column, kind in zip(self.table._columns, self.table._kinds)]
        _fill_array(out.contents, len(self.table), [None], children=children)
        return 0

    def release(self, pointer):
        pointer.contents.release = _RELEASE_STREAM()
        _alive.pop(pointer.contents.private, None)


_new = c.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, [c.c_void_p, c.c_char_p]
_NAME = b"arrow_array_stream"


@c.CFUNCTYPE(None, c.c_void_p)
def _destroy(capsule):
    """A capsule that nobody took the stream from."""
    stream = c.cast(_pointer(capsule, _NAME), c.POINTER(Stream))
    if stream.contents.release:
        stream.contents.release(stream)


def export(table):
    """A capsule with the stream of a table."""
    source = _Source(table)
    return _new(c.addressof(source.stream), _NAME, c.cast(_destroy, c.c_void_p))
