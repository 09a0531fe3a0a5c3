#!/usr/bin/python3
"""measure against skimage.measure.regionprops_table, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.measure
except ImportError as missing:
    print(f"skip measure: {missing}")
    sys.exit(0)

from pipelines import Difference, near, remove_small_objects, run, test

CHUNKS = ((), ("--chunk", "13"), ("--chunk", "40", "--engine", "processes", "--workers", "2"))


def std(mask, values):
    return values[mask].astype(float).std()


def check(labels, intensity=None, chunks=CHUNKS):
    wanted = ("label", "area", "centroid", "bbox")
    extra = ()
    if intensity is not None:
        wanted += ("intensity_mean", "intensity_min", "intensity_max")
        extra = (std,)
    peer = skimage.measure.regionprops_table(labels, intensity, wanted, extra_properties=extra)
    axes = "tczyx"[-labels.ndim:] if labels.ndim > 3 else "zyx"[-labels.ndim:]
    first = None
    for chunk in chunks:
        arrays = {"l": labels} if intensity is None else {"l": labels, "i": intensity}
        ours = run("measure(l)" if intensity is None else "measure(l, i)", *chunk, table=True, **arrays)
        near(ours["label"], peer["label"], "label", 0)
        near(ours["voxels"], peer["area"], "voxels", 0)
        near(ours["volume"], peer["area"], "volume", 0)
        for d, axis in enumerate(axes):
            near(ours[f"centroid_{axis}"], peer[f"centroid-{d}"], "centroid")
            near(ours[f"bbox_min_{axis}"], peer[f"bbox-{d}"], "bbox", 0)
            near(ours[f"bbox_max_{axis}"], peer[f"bbox-{d + labels.ndim}"], "bbox", 0)
        if intensity is not None:
            near(ours["mean"], peer["intensity_mean"], "mean", 1e-6 if intensity.dtype == np.float32 else 1e-12)
            near(ours["min"], peer["intensity_min"], "min", 0)
            near(ours["max"], peer["intensity_max"], "max", 0)
            near(ours["std"], peer["std"], "std", 1e-9)
        first = first or ours
        for name in ours:
            if not np.array_equal(first[name], ours[name]):
                raise Difference(f"{name} depends on the lattice {chunk}")


def cells(shape, seed=0):
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).random(shape), 1.5)
    return ndimage.label(noise > np.quantile(noise, 0.7))[0].astype(np.int32)


@test
def shapes_equal_regionprops():
    check(cells((120, 150)))
    check(cells((30, 41, 52)))


@test
def intensities_equal_regionprops():
    labels = cells((30, 41, 52), 1)
    random = np.random.default_rng(2)
    for dtype in (np.uint8, np.uint16, np.int16, np.int32, np.float32, np.float64):
        check(labels, (random.random(labels.shape) * 200).astype(dtype), CHUNKS[:2])


@test
def a_property_by_itself_is_the_same_as_among_all():
    labels = cells((60, 70), 3)
    values = np.random.default_rng(4).normal(0, 9000, labels.shape)
    for dtype in (np.int16, np.uint32, np.int64, np.float32):
        image = abs(values).astype(dtype) if dtype == np.uint32 else values.astype(dtype)
        among = run('measure(l, i, properties = "all")', table=True, l=labels, i=image)
        for names in ("voxels", "mean", "sum", "std", "min, max", "centroid", "bbox, mean", "extent", "eccentricity",
                      "weighted_centroid", "euler_number, sum", "perimeter"):
            alone = run(f'measure(l, i, properties = "{names}")', "--chunk", "13", table=True, l=labels, i=image)
            if len(alone) < 2:
                raise Difference(f"{names} gives no column")
            for name in alone:
                if not np.array_equal(alone[name], among[name]):
                    raise Difference(f"{name} of {image.dtype} by itself differs from that among all")


@test
def labels_with_gaps_equal_regionprops():
    labels = cells((40, 200), 3).astype(np.uint16) * 7
    check(labels, np.random.default_rng(4).random(labels.shape), CHUNKS[:2])


@test
def thousands_of_labels_in_any_order_equal_regionprops():
    rng = np.random.default_rng(5)
    check(rng.permutation(np.repeat(np.arange(3000), 4)).reshape(100, 120).astype(np.int32), rng.integers(0, 4000, (100, 120)))


@test
def label_and_measure_in_one_pipeline_equal_regionprops():
    mask = np.random.default_rng(5).random((40, 50, 60)) < 0.2
    peer = skimage.measure.regionprops_table(ndimage.label(mask)[0], None, ("label", "area"))
    ours = run("measure(label(a))", "--chunk", "16", table=True, a=mask)
    near(ours["label"], peer["label"], "label", 0)
    near(ours["voxels"], peer["area"], "voxels", 0)


SHAPES = {"area": "voxels", "equivalent_diameter_area": "equivalent_diameter", "extent": "extent", "euler_number": "euler_number"}
PLANES = {"axis_major_length": "axis_major_length", "axis_minor_length": "axis_minor_length", "eccentricity": "eccentricity",
          "perimeter": "perimeter", "perimeter_crofton": "perimeter_crofton"}


def check_volume_axes(ours, peer):
    """regionprops has the formula, but fails where rounding makes flat objects a little less than flat."""
    first, second, third = (peer[f"inertia_tensor_eigvals-{k}"] for k in range(3))
    near(ours["axis_major_length"], np.sqrt(10 * (first + second - third)), "major axis", 1e-7)
    near(ours["axis_minor_length"], np.sqrt(np.maximum(10 * (second + third - first), 0)), "minor axis", 1e-6)


def check_orientation(ours, peer):
    """Where both axes have the same moment, regionprops decides by rounding."""
    clear = np.abs(peer["inertia_tensor-0-0"] - peer["inertia_tensor-1-1"]) > 1e-9
    turn = np.abs(ours["orientation"] - peer["orientation"])[clear] % np.pi
    if np.any(np.minimum(turn, np.pi - turn) > 1e-7):
        raise Difference(f"orientation differs by up to {turn.max()}")


def check_all(labels, images=(), chunks=CHUNKS):
    """Everything that regionprops_table also has."""
    names = SHAPES | (PLANES if labels.ndim == 2 else {})
    axes = "zyx"[-labels.ndim:]
    with np.errstate(all="ignore"):
        plane = ("inertia_tensor", "orientation") if labels.ndim == 2 else ()
        peer = skimage.measure.regionprops_table(labels, None, ("label", "inertia_tensor_eigvals", *plane, *names))
        values = ("label", "centroid_weighted", "intensity_mean")
        weighted = [skimage.measure.regionprops_table(labels, image, values) for image in images]
    arrays = {"l": labels} | {f"i{k}": image for k, image in enumerate(images)}
    first = None
    for chunk in chunks:
        ours = run(f"measure({', '.join(arrays)}, properties = \"all\")", *chunk, table=True, **arrays)
        near(ours["label"], peer["label"], "label", 0)
        for theirs, name in names.items():
            near(ours[name], peer[theirs], name, 0 if name in ("voxels", "euler_number") else 1e-7)
        (check_orientation if labels.ndim == 2 else check_volume_axes)(ours, peer)
        for k in range(labels.ndim):
            near(ours[f"inertia_tensor_eigvals_{k}"], peer[f"inertia_tensor_eigvals-{k}"], "eigenvalues", 1e-9)
        for k, image in enumerate(images):
            end = f"_{k + 1}" if k else ""
            near(ours["mean" + end], weighted[k]["intensity_mean"], "mean", 1e-6)
            for d, axis in enumerate(axes):
                near(ours[f"weighted_centroid_{axis}{end}"], weighted[k][f"centroid_weighted-{d}"], "weighted centroid", 1e-6)
        first = first or ours
        for name in ours:
            if not np.array_equal(first[name], ours[name], equal_nan=True):
                raise Difference(f"{name} depends on the lattice {chunk}")
    return first


@test
def shapes_of_planes_equal_regionprops():
    check_all(cells((120, 150), 6))
    check_all((np.random.default_rng(7).random((60, 70)) < 0.6).astype(np.uint8))
    check_all(np.random.default_rng(8).integers(0, 4, (40, 50)).astype(np.int64))


@test
def shapes_of_volumes_equal_regionprops():
    check_all(cells((30, 41, 52), 9))
    check_all(np.random.default_rng(10).integers(0, 3, (12, 15, 18)).astype(np.uint16))


@test
def a_real_image_is_measured_as_by_regionprops():
    import skimage.data
    coins = skimage.data.coins()
    check_all(skimage.measure.label(ndimage.gaussian_filter(coins, 1) > 110).astype(np.int32), [coins])


@test
def weighted_centroids_of_several_images_equal_regionprops():
    labels = cells((25, 31, 42), 11)
    random = np.random.default_rng(12)
    images = [(random.random(labels.shape) * 200).astype(t) for t in (np.uint8, np.float32, np.int16)]
    check_all(labels, images)
    images = [(random.random(labels.shape) * 1e6).astype(t) for t in (np.uint32, np.int64, np.uint64)]
    check_all(labels, images, CHUNKS[:2])
    plane = cells((61, 72), 13)
    check_all(plane, [(random.random(plane.shape) * 1e6).astype(t) for t in (np.uint32, np.float64, np.uint64, np.int32)])


@test
def all_properties_of_four_images_fit_into_a_table():
    labels = cells((12, 31, 32), 7)
    images = [np.random.default_rng(8 + k).random(labels.shape) for k in range(4)]
    ours = run('measure(l, a, b, c, d, properties = "all")', table=True, l=labels, **dict(zip("abcd", images)))
    if len(ours) <= 64:
        raise Difference(f"only {len(ours)} columns")
    for k, image in enumerate(images):
        peer = skimage.measure.regionprops_table(labels, image, ("intensity_mean", "centroid_weighted"))
        number = f"_{k + 1}" if k else ""
        near(ours["mean" + number], peer["intensity_mean"], "mean")
        near(ours["weighted_centroid_x" + number], peer["centroid_weighted-2"], "weighted")


@test
def single_voxels_and_borders_are_measured_as_by_regionprops():
    for shape in ((1, 1), (1, 7), (7, 1), (5, 6), (1, 1, 1), (3, 4, 5)):
        full, alone = np.ones(shape, np.uint8), np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(np.int32)
        check_all(full, chunks=((), ("--chunk", "2")))
        check_all(alone, chunks=((), ("--chunk", "2")))
    empty = run("measure(l, properties = \"all\")", table=True, l=np.zeros((4, 5), np.uint8))
    if len(empty["label"]):
        raise Difference("an empty image has objects")


def nifti(text, labels, spacing):
    """The table of a volume `l.nii` (and its intensities `i.nii`, the labels' positions along x), at 30, 20, 10 in space."""
    import csv
    import nibabel
    import subprocess
    import tempfile
    from pipelines import FOVEA
    with tempfile.TemporaryDirectory() as folder:
        affine = np.diag([*spacing[::-1], 1.0])
        affine[:3, 3] = 10, 20, 30
        weights = np.broadcast_to(np.arange(1, labels.shape[2] + 1, dtype=np.int16), labels.shape)
        nibabel.save(nibabel.Nifti1Image(labels.transpose(2, 1, 0), affine), f"{folder}/l.nii")
        nibabel.save(nibabel.Nifti1Image(weights.transpose(2, 1, 0), affine), f"{folder}/i.nii")
        subprocess.run([FOVEA, "run", "--quiet", "-e", f'write({text}, "out.csv")'], cwd=folder, check=True)
        with open(f"{folder}/out.csv", newline="") as file:
            return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


@test
def spacing_makes_lengths_of_a_stretched_ball_those_of_a_ball():
    spacing = np.array([2.0, 1.0, 0.5])
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in (31, 61, 121)), indexing="ij"), -1) * spacing
    ball = (((grid - 30) ** 2).sum(-1) <= 24 ** 2).astype(np.uint8)
    [row] = nifti('measure(read("l.nii"), properties = "all")', ball, spacing)
    for name, wanted, within in (("surface_area", 4 * np.pi * 24 ** 2, 0.01), ("volume", 4 / 3 * np.pi * 24 ** 3, 0.01),
                                 ("equivalent_diameter", 48, 0.01), ("axis_major_length", 48, 0.01),
                                 ("axis_minor_length", 48, 0.01), ("centroid_y", 30, 1e-9), ("position_y", 50, 1e-9),
                                 ("position_x", 40, 1e-9), ("position_z", 60, 1e-9), ("euler_number", 1, 0)):
        if not abs(row[name] - wanted) <= within * wanted:
            raise Difference(f"{name} is {row[name]}, not about {wanted}")
    if row["anisotropy"] > 0.02:
        raise Difference(f"anisotropy of a ball is {row['anisotropy']}")


@test
def moments_with_spacing_are_those_of_points_in_space():
    labels, spacing, origin = cells((20, 31, 42), 13).astype(np.int16), np.array([3.0, 1.5, 0.25]), np.array([30.0, 20.0, 10.0])
    rows = nifti('measure(read("l.nii"), read("i.nii"), properties = "all")', labels, spacing)
    if [row["label"] for row in rows] != list(range(1, labels.max() + 1)):
        raise Difference("other labels")
    for row in rows:
        voxels = np.argwhere(labels == row["label"])
        points, weights = voxels * spacing, voxels[:, 2] + 1.0
        away = points - points.mean(0)
        covariance = away.T @ away / len(points)
        moments = np.linalg.eigvalsh(np.trace(covariance) * np.eye(3) - covariance)[::-1]
        variances = np.linalg.eigvalsh(covariance)[::-1]
        volume = len(points) * spacing.prod()
        wanted = {"voxels": len(points), "volume": volume, "equivalent_diameter": np.cbrt(6 * volume / np.pi),
                  "mean": weights.mean(), "min": weights.min(), "max": weights.max(), "std": weights.std()}
        wanted |= {f"inertia_tensor_eigvals_{k}": moments[k] for k in range(3)}
        for k, name in enumerate(("axis_major_length", "axis_middle_length", "axis_minor_length")):
            wanted[name] = np.sqrt(20 * max(variances[k], 0))
        for k, axis in enumerate("zyx"):
            wanted[f"centroid_{axis}"] = voxels[:, k].mean()
            wanted[f"position_{axis}"] = points[:, k].mean() + origin[k]
            wanted[f"weighted_centroid_{axis}"] = (voxels[:, k] * weights).sum() / weights.sum()
            wanted[f"bbox_min_{axis}"], wanted[f"bbox_max_{axis}"] = voxels[:, k].min(), voxels[:, k].max() + 1
        for name, value in wanted.items():
            if not abs(row[name] - value) <= 1e-6 * max(1, abs(value)):
                raise Difference(f"{name} of label {row['label']:.0f} is {row[name]}, not {value}")


@test
def labels_of_every_integer_type_are_measured_alike():
    labels, image = cells((40, 50), 14) % 120, np.random.default_rng(15).random((40, 50)).astype(np.float32)
    first = run("measure(l, i, properties = \"all\")", table=True, l=labels.astype(np.int32), i=image)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.int64, np.uint64):
        for chunk in ((), ("--chunk", "16")):
            ours = run("measure(l, i, properties = \"all\")", *chunk, table=True, l=labels.astype(dtype), i=image)
            for name in first:
                if not np.array_equal(first[name], ours[name], equal_nan=True):
                    raise Difference(f"{name} of {np.dtype(dtype)} labels differs")
    far = labels.astype(np.int64) * (2 ** 40)
    near(run("measure(l)", table=True, l=far)["label"], np.unique(far)[1:], "label", 0)


@test
def an_empty_label_image_has_a_table_without_rows():
    empty, image = np.zeros((6, 7), np.uint8), np.ones((6, 7), np.float32)
    for properties in ("", ", properties = \"all\""):
        full = run(f"measure(l, i{properties})", table=True, l=empty + 1, i=image)
        for chunk in ((), ("--chunk", "3", "--engine", "processes")):
            ours = run(f"measure(l, i{properties})", *chunk, table=True, l=empty, i=image)
            if list(ours) != list(full) or any(len(column) for column in ours.values()):
                raise Difference(f"columns {list(ours)}")


@test
def objects_without_width_have_finite_shapes():
    for shape, line in (((9, 11), (4, slice(1, 9))), ((9, 11), (slice(2, 8), 3)), ((5, 6, 7), (2, 3, slice(0, 6))),
                        ((5, 6, 7), (slice(1, 4), 2, 2)), ((5, 6, 7), (1, slice(2, 5), slice(2, 5)))):
        labels = np.zeros(shape, np.uint8)
        labels[line] = 7
        ours = check_all(labels, chunks=((), ("--chunk", "3")))
        unknown = [name for name, column in ours.items() if np.isnan(column).any()]
        if unknown or ours["anisotropy"][0] != 1:
            raise Difference(f"{unknown} are nan, anisotropy {ours['anisotropy'][0]}")


@test
def the_surface_of_a_ball_is_nearer_to_the_true_one_than_a_mesh():
    grid = np.stack(np.meshgrid(*[np.arange(41)] * 3, indexing="ij"), -1)
    ball = (((grid - 20) ** 2).sum(-1) <= 16 ** 2).astype(np.uint8)
    true = 4 * np.pi * 16 ** 2
    ours = run("measure(l, properties = \"surface_area\")", table=True, l=ball)["surface_area"][0]
    mesh = skimage.measure.mesh_surface_area(*skimage.measure.marching_cubes(ball, 0.5)[:2])
    if abs(ours - true) > 0.02 * true or abs(ours - true) > abs(mesh - true):
        raise Difference(f"{ours} by Crofton's formula, {mesh} by a mesh, {true} in truth")


@test
def the_orientation_of_a_rod_in_space_is_its_direction():
    direction = np.array([1.0, 2.0, -2.0]) / 3
    grid = np.stack(np.meshgrid(*[np.arange(60)] * 3, indexing="ij"), -1) - 29.5
    along = grid @ direction
    rod = ((np.abs(along) < 25) & (((grid - along[..., None] * direction) ** 2).sum(-1) < 16)).astype(np.uint8)
    ours = run("measure(l, properties = \"orientation anisotropy\")", table=True, l=rod)
    found = [ours[f"orientation_{axis}"][0] for axis in "zyx"]
    if not np.allclose(found, direction, atol=0.01) or ours["anisotropy"][0] < 0.9:
        raise Difference(f"{found}, anisotropy {ours['anisotropy'][0]}")


def rows_of(table, **where):
    """Columns of the rows in which columns have these values."""
    chosen = np.all([table[name] == value for name, value in where.items()], axis=0)
    return {name: column[chosen] for name, column in table.items()}


@test
def an_image_with_more_times_than_labels_gives_rows_for_each():
    labels, rng = cells((7, 25, 31)), np.random.default_rng(5)
    for dtype in (np.uint8, np.float32):
        films = (rng.random((6, 7, 25, 31)) * 250).astype(dtype)
        for chunk in CHUNKS + (("--chunk", "3x8x31"),):
            ours = run('measure(l, name_axes(i, "t z y x"), l * 2, properties = "voxels centroid mean min std '
                       'weighted_centroid")', *chunk, table=True, l=labels, i=films)
            if list(ours)[:3] != ["label", "t", "voxels"] or not np.array_equal(ours["t"], np.sort(ours["t"])):
                raise Difference(f"columns {list(ours)}, t {ours['t']}")
            for t, film in enumerate(films):
                one, peer = rows_of(ours, t=t), run('measure(l, i, l * 2, properties = "voxels centroid mean min std '
                                                    'weighted_centroid")', table=True, l=labels, i=film)
                for name, column in peer.items():
                    near(one[name], column, f"{name} at {t}", 0)
                skimages = skimage.measure.regionprops_table(labels, film, ("intensity_mean",))
                near(one["mean"], skimages["intensity_mean"], "mean", 1e-6)


@test
def a_long_film_is_measured_in_little_memory():
    film = 'name_axes(phantom("noise", [400, 200, 200]), "t y x")'
    text = f'measure(label(gaussian({film}[0], 2) > 0.51), {film}, properties = "voxels mean max")'
    whole, parts = run(text, "--memory", "300M", table=True), run(text, "--chunk", "100x30x200", table=True)
    if len(whole["label"]) != 400 * len(np.unique(whole["label"])):
        raise Difference(f"{len(whole['label'])} rows of {len(np.unique(whole['label']))} labels")
    for name, column in whole.items():
        near(parts[name], column, name, 0)


@test
def channels_give_columns_wherever_their_axis_is():
    labels, rng = cells((60, 45)), np.random.default_rng(6)
    colours = rng.integers(0, 255, (60, 45, 3), dtype=np.uint8)
    peer = skimage.measure.regionprops_table(labels, colours, ("label", "intensity_mean", "intensity_max"), extra_properties=())
    planar = np.ascontiguousarray(colours.transpose(2, 0, 1))
    for text, image in (("i, \"y x c\"", colours), ("i, \"c y x\"", planar), ("i, \"y c x\"", colours.transpose(0, 2, 1))):
        for chunk in CHUNKS:
            ours = run(f"measure(l, name_axes({text}), l)", *chunk, table=True, l=labels, i=np.ascontiguousarray(image))
            for c in range(3):
                near(ours[f"mean_c{c}"], peer[f"intensity_mean-{c}"], f"mean of channel {c} of {text}", 1e-12)
                near(ours[f"max_c{c}"], peer[f"intensity_max-{c}"], f"max of channel {c} of {text}", 0)
            near(ours["mean_2"], peer["label"], "the second image", 0)
    both = run('measure(l, name_axes(i, "t c y x"))', table=True, l=labels, i=np.stack([planar, 255 - planar]))
    near(rows_of(both, t=1)["mean_c2"], 255 - peer["intensity_mean-2"], "the last channel at the last time", 1e-12)


@test
def an_image_without_an_axis_of_the_labels_serves_all_of_it():
    labels, image = cells((9, 20, 30)), np.random.default_rng(7).random((20, 30), dtype=np.float32)
    for ours in (run("measure(l, i, properties = \"mean min std\")", "--chunk", "11", table=True, l=labels, i=image),
                 run('measure(l, name_axes(i, "t z y x"), properties = "mean min std")', table=True, l=labels,
                     i=image[None, None])):
        peer = run("measure(l, i, properties = \"mean min std\")", table=True, l=labels,
                   i=np.ascontiguousarray(np.broadcast_to(image, labels.shape)))
        for name, column in peer.items():
            near(ours[name], column, name, 0)


@test
def wrong_properties_are_told():
    plane, volume = cells((20, 20)), cells((8, 9, 10))
    for text, words in (("measure(p / 2)", "labels is float"), ("measure(p, v)", "y has 20 voxels in labels and 9 in intensity"),
                        ("measure(p, name_axes(w, \"c y x\"))", "intensity has 20 channels; at most 16"),
                        ("measure(p, name_axes(w, \"t y x\"), name_axes(w[0:5], \"t y x\"))", "intensity_2 has 5 voxels along t"),
                        ("measure(p, properties = \"volum\")", "there is no volum (did you mean volume?)"),
                        ("measure(p, properties = \"mean\")", "needs an intensity image"),
                        ("measure(p, properties = \"surface_area\")", "planes have perimeter"),
                        ("measure(v, properties = \"perimeter\")", "volumes have surface_area"),
                        ("measure(v, properties = \"voxels, voxels\")", "named twice")):
        try:
            run(text, p=plane, v=volume, w=np.zeros((20, 20, 20), np.uint8))
        except Difference as told:
            if words not in str(told):
                raise Difference(f"{text} says {told}")
        else:
            raise Difference(f"{text} is accepted")


# Columns of regionprops_table, by what they are here. A function is given the table and the axes, and makes as many columns.
BOX = {"bbox": lambda t, axes: [t[f"bbox_{end}_{a}"] for end in ("min", "max") for a in axes],
       "area_bbox": lambda t, axes: [np.prod([t[f"bbox_max_{a}"] - t[f"bbox_min_{a}"] for a in axes], axis=0)],
       "centroid": lambda t, axes: [t[f"centroid_{a}"] for a in axes],
       "centroid_local": lambda t, axes: [t[f"centroid_{a}"] - t[f"bbox_min_{a}"] for a in axes],
       "centroid_weighted": lambda t, axes: [t[f"weighted_centroid_{a}"] for a in axes],
       "centroid_weighted_local": lambda t, axes: [t[f"weighted_centroid_{a}"] - t[f"bbox_min_{a}"] for a in axes],
       "inertia_tensor_eigvals": lambda t, axes: [t[f"inertia_tensor_eigvals_{k}"] for k in range(len(axes))]}
ALIKE = {"area": "voxels", "area_convex": "convex_volume", "axis_major_length": "axis_major_length",
         "axis_minor_length": "axis_minor_length", "eccentricity": "eccentricity", "label": "label",
         "equivalent_diameter_area": "equivalent_diameter", "euler_number": "euler_number", "extent": "extent",
         "feret_diameter_max": "feret_max", "intensity_max": "max", "intensity_mean": "mean", "intensity_min": "min",
         "intensity_std": "std", "num_pixels": "voxels", "perimeter": "perimeter", "perimeter_crofton": "perimeter_crofton",
         "solidity": "solidity"}
TURNED = {"orientation"}  # compared by check_orientation
OF_PLANES = {"eccentricity", "perimeter", "perimeter_crofton", "orientation", "moments_hu", "moments_weighted_hu"}
# Voxels and not numbers; what fill_holes tells; and moments, of which the tensor's axes and lengths are what people read.
LEFT_OUT = {"coords", "coords_scaled", "image", "image_convex", "image_filled", "image_intensity", "slice", "area_filled",
            "inertia_tensor", "intensity_median"}


def regionprops_columns():
    from skimage.measure import _regionprops
    return {name for name in _regionprops.PROP_VALS if not name.startswith("moments")} - LEFT_OUT


@test
def every_column_of_regionprops_table_is_here():
    random = np.random.default_rng(20)
    for labels in (cells((120, 150), 21), skimage.measure.label(ndimage.zoom(cells((20, 24, 30), 22) > 0, 2, order=0))):
        labels = remove_small_objects(labels, 30)  # flat ones have no hull for the peer
        axes, image = "zyx"[-labels.ndim:], random.random(labels.shape) * 100
        wanted = regionprops_columns() - (OF_PLANES if labels.ndim == 3 else set())
        unknown = wanted - set(ALIKE) - set(BOX) - TURNED
        if unknown:
            raise Difference(f"regionprops_table has {sorted(unknown)}, and nobody has looked at it")
        peer = skimage.measure.regionprops_table(labels, image, tuple(wanted))
        ours = run('measure(l, i, properties = "all")', table=True, l=labels, i=image)
        for name in wanted - TURNED:
            made = BOX[name](ours, axes) if name in BOX else [ours[ALIKE[name]]]
            theirs = [peer[name]] if name in peer else [peer[f"{name}-{k}"] for k in range(len(made))]
            for mine, other in zip(made, theirs):
                near(mine, other, name, 1e-6)


@test
def mesh_area_equals_scikit_image():
    """Of each object by itself, in a frame of zeros; and the sum of what mesh gives."""
    small = np.random.default_rng(23).integers(0, 4, (9, 10, 11)).astype(np.uint8)  # all ways that corners can lie
    for labels in (cells((30, 41, 52), 24), small):
        tables = [run('measure(l, properties = "mesh_area")', *chunk, table=True, l=labels) for chunk in CHUNKS]
        for table in tables[1:]:
            near(table["mesh_area"], tables[0]["mesh_area"], "lattice", 0)
        framed = run('group(mesh(pad(l, 1), each = true), "label", "sum(area) as area")', table=True, l=labels)
        near(tables[0]["mesh_area"], framed["area"], "mesh", 1e-12)
        for label, area in zip(tables[0]["label"], tables[0]["mesh_area"]):
            mask = np.pad(labels == label, 1).astype(np.float32)
            points, triangles, *_ = skimage.measure.marching_cubes(mask, 0.5, method="lorensen")
            near(np.array([area]), [skimage.measure.mesh_surface_area(points, triangles)], f"label {label}", 1e-3)


@test
def mesh_area_follows_the_spacing():
    z, y, x = np.mgrid[-20:21, -20:21, -20:21]
    ball = ((z * 2)**2 + y**2 + (x * 0.5)**2 < 9**2).astype(np.uint8)
    [row] = nifti('measure(read("l.nii"), properties = "mesh_area")', ball, (2, 1, 0.5))
    points, triangles, *_ = skimage.measure.marching_cubes(ball.astype(np.float32), 0.5, spacing=(2, 1, 0.5), method="lorensen")
    near(np.array([row["mesh_area"]]), [skimage.measure.mesh_surface_area(points, triangles)], "mesh_area", 1e-5)


test.main()
