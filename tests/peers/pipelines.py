"""Runs pipelines on numpy arrays with the command, for tests that compare the results with a peer.

    from pipelines import run, same, test

    @test
    def erode_equals_scipy():
        same(run("erode(a)", a=mask), scipy.ndimage.binary_erosion(mask, border_value=1))

    test.main()
"""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import PATIENCE  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))


class Difference(Exception):
    """What is wrong, in a sentence."""


def remove_small_objects(image, size, connectivity=1):
    """scikit-image's. Since version 0.26 it wants the largest size that is removed."""
    from skimage import __version__ as version, morphology
    newer = tuple(map(int, version.split(".")[:2])) >= (0, 26)
    return morphology.remove_small_objects(image, connectivity=connectivity,
                                           **({"max_size": size - 1} if newer else {"min_size": size}))


def run(expression, *options, table=False, **arrays):
    """The image (or the table, as a dict of columns) that an expression in the given arrays makes."""
    with tempfile.TemporaryDirectory() as folder:
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        out = "out.csv" if table else "out.npy"
        text = "".join(f'{name} = read("{name}.npy")\n' for name in arrays) + f'write({expression}, "{out}")\n'
        done = subprocess.run([FOVEA, "run", "--quiet", *options, "-e", text], cwd=folder, capture_output=True, text=True,
                              timeout=PATIENCE)
        if done.returncode:
            raise Difference(f"{expression} ends with {done.returncode}: {done.stderr.strip()}")
        if not table:
            return np.load(f"{folder}/{out}")
        with open(f"{folder}/{out}", newline="") as file:
            names, *rows = csv.reader(file)
        return {name: np.array([float(row[i] or "nan") for row in rows]) for i, name in enumerate(names)}


def run_all(expressions, *options, **arrays):
    """The images that the expressions in the given arrays make, by one command."""
    with tempfile.TemporaryDirectory() as folder:
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        text = "".join(f'{name} = read("{name}.npy")\n' for name in arrays)
        text += "".join(f'write({expression}, "out{index}.npy")\n' for index, expression in enumerate(expressions))
        pathlib.Path(folder, "all.fov").write_text(text)
        done = subprocess.run([FOVEA, "run", "--quiet", *options, "all.fov"], cwd=folder, capture_output=True, text=True,
                              timeout=PATIENCE)
        if done.returncode:
            raise Difference(f"{expressions[0]} and others end with {done.returncode}: {done.stderr.strip()[-600:]}")
        return [np.load(f"{folder}/out{index}.npy") for index in range(len(expressions))]


def same(ours, peer, what=""):
    """Equal shapes, kinds of type and every bit."""
    if ours.shape != peer.shape or ours.dtype != peer.dtype:
        raise Difference(f"{what} {ours.dtype} {ours.shape}, the peer has {peer.dtype} {peer.shape}")
    if not np.array_equal(ours, peer, equal_nan=ours.dtype.kind in "fc"):
        raise Difference(f"{what} {np.count_nonzero(ours != peer)} of {ours.size} voxels differ")


def near(ours, peer, what="", relative=1e-12, of=None):
    """Equal up to rounding: relative to the peer's largest value, or to that of the image `of` which was filtered."""
    peer = np.asarray(peer, float)
    if ours.shape != peer.shape:
        raise Difference(f"{what} has shape {ours.shape}, the peer {peer.shape}")
    largest = np.abs(np.asarray(peer if of is None else of, float))
    scale = max(1.0, float(largest[np.isfinite(largest)].max(initial=0)))
    if not np.allclose(ours, peer, rtol=relative, atol=relative * scale, equal_nan=True):
        raise Difference(f"{what} differs by up to {np.abs(ours - peer).max()}")


def refused(expression, words, **arrays):
    """The expression is a mistake, and the message has the words."""
    try:
        run(expression, **arrays)
    except Difference as error:
        if " ends with 2:" not in str(error) or words not in str(error):
            raise Difference(f"{expression} should be refused with '{words}': {error}") from error
        return
    raise Difference(f"{expression} is accepted")


MODES = ("reflect", "nearest", "mirror", "constant", "wrap")


def wide(array):
    """Type in which Fovea gives a linear filter of the array."""
    return np.float64 if array.dtype.itemsize == 8 or array.dtype in (np.int32, np.uint32) else np.float32


def tolerance(array):
    """What a linear filter may differ by, relative to the largest value."""
    return 1e-12 if wide(array) == np.float64 else 2e-6


def as_dtypes(array, names="uint8 int16 uint16 int32 float32 float64"):
    """The array scaled to 0 ... 100 in each type; as bool, what lies above 50."""
    for name in names.split():
        scaled = array * (100 / array.max())
        yield scaled > 50 if name == "bool" else scaled.astype(name)


class Tests:
    """Collects functions; main() runs them and prints a line for each."""

    def __init__(self):
        self.functions = []

    def __call__(self, function):
        self.functions.append(function)
        return function

    def main(self):
        failed = False
        for function in self.functions:
            try:
                function()
                print(f"ok {function.__name__}", flush=True)
            except Exception as reason:  # any failure of one test is a result, not an end
                why = str(reason) if isinstance(reason, Difference) else traceback.format_exc().replace("\n", " | ")
                print(f"not ok {function.__name__}: {why}", flush=True)
                failed = True
        sys.exit(failed)


test = Tests()
