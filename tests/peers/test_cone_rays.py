#!/usr/bin/python3
"""Projections by cones and fans: against exact chords of balls, rays traced one by one, and their own adjoint."""
import sys

try:
    import numpy as np
except ImportError as missing:
    print(f"skip cone rays: {missing}")
    sys.exit(0)

from pipelines import Difference, near, refused, run, same, test

RANDOM = np.random.default_rng(3)
# angles, source, detector, pitch and more; the last is steep, with pixels far smaller than voxels
CONES = ("cone(range(0, 350, 14), 90, 40, 1.3)", "cone(range(3, 200, 9), 60, 5, 0.7, center = 20.3, offset = 2.2)",
         "cone([0, 45, 90, 133], 45, 90, 3.1)", "cone([10, 77, 200], 50, 50, 0.45)", "cone([0, 30], 40, 0, 2.5)")
ANGLES = (26, 22, 4, 3, 2)
SHAPE, ROWS, COLUMNS = (21, 24, 27), 33, 47


def traced(volume, angle, source, detector, pitch, row, column):
    """One ray by Joseph's method, crossing by crossing; row and column are counted from the middle of the detector."""
    a, (mz, my, mx) = np.radians(angle), [(n - 1) / 2 for n in volume.shape]
    across, deep = column * pitch, source + detector
    x, y = mx - source * np.sin(a), my - source * np.cos(a)
    dx, dy, dz = across * np.cos(a) + deep * np.sin(a), -across * np.sin(a) + deep * np.cos(a), row * pitch
    upright = abs(dy) >= abs(dx)
    total, padded = 0.0, np.pad(volume.astype(float), 2)
    for j in range(volume.shape[1 if upright else 2]):
        t = (j - (y if upright else x)) / (dy if upright else dx)
        place, z = (x + t * dx if upright else y + t * dy), mz + t * dz
        if not (-1 <= place < volume.shape[2 if upright else 1] and -1 <= z < volume.shape[0]):
            continue
        i, k = int(np.floor(place)), int(np.floor(z))
        f, g = place - i, z - k
        for di, wi in ((0, 1 - f), (1, f)):
            for dk, wk in ((0, 1 - g), (1, g)):
                at = (k + dk + 2, j + 2, i + di + 2) if upright else (k + dk + 2, i + di + 2, j + 2)
                total += wi * wk * padded[at]
    return total * np.sqrt(dx * dx + dy * dy + dz * dz) / abs(dy if upright else dx)


@test
def projections_are_those_of_rays_traced_one_by_one():
    volume = RANDOM.random(SHAPE, np.float32)
    for angles, source, detector, pitch in (((20, 71, 160, 290), 60, 30, 1.2), ((0, 45, 90), 50, 50, 0.45)):
        ours = run(f"xray(a, cone({list(angles)}, {source}, {detector}, {pitch}), rows = {ROWS}, columns = {COLUMNS})", a=volume)
        for k, angle in enumerate(angles):
            for v, u in RANDOM.integers(0, (ROWS, COLUMNS), (25, 2)):
                peer = traced(volume, angle, source, detector, pitch, v - (ROWS - 1) / 2, u - (COLUMNS - 1) / 2)
                if abs(ours[k, v, u] - peer) > 1e-4 * max(abs(peer), 1):
                    raise Difference(f"angle {angle}, row {v}, column {u}: {ours[k, v, u]}, ray by ray {peer}")


@test
def back_projection_is_the_adjoint_of_projection():
    x = RANDOM.random(SHAPE, np.float32)
    for cone, count in zip(CONES, ANGLES):
        y = RANDOM.random((count, ROWS, COLUMNS), np.float32)
        ax = run(f"xray(a, {cone}, rows = {ROWS}, columns = {COLUMNS})", a=x)
        aty = run(f'backproject(name_axes(a, "angle z x"), {cone}, size = {list(SHAPE)})', a=y)
        left, right = np.vdot(ax.astype(float), y), np.vdot(x, aty.astype(float))
        if abs(left - right) > 3e-6 * abs(left):
            raise Difference(f"{cone}: {left} and {right}")


@test
def a_fan_is_the_middle_of_a_cone():
    image, geometry = RANDOM.random((30, 33), np.float32), "cone(range(0, 340, 20), 80, 40, 1.4)"
    flat = run(f"xray(a, {geometry}, columns = 41)", a=image)
    deep = run(f"xray(a, {geometry}, columns = 41)", a=image[None])
    near(flat, deep[:, 0], "projection", 1e-6)
    y = RANDOM.random(flat.shape, np.float32)
    back = run(f'backproject(name_axes(a, "angle x"), {geometry}, size = [30, 33])', a=y)
    left, right = np.vdot(flat.astype(float), y), np.vdot(image, back.astype(float))
    if abs(left - right) > 3e-6 * abs(left):
        raise Difference(f"fan: {left} and {right}")
    sinogram = run(f"xray(a, {geometry}, columns = 61)", a=image)
    fan = run(f'fdk(name_axes(a, "angle x"), {geometry}, "hann", size = 32)', a=sinogram)
    cone = run(f'fdk(name_axes(a, "angle z x"), {geometry}, "hann", size = [1, 32, 32])', a=sinogram[:, None])
    near(fan, cone[0], "fdk", 1e-5)


@test
def fdk_of_a_fan_gives_the_slice_back():
    image = run('gaussian(phantom("shepp-logan", [64, 64]), 1)')
    geometry = "cone(range(0, 360, count = 360), 200, 100, 1.1)"
    ours = run(f"fdk(xray(a, {geometry}, columns = 128), {geometry}, size = 64)", a=image)
    inside = np.hypot(*(np.indices(image.shape) - 31.5)) < 28
    error = np.abs(ours - image)[inside].mean()
    if error > 0.01:
        raise Difference(f"mean error {error}")


@test
def chunks_and_engines_do_not_matter():
    x, y = RANDOM.random(SHAPE, np.float32), RANDOM.random((26, ROWS, COLUMNS), np.float32)
    project = f"xray(a, {CONES[0]}, rows = {ROWS}, columns = {COLUMNS})"
    spread = f'backproject(name_axes(a, "angle z x"), {CONES[0]}, size = {list(SHAPE)})'
    for text, array in ((project, x), (spread, y)):
        whole = run(text, a=array)
        for options in (("--chunk", "5x9x11"), ("--chunk", "9", "--engine", "processes", "--workers", "2")):
            same(run(text, *options, a=array), whole, f"{text} {options}")


@test
def what_does_not_fit_is_told():
    volume, flat = np.zeros((6, 20, 20), np.float32), np.zeros((40, 6, 20), np.float32)
    for text, words, array in (
        ("xray(a, cone([0, 90], 12, 30))", "would touch the volume", volume),
        ("xray(a, cone([0, 90], 100, 30, offset = 300))", "does not see the volume", volume),
        ("xray(a, cone([0, 90], 100, 30, center = 77))", "must lie on the detector", volume),
        ("xray(a, parallel([0, 90]), rows = 3)", "only a cone", volume),
        ('backproject(name_axes(a, "angle z x"), cone(range(0, 351, 9), 100, 10), size = [3, 4])', "size has 2 numbers", flat),
        ('backproject(name_axes(a, "angle z x"), cone(range(0, 351, 9), 12, 10))', "would touch the volume", flat),
        ('backproject(name_axes(a, "angle z x"), cone(range(0, 340, 10), 100, 10))', "35 angles for 40 projections", flat),
        ('fdk(name_axes(a, "angle z x"), cone(range(0, 351, 9), 100, 10, offset = -200))', "does not see the volume", flat),
    ):
        refused(text, words, a=array)
    volume[2, 3, 4] = np.nan
    try:
        run("xray(a, cone([0, 90], 100, 30))", a=volume)
    except Difference as told:
        if "slice 2, row 3, column 4 is not a finite number" in str(told):
            return
    raise Difference("a voxel that is not a number is not told")


test.main()
