#!/usr/bin/python3
"""NPY, PNG and TIFF against numpy, tifffile, PIL and scikit-image: the same pixels read from every real file, the same pixels
found by the peer in every file that Fovea writes, and malformed files refused in good time.

Where the peers differ from each other Fovea follows tifffile, which gives samples as stored: PIL inverts MinIsWhite, stretches
2 and 4 bits to 255, turns pixels by their orientation tag and cuts 16-bit colours to 8 bits. That is undone here before PIL is
compared.
"""
import json
import logging
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from fovea_test import PATIENCE  # noqa: E402

FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
DATA = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data"))

try:
    import numpy as np
    import PIL.Image
    import skimage.io
    import tifffile
except ImportError as missing:
    print(f"skip image_files: {missing}")
    sys.exit(0)

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
PIL.Image.MAX_IMAGE_PIXELS = None


UNTURN = {2: np.fliplr, 3: lambda p: np.rot90(p, 2), 4: np.flipud, 6: np.rot90, 8: lambda p: np.rot90(p, 3)}


class Difference(Exception):
    """What is wrong, in a sentence."""


class Incomparable(Exception):
    """Why the peers have nothing to compare with."""


def word(path):
    return path.name.replace(":", "_").replace(" ", "_")


def fovea(*arguments, folder):
    """Runs fovea; the finished process knows how many seconds of the processor it used."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([FOVEA, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    done.seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    return done


def convert(source, target, *options, folder):
    done = fovea("convert", source, target, "--quiet", "--overwrite", "--fresh", *options, folder=folder)
    if done.returncode:
        raise Difference(f"fovea convert ends with {done.returncode}: {done.stderr.strip()}")


def same(ours, peer, who):
    if ours.shape != peer.shape:
        raise Difference(f"shape {ours.shape}, {who} has {peer.shape}")
    if ours.dtype != peer.dtype.newbyteorder("="):
        raise Difference(f"{ours.dtype}, {who} has {peer.dtype}")
    if not np.array_equal(ours, peer, equal_nan=ours.dtype.kind in "fc"):
        raise Difference(f"{np.count_nonzero(ours != peer)} pixels differ from {who}")


# ---------------------------------------------------------------- reading

def by_tifffile(path):
    """The first series, planes kept apart brought together; None where tifffile cannot decode or has another meaning."""
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            if page.photometric in (3, 6):  # palette and YCbCr, which Fovea gives as RGB
                return None
            pixels = file.series[0].asarray()
            return np.moveaxis(pixels, -3, -1) if page.planarconfig == 2 and page.samplesperpixel > 1 else pixels
    except Exception:  # the many ways tifffile says that a codec is not installed
        return None


def by_pil(path):
    """All frames that are like the first one."""
    frames = []
    with PIL.Image.open(path) as image:
        tags = getattr(image, "tag_v2", {})
        bits, inverted, turned = tags.get(258, (8,))[0], tags.get(262) == 0, UNTURN.get(tags.get(274), np.asarray)
        premultiplied = 1 in tags.get(338, ())
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            if number and (image.size, image.mode) != first:
                continue
            first = (image.size, image.mode)
            try:
                image.load()
            except OSError as failure:
                raise Incomparable(f"PIL: {failure}") from failure
            colours = image.mode == "P" and ("RGBA" if "transparency" in image.info else "RGB")
            frame = turned(np.array(image.convert(colours) if colours else image))
            if premultiplied and frame[..., -1].min() < 255:
                raise Incomparable("PIL divides colours by their alpha")
            if inverted and bits <= 8:
                frame = ~frame if frame.dtype == bool else 255 - frame
            frames.append(frame // {2: 85, 4: 17}.get(bits, 1) if frame.dtype == np.uint8 and bits < 8 and not colours else frame)
    return frames[0] if len(frames) == 1 else np.stack(frames)


def check_read(path, folder):
    convert(path, "read.npy", folder=folder)
    ours = np.load(folder / "read.npy")
    peer, who = (by_tifffile(path), "tifffile") if path.suffix != ".png" else (None, "")
    if peer is None:
        peer, who = by_pil(path), "PIL"
        if ours.dtype == np.uint16 and peer.dtype == np.uint8:
            ours = (ours >> 8).astype(np.uint8)
        if ours.dtype == np.int16 and peer.dtype == np.int32:
            peer = peer.astype(np.int16)
    same(ours, peer, who)


def check_malformed(path, folder):
    done = fovea("convert", path, "malformed.npy", "--quiet", "--overwrite", "--fresh", folder=folder)
    if done.returncode < 0 or done.returncode > 2:
        raise Difference(f"ends with {done.returncode}")
    if done.returncode and path.name[:60] not in done.stderr:
        raise Difference(f"the message does not name the file: {done.stderr.strip()}")
    if done.seconds > 10:
        raise Difference(f"takes {done.seconds:.0f} s of the processor")


# ---------------------------------------------------------------- writing

def arrays():
    """Names and arrays of every kind that the formats hold."""
    random = np.random.default_rng(5)
    smooth = np.add.outer(np.arange(150), np.arange(200)) / 2
    for dtype in "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64 complex64 complex128".split():
        yield f"plane_{dtype}", (smooth + random.random(smooth.shape) * 5).astype(dtype)
    yield "plane_bool", random.random((40, 50)) > 0.5
    yield "stack_uint16", (random.random((5, 60, 70)) * 60000).astype(np.uint16)
    yield "stack_float32", random.random((6, 300, 400)).astype(np.float32)
    yield "wide_uint8", (random.random((30, 9000)) * 20).astype(np.uint8)


def check_npy(array, folder):
    np.save(folder / "in.npy", array)
    convert("in.npy", "out.npy", folder=folder)
    same(np.load(folder / "out.npy"), array, "numpy")
    np.save(folder / "fortran.npy", np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))))
    convert("fortran.npy", "out.npy", folder=folder)
    same(np.load(folder / "out.npy"), array, "numpy")


def check_tiff(array, compression, folder):
    np.save(folder / "in.npy", array)
    convert("in.npy", "out.tif", "--compression", compression, folder=folder)
    wanted = np.where(array, 255, 0).astype(np.uint8) if array.dtype == bool else array
    if compression in ("deflate", "none"):  # what tifffile decodes by itself
        same(wanted, tifffile.imread(folder / "out.tif"), "tifffile")
        same(wanted, skimage.io.imread(folder / "out.tif", plugin="tifffile"), "skimage")
    if array.dtype in (np.uint8, np.uint16, np.float32, bool):
        same(wanted, by_pil(folder / "out.tif"), "PIL")


def check_png(array, folder):
    np.save(folder / "in.npy", array)
    convert("in.npy", "out.png", folder=folder)
    wanted = np.where(array, 255, 0).astype(np.uint8) if array.dtype == bool else array
    same(wanted, skimage.io.imread(folder / "out.png"), "skimage")
    peer = by_pil(folder / "out.png")
    same(wanted, peer.astype(wanted.dtype) if peer.dtype == np.int32 else peer, "PIL")


def check_colour(channels, folder):
    """PNG to TIFF to PNG, each opened by the peers."""
    array = (np.random.default_rng(channels).random((70, 90, channels)) * 256).astype(np.uint8)
    PIL.Image.fromarray(array, {2: "LA", 3: "RGB", 4: "RGBA"}[channels]).save(folder / "in.png")
    convert("in.png", "out.tif", folder=folder)
    same(array, tifffile.imread(folder / "out.tif"), "tifffile")
    if channels > 2:
        same(array, by_pil(folder / "out.tif"), "PIL")
    convert("out.tif", "out.png", folder=folder)
    same(array, by_pil(folder / "out.png"), "PIL")


def check_regions(folder):
    """A region of a large tiled file equals numpy's slice of what the peer wrote."""
    array = np.random.default_rng(1).integers(0, 60000, (6, 500, 700)).astype(np.uint16)
    layouts = ({"tile": (64, 128)}, {"rowsperstrip": 13, "compression": "zlib", "predictor": True}, {},
               {"bigtiff": True, "byteorder": ">"})
    for options in layouts:
        tifffile.imwrite(folder / "in.tif", array, photometric="minisblack", **options)
        convert("in.tif", "out.npy", "--region", "1:5,100:401,33:600", folder=folder)
        same(np.load(folder / "out.npy"), array[1:5, 100:401, 33:600], "tifffile")


def check_axes(folder):
    """Axes and spacing survive both ways between tifffile and Fovea."""
    array = np.arange(2 * 3 * 2 * 20 * 30, dtype=np.uint16).reshape(2, 3, 2, 20, 30)
    metadata = {"axes": "TZCYX", "spacing": 0.5, "unit": "um"}
    tifffile.imwrite(folder / "in.tif", array, imagej=True, resolution=(4, 4), metadata=metadata)
    convert("in.tif", "out.tif", folder=folder)
    with tifffile.TiffFile(folder / "out.tif") as file:
        if file.series[0].axes != "TZCYX":
            raise Difference(f"axes {file.series[0].axes}")
        if file.imagej_metadata.get("spacing") != 0.5 or file.pages[0].tags["XResolution"].value != (4, 1):
            raise Difference(f"spacing {file.imagej_metadata}, {file.pages[0].tags['XResolution'].value}")
        same(array, file.asarray(), "tifffile")


def check_ome(folder):
    """Axes, spacing and units of OME-TIFF files as tifffile writes them."""
    array = np.arange(2 * 3 * 4 * 20 * 30, dtype=np.uint16).reshape(2, 3, 4, 20, 30)
    sizes = {"PhysicalSizeX": 0.3, "PhysicalSizeY": 400, "PhysicalSizeYUnit": "nm", "PhysicalSizeZ": 2}
    for axes, part in (("TCZYX", array), ("ZYX", array[0, 0]), ("CYX", array[0, :, 0])):
        tifffile.imwrite(folder / "in.ome.tif", part, ome=True, metadata={"axes": axes, **sizes})
        convert("in.ome.tif", "out.npy", folder=folder)
        same(np.load(folder / "out.npy"), part, "tifffile")
        told = json.loads(fovea("info", "--json", "in.ome.tif", folder=folder).stdout)[0]
        if "".join(told["axes"]).upper() != axes:
            raise Difference(f"axes {told['axes']}, not {axes}")
        metres = {"nanometer": 1e-9, "micrometer": 1e-6, "millimeter": 1e-3}
        found = {a: s * metres.get(u, 1) for a, s, u in zip(told["axes"], told["spacing"], told["units"])}
        if not np.allclose([found["x"], found["y"], found.get("z", 2e-6)], [0.3e-6, 0.4e-6, 2e-6], rtol=1e-6, atol=0):
            raise Difference(f"spacing {told['spacing']} {told['units']}")


# ---------------------------------------------------------------- all of them

def report(name, check, *arguments):
    with tempfile.TemporaryDirectory(prefix="fovea-peers-") as folder:
        try:
            check(*arguments, folder=pathlib.Path(folder))
            print(f"ok {name}", flush=True)
        except Incomparable as reason:
            print(f"skip {name}: {reason}", flush=True)
        except Difference as difference:
            print(f"not ok {name}: {' '.join(str(difference).split())}", flush=True)
        except Exception as failure:  # the peer's own
            print(f"not ok {name}: {type(failure).__name__}: {' '.join(str(failure).split())}", flush=True)


def main():
    if not os.path.exists(FOVEA):
        print(f"skip image_files: no command at {FOVEA}")
        return
    for name, array in arrays():
        report(f"npy_{name}", check_npy, array)
        for compression in ("deflate", "none", "zstd", "lzw"):
            report(f"tiff_{compression}_{name}", check_tiff, array, compression)
        if array.ndim == 2 and array.dtype in (np.uint8, np.uint16, bool):
            report(f"png_{name}", check_png, array)
    for channels in (2, 3, 4):
        report(f"colour_of_{channels}_channels", check_colour, channels)
    report("tiff_regions", check_regions)
    report("tiff_axes_and_spacing", check_axes)
    report("ome_tiff_axes_and_spacing", check_ome)
    if not DATA.is_dir():
        print(f"skip real_image_files: no folder {DATA}")
        return
    for path in sorted([*(DATA / "images").iterdir(), *(DATA / "tiff").iterdir()]):
        report(f"read_{word(path)}", check_read, path)
    for path in sorted((DATA / "malformed").iterdir()):
        report(f"malformed_{word(path)}", check_malformed, path)


if __name__ == "__main__":
    main()
