#!/usr/bin/python3
"""Simulated scans: exact projections, counted quanta, displaced projections, rings; and what puts them right again."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import scipy.stats as stats
except ImportError as missing:
    print(f"skip simulation: {missing}")
    sys.exit(0)

from pipelines import Difference, near, refused, run, same, test


def number(expression):
    return next(iter(run(expression, table=True).values()))[0]


def check(condition, what):
    if not condition:
        raise Difference(str(what))


@test
def exact_projections_are_what_finer_and_finer_phantoms_come_to():
    for geometry, shape in (("parallel(range(0, 170, 10), center = C)", "[N, N]"), ("parallel(range(0, 170, 34))", "[N, N, N]"),
                            ("cone(range(0, 350, 70), 4 * N, N)", "[N, N, N]"), ("cone(range(0, 350, 50), 3 * N, 0)", "[N, N]")):
        errors = []
        for n in (32, 96):
            text = geometry.replace("C", str(0.55 * n)).replace("N", str(n))
            size = shape.replace("N", str(n))
            exact, lines = run(f"xray_phantom({size}, {text})"), run(f'xray(phantom("shepp-logan", {size}), {text})')
            errors.append(np.abs(exact - lines).mean() / np.abs(exact).mean())
        check(errors[1] < 0.05 and errors[1] < 0.6 * errors[0], f"{geometry}: {errors}")


@test
def exact_projections_fix_the_sense_of_rotation():
    exact = run("xray_phantom([60, 60], parallel([30]))")[0]
    turned = run('xray(phantom("shepp-logan", [60, 60]), parallel([-30]))')[0]
    right = run('xray(phantom("shepp-logan", [60, 60]), parallel([30]))')[0]
    check(np.abs(exact - right).mean() < 0.5 * np.abs(exact - turned).mean(), "the phantom turns the wrong way")


@test
def a_reconstruction_of_exact_projections_is_the_phantom():
    geometry = "parallel(range(0, 180, count = 360))"
    volume = run(f'fbp(xray_phantom([128, 128], {geometry}), {geometry}, "hann")')
    head = run('phantom("shepp-logan", [128, 128])')
    inside = ndimage.binary_erosion(head > 0.05, iterations=6)
    check(np.abs(volume - head)[inside].mean() < 0.02, np.abs(volume - head)[inside].mean())


@test
def counts_have_the_distribution_of_quanta():
    for mean in (0.3, 4, 9.9, 10.1, 60, 5000):
        counts = run(f"poisson(a * {mean}, seed = 7)", a=np.ones((300, 400), np.float32)).ravel()
        check(np.all(counts == np.round(counts)) and counts.min() >= 0, "whole numbers")
        edges = np.unique(stats.poisson.ppf(np.linspace(0.05, 0.95, 13), mean))
        seen = np.histogram(counts, np.concatenate([[-1], edges, [np.inf]]) + 0.5)[0]
        expected = np.diff(np.concatenate([[0], stats.poisson.cdf(edges, mean), [1]])) * counts.size
        chance = stats.chisquare(seen, expected).pvalue
        check(chance > 1e-4, f"mean {mean}: chance {chance}")
    same(run("poisson(a)", a=np.array([[0, -3, 0]], np.float32)), np.zeros((1, 3), np.float32), "nothing expected")


@test
def noise_depends_on_seed_and_place_alone():
    image = np.random.default_rng(0).random((7, 30, 41)).astype(np.float32) * 40
    whole = run("poisson(a, seed = 5)", a=image)
    same(run("poisson(a, seed = 5)", "--chunk", "3x11x13", a=image), whole, "chunks")
    same(run("poisson(a, seed = 5)[2:5, 4:20, 7:30]", a=image), whole[2:5, 4:20, 7:30], "a part")
    check(np.mean(run("poisson(a, seed = 6)", a=image) == whole) < 0.3, "another seed")
    check(abs(np.corrcoef((whole - image)[:, :, 1:].ravel(), (whole - image)[:, :, :-1].ravel())[0, 1]) < 0.03, "neighbours")


@test
def exposure_is_undone_by_flatfield_and_minus_log():
    random = np.random.default_rng(1)
    lines = random.random((20, 6, 30)).astype(np.float32) * 2
    flat, dark = (random.uniform(*r, (n, 6, 30)).astype(np.float32) for r, n in (((4e6, 6e6), 3), ((50, 100), 2)))
    back = "minus_log(flatfield(expose(p, f, d, noise = N), f, d))"
    near(run(back.replace("N", "false"), p=lines, f=flat, d=dark), lines, "without noise", 1e-4)
    noisy = run(back.replace("N", "true"), p=lines, f=flat, d=dark) - lines
    share = np.exp(lines)  # the deviation of the logarithm of a count N is 1 / sqrt(N)
    spread = (noisy * np.sqrt((flat.mean(0) - dark.mean(0)) / share)).std()
    check(0.95 < spread < 1.05, spread)
    refused("expose(p, f)", "flat must be 6 rows of 30 columns", p=lines, f=flat[:, :5].copy())


@test
def aligned_projections_agree_again():
    random = np.random.default_rng(2)
    image = ndimage.gaussian_filter(random.random((60, 70)), 2).astype(np.float32)
    moves = random.integers(-5, 6, (9, 2))
    series = np.stack([ndimage.shift(image, move, order=1, mode="nearest") for move in moves]).astype(np.float32)
    straight = run('align(name_axes(a, "angle z x"))', a=series)
    inner = (slice(None), slice(14, -14), slice(14, -14))
    same(straight[inner], np.broadcast_to(straight[inner][:1], straight[inner].shape), "one image, moved")
    same(run('align(name_axes(a, "angle z x"))', "--chunk", "2x17x23", a=series), straight, "chunks")
    parts = run('align(misalign(name_axes(a, "angle z x"), 3), subpixel = true)', a=np.stack([image] * 9))
    check(np.abs(parts - parts.mean(0))[inner].mean() < 0.25 * np.abs(
        run('misalign(name_axes(a, "angle z x"), 3)', a=np.stack([image] * 9)) - image)[inner].mean(), "parts of pixels")


@test
def a_displaced_tilt_series_is_put_straight():
    series = 'xray(phantom("shepp-logan", [48, 64, 64]), parallel(range(-60, 60, 3)))'
    clean, moved, straight = (run(call.replace("S", series)) for call in ("S * 1", "misalign(S, 4, whole = true)",
                                                                          "align(misalign(S, 4, whole = true))"))
    errors = []
    for images in (moved, straight):
        best = [min((np.abs(a - np.roll(b, (dz, dx), (0, 1))).mean(), dz, dx) for dz in range(-9, 10) for dx in range(-9, 10))[1:]
                for a, b in zip(clean[::4], images[::4])]
        errors.append(np.std(best, axis=0))
    check(errors[1][0] == 0 and errors[1][1] < 1 and min(errors[0]) > 1.5, errors)  # along the axis exact, across it by one


@test
def rings_are_cleaned_in_the_volume():
    lines = run('xray(phantom("shepp-logan", [2, 96, 96]), parallel(range(0, 179)))')
    bad = lines.copy()
    bad[:, :, [30, 55, 70]] += 1.5
    y, x = np.mgrid[:96, :96] - 47.5
    disk = (y**2 + x**2 < 44**2) & (y**2 + x**2 > 25)
    pipeline = 'fbp(name_axes(p, "angle z x"), parallel(range(0, 179)))'
    clean = run(pipeline, p=lines)

    def error(call, projections):
        return np.sqrt(((run(call.replace("F", pipeline), p=projections) - clean)[:, disk]**2).mean())

    ringed, kept = error("F * 1", bad), error("remove_rings_polar(F)", lines)
    after = {n: error(f"remove_rings_polar(F, sectors = {n})", bad) for n in (1, 4)}
    check(after[4] < 0.7 * ringed and after[1] < 0.9 * ringed and kept < 0.2 * ringed, (ringed, after, kept))
    same(run("remove_rings_polar(v)", "--chunk", "1x20x30", v=clean), run("remove_rings_polar(v)", v=clean), "chunks")


@test
def centres_are_found_by_three_methods():
    for center in (28.3, 31.5, 35, 36.75):
        scan = f'xray(phantom("shepp-logan", [3, 64, 64]), parallel(range(0, 180, 2), center = {center}))'
        for method in ("mirror", "phase", "vo"):
            found = number(f'find_center({scan}, parallel(range(0, 180, 2)), "{method}")')
            check(abs(found - center) < 0.15, f"{method}: {found}, not {center}")
    noisy = f'poisson(3 * {scan}) / 3'
    for method in ("mirror", "vo"):
        found = number(f'find_center({noisy}, parallel(range(0, 180, 2)), "{method}")')
        check(abs(found - 36.75) < 0.5, f"{method} with noise: {found}")
    p = np.ones((19, 4, 16), np.float32)
    refused('find_center(name_axes(p, "angle z x"), parallel(range(0, 90, 5)), "vo")', "over half a turn", p=p)
    refused('find_center(name_axes(p, "angle z x"), parallel(range(0, 90, 5)), "phase")', "half a turn apart", p=p)


@test
def a_known_geometry_makes_alignment_sharper_and_keeps_the_centre():
    geometry = "parallel(range(0, 178, 2))"
    clean = f'xray(phantom("shepp-logan", [40, 48, 48]), {geometry})'
    straight = run(f"sirt({clean}, {geometry}, iterations = 5)")
    calls = ("D", "align(D)", f"align(D, geometry = {geometry})", f"align(D, subpixel = true, geometry = {geometry})")
    for seed in (3, 4):
        errors, displaced = [], f"misalign({clean}, 2.5, seed = {seed})"
        for call in calls:
            volume = run(f"sirt({call.replace('D', displaced)}, {geometry}, iterations = 5)")
            shift = np.subtract(ndimage.center_of_mass(straight), ndimage.center_of_mass(volume))
            moved = np.fft.ifftn(ndimage.fourier_shift(np.fft.fftn(volume), shift)).real
            errors.append(np.sqrt(np.mean((moved - straight)[6:-6, 6:-6, 6:-6]**2)))
        check(max(errors[2:]) < 0.6 * min(errors[:2]), errors)
        for method in ("mirror", "phase", "vo"):
            found = number(f'find_center({calls[3].replace("D", displaced)}, {geometry}, "{method}")')
            check(abs(found - 23.5) < 0.35, f"{method}, seed {seed}: {found}")
    flat = np.ones((6, 8, 16), np.float32)
    try:
        run('align(name_axes(a, "angle z x"), geometry = parallel(range(0, 150, 30)))', a=flat)
        raise AssertionError("an even image has no centre of mass")
    except Difference as told:
        check("projection 0 is not brighter than its border" in str(told), told)
    for given, words in (("parallel([1, 2, 3])", "3 angles for 6 projections"),
                         ("cone(range(0, 150, 30), 100, 50)", "geometry must be parallel")):
        refused(f'align(name_axes(a, "angle z x"), geometry = {given})', words, a=flat)


@test
def residuals_are_those_of_the_images_that_iterations_make():
    lines = run('xray(phantom("shepp-logan", [3, 24, 24]), parallel(range(0, 165, 15)))')
    follow = 'residuals(name_axes(p, "angle z x"), parallel(range(0, 165, 15)), "sirt", iterations = 4)'
    table = run(follow, table=True, p=lines)
    same(table["slice"], np.repeat(np.arange(3.0), 4), "slices")
    same(table["iteration"], np.tile(np.arange(1.0, 5), 3), "iterations")
    volume = 'sirt(name_axes(p, "angle z x"), parallel(range(0, 165, 15)), iterations = 3)'
    rest = run(f"p - name_axes(xray({volume}, parallel(range(0, 165, 15))), \"z y x\")", p=lines)
    expected = np.sqrt((rest.astype(float)**2).sum((0, 2)) / (lines.astype(float)**2).sum((0, 2)))
    near(table["residual"][3::4], expected, "before the fourth", 1e-5)
    same(run(follow, "--chunk", "4x2x9", table=True, p=lines)["residual"], table["residual"], "chunks")
    for method in ("art", "sart", "cgls", "mlem"):
        falling = run(follow.replace("sirt", method), table=True, p=lines)["residual"].reshape(3, 4)
        check(np.all(np.diff(falling, axis=1) < 0), f"{method}: {falling}")
    stopped = run(follow.replace("iterations = 4", "iterations = 50, stop = 0.3"), table=True, p=lines)
    check(3 < len(stopped["slice"]) < 60 and stopped["residual"].min() > 0.3, "a good slice takes no step")
    refused('residuals(name_axes(p, "angle z x"), cone(range(0, 165, 15), 100, 50), subsets = 2)', "only art and sart", p=lines)


test.main()
