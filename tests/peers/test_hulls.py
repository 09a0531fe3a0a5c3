#!/usr/bin/python3
"""Convex hulls, percentiles, planes taken apart and overlaps of labels, beside scikit-image, numpy and scipy."""
import subprocess
import sys
import tempfile
import warnings

try:
    import nibabel
    import numpy as np
    import scipy.ndimage as ndimage
    import scipy.spatial
    import skimage.io
    import skimage.measure
except ImportError as missing:
    print(f"skip hulls: {missing}")
    sys.exit(0)

from pipelines import FOVEA, Difference, near, run, test

warnings.simplefilter("ignore")
CHUNKS = ((), ("--chunk", "13"), ("--chunk", "9", "--engine", "processes", "--workers", "2"))


def cells(shape, seed=0, share=0.7, sigma=1.5):
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).random(shape), sigma)
    return ndimage.label(noise > np.quantile(noise, share))[0].astype(np.int32)


def drawn():
    """Shapes with long hulls: a ring, a C, a diagonal line, single pixels, a label in two places."""
    labels = np.zeros((90, 110), np.uint8)
    y, x = np.mgrid[:90, :110]
    r = np.hypot(y - 30, x - 30)
    labels[(r > 15) & (r < 20)] = 1
    labels[60:85, 10:40] = 2
    labels[65:80, 20:40] = 0
    labels[np.arange(40), 60 + np.arange(40)] = 3
    labels[80, 100] = 4
    labels[70, 60] = labels[75, 95] = 5
    return labels


def check(labels, chunks=CHUNKS):
    """Every object whose hull the peer can make: it gives up flat ones in space."""
    compared, tables, peers = 0, [], {}
    for i, region in enumerate(skimage.measure.regionprops(labels)):
        if labels.ndim == 2 or (region.image_convex | ~region.image).all():
            peers[i] = (region.label, region.area, region.area_convex, region.solidity, region.feret_diameter_max)
    for chunk in chunks:
        ours = run('measure(l, properties = "voxels convex_volume solidity feret_max")', *chunk, table=True, l=labels)
        tables.append(ours)
        for i, theirs in peers.items():
            mine = tuple(ours[name][i] for name in ("label", "voxels", "convex_volume", "solidity", "feret_max"))
            if mine != theirs:
                raise Difference(f"{chunk}: {mine}, the peer has {theirs}")
            compared += 1
    for table in tables[1:]:
        if any(not np.array_equal(table[name], tables[0][name]) for name in table):
            raise Difference("hulls depend on the lattice")
    return compared


@test
def hulls_of_planes_equal_scikit_image():
    check(drawn())
    check(cells((120, 150)))
    check(cells((150, 200), 2, 0.6, 4), CHUNKS[:2])


@test
def hulls_of_volumes_equal_scikit_image():
    if check(cells((20, 30, 40), 1)) + check(cells((40, 50, 60), 2, 0.8, 3), CHUNKS[:2]) < 40:
        raise Difference("too few objects were compared")


@test
def hulls_of_a_real_image_equal_scikit_image():
    from fovea_test import Skip, data
    try:
        coins = skimage.io.imread(data("images", "coins.png"), as_gray=True)
    except Skip:
        return
    labels = skimage.measure.label(ndimage.gaussian_filter(coins.astype(float), 1) > 0.43 * coins.max()).astype(np.int32)
    if check(labels, CHUNKS[:2]) < 40:
        raise Difference("too few coins")


@test
def the_least_diameter_is_that_of_the_hull():
    labels = cells((120, 150), 3)
    ours = run('hulls(l)', "--chunk", "20", table=True, l=labels)
    for i, region in enumerate(skimage.measure.regionprops(labels)):
        voxels = np.argwhere(region.image_convex)
        points = np.concatenate([voxels + step for step in ((0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5))])
        hull = scipy.spatial.ConvexHull(points)
        widths = (points @ hull.equations[:, :2].T + hull.equations[:, 2]).min(0)
        near(ours["feret_min"][i:i + 1], [-widths.max()], "feret_min", 1e-12)


def spaced(expression, labels, spacing, *options):
    """The table that an expression in l makes, with a spacing along z, y and x."""
    with tempfile.TemporaryDirectory() as folder:
        image = nibabel.Nifti1Image(labels.transpose(2, 1, 0), np.diag([*spacing[::-1], 1.0]))
        nibabel.save(image, f"{folder}/l.nii")
        text = f'l = read("l.nii")\nwrite({expression}, "out.csv")'
        subprocess.run([FOVEA, "run", "--quiet", *options, "-e", text], cwd=folder, check=True)
        table = np.genfromtxt(f"{folder}/out.csv", delimiter=",", names=True, ndmin=1)
        return {name: table[name] for name in table.dtype.names}


def least_width(points):
    """By trying all directions that can be the narrowest: normals of faces, and of each two edges."""
    hull = scipy.spatial.ConvexHull(points)
    edges = {tuple(sorted(pair)) for a, b, c in hull.simplices for pair in ((a, b), (b, c), (a, c))}
    along = np.array([points[b] - points[a] for a, b in edges])
    ways = np.concatenate([hull.equations[:, :3], np.cross(along[:, None], along[None]).reshape(-1, 3)])
    length = np.linalg.norm(ways, axis=1)
    ways = ways[length > 1e-9] / length[length > 1e-9, None]
    corners, least = points[hull.vertices], np.inf
    for start in range(0, len(ways), 20000):
        least = min(least, np.ptp(corners @ ways[start:start + 20000].T, axis=0).min())
    return least


@test
def the_least_diameter_of_a_volume_is_that_of_the_hull():
    labels, compared = cells((16, 22, 26), 5, 0.8, 1.2), 0
    z, y, x = np.mgrid[:16, :22, :26]
    slanted = np.abs((z - 8) * 1.1 + (y - 11) * 0.6 + (x - 13) * 0.8) < 4
    slanted &= np.abs((z - 8) * 0.3 - (y - 11) * 1.2 + (x - 13) * 0.5) < 6
    for shape, spacing in ((labels, (1, 1, 1)), (labels, (2.5, 0.75, 1)), (slanted.astype(np.uint8), (1, 1, 1))):
        tables = [spaced("hulls(l)", shape, spacing, *chunk) for chunk in CHUNKS[:2]]
        near(tables[1]["feret_min"], tables[0]["feret_min"], "lattice", 0)
        for i, region in enumerate(skimage.measure.regionprops(shape)):
            if region.area < 40 or not (region.image_convex | ~region.image).all():
                continue
            steps = [step for k in range(3) for step in (np.eye(3)[k] / 2, -np.eye(3)[k] / 2)]
            points = np.concatenate([np.argwhere(region.image_convex) + step for step in steps]) * spacing
            near(tables[0]["feret_min"][i:i + 1], [least_width(points)], f"label {region.label}", 1e-9)
            compared += 1
    if compared < 8:
        raise Difference(f"only {compared} objects were compared")


@test
def a_box_is_as_narrow_as_its_shortest_side():
    labels = np.zeros((12, 14, 40), np.uint8)
    labels[3:8, 2:12, 5:35] = 1
    labels[0, 0, 0] = 2
    ours = run("hulls(l)", table=True, l=labels)
    near(ours["feret_min"], [5, 1 / np.sqrt(3)], "feret_min", 1e-12)  # one voxel is an octahedron


@test
def percentiles_equal_numpy():
    labels = cells((20, 30, 40), 4)
    random = np.random.default_rng(5)
    for dtype in (np.uint8, np.int16, np.uint32, np.float32, np.float64, np.int64):
        image = (random.random(labels.shape) * 200 - (0 if np.dtype(dtype).kind == "u" else 50)).astype(dtype)
        for chunk in CHUNKS[:2]:
            ours = run('measure(l, i, properties = "mean median percentile_5 percentile_95 sum")', *chunk, table=True, l=labels,
                       i=image)
            inside = [image[labels == label].astype(float) for label in range(1, labels.max() + 1)]
            for name, share in (("median", 50), ("percentile_5", 5), ("percentile_95", 95)):
                near(ours[name], [np.percentile(values, share) for values in inside], f"{dtype} {name}", 1e-15)
            near(ours["sum"], [values.sum() for values in inside], "sum", 1e-12)


@test
def a_nan_makes_the_percentiles_of_its_object_nan():
    labels = np.array([[1, 1, 2, 2, 2]], np.uint8)
    ours = run('measure(l, i, properties = "median")', table=True, l=labels, i=np.array([[1, np.nan, 3, 4, 9.]]))
    if not np.isnan(ours["median"][0]) or ours["median"][1] != 4:
        raise Difference(f"{ours}")


@test
def planes_and_times_are_measured_by_themselves():
    labels = np.stack([cells((40, 50), seed) for seed in range(5)])
    image = np.random.default_rng(6).random(labels.shape)
    pairs = {"area": "voxels", "solidity": "solidity", "perimeter": "perimeter", "feret_diameter_max": "feret_max",
             "eccentricity": "eccentricity", "intensity_mean": "mean", "euler_number": "euler_number"}
    for axes, axis, chunks in (("t y x", "t", CHUNKS), ("z y x", "z", CHUNKS[1:2])):
        for chunk in chunks:
            named = f'name_axes(l, "{axes}"), name_axes(i, "{axes}")'
            ours = run(f'measure({named}, properties = "all median", per = "{axis}")', *chunk, table=True, l=labels, i=image)
            for t in range(5):
                regions = skimage.measure.regionprops(labels[t], image[t])
                rows = ours[axis] == t
                for theirs, mine in pairs.items():
                    near(ours[mine][rows], [getattr(region, theirs) for region in regions], mine, 1e-9)
                medians = [np.median(image[t][labels[t] == region.label]) for region in regions]
                near(ours["median"][rows], medians, "median", 1e-15)


@test
def overlaps_equal_the_contingency_table():
    a, b = cells((30, 40, 50), 7), cells((30, 40, 50), 8).astype(np.uint16) * 3
    for chunk in CHUNKS:
        ours = run("overlaps(a, b)", *chunk, table=True, a=a, b=b)
        pairs, counts = np.unique(np.stack([a.ravel(), b.ravel().astype(np.int64)]), axis=1, return_counts=True)
        both = (pairs != 0).all(0)
        near(ours["label_a"], pairs[0][both], "a", 0)
        near(ours["label_b"], pairs[1][both], "b", 0)
        near(ours["voxels"], counts[both], "voxels", 0)
        of_a, of_b = np.bincount(a.ravel())[pairs[0][both]], np.bincount(b.ravel())[pairs[1][both]]
        near(ours["share_a"], counts[both] / of_a, "share_a", 1e-15)
        near(ours["share_b"], counts[both] / of_b, "share_b", 1e-15)
        near(ours["iou"], counts[both] / (of_a + of_b - counts[both]), "iou", 1e-15)
    all_of_them = run("overlaps(a, b, background = true)", table=True, a=a, b=b)
    near(all_of_them["voxels"], counts[(pairs != 0).any(0)], "voxels with background", 0)


@test
def the_distance_to_objects_of_another_image_is_a_measure():
    a, b = cells((80, 90), 9), cells((80, 90), 10, 0.97)
    ours = run('measure(a, distance(b == 0), properties = "min")', "--chunk", "30", table=True, a=a, b=b)
    far = ndimage.distance_transform_edt(b == 0)
    near(ours["min"], ndimage.minimum(far, a, np.arange(1, a.max() + 1)), "distance", 1e-6)


test.main()
