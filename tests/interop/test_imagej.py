#!/usr/bin/python3
"""ImageJ itself, Debian's and the newest, opens TIFF files of every compression that it knows, stacks and hyperstacks, and tells
shape, voxel size and mean as they are."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402
from interop import PLACE, Screen, call, make_page_files, program, snippet  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip imagej: {missing}")
    sys.exit(0)

DEBIAN = pathlib.Path("/usr/share/java/ij.jar")
# Of a stack that Debian's ImageJ of 2022 opens: it does not undo differences in deflated integers.
OLD = ["none", "lzw"]


def jars():
    """(name, path, compressions of integers that it knows)"""
    newest = sorted(PLACE.glob("imagej/ij-*.jar"))
    found = [("Debian's", DEBIAN, OLD)] if DEBIAN.exists() else []
    found += [("the newest", newest[-1], [*OLD, "deflate"])] if newest else []
    if not found:
        raise Skip("no ImageJ; scripts/bootstrap.sh viewers or interop installs it")
    return found


def opened(jar, folder, name, screen):
    """What the macro of the page prints about a file."""
    macro = pathlib.Path(folder, "open.ijm")
    macro.write_text(snippet("Fiji and ImageJ", "ijm").replace('"scan.tif"', f'"{pathlib.Path(folder, name)}"'))
    out = call([program("java"), f"-Duser.home={folder}", "-jar", jar, "-batch", macro], folder, **screen.variables)
    words = out.split()
    return list(map(int, words[:5])), list(map(float, words[5:8])), " ".join(words[8:-1]), float(words[-1])


def agrees(found, image, counts, spacing, unit):
    assert found[0] == [image.shape[-1], image.shape[-2], *counts], found
    assert found[1] == spacing and found[2] == unit, found
    assert abs(found[3] - image.mean()) < 1e-3, (found, image.mean())


@test
def a_stack_keeps_its_shape_voxel_size_and_mean(folder):
    names = jars()
    make_page_files(folder)
    scan = np.load(f"{folder}/original.npy").astype(np.uint16)
    with Screen() as screen:
        for _, jar, compressions in names:
            for compression in compressions:
                text = f'read("scan.tif") * 200 |> convert("uint16") |> write("a.tif", compression = "{compression}")'
                run("run", "-q", "--overwrite", "-e", text, folder=folder)
                agrees(opened(jar, folder, "a.tif", screen), scan * 200, [1, 24, 1], [0.25, 0.5, 2], "\u00b5m")


@test
def the_file_of_the_page_and_real_numbers_are_opened_by_the_newest(folder):
    newest = [jar for name, jar, _ in jars() if name == "the newest"]
    if not newest:
        raise Skip("no newer ImageJ in build/interop; make interop fetches it where Maven works")
    make_page_files(folder)
    scan = np.load(f"{folder}/original.npy")
    run("run", "-q", "-e", 'read("scan.tif") / 7 |> convert("float32") |> write("real.tif")', folder=folder)
    with Screen() as screen:
        agrees(opened(newest[0], folder, "scan.tif", screen), scan, [1, 24, 1], [0.25, 0.5, 2], "\u00b5m")
        agrees(opened(newest[0], folder, "real.tif", screen), (scan / 7), [1, 24, 1], [0.25, 0.5, 2], "\u00b5m")


@test
def channels_slices_and_frames_are_a_hyperstack(folder):
    names = jars()
    image = np.random.default_rng(1).integers(0, 4000, (3, 5, 2, 40, 50)).astype(np.uint16)
    np.save(f"{folder}/a.npy", image)
    text = 'read("a.npy") |> name_axes("t z c y x") |> write("a.tif", compression = "lzw")'
    run("run", "-q", "-e", text, folder=folder)
    with Screen() as screen:
        agrees(opened(names[-1][1], folder, "a.tif", screen), image, [2, 5, 3], [1, 1, 1], "pixels")


@test
def channels_have_their_colours_names_and_ranges(folder):
    names = jars()
    text = """a = phantom("cells", [6, 40, 50], seed = 1)
b = phantom("cells", [6, 40, 50], seed = 2)
merge_channels(a, b, colors = "cyan #ff8000", names = "DAPI, Alexa 488", ranges = [10, 200, 20, 220])
|> write("a.tif", hyperstack = true, compression = "none")"""
    run("run", "-q", "-e", text, folder=folder)
    macro = pathlib.Path(folder, "open.ijm")
    macro.write_text(f"""open("{folder}/a.tif");
Stack.getDimensions(width, height, channels, slices, frames);
Stack.getDisplayMode(mode);
print(channels, slices, frames, mode);
for (c = 1; c <= 2; c++) {{
    Stack.setPosition(c, 3, 1);
    getLut(reds, greens, blues);
    getMinAndMax(low, high);
    print(reds[255], greens[255], blues[255], low, high, getMetadata("Label"));
}}
""")
    with Screen() as screen:
        for _, jar, _ in names:
            out = call([program("java"), f"-Duser.home={folder}", "-jar", jar, "-batch", macro], folder, **screen.variables)
            assert out.split("\n")[:3] == ["2 6 1 composite", "0 255 255 10 200 DAPI", "255 128 0 20 220 Alexa 488"], out


main()
