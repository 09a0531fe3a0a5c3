#!/usr/bin/env python3
"""How large the report of a run with many tiny tasks is, how long it takes to draw, and what it costs to watch such a run.

    bench/report.py [tasks ...]        # 100000 and 1000000 if left out

The run is watched every half second by another process. What both take is processor time, which a busy machine changes least.
The last column is the median and the longest time from a turn of the wheel until a drawing is shown larger, in Chromium where
`scripts/bootstrap.sh browser` has set it up.
"""
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from browser import Page  # noqa: E402
from fovea_test import FOVEA, Skip  # noqa: E402

ZOOM = """(async () => {
    const times = [], frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    for (const drawing of document.querySelectorAll("svg.zoom"))
        for (let turn = 0; turn < 10; turn++) {
            drawing.scrollIntoView();
            await frame();
            const place = drawing.getBoundingClientRect(), begin = performance.now();
            drawing.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, ctrlKey: true, clientX: place.x + 50,
                                                            clientY: place.y + 20, bubbles: true, cancelable: true }));
            await frame();
            times.push(performance.now() - begin);
        }
    return times;
})()"""


def zoom(page):
    try:
        with Page(page.as_uri(), ready="true") as shown:
            times = sorted(shown.evaluate(ZOOM))
    except Skip as missing:
        return f"not zoomed: {missing}"
    return f"{times[len(times) // 2]:.0f} ms, {times[-1]:.0f} ms"


def processor(process):
    """Waits for a process; its processor seconds."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.args
    return used.ru_utime + used.ru_stime


def start(folder, *words):
    return subprocess.Popen([FOVEA, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def measure(tasks):
    edge = 3 * math.isqrt(tasks - 1) + 3
    text = f'phantom("cells", [{edge}, {edge}]) |> gaussian(1) |> write("out.npy")'
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        run = start(folder, "run", "-q", "-e", text, "--chunk", "3")
        while not list(pathlib.Path(folder).glob(".fovea/runs/*/task-*.log")):
            time.sleep(0.02)
        watch = start(folder, "watch", "--json")
        run_cost = processor(run)
        seconds = time.monotonic() - begin
        watch_cost = processor(watch)
        begin = time.monotonic()
        drawn = processor(start(folder, "report", "-o", "report.html"))
        took = time.monotonic() - begin
        page = pathlib.Path(folder, "report.html")
        size, zoomed = page.stat().st_size, zoom(page)
    print(f"{tasks:9} {seconds:8.1f} s {run_cost:8.2f} s {watch_cost:8.3f} s {100 * watch_cost / seconds:6.2f} % "
          f"{took:8.2f} s {drawn:8.2f} s {size / 1e6:8.2f} MB   {zoomed}", flush=True)


def main():
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("    tasks   run took  processor   watching  of the run's time  report   processor      size   zooming")
    for tasks in map(int, sys.argv[1:] or ["100000", "1000000"]):
        measure(tasks)
    print(f"most memory of a process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
