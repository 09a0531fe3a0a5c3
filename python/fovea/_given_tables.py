"""Tables of the program as inputs of a pipeline: pandas, polars, pyarrow, dictionaries, whatever speaks Arrow."""
import os
import sqlite3
import tempfile
import weakref

import numpy as np

from . import _text


def columns_of(t):
    """Names and columns of anything that is like a table."""
    names = getattr(getattr(t, "dtype", None), "names", None)  # numpy's records
    for attribute in ("column_names", "columns", "keys"):
        if names is not None:
            break
        names = getattr(t, attribute, None)
        names = names() if callable(names) else names
    if names is not None and hasattr(t, "__getitem__"):
        return [(str(n), _values(t[n])) for n in names]
    if not hasattr(t, "__arrow_c_stream__"):
        raise TypeError(f"{type(t).__name__} is no table: it has no columns")
    try:
        import pyarrow
    except ImportError:
        raise TypeError(f"a {type(t).__name__} is read through pyarrow, which is not installed") from None
    found = pyarrow.RecordBatchReader.from_stream(t).read_all()
    return [(n, _values(found[n])) for n in found.column_names]


def _values(column):
    values = np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "combine_chunks") else column)
    if values.ndim != 1:
        raise ValueError(f"a column of a table has one axis, not {values.ndim}")
    return values


def _kind(values):
    if values.dtype.kind in "iub":
        return "INTEGER"
    if values.dtype.kind == "f":
        return "REAL"
    if values.dtype.kind == "M":
        return "TEXT"
    present = [v for v in values.tolist() if v is not None and v == v]
    if all(isinstance(v, (int, np.integer)) for v in present) and present:
        return "INTEGER"
    return "REAL" if present and all(isinstance(v, (int, float, np.number)) for v in present) else "TEXT"


def _cells(values, kind):
    """Python values as SQLite takes them; what is missing is None."""
    if values.dtype.kind == "M":
        return [None if v == "NaT" else v for v in np.datetime_as_string(values).tolist()]
    listed = values.tolist()
    if values.dtype.kind in "iub":
        return [int(v) for v in listed]
    empty = [v is None or bool(v != v) for v in listed]
    turn = {"INTEGER": int, "REAL": float, "TEXT": str}[kind]
    return [None if none else turn(v) for v, none in zip(listed, empty)]


def _write(path, columns):
    kinds = [_kind(values) for _, values in columns]
    quoted = ['"' + name.replace('"', '""') + '"' for name, _ in columns]
    base = sqlite3.connect(path)
    base.execute(f"CREATE TABLE t ({', '.join(f'{n} {k}' for n, k in zip(quoted, kinds))})")
    rows = zip(*(_cells(values, kind) for (_, values), kind in zip(columns, kinds)))
    base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
    base.commit()
    base.close()


def statement(t):
    """What reads the table in a pipeline, and the file that has to live as long: the library reads tables from files."""
    columns = columns_of(t)
    if not columns:
        raise ValueError("a table has at least one column")
    lengths = {len(values) for _, values in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns of the table have different lengths: {', '.join(map(str, sorted(lengths)))}")
    file = _File()
    _write(file.path, columns)
    return f'read_table({_text.quoted(file.path)}, table = "t")', file


class _File:
    """A file that is removed with the last value that reads it."""

    def __init__(self):
        handle, self.path = tempfile.mkstemp(".sqlite", "fovea-")
        os.close(handle)
        weakref.finalize(self, _remove, self.path)


def _remove(path):
    if os.path.exists(path):
        os.remove(path)

