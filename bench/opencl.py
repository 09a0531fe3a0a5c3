#!/usr/bin/env python3
"""OpenCL kernels against the CPU's, in one run: seconds that each run says it took, and their ratio.

usage: bench/opencl.py [REPEATS]     FOVEA names the command; POCL_DEVICES=pthread is PoCL on the same cores

A ratio of 1 means as fast as the CPU kernels on all cores, above 1 faster. The runs take turns, so that a busy machine slows both
alike; the median of the repeats is shown. Loading OpenCL (PoCL brings LLVM) takes longer than a small run: the first line is a
run with next to nothing to compute, and "without start" the ratio of what the runs take beyond that. "work" is the same ratio of
core-seconds, user and system: what a machine busy with other work disturbs least.
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
GEOMETRY = "parallel(angles = range(0, 179))"
CONE = "cone(range(0, 358, 2), source = 500, detector = 200, pitch = 1.4)"
SOURCES = {"image.npy": 'phantom("cells", [3000, 3000])',
           "volume.npy": 'convert(phantom("shepp-logan", [96, 256, 256]), "float32")',
           "large.npy": 'convert(phantom("shepp-logan", [256, 384, 384]), "float32")',
           "scan.npy": f'xray(phantom("shepp-logan", [64, 256, 256]), {GEOMETRY})',
           "cone.npy": f'xray(phantom("shepp-logan", [128, 256, 256]), {CONE})'}
SPIRAL = 'scan_positions("fermat", 150, 9)'
SOURCES["frames.npy"] = ('diffract(complex_image(ones([300, 300]), gaussian(phantom("cells", [300, 300]) / 255, 1)), '
                         f"make_probe(128, radius = 24, defocus = 400, counts = 460000), {SPIRAL})")
SCAN = 'read("scan.npy", axes = "angle z x")'
START = 'phantom("cells", [16, 16]) |> gaussian(1)'
CASES = {"gaussian 3000 x 3000, sigma 5": 'read("image.npy") |> gaussian(5)',
         "gaussian 96 x 256 x 256, sigma 2": 'read("volume.npy") |> gaussian(2)',
         "gaussian 256 x 384 x 384, sigma 2": 'read("large.npy") |> gaussian(2)',
         "median 3000 x 3000, 5 x 5": 'read("image.npy") |> median(5)',
         "xray 96 x 256 x 256, 180 angles": f'xray(read("volume.npy"), {GEOMETRY})',
         "backproject 64 slices, 180 angles": f"backproject({SCAN}, {GEOMETRY})",
         "fbp 64 slices, 180 angles": f"fbp({SCAN}, {GEOMETRY})",
         "fdk 128 slices, 180 angles": f'fdk(read("cone.npy", axes = "angle z x"), {CONE})',
         "sirt 64 slices, 180 angles, 5 iterations": f"sirt({SCAN}, {GEOMETRY}, iterations = 5)",
         "ptycho, raar, 128 x 128, 20 iterations": 'ptycho(read("frames.npy"), make_probe(128, radius = 26, defocus = 300), '
                                                   f"positions = {SPIRAL}, iterations = 20)"}


def run(folder, expression, device):
    """Seconds of one run with nothing in the store, and the core-seconds of its process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([FOVEA, "run", "-e", f'{expression} |> write("out-{device}.npy")', "--device", device, "--fresh",
                           "--overwrite", "--json", "-q"], cwd=folder, stdout=subprocess.PIPE, check=True,
                          env=dict(os.environ, POCL_DEVICES=os.environ.get("POCL_DEVICES", "pthread")))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout)["seconds"], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(folder, expression, repeats):
    """Medians of seconds and core-seconds, on the CPU and on the device; and of the ratio of seconds."""
    run(folder, expression, "opencl")  # compiles
    pairs = [(run(folder, expression, "cpu"), run(folder, expression, "opencl")) for _ in range(repeats)]
    medians = [[statistics.median(pair[device][what] for pair in pairs) for what in (0, 1)] for device in (0, 1)]
    return medians, statistics.median(cpu[0] / device[0] for cpu, device in pairs)


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        for name, expression in SOURCES.items():
            subprocess.run([FOVEA, "run", "-q", "-e", f'{expression} |> write("{name}")'], cwd=folder, check=True)
        print(f"{'':42} {'cpu':>8} {'opencl':>8} {'ratio':>6} {'without start':>14} {'work':>6}")
        start, _ = compare(folder, START, repeats)
        print(f"{'start':42} {start[0][0]:6.3f} s {start[1][0]:6.3f} s")
        for name, expression in CASES.items():
            (cpu, device), ratio = compare(folder, expression, repeats)
            beyond = [(cpu[k] - start[0][k]) / max(device[k] - start[1][k], 1e-3) for k in (0, 1)]
            print(f"{name:42} {cpu[0]:6.3f} s {device[0]:6.3f} s {ratio:6.2f} {beyond[0]:14.2f} {beyond[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
