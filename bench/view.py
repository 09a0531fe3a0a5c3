#!/usr/bin/env python3
"""Measures the server of `fovea view` as a page would use it, beside its targets.

    bench/view.py [--side 2160] [--data big.zarr] [--steps 60]

Without --data it makes a foam of side³ voxels as OME-Zarr in chunks of 128³ (2160: 10 GB, some minutes). What a page of 1280 x 720
pixels shows of it is one plane of the level that has about as many. Files are dropped from the system's cache before cold
measurements, as far as the system lets us. The browser's own part is measured in tests/view and not here.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "support"))
from fovea_test import FOVEA
from view_client import View

WIDTH, HEIGHT = 1280, 720


def drop_from_cache(folder):
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def memory(view):
    """The most that the server has used so far, in MB."""
    for line in pathlib.Path(f"/proc/{view.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


def processor(view):
    """Milliseconds of the processor that the server has used: on a busy machine they tell more than the clock."""
    fields = pathlib.Path(f"/proc/{view.process.pid}/stat").read_text().split()
    return 1000 * (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def timed(action):
    began = time.perf_counter()
    result = action()
    return 1000 * (time.perf_counter() - began), result


def fitting(image):
    """The finest level whose plane is no larger than the window needs."""
    axes = image["axes"]
    for number, level in enumerate(image["levels"]):
        if level["shape"][axes.index("x")] <= WIDTH:
            return number
    return len(image["levels"]) - 1


def tell(what, value, target):
    print(f"{what:58} {value:>14}   target {target}", flush=True)


def part(image, level, axis):
    """The part of a plane that fills the window, around its middle."""
    shape = dict(zip(image["axes"], image["levels"][level]["shape"]))
    rows, columns = {"z": ("y", "x"), "y": ("z", "x"), "x": ("z", "y")}[axis]
    height, width = min(HEIGHT, shape[rows]), min(WIDTH, shape[columns])
    return {"y": (shape[rows] - height) // 2, "x": (shape[columns] - width) // 2, "h": height, "w": width}


def first_planes(data):
    drop_from_cache(data)
    began = time.perf_counter()
    with View(data, folder=".") as view:
        image = view.json("/api/session")["images"][0]
        for path in ("/", "/app.js", "/app.css"):
            view.get(path)
        view.json("/api/statistics", image=0)
        level = fitting(image)
        depth = dict(zip(image["axes"], image["levels"][level]["shape"]))
        view.plane(level=level, axis="z", index=depth["z"] // 2, **part(image, level, "z"))
        tell("first plane, files not in memory, start included", f"{1000 * (time.perf_counter() - began):.0f} ms",
             f"<= 1000 ms; {processor(view):.0f} ms of the processor")
        for axis in "yx":
            view.plane(level=level, axis=axis, index=depth[axis] // 2, **part(image, level, axis))
        tell("three planes", f"{1000 * (time.perf_counter() - began):.0f} ms",
             f"<= 1500 ms; {processor(view):.0f} ms of the processor")


def next_planes(data, steps):
    with View(data, folder=".") as view:
        image = view.json("/api/session")["images"][0]
        level = fitting(image)
        for name, number in (("window 1280 x 720", level), ("finest level, window 1280 x 720", 0)):
            shape = dict(zip(image["axes"], image["levels"][number]["shape"]))
            for axis in "zyx":
                start, times, size = shape[axis] // 3, [], 0
                for step in range(min(steps, shape[axis] - shape[axis] // 3)):
                    took, plane = timed(lambda: view.plane(level=number, axis=axis, index=start + step, **part(image, number, axis)))
                    times.append(took)
                    size = plane.nbytes
                    time.sleep(0.02)  # somebody turns the wheel
                tell(f"next plane across {axis}, {name}: median",
                     f"{statistics.median(times):.1f} ms", f"<= 40 ms; longest {max(times):.0f} ms, {size / 1e6:.2f} MB sent")
        whole = [timed(lambda: view.plane(level=0, axis="z", index=image["shape"][0] // 2 + step))[0] for step in range(steps)]
        tell(f"next plane, {image['shape'][1]} x {image['shape'][2]} at full size: median", f"{statistics.median(whole):.1f} ms",
             "none")
        tell("memory of the server, most", f"{memory(view):.0f} MB", "<= 256 MB")


def slider(data, folder):
    text = pathlib.Path(folder) / "slider.fov"
    text.write_text(f'param sigma = 2\nimage = read("{pathlib.Path(data).resolve()}")\nsmooth = gaussian(image, sigma)\n')
    with View(text, folder=".") as view:
        shape = view.json("/api/session")["images"][0]["shape"]
        middle = {"index": shape[0] // 2, "h": min(2000, shape[1]), "w": min(2000, shape[2])}
        cold, _ = timed(lambda: view.plane(value="smooth", **middle))
        sigmas, before = (1.0, 1.2, 1.4, 1.6, 1.8, 2.1, 1.9, 1.7, 1.5, 1.3), processor(view)
        times = [timed(lambda: view.plane(value="smooth", **{"p.sigma": sigma}, **middle))[0] for sigma in sigmas]
        each = (processor(view) - before) / len(sigmas)
        tell(f"slider of sigma on {middle['h']} x {middle['w']}: median", f"{statistics.median(times):.0f} ms",
             f"<= 150 ms; the first {cold:.0f} ms, longest {max(times):.0f} ms, {each:.0f} ms of the processor each")
        tell("memory of the server, most", f"{memory(view):.0f} MB", "<= 256 MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=2160)
    parser.add_argument("--data")
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data
        if not data:
            data = str(pathlib.Path(folder) / "big.zarr")
            text = f'write(phantom("foam", [{arguments.side}, {arguments.side}, {arguments.side}], seed = 1), "{data}", chunk = 128)'
            subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, check=True)
        first_planes(data)
        next_planes(data, arguments.steps)
        slider(data, folder)


if __name__ == "__main__":
    main()
