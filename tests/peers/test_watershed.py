#!/usr/bin/python3
"""peaks and watershed against scikit-image, through the command, on several lattices."""
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


test.main()
