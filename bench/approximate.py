#!/usr/bin/env python3
"""Estimates (approx): how often their intervals hold the truth, and how much sooner they are there than the exact value.

    bench/approximate.py [build/fovea] coverage [SEEDS]           five phantoms of 1,024 chunks; 1,000 seeds if left out
    bench/approximate.py [build/fovea] coverage SEEDS IMAGE...    real images instead, cut into about 1,000 chunks
    bench/approximate.py [build/fovea] coverage-objects [SEEDS]   summaries of objects, 2,048 chunks
    bench/approximate.py [build/fovea] coverage-thresholds [SEEDS]  thresholds of float32 images, 1,024 chunks
    bench/approximate.py [build/fovea] coverage-items [SEEDS]     items of different levels as one image, 512 chunks
    bench/approximate.py [build/fovea] coverage-running [SEEDS]   intervals that are shown while a sample grows, all at once
    bench/approximate.py [build/fovea] time [T,T...] [TURNS]      how long after T a command with time = T ends, on each engine
    bench/approximate.py [build/fovea] make FOLDER [GB] [SIDE]    files of speed: 16 GB of cells, foam of 2000 cubed
    bench/approximate.py [build/fovea] speed FOLDER [GB] [SIDE] [TURNS]  estimates beside exact values, dask and DuckDB
    bench/approximate.py [build/fovea] picture FILE.png           a running estimate: intervals as the sample grows

Coverage counts a value that saw every chunk as held. `sampled` is the share among the others, where there are any.

Speed: medians by the clock and of processor time; the files may lie in the page cache. The image is of cells as a camera sees
them: an offset of 100, four counts for each grey value, and noise that grows with the square root of the counts. Zstandard makes
it 1.4 times smaller, as is usual for raw microscopy. (Data that compress well, or not at all and lie in the page cache, flatter
the exact value, because reading a chunk is then nearly free.) The foam has bubbles 24 voxels apart. dask
takes part if `scripts/bootstrap.sh dask` has fetched it, DuckDB after `scripts/bootstrap.sh duckdb`; Fovea reads Parquet with
DuckDB's library (`make duckdb`). The cells have five levels, as ome-zarr-py writes them, and take 14 GB, the foam 7 GB. 0 for GB
or SIDE leaves the cells or the foam out.
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


def real(np, fovea, files):
    """Grey values as they are, in about 1,000 chunks; how well they are asked for follows from how different the chunks are."""
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([fovea, "run", "-q", "-e", f'read("{file}") |> write("v.npy")'], cwd=folder, check=True)
            image = np.squeeze(np.load(pathlib.Path(folder, "v.npy")))
        side = max(1, round((image.size / 1000) ** (1 / image.ndim)))
        sums = image.astype(float)
        for axis in range(image.ndim):
            sums = np.add.reduceat(sums, np.arange(0, image.shape[axis], side), axis)
        wanted = 2 * sums.std() / abs(sums.mean()) / 100**0.5  # about 100 chunks
        yield pathlib.Path(file).stem, image, float(f"{wanted:.1g}"), (side,) * image.ndim


def coverage(fovea, seeds, files):
    import numpy as np
    print("| image | value | error | held | sampled | chunks seen, median | half width, mean |\n|---|---|---|---|---|---|---|")
    for name, image, error, chunk in real(np, fovea, files) if files else ((*one, CHUNK) for one in phantoms(np)):
        image = image.astype(np.float32) if image.dtype.kind == "f" else image
        calls = {"mean(v)": image.mean(dtype=float), "std(v)": image.std(dtype=float)}
        if name != "rare objects":
            calls["quantile(v, 0.5)"] = np.quantile(image, 0.5)
        if name == "rare objects" or files:
            level = np.quantile(image, 0.9) if files else 0
            calls[f"count(v > {level:g})"] = np.count_nonzero(image > level)
        if image.dtype in (np.uint8, np.uint16):
            calls["otsu(v)"] = None
        for call, truth in calls.items():
            asked = max(error, 0.02) if "quantile" in call else error  # float32: a quantile is known to 16 bits
            with tempfile.TemporaryDirectory() as folder:
                np.save(pathlib.Path(folder, "v.npy"), image)
                if truth is None:
                    truth = next(iter(fovea_json(fovea, f'v = read("v.npy")\n{call}', folder)["values"][0][0].values()))
                text = f'param seed = 0\nv = read("v.npy")\napprox({call}, error = {asked}, seed = seed)'
                options = ("--chunk", "x".join(map(str, chunk)), "--set", f"seed=1..{seeds}")
                rows = fovea_json(fovea, text, folder, *options)["values"][0]
            tell(f"{name} | {call} | {asked:g}", rows, truth)


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


def coverage_thresholds(fovea, seeds):
    """Two classes that touch, of float32, brighter in some chunks than in others."""
    import numpy as np
    numbers = np.random.default_rng(5)
    part = np.kron(numbers.uniform(0.2, 0.5, [s // c for s, c in zip(SHAPE, CHUNK)]), np.ones(CHUNK))
    image = (numbers.normal(100, 12, SHAPE) + 60 * (numbers.random(SHAPE) < part)).astype(np.float32)
    print("| threshold | error | held | sampled | chunks seen, median | half width, mean |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "v.npy"), image)
        for name in ("otsu", "li", "yen", "triangle", "isodata"):
            truth = next(iter(fovea_json(fovea, f'{name}(read("v.npy"))', folder)["values"][0][0].values()))
            text = f'param seed = 0\napprox({name}(read("v.npy")), error = 0.02, seed = seed)'
            rows = fovea_json(fovea, text, folder, "--chunk", "x".join(map(str, CHUNK)), "--set", f"seed=1..{seeds}")["values"][0]
            tell(f"{name}(v) | 0.02", rows, truth)


def coverage_items(fovea, seeds):
    """32 images of 16 chunks, of different brightness each, stratified by item."""
    import numpy as np
    numbers = np.random.default_rng(12)
    levels = np.exp(numbers.normal(5, 0.6, 32))
    print("| value | error | held | sampled | chunks seen, median | half width, mean |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        sums = []
        for k, level in enumerate(levels):
            chunks = np.kron(numbers.normal(size=(1, 4, 4)), np.ones((8, 16, 16)))
            image = (level * (1 + 0.1 * chunks) + numbers.normal(0, 4, (8, 64, 64))).astype(np.float32)
            np.save(pathlib.Path(folder, f"item{k:02d}.npy"), image)
            sums.append(image.mean(dtype=float))
        for error in (0.05, 0.02):
            text = f'param seed = 0\napprox(mean(together(read("item*.npy"))), error = {error}, seed = seed)'
            rows = fovea_json(fovea, text, folder, "--chunk", "1x8x16x16", "--set", f"seed=1..{seeds}")["values"][0]
            tell(f"mean(together(c)) | {error}", rows, np.mean(sums))


def tell(name, rows, truth):
    part = [row for row in rows if row["seen"] < row["chunks"]]
    held = [bool(row["low"] <= truth <= row["high"]) for row in part]
    width = statistics.mean((row["high"] - row["low"]) / 2 / truth for row in part) if part else 0
    print(f"| {name} | {(sum(held) + len(rows) - len(part)) / len(rows):.3f} | "
          f"{statistics.mean(held) if part else float('nan'):.3f} of {len(part)} | "
          f"{statistics.median(row['seen'] for row in rows):.0f} of {rows[0]['chunks']} | {100 * width:.2g} % |", flush=True)


# ---------------------------------------------------------------- time

LAUNCH = {"threads": [], "processes": [], "mpi (MPICH)": ["mpiexec.mpich", "-n", "2"],
          "mpi (Open MPI)": ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "2"]}


def time_kept(fovea, times, turns):
    """By the clock, from before the command is started until it has ended."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    print("| engine | start and end alone | " + " | ".join(f"T = {t:g} s" for t in times) + " |\n|---|---|" + "---|" * len(times))
    for engine, launch in LAUNCH.items():
        if launch and not shutil.which(launch[0]):
            print(f"| {engine} | skipped: {launch[0]} is not installed |")
            continue
        cells = []
        for seconds in (0, *times):
            over = []
            for _ in range(turns):
                with tempfile.TemporaryDirectory() as folder:
                    text = f'approx(mean(gaussian(phantom("noise", [16384, 2048, 2048]), 2)), time = {seconds})'
                    text = text if seconds else 'mean(phantom("noise", [20, 20]))'
                    words = [*launch, fovea, "run", "-q", "--engine", engine.split()[0], "--chunk", "64x128x128", "-e", text]
                    start = time.monotonic()
                    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
                    over.append(time.monotonic() - start - seconds)
            cells.append(f"{1000 * statistics.median(over):+.0f}, at most {1000 * max(over):+.0f} ms")
        print(f"| {engine} | " + " | ".join(cells) + " |", flush=True)


# ---------------------------------------------------------------- speed

def timed(call):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    result = call()
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def names(gigabytes, side):
    planes = max(64, round(gigabytes * 2**30 / (2 * 1024 * 1024) / 64) * 64)
    return planes, f"cells-{planes}.zarr", f"foam-{side}.zarr"


def make(fovea, folder, gigabytes, side):
    planes, cells, foam = names(gigabytes, side)
    shape = f"[{planes}, 1024, 1024]"
    normal = " + ".join(f'phantom("noise", {shape}, seed = {k})' for k in (2, 3, 4))  # of deviation 1/2 around 3/2
    texts = {cells: f'v = phantom("cells", {shape}, noise = 0) * 4.0 + 100\n'
                    f'convert(v + sqrt(v) * 2 * ({normal} - 1.5), "uint16") |> '
                    f'write("{cells}", chunk = [32, 256, 256], levels = 5, version = "0.4")',
             foam: f'phantom("foam", [{side}, {side}, {side}], size = 24) |> '
                   f'write("{foam}", chunk = [64, 64, 64], version = "0.4", levels = 1)'}
    for name, text in texts.items():
        wanted = gigabytes if name == cells else side
        if wanted and not pathlib.Path(folder, name).exists():
            subprocess.run([fovea, "run", "-q", "--memory", "2G", "-e", text], cwd=folder, check=True)
            shutil.rmtree(pathlib.Path(folder, ".fovea"), ignore_errors=True)


BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"
DUCKDB, DASK = BUILD / "duckdb" / "bin" / "python", BUILD / "interop" / "dask" / "bin" / "python"


def python(script, folder, program=sys.executable):
    done = subprocess.run([program, "-c", script], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() if not done.returncode else sys.exit(done.stderr)


def show(title, ways, turns):
    """Each way in turn; the ratio is that of the way before, which is the exact one."""
    print(f"\n{title}\n| | by the clock | processors | times less than exact: clock, processors | value |\n|---|---|---|---|---|")
    taken = {}
    for _ in range(turns):
        for name, call in ways.items():
            taken.setdefault(name, []).append(timed(call))
    exact = None
    for name, all_turns in taken.items():
        clock, work = (statistics.median(t[k] for t in all_turns) for k in (0, 1))
        ratio = f"{exact[0] / clock:.0f}, {exact[1] / work:.0f}" if exact and "exact" not in name else ""
        exact = (clock, work) if "exact" in name else exact
        print(f"| {name} | {clock:.3f} s | {work:.3f} s | {ratio} | {all_turns[-1][2]} |", flush=True)


def speed(fovea, folder, gigabytes, side, turns):
    make(fovea, folder, gigabytes, side)
    if not DASK.exists():
        print("\ndask skipped: `scripts/bootstrap.sh dask` fetches it")
    if gigabytes:
        speed_cells(fovea, folder, gigabytes, turns)
    if side:
        speed_foam(fovea, folder, side, turns)
    if DUCKDB.exists():
        tables(fovea, folder, turns)
    else:
        print("\nDuckDB skipped: `scripts/bootstrap.sh duckdb` fetches it")


def value_of(fovea, folder, text, *options):
    def first():
        row = fovea_json(fovea, text, folder, "--fresh", "--memory", "4G", *options)["values"][0][0]
        return next(value for key, value in row.items() if key not in ("item", "path", "longer"))
    return first


def dask(script, folder):
    return lambda: python("import dask, dask.array as d\ndask.config.set(scheduler='threads')\n" + script, folder, DASK)


def speed_cells(fovea, folder, gigabytes, turns):
    planes, cells, _ = names(gigabytes, 0)
    read = f'v = read("{cells}")\n'
    ways = {"mean, exact": value_of(fovea, folder, read + "mean(v)"),
            "mean to 1 %": value_of(fovea, folder, read + "approx(mean(v), error = 0.01)"),
            "median, exact": value_of(fovea, folder, read + "quantile(v, 0.5)"),
            "median to 1 %": value_of(fovea, folder, read + "approx(quantile(v, 0.5), error = 0.01)")}
    if DASK.exists():
        read = f"v = d.from_zarr('{cells}', '0')\n"
        ways["mean, dask, exact"] = dask(read + "print(float(v.mean()))", folder)
        ways["median, dask, exact"] = dask(read + "n = d.bincount(v.ravel(), minlength=65536).compute().cumsum()\n"
                                                  "print(int(n.searchsorted((n[-1] + 1) // 2)))", folder)
    stored = sum(file.stat().st_size for file in pathlib.Path(folder, cells, "0").rglob("*") if file.is_file())
    show(f"cells, {planes / 512:.1f} GiB of uint16, {stored / 2**30:.1f} GiB on disk without its pyramid", ways, turns)


def speed_foam(fovea, folder, side, turns):
    """dask-image keeps the labels of all blocks in memory: more than a machine has, from 1,000 cubed on."""
    foam = names(0, side)[2]
    read = f'm = read("{foam}") < 100\n'
    ways = {"exact": value_of(fovea, folder, read + 'group(measure(label(m)), "", "mean(volume)")'),
            "to 2 %": value_of(fovea, folder, read + 'approx(objects(m, "mean(volume)", reach = 48), error = 0.02)',
                               "--chunk", "128x128x128")}
    if DASK.exists() and side < 1000:
        ways["dask-image, exact"] = dask(f"from dask_image.ndmeasure import label\nm = d.from_zarr('{foam}', '0') < 100\n"
                                         "n, s = dask.compute(label(m)[1], m.sum())\nprint(s / n)", folder)
    show(f"foam, {side} cubed, mean volume of its bubbles", ways, turns)


def tables(fovea, folder, turns):
    """avg of 20 million rows, to 1 %. DuckDB is told how much to take, and says nothing of the error."""
    parquet, query = "rows.parquet", "SELECT avg(volume) FROM rows"
    python(f"import duckdb; duckdb.sql(\"COPY (SELECT range AS label, exp(3 + random() + random() + random()) AS volume "
           f"FROM range(20000000)) TO '{parquet}' (ROW_GROUP_SIZE 20480)\")", folder, DUCKDB)

    def sql(*words):
        done = subprocess.run([fovea, "sql", *words], cwd=folder, capture_output=True, text=True)
        return " ".join(done.stdout.split("\n")[1].split()[:3]) if not done.returncode else done.stderr.strip()

    def duck(sample):
        text = f"SELECT avg(volume) FROM '{parquet}' {sample}"
        return lambda: python(f'import duckdb; print(duckdb.sql("{text}").fetchall()[0][0])', folder, DUCKDB)

    ways = {"DuckDB, exact": duck(""), "DuckDB, USING SAMPLE 1 %": duck("USING SAMPLE 1 PERCENT (system)"),
            "Fovea, exact": lambda: sql(parquet, query), "Fovea, to 1 %": lambda: sql("--within-error", "1%", parquet, query)}
    show("Parquet, 20 million rows in 977 row groups", ways, turns)


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
        for error in np.geomspace(0.99, 0.004, 60):
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


COVERAGE = {"coverage-objects": coverage_objects, "coverage-thresholds": coverage_thresholds, "coverage-items": coverage_items}
COMMANDS = ("coverage", *COVERAGE, "coverage-running", "time", "make", "speed", "picture")


def main():
    words = sys.argv[1:]
    fovea = os.path.abspath(words.pop(0) if words and words[0] not in COMMANDS else "build/fovea")
    if words[:1] == ["coverage"]:
        coverage(fovea, int(words[1]) if len(words) > 1 else 1000, [os.path.abspath(word) for word in words[2:]])
    elif words and words[0] in COVERAGE:
        COVERAGE[words[0]](fovea, int(words[1]) if len(words) > 1 else 1000)
    elif words[:1] == ["coverage-running"]:
        subprocess.run([pathlib.Path(fovea).parent / "bench" / "bench_running", *words[1:2]], check=True)
    elif words[:1] == ["time"]:
        times = words[1] if len(words) > 1 else "0.2,1,5,30"
        time_kept(fovea, [float(t) for t in times.split(",")], int(words[2]) if len(words) > 2 else 3)
    elif words[0:1] and words[0] in ("make", "speed") and len(words) > 1:
        sizes = [float(words[2]) if len(words) > 2 else 16, int(words[3]) if len(words) > 3 else 2000]
        if words[0] == "make":
            make(fovea, words[1], *sizes)
        else:
            speed(fovea, words[1], *sizes, int(words[4]) if len(words) > 4 else 3)
    elif words[:1] == ["picture"] and len(words) > 1:
        picture(fovea, words[1])
    else:
        sys.exit(__doc__)


main()
