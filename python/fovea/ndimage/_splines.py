"""Splines of any order from 0 to 5: the orders that no operator has (2, 4, 5), and more than three axes.

Coefficients come from the library's weighted sums: the inverse of a B-spline is a product of two-sided exponentials, one for each
pole (Unser, Splines: a perfect fit for signal and image processing, IEEE Signal Processing Magazine 16 (6), 1999)."""
import math

import numpy as np

from .. import _eager
from . import _support as s
from .linear import summed

POLES = {2: (math.sqrt(8) - 3,), 3: (math.sqrt(3) - 2,),
         4: (math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19, math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19),
         5: (math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
             math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5)}
BEYOND = {"reflect": "reflect", "nearest": "reflect", "grid-mirror": "reflect", "mirror": "mirror", "wrap": "mirror",
          "constant": "mirror", "grid-constant": "mirror", "grid-wrap": "wrap"}
MARGIN = 12  # voxels around an image whose mode has no closed form of the prefilter


def coefficients_along(array, order, axis, mode):
    """The coefficients of the spline through the values along an axis, in doubles."""
    array = array.astype(np.float64, copy=False)
    if array.shape[axis] == 1:
        return array
    if order == 3:
        lines, at = s.along(array, axis)
        names = "zyx"[3 - lines.ndim:]
        return _eager.call("spline_filter", lines, mode=mode, axes=names[at]).reshape(array.shape)
    for pole in POLES[order]:
        reach = math.ceil(-55 * math.log(2) / math.log(-pole))
        gain = (1 - pole) * (1 - 1 / pole) * pole / (pole * pole - 1)
        weights = gain * np.array([pole ** abs(k) for k in range(-reach, reach + 1)])
        shape, modes = [1] * array.ndim, [BEYOND[mode]] * array.ndim
        shape[axis] = len(weights)
        array = summed(array, weights.reshape(shape), modes, 0.0, [0] * array.ndim, np.float64)
    return array


def surrounded(array, mode, cval):
    """The array with a margin, if its mode needs one, and the margin."""
    if mode not in ("nearest", "grid-constant"):
        return array, 0
    around = [MARGIN] * array.ndim
    return s.padded(array, around, around, ["nearest" if mode == "nearest" else "constant"] * array.ndim, cval), MARGIN


def _inside(x, n, mode):
    """Coordinates brought into an axis of n voxels, with scipy's meaning of the modes; nan where the constant is the answer."""
    if mode == "constant":
        return np.where((x < 0) | (x > n - 1), np.nan, x)
    if mode == "grid-constant":
        return x
    if mode == "nearest" or n == 1:
        return np.clip(x, 0, n - 1)
    if mode == "mirror":
        x = np.abs(np.fmod(x, 2 * n - 2))
        return np.where(x > n - 1, 2 * n - 2 - x, x)
    if mode in ("reflect", "grid-mirror"):
        low = np.fmod(x, 2 * n)
        low = np.where(low < -n, low + 2 * n, -np.minimum(low, -1e-15) - 1)
        high = np.fmod(x, 2 * n)
        high = np.where(high >= n, 2 * n - high - 1, high)
        return np.where(x < 0, low, np.where(x > n - 1, high, x))
    period = n if mode == "grid-wrap" else n - 1
    low = x + period * (np.trunc((-1 - x if mode == "grid-wrap" else -x) / period) + 1)
    return np.where(x < 0, low, np.where(x > n - 1, x - period * np.trunc(x / period), x))


def _weights(t, order):
    """The B-spline's values at t, t - 1 ... for each coordinate: a list of order + 1 arrays."""
    def spline(x):
        total = 0.0
        for k in range(order + 2):
            total = total + (-1) ** k * math.comb(order + 1, k) * np.maximum(x + (order + 1) / 2 - k, 0) ** order
        return total / math.factorial(order)
    return [spline(t - k) for k in range(order + 1)]


def evaluated(coefficients, coordinates, order, mode, cval):
    """The spline at coordinates: an array with an entry for each of them."""
    shape = coordinates.shape[1:]
    outside = np.zeros(shape, bool)
    places, parts = [], []
    for x, n in zip(coordinates, coefficients.shape):
        x = _inside(np.asarray(x, np.float64), n, mode)
        outside |= np.isnan(x)
        x = np.where(np.isnan(x), 0.0, x)
        first = np.floor(x if order % 2 else x + 0.5).astype(np.int64) - order // 2
        parts.append(_weights(x - first, order) if order else [np.ones(shape)])
        beyond = "constant" if mode == "grid-constant" else "nearest" if mode == "nearest" else BEYOND[mode]
        places.append([_folded(first + k, n, beyond) for k in range(order + 1)])
    total = np.zeros(shape, np.float64)
    for index in np.ndindex(*[order + 1] * len(places)):
        weight, where, held = 1.0, [], None
        for axis, k in enumerate(index):
            weight = weight * parts[axis][k]
            where.append(places[axis][k])
            if mode == "grid-constant":
                held = where[-1] >= 0 if held is None else held & (where[-1] >= 0)
        values = coefficients[tuple(where)]
        total += weight * (values if held is None else np.where(held, values, cval))
    return np.where(outside, cval, total)


def _folded(i, n, mode):
    """Indices brought into an axis; -1 for the constant."""
    if mode == "constant":
        return np.where((i < 0) | (i >= n), -1, i)
    return s.folded(i, n, mode)
