"""What all functions here share: output arrays, modes, origins, element types, and places outside an image."""
import math
import operator
import sys
import warnings

import numpy as np

from .. import _library as l
from .. import _remember

MODES = {"reflect": "reflect", "grid-mirror": "reflect", "constant": "constant", "grid-constant": "constant",
         "nearest": "nearest", "mirror": "mirror", "wrap": "wrap", "grid-wrap": "wrap"}


def warn(message):
    """Warns whoever called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("fovea."):
        level, frame = level + 1, frame.f_back
    _remember.not_all()
    warnings.warn(message, stacklevel=level)


def per_axis(value, ndim):
    """A list with a value for each axis, of one value or a list."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * ndim
    value = list(value)
    if len(value) != ndim:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return value


def chosen_axes(axes, ndim):
    """The axes that a filter works along, as numbers from 0."""
    if axes is None:
        return tuple(range(ndim))
    found = []
    for axis in [axes] if np.isscalar(axes) else axes:
        axis = operator.index(axis)
        if not -ndim <= axis < ndim:
            raise ValueError(f"specified axis: {axis} is out of range")
        found.append(axis % ndim)
    if len(set(found)) != len(found):
        raise ValueError("axes must be unique")
    return tuple(found)


def axis_number(axis, ndim):
    """One axis as a number from 0."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.AxisError(axis, ndim)
    return axis % ndim


def spread(values, axes, ndim, rest):
    """Values of some axes as a list with one of every axis."""
    found = [rest] * ndim
    for axis, value in zip(axes, per_axis(values, len(axes))):
        found[axis] = value
    return found


def widened(box, axes, ndim):
    """A box of some axes as one of all; its own axes come in the order of the array's, whatever the order of the given ones."""
    return box.reshape(spread(box.shape, sorted(axes), ndim, 1))


def mode_of(mode):
    """The library's name of a mode."""
    if mode not in MODES:
        raise RuntimeError(f"boundary mode not supported: {mode!r}; there are {', '.join(MODES)}")
    return MODES[mode]


def one_mode(mode):
    """Refuses a list of modes where the axes are not worked along one after the other."""
    if not isinstance(mode, str) and np.iterable(mode):
        raise RuntimeError("A sequence of modes is not supported here: all axes are seen at once")


def image_of(value):
    """What a caller gave as an array, in a type that the library has."""
    array = np.asarray(value)
    if array.dtype.newbyteorder("=").name not in l.DTYPES:
        raise RuntimeError(f"data type not supported: {array.dtype}")
    return array


def supported(array):
    """The array in native byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def output_of(output, array, shape=None, complex_output=False):
    """The array to fill: a new one of the input's or a given type, or the caller's own."""
    shape = array.shape if shape is None else tuple(shape)
    if output is None:
        dtype = array.dtype if not complex_output else np.promote_types(array.dtype, np.complex64)
        return np.zeros(shape, dtype.newbyteorder("="))
    if isinstance(output, (type, np.dtype)):
        dtype = np.dtype(output)
        if complex_output and dtype.kind != "c":
            warn("promoting specified output dtype to complex")
            dtype = np.promote_types(dtype, np.complex64)
        return np.zeros(shape, dtype)
    if isinstance(output, str):
        try:
            dtype = np.dtype(output)
        except TypeError:
            raise RuntimeError(f"output = {output!r} names no element type") from None
        if complex_output and dtype.kind != "c":
            raise RuntimeError("output must have complex dtype")
        return np.zeros(shape, dtype)
    if not isinstance(output, np.ndarray):
        raise RuntimeError(f"output must be an array or an element type, not {type(output).__name__}")
    if output.shape != shape:
        raise RuntimeError(f"output shape not correct: it is {output.shape}, and {shape} is needed")
    if complex_output and output.dtype.kind != "c":
        raise RuntimeError("output must have complex dtype")
    if not output.flags.writeable:
        raise ValueError("output array is read-only")
    return output


def fill(output, values):
    """Puts values into the output; fractions are cut off and whole numbers wrap around, as a C cast does."""
    _remember.filled(output, values, fill)
    if output.dtype.kind in "biu" and values.dtype.kind == "f":
        values = values.astype(np.int64) if output.dtype != np.uint64 else values.astype(np.uint64)
    output[...] = values.real if values.dtype.kind == "c" and output.dtype.kind != "c" else values
    return output


def handed(given, output, values):
    """The values themselves, if the caller gave no output and they lie as it would; else the filled output."""
    own = not isinstance(given, np.ndarray) and values.dtype == output.dtype and values.flags.c_contiguous
    return values if own else fill(output, values)


def places(n, before, after, mode):
    """Indices into an axis of n for the places from -before to n + after; -1 stands for what is constant."""
    i = np.arange(-before, n + after)
    return np.where((i < 0) | (i >= n), -1, i) if mode == "constant" else folded(i, n, mode)


def folded(i, n, mode):
    """Indices brought into an axis of n, as a mode other than constant says."""
    if mode == "nearest":
        return np.clip(i, 0, n - 1)
    if mode == "wrap":
        return i % n
    if mode == "reflect":
        i = i % (2 * n)
        return np.minimum(i, 2 * n - 1 - i)
    if mode == "mirror":
        if n == 1:
            return np.zeros_like(i)
        i = i % (2 * n - 2)
        return np.minimum(i, 2 * n - 2 - i)
    raise ValueError(f"no mode {mode!r}")


def padded(array, before, after, modes, cval=0):
    """The array with what lies around it."""
    for axis, (low, high, mode) in enumerate(zip(before, after, modes)):
        if low == 0 and high == 0:
            continue
        if mode == "constant":
            shape = list(array.shape)
            shape[axis] += low + high
            larger = np.full(shape, cval, array.dtype)
            larger[(slice(None),) * axis + (slice(low, low + array.shape[axis]),)] = array
            array = larger
        else:
            array = np.take(array, places(array.shape[axis], low, high, mode), axis)
    return array


def along(array, axis):
    """The array with one axis before the given one and one behind it, where there are any, so that the library can work along
    any axis of any number of them; and the new number of the axis."""
    array = np.ascontiguousarray(array)
    before, behind = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1:])
    shape = [n for n in (before, array.shape[axis], behind) if n != 1] or [1]
    if array.shape[axis] == 1:
        return array.reshape(before, 1, behind), 1
    return array.reshape(shape), int(before != 1)
