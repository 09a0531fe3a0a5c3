#!/usr/bin/python3
"""B-spline transforms: found by register, applied, inverted, put together and kept, against known displacements, scipy and
SimpleITK."""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import scipy.interpolate
    import scipy.ndimage as ndimage
    import skimage.data
except ImportError as missing:
    print(f"skip bspline: {missing}")
    sys.exit(0)

from pipelines import FOVEA, PATIENCE, near, refused, run, run_all, same, test

RANDOM = np.random.default_rng(3)
HEADER = "#Insight Transform File V1.0\n"


def command(folder, text):
    done = subprocess.run([FOVEA, "run", "--quiet", "--overwrite", "-e", text], cwd=folder, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert not done.returncode, done.stderr


def smooth_field(shape, most, width, seed):
    random = np.random.default_rng(seed)
    field = np.stack([ndimage.gaussian_filter(random.normal(size=shape), width) for _ in shape])
    return field * most / np.abs(field).max()


def deformed(image, most, width, noise):
    """The moving image, what it becomes under a known displacement, and that."""
    field = smooth_field(image.shape, most, width, 4)
    fixed = ndimage.map_coordinates(image, np.indices(image.shape) + field, order=3, mode="nearest")
    random = np.random.default_rng(5)
    return [(a + random.normal(0, noise, a.shape)).astype(np.float32) for a in (image, fixed)] + [field]


def displacement(control, place, origin=0.0, spacing=1.0):
    """By scipy's basis: control has components first; place is one array of x, y, ... for each dimension."""
    at = [(p - origin) / spacing for p in place]
    basis = scipy.interpolate.BSpline.basis_element(np.arange(-2, 3), extrapolate=False)
    result = np.zeros((len(place), *at[0].shape))
    for index in np.ndindex(control.shape[1:]):
        weight = np.ones_like(at[0])
        for a, i in zip(at, index[::-1]):
            weight = weight * np.nan_to_num(basis(a - i))
        result += control[(slice(None), *index)].reshape(-1, *[1] * at[0].ndim) * weight
    return result


def textured(shape):
    return ndimage.gaussian_filter(np.random.default_rng(1).random(shape), 1.5) * 1000


@test
def places_move_as_splines_say():
    """A ramp, moved, tells where every voxel came from; from the second to the last but one control point."""
    for shape in ((9, 11), (7, 8, 9)):
        n = len(shape)
        control = RANDOM.normal(0, 1, (n, *shape))
        names = "control z y x" if n == 3 else "control y x"
        at = np.indices(shape).astype(float)
        inside = (slice(1, -1),) * n
        for k in range(n):
            ramp = np.indices([s + 20 for s in shape])[k].astype(float)
            ours = run(f'transform(r, name_axes(t, "{names}"), onto = o, mode = "nearest")', r=ramp, t=control, o=at[0])
            theirs = np.clip(at[k] + displacement(control, at[::-1])[n - 1 - k], 0, None)
            near(ours[inside], theirs[inside], f"{shape} {k}", 1e-9)


@test
def a_bent_picture_comes_back():
    moving, fixed, field = deformed(textured((130, 120)), 5, 18, 8)
    inside = np.s_[:, 8:-8, 8:-8]
    rows = np.indices(moving.shape).astype(np.float32)
    for metric in ("mean_squares", "correlation", "mutual_information"):
        tone = moving if metric != "mutual_information" else 3000 - 2 * moving
        found = 't = register(m, f, kind = "bspline", grid = 15, metric = "%s")\n' % metric
        with tempfile.TemporaryDirectory() as folder:
            for name, a in (("m", tone), ("f", fixed), ("y", rows[0]), ("x", rows[1])):
                np.save(f"{folder}/{name}.npy", a)
            command(folder, 'm = read("m.npy")\nf = read("f.npy")\n' + found +
                    "".join(f'write(transform(read("{c}.npy"), t, onto = f), "o{c}.npy")\n' for c in "yx"))
            ours = np.stack([np.load(f"{folder}/o{c}.npy") for c in "yx"]) - rows
        error = np.linalg.norm(ours - field, axis=0)[inside[1:]].mean()
        assert error < 0.1 < 1 < np.linalg.norm(field, axis=0).mean(), (metric, error)


@test
def a_bent_volume_comes_back_no_worse_than_with_simpleitk():
    moving, fixed, field = deformed(textured((40, 44, 48)), 3, 9, 8)
    inside = np.s_[5:-5, 5:-5, 5:-5]
    rows = np.indices(moving.shape).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for name, a in (("m", moving), ("f", fixed), ("z", rows[0]), ("y", rows[1]), ("x", rows[2])):
            np.save(f"{folder}/{name}.npy", a)
        command(folder, 'm = read("m.npy")\nf = read("f.npy")\nt = register(m, f, kind = "bspline", grid = 10)\n' +
                "".join(f'write(transform(read("{c}.npy"), t, onto = f), "o{c}.npy")\n' for c in "zyx"))
        ours = np.stack([np.load(f"{folder}/o{c}.npy") for c in "zyx"]) - rows
    error = np.linalg.norm(ours - field, axis=0)[inside].mean()
    assert error < 0.12 < 0.7 < np.linalg.norm(field, axis=0).mean(), error
    try:
        import SimpleITK as sitk
    except ImportError as missing:
        print(f"skip simpleitk_bends_no_better: {missing}")
        return
    still, other = (sitk.GetImageFromArray(a) for a in (fixed, moving))
    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsCorrelation()
    method.SetInterpolator(sitk.sitkLinear)
    method.SetOptimizerAsLBFGSB(gradientConvergenceTolerance=1e-5, numberOfIterations=40)
    method.SetShrinkFactorsPerLevel([2, 1])
    method.SetSmoothingSigmasPerLevel([1, 0.5])
    method.SetInitialTransform(sitk.BSplineTransformInitializer(still, [5, 4, 4], 3), inPlace=True)
    found = sitk.TransformToDisplacementField(method.Execute(still, other), sitk.sitkVectorFloat64, still.GetSize())
    theirs = np.moveaxis(sitk.GetArrayFromImage(found)[..., ::-1], -1, 0)
    of_theirs = np.linalg.norm(theirs - field, axis=0)[inside].mean()
    assert error < max(1.05 * of_theirs, 0.05), (error, of_theirs)


@test
def a_turn_is_kept_and_goes_on_beyond_the_grid():
    """B-splines that start from a linear transform hold it, also where there are no control points."""
    image, angle = textured((80, 90)), np.deg2rad(9)
    turn = np.array([[np.cos(angle), -np.sin(angle), 7], [np.sin(angle), np.cos(angle), -4]])
    t = 'register_bspline(a, a, name_axes(m, "row column"), grid = 20, iterations = 1, bending = 1e6)'
    ours, straight = run_all([f'transform(r, {t}, onto = r, mode = "nearest")',
                              'transform(r, name_axes(m, "row column"), onto = r, mode = "nearest")'],
                             a=image, m=turn, r=np.indices((200, 210))[1].astype(float))
    assert np.abs(ours - straight).max() < 0.05, np.abs(ours - straight).max()


@test
def ways_back_and_one_after_another():
    control = RANDOM.normal(0, 0.15, (2, 9, 10))
    linear = np.array([[1.02, -0.1, 3], [0.08, 0.97, -2]])
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/a.npy", control)
        np.save(f"{folder}/l.npy", linear)
        text = ('a = name_axes(read("a.npy"), "control y x")\nl = name_axes(read("l.npy"), "row column")\n'
                'write(invert_transform(a, grid = 0.25), "back.npy")\n'
                'write(concatenate_transforms(a, l), "after.npy")\n'
                'write(concatenate_transforms(a, a, grid = 0.25), "twice.npy")\n')
        command(folder, text)
        back, after, twice = (np.load(f"{folder}/{name}.npy") for name in ("back", "after", "twice"))
    x, y = (RANDOM.uniform(2.5, size - 3.5, 300) for size in (10, 9))
    first = displacement(control, (x, y))
    there = (x + first[0], y + first[1])
    home = displacement(back, there, 0.75, 0.25)  # the second control point stays where it was
    apart = np.hypot(there[0] + home[0] - x, there[1] + home[1] - y).max()
    assert apart < 2e-3, apart
    near(displacement(after, (x, y)), linear[:, :2] @ there + linear[:, 2:] - (x, y), "linear after", 1e-12)
    both = displacement(twice, (x, y), 0.75, 0.25)
    near(both, first + displacement(control, there), "twice", 2e-3)


@test
def files_are_those_of_itk():
    control = RANDOM.normal(0, 3, (3, 5, 6, 7))
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/c.npy", control)
        command(folder, 'write(name_axes(read("c.npy"), "control z y x"), "c.tfm")')
        command(folder, 'write(read("c.tfm"), "c.h5")')
        for name in ("c.tfm", "c.h5"):
            command(folder, f'write(read("{name}"), "back.npy")')
            same(np.load(f"{folder}/back.npy"), control)
            told = subprocess.run([FOVEA, "info", name], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
            assert not told.returncode and "B-splines, 3 dimensions" in told.stdout, told
        np.save(f"{folder}/l.npy", np.array([[1.0, 2, 3], [0, 1, -7]]))
        command(folder, 'write(name_axes(read("l.npy"), "row column"), "l.h5")')
        command(folder, 'write(read("l.h5"), "back.npy")')
        same(np.load(f"{folder}/back.npy"), np.load(f"{folder}/l.npy"))
        try:
            import SimpleITK as sitk
        except ImportError as missing:
            print(f"skip simpleitk_bsplines: {missing}")
            return
        theirs = sitk.ReadTransform(f"{folder}/c.tfm")
        for point in RANDOM.uniform(1.1, 2.9, (20, 3)):
            moved = displacement(control, [np.array([p]) for p in point])[:, 0]
            near(np.array(theirs.TransformPoint(point.tolist())), point + moved, "point", 1e-12)
        turned = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
        image = sitk.Image([30, 25, 20], sitk.sitkFloat32)
        image.SetDirection(turned.ravel().tolist())
        image.SetSpacing([1.5, 1, 2])
        image.SetOrigin([3, -7, 11])
        spline = sitk.BSplineTransformInitializer(image, [5, 4, 3], 3)
        spline.SetParameters(RANDOM.normal(0, 2, len(spline.GetParameters())).tolist())
        linear = sitk.AffineTransform(3)
        linear.SetMatrix((np.eye(3) + RANDOM.normal(0, 0.1, (3, 3))).ravel().tolist())
        linear.SetTranslation([4.0, 5.0, -6.0])
        for transform in (spline, sitk.CompositeTransform([linear, spline])):
            for name in ("s.tfm", "s.h5"):
                sitk.WriteTransform(transform, f"{folder}/{name}")
                command(folder, f'write(read("{name}"), "ours-{name}")')
                ours = sitk.ReadTransform(f"{folder}/ours-{name}")
                for index in RANDOM.uniform(0, 19, (20, 3)):
                    point = image.TransformContinuousIndexToPhysicalPoint(index.tolist())
                    near(np.array(ours.TransformPoint(point)), np.array(transform.TransformPoint(point)), name, 1e-11)
        image = sitk.GetImageFromArray(RANDOM.random((20, 25, 30)).astype(np.float32))
        image.SetDirection(turned.ravel().tolist())
        image.SetSpacing([1.5, 1, 2])
        image.SetOrigin([3, -7, 11])
        sitk.WriteImage(image, f"{folder}/i.nii")
        sitk.WriteTransform(spline, f"{folder}/s.tfm")
        command(folder, 'write(transform(read("i.nii"), read("s.tfm"), mode = "nearest"), "i.npy")')
        peer = sitk.GetArrayFromImage(sitk.Resample(image, image, spline, sitk.sitkLinear, -9.0))
        ours = np.load(f"{folder}/i.npy")
        assert (peer > -9).mean() > 0.8 and np.abs(ours - peer)[peer > -9].max() < 1e-4


@test
def the_same_bits_for_every_chunk_and_worker():
    moving, fixed, _ = deformed(textured((60, 70)), 3, 12, 8)
    texts = ['register(m, f, kind = "bspline", grid = 12, iterations = 5)',
             'transform(m, register(m, f, kind = "bspline", grid = 12, iterations = 3), onto = f, limit = 30)']
    for text in texts:
        first = run(text, m=moving, f=fixed)
        for more in (("--chunk", "17"), ("--workers", "1"), ("--memory", "80M", "--chunk", "64")):
            same(run(text, *more, m=moving, f=fixed), first, str(more))


@test
def what_cannot_be_is_said():
    plane, control = textured((30, 40)), np.zeros((2, 5, 6))
    bent = 'name_axes(t, "control y x")'
    refused('register(a, a, grid = 9)', "kind", a=plane)
    refused('register(a, a, kind = "bspline", metric = "phase")', "shifts only", a=plane)
    refused(f'register(a, a, {bent})', "a linear one is asked for", a=plane, t=control)
    refused('register(a, a, kind = "bspline", grid = 0.01)', "512 are the most", a=plane)
    refused(f'motion({bent}, a)', "B-spline transform", a=plane, t=control)
    refused(f'transform(a, {bent})', "no B-spline transform", a=plane, t=np.zeros((2, 3, 6)))
    refused(f'transform(a, {bent})', "2 dimensions", a=np.zeros((5, 6, 7)), t=control)
    refused(f'concatenate_transforms(name_axes(b, "row column"), {bent})', "onto = fixed", b=np.eye(2, 3), t=control)
    refused(f'concatenate_transforms({bent}, name_axes(b, "row column"))', "3", b=np.eye(3, 4), t=control)
    refused('invert_transform(name_axes(b, "row column"), grid = 3)', "linear", b=np.eye(2, 3))
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/t.npy", np.random.default_rng(0).normal(0, 30, (2, 8, 8)))
        np.save(f"{folder}/flat.npy", np.ones((30, 40), np.float32))
        np.save(f"{folder}/a.npy", plane)
        for text, words in (('invert_transform(name_axes(read("t.npy"), "control y x")) |> write("x.npy")', "folds"),
                            ('register(read("flat.npy"), read("a.npy"), kind = "bspline") |> write("x.npy")',
                             "moving is constant")):
            done = subprocess.run([FOVEA, "run", "-e", text], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode and words in done.stderr, done.stderr


@test
def movies_and_groups_that_bend_are_brought_together():
    still = textured((120, 130)).astype(np.float32)

    def bent(seed):
        field = np.stack([ndimage.gaussian_filter(np.random.default_rng(seed + k).normal(0, 1, still.shape), 18) for k in (0, 1)])
        places = np.indices(still.shape) + field * (2.5 / np.abs(field).max())
        return ndimage.map_coordinates(still, places, order=3, mode="nearest").astype(np.float32)

    movie, inside = np.stack([still, bent(10), bent(20)]), np.s_[8:-8, 8:-8]
    ours = run('stabilise(name_axes(m, "t y x"), kind = "bspline", grid = 16)', m=movie)
    before, after = (np.abs(a - still)[:, 8:-8, 8:-8].mean() for a in (movie, ours))
    assert after < 0.2 * before, (before, after)
    all_of = 'name_axes(m, "item y x")'
    ours = run(f'transform({all_of}, groupwise({all_of}, kind = "bspline", grid = 16, rounds = 2))', m=movie)
    before, after = (a.std(0)[inside].mean() for a in (movie, ours))
    assert after < 0.2 * before, (before, after)


@test
def damaged_bsplines_are_named():
    fixed = "FixedParameters: 4 4 0 0 1 1 1 0 0 1\n"
    texts = {"its grid takes 32": f"Transform: BSplineTransform_double_2_2\nParameters: 1 2 3\n{fixed}",
             "it takes 10": "Transform: BSplineTransform_double_2_2\nParameters: 1\nFixedParameters: 4 4\n",
             "there must be 4 to 512": "Transform: BSplineTransform_double_2_2\nParameters: 1\n"
                                       "FixedParameters: 1e9 4 0 0 1 1 1 0 0 1\n",
             "not finite": f"Transform: BSplineTransform_double_2_2\nParameters:{' nan' * 32}\n{fixed}",
             "applied before a BSplineTransform": f"Transform: BSplineTransform_double_2_2\nParameters:{' 0' * 32}\n{fixed}"
                                                  "Transform: TranslationTransform_double_2_2\nParameters: 1 2\n"}
    with tempfile.TemporaryDirectory() as folder:
        for words, text in texts.items():
            pathlib.Path(folder, "bad.tfm").write_text(HEADER + text)
            done = subprocess.run([FOVEA, "info", "bad.tfm"], cwd=folder, capture_output=True, text=True)
            assert done.returncode and "bad.tfm" in done.stderr and words in done.stderr, (words, done.stderr)


test.main()
