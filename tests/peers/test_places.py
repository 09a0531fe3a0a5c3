#!/usr/bin/python3
"""Where voxels lie: spacing, units and the matrix to the world survive what does not change them, and move with what does.
nibabel says what is right."""
import csv
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import data, main, run, test  # noqa: E402

try:
    import nibabel as nib
    import numpy as np
except ImportError as missing:
    print(f"skip places: {missing}")
    sys.exit(0)

TURNED = np.array([[-1.4, 0.3, 0.1, 90], [0.2, 1.9, -0.2, -126], [0.1, 0.3, 2.9, -72], [0, 0, 0, 1]])
SHAPE = (12, 17, 9)


def save(folder, name, matrix=TURNED, shape=SHAPE, seed=1, code=4):
    """A random image; x first, as nibabel has it."""
    array = np.random.default_rng(seed).normal(size=shape).astype("float32")
    image = nib.Nifti1Image(array, matrix)
    image.set_sform(matrix, code)
    image.header.set_xyzt_units("mm", "sec")
    nib.save(image, f"{folder}/{name}")
    return array


def compute(text, folder, code=0):
    return run("run", "-q", "-e", text, folder=folder, code=code)


def made(text, folder):
    """What a pipeline gives, as nibabel reads it."""
    compute(f'write({text}, "made/out.nii.gz")', folder)
    image = nib.load(f"{folder}/made/out.nii.gz")
    image.get_fdata()
    shutil.rmtree(f"{folder}/made")
    return image


def close(image, matrix):
    assert np.allclose(image.affine, matrix, atol=1e-4), f"{image.affine.tolist()}, not {matrix.tolist()}"


def moved(matrix, *start, step=(1, 1, 1)):
    """The matrix of a part, whose first voxel and steps are given x first."""
    change = np.diag([*step, 1.0])
    change[:3, 3] = start
    return matrix @ change


@test
def a_group_mean_has_the_matrix_of_its_subjects(folder):
    arrays = [save(folder, f"sub-{k}.nii.gz", seed=k) for k in range(12)]
    mean = made('project(read("sub-*.nii.gz", stack = "t"), "t", "mean")', folder)
    close(mean, TURNED)
    assert mean.header["sform_code"] == 4 and mean.header.get_xyzt_units()[0] == "mm"
    assert np.allclose(mean.get_fdata(), np.mean(arrays, axis=0), atol=1e-6)
    whole = made('read("sub-*.nii.gz", stack = "t")', folder)
    close(whole, TURNED)
    assert whole.shape == (*SHAPE, 12)
    contrast = 'project(read("sub-[0-4].nii.gz", stack = "t"), "t", "mean") - ' \
               'project(read("sub-[5-9].nii.gz", stack = "t"), "t", "mean")'
    close(made(contrast, folder), TURNED)


@test
def what_is_made_of_all_items_has_their_matrix(folder):
    arrays = [save(folder, f"sub-{k}.nii.gz", seed=k) for k in range(4)]
    mean = np.mean(arrays, axis=0)
    for text in ('project(read("sub-*.nii.gz"), "item", "mean")', 'project(together(read("sub-*.nii.gz")), "item", "mean")',
                 'project(read("sub-*.nii.gz") * 1, "item", "mean")'):
        image = made(text, folder)
        close(image, TURNED)
        assert image.header["sform_code"] == 4 and image.header.get_xyzt_units()[0] == "mm", text
        assert np.allclose(image.get_fdata(), mean, atol=1e-6), text
    whole = made('together(read("sub-*.nii.gz"))', folder)
    close(whole, TURNED)
    assert whole.shape == (*SHAPE, 4)
    compute('c = read("sub-*.nii.gz")\nwrite(project(c, "item", "mean") - c, "less/{stem}.nii.gz")', folder)
    for k, array in enumerate(arrays):
        image = nib.load(f"{folder}/less/sub-{k}.nii.gz")
        close(image, TURNED)
        assert np.allclose(image.get_fdata(), mean - array, atol=1e-5)


@test
def items_that_lie_elsewhere_are_not_averaged(folder):
    arrays = [save(folder, f"sub-{k}.nii.gz", seed=k) for k in range(2)]
    arrays.append(save(folder, "sub-2.nii.gz", seed=2, matrix=moved(TURNED, 3, 0, 0)))
    for text in ('c', 'gaussian(c, 1)'):
        done = compute(f'c = read("sub-*.nii.gz")\nwrite(project({text}, "item", "mean"), "m.nii.gz")', folder, code=None)
        assert done.returncode != 0 and not pathlib.Path(folder, "m.nii.gz").exists(), text
        assert "sub-2.nii.gz does not lie where sub-0.nii.gz does" in done.stderr and "together" in done.stderr, done.stderr
    apart = made('project(together(read("sub-*.nii.gz")), "item", "mean")', folder)  # asked for: of voxels, without a place
    assert np.allclose(apart.get_fdata(), np.mean(arrays, axis=0), atol=1e-6)
    assert apart.header["sform_code"] == 0 and apart.header["qform_code"] == 0
    common = float(compute('mean(together(read("sub-*.nii.gz")))', folder).stdout)
    assert abs(common - np.mean(arrays)) < 1e-5, common


@test
def real_files_keep_their_place_in_a_group(folder):
    source = data("nifti", "anatomical.nii")
    for name in "abc":
        shutil.copy(source, f"{folder}/{name}.nii")
    close(made('project(read("*.nii", stack = "t"), "t", "mean")', folder), nib.load(source).affine)
    series = data("nifti", "example4d.nii.gz")
    mean = made(f'project(read("{series}"), "t", "mean")', folder)
    close(mean, nib.load(series).affine)
    assert np.allclose(mean.get_fdata(), nib.load(series).get_fdata().mean(axis=3), rtol=1e-5)


@test
def files_that_lie_apart_are_named_and_not_stacked(folder):
    save(folder, "a.nii.gz")
    save(folder, "b.nii.gz", moved(TURNED, 2, 0, 0))
    said = compute('write(read("*.nii.gz", stack = "t"), "out.nii")', folder, code=2).stderr
    for part in ("b.nii.gz does not lie where a.nii.gz does", "match = false"):
        assert part in said, said
    free = made('read("*.nii.gz", stack = "t", match = false)', folder)
    assert free.header["sform_code"] == 0 and free.header["qform_code"] == 0
    save(folder, "b.nii.gz", TURNED * (1 + 1e-6))  # what rounding does is no other place
    close(made('read("*.nii.gz", stack = "t")', folder), TURNED)
    np.save(f"{folder}/c.npy", np.zeros(SHAPE[::-1], "float32"))
    said = compute('write(read("{a.nii.gz,c.npy}", stack = "t"), "out.nii")', folder, code=2).stderr
    assert "c.npy does not lie where a.nii.gz does" in said, said


@test
def slices_that_follow_each_other_tell_their_distance(folder):
    for z in range(9):
        save(folder, f"slice{z}.nii", moved(TURNED, 0, 0, z), shape=SHAPE[:2], seed=z)
    close(made('read("slice*.nii", stack = "z")', folder), TURNED)
    save(folder, "slice5.nii", moved(TURNED, 0, 0, 5.5), shape=SHAPE[:2])
    assert "slice5.nii does not lie" in compute('write(read("slice*.nii", stack = "z"), "out.nii")', folder, code=2).stderr


@test
def parts_lie_where_they_were_cut(folder):
    array = save(folder, "a.nii.gz")
    part = made('read("a.nii.gz")[2:8, ::3, 10:1:-2]', folder)
    close(part, moved(TURNED, 10, 0, 2, step=(-2, 3, 1)))
    assert np.array_equal(part.get_fdata(), array[10:1:-2, ::3, 2:8])
    close(made('read("a.nii.gz")[4]', folder), moved(TURNED, 0, 0, 4))
    close(made('read("a.nii.gz")[:, 5]', folder), moved(TURNED, 0, 5, 0))
    close(made('read("a.nii.gz")[:, :, 3]', folder), moved(TURNED, 3, 0, 0))
    thick = made('project(read("a.nii.gz"), "z", "max")', folder)
    close(thick, moved(TURNED, 0, 0, 4, step=(1, 1, 9)))
    assert abs(thick.header["pixdim"][3] - 9 * np.linalg.norm(TURNED[:3, 2])) < 1e-3  # a plane has its thickness


@test
def arithmetic_takes_the_place_of_the_image_that_has_one(folder):
    array = save(folder, "a.nii.gz")
    np.save(f"{folder}/mask.npy", (array.T > 0).astype("float32"))
    for text in ('read("mask.npy") * read("a.nii.gz")', 'read("a.nii.gz") * read("mask.npy")', '1 - read("a.nii.gz")',
                 'where(read("mask.npy") > 0, read("a.nii.gz"), 0)', 'median(gaussian(read("a.nii.gz"), 1), 3)',
                 'name_axes(read("a.nii.gz"), "z y x")', 'label(read("mask.npy") * read("a.nii.gz") > 1)'):
        close(made(text, folder), TURNED)
    assert made('name_axes(read("a.nii.gz"), "x y z") |> name_axes("z y x")', folder).header["sform_code"] == 0


@test
def positions_of_objects_are_those_of_the_world(folder):
    array = np.zeros(SHAPE, "float32")
    array[3:6, 8:10, 4] = 1
    nib.save(nib.Nifti1Image(array, TURNED), f"{folder}/a.nii")
    compute('measure(label(read("a.nii")[1:, 2:, 3:] > 0), properties = "position centroid") |> write("t.csv")', folder)
    row = next(csv.DictReader(open(f"{folder}/t.csv", encoding="utf-8")))
    world = (TURNED @ [4, 8.5, 4, 1])[:3]
    for axis, value in zip("xyz", world):
        assert abs(float(row[f"position_{axis}"]) - value) < 1e-3, (axis, row, world)
    assert float(row["centroid_x"]) == 1


@test
def a_plane_keeps_its_place_in_the_formats_that_know_one(folder):
    flat = np.diag([-2.0, 3, 4, 1])
    flat[:3, 3] = 5, 6, 7
    for number, matrix in enumerate((TURNED, flat)):
        save(folder, "a.nii", matrix)
        compute('write(read("a.nii")[4], "want.nii")', folder)
        want = nib.load(f"{folder}/want.nii").affine
        for ending in ("zarr", "h5", "nrrd", "mha", "nii.gz"):
            compute(f'write(read("a.nii")[4], "p{number}.{ending}")', folder)
            back = made(f'read("p{number}.{ending}")', folder)
            columns = [0, 1] if ending in ("nrrd", "mha") else [0, 1, 2, 3]  # these tell of the axes that are there
            if ending == "mha":  # two axes have no third row
                columns = [] if number == 0 else columns
                assert back.header.get_zooms()[:2] == nib.load(f"{folder}/want.nii").header.get_zooms()[:2]
            rows = slice(0, 2 if ending == "mha" else 3)
            assert np.allclose(back.affine[rows, columns], want[rows, columns], atol=1e-4), (ending, back.affine, want)


@test
def reconstructions_keep_the_place_of_their_rows(folder):
    g = "parallel(range(0, 179))"
    scan = f'xray(phantom("shepp-logan", [20, 16, 16]), {g})'
    info = []
    for text in (f"fbp({scan}[:, 5:9], {g})", f"fbp({scan}, {g})[5:9]"):
        compute(f'write({text}, "v.zarr")', folder)
        info.append([line for line in run("info", "v.zarr", folder=folder).stdout.splitlines() if "origin" in line])
        shutil.rmtree(f"{folder}/v.zarr")
    assert info[0] == info[1] and "z 5" in info[0][0], info


main()
