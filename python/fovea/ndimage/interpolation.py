"""Images at other places than their voxels, with the signatures of scipy.ndimage.

Orders 0, 1 and 3 of up to three axes are operators of the library; the others are put together from its weighted sums."""
import math

import numpy as np

from .. import _eager
from .._remember import filled, remembered
from .._text import literal
from . import _splines
from . import _support as s

__all__ = ["affine_transform", "geometric_transform", "map_coordinates", "rotate", "shift", "spline_filter", "spline_filter1d",
           "zoom"]

_DIRECT = (0, 1, 3)


# ---------------------------------------------------------------- what all share

def _checked(input, order, mode):
    array = s.image_of(input)
    if not 0 <= order <= 5:
        raise RuntimeError("spline order not supported")
    if array.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    if mode not in _splines.BEYOND:
        raise RuntimeError(f"boundary mode not supported: {mode!r}")
    return array


def _rounded(output, values):
    """Puts values into the output; whole numbers are the nearest ones that their type has, truths are cut off."""
    filled(output, values, _rounded)
    if output.dtype.kind == "b" and values.dtype.kind == "f":
        values = np.trunc(values)
    elif output.dtype.kind in "iu" and values.dtype.kind == "f":
        limits = np.iinfo(output.dtype)
        with np.errstate(invalid="ignore"):
            values = np.trunc(values + np.where(values > 0, 0.5, -0.5))
            values = np.clip(values, float(limits.min), float(limits.max))
        if output.dtype.itemsize == 8:
            high = values >= float(np.iinfo(output.dtype).max)
            found = np.where(high, 0, values).astype(output.dtype)
            found[high] = np.iinfo(output.dtype).max
            values = found
    output[...] = values
    return output


def _made(array, given, output, cval, function):
    """Calls a function of a real image, the type that it is computed in and a constant, for each part of a complex one; gives the
    values in the output that the caller gave, or in an array of their own."""
    array = s.supported(array)
    if array.dtype.kind == "c":
        found = sum(one * function(np.ascontiguousarray(part, np.float64), np.float64, float(c))
                    for part, c, one in ((array.real, complex(cval).real, 1), (array.imag, complex(cval).imag, 1j)))
        output[...] = found
        return output
    if isinstance(cval, (complex, np.complexfloating)):
        cval = cval.real
    dtype = np.float32 if array.dtype == np.float32 and output.dtype == np.float32 else np.float64
    values = function(np.ascontiguousarray(array), dtype, float(cval))
    own = not isinstance(given, np.ndarray) and values.dtype == output.dtype and values.flags.c_contiguous
    return values if own else _rounded(output, values)


def _coefficients(array, order, mode, cval, prefilter):
    """An image ready to be evaluated, and the margin that it got."""
    if not prefilter or order < 2:
        return array.astype(np.float64, copy=False), 0
    array, margin = _splines.surrounded(array, mode, cval)
    for axis in range(array.ndim):
        array = _splines.coefficients_along(array, order, axis, mode)
    return array, margin


def _evaluated(array, coordinates, order, mode, cval, prefilter):
    """Values at any coordinates, for what no operator does."""
    coefficients, margin = _coefficients(array, order, mode, cval, prefilter)
    return _splines.evaluated(coefficients, coordinates + margin, order, mode, cval)


def _moved(array, dtype, matrix, offset, shape, order, mode, cval, prefilter, axes=None):
    """Values at matrix · o + offset for each o of a shape, computed in a type."""
    regular = np.linalg.det(matrix) != 0
    if axes is not None or (order in _DIRECT and array.ndim <= 3 and regular):
        given = f"matrix = {literal([float(v) for v in np.ravel(matrix)])}, offset = {literal([float(v) for v in offset])}"
        return _eager.run(f"affine({_eager.typed(array, dtype)}, {given}, output_shape = {literal([int(n) for n in shape])}, "
                          f'order = {order}, mode = "{mode}", cval = {cval!r}, '
                          f"prefilter = {literal(bool(prefilter))})", axes, a=array)
    grid = np.indices(shape).reshape(len(shape), -1).astype(np.float64)
    places = (matrix @ grid + np.asarray(offset, np.float64)[:, None]).reshape(-1, *shape)
    return _at(array, dtype, places, order, mode, cval, prefilter)


def _at(array, dtype, coordinates, order, mode, cval, prefilter):
    """Values at any coordinates, computed in a type, by the operator if it has the order."""
    array = array.astype(dtype, copy=False)
    if order in _DIRECT and array.ndim <= 3:
        return _warped(array, coordinates, order, mode, cval, prefilter).reshape(coordinates.shape[1:])
    return _evaluated(array, coordinates, order, mode, cval, prefilter)


# ---------------------------------------------------------------- coefficients

def spline_filter1d(input, order=3, axis=-1, output=np.float64, mode="mirror"):
    """The coefficients of the spline through the voxels along an axis."""
    array = s.image_of(input)
    if not 0 <= order <= 5:
        raise RuntimeError("spline order not supported")
    if mode not in _splines.BEYOND:
        raise RuntimeError(f"boundary mode not supported: {mode!r}")
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    if order in (0, 1) or array.size == 0 or array.ndim == 0:
        output[...] = array
        return output
    axis = s.axis_number(axis, array.ndim)

    def real(part):
        return _splines.coefficients_along(np.ascontiguousarray(part, np.float64), order, axis, mode)
    output[...] = real(array.real) + 1j * real(array.imag) if array.dtype.kind == "c" else real(array)
    return output


@remembered
def spline_filter(input, order=3, output=np.float64, mode="mirror"):
    """The coefficients of the spline through the voxels along all axes."""
    if order < 2 or order > 5:
        raise RuntimeError("spline order not supported")
    array = s.image_of(input)
    given, output = output, s.output_of(output, array, complex_output=array.dtype.kind == "c")
    if array.ndim == 0:
        output[...] = array
        return output
    if order == 3 and 1 <= array.ndim <= 3 and array.size and min(array.shape) > 1 and array.dtype.kind != "c" and \
            output.dtype == np.float64 and mode in _splines.BEYOND:
        return s.handed(given, output, _eager.call("spline_filter", s.supported(array), dtype=np.float64, mode=mode))
    for axis in range(array.ndim):
        spline_filter1d(array, order, axis, output=output, mode=mode)
        array = output
    return output


# ---------------------------------------------------------------- any places

def map_coordinates(input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """The image at coordinates: an axis of them, then any shape."""
    array, coordinates = _checked(input, order, mode), np.asarray(coordinates)
    if coordinates.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if coordinates.ndim < 2 and array.ndim > 0 and coordinates.shape[:1] != (array.ndim,) or coordinates.ndim < 1:
        raise RuntimeError("invalid shape for coordinate array")
    if coordinates.shape[0] != array.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    shape = coordinates.shape[1:]
    given, output = output, s.output_of(output, array, shape=shape, complex_output=array.dtype.kind == "c")
    if math.prod(shape) == 0:
        return output

    places = coordinates.astype(np.float64, copy=False)
    return _made(array, given, output, cval,
                 lambda part, dtype, constant: _at(part, dtype, places, order, mode, constant, prefilter))


def _warped(array, coordinates, order, mode, cval, prefilter):
    """By the operator warp, whose field tells how far each voxel of the result is from where its value comes from."""
    if coordinates.ndim - 1 == array.ndim:
        shape = coordinates.shape[1:]
    else:
        shape = (1,) * (array.ndim - 1) + (math.prod(coordinates.shape[1:]),)
    field = coordinates.reshape(array.ndim, *shape).astype(np.float64)
    field -= np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij")) if array.ndim > 1 else np.arange(shape[0])
    names = "zyx"[3 - array.ndim:]
    return _eager.run(f'warp(a, name_axes(f, "c {" ".join(names)}"), order = {order}, mode = "{mode}", cval = {cval!r}, '
                      f"prefilter = {literal(bool(prefilter))})", a=array, f=field)


def geometric_transform(input, mapping, output_shape=None, output=None, order=3, mode="constant", cval=0.0, prefilter=True,
                        extra_arguments=(), extra_keywords={}):
    """The image at the places that a function of yours tells for each voxel of the result."""
    array = _checked(input, order, mode)
    if not callable(mapping):
        raise RuntimeError("geometric_transform: the mapping must be a function of Python; compiled ones are not taken here")
    if output_shape is None:
        output_shape = output.shape if isinstance(output, np.ndarray) else array.shape
    shape = tuple(output_shape)
    output = s.output_of(output, array, shape=shape, complex_output=array.dtype.kind == "c")
    places = np.empty((array.ndim,) + shape)
    for index in np.ndindex(*shape):
        places[(slice(None),) + index] = mapping(index, *extra_arguments, **extra_keywords)
    return map_coordinates(array, places, output, order, mode, cval, prefilter)


# ---------------------------------------------------------------- matrices

@remembered
def affine_transform(input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode="constant", cval=0.0,
                     prefilter=True):
    """The image at matrix · o + offset for each voxel o of the result."""
    array, matrix = _checked(input, order, mode), np.asarray(matrix, dtype=np.float64)
    if output_shape is None:
        output_shape = output.shape if isinstance(output, np.ndarray) else array.shape
    shape = tuple(output_shape)
    given, output = output, s.output_of(output, array, shape=shape, complex_output=array.dtype.kind == "c")
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    n = array.ndim
    if matrix.ndim == 2 and matrix.shape[1] == n + 1 and matrix.shape[0] in (n, n + 1):
        if matrix.shape[0] == n + 1 and not np.allclose(matrix[n], [0] * n + [1]):
            raise ValueError(f"Expected homogeneous transformation matrix with shape {matrix.shape} for image shape "
                             f"{array.shape}, but bottom row was not equal to {[0] * n + [1]}")
        offset, matrix = matrix[:n, n], matrix[:n, :n]
    if matrix.shape[0] != n:
        raise RuntimeError("affine matrix has wrong number of rows")
    if matrix.ndim == 2 and matrix.shape[1] != output.ndim:
        raise RuntimeError("affine matrix has wrong number of columns")
    if matrix.ndim == 1:
        s.warn("The behavior of affine_transform with a 1-D array supplied for the matrix parameter has changed in SciPy 0.18.0.")
        matrix = np.diag(matrix)
    offset = np.asarray(s.per_axis(offset, n), dtype=np.float64)
    if output.size == 0:
        return output

    def real(part, dtype, constant):
        if matrix.shape[0] != matrix.shape[1]:
            grid = np.indices(shape).reshape(len(shape), -1)
            places = (matrix @ grid + offset[:, None]).reshape(n, *shape)
            return _at(part, dtype, places, order, mode, constant, prefilter)
        return _moved(part, dtype, matrix, offset, shape, order, mode, constant, prefilter)
    return _made(array, given, output, cval, real)


@remembered
def shift(input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """The image moved by whole voxels or parts of one."""
    array = _checked(input, order, mode)
    given, output = output, s.output_of(output, array, complex_output=array.dtype.kind == "c")
    offset = [-float(v) for v in s.per_axis(shift, array.ndim)]
    if array.size == 0:
        return output
    eye, shape = np.eye(array.ndim), array.shape
    return _made(array, given, output, cval,
                 lambda part, dtype, constant: _moved(part, dtype, eye, offset, shape, order, mode, constant, prefilter))


@remembered
def zoom(input, zoom, output=None, order=3, mode="constant", cval=0.0, prefilter=True, *, grid_mode=False):
    """The image enlarged or reduced by factors."""
    array = _checked(input, order, mode)
    factors = [float(v) for v in s.per_axis(zoom, array.ndim)]
    shape = tuple(int(round(n * f)) for n, f in zip(array.shape, factors))
    given, output = output, s.output_of(output, array, shape=shape, complex_output=array.dtype.kind == "c")
    if grid_mode and {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode):
        s.warn(f"It is recommended to use mode = {'grid-' + mode} instead of {mode} when grid_mode is True.")
    if min(shape, default=0) == 0 or array.size == 0:
        return output
    if grid_mode:
        steps = [n / m for n, m in zip(array.shape, shape)]
        offset = [0.5 * step - 0.5 for step in steps]
    else:
        steps = [(n - 1) / (m - 1) if m > 1 else 1.0 for n, m in zip(array.shape, shape)]
        offset = [0.0] * array.ndim
    return _made(array, given, output, cval,
                 lambda part, dtype, constant: _moved(part, dtype, np.diag(steps), offset, shape, order, mode, constant,
                                                      prefilter))


@remembered
def rotate(input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """The image turned in the plane of two axes."""
    array = _checked(input, order, mode)
    if array.ndim < 2:
        raise ValueError("input array should be at least 2D")
    axes = list(axes)
    if len(axes) != 2:
        raise ValueError("axes should contain exactly two values")
    if not all(float(axis).is_integer() for axis in axes):
        raise ValueError("axes should contain only integer values")
    axes = [int(axis) + array.ndim if axis < 0 else int(axis) for axis in axes]
    if min(axes) < 0 or max(axes) >= array.ndim:
        raise ValueError("invalid rotation plane specified")
    low, high = sorted(axes)
    cosine, sine = _turn(angle)
    matrix = np.array([[cosine, sine], [-sine, cosine]])
    plane = np.asarray(array.shape)[[low, high]]
    wide = plane
    if reshape:
        corners = matrix @ [[0, 0, plane[0], plane[0]], [0, plane[1], 0, plane[1]]]
        wide = (np.ptp(corners, axis=1) + 0.5).astype(int)
    offset = (plane - 1) / 2 - matrix @ ((wide - 1) / 2)
    shape = list(array.shape)
    shape[low], shape[high] = wide
    given, output = output, s.output_of(output, array, shape=shape, complex_output=array.dtype.kind == "c")
    if output.size == 0:
        return output

    def real(part, dtype, constant):
        if array.ndim == 2 and order in _DIRECT:
            return _moved(part, dtype, matrix, offset, tuple(wide), order, mode, constant, prefilter)
        stack = np.ascontiguousarray(np.moveaxis(part, (low, high), (-2, -1))).reshape(-1, *plane)
        if order in _DIRECT and (prefilter or order != 3):
            turned = _moved(stack, dtype, matrix, offset, wide, order, mode, constant, prefilter, axes="c y x")
        else:
            turned = np.stack([_moved(one, dtype, matrix, offset, tuple(wide), order, mode, constant, prefilter)
                               for one in stack])
        rest = [n for k, n in enumerate(array.shape) if k not in (low, high)]
        return np.moveaxis(turned.reshape(*rest, *wide), (-2, -1), (low, high))
    return _made(array, given, output, cval, real)


def _turn(angle):
    """Cosine and sine of degrees, exact where they are 0, 1 and one half."""
    quarter, rest = divmod(float(angle), 90.0)
    cosine = 0.5 if rest == 60 else math.cos(math.radians(rest))
    sine = 0.5 if rest == 30 else math.sin(math.radians(rest))
    return ((cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine))[int(quarter) % 4]
