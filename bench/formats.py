#!/usr/bin/python3
"""Files of images: regions against the bytes they are made of, and writing against the peers, in one run; medians of wall times
and of CPU times, which say more on a busy machine.

    bench/formats.py [SIZE] [--regions EDGE]
        SIZE           length of the edge of a cube of uint16, 512 if left out
        --regions EDGE regions only, of a cube so long: 1290 is a file of 4 GB

A region is compared with the least there is to do: its chunks read from the page cache and unpacked, on as many threads, in a
process as fresh as the command's. Writing OME-Zarr is compared with zarr (Debian's, or build/peers where that is), with the same
codec, level and chunks; with itself without the pyramid; and with the floor: the same chunks packed by the same library on all cores
and written, and nothing else. Compressed NIfTI and TIFF stand beside nibabel and tifffile. Last comes the memory that converting
takes.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
CORES = len(os.sched_getaffinity(0))
CHUNK = 128
FLOOR = ROOT / "build" / "bench" / "bench_zarr_floor"


def cpu():
    """CPU seconds of this process and of its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def clock(function, before=lambda: None, repeats=5):
    """Medians of wall and CPU time in seconds."""
    times = []
    for _ in range(repeats):
        before()
        start, used = time.perf_counter(), cpu()
        function()
        times.append((time.perf_counter() - start, cpu() - used))
    return np.median(times, axis=0)


def fovea(*arguments, folder):
    done = subprocess.run([FOVEA, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"fovea {' '.join(arguments)}: {done.stderr}")


def row(work, other, own, target, faster=False):
    """Wall and CPU seconds of both, and how many times as long Fovea takes, or (faster) the other."""
    ratio = other / own if faster else own / other
    print(f"{work:44} {other[0]:8.3f} s ({other[1]:.3f} CPU)   fovea {own[0]:8.3f} s ({own[1]:.3f} CPU)   "
          f"{ratio[0]:6.2f}x ({ratio[1]:.2f}x CPU)   target {target}", flush=True)


def phantom(size):
    """Something between noise and nothing: smooth walls with grain, as a detector sees them."""
    z, y, x = (np.linspace(0, 20, size, dtype=np.float32).reshape(shape) for shape in ((-1, 1, 1), (1, -1, 1), (1, 1, -1)))
    image = np.sin(x) * np.cos(y) * np.sin(z + 1)
    image *= 20000
    image += 30000
    image += np.random.default_rng(1).integers(0, 64, image.shape, dtype=np.uint8)
    return image.astype(np.uint16)


def start_time(folder):
    """What the command takes to begin and end, on an image of one voxel: the rest of a time is work."""
    np.save(f"{folder}/one.npy", np.zeros((1, 1, 1), np.uint16))
    return clock(lambda: fovea("run", "-e", 'read("one.npy") |> write("one-out.npy")', "--quiet", "--fresh", "--overwrite",
                               folder=folder))


# What is given: a list of (file, offset, length), the codec, threads. Prints wall and CPU seconds of reading and unpacking alone.
LEAST = """
import json, os, sys, time, zlib
from concurrent.futures import ThreadPoolExecutor
import numcodecs
work = json.load(open(sys.argv[1]))
unpack = numcodecs.Zstd().decode if sys.argv[2] == 'zstd' else zlib.decompress
files = {path: os.open(path, os.O_RDONLY) for path, _, _ in work}
def one(part):
    return len(unpack(os.pread(files[part[0]], part[2], part[1])))
with ThreadPoolExecutor(int(sys.argv[3])) as pool:
    start, used = time.perf_counter(), time.process_time()
    sum(pool.map(one, work))
    print(time.perf_counter() - start, time.process_time() - used)
"""


def parts_of_zarr(path, high):
    box = range(-(-high // CHUNK))
    files = [path / "0" / "c" / str(k) / str(j) / str(i) for k in box for j in box for i in box]
    return "zstd", [(str(file), 0, file.stat().st_size) for file in files]


def parts_of_hdf5(path, high):
    import h5py
    with h5py.File(path) as file:
        data = file["data"].id
        chunks = (data.get_chunk_info(i) for i in range(data.get_num_chunks()))
        return "deflate", [(str(path), chunk.byte_offset, chunk.size) for chunk in chunks
                           if all(place < high for place in chunk.chunk_offset)]


def parts_of_tiff(path, high):
    import tifffile
    parts = []
    with tifffile.TiffFile(path) as file:
        for page in file.pages[:high]:
            wide, long = (page.tilewidth, page.tilelength) if page.is_tiled else (page.imagewidth, page.rowsperstrip)
            across = -(-page.imagewidth // wide)
            for i, (offset, length) in enumerate(zip(page.dataoffsets, page.databytecounts)):
                if i // across * long < high and i % across * wide < high:
                    parts.append((str(path), offset, length))
    return "deflate", parts


def least(folder, codec):
    done = subprocess.run([sys.executable, "-c", LEAST, "parts.json", codec, str(CORES)], cwd=folder, capture_output=True, text=True,
                          check=True)
    return np.array([float(seconds) for seconds in done.stdout.split()])


def one_region(folder, codec, parts, file, region):
    """Floor, and the command on the region without what it takes on one voxel of such a file; in turns, medians."""
    (folder / "parts.json").write_text(json.dumps(parts))
    floors, starts, wholes = [], [], []
    for _ in range(7):
        floors.append(least(folder, codec))
        for times, text in ((starts, f'read("one.{file}")'), (wholes, f'read("big.{file}")[{region}]')):
            times.append(clock(lambda: fovea("run", "-e", f'write(max({text}), "top.csv")', "--quiet", "--fresh", "--overwrite",
                                             folder=folder), repeats=1))
    floor, start, whole = (np.median(times, axis=0) for times in (floors, starts, wholes))
    return floor, np.maximum(whole - start, 1e-3)


def regions(folder, size, edges):
    np.save(folder / "one.npy", np.zeros((1, 1, 1), np.uint16))
    for name, find in (("zarr", parts_of_zarr), ("h5", parts_of_hdf5), ("tif", parts_of_tiff)):
        fovea("convert", "one.npy", f"one.{name}", "--quiet", folder=folder)
        for high in edges:
            try:
                codec, parts = find(folder / f"big.{name}", high)
            except ImportError as missing:
                print(f"{name}: skipped, {missing}")
                break
            floor, own = one_region(folder, codec, parts, name, ",".join([f"0:{high}"] * 3))
            row(f"{name} of {size}: a cube of {high}, the start off", floor, own, "1.3")


PEER = """
import shutil, sys, time, numcodecs, numpy as np, zarr
image = np.load(sys.argv[1])
new = int(zarr.__version__.split('.')[0]) >= 3
if new:
    codecs = {'zstd': zarr.codecs.ZstdCodec(level=1), 'gzip': zarr.codecs.GzipCodec(level=1), 'none': None,
              'blosc': zarr.codecs.BloscCodec(typesize=2, cname='lz4', clevel=5, shuffle='shuffle')}
else:
    codecs = {'zstd': numcodecs.Zstd(1), 'gzip': numcodecs.GZip(1), 'none': None, 'blosc': numcodecs.Blosc('lz4', 5, 1)}
for name in sys.argv[3].split(','):
    times = []
    for _ in range(3):
        shutil.rmtree(sys.argv[2], ignore_errors=True)
        start, used = time.perf_counter(), time.process_time()
        if new:
            shards = (256,) * 3 if 'shards' in sys.argv else None
            array = zarr.create_array(sys.argv[2], shape=image.shape, chunks=(128,) * 3, dtype=image.dtype, shards=shards,
                                      compressors=codecs[name])
        else:
            array = zarr.open_array(sys.argv[2], 'w', shape=image.shape, chunks=(128,) * 3, dtype=image.dtype,
                                    compressor=codecs[name])
        array[:] = image
        times.append((time.perf_counter() - start, time.process_time() - used))
    print(name, *np.median(times, axis=0), zarr.__version__)
"""
CODECS = "zstd,blosc,gzip,none"


def peer_times(python, folder, *more):
    """Of zarr alone: neither Python's start nor reading the image counts. Nor does anything make its files durable."""
    done = subprocess.run([python, "-c", PEER, str(folder / "big.npy"), str(folder / "peer.zarr"), CODECS, *more],
                          capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        name, wall, used, version = line.split()
        yield name, np.array([float(wall), float(used)]), version


def own_time(folder, codec, levels, more):
    def write():
        fovea("run", "-e", f'read("big.npy") |> write("out.zarr", compression = "{codec}", levels = {levels}{more})', "--quiet",
              "--fresh", "--overwrite", folder=folder)
    return clock(write, before=lambda: shutil.rmtree(folder / "out.zarr", ignore_errors=True), repeats=3)


def make_levels(folder, count):
    """The coarser levels as arrays, for the floor alone."""
    image, names = np.load(folder / "big.npy"), ["big.npy"]
    for level in range(1, count):
        image = image[:image.shape[0] // 2 * 2, :image.shape[1] // 2 * 2, :image.shape[2] // 2 * 2].astype(np.float32)
        image = sum(image[k::2, j::2, i::2] for k in (0, 1) for j in (0, 1) for i in (0, 1)) / 8
        image = np.round(image).astype(np.uint16)
        names.append(f"level{level}.npy")
        np.save(folder / names[-1], image)
    return names


def floor_time(folder, codec, files):
    """Wall and CPU seconds, and wall seconds until all is durable."""
    times = []
    for _ in range(3):
        shutil.rmtree(folder / "floor", ignore_errors=True)
        done = subprocess.run([str(FLOOR), codec, "floor", *files], cwd=folder, capture_output=True, text=True, check=True)
        times.append([float(seconds) for seconds in done.stdout.split()])
    return np.median(times, axis=0)


def writing(folder):
    """Fovea's times include reading the image and making the result durable; once more without what the command takes on one
    voxel, as the other rows have it."""
    begin = start_time(folder)
    peers = {python: {name: (time, version) for name, time, version in peer_times(python, folder, *more)}
             for python, more in ((sys.executable, ()), (str(ROOT / "build" / "peers" / "bin" / "python"), ("shards",)))
             if os.path.exists(python)}
    files = make_levels(folder, 4)
    for codec in CODECS.split(","):
        floors = [floor_time(folder, codec, names) for names in (files[:1], files)] if FLOOR.exists() else None
        for layout, more in (("v2", ', version = "0.4"'), ("v3, shards", ", shard = 256")):
            plain, pyramid = own_time(folder, codec, 1, more), own_time(folder, codec, 4, more)
            for times in peers.values():
                peer, version = times[codec]
                row(f"Zarr {layout}, {codec}, beside zarr {version}", peer, plain, "3", faster=True)
                row(f"Zarr {layout}, {codec}, the same, the start off", peer, np.maximum(plain - begin, 1e-3), "3", faster=True)
            row(f"Zarr {layout}, {codec}, with four levels", plain, pyramid, "1.4")
            if floors:
                row(f"Zarr {layout}, {codec}, beside the floor", floors[0][:2], plain, f"1, durable {floors[0][2]:.3f} s")
                row(f"Zarr {layout}, {codec}, four levels, floor", floors[1][:2], pyramid, f"1, durable {floors[1][2]:.3f} s")
        if floors:
            print(f"Zarr, {codec}: four levels are {floors[1][0] / floors[0][0]:.2f}x ({floors[1][1] / floors[0][1]:.2f}x CPU) "
                  "of one in the floor itself", flush=True)


TIFF_PEER = """
import sys, time, numpy as np, tifffile
image, times = np.load(sys.argv[1]), []
for _ in range(3):
    start, used = time.perf_counter(), time.process_time()
    tifffile.imwrite(sys.argv[2], image, tile=(256, 256), compression=sys.argv[3], compressionargs={'level': 1})
    times.append((time.perf_counter() - start, time.process_time() - used))
print(*np.median(times, axis=0), tifffile.__version__)
"""


def own_writing(folder, name, options=""):
    def write():
        fovea("run", "-e", f'read("small.npy") |> write("{name}"{options})', "--quiet", "--fresh", "--overwrite", folder=folder)
    return clock(write, repeats=3)


def streams(folder, size):
    """gzip and TIFF beside the libraries that people use, level 1 in all."""
    image = phantom(min(size, 256))
    np.save(folder / "small.npy", image)
    begin = start_time(folder)
    try:
        import nibabel
        volume = nibabel.Nifti1Image(image.T, np.eye(4))
        peer = clock(lambda: nibabel.save(volume, folder / "peer.nii.gz"), repeats=1)
        own = np.maximum(own_writing(folder, "own.nii.gz") - begin, 1e-3)
        row(f"nii.gz, beside nibabel {nibabel.__version__}", peer, own, "6", faster=True)
    except ImportError as missing:
        print(f"nii.gz: {missing}")
    for codec, name, python in (("deflate", "zlib", sys.executable), ("zstd", "zstd", sys.executable),
                                ("zstd", "zstd", str(ROOT / "build" / "peers" / "bin" / "python"))):
        if not os.path.exists(python):
            continue
        done = subprocess.run([python, "-c", TIFF_PEER, "small.npy", "peer.tif", name], cwd=folder, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            print(f"TIFF, {codec}, {python}: skipped, {done.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        wall, used, version = done.stdout.split()
        own = np.maximum(own_writing(folder, "own.tif", f', compression = "{codec}"') - begin, 1e-3)
        row(f"TIFF, {codec}, beside tifffile {version}", np.array([float(wall), float(used)]), own, "3", faster=True)


# A process of little memory starts the command: what its parent holds when it starts would count as the command's.
PEAK = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss // 1024, status >> 8)
"""


def memory(folder):
    """The most that converting holds, in MiB."""
    for source, target in (("big.npy", "m.zarr"), ("big.npy", "m.h5"), ("big.zarr", "m.tif"), ("big.h5", "m.npy"),
                           ("big.tif", "m.nii")):
        done = subprocess.run([sys.executable, "-S", "-c", PEAK, FOVEA, "convert", source, target, "--quiet", "--overwrite"],
                              cwd=folder, capture_output=True, text=True, check=True)
        peak, status = done.stdout.split()
        print(f"convert {source} {target}: {peak} MiB, target 256, exit status {status}", flush=True)


def make_files(folder, size):
    np.save(folder / "big.npy", phantom(min(size, 512)))
    if size > 512:  # the same again and again, a slab at a time
        tile = np.load(folder / "big.npy")
        times = -(-size // 512)
        slab = np.tile(tile, (1, times, times))[:, :size, :size]
        whole = np.lib.format.open_memmap(folder / "big.npy", "w+", np.uint16, (size,) * 3)
        for start in range(0, size, 512):
            whole[start:start + 512] = slab[:size - start]
    for name, options in (("zarr", []), ("h5", []), ("tif", ["--compression", "deflate"])):
        fovea("convert", "big.npy", f"big.{name}", "--quiet", *options, folder=folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("size", nargs="?", type=int, default=512)
    parser.add_argument("--regions", type=int, metavar="EDGE")
    wanted = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fovea-bench-"))
    try:
        make_files(folder, wanted.regions or wanted.size)
        if wanted.regions:
            regions(folder, wanted.regions, (96, 192, 384, 768))
            return
        regions(folder, wanted.size, (wanted.size // 4, wanted.size // 2, wanted.size))
        writing(folder)
        streams(folder, wanted.size)
        memory(folder)
    finally:
        shutil.rmtree(folder)


main()
