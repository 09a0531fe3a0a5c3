#!/usr/bin/python3
"""OME-Zarr of both versions, with and without shards, in the programs that show it: napari and Neuroglancer draw image and labels
with their levels, units and scale; zarr, TensorStore, and the readers and models of OME-Zarr find the same voxels."""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import PATIENCE, main, run, test  # noqa: E402
from interop import Screen, environment, make_page_files, program, python, snippet  # noqa: E402
from remote_server import serve  # noqa: E402
from view_client import View  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip zarr_viewers: {missing}")
    sys.exit(0)

MICROMETRES = [2, 0.5, 0.25]  # between voxels, z y x
VARIANTS = {"0.4": 'version = "0.4"', "0.5": "chunk = 32", "shards": "chunk = 16, shard = 64"}


def variants(folder):
    """(name of a folder with scan.zarr, scan, cells) of every variant."""
    make_page_files(folder)
    for name, options in VARIANTS.items():
        text = f"""write(read("scan.zarr"), "{name}/scan.zarr", levels = 2, {options})
write(read("scan.zarr/labels/cells"), "{name}/scan.zarr/labels/cells", levels = 2, {options})"""
        run("run", "-q", "-e", text, folder=folder)
        yield name


def picture(folder, name):
    """An image file that a viewer has made, as an array."""
    run("convert", "-q", "--overwrite", name, "picture.npy", folder=folder)
    return np.load(f"{folder}/picture.npy").astype(int)


@test
def napari_shows_image_and_labels_with_their_levels_scale_and_units(folder):
    environment("napari", "napari", "napari_ome_zarr", "PyQt5")
    text = """
import json, qtpy.QtWidgets
viewer.dims.set_point(0, 20.0)
qtpy.QtWidgets.QApplication.processEvents()
viewer.screenshot("seen.png", flash=False)
print(json.dumps([[type(layer).__name__, [list(level.shape) for level in layer.data], list(layer.scale),
                   [str(unit) for unit in layer.units], int(layer.data[0].astype("int64").sum())] for layer in (image, labels)]))
"""
    with Screen() as screen:
        for name in variants(folder):
            place = pathlib.Path(folder, name)
            found = python("napari", snippet("napari", "python") + text, place, QT_QPA_PLATFORM="xcb", **screen.variables)
            scan, cells = np.load(f"{folder}/original.npy"), np.load(f"{folder}/cells.npy")
            shapes = [list(scan.shape), [(size + 1) // 2 for size in scan.shape]]
            wanted = [["Image", shapes, MICROMETRES, ["micrometer"] * 3, int(scan.sum())],
                      ["Labels", shapes, MICROMETRES, ["micrometer"] * 3, int(cells.sum())]]
            assert found == wanted, (name, found)
            seen = picture(place, "seen.png")
            grey = np.ptp(seen[..., :3], axis=2) < 12
            colours = len(np.unique(seen.reshape(-1, seen.shape[-1]), axis=0))
            assert colours > 50 and 0.02 < grey.mean() < 0.98, (name, colours, grey.mean())


@contextlib.contextmanager
def browser(folder, address):
    """A browser without a window, which draws by the processor."""
    command = [program("chromium"), "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--use-angle=swiftshader",
               "--enable-unsafe-swiftshader", "--window-size=900,600", "--remote-debugging-port=0",
               f"--user-data-dir={folder}/browser", address]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def neuroglancer(folder, server, protocol):
    """What Neuroglancer says about itself and shows, in a browser."""
    code = snippet("Neuroglancer", "python").replace("zarr3://http://127.0.0.1:8000", f"{protocol}://{server}")
    text = """, flush=True)
import json
with viewer.txn() as state:
    state.layers["scan"].shader = "#uicontrol invlerp normalized(range=[0, 255])\\nvoid main() { emitGrayscale(normalized()); }"
    state.layers["cells"].segments = [1, 2, 3, 4, 5]
    state.layout = "xy"
image = viewer.screenshot(size=[400, 300]).screenshot.image
open("seen.png", "wb").write(image)
print(json.dumps(viewer.state.to_json()), flush=True)
"""
    path = pathlib.Path(folder, "program.py")
    begin = 'import neuroglancer\nneuroglancer.set_server_bind_address("127.0.0.1")\n'
    path.write_text(begin + code.rstrip().removesuffix(")") + text)
    process = subprocess.Popen([environment("napari", "neuroglancer") / "python", path.name], cwd=folder, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with browser(folder, process.stdout.readline().strip()):
            out, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors[-800:]
    return json.loads(out.splitlines()[-1]), picture(folder, "seen.png")


@test
def neuroglancer_draws_image_and_labels_of_both_versions_and_of_shards(folder):
    environment("napari", "neuroglancer")
    program("chromium")
    for name in variants(folder):
        with serve(pathlib.Path(folder, name)) as server:
            state, seen = neuroglancer(folder, server.url, "zarr2" if name == "0.4" else "zarr3")
            asked = {path for _, path, _ in server.log if "/0/" in path or "/1/" in path}
        metres = {axis: size for axis, (size, unit) in state["dimensions"].items() if unit == "m"}
        assert np.allclose([metres[axis] for axis in "zyx"], np.multiply(MICROMETRES, 1e-6)), (name, state)
        assert any("labels/cells" in path for path in asked) and any("labels" not in path for path in asked), (name, asked)
        spread = np.ptp(seen[..., :3], axis=2)
        assert (spread > 40).mean() > 0.01 and len(np.unique(seen[..., 0])) > 10, (name, (spread > 40).mean())


@test
def zarr_and_tensorstore_find_the_voxels_of_every_level(folder):
    text = """
import json, numpy
result = [scale, int(cells.sum()), int(coarse.astype("int64").sum()), int(group["1"][:].astype("int64").sum())]
for name, driver in (("0.4", "zarr"), ("0.5", "zarr3"), ("shards", "zarr3")):
    for part in ("0", "1", "labels/cells/0", "labels/cells/1"):
        path = f"{name}/scan.zarr/{part}"
        array = tensorstore.open({"driver": driver, "kvstore": {"driver": "file", "path": path}}).result()
        other = zarr.open_array(path, mode="r")
        assert numpy.array_equal(array.read().result(), other[:]), path
        assert driver == "zarr" or list(array.domain.labels) == ["z", "y", "x"], array.domain
        if part == "0":
            assert numpy.array_equal(other[:], numpy.load("original.npy")), path
            assert name != "shards" or array.chunk_layout.read_chunk.shape != array.chunk_layout.write_chunk.shape
print(json.dumps(result))
"""
    environment("napari", "tensorstore", "zarr")
    list(variants(folder))
    scale, cells, coarse, again = python("napari", snippet("zarr and TensorStore", "python") + text, folder)
    assert scale == MICROMETRES and cells == np.load(f"{folder}/cells.npy").sum() and coarse == again > 0


@test
def the_reader_and_the_models_of_ome_zarr_accept_image_and_labels(folder):
    text = """
import json, zarr, ome_zarr_models
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
found = []
for name in ("0.4", "0.5", "shards"):
    path = f"{name}/scan.zarr"
    for part in (path, path + "/labels/cells"):
        group = ome_zarr_models.open_ome_zarr(zarr.open_group(part, mode="r"))
        found.append(type(group).__name__)
    nodes = list(Reader(parse_url(path))())
    found.append([[int(level.astype("int64").sum().compute()) for level in node.data] for node in nodes])
print(json.dumps(found))
"""
    environment("napari", "ome_zarr_models", "ome_zarr")
    names = list(variants(folder))
    found = python("napari", text, folder)
    scan, cells = np.load(f"{folder}/original.npy"), np.load(f"{folder}/cells.npy")
    for index, name in enumerate(names):
        image, label, nodes = found[3 * index:3 * index + 3]
        assert image == "Image" and "Label" in label, (name, image, label)
        assert nodes[0][0] == scan.sum() and len(nodes[0]) == 2, (name, nodes)
        assert cells.sum() in [levels[0] for levels in nodes[1:] if levels], (name, nodes)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def virtual(folder, origin="https://example.org"):
    """A TIFF file as the OME-Zarr that `fovea view` makes of it: its address and its voxels."""
    make_page_files(folder)
    run("run", "-q", "-e", 'read("scan.zarr") |> write("scan.tif")', folder=folder)
    with View("scan.tif", "--allow-origin", origin, folder=folder) as view:
        yield f"http://127.0.0.1:{view.port}{view.json('/api/session')['zarr']}0", np.load(f"{folder}/original.npy")


@test
def zarr_tensorstore_and_the_reader_of_ome_zarr_open_the_virtual_image_of_fovea_view(folder):
    environment("napari", "tensorstore", "zarr", "ome_zarr")
    text = """
import json, numpy, tensorstore, zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
wanted = numpy.load("original.npy")
scales = zarr.open_group("ADDRESS", mode="r").attrs["multiscales"][0]["datasets"]
for level in [one["path"] for one in scales]:
    array = tensorstore.open({"driver": "zarr", "kvstore": "ADDRESS/" + level + "/"}).result()
    other = zarr.open_array("ADDRESS/" + level, mode="r")
    assert numpy.array_equal(array.read().result(), other[:]), level
    assert level != "0" or numpy.array_equal(other[:], wanted), "not the voxels of the file"
[node] = list(Reader(parse_url("ADDRESS"))())
assert numpy.array_equal(node.data[0].compute(), wanted)
print(json.dumps([node.metadata["axes"], scales[0]["coordinateTransformations"][0]["scale"]]))
"""
    with virtual(folder) as (address, _):
        axes, scale = python("napari", text.replace("ADDRESS", address), folder)
    assert [axis["name"] for axis in axes] == list("zyx") and np.allclose(scale, MICROMETRES), (axes, scale)


@test
def neuroglancer_draws_the_virtual_image_of_fovea_view(folder):
    environment("napari", "neuroglancer")
    program("chromium")
    port = free_port()
    text = f"""
import neuroglancer
neuroglancer.set_server_bind_address("127.0.0.1", bind_port={port})
viewer = neuroglancer.Viewer()
with viewer.txn() as state:
    state.layers["scan"] = neuroglancer.ImageLayer(source="zarr2://ADDRESS",
        shader="#uicontrol invlerp normalized(range=[0, 255])\\nvoid main() {{ emitGrayscale(normalized()); }}")
    state.layout = "xy"
print(viewer, flush=True)
open("seen.png", "wb").write(viewer.screenshot(size=[400, 300]).screenshot.image)
"""
    with virtual(folder, f"http://127.0.0.1:{port}") as (address, _):
        pathlib.Path(folder, "program.py").write_text(text.replace("ADDRESS", address))
        process = subprocess.Popen([environment("napari", "neuroglancer") / "python", "program.py"], cwd=folder, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            with browser(folder, process.stdout.readline().strip()):
                _, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, errors[-800:]
    seen = picture(folder, "seen.png")
    assert len(np.unique(seen[..., 0])) > 30 and seen[..., :3].std() > 10, (np.unique(seen[..., 0]).size, seen.std())


@test
def napari_shows_the_virtual_image_of_fovea_view(folder):
    environment("napari", "napari", "napari_ome_zarr", "PyQt5")
    text = """
import json, napari
viewer = napari.Viewer()
[layer] = viewer.open("ADDRESS.zarr", plugin="napari-ome-zarr")
viewer.screenshot("seen.png", flash=False)
data = layer.data[0] if layer.multiscale else layer.data
print(json.dumps([list(data.shape), list(layer.scale), int(data.astype("int64").sum())]))
"""
    with Screen() as screen, virtual(folder) as (address, scan):
        found = python("napari", text.replace("ADDRESS", address), folder, QT_QPA_PLATFORM="xcb", **screen.variables)
    assert found == [list(scan.shape), MICROMETRES, int(scan.sum())], found
    assert len(np.unique(picture(folder, "seen.png")[..., 0])) > 10


main()
