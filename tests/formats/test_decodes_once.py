"""Converting between files that are cut in different ways reads, and so decodes, each piece of the first about once. Counted in
bytes that the command reads from files, its children's included; what it keeps of decoded pieces changes no voxel."""
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

SHAPE = (24, 300, 1000)
CHUNK = "24x64x128"  # cuts every strip, tile and chunk below many times


def bytes_read():
    """By this process and by those of its children that have ended."""
    try:
        lines = pathlib.Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError as missing:
        raise Skip(f"this system does not count what a process reads: {missing}") from missing
    return int(dict(line.split(": ") for line in lines)["rchar"])


def make(folder, name, options=""):
    image = np.random.default_rng(3).integers(0, 200, SHAPE).astype(np.uint16)
    np.save(os.path.join(folder, "image.npy"), image)
    run("run", "-q", "-e", f'read("image.npy") |> write("{name}"{options})', folder=folder)
    return image


def read_again(folder, name, *more):
    """The image after a run in small chunks, and how many times the file's bytes were read."""
    before = bytes_read()
    run("run", "-q", "--fresh", "--overwrite", "--chunk", CHUNK, *more, "-e", f'read("{name}") |> write("again.npy")',
        folder=folder)
    times = (bytes_read() - before) / os.path.getsize(os.path.join(folder, name))
    return np.load(os.path.join(folder, "again.npy")), times


def check(folder, name, options=""):
    image = make(folder, name, options)
    again, times = read_again(folder, name)
    assert np.array_equal(again, image), name
    assert times < 1.5, f"{name}{options}: its bytes were read {times:.1f} times"


@test
def strips_of_a_tiff_are_decoded_once(folder):
    check(folder, "strips.tif")


@test
def tiles_of_a_tiff_are_decoded_once(folder):
    check(folder, "tiles.tif", ", chunk = [256, 256]")


@test
def chunks_of_an_hdf5_file_are_decoded_once(folder):
    check(folder, "chunks.h5", ", chunk = [24, 100, 200]")


@test
def voxels_are_the_same_where_nothing_can_be_kept(folder):
    image = make(folder, "strips.tif")
    for more in (["--memory", "48M"], ["--engine", "processes"], ["--workers", "7"]):
        again, _ = read_again(folder, "strips.tif", *more)
        assert np.array_equal(again, image), more


main()
