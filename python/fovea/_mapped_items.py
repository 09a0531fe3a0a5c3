"""A function of the program on the items of a collection."""
import ctypes as c
import hashlib
import os
import pickle

import numpy as np

from . import _library as l
from . import _workers
from ._errors import Error, raise_status
from ._mapped import add_identity, described, settings_of
from ._values import Value

_LOOKED_AT = 16  # largest files whose headers tell how much memory an item needs


class ItemsError(Error):
    """A function failed on some items. `results` has what it gave for the others, and None for these; `failures` why, by item."""
    code = "items"

    def __init__(self, message, results, failures):
        super().__init__(message)
        self.results, self.failures = results, failures


def files_of(pattern):
    """The files that a pattern of read means."""
    paths, count, error = c.POINTER(c.c_char_p)(), c.c_int(), l.ErrorStruct()
    status = l.lib.fv_match_files(os.fsencode(pattern), paths, count, error)
    if status:
        raise_status(status, error)
    found = [os.fsdecode(paths[k]) for k in range(count.value)]
    l.free(c.cast(paths, c.c_void_p))
    return found


def _is_file(item):
    return isinstance(item, (str, os.PathLike))


def _image_of(item):
    from . import read
    return read(os.fspath(item)) if _is_file(item) else item


def _array_of(item):
    item = _image_of(item)
    return item.compute(workers=1) if isinstance(item, Value) else np.asarray(item)


def _largest(items):
    """Bytes of the largest item, as far as headers of the largest files tell."""
    files = [item for item in items if _is_file(item) and os.path.exists(item)]
    files.sort(key=os.path.getsize)
    found = [getattr(item, "nbytes", 0) for item in items if not _is_file(item)]
    for path in files[-_LOOKED_AT:]:
        try:
            found.append(_image_of(path).nbytes)
        except Error:
            pass  # it fails again when its turn comes, and is named then
    return max(found, default=0)


class _Store:
    """What a function gave for items: a file each, which the next program finds."""

    def __init__(self, folder, version):
        self.folder, self.version = os.path.join(folder, "items"), version
        os.makedirs(self.folder, exist_ok=True)

    def path(self, item):
        """Without its ending: follows from the version and from what the item is."""
        found = hashlib.blake2b(repr(self.version).encode(), digest_size=16)
        item = _image_of(item)
        if isinstance(item, Value):
            add_identity(found, item)
        else:
            array = np.ascontiguousarray(item)
            found.update(repr((array.dtype.str, array.shape)).encode())
            found.update(array.data if array.size else b"")
        return os.path.join(self.folder, found.hexdigest())

    @staticmethod
    def save(path, value):
        """Keeps a value: after this it is there as a whole or, if the machine stops, not at all."""
        plain = isinstance(value, np.ndarray) and not value.dtype.hasobject
        with open(f"{path}.{os.getpid()}.part", "wb") as file:
            np.save(file, value, allow_pickle=False) if plain else pickle.dump(value, file, 5)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path + (".npy" if plain else ".pickle"))

    @staticmethod
    def load(path):
        """A kept value; an array stays in its file until somebody looks at it. LookupError: it is not there."""
        if os.path.exists(path + ".npy"):
            return np.load(path + ".npy", mmap_mode="r" if os.path.getsize(path + ".npy") > 1 << 16 else None)
        try:
            with open(path + ".pickle", "rb") as file:
                return pickle.load(file)
        except FileNotFoundError:
            raise LookupError(path) from None


def map_items(function, items, *, workers=None, memory=None, store=None, version=None):
    """What a function of yours gives for each item, as a list: each is read and computed in a process of its own.

        >>> import numpy as np, fovea as fv
        >>> fv.map_items(lambda a: int(a.max()), [np.arange(5), np.arange(9)])
        [4, 8]

    items: a pattern such as "scans/*.tif", or a list of files, images and arrays. The function gets a numpy array and may give
    anything that pickle takes; arrays come back without it. One that fails does not stop the others: at the end an ItemsError
    names those items, and has the results of all others.

    memory: for the items that are worked on at once, each with as much again for what the function makes of it; half of what is
    free if it is left out. With a store, a folder, results are kept there as they come, and the next program does what is left;
    arrays among them are mapped from their files. Change version when the function changes."""
    if not callable(function):
        raise TypeError(f"map_items takes a function first, not {type(function).__name__}")
    items = files_of(items) if _is_file(items) else list(items)
    settings = settings_of(workers, memory, store, version)
    at_once = max(1, min(settings["workers"], settings["memory"] // max(1, 2 * _largest(items))))
    kept = _Store(settings["store"], version) if store is not None else None
    results, failures, paths, todo = [None] * len(items), {}, {}, []
    for number, item in enumerate(items):
        try:
            paths[number] = kept.path(item) if kept else None
            results[number] = kept.load(paths[number]) if kept else None
        except (LookupError, Error):  # a file that is no image fails when its turn comes
            todo.append(number)
    todo = todo if kept else range(len(items))

    def work(number):
        value = function(_array_of(items[number]))
        if not paths.get(number):
            return value
        kept.save(paths[number], value)
        return None

    def report(number, value, failure):
        if failure:
            failures[number] = failure
        else:
            results[number] = kept.load(paths[number]) if paths.get(number) else value
    _workers.run(work, todo, at_once, report)
    if failures:
        raise ItemsError(_told(function, items, failures), results,
                         {items[k] if isinstance(items[k], str) else k: f.why for k, f in failures.items()})
    return results


def _told(function, items, failures):
    """Which items failed and why, the first ones in full."""
    def name(number):
        return f"item {number + 1} of {len(items)}" + (f" ({os.fspath(items[number])})" if _is_file(items[number]) else "")
    told = "\n".join(f"{described(function)} failed on {name(k)}: {f.why}" for k, f in sorted(failures.items())[:5])
    return told + (f"\nand on {len(failures) - 5} more" if len(failures) > 5 else "")
