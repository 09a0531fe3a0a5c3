#!/usr/bin/python3
"""Files of images: regions against the bytes they are made of, and writing against the peers, in one run; medians of wall times
and of CPU times, which say more on a busy machine.

    bench/formats.py [SIZE]      length of the edge of a cube of uint16, 512 if left out

A region is compared with the least there is to do: its chunks read from the page cache and unpacked, on as many threads. Writing
OME-Zarr is compared with zarr (Debian's, or build/peers where that is), with the same codec, level and chunks, and with itself
without the pyramid; compressed NIfTI and TIFF with nibabel and tifffile. Last comes the memory that converting takes.
"""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numcodecs
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
CORES = len(os.sched_getaffinity(0))
CHUNK = 128


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


def least_for_zarr(folder, low, high):
    """Reads and unpacks the chunks that a cube meets."""
    box = range(low // CHUNK, -(-high // CHUNK))
    files = [folder / "big.zarr" / "0" / "c" / str(k) / str(j) / str(i) for k in box for j in box for i in box]
    codec = numcodecs.Zstd()

    def one(path):
        return len(codec.decode(path.read_bytes()))
    with ThreadPoolExecutor(CORES) as pool:
        sum(pool.map(one, files))


def regions(folder, size):
    begin = start_time(folder)
    for low, high in ((0, size // 4), (0, size // 2), (0, size)):
        region = ",".join([f"{low}:{high}"] * 3)
        text = f'write(max(read("big.NAME")[{region}]), "top.csv")'
        for name, target in (("zarr", "1.3"), ("h5", "1.3")):
            own = clock(lambda: fovea("run", "-e", text.replace("NAME", name), "--quiet", "--fresh", "--overwrite",
                                      folder=folder))
            if name == "zarr":
                least = clock(lambda: least_for_zarr(folder, low, high))
            else:
                least = clock(lambda: least_for_hdf5(folder, high))
            row(f"{name}: a cube of {high}, the command's start off", least, np.maximum(own - begin, 1e-3), target)


def least_for_hdf5(folder, high):
    """Reads raw chunks one after the other and unpacks them on all threads."""
    import h5py
    with h5py.File(folder / "big.h5") as file, ThreadPoolExecutor(CORES) as pool:
        chunks = file["data"].id
        edge = file["data"].chunks[0]
        codec = numcodecs.Zlib()

        def one(raw):
            return np.frombuffer(codec.decode(raw), np.uint8).reshape(2, -1).T.copy().view(np.uint16).size
        places = [(k, j, i) for k in range(0, high, edge) for j in range(0, high, edge) for i in range(0, high, edge)]
        sum(pool.map(one, (chunks.read_direct_chunk(place)[1] for place in places)))


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


def writing(folder):
    """Fovea's times include reading the image and making the result durable."""
    peers = {python: {name: (time, version) for name, time, version in peer_times(python, folder, *more)}
             for python, more in ((sys.executable, ()), (str(ROOT / "build" / "peers" / "bin" / "python"), ("shards",)))
             if os.path.exists(python)}
    for codec in CODECS.split(","):
        for layout, more in (("v2", ', version = "0.4"'), ("v3, shards", ", shard = 256")):
            plain, pyramid = own_time(folder, codec, 1, more), own_time(folder, codec, 4, more)
            for times in peers.values():
                peer, version = times[codec]
                row(f"Zarr {layout}, {codec}, beside zarr {version}", peer, plain, "3", faster=True)
            row(f"Zarr {layout}, {codec}, with four levels", plain, pyramid, "1.4")


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
    try:
        import tifffile

        def save():
            tifffile.imwrite(folder / "peer.tif", image, tile=(256, 256), compression="zlib", compressionargs={"level": 1})
        own = np.maximum(own_writing(folder, "own.tif", ', compression = "deflate"') - begin, 1e-3)
        row(f"TIFF, deflate, beside tifffile {tifffile.__version__}", clock(save, repeats=1), own, "3", faster=True)
    except ImportError as missing:
        print(f"TIFF: {missing}")


def memory(folder):
    """The most that converting holds, in MiB."""
    for source, target in (("big.npy", "m.zarr"), ("big.zarr", "m.tif"), ("big.h5", "m.npy")):
        child = subprocess.Popen([FOVEA, "convert", source, target, "--quiet", "--overwrite"], cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
        print(f"convert {source} {target}: {usage.ru_maxrss / 1024:.0f} MiB, target 256, exit status {status >> 8}", flush=True)


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fovea-bench-"))
    try:
        np.save(folder / "big.npy", phantom(size))
        fovea("convert", "big.npy", "big.zarr", "--quiet", folder=folder)
        fovea("convert", "big.npy", "big.h5", "--quiet", folder=folder)
        regions(folder, size)
        writing(folder)
        streams(folder, size)
        memory(folder)
    finally:
        shutil.rmtree(folder)


main()
