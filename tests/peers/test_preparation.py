#!/usr/bin/python3
"""What happens to projections before and after reconstruction, against numpy, scipy and TomoPy's published arrays."""
import os
import pathlib
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
except ImportError as missing:
    print(f"skip preparation: {missing}")
    sys.exit(0)

from pipelines import ROOT, Difference, near, refused, run, same, test

DATA = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data")) / "tomography"
RANDOM = np.random.default_rng(0)


@test
def flatfield_equals_its_formula():
    raw, flat, dark = (RANDOM.integers(low, high, shape).astype(np.uint16)
                       for low, high, shape in ((100, 900, (7, 11, 13)), (800, 1000, (3, 11, 13)), (5, 20, (2, 11, 13))))
    f, d = flat.astype(np.float32).mean(0), dark.astype(np.float32).mean(0)
    near(run("flatfield(p, f, d)", p=raw, f=flat, d=dark), (raw - d) / (f - d), "flat and dark", 1e-6)
    near(run("flatfield(p, f)", p=raw, f=flat[0].copy()), raw / flat[0].astype(float), "one flat", 1e-6)
    same(run("flatfield(p, f, d)", "--chunk", "2x5x6", p=raw, f=flat, d=dark), run("flatfield(p, f, d)", p=raw, f=flat, d=dark))


@test
def flatfield_equals_tomopy():
    if not DATA.exists():
        print("skip flatfield_equals_tomopy: no test data at tomography")
        return
    arrays = {name: np.load(DATA / f"{name}.npy") for name in ("tomo", "flat", "dark", "normalize")}
    near(run("flatfield(p, f, d)", p=arrays["tomo"], f=arrays["flat"], d=arrays["dark"]), arrays["normalize"], "normalize", 1e-6)


@test
def reconstructions_agree_with_tomopy():
    if not DATA.exists():
        print("skip reconstructions_agree_with_tomopy: no test data at tomography")
        return
    projections, angles = np.load(DATA / "proj.npy"), np.load(DATA / "angle.npy")
    geometry = f'parallel(angles = {[float(a) for a in angles]}, unit = "rad")'
    y, x = np.mgrid[:48, :48] - 23.5
    disk = y**2 + x**2 < 22**2
    for call, name in (("backproject(P, G)", "fbp"), ("sirt(P, G, iterations = 4)", "sirt"),
                       ("art(P, G, iterations = 4, relaxation = 1)", "art")):
        ours = run(call.replace("P", 'name_axes(p, "angle z x")').replace("G", geometry), p=projections)
        theirs = np.load(DATA / f"{name}.npy")
        alike = np.corrcoef(ours[:, disk].ravel(), theirs[:, disk].ravel())[0, 1]  # theirs counts lengths in voxels, ours lines
        if alike < 0.97:
            raise Difference(f"{name}: correlation {alike}")


@test
def exact_lengths_equal_tomopy():
    if not DATA.exists():
        print("skip exact_lengths_equal_tomopy: no test data at tomography")
        return
    projections, angles = np.load(DATA / "proj.npy"), np.load(DATA / "angle.npy")
    geometry = f'parallel(angles = {[float(a) for a in angles]}, unit = "rad")'
    for name, method in (("fbp", "backproject"), ("art", "art"), ("sirt", "sirt")):
        ours = run(f'siddon(name_axes(p, "angle z x"), {geometry}, "{method}", iterations = 4, initial = 1e-6)', p=projections)
        theirs = np.load(DATA / f"{name}.npy")
        error = np.abs(ours - theirs).max() / np.abs(theirs).max()
        if error > 1e-5:
            raise Difference(f"{name}: relative difference {error}")


@test
def minus_log_is_finite():
    share = np.array([[1, 0.5, 0.25], [0, -1, 1e-9]], np.float32)
    near(run("minus_log(a)", a=share), -np.log(np.maximum(share, 1e-6)), "minus_log", 1e-6)


@test
def specks_become_the_median():
    image = RANDOM.integers(90, 110, (5, 30, 31)).astype(np.uint16)
    image[2, 10, 10] = image[4, 0, 3] = 60000
    median = np.stack([ndimage.median_filter(plane, 3) for plane in image])
    peer = np.where(image.astype(float) - median > 500, median, image)
    same(run('remove_outliers(name_axes(a, "angle z x"), 500)', a=image), peer, "specks")


@test
def the_circle_is_that_of_distances():
    image = RANDOM.random((3, 20, 27)).astype(np.float32)
    y, x = np.mgrid[:20, :27] - np.array([9.5, 13.0])[:, None, None]
    for radius in (1, 0.7):
        same(run(f"circle(a, {radius}, value = 5)", a=image),
             np.where(y**2 + x**2 <= (radius * 10)**2, image, np.float32(5)), str(radius))


@test
def stripes_go_and_the_rest_stays():
    smooth = ndimage.gaussian_filter(RANDOM.random((60, 4, 80)), (0, 0, 8)) * 20
    striped = smooth.copy()
    striped[:, :, [17, 50, 51]] += [1.5, -0.7, -0.7]
    ours = run('remove_rings(name_axes(a, "angle z x"))', a=striped.astype(np.float32))
    mean = striped.mean(0)
    padded = [[np.median(row[max(x - 4, 0):x + 5]) for x in range(80)] for row in mean]
    near(ours, striped - (mean - np.array(padded)), "formula", 1e-5)
    if np.abs(ours - smooth)[:, :, 17].max() > 0.2:
        raise Difference("the stripe is still there")
    same(run('remove_rings(name_axes(a, "z angle x"))', a=striped.astype(np.float32).swapaxes(0, 1).copy()).swapaxes(0, 1), ours)


@test
def the_centre_of_rotation_is_found():
    volume = np.zeros((6, 61, 61), np.float32)
    volume[:, 15:32, 20:51] = 1
    volume[2:5, 30:45, 12:20] = 2
    for center in (30.0, 33.5, 26.25):
        text = f"find_center(xray(a, parallel(range(0, 180, 4), center = {center})), parallel(range(0, 180, 4)))"
        for chunk in ((), ("--chunk", "3x2x17")):
            found = run(text, *chunk, table=True, a=volume)["find_center"][0]
            if abs(found - center) > 0.15:
                raise Difference(f"{center}: found {found}")


@test
def what_does_not_fit_is_told():
    raw = np.ones((4, 5, 6), np.uint16)
    for text, words in (("flatfield(a)", "flatfield needs flat"),
                        ("flatfield(a, a[:, :, 0:5])", "flat must be 5 rows of 6 columns"),
                        ("remove_rings(a)", 'axes = "angle z x"'),
                        ('remove_rings(name_axes(a, "angle z x"), 4)', "must be odd"),
                        ('find_center(name_axes(a, "angle z x"), parallel([0, 50, 100, 150]))', "fewer than 8 columns"),
                        ("circle(a)", "volume must be float32")):
        refused(text, words, a=raw)


test.main()
