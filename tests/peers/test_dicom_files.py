"""DICOM files and series that pydicom writes, and damaged ones. The plug-in for DICOM may be missing."""
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test

CT = "1.2.840.10008.5.1.4.1.1.2"
AXIAL = [1, 0, 0, 0, 1, 0]


def needs():
    """pydicom, where both it and the plug-in are there."""
    if not (pathlib.Path(FOVEA).parent / "fovea-dicom.so").exists():
        raise Skip("no plug-in for DICOM: libdcmtk-dev was not there when this was built")
    try:
        import pydicom
    except ImportError:
        raise Skip("no pydicom: apt-get install python3-pydicom") from None
    return pydicom


def put(path, pixels, position=(0, 0, 0), series="1.2.3", syntax="1.2.840.10008.1.2.1", orientation=None, encode=None, raw=None,
        **more):
    """A file as pydicom writes it; pixels: rows and columns, frames before and colours behind. encode: packs a frame;
    raw: bytes in place of those of the pixels."""
    pydicom = needs()
    meta = pydicom.dataset.FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CT, pydicom.uid.generate_uid()
    meta.TransferSyntaxUID = pydicom.uid.UID(syntax)
    file = pydicom.dataset.FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    file.is_little_endian, file.is_implicit_VR = syntax != "1.2.840.10008.1.2.2", syntax == "1.2.840.10008.1.2"
    file.SOPClassUID, file.SOPInstanceUID = CT, meta.MediaStorageSOPInstanceUID
    file.Modality, file.SeriesInstanceUID = "CT", series
    colour = pixels.ndim > 2 and pixels.shape[-1] == 3
    plane = pixels.shape[-3:-1] if colour else pixels.shape[-2:]
    file.Rows, file.Columns = plane
    if pixels.ndim > 2 + colour:
        file.NumberOfFrames = pixels.shape[0]
    file.SamplesPerPixel, file.PhotometricInterpretation = (3, "RGB") if colour else (1, "MONOCHROME2")
    if colour:
        file.PlanarConfiguration = 0
    bits = 1 if pixels.dtype == bool else 8 * pixels.dtype.itemsize
    file.BitsAllocated, file.BitsStored, file.HighBit = bits, bits, bits - 1
    file.PixelRepresentation = int(pixels.dtype.kind == "i")
    file.PixelSpacing, file.SliceThickness = [0.5, 0.25], 2
    file.ImagePositionPatient, file.ImageOrientationPatient = list(position), list(orientation or AXIAL)
    for name, value in more.items():
        setattr(file, name, value)
    if encode:
        frames = pixels if pixels.ndim > 2 + colour else [pixels]
        file.PixelData = pydicom.encaps.encapsulate([encode(frame) for frame in frames])
        file["PixelData"].is_undefined_length = True
    elif pixels.dtype == bool:
        file.PixelData = np.packbits(pixels.ravel(), bitorder="little").tobytes() + b"\0" * (-(-pixels.size // 8) % 2)
        file["PixelData"].VR = "OB"
    elif pixels.dtype.kind == "f":
        name = {4: "FloatPixelData", 8: "DoubleFloatPixelData"}[pixels.dtype.itemsize]
        setattr(file, name, pixels.astype(pixels.dtype.newbyteorder("<" if file.is_little_endian else ">")).tobytes())
        del file.BitsStored, file.HighBit, file.PixelRepresentation
    elif raw is not None:
        file.PixelData = raw
        file["PixelData"].VR = "OB"
    else:
        order = "<" if file.is_little_endian else ">"
        file.PixelData = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
        file["PixelData"].VR = "OW"
    file.save_as(str(path), write_like_original=False)


def volume(dtype, shape, seed=1):
    return np.random.default_rng(seed).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def got(folder, name, *options):
    run("convert", "-q", "--overwrite", name, "got.npy", *options, folder=folder)
    return np.load(os.path.join(folder, "got.npy"))


@test
def files_of_every_type_and_byte_order_are_what_pydicom_reads(folder):
    pydicom = needs()
    for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32"):
        for syntax in ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2"):
            if syntax.endswith(".2.2") and dtype.endswith("t8"):
                continue  # bytes in swapped words: pydicom and the standard part there
            put(os.path.join(folder, "a.dcm"), volume(dtype, (6, 8)), syntax=syntax)
            peer = pydicom.dcmread(os.path.join(folder, "a.dcm")).pixel_array
            image = got(folder, "a.dcm")
            assert image.dtype == np.dtype(dtype) and np.array_equal(image, peer), (dtype, syntax)
    put(os.path.join(folder, "c.dcm"), volume("uint8", (5, 4, 3)))
    assert np.array_equal(got(folder, "c.dcm"), pydicom.dcmread(os.path.join(folder, "c.dcm")).pixel_array)
    planes = volume("uint8", (5, 4, 3))
    put(os.path.join(folder, "p.dcm"), planes, PlanarConfiguration=1)
    assert np.array_equal(got(folder, "p.dcm"), planes.reshape(3, 5, 4).transpose(1, 2, 0))


@test
def frames_of_one_file_are_a_volume_read_by_region(folder):
    frames = volume("uint16", (7, 12, 10))
    put(os.path.join(folder, "m.dcm"), frames, SpacingBetweenSlices=3)
    assert np.array_equal(got(folder, "m.dcm"), frames)
    assert np.array_equal(got(folder, "m.dcm", "--region", "2:5,3:9,::2"), frames[2:5, 3:9, ::2])
    told = json.loads(run("info", "--json", "m.dcm", folder=folder).stdout)[0]
    assert told["axes"] == ["z", "y", "x"] and told["spacing"] == [3, 0.5, 0.25], told


@test
def a_folder_is_a_series_in_order_of_place(folder):
    slices = volume("int16", (5, 6, 7))
    ct = pathlib.Path(folder, "ct")
    ct.mkdir()
    for number, name in enumerate("dbace"):  # names are in another order than places
        put(ct / name, slices[number], (10, 20, 2.5 * number - 4), RescaleSlope=1, RescaleIntercept=-1024)
    (ct / "notes.txt").write_text("not a slice")
    expected = slices - np.float32(1024)
    image = got(folder, "ct")
    assert image.dtype == np.float32 and np.array_equal(image, expected)
    os.rename(ct / "a", ct / "a.dcm")
    run("run", "-q", "-e", 'read("ct/a.dcm", path = "series")[1:4] |> write("part.npy")', folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "part.npy")), expected[1:4])
    run("convert", "-q", "ct", "v.nii", folder=folder)
    header = pathlib.Path(folder, "v.nii").read_bytes()
    affine = np.array(struct.unpack("<12f", header[280:328])).reshape(3, 4)
    assert np.allclose(affine, [[-0.25, 0, 0, -10], [0, -0.5, 0, -20], [0, 0, 2.5, -4]]), affine
    told = json.loads(run("info", "--json", "ct", folder=folder).stdout)[0]
    assert told["spacing"] == [2.5, 0.5, 0.25] and told["facts"]["files"] == "5" and told["facts"]["modality"] == "CT", told


@test
def real_pixels_and_segmentations_are_what_was_written(folder):
    pydicom = needs()
    for dtype, syntax in (("float32", "1.2.840.10008.1.2.1"), ("float64", "1.2.840.10008.1.2.1"),
                          ("float32", "1.2.840.10008.1.2.2"), ("float64", "1.2.840.10008.1.2")):
        frames = np.random.default_rng(3).normal(size=(3, 5, 7)).astype(dtype)
        put(os.path.join(folder, "real.dcm"), frames, syntax=syntax)
        if syntax.endswith("2.1"):
            assert np.array_equal(pydicom.dcmread(os.path.join(folder, "real.dcm")).pixel_array, frames), dtype
        image = got(folder, "real.dcm")
        assert image.dtype == dtype and np.array_equal(image, frames), (dtype, syntax)
        assert np.array_equal(got(folder, "real.dcm", "--region", "2:3,1:4,:"), frames[2:3, 1:4]), (dtype, syntax)
    segments = np.random.default_rng(4).random((5, 7, 9)) < 0.4  # frames do not begin with a byte
    put(os.path.join(folder, "bits.dcm"), segments)
    assert np.array_equal(pydicom.dcmread(os.path.join(folder, "bits.dcm")).pixel_array, segments)
    image = got(folder, "bits.dcm")
    assert image.dtype == bool and np.array_equal(image, segments)
    assert np.array_equal(got(folder, "bits.dcm", "--region", "3:5,:,2:"), segments[3:5, :, 2:])


def near(image, peer):
    """Rounded in another arithmetic."""
    difference = np.abs(image.astype(int) - peer)
    return image.shape == peer.shape and difference.max() <= 1 and np.mean(difference > 0) < 0.01


@test
def colours_of_every_kind_become_red_green_and_blue(folder):
    pydicom = needs()
    from pydicom.pixel_data_handlers.rle_handler import rle_encode_frame
    from pydicom.pixel_data_handlers.util import convert_color_space
    frames = volume("uint8", (2, 6, 8, 3))
    expected = convert_color_space(frames, "YBR_FULL", "RGB")
    put(os.path.join(folder, "ybr.dcm"), frames, PhotometricInterpretation="YBR_FULL")
    assert near(got(folder, "ybr.dcm"), expected)
    planes = frames[0].transpose(2, 0, 1).copy().reshape(6, 8, 3)
    put(os.path.join(folder, "planes.dcm"), planes, PhotometricInterpretation="YBR_FULL", PlanarConfiguration=1)
    assert near(got(folder, "planes.dcm"), expected[0])
    put(os.path.join(folder, "rle.dcm"), frames, syntax="1.2.840.10008.1.2.5", encode=rle_encode_frame,
        PhotometricInterpretation="YBR_FULL")
    assert near(got(folder, "rle.dcm"), expected)
    halved = frames.copy()
    halved[:, :, 1::2, 1:] = halved[:, :, ::2, 1:]
    pairs = np.stack([halved[:, :, ::2, 0], halved[:, :, 1::2, 0], halved[:, :, ::2, 1], halved[:, :, ::2, 2]], axis=-1)
    put(os.path.join(folder, "half.dcm"), halved, PhotometricInterpretation="YBR_FULL_422", raw=pairs.tobytes())
    assert near(got(folder, "half.dcm"), convert_color_space(halved, "YBR_FULL", "RGB"))
    peer = pydicom.dcmread(os.path.join(folder, "half.dcm")).pixel_array
    assert np.array_equal(peer, halved)
    put(os.path.join(folder, "odd.dcm"), frames, PhotometricInterpretation="HSV")
    done = run("info", "odd.dcm", folder=folder, code=None)
    assert done.returncode and "PhotometricInterpretation" in done.stderr and "odd.dcm" in done.stderr, done.stderr


@test
def palettes_are_looked_up_as_pydicom_does(folder):
    pydicom = needs()
    from pydicom.pixel_data_handlers.util import apply_color_lut
    random = np.random.default_rng(5)
    for dtype, entries, first, size in (("uint8", 256, 0, 2), ("uint16", 300, 20, 2), ("uint8", 100, 50, 1)):
        frames = (volume(dtype, (2, 6, 8)) % 400).astype(dtype)
        table = {f"{colour}PaletteColorLookupTable{what}": [entries, first, 8 * size] if what == "Descriptor" else
                 random.integers(0, 256 ** size, entries).astype(f"<u{size}").tobytes()
                 for colour in ("Red", "Green", "Blue") for what in ("Descriptor", "Data")}
        put(os.path.join(folder, "palette.dcm"), frames, PhotometricInterpretation="PALETTE COLOR", **table)
        file = pydicom.dcmread(os.path.join(folder, "palette.dcm"))
        image, peer = got(folder, "palette.dcm"), apply_color_lut(file.pixel_array, file)
        assert image.dtype == peer.dtype and np.array_equal(image, peer), (dtype, entries)
    put(os.path.join(folder, "bare.dcm"), volume("uint8", (6, 8)), PhotometricInterpretation="PALETTE COLOR")
    done = run("info", "bare.dcm", folder=folder, code=None)
    assert done.returncode and "RedPaletteColorLookupTableData" in done.stderr, done.stderr


@test
def lossy_colours_of_jpeg_are_near_the_originals(folder):
    needs()
    if not shutil.which("dcmcjpeg"):
        raise Skip("no dcmcjpeg to make such files: apt-get install dcmtk")
    rows, columns = np.mgrid[:32, :40]
    smooth = np.stack([rows * 7, columns * 6, 255 - rows * 4], axis=-1).astype(np.uint8)
    put(os.path.join(folder, "plain.dcm"), smooth)
    for options in (["+eb", "+q", "98"], ["+eb", "+q", "98", "+s4"], ["+e1"]):
        subprocess.run(["dcmcjpeg", *options, "plain.dcm", "jpeg.dcm"], cwd=folder, check=True, capture_output=True)
        image = got(folder, "jpeg.dcm")
        assert image.shape == smooth.shape and np.abs(image.astype(int) - smooth).max() < 12, options


@test
def slopes_of_slices_may_differ_and_unused_bits_do_not_count(folder):
    slices = volume("uint16", (3, 4, 5))
    os.mkdir(os.path.join(folder, "pet"))
    for number in range(3):
        put(os.path.join(folder, "pet", f"{number}.dcm"), slices[number], (0, 0, number), RescaleSlope=number + 0.5,
            RescaleIntercept=0)
    assert np.array_equal(got(folder, "pet"), (slices * np.array([0.5, 1.5, 2.5]).reshape(3, 1, 1)).astype(np.float32))
    signed = np.array([[0x0FFF, 0x0800, 0x07FF, 0xF001]], np.uint16).view(np.int16)
    put(os.path.join(folder, "twelve.dcm"), signed, BitsStored=12, HighBit=11)
    assert np.array_equal(got(folder, "twelve.dcm"), [[-1, -2048, 2047, 1]])


@test
def packed_frames_are_unpacked(folder):
    pydicom = needs()
    from pydicom.pixel_data_handlers.rle_handler import rle_encode_frame
    frames = volume("uint16", (3, 16, 20)) // 7
    put(os.path.join(folder, "rle.dcm"), frames, syntax="1.2.840.10008.1.2.5", encode=rle_encode_frame)
    peer = pydicom.dcmread(os.path.join(folder, "rle.dcm")).pixel_array
    assert np.array_equal(peer, frames) and np.array_equal(got(folder, "rle.dcm"), frames)


@test
def lossless_jpeg_and_jpeg_ls_are_unpacked(folder):
    needs()
    if not shutil.which("dcmcjpeg") or not shutil.which("dcmcjpls"):
        raise Skip("no dcmcjpeg and dcmcjpls to make such files: apt-get install dcmtk")
    frames = volume("uint16", (3, 16, 20)) // 7
    put(os.path.join(folder, "plain.dcm"), frames)
    for program, option in (("dcmcjpeg", "+e1"), ("dcmcjpeg", "+el"), ("dcmcjpls", "+el")):
        subprocess.run([program, option, "plain.dcm", "jpeg.dcm"], cwd=folder, check=True, capture_output=True)
        assert np.array_equal(got(folder, "jpeg.dcm"), frames), (program, option)
        assert "JPEG" in run("info", "jpeg.dcm", folder=folder).stdout


@test
def series_that_do_not_fit_together_are_named(folder):
    mixed = pathlib.Path(folder, "mixed")
    mixed.mkdir()
    for number in range(3):
        put(mixed / f"a{number}.dcm", volume("uint8", (4, 5)), (0, 0, number), series="1.2.3")
    put(mixed / "b.dcm", volume("uint8", (4, 5)), series="1.2.4")
    done = run("convert", "-q", "mixed", "x.npy", folder=folder, code=None)
    assert done.returncode and "2 DICOM series" in done.stderr and '"1.2.3" (3 files)' in done.stderr, done.stderr
    run("run", "-q", "-e", 'read("mixed", path = "1.2.3") |> write("three.npy")', folder=folder)
    assert np.load(os.path.join(folder, "three.npy")).shape == (3, 4, 5)
    os.remove(mixed / "b.dcm")
    for pixels, place, why in ((volume("uint8", (4, 6)), 9, "differ in shape"), (volume("uint16", (4, 5)), 9, "differ in shape"),
                               (volume("uint8", (4, 5)), 1, "at the same place"), (volume("uint8", (2, 4, 5)), 9, "2 frames")):
        put(mixed / "z.dcm", pixels, (0, 0, place))
        done = run("convert", "-q", "mixed", "x.npy", folder=folder, code=None)
        assert done.returncode and why in done.stderr and "z.dcm" in done.stderr, (why, done.stderr)


def attempt(folder, name):
    """Reads a damaged file within 10 s of its own time and 1 GB beyond what a process takes anyway."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    done = subprocess.run([FOVEA, "run", "-q", "--fresh", "--workers", "1", "--memory", "512M", "-e", f'sum(read("{name}"))'],
                          cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          preexec_fn=limit, timeout=PATIENCE)
    assert done.returncode in (0, 1, 2), (name, done.returncode, done.stderr[-300:])
    return done


@test
def cut_and_changed_files_give_a_message(folder):
    needs()
    from pydicom.pixel_data_handlers.rle_handler import rle_encode_frame
    random = np.random.default_rng(3)
    frames = volume("uint16", (2, 9, 11)) // 9
    put(os.path.join(folder, "plain.dcm"), frames)
    put(os.path.join(folder, "rle.dcm"), frames, syntax="1.2.840.10008.1.2.5", encode=rle_encode_frame)
    for name in ("plain.dcm", "rle.dcm"):
        whole = pathlib.Path(folder, name).read_bytes()
        for size in list(range(0, len(whole) - 2, 53)) + [len(whole) - 3]:
            pathlib.Path(folder, "cut.dcm").write_bytes(whole[:size])
            done = attempt(folder, "cut.dcm")
            assert done.returncode and "cut.dcm" in done.stderr, (name, size, done.stderr)
        for _ in range(25):
            changed = bytearray(whole)
            for place in random.integers(132, len(whole), 6):
                changed[place] = random.integers(0, 256)
            pathlib.Path(folder, "changed.dcm").write_bytes(changed)
            attempt(folder, "changed.dcm")


@test
def claims_and_nesting_are_no_danger(folder):
    frames = volume("uint16", (4, 5))
    path = os.path.join(folder, "claim.dcm")
    for more in ({"Rows": 65535, "Columns": 65535, "NumberOfFrames": 1000000}, {"NumberOfFrames": 2147483647},
                 {"NumberOfFrames": -3}, {"BitsAllocated": 64}, {"BitsStored": 0}, {"SamplesPerPixel": 7}, {"Rows": 0},
                 {"BitsAllocated": 1, "BitsStored": 1, "HighBit": 0, "SamplesPerPixel": 3, "PhotometricInterpretation": "RGB"}):
        put(path, frames, **more)
        done = attempt(folder, "claim.dcm")
        assert done.returncode and "claim.dcm" in done.stderr, (more, done.stderr)
    put(path, frames)
    whole = pathlib.Path(path).read_bytes()
    start = whole.index(b"\x08\x00\x60\x00CS")  # sequences in sequences, before the modality
    level = b"\x08\x00\x15\x11SQ\0\0\xff\xff\xff\xff\xfe\xff\x00\xe0\xff\xff\xff\xff"
    for depth in (100, 20000, 1000000):
        pathlib.Path(folder, "deep.dcm").write_bytes(whole[:start] + level * depth)
        attempt(folder, "deep.dcm")


main()
