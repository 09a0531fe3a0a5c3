"""Global operators keep to --memory: many small chunks of a volume make large merges, whose peak is measured."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

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

main()
