#!/usr/bin/python3
"""Estimates against what was measured, and many small items against dask.distributed and multiprocessing, in one run.

    bench/scaling.py [NAME ...] [--count N]      names: estimate items efficiency published

estimate    the NIfTI denoising job: predicted and measured time and memory     (default 60 volumes; the study has 400)
items       segmentation of items made from 3 images, 2 workers each            (default 512; the study has 4096)
efficiency  Fovea on one and two workers, the same items
published   watershed and blobs of 1000 x 1000 items beside the published study: core-seconds an image (default 256 items)
"""
import argparse
import glob
import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
STUDIES = ROOT / "examples" / "studies"
WORKERS = 2


def fovea(*arguments, folder):
    done = subprocess.run([FOVEA, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"fovea {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def run(pipeline, *options, folder):
    """Wall time and summary of a fresh run, whose results are thrown away."""
    start = time.perf_counter()
    facts = json.loads(fovea("run", "--json", pipeline, "--store", "store", "--into", "out", *options, folder=folder))
    seconds = time.perf_counter() - start
    shutil.rmtree(os.path.join(folder, "store"))
    shutil.rmtree(os.path.join(folder, "out"))
    return seconds, facts


def several_names(folder, sources, pattern, count):
    for index in range(count):
        os.link(os.path.join(folder, sources[index % len(sources)]), os.path.join(folder, pattern % index))


# ---------------------------------------------------------------- predicted against measured

def bench_estimate(folder, count):
    count = count or 60
    os.mkdir(os.path.join(folder, "scans"))
    sources = [f"source{i}.nii.gz" for i in range(min(count, 8))]
    for index, name in enumerate(sources):
        fovea("run", "-q", "-e", f'phantom("t1", [182, 218, 182], seed = {index}) |> convert("int16") |> write("{name}")', folder=folder)
    several_names(folder, sources, "scans/%04d.nii.gz", count)
    pipeline = STUDIES / "denoise.fov"
    found = json.loads(fovea("estimate", pipeline, "--json", "-q", folder=folder))
    print(f"estimate of {count} NIfTI volumes took {found['seconds_measuring']:.1f} s on {found['items_measured']} of them at most; "
          f"{found['dominates']} dominates", flush=True)
    for point in found["predictions"]:
        runs = [run(pipeline, "--workers", point["workers"], folder=folder) for _ in range(3)]
        seconds = statistics.median(r[1]["seconds"] for r in runs)
        memory = statistics.median(r[1]["peak_memory"] for r in runs)
        spread = (max(r[1]["seconds"] for r in runs) - min(r[1]["seconds"] for r in runs)) / seconds
        print(f"  {point['workers']} workers: {point['seconds']:7.2f} s predicted ({point['seconds_low']:.1f} to {point['seconds_high']:.1f}), "
              f"{seconds:7.2f} s measured (runs differ by {100 * spread:.0f} %): {100 * (point['seconds'] / seconds - 1):+.0f} %   target 25 %;   "
              f"{point['memory'] / 2**20:.0f} MiB predicted, {memory / 2**20:.0f} MiB measured: "
              f"{100 * (point['memory'] / memory - 1):+.0f} %   target 10 %", flush=True)


# ---------------------------------------------------------------- many small items

def segment(path):
    """What segment.fov does to one item, by scipy and scikit-image."""
    import numpy as np
    from scipy import ndimage
    from skimage.filters import threshold_otsu
    from skimage.io import imread
    from skimage.measure import regionprops_table
    image = imread(path)
    smooth = ndimage.gaussian_filter(image.astype(np.float32), 2)
    labels, _ = ndimage.label(smooth > threshold_otsu(smooth))
    wanted = ("label", "area", "centroid", "bbox", "mean_intensity", "min_intensity", "max_intensity")
    return regionprops_table(labels, image, properties=wanted)


def save(tables, path):
    with open(path, "w") as file:
        for item, table in enumerate(tables):
            columns = list(table.values())
            for row in zip(*columns):
                file.write(f"{item}," + ",".join(map(str, row)) + "\n")


def with_pool(paths, out):
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        pool.map(segment, paths[:WORKERS], chunksize=1)  # imports are not counted
        start = time.perf_counter()
        save(pool.map(segment, paths), out)
        return time.perf_counter() - start


def with_dask(paths, out):
    from dask.distributed import Client, LocalCluster
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1") as cluster:
        with Client(cluster) as client:
            client.gather(client.map(segment, paths[:WORKERS], pure=False))
            start = time.perf_counter()
            save(client.gather(client.map(segment, paths, pure=False)), out)
            return time.perf_counter() - start


def make_items(folder, count, size=512):
    os.mkdir(os.path.join(folder, "items"))
    sources = [f"source{i}.png" for i in range(3)]
    for index, name in enumerate(sources):
        fovea("run", "-q", "-e", f'phantom("cells", [{size}, {size}], seed = {index}) |> write("{name}")', folder=folder)
    several_names(folder, sources, "items/%05d.png", count)
    return sorted(glob.glob(os.path.join(folder, "items", "*.png")))


def bench_items(folder, count):
    count = count or 512
    paths = make_items(folder, count)
    pipeline = STUDIES / "segment.fov"
    own = statistics.median(run(pipeline, "--workers", WORKERS, folder=folder)[0] for _ in range(3))
    for name, peer in (("multiprocessing", with_pool), ("dask.distributed", with_dask)):
        seconds = peer(paths, os.path.join(folder, "peer.csv"))
        print(f"{count} items segmented, {WORKERS} workers   {name:18} {seconds:7.2f} s (without its start)   "
              f"fovea {own:6.2f} s (with its start)   {seconds / own:5.1f}x   target >= 10x", flush=True)
    again = statistics.median(run(pipeline, "--workers", WORKERS, folder=folder)[0] for _ in range(3))
    print(f"  fovea again, after the peers: {again:.2f} s", flush=True)


def unrelated(folder, commands):
    """Wall time of so many commands at the same time that know nothing of each other, each on one worker and half of the items."""
    places = [os.path.join(folder, f"unrelated{k}") for k in range(commands)]
    for place in places:
        os.mkdir(place)
        os.mkdir(os.path.join(place, "items"))
        for name in sorted(os.listdir(os.path.join(folder, "items")))[::2]:
            os.link(os.path.join(folder, "items", name), os.path.join(place, "items", name))
    start = time.perf_counter()
    running = [subprocess.Popen([FOVEA, "run", "-q", STUDIES / "segment.fov", "--workers", "1"], cwd=place) for place in places]
    if any([process.wait() for process in running]):
        sys.exit("one of several commands failed")
    seconds = time.perf_counter() - start
    for place in places:
        shutil.rmtree(place)
    return seconds


def bench_efficiency(folder, count):
    make_items(folder, count or 512)
    pairs = [(unrelated(folder, 1), unrelated(folder, 2)) for _ in range(5)]
    limit = statistics.median(one / two for one, two in pairs)
    print(f"two commands that know nothing of each other reach {100 * limit:.1f} % here: the machine's limit", flush=True)
    found = json.loads(fovea("scale", STUDIES / "segment.fov", "--workers", "1,2", "--strong", "--weak", "--repeats", 5, "--json", "-q",
                             folder=folder))
    for row in found["rows"]:
        print(f"{row['study']:6} {row['workers']} workers, {row['size']:.0f} items: {row['seconds']:.2f} s "
              f"({row['least']:.2f} to {row['most']:.2f}), efficiency {100 * row['efficiency']:.1f} %, "
              f"{100 * row['efficiency'] / (limit if row['workers'] > 1 else 1):.1f} % of the limit   target >= 95 %", flush=True)
    print(f"  serial part {100 * found['serial_fraction']:.1f} %, noise {100 * found['noise']:.0f} %", flush=True)


# ---------------------------------------------------------------- beside the published study

PUBLISHED = {"watershed": {"Spark": 6.6, "RADICAL-Pilot": 6.9, "Dask": 109}, "blobs": {"Dask": 8.8, "RADICAL-Pilot": 21.9, "Spark": 22.9}}


def watershed_with_skimage(image):
    import numpy as np
    from scipy import ndimage
    from skimage.feature import peak_local_max
    from skimage.filters import threshold_otsu
    from skimage.measure import regionprops_table
    from skimage.segmentation import watershed
    mask = image > threshold_otsu(image)
    inside = ndimage.distance_transform_edt(mask)
    markers = np.zeros(image.shape, np.int32)
    peaks = peak_local_max(inside, min_distance=5, exclude_border=False)
    markers[tuple(peaks.T)] = np.arange(1, len(peaks) + 1)
    wanted = ("label", "area", "centroid", "bbox", "mean_intensity", "min_intensity", "max_intensity")
    return regionprops_table(watershed(-inside, markers, mask=mask), image, properties=wanted)


def blobs_with_skimage(image):
    from skimage.feature import blob_log
    return blob_log(image, max_sigma=30, num_sigma=10, threshold=0.1)


def processor_seconds(function):
    """Of this process and the children that have ended in it."""
    start = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    result = function()
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start, result


def bench_published(folder, count):
    """Fovea's figures are for the whole command, with files, tables and its start; scikit-image's for the calls alone. Core-seconds
    are workers times wall time, as published; processor seconds are what is left of them on a machine with other work."""
    from skimage.io import imread
    count = count or 256
    make_items(folder, count, 1000)
    image = imread(os.path.join(folder, "source0.png"))
    for name, others in PUBLISHED.items():
        runs = [processor_seconds(lambda: run(STUDIES / f"{name}.fov", "--workers", WORKERS, folder=folder)[0]) for _ in range(3)]
        wall, used = statistics.median(r[1] for r in runs), statistics.median(r[0] for r in runs) / count
        peer, _ = processor_seconds(lambda: globals()[name + "_with_skimage"](image))
        own = wall * WORKERS / count
        print(f"{name}, {count} items of 1000 x 1000, {WORKERS} workers: {wall:.2f} s, core-seconds an image {own:.3f} (processor "
              f"{used:.3f}); scikit-image here {peer:.2f} ({peer / used:.0f}x); published: "
              + ", ".join(f"{other} {value} ({value / own:.0f}x)" for other, value in others.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["estimate", "items", "efficiency", "published"])
    parser.add_argument("--count", type=int, default=0, help="items; 0: each one's own default")
    options = parser.parse_args()
    for name in options.names:
        folder = tempfile.mkdtemp(prefix="fovea-bench-")
        try:
            globals()["bench_" + name](folder, options.count)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
