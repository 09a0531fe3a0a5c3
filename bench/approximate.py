#!/usr/bin/env python3
"""Estimates (approx): how often their intervals hold the truth, and how much sooner they are there than the exact value.

    bench/approximate.py [build/fovea] coverage [SEEDS]     five phantoms of 1,024 chunks; 1,000 seeds if left out
    bench/approximate.py [build/fovea] coverage-objects [SEEDS]   summaries of objects, 2,048 chunks
    bench/approximate.py [build/fovea] speed FOLDER [GB]    an OME-Zarr made in FOLDER, 16 GB if left out; beside dask
    bench/approximate.py [build/fovea] picture FILE.png     a running estimate: intervals as the sample grows

Coverage counts a value that saw every chunk as held. `sampled` is the share among the others, where there are any.
Speed: three turns of each, medians by the clock and of processor time. The files may lie in the page cache.
"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SHAPE, CHUNK = (128, 256, 256), (8, 32, 32)


def fovea_json(fovea, text, folder, *options):
    done = subprocess.run([fovea, "run", "-q", "--json", *options, "-e", text], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


# ---------------------------------------------------------------- coverage

def phantoms(np):
    numbers = np.random.default_rng(7)
    noise = numbers.uniform(0, 1, SHAPE)
    yield "uniform", noise, 0.002
    sizes = np.exp(numbers.normal(size=[s // c for s, c in zip(SHAPE, CHUNK)]))
    yield "heavy-tailed", noise * np.kron(sizes, np.ones(CHUNK)), 0.2
    yield "gradient", noise + np.linspace(0, 5, SHAPE[0])[:, None, None], 0.05
    waves = 2 * np.sin(np.arange(SHAPE[2]) / 5)[None, None, :] + np.sin(np.arange(SHAPE[1]) / 31)[None, :, None]
    yield "periodic", noise + waves + 3, 0.03
    rare = np.zeros(SHAPE)
    for place in zip(*(numbers.integers(0, s - 6, 150) for s in SHAPE)):
        rare[tuple(slice(p, p + 6) for p in place)] = 1
    yield "rare objects", rare, 0.3


def coverage(fovea, seeds):
    import numpy as np
    print("| phantom | value | error | held | sampled | chunks seen, median | half width, mean |\n|---|---|---|---|---|---|---|")
    for name, image, error in phantoms(np):
        image = image.astype(np.float32)
        calls = {"mean(v)": image.mean(dtype=float), "std(v)": image.std(dtype=float)}
        if name != "rare objects":
            calls["quantile(v, 0.5)"] = np.quantile(image, 0.5)
        else:
            calls["count(v > 0)"] = np.count_nonzero(image)
        for call, truth in calls.items():
            asked = max(error, 0.02) if "quantile" in call else error  # float32: a quantile is known to 16 bits
            with tempfile.TemporaryDirectory() as folder:
                np.save(pathlib.Path(folder, "v.npy"), image)
                text = f'param seed = 0\nv = read("v.npy")\napprox({call}, error = {asked}, seed = seed)'
                rows = fovea_json(fovea, text, folder, "--chunk", "x".join(map(str, CHUNK)), "--set", f"seed=1..{seeds}")["values"][0]
            part = [row for row in rows if row["seen"] < row["chunks"]]
            held = [bool(row["low"] <= truth <= row["high"]) for row in part]
            width = statistics.mean((row["high"] - row["low"]) / 2 / truth for row in part) if part else 0
            print(f"| {name} | {call} | {asked:g} | {(sum(held) + len(rows) - len(part)) / len(rows):.3f} | "
                  f"{statistics.mean(held) if part else float('nan'):.3f} of {len(part)} | "
                  f"{statistics.median(row['seen'] for row in rows):.0f} | {100 * width:.2g} % |", flush=True)


def coverage_objects(fovea, seeds):
    import numpy as np
    from scipy import ndimage
    noise = ndimage.gaussian_filter(np.random.default_rng(2).normal(size=SHAPE), 1.6)
    mask = (noise > np.quantile(noise, 0.95)).astype(np.uint8)
    labels, count = ndimage.label(mask)
    sizes = ndimage.sum(mask, labels, range(1, count + 1))
    reach = max(part.stop - part.start for box in ndimage.find_objects(labels) for part in box)
    truths = {"count()": count, "mean(volume)": sizes.mean(), "std(volume)": sizes.std(), "median(volume)": np.median(sizes),
              "sum(voxels)": sizes.sum()}
    print("| value | held | chunks seen, median | mean of all estimates / truth |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "m.npy"), mask)
        for call, truth in truths.items():
            text = f'param seed = 0\napprox(objects(read("m.npy"), "{call} as x", reach = {reach}), error = 0.1, seed = seed)'
            rows = fovea_json(fovea, text, folder, "--chunk", "16x16x16", "--set", f"seed=1..{seeds}")["values"][0]
            held = statistics.mean(bool(row["x_low"] <= truth <= row["x_high"]) for row in rows)
            print(f"| {call} | {held:.3f} | {statistics.median(row['seen'] for row in rows):.0f} | "
                  f"{statistics.mean(row['x'] for row in rows) / truth:.3f} |", flush=True)


# ---------------------------------------------------------------- speed

def timed(call):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    result = call()
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def speed(fovea, folder, gigabytes):
    planes = max(64, round(gigabytes * 2**30 / (2 * 1024 * 1024) / 64) * 64)
    target = pathlib.Path(folder, f"noise-{planes}.zarr")
    if not target.exists():
        subprocess.run([fovea, "run", "-q", "--memory", "2G", "-e", f'convert(phantom("noise", [{planes}, 1024, 1024]) * 4000, "uint16")'
                        f' |> write("{target.name}", chunk = [32, 256, 256], compression = "none", version = "0.4")'],
                       cwd=folder, check=True)
        shutil.rmtree(pathlib.Path(folder, ".fovea"), ignore_errors=True)
    read = f'v = read("{target.name}")\n'
    ways = {"mean, exact": read + "mean(v)", "mean to 1 %": read + "approx(mean(v), error = 0.01)",
            "median, exact": read + "quantile(v, 0.5)", "median to 1 %": read + "approx(quantile(v, 0.5), error = 0.01)"}
    script = f"import dask.array as d; print(float(d.from_zarr('{target.name}', component='0').mean().compute(scheduler='threads')))"
    print(f"{planes * 2 * 1024 * 1024 / 2**30:.1f} GiB, uint16\n| | by the clock | processors | value |\n|---|---|---|---|")
    taken = {}
    for _ in range(3):
        for name, text in ways.items():
            taken.setdefault(name, []).append(timed(lambda: fovea_json(fovea, text, folder, "--fresh")["values"][0][0]))
        if subprocess.run([sys.executable, "-c", "import dask.array, zarr"], capture_output=True).returncode == 0:
            taken.setdefault("mean, dask", []).append(timed(lambda: subprocess.run(
                [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()))
    for name, turns in taken.items():
        print(f"| {name} | {statistics.median(t[0] for t in turns):.2f} s | {statistics.median(t[1] for t in turns):.2f} s | "
              f"{turns[-1][2]} |")


# ---------------------------------------------------------------- picture

def picture(fovea, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
    image = dict((name, image) for name, image, _ in phantoms(np))["gradient"].astype(np.float32)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "v.npy"), image)
        for error in np.geomspace(1, 0.004, 60):
            text = f'approx(mean(read("v.npy")), error = {error:.6f}, seed = 0)'
            rows.append(fovea_json(fovea, text, folder, "--chunk", "x".join(map(str, CHUNK)))["values"][0][0])
    rows = sorted({row["seen"]: row for row in rows}.values(), key=lambda row: row["seen"])
    seen = [row["seen"] for row in rows]
    figure, axes = plt.subplots(figsize=(7, 3.4))
    axes.fill_between(seen, [r["low"] for r in rows], [r["high"] for r in rows], color="#9ecae1", label="95 % interval")
    axes.plot(seen, [next(iter(r.values())) for r in rows], color="#08519c", marker="o", markersize=3, label="estimate")
    axes.axhline(image.mean(dtype=float), color="black", linewidth=0.8, linestyle="--", label="exact value")
    axes.set(xscale="log", xlabel="chunks seen, of 1,024", ylabel="mean", xticks=(16, 32, 64, 128, 256, 512, 1024))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main():
    words = sys.argv[1:]
    fovea = os.path.abspath(words.pop(0) if words and words[0] not in ("coverage", "coverage-objects", "speed", "picture") else "build/fovea")
    if words[:1] == ["coverage"]:
        coverage(fovea, int(words[1]) if len(words) > 1 else 1000)
    elif words[:1] == ["coverage-objects"]:
        coverage_objects(fovea, int(words[1]) if len(words) > 1 else 1000)
    elif words[:1] == ["speed"] and len(words) > 1:
        speed(fovea, words[1], float(words[2]) if len(words) > 2 else 16)
    elif words[:1] == ["picture"] and len(words) > 1:
        picture(fovea, words[1])
    else:
        sys.exit(__doc__)


main()
