"""A function of the program on the blocks of an image."""
import hashlib
import itertools
import os
import re
import tempfile
import threading

import numpy as np

from . import _library as l
from . import _workers
from ._errors import Error, UsageError
from ._values import ArrayImage, Image, Value, array

LARGEST_BLOCK, SMALLEST_BLOCK, BLOCKS = 64 << 20, 1 << 20, 16  # bytes, bytes, and how many of them an image has if they allow it


class BlockError(Error):
    """A function failed on a block of an image; the message names the block and has the function's traceback."""
    code = "block"


# ---------------------------------------------------------------- blocks

def _per_axis(name, value, ndim, least):
    values = [value] * ndim if np.ndim(value) == 0 else list(value)
    if len(values) != ndim:
        raise UsageError(f"{name} has {len(values)} numbers; the image has {ndim} axes")
    for one in values:
        if int(one) != one or one < least:
            raise UsageError(f"{name} = {one}: must be a whole number of at least {least}")
    return [int(one) for one in values]


def _block_shape(shape, itemsize, halo):
    """Whole planes as far as that is possible, so that a block lies in one piece. Follows from the image alone: a function may
    give other results for other blocks, but never for another number of workers."""
    total = itemsize * int(np.prod(shape, dtype=np.int64))
    most = min(max(total // BLOCKS, SMALLEST_BLOCK), LARGEST_BLOCK)
    block, rest = list(shape), total
    for axis, length in enumerate(shape):
        rest //= length
        block[axis] = min(max(most // max(rest, 1), 1, 2 * halo[axis]), length)
        if block[axis] > 1 or rest <= most:
            break
    return block


class _Blocks:
    """The blocks of an image: where each lies, and what the function sees of its surroundings."""

    def __init__(self, shape, block, halo, axes):
        self.shape, self.halo, self.axes = shape, halo, axes
        starts = [range(0, n, b) for n, b in zip(shape, block)]
        self.all = [tuple(slice(s, min(s + b, n)) for s, b, n in zip(start, block, shape))
                    for start in itertools.product(*starts)]

    def seen(self, number):
        """The region that the function gets: the block and as much of its halo as the image has."""
        return tuple(slice(max(s.start - h, 0), min(s.stop + h, n)) for s, h, n in zip(self.all[number], self.halo, self.shape))

    def inside(self, number):
        """The block within that region."""
        return tuple(slice(s.start - r.start, s.stop - r.start) for s, r in zip(self.all[number], self.seen(number)))

    def name(self, number):
        """A block in words."""
        where = ", ".join(f"{a} {s.start}:{s.stop}" for a, s in zip(self.axes, self.all[number]))
        return f"block {number + 1} of {len(self.all)} ({where})"


def add_identity(found, value):
    """Adds to a hash what a value depends on: its text, the size and time of each file in it, and the arrays of this program."""
    text = value.text()
    found.update(text.encode())
    for name in re.findall(r'"((?:[^"\\]|\\.)*)"', text):
        if os.path.exists(name):
            facts = os.stat(name)
            found.update(repr((facts.st_size, facts.st_mtime_ns)).encode())
    for source in value._sources():
        found.update(np.ascontiguousarray(source.compute()).data)


def described(function):
    """A function in words."""
    return getattr(function, "__name__", None) or type(function).__name__


class MappedImage(ArrayImage):
    """The image that a function makes of another, block by block. It is computed when somebody asks, and then kept."""
    __slots__ = ("_function", "_input", "_blocks", "_settings", "_made", "_shared", "_log", "_done", "_lock")

    def __init__(self, function, image, blocks, dtype, settings):
        found = l.ValueType.from_buffer_copy(image._type)
        found.image.dtype = found.dtype = l.DTYPES.index(dtype.name)
        super().__init__(None, found)
        self._function, self._input, self._blocks, self._settings = function, image, blocks, settings
        self._made, self._shared, self._log = None, None, None
        self._done, self._lock = set(), threading.Lock()
        self._hint = "map_blocks"

    @property
    def _array(self):
        with self._lock:
            if self._made is None:
                self._run()
            return self._made

    @_array.setter
    def _array(self, value):
        self._made = value

    def _run(self):
        if self._shared is None:
            self._shared, self._log = self._output()
        shared, blocks, function, durable, first = self._shared, self._blocks, self._function, self._log is not None, []
        todo = [k for k in range(len(blocks.all)) if k not in self._done]
        given = self._given() if todo else None

        def report(number, _, failure):
            if failure is None:
                self._done.add(number)
                if durable:
                    self._log(number)
            elif not first:
                first.append((number, failure))
            return failure is None
        _workers.run(lambda number: _run_block(function, given, shared, blocks, number, durable), todo,
                     self._settings["workers"], report)
        if first:
            number, failure = first[0]
            raise BlockError(f"{described(function)} failed on {blocks.name(number)}: {failure.why}") from failure.exception
        self._made, self._shared = shared.array, None

    def _given(self):
        """The input as an array, or as a file of one where memory is short."""
        image, memory = self._input, self._settings["memory"]
        if isinstance(image, ArrayImage):
            return image._array
        if image.nbytes + self.nbytes <= memory:
            return image.compute(workers=self._settings["workers"])
        with tempfile.TemporaryDirectory(prefix="fovea-", dir=self._settings["store"] or _spill_folder()) as folder:
            image.write(f"{folder}/input.npy", workers=self._settings["workers"], store=f"{folder}/store", memory=memory)
            return np.load(f"{folder}/input.npy", mmap_mode="r")  # it has no name any more, but lives as long as it is used

    def _output(self):
        """An array that all processes see, and what notes finished blocks, if the result is to outlive this process."""
        if self._settings["store"]:
            return self._stored(self._settings["store"])
        if self._input.nbytes + self.nbytes <= self._settings["memory"]:
            return _workers.SharedArray.in_memory(self.dtype, self.shape), None
        return _workers.SharedArray.in_folder(_spill_folder(), self.dtype, self.shape), None

    def _stored(self, store):
        """A file of the store, and beside it the numbers of the blocks that are there."""
        os.makedirs(f"{store}/blocks", exist_ok=True)
        base = f"{store}/blocks/{self._key()}"
        if not os.path.exists(f"{base}.done"):
            np.lib.format.open_memmap(f"{base}.npy", "w+", self.dtype, self.shape).flush()
            open(f"{base}.done", "wb").close()
        offset = np.load(f"{base}.npy", mmap_mode="r").offset
        with open(f"{base}.done", "rb") as file:
            numbers = file.read()
        self._done.update(np.frombuffer(numbers[:len(numbers) // 8 * 8], "<i8").tolist())

        def log(number):
            with open(f"{base}.done", "ab") as file:
                file.write(np.int64(number).tobytes())
                file.flush()
                os.fsync(file.fileno())
        return _workers.SharedArray(open(f"{base}.npy", "r+b"), offset, self.dtype, self.shape), log

    def _key(self):
        """What the result depends on: the input with the times of its files, the blocks, and the function's version."""
        found = hashlib.blake2b(digest_size=16)
        found.update(repr((self._settings["version"], self._blocks.all, self._blocks.halo, self.dtype.name)).encode())
        add_identity(found, self._input)
        return found.hexdigest()


def _run_block(function, given, shared, blocks, number, durable):
    """In a worker: one block of the result."""
    block = given[blocks.seen(number)]
    block.flags.writeable = False  # others use the same memory
    value, wanted = np.asarray(function(block)), shared.array.dtype
    if value.shape != block.shape:
        raise ValueError(f"the function gave shape {value.shape} for a block of shape {block.shape}; it must keep the shape")
    if value.dtype.newbyteorder("=") != wanted:
        raise TypeError(f"the function gave {value.dtype}, but the result has {wanted}; say dtype=\"{value.dtype}\" in "
                        "map_blocks")
    shared.put(blocks.all[number], value[blocks.inside(number)].astype(wanted, copy=False), durable)  # in the machine's own order


def _spill_folder():
    return os.environ.get("TMPDIR") or ("/var/tmp" if os.access("/var/tmp", os.W_OK) else None)


def _free_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 // 2
    return 1 << 30


def settings_of(workers, memory, store, version):
    """What both maps were asked for, checked."""
    from ._compute import _bytes
    if workers is not None and int(workers) < 1:
        raise UsageError(f"workers = {workers}: at least one is needed")
    if store is not None and version is None:
        raise UsageError("a store needs a version=: it tells whether what an earlier program stored is still what the function "
                         "gives")
    return {"workers": int(workers or _workers.default_workers()), "memory": _bytes(memory) or _free_memory(),
            "version": version, "store": None if store is None else os.fspath(store)}


def map_blocks(function, image, *, halo=0, dtype=None, block=None, version=None, workers=None, memory=None, store=None):
    """The image that a function of yours makes of another, block by block, in processes of their own.

        >>> import numpy as np, fovea as fv
        >>> image = fv.array(np.arange(12.0).reshape(3, 4))
        >>> float(fv.map_blocks(lambda block: block * 2, image).max())
        22.0

    The function gets a numpy array, which it must not change, and gives one of the same shape and of type dtype (by default
    that of the image). halo: voxels around a block, one number or one for each axis, that the function sees as well; at the edge
    of the image there are none, so a filter that looks no further gives what it gives for the whole image. block: its shape;
    chosen by the size of the image alone if it is left out. Blocks are the same for any number of workers, and so is the result.

    Nothing is computed before somebody asks. With a store, a folder, finished blocks are kept there for the next program; change
    version when the function changes. A function that fails is told by a BlockError; the next compute goes on with what is left.
    """
    image = image if isinstance(image, Value) else array(image)
    if not isinstance(image, Image):
        raise TypeError(f"map_blocks takes an image, not {type(image).__name__}")
    if image.items:
        raise UsageError("the image is a collection, whose items differ in shape; map_items takes one")
    if not callable(function):
        raise TypeError(f"map_blocks takes a function first, not {type(function).__name__}")
    dtype = np.dtype(image.dtype if dtype is None else dtype)
    if dtype.name not in l.DTYPES:
        raise UsageError(f"dtype = {dtype}: an image has elements of {', '.join(l.DTYPES)}")
    halo = _per_axis("halo", halo, image.ndim, 0)
    if block is None:
        block = _block_shape(image.shape, max(image.dtype.itemsize, dtype.itemsize), halo)
    else:
        block = [min(b, n) for b, n in zip(_per_axis("block", block, image.ndim, 1), image.shape)]
    return MappedImage(function, image, _Blocks(image.shape, block, halo, image.axes), dtype,
                       settings_of(workers, memory, store, version))
