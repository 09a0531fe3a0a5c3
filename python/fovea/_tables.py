"""Tables that were computed: columns of numbers and texts, handed on to pandas and to whatever speaks Arrow."""
import ctypes as c

import numpy as np

from . import _library as l


class Table:
    """A computed table. `t["volume"]` is a column as a numpy array; iteration gives rows as tuples."""

    def __init__(self, struct):
        t = struct.type
        self._names = [t.column[k].name.decode() for k in range(t.ncolumns)]
        self._kinds = [t.column[k].kind for k in range(t.ncolumns)]
        rows, columns = struct.nrows, t.ncolumns
        cells = np.zeros((0, columns), np.int64)
        if rows and columns:
            cells = np.ctypeslib.as_array(c.cast(struct.cell, c.POINTER(c.c_int64)), (rows, columns))
        self._columns = [self._copy(cells[:, k], kind) for k, kind in enumerate(self._kinds)]
        self._rows = rows

    @staticmethod
    def _copy(cells, kind):
        if kind == l.TEXT:
            return np.array([c.string_at(p).decode("utf-8", "replace") if p else None for p in cells.tolist()], object)
        return np.array(cells).view({l.INTEGER: np.int64, l.REAL: np.float64, l.NATURAL: np.uint64}[kind])

    @property
    def columns(self):
        """Names of the columns."""
        return tuple(self._names)

    @property
    def shape(self):
        """Rows and columns."""
        return self._rows, len(self._names)

    def __len__(self):
        return self._rows

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self._names)}")
        return self._columns[self._names.index(name)]

    def __iter__(self):
        return zip(*(column.tolist() for column in self._columns))

    def keys(self):
        """Names of the columns, so that dict(table) works."""
        return tuple(self._names)

    def cell(self):
        """The only cell of a table of one."""
        return self._columns[-1][0]

    def to_pandas(self):
        """As a pandas DataFrame."""
        import pandas
        return pandas.DataFrame({name: column for name, column in zip(self._names, self._columns)}, columns=self._names)

    def to_arrow(self):
        """As a pyarrow Table."""
        import pyarrow
        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def __arrow_c_stream__(self, requested_schema=None):
        from ._arrow import export
        return export(self)

    def __repr__(self):
        return f"<fovea.Table of {self._rows} rows: {', '.join(self._names)}>"

    def _repr_html_(self):
        from ._notebook import table_html
        return table_html(self)
