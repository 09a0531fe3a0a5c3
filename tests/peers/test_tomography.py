#!/usr/bin/python3
"""xray, backproject and fbp against scikit-image, analytic projections and their own adjoint, on several lattices."""
import sys

try:
    import numpy as np
    from skimage.transform import iradon, radon
except ImportError as missing:
    print(f"skip tomography: {missing}")
    sys.exit(0)

from pipelines import Difference, near, refused, run, same, test

N = 65
HALF_TURN = "parallel(angles = range(0, 177, 3))"
ANGLES = np.arange(0, 180, 3.0)
CHUNKS = (("--chunk", "7"), ("--chunk", "5", "--engine", "processes", "--workers", "2"))


def inside(n, margin=1):
    """The disk that every projection sees."""
    y, x = np.mgrid[:n, :n] - (n - 1) / 2
    return y**2 + x**2 < ((n - 1) / 2 - margin)**2


def lopsided(n=N):
    """A phantom without any symmetry: a bar above the middle, a dot to the left of it."""
    image = np.zeros((n, n), np.float32)
    image[n // 4:n // 4 + 4, n // 2:n * 3 // 4] = 1
    image[n // 2 + 3:n // 2 + 6, n // 5:n // 5 + 3] = 2
    return image


def root_mean_square(a):
    return float(np.sqrt(np.mean(np.asarray(a, float)**2)))


@test
def projections_turn_as_those_of_scikit_image():
    image = lopsided()
    ours, peer = run(f"xray(a, {HALF_TURN})", a=image), radon(image, ANGLES, circle=True).T
    if root_mean_square(ours - peer) > 0.02 * root_mean_square(peer):
        raise Difference(f"differs by {root_mean_square(ours - peer)} of {root_mean_square(peer)}")
    same_as_mirrored = root_mean_square(ours[:, ::-1] - peer)
    if same_as_mirrored < 0.2 * root_mean_square(peer):
        raise Difference("the phantom cannot tell left from right")


@test
def projections_of_an_ellipse_are_those_of_analysis():
    n, a, b, x0, y0, phi = 201, 60.0, 35.0, 12.0, -9.0, np.radians(25)
    y, x = np.mgrid[:n * 4, :n * 4] / 4 - (n - 0.25) / 2  # four samples across a voxel
    u, v = (x - x0) * np.cos(phi) - (y - y0) * np.sin(phi), (x - x0) * np.sin(phi) + (y - y0) * np.cos(phi)
    image = ((u / a)**2 + (v / b)**2 <= 1).astype(float).reshape(n, 4, n, 4).mean((1, 3)).astype(np.float32)
    theta = np.radians(ANGLES)[:, None]
    t = np.arange(n) - (n - 1) / 2 - (x0 * np.cos(theta) - y0 * np.sin(theta))
    width = np.sqrt((a * np.cos(theta - phi))**2 + (b * np.sin(theta - phi))**2)
    exact = 2 * a * b / width**2 * np.sqrt(np.maximum(width**2 - t**2, 0))
    ours = run(f"xray(a, {HALF_TURN})", a=image)
    if root_mean_square(ours - exact) > 0.01 * root_mean_square(exact):
        raise Difference(f"differs by {root_mean_square(ours - exact)} of {root_mean_square(exact)}")


@test
def filtered_back_projection_equals_iradon_with_every_filter():
    sinogram = radon(lopsided(), ANGLES, circle=True).astype(np.float32)
    for name in ("ramp", "shepp-logan", "cosine", "hamming", "hann", None):
        peer = iradon(sinogram, ANGLES, filter_name=name, circle=True)
        ours = run(f'fbp(name_axes(a, "angle x"), {HALF_TURN}, filter = "{name or "none"}")', a=sinogram.T.copy())
        near(ours[inside(N)], peer[inside(N)], str(name), 1e-5)


@test
def slices_are_reconstructed_alike_in_either_order_of_axes():
    random = np.random.default_rng(0)
    volume = random.random((60, 19, 33), np.float32)
    geometry = "parallel(angles = range(0, 177, 3), center = 14.25)"
    ours = run(f'fbp(name_axes(a, "angle z x"), {geometry}, "hann")', a=volume)
    turned = run(f'fbp(name_axes(a, "z angle x"), {geometry}, "hann")', a=volume.swapaxes(0, 1).copy())
    same(turned, ours, "z angle x")
    for z in (0, 7, 18):
        same(run(f'fbp(name_axes(a, "angle x"), {geometry}, "hann")', a=volume[:, z].copy()), ours[z], f"slice {z}")
    for chunk in CHUNKS:
        same(run(f'fbp(name_axes(a, "angle z x"), {geometry}, "hann")', *chunk, a=volume), ours, str(chunk))


@test
def back_projection_is_the_adjoint_of_projection():
    random = np.random.default_rng(1)
    x, y = random.random((18, 40, 50), np.float32), random.random((37, 18, 61), np.float32)
    for geometry in ("parallel(angles = range(-90, 90, 5))", "parallel(angles = range(-90, 90, 5), center = 27.3)",
                     'parallel(angles = range(0, 3.6, 0.1), unit = "rad")'):
        ax = run(f"xray(a, {geometry}, columns = 61)", a=x)
        aty = run(f'backproject(name_axes(a, "angle z x"), {geometry}, size = [40, 50])', a=y)
        left, right = np.vdot(ax.astype(float), y), np.vdot(x, aty.astype(float))
        if abs(left - right) > 1e-6 * abs(left):
            raise Difference(f"{geometry}: {left} and {right}")
        for chunk in CHUNKS[:1]:
            same(run(f"xray(a, {geometry}, columns = 61)", *chunk, a=x), ax, "xray by chunks")


@test
def the_error_on_the_phantom_is_that_of_scikit_image():
    phantom = run('phantom("shepp-logan", [129, 129])')
    angles = np.arange(180.0)
    sinogram = radon(phantom, angles, circle=True).astype(np.float32)
    peer = iradon(sinogram, angles, circle=True)
    ours = run('fbp(name_axes(a, "angle x"), parallel(angles = range(0, 179)))', a=sinogram.T.copy())
    mask = inside(129)
    errors = root_mean_square((ours - phantom)[mask]), root_mean_square((peer - phantom)[mask])
    if errors[0] > 1.02 * errors[1]:
        raise Difference(f"error {errors[0]}, scikit-image {errors[1]}")


@test
def a_centre_off_the_middle_and_shifted_projections_are_brought_back():
    image = lopsided()
    straight = run(f'fbp(xray(a, {HALF_TURN}, columns = 81), {HALF_TURN}, "hann", size = {N})', a=image)
    shifts = np.round(np.random.default_rng(2).uniform(-4, 4, 60), 2)
    for center in ("36.5", str([round(float(40 + s), 2) for s in shifts])):
        geometry = f"parallel(angles = range(0, 177, 3), center = {center})"
        moved = run(f'fbp(xray(a, {geometry}, columns = 81), {geometry}, "hann", size = {N})', a=image)
        if root_mean_square((moved - straight)[inside(N)]) > 0.1 * root_mean_square(straight):
            raise Difference(f"center = {center[:20]}: differs by {root_mean_square((moved - straight)[inside(N)])}")


@test
def the_phantom_is_made_of_the_known_ellipses():
    plane = run('phantom("shepp-logan", [201, 201])')
    volume = run('phantom("shepp-logan", [65, 65, 65])')
    for image, value in ((plane[100, 100], 0.2), (plane[7, 100], 0), (plane[11, 100], 1), (plane[100, 122], 0),
                         (plane[65, 100], 0.3), (volume[32, 32, 32], 0.2), (volume[0, 32, 32], 0)):
        if abs(image - value) > 1e-6:
            raise Difference(f"{image}, expected {value}")
    same(run('phantom("shepp-logan", [65, 65, 65])', "--chunk", "9"), volume, "by chunks")


@test
def what_does_not_fit_is_told_before_anything_runs():
    volume = np.zeros((12, 5, 20), np.float32)
    named = 'name_axes(a, "angle z x")'
    for text, words in (
        ("fbp(a, parallel(angles = range(1, 12)))", 'name them with read(file, axes = "angle z x")'),
        (f"fbp({named}, parallel(angles = range(1, 13)))", "13 angles for 12 projections"),
        (f"fbp({named}, parallel(angles = range(1, 12), center = 20))", "must lie on the detector, between 0 and 19"),
        (f"fbp({named}, parallel(angles = range(1, 12), center = [1, 2]))", "center has 2 numbers for 12 angles"),
        (f"fbp({named}, ball(3))", "expected a geometry"),
        (f'fbp({named}, parallel(angles = range(1, 12)), filter = "rampp")', "must be one of ramp|shepp-logan"),
        (f"fbp({named}, parallel(angles = range(1, 12)), size = 0)", "size = 0"),
        ("xray(a, parallel(angles = []))", "angles is empty"),
        (f"xray({named}, parallel(angles = [1, 2]))", "axes z y x or y x"),
        ("fbp(a, parallel(angles = range(5, 1)))", "never leads from 5 to 1"),
        ('name_axes(a, "z x")', "2 names for an image of 3 axes"),
        ('name_axes(a, "z x z")', "z is there twice"),
    ):
        refused(text, words, a=volume)
    volume[3, 2, 7] = np.nan
    try:
        run(f"fbp({named}, parallel(angles = range(1, 12)))", a=volume)
    except Difference as told:
        if "projection 3, row 2, column 7 is not a finite number" not in str(told):
            raise
    else:
        raise Difference("not-a-numbers are accepted")


test.main()
