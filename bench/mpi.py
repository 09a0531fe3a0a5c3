#!/usr/bin/python3
"""MPI against threads, what the engine costs, and allreduce against plain MPI, in one run.

    bench/mpi.py [NAME ...]      names: foam tasks cone allreduce

FOVEA is the command to measure; the cone also takes FOVEA_BESIDE, another one (an older build), that is measured in turns with it.

Flavours that are not installed are left out. Whole commands are timed, in turns; the best of each counts, and the time that
mpiexec and MPI need to start two ranks that do nothing stands beside. Work is done on a memory disk.
"""
import itertools
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
BUILD = pathlib.Path(FOVEA).parent
LAUNCH = {"mpich": ["mpiexec.mpich"], "openmpi": ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"]}
FLAVOURS = [f for f in LAUNCH if shutil.which(LAUNCH[f][0]) and (BUILD / f"fovea-mpi-{f}.so").exists()]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
ROUNDS = 5
FOAM = """foam    = read("foam.npy")
walls   = gaussian(1 - foam / 255, sigma = [3, 6, 6])
bubbles = label(erode(walls > 0.9, ball(12)))
write(measure(bubbles), "sizes.csv")
"""


def timed(command, folder):
    """Wall time of a command, what it printed, and the processor time of all its processes."""
    def used():
        return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    start, before = time.perf_counter(), used()
    done = subprocess.run(list(map(str, command)), cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return time.perf_counter() - start, done.stdout, used() - before


def ranks(flavour, count, *command):
    return [*LAUNCH[flavour], "-n", count, *command]


def bench_foam(folder):
    """2 ranks of one thread against 2 threads."""
    timed([FOVEA, "run", "-q", "-e", 'phantom("foam", [400, 700, 700], seed = 1) |> write("foam.npy")'], folder)
    pathlib.Path(folder, "foam.fov").write_text(FOAM)
    command = [FOVEA, "run", "--json", "--fresh", "foam.fov"]
    best = {name: (1e9, 1e9, 1e9) for name in ["threads", *FLAVOURS]}
    for _ in range(5):
        for name in best:
            work = [*command, "--workers", 2] if name == "threads" else ranks(name, 2, *command, "--workers", 1)
            seconds, output, cpu = timed(work, folder)
            best[name] = tuple(map(min, best[name], (seconds, json.loads(output)["seconds"], cpu)))
    for name in FLAVOURS:
        nothing = ranks(name, 2, FOVEA, "run", "-q", "-e", 'mean(phantom("cells", [9, 9]))')
        start = min(timed(nothing, folder)[0] for _ in range(3))
        (own, run, cpu), (whole, inside, used) = best["threads"], best[name]
        print(f"foam 400x700x700, 2 {name} ranks: {inside:.2f} s, 2 threads {run:.2f} s: {inside / run:.3f}x, target <= 1.05x; "
              f"whole commands {whole / own:.3f}x (of which starting two ranks {start:.2f} s), processor time {used / cpu:.3f}x",
              flush=True)


def processor_time(text, size, chunk, launcher, workers, folder):
    """Seconds of the run, and seconds of processor time a task."""
    shutil.rmtree(pathlib.Path(folder, ".fovea"), ignore_errors=True)
    command = [FOVEA, "run", "--json", "-e", text.replace("SIZE", str(size)), "--chunk", chunk, "--workers", workers]
    _, output, cpu = timed([*launcher, *command], folder)
    facts = json.loads(output)
    return facts["seconds"], cpu / facts["tasks_run"], facts["tasks_run"]


def unrelated(text, size, chunk, commands, folder):
    """Processor time a task of some commands with one thread each that know nothing of each other, at the same time: they share
    cores and caches as ranks do, and are slower than one alone."""
    folders = [pathlib.Path(folder, f"unrelated{k}") for k in range(commands)]
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    command = [FOVEA, "run", "--json", "-e", text.replace("SIZE", str(size)), "--chunk", chunk, "--workers", 1]
    for place in folders:
        place.mkdir()
    running = [subprocess.Popen(list(map(str, command)), cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
               for place in folders]
    count = sum(json.loads(process.communicate()[0])["tasks_run"] for process in running)
    return (sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before) / count


def bench_tasks(folder):
    """100,000 tasks on 4 ranks. What the engine takes is the processor time beyond that of commands that run alone."""
    tiny = 'mean(phantom("foam", [SIZE, SIZE], seed = 1))'
    worth = 'mean(median(phantom("foam", [SIZE, SIZE], seed = 1), 9))'
    alone, cpu, count = processor_time(tiny, 1580, 5, [], 2, folder)
    print(f"{count} tiny tasks, 2 threads: {1e6 * alone / count:.1f} us a task, {1e6 * cpu:.1f} us of processor time", flush=True)
    for flavour in FLAVOURS:
        seconds, cpu, count = processor_time(tiny, 1580, 5, ranks(flavour, 4), 1, folder)
        print(f"{count} tiny tasks, 4 {flavour} ranks: {1e6 * seconds / count:.1f} us a task, {1e6 * cpu:.1f} us of processor "
              f"time; target <= 50 us", flush=True)
    serial = unrelated(worth, 20000, 400, 4, folder)
    seconds, cpu, count = processor_time(worth, 126400, 400, ranks(FLAVOURS[0], 4), 1, folder)
    print(f"{count} tasks of {1e3 * serial:.1f} ms, 4 {FLAVOURS[0]} ranks: {seconds:.0f} s, engine "
          f"{100 * (1 - serial / cpu):.1f} % of the processor time, target < 5 %", flush=True)


def bench_cone(folder):
    """Solves of a cone on ranks and on threads: medians of wall and processor time, and what the store was given to write."""
    scan = 'read("p.npy", axes = "angle z x"), cone(angles = range(0, 360, count = {1}), source = {0} * 4, detector = {0})'
    commands = [FOVEA, *filter(None, [os.environ.get("FOVEA_BESIDE")])]
    for side, angles in ((128, 90), (256, 120)):
        text = (f'write(xray(phantom("shepp-logan", [{side}, {side}, {side}]), cone(angles = range(0, 360, count = {angles}), '
                f'source = {side} * 4, detector = {side})), "p.npy")')
        timed([FOVEA, "run", "-q", "--overwrite", "-e", text], folder)
        for method in ("sirt", "cgls"):
            solve = f'write({method}({scan.format(side, angles)}, iterations = 4), "v.npy")'
            for flavour, count in (("threads", 2), *((f, n) for f in FLAVOURS for n in (2, 4))):
                found = {command: [] for command in commands}
                for _, command in itertools.product(range(ROUNDS), commands):
                    run = [command, "run", "--json", "--fresh", "--overwrite", "-e", solve, "--workers"]
                    work = [*run, 2] if flavour == "threads" else ranks(flavour, count, *run, 1)
                    seconds, output, cpu = timed(work, folder)
                    packs = sum(p.stat().st_blocks * 512 for p in pathlib.Path(folder).glob(".fovea/store/*.pack"))
                    found[command].append((seconds, json.loads(output)["seconds"], cpu, packs / 1e6))
                for command, values in found.items():
                    wall, inside, cpu, packs = map(statistics.median, zip(*values))
                    print(f"{method} {side}^3 from {angles}, {count} {flavour}{' beside' if command != FOVEA else ''}: {wall:.2f} s "
                          f"(without the start {inside:.2f} s), processor {cpu:.2f} s, packs {packs:.0f} MB", flush=True)


def bench_allreduce(folder):
    for flavour in FLAVOURS:
        for count in (2, 4):
            output = timed(ranks(flavour, count, BUILD / "bench" / "bench_allreduce"), folder)[1]
            print(f"{output.strip()}, target <= 1.3", flush=True)


def main():
    names = sys.argv[1:] or ["foam", "tasks", "cone", "allreduce"]
    if not FLAVOURS:
        print("mpi: neither MPICH nor Open MPI is installed")
    for name in names if FLAVOURS else []:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            globals()[f"bench_{name}"](folder)


if __name__ == "__main__":
    main()
