"""Functions of one array that know what they did the last time: called again with the same parameters, for an array of the same
shape and type, they go straight to what the library has ready.

A function is remembered if all that it did was one computation of the library on the array it was given, and what it gave back
was that computation's image, or the image put into an array of another type. What it does must follow from its parameters and
from the array's shape and type alone, never from the voxels."""
import functools
import threading

import numpy as np

MOST = 64  # calls of one function
LONGEST = 64  # numbers of an array that is a parameter


class _Watched(threading.local):
    """What this thread's remembered function does: None, or a list of tuples whose first is "computed" or "filled"."""
    done = None


_watched = _Watched()


def told(prepared, given, found):
    """A computation was made: of arrays by their names, with these results."""
    if _watched.done is not None:
        _watched.done.append(("computed", prepared, list(given.values()), found))


def filled(output, values, how):
    """An array was filled with values: how is the function that did it."""
    if _watched.done is not None:
        _watched.done.append(("filled", output, values, how))


def not_all():
    """What is done is not all: the caller is told something, and wants to be told again the next time."""
    if _watched.done is not None:
        _watched.done.append(("told",))


def _frozen(value):
    """A parameter as part of a key."""
    if isinstance(value, (list, tuple)):
        return (type(value), *map(_frozen, value))
    if type(value) is np.ndarray and value.size <= LONGEST and value.dtype.kind in "biufc":
        return value.shape, value.dtype, value.tobytes()
    return value


def _same(a, b):
    """Whether two arrays are the same voxels in the same order."""
    return a is b or (isinstance(a, np.ndarray) and a.dtype == b.dtype and a.size == b.size and a.flags.c_contiguous and
                      b.flags.c_contiguous and a.__array_interface__["data"] == b.__array_interface__["data"])


def _recipe(done, array, given_back):
    """What to do the next time: the computation, the shape of the result, and how to fill an array of which type; None if there
    is more to it."""
    if type(given_back) is not np.ndarray or [what for what, *_ in done] not in (["computed"], ["computed", "filled"]):
        return None
    _, prepared, arrays, found = done[0]
    if not (prepared.kept and len(arrays) == 1 and len(found) == 1 and prepared.forms) or not _same(arrays[0], array):
        return None
    if len(done) == 1:
        return (prepared, given_back.shape, None, None) if _same(given_back, found[0]) else None
    _, output, values, how = done[1]
    fits = output is given_back and output.flags.c_contiguous and type(values) is np.ndarray and _same(values, found[0])
    return (prepared, given_back.shape, output.dtype, how) if fits else None


def remembered(function):
    """A function whose first argument is an array, which remembers what to do with others like it."""
    known = {}

    @functools.wraps(function)
    def remembering(*arguments, **named):
        array = arguments[0] if arguments else None
        if type(array) is not np.ndarray or _watched.done is not None:
            return function(*arguments, **named)
        key = (array.shape, array.dtype, arguments[1:], *map(type, arguments), *named.items(), *map(type, named.values()))
        try:
            recipe = known.get(key)
        except TypeError:  # a list or an array among the parameters
            key = (array.shape, array.dtype, _frozen(arguments[1:]), *map(type, arguments),
                   *[(name, _frozen(value)) for name, value in named.items()])
            try:
                recipe = known.get(key)
            except TypeError:
                return function(*arguments, **named)
        if recipe is not None and recipe[0].kept and array.flags.c_contiguous:
            prepared, shape, dtype, how = recipe
            found = prepared.run((array,))[0]
            if found.shape != shape:
                found = found.reshape(shape)
            return found if how is None else how(np.empty(shape, dtype), found)
        return _watch(function, arguments, named, known, key)
    return remembering


def _watch(function, arguments, named, known, key):
    """Calls a function, and remembers what it did."""
    _watched.done = []
    try:
        given_back = function(*arguments, **named)
        own = not any(given_back is value for value in (*arguments, *named.values()))  # not the caller's, to be filled
        recipe = _recipe(_watched.done, arguments[0], given_back) if own else None
    finally:
        _watched.done = None
    if recipe is not None:
        if len(known) >= MOST:
            known.pop(next(iter(known)), None)
        known[key] = recipe
    return given_back
