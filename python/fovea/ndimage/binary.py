"""Morphology of masks, with the signatures of scipy.ndimage."""
import functools
import operator

import numpy as np

from .. import _eager
from .. import _library as l
from .. import _prepared
from .._remember import remembered
from . import _support as s

__all__ = ["binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_hit_or_miss", "binary_opening",
           "binary_propagation", "generate_binary_structure", "iterate_structure"]


# ---------------------------------------------------------------- structures

def generate_binary_structure(rank, connectivity):
    """A structure of 3 along each axis: the middle and what is at most so many steps along axes away."""
    return _usual(rank, connectivity).copy()


@functools.lru_cache(32)
def _usual(rank, connectivity):
    if rank < 1:
        return np.array(True, dtype=bool)
    steps = np.abs(np.indices([3] * rank) - 1).sum(axis=0)
    return steps <= max(connectivity, 1)


def iterate_structure(structure, iterations, origin=None):
    """A structure dilated with itself so many times; with its origin, if one is given."""
    structure = np.asarray(structure)
    if iterations < 2:
        grown = structure.copy()
    else:
        count = iterations - 1
        shape = [n + count * (n - 1) for n in structure.shape]
        grown = np.zeros(shape, bool)
        grown[tuple(slice(count * (n // 2), count * (n // 2) + n) for n in structure.shape)] = structure != 0
        grown = binary_dilation(grown, structure, iterations=count)
    if origin is None:
        return grown
    return grown, [iterations * o for o in s.per_axis(origin, structure.ndim)]


def connectivity_of(structure):
    """The number for which a structure is generate_binary_structure's, that the library knows; None if it is none."""
    if structure.ndim < 1 or structure.ndim > 3 or structure.shape != (3,) * structure.ndim:
        return None
    return _connectivity(structure.astype(bool, copy=False).tobytes(), structure.ndim)


@functools.lru_cache(32)
def _connectivity(bits, ndim):
    for connectivity in range(1, ndim + 1):
        if bits == _usual(ndim, connectivity).tobytes():
            return connectivity
    return None


# ---------------------------------------------------------------- one step

def footprint_text(box):
    """A footprint of odd sizes as the language writes it."""
    if connectivity_of(box) == 1:
        return "cross()"
    if box.all():
        return f"box({list(box.shape)})"
    return f"pattern({box.astype(int).ravel().tolist()}, shape = {list(box.shape)})"


def _middled(structure, centres):
    """The structure in the middle of an odd box, and how far that reaches."""
    reach = [max(c, n - 1 - c) for c, n in zip(centres, structure.shape)]
    box = np.zeros([2 * r + 1 for r in reach], bool)
    box[tuple(slice(r - c, r - c + n) for r, c, n in zip(reach, centres, structure.shape))] = structure
    return box, reach


def _eroded(array, structure, centres, outside):
    """True where all that the structure covers is true; what lies outside the image is what is said."""
    if not structure.any():
        return np.ones(array.shape, bool)
    if array.ndim > 3 or max(structure.shape) > 127:
        behind = [n - 1 - c for n, c in zip(structure.shape, centres)]
        larger = s.padded(array, centres, behind, ["constant"] * array.ndim, outside)
        found = np.ones(array.shape, bool)
        for index in np.argwhere(structure):
            found &= larger[tuple(slice(k, k + n) for k, n in zip(index, array.shape))]
        return found
    return _eager.run(_erosion("a", array.shape, structure, centres, outside), a=array)


def _erosion(variable, shape, structure, centres, outside):
    """The text of an erosion."""
    box, reach = _middled(structure, centres)
    if outside:  # what lies outside never counts in the operator
        return f"erode({variable}, {footprint_text(box)})"
    cut = ", ".join(f"{r}:{r + n}" for r, n in zip(reach, shape))
    return f"erode(pad({variable}, {reach}), {footprint_text(box)})[{cut}]"


def _mirrored(structure, origins):
    return structure[(slice(None, None, -1),) * structure.ndim], [-o - (n % 2 == 0) for o, n in zip(origins, structure.shape)]


def _given(input, structure, origin, mask, axes, name="structure"):
    """Array, structure, origins and mask, checked; structure and origins of all axes."""
    array = np.asarray(input)
    if array.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    axes = s.chosen_axes(axes, array.ndim)
    structure = generate_binary_structure(len(axes), 1) if structure is None else np.asarray(structure, bool)
    if structure.ndim != len(axes):
        raise RuntimeError(f"{name} and input must have same dimensionality" if len(axes) == array.ndim else
                           f"{name}.ndim ({structure.ndim}) must match len(axes) ({len(axes)})")
    structure = s.widened(structure, axes, array.ndim)
    if structure.size < 1:
        raise RuntimeError(f"{name} must not be empty")
    if mask is not None:
        mask = np.asarray(mask) != 0
        if mask.shape != array.shape:
            raise RuntimeError("mask and input must have equal sizes")
    origins = s.spread([operator.index(o) for o in s.per_axis(origin, len(axes))], axes, array.ndim, 0)
    for n, o in zip(structure.shape, origins):
        if not -(n // 2) <= o <= (n - 1) // 2:
            raise ValueError("invalid origin")
    return array, structure, origins, mask


def mask_of(array):
    """What is not 0."""
    return np.asarray(array if array.dtype == bool else array != 0, order="C")


def _mask_text(array):
    """The same as the language writes it, of the variable a."""
    return "a" if array.dtype == bool else "(a != 0)"


def _output(output, array):
    if isinstance(output, np.ndarray) and output.dtype.kind == "c":
        raise TypeError("Complex output type not supported")
    return s.output_of(bool if output is None else output, array)


def _repeated(array, structure, origins, iterations, mask, outside, invert):
    """Erosions, as often as wanted or until nothing changes; of the inverse if invert."""
    array = mask_of(array)
    if array.size == 0 or array.ndim == 0:
        return array
    centres = [n // 2 + o for n, o in zip(structure.shape, origins)]
    now, outside = (~array, not outside) if invert else (array, outside)
    done = 0
    while iterations < 1 or done < iterations:
        new = _eroded(now, structure, centres, bool(outside))
        if mask is not None:
            new = np.where(mask, new, now)
        done += 1
        if (iterations != 1) and np.array_equal(new, now):
            break
        now = new
    return ~now if invert else now


_MOST_AT_ONCE = 8  # steps


def _at_once(input, structure, origins, mask, outside, steps):
    """Erosions and dilations (True), each so many times, by one text; None if that cannot be."""
    array = s.supported(input)
    if mask is not None or not structure.any() or not 1 <= array.ndim <= 3 or max(structure.shape) > 127 or array.size == 0 or \
            min(times for _, times in steps) < 1 or sum(times for _, times in steps) > _MOST_AT_ONCE or \
            array.dtype.name not in l.DTYPES:
        return None
    text, inverse = _mask_text(array), False
    for grows, times in steps:
        shape, origin = _mirrored(structure, origins) if grows else (structure, origins)
        centres = [n // 2 + o for n, o in zip(shape.shape, origin)]
        if grows != inverse:
            text, inverse = f"!{text}", grows
        for _ in range(times):
            text = _erosion(text, array.shape, shape, centres, bool(outside) != grows)
    return _eager.run(f"!{text}" if inverse else text, a=array)


@remembered
def binary_erosion(input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0, brute_force=False, *,
                   axes=None):
    """True where the whole structure is inside."""
    iterations = operator.index(iterations)
    array, structure, origins, mask = _given(input, structure, origin, mask, axes)
    given, output = output, _output(output, array)
    found = _at_once(array, structure, origins, mask, border_value, [(False, iterations)])
    if found is None:
        found = _repeated(array, structure, origins, iterations, mask, border_value, False)
    return s.handed(given, output, found)


@remembered
def binary_dilation(input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0, brute_force=False, *,
                    axes=None):
    """True where the structure touches something."""
    iterations = operator.index(iterations)
    array, structure, origins, mask = _given(input, structure, origin, mask, axes)
    given, output = output, _output(output, array)
    connectivity = connectivity_of(structure) if iterations < 1 else None
    if connectivity and mask is not None and not border_value and not any(origins) and array.size:
        return s.handed(given, output, _flooded(array, mask, structure, connectivity))
    found = _at_once(array, structure, origins, mask, border_value, [(True, iterations)])
    if found is None:
        structure, origins = _mirrored(structure, origins)
        found = _repeated(array, structure, origins, iterations, mask, border_value, True)
    return s.handed(given, output, found)


def _flooded(array, mask, structure, connectivity):
    """All that can be reached inside a mask, also from what is outside it: the objects of the mask that it touches."""
    array, mask = mask_of(array), np.ascontiguousarray(mask)
    labels, seeds = _prepared.call(f"labels = label(m, connectivity = {connectivity})\n"
                                   f"seeds = dilate(a, {footprint_text(structure)}) & m\n", {"a": array, "m": mask},
                                   ("labels", "seeds"))
    touched = np.zeros(int(labels.max()) + 1, bool)
    touched[labels[seeds]] = True
    return touched.take(labels) | array


def _two_steps(input, structure, iterations, mask, output, border_value, origin, axes, steps):
    """An erosion and a dilation at once, into the output; None if that cannot be."""
    array, structure, origins, mask = _given(input, structure, origin, mask, axes)
    times = operator.index(iterations)
    found = _at_once(array, structure, origins, mask, border_value, [(grows, times) for grows in steps])
    return None if found is None else s.handed(output, _output(output, array), found)


@remembered
def binary_opening(input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0, brute_force=False, *,
                   axes=None):
    """An erosion, then a dilation."""
    found = _two_steps(input, structure, iterations, mask, output, border_value, origin, axes, (False, True))
    if found is not None:
        return found
    eroded = binary_erosion(input, structure, iterations, mask, None, border_value, origin, brute_force, axes=axes)
    return binary_dilation(eroded, structure, iterations, mask, output, border_value, origin, brute_force, axes=axes)


@remembered
def binary_closing(input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0, brute_force=False, *,
                   axes=None):
    """A dilation, then an erosion."""
    found = _two_steps(input, structure, iterations, mask, output, border_value, origin, axes, (True, False))
    if found is not None:
        return found
    grown = binary_dilation(input, structure, iterations, mask, None, border_value, origin, brute_force, axes=axes)
    return binary_erosion(grown, structure, iterations, mask, output, border_value, origin, brute_force, axes=axes)


def binary_hit_or_miss(input, structure1=None, structure2=None, output=None, origin1=0, origin2=None, *, axes=None):
    """True where one structure is inside and another one outside."""
    if structure2 is None:
        rank = np.ndim(input) if axes is None else np.size(axes)
        structure2 = ~(generate_binary_structure(rank, 1) if structure1 is None else np.asarray(structure1, bool))
    array, structure1, origins1, _ = _given(input, structure1, origin1, None, axes, "structure1")
    _, structure2, origins2, _ = _given(input, structure2, origin1 if origin2 is None else origin2, None, axes, "structure2")
    hits = _repeated(array, structure1, origins1, 1, None, 0, False)
    misses = _repeated(array, structure2, origins2, 1, None, 0, True)
    return s.fill(_output(output, array), hits & ~misses)


def binary_propagation(input, structure=None, mask=None, output=None, border_value=0, origin=0, *, axes=None):
    """Dilations inside a mask until nothing changes."""
    return binary_dilation(input, structure, -1, mask, output, border_value, origin, axes=axes)


@remembered
def binary_fill_holes(input, structure=None, output=None, origin=0, *, axes=None):
    """Makes true what cannot be reached from outside."""
    array, structure, origins, _ = _given(input, structure, origin, None, axes)
    given, output = output, _output(output, array)
    connectivity = connectivity_of(structure)
    if connectivity and not any(origins) and array.size and array.dtype.name in l.DTYPES:
        return s.handed(given, output, _eager.run(f"fill_holes({_mask_text(array)}, connectivity = {connectivity})", a=array))
    structure, origins = _mirrored(structure, origins)
    reached = _repeated(np.zeros(array.shape, bool), structure, origins, -1, ~mask_of(array), 1, True)
    return s.fill(output, ~reached)
