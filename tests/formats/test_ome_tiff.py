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
