#!/usr/bin/python3
"""NIfTI against nibabel and Zarr against zarr: the same voxels and geometry read from what the peer writes, and found by the
peer in what Fovea writes.

Debian's zarr knows version 2 only, so chunks of version 3 are decoded here with numcodecs; where an interpreter has zarr 3
(FOVEA_ZARR3_PYTHON, the environment that bootstrap.sh pypi makes, or python3 on the path) it reads and writes whole images as
well.
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, data, main, run, test  # noqa: E402

try:
    import nibabel as nib
    import numcodecs
    import numpy as np
    import zarr
except ImportError as missing:
    print(f"skip volume_files: {missing}")
    sys.exit(0)

NIFTI_DTYPES = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64 complex64 complex128".split()
TURNED = np.array([[-1.4, 0.3, 0.1, 90], [0.2, 1.9, -0.2, -126], [0.1, 0.3, 2.9, -72], [0, 0, 0, 1]])


def volume(dtype, shape=(12, 17, 9), seed=1):
    """Random values that every dtype tells apart; x first, as nibabel has it."""
    random = np.random.default_rng(seed)
    array = random.integers(0, 2 if dtype == bool else 120, shape)
    return (array + 0.25j * array).astype(dtype) if np.dtype(dtype).kind == "c" else array.astype(dtype)


def convert(source, target, *options, folder):
    run("convert", source, target, "--quiet", "--overwrite", "--fresh", *options, folder=folder)


def load(folder, name):
    return np.load(pathlib.Path(folder) / name)


def stored(image):
    """What the file holds, without nibabel's scaling."""
    return np.asarray(image.dataobj)


def assert_same(ours, peer):
    assert ours.shape == peer.shape, f"shape {ours.shape}, not {peer.shape}"
    assert ours.dtype == peer.dtype.newbyteorder("="), f"{ours.dtype}, not {peer.dtype}"
    assert np.array_equal(ours, peer), f"{np.count_nonzero(ours != peer)} voxels differ"


# ---------------------------------------------------------------- NIfTI

@test
def nibabel_files_of_every_dtype_are_read(folder):
    for number, dtype in enumerate(NIFTI_DTYPES):
        for order in "<>":
            array = volume(dtype, seed=number)
            name = ["a.nii", "a.nii.gz"][number % 2]
            header = nib.Nifti1Header(endianness=order)
            header.set_data_dtype(dtype)
            nib.save(nib.Nifti1Image(array, TURNED, header, dtype=dtype), f"{folder}/{name}")
            convert(name, "a.npy", folder=folder)
            assert_same(load(folder, "a.npy"), array.T)


@test
def files_of_every_dtype_are_read_by_nibabel(folder):
    for number, dtype in enumerate([*NIFTI_DTYPES, "bool"]):
        array = volume(dtype, seed=number)
        np.save(f"{folder}/in.npy", array.T)
        for name in ("out.nii", "out.nii.gz"):
            convert("in.npy", name, folder=folder)
            assert_same(stored(nib.load(f"{folder}/{name}")), array.astype("uint8") if dtype == "bool" else array)


@test
def gzip_of_python_and_of_the_shell_read_what_is_written(folder):
    array = np.random.default_rng(1).normal(100, 5, (150, 160, 70)).astype(np.float32)
    np.save(f"{folder}/in.npy", array.T)
    convert("in.npy", "out.nii.gz", folder=folder)
    with gzip.open(f"{folder}/out.nii.gz") as file:
        assert file.read()[352:] == array.T.tobytes()
    assert subprocess.run(["gzip", "-t", f"{folder}/out.nii.gz"], check=False).returncode == 0


@test
def scaled_integers_are_what_nibabel_makes_of_them(folder):
    for slope, inter, dtype in ((0.37, -12, np.float32), (0.1, 0.3, np.float32), (1e-6, 1e6, np.float64), (3, 0, np.float32)):
        image = nib.Nifti1Image(volume("int16"), np.eye(4))
        image.header.set_slope_inter(slope, inter)
        image.to_filename(f"{folder}/a.nii.gz")
        raw = bytearray(gzip.open(f"{folder}/a.nii.gz").read())
        raw[112:120] = np.array([slope, inter], np.float32).tobytes()
        gzip.open(f"{folder}/a.nii.gz", "wb").write(raw)
        convert("a.nii.gz", "a.npy", folder=folder)
        assert_same(load(folder, "a.npy"), nib.load(f"{folder}/a.nii.gz").get_fdata().astype(dtype).T)


@test
def geometry_survives_a_filter(folder):
    for name in ("a.nii", "a.nii.gz"):
        for affine, code in ((TURNED, "mni"), (np.diag([-2, 2, 3, 1.0]), "scanner")):
            image = nib.Nifti1Image(volume("float32", (12, 17, 9, 2)), affine)
            image.set_sform(affine, code)
            image.set_qform(affine, code, strip_shears=True)
            image.header.set_xyzt_units("mm", "sec")
            image.header["pixdim"][4] = 2.5
            nib.save(image, f"{folder}/{name}")
            run("run", "-e", f'read("{name}") |> gaussian(1) |> write("b-{name}")',
                "--quiet", "--overwrite", "--fresh", folder=folder)
            back = nib.load(f"{folder}/b-{name}")
            assert np.array_equal(back.affine, image.affine.astype(np.float32)), back.affine
            assert back.header["sform_code"] == image.header["sform_code"]
            assert back.header.get_xyzt_units() == ("mm", "sec")
            assert np.allclose(back.header.get_zooms(), image.header.get_zooms(), atol=1e-6), back.header.get_zooms()
            if code == "scanner":  # without shears the quaternion says the same
                assert np.allclose(back.get_qform(), affine, atol=1e-5), back.get_qform()


@test
def a_region_of_a_nifti_file_is_a_slice(folder):
    array = volume("int16", (70, 60, 50))
    for name in ("a.nii", "a.nii.gz"):
        nib.save(nib.Nifti1Image(array, np.eye(4)), f"{folder}/{name}")
        convert(name, "a.npy", "--region", "3:40,10:55,7:61", folder=folder)
        assert_same(load(folder, "a.npy"), array.T[3:40, 10:55, 7:61])


@test
def nifti_2_and_pairs_are_read(folder):
    array = volume("uint16")
    nib.save(nib.Nifti2Image(array, np.eye(4)), f"{folder}/two.nii.gz")
    nib.save(nib.Nifti1Pair(array, np.eye(4)), f"{folder}/pair.hdr")
    for name in ("two.nii.gz", "pair.hdr", "pair.img"):
        convert(name, "a.npy", folder=folder)
        assert_same(load(folder, "a.npy"), array.T)


@test
def real_nifti_files_are_read(folder):
    for name in ("anatomical.nii", "functional.nii", "example4d.nii.gz"):
        path = data("nifti", name)
        convert(path, "a.npy", folder=folder)
        ours, peer = load(folder, "a.npy"), nib.load(path)
        assert_same(ours, peer.get_fdata().astype(ours.dtype).T)


# ---------------------------------------------------------------- Zarr

ZARR_DTYPES = ["bool", *NIFTI_DTYPES]
PEERS = str(pathlib.Path(__file__).resolve().parents[2] / "build" / "peers" / "bin" / "python")


def decode(folder):
    """A version 3 array by its metadata, with numcodecs."""
    folder = pathlib.Path(folder)
    meta = json.loads((folder / "zarr.json").read_text())
    assert meta["zarr_format"] == 3 and meta["node_type"] == "array" and meta["chunk_key_encoding"]["name"] == "default"
    grid = meta["chunk_grid"]["configuration"]["chunk_shape"]
    codecs = {codec["name"]: codec.get("configuration", {}) for codec in meta["codecs"]}
    result = np.zeros(meta["shape"], meta["data_type"])
    for index in np.ndindex(*(-(-n // c) for n, c in zip(meta["shape"], grid))):
        chunk = (folder / "c" / "/".join(map(str, index))).read_bytes()
        if "zstd" in codecs:
            chunk = numcodecs.Zstd().decode(chunk)
        if "blosc" in codecs:
            chunk = numcodecs.Blosc().decode(chunk)
        chunk = np.frombuffer(chunk, np.dtype(meta["data_type"]).newbyteorder("<")).reshape(grid)
        place = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, grid, meta["shape"]))
        result[place] = chunk[tuple(slice(0, p.stop - p.start) for p in place)]
    return result


@test
def numcodecs_decodes_every_dtype_and_compression(folder):
    for number, dtype in enumerate(ZARR_DTYPES):
        array = volume(dtype, (40, 33, 50), number)
        np.save(f"{folder}/in.npy", array)
        compression = ["zstd", "blosc", "blosc-zstd", "none"][number % 4]
        run("run", "-e", f'read("in.npy") |> write("out.zarr", compression = "{compression}", chunk = [16, 20, 32])', "--quiet",
            "--overwrite", "--fresh", folder=folder)
        assert_same(decode(f"{folder}/out.zarr/0"), array)


@test
def zarr_2_arrays_are_read(folder):
    for number, compressor in enumerate((None, numcodecs.Blosc("lz4"), numcodecs.Blosc("zstd", shuffle=2), numcodecs.Zstd(3),
                                         numcodecs.GZip(4), numcodecs.Zlib(4))):
        for order in "<>":
            array = volume("int32", (30, 40, 25), number).astype(order + "i4")
            store = zarr.DirectoryStore(f"{folder}/v2.zarr", dimension_separator="./"[number % 2])
            written = zarr.create(array.shape, chunks=(16, 16, 10), dtype=array.dtype, compressor=compressor, store=store,
                                  overwrite=True, fill_value=7, order="CF"[number // 2 % 2])
            written[:16] = array[:16]  # other chunks stay away
            convert("v2.zarr", "a.npy", folder=folder)
            assert_same(load(folder, "a.npy"), written[:])


@test
def ome_metadata_is_complete_and_survives(folder):
    image = nib.Nifti1Image(volume("float32", (12, 17, 9, 3)), TURNED)
    image.header.set_xyzt_units("mm", "sec")
    nib.save(image, f"{folder}/a.nii")
    convert("a.nii", "a.ome.zarr", folder=folder)
    ome = json.loads(pathlib.Path(folder, "a.ome.zarr", "zarr.json").read_text())["attributes"]["ome"]
    multiscale = ome["multiscales"][0]
    assert ome["version"] == "0.5"
    assert [(axis["name"], axis["type"]) for axis in multiscale["axes"]] == \
        [("t", "time"), ("z", "space"), ("y", "space"), ("x", "space")]
    assert [axis.get("unit") for axis in multiscale["axes"]] == ["second", "millimeter", "millimeter", "millimeter"]
    steps = multiscale["datasets"][0]["coordinateTransformations"]
    assert [step["type"] for step in steps] == ["scale", "translation"] and len(steps[0]["scale"]) == 4
    array = json.loads(pathlib.Path(folder, "a.ome.zarr", multiscale["datasets"][0]["path"], "zarr.json").read_text())
    assert array["dimension_names"] == ["t", "z", "y", "x"]
    convert("a.ome.zarr", "b.nii", folder=folder)
    back = nib.load(f"{folder}/b.nii")
    assert np.array_equal(back.affine, nib.load(f"{folder}/a.nii").affine)
    assert np.array_equal(stored(back), stored(image))


def shrunk(array):
    """The next level of a pyramid: means of 2 x 2 x 2 voxels, fewer at the end."""
    padded = np.pad(array.astype(float), [(0, n % 2) for n in array.shape], constant_values=np.nan)
    z, y, x = padded.shape
    mean = np.nanmean(padded.reshape(z // 2, 2, y // 2, 2, x // 2, 2), axis=(1, 3, 5))
    return (np.floor(mean + 0.5) if array.dtype.kind in "iu" else mean).astype(array.dtype)


@test
def ome_zarr_0_4_of_every_dtype_is_read_by_zarr(folder):
    for number, dtype in enumerate(ZARR_DTYPES):
        array = volume(dtype, (40, 33, 50), number)
        np.save(f"{folder}/in.npy", array)
        compression = ["zstd", "blosc", "blosc-zstd", "gzip", "none"][number % 5]
        options = f'compression = "{compression}", chunk = [16, 20, 32], version = "0.4"'
        run("run", "-e", f'read("in.npy") |> write("out.zarr", {options})', "--quiet", "--overwrite", "--fresh", folder=folder)
        group = zarr.open_group(f"{folder}/out.zarr", "r")
        assert_same(group["0"][:], array)
        assert group.attrs["multiscales"][0]["version"] == "0.4"


@test
def pyramids_hold_means_whatever_the_chunks(folder):
    array = np.random.default_rng(4).integers(0, 60000, (70, 101, 130)).astype(np.uint16)
    np.save(f"{folder}/in.npy", array)
    for lattice, workers in (("32", 1), ("64", 2), ("128", 2)):
        run("run", "-e", 'read("in.npy") |> write("out.zarr", chunk = 16, levels = 4, version = "0.4")', "--chunk", lattice,
            "--workers", workers, "--quiet", "--overwrite", "--fresh", folder=folder)
        group, level = zarr.open_group(f"{folder}/out.zarr", "r"), array
        for number, dataset in enumerate(group.attrs["multiscales"][0]["datasets"]):
            scale, translation = dataset["coordinateTransformations"]
            assert scale["scale"] == [2 ** number] * 3 and translation["translation"] == [(2 ** number - 1) / 2] * 3, dataset
            assert_same(group[dataset["path"]][:], level)
            level = shrunk(level)
        assert number == 3


@test
def real_zarr_file_is_read(folder):
    source = data("zarr", "simple_0.4")
    os.symlink(source, f"{folder}/simple.zarr")
    convert("simple.zarr", "a.npy", folder=folder)
    assert_same(load(folder, "a.npy"), zarr.open(str(source), "r")["scale0/image"][:])


def zarr3(script, folder):
    """Runs a script where zarr 3 can be imported."""
    for python in (os.environ.get("FOVEA_ZARR3_PYTHON"), PEERS, sys.executable, "python3"):
        check = "import zarr, numpy; assert int(zarr.__version__.split('.')[0]) >= 3"
        try:
            if python and subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0:
                subprocess.run([python, "-c", script], cwd=folder, check=True, capture_output=True, text=True)
                return
        except FileNotFoundError:
            continue
        except subprocess.CalledProcessError as failure:
            raise AssertionError(failure.stderr.strip()[-500:]) from None
    raise Skip("no interpreter with zarr 3")


@test
def zarr_3_reads_what_is_written(folder):
    for number, dtype in enumerate(ZARR_DTYPES):
        array = volume(dtype, (40, 33, 50), number)
        np.save(f"{folder}/in.npy", array)
        compression = ["zstd", "blosc", "blosc-zstd", "none"][number % 4]
        run("run", "-e", f'read("in.npy") |> write("out.zarr", compression = "{compression}", chunk = [16, 20, 32])', "--quiet",
            "--overwrite", "--fresh", folder=folder)
        zarr3("import zarr, numpy; g = zarr.open_group('out.zarr', mode='r'); numpy.save('back.npy', g['0'][:])", folder)
        assert_same(load(folder, "back.npy"), array)


@test
def zarr_3_reads_shards_and_pyramids(folder):
    array = np.random.default_rng(4).normal(0, 1, (70, 101, 130)).astype(np.float32)
    np.save(f"{folder}/in.npy", array)
    run("run", "-e", 'read("in.npy") |> write("out.zarr", chunk = 16, shard = [32, 64, 64], levels = 3)', "--quiet",
        folder=folder)
    zarr3("""
import zarr, numpy
g = zarr.open_group('out.zarr', mode='r')
assert g['0'].shards == (32, 64, 64) and g['0'].chunks == (16, 16, 16)
for i in range(3): numpy.save(f'{i}.npy', g[str(i)][:])
""", folder)
    assert_same(load(folder, "0.npy"), array)
    for level in (1, 2):
        assert np.allclose(load(folder, f"{level}.npy"), shrunk(load(folder, f"{level - 1}.npy")), rtol=1e-6, atol=1e-6)


@test
def the_models_of_ome_zarr_accept_what_is_written(folder):
    np.save(f"{folder}/in.npy", volume("uint16", (40, 33, 50)))
    for version in ("0.4", "0.5"):
        run("run", "-e", f'read("in.npy") |> write("v{version}.zarr", chunk = 16, levels = 3, version = "{version}")', "--quiet",
            folder=folder)
    try:
        zarr3("import ome_zarr_models", folder)
    except AssertionError:
        raise Skip("no ome_zarr_models") from None
    zarr3("""
import zarr
from ome_zarr_models import open_ome_zarr
for version in ('0.4', '0.5'):
    image = open_ome_zarr(zarr.open_group(f'v{version}.zarr', mode='r'))
    assert type(image).__module__ == f"ome_zarr_models.v{version.replace('.', '')}.image", type(image)
    multiscales = (image.attributes if version == '0.4' else image.attributes.ome).multiscales
    assert len(multiscales[0].datasets) == 3
""", folder)


@test
def what_zarr_3_writes_is_read(folder):
    array = volume("int16", (40, 33, 50))
    np.save(f"{folder}/in.npy", array)
    codecs = ("None", "zarr.codecs.ZstdCodec(level=3)", "zarr.codecs.BloscCodec(cname='lz4', shuffle='bitshuffle')",
              "zarr.codecs.GzipCodec(level=3)", "[zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]")
    for number, codec in enumerate(codecs):
        zarr3(f"""
import zarr, numpy
a = numpy.load('in.npy')
z = zarr.create_array('z.zarr', shape=a.shape, chunks=(16, 20, 32), dtype=a.dtype, compressors={codec}, overwrite=True,
                      fill_value=-3, serializer=zarr.codecs.BytesCodec(endian='{['little', 'big'][number % 2]}'),
                      chunk_key_encoding={{'name': '{['default', 'v2'][number % 2]}', 'separator': '{'/.'[number % 2]}'}})
z[:32] = a[:32]
numpy.save('expected.npy', z[:])
""", folder)
        convert("z.zarr", "a.npy", folder=folder)
        assert_same(load(folder, "a.npy"), load(folder, "expected.npy"))


@test
def shards_and_turned_chunks_of_zarr_3_are_read(folder):
    np.save(f"{folder}/in.npy", volume("int16", (40, 33, 50)))
    for serializer in ("zarr.codecs.ShardingCodec(chunk_shape=(8, 10, 16), codecs=[zarr.codecs.BytesCodec(), "
                       "zarr.codecs.ZstdCodec()])",
                       "zarr.codecs.ShardingCodec(chunk_shape=(16, 20, 32), codecs=[zarr.codecs.TransposeCodec(order=(2, 0, 1)), "
                       "zarr.codecs.BytesCodec(), zarr.codecs.GzipCodec()], index_location='start')"):
        zarr3(f"""
import zarr, numpy
a = numpy.load('in.npy')
z = zarr.create_array('z.zarr', shape=a.shape, chunks=(16, 20, 32), dtype=a.dtype, compressors=None, overwrite=True,
                      fill_value=-3, serializer={serializer})
z[:32, :30] = a[:32, :30]
numpy.save('expected.npy', z[:])
""", folder)
        for region in (":,:,:", "7:33,5:32,1:40"):
            convert("z.zarr", "a.npy", "--region", region, folder=folder)
            place = tuple(slice(*(int(n) if n else None for n in part.split(":"))) for part in region.split(","))
            assert_same(load(folder, "a.npy"), load(folder, "expected.npy")[place])


main()
