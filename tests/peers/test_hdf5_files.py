#!/usr/bin/python3
"""HDF5 against h5py: the same voxels, axes and lists from what the peer writes, and found by the peer in what Fovea writes."""
import json
import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, data, main, run, test  # noqa: E402

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"skip hdf5_files: {missing}")
    sys.exit(0)
if not (pathlib.Path(FOVEA).resolve().parent / "fovea-hdf5.so").exists():
    print("skip hdf5_files: no fovea-hdf5.so, since libhdf5 was not there when Fovea was built")
    sys.exit(0)

DTYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64 complex64 complex128".split()


def volume(dtype, shape=(30, 21, 34), seed=1):
    array = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 120, shape)
    return (array + 0.25j * array).astype(dtype) if np.dtype(dtype).kind == "c" else array.astype(dtype)


def convert(source, target, *options, folder):
    run("convert", source, target, "--quiet", "--overwrite", "--fresh", *options, folder=folder)


def pipeline(text, folder):
    run("run", "-e", text, "--quiet", "--overwrite", "--fresh", folder=folder)


def info(name, folder, *options):
    return json.loads(run("info", "--json", name, *options, folder=folder).stdout)[0]


def assert_same(ours, peer):
    assert ours.shape == peer.shape, f"shape {ours.shape}, not {peer.shape}"
    assert ours.dtype == peer.dtype.newbyteorder("="), f"{ours.dtype}, not {peer.dtype}"
    assert np.array_equal(ours, peer), f"{np.count_nonzero(ours != peer)} voxels differ"


def read_back(path, folder):
    pipeline(f'read("a.h5", path = "{path}") |> write("a.npy")', folder)
    return np.load(f"{folder}/a.npy")


@test
def every_dtype_filter_and_byte_order_is_read(folder):
    filters = [{}, {"chunks": True}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf"},
               {"compression": "lzf", "shuffle": True, "fletcher32": True}, {"chunks": (7, 21, 10), "fletcher32": True},
               {"chunks": (8, 8, 8), "compression": "gzip", "shuffle": True, "fletcher32": True}]
    for number, dtype in enumerate(DTYPES):
        array = volume(dtype, seed=number)
        with h5py.File(f"{folder}/a.h5", "w") as file:
            for k, options in enumerate(filters):
                stored = array if dtype == "bool" or k % 2 else array.astype(array.dtype.newbyteorder(">"))
                file.create_dataset(f"group/set{k}", data=stored, **options)
        for k in (number % 8, (number + 3) % 8, (number + 5) % 8):
            assert_same(read_back(f"/group/set{k}", folder), array)


@test
def what_only_the_library_can_read_is_read_by_it(folder):
    array = volume("uint16")
    with h5py.File(f"{folder}/a.h5", "w") as file:
        file.create_dataset("scaled", data=array, scaleoffset=0, chunks=(8, 8, 8))
        file.create_dataset("half", data=array.astype(np.float16))
        if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP) and h5py.h5z.get_filter_info(h5py.h5z.FILTER_SZIP) & 1:
            file.create_dataset("szip", data=array, compression="szip", chunks=(8, 8, 8))
    assert_same(read_back("scaled", folder), array)
    assert_same(read_back("half", folder), array.astype(np.float32))
    with h5py.File(f"{folder}/a.h5") as file:
        if "szip" in file:
            assert_same(read_back("szip", folder), array)


@test
def regions_and_missing_chunks_are_right(folder):
    with h5py.File(f"{folder}/a.h5", "w") as file:
        stored = file.create_dataset("data", (50, 60, 70), "i2", chunks=(16, 16, 16), compression="gzip", fillvalue=-5)
        stored[:20, 10:40] = volume("int16", (20, 30, 70))
        whole = stored[:]
    for region in (":,:,:", "3:40,10:55,7:61", "17:18,:,:", "48:50,59:60,0:70"):
        convert("a.h5", "a.npy", "--region", region, folder=folder)
        place = tuple(slice(*(int(n) if n else None for n in part.split(":"))) for part in region.split(","))
        assert_same(np.load(f"{folder}/a.npy"), whole[place])


@test
def files_of_every_dtype_are_read_by_h5py(folder):
    for number, dtype in enumerate(DTYPES):
        array = volume(dtype, seed=number)
        np.save(f"{folder}/in.npy", array)
        compression = ["deflate", "none"][number % 3 == 0]
        pipeline(f'read("in.npy") |> write("out.h5", chunk = [8, 10, 12], compression = "{compression}")', folder)
        with h5py.File(f"{folder}/out.h5") as file:
            assert_same(file["data"][:], array)
            assert file["data"].chunks == (8, 10, 12)
            assert [dimension.label for dimension in file["data"].dims] == ["z", "y", "x"]


@test
def projections_of_a_scan_are_found_and_read(folder):
    path = data("tomography", "tooth.h5")
    found = info(path, folder)
    assert found["facts"]["layout"] == "DataExchange" and found["axes"] == ["angle", "v", "u"]
    assert found["contents"]["/exchange/data_white"].endswith("flat fields")
    assert found["contents"]["/exchange/theta"].endswith("angles")
    with h5py.File(path) as file:
        for name in ("data", "data_white", "data_dark", "theta"):
            pipeline(f'read("{path}", path = "/exchange/{name}") |> write("a.npy")', folder)
            assert_same(np.load(f"{folder}/a.npy"), file[f"exchange/{name}"][:])


@test
def the_signal_of_nexus_and_cxi_is_found(folder):
    array = volume("float32")
    with h5py.File(f"{folder}/a.nxs", "w") as file:
        file.attrs["default"] = "entry"
        group = file.create_group("entry/instrument/detector")
        group.create_dataset("mask", data=array > 3)
        group = file.create_group("entry/scan")
        group.attrs.update(NX_class="NXdata", signal="counts")
        group.create_dataset("counts", data=array)
        group.create_dataset("errors", data=array + 1)
    with h5py.File(f"{folder}/a.cxi", "w") as file:
        file["cxi_version"] = 140
        file["entry_1/data_1/data"] = array
        file["entry_1/data_1/other"] = array + 1
    for name, layout, dataset in (("a.nxs", "NeXus", "/entry/scan/counts"), ("a.cxi", "CXI", "/entry_1/data_1/data")):
        found = info(name, folder)
        assert found["facts"]["layout"] == layout and found["facts"]["dataset"] == dataset, found
        convert(name, "a.npy", folder=folder)
        assert_same(np.load(f"{folder}/a.npy"), array)


@test
def variables_of_netcdf_have_their_axes(folder):
    with h5py.File(f"{folder}/a.nc", "w") as file:
        file.attrs["_NCProperties"] = "version=2,netcdf=4.9.0,hdf5=1.10.8"
        for name, values, unit in (("time", np.arange(4) * 6.0, "hours"), ("lat", np.linspace(40, 50, 11), "degrees_north"),
                                   ("lon", np.arange(7.0) + 3, "degrees_east")):
            file[name] = values
            file[name].make_scale(name)
            file[name].attrs["units"] = unit
        file["temperature"] = np.arange(4 * 11 * 7, dtype="f4").reshape(4, 11, 7)
        for axis, name in enumerate(("time", "lat", "lon")):
            file["temperature"].dims[axis].attach_scale(file[name])
    found = info("a.nc", folder)
    assert found["facts"]["layout"] == "NetCDF 4" and found["axes"] == ["t", "y", "x"], found
    assert found["spacing"] == [6, 1, 1] and found["origin"] == [0, 40, 3] and found["units"] == ["hours", "degrees_north",
                                                                                                  "degrees_east"], found
    assert found["contents"]["/lat"].endswith("coordinates")


@test
def what_is_wrong_is_said(folder):
    array = volume("uint8")
    with h5py.File(f"{folder}/a.h5", "w") as file:
        file["one"], file["two"] = array, array
        file["text"] = "hello"
        file["deep"] = np.zeros((1,) * 7)
    pathlib.Path(folder, "no.h5").write_bytes(b"PNG and so on" * 100)
    for pattern, said in (('read("a.h5")', "name one"), ('read("a.h5", path = "/three")', "three"),
                          ('read("a.h5", path = "/text")', "neither numbers"), ('read("a.h5", path = "deep")', "7 axes"),
                          ('read("no.h5")', "not HDF5")):
        done = run("run", "-e", f'{pattern} |> write("x.npy")', "--quiet", folder=folder, code=2)
        assert said in done.stderr, done.stderr
    listed = info("a.h5", folder)
    assert "/one" in listed["contents"] and "facts" not in listed, listed
    done = run("info", "a.h5", folder=folder, code=2, environment={"FOVEA_PLUGINS": folder})
    assert "apt-get install libhdf5-dev" in done.stderr, done.stderr


@test
def damaged_files_give_a_message_in_bounded_memory(folder):
    random = np.random.default_rng(3)
    with h5py.File(f"{folder}/good.h5", "w") as file:
        file.create_dataset("x/data", data=volume("uint16"), chunks=(8, 8, 8), compression="gzip")
        file["x/data"].attrs["units"] = "counts"
    good = pathlib.Path(folder, "good.h5").read_bytes()
    for number in range(40):
        bytes_ = bytearray(good if number % 4 else good[:random.integers(1, len(good))])
        for _ in range(0 if number % 4 == 0 else 1 + number % 5):
            bytes_[random.integers(0, min(len(bytes_), 6000))] ^= 1 << int(random.integers(0, 8))
        pathlib.Path(folder, "bad.h5").write_bytes(bytes_)
        done = subprocess.run([FOVEA, "convert", "bad.h5", "bad.npy", "--quiet", "--fresh", "--overwrite"], cwd=folder,
                              capture_output=True, text=True, check=False, timeout=PATIENCE,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 31, 1 << 31)))
        assert done.returncode in (0, 1, 2), f"{number}: {done.returncode} {done.stderr}"
        assert done.returncode == 0 or "bad.h5" in done.stderr, f"{number}: {done.stderr}"


main()
