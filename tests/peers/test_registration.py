#!/usr/bin/python3
"""register, transform, stabilise and motion against motions that are known, scipy, nibabel and SimpleITK."""
import csv
import gzip
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
    import skimage.data
    import tifffile
except ImportError as missing:
    print(f"skip registration: {missing}")
    sys.exit(0)

from pipelines import FOVEA, Difference, near, refused, run, same, test

RANDOM = np.random.default_rng(6)
LEFT = np.diag([-1.0, -1.0, 1.0, 1.0])  # between NIfTI's world and ITK's
OBLIQUE = np.array([[-1.9, 0.3, 0.2, 40], [0.2, 1.4, -0.5, -30], [0.3, 0.4, 2.8, 11], [0, 0, 0, 1]])
GRID = np.array([[1.5, 0.1, 0, -30], [-0.2, 0, 2.5, -40], [0, 1.8, 0.1, 5], [0, 0, 0, 1]])


def turned(degrees, about):
    about = np.array(about, float) / np.linalg.norm(about)
    cross = np.cross(about, np.eye(3)).T
    angle = np.deg2rad(degrees)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def noisy(image, sigma):
    return image + RANDOM.normal(0, sigma, image.shape)


def pair(noise):
    """A picture, the same turned by 7 degrees and moved, and the transform between them as x, y."""
    whole = ndimage.gaussian_filter(np.random.default_rng(1).random((300, 300)), 3)
    whole = (whole - whole.min()) / np.ptp(whole) * 200
    angle = np.deg2rad(7)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle, by = np.array([149.5, 149.5]), np.array([3.3, -5.7])
    moved = ndimage.affine_transform(whole, turn.T, offset=middle - turn.T @ (middle + by))
    inside = np.s_[50:250, 50:250]
    middle = middle - 50
    matrix = np.column_stack([turn, middle + by - turn @ middle])  # of y, x
    matrix = matrix[::-1][:, [1, 0, 2]]
    return noisy(moved[inside], noise).astype(np.float32), noisy(whole[inside], noise).astype(np.float32), matrix


def mean_error(found, true, points):
    n = len(found)
    return np.linalg.norm(points @ (found - true)[:, :n].T + (found - true)[:, n], axis=1).mean()


@test
def shifts_are_found_within_a_fiftieth_of_a_voxel():
    image = skimage.data.camera().astype(float)
    for by in ((3.3, -1.7), (-0.45, 0.2), (31.25, -48.6), (-5.1, 80.72)):
        moved = ndimage.shift(image, by, order=5, mode="nearest")
        inside = np.s_[90:-90, 90:-95]
        found = run('register(m, f, kind = "shift")', m=noisy(moved[inside], 5), f=noisy(image[inside], 5))
        same(found[:, :2], np.eye(2))
        assert np.abs(found[::-1, 2] - by).max() < 0.02, (by, found)


@test
def shifts_of_pictures_with_little_contrast_are_found():
    """Smooth pictures with few edges, moved by a Fourier shift and by a spline, with noise of a fiftieth of their range."""
    random = np.random.default_rng(8)
    for name in ("cell", "moon", "page", "coins"):
        image = getattr(skimage.data, name)().astype(float)
        noise = 0.02 * np.ptp(np.percentile(image, (1, 99)))
        for by in ((0.3, -0.7), (-4.37, 5.12), (0.5, 0.25)):
            turned_waves = ndimage.fourier_shift(np.fft.fft2(image), by)
            for moved in (np.fft.ifft2(turned_waves).real, ndimage.shift(image, by, order=3, mode="mirror")):
                pair_of = [(a + random.normal(0, noise, a.shape))[12:-12, 12:-12] for a in (moved, image)]
                found = run('register(m, f, kind = "shift")', m=pair_of[0], f=pair_of[1])[::-1, 2]
                assert np.abs(found - by).max() < 0.02, (name, by, found)


def fine_texture(shape, by, low=0.3, high=0.4):
    """Noise of these cycles a voxel alone, moved by a Fourier shift, and as it was."""
    whole = np.fft.fftn(np.random.default_rng(3).normal(size=[n + 320 for n in shape]))
    frequency = np.sqrt(sum(f**2 for f in np.meshgrid(*map(np.fft.fftfreq, whole.shape), indexing="ij")))
    whole *= (frequency >= low) & (frequency <= high)
    inside = tuple(np.s_[160:-160] for _ in shape)
    return [np.fft.ifftn(waves).real[inside] * 1000 for waves in (ndimage.fourier_shift(whole, by), whole)]


@test
def shifts_of_fine_texture_are_found_on_long_axes():
    """What half the resolution would mistake for something coarser; also with light that does not move, and with noise."""
    random = np.random.default_rng(4)
    light = 500 * np.outer(np.hanning(1280)[200:840], np.hanning(1280)[500:1140])
    for by in ((7, -13), (2.5, 3.5), (-150, 201), (260.5, -21.25)):
        moved, image = fine_texture((640, 640), by)
        for add in (0, light):
            found = run('register(m, f, kind = "shift")', m=moved + add, f=image + add)[::-1, 2]
            assert np.abs(found - by).max() < 0.05, (by, found)
    for low, high in ((0.2, 0.3), (0.4, 0.5), (0, 0.7)):
        moved, image = (a + random.normal(0, a.std() / 10, a.shape) for a in fine_texture((300, 680), (7, -13), low, high))
        found = run('register(m, f, kind = "shift")', m=moved, f=image)[::-1, 2]
        assert np.abs(found - (7, -13)).max() < 0.05, (low, high, found)


@test
def shifts_of_volumes_are_found():
    volume = ndimage.gaussian_filter(RANDOM.random((64, 80, 90)), 1.5) * 100
    moved = ndimage.shift(volume, (1.3, -4.6, 2.25), order=5, mode="nearest")
    inside = np.s_[8:-8, 8:-8, 8:-8]
    found = run('register(m, f, kind = "shift")', m=noisy(moved[inside], 0.2), f=noisy(volume[inside], 0.2))
    assert np.abs(found[::-1, 3] - (1.3, -4.6, 2.25)).max() < 0.02, found


@test
def small_motions_of_three_slices_are_found():
    random = np.random.default_rng(5)
    volume = ndimage.gaussian_filter(random.random((9, 60, 64)), (1, 3, 3))
    volume = (volume - volume.mean()) / volume.std() * 50
    inside, middle = np.s_[3:6, 10:-10, 10:-10], np.array([21.5, 19.5, 1])
    for by in ((0, 0.3, -0.4), (0, 1.3, 0.2)):
        moved = ndimage.shift(volume, by, mode="nearest")[inside]
        fixed = volume[inside] + random.normal(0, 4, moved.shape)
        found = run('register(m, f, init = "world")', m=moved + random.normal(0, 4, moved.shape), f=fixed)
        at_middle = (found[:, :3] @ middle + found[:, 3] - middle)[::-1]
        assert np.abs(at_middle - by).max() < 0.06, (by, at_middle)


@test
def every_metric_finds_a_turned_picture():
    moving, fixed, true = pair(5)
    points = RANDOM.uniform(0, 200, (100, 2))
    for metric in ("mean_squares", "correlation", "mutual_information"):
        for kind in ("rigid", "similarity", "affine"):
            found = run(f'register(m, f, kind = "{kind}", metric = "{metric}")', m=moving, f=fixed)
            assert mean_error(found, true, points) < 0.05, (metric, kind, found)
    inverse = run('register(m, 200 - f, metric = "mutual_information")', m=moving, f=fixed)
    assert mean_error(inverse, true, points) < 0.05, inverse


@test
def a_t1_turned_by_10_degrees_is_brought_back():
    """With a bias field and noise, through oblique matrices: below a tenth of a millimetre, and as good as SimpleITK."""
    with tempfile.TemporaryDirectory() as folder:
        true, points = make_t1(folder)
        for metric in ("correlation", "mutual_information"):
            command(folder, f'register(read("m.nii"), read("f.nii"), metric = "{metric}") |> write("{metric}.npy")')
            found = np.load(f"{folder}/{metric}.npy")
            error = mean_error(found, true, points)
            assert error < 0.1, (metric, error)
        compare_with_simpleitk(folder, true, points, error)


def command(folder, text):
    done = subprocess.run([FOVEA, "run", "--quiet", "--overwrite", "-e", text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}: {done.stderr}"
    return done.stdout


def make_t1(folder):
    """m.nii and f.nii; the transform in ITK's space, and points of the head there."""
    command(folder, 'phantom("t1", [96, 96, 96]) |> write("t1.nii")')
    head = nibabel.load(f"{folder}/t1.nii").get_fdata()
    fixed_matrix, moving_matrix = np.diag([-1.5, -1.5, 1.5, 1.0]), np.diag([1.5, -1.5, 1.5, 1.0])
    fixed_matrix[:3, 3], moving_matrix[:3, 3] = (70, 72, -60), (-75, 70, -63)
    middle = fixed_matrix @ (47.5, 47.5, 47.5, 1)
    true = np.eye(4)
    true[:3, :3] = turned(10, (1, 2, 2))
    true[:3, 3] = middle[:3] + np.array([2, -1, 2]) * 8 / 3 - true[:3, :3] @ middle[:3]
    through = np.linalg.inv(fixed_matrix) @ np.linalg.inv(true) @ moving_matrix
    moved = ndimage.affine_transform(head, through[:3, :3], through[:3, 3])
    z, y, x = np.meshgrid(*[np.linspace(-1, 1, 96)] * 3, indexing="ij")
    sigma = 0.03 * head.max()
    moved = noisy(moved * (1 + 0.2 * z + 0.15 * x * y), sigma).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(moved, moving_matrix), f"{folder}/m.nii")
    nibabel.save(nibabel.Nifti1Image(noisy(head, sigma).astype(np.float32), fixed_matrix), f"{folder}/f.nii")
    points = np.argwhere(head > 0.2 * head.max())[::200] @ fixed_matrix[:3, :3].T + fixed_matrix[:3, 3]
    return (LEFT @ true @ LEFT)[:3], points @ LEFT[:3, :3]


def compare_with_simpleitk(folder, true, points, ours):
    try:
        import SimpleITK as sitk
    except ImportError as missing:
        print(f"skip simpleitk_registers_no_better: {missing}")
        return
    fixed, moving = (sitk.ReadImage(f"{folder}/{name}.nii", sitk.sitkFloat32) for name in "fm")
    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(32)
    method.SetMetricSamplingStrategy(method.RANDOM)
    method.SetMetricSamplingPercentage(0.3, 1)
    method.SetInterpolator(sitk.sitkLinear)
    method.SetOptimizerAsRegularStepGradientDescent(1.0, 1e-4, 100)
    method.SetOptimizerScalesFromPhysicalShift()
    method.SetShrinkFactorsPerLevel([4, 2, 1])
    method.SetSmoothingSigmasPerLevel([2, 1, 0])
    method.SetInitialTransform(sitk.CenteredTransformInitializer(fixed, moving, sitk.Euler3DTransform(),
                                                                 sitk.CenteredTransformInitializerFilter.GEOMETRY))
    found = method.Execute(fixed, moving)
    theirs = np.array([found.TransformPoint(p) for p in points.tolist()])
    error = np.linalg.norm(theirs - points @ true[:, :3].T - true[:, 3], axis=1).mean()
    assert ours < max(1.2 * error, 0.05), (ours, error)


@test
def transform_equals_nibabel_through_oblique_matrices():
    volume = ndimage.gaussian_filter(RANDOM.random((31, 23, 17)), 1).astype(np.float32) * 100
    through = np.eye(4)
    through[:3] = np.column_stack([turned(14, (1, -2, 0.5)) * 1.05, (3, -2, 5)])
    in_world = LEFT @ through @ LEFT
    with tempfile.TemporaryDirectory() as folder:
        for name, image in (("a", nibabel.Nifti1Image(volume, OBLIQUE)),
                            ("b", nibabel.Nifti1Image(np.zeros((29, 21, 25), np.float32), GRID))):
            image.header.set_xyzt_units("mm")
            nibabel.save(image, f"{folder}/{name}.nii")
        np.save(f"{folder}/t.npy", through[:3])
        a, b = (nibabel.load(f"{folder}/{name}.nii") for name in "ab")
        placed = nibabel.Nifti1Image(a.get_fdata(), np.linalg.inv(in_world) @ a.affine)
        for order in (0, 1, 3):
            command(folder, f'transform(read("a.nii"), name_axes(read("t.npy"), "row column"), onto = read("b.nii"), '
                            f'order = {order}) |> write("out.nii")')
            out = nibabel.load(f"{folder}/out.nii")
            theirs = nibabel.processing.resample_from_to(placed, b, order=order)
            assert np.allclose(out.affine, b.affine), out.affine
            differ = np.abs(out.get_fdata() - theirs.get_fdata()) > 2e-3
            assert differ.mean() < (2e-3 if order == 0 else 1e-9), (order, differ.mean())


@test
def the_identity_changes_nothing():
    image = RANDOM.random((31, 43)).astype(np.float32)
    still = np.eye(2, 3)
    for order in (0, 1, 3):
        near(run(f'transform(a, name_axes(t, "row column"), order = {order})', a=image, t=still), image, str(order), 1e-6, image)


@test
def a_transform_alone_on_a_line_is_printed():
    moving, fixed, _ = pair(2)
    matrix = run('register(a, b, iterations = 10)', a=moving, b=fixed)
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "a.npy"), moving)
        np.save(pathlib.Path(folder, "b.npy"), fixed)
        said = command(folder, 'register(read("a.npy"), read("b.npy"), iterations = 10)').split("\n")
        assert said[0].split() == ["row", "x", "y", "shift"], said
        numbers = np.array([line.split()[1:] for line in said[1:3]], float)
        near(numbers, matrix, "matrix", 1e-5)
        call = 'register(read("a.npy"), read("b.npy"), kind = "bspline", iterations = 2)'
        command(folder, f'write(list_transform({call}), "t.csv")\nwrite({call}, "t.npy")')
        with open(pathlib.Path(folder, "t.csv")) as file:
            rows = list(csv.DictReader(file))
        grid = np.load(pathlib.Path(folder, "t.npy"))
        assert len(rows) == grid[0].size, (len(rows), grid.shape)
        for row in rows:
            wanted = grid[:, int(row["y"]), int(row["x"])]
            near(np.array([float(row["shift_x"]), float(row["shift_y"])]), wanted, "displacement", 0)


@test
def transforms_are_those_of_itk():
    with tempfile.TemporaryDirectory() as folder:
        matrix = np.column_stack([turned(20, (1, 2, 3)), (4, 5.5, -1e-7)])
        np.save(f"{folder}/t.npy", matrix)
        command(folder, 'write(name_axes(read("t.npy"), "row column"), "t.tfm")\n')
        command(folder, 'write(read("t.tfm"), "back.npy")')
        same(np.load(f"{folder}/back.npy"), matrix)
        try:
            import SimpleITK as sitk
        except ImportError as missing:
            print(f"skip simpleitk_transforms: {missing}")
            return
        theirs = sitk.ReadTransform(f"{folder}/t.tfm")
        near(np.array(theirs.TransformPoint((1.0, 2.0, 3.0))), matrix[:, :3] @ (1, 2, 3) + matrix[:, 3])
        kinds = [sitk.Euler3DTransform(), sitk.VersorRigid3DTransform(), sitk.Similarity3DTransform(), sitk.Euler2DTransform(),
                 sitk.Similarity2DTransform(), sitk.AffineTransform(2), sitk.TranslationTransform(3), sitk.VersorTransform()]
        for kind in kinds:
            n = kind.GetDimension()
            if kind.GetName() != "TranslationTransform":
                kind.SetCenter(RANDOM.uniform(0, 50, n).tolist())
            kind.SetParameters((np.array(kind.GetParameters()) + RANDOM.uniform(0, 0.3, len(kind.GetParameters()))).tolist())
        kinds.append(sitk.CompositeTransform([kinds[0], kinds[2]]))
        for kind in kinds:
            sitk.WriteTransform(kind, f"{folder}/k.tfm")
            command(folder, 'write(read("k.tfm"), "k.npy")')
            found, point = np.load(f"{folder}/k.npy"), RANDOM.uniform(0, 50, kind.GetDimension())
            near(found[:, :-1] @ point + found[:, -1], np.array(kind.TransformPoint(point.tolist())), kind.GetName(), 1e-12)


def write_plane(path, image, spacing, origin, angle):
    """A MetaImage of a plane, as ITK writes it."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    words = (" ".join(repr(float(x)) for x in numbers) for numbers in (turn.T.ravel(), origin, spacing))
    text = ("ObjectType = Image\nNDims = 2\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n"
            "TransformMatrix = {}\nOffset = {}\nCenterOfRotation = 0 0\nElementSpacing = {}\n".format(*words) +
            f"DimSize = {image.shape[1]} {image.shape[0]}\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n")
    pathlib.Path(path).write_bytes(text.encode() + image.astype("<f4").tobytes())
    return np.column_stack([turn * spacing, origin])  # from voxels x, y to places


@test
def planes_of_itk_lie_where_their_headers_say():
    moving, fixed, of_voxels = pair(1)
    full = lambda m: np.vstack([m, [0, 0, 1]])  # noqa: E731
    for angle in (0, 0.4):
        with tempfile.TemporaryDirectory() as folder:
            at = [write_plane(f"{folder}/m.mha", moving, (0.5, 0.5), (11, -7), angle),
                  write_plane(f"{folder}/f.mha", fixed, (0.5, 0.5), (-30, 22), 0)]
            command(folder, 'm = read("m.mha")\nf = read("f.mha")\nt = register(m, f)\nwrite(sform(m), "s.npy")\n'
                            'write(t, "t.tfm")\nwrite(t, "t.npy")\nwrite(transform(m, t, onto = f, order = 1), "o.mha")\n'
                            'b = register(m, f, kind = "bspline", iterations = 2, start = t)\nwrite(b, "b.tfm")\n'
                            'write(transform(m, b, onto = f, order = 1), "ob.mha")')
            near(np.load(f"{folder}/s.npy"), at[0], "sform", 1e-12)
            true = (full(at[0]) @ full(of_voxels) @ np.linalg.inv(full(at[1])))[:2]
            points = np.array([[x, y, 1] for x in (20, 180) for y in (20, 180)]) @ at[1].T
            error = mean_error(np.load(f"{folder}/t.npy"), true, points)
            assert error < 0.05, (angle, error)
            try:
                import SimpleITK as sitk
            except ImportError as missing:
                print(f"skip simpleitk_planes: {missing}")
                return
            m, f = (sitk.ReadImage(f"{folder}/{name}.mha") for name in "mf")
            for transform, out in (("t", "o"), ("b", "ob")):
                ours = sitk.ReadImage(f"{folder}/{out}.mha")
                for ask in ("GetOrigin", "GetSpacing", "GetDirection"):
                    near(np.array(getattr(ours, ask)()), np.array(getattr(f, ask)()), ask, 1e-12)
                theirs = sitk.Resample(m, f, sitk.ReadTransform(f"{folder}/{transform}.tfm"), sitk.sitkLinear, 0.0)
                ours, theirs = (sitk.GetArrayFromImage(a) for a in (ours, theirs))
                both = (ours != 0) & (theirs != 0)  # ITK's images go on for half a voxel
                assert both.mean() > 0.85 and np.abs(ours - theirs)[both].max() < 0.02, (transform, both.mean())


@test
def a_movie_is_stabilised_and_its_motion_told():
    image = skimage.data.coins().astype(np.float32)
    shifts = [(0, 0), (2.5, -1.25), (-3, 4), (6.75, 0.5)]
    movie = np.stack([ndimage.shift(image, by, order=3, mode="nearest") for by in shifts])[:, 50:250, 60:300]
    ours = run('stabilise(name_axes(m, "t y x"), kind = "shift")', m=movie)
    inside = np.s_[:, 10:-10, 10:-10]
    assert np.abs(ours - movie[0])[inside].mean() < 3 < 20 < np.abs(movie - movie[0])[inside].mean() * 2
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/m.npy", movie)
        command(folder, 'm = name_axes(read("m.npy"), "t y x")\n'
                        'write(motion(register(m, m[0], kind = "shift"), m[0]), "motion.csv")')
        rows = list(csv.DictReader(open(f"{folder}/motion.csv", encoding="utf-8")))
    for number, ((y, x), row) in enumerate(zip(shifts, rows)):
        assert row["t"] == str(number) and abs(float(row["shift_y"]) - y) < 0.03 and abs(float(row["shift_x"]) - x) < 0.03, row
        assert abs(float(row["displacement"]) - np.hypot(x, y)) < 0.05 and float(row["rotation"]) == 0, row
    assert abs(float(rows[2]["step"]) - np.hypot(5.5, 5.25)) < 0.05, rows[2]


@test
def channels_move_together():
    image = skimage.data.coins().astype(np.float32)[50:250, 60:300]
    movie = np.stack([np.stack([image, 255 - image]), np.stack([np.roll(image, 3, 1), 255 - np.roll(image, 3, 1)])])
    ours = run('stabilise(name_axes(m, "t c y x"), kind = "shift")', m=movie)
    inside = np.s_[:, :, 10:-10, 10:-10]
    assert ours.shape == movie.shape and np.abs(ours - movie[:1])[inside].mean() < 1


@test
def motion_is_told_of_turns():
    matrix = np.column_stack([turned(5, (0, 0, 1)) @ turned(-3, (0, 1, 0)) @ turned(2, (1, 0, 0)) * 1.1, (0, 0, 0)])
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/t.npy", matrix)
        told = command(folder, 'motion(name_axes(read("t.npy"), "row column"), zeros([3, 4, 5])) |> write("t.csv")')
        row = next(csv.DictReader(open(f"{folder}/t.csv", encoding="utf-8")))
    for name, value in (("rotation_x", 2), ("rotation_y", -3), ("rotation_z", 5), ("scale", 1.1)):
        assert abs(float(row[name]) - value) < 1e-9, (row, told)
    middle, points = np.array([2, 1.5, 1]), np.argwhere(np.ones((5, 4, 3)))
    assert abs(float(row["shift_z"]) - (matrix[:, :3] @ middle - middle)[2]) < 1e-12
    moved = points @ matrix[:, :3].T - points
    assert abs(float(row["displacement"]) - np.sqrt((moved ** 2).sum(1).mean())) < 1e-12


@test
def the_same_bits_for_every_chunk_and_worker():
    moving, fixed, _ = pair(5)
    texts = ['register(m, f, metric = "mutual_information", kind = "affine")', 'register(m, f, kind = "shift")']
    for text in texts:
        first = run(text, m=moving, f=fixed)
        for more in (("--chunk", "17"), ("--workers", "1"), ("--memory", "80M", "--chunk", "64")):
            same(run(text, *more, m=moving, f=fixed), first, str(more))


@test
def transforms_are_inverted_and_concatenated():
    first, second = (np.column_stack([turned(20, (1, 2, 3)) * 1.1, RANDOM.random(3) * 9]) for _ in range(2))
    one, two = (np.vstack([t, [0, 0, 0, 1]]) for t in (first, second))
    near(run('invert_transform(name_axes(a, "row column"))', a=first), np.linalg.inv(one)[:3], "inverse", 1e-12)
    near(run('concatenate_transforms(name_axes(a, "row column"), name_axes(b, "row column"))', a=first, b=second),
         (two @ one)[:3], "concatenated", 1e-12)
    many = np.stack([first, second])
    ours = run('concatenate_transforms(name_axes(a, "t row column"), name_axes(b, "row column"))', a=many, b=second)
    near(ours, np.stack([(two @ one)[:3], (two @ two)[:3]]), "one after many", 1e-12)
    near(run('invert_transform(name_axes(a, "t row column"))', a=many)[1], np.linalg.inv(two)[:3], "inverse of many", 1e-12)
    fails('invert_transform(name_axes(a, "row column"))', "singular", a=np.ones((2, 3)))
    refused('concatenate_transforms(name_axes(a, "row column"), name_axes(b, "row column"))', "3 dimensions", a=first,
            b=np.eye(2, 3))


def fsl_coordinates(image):
    """From voxels, as FSL has them: x is counted from the other end where the matrix does not mirror."""
    scaled = np.diag([*image.header.get_zooms()[:3], 1.0]).astype(float)
    if np.linalg.det(image.affine) > 0:
        scaled = scaled @ np.array([[-1, 0, 0, image.shape[0] - 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    return scaled


@test
def matrices_of_fsl_are_written_and_read():
    """FLIRT's matrix leads from the moving to the fixed image; in the world it is what nibabel's matrices make of it."""
    through = np.vstack([np.column_stack([turned(14, (1, -2, 0.5)), (3, -2, 5)]), [0, 0, 0, 1]])
    with tempfile.TemporaryDirectory() as folder:
        for name, matrix, shape in (("m", OBLIQUE, (12, 14, 16)), ("f", GRID, (11, 13, 15))):
            nibabel.save(nibabel.Nifti1Image(RANDOM.random(shape).astype(np.float32), matrix), f"{folder}/{name}.nii")
        moving, fixed = (nibabel.load(f"{folder}/{name}.nii") for name in "mf")
        world = LEFT @ through @ LEFT
        theirs = (fsl_coordinates(fixed) @ np.linalg.inv(fixed.affine) @ np.linalg.inv(world) @ moving.affine
                  @ np.linalg.inv(fsl_coordinates(moving)))
        np.save(f"{folder}/t.npy", through[:3])
        command(folder, 'm = read("m.nii")\nf = read("f.nii")\nt = name_axes(read("t.npy"), "row column")\n'
                        'write(fsl_matrix(t, m, f), "t.mat")')
        near(np.loadtxt(f"{folder}/t.mat"), theirs, "matrix", 1e-5)
        command(folder, 'm = read("m.nii")\nf = read("f.nii")\nwrite(fsl_transform(read("t.mat"), m, f), "back.npy")')
        near(np.load(f"{folder}/back.npy"), through[:3], "back", 1e-9)
        pathlib.Path(folder, "bad.mat").write_text("1 0 0\n0 1 0\n")
        done = subprocess.run([FOVEA, "info", "bad.mat"], cwd=folder, capture_output=True, text=True)
        assert done.returncode and "bad.mat: not a matrix of FSL" in done.stderr, done.stderr


@test
def headers_are_transforms():
    with tempfile.TemporaryDirectory() as folder:
        nibabel.save(nibabel.Nifti1Image(RANDOM.random((5, 6, 7)).astype(np.float32), OBLIQUE), f"{folder}/o.nii")
        command(folder, 'write(sform(read("o.nii")), "o.npy")')
        near(np.load(f"{folder}/o.npy"), (LEFT @ nibabel.load(f"{folder}/o.nii").affine)[:3], "sform", 1e-12)
        quaternion = nibabel.Nifti1Image(RANDOM.random((5, 6, 7)).astype(np.float32), None)
        quaternion.header.set_qform(np.diag([2.0, 3, 4, 1]) + np.eye(4, k=3) * 9, code=1)
        nibabel.save(quaternion, f"{folder}/q.nii")
        command(folder, 'write(sform(read("q.nii")), "q.npy")')
        near(np.load(f"{folder}/q.npy"), (LEFT @ nibabel.load(f"{folder}/q.nii").affine)[:3], "qform", 1e-6)
        numbers = ", ".join(map(repr, GRID.ravel().tolist()))
        command(folder, f'set_sform(read("o.nii"), [{numbers}], code = 4) |> write("set.nii")')
        made = nibabel.load(f"{folder}/set.nii")
        near(made.get_sform(), GRID, "set", 1e-6)
        assert int(made.header["sform_code"]) == 4
        same(np.asarray(made.dataobj), np.asarray(nibabel.load(f"{folder}/o.nii").dataobj))
        through = np.eye(4)
        through[:3] = np.column_stack([turned(14, (1, -2, 0.5)) * 1.05, (3, -2, 5)])  # from fixed to moving
        np.save(f"{folder}/t.npy", through[:3])
        command(folder, 'write(name_axes(read("t.npy"), "row column"), "t.tfm")')
        command(folder, 'set_sform(read("o.nii"), transform = "t.tfm") |> write("hard.nii")')
        before = nibabel.load(f"{folder}/o.nii").affine
        near(nibabel.load(f"{folder}/hard.nii").get_sform(), LEFT @ np.linalg.inv(through) @ LEFT @ before, "hard", 1e-6)
    refused("set_sform(a, [1, 2, 3])", "3 numbers", a=np.zeros((3, 4, 5)))
    refused("set_sform(set_sform(a))", "image has a matrix already", a=np.zeros((3, 4, 5)))
    refused("set_sform(a, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0], by = register(a, a))", "give one of by", a=np.zeros((3, 4, 5)))
    refused("set_sform(a, transform = register(a, a + 1))", "give it as by = ", a=np.zeros((3, 4, 5)))
    refused("set_sform(a, a)", "is no transform", a=np.zeros((3, 4, 5)))
    refused("max(set_sform(a, register(a, a + 1)))", "known only at the end of the run", a=np.zeros((3, 4, 5)))
    refused("set_sform(a, register(a, a + 1))", "known only at the end of the run", a=np.zeros((3, 4, 5)))
    refused('set_sform(a, register(a, a + 1, kind = "bspline"))', "one linear transform", a=np.zeros((16, 16, 16)))
    refused('set_sform(a, transform = "none.tfm")', "none.tfm", a=np.zeros((3, 4, 5)))
    refused('set_sform(a, transform = "a.npy")', "is no transform", a=np.zeros((3, 4, 5)))
    refused("set_sform(a, zeros)".replace("zeros", str([0] * 12)), "singular", a=np.zeros((3, 4, 5)))
    refused("set_sform(a, ones)".replace("ones", str([1] * 12)), "spatial axes", a=np.zeros((3, 4)))


@test
def headers_take_what_the_same_run_has_found():
    """set_sform(moving, register(...)) writes what set_sform(moving, transform = FILE) writes in a second run."""
    with tempfile.TemporaryDirectory() as folder:
        head = ndimage.gaussian_filter(RANDOM.random((24, 26, 28)), 2).astype(np.float32) * 100
        nibabel.save(nibabel.Nifti1Image(head, OBLIQUE), f"{folder}/fixed.nii")
        nibabel.save(nibabel.Nifti1Image(ndimage.shift(head, [0, 2, 1]), OBLIQUE), f"{folder}/moving.nii.gz")
        found = 'moving = read("moving.nii.gz")\nt = register(moving, read("fixed.nii"), kind = "rigid")\n'
        text = found + "".join(f'set_sform(moving, t, code = 4) |> write("{name}")\n' for name in ("a.nii", "a.nii.gz"))
        command(folder, text + 'write(t, "t.tfm")')
        command(folder, 'set_sform(read("moving.nii.gz"), transform = "t.tfm", code = 4) |> write("b.nii")')
        theirs = pathlib.Path(folder, "b.nii").read_bytes()
        assert pathlib.Path(folder, "a.nii").read_bytes() == theirs
        assert gzip.decompress(pathlib.Path(folder, "a.nii.gz").read_bytes()) == theirs
        moved = nibabel.load(f"{folder}/a.nii.gz")
        assert int(moved.header["sform_code"]) == 4
        assert np.abs(moved.affine - OBLIQUE).max() > 0.5
        done = subprocess.run([FOVEA, "run", "-e", found + 'set_sform(moving, t) |> write("a.nrrd")'], cwd=folder,
                              capture_output=True, text=True)
        assert done.returncode and "a.nrrd" in done.stderr and ".nii.gz" in done.stderr, done.stderr


@test
def volumes_without_a_matrix_get_one_of_their_spacing():
    """As nibabel does with numpy.diag; moving and fixed lie upon each other in the world then."""
    head = ndimage.gaussian_filter(RANDOM.random((20, 28, 30)), 2).astype(np.float32) * 100
    with tempfile.TemporaryDirectory() as folder:
        for name, a in (("fixed", head), ("moving", ndimage.shift(head, [1, 2, -3], mode="nearest"))):
            tifffile.imwrite(f"{folder}/{name}.tif", a, imagej=True, resolution=(1 / 0.5, 1 / 0.5),
                             metadata={"spacing": 2.0, "unit": "mm", "axes": "ZYX"})
        command(folder, 'm = read("moving.tif")\nf = read("fixed.tif")\nt = register(m, f, kind = "shift")\nwrite(t, "t.tfm")\n'
                        'set_sform(f) |> write("fixed.nii")\nset_sform(m, t) |> write("moving.nii.gz")')
        command(folder, 'set_sform(read("moving.tif"), transform = "t.tfm") |> write("again.nii.gz")')
        fixed, moving, again = (nibabel.load(f"{folder}/{name}") for name in ("fixed.nii", "moving.nii.gz", "again.nii.gz"))
        near(fixed.affine, np.diag([0.5, 0.5, 2, 1]), "fixed", 1e-6)
        near(moving.affine, np.array([[0.5, 0, 0, 1.5], [0, 0.5, 0, -1], [0, 0, 2, -2], [0, 0, 0, 1]]), "moving", 0.05)
        near(again.affine, moving.affine, "again", 1e-6)
        assert int(fixed.header["sform_code"]) == int(moving.header["sform_code"]) == 2
        for name in ("a.tif", "a.ome.tif"):
            done = subprocess.run([FOVEA, "run", "-e", f'set_sform(read("fixed.tif")) |> write("{name}")'], cwd=folder,
                                  capture_output=True, text=True)
            assert done.returncode and "keeps no matrix" in done.stderr and ".nii.gz" in done.stderr, done.stderr


@test
def a_killed_run_goes_on_with_the_right_header():
    """Killed before, between and after the matrix is found and the files are made; another transform gives another header."""
    with tempfile.TemporaryDirectory() as folder:
        head = ndimage.gaussian_filter(RANDOM.random((20, 22, 24)), 2).astype(np.float32) * 100
        for name, by in (("fixed", [0, 0, 0]), ("other", [0, 0, 2]), ("moving", [0, 2, 1])):
            nibabel.save(nibabel.Nifti1Image(ndimage.shift(head, by), OBLIQUE), f"{folder}/{name}.nii")
        names = ("a.nii", "a.nii.gz")

        def bring(onto, fault=None, store="s"):
            text = f'm = read("moving.nii")\nt = register(m, read("{onto}.nii"), kind = "rigid")\n'
            text += "".join(f'set_sform(m, t) |> write("{name}")\n' for name in names)
            done = subprocess.run([FOVEA, "run", "-q", "--overwrite", "--chunk", "9", "--store", store, "-e", text], cwd=folder,
                                  env=dict(os.environ, **({"FOVEA_FAULT": f"{fault}:kill"} if fault else {})),
                                  capture_output=True, text=True)
            assert done.returncode == (137 if fault else 0), (fault, done.returncode, done.stderr)
            return [nibabel.load(f"{folder}/{name}").affine for name in names if not fault]

        expected = bring("fixed")
        same(expected[0], expected[1])
        assert np.abs(bring("other")[0] - expected[0]).max() > 0.5
        for k, fault in enumerate(("task:3", "task:20", "end:1", "rename:1", "replace:2")):
            bring("fixed", fault, f"s{k}")
            for ours in bring("fixed", store=f"s{k}"):
                same(ours, expected[0], fault)


@test
def a_folder_is_brought_upon_its_mean():
    image = skimage.data.coins().astype(np.float32)
    shifts = [(0, 0), (4.5, -2.25), (-3, 5), (2.75, 3.5)]
    with tempfile.TemporaryDirectory() as folder:
        for number, by in enumerate(shifts):
            np.save(f"{folder}/scan{number}.npy", ndimage.shift(image, by, mode="nearest")[50:250, 60:300])
        command(folder, 'c = together(read("scan*.npy"))\nt = groupwise(c, kind = "shift")\nwrite(t, "t.npy")\n'
                        'write(project(c, "item", "mean"), "before.npy")\n'
                        'write(project(transform(c, t), "item", "mean"), "after.npy")')
        found = np.load(f"{folder}/t.npy")[:, ::-1, 2]
        sharp = [np.load(f"{folder}/{name}.npy")[10:-10, 10:-10].std() for name in ("before", "after")]
    apart = (found - found[0]) - (np.array(shifts) - shifts[0])
    assert np.abs(apart).max() < 0.1, found
    assert sharp[1] > 1.05 * sharp[0], sharp


def fails(text, words, **arrays):
    """That a run ends with a message that has these words."""
    try:
        run(text, **arrays)
    except Difference as error:
        assert words in str(error), (text, error)
    else:
        raise AssertionError(f"{text} should fail")


@test
def what_cannot_be_registered_is_said():
    plane, volume = np.arange(12.0 * 13).reshape(12, 13), RANDOM.random((9, 10, 11))
    refused("register(a, b)", "spatial axes", a=plane, b=volume)
    placed = "set_sform(a, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0])"
    for text in (f"register(a, {placed})", f"resample({placed}, a)"):
        refused(text, "set_sform gives a volume one", a=volume)
    fails("register(a, a * 0)", "fixed is constant", a=plane)
    fails('register(a, a, name_axes(b, "row column"))', "start is singular", a=plane, b=np.ones((2, 3)))
    fails('register(a, a, name_axes(b, "row column"), kind = "bspline")', "start is singular", a=plane, b=np.ones((2, 3)))
    fails("register(a * 0, a)", "moving is constant", a=plane)
    fails('register(a, a * 0, kind = "shift")', "fixed is constant", a=plane)
    fails("register(log(a - 20), a)", "nan", a=plane)
    refused('register(a, a, metric = "phase")', "shifts only", a=plane)
    refused('register(a, b, kind = "shift", metric = "phase")', "same shape", a=plane, b=np.zeros((12, 14)))
    refused("register(a, name_axes(b, \"t y x\"))", "axis t", a=plane, b=volume)
    refused("transform(a, a)", "no transform", a=plane)
    refused('transform(a, name_axes(b, "row column"))', "3 dimensions", a=plane, b=np.eye(3, 4))
    fails('transform(a, name_axes(b, "row column"), limit = 2)', "more than limit", a=plane, b=np.array([[1.0, 0, 3], [0, 1, 0]]))
    refused('transform(a, name_axes(b, "t row column"))', "that image lacks", a=plane, b=np.zeros((4, 2, 3)))
    refused("stabilise(a)", "axis t", a=plane)
    refused('stabilise(name_axes(a, "t y x"), frame = 9)', "frame = 9", a=volume)


@test
def damaged_files_of_transforms_are_named():
    texts = {"no line": "hello\n", "no transform of 2 or 3": "Transform: AffineTransform_double_4_4\n",
             "it takes 12": "Transform: AffineTransform_double_3_3\nParameters: 1 2 3\n",
             "something else than numbers": "Transform: AffineTransform_double_2_2\nParameters: 1 0 0 1 x y\n",
             "cannot be read; these can": "Transform: ThinPlateSplineTransform_double_3_3\nParameters: 1\n",
             "not finite": "Transform: TranslationTransform_double_2_2\nParameters: nan 1\n"}
    with tempfile.TemporaryDirectory() as folder:
        for words, text in texts.items():
            pathlib.Path(folder, "bad.tfm").write_text("#Insight Transform File V1.0\n" + text)
            done = subprocess.run([FOVEA, "info", "bad.tfm"], cwd=folder, capture_output=True, text=True)
            assert done.returncode and "bad.tfm" in done.stderr and words in done.stderr, (words, done.stderr)
        done = subprocess.run([FOVEA, "run", "-e", 'write(zeros([3, 3]), "z.tfm")'], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2 and "z.tfm is no transform" in done.stderr, done.stderr


test.main()
