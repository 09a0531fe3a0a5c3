#!/usr/bin/python3
"""One file for each slice: a name with an axis in braces."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test  # noqa: E402


def modules():
    try:
        import numpy
        import tifffile
        return numpy, tifffile
    except ImportError:
        raise Skip("no tifffile here") from None


def write(folder, value, name, *more, code=0):
    return run("run", "-q", *more, "-e", f'{value} |> write("{name}")', folder=folder, code=code)


def names(folder):
    return sorted(p.name for p in pathlib.Path(folder).iterdir() if not p.name.startswith("."))


@test
def slices_are_those_of_the_stack_for_every_format_chunk_and_engine(folder):
    np, tifffile = modules()
    value = 'phantom("foam", [13, 90, 70]) |> convert("uint8")'
    write(folder, value, "whole.npy")
    whole = np.load(pathlib.Path(folder, "whole.npy"))
    write(folder, value, "a/slice_{z}.tif")
    assert names(f"{folder}/a") == [f"slice_{z:04d}.tif" for z in range(13)]
    assert np.array_equal(np.stack([tifffile.imread(pathlib.Path(folder, "a", n)) for n in names(f"{folder}/a")]), whole)
    first = [pathlib.Path(folder, "a", n).read_bytes() for n in names(f"{folder}/a")]
    for number, more in enumerate((("--chunk", "4x30x70"), ("--workers", "1"), ("--engine", "processes"), ("--memory", "64M"))):
        write(folder, value, f"b{number}/slice_{{z}}.tif", *more, "--fresh")
        assert [p.read_bytes() for p in sorted(pathlib.Path(folder, f"b{number}").glob("slice*"))] == first, more
    for ending in ("png", "npy", "jpg", "nii.gz", "ome.tif", "pgm", "mrc", "tif"):
        write(folder, value, f"c_{ending}/{{z}}.{ending}")
        write(folder, f'read("c_{ending}/*.{ending}", stack = "z")', "again.npy", "--overwrite")
        again = np.load(pathlib.Path(folder, "again.npy")).reshape(whole.shape)
        assert np.array_equal(again, whole) or ending == "jpg", ending


@test
def several_axes_and_items_have_their_numbers(folder):
    np, tifffile = modules()
    array = np.random.default_rng(1).integers(0, 255, (2, 3, 4, 8, 9)).astype("uint8")
    for name in ("one.npy", "two.npy"):
        np.save(pathlib.Path(folder, name), array)
    write(folder, 'name_axes(read("*.npy"), "t c z y x")', "out/{stem}_t{t}_c{c}.tif")
    assert len(names(f"{folder}/out")) == 12
    for t in range(2):
        for c in range(3):
            assert np.array_equal(tifffile.imread(pathlib.Path(folder, "out", f"two_t{t:04d}_c{c:04d}.tif")), array[t, c]), (t, c)
    write(folder, 'name_axes(read("one.npy"), "t c z y x")', "all/t{t}c{c}z{z}.png")
    assert len(names(f"{folder}/all")) == 24


@test
def a_result_with_fewer_slices_takes_the_others_away(folder):
    value = 'phantom("cells", [COUNT, 20, 20])'
    write(folder, value.replace("COUNT", "9"), "s/{z}.tif")
    keeps = pathlib.Path(folder, "s", "other.tif")
    keeps.write_text("mine")
    said = run("run", "-e", value.replace("COUNT", "9") + ' |> write("s/{z}.tif")', folder=folder).stderr
    assert "up to date" in said, said
    write(folder, value.replace("COUNT", "5"), "s/{z}.tif")
    assert names(f"{folder}/s") == [f"{z:04d}.tif" for z in range(5)] + ["other.tif"]


@test
def files_of_others_are_kept(folder):
    foreign = pathlib.Path(folder, "s", "0007.tif")
    foreign.parent.mkdir()
    foreign.write_text("mine")
    said = write(folder, 'phantom("cells", [9, 20, 20])', "s/{z}.tif", code=2).stderr
    assert "s/0007.tif exists and was not made by Fovea" in said and foreign.read_text() == "mine", said
    write(folder, 'phantom("cells", [9, 20, 20])', "s/{z}.tif", "--overwrite")
    assert len(names(f"{folder}/s")) == 9
    pathlib.Path(folder, "s", "0003.tif").unlink()
    write(folder, 'phantom("cells", [9, 20, 20])', "s/{z}.tif")
    assert len(names(f"{folder}/s")) == 9


@test
def a_killed_run_goes_on(folder):
    text = 'phantom("foam", [60, 200, 300]) |> gaussian(1) |> write("s/{z}.tif")'
    write(folder, text.replace('write("s/', 'write("w/').rsplit(" |> ", 1)[0], "w/{z}.tif")
    wanted = [p.read_bytes() for p in sorted(pathlib.Path(folder, "w").glob("*.tif"))]
    rng = random.Random(2)
    for _ in range(6):
        process = subprocess.Popen([FOVEA, "run", "-q", "--chunk", "7x200x300", "-e", text], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(rng.uniform(0.02, 0.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    run("run", "-q", "-e", text, folder=folder)
    assert [p.read_bytes() for p in sorted(pathlib.Path(folder, "s").glob("*.tif"))] == wanted
    left = [p.name for p in pathlib.Path(folder, "s").iterdir() if p.name.startswith(".")]
    assert left == [".{z}.tif.fovea-slices"], left


@test
def wrong_names_are_told(folder):
    for name, words in (("o/{q}.png", "an axis of the image"), ("{z}/a.png", "not of their folder"), ("a_{x}.tif", "last axis"),
                        ("a_{z}.zarr", "files such as .tif"), ("a_{z}.jpg", "JPEG holds uint8")):
        said = write(folder, 'phantom("foam", [5, 20, 20]) |> convert("float32")', name, code=2).stderr
        assert words in said, (name, said)
    said = run("run", "-e", 'phantom("foam", [5, 20, 20]) |> write("a_{z}.png", quality = 3)', folder=folder, code=2).stderr
    assert "quality" in said, said


if __name__ == "__main__":
    main()
