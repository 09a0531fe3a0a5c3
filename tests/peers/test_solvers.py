#!/usr/bin/python3
"""Iterative reconstruction against the same methods written with the matrix of xray, and against scikit-image."""
import subprocess
import sys

try:
    import numpy as np
    from skimage.transform import iradon_sart, radon
except ImportError as missing:
    print(f"skip solvers: {missing}")
    sys.exit(0)

from pipelines import FOVEA, Difference, near, refused, run, same, test
from solver_formulas import cgls, spread

SIDE, COLUMNS = 9, 13
GEOMETRY = "parallel(angles = range(-70, 70, 14), center = 5.6)"
ANGLES = 11
RANDOM = np.random.default_rng(0)


def matrix():
    """Rows are rays, columns voxels: the projections of volumes with one voxel each."""
    units = np.eye(SIDE * SIDE, dtype=np.float32).reshape(SIDE * SIDE, SIDE, SIDE)
    projections = run(f"xray(a, {GEOMETRY}, columns = {COLUMNS})", a=units)  # angle, voxel, column
    return projections.transpose(0, 2, 1).reshape(ANGLES * COLUMNS, SIDE * SIDE).astype(float)


A = matrix()
OBJECTS = RANDOM.random((5, SIDE * SIDE)) * (RANDOM.random((5, SIDE * SIDE)) > 0.5)
MEASURED = OBJECTS @ A.T + 0.02 * RANDOM.standard_normal((5, A.shape[0]))
PROJECTIONS = MEASURED.reshape(5, ANGLES, COLUMNS).transpose(1, 0, 2).astype(np.float32).copy()


def inverse(v, least=1e-3):
    return np.where(v > least, 1 / np.maximum(v, least), 0)


def sirt(x, b, relaxation=1.0):
    return x + relaxation * inverse(A.sum(0)) * (A.T @ (inverse(A.sum(1)) * (b - A @ x)))


def art(x, b, relaxation=0.5):
    for row, value in zip(A, b):
        norm = row @ row
        if norm > 1e-3:
            x = x + relaxation * (value - row @ x) / norm * row
    return x


def sart(x, b, relaxation=0.5):
    for k in spread(ANGLES):
        part = A[k * COLUMNS:(k + 1) * COLUMNS]
        rest = inverse(part.sum(1)) * (b[k * COLUMNS:(k + 1) * COLUMNS] - part @ x)
        x = x + relaxation * inverse(part.sum(0)) * (part.T @ rest)
    return x


def mlem(x, b):
    expected = A @ x
    ratio = np.where((expected > 1e-12) & (b > 0), b / np.maximum(expected, 1e-12), 0)
    return x * inverse(A.sum(0)) * (A.T @ ratio)


def solve(call, *options, **arrays):
    """Our volume for a call in `p`, the projections, as one row per slice."""
    text = call.replace("(p", '(name_axes(p, "angle z x")').replace("GEOMETRY", GEOMETRY)
    return run(text, *options, p=PROJECTIONS, **arrays)


def compare(call, peer, tolerance=2e-4):
    near(solve(call).reshape(5, -1), np.array(peer), call, tolerance)


def repeated(step, iterations, start=0.0):
    result = []
    for b in MEASURED:
        x = np.full(A.shape[1], start)
        for _ in range(iterations):
            x = step(x, b)
        result.append(x)
    return result


@test
def sirt_equals_its_formula():
    compare(f"sirt(p, GEOMETRY, iterations = 7, size = {SIDE})", repeated(sirt, 7))
    compare(f"sirt(p, GEOMETRY, iterations = 4, relaxation = 0.6, nonnegative = true, size = {SIDE})",
            repeated(lambda x, b: np.maximum(sirt(x, b, 0.6), 0), 4))


@test
def art_equals_its_formula():
    compare(f"art(p, GEOMETRY, iterations = 3, size = {SIDE})", repeated(art, 3), 1e-3)


@test
def sart_equals_its_formula():
    compare(f"sart(p, GEOMETRY, iterations = 3, relaxation = 0.8, size = {SIDE})",
            repeated(lambda x, b: sart(x, b, 0.8), 3), 1e-3)


@test
def the_window_of_sart_equals_its_formula():
    y, x = (axis.ravel() - (SIDE - 1) / 2 for axis in np.mgrid[:SIDE, :SIDE])
    chord = np.sqrt(np.maximum((SIDE / 2)**2 - (np.arange(COLUMNS) - 5.6)**2, 0))
    lengths = np.where(chord > 0, np.maximum(2 * chord, 1), 0)

    def windowed(v, b):
        for k in spread(ANGLES):
            part, turn = A[k * COLUMNS:(k + 1) * COLUMNS], np.radians(-70 + 14 * k)
            half = np.sqrt(np.maximum((SIDE / 2)**2 - (x * np.cos(turn) - y * np.sin(turn))**2, 1e-9))
            q = np.abs(x * np.sin(turn) + y * np.cos(turn)) / half
            window = np.where(q < 1, 0.54 + 0.46 * np.cos(np.pi * q), 0)
            rest = inverse(np.minimum(lengths, part.sum(1))) * (b[k * COLUMNS:(k + 1) * COLUMNS] - part @ v)
            v = v + 0.9 * window * inverse(part.sum(0)) * (part.T @ rest)
        return v

    call = f'sart(p, GEOMETRY, iterations = 2, relaxation = 0.9, window = "hamming", size = {SIDE})'
    compare(call, repeated(windowed, 2), 1e-3)


@test
def cgls_equals_its_formula():
    compare(f"cgls(p, GEOMETRY, iterations = 5, size = {SIDE})", [cgls(A, np.zeros(A.shape[1]), b, 5) for b in MEASURED], 2e-3)


@test
def mlem_equals_its_formula():
    compare(f"mlem(p, GEOMETRY, iterations = 6, size = {SIDE})", repeated(mlem, 6, 1.0), 1e-3)


@test
def start_and_mask_are_used():
    start = RANDOM.random((5, SIDE, SIDE)).astype(np.float32)
    mask = RANDOM.random((5, SIDE, SIDE)) > 0.3
    peer = [sirt(x, b) for x, b in zip(start.reshape(5, -1).astype(float), MEASURED)]
    near(solve(f"sirt(p, s, GEOMETRY, iterations = 1, size = {SIDE})", s=start).reshape(5, -1), np.array(peer), "start", 1e-4)
    masked = solve(f"sirt(p, GEOMETRY, mask = m, iterations = 3, size = {SIDE})", m=mask)
    if np.any(masked[~mask] != 0) or not np.any(masked[mask] != 0):
        raise Difference("the mask is not kept")


@test
def a_slice_stops_when_its_residual_is_small():
    peer = []
    for b in MEASURED:
        x = np.zeros(A.shape[1])
        for _ in range(60):
            if np.linalg.norm(b - A @ x) <= 0.2 * np.linalg.norm(b):
                break
            x = sirt(x, b)
        peer.append(x)
    near(solve(f"sirt(p, GEOMETRY, iterations = 60, stop = 0.2, size = {SIDE})").reshape(5, -1), np.array(peer), "stop", 1e-3)


@test
def a_solve_in_two_parts_is_one_solve():
    for name in ("sirt", "art", "sart", "mlem"):
        first = solve(f"{name}(p, GEOMETRY, iterations = 3, size = {SIDE})")
        same(solve(f"{name}(p, s, GEOMETRY, iterations = 2, size = {SIDE})", s=first),
             solve(f"{name}(p, GEOMETRY, iterations = 5, size = {SIDE})"), name)


@test
def long_solves_are_cut_where_a_killed_run_can_go_on():
    for name, iterations, stages in (("sirt", "2", 1), ("sirt", "400", 200), ("art", "40, stop = 0.1", 20), ("cgls", "400", 200),
                                     ("mlem", "5000", 1000)):
        text = (f'p = name_axes(phantom("noise", [400, 32, 512]), "angle z x"); '
                f'write({name}(p, parallel(angles = range(0, 180, count = 400)), iterations = {iterations}), "v.npy")')
        plan = subprocess.run([FOVEA, "plan", "-e", text], capture_output=True, text=True, check=True).stdout
        if plan.count(f"store {name}") != stages:
            raise Difference(f"{name}, {iterations} iterations, not in {stages} stages: {plan}")


@test
def slices_do_not_see_each_other():
    for call in ("sirt(p, GEOMETRY, iterations = 2)", "art(p, GEOMETRY, iterations = 1)", "cgls(p, GEOMETRY, iterations = 2)"):
        same(solve(call, "--chunk", "2x5x4"), solve(call), call)


@test
def two_passes_of_sart_are_at_least_as_good_as_those_of_scikit_image():
    phantom = run('phantom("shepp-logan", [65, 65])')
    angles = np.arange(0, 180, 3.0)
    sinogram = radon(phantom, angles, circle=True)
    peer = iradon_sart(sinogram, angles)
    peer = iradon_sart(sinogram, angles, image=peer)
    ours = run('sart(name_axes(a, "angle x"), parallel(angles = range(0, 177, 3)), iterations = 2)',
               a=sinogram.T.astype(np.float32).copy())
    errors = [float(np.sqrt(np.mean((v - phantom)**2))) for v in (ours, peer)]
    if errors[0] > 1.02 * errors[1]:
        raise Difference(f"error {errors[0]}, scikit-image {errors[1]}")


@test
def what_does_not_fit_is_told():
    for text, words in (
        ('sirt(name_axes(a, "angle z x"), parallel(angles = [1, 2]), iterations = 0)', "iterations = 0"),
        ('sirt(name_axes(a, "angle z x"), parallel(angles = [1, 2]), relaxation = 3)', "relaxation = 3"),
        ('sart(name_axes(a, "angle z x"), cone([1, 2], 100, 10), window = "hamming")', "only parallel beams have it"),
        ('sirt(name_axes(a, "angle z x"), a, parallel(angles = [1, 2]), size = 4)', "start spans"),
        ('art(name_axes(a, "angle z x"), parallel(angles = [1, 2, 3]))', "3 angles for 2 projections"),
    ):
        refused(text, words, a=np.zeros((2, 3, 8), np.float32))


test.main()
