"""Every reader, on files that are cut, changed, or claim more than they hold: a message that names the file, within ten
seconds of the processor and a gibibyte."""
import gzip
import json
import pathlib
import random
import shutil
import struct
import sys
import zipfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, data, main, run, test
from limits import attempt

DEEP = 100000   # brackets inside brackets
# How to make a small file of each format, by its extension; what is not here is made from the phantom as it is.
PIPELINES = {"png": "[9, 11]", "pgm": "[9, 11]", "ppm": None, "jpg": None, "hdr": None, "st": None}
# What a header may claim: bytes to look for and what to put there, so that the image would have 10^15 voxels or a negative size.
HUGE = 100000
CLAIMS = [
    ("nrrd", b"sizes: 11 9 4", b"sizes: 100000 100000 100000"), ("nrrd", b"sizes: 11 9 4", b"sizes: -11 9 4"),
    ("nrrd", b"encoding: raw", b"byte skip: -2\nencoding: raw"),
    ("nrrd", b"encoding: raw", b"byte skip: 9223372036854775807\nencoding: raw"),
    ("mha", b"DimSize = 11 9 4", b"DimSize = 100000 100000 100000"), ("mha", b"DimSize = 11 9 4", b"DimSize = 11 -9 4"),
    ("npy", b"(4, 9, 11)", b"(100000, 100000, 100000)"), ("npy", b"(4, 9, 11)", b"(4, -9, 11)"),
    ("npy", b"(4, 9, 11)", b"(4294967296, 4294967296, 4)"),
    ("vti", b"0 10 0 8 0 3", b"0 99999 0 99999 0 99999"), ("vti", b"0 10 0 8 0 3", b"0 -10 0 8 0 3"),
    ("vti", b'offset="0"', b'offset="-9"'), ("vti", b'offset="0"', b'offset="9223372036854775807"'),
    ("vti", b'NumberOfComponents="1"', b'NumberOfComponents="-1"'),
    ("pgm", b"11 9", b"100000000 10000000"), ("pgm", b"11 9", b"-11 9"),
    ("mrc", (11).to_bytes(4, "little"), (2000000000).to_bytes(4, "little")),
    ("mrc", (11).to_bytes(4, "little"), (-11).to_bytes(4, "little", signed=True)),
    ("nii", (11).to_bytes(2, "little"), (32767).to_bytes(2, "little")),
    ("nii", (11).to_bytes(2, "little"), (-11).to_bytes(2, "little", signed=True)),
    ("png", struct.pack(">II", 11, 9), struct.pack(">II", 30000000, 33000000)),
    ("tif", struct.pack("<HHII", 256, 4, 1, 11), struct.pack("<HHII", 256, 4, 1, 0xfffffff0)),
]


def refused(path, folder, *words, wanted=None):
    """A file must not be read, and the message must name it and the words."""
    status, errors = attempt(path.name, folder, wanted)
    assert status, (path.name, "was read")
    for word in (path.name, *words):
        assert word in errors, (path.name, word, errors)


def formats(folder):
    """Extensions of the formats that are read and written as single files."""
    described = json.loads(run("ops", "--json", folder=folder).stdout)["formats"]
    return [f["extensions"][0] for f in described if f["reads"] and f["writes"] and f["name"] not in ("zarr", "raw", "pvti")]


def make(folder, extension, options=""):
    """A small file of a format; None where it takes more than a phantom to make one."""
    shape = PIPELINES.get(extension, "[4, 9, 11]")
    if not shape:
        return None
    name = f"whole.{extension}"
    text = f'phantom("foam", {shape}) |> convert("uint16") |> write("{name}"{options})'
    done = run("run", "-q", "--overwrite", "-e", text, folder=folder, code=None)
    return pathlib.Path(folder, name) if done.returncode == 0 else None


def put(folder, name, content):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@test
def cut_and_changed_files_give_an_image_or_a_message_that_names_them(folder):
    rng, tried = random.Random(7), []
    for extension in formats(folder):
        whole = make(folder, extension)
        if not whole:
            continue
        tried.append(extension)
        content = whole.read_bytes()
        damaged = [content[: len(content) * k // 6] for k in range(6)]
        for _ in range(4):
            changed = bytearray(content)
            for _ in range(8):
                changed[rng.randrange(min(len(changed), 400))] = rng.randrange(256)
            damaged.append(bytes(changed))
        damaged.append(b"nothing that anyone knows " * 40)
        for number, content in enumerate(damaged):
            path = put(folder, f"bad{number}.{extension}", content)
            status, errors = attempt(path.name, folder)
            assert status == 0 or path.name in errors, (path.name, errors)
            assert status or number in range(6, 10), (path.name, "was read")
            path.unlink()
    assert len(tried) >= 8, tried


@test
def headers_that_claim_too_much_are_refused(folder):
    for extension, old, new in CLAIMS:
        content = make(folder, extension).read_bytes()
        assert old in content, (extension, old)
        refused(put(folder, f"claims.{extension}", content.replace(old, new, 1)), folder)


@test
def compressed_headers_that_claim_too_much_are_refused(folder):
    for extension in ("nii.gz", "mrc.gz"):
        content = bytearray(gzip.decompress(make(folder, extension).read_bytes()))
        if extension == "nii.gz":
            content[42:48] = struct.pack("<3h", 32767, 32767, 32767)
        else:
            content[:12] = struct.pack("<3i", HUGE, HUGE, HUGE)
        refused(put(folder, f"claims.{extension}", gzip.compress(bytes(content))), folder)
    content = make(folder, "nrrd", ', compression = "gzip"').read_bytes()
    refused(put(folder, "claims.nrrd", content.replace(b"sizes: 11 9 4", b"sizes: 100000 100000 100000")), folder)
    array = make(folder, "npy").read_bytes().replace(b"(4, 9, 11)", b"(100000, 100000, 100000)")
    with zipfile.ZipFile(pathlib.Path(folder, "claims.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", array)
    refused(pathlib.Path(folder, "claims.npz"), folder)


@test
def detached_headers_that_claim_too_much_are_refused(folder):
    put(folder, "voxels.raw", b"1234567890" * 20)
    head = "ObjectType = Image\nNDims = 3\nDimSize = {}\nElementType = MET_UCHAR\nElementDataFile = {}\n"
    refused(put(folder, "a.mhd", head.format("100000 100000 100000", "voxels.raw")), folder)
    head = "NRRD0005\ntype: uint8\ndimension: 3\nsizes: {}\nencoding: raw\ndata file: voxels.raw\n\n"
    status, errors = attempt(put(folder, "a.nhdr", head.format("100000 100000 100000")).name, folder)
    assert status and "voxels.raw" in errors, errors
    pieces = "".join(f'<Piece Extent="0 99999 0 99999 {z} {z}" Source="a.vti"/>' for z in range(3))
    text = ('<VTKFile type="PImageData"><PImageData WholeExtent="0 99999 0 99999 0 99999"><PPointData>'
            f'<PDataArray type="UInt8" Name="v"/></PPointData>{pieces}</PImageData></VTKFile>')
    refused(put(folder, "a.pvti", text), folder)
    nifti = bytearray(make(folder, "nii").read_bytes()[:348])
    nifti[42:48], nifti[344:348] = struct.pack("<3h", 32767, 32767, 32767), b"ni1\0"
    put(folder, "a.img", b"1234567890" * 20)
    status, errors = attempt(put(folder, "a.hdr", bytes(nifti)).name, folder)
    assert status and "a.img" in errors, errors


@test
def pieces_that_are_no_vti_or_leave_something_out_are_refused(folder):
    make(folder, "vti").rename(pathlib.Path(folder, "piece.vti"))
    make(folder, "npy").rename(pathlib.Path(folder, "piece.npy"))
    text = ('<VTKFile type="PImageData"><PImageData WholeExtent="0 10 0 8 0 {}"><PPointData>'
            '<PDataArray type="UInt16" Name="voxels"/></PPointData>{}</PImageData></VTKFile>')
    piece = '<Piece Extent="0 10 0 8 {} {}" Source="{}"/>'
    whole = put(folder, "whole.pvti", text.format(3, piece.format(0, 3, "piece.vti")))
    assert attempt(whole.name, folder)[0] == 0
    refused(put(folder, "own.pvti", text.format(3, piece.format(0, 3, "own.pvti"))), folder, "own.pvti is no VTI file")
    refused(put(folder, "npy.pvti", text.format(3, piece.format(0, 3, "piece.npy"))), folder, "piece.npy is no VTI file")
    twice = text.format(7, 2 * piece.format(0, 3, "piece.vti"))  # as many values as there should be
    refused(put(folder, "gap.pvti", twice), folder, "leave a part of the image out")
    refused(put(folder, "gone.pvti", text.format(3, piece.format(0, 3, "gone.vti"))), folder)


@test
def zarr_metadata_that_claims_too_much_or_is_nested_is_refused(folder):
    for version in ("0.4", "0.5"):
        text = f'phantom("foam", [4, 9, 11]) |> write("whole.zarr", levels = 1, version = "{version}")'
        run("run", "-q", "--overwrite", "-e", text, folder=folder)
        array = pathlib.Path(folder, "whole.zarr/0", ".zarray" if version == "0.4" else "zarr.json")
        whole = json.loads(array.read_text())
        chunks = {"shape": [HUGE] * 3} if version == "0.5" else {"shape": [HUGE] * 3, "chunks": [64, 64, 64]}
        for changes, word in ((chunks, "shape"), ({"shape": [4, -9, 11]}, "shape"), ({"shape": [2 ** 62] * 3}, "shape"),
                              ({"shape": "many"}, "shape")):
            array.write_text(json.dumps({**whole, **changes}))
            refused(pathlib.Path(folder, "whole.zarr"), folder, word)
        for text in ("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, json.dumps(whole)[:-40], ""):
            array.write_text(text)
            refused(pathlib.Path(folder, "whole.zarr"), folder, array.name)


@test
def zarr_chunks_that_unpack_to_more_than_they_should_are_refused(folder):
    for compression in ("zstd", "gzip", "blosc"):
        text = f'phantom("foam", [4, 9, 11]) |> write("whole.zarr", levels = 1, compression = "{compression}")'
        run("run", "-q", "--overwrite", "-e", text, folder=folder)
        chunk = next(p for p in pathlib.Path(folder, "whole.zarr/0/c").rglob("*") if p.is_file())
        if compression == "gzip":
            chunk.write_bytes(gzip.compress(bytes(200 << 20), 1))
        elif compression == "blosc":
            content = bytearray(chunk.read_bytes())
            content[4:8] = struct.pack("<I", 0x7fffffff)  # bytes after unpacking
            chunk.write_bytes(bytes(content))
        else:
            chunk.write_bytes(b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 50) + b"\1\0\0")
        refused(pathlib.Path(folder, "whole.zarr"), folder)


@test
def nested_xml_is_no_danger(folder):
    nest = "<a>" * DEEP + "</a>" * DEEP
    refused(put(folder, "deep.vti", f'<VTKFile type="ImageData">{nest}</VTKFile>'), folder)
    refused(put(folder, "deep.pvti", f'<VTKFile type="PImageData">{nest}</VTKFile>'), folder)
    entities = "".join(f'<!ENTITY e{i + 1} "&e{i};&e{i};&e{i};&e{i};">' for i in range(40))
    refused(put(folder, "laughs.vti", f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]><x>&e40;</x>'), folder)
    pixels, words = b"\0" * 12, f'<?xml version="1.0"?><OME>{nest}</OME>'.encode() + b"\0"
    tags = [(256, 3, 1, 4), (257, 3, 1, 3), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (270, 2, len(words), 150),
            (273, 4, 1, 130), (277, 3, 1, 1), (278, 3, 1, 3), (279, 4, 1, 12)]
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + b"".join(struct.pack("<HHII", *t) for t in tags)
    put(folder, "deep.ome.tif", head.ljust(130, b"\0") + pixels.ljust(20, b"\0") + words)
    status, errors = attempt("deep.ome.tif", folder)
    assert status == 0 or "deep.ome.tif" in errors, errors


@test
def small_files_that_unpack_to_much_are_read_as_far_as_wanted(folder):
    nifti = make(folder, "nii").read_bytes()
    with gzip.open(pathlib.Path(folder, "bomb.nii.gz"), "wb", 6) as file:
        file.write(nifti)
        for _ in range(400):
            file.write(bytes(1 << 20))
    status, errors = attempt("bomb.nii.gz", folder)
    assert status == 0 or "bomb.nii.gz" in errors, errors
    with zipfile.ZipFile(pathlib.Path(folder, "bomb.npz"), "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        array = make(folder, "npy").read_bytes()
        archive.writestr("a.npy", array + bytes(400 << 20))
    status, errors = attempt("bomb.npz", folder)
    assert status == 0 or "bomb.npz" in errors, errors
    # A text of a gibibyte in a PNG that shows one pixel.
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    text = zlib.compressobj(9)
    packed = b"".join(text.compress(bytes(1 << 20)) for _ in range(1024)) + text.flush()
    image = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) +
             chunk(b"zTXt", b"Comment\0\0" + packed) + chunk(b"IDAT", zlib.compress(b"\0\7")) + chunk(b"IEND", b""))
    put(folder, "bomb.png", image)
    status, errors = attempt("bomb.png", folder)
    assert status == 0 or "bomb.png" in errors, errors


@test
def hdf5_that_claims_too_much_is_refused(folder):
    try:
        import h5py  # pylint: disable=import-outside-toplevel
    except ImportError as missing:
        raise Skip("no h5py") from missing
    if run("run", "-q", "-e", 'phantom("foam", [4, 9, 11]) |> write("a.h5")', folder=folder, code=None).returncode:
        raise Skip("fovea-hdf5.so is not there")
    for name, chunks in (("chunks.h5", (64, 64, 64)), ("run.h5", None)):
        with h5py.File(pathlib.Path(folder, name), "w") as file:
            file.create_dataset("data", (HUGE,) * 3, "u1", chunks=chunks)
        refused(pathlib.Path(folder, name), folder, "/data", "shape")


@test
def damaged_tables_give_a_message_that_names_them(folder):
    put(folder, "good.csv", "name,size\na,1\nb,2\n")
    for extension in ("db", "jsonl"):
        run("convert", "good.csv", f"good.{extension}", folder=folder)
    database = pathlib.Path(folder, "good.db").read_bytes()
    wanted = 'write(read("{0}"), "out.csv")'
    nest = '{"a":' * DEEP + "1" + "}" * DEEP
    broken = [("cut.db", database[: len(database) // 2]), ("magic.db", b"something else" * 99), ("empty.db", b""),
              ("page.db", database[:16] + b"\0\1" + database[18:]), ("deep.jsonl", nest + "\n"), ("list.jsonl", "[" * DEEP),
              ("open.jsonl", '{"a": "'), ("empty.csv", ""), ("quote.csv", 'a,b\n"1,2\n3,4\n'), ("more.csv", "a,b\n1,2,3\n")]
    for name, content in broken:
        refused(put(folder, name, content), folder, wanted=wanted.format(name))


@test
def every_malformed_file_of_the_test_data_gives_an_image_or_a_message(folder):
    for path in sorted(data("malformed").iterdir()):
        status, errors = attempt(path, folder)
        assert status == 0 or path.name in errors, (path.name, errors)


main()
