#!/usr/bin/python3
"""peaks and watershed against scikit-image, through the command, on several lattices."""
import heapq
import os
import pathlib
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    from skimage.feature import peak_local_max
    from skimage.filters import threshold_otsu
    from skimage.segmentation import watershed
except ImportError as missing:
    print(f"skip watershed: {missing}")
    sys.exit(0)

from pipelines import ROOT, Difference, run, same, test

CHUNKS = ((), ("--chunk", "61"))


def marked(image, **options):
    mask = np.zeros(image.shape, bool)
    mask[tuple(peak_local_max(image, **options).T)] = True
    return mask


@test
def peaks_without_ties_equal_scikit_image():
    random = np.random.default_rng(0)
    smooth = ndimage.gaussian_filter(random.random((150, 170)), 3).astype(np.float32)
    for image in (random.random((50, 60)), random.random((20, 30, 40)), smooth):
        for distance in (1, 4, 30):
            for border in ("true", "false"):
                peer = marked(image, min_distance=distance, exclude_border=border == "true")
                for chunk in CHUNKS:
                    same(run(f"peaks(a, min_distance = {distance}, exclude_border = {border})", *chunk, a=image), peer,
                         f"distance {distance}, border {border}, {chunk}")
    level = float(np.quantile(smooth, 0.7))
    same(run(f"peaks(a, min_distance = 3, threshold = {level!r})", a=smooth), marked(smooth, min_distance=3, threshold_abs=level))


@test
def peaks_of_integers_are_one_of_scikit_images_candidates_each():
    coins = skimage.data.coins()
    for dtype in (np.uint8, np.int16, np.uint32, np.int64, np.float64):
        ours = run("peaks(a, min_distance = 6, exclude_border = false)", a=coins.astype(dtype))
        assert not (ours & (coins != ndimage.maximum_filter(coins, 13, mode="nearest"))).any(), "a peak that is no maximum"
        same(ours, run("peaks(a, min_distance = 6, exclude_border = false)", *CHUNKS[1], a=coins), str(dtype))
        reach = ndimage.binary_dilation(ours, np.ones((13, 13)))
        peer = marked(coins, min_distance=6, exclude_border=False)
        assert (peer & ~reach).sum() < 0.12 * peer.sum(), "chains of equal maxima are few"


@test
def constant_images_and_nan_have_no_peaks():
    assert not run("peaks(a)", a=np.ones((9, 9), np.float32)).any()
    assert not run("peaks(a, exclude_border = false)", a=np.ones((1, 1), np.float32)).any()
    assert not run("peaks(a, exclude_border = false)", a=np.full((9, 9), np.nan, np.float32)).any()
    spots = np.pad(np.array([[9]]), 4)
    for dtype in ("uint8", "int64", "float32"):  # nothing is above a threshold that is nan
        assert not run("peaks(a, threshold = mean(b))", a=spots.astype(dtype), b=np.full((2, 2), np.nan)).any()
    image = np.zeros((9, 9), np.float32)
    image[4, 4], image[4, 5], image[0, 0] = 5, np.nan, np.inf
    assert np.argwhere(run("peaks(a, exclude_border = false)", a=image)).tolist() == [[0, 0], [4, 4]]


def ties(image, mask):
    """Voxels that have a neighbour of equal value: where floods may meet on a plateau."""
    same_value = np.zeros(image.shape, bool)
    for axis in range(image.ndim):
        equal = np.diff(image, axis=axis) == 0
        low, high = [slice(None)] * image.ndim, [slice(None)] * image.ndim
        low[axis], high[axis] = slice(0, -1), slice(1, None)
        same_value[tuple(low)] |= equal
        same_value[tuple(high)] |= equal
    return same_value & mask


def compare(image, markers, mask, most, connectivity=1):
    """Our basins on every lattice, and how many voxels differ from scikit-image's."""
    results = [run(f"watershed(a, m, k, connectivity = {connectivity})", *chunk, a=image, m=markers, k=mask) for chunk in CHUNKS]
    for other in results[1:]:
        same(results[0], other, "chunks")
    peer = watershed(image, markers, mask=mask, connectivity=connectivity)
    assert ((results[0] == 0) == (peer == 0)).all(), "another foreground"
    share = (results[0] != peer)[mask & ~ties(image, mask)].mean()
    if share > most:
        raise Difference(f"{share:.4%} of the voxels without ties differ; at most {most:.4%}")


@test
def basins_of_real_images_equal_scikit_images_away_from_ties():
    for image in (skimage.data.coins(), skimage.data.camera(), skimage.data.cell()):
        mask = image > threshold_otsu(image)
        distance = ndimage.distance_transform_edt(mask).astype(np.float32)
        markers = run("label(peaks(a, min_distance = 5, exclude_border = false))", a=distance)
        compare(-distance, markers, mask, 0.02)
        smooth = ndimage.gaussian_filter(image.astype(np.float32), 2)
        low, _ = ndimage.label(smooth == ndimage.minimum_filter(smooth, 15))
        compare(smooth, low.astype(np.int32), np.ones(image.shape, bool), 0.001)


@test
def basins_of_recorded_images_equal_scikit_images_away_from_ties():
    from skimage.io import imread
    folder = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data")) / "images"
    for name in ("em_image.png", "cell.png"):
        if not (folder / name).exists():
            print(f"skip {name}: no test data")
            continue
        image = imread(folder / name)
        image = (image if image.ndim == 2 else image[..., 0])[:400, :400].astype(np.float32)
        smooth = ndimage.gaussian_filter(image, 2)
        low, _ = ndimage.label(smooth == ndimage.minimum_filter(smooth, 11))
        for connectivity in (1, 2):
            compare(smooth, low.astype(np.int32), np.ones(image.shape, bool), 0.002, connectivity)


@test
def basins_of_a_volume_equal_scikit_images_away_from_ties():
    smooth = ndimage.gaussian_filter(np.random.default_rng(5).random((40, 50, 60)), 2)
    low, _ = ndimage.label(smooth == ndimage.minimum_filter(smooth, 7))
    for connectivity in (1, 3):
        compare(smooth, low.astype(np.int32), smooth < np.quantile(smooth, 0.8), 0.003, connectivity)


@test
def lines_lie_where_basins_meet():
    smooth = ndimage.gaussian_filter(np.random.default_rng(6).random((90, 80)), 3)
    low, _ = ndimage.label(smooth == ndimage.minimum_filter(smooth, 9))
    low = low.astype(np.int32)
    ours = run("watershed(a, m, line = true)", a=smooth, m=low)
    peer = watershed(smooth, low, watershed_line=True)
    assert abs((ours == 0).mean() - (peer == 0).mean()) < 0.05 and (ours == peer)[(ours > 0) & (peer > 0)].mean() > 0.97
    plain = run("watershed(a, m)", a=smooth, m=low)
    assert (ours == plain)[ours > 0].all(), "the line only takes away"


def flooded(image, markers, mask, steps):
    """A watershed by a queue, step by step. No two markers may have the same value."""
    labels, queue, age = np.where(mask, markers, 0), [], 0
    for place in map(tuple, np.argwhere(labels)):
        heapq.heappush(queue, (float(image[place]), 0, place))
    while queue:
        height, _, place = heapq.heappop(queue)
        for step in steps:
            near = tuple(a + b for a, b in zip(place, step))
            if any(not 0 <= a < n for a, n in zip(near, image.shape)) or labels[near] or not mask[near]:
                continue
            labels[near], age = labels[place], age + 1
            heapq.heappush(queue, (max(float(image[near]), height), age, near))
    return labels


@test
def a_queue_floods_in_order_of_value_and_time():
    random = np.random.default_rng(7)
    for shape, dtype in (((40, 53), np.uint8), ((40, 53), np.float64), ((9, 14, 11), np.int16), ((60,), np.float32)):
        image = random.integers(0, 12, shape).astype(dtype)
        places = random.choice(image.size, 5, replace=False)
        image.flat[places], markers = np.arange(5), np.zeros(shape, np.uint16)
        markers.flat[places] = (7, 3, 900, 7, 1)
        mask = (random.random(shape) > 0.1) | (markers > 0)
        steps = sorted((s for s in np.ndindex((3,) * image.ndim) if sum(v != 1 for v in s) == 1))
        steps = [tuple(v - 1 for v in s) for s in steps]
        for chunk in ((), ("--chunk", "17")):
            same(run("watershed_queue(a, m, k)", *chunk, a=image, m=markers, k=mask), flooded(image, markers, mask, steps),
                 f"{shape} {dtype} {chunk}")


@test
def a_queue_equals_scikit_image_voxel_for_voxel():
    if tuple(map(int, skimage.__version__.split(".")[:2])) < (0, 26):
        print("skip a_queue_equals_scikit_image: floods of versions before 0.26 fall behind a height that they came over")
        return
    random = np.random.default_rng(8)
    for shape in ((31, 44), (7, 12, 9)):
        image, markers = random.integers(0, 6, shape), random.integers(1, 9, shape) * (random.random(shape) < 0.06)
        for connectivity in range(1, len(shape) + 1):
            for options, given in (("", {}), (", compactness = 0.7", {"compactness": 0.7}),
                                   (", line = true", {"watershed_line": True})):
                if "line" in options and (connectivity, len(shape)) > (1, 2):
                    continue  # scikit-image does not come to an end
                same(run(f"watershed_queue(a, m, connectivity = {connectivity}{options})", a=image, m=markers),
                     watershed(image, markers, connectivity, **given), f"{shape} {connectivity} {options}")


@test
def planes_of_other_axes_are_flooded_alone():
    image = np.random.default_rng(9).integers(0, 9, (20, 30, 3)).astype(np.uint8)
    markers = (image == 0).astype(np.int32) * np.arange(1, 601).reshape(20, 30, 1)
    named = 'name_axes({}, "y x c")'
    ours = run(f"watershed_queue({named.format('a')}, {named.format('m')}, line = true)", a=image, m=markers)
    for c in range(3):
        same(ours[..., c], run("watershed_queue(a, m, line = true)", a=image[..., c].copy(), m=markers[..., c].copy()), f"{c}")


test.main()
