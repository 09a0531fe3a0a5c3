"""Objects of masks and label images, with the signatures of scikit-image."""
import warnings

import numpy as np

from .. import _eager
from .. import ndimage

__all__ = ["clear_border", "expand_labels", "label", "remove_small_holes", "remove_small_objects"]

_FEW = 32  # values of an image whose objects are found value by value


def label(label_image, background=None, return_num=False, connectivity=None):
    """Numbers the connected parts of equal values. Those of the background, 0 if it is not said, become 0."""
    image = np.asarray(label_image)
    if image.dtype.kind not in "biufc":
        raise TypeError(f"label takes an image of numbers or of true and false, not of {image.dtype}")
    connectivity = image.ndim if connectivity is None else connectivity
    if not 1 <= connectivity <= max(image.ndim, 1):
        raise ValueError(f"Connectivity below 1 or above {image.ndim} is illegal.")
    structure = ndimage.generate_binary_structure(image.ndim, connectivity)
    if image.dtype == bool:
        found, count = ndimage.label(~image if background == 1 else image, structure)
        return (found, count) if return_num else found
    background = 0 if background is None else background
    found = np.zeros(image.shape, np.int64)
    values, count = np.unique(image), 0
    if len(values) > _FEW:
        found, count = _by_changes(image, structure, background)
    else:
        for value in values[values != background]:
            part, more = ndimage.label(image == value, structure)
            found[part > 0] = part[part > 0] + count
            count += more
        if count:
            found = _in_raster_order(found, count)
    return (found, count) if return_num else found


def _in_raster_order(found, count):
    """The same objects, numbered in the order in which a scan meets them."""
    numbers, first = np.unique(found, return_index=True)
    order = np.zeros(count + 1, np.int64)
    inside = numbers > 0
    order[numbers[inside][np.argsort(first[inside])]] = np.arange(1, count + 1)
    return order[found]


def _by_changes(image, structure, background):
    """Many values: neighbours of equal value are linked, pair by pair."""
    flat = np.arange(image.size).reshape(image.shape)
    root = flat.ravel().copy()
    pairs = []
    for index in np.argwhere(structure):
        offset = index - 1
        if tuple(offset) >= (0,) * image.ndim:
            continue
        here = tuple(slice(max(-o, 0), n + min(-o, 0)) for o, n in zip(offset, image.shape))
        there = tuple(slice(max(o, 0), n + min(o, 0)) for o, n in zip(offset, image.shape))
        equal = image[here] == image[there]
        pairs.append(np.stack([flat[here][equal], flat[there][equal]]))
    a, b = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), int)
    while len(a):
        low = np.minimum(root[a], root[b])
        np.minimum.at(root, root[a], low)
        np.minimum.at(root, root[b], low)
        while not np.array_equal(root, root[root]):
            root = root[root]
        apart = root[a] != root[b]
        a, b = a[apart], b[apart]
    kept = image.ravel() != background
    numbers, back = np.unique(root[kept], return_inverse=True)
    found = np.zeros(image.size, np.int64)
    found[kept] = back + 1
    return found.reshape(image.shape), len(numbers)


# ---------------------------------------------------------------- objects that go

def _room(array, in_place, out):
    """The array to change: a copy, the caller's own, or the image itself."""
    if in_place:
        warnings.warn("in_place argument is deprecated and will be removed in version 1.0. To avoid this warning, please use "
                      "the out argument instead.", FutureWarning, stacklevel=3)
        return array
    if out is None:
        return array.copy()
    out[...] = array
    return out


def _whole(array):
    if array.dtype != bool and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"Only bool or integer image types are supported. Got {array.dtype}.")


def _sieved(array, size, connectivity):
    """The operator, which has no labels of 64 bits below 0 and no axes beyond three."""
    return _eager.call("remove_small", array, min_size=int(np.ceil(size)), connectivity=connectivity)


def _least(older, name, max_size):
    """The smallest size that stays: the older argument, or one more than the largest that goes."""
    if older is not None and max_size is not None:
        raise ValueError(f"`{name}` and `max_size` say the same: give one of them to avoid conflicting values")
    return older if older is not None else np.floor(64 if max_size is None else max_size) + 1


def remove_small_objects(ar, min_size=None, connectivity=1, in_place=False, *, max_size=None, out=None):
    """Without the objects that have at most max_size voxels, 64 if nothing is said, or fewer than min_size: connected parts of a
    mask, or labels."""
    min_size = _least(min_size, "min_size", max_size)
    array = np.asarray(ar)
    _whole(array)
    out = _room(array, in_place, out)
    if min_size == 0 or array.size == 0:
        return out
    if out.dtype != bool and out.min() < 0:
        raise ValueError("Negative value labels are not supported.")
    if out.dtype != bool and out.max() == 1:
        warnings.warn("Only one label was provided to `remove_small_objects`. Did you mean to use a boolean array?",
                      stacklevel=2)
    out[...] = _sieved(np.ascontiguousarray(out), min_size, connectivity)
    return out


def remove_small_holes(ar, area_threshold=None, connectivity=1, in_place=False, *, max_size=None, out=None):
    """With holes filled of at most max_size voxels, 64 if nothing is said, or of fewer than area_threshold; gives a mask."""
    area_threshold = _least(area_threshold, "area_threshold", max_size)
    array = np.asarray(ar)
    _whole(array)
    if array.dtype != bool:
        warnings.warn("Any labeled images will be returned as a boolean array. Did you mean to use a boolean array?", UserWarning,
                      stacklevel=2)
    if out is not None and out.dtype != bool:
        raise TypeError("out dtype must be bool")
    mask = array.astype(bool)
    filled = ~_sieved(np.ascontiguousarray(~mask), area_threshold, connectivity) if area_threshold and mask.size else mask
    if in_place:
        return _put_in_place(array, filled)
    if out is None:
        return filled
    out[...] = filled
    return out


def _put_in_place(array, values):
    warnings.warn("in_place argument is deprecated and will be removed in version 1.0. To avoid this warning, please use the out "
                  "argument instead.", FutureWarning, stacklevel=3)
    array[...] = values
    return array


def clear_border(labels, buffer_size=0, bgval=0, in_place=False, mask=None, *, out=None):
    """Without the objects that touch the border, or the outside of a mask."""
    image = np.asarray(labels)
    if any(buffer_size >= n for n in image.shape) and mask is None:
        raise ValueError("buffer size may not be greater than labels size")
    out = _room(image, in_place, out)
    if mask is not None:
        mask = np.asarray(mask)
        if mask.shape != image.shape:
            raise TypeError("labels and mask should have the same shape.")
        if mask.dtype != bool:
            raise TypeError("mask should be of type bool.")
        border = ~mask
    else:
        border = np.ones(image.shape, bool)
        border[tuple(slice(buffer_size + 1, n - buffer_size - 1) for n in image.shape)] = False
    parts, count = label(image, background=0, return_num=True)
    gone = np.zeros(count + 1, bool)
    gone[parts[border]] = True  # the background too, which becomes what is said
    out[gone[parts]] = bgval
    return out


def expand_labels(label_image, distance=1, spacing=1):
    """Labels that have grown into the background by a distance, without overlap."""
    image = np.ascontiguousarray(label_image)
    if np.any(np.asarray(spacing) != 1):
        far, where = ndimage.distance_transform_edt(image == 0, sampling=spacing, return_indices=True)
        return np.where(far <= distance, image[tuple(where)], 0)
    return _eager.call("expand_labels", image, distance=float(min(distance, sum(image.shape))))
