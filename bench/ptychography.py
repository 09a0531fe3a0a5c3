#!/usr/bin/python3
"""Times ptycho on a simulated scan, beside the Fourier transforms of scipy on the same frames; and raar with one thread, with
several, and with as many ranks of MPI.
Usage: bench/ptychography.py [--iterations 40] [--workers 2]
       bench/ptychography.py --clean     how residuals fall without noise, positions being multiples of an eighth of a pixel"""
import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = ROOT / "build" / "fovea"
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SCAN = 'scan_positions("fermat", 210, 9.25)'
START = "make_probe(128, radius = 26, defocus = 300)"
OBJECT = """cells = phantom("cells", [344, 344]) / 255
o = complex_image(1 - 0.3 * gaussian(cells, 1), gaussian(rotate90(cells), 1))
p = make_probe(128, radius = 24, defocus = 400, counts = 460000)
"""
SIMULATION = OBJECT + f'write(poisson(diffract(o, p, {SCAN})), "frames.npy")'
CLEAN_SIMULATION = OBJECT + 'write(diffract(o, p, {scan}), "clean.npy")'


def fovea(text, folder, *options, launcher=()):
    """Seconds by the clock and of processors, and the largest memory in MB."""
    command = ["/usr/bin/time", "-f", "%e %U %S %M", *launcher, FOVEA, "run", "-q", "--overwrite", *options, "-e", text]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    clock, user, system, kilobytes = map(float, done.stderr.split()[-4:])
    return clock, user + system, kilobytes / 1024


def time_solver(folder, options, iterations, extra, launcher=()):
    """Seconds of one iteration: what more iterations take longer."""
    took = []
    for count in (2, 2 + iterations):
        call = f'ptycho(read("frames.npy"), {START}, positions = {SCAN}, iterations = {count}{extra}, output = "residuals")'
        clock, processors, memory = fovea(f'write({call}, "r.csv")', folder, "--fresh", *options, launcher=launcher)
        took.append((clock, processors))
    last = float(pathlib.Path(folder, "r.csv").read_text().split()[-1].split(",")[1])
    return [(b - a) / iterations for a, b in zip(*took)], memory, last


def time_scipy(frames, workers):
    try:
        import scipy.fft
    except ImportError as missing:
        return print(f"scipy: {missing}")
    waves = frames.astype(np.complex64)
    best = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        scipy.fft.ifft2(scipy.fft.fft2(waves, workers=workers), workers=workers)
        best = min(best, time.perf_counter() - begin)
    print(f"scipy, two transforms of each frame: {best * 1000:.0f} ms, {workers} threads")
    return best


def compare_workers(folder, workers, iterations):
    """How much faster several threads are than one, and ranks than threads."""
    def clock(count, launcher=()):
        return time_solver(folder, ("--workers", str(count)), iterations, "", launcher)[0][0] * 1000
    one, threads = clock(1), clock(workers)
    print(f"raar: {one:.0f} ms with one thread, {threads:.0f} ms with {workers}, {one / threads:.2f} times as fast", flush=True)
    if shutil.which("mpiexec"):
        ranks = clock(1, ("mpiexec", "-n", str(workers)))
        print(f"raar: {ranks:.0f} ms with {workers} ranks, {ranks / threads:.2f} of the time of as many threads", flush=True)
    else:
        print("ranks: there is no mpiexec")


CLEAN = (("raar", "iterations = 120"), ("raar, beta 0.75", "iterations = 120, beta_start = 0.75"),
         ("raar, beta 0.9", "iterations = 120, beta = 0.9, beta_start = 0.9"),
         ("lsq, no momentum", 'iterations = 100, method = "lsq", momentum = 0'),
         ("lsq", 'iterations = 100, method = "lsq"'))


def rounded_scan():
    """The Fermat spiral of SCAN, to an eighth of a pixel."""
    angle, middle, step = np.pi * (3 - np.sqrt(5)), 105.0, 9.25
    k = np.arange(2000)
    at = middle + (step / np.sqrt(np.pi) * np.sqrt(k) * np.stack([np.sin(k * angle), np.cos(k * angle)])).T
    at = at[np.all((at >= 0) & (at <= 2 * middle), 1)]
    return "[" + ", ".join(f"{v:.9g}" for v in (np.floor(at * 8 + 0.5) / 8).ravel()) + "]"


def follow_residuals(folder):
    scan = rounded_scan()
    fovea(CLEAN_SIMULATION.format(scan=scan), folder)
    for name, extra in CLEAN:
        fovea(f'write(ptycho(read("clean.npy"), {START}, positions = {scan}, {extra}, output = "residuals"), "r.csv")', folder)
        left = [float(row.split(",")[1]) for row in pathlib.Path(folder, "r.csv").read_text().split()[1:]]
        print(f"{name}: " + ", ".join(f"{n}: {left[n - 1]:.4f}" for n in (20, 50, 100, 120) if n <= len(left)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.clean:
            follow_residuals(folder)
            return
        fovea(SIMULATION, folder)
        frames = np.load(f"{folder}/frames.npy")
        print(f"{len(frames)} frames of {frames.shape[1]} x {frames.shape[2]}, {frames.sum() / len(frames):.0f} counts each")
        for name, extra in (("raar, 2 rounds", ""), ("lsq", ', method = "lsq"'),
                            ("lsq, 3 modes", ', method = "lsq", modes = 3')):
            (clock, processors), memory, last = time_solver(folder, ("--workers", str(given.workers)), given.iterations, extra)
            print(f"{name}: {clock * 1000:.0f} ms an iteration ({processors * 1000:.0f} ms of processors), {memory:.0f} MB, "
                  f"residual {last:.4f}", flush=True)
        compare_workers(folder, given.workers, given.iterations)
        time_scipy(frames, given.workers)


if __name__ == "__main__":
    main()
