#!/usr/bin/env python3
"""OpenCL kernels against the CPU's, in one run: seconds of computing that the record of each run tells, and their ratio.

usage: bench/opencl.py [REPEATS]     FOVEA names the command; POCL_DEVICES=pthread is PoCL on the same cores

A ratio of 1 means as fast as the CPU kernels on all cores, above 1 faster. The runs take turns, so that a busy machine slows both
alike; the median of the repeats is shown.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
GEOMETRY = "parallel(angles = range(0, 179))"
CONE = "cone(range(0, 358, 2), source = 500, detector = 200, pitch = 1.4)"
SOURCES = {"image.npy": 'phantom("cells", [3000, 3000])', "volume.npy": 'convert(phantom("shepp-logan", [96, 256, 256]), "float32")',
           "scan.npy": f'xray(phantom("shepp-logan", [64, 256, 256]), {GEOMETRY})',
           "cone.npy": f'xray(phantom("shepp-logan", [128, 256, 256]), {CONE})'}
SCAN = 'read("scan.npy", axes = "angle z x")'
CASES = {"gaussian 3000 x 3000, sigma 5": 'read("image.npy") |> gaussian(5)',
         "gaussian 96 x 256 x 256, sigma 2": 'read("volume.npy") |> gaussian(2)',
         "median 3000 x 3000, 5 x 5": 'read("image.npy") |> median(5)',
         "xray 96 x 256 x 256, 180 angles": f'xray(read("volume.npy"), {GEOMETRY})',
         "backproject 64 slices, 180 angles": f"backproject({SCAN}, {GEOMETRY})",
         "fbp 64 slices, 180 angles": f"fbp({SCAN}, {GEOMETRY})",
         "fdk 128 slices, 180 angles": f'fdk(read("cone.npy", axes = "angle z x"), {CONE})',
         "sirt 64 slices, 180 angles, 5 iterations": f"sirt({SCAN}, {GEOMETRY}, iterations = 5)"}


def run(folder, expression, device):
    """Seconds of one run with nothing in the store."""
    done = subprocess.run([FOVEA, "run", "-e", f'{expression} |> write("out-{device}.npy")', "--device", device, "--fresh",
                           "--overwrite", "--json", "-q"], cwd=folder, stdout=subprocess.PIPE, check=True,
                          env=dict(os.environ, POCL_DEVICES=os.environ.get("POCL_DEVICES", "pthread")))
    return json.loads(done.stdout)["seconds"]


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        for name, expression in SOURCES.items():
            subprocess.run([FOVEA, "run", "-q", "-e", f'{expression} |> write("{name}")'], cwd=folder, check=True)
        print(f"{'':42} {'cpu':>8} {'opencl':>8} {'ratio':>6}")
        for name, expression in CASES.items():
            run(folder, expression, "opencl")  # compiles
            pairs = [(run(folder, expression, "cpu"), run(folder, expression, "opencl")) for _ in range(repeats)]
            cpu, device = (statistics.median(p[i] for p in pairs) for i in (0, 1))
            print(f"{name:42} {cpu:6.2f} s {device:6.2f} s {statistics.median(c / d for c, d in pairs):6.2f}", flush=True)


if __name__ == "__main__":
    main()
