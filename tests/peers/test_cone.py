#!/usr/bin/python3
"""fdk against balls whose projections are known exactly, and against fbp where the source is far away."""
import sys

try:
    import numpy as np
except ImportError as missing:
    print(f"skip cone: {missing}")
    sys.exit(0)

from pipelines import Difference, near, refused, run, same, test

SIDE, ROWS, COLUMNS = 33, 40, 48
SOURCE, DETECTOR, PITCH = 90.0, 40.0, 1.3
BALLS = ((1.0, (0, 0, 0), 12.0), (0.5, (2.0, -5.0, 3.0), 4.0), (-0.4, (-3.0, 4.0, 5.0), 3.0))  # density, (z, y, x), radius


def projections(angles, center=None, offset=0.0):
    """Chords of the balls along the rays of the geometry that `fovea ops cone` describes."""
    center = (COLUMNS - 1) / 2 if center is None else center
    v, u = np.mgrid[:ROWS, :COLUMNS].astype(float)
    u, v = (u - center) * PITCH, (v - (ROWS - 1) / 2 - offset) * PITCH
    direction = np.stack([v, u, np.full_like(u, SOURCE + DETECTOR)], -1)  # along z, across, towards the detector
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    out = np.zeros((len(angles), ROWS, COLUMNS))
    for k, angle in enumerate(np.radians(angles)):
        for density, (z, y, x), radius in BALLS:
            at = np.array([z, x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle) + SOURCE])
            along = direction @ at
            out[k] += density * 2 * np.sqrt(np.maximum(radius**2 - (at @ at - along**2), 0))
    return out.astype(np.float32)


def truth(shape):
    z, y, x = np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in shape), indexing="ij")
    volume = np.zeros(shape)
    for density, (cz, cy, cx), radius in BALLS:
        volume += density * ((z - cz)**2 + (y - cy)**2 + (x - cx)**2 <= radius**2)
    return volume


def interior(shape, margin=2.0):
    """Voxels well away from every surface, where the density is known."""
    z, y, x = np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in shape), indexing="ij")
    far = np.ones(shape, bool)
    for _, (cz, cy, cx), radius in BALLS:
        far &= np.abs(np.sqrt((z - cz)**2 + (y - cy)**2 + (x - cx)**2) - radius) > margin
    return far & (np.sqrt(y**2 + x**2) < 14) & (np.abs(z) < 4)


def reconstruct(angles, values, *options, extra=""):
    step = angles[1] - angles[0]
    geometry = f"cone(range({angles[0]}, {angles[-1]}, {step}), {SOURCE}, {DETECTOR}, {PITCH}{extra})"
    return run(f'fdk(name_axes(a, "angle z x"), {geometry}, size = [21, {SIDE}, {SIDE}])', *options, a=values)


def check(angles, values, what, extra="", most=0.03):
    ours, exact = reconstruct(angles, values, extra=extra), truth((21, SIDE, SIDE))
    where = interior(exact.shape)
    error = np.abs(ours - exact)[where].mean()
    if error > most:
        raise Difference(f"{what}: mean error {error}")
    mirrored = np.abs(ours[:, :, ::-1] - exact)[where].mean()
    if mirrored < 1.5 * error:
        raise Difference(f"{what}: the balls cannot tell left from right ({mirrored}, {error})")


@test
def a_whole_turn_gives_the_balls_back():
    angles = np.arange(0.0, 360, 2)
    check(angles, projections(angles), "whole turn")


@test
def a_short_scan_gives_the_balls_back():
    angles = np.arange(0.0, 211, 1)
    check(angles, projections(angles), "short scan")
    backwards = angles[::-1].copy()
    check(backwards, projections(backwards), "short scan backwards")


@test
def a_shifted_detector_is_accounted_for():
    angles = np.arange(0.0, 360, 2)
    check(angles, projections(angles, center=25.4), "center", extra=', center = 25.4')
    check(angles, projections(angles, offset=1.7), "offset", extra=', offset = 1.7')


@test
def a_detector_on_one_side_sees_all_in_a_whole_turn():
    angles = np.arange(0.0, 360, 1)
    for center in (7.0, 40.3):  # the balls span 32 of the 48 columns, the shorter side has 7
        check(angles, projections(angles, center=center), f"center {center}", extra=f", center = {center}")
    short = np.arange(0.0, 230, 1)
    refused(f'fdk(name_axes(a, "angle z x"), cone(range(0, 229), {SOURCE}, {DETECTOR}, {PITCH}, center = 7))', "a whole turn",
            a=projections(short, center=7.0))


@test
def chunks_do_not_matter():
    angles = np.arange(0.0, 360, 10)
    values = projections(angles)
    whole = reconstruct(angles, values)
    for options in (("--chunk", "7"), ("--chunk", "9x33x11", "--engine", "processes", "--workers", "2")):
        same(reconstruct(angles, values, *options), whole, str(options))


@test
def a_far_source_is_a_parallel_beam():
    values = np.random.default_rng(0).random((36, 12, 24)).astype(np.float32)
    cone = run('fdk(name_axes(a, "angle z x"), cone(range(0, 350, 10), 1e7, 0), "hann")', a=values)
    fan = run('fbp(name_axes(a, "angle z x"), parallel(range(0, 350, 10)), "hann")', a=values)
    near(cone[2:-2, 6:-6, 6:-6], fan[2:-2, 6:-6, 6:-6], "far source", 1e-3)


@test
def what_does_not_fit_is_told():
    values = np.zeros((40, 6, 20), np.float32)
    for call, words in (
        ("cone(range(0, 351, 9), 100, 10), size = [4, 9, 9]", ""),
        ("cone(range(0, 39), 100, 10)", "the angles span 40 degrees"),
        ("cone(range(0, 351, 9), 10, 10)", "would touch the volume"),
        ("cone(range(0, 351, 9), 100, 10, center = 30)", "must lie on the detector"),
        ("parallel(range(0, 351, 9))", "parallel beams have fbp"),
        ("cone(range(0, 351, 9), 100, 10), size = 3", "size has 1 number"),
    ):
        if words:
            refused(f'fdk(name_axes(a, "angle z x"), {call})', words, a=values)
        else:
            run(f'fdk(name_axes(a, "angle z x"), {call})', a=values)


test.main()
