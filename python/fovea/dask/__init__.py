"""Fovea on dask: operators on dask arrays, and pipelines on the workers of a dask cluster.

    >>> import dask.array as da, fovea.dask as fd
    >>> x = da.zeros((200, 300), chunks=(100, 100), dtype="float32")
    >>> smooth = fd.gaussian(x, 2)
    >>> smooth
    dask.array<fovea.gaussian, shape=(200, 300), dtype=float32, chunksize=(100, 100), chunktype=numpy.ndarray>

Every operator of fovea is a function here, with the same arguments. It gives dask's own collections, lazily: an image is a dask
array, a number a dask array without axes, a table a delayed object. What an operator has to know of neighbouring chunks or of the
whole array it finds by the same passes as everywhere: results equal those of fovea on the whole array, bit by bit.
"""
import sys as _sys

try:
    import dask.array as _dask_array
except ImportError as _error:
    _why = (f"fovea.dask needs dask with its arrays in {_sys.executable} ({_error}): pip install 'dask[array,distributed]', or "
            "Debian's python3-dask and python3-distributed")
    if _sys.argv[:1] == ["-m"]:  # `fovea run --engine dask` has started this package as a program
        print(f"{_why}; FOVEA_PYTHON names another Python", flush=True)
        _sys.exit(2)
    raise ImportError(_why) from None

from .. import _descriptors, _values
from ._place import run

__all__ = ["lazy", "run"]


def lazy(*values):
    """Images, numbers and tables of fovea as dask collections: one, or a tuple of several that share their tasks.

        >>> import dask.array as da, fovea as fv, fovea.dask as fd
        >>> image = fv.array(da.arange(100, chunks=10).reshape(10, 10))
        >>> fd.lazy(image.gaussian(1) > image.mean()).compute().sum()
        50
    """
    from ._graph import collections_of
    found = collections_of(values)
    return found[0] if len(found) == 1 else tuple(found)


def _operand(value):
    """A dask array as an image of fovea, or as a number if it has no axes."""
    if not isinstance(value, _dask_array.Array):
        return value
    return _values.array(value) if value.ndim else _values.call("max", (_values.array(value.reshape(1)),), {})


def _call(operation, arguments, named):
    value = _values.call(operation, [_operand(a) for a in arguments], {k: _operand(v) for k, v in named.items()})
    return value if value._type is None else lazy(value)  # a footprint stays what it is


def __getattr__(name):
    """Operators, made when they are first used."""
    if name.startswith("__") or name not in _descriptors.python_names():
        raise AttributeError(f"module 'fovea.dask' has no operator or attribute {name!r}")
    globals()[name] = function = _descriptors.function_of(name, _call)
    return function


def __dir__():
    return sorted(set(globals()) | set(_descriptors.python_names()))
