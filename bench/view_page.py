#!/usr/bin/python3
"""How quick the page of `fovea view` is in Chromium with software rendering: first picture, next slices, panning with labels, the volume.

    bench/view_page.py [--scan FILE [--labels FILE]] [--size 1280x720] [--slices 60] [--only planes|volume|vtk]

Without a scan it makes one of 256 × 1024 × 1024 voxels, and labels, in a temporary folder. The volume is always 256³,
and drawn by vtk.js too where it is there (cd build/web && npm install --no-save @kitware/vtk.js); its first figure is at full size,
as the page draws at rest, the second at a third of it, as while turning.
Times are by the clock: run it on a machine that is not busy; the load is printed beside them."""
import argparse
import base64
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from browser import MODULES, Page, view  # noqa: E402
from fovea_test import FOVEA, Skip  # noqa: E402

SCAN = """scan = phantom("cells", [256, 1024, 1024], size = 60)
write(scan, "scan.zarr", levels = 4)
write(label(scan > 60), "labels.zarr", levels = 4)"""
CUBE = 'cube = phantom("cells", [256, 256, 256], size = 40)\nwrite(cube, "cube.zarr")\nwrite(cube, "cube.npy")'

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


def vtk(folder, size):
    """The same volume by vtk.js, in a page of its own that has nothing else to do."""
    if not (MODULES / "@kitware" / "vtk.js").is_dir():
        raise Skip("no vtk.js in build/web")
    subprocess.run([str(MODULES / ".bin" / "esbuild"), str(ROOT / "bench" / "view_vtk.js"), "--bundle", "--format=iife",
                    "--loader:.glsl=text", "--log-level=error", f"--outfile={folder}/vtk.js"], check=True,
                   env=dict(os.environ, NODE_PATH=str(MODULES)))
    print(f"vtk.js for volumes alone: {os.path.getsize(folder + '/vtk.js') / 1e6:.1f} MB, not made small")
    voxels = pathlib.Path(folder, "cube.npy").read_bytes()[-(256**3):]
    pathlib.Path(folder, "vtk.html").write_text('<!doctype html><style>html, body, #box { margin: 0; width: 100%; height: 100% }'
                                                '</style><div id="box"></div><script src="vtk.js"></script>')
    page = Page(f"file://{folder}/vtk.html", ready="window.prepare", size=size)
    page.evaluate(f"prepare('{base64.b64encode(voxels).decode()}', 256)")
    for mode in ("maximum", "composite"):
        times = [page.evaluate(f"measure('{mode}', {scale})") for scale in (1, 1 / 3)]
        say(f"volume of 256³ by vtk.js, {mode}", " and ".join(f"{ms:.0f}" for ms in times) + " ms a picture")
    page.do("shot", path=os.environ.get("SHOT", f"{folder}/vtk.png"))
    page.__exit__()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scan")
    parser.add_argument("--labels")
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--slices", type=int, default=60)
    parser.add_argument("--only", choices=["planes", "volume", "vtk"])
    options = parser.parse_args()
    size = [int(n) for n in options.size.split("x")]
    with tempfile.TemporaryDirectory(prefix="fovea-bench-") as folder:
        texts = [CUBE]
        if not options.scan and options.only in (None, "planes"):
            texts.append(SCAN)
            options.scan, options.labels = "scan.zarr", "labels.zarr"
        elif options.scan:
            options.scan, options.labels = (name and os.path.abspath(name) for name in (options.scan, options.labels))
        for text in texts:
            subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, check=True)
        parts = {"planes": lambda: planes(options, folder, size), "volume": lambda: volume(folder, size),
                 "vtk": lambda: vtk(folder, size)}
        for name, measure in parts.items():
            if options.only in (None, name):
                try:
                    measure()
                except Skip as reason:
                    print(f"{name} not measured: {reason}")


main()
