"""The watershed with the signature of scikit-image."""
import numpy as np

from .. import _eager
from .. import ndimage

__all__ = ["watershed"]


def watershed(image, markers=None, connectivity=1, offset=None, mask=None, compactness=0, watershed_line=False):
    """Basins of a relief that is flooded from markers: an image of them, how many to lay out evenly, or the local minima."""
    image = np.asarray(image)
    if not 1 <= image.ndim <= 3:
        raise ValueError(f"an image of one to three axes is flooded; this one has {image.ndim}")
    mask = None if mask is None else _fitting(np.asarray(mask, bool), image, "mask")
    markers = _markers(image, markers, mask, connectivity)
    steps = _steps(connectivity, offset, image.ndim)
    if not image.size or not steps:
        return markers if mask is None else markers * mask
    masked = "" if mask is None else ", k"
    arrays = {"a": _real(image), "m": _whole(markers), **({} if mask is None else {"k": np.ascontiguousarray(mask)})}
    found = _eager.run(f"watershed_queue(a, m{masked}, neighbours = {steps}, compactness = {max(float(compactness), 0.0)!r}, "
                       f"line = {'true' if watershed_line else 'false'})", **arrays)
    return found.astype(markers.dtype, copy=False)


def _fitting(array, image, name):
    if array.shape != image.shape:
        raise ValueError(f"`{name}` (shape {array.shape}) must have same shape as `image` (shape {image.shape})")
    return array


def _real(image):
    return np.ascontiguousarray(image, np.float32 if image.dtype == np.float16 else image.dtype.newbyteorder("="))


def _whole(markers):
    if markers.dtype.kind == "f" and not np.isfinite(markers).all():
        raise ValueError("markers must be finite")
    return np.ascontiguousarray(markers, np.int32 if markers.dtype.kind not in "iu" else markers.dtype.newbyteorder("="))


def _markers(image, markers, mask, connectivity):
    """An image of markers, from whatever was given."""
    if markers is None:
        lowest = _eager.call("local_minima", _real(image), connectivity=int(connectivity))
        lowest = lowest if mask is None else lowest & mask
        return ndimage.label(lowest, ndimage.generate_binary_structure(image.ndim, connectivity))[0]
    if isinstance(markers, (np.ndarray, list, tuple)):
        return _fitting(np.asarray(markers), image, "markers")
    inside = image.size if mask is None else np.count_nonzero(mask)
    return _spread(image.shape, int(markers / (inside / image.size)))


def _spread(shape, count):
    """About so many markers, numbered, at equal distances along all axes; axes shorter than that have one."""
    order, steps = np.argsort(shape, kind="stable"), np.zeros(len(shape))
    sizes, found = np.sort(shape), np.zeros(shape, int)
    if found.size > count:
        steps[:] = (found.size / count) ** (1 / len(shape))
        for k in range(len(shape)):
            if (sizes >= steps).all():
                break
            steps[k] = sizes[k]
            left = len(shape) - k - 1
            if left:
                steps[k + 1:] = (float(np.prod(sizes[k + 1:])) / count) ** (1 / left)
    cuts = [slice(None)] * len(shape)
    for axis, step in zip(order, steps):
        cuts[axis] = slice(int(step // 2), None, max(int(np.round(step)), 1))
    places = found[tuple(cuts)]
    places[...] = np.arange(1, places.size + 1).reshape(places.shape)
    return found


def _steps(connectivity, offset, ndim):
    """Steps to the neighbours, the nearest first, as one list. The nearest of all counts as the voxel itself."""
    if np.isscalar(connectivity) or connectivity is None:
        footprint = ndimage.generate_binary_structure(ndim, 1 if connectivity is None else connectivity)
    else:
        footprint = np.array(connectivity, bool)
    if footprint.ndim != ndim:
        raise ValueError("Connectivity dimension must be same as image")
    if offset is None:
        if any(n % 2 == 0 for n in footprint.shape):
            raise ValueError("Connectivity array must have an unambiguous center")
        offset = [n // 2 for n in footprint.shape]
    steps = np.argwhere(footprint) - np.asarray(offset)
    nearest = np.argsort((steps**2).sum(axis=1), kind="stable")
    return [int(v) for v in steps[nearest[1:]].ravel()]
