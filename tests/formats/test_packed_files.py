#!/usr/bin/python3
"""Image files packed as a whole by gzip, bzip2, zstd and zip: the same voxels, clear errors for damaged and for endless ones."""
import bz2
import gzip
import pathlib
import shutil
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip packed_files: {missing}")
    sys.exit(0)


def make(folder, name="a.tif"):
    """An image, and the bytes of a file that holds it."""
    image = np.random.default_rng(2).integers(0, 50, (6, 40, 50)).astype(np.uint16)
    np.save(f"{folder}/in.npy", image)
    run("convert", "in.npy", name, "--quiet", folder=folder)
    return image, pathlib.Path(folder, name).read_bytes()


def read(folder, name, code=0):
    done = run("convert", name, "out.npy", "--quiet", "--overwrite", folder=folder, code=code)
    return np.load(f"{folder}/out.npy") if code == 0 else done.stderr


@test
def gzip_bzip2_and_zip_are_read_around_several_formats(folder):
    for name in ("a.tif", "a.npy", "a.mrc", "a.nrrd", "a.nii"):
        image, data = make(folder, name)
        pathlib.Path(folder, name + ".gz").write_bytes(gzip.compress(data[:999]) + gzip.compress(data[999:]))
        pathlib.Path(folder, name + ".bz2").write_bytes(bz2.compress(data[:999]) + bz2.compress(data[999:]))
        with zipfile.ZipFile(f"{folder}/{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"inside/{name}", data)
        with zipfile.ZipFile(f"{folder}/stored.zip", "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(name, data)
        for packed in (name + ".gz", name + ".bz2", name + ".zip", "stored.zip"):
            assert np.array_equal(read(folder, packed), image), packed
    shutil.copy(f"{folder}/a.tif.gz", f"{folder}/nameless")
    assert np.array_equal(read(folder, "nameless"), image)


@test
def zstd_is_read(folder):
    if not shutil.which("zstd"):
        raise Skip("no zstd command")
    image, _ = make(folder)
    subprocess.run(["zstd", "-q", "a.tif"], cwd=folder, check=True)
    assert np.array_equal(read(folder, "a.tif.zst"), image)
    assert "packed" in run("info", "a.tif.zst", folder=folder).stdout


@test
def what_is_damaged_or_not_packed_is_named(folder):
    _, data = make(folder)
    packed = {"short.tif.gz": gzip.compress(data)[:-2000], "short.tif.bz2": bz2.compress(data)[:-300], "not.tif.gz": data,
              "flip.tif.bz2": bytes(b ^ (i == 700) for i, b in enumerate(bz2.compress(data))), "empty.tif.zst": b"",
              "noise.tif.zst": b"\x28\xb5\x2f\xfd" + bytes(range(200)), "half.tif.gz": gzip.compress(data[:1000]),
              "twice.tif.gz.gz": gzip.compress(gzip.compress(data))}
    with zipfile.ZipFile(f"{folder}/two.zip", "w") as archive:
        archive.writestr("a.tif", data)
        archive.writestr("b.tif", data)
    whole = bytearray(pathlib.Path(folder, "two.zip").read_bytes())
    packed["cut.zip"] = bytes(whole[:len(whole) // 2])
    for name, content in packed.items():
        pathlib.Path(folder, name).write_bytes(content)
    for name in (*packed, "two.zip"):
        said = read(folder, name, code=2)
        assert name in said and "/proc/" not in said, said


@test
def a_bomb_is_refused(folder):
    make(folder)
    with gzip.open(f"{folder}/bomb.npy.gz", "wb", 6) as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    said = read(folder, "bomb.npy.gz", code=2)
    assert "unpacks to more than 268435456 bytes" in said, said


main()
