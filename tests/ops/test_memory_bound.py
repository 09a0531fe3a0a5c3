"""Memory: merges of many small chunks stay below --memory, and a large file is converted with little."""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test

BOUND = 128
CALLS = {"label": "label(a < 60)", "distance": "distance(a < 60)", "fill_holes": "fill_holes(a < 60)",
         "reconstruct": "reconstruct(minimum(a, 100), a)", "h_maxima": "h_maxima(a, 20)",
         "watershed": "watershed(a, label(a < 4))"}


def bounded(call):
    """A volume of 14 million voxels in 216 chunks."""
    def peak(folder):
        used = peak_of(folder, f'a = phantom("foam", [240, 240, 240])\nwrite({call}, "out.npy")', "--chunk", "40x40x40")
        assert 20 < used < BOUND, f"{used:.0f} MiB"
    return peak


for name, call in CALLS.items():
    peak = bounded(call)
    peak.__name__ = f"{name}_keeps_to_the_memory_bound"
    test(peak)

def npy_header(dtype, shape):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def peak_of(folder, text, *options):
    """MiB that a run takes which may take BOUND."""
    done = run("run", "--json", "--memory", f"{BOUND}M", *options, "-e", text, folder=folder)
    return json.loads(done.stdout)["peak_memory"] / 2**20


@test
def tracks_of_two_million_objects_keep_to_the_memory_bound(folder):
    """Noise: most tracks end where they begin, and nearly all objects lie in two times at most."""
    text = ('movie = name_axes(phantom("noise", [300, 300, 300]), "t y x")\n'
            'track(label(movie < 0.1)) |> group("", "count() as n") |> write("out.csv")')
    used = peak_of(folder, text, "--chunk", "20x80x80")
    tracks = int(pathlib.Path(folder, "out.csv").read_text().split()[-1])
    assert tracks > 1800000 and 20 < used < BOUND, f"{tracks} tracks, {used:.0f} MiB"


@test
def the_hull_of_a_long_object_keeps_to_the_memory_bound(folder):
    """A rod of 20000 planes, all of which have corners of their own hulls."""
    plane = bytes(int((y - 20)**2 + (x - 20)**2 < 380) for y in range(41) for x in range(41))
    pathlib.Path(folder, "rod.npy").write_bytes(npy_header("|u1", (20000, 41, 41)) + plane * 20000)
    used = peak_of(folder, 'hulls(read("rod.npy")) |> write("out.csv")', "--chunk", "200x41x41")
    names, values = (line.split(",") for line in pathlib.Path(folder, "out.csv").read_text().split())
    found = dict(zip(names, map(float, values)))
    assert abs(found["feret_max"] - 20000.04) < 0.01 and 38 < found["feret_min"] < 40, found
    assert 20 < used < BOUND, f"{used:.0f} MiB"


def large_volume(path):
    """1024 x 1024 x 1024 float32 zeros that take no room on disk."""
    with open(path, "wb") as file:
        file.write(npy_header("<f4", (1024, 1024, 1024)))
        file.truncate(file.tell() + 4 * 1024**3)


def converted_with_little(name):
    def peak(folder):
        large_volume(os.path.join(folder, "large.npy"))
        process = subprocess.Popen([FOVEA, "convert", "-q", "large.npy", name], cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0 and 10 << 10 < usage.ru_maxrss < 256e6 / 1024, (status, usage.ru_maxrss)
    return peak


for name in ("large.ome.zarr", "large.tif"):
    peak = converted_with_little(name)
    peak.__name__ = f"four_gigabytes_become_{name.split('.', 1)[1].replace('.', '_')}_with_256_megabytes"
    test(peak)


@test
def tasks_of_a_chunked_volume_stay_small_whatever_it_becomes(folder):
    """Four gigabytes in chunks of which none was written; pieces of the outputs cut across the chunks."""
    os.mkdir(os.path.join(folder, "large.zarr"))
    array = {"zarr_format": 2, "shape": [1280] * 3, "chunks": [128, 128, 256], "dtype": "<u2", "compressor": None,
             "filters": None, "fill_value": 7, "order": "C"}
    pathlib.Path(folder, "large.zarr", ".zarray").write_text(json.dumps(array))
    for name in ("a.nii", "a.nii.gz", "a.mrc.gz", "a.nrrd", "a.mha", "a.vti", "a.tif", "a.h5", "a.zarr", "a.npz"):
        plan = run("plan", "-e", f'read("large.zarr") |> write("{name}")', folder=folder).stdout
        task = re.search(r"tasks of [0-9x]+, ([0-9.]+) MiB each", plan)
        assert task and 1 < float(task[1]) < 110, (name, plan)

main()
