#!/usr/bin/python3
"""Label images inside OME-Zarr images: what zarr finds in labels/NAME, levels that hold no number that was not there, and what
stays when image and labels are written anew. Where an interpreter has zarr 3 and ome-zarr-models, these check the metadata."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402

try:
    import numpy as np
    import zarr
except ImportError as missing:
    print(f"skip zarr_labels: {missing}")
    sys.exit(0)

PEERS = str(pathlib.Path(__file__).resolve().parents[2] / "build" / "peers" / "bin" / "python")
BOTH = """
cells = read("cells.npy")
write(read("image.npy"), "a.ome.zarr", chunk = 16, levels = 3VERSION)
write(cells, "a.ome.zarr/labels/cells", chunk = 16, levels = 3VERSION)
"""


def make(folder, version="", fresh=()):
    """An image and its labels, in one run."""
    random = np.random.default_rng(3)
    np.save(f"{folder}/image.npy", random.integers(0, 999, (20, 33, 40)).astype(np.uint16))
    np.save(f"{folder}/cells.npy", (random.integers(0, 5, (20, 33, 40)) * 50).astype(np.uint8))
    (pathlib.Path(folder) / "p.fov").write_text(BOTH.replace("VERSION", f', version = "{version}"' if version else ""))
    return run("run", "p.fov", *fresh, folder=folder).stderr


def attributes(folder, *parts):
    return json.loads(pathlib.Path(folder, *parts, "zarr.json").read_text())["attributes"]["ome"]


@test
def labels_are_listed_and_described(folder):
    make(folder)
    assert attributes(folder, "a.ome.zarr", "labels") == {"version": "0.5", "labels": ["cells"]}
    described = attributes(folder, "a.ome.zarr", "labels", "cells")
    assert described["image-label"] == {"source": {"image": "../../"}}, described
    assert len(described["multiscales"][0]["datasets"]) == 3
    assert len(attributes(folder, "a.ome.zarr")["multiscales"][0]["datasets"]) == 3


@test
def zarr_2_finds_every_level_of_labels_without_a_new_number(folder):
    make(folder, "0.4")
    cells, group = np.load(f"{folder}/cells.npy"), zarr.open_group(f"{folder}/a.ome.zarr", "r")
    assert group["labels"].attrs.asdict() == {"labels": ["cells"]}
    assert group["labels/cells"].attrs["image-label"] == {"version": "0.4", "source": {"image": "../../"}}
    assert np.array_equal(group["labels/cells/0"][:], cells)
    assert np.array_equal(group["labels/cells/1"][:], cells[::2, ::2, ::2])
    assert np.array_equal(group["labels/cells/2"][:], cells[::4, ::4, ::4])
    assert np.array_equal(group["0"][:], np.load(f"{folder}/image.npy"))


@test
def labels_are_read_back_by_either_way_to_name_them(folder):
    make(folder)
    run("run", "-q", "-e", 'read("a.ome.zarr/labels/cells") |> write("one.npy")', folder=folder)
    run("run", "-q", "-e", 'read("a.ome.zarr", path = "labels/cells") |> write("two.npy")', folder=folder)
    run("run", "-q", "-e", 'read("a.ome.zarr", path = "labels/cells/1") |> write("three.npy")', folder=folder)
    cells = np.load(f"{folder}/cells.npy")
    assert np.array_equal(np.load(f"{folder}/one.npy"), cells) and np.array_equal(np.load(f"{folder}/two.npy"), cells)
    assert np.array_equal(np.load(f"{folder}/three.npy"), cells[::2, ::2, ::2])
    assert "labels/cells/0" in run("info", "a.ome.zarr", folder=folder).stdout


@test
def a_second_run_finds_both_up_to_date(folder):
    make(folder)
    again = run("run", "p.fov", folder=folder).stderr
    assert "everything was up to date" in again, again


@test
def an_image_written_anew_keeps_its_labels_and_a_second_label_image_is_added(folder):
    make(folder)
    run("run", "-q", "-e", 'read("image.npy") + 1 |> write("a.ome.zarr")', "--overwrite", folder=folder)
    run("run", "-q", "-e", 'convert(read("image.npy") > 500, "uint8") |> write("a.ome.zarr/labels/bright")', folder=folder)
    assert attributes(folder, "a.ome.zarr", "labels")["labels"] == ["cells", "bright"]
    run("convert", "a.ome.zarr/labels/cells", "cells-again.npy", "--quiet", folder=folder)
    assert np.array_equal(np.load(f"{folder}/cells-again.npy"), np.load(f"{folder}/cells.npy"))
    assert not [name for name in os.listdir(folder) if name.endswith(".fovea") and name != ".fovea"]


@test
def labels_make_the_group_around_them_where_there_is_none(folder):
    make(folder)
    run("run", "-q", "-e", 'read("cells.npy") |> write("new.zarr/labels/cells")', folder=folder)
    run("convert", "new.zarr/labels/cells", "back.npy", "--quiet", folder=folder)
    assert np.array_equal(np.load(f"{folder}/back.npy"), np.load(f"{folder}/cells.npy"))
    assert json.loads(pathlib.Path(folder, "new.zarr", "zarr.json").read_text())["node_type"] == "group"


@test
def what_cannot_be_a_label_image_is_refused(folder):
    make(folder)
    for text, why in (('read("cells.npy") * 0.5 |> write("a.ome.zarr/labels/half")', "labels are integers"),
                      ('read("cells.npy") |> write("a.ome.zarr/other")', "labels/NAME"),
                      ('read("cells.npy") |> write("a.ome.zarr/labels/x", version = "0.4")', 'version = "0.5"')):
        done = run("run", "-q", "-e", text, folder=folder, code=2)
        assert why in done.stderr, done.stderr


@test
def a_run_killed_anywhere_lists_no_label_image_that_is_not_whole(folder):
    for point in ("rename", "replace", "replaced", "end"):
        for number in (1, 2, 5):
            subprocess.run(["rm", "-rf", "a.ome.zarr", ".fovea"], cwd=folder, check=True)
            np.save(f"{folder}/cells.npy", np.zeros((2, 2, 2), np.uint8))
            try:
                os.environ["FOVEA_FAULT"] = f"{point}:{number}:kill"
                make(folder)
            except AssertionError as killed:
                assert "exit status 137" in str(killed), killed
            finally:
                del os.environ["FOVEA_FAULT"]
            listed = pathlib.Path(folder, "a.ome.zarr", "labels", "zarr.json")
            if listed.exists() and "cells" in listed.read_text():
                run("convert", "a.ome.zarr/labels/cells", "part.npy", "--quiet", "--overwrite", folder=folder)
                assert np.array_equal(np.load(f"{folder}/part.npy"), np.load(f"{folder}/cells.npy"))
            make(folder, fresh=("--overwrite",))
            assert attributes(folder, "a.ome.zarr", "labels")["labels"] == ["cells"]


@test
def ome_zarr_models_accepts_image_and_labels(folder):
    script = """
import zarr
from ome_zarr_models import v04, v05
for version, models in (('0.4', v04), ('0.5', v05)):
    group = zarr.open_group(f'{version}/a.ome.zarr', mode='r')
    models.Image.from_zarr(group)
    labels = models.Labels.from_zarr(group['labels'])
    image = models.ImageLabel.from_zarr(group['labels/cells'])
    owner = labels.attributes if version == '0.4' else labels.ome_attributes
    assert list(owner.labels) == ['cells'], owner
"""
    if subprocess.run([PEERS, "-c", "import zarr, ome_zarr_models"], capture_output=True, check=False).returncode \
            if os.path.exists(PEERS) else True:
        raise Skip("no ome_zarr_models; bootstrap.sh pypi installs it")
    for version in ("0.4", "0.5"):
        os.mkdir(f"{folder}/{version}")
        make(f"{folder}/{version}", version)
    done = subprocess.run([PEERS, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-600:]


@test
def a_folder_without_the_extension_is_known_by_what_lies_in_it(folder):
    for version in ("0.4", "0.5"):
        np.save(f"{folder}/a.npy", np.arange(60, dtype=np.uint16).reshape(3, 4, 5))
        run("run", "-q", "--fresh", "-e", f'read("a.npy") |> write("a.zarr", version = "{version}", levels = 1)', folder=folder)
        os.rename(f"{folder}/a.zarr", f"{folder}/scan {version}")
        run("convert", "-q", "--overwrite", f"scan {version}", "b.npy", folder=folder)
        assert np.array_equal(np.load(f"{folder}/b.npy"), np.load(f"{folder}/a.npy"))
        assert "levels" in run("info", f"scan {version}", folder=folder).stdout
    os.makedirs(f"{folder}/empty")
    assert "holds no image files" in run("info", "empty", folder=folder, code=2).stderr


main()
