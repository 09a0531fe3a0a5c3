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
        text = f'a = phantom("foam", [240, 240, 240])\nwrite({call}, "out.npy")'
        done = run("run", "--json", "--memory", f"{BOUND}M", "--chunk", "40x40x40", "-e", text, folder=folder)
        used = json.loads(done.stdout)["peak_memory"] / 2**20
        assert 20 < used < BOUND, f"{used:.0f} MiB"
    return peak


for name, call in CALLS.items():
    peak = bounded(call)
    peak.__name__ = f"{name}_keeps_to_the_memory_bound"
    test(peak)

def large_volume(path):
    """1024 x 1024 x 1024 float32 zeros that take no room on disk."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 1024, 1024), }".ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
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
