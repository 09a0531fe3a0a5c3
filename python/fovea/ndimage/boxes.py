"""Means, extreme values and ranks of boxes and footprints, with the signatures of scipy.ndimage."""
import itertools
import math
import operator

import numpy as np

from .. import _eager
from .._remember import remembered
from . import _support as s
from .linear import centred, computed_type, direct, parts

__all__ = ["generic_filter", "generic_filter1d", "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter",
           "minimum_filter1d", "percentile_filter", "rank_filter", "uniform_filter", "uniform_filter1d"]


# ---------------------------------------------------------------- boxes

def _checked_size(size, origin):
    if size < 1:
        raise RuntimeError("incorrect filter size")
    if not -(size // 2) <= origin <= (size - 1) // 2:
        raise ValueError("invalid origin")


def _boxed(name, array, sizes, modes, cval, origins, dtype=None, **parameters):
    """What an operator with a box gives; origins and modes of their own are made by surrounding the array first. dtype: the type
    that the array gets before."""
    wide = [k for k, n in enumerate(sizes) if n > 1]
    if not wide:
        sizes = [1] * array.ndim
    if len({modes[k] for k in wide}) <= 1 and not any(origins):
        mode = modes[wide[0]] if wide else "nearest"
        cval = _plain(cval, np.dtype(dtype or array.dtype))
        return _eager.call(name, array, dtype=dtype, size=list(sizes), mode=mode, cval=cval, **parameters)
    before = [n // 2 + o for n, o in zip(sizes, origins)]
    after = [n - 1 - b for n, b in zip(sizes, before)]
    larger = s.padded(array, before, after, modes, cval)
    found = _eager.call(name, larger, dtype=dtype, size=list(sizes), mode="nearest", **parameters)
    return found[tuple(slice(n // 2, n // 2 + m) for n, m in zip(sizes, array.shape))]


def _plain(cval, dtype):
    """A value outside in the array's own type."""
    return int(bool(cval)) if dtype.kind == "b" else int(cval) if dtype.kind in "iu" else float(cval)


def _along_axis(name, array, size, axis, mode, cval, origin, dtype=None):
    """An operator with a box along one axis of any number of them."""
    lines, at = s.along(array, axis)
    sizes, origins = [1] * lines.ndim, [0] * lines.ndim
    sizes[at], origins[at] = size, origin
    return _boxed(name, lines, sizes, [mode] * lines.ndim, cval, origins, dtype).reshape(array.shape)


def _mean_along(array, size, axis, given, output, mode, cval, origin):
    usable = s.supported(array)

    def real(a, _, c):
        return _along_axis("uniform", a, size, axis, mode, c, origin, computed_type(array, output))
    if array.dtype.kind == "c":
        return s.fill(output, parts(real, usable, np.ones(1), cval))
    return s.handed(given, output, real(usable, None, cval))


@remembered
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """The mean of a box along an axis."""
    array = s.image_of(input)
    axis = s.axis_number(axis, array.ndim)
    _checked_size(size, origin)
    given, output = output, s.output_of(output, array, complex_output=array.dtype.kind == "c")
    return _mean_along(array, int(size), axis, given, output, s.mode_of(mode), cval, origin) if array.size else output


def _box_jobs(array, axes, size, mode, origin):
    axes = s.chosen_axes(axes, array.ndim)
    sizes, modes, origins = (s.per_axis(v, len(axes)) for v in (size, mode, origin))
    modes = [s.mode_of(m) for m in modes]
    for n, o in zip(sizes, origins):
        if n > 1:
            _checked_size(n, o)
    return [job for job in zip(axes, map(int, sizes), modes, map(operator.index, origins)) if job[1] > 1]


@remembered
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The mean of a box."""
    array, given = s.image_of(input), output
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    jobs = _box_jobs(array, axes, size, mode, origin)
    if not jobs or array.size == 0:
        return s.fill(output, array)
    if direct(array, output, [j[2] for j in jobs]):
        numbers = [j[0] for j in jobs]
        sizes = s.spread([j[1] for j in jobs], numbers, array.ndim, 1)
        found = _boxed("uniform", s.supported(array), sizes, s.spread([j[2] for j in jobs], numbers, array.ndim, "nearest"), cval,
                       s.spread([j[3] for j in jobs], numbers, array.ndim, 0), computed_type(array, output))
        return s.handed(given, output, found)
    for axis, one_size, one_mode, one_origin in jobs:
        _mean_along(array, one_size, axis, output, output, one_mode, cval, one_origin)
        array = output
    return output


def _extreme_along(name, input, size, axis, output, mode, cval, origin):
    array = s.image_of(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    axis = s.axis_number(axis, array.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    given, output = output, s.output_of(output, array)
    if not -(size // 2) <= origin < size - size // 2:
        raise ValueError("invalid origin")
    if array.size == 0:
        return output
    return s.handed(given, output, _along_axis(name, s.supported(array), int(size), axis, s.mode_of(mode), cval,
                                               operator.index(origin)))


@remembered
def minimum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """The smallest value of a box along an axis."""
    return _extreme_along("minimum_filter", input, size, axis, output, mode, cval, origin)


@remembered
def maximum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """The largest value of a box along an axis."""
    return _extreme_along("maximum_filter", input, size, axis, output, mode, cval, origin)


# ---------------------------------------------------------------- footprints

def _footprint_of(size, footprint, naxes, name):
    """The sizes of a box, or a footprint that is none."""
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        return [operator.index(n) for n in s.per_axis(size, naxes)], None
    footprint = np.asarray(footprint, bool)
    if not footprint.any():
        raise ValueError(f"{name}: all of the footprint is zero; at least one place of it is needed")
    if footprint.ndim != naxes:
        if footprint.all() and name in ("minimum_filter", "maximum_filter"):
            raise RuntimeError("sequence argument must have length equal to input rank")
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({naxes})")
    return list(footprint.shape), None if footprint.all() else footprint


def _seen(input, size, footprint, output, mode, cval, origin, axes, name):
    """Everything that a filter with a footprint was given, checked: for all axes of the array."""
    if size is not None and footprint is not None:
        s.warn("ignoring size because footprint is set")
    array = s.image_of(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    axes = s.chosen_axes(axes, array.ndim)
    sizes, footprint = _footprint_of(size, footprint, len(axes), name)
    if footprint is not None:
        footprint = s.widened(footprint, axes, array.ndim)
        sizes = list(footprint.shape)
    else:
        sizes = s.spread(sizes, axes, array.ndim, 1)
    origins = s.spread([operator.index(o) for o in s.per_axis(origin, len(axes))], axes, array.ndim, 0)
    for n, o in zip(sizes, origins):
        _checked_size(n, o)
    output = s.output_of(output, array)
    modes = [s.mode_of(m) for m in s.spread(mode, axes, array.ndim, "nearest")]
    return array, sizes, footprint, output, modes, cval, origins


def windows(array, footprint, modes, cval, origins):
    """For each place of the footprint, the array as it is seen from there; a generator of views."""
    before = [n // 2 + o for n, o in zip(footprint.shape, origins)]
    after = [n - 1 - b for n, b in zip(footprint.shape, before)]
    larger = s.padded(array, before, after, modes, cval)
    for index in np.argwhere(footprint):
        yield larger[tuple(slice(k, k + n) for k, n in zip(index, array.shape))]


def _extreme_seen(array, footprint, modes, cval, origins, largest):
    """The extreme value under a footprint: an erosion or dilation of the surrounded array."""
    if 1 <= array.ndim <= 3 and max(footprint.shape) <= 127 and abs(cval) < 2**53:
        before = [n // 2 + o for n, o in zip(footprint.shape, origins)]
        after = [n - 1 - b for n, b in zip(footprint.shape, before)]
        box = centred(footprint, before)  # mirrored, as the pattern of a dilation is
        if not largest:
            box = box[(slice(None, None, -1),) * box.ndim]
        pattern = f"pattern({[int(v) for v in box.ravel()]}, shape = {list(box.shape)})"
        mode = next((mode for n, mode in zip(footprint.shape, modes) if n > 1), "nearest")
        around = f'pad(a, {before}, {after}, mode = "{mode}", cval = {_plain(cval, array.dtype)!r})'
        cut = ", ".join([f"{b}:{b + n}" for b, n in zip(before, array.shape)])
        return _eager.run(f"{'dilate' if largest else 'erode'}({around}, {pattern})[{cut}]", a=array)
    found = None
    for view in windows(array, footprint, modes, cval, origins):
        found = view.copy() if found is None else (np.maximum if largest else np.minimum)(found, view, found)
    return found


def _extreme(name, input, size, footprint, output, mode, cval, origin, axes):
    given = output
    seen = _seen(input, size, footprint, output, mode, cval, origin, axes, name)
    array, sizes, footprint, output, modes, cval, origins = seen
    if array.size == 0:
        return output
    usable, largest = s.supported(array), name == "maximum_filter"
    if footprint is not None:
        s.one_mode(mode)
        return s.handed(given, output, _extreme_seen(usable, footprint, modes, cval, origins, largest))
    if array.ndim <= 3 and array.ndim:
        return s.handed(given, output, _boxed(name, usable, sizes, modes, cval, origins))
    for axis, n in enumerate(sizes):
        if n > 1:
            usable = _along_axis(name, usable, n, axis, modes[axis], cval, origins[axis])
    return s.fill(output, usable)


@remembered
def minimum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The smallest value of a box or footprint."""
    return _extreme("minimum_filter", input, size, footprint, output, mode, cval, origin, axes)


@remembered
def maximum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The largest value of a box or footprint."""
    return _extreme("maximum_filter", input, size, footprint, output, mode, cval, origin, axes)


_STACKED = 1 << 24  # values of all places of a footprint that are sorted at a time


def _ranked(array, footprint, modes, cval, origins, rank):
    """The value at a place among those under a footprint: all that a voxel sees lies along an axis of its own."""
    count, total = int(footprint.sum()), array.size
    views = list(windows(array, footprint, modes, cval, origins))
    found = np.empty(array.shape, array.dtype)
    rows = max(1, _STACKED // max(1, count * (total // array.shape[0]))) if array.ndim else 1
    for first in range(0, array.shape[0], rows):
        stack = np.stack([view[first:first + rows].ravel() for view in views])
        part = _eager.run(f'rank(a, {rank}, size = [{count}, 1], mode = "nearest")[{count // 2}:{count // 2 + 1}]', a=stack)
        found[first:first + rows] = part.reshape(-1, *array.shape[1:])
    return found


def _by_rank(input, size, footprint, output, mode, cval, origin, axes, name, place):
    given = output
    seen = _seen(input, size, footprint, output, mode, cval, origin, axes, name)
    array, sizes, footprint, output, modes, cval, origins = seen
    s.one_mode(mode)
    count = int(footprint.sum()) if footprint is not None else math.prod(sizes)
    rank = place(count)
    if array.size == 0:
        return output
    usable = s.supported(array)
    if array.ndim == 0:
        return s.fill(output, usable)
    if rank == 0 or rank == count - 1:
        return _extreme("minimum_filter" if rank == 0 else "maximum_filter", array, sizes if footprint is None else None,
                        footprint, output, mode, cval, origins, None)
    if footprint is not None or array.ndim > 3:
        footprint = np.ones(sizes, bool) if footprint is None else footprint
        return s.fill(output, _ranked(usable, footprint, modes, cval, origins, rank))
    return s.handed(given, output, _boxed("rank", usable, sizes, modes, cval, origins, rank=rank))


@remembered
def rank_filter(input, rank, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The value at one place of a box or footprint whose values are sorted."""
    rank = operator.index(rank)

    def place(count):
        found = rank + count if rank < 0 else rank
        if not 0 <= found < count:
            raise RuntimeError("rank not within filter footprint size")
        return found
    return _by_rank(input, size, footprint, output, mode, cval, origin, axes, "rank_filter", place)


@remembered
def median_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The middle value of a box or footprint."""
    return _by_rank(input, size, footprint, output, mode, cval, origin, axes, "median_filter", lambda count: count // 2)


@remembered
def percentile_filter(input, percentile, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                      axes=None):
    """The value below which a share of a box or footprint lies."""
    def place(count):
        share = percentile + 100.0 if percentile < 0.0 else percentile
        if not 0 <= share <= 100:
            raise RuntimeError("invalid percentile")
        return count - 1 if share == 100.0 else int(float(count) * share / 100.0)
    return _by_rank(input, size, footprint, output, mode, cval, origin, axes, "percentile_filter", place)


# ---------------------------------------------------------------- functions of yours

def _called(function, name):
    if not callable(function):
        raise RuntimeError(f"{name}: the function must be one of Python; compiled callbacks are not taken here")
    return function


def generic_filter1d(input, function, filter_size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0, extra_arguments=(),
                     extra_keywords=None):
    """A function of yours that turns each line, with what lies around it, into another."""
    function, array = _called(function, "generic_filter1d"), s.image_of(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if filter_size < 1:
        raise RuntimeError("invalid filter size")
    output = s.output_of(output, array)
    axis = s.axis_number(axis, array.ndim)
    _checked_size(filter_size, origin)
    lines = np.moveaxis(array, axis, -1).astype(np.float64)
    before = [0] * (array.ndim - 1) + [filter_size // 2 + origin]
    after = [0] * (array.ndim - 1) + [filter_size - 1 - filter_size // 2 - origin]
    larger = s.padded(lines, before, after, [s.mode_of(mode)] * array.ndim, cval)
    found = np.zeros_like(lines)
    for index in np.ndindex(lines.shape[:-1]):
        function(larger[index].copy(), found[index], *extra_arguments, **(extra_keywords or {}))
    return s.fill(output, np.moveaxis(found, -1, axis))


def generic_filter(input, function, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0,
                   extra_arguments=(), extra_keywords=None, *, axes=None):
    """A function of yours of the values under a footprint, voxel by voxel."""
    _called(function, "generic_filter")
    s.one_mode(mode)
    array, sizes, footprint, output, modes, cval, origins = _seen(input, size, footprint, output, mode, cval, origin, axes,
                                                                  "generic_filter")
    footprint = np.ones(sizes, bool) if footprint is None else footprint
    values = np.empty(array.shape, np.float64)
    views = list(windows(array.astype(np.float64), footprint, modes, cval, origins))
    for index in itertools.product(*map(range, array.shape)):
        values[index] = function(np.array([view[index] for view in views]), *extra_arguments, **(extra_keywords or {}))
    return s.fill(output, values)
