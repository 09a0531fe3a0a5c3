"""VTI and PVTI against VTK itself: every way in which it stores arrays is read, pieces that Fovea writes are one image there, and
headers with their voxels in a folder beside them (.nhdr, .mhd) open in its readers."""
import gzip
import itertools
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

try:
    import vtk
    from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy
except ImportError:
    vtk = None

TYPES = ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")


def need_vtk():
    if vtk is None:
        raise Skip("no vtk; Debian: apt-get install python3-vtk9")


def image_of(dtype, shape=(5, 6, 7)):
    numbers = np.random.default_rng(3).normal(0, 50, shape)
    return (np.abs(numbers) if dtype[0] == "u" else numbers).astype(dtype)


def grid_of(image, cells=False):
    """The image as points or cells, and a second array of the same size."""
    grid = vtk.vtkImageData()
    grid.SetDimensions(*(n + cells for n in image.shape[::-1]))
    grid.SetSpacing(0.5, 1.5, 2)
    grid.SetOrigin(1, 2, 3)
    data = grid.GetCellData() if cells else grid.GetPointData()
    for name, values in (("density", image), ("other", np.arange(image.size, dtype="float32"))):
        array = numpy_to_vtk(values.ravel(), deep=True)
        array.SetName(name)
        data.AddArray(array)
    return grid


def write_vti(folder, name, grid, mode, encoded, packing, wide):
    writer = vtk.vtkXMLImageDataWriter()
    writer.SetInputData(grid)
    getattr(writer, f"SetDataModeTo{mode}")()
    writer.SetEncodeAppendedData(encoded)
    getattr(writer, f"SetCompressorTypeTo{packing}")()
    getattr(writer, f"SetHeaderTypeToUInt{wide}")()
    writer.SetBlockSize(64)
    writer.SetFileName(os.path.join(folder, name))
    writer.Write()


def read_vtk(reader, path):
    reader.SetFileName(str(path))
    reader.Update()
    out = reader.GetOutput()
    scalars = out.GetPointData().GetScalars()
    assert scalars is not None, f"VTK reads nothing from {path}"
    shape = out.GetDimensions()[::-1] + ((scalars.GetNumberOfComponents(),) if scalars.GetNumberOfComponents() > 1 else ())
    return vtk_to_numpy(scalars).reshape(shape), out


@test
def every_way_of_vtk_to_store_an_array_is_read(folder):
    need_vtk()
    ways = [("Ascii", 0, "None"), *itertools.product(("Binary",), (0,), ("None", "ZLib", "LZ4", "LZMA")),
            *itertools.product(("Appended",), (0, 1), ("None", "ZLib", "LZ4", "LZMA"))]
    expected = {}
    for i, (way, dtype, cells) in enumerate(itertools.product(ways, TYPES, (False, True))):
        name = "-".join(map(str, way)) + f"-{dtype}-{'cells' if cells else 'points'}"
        expected[name] = image_of(dtype)
        write_vti(folder, name + ".vti", grid_of(expected[name], cells), *way, wide=(32, 64)[i % 2])
    run("run", "-q", "-e", 'v = read("*.vti")\nwrite(v, "{stem}.npy")\nwrite(v[1:4, :, 2:6], "{stem}-part.npy")\n'
        'write(read("*.vti", path = "other"), "{stem}-other.npy")', folder=folder)
    for name, image in expected.items():
        found, part, other = (np.load(f"{folder}/{name}{end}.npy") for end in ("", "-part", "-other"))
        assert found.dtype == image.dtype and np.array_equal(found, image), name
        assert np.array_equal(part, image[1:4, :, 2:6]), name
        assert np.array_equal(other.ravel(), np.arange(image.size)), name


@test
def info_lists_the_arrays_and_tells_where_points_and_cells_lie(folder):
    need_vtk()
    for cells, origin in ((False, "z 3, y 2, x 1"), (True, "z 4, y 2.75, x 1.25")):
        write_vti(folder, "a.vti", grid_of(image_of("int16"), cells), "Binary", 0, "LZ4", 32)
        said = run("info", "a.vti", folder=folder).stdout
        for word in ("z 5, y 6, x 7", origin, "base64", "lz4", "density", "other", "cells" if cells else "points"):
            assert word in said, (word, said)


@test
def numbers_as_text_are_exact_at_both_ends_of_their_type(folder):
    need_vtk()
    for dtype in TYPES:
        kind = np.dtype(dtype)
        ends = [np.finfo(kind).max, np.finfo(kind).tiny, -1.5, np.nan] if kind.kind == "f" else [np.iinfo(kind).max,
                                                                                                 np.iinfo(kind).min, 0, 1]
        image = np.array(ends, kind).reshape(1, 2, 2)
        write_vti(folder, f"{dtype}.vti", grid_of(image), "Ascii", 0, "None", 64)
        run("convert", "-q", f"{dtype}.vti", f"{dtype}.npy", folder=folder)
        found = np.load(f"{folder}/{dtype}.npy")
        assert found.dtype == kind, dtype
        if kind.kind == "f":  # VTK writes fewer digits than a number has
            assert np.allclose(found.ravel(), image.ravel(), rtol=1e-6, equal_nan=True), dtype
        else:
            assert np.array_equal(found.ravel(), image.ravel()), dtype


@test
def vtk_puts_the_pieces_of_a_pvti_together(folder):
    need_vtk()
    for shape, chunk in (((9, 8, 7), "3"), ((9, 8, 7), "[2, 5, 4]"), ((4, 5, 6), "1"), ((20, 9), "8"), ((9, 8, 7), None)):
        image = image_of("uint16", shape)
        np.save(f"{folder}/a.npy", image)
        for how in ((), ("--chunk", "3"), ("--engine", "processes")):
            option = f", chunk = {chunk}" if chunk else ""
            run("run", "-q", "--fresh", *how, "-e", f'read("a.npy") |> write("a & b.pvti"{option})', folder=folder)
            found, _ = read_vtk(vtk.vtkXMLPImageDataReader(), f"{folder}/a & b.pvti")
            assert np.array_equal(found.reshape(shape), image), (shape, chunk, how)
        run("convert", "-q", "--overwrite", "a & b.pvti", "b.npy", folder=folder)
        assert np.array_equal(np.load(f"{folder}/b.npy"), image), (shape, chunk)
    assert len([p for p in os.listdir(folder) if "pvti" in p]) == 2, os.listdir(folder)


@test
def spacing_origin_and_colours_of_a_pvti_come_back(folder):
    need_vtk()
    write_vti(folder, "a.vti", grid_of(image_of("float32")), "Appended", 0, "None", 64)
    run("run", "-q", "-e", 'read("a.vti") |> write("a.pvti", chunk = 3)', folder=folder)
    _, out = read_vtk(vtk.vtkXMLPImageDataReader(), f"{folder}/a.pvti")
    assert out.GetSpacing() == (0.5, 1.5, 2) and out.GetOrigin() == (1, 2, 3)
    run("run", "-q", "-e", 'phantom("cells", [40, 50]) |> convert("uint8") |> write("grey.png")', folder=folder)
    run("run", "-q", "-e", 'read("a.pvti")[0:5, 1:4] |> write("part.npy")', folder=folder)
    assert np.array_equal(np.load(f"{folder}/part.npy"), image_of("float32")[0:5, 1:4])


def read_nhdr(path):
    """By the definition: Debian's VTK reads NRRD with MPI alone."""
    fields = dict(line.split(": ", 1) for line in path.read_text().splitlines()[2:])
    voxels = (path.parent / fields["data file"]).read_bytes()
    voxels = gzip.decompress(voxels) if fields["encoding"] == "gzip" else voxels
    kind = {"float": "float32"}.get(fields["type"], fields["type"].replace("_t", ""))
    return np.frombuffer(voxels, kind).reshape([int(n) for n in fields["sizes"].split()[::-1]])


@test
def voxels_that_lie_in_a_folder_beside_their_header_are_found(folder):
    need_vtk()
    for dtype in ("uint8", "int16", "float32"):
        image = image_of(dtype)
        np.save(f"{folder}/a.npy", image)
        for name, packing in itertools.product(("a.nhdr", "a.mhd"), ("none", "gzip")):
            path = pathlib.Path(folder, name)
            run("convert", "-q", "--overwrite", "a.npy", name, "--compression", packing, folder=folder)
            found = read_nhdr(path) if name == "a.nhdr" else read_vtk(vtk.vtkMetaImageReader(), path)[0]
            assert found.dtype == image.dtype and np.array_equal(found, image), (dtype, name, packing)
            run("convert", "-q", "--overwrite", name, "back.npy", folder=folder)
            assert np.array_equal(np.load(f"{folder}/back.npy"), image), (dtype, name, packing)


main()
