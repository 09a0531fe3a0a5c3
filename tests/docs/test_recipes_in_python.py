#!/usr/bin/env python3
"""docs/recipes-python.md: every recipe in Python writes the same files as its pipeline."""
import contextlib
import io
import os
import pathlib
import re
import sqlite3
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import ROOT, Skip, main, run, test  # noqa: E402
from recipes import TEXT, cook, within_two_connections  # noqa: E402

import fovea as fv  # noqa: E402

PAGE = (ROOT / "docs" / "recipes-python.md").read_text(encoding="utf-8")
TITLES = re.findall(r"^## (.*)$", TEXT, re.M)
SCANS = ("A NeXus scan from raw frames to slices", "DataExchange from raw frames to slices")


def blocks(part):
    return re.findall(r"^```python\n(.*?)^```", part, re.M | re.S)


def in_python(folder, *titles):
    """Runs the blocks of the page in a folder, of all sections or of some; what they printed, and their names."""
    names, printed, before = {}, io.StringIO(), os.getcwd()
    head, *sections = re.split(r"^## ", PAGE, flags=re.M)
    sections = [s for s in sections if not titles or s.splitlines()[0] in titles]
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            for block in blocks(head) + [b for s in sections for b in blocks(s)]:
                exec(compile(block, "docs/recipes-python.md", "exec"), names)  # pylint: disable=exec-used
    finally:
        os.chdir(before)
    return names, printed.getvalue()


def contents(path):
    """What has to be the same: the bytes of a file, but of a database its rows."""
    if path.suffix != ".db":
        return path.read_bytes()
    with sqlite3.connect(path) as base:
        tables = [name for name, in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {t: base.execute(f"SELECT * FROM {t}").fetchall() for t in tables if t != "_fovea"}


def files(folder):
    folder = pathlib.Path(folder)
    return {str(p.relative_to(folder)) for p in folder.rglob("*")
            if p.is_file() and ".fovea" not in p.parts and p.suffix != ".fov" and p.name != "dishes.csv"}


@test
def every_recipe_is_there_in_the_same_order(folder):
    assert re.findall(r"^## (.*)$", PAGE, re.M) == TITLES and len(TITLES) > 15, TITLES


@test
def each_writes_the_same_files_as_its_pipeline(folder):
    there, here = pathlib.Path(folder, "text"), pathlib.Path(folder, "python")
    for each in there, here:
        each.mkdir()
    titles = [t for t in TITLES if t not in SCANS]
    cook(there, *titles)
    names, printed = in_python(here, *titles)
    assert files(there) == files(here), files(there) ^ files(here)
    assert len(files(here)) > 30
    for name in sorted(files(here)):
        want = contents(there / name)
        if name in ("bubbles-1.csv", "bubbles-4.csv"):  # tables of a sweep begin with the swept parameter
            want = re.sub(rb"^(depth|\d+),", b"", want, flags=re.M)
        assert want == contents(here / name), name
    assert names["within_two"] == within_two_connections(there, 12)[0]
    assert "control" in printed and "drug" in printed, printed


@test
def scans_are_reconstructed_alike(folder):
    try:
        import h5py
    except ImportError:
        raise Skip("no h5py: scripts/bootstrap.sh peers could not install it") from None
    angles = np.linspace(0, 180, 61)
    lines = fv.array(fv.phantom("shepp-logan", [4, 48, 48]).compute()).xray(fv.parallel(angles.tolist())).compute()
    lines = np.broadcast_to(lines, (len(angles), 4, lines.shape[-1]))
    frames = (20000 * np.exp(-lines / lines.max()) + 100).astype(np.uint16)
    flats, darks = np.full((3, *frames.shape[1:]), 20100, np.uint16), np.full((2, *frames.shape[1:]), 100, np.uint16)
    with h5py.File(f"{folder}/scan.nxs", "w") as scan:
        for group, kind in (("entry", "NXentry"), ("entry/instrument", "NXinstrument"),
                            ("entry/instrument/detector", "NXdetector"), ("entry/sample", "NXsample")):
            scan.create_group(group).attrs["NX_class"] = kind
        scan["entry/definition"] = "NXtomo"
        scan["entry/instrument/detector/data"] = np.concatenate([darks, flats, frames])
        scan["entry/instrument/detector/image_key"] = [2] * 2 + [1] * 3 + [0] * len(frames)
        scan["entry/sample/rotation_angle"] = np.concatenate([np.zeros(5), angles])
    with h5py.File(f"{folder}/scan.h5", "w") as scan:
        scan["exchange/data"], scan["exchange/data_white"], scan["exchange/data_dark"] = frames, flats, darks
        scan["exchange/theta"] = angles
    names, _ = in_python(folder, *SCANS)
    try:
        run("info", "scan.nxs", folder=folder)
    except AssertionError as error:
        raise Skip("no HDF5: scripts/bootstrap.sh hdf5 could not install it") from error
    for title, function, text, output in ((SCANS[0], "reconstruct", "nexus.fov", "slices.tif"),
                                          (SCANS[1], "reconstruct_exchange", "exchange.fov", "slices.zarr")):
        cook(folder, title, real=True)
        center = float(run("run", "-q", text, "--set", "row=1", "--into", "text", folder=folder).stdout)
        before = os.getcwd()
        os.chdir(folder)
        try:
            found = names[function](pathlib.Path(folder, re.search(r'scan = "(.*)"', pathlib.Path(text).read_text()).group(1)), 1)
            same = np.array_equal(fv.read(output).compute(), fv.read(f"text/{output}").compute())
        finally:
            os.chdir(before)
        assert abs(found - center) < 1e-9 and same, (title, found, center)


main()
