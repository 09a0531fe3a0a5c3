"""Arrays that are larger than memory: dask, zarr, h5py and xarray, read piece by piece while a pipeline runs."""
import collections
import ctypes as c
import itertools
import threading

import numpy as np

from . import _library as l
from ._errors import InputError

_CACHE = 256 << 20  # bytes of pieces kept, because neighbours want the same piece for their borders


class _Pieces:
    """Pieces of a dask array, each computed once as long as it is near in time."""

    def __init__(self, array):
        self.array, self.kept, self.bytes, self.lock = array, collections.OrderedDict(), 0, threading.Lock()
        self.ends = [np.cumsum(sizes) for sizes in array.chunks]

    def read(self, start, count):
        """A part of the array."""
        out = np.empty(count, self.array.dtype)
        ranges = [range(int(np.searchsorted(e, s, "right")), int(np.searchsorted(e, s + n - 1, "right")) + 1)
                  for e, s, n in zip(self.ends, start, count)]
        for index in itertools.product(*ranges):
            begins = [int(e[i - 1]) if i else 0 for e, i in zip(self.ends, index)]
            piece = self.piece(index)
            low = [max(s, b) for s, b in zip(start, begins)]
            high = [min(s + n, b + p) for s, n, b, p in zip(start, count, begins, piece.shape)]
            to = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start))
            out[to] = piece[tuple(slice(a - f, b - f) for a, b, f in zip(low, high, begins))]
        return out

    def piece(self, index):
        """One piece; two threads that want the same one wait for each other."""
        with self.lock:
            made = self.kept.pop(index, None)
            lock = made[0] if made else threading.Lock()
            self.kept[index] = made = made or [lock, None]
        with lock:
            if made[1] is None:
                made[1] = np.asarray(self.array.blocks[index].compute(scheduler="synchronous"))
                with self.lock:
                    self.bytes += made[1].nbytes
                    while self.bytes > _CACHE and len(self.kept) > 1:
                        _, (_, old) = self.kept.popitem(last=False)
                        self.bytes -= 0 if old is None else old.nbytes
        return made[1]


class Source:
    """How parts of an array are read, and what the library has to know of it."""

    def __init__(self, read, chunk, identity, array=None):
        self.read, self.chunk, self.identity, self.failure = read, chunk, identity, None
        self.array = array  # of dask

    def raise_failure(self):
        """Tells what went wrong in a read, if something did."""
        if self.failure is not None and not isinstance(self.failure, Exception):
            raise self.failure  # KeyboardInterrupt
        if self.failure is not None:
            raise InputError(f"a piece of an array could not be read: {type(self.failure).__name__}: {self.failure}"
                             ) from self.failure

    def callback(self, dtype, ndim):
        """The function that the library calls; keep it for as long as a run goes on."""
        def read(_, start, count, stride, data, error):
            try:
                at, size = tuple(start[:ndim]), tuple(count[:ndim])
                room = sum((n - 1) * s for n, s in zip(size, stride[:ndim])) + 1
                memory = np.ctypeslib.as_array(c.cast(data, c.POINTER(c.c_uint8)), (room * dtype.itemsize,)).view(dtype)
                target = np.lib.stride_tricks.as_strided(memory, size, [s * dtype.itemsize for s in stride[:ndim]])
                target[...] = self.read(at, size)
                return l.OK
            except BaseException as failure:  # nothing may leave a function that C calls
                self.failure = failure
                error.contents.code = l.INPUT
                error.contents.message = f"{type(failure).__name__}: {failure}".encode("utf-8", "replace")[:700]
                return l.INPUT
        return l.SOURCE_READ(read)


def source_of(a):
    """The source of an array that is not in memory; None: it is, or it is no array at all."""
    if isinstance(a, np.ndarray) or not all(hasattr(a, name) for name in ("shape", "dtype", "__getitem__")):
        return None
    if hasattr(a, "__dask_graph__") and hasattr(a, "blocks"):
        if any(n != n for sizes in a.chunks for n in sizes):
            raise ValueError("the sizes of this dask array's chunks are not known; a.compute_chunk_sizes() finds them")
        return Source(_Pieces(a).read, [max(sizes) for sizes in a.chunks], f"dask {a.name}", a)
    if getattr(a, "chunks", None) or type(a).__module__.partition(".")[0] in ("zarr", "h5py"):
        chunk = getattr(a, "chunks", None) or a.shape
        return Source(lambda start, count: a[tuple(slice(s, s + n) for s, n in zip(start, count))], list(chunk), None)
    return None


# ---------------------------------------------------------------- xarray

def from_xarray(a):
    """Data, axes, spacing, origin and units of a DataArray. Evenly spaced coordinates give the spacing."""
    spacing, origin, units = [], [], []
    for name in a.dims:
        step, first, unit = 1.0, 0.0, ""
        if name in a.coords:
            values = a.coords[name]
            unit = str(values.attrs.get("units", ""))
            numbers = np.asarray(values.values)
            if numbers.ndim == 1 and numbers.dtype.kind in "iuf" and numbers.size > 1:
                steps = np.diff(numbers.astype(float))
                if np.allclose(steps, steps[0], rtol=1e-4, atol=0) and steps[0] > 0:
                    step, first = float(numbers[-1] - numbers[0]) / (numbers.size - 1), float(numbers[0])
                elif str(name) in ("z", "y", "x"):
                    raise ValueError(f"the coordinates along {name} are not evenly spaced and rising; "
                                     f"an image has one spacing: drop them with a.drop_vars({name!r})")
        spacing.append(step)
        origin.append(first)
        units.append(unit[:15])
    return a.data, [str(n) for n in a.dims], spacing, origin, units


def to_xarray(image, **options):
    """The computed image as a DataArray with coordinates from origin and spacing."""
    import xarray
    coords = {}
    for axis, n, first, step, unit in zip(image.axes, image.shape, image.origin, image.spacing, image.units):
        coords[axis] = (axis, first + step * np.arange(n), {"units": unit} if unit else {})
    return xarray.DataArray(image.compute(**options), dims=image.axes, coords=coords)
