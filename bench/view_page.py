#!/usr/bin/python3
"""How quick the page of `fovea view` is in Chromium with software rendering: first picture, next slices, panning with labels, the volume.

    bench/view_page.py [--scan FILE [--labels FILE]] [--size 1280x720] [--slices 60]

Without a scan it makes one of 256 × 1024 × 1024 voxels, and labels, in a temporary folder. The volume is always 256³.
Times are by the clock: run it on a machine that is not busy; the load is printed beside them."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from browser import Page, view  # noqa: E402
from fovea_test import FOVEA, Skip  # noqa: E402

SCAN = """scan = phantom("cells", [256, 1024, 1024], size = 60)
write(scan, "scan.zarr", levels = 4)
write(label(scan > 60), "labels.zarr", levels = 4)"""
CUBE = 'write(phantom("cells", [256, 256, 256], size = 40), "cube.zarr")'

SLICES = """(async () => {
    const times = [], frame = () => new Promise((done) => requestAnimationFrame(done)), { store, busy } = fovea;
    for (let k = 0; k < %d; k++) {
        const start = performance.now(), position = [...store.get("position")];
        position[0] += %d;
        store.set({ position });
        await frame();
        while (busy()) await frame();
        times.push(performance.now() - start);
        await new Promise((done) => setTimeout(done, 120));
    }
    return times.sort((a, b) => a - b)[times.length >> 1];
})()"""

PAN = """(async () => {
    const { store } = fovea, frame = () => new Promise((done) => requestAnimationFrame(done)), start = performance.now();
    let frames = 0;
    while (performance.now() - start < 4000) {
        const angle = (performance.now() - start) / 600, [z, y, x] = store.get("centre");
        store.set({ centre: [z, y + 4 * Math.sin(angle), x + 4 * Math.cos(angle)] });
        await frame();
        frames++;
    }
    return frames / 4;
})()"""

TURN = """(async () => {
    const { store } = fovea, cast = document.querySelector(".cast"), start = performance.now(), first = Number(cast.dataset.frames);
    while (performance.now() - start < 4000) {
        store.merge("volume", { yaw: store.get("volume").yaw + 0.05 });
        await new Promise((done) => requestAnimationFrame(done));
    }
    const rate = (Number(cast.dataset.frames) - first) / 4, rest = performance.now();
    while (cast.dataset.quality !== "fine") await new Promise((done) => setTimeout(done, 5));
    return [rate, performance.now() - rest];
})()"""

SENT = """performance.getEntriesByType("resource").filter(({ name }) => name.includes("/api/plane"))
    .map(({ encodedBodySize }) => encodedBodySize)"""


def say(what, value):
    print(f"{what:58} {value}   (load {os.getloadavg()[0]:.1f})", flush=True)


def planes(options, folder, size):
    labels = ["--labels", options.labels] if options.labels else []
    with view(options.scan, *labels, folder=folder) as link:
        page = Page("about:blank", ready="", size=size)
        start = time.monotonic()
        page.do("goto", url=link)
        page.do("until", text="Boolean(window.fovea && document.querySelector('.app') && !fovea.busy())")
        page.settle()
        say("three planes, page included", f"{(time.monotonic() - start) * 1000:.0f} ms")
        page.key("2")
        page.evaluate("fovea.store.merge('labels', { on: false })")
        page.settle()
        page.evaluate("performance.clearResourceTimings()")
        say("next slice of one plane, median", f"{page.evaluate(SLICES % (options.slices, 4)):.0f} ms")
        sent = page.evaluate(SENT)
        say("sent per slice, the most", f"{max(sent, default=0) / 1e6:.2f} MB")
        if labels:
            page.evaluate("fovea.store.merge('labels', { on: true }); fovea.store.set({ zoom: 2, centre: fovea.store.get('position') })")
            page.settle()
            say("panning with labels", f"{page.evaluate(PAN):.0f} frames/s")
        page.__exit__()


def volume(folder, size):
    with view("cube.zarr", folder=folder) as link, Page(link, size=size) as page:
        page.key("5")
        for mode in ("maximum", "composite"):
            page.select("#rays", mode)
            page.until("document.querySelector('.cast')?.dataset.quality === 'fine' && "
                       "document.querySelector('.pane .tag').textContent.includes('256')")
            rate, rest = page.evaluate(TURN)
            say(f"volume of 256³, {mode}, turning", f"{rate:.0f} frames/s")
            say(f"volume of 256³, {mode}, until it is fine", f"{rest:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scan")
    parser.add_argument("--labels")
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--slices", type=int, default=60)
    options = parser.parse_args()
    size = [int(n) for n in options.size.split("x")]
    with tempfile.TemporaryDirectory(prefix="fovea-bench-") as folder:
        texts = [CUBE]
        if not options.scan:
            texts.append(SCAN)
            options.scan, options.labels = "scan.zarr", "labels.zarr"
        else:
            options.scan, options.labels = (name and os.path.abspath(name) for name in (options.scan, options.labels))
        for text in texts:
            subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, check=True)
        try:
            planes(options, folder, size)
            volume(folder, size)
        except Skip as reason:
            print(f"not measured: {reason}")


main()
