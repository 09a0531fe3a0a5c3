"""Converting between files that are cut in different ways reads, and so decodes, each piece of the first about once, and so does
reading a file that is one large piece. Counted in bytes that the command reads from files, its children's included; what it
keeps of decoded pieces changes no voxel."""
import os
import pathlib
import struct
import sys
import zlib

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


# ---------------------------------------------------------------- files that are one piece

ONE = (1500, 4000)  # more than one task takes; bytes that cannot be packed, so that file, image and store are of one size
PAGES = (2, ) + ONE


def single(folder, name, options="", shape=ONE):
    """A file that is one piece, and its image."""
    image = np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8)
    np.save(os.path.join(folder, "image.npy"), image)
    run("run", "-q", "-e", f'read("image.npy") |> write("{name}"{options})', folder=folder)
    return image


def size_of(path):
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(where, f)) for where, _, files in os.walk(path) for f in files)


WAYS = ([], ["--chunk", "100x500"], ["--chunk", "100x500", "--memory", "200M"], ["--engine", "processes", "--workers", "3"],
        ["--chunk", "150x400", "--engine", "processes", "--workers", "3"])


def check_single(folder, name, image, most=3.2):
    """The file and, where it does not stay in memory, what is stored of it: each once, and a little for halos and headers."""
    flat, slicing = (image[-1], "[-1]") if image.ndim == 3 else (image, "")
    size = size_of(os.path.join(folder, name)) * flat.size / image.size
    for more in WAYS:
        before = bytes_read()
        run("run", "-q", "--fresh", "--overwrite", *more, "-e",
            f'x = read("{name}"){slicing}\nwrite(maximum_filter(x, 3), "again.npy")', folder=folder)
        times = (bytes_read() - before) / size
        again = np.load(os.path.join(folder, "again.npy"))
        padded = np.pad(flat, 1, mode="symmetric")
        wanted = np.max([padded[y:y + ONE[0], x:x + ONE[1]] for y in range(3) for x in range(3)], axis=0)
        assert np.array_equal(again, wanted), (name, more)
        assert times < most, f"{name} {' '.join(more)}: its bytes were read {times:.1f} times"


@test
def a_tiff_of_one_strip_is_decoded_once(folder):
    for compression in ("deflate", "lzw", "zstd"):
        image = single(folder, f"{compression}.tif", f', compression = "{compression}", chunk = [{ONE[0]}, {ONE[1]}]')
        check_single(folder, f"{compression}.tif", image)


@test
def a_stack_of_pages_of_one_strip_is_decoded_once(folder):
    image = single(folder, "pages.tif", f", chunk = [{ONE[0]}, {ONE[1]}]", PAGES)
    check_single(folder, "pages.tif", image)


@test
def an_hdf5_file_of_one_chunk_is_decoded_once(folder):
    check_single(folder, "one.h5", single(folder, "one.h5", f", chunk = [{ONE[0]}, {ONE[1]}]"))


@test
def a_zarr_array_of_one_chunk_is_decoded_once(folder):
    for compression in ("zstd", "blosc", "gzip"):
        name = f"{compression}.zarr"
        options = f', compression = "{compression}", chunk = [{ONE[0]}, {ONE[1]}], levels = 1'
        check_single(folder, name, single(folder, name, options))


@test
def a_shard_of_one_chunk_is_decoded_once(folder):
    options = f", chunk = [1, {ONE[0]}, {ONE[1]}], shard = [1, {ONE[0]}, {ONE[1]}], levels = 1"
    check_single(folder, "shard.zarr", single(folder, "shard.zarr", options, PAGES))


@test
def a_vti_file_of_one_block_is_decoded_once(folder):
    image = np.random.default_rng(5).integers(0, 256, ONE).astype(np.uint8)
    packed = zlib.compress(image.tobytes(), 1)
    head = struct.pack("<4Q", 1, image.size, 0, len(packed))
    text = (f'<?xml version="1.0"?>\n<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64" '
            f'compressor="vtkZLibDataCompressor">\n<ImageData WholeExtent="0 {ONE[1] - 1} 0 {ONE[0] - 1} 0 0" Origin="0 0 0" '
            f'Spacing="1 1 1">\n<Piece Extent="0 {ONE[1] - 1} 0 {ONE[0] - 1} 0 0"><PointData Scalars="image">\n'
            f'<DataArray type="UInt8" Name="image" format="appended" offset="0"/>\n</PointData></Piece></ImageData>\n'
            f'<AppendedData encoding="raw">_')
    with open(os.path.join(folder, "one.vti"), "wb") as file:
        file.write(text.encode() + head + packed + b"</AppendedData>\n</VTKFile>\n")
    check_single(folder, "one.vti", image)


@test
def files_that_are_packed_as_a_whole_are_unpacked_once_by_each_process(folder):
    for name in ("one.nii.gz", "one.mrc.gz", "one.npz", "one.png"):
        check_single(folder, name, single(folder, name), most=6)


@test
def a_file_of_one_row_group_is_read_once(folder):
    try:
        image = single(folder, "one.parquet", shape=PAGES)
    except AssertionError as missing:
        raise Skip(f"no Parquet here: {missing}") from missing
    check_single(folder, "one.parquet", image, most=7)  # each of three processes opens it, and DuckDB looks at its end


main()
