"""Morphology of grey images, with the signatures of scipy.ndimage."""
import operator

import numpy as np

from . import _support as s
from .boxes import maximum_filter, minimum_filter, windows

__all__ = ["black_tophat", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "morphological_gradient",
           "morphological_laplace", "white_tophat"]


def _sloped(input, footprint, structure, output, mode, cval, origin, largest, axes):
    """The extreme of what lies under a structure that is not flat: the values minus it, or plus it."""
    array = s.image_of(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    structure = np.asarray(structure, np.float64)
    axes = s.chosen_axes(axes, array.ndim)
    if structure.ndim != len(axes):
        raise RuntimeError("structure array has incorrect shape")
    if structure.size < 1:
        raise RuntimeError("structure must not be empty")
    footprint = np.ones(structure.shape, bool) if footprint is None else np.asarray(footprint, bool)
    if footprint.shape != structure.shape:
        raise RuntimeError("footprint and structure must have equal shapes")
    s.one_mode(mode)
    origins = s.spread([operator.index(o) for o in s.per_axis(origin, len(axes))], axes, array.ndim, 0)
    order, shape = np.argsort(axes), [1] * array.ndim
    for axis in axes:
        shape[axis] = structure.shape[axes.index(axis)]
    structure, footprint = (v.transpose(order).reshape(shape) for v in (structure, footprint))
    for n, o in zip(shape, origins):
        if not -(n // 2) <= o <= (n - 1) // 2:
            raise ValueError("invalid origin")
    output = s.output_of(output, array)
    found, better = None, np.maximum if largest else np.minimum
    for view, height in zip(windows(array.astype(np.float64), footprint, [s.mode_of(mode)] * array.ndim, cval, origins),
                            structure[footprint]):
        moved = view + height if largest else view - height
        found = moved if found is None else better(found, moved, found)
    return s.fill(output, found)


def grey_erosion(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The smallest value under a footprint, or of the values minus a structure."""
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    if structure is not None:
        return _sloped(input, footprint, structure, output, mode, cval, origin, False, axes)
    return minimum_filter(input, size, footprint, output, mode, cval, origin, axes=axes)


def grey_dilation(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                  axes=None):
    """The largest value under a mirrored footprint, or of the values plus a structure."""
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    ndim = len(s.chosen_axes(axes, np.ndim(input)))
    mirror = (slice(None, None, -1),)
    if structure is not None:
        structure = np.asarray(structure)
        structure = structure[mirror * structure.ndim]
    if footprint is not None:
        footprint = np.asarray(footprint)
        footprint = footprint[mirror * footprint.ndim]
    shape = footprint.shape if footprint is not None else structure.shape if structure is not None else s.per_axis(size, ndim)
    origins = [-o - (n % 2 == 0) for o, n in zip(s.per_axis(origin, ndim), shape)]
    if structure is not None:
        return _sloped(input, footprint, structure, output, mode, cval, origins, True, axes)
    return maximum_filter(input, size, footprint, output, mode, cval, origins, axes=axes)


def grey_opening(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """An erosion, then a dilation."""
    _told_twice(size, footprint)
    size = None if footprint is not None else size
    eroded = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_dilation(eroded, size, footprint, structure, output, mode, cval, origin, axes=axes)


def grey_closing(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """A dilation, then an erosion."""
    _told_twice(size, footprint)
    size = None if footprint is not None else size
    grown = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_erosion(grown, size, footprint, structure, output, mode, cval, origin, axes=axes)


def _told_twice(size, footprint):
    if size is not None and footprint is not None:
        s.warn("ignoring size because footprint is set")


def _put(output, array, values):
    return s.fill(s.output_of(output, array), values) if output is not None else values


def morphological_gradient(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                           axes=None):
    """The dilation minus the erosion."""
    grown = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    eroded = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return _put(output, np.asarray(input), grown - eroded)


def morphological_laplace(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                          axes=None):
    """The dilation plus the erosion minus twice the image."""
    array = np.asarray(input)
    total = grey_dilation(array, size, footprint, structure, None, mode, cval, origin, axes=axes)
    total = total + grey_erosion(array, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return _put(output, array, total - array - array)


def _difference(output, array, more, less):
    """Of masks, what differs."""
    return _put(output, array, np.bitwise_xor(more, less) if more.dtype == bool and less.dtype == bool else more - less)


def white_tophat(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The image minus its opening."""
    array = np.asarray(input)
    return _difference(output, array, array, grey_opening(array, size, footprint, structure, None, mode, cval, origin, axes=axes))


def black_tophat(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The closing of the image minus the image."""
    array = np.asarray(input)
    return _difference(output, array, grey_closing(array, size, footprint, structure, None, mode, cval, origin, axes=axes), array)
