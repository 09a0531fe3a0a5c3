#!/usr/bin/python3
"""A scan larger than the memory that it may use: python3 tests/soak/large_scan.py [SIDE] [MEMORY]

SIDE cubed voxels (1024 if left out) are reconstructed from 360 projections of SIDE x SIDE with --memory 2G: exact projections of
the Shepp-Logan head, made as they are needed, so that nothing but the result takes room on the disk. The peak of the resident
memory and the middle slice are checked."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOVEA = os.path.abspath(os.environ.get("FOVEA", ROOT / "build" / "fovea"))
UNITS = {"M": 1 << 20, "G": 1 << 30}


def main():
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    memory = sys.argv[2] if len(sys.argv) > 2 else "2G"
    pipeline = (f"g = parallel(range(0, 180, count = 360)); v = fbp(xray_phantom([{side}, {side}, {side}], g), g, \"hann\"); "
                f"write(v, \"volume.zarr\", levels = 1); s = v[{side // 2}]; "
                f"mean(abs(s - phantom(\"shepp-logan\", [{side}, {side}, {side}])[{side // 2}]))")
    with tempfile.TemporaryDirectory(dir=os.environ.get("FOVEA_SOAK_FOLDER")) as folder:
        needed = 4 * side**3 * 2
        if shutil.disk_usage(folder).free < 1.2 * needed:
            print(f"skip large_scan: {folder} has no room for {needed >> 30} GiB (FOVEA_SOAK_FOLDER names another place)")
            return
        start = time.perf_counter()
        done = subprocess.run([FOVEA, "run", "-q", "--memory", memory, "-e", pipeline], cwd=folder, stdout=subprocess.PIPE,
                              text=True, check=True)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    error = float(done.stdout)
    print(f"{side}^3 from 360 projections of {side}^2: {seconds:.0f} s, peak {peak / 2**20:.0f} MiB of {memory}, "
          f"mean error {error:.4f}")
    assert peak <= float(memory[:-1]) * UNITS[memory[-1]], "more memory than allowed"
    assert error < 0.05, "the middle slice is not the phantom's"


main()
