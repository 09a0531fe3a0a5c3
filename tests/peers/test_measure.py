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

from pipelines import Difference, near, run, test

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
def labels_with_gaps_equal_regionprops():
    labels = cells((40, 200), 3).astype(np.uint16) * 7
    check(labels, np.random.default_rng(4).random(labels.shape), CHUNKS[:2])


@test
def label_and_measure_in_one_pipeline_equal_regionprops():
    mask = np.random.default_rng(5).random((40, 50, 60)) < 0.2
    peer = skimage.measure.regionprops_table(ndimage.label(mask)[0], None, ("label", "area"))
    ours = run("measure(label(a))", "--chunk", "16", table=True, a=mask)
    near(ours["label"], peer["label"], "label", 0)
    near(ours["voxels"], peer["area"], "voxels", 0)


test.main()
