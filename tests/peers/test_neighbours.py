#!/usr/bin/python3
"""neighbours and keep against numpy on whole arrays, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.measure
except ImportError as missing:
    print(f"skip neighbours: {missing}")
    sys.exit(0)

from pipelines import Difference, near, run, same, test

CHUNKS = ((), ("--chunk", "7"), ("--chunk", "40", "--engine", "processes", "--workers", "2"))


def contacts(labels, background=False):
    """(a, b) -> faces across each axis."""
    found = {}
    for axis in range(labels.ndim):
        one = np.take(labels, range(labels.shape[axis] - 1), axis).ravel().astype(np.int64)
        other = np.take(labels, range(1, labels.shape[axis]), axis).ravel().astype(np.int64)
        pairs = np.stack([np.minimum(one, other), np.maximum(one, other)])[:, one != other]
        if not background:
            pairs = pairs[:, (pairs != 0).all(0)]
        keys, counts = np.unique(pairs, axis=1, return_counts=True)
        for (a, b), count in zip(keys.T, counts):
            found.setdefault((int(a), int(b)), [0] * labels.ndim)[axis] = int(count)
    return dict(sorted(found.items()))


def cells(shape, seed=0, dtype=np.int32):
    """A tessellation with gaps: nearest of random points."""
    random = np.random.default_rng(seed)
    points = random.random((40, len(shape))) * shape
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    labels = np.argmin(((grid[..., None, :] - points) ** 2).sum(-1), -1) + 1
    labels[ndimage.gaussian_filter(random.random(shape), 2) > 0.52] = 0
    return labels.astype(dtype)


def check(labels, background=False, chunks=CHUNKS):
    peer = contacts(labels, background)
    for chunk in chunks:
        ours = run(f"neighbours(l, background = {str(background).lower()})", *chunk, table=True, l=labels)
        near(ours["label_a"], [a for a, _ in peer], "label_a", 0)
        near(ours["label_b"], [b for _, b in peer], "label_b", 0)
        near(ours["faces"], [sum(f) for f in peer.values()], "faces", 0)
        near(ours["area"], [sum(f) for f in peer.values()], "area", 0)


@test
def contacts_in_a_plane_and_a_volume_are_all_faces():
    check(cells((80, 90)))
    check(cells((20, 30, 33), 1))
    check(cells((20, 30, 33), 1), background=True)


@test
def contacts_of_every_type_of_label_are_found():
    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int64, np.uint64):
        check(cells((50, 40), 2, dtype), chunks=CHUNKS[:2])
    check(cells((50, 40), 2) > 20, background=True, chunks=CHUNKS[:2])


@test
def one_voxel_and_one_label_touch_nothing():
    for labels in (np.ones((1, 1), np.int32), np.ones((5, 6), np.uint8), np.zeros((4, 4, 4), np.int16)):
        if len(run("neighbours(l)", table=True, l=labels)["faces"]):
            raise Difference(f"{labels.shape} has contacts")


@test
def contact_area_counts_the_spacing():
    import nibabel
    import pathlib
    import subprocess
    import tempfile
    from pipelines import FOVEA
    labels = cells((12, 14, 16), 3)
    with tempfile.TemporaryDirectory() as folder:
        nibabel.save(nibabel.Nifti1Image(labels.transpose(2, 1, 0), np.diag([0.5, 2, 3, 1])), f"{folder}/l.nii")
        subprocess.run([FOVEA, "run", "--quiet", "-e", 'write(neighbours(read("l.nii")), "out.csv")'], cwd=folder, check=True)
        rows = pathlib.Path(f"{folder}/out.csv").read_text().split()[1:]
    peer = [f[0] * 0.5 * 2 + f[1] * 0.5 * 3 + f[2] * 2 * 3 for f in contacts(labels).values()]
    near(np.array([float(row.split(",")[3]) for row in rows]), peer, "area")


@test
def labels_that_satisfy_a_condition_stay():
    labels = cells((20, 30, 33), 4)
    image = np.random.default_rng(5).integers(0, 200, labels.shape).astype(np.uint8)
    table = skimage.measure.regionprops_table(labels, image, ("label", "area", "intensity_mean"))
    stay = table["label"][(table["area"] > 300) & ~(table["intensity_mean"] / 2 >= 50) | (table["label"] <= 2)]
    wanted = np.where(np.isin(labels, stay), labels, 0)
    text = "keep(l, measure(l, i), \"voxels > 300 & !(mean / 2 >= 50) or label <= 2\")"
    for chunk in CHUNKS:
        same(run(text, *chunk, l=labels, i=image), wanted)


@test
def labels_far_apart_and_of_every_type_stay():
    for dtype, factor in ((np.uint8, 3), (np.int16, 700), (np.uint32, 1 << 24), (np.int64, 1 << 50), (np.uint64, 1 << 50)):
        labels = cells((40, 50), 6, dtype) * dtype(factor)
        counts = np.bincount((labels // dtype(factor)).ravel().astype(int))
        wanted = np.where(counts[(labels // dtype(factor)).astype(int)] > 40, labels, 0)
        same(run("keep(l, measure(l), \"voxels > 40\")", "--chunk", "17", l=labels), wanted.astype(dtype), str(dtype))


@test
def nothing_stays_where_nothing_satisfies():
    labels = cells((40, 50), 6)
    same(run("keep(l, measure(l), \"voxels < 0\")", l=labels), np.zeros_like(labels))
    same(run("keep(l, measure(l), \"label > 0\")", l=labels), labels)


@test
def wrong_labels_and_conditions_are_told():
    labels = cells((20, 20), 7)
    for text, words in (("neighbours(l / 2)", "labels is float64; it must be an integer image"),
                        ("keep(l / 2, measure(l), \"voxels > 1\")", "labels is float64; it must be an integer image"),
                        ("keep(l, neighbours(l), \"faces > 1\")", "has no column label"),
                        ("keep(l, measure(l), \"volum > 1\")", "no column volum (did you mean volume?)"),
                        ("keep(l, measure(l), \"voxels\")", "a comparison is needed"),
                        ("keep(l, measure(l), \"1 < voxels < 3\")", "cannot be chained"),
                        ("keep(l, measure(l), \"voxels > (3\")", "a ) is missing"),
                        ("keep(l, measure(l), \"voxels = 3\")", "equality is written ==")):
        try:
            run(text, l=labels)
        except Difference as told:
            if words not in str(told):
                raise Difference(f"{text} says {told}")
        else:
            raise Difference(f"{text} is accepted")


test.main()
