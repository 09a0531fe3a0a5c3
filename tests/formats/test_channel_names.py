#!/usr/bin/python3
"""Names, colours and ranges of channels: they go through a pipeline with their channels, into files and out of them again, and
other programs find them there."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, run, test  # noqa: E402

MADE = """a = phantom("cells", [6, 40, 50], seed = 1)
b = phantom("cells", [6, 40, 50], seed = 2)
m = merge_channels(a, b, colors = "cyan #ff8000", names = "DAPI, Alexa 488", ranges = [10, 200, 20, 220])
"""
DAPI = {"name": "DAPI", "color": "#00ffff", "range": [10, 200]}
ALEXA = {"name": "Alexa 488", "color": "#ff8000", "range": [20, 220]}


def modules():
    try:
        import numpy
        import tifffile
        return numpy, tifffile
    except ImportError:
        raise Skip("no tifffile here") from None


def make(folder, text):
    run("run", "-q", "--overwrite", "-e", MADE + text, folder=folder)


def channels(folder, name):
    return json.loads(run("info", "--json", name, folder=folder).stdout)[0].get("channels", [])


def without_range(*all_channels):
    return [{key: value for key, value in one.items() if key != "range"} for one in all_channels]


@test
def they_are_in_every_format_that_keeps_them_and_read_again(folder):
    for name, options in (("a.zarr", ""), ("b.zarr", ', version = "0.4"'), ("c.tif", ""), ("d.tif", ", hyperstack = true"),
                          ("e.tif", ', compression = "none", hyperstack = true')):
        make(folder, f'write(m, "{name}"{options})')
        assert channels(folder, name) == [DAPI, ALEXA], (name, channels(folder, name))
        make(folder, f'write(read("{name}")[{":, " if "hyperstack" in options else ""}1:2], "again.tif")')
        assert channels(folder, "again.tif") == [ALEXA], name
    make(folder, 'write(m, "f.ome.tif")')
    assert channels(folder, "f.ome.tif") == without_range(DAPI, ALEXA), channels(folder, "f.ome.tif")


@test
def they_stay_with_their_channels(folder):
    both = without_range(DAPI, ALEXA)
    for value, wanted in (
            ("gaussian(m, 1)", [DAPI, ALEXA]), ("m[:, 3]", [DAPI, ALEXA]), ("m[::-1]", [ALEXA, DAPI]), ("m[1:2]", [ALEXA]),
            ("m[1]", [ALEXA]), ("split(m, 0)", [DAPI]), ("crop(m, [0, 5, 5], [3, 20, 20])", [DAPI, ALEXA]),
            ("median(m, 3) |> resize(factor = 0.5)", [DAPI, ALEXA]), ("m / 2 + 1", both), ("m * (m[0] > 50)", both),
            ("m - project(m, \"z\", \"mean\")", both), ("project(m, \"z\", \"max\")", [DAPI, ALEXA]),
            ("transpose(m, \"z c y x\")", [DAPI, ALEXA]),
            ("merge_channels(m[1], m[0])", [ALEXA, DAPI]), ("concatenate(m[1:2], m, axis = \"c\")", [ALEXA, DAPI, ALEXA]),
            ("stack(m[0], a, axis = \"c\")", [DAPI, {"name": ""}]), ("stack(m[0], m[1], axis = \"t\")", []),
            ("m[0] / m[1]", []), ("project(m, \"c\", \"max\")", []), ("name_axes(m, \"t z y x\")", []),
            ("name_channels(m, names = \"one two\")", [{**DAPI, "name": "one"}, {**ALEXA, "name": "two"}])):
        make(folder, f'write({value}, "v.tif")')
        assert channels(folder, "v.tif") == wanted, (value, channels(folder, "v.tif"))


@test
def composite_shows_them(folder):
    np, _ = modules()
    make(folder, """write(composite(m), "told.npy")
write(composite(m, colors = "cyan #ff8000", ranges = [10, 200, 20, 220]), "said.npy")
write(composite(m / 1), "measured.npy")
write(composite(stack(a, b, axis = "c"), colors = "cyan #ff8000"), "plain.npy")
""")
    told, said, measured, plain = (np.load(f"{folder}/{name}.npy") for name in ("told", "said", "measured", "plain"))
    assert np.array_equal(told, said) and np.array_equal(measured, plain) and not np.array_equal(told, plain)


@test
def tifffile_finds_them(folder):
    np, tifffile = modules()
    make(folder, """write(m, "v.npy")
write(m, "h.tif", hyperstack = true)
write(m, "o.ome.tif")
write(m, "n.tif", hyperstack = true, compression = "none")""")
    array = np.load(f"{folder}/v.npy")
    assert np.array_equal(tifffile.imread(f"{folder}/n.tif"), array.swapaxes(0, 1))
    make(folder, 'write(read("n.tif"), "n.npy")')
    assert np.array_equal(np.load(f"{folder}/n.npy"), array.swapaxes(0, 1))
    with tifffile.TiffFile(f"{folder}/h.tif") as file:
        found = file.imagej_metadata
        assert file.series[0].axes == "ZCYX" and np.array_equal(file.asarray(), array.swapaxes(0, 1))
        assert found["mode"] == "composite" and found["hyperstack"] and found["Ranges"] == (10, 200, 20, 220), found
        assert [lut[:, 255].tolist() for lut in found["LUTs"]] == [[0, 255, 255], [255, 128, 0]], found["LUTs"]
        assert found["LUTs"][0][:, 0].tolist() == [0, 0, 0] and found["Labels"] == ["DAPI", "Alexa 488"] * 6, found["Labels"]
    with tifffile.TiffFile(f"{folder}/o.ome.tif") as file:
        pixels = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
        found = [(c["Name"], c["Color"] & 0xffffffff) for c in pixels["Channel"]]
        assert found == [("DAPI", 0x00ffffff), ("Alexa 488", 0xff8000ff)], found


@test
def what_tifffile_writes_is_read(folder):
    np, tifffile = modules()
    array = np.random.default_rng(1).integers(0, 999, (3, 2, 20, 30)).astype("uint16")
    ramp = np.arange(256, dtype="uint8")
    luts = [np.stack([ramp, 0 * ramp, ramp]), np.stack([0 * ramp, ramp, 0 * ramp])]
    tifffile.imwrite(f"{folder}/ij.tif", array, imagej=True, byteorder=">",
                     metadata={"axes": "ZCYX", "mode": "composite", "LUTs": luts, "Ranges": (0.0, 500.0, 20.0, 800.0),
                               "Labels": ["nuclei", "µ-tubuli"] * 3})
    assert channels(folder, "ij.tif") == [{"name": "nuclei", "color": "#ff00ff", "range": [0, 500]},
                                          {"name": "µ-tubuli", "color": "#00ff00", "range": [20, 800]}]
    tifffile.imwrite(f"{folder}/labels.tif", array, imagej=True, metadata={"axes": "ZCYX", "Labels": [f"s{i}" for i in range(6)]})
    assert channels(folder, "labels.tif") == []  # labels of slices are no names of channels
    tifffile.imwrite(f"{folder}/a.ome.tif", array,
                     metadata={"axes": "ZCYX", "Channel": {"Name": ["a & b", "c"], "Color": [-1, 65535]}})
    assert channels(folder, "a.ome.tif") == [{"name": "a & b", "color": "#ffffff"}, {"name": "c", "color": "#0000ff"}]


@test
def ranges_that_nobody_said_are_measured(folder):
    np, _ = modules()
    array = np.zeros((2, 30, 40), "uint16")
    array[0, 3, 3], array[1] = 700, 5
    np.save(f"{folder}/a.npy", array)
    text = 'name_channels(read("a.npy", axes = "c y x"), "one two") |> write("a.zarr")'
    run("run", "-q", "--engine", "processes", "-e", text, folder=folder)
    found = json.loads(pathlib.Path(folder, "a.zarr/zarr.json").read_text())["attributes"]["ome"]["omero"]["channels"]
    assert [c["window"] for c in found] == [{"min": 0, "max": 65535, "start": 0, "end": 700},
                                            {"min": 0, "max": 65535, "start": 5, "end": 6}], found
    assert [c["color"] for c in found] == ["00FF00", "FF00FF"], found


@test
def mistakes_are_told(folder):
    for call, said in (('merge_channels(a, b, colors = "red")', "1 for 2 channels"),
                       ('merge_channels(a, b, names = "x y z")', "3 for 2 channels"),
                       ('merge_channels(a, b, names = "' + 40 * "x" + ' y")', "longer than 31"),
                       ('merge_channels(a, b, ranges = [1, 2])', "2 channels need 4"),
                       ('name_channels(m, colors = "red ultraviolet")', "is no colour")):
        result = run("run", "-q", "-e", MADE + f'write({call}, "x.tif")', folder=folder, code=2)
        assert said in result.stderr, (call, result.stderr)
    for value, name, said in (('name_axes(m, "c angle y x")', "x.tif", "axes among t, z and c"),
                              ('convert(m, "int32")', "x.tif", "uint8, uint16 or float32"),
                              ("m", "x.npy", "hyperstack: the npy format has no such choice")):
        result = run("run", "-q", "-e", MADE + f'write({value}, "{name}", hyperstack = true)', folder=folder, code=2)
        assert said in result.stderr, (value, result.stderr)


@test
def the_models_of_ome_zarr_accept_them(folder):
    python = ROOT / "build" / "peers" / "bin" / "python"
    import subprocess
    if not python.exists() or subprocess.run([python, "-c", "import ome_zarr_models"], capture_output=True).returncode:
        raise Skip("no ome_zarr_models; make peers installs it")
    make(folder, 'write(m / 2, "a.zarr")\nwrite(m, "b.zarr", version = "0.4")')
    text = """import zarr, ome_zarr_models, ome_zarr_models.common.omero as model
for name in ("a.zarr", "b.zarr"):
    said = ome_zarr_models.open_ome_zarr(zarr.open_group(name, mode="r")).ome_attributes.omero
    channels = (model.Omero(**said) if isinstance(said, dict) else said).channels
    print([(c.label, c.color, c.window.start < c.window.end) for c in channels])"""
    found = subprocess.run([python, "-c", text], capture_output=True, text=True, cwd=folder)
    assert found.stdout.count("[('DAPI', '00FFFF', True), ('Alexa 488', 'FF8000', True)]") == 2, found


main()
