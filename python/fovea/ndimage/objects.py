"""Objects of a mask and where they are, with the signatures of scipy.ndimage."""
import functools

import numpy as np

from .. import _eager
from . import _support as s
from .binary import connectivity_of, generate_binary_structure, mask_of

__all__ = ["find_objects", "label", "value_indices"]

_SPATIAL, _OTHERS = "zyx", "ptc"


@functools.lru_cache(32)
def _usual(bits, ndim):
    """Connectivity and names of the axes if the structure connects in the usual way along some of the axes and not at all along
    the others; else None."""
    structure = np.frombuffer(bits, bool).reshape((3,) * ndim)
    along = [k for k in range(ndim) if np.any(np.take(structure, (0, 2), axis=k))]
    apart = [k for k in range(ndim) if k not in along]
    if not 1 <= len(along) <= 3 or len(apart) > 3:
        return None
    inner = structure[tuple(slice(None) if k in along else 1 for k in range(ndim))]
    connectivity = connectivity_of(inner)
    if connectivity is None:
        return None
    names = iter(_SPATIAL[3 - len(along):]), iter(_OTHERS)
    return connectivity, " ".join(next(names[0]) if k in along else next(names[1]) for k in range(structure.ndim))


def _by_pairs(mask, structure):
    """Labels by any structure: pairs of neighbours are linked until nothing changes."""
    count = int(mask.sum())
    number = np.full([n + 2 for n in mask.shape], -1)
    inside = tuple(slice(1, -1) for _ in mask.shape)
    number[inside][mask] = np.arange(count)
    here = number[inside][mask]
    pairs = []
    for index in np.argwhere(structure):
        if tuple(index) < (1,) * mask.ndim:
            there = number[tuple(slice(k, k + n) for k, n in zip(index, mask.shape))][mask]
            pairs.append(np.stack([here, there])[:, there >= 0])
    a, b = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), int)
    first = np.arange(count)
    while True:
        low = np.minimum(first[a], first[b])
        new = first.copy()
        for other in (first[a], first[b], a, b):
            np.minimum.at(new, other, low)
        while not np.array_equal(new, new[new]):
            new = new[new]
        if np.array_equal(new, first):
            break
        first = new
    labels = np.zeros(mask.shape, np.int64)
    labels[mask] = np.unique(first, return_inverse=True)[1] + 1
    return labels


def _labels(array, structure):
    if array.ndim == 0 or array.size == 0:
        return (array != 0).astype(np.int32)
    way = _usual(structure.tobytes(), array.ndim)
    if way is None:
        return _by_pairs(mask_of(array), structure)
    mask = array if array.dtype.kind in "biu" and array.dtype.isnative else mask_of(array)
    return _eager.call("label", mask, named=way[1], connectivity=way[0])


def label(input, structure=None, output=None):
    """Numbers the objects of a mask; gives the labels and how many there are, or only the latter if the output is an array."""
    array = np.asarray(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if array.dtype.kind not in "biuf":
        raise RuntimeError(f"data type not supported: {array.dtype}")
    given, structure = structure, generate_binary_structure(array.ndim, 1) if structure is None else np.asarray(structure, bool)
    if structure.ndim != array.ndim:
        raise RuntimeError("structure and input must have equal rank")
    if structure.shape != (3,) * array.ndim:
        raise ValueError("structure dimensions must be equal to 3")
    if given is not None and not np.array_equal(structure, structure[(slice(None, None, -1),) * structure.ndim]):
        raise ValueError("structuring element is not symmetric")
    room = isinstance(output, np.ndarray)
    usual = np.intp if array.size >= 2**31 - 2 else np.int32
    if not room:
        output = None if output is None or output is usual else s.output_of(output, array)
    elif output.shape != array.shape:
        raise ValueError("input and output must have the same shape")
    labels = _labels(array, structure)
    count = int(labels.max()) if labels.size else 0
    if output is None:
        return labels.astype(usual, copy=False), count
    if output.dtype.kind in "biu" and count > (1 if output.dtype.kind == "b" else np.iinfo(output.dtype).max):
        raise RuntimeError("insufficient bit-depth in requested output type")
    output[...] = labels
    return count if room else (output, count)


def find_objects(input, max_label=0):
    """The slices of each object's box; None for labels that are not there."""
    array = np.asarray(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if array.dtype.kind not in "iub":
        raise RuntimeError(f"labels are whole numbers, not {array.dtype}")
    highest = int(array.max()) if array.size else 0
    count = max(int(max_label) if max_label >= 1 else highest, 0)
    found = [None] * count
    if highest < 1:
        return found
    if array.ndim == 0:
        return [() if number + 1 == highest else None for number in range(count)]
    numbers, boxes = _boxes(array)
    if count == highest == len(boxes) and numbers[0] == 1:  # all labels from 1 on are there
        return boxes
    for number, box in zip(numbers, boxes):
        if 1 <= number <= count:
            found[number - 1] = box
    return found


def _boxes(array):
    """The labels that are there, in increasing order, and the slices of their boxes."""
    if array.ndim <= 3:
        labels = np.ascontiguousarray(array.astype(np.int64) if array.dtype.kind == "b" else array)
        table = _eager.call("measure", labels, properties="bbox")
        columns = [table[name].tolist() for name in table.columns if name.startswith(("bbox_min", "bbox_max"))]
        low, high = columns[:array.ndim], columns[array.ndim:]
        return table["label"].tolist(), list(zip(*[map(slice, a, b) for a, b in zip(low, high)]))
    there = value_indices(array, ignore_value=0)
    return [int(number) for number in there], [tuple(slice(int(w.min()), int(w.max()) + 1, None) for w in where)
                                               for where in there.values()]


def value_indices(arr, *, ignore_value=None):
    """The places of each value of an array of whole numbers."""
    array = np.asarray(arr)
    if array.dtype.kind not in "iub":
        raise ValueError("Parameter 'arr' must be an integer array")
    flat = array.ravel()
    order = np.argsort(flat, kind="stable")
    values, starts = np.unique(flat[order], return_index=True)
    parts = np.split(order, starts[1:]) if len(values) else []
    return {value: np.unravel_index(part, array.shape) for value, part in zip(values, parts)
            if ignore_value is None or value != ignore_value}
