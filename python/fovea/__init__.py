"""Fovea: image analysis and reconstruction that is planned before it runs.

    >>> import fovea as fv
    >>> cells = fv.phantom("cells", [64, 64], seed=1)
    >>> labels = (cells > cells.gaussian(1).otsu()).label()
    >>> labels.shape, labels.dtype
    ((64, 64), dtype('int32'))
    >>> int(labels.max()) > 1
    True

Operators are functions here and methods of images; help(fovea.gaussian) tells about one. Values are lazy: they are computed by
numpy.asarray(image), image.compute(), fovea.compute(a, b), image.write("x.tif").
"""
from . import _library
from ._compute import compute, estimate, graph, info, plan, run, write
from ._mapped import BlockError, map_blocks
from ._mapped_items import ItemsError, map_items
from ._notebook import load_ipython_extension
from ._errors import Error, InputError, MissingPart, OutOfMemory, UsageError
from ._tables import Table
from ._values import Image, LazyTable, Scalar, Value, array, table

__version__ = _library.lib.fv_version().decode()
__all__ = ["BlockError", "Error", "Image", "InputError", "ItemsError", "LazyTable", "MissingPart", "OutOfMemory",
           "Scalar", "Table", "UsageError", "Value", "array", "compute", "estimate", "graph", "info", "load_ipython_extension",
           "map_blocks", "map_items", "plan", "run", "table", "write"]


def __getattr__(name):
    """Operators, made when they are first used."""
    from . import _descriptors, _values
    if name.startswith("__") or name not in _descriptors.python_names():
        hint = "" if name.startswith("_") else _values.advice(name + "()")
        raise AttributeError(f"module 'fovea' has no operator or attribute {name!r}{hint}")
    globals()[name] = function = _descriptors.function_of(name, _values.call)
    return function


def __dir__():
    from . import _descriptors
    return sorted(set(globals()) | set(_descriptors.python_names()))
