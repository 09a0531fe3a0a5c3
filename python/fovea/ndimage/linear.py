"""Weighted sums: correlations, Gaussians and slopes, with the signatures of scipy.ndimage."""
import operator

import numpy as np

from .. import _eager
from .._remember import remembered
from . import _support as s

__all__ = ["convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
           "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude", "generic_laplace", "laplace",
           "prewitt", "sobel"]


# ---------------------------------------------------------------- weighted sums

def computed_type(array, output, weights=None):
    """The type in which sums are computed: single precision where both ends have no more, else double."""
    kinds = {array.dtype.name, output.dtype.name}
    if kinds <= {"float32", "complex64", "bool", "uint8", "int8", "uint16", "int16"}:
        if output.dtype.kind in "fc":
            return np.float32
        exact = weights is not None and bool((weights == np.rint(weights)).all()) and \
            float(np.abs(weights).sum()) * (256 if array.dtype.itemsize == 1 else 65536) < 2**24
        if exact and array.dtype.kind in "biu":
            return np.float32
    return np.float64


def centred(weights, centres):
    """The weights in the middle of an odd box, mirrored as the library's convolve wants them."""
    reach = [max(c, n - 1 - c) for c, n in zip(centres, weights.shape)]
    box = np.zeros([2 * r + 1 for r in reach])
    box[tuple(slice(r - c, r - c + n) for r, c, n in zip(reach, centres, weights.shape))] = weights
    return box[(slice(None, None, -1),) * weights.ndim]


def summed(array, weights, modes, cval, origins, dtype):
    """Σ weights[j] · array[i + j - centre], along all axes."""
    centres = [n // 2 + o for n, o in zip(weights.shape, origins)]
    wide = [k for k, (n, c) in enumerate(zip(weights.shape, centres)) if n > 1 or c]
    if not wide:
        return array.astype(dtype, copy=False) * dtype(weights.ravel()[0])
    if len(wide) == 1:
        axis = wide[0]
        lines, at = s.along(array, axis)
        shape = [1] * lines.ndim
        shape[at] = -1
        kernel = centred(weights.reshape(-1), [centres[axis]]).reshape(shape)
        return _convolved(lines, kernel, modes[axis], cval, dtype).reshape(array.shape)
    if len({modes[k] for k in wide}) > 1 or array.ndim > 3:
        before = [c if k in wide else 0 for k, c in enumerate(centres)]
        after = [n - 1 - c if k in wide else 0 for k, (n, c) in enumerate(zip(weights.shape, centres))]
        before, after = [max(b, 0) for b in before], [max(b, 0) for b in after]
        larger = s.padded(array, before, after, modes, cval)
        inside = tuple(slice(b, b + n) for b, n in zip(before, array.shape))
        if array.ndim <= 3:
            return _convolved(larger, centred(weights, centres), "nearest", 0, dtype)[inside]
        return _many_axes(larger.astype(dtype, copy=False), weights, centres, before, array.shape)
    return _convolved(array, centred(weights, centres), modes[wide[0]], cval, dtype)


def _many_axes(larger, weights, centres, before, shape):
    """More than three axes: a sum over those in front, of filters along the last three."""
    front = weights.ndim - 3
    inside = tuple(slice(b, b + n) for b, n in zip(before[front:], shape[front:]))
    total = np.zeros(shape, larger.dtype)
    for index in np.ndindex(weights.shape[:front]):
        part = larger[tuple(slice(b + j - c, b + j - c + n)
                            for b, j, c, n in zip(before, index, centres, shape))].reshape(-1, *larger.shape[front:])
        for k, block in enumerate(part):
            total.reshape(-1, *shape[front:])[k] += _convolved(block, centred(weights[index], centres[front:]),
                                                               "nearest", 0, larger.dtype)[inside]
    return total


def _convolved(array, kernel, mode, cval, dtype):
    if not kernel.any():
        return np.zeros(array.shape, dtype)
    more, a = f'mode = "{mode}", cval = {float(cval)!r}', _eager.typed(array, dtype)
    if kernel.size <= _LISTED:
        return _eager.run(f"convolve({a}, kernel = {kernel.ravel().tolist()}, shape = {list(kernel.shape)}, {more})", a=array)
    return _eager.run(f"convolve({a}, w, {more})", a=array, w=np.ascontiguousarray(kernel))


_LISTED = 64  # weights that go into the text, which takes no more


def parts(function, array, weights, cval):
    """A linear function of real parts, for complex arrays and weights."""
    cval = complex(cval)
    total = 0
    for a, c, one in ((array.real, cval.real, 1), (array.imag, cval.imag, 1j)):
        if one == 1j and array.dtype.kind != "c" and not c:
            continue
        a = np.ascontiguousarray(a)
        total = total + one * function(a, np.ascontiguousarray(weights.real), c)
        if weights.dtype.kind == "c":
            total = total + 1j * one * function(a, np.ascontiguousarray(weights.imag), c)
    return total


def _weighted(array, weights, modes, cval, origins, given, output):
    """A weighted sum in the output that the caller gave or in an array of its own; the origins are those of a correlation."""
    for n, origin in zip(weights.shape, origins):
        if not -(n // 2) <= origin <= (n - 1) // 2:
            raise ValueError("invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= "
                             "(weights.shape[k]-1) // 2")
    if array.size == 0:
        return output
    usable = s.supported(array)
    if output.dtype.kind == "c":
        dtype = np.float32 if output.dtype.name == "complex64" and weights.dtype.name == "complex64" else np.float64
        found = parts(lambda a, w, c: summed(a, w, modes, c, origins, dtype), usable, weights, cval)
    else:
        found = summed(usable, weights, modes, cval, origins, computed_type(array, output, weights))
    return s.handed(given, output, found)


def _weights_of(array, weights, mirror, cval):
    weights = np.asarray(weights)
    if isinstance(cval, (complex, np.complexfloating)) and array.dtype.kind != "c":
        raise ValueError("Cannot provide a complex-valued cval when the input is real.")
    is_complex = array.dtype.kind == "c" or weights.dtype.kind == "c"
    weights = weights.astype(np.complex128 if weights.dtype.kind == "c" else np.float64)
    return weights if mirror else weights.conj(), is_complex


def _along(array, weights, axis, output, mode, cval, origin, mirror):
    array = s.image_of(array)
    weights, is_complex = _weights_of(array, weights, mirror, cval)
    if weights.ndim != 1 or weights.shape[0] < 1:
        raise RuntimeError("no filter weights given")
    given, output = output, s.output_of(output, array, complex_output=is_complex)
    axis = s.axis_number(axis, array.ndim)
    origin = operator.index(origin)
    if mirror:
        weights, origin = weights[::-1], -origin - (len(weights) % 2 == 0)
    shape, origins = [1] * array.ndim, [0] * array.ndim
    shape[axis], origins[axis] = len(weights), origin
    return _weighted(array, weights.reshape(shape), [s.mode_of(mode)] * array.ndim, cval, origins, given, output)


@remembered
def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Weighted sums along an axis."""
    return _along(input, weights, axis, output, mode, cval, origin, False)


@remembered
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Weighted sums along an axis, with mirrored weights."""
    return _along(input, weights, axis, output, mode, cval, origin, True)


def _box_of_weights(array, weights, output, mode, cval, origin, axes, mirror):
    array = s.image_of(array)
    weights, is_complex = _weights_of(array, weights, mirror, cval)
    axes = s.chosen_axes(axes, array.ndim)
    if weights.ndim != len(axes):
        raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({len(axes)})")
    if weights.size == 0:
        raise RuntimeError("filter weights array has incorrect shape.")
    s.one_mode(mode)
    origins = s.spread([operator.index(o) for o in s.per_axis(origin, len(axes))], axes, array.ndim, 0)
    weights = s.widened(weights, axes, array.ndim)
    if mirror:
        weights = weights[(slice(None, None, -1),) * weights.ndim]
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, weights.shape)]
    modes = [s.mode_of(m) for m in s.spread(mode, axes, array.ndim, "reflect")]
    given, output = output, s.output_of(output, array, complex_output=is_complex)
    if array.ndim == 0:
        return s.fill(output, array * weights)
    return _weighted(array, weights, modes, cval, origins, given, output)


@remembered
def correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Weighted sums over a box."""
    return _box_of_weights(input, weights, output, mode, cval, origin, axes, False)


@remembered
def convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Weighted sums over a box, with mirrored weights."""
    return _box_of_weights(input, weights, output, mode, cval, origin, axes, True)


# ---------------------------------------------------------------- Gaussians

def _bell(sigma, order, radius):
    """Weights of a Gaussian's derivative. Each derivative multiplies by a polynomial in x; they follow from p' + p · (-x/σ²)."""
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / (sigma * sigma) * x**2)
    weights /= weights.sum()
    polynomial = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        polynomial = polynomial.deriv() + polynomial * np.polynomial.Polynomial([0, -1 / (sigma * sigma)])
    return weights * polynomial(x)


def _radius(sigma, truncate, radius):
    if radius is not None:
        if not (isinstance(radius, (int, np.integer)) and radius >= 0):
            raise ValueError("Radius must be a nonnegative integer.")
        return int(radius)
    return int(float(truncate) * float(sigma) + 0.5)


def _common_cut(reaches):
    """A number of standard deviations that gives all of these radii, which the operator can be told; None if there is none."""
    low = max((radius - 0.5) / sigma for sigma, radius in reaches)
    high = min((radius + 0.5) / sigma for sigma, radius in reaches)
    cut = max((low + high) / 2, 0.0)
    fits = cut <= 1000 and all(round(cut * sigma) == radius for sigma, radius in reaches)
    return cut if fits and all(sigma <= 10000 for sigma, _ in reaches) else None


@remembered
def gaussian_filter1d(input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None):
    """A Gaussian, or one of its derivatives, along an axis."""
    if not isinstance(order, (int, np.integer)) or order < 0:
        raise ValueError("order must be non-negative")
    array = s.image_of(input)
    found, one_mode = s.output_of(output, array, complex_output=array.dtype.kind == "c"), s.mode_of(mode)
    reach = _radius(sigma, truncate, radius)
    cut = _common_cut([(float(sigma), reach)]) if sigma > 1e-15 else None
    if cut is not None and array.dtype.kind == "f" and found.dtype.kind == "f" and array.size and array.ndim and order <= 12:
        lines, at = s.along(s.supported(array), s.axis_number(axis, array.ndim))
        dtype = computed_type(array, found)
        values = _eager.call("gaussian", lines, dtype=dtype,
                             sigma=[float(sigma) if k == at else 0.0 for k in range(lines.ndim)],
                             order=[int(order) if k == at else 0 for k in range(lines.ndim)], mode=one_mode, cval=float(cval),
                             truncate=cut)
        return s.handed(output, found, values.reshape(array.shape))
    weights = _bell(float(sigma), int(order), _radius(sigma, truncate, radius))[::-1]
    return correlate1d(input, weights, axis, output, mode, cval, 0)


def direct(array, output, modes):
    """Whether one operator does all axes at once: real numbers that stay such, one mode, no more than three axes."""
    return array.dtype.kind == "f" and output.dtype.kind == "f" and 1 <= array.ndim <= 3 and array.size > 0 and \
        len(set(modes)) == 1


def _operated(name, array, given, output, **parameters):
    """What an operator of the library gives, in the output that the caller gave or in an array of its own."""
    array = s.supported(array)
    return s.handed(given, output, _eager.call(name, array, dtype=computed_type(array, output), **parameters))


@remembered
def gaussian_filter(input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None, axes=None):
    """A Gaussian, or its derivatives, along all axes or some."""
    array, given = s.image_of(input), output
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    axes = s.chosen_axes(axes, array.ndim)
    orders, sigmas, modes, radii = (s.per_axis(v, len(axes)) for v in (order, sigma, mode, radius))
    modes = [s.mode_of(m) for m in modes]
    jobs = [job for job in zip(axes, sigmas, orders, modes, radii) if job[1] > 1e-15]
    if not jobs:
        return s.fill(output, array)
    cut = _common_cut([(float(g), _radius(g, truncate, r)) for _, g, _, _, r in jobs])
    if cut is not None and direct(array, output, [m for *_, m, _ in jobs]) and max(o for _, _, o, _, _ in jobs) <= 12:
        numbers = [j[0] for j in jobs]
        return _operated("gaussian", array, given, output, sigma=s.spread([float(j[1]) for j in jobs], numbers, array.ndim, 0.0),
                         order=s.spread([int(j[2]) for j in jobs], numbers, array.ndim, 0),
                         mode=jobs[0][3], cval=float(cval), truncate=cut)
    for axis, one_sigma, one_order, one_mode, one_radius in jobs:
        gaussian_filter1d(array, one_sigma, axis, one_order, output, one_mode, cval, truncate, radius=one_radius)
        array = output
    return output


# ---------------------------------------------------------------- slopes

def _slope(input, axis, output, mode, cval, side):
    array = s.image_of(input)
    axis = s.axis_number(axis, array.ndim)
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    modes = s.per_axis(mode, array.ndim)
    correlate1d(array, [-1, 0, 1], axis, output, modes[axis], cval, 0)
    for other in range(array.ndim):
        if other != axis:
            correlate1d(output, side, other, output, modes[other], cval, 0)
    return output


@remembered
def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Slope along an axis, smoothed with 1 1 1 along the others."""
    return _slope_or_operator("prewitt", input, axis, output, mode, cval, [1, 1, 1])


@remembered
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Slope along an axis, smoothed with 1 2 1 along the others."""
    return _slope_or_operator("sobel", input, axis, output, mode, cval, [1, 2, 1])


def _slope_or_operator(name, input, axis, output, mode, cval, side):
    array, given = s.image_of(input), output
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    modes = [s.mode_of(m) for m in s.per_axis(mode, array.ndim)]
    if direct(array, output, modes) and modes[0] != "constant":
        return _operated(name, array, given, output, axis=s.axis_number(axis, array.ndim), mode=modes[0])
    return _slope(array, axis, output, mode, cval, side)


def _applied(function, array, axis, output, mode, cval, extra_arguments, extra_keywords):
    function(array, axis, output, mode, cval, *extra_arguments, **extra_keywords)


def generic_laplace(input, derivative2, output=None, mode="reflect", cval=0.0, extra_arguments=(), extra_keywords=None, *,
                    axes=None):
    """The sum over the axes of a second derivative that you give."""
    array, extra_keywords = s.image_of(input), extra_keywords or {}
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    axes = s.chosen_axes(axes, array.ndim)
    if not axes:
        return s.fill(output, array)
    modes = s.per_axis(mode, len(axes))
    _applied(derivative2, array, axes[0], output, modes[0], cval, extra_arguments, extra_keywords)
    for axis, one_mode in zip(axes[1:], modes[1:]):
        part = np.zeros(array.shape, output.dtype)
        _applied(derivative2, array, axis, part, one_mode, cval, extra_arguments, extra_keywords)
        output += part
    return output


@remembered
def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None):
    """The sum of the second differences along the axes."""
    array = s.image_of(input)
    if axes is None:
        found = s.output_of(output, array, complex_output=array.dtype.kind == "c")
        modes = [s.mode_of(m) for m in s.per_axis(mode, array.ndim)]
        if direct(array, found, modes):
            return _operated("laplace", array, output, found, mode=modes[0], cval=float(cval))
        output = found

    def second(part, axis, out, one_mode, value):
        return correlate1d(part, [1, -2, 1], axis, out, one_mode, value, 0)
    return generic_laplace(array, second, output, mode, cval, axes=axes)


@remembered
def gaussian_laplace(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs):
    """The sum of the second derivatives of the smoothed image."""
    return _of_gaussian("gaussian_laplace", generic_laplace, 2, input, sigma, output, mode, cval, axes, kwargs)


def _of_gaussian(operator, generic, order, input, sigma, output, mode, cval, axes, kwargs):
    """Derivatives of this order of the smoothed image, put together by the operator if it can, else by the generic function."""
    array = s.image_of(input)
    axes = s.chosen_axes(axes, array.ndim)
    sigmas = s.spread(sigma, axes, array.ndim, 0.0)

    def derived(part, axis, out, one_mode, value, sigmas, **more):
        return gaussian_filter(part, sigmas, [order if k == axis else 0 for k in range(part.ndim)], out, one_mode, value, **more)
    found = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    modes = [s.mode_of(m) for m in s.per_axis(mode, len(axes))]
    if direct(array, found, modes) and set(kwargs) <= {"truncate"} and min(sigmas) > 1e-15 and len(axes) == array.ndim:
        return _operated(operator, array, output, found, sigma=[float(g) for g in sigmas], mode=modes[0], cval=float(cval),
                         truncate=float(kwargs.get("truncate", 4.0)))
    return generic(array, derived, found, mode, cval, (sigmas,), kwargs, axes=axes)


def generic_gradient_magnitude(input, derivative, output=None, mode="reflect", cval=0.0, extra_arguments=(), extra_keywords=None,
                               *, axes=None):
    """The length of the gradient, from a derivative that you give."""
    array, extra_keywords = s.image_of(input), extra_keywords or {}
    output = s.output_of(output, array, complex_output=array.dtype.kind == "c")
    axes = s.chosen_axes(axes, array.ndim)
    if not axes:
        return s.fill(output, array)
    modes = s.per_axis(mode, len(axes))
    _applied(derivative, array, axes[0], output, modes[0], cval, extra_arguments, extra_keywords)
    np.multiply(output, output, output)
    for axis, one_mode in zip(axes[1:], modes[1:]):
        part = np.zeros(array.shape, output.dtype)
        _applied(derivative, array, axis, part, one_mode, cval, extra_arguments, extra_keywords)
        np.multiply(part, part, part)
        output += part
    return np.sqrt(output, output, casting="unsafe")


@remembered
def gaussian_gradient_magnitude(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs):
    """The length of the gradient of the smoothed image."""
    return _of_gaussian("gaussian_gradient_magnitude", generic_gradient_magnitude, 1, input, sigma, output, mode, cval, axes,
                        kwargs)
