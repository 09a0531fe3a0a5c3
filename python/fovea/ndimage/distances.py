"""Distances to the background, with the signatures of scipy.ndimage."""
import math

import numpy as np

from .. import _eager
from .._remember import remembered
from . import _support as s
from .binary import binary_dilation, generate_binary_structure

__all__ = ["distance_transform_bf", "distance_transform_cdt", "distance_transform_edt"]


def _wanted(return_distances, return_indices, distances, indices, shape, dtype):
    """Checks what the caller wants and gave room for."""
    if not return_distances and not return_indices:
        raise RuntimeError("at least one of distances/indices must be specified")
    for name, room, wanted, need, kind in (("distances", distances, return_distances, shape, dtype),
                                           ("indices", indices, return_indices, (len(shape),) + shape, np.int32)):
        if room is None:
            continue
        if not wanted:
            raise RuntimeError(f"return_{name} must be True if {name} is supplied")
        if room.shape != need:
            raise RuntimeError(f"{name} has wrong shape: it is {room.shape}, and {need} is needed")
        if room.dtype.type != np.dtype(kind).type:
            raise RuntimeError(f"{name} must have dtype {np.dtype(kind).name}")


def _given_back(found, places, return_distances, return_indices, distances, indices):
    """What a caller gets: only what has no room of its own."""
    results = []
    for values, wanted, room in ((found, return_distances, distances), (places, return_indices, indices)):
        if not wanted:
            continue
        if room is None:
            results.append(values)
        else:
            room[...] = values
    return tuple(results) if len(results) > 1 else results[0] if results else None


def _straight(foreground, sampling):
    """Distances, from their exact squares."""
    more = "" if sampling is None else f", sampling = {sampling}"
    return _eager.run(f"sqrt(distance(a{more}, squared = true))", a=foreground)


def _nearest(foreground, sampling, reach):
    """Linear indices of the nearest background: axis after axis, the best of all offsets within reach."""
    places = np.arange(foreground.size).reshape(foreground.shape)
    best = np.where(foreground, np.inf, 0.0)
    for axis, step in enumerate(sampling):
        n = foreground.shape[axis]
        new, at = best.copy(), places.copy()
        for k in range(1, min(n - 1, int(reach / step) + 1) + 1):
            for here, there in ((slice(k, None), slice(None, -k)), (slice(None, -k), slice(k, None))):
                a, b = (slice(None),) * axis + (here,), (slice(None),) * axis + (there,)
                cost = best[b] + (k * step) ** 2
                closer = cost < new[a]
                new[a][closer] = cost[closer]
                at[a][closer] = places[b][closer]
        best, places = new, at
    return best, places


@remembered
def distance_transform_edt(input, sampling=None, return_distances=True, return_indices=False, distances=None, indices=None):
    """Exact Euclidean distances to the nearest background voxel, and where that is."""
    array = np.asarray(input)
    foreground = np.ascontiguousarray(array if array.dtype == bool else array != 0)  # of one axis at least
    _wanted(return_distances, return_indices, distances, indices, array.shape, np.float64)
    if sampling is not None:
        sampling = [float(v) for v in s.per_axis(sampling, foreground.ndim)]
    places = None
    if foreground.size == 0:
        found, places = np.zeros(array.shape), np.zeros(array.shape, np.int64)
    elif foreground.ndim > 3:
        squares, places = _nearest(foreground, sampling or [1.0] * foreground.ndim, math.inf if foreground.all() else 1e300)
        found = np.sqrt(squares)
    else:
        found = _straight(foreground, sampling)
        if return_indices and not foreground.all():
            _, places = _nearest(foreground, sampling or [1.0] * foreground.ndim, float(found.max()))
    where = _indices(places, foreground.shape, array) if return_indices else None
    return _given_back(found, where, return_distances, return_indices, distances, indices)


def _indices(places, shape, array):
    """Places in the flat image, None: each voxel's own, as an array of indices along each axis."""
    places = np.arange(array.size).reshape(shape) if places is None else places
    where = np.array(np.unravel_index(places, shape), np.int32)
    return where.reshape((array.ndim,) + array.shape) if array.ndim else where


# ---------------------------------------------------------------- steps along a structure

def _sweep(steps, places, structure):
    """Forwards through the image, in place: one step from a neighbour that comes before, if that is nearer."""
    if steps.ndim == 1:
        if structure[0]:
            n = len(steps)
            ramp, own = np.arange(n), np.arange(n, 0, -1)
            best = np.minimum.accumulate((steps - ramp) * (n + 1) + own)  # of equal ones the last
            steps[...] = best // (n + 1) + ramp
            places[...] = places[n - best % (n + 1)]
        return
    around = np.argwhere(structure[0])
    for i in range(len(steps)):
        if i:
            before, there = (np.pad(v[i - 1], 1, constant_values=_FAR) for v in (steps, places))
            for index in around:
                cut = tuple(slice(k, k + n) for k, n in zip(index, steps[i].shape))
                nearer = before[cut] + 1 < steps[i]
                steps[i][nearer] = before[cut][nearer] + 1
                places[i][nearer] = there[cut][nearer]
        _sweep(steps[i], places[i], structure[1])


_FAR = 1 << 40  # steps that no image has


@remembered
def distance_transform_cdt(input, metric="chessboard", return_distances=True, return_indices=False, distances=None, indices=None):
    """The least number of steps to the background, and where that is."""
    array = np.asarray(input)
    _wanted(return_distances, return_indices, distances, indices, array.shape, np.int32)
    if isinstance(metric, str):
        if metric not in ("chessboard", "taxicab", "cityblock", "manhattan"):
            raise ValueError("invalid metric provided")
        structure = generate_binary_structure(array.ndim, array.ndim if metric == "chessboard" else 1)
    else:
        structure = np.asarray(metric) != 0
        if structure.shape != (3,) * array.ndim:
            raise ValueError("metric must be a structure of size 3 along each axis of the image")
    if isinstance(metric, str) and not return_indices and 1 <= array.ndim <= 3 and array.size:
        mask = np.ascontiguousarray(array if array.dtype == bool else array != 0)
        name = "chessboard" if metric == "chessboard" else "taxicab"
        return _given_back(_eager.call("distance", mask, metric=name), None, return_distances, False, distances, None)
    foreground = array != 0
    if foreground.all():
        found, places = np.full(array.shape, -1, np.int32), np.arange(array.size).reshape(array.shape)
    else:
        steps, places = np.where(foreground, _FAR, 0), np.arange(array.size).reshape(array.shape)
        _sweep(steps, places, structure)
        back = (slice(None, None, -1),) * array.ndim
        _sweep(steps[back], places[back], structure[back])
        found = steps.astype(np.int32)
    where = np.array(np.unravel_index(places, array.shape), np.int32)
    return _given_back(found, where, return_distances, return_indices, distances, indices)


def distance_transform_bf(input, metric="euclidean", sampling=None, return_distances=True, return_indices=False, distances=None,
                          indices=None):
    """Distances of any of the metrics euclidean, taxicab and chessboard."""
    array = np.asarray(input)
    names = dict(dict.fromkeys(("taxicab", "cityblock", "manhattan", "chessboard"), np.uint32), euclidean=np.float64)
    if metric not in names:
        raise RuntimeError("distance metric not supported")
    _wanted(return_distances, return_indices, distances, indices, array.shape, names[metric])
    found, where = _tried(array != 0, metric, [1.0] * array.ndim if sampling is None else s.per_axis(sampling, array.ndim))
    return _given_back(found.astype(names[metric]), where, return_distances, return_indices, distances, indices)


def _tried(foreground, metric, sampling):
    """The last of the nearest voxels of the background, by trying all that touch the foreground."""
    full = generate_binary_structure(foreground.ndim, foreground.ndim)
    border = np.argwhere(binary_dilation(foreground, full) & ~foreground)[::-1]
    where, found = np.indices(foreground.shape, np.int32), np.zeros(foreground.shape)
    voxels = np.argwhere(foreground)
    if len(border) == 0:
        found[foreground] = np.iinfo(np.int32).max
        return found, where
    rows = max(1, (1 << 22) // len(border))
    for first in range(0, len(voxels), rows):
        some = voxels[first:first + rows]
        apart = np.abs(some[:, None, :] - border[None, :, :]).astype(np.float64)
        if metric == "euclidean":
            apart = np.sqrt(((apart * np.asarray(sampling, float)) ** 2).sum(axis=2))
        else:
            apart = apart.max(axis=2) if metric == "chessboard" else apart.sum(axis=2)
        nearest = apart.argmin(axis=1)
        found[tuple(some.T)] = apart[np.arange(len(some)), nearest]
        where[(slice(None), *some.T)] = border[nearest].T
    return found, where
