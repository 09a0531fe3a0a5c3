#!/usr/bin/python3
"""Iterative reconstruction of cone beams against the same methods written with the matrix of xray; kills; lattices; engines."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError as missing:
    print(f"skip cone solvers: {missing}")
    sys.exit(0)

from pipelines import FOVEA, PATIENCE, Difference, near, refused, run, same, test
from solver_formulas import cgls, spread

SHAPE, ROWS, COLUMNS = (4, 7, 6), 5, 11
VOXELS, ANGLES = int(np.prod(SHAPE)), 9
GEOMETRY = "cone(range(0, 320, 40), 30, 15, 1.2, center = 5.3, offset = 0.3)"
RANDOM = np.random.default_rng(0)


def matrix():
    """Rows are rays, columns voxels: one projection of each voxel, all of them side by side in one command's arrays."""
    columns = []
    with tempfile.TemporaryDirectory() as folder:
        text = ""
        for k in range(VOXELS):
            unit = np.zeros(VOXELS, np.float32)
            unit[k] = 1
            np.save(f"{folder}/v{k}.npy", unit.reshape(SHAPE))
            text += f'write(xray(read("v{k}.npy"), {GEOMETRY}, columns = {COLUMNS}, rows = {ROWS}), "p{k}.npy")\n'
        pathlib.Path(folder, "all.fov").write_text(text)
        subprocess.run([FOVEA, "run", "--quiet", "all.fov"], cwd=folder, check=True)
        columns = [np.load(f"{folder}/p{k}.npy").astype(float).ravel() for k in range(VOXELS)]
    return np.array(columns).T


A = matrix()
OBJECT = RANDOM.random(VOXELS)
MEASURED = A @ OBJECT + 0.02 * RANDOM.standard_normal(A.shape[0])
PROJECTIONS = MEASURED.reshape(ANGLES, ROWS, COLUMNS).astype(np.float32)
START = RANDOM.random(SHAPE).astype(np.float32)
MASK = RANDOM.random(SHAPE) > 0.3


def inverse(v, least=1e-3):
    return np.where(v > least, 1 / np.maximum(v, least), 0)


def sirt(x, iterations, relaxation=1.0, limit=lambda x: x, stop=0.0):
    for _ in range(iterations):
        rest = MEASURED - A @ x
        if np.linalg.norm(rest) > stop * np.linalg.norm(MEASURED):
            x = limit(x + relaxation * inverse(A.sum(0)) * (A.T @ (inverse(A.sum(1)) * rest)))
    return x


def mlem(x, iterations):
    for _ in range(iterations):
        expected = A @ x
        ratio = np.where((expected > 1e-12) & (MEASURED > 0), MEASURED / np.maximum(expected, 1e-12), 0)
        x = x * inverse(A.sum(0)) * (A.T @ ratio)
    return x


def groups(n):
    """Rows of the matrix that belong to every n-th projection."""
    rays = np.arange(A.shape[0]).reshape(ANGLES, -1)
    return [rays[k::n].ravel() for k in range(n)]


def sart(x, iterations, relaxation, n=ANGLES, limit=lambda x: x, stop=0.0):
    for _ in range(iterations):
        square = 0
        for k in spread(n):
            part = A[groups(n)[k]]
            rest = MEASURED[groups(n)[k]] - part @ x
            square += rest @ rest
            x = limit(x + relaxation * inverse(part.sum(0)) * (part.T @ (inverse(part.sum(1)) * rest)))
        if np.sqrt(square) <= stop * np.linalg.norm(MEASURED):
            break
    return x


def art(x, iterations, relaxation, n=ANGLES, limit=lambda x: x):
    for _ in range(iterations):
        for rays in groups(n):
            part = A[rays]
            x = limit(x + relaxation * part.T @ (inverse(part @ part.sum(0)) * (MEASURED[rays] - part @ x)))
    return x


def solve(call, *options, **arrays):
    text = call.replace("(p", '(name_axes(p, "angle z x")').replace("GEOMETRY", f"{GEOMETRY}, size = {list(SHAPE)}")
    return run(text, *options, p=PROJECTIONS, **arrays)


@test
def sirt_equals_its_formula():
    near(solve("sirt(p, GEOMETRY, iterations = 6)").ravel(), sirt(np.zeros(VOXELS), 6), "sirt", 2e-4)
    near(solve("sirt(p, s, GEOMETRY, iterations = 3, relaxation = 0.7, nonnegative = true)", s=START).ravel(),
         sirt(START.ravel().astype(float), 3, 0.7, lambda x: np.maximum(x, 0)), "start", 2e-4)
    near(solve("sirt(p, GEOMETRY, mask = m, iterations = 3)", m=MASK).ravel(),
         sirt(np.zeros(VOXELS), 3, limit=lambda x: x * MASK.ravel()), "mask", 2e-4)
    near(solve("sirt(p, GEOMETRY, iterations = 20, stop = 0.1)").ravel(), sirt(np.zeros(VOXELS), 20, stop=0.1), "stop", 2e-4)


@test
def cgls_equals_its_formula():
    near(solve("cgls(p, GEOMETRY, iterations = 4)").ravel(), cgls(A, np.zeros(VOXELS), MEASURED, 4), "cgls", 2e-3)
    near(solve("cgls(p, s, GEOMETRY, iterations = 2, nonnegative = true)", s=START).ravel(),
         np.maximum(cgls(A, START.ravel().astype(float), MEASURED, 2), 0), "start", 2e-3)


@test
def mlem_equals_its_formula():
    near(solve("mlem(p, GEOMETRY, iterations = 5)").ravel(), mlem(np.ones(VOXELS), 5), "mlem", 1e-3)


@test
def sart_equals_its_formula():
    nothing = np.zeros(VOXELS)
    near(solve("sart(p, GEOMETRY, iterations = 2, relaxation = 0.8)").ravel(), sart(nothing, 2, 0.8), "sart", 2e-4)
    near(solve("sart(p, s, GEOMETRY, iterations = 2, relaxation = 0.6, subsets = 4, nonnegative = true)", s=START).ravel(),
         sart(START.ravel().astype(float), 2, 0.6, 4, lambda x: np.maximum(x, 0)), "start and four groups", 2e-4)
    near(solve("sart(p, GEOMETRY, mask = m, relaxation = 1)", m=MASK).ravel(),
         sart(nothing, 2, 1, limit=lambda x: x * MASK.ravel()), "mask", 2e-4)
    near(solve("sart(p, GEOMETRY, iterations = 20, relaxation = 1, stop = 0.04)").ravel(), sart(nothing, 20, 1, stop=0.04),
         "stop", 2e-4)


@test
def art_equals_its_formula():
    nothing = np.zeros(VOXELS)
    near(solve("art(p, GEOMETRY, iterations = 2, relaxation = 0.8)").ravel(), art(nothing, 2, 0.8), "art", 2e-4)
    near(solve("art(p, s, GEOMETRY, iterations = 2, relaxation = 0.6, subsets = 4, nonnegative = true)", s=START).ravel(),
         art(START.ravel().astype(float), 2, 0.6, 4, lambda x: np.maximum(x, 0)), "start and four groups", 2e-4)
    near(solve("art(p, GEOMETRY, mask = m, relaxation = 1)", m=MASK).ravel(),
         art(nothing, 4, 1, limit=lambda x: x * MASK.ravel()), "mask", 2e-4)


@test
def art_of_rays_that_share_no_voxel_is_that_of_kaczmarz():
    """Every third ray of a fan: the groups are rays that can be used in any order."""
    image = RANDOM.random((8, 8)).astype(np.float32)
    geometry = "cone([0, 40, 100, 170], 400, 0, 3)"
    columns = [run(f"xray(a, {geometry}, columns = 5)", a=unit.reshape(8, 8)).ravel().astype(float)
               for unit in np.eye(64, dtype=np.float32)]
    matrix, x = np.array(columns).T, np.zeros(64)
    measured = matrix @ image.ravel()
    for _ in range(3):
        for ray, value in zip(matrix, measured):
            x = x + 0.9 * ray * (value - ray @ x) / max(ray @ ray, 1e-9)
    ours = run(f"art(xray(a, {geometry}, columns = 5), {geometry}, size = 8, iterations = 3, relaxation = 0.9)", a=image)
    near(ours.ravel(), x, "kaczmarz", 1e-4)


@test
def no_relaxation_below_2_diverges():
    for method in ("art", "sart"):
        for subsets in (1, 4):
            x = solve(f"{method}(p, GEOMETRY, iterations = 30, relaxation = 1.9, subsets = {subsets})").ravel()
            left = np.linalg.norm(MEASURED - A @ x) / np.linalg.norm(MEASURED)
            if not left < 0.2:
                raise Difference(f"{method} in {subsets} groups leaves {left}")


@test
def lattices_workers_and_engines_give_the_same_bits():
    for call in ("sirt(p, GEOMETRY, iterations = 2)", "cgls(p, GEOMETRY, iterations = 3)", "mlem(p, GEOMETRY, iterations = 2)",
                 "art(p, GEOMETRY, iterations = 1, subsets = 4)", "sart(p, GEOMETRY, iterations = 1)"):
        whole = solve(call)
        for options in (("--chunk", "2x5x4", "--workers", "1"), ("--chunk", "3", "--engine", "processes", "--workers", "2")):
            same(solve(call, *options), whole, f"{call} {options}")


@test
def what_a_small_residual_ends_is_not_computed():
    """Of the iterations that are left over only the volume is handed on: one task each."""
    text = ('g = cone(range(0, 350, 10), 100, 50)\np = xray(phantom("shepp-logan", [8, 16, 16]), g)\n'
            'write(sirt(p, g, iterations = {}, stop = {}), "v.npy")\n')
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for k, (iterations, stop, options) in enumerate((
                (30, 0.2, []), (60, 0.2, []), (60, 0, []), (30, 0.2, ["--engine", "processes", "--workers", "2"]))):
            pathlib.Path(folder, "solve.fov").write_text(text.format(iterations, stop))
            done = subprocess.run([FOVEA, "run", "--quiet", "--json", "--overwrite", "--store", f"s{k}", *options, "solve.fov"],
                                  cwd=folder, check=True, capture_output=True, text=True)
            results.append((json.loads(done.stdout)["tasks_run"], np.load(f"{folder}/v.npy")))
    same(results[1][1], results[0][1], "more iterations after the end")
    same(results[3][1], results[0][1], "processes")
    if results[1][0] != results[0][0] + 30 or results[2][0] < 3 * results[1][0] or results[3][0] != results[0][0]:
        raise Difference(f"tasks: {[r[0] for r in results]}")


@test
def all_methods_end_early():
    def tasks(call, *options):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/p.npy", PROJECTIONS)
            call = call.replace("GEOMETRY", f"{GEOMETRY}, size = {list(SHAPE)}")
            pathlib.Path(folder, "a.fov").write_text(f'p = read("p.npy", axes = "angle z x")\nwrite({call}, "v.npy")\n')
            done = subprocess.run([FOVEA, "run", "--quiet", "--json", "a.fov"], cwd=folder, check=True, capture_output=True)
            return json.loads(done.stdout)["tasks_run"], np.load(f"{folder}/v.npy")
    for call in ("cgls(p, GEOMETRY, iterations = {}, stop = 0.2)", "mlem(p, GEOMETRY, iterations = {}, stop = 0.2)",
                 "art(p, GEOMETRY, iterations = {}, stop = 0.2, subsets = 3)",
                 "sart(p, GEOMETRY, iterations = {}, stop = 0.2, subsets = 3)"):
        few, many = tasks(call.format(14)), tasks(call.format(24))
        same(many[1], few[1], call)
        if many[0] != few[0] + 10:
            raise Difference(f"{call}: {few[0]} and {many[0]} tasks")


@test
def ranks_give_the_same_bits():
    if not (shutil.which("mpiexec.mpich") and pathlib.Path(FOVEA).with_name("fovea-mpi-mpich.so").exists()):
        print("skip ranks: no mpiexec.mpich, or fovea-mpi-mpich.so was not built")
        return
    calls = ("cgls(p, GEOMETRY, iterations = 9, stop = 0.2)", "art(p, GEOMETRY, iterations = 2, subsets = 4)",
             "sart(p, GEOMETRY, iterations = 4, subsets = 3, stop = 0.2)")
    expected = [solve(call) for call in calls]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/p.npy", PROJECTIONS)
        texts = [call.replace("GEOMETRY", f"{GEOMETRY}, size = {list(SHAPE)}") for call in calls]
        pathlib.Path(folder, "solve.fov").write_text('p = read("p.npy", axes = "angle z x")\n' + "".join(
            f'write({text}, "v{k}.npy")\n' for k, text in enumerate(texts)))
        subprocess.run(["mpiexec.mpich", "-n", "3", FOVEA, "run", "--quiet", "--chunk", "2", "--workers", "1", "solve.fov"],
                       cwd=folder, check=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        for k, call in enumerate(calls):
            same(np.load(f"{folder}/v{k}.npy"), expected[k], f"three ranks: {call}")


@test
def a_fan_is_solved_too():
    image = RANDOM.random((20, 20)).astype(np.float32)
    geometry = "cone(range(0, 357, 3), 60, 30, 1.1)"
    ours = run(f"cgls(xray(a, {geometry}, columns = 45), {geometry}, size = 20, iterations = 40)", a=image)
    near(ours, image, "fan", 0.02)
    for method in ("art", "sart"):
        ours = run(f"{method}(xray(a, {geometry}, columns = 45), {geometry}, size = 20, iterations = 4, relaxation = 1)", a=image)
        near(ours, image, f"fan by {method}", 0.15)


@test
def a_killed_solver_goes_on_with_the_iteration_it_was_in():
    text = ('g = cone(range(0, 350, 10), 200, 50)\np = xray(phantom("shepp-logan", [64, 64, 64]), g)\n'
            'write(sirt(p, g, iterations = 14, stop = 0.1), "v.npy")\n')
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "solve.fov").write_text(text)
        command = [FOVEA, "run", "--json", "--quiet", "--workers", "2", "--patience", "0.01", "solve.fov"]
        begin = time.monotonic()
        whole = subprocess.run([*command, "--store", "other"], cwd=folder, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - begin
        expected = np.load(f"{folder}/v.npy")
        pathlib.Path(folder, "v.npy").unlink()
        for _ in range(2):
            running = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.5 * seconds)
            running.send_signal(signal.SIGKILL)
            running.wait()
        rest = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        same(np.load(f"{folder}/v.npy"), expected, "after two kills")
        ran = [json.loads(done.stdout)["tasks_run"] for done in (rest, whole)]
        if not ran[0] < ran[1]:
            raise Difference(f"{ran[0]} tasks after the kills, {ran[1]} in one go")


@test
def what_does_not_fit_is_told():
    for text, words in (
        ('art(name_axes(a, "angle z x"), cone([1, 2], 100, 100), subsets = 3)', "subsets = 3: there are only 2 projections"),
        ('sart(name_axes(a, "angle z x"), parallel([1, 2]), subsets = 1)', "parallel beams are used projection by projection"),
        ('sirt(name_axes(a, "angle z x"), cone([1, 2], 5, 100))', "would touch the volume"),
        ('sirt(name_axes(a, "angle z x"), cone([1, 2, 3], 50, 100))', "3 angles for 2 projections"),
        ('sirt(name_axes(a, "angle z x"), a, cone([1, 2], 50, 100), size = [3, 8, 4])', "start spans"),
        ('cgls(name_axes(a, "angle z x"), cone([1, 2], 50, 100), iterations = 5000)', "iterations = 5000"),
        ('sirt(name_axes(a, "z angle x"), cone([1, 2, 3], 50, 100))', "must have the axes angle z x"),
    ):
        refused(text, words, a=np.zeros((2, 3, 8), np.float32))
    refused('sart(name_axes(a, "angle x"), cone(range(1, 90), 100, 100), iterations = 50)', "give subsets = 60 or fewer",
            a=np.zeros((90, 8), np.float32))


test.main()
