"""Bodies of messages: each kind that the protocol names gives the voxels that were put into it, and what is damaged is told."""
import ctypes
import ctypes.util
import io
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test

try:
    import numpy
except ImportError:
    numpy = None

TEXT = 's = read("scans/*.npy")\nwrite(s, "out/{stem}.npy")\n'


def picture(shape=(23, 37), seed=0):
    if numpy is None:
        raise Skip("no numpy")
    return numpy.random.default_rng(seed).integers(0, 40, shape).astype("uint16")


def message(body, **headers):
    head = {"bytes": len(body), **headers}
    return "".join(f"fovea-{name}: {value}\n" for name, value in head.items()).encode() + b"\n" + body


def stream(folder, *messages, code=0):
    (pathlib.Path(folder) / "p.fov").write_text(TEXT)
    done = subprocess.run([FOVEA, "stream", "p.fov", "--bind", "s=-"], cwd=folder, input=b"".join(messages), capture_output=True,
                          timeout=600, check=False)
    said = done.stderr.decode()
    assert done.returncode == code, said
    return said


def made(folder, key, index=0):
    return numpy.load(pathlib.Path(folder) / "out" / f"{key}-{index:06d}.npy")


def packed(codec, data, size):
    """By the libraries that Fovea uses itself."""
    names = {"lz4": "lz4", "zstd": "zstd", "blosc": "blosc"}
    found = ctypes.util.find_library(names[codec])
    if not found:
        raise Skip(f"no lib{names[codec]} here")
    library, room = ctypes.CDLL(found), ctypes.create_string_buffer(2 * len(data) + 1000)
    if codec == "lz4":
        n = library.LZ4_compress_default(data, room, len(data), len(room))
    elif codec == "zstd":
        library.ZSTD_compress.restype = ctypes.c_size_t
        n = library.ZSTD_compress(room, ctypes.c_size_t(len(room)), data, ctypes.c_size_t(len(data)), 3)
    else:
        n = library.blosc_compress_ctx(5, 1, ctypes.c_size_t(size), ctypes.c_size_t(len(data)), data, room,
                                       ctypes.c_size_t(len(room)), b"lz4", ctypes.c_size_t(0), 1)
    assert 0 < n < len(data), f"{codec}: {n} bytes of {len(data)}"
    return room.raw[:n]


@test
def voxels_may_be_packed_by_lz4_zstd_and_blosc(folder):
    image = picture()
    for codec in ("none", "lz4", "zstd", "blosc"):
        body = image.tobytes() if codec == "none" else packed(codec, image.tobytes(), image.itemsize)
        head = {"key": codec, "shape": "23,37", "dtype": "uint16", "codec": codec}
        said = stream(folder, message(body, index=0, **head), message(body[:-9], index=1, **head), code=1)
        assert numpy.array_equal(made(folder, codec), image), codec
        assert "1 of 2 frames done" in said and "1 malformed" in said, said


@test
def several_frames_may_be_packed_together(folder):
    stack = picture((5, 23, 37))
    stream(folder, message(packed("blosc", stack.tobytes(), 2), key="s", shape="5,23,37", dtype="uint16", codec="blosc", frames=5,
                           index=10))
    for i in range(5):
        assert numpy.array_equal(made(folder, "s", 10 + i), stack[i])


@test
def small_files_are_bodies(folder):
    image = picture()
    numpy.save(pathlib.Path(folder) / "a.npy", image)
    run("run", "-q", "-e", 'read("a.npy") |> write("a.tif"); read("a.npy") |> write("a.png")', folder=folder)
    for ending in ("npy", "tif", "png"):
        body = (pathlib.Path(folder) / f"a.{ending}").read_bytes()
        said = stream(folder, message(body, key=ending, index=0), message(body[:60], key=ending, index=1), code=1)
        assert numpy.array_equal(made(folder, ending), image), ending
        assert "1 malformed" in said and "/proc/" not in said, said


@test
def files_of_hdf5_are_bodies(folder):
    try:
        import h5py
    except ImportError as missing:
        raise Skip("no h5py") from missing
    if not (pathlib.Path(FOVEA).parent / "fovea-hdf5.so").exists():
        raise Skip("this build has no HDF5")
    image, file = picture(), io.BytesIO()
    with h5py.File(file, "w") as content:
        content.create_dataset("entry/data/data", data=image, chunks=(8, 37), compression="gzip")
    body = file.getvalue()
    said = stream(folder, message(body, key="h", index=0), message(body[:-300], key="h", index=1), code=1)
    assert numpy.array_equal(made(folder, "h"), image)
    assert "1 malformed" in said and "truncated" in said and "the body of the message" in said, said


main()
