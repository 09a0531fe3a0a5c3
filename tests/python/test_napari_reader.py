#!/usr/bin/env python3
"""What napari gets of files: layers with scale, channels, colours and labels, and large ones piece by piece."""
import pathlib
import subprocess
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import PATIENCE, ROOT, main, test  # noqa: E402
from interop import environment  # noqa: E402

import fovea as fv  # noqa: E402
from fovea import _napari  # noqa: E402


@test
def a_volume_opens_with_its_spacing(folder):
    path = f"{folder}/scan.nii.gz"
    fv.array(np.arange(120, dtype=np.int16).reshape(4, 5, 6), spacing=[2, 0.5, 0.25], units="mm").write(path)
    [(data, meta, kind)] = _napari.get_reader(path)(path)
    assert kind == "image" and data.shape == (4, 5, 6) and np.allclose(meta["scale"], [2, 0.5, 0.25]), meta


@test
def labels_colours_channels_and_complex_values_are_told_apart(folder):
    a = np.random.default_rng(0).random((6, 7))
    for name, image in (("cell_labels.tif", fv.array((a > 0.5).astype(np.int32))),
                        ("colour.png", fv.array((a * 255).astype(np.uint8)).colorize()),
                        ("channels.ome.tif", fv.array(np.stack([a, a]).astype(np.float32), axes="c y x")),
                        ("wave.npy", fv.array(a.astype(np.complex64)))):
        image.write(f"{folder}/{name}")
    found = {name: _napari.get_reader(f"{folder}/{name}")(f"{folder}/{name}")
             for name in ("cell_labels.tif", "colour.png", "channels.ome.tif", "wave.npy")}
    assert found["cell_labels.tif"][0][2] == "labels" and found["colour.png"][0][1]["rgb"]
    assert found["channels.ome.tif"][0][1]["channel_axis"] == 0 and len(found["channels.ome.tif"][0][1]["scale"]) == 2
    assert [meta["name"] for _, meta, _ in found["wave.npy"]] == ["wave.npy amplitude", "wave.npy phase"]


@test
def channels_have_their_names_and_ranges(folder):
    a, b = (fv.phantom("cells", [20, 30], seed=seed) for seed in (1, 2))
    both = fv.merge_channels(a, b, colors="cyan red", names="DAPI actin", ranges=[10, 200, 20, 99])
    wanted = ({"name": "DAPI", "color": "#00ffff", "range": (10, 200)}, {"name": "actin", "color": "#ff0000", "range": (20, 99)})
    assert both.channels == wanted and both[1].channels == wanted[1:] and a.channels == (), both.channels
    both.write(f"{folder}/both.zarr")
    [(_, meta, _)] = _napari.get_reader(f"{folder}/both.zarr")(f"{folder}/both.zarr")
    assert meta["name"] == ["DAPI", "actin"] and meta["contrast_limits"] == [(10, 200), (20, 99)], meta


@test
def a_large_file_is_read_by_planes(folder):
    path = f"{folder}/large.zarr"
    fv.phantom("noise", [8, 64, 64]).write(path, chunk=[1, 64, 64])
    before, _napari._WHOLE = _napari._WHOLE, 1000
    try:
        [(data, _, _)] = _napari.read_layers(path)
    finally:
        _napari._WHOLE = before
    assert not isinstance(data, np.ndarray) and data.shape == (8, 64, 64) and len(data) == 8
    assert np.array_equal(data[3], fv.read(path).compute()[3]) and np.array_equal(data[2:4, ::2], np.asarray(data)[2:4, ::2])


@test
def other_files_are_left_to_others(folder):
    assert _napari.get_reader("notes.docx") is None and _napari.get_reader(["a.tif", "b.docx"]) is None


@test
def the_manifest_is_one_that_napari_takes(folder):
    tool = environment("napari", "npe2") / "python"
    manifest = ROOT / "python" / "fovea" / "napari.yaml"
    done = subprocess.run([tool, "-m", "npe2", "validate", manifest], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 0 and "valid" in done.stdout, done.stdout + done.stderr


main()
