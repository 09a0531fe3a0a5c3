#!/usr/bin/python3
"""Ptychography beside pty-chi and cdtools, in one run: a simulated star, the same frames, positions, start and iterations.
Prints time an iteration, memory, the residual R of the last object and probe, and how fine the details are that two halves
of the scan agree on: the first frequency (cycles a pixel) at which their ring correlation falls below the half-bit curve, mean
and spread over random splits.

Usage: bench/ptychography_peers.py [--iterations 100] [--splits 5] [--workers 2] [--only raar,lsq,pty-chi] [--pictures FOLDER]

pty-chi and cdtools live in build/ptychography (`scripts/bootstrap.sh ptychography`); without it they are left out by name. What
is called "raar 0.6" has beta = 0.6; "lsq 3" has three modes of the probe."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = ROOT / "build" / "fovea"
PEERS = ROOT / "build" / "ptychography" / "bin" / "python"
N, SIZE, FIELD, STEP, FRAMES, COUNTS = 128, 344, 212, 9.25, 516, 465000
INNER = 72  # what is cut off for the correlation: hardly lit borders
LSQ = 'method = "lsq"'
OURS = {"raar": "", "raar 0.6": "beta = 0.6", "raar 0.75": "beta = 0.75", "raar 0.9": "beta = 0.9", "raar polished": "polish = 4",
        "dm": 'method = "dm"', "rpie": 'method = "rpie"', "lsq": LSQ, "lsq 3": LSQ + ", modes = 3"}
THEIRS = ("pty-chi LSQML", "pty-chi LSQML 3", "pty-chi rPIE", "pty-chi DM", "cdtools")
USUAL = ("raar 0.6", "raar 0.75", "raar 0.9", "lsq", "lsq 3")


def star(n, spokes=36):
    """A thin Siemens star with rings that cut its spokes, drawn four times finer than its pixels and binned."""
    y, x = (np.mgrid[:4 * n, :4 * n] + 0.5) / 4 - n / 2
    radius, angle = np.hypot(y, x), np.arctan2(y, x)
    cut = np.abs((radius + 9) % 36 - 18) < 2
    metal = ((np.sin(spokes * angle) > 0) & ~cut & (radius > 8) & (radius < 0.47 * n)).astype(float)
    metal = metal.reshape(n, 4, n, 4).mean((1, 3))
    return np.exp((np.log(0.98) - 0.15j) * metal)


def wave_of(radius, defocus):
    """A cone of light that fills a ring of the detector, after a way from its focus (in pixels squared: wavelength times way, by
    the area of a pixel of the object)."""
    f = np.fft.fftfreq(N)
    away = np.hypot(f[:, None], f[None])
    ring = np.clip(radius - N * away + 0.5, 0, 1) * np.clip(N * away - 0.3 * radius + 0.5, 0, 1)
    wave = np.fft.fftshift(np.fft.ifft2(ring * np.exp(-1j * np.pi * defocus * away**2)))
    return wave / np.linalg.norm(wave)


def partly_coherent(radius, defocus, parts=(0.86, 0.08, 0.06)):
    """The probe and what a source of some width adds to it: the wave times rows and columns."""
    y, x = np.mgrid[:N, :N] - N / 2
    modes = [wave_of(radius, defocus) * by for by in (1, y, x)]
    modes = np.array([m / np.linalg.norm(m) for m in modes])
    return modes * np.sqrt(COUNTS * np.array(parts))[:, None, None]


def spiral():
    k = np.arange(4 * FRAMES)
    radius, angle = STEP / np.sqrt(np.pi) * np.sqrt(k), k * np.pi * (3 - np.sqrt(5))
    at = FIELD / 2 + np.column_stack([radius * np.sin(angle), radius * np.cos(angle)])
    return at[np.all((at >= 0) & (at <= FIELD), 1)][:FRAMES]


def amplitudes(obj, modes, at):
    """What a frame's detector sees, its middle in the corner."""
    fy, fx = np.fft.fftfreq(N)[:, None], np.fft.fftfreq(N)[None]
    spectra = np.fft.fft2(modes)
    for y, x in at:
        top, left = int(np.floor(y)), int(np.floor(x))
        moved = np.fft.ifft2(spectra * np.exp(-2j * np.pi * (fy * (y - top) + fx * (x - left))))
        waves = np.fft.fft2(moved * obj[top:top + N, left:left + N]) / N
        yield np.sqrt((np.abs(waves)**2).sum(0))


def simulate(folder):
    at, rng = spiral(), np.random.default_rng(20)
    obj, modes = star(SIZE), partly_coherent(20, 140)
    clean = np.array([np.fft.fftshift(a) for a in amplitudes(obj, modes, at)])
    frames = rng.poisson(clean**2).astype(np.float32)
    start = wave_of(22, 120) * np.sqrt(COUNTS)
    np.save(f"{folder}/frames.npy", frames)
    np.save(f"{folder}/at.npy", at)
    np.save(f"{folder}/start.npy", start.astype(np.complex64))
    roots = np.sqrt(frames)
    print(f"{len(frames)} frames of {N} x {N}, {frames.sum() / len(frames):.0f} counts each; the truth leaves R "
          f"{np.abs(roots - clean).sum() / roots.sum():.4f}", flush=True)


def choose(folder, which, name):
    """Some of the frames, as a scan of its own."""
    np.save(f"{folder}/{name}-frames.npy", np.load(f"{folder}/frames.npy")[which])
    np.save(f"{folder}/{name}-at.npy", np.load(f"{folder}/at.npy")[which])
    return name


def residual(folder, scan):
    """Of the object and probe of Fovea, whose positions are multiples of an eighth of a pixel."""
    frames = np.load(f"{folder}/{scan}-frames.npy")
    at = np.floor(np.load(f"{folder}/{scan}-at.npy") * 8 + 0.5) / 8
    probe = np.load(f"{folder}/probe.npy")
    probe = probe[None] if probe.ndim == 2 else probe
    roots = [np.sqrt(np.fft.ifftshift(f)) for f in frames]
    left = sum(np.abs(r - a).sum() for r, a in zip(roots, amplitudes(np.load(f"{folder}/object.npy"), probe, at)))
    return left / sum(r.sum() for r in roots)


def measured(command, folder):
    """Seconds by the clock and of processors, the largest memory in MB, and what was printed."""
    done = subprocess.run(["/usr/bin/time", "-f", "%e %U %S %M", *map(str, command)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr}")
    clock, user, system, kilobytes = map(float, done.stderr.split()[-4:])
    return np.array([clock, user + system]), kilobytes / 1024, done.stdout


def ours(folder, name, scan, iterations, workers):
    at = ", ".join(f"{v:.9g}" for v in np.load(f"{folder}/{scan}-at.npy").ravel())
    extra = f", {OURS[name]}" if OURS[name] else ""
    call = (f'ptycho(read("{scan}-frames.npy"), read("start.npy"), ones([{SIZE}, {SIZE}]), positions = [{at}]{extra}, '
            "iterations = {}")

    def run(count):
        text = call.format(count)
        pathlib.Path(folder, "solve.fov").write_text(f'write({text}), "object.npy")\n'
                                                     f'write({text}, output = "probe"), "probe.npy")')
        return measured((FOVEA, "run", "-q", "--fresh", "--overwrite", "--workers", workers, "solve.fov"), folder)[:2]

    few = run(2)[0] if scan == "whole" else np.zeros(2)
    seconds, memory = run(iterations)
    return (seconds - few) / (iterations - 2), memory, residual(folder, scan)


def theirs(folder, name, scan, iterations, workers):
    _, memory, told = measured((PEERS, pathlib.Path(__file__).resolve(), "--solve", name, "--scan", scan, "--iterations",
                                iterations, "--workers", workers), folder)
    clock, processors, left = map(float, told.split()[-3:])
    return np.array([clock, processors]), memory, left


# ---------------------------------------------------------------- inside of the peers' own Python

def now():
    return np.array([time.perf_counter(), time.process_time()])


def solve_ptychi(name, frames, at, start, iterations):
    """Seconds an iteration, object, and expected counts frame by frame."""
    import logging

    import ptychi.api as api
    import torch
    from ptychi.api.task import PtychographyTask
    logging.disable(logging.WARNING)
    method, modes = name.split()[1], int((name.split() + ["1"])[2])
    options = getattr(api, {"LSQML": "LSQMLOptions", "DM": "DMOptions", "rPIE": "RPIEOptions"}[method])()
    options.reconstructor_options.default_device = api.Devices.CPU
    options.reconstructor_options.num_epochs = iterations
    options.reconstructor_options.random_seed = 1
    options.reconstructor_options.batch_size = 64
    if method == "DM":
        options.reconstructor_options.chunk_length = 64
    options.object_options.determine_position_origin_coords_by = api.ObjectPosOriginCoordsMethods.SPECIFIED
    options.object_options.position_origin_coords = [SIZE / 2, SIZE / 2]
    slope = (np.arange(N) - N / 2) / N  # of further modes to begin with: a little of the wave times rows and columns
    probe = np.array([start, 0.3 * start * slope[:, None], 0.3 * start * slope[None]][:modes])[None]
    middle = at + N / 2 - SIZE / 2
    task = PtychographyTask(options, diffraction_data=frames, object_data=np.ones((1, SIZE, SIZE), np.complex64),
                            probe_data=probe.astype(np.complex64), probe_position_x_px=middle[:, 1],
                            probe_position_y_px=middle[:, 0])
    task.run(1)
    begin = now()
    task.run(iterations - 1)
    seconds = (now() - begin) / (iterations - 1)

    def expected(first, end):
        with torch.no_grad():
            return np.fft.fftshift(task.reconstructor.forward_model(torch.arange(first, end)).numpy(), axes=(1, 2))

    return seconds, task.get_data_to_cpu("object", as_numpy=True)[0], expected


def solve_cdtools(frames, at, start, iterations):
    import torch
    from cdtools.datasets import Ptycho2DDataset
    from cdtools.models import FancyPtycho
    from cdtools.tools import initializers, interactions
    geometry = {"distance": 1.0, "basis": np.array([[0, -75e-6], [-75e-6, 0], [0, 0]]), "corner": None}
    basis = initializers.exit_wave_geometry(torch.as_tensor(geometry["basis"]), frames.shape[1:], 1e-10, 1.0)
    moves = interactions.pixel_to_translations(basis, torch.as_tensor(at))
    scan = Ptycho2DDataset(moves, frames, wavelength=1e-10, detector_geometry=geometry)
    model = FancyPtycho.from_dataset(scan, n_modes=1, obj_padding=5)
    with torch.no_grad():
        model.probe.data[0] = torch.as_tensor(start) / model.probe_norm
        model.obj.data[:] = 1
    taken = []
    for _ in model.Adam_optimize(iterations, scan, lr=0.02, batch_size=10):
        taken.append(now())

    def expected(first, end):
        with torch.no_grad():
            which, _ = scan[first:end]
            return model.forward(torch.arange(first, end), which[1]).numpy()

    return np.diff(taken, axis=0).mean(0), model.obj.detach().numpy(), expected


def solve(name, scan, iterations, workers):
    import torch
    torch.set_num_threads(workers)
    frames, at, start = (np.load(f"{part}.npy") for part in (f"{scan}-frames", f"{scan}-at", "start"))
    seconds, obj, expected = (solve_cdtools(frames, at, start, iterations) if name == "cdtools" else
                              solve_ptychi(name, frames, at, start, iterations))
    left = total = 0.0
    for first in range(0, len(frames), 64):
        roots = np.sqrt(frames[first:first + 64])
        left += np.abs(roots - np.sqrt(np.maximum(expected(first, min(first + 64, len(frames))), 0))).sum()
        total += roots.sum()
    np.save("object.npy", obj.astype(np.complex64))
    print(*seconds, left / total)


# ---------------------------------------------------------------- what two halves agree on

def crossing(folder):
    cut = f"[{INNER}:-{INNER}, {INNER}:-{INNER}]"
    text = ('a = read("a.npy")\nb = align_complex(read("b.npy"), a)\n'
            f'write(frc(b{cut}, a{cut}), "rings.csv")')
    measured((FOVEA, "run", "-q", "--fresh", "--overwrite", "-e", text), folder)
    names, *rows = [line.split(",") for line in pathlib.Path(folder, "rings.csv").read_text().split()]
    rings = {name: np.array([float(row[k]) for row in rows]) for k, name in enumerate(names)}
    below = (rings["correlation"] < rings["half_bit"]) & (rings["ring"] > 0)
    return rings["frequency"][below.argmax()] if below.any() else 0.5


def compare_halves(folder, run, name, given):
    """Frequencies of the random splits, and the residuals of their halves."""
    found, left = [], []
    for seed in range(1, given.splits + 1):
        order = np.random.default_rng(seed).permutation(FRAMES)
        for half in range(2):
            scan = choose(folder, np.sort(order[half::2]), "half")
            left.append(run(folder, name, scan, given.iterations, given.workers)[2])
            pathlib.Path(folder, "object.npy").rename(pathlib.Path(folder, "ab"[half] + ".npy"))
        found.append(crossing(folder))
    return found, left


def draw(folder, to, name):
    """The phase, from -0.2 to 0.2 radians."""
    pathlib.Path(to).mkdir(parents=True, exist_ok=True)
    out = pathlib.Path(to).resolve() / (name.replace(" ", "-") + ".png")
    text = (f'o = remove_ramp(read("object.npy")[{N // 2}:-{N // 2}, {N // 2}:-{N // 2}])\n'
            f'write(convert(clip((phase(o) + 0.2) * 637, 0, 255), "uint8"), "{out}")')
    measured((FOVEA, "run", "-q", "--overwrite", "-e", text), folder)


def measure(folder, name, given):
    run = ours if name in OURS else theirs
    seconds, memory, left = run(folder, name, "whole", given.iterations, given.workers)
    clock, processors = 1000 * seconds
    line = f"{name}: {clock:.0f} ms an iteration ({processors:.0f} ms of processors), {memory:.0f} MB, R {left:.4f}"
    if given.pictures:
        draw(folder, given.pictures, name)
    if given.splits:
        found, halves = compare_halves(folder, run, name, given)
        line += (f"; halves: R {min(halves):.4f} to {max(halves):.4f}, "
                 f"FRC {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})")
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default=",".join(USUAL + THEIRS), help="of " + ", ".join([*OURS, *THEIRS]))
    parser.add_argument("--pictures", metavar="FOLDER", help="where phases are drawn")
    parser.add_argument("--solve", help=argparse.SUPPRESS)
    parser.add_argument("--scan", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.solve:
        return solve(given.solve, given.scan, given.iterations, given.workers)
    with tempfile.TemporaryDirectory() as folder:
        simulate(folder)
        choose(folder, np.arange(FRAMES), "whole")
        for name in given.only.split(","):
            if name in OURS or PEERS.exists():
                measure(folder, name, given)
            else:
                print(f"{name}: left out, there is no {PEERS.relative_to(ROOT)}; see scripts/bootstrap.sh ptychography")


if __name__ == "__main__":
    main()
