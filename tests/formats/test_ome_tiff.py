"""OME-TIFF and ImageJ's stacks: tifffile reads them as what they are, with axes, types and sizes of pixels."""
import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test


def modules():
    try:
        import numpy
        import tifffile
        return numpy, tifffile
    except ImportError:
        raise Skip("no tifffile here") from None


def save(np, folder, array, name="in.npy"):
    np.save(pathlib.Path(folder, name), array)


def convert(folder, axes, name, options=""):
    run("run", "-q", "--overwrite", "-e", f'name_axes(read("in.npy"), "{axes}") |> write("{name}"{options})', folder=folder)
    return pathlib.Path(folder, name)


@test
def every_order_of_axes_is_what_tifffile_reads(folder):
    np, tifffile = modules()
    for axes in ("y x", "z y x", "t y x", "c y x", "t z y x", "z c y x", "t c y x", "t z c y x", "c z y x", "t c z y x", "y x c"):
        sizes = {"t": 2, "z": 3, "c": 4, "y": 20, "x": 30}
        if axes == "y x c":
            sizes["c"] = 3
        array = np.random.default_rng(1).integers(0, 60000, [sizes[a] for a in axes.split()]).astype("uint16")
        save(np, folder, array)
        with tifffile.TiffFile(convert(folder, axes, "a.ome.tif")) as file:
            assert file.is_ome, axes
            series = file.series[0]
            assert series.axes.replace("S", "C").lower() == axes.replace(" ", ""), (axes, series.axes)
            assert np.array_equal(series.asarray(), array), axes
        run("run", "-q", "--overwrite", "-e", 'read("a.ome.tif") |> write("again.npy")', folder=folder)
        assert np.array_equal(np.load(pathlib.Path(folder, "again.npy")), array), axes


@test
def every_type_and_compression_is_read_back(folder):
    np, tifffile = modules()
    for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"):
        array = (np.random.default_rng(2).random([3, 17, 19]) * 100).astype(dtype)
        save(np, folder, array)
        for compression in ("deflate", "none"):
            read = tifffile.imread(convert(folder, "z y x", "a.ome.tif", f', compression = "{compression}"'))
            assert read.dtype == array.dtype and np.array_equal(read, array), (dtype, compression)
    save(np, folder, np.ones([4, 4], "int64"))
    said = run("run", "-q", "-e", 'read("in.npy") |> write("b.ome.tif")', folder=folder, code=None)
    assert said.returncode and "OME-TIFF has no pixels of type int64" in said.stderr, said.stderr
    save(np, folder, np.ones([4, 4, 4], "uint8"))
    said = run("run", "-q", "-e", 'name_axes(read("in.npy"), "angle y x") |> write("b.ome.tif")', folder=folder, code=None)
    assert said.returncode and "angle y x" in said.stderr, said.stderr


@test
def sizes_of_pixels_are_told_and_kept(folder):
    np, tifffile = modules()
    array = np.arange(2 * 3 * 8 * 9, dtype="uint8").reshape(2, 3, 8, 9)
    tifffile.imwrite(pathlib.Path(folder, "in.tif"), array, imagej=True, resolution=(1 / 0.25, 1 / 0.5),
                     metadata={"axes": "TZYX", "spacing": 2.0, "unit": "um", "finterval": 0.5})
    run("run", "-q", "-e", 'read("in.tif") |> write("a.ome.tif")', folder=folder)
    with tifffile.TiffFile(pathlib.Path(folder, "a.ome.tif")) as file:
        root = xml.etree.ElementTree.fromstring(file.ome_metadata)
    pixels = next(e for e in root.iter() if e.tag.endswith("Pixels")).attrib
    assert [float(pixels[f"PhysicalSize{a}"]) for a in "XYZ"] == [0.25, 0.5, 2.0], pixels
    assert pixels["PhysicalSizeXUnit"] == "µm" and float(pixels["TimeIncrement"]) == 0.5, pixels
    said = run("info", "a.ome.tif", folder=folder).stdout
    assert "0.25" in said and "micrometer" in said, said


def halved(np, array, first, mean):
    """The next level: along the axes y and x that begin at `first`, the mean of what is there, halves up, or the first."""
    pad = [(0, n % 2 if first <= d < first + 2 else 0) for d, n in enumerate(array.shape)]
    whole = np.moveaxis(np.pad(array.astype("float64"), pad, constant_values=np.nan), [first, first + 1], [0, 1])
    parts = np.stack([whole[i::2, j::2] for i in range(2) for j in range(2)])
    coarse = np.moveaxis(np.nanmean(parts, 0) if mean else parts[0], [0, 1], [first, first + 1])
    return (coarse if array.dtype.kind == "f" else np.floor(coarse + 0.5)).astype(array.dtype)


@test
def large_images_have_a_pyramid(folder):
    np, tifffile = modules()
    for shape, axes, dtype, options, levels in (
            ((2100, 1000), "y x", "uint16", "", 3), ((700, 901), "y x", "uint8", ", levels = 3", 3),
            ((2, 3, 515, 130), "t c y x", "uint16", ", levels = 2", 2), ((3, 600, 513), "z y x", "float32", ", levels = 4", 4),
            ((530, 540, 3), "y x c", "uint8", ", levels = 3", 3), ((600, 600), "y x", "int32", ", levels = 2", 2),
            ((300, 333), "y x", "uint16", ", levels = 5, chunk = [64, 32]", 5), ((1000, 2040), "y x", "uint8", "", 1),
            ((700, 600), "y x", "uint16", ', levels = 2, compression = "none"', 2)):
        array = (np.random.default_rng(4).random(shape) * 200).astype(dtype)
        save(np, folder, array)
        path, first = convert(folder, axes, "p.ome.tif", options), axes.split().index("y")
        with tifffile.TiffFile(path) as file:
            found = file.series[0].levels
            assert len(found) == levels and file.is_ome and len(file.series) == 1, (shape, found)
            for number, level in enumerate(found):
                close = np.allclose(level.asarray(), array, rtol=1e-6, atol=0)
                assert close if dtype == "float32" else np.array_equal(level.asarray(), array), (shape, axes, level.shape)
                text = f'read("p.ome.tif", path = "level {number}") |> write("level.npy")'
                run("run", "-q", "--overwrite", "-e", text, folder=folder)
                assert np.array_equal(np.load(pathlib.Path(folder, "level.npy")), level.asarray()), (shape, number)
                array = halved(np, array, first, dtype != "int32")
        said = run("run", "-e", f'max(read("p.ome.tif", path = "level {levels}"))', folder=folder, code=None)
        assert said.returncode and f"has no level {levels}" in said.stderr, said.stderr
        run("run", "-q", "--overwrite", "-e", 'read("p.ome.tif") |> write("again.npy")', folder=folder)
        assert np.array_equal(np.load(pathlib.Path(folder, "again.npy")), np.load(pathlib.Path(folder, "in.npy"))), shape
        wanted = path.read_bytes()
        for more in (["--chunk", "100"], ["--workers", "1"], ["--engine", "processes"]):
            run("run", "-q", "--overwrite", "--fresh", *more, "-e",
                f'name_axes(read("in.npy"), "{axes}") |> write("p.ome.tif"{options})', folder=folder)
            assert path.read_bytes() == wanted, (shape, more)
    for options, words in ((", levels = 9, chunk = [16, 16]", "can have 5"), (", levels = 12", "can have 10")):
        said = run("run", "-e", f'phantom("cells", [900, 900]) |> write("q.ome.tif"{options})', folder=folder, code=2).stderr
        assert words in said, said
    said = run("run", "-e", 'phantom("cells", [90, 90]) |> write("q.tif", levels = 2)', folder=folder, code=2).stderr
    assert "levels" in said, said


@test
def tiles_without_compression_are_put_in_place(folder):
    """Whoever computes them, in whatever order, also after a kill."""
    np, tifffile = modules()
    save(np, folder, np.random.default_rng(4).integers(0, 60000, (2, 700, 8300)).astype("uint16"))
    for options in (', compression = "none"', ', compression = "none", chunk = [64, 1008]'):
        path = convert(folder, "z y x", "t.tif", options)
        with tifffile.TiffFile(path) as file:
            assert file.pages[0].is_tiled and np.array_equal(file.asarray(), np.load(pathlib.Path(folder, "in.npy")))
        wanted = path.read_bytes()
        text = f'name_axes(read("in.npy"), "z y x") |> write("t.tif"{options})'
        for more in (["--chunk", "300"], ["--workers", "1"], ["--engine", "processes"]):
            run("run", "-q", "--overwrite", "--fresh", *more, "-e", text, folder=folder)
            assert path.read_bytes() == wanted, more
        run("run", "-q", "--overwrite", "--fresh", "--chunk", "300", "-e", text, folder=folder, code=137,
            environment={"FOVEA_FAULT": "task:4:kill"})
        run("run", "-q", "--overwrite", "--chunk", "300", "-e", text, folder=folder)
        assert path.read_bytes() == wanted


@test
def stacks_in_micrometres_are_those_of_imagej(folder):
    np, tifffile = modules()
    array = np.arange(2 * 3 * 4 * 8 * 9, dtype="uint16").reshape(2, 3, 4, 8, 9)
    save(np, folder, array)
    with tifffile.TiffFile(convert(folder, "t z c y x", "a.tif")) as file:
        assert file.is_imagej and file.series[0].axes == "TZCYX", file.series[0].axes
        assert np.array_equal(file.series[0].asarray(), array)


if __name__ == "__main__":
    main()
