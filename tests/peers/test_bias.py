#!/usr/bin/python3
"""Bias fields against fields that are known, and against N4 of SimpleITK."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
except ImportError as missing:
    print(f"skip bias: {missing}")
    sys.exit(0)

from pipelines import Difference, near, refused, run, same, test

SHAPE = (48, 60, 56)


def head():
    """A head with noise and a strong field, the whole field, white and grey matter, and a mask of both.

    The phantom has a field of its own, 1 + slopes - 0.1 (x² + y²): its slopes are found where a head without noise is white."""
    z, y, x = np.meshgrid(*[(np.arange(n) + 0.5) / n * 2 - 1 for n in SHAPE], indexing="ij")
    clean = run(f'phantom("t1", {list(SHAPE)}, noise = 0)').astype(float)
    terms = np.stack([np.ones(SHAPE), z, y, x, y * y + x * x], -1)
    near_white = (clean > 560) & (clean < 1150) & (z * z + y * y + x * x < 0.6)
    white = near_white
    for k in range(20):
        own = terms @ np.linalg.lstsq(terms[white], clean[white] / 800, rcond=None)[0]
        white = near_white & (abs(clean / 800 / own - 1) < max(0.3 * 0.7**k, 0.01))
    added = np.exp(0.4 * (0.8 * np.sin(1.7 * z + 0.5) + 0.7 * y * x - 0.6 * x * x + 0.4 * y))
    tissues = [abs(clean / own - value) < 15 for value in (800, 520)]
    image = (run(f'phantom("t1", {list(SHAPE)})') * added).astype(np.float32)
    return image, added * own, tissues, ndimage.binary_erosion(clean > 300)


IMAGE, TRUE, TISSUES, MASK = head()


def variation(image):
    return [image[tissue].std() / image[tissue].mean() for tissue in TISSUES]


def agreement(field):
    inside = TISSUES[0] | TISSUES[1]
    return np.corrcoef(np.log(field[inside]), np.log(TRUE[inside]))[0, 1]


def n4(image, mask, iterations=None):
    """SimpleITK's field: by its own defaults, or with so many rounds and no fewer."""
    import SimpleITK as sitk
    method = sitk.N4BiasFieldCorrectionImageFilter()
    if iterations:
        method.SetMaximumNumberOfIterations(iterations)
        method.SetConvergenceThreshold(0)
    whole = sitk.GetImageFromArray(image)
    method.Execute(whole, sitk.GetImageFromArray(mask.astype(np.uint8)))
    return np.exp(sitk.GetArrayFromImage(method.GetLogBiasFieldAsImage(whole)))


@test
def a_known_field_is_found():
    field = run("bias_field(a, m)", a=IMAGE, m=MASK)
    before, after, least = variation(IMAGE), variation(IMAGE / field), variation(IMAGE / TRUE)
    for was, now, possible in zip(before, after, least):
        assert now - possible < 0.2 * (was - possible), (was, now, possible)
    assert agreement(field) > 0.95, agreement(field)


@test
def shrinking_changes_little():
    fine = run("bias_field(a, m, shrink = 1)", a=IMAGE, m=MASK)
    for shrink in ("2", "[2, 3, 1]"):
        coarse = run(f"bias_field(a, m, shrink = {shrink})", a=IMAGE, m=MASK)
        assert agreement(coarse) > 0.97 * agreement(fine), (shrink, agreement(coarse), agreement(fine))


@test
def simpleitk_finds_the_same_field():
    try:
        import SimpleITK  # noqa: F401
    except ImportError as missing:
        print(f"skip simpleitk_n4: {missing}")
        return
    for where, iterations in ((np.s_[:], [5]), (np.s_[:], [4, 3, 2]), (np.s_[:], [10] * 4), (24, [20, 20])):
        image, mask = np.ascontiguousarray(IMAGE[where]), MASK[where]
        ours = run(f"bias_field(a, m, iterations = {iterations}, tolerance = 0)", a=image, m=mask)
        theirs = n4(image, mask, iterations)[mask]
        near(ours[mask], theirs, f"{iterations} of {image.shape}", 2e-4, theirs)
    theirs = n4(IMAGE, MASK)
    ours = run("bias_field(a, m)", a=IMAGE, m=MASK)  # one round more or less where the change is at the tolerance
    assert agreement(ours) > agreement(theirs) - 0.005, (agreement(ours), agreement(theirs))
    for here, there in zip(variation(IMAGE / ours), variation(IMAGE / theirs)):
        assert here < 1.02 * there, (here, there)


@test
def correct_bias_divides_by_the_field():
    arrays = {"a": (IMAGE[::2, ::2, ::2] / 4).astype(np.int16), "m": MASK[::2, ::2, ::2]}
    for given in ("", ", m", ", shrink = 2", ", m, iterations = [3, 4], width = 0.2, noise = 0.1, points = 5, bins = 100"):
        same(run(f"correct_bias(a{given})", **arrays), run(f"a / bias_field(a{given})", **arrays), given)
    same(run("bias_field(a)", **arrays), run("bias_field(a, a > otsu(a))", **arrays), "otsu")


@test
def each_time_has_a_field_of_its_own():
    image, mask = IMAGE[::2, ::2, ::2], MASK[::2, ::2, ::2]
    movie = np.stack([image, image[::-1], image[:, ::-1] * 2])
    arrays = {"a": movie, "m": mask}
    field = run('bias_field(name_axes(a, "t z y x"), name_axes(m, "z y x"))', **arrays)
    for k, one in enumerate(movie):
        same(field[k], run("bias_field(a, m)", a=one, m=mask), f"t = {k}")


@test
def a_constant_image_has_no_bias():
    same(run("bias_field(a, a > 0)", a=np.full((12, 13), 7, np.uint8)), np.ones((12, 13), np.float32))


@test
def what_makes_no_sense_is_refused():
    image = np.ones((20, 30), np.float32)
    refused("bias_field(a, shrink = 21)", "nothing would be left", a=image)
    refused("bias_field(a, shrink = 1.5)", "whole number", a=image)
    refused("bias_field(a, shrink = [1, 2, 3])", "shrink", a=image)
    refused("bias_field(a, m)", "mask has 31 voxels along x", a=image, m=np.ones((20, 31), bool))
    refused("bias_field(a, m)", "mask has no axis y", a=image, m=np.ones(30, bool))
    refused("bias_field(a, points = 3)", "points", a=image)
    refused("bias_field(a, width = 0)", "width", a=image)
    refused("bias_field(a)", "must be real", a=image.astype(np.complex64))
    refused("bias_field(a, lattice = a)", "lattice must be", a=image)
    refused("bias_lattice(a, a > 0, shape = [40, 40], shrink = 2)", "image has 30", a=image)
    refused("bias_field(a, iterations = [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])", "levels", a=image)
    try:
        run("bias_field(a, a > 5)", a=image)
    except Difference as error:
        assert "no voxels of image above 0 lie in mask" in str(error), error
        return
    raise Difference("a mask without voxels is accepted")


test.main()
