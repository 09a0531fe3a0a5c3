#!/usr/bin/python3
"""resample, resize, crop, pad, flip, rotate90, transpose and bin against numpy, scikit-image and nibabel, with their places in
the world; SimpleITK where it is installed."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import nibabel
    import nibabel.processing
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.measure
    import skimage.transform
    from scipy.spatial.transform import Rotation
except ImportError as missing:
    print(f"skip grids: {missing}")
    sys.exit(0)

from pipelines import FOVEA, ROOT, as_dtypes, near, refused, run, run_all, same, test, tolerance, wide

RANDOM = np.random.default_rng(8)
PLANE = ndimage.gaussian_filter(RANDOM.random((41, 53)), 1) * 100
VOLUME = ndimage.gaussian_filter(RANDOM.random((17, 23, 31)), 1) * 100
TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64"
CHUNK = ("--chunk", "13")
DATA = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data")) / "nifti"
OBLIQUE = np.array([[-1.9, 0.3, 0.2, 40], [0.2, 1.4, -0.5, -30], [0.3, 0.4, 2.8, 11], [0, 0, 0, 1]])
GRID = np.array([[1.5, 0.1, 0, -30], [-0.2, 0, 2.5, -40], [0, 1.8, 0.1, 5], [0, 0, 0, 1]])


def nifti(expression, folder, **images):
    """The NIfTI file that an expression in NIfTI images makes."""
    for name, image in images.items():
        if not pathlib.Path(folder, f"{name}.nii").exists():
            nibabel.save(image, f"{folder}/{name}.nii")
    text = "".join(f'{name} = read("{name}.nii")\n' for name in images) + f'write({expression}, "out.nii")\n'
    done = subprocess.run([FOVEA, "run", "--quiet", "--overwrite", *CHUNK, "-e", text], cwd=folder, capture_output=True,
                          text=True)
    assert done.returncode == 0, f"{expression}: {done.stderr}"
    made = nibabel.load(f"{folder}/out.nii")
    return nibabel.Nifti1Image(np.array(made.dataobj), made.affine, made.header)


def stored(folder, names):
    """What the files hold: matrices are rounded there."""
    return [nibabel.load(f"{folder}/{name}.nii") for name in names]


def volumes():
    """Two NIfTI images of one world, the second on an oblique grid of another orientation."""
    first = nibabel.Nifti1Image(VOLUME.T.astype(np.float32), OBLIQUE)
    second = nibabel.Nifti1Image(np.zeros((29, 21, 25), np.float32), GRID)
    for image in (first, second):
        image.header.set_xyzt_units("mm")
    return first, second


@test
def resample_onto_a_grid_equals_nibabel():
    first, second = volumes()
    with tempfile.TemporaryDirectory() as folder:
        for order in (0, 1, 3):
            for mode in ("constant", "nearest", "mirror"):
                ours = nifti(f'resample(a, b, order = {order}, mode = "{mode}", cval = 5)', folder, a=first, b=second)
                theirs = nibabel.processing.resample_from_to(*stored(folder, "ab"), order=order, mode=mode, cval=5)
                assert np.allclose(ours.affine, theirs.affine, atol=1e-5), ours.affine
                difference = np.abs(ours.get_fdata() - theirs.get_fdata())
                if order == 0:  # ties of the nearest voxel may fall the other way
                    assert np.count_nonzero(difference) <= 2
                else:
                    assert difference.max() < 2e-5 * 100, f"order {order} {mode}: {difference.max()}"


@test
def resample_onto_its_own_grid_changes_nothing():
    first, _ = volumes()
    with tempfile.TemporaryDirectory() as folder:
        ours = nifti("resample(a, a)", folder, a=first)
        same(np.asarray(ours.dataobj), np.asarray(first.dataobj))
        assert np.allclose(ours.affine, first.affine)


@test
def resample_of_real_scans_equals_nibabel():
    for name in ("functional.nii", "anatomical.nii", "example4d.nii.gz"):
        found = sorted(DATA.rglob(name))
        if not found:
            print(f"skip resample_{name}: no such file below {DATA}")
            continue
        image = nibabel.load(found[0])
        if image.ndim == 4:
            image = image.slicer[..., 0]
        if image.ndim != 3 or min(image.shape) < 4:
            continue
        image = nibabel.Nifti1Image(image.get_fdata().astype(np.float32), image.affine, image.header)
        grid = nibabel.Nifti1Image(np.zeros((30, 25, 20), np.float32), image.affine @ np.array(
            [[0.8, 0.3, 0, 1], [-0.3, 0.8, 0.1, 9], [0, 0.1, 1.2, 2], [0, 0, 0, 1]]), image.header)
        with tempfile.TemporaryDirectory() as folder:
            ours = nifti("resample(a, b, order = 1)", folder, a=image, b=grid)
            theirs = nibabel.processing.resample_from_to(*stored(folder, "ab"), order=1)
        assert np.allclose(ours.affine, theirs.affine, atol=1e-4)
        scale = np.abs(image.get_fdata()).max()
        difference = np.abs(ours.get_fdata() - theirs.get_fdata())
        # the edge of what is inside may lie between the two roundings of the affine
        assert np.count_nonzero(difference > 1e-4 * scale) <= 3, f"{name}: {np.count_nonzero(difference > 1e-4 * scale)}"


@test
def resample_to_a_spacing_keeps_the_world():
    first, _ = volumes()
    old = nibabel.affines.voxel_sizes(OBLIQUE)
    with tempfile.TemporaryDirectory() as folder:
        ours = nifti("resample(a, spacing = [1.5, 2, 1.1], order = 1)", folder, a=first)
    new = np.array([1.1, 2, 1.5])  # x y z
    assert ours.shape == tuple(np.floor(np.array(first.shape) * old / new + 0.5)), ours.shape
    expected = OBLIQUE @ np.diag([*(new / old), 1])
    assert np.allclose(ours.affine, expected, atol=1e-4), ours.affine
    theirs = ndimage.affine_transform(first.get_fdata(), np.diag(new / old), output_shape=ours.shape, order=1)
    assert np.abs(ours.get_fdata() - theirs).max() < 1e-3


@test
def simpleitk_resamples_alike():
    try:
        import SimpleITK
    except ImportError as missing:
        print(f"skip simpleitk_resample: {missing}")
        return
    first, second = volumes()
    # ITK reads no sheared grids
    for image, angles, spacing in ((first, [170, 12, -9], [1.9, 1.4, 2.8]), (second, [95, -5, 4], [1.5, 1.8, 2.5])):
        matrix = image.affine.copy()
        matrix[:3, :3] = Rotation.from_euler("xyz", angles, degrees=True).as_matrix() * spacing
        matrix[:3, 3] = [5, -3, 8] - matrix[:3, :3] @ np.array(image.shape) / 2
        image.set_sform(matrix)
        image.set_qform(matrix)
    with tempfile.TemporaryDirectory() as folder:
        ours = nifti("resample(a, b, order = 1, cval = -1)", folder, a=first, b=second).get_fdata()
        moving, fixed = (SimpleITK.ReadImage(f"{folder}/{name}.nii") for name in "ab")
        made = SimpleITK.Resample(moving, fixed, SimpleITK.Transform(), SimpleITK.sitkLinear, -1.0)
        theirs = SimpleITK.GetArrayFromImage(made).T
    inside = (ours > -1) & (theirs > -1)  # ITK also has values up to half a voxel outside
    assert inside.sum() > 1000 and np.abs(ours - theirs)[inside].max() < 1e-3


@test
def resize_equals_skimage():
    modes = {"mirror": "reflect", "reflect": "symmetric", "nearest": "edge", "grid-constant": "constant", "grid-wrap": "wrap"}
    for image, shape in ((PLANE, (20, 70)), (PLANE, (13, 9)), (VOLUME, (30, 11, 31)), (VOLUME.astype(np.float32), (5, 9, 10))):
        for order in (1, 3):
            for mode, theirs in modes.items():
                for smooth in (True, False):
                    text = (f'resize(a, {list(shape)}, order = {order}, mode = "{mode}", cval = 50, '
                            f'anti_aliasing = {str(smooth).lower()})')
                    peer = skimage.transform.resize(image.astype(float), shape, order=order, mode=theirs, cval=50,
                                                    anti_aliasing=smooth, preserve_range=True)
                    near(run(text, *CHUNK, a=image), peer, text, max(tolerance(image), 1e-7 * (mode == "nearest")), image)
    near(run("resize(a, factor = 0.5)", a=PLANE), skimage.transform.resize(PLANE, (21, 27), order=1, preserve_range=True))
    labels = (PLANE > 50).astype(np.int32) * 7
    same(run("resize(a, [20, 70], order = 0)", a=labels), ndimage.zoom(labels, (20 / 41, 70 / 53), order=0, mode="mirror",
                                                                        grid_mode=True))


@test
def crop_pad_flip_transpose_and_rotate90_equal_numpy():
    modes = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "mirror": "reflect", "wrap": "wrap"}
    for image in (*as_dtypes(VOLUME, TYPES), (VOLUME + 1j * VOLUME).astype(np.complex64), VOLUME + 2j * VOLUME):
        same(run('crop(a, [2, 5], [-3, 30], axes = "z x")', *CHUNK, a=image), image[2:-3, :, 5:30])
        same(run("crop(a, 4)", *CHUNK, a=image), image[4:, 4:, 4:])
        for mode, theirs in modes.items():
            named = {"constant_values": 1} if mode == "constant" else {}
            width = ((3, 16), (0, 2), (30, 1)) if mode == "wrap" else ((3, 50), (0, 2), (40, 1))  # numpy 1.24 wraps once
            same(run(f'pad(a, {[b for b, _ in width]}, {[a for _, a in width]}, mode = "{mode}", cval = 1)', *CHUNK, a=image),
                 np.pad(image, width, theirs, **named), f"pad {mode} {image.dtype}")
        same(run("flip(a)", *CHUNK, a=image), image[::-1, ::-1, ::-1])
        same(run('flip(a, "x")', *CHUNK, a=image), image[:, :, ::-1])
        same(run("transpose(a)", *CHUNK, a=image), image.T)
        for words, order in (("y z x", (1, 0, 2)), ("x z y", (2, 0, 1)), ("z x y", (0, 2, 1)), ("z y x", (0, 1, 2))):
            same(run(f'transpose(a, "{words}")', *CHUNK, a=image), image.transpose(order))
        for times in range(-1, 5):
            same(run(f"rotate90(a, {times})", *CHUNK, a=image), np.rot90(image, times, (1, 2)))
        same(run('rotate90(a, 1, "x z")', *CHUNK, a=image), np.rot90(image, 1, (2, 0)))


@test
def planes_larger_than_the_cache_are_turned():
    for dtype in "uint8 uint16 float32 float64 complex128".split():
        for shape in ((1152, 1088), (1151, 1089), (1152, 1093), (70, 30011)):
            image = (RANDOM.random(shape) * 200).astype(dtype)
            expressions = ("transpose(a)", "rotate90(a)", "rotate90(a, 3)", "flip(a)")
            peers = (image.T, np.rot90(image), np.rot90(image, 3), image[::-1, ::-1])
            for text, ours, peer in zip(expressions, run_all(expressions, "--chunk", "40000", a=image), peers):
                same(ours, peer, f"{text} {dtype} {shape}")


def same_world(expression, index):
    """Every voxel of the result lies where the voxel of the input with the same value lies."""
    values = np.arange(5 * 6 * 7, dtype=np.float32).reshape(5, 6, 7)
    image = nibabel.Nifti1Image(values, OBLIQUE)
    with tempfile.TemporaryDirectory() as folder:
        ours = nifti(expression, folder, a=image)
    found = np.asarray(ours.dataobj)
    for at in np.ndindex(found.shape):
        source = index(int(found[at])) if index else np.array(np.unravel_index(int(found[at]), values.shape))
        place, expected = ours.affine @ [*at, 1], OBLIQUE @ [*source, 1]
        assert np.allclose(place, expected, atol=1e-4), f"{expression} {at}: {place[:3]}, not {expected[:3]}"


@test
def every_voxel_keeps_its_place_in_the_world():
    for text in ("crop(a, [1, 2, 3], [6, 5, 5])", 'flip(a, "x z")', 'rotate90(a, 1)', 'rotate90(a, 3, "z y")',
                 'rotate90(a, 2, "z x")', 'rotate90(a, 1, "x z")', "zoom(a, 1, order = 0)", "pad(a, 2)[2:9, 2:8, 2:7]",
                 "resample(a, a, order = 0)"):
        same_world(text, None)
    first, _ = volumes()
    corner, centre = np.array([-0.5] * 3), (np.array(first.shape) - 1) / 2
    with tempfile.TemporaryDirectory() as folder:
        for text, step, start in (("bin(a, [1, 2, 3])", [3, 2, 1], [1, 0.5, 0]),
                                  ("zoom(a, [1, 2, 3], order = 1, grid_mode = true)", [1 / 3, 1 / 2, 1], [-1 / 3, -1 / 4, 0]),
                                  ("pad(a, 4, 9)", [1, 1, 1], [-4, -4, -4])):
            ours = nifti(text, folder, a=first)
            expected = OBLIQUE @ np.block([[np.diag(step), np.array(start)[:, None]], [np.zeros((1, 3)), 1]])
            assert np.allclose(ours.affine, expected, atol=1e-4), f"{text}: {ours.affine}, not {expected}"
        ours = nifti("resize(a, [8, 40, 50])", folder, a=first)
        assert np.allclose(ours.affine @ [*corner, 1], OBLIQUE @ [*corner, 1], atol=1e-4)
        ours = nifti("rotate(a, 30, order = 1)", folder, a=first)
        assert np.allclose(ours.affine @ [*(np.array(ours.shape) - 1) / 2, 1], OBLIQUE @ [*centre, 1], atol=1e-4)


@test
def bin_equals_skimage_and_numpy():
    def blocks(image):
        z, y, x = (n // e for n, e in zip(image.shape, (2, 3, 4)))
        return image[:z * 2, :y * 3, :x * 4]

    for image in as_dtypes(VOLUME, TYPES):
        for name, peer in (("mean", np.mean), ("sum", np.sum), ("median", np.median)):
            theirs = skimage.measure.block_reduce(blocks(image).astype(float), (2, 3, 4), peer)
            ours = run(f'bin(a, [2, 3, 4], "{name}")', *CHUNK, a=image)
            assert ours.dtype == (np.float64 if name == "sum" else wide(image)), f"{name} of {image.dtype}: {ours.dtype}"
            near(ours, theirs, f"{name} {image.dtype}", tolerance(image), image)
        cut = blocks(image // 10 if image.dtype != bool else image)
        parts = skimage.util.view_as_blocks(cut, (2, 3, 4)).reshape(*(n // e for n, e in zip(cut.shape, (2, 3, 4))), 24)
        theirs = np.apply_along_axis(lambda v: np.unique(v)[np.unique(v, return_counts=True)[1].argmax()], 3, parts)
        same(run('bin(a, [2, 3, 4], "mode")', *CHUNK, a=cut), theirs.astype(cut.dtype), f"mode {image.dtype}")
    for dtype in (np.uint8, np.uint16):  # sums of whole numbers are exact
        image = np.random.default_rng(3).integers(0, np.iinfo(dtype).max, (48, 131), dtype, endpoint=True)
        image[:16, :16] = np.iinfo(dtype).max
        for edge in ((2, 2), (1, 2), (2, 3), (4, 2), (16, 16)):
            y, x = (n // e for n, e in zip(image.shape, edge))
            sums = image[:y * edge[0], :x * edge[1]].reshape(y, edge[0], x, edge[1]).sum((1, 3), dtype=np.int64)
            theirs = np.float32(sums) / np.float32(edge[0] * edge[1])
            same(run(f"bin(a, {list(edge)})", *CHUNK, a=image), theirs, f"{dtype} {edge}")
    near(run('bin(a, 5, axes = "y")', a=VOLUME), VOLUME[:, :20].reshape(17, 4, 5, 31).mean(2))
    holes = PLANE.copy()
    holes[3, 4] = np.nan
    assert np.isnan(run('bin(a, 2, "median")', a=holes)).sum() == 1


@test
def mistakes_are_named_before_anything_runs():
    refused("crop(a, 5, 5)", "takes nothing of axis y", a=PLANE)
    refused('crop(a, 5, axes = "z")', "no axis z; it has y, x", a=PLANE)
    refused("crop(a, [1, 2, 3])", "start has 3 numbers", a=PLANE)
    refused('flip(a, "q")', "no axis q", a=PLANE)
    refused('transpose(a, "x")', "all must be named", a=PLANE)
    refused('rotate90(a, 1, "x")', "a plane has two axes", a=PLANE)
    refused("bin(a, 100)", "only 41 voxels", a=PLANE)
    refused("bin(a, 1.5)", "whole number", a=PLANE)
    refused("resize(a)", "either shape or factor", a=PLANE)
    refused("resize(a, [5, 5, 5])", "shape has 3 numbers", a=PLANE)
    refused("resize(a, factor = 0.001)", "factor gives 0 voxels along y", a=PLANE)
    refused("resample(a)", "either onto or spacing", a=PLANE)
    refused("resample(a, spacing = [1, 2, 3])", "spacing has 3 numbers", a=PLANE)
    refused("resample(a, b)", "same spatial axes", a=PLANE, b=VOLUME)
    refused("pad(a, -1)", "before", a=PLANE)


test.main()
