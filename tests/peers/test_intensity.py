#!/usr/bin/python3
"""Intensity operators against scikit-image, OpenCV, scipy and scikit-learn."""
import subprocess
import sys
import tempfile
import warnings

try:
    import cv2
    import numpy as np
    import scipy.ndimage as ndimage
    import scipy.stats
    import skimage.data
    import skimage.exposure as exposure
    import skimage.filters as filters
    import skimage.restoration
    import skimage.util
except ImportError as missing:
    print(f"skip intensity: {missing}")
    sys.exit(0)

from pipelines import FOVEA, Difference, near, refused, run, same, test, wide

warnings.simplefilter("ignore")
RNG = np.random.default_rng(5)
CAMERA = skimage.data.camera()[::2, ::2]
COINS = skimage.data.coins()
INTEGERS = "uint8 int8 uint16 int16 uint32 int32 uint64 int64".split()


def blobs(dtype, shape=(13, 40, 50)):
    """Smooth values that fill most of the range of small types, from 0 on."""
    a = ndimage.gaussian_filter(RNG.random(shape), 2)
    a = (a - a.min()) / np.ptp(a)
    if np.dtype(dtype).kind == "f":
        return a.astype(dtype)
    return (a * min(np.iinfo(dtype).max, 5000)).astype(dtype)


def scalars(array, *calls):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/a.npy", array)
        done = subprocess.run([FOVEA, "run", "--quiet", "--chunk", "17", "-e", 'a = read("a.npy")\n' + "\n".join(calls)],
                              cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Difference(f"{calls} ends with {done.returncode}: {done.stderr.strip()}")
        return [float(line) for line in done.stdout.split()]


def fails(expression, words, **arrays):
    """The run ends with a message that has the words."""
    try:
        run(expression, **arrays)
    except Difference as error:
        if words not in str(error):
            raise Difference(f"{expression} should fail with '{words}': {error}") from error
        return
    raise Difference(f"{expression} is accepted")


@test
def many_values_of_two_bytes_become_what_a_few_become():
    """Long expressions of such images are looked up in a table if there are enough voxels, as there are not in small chunks."""
    everything = np.arange(-32768, 32768).reshape(256, 256)
    for dtype in ("uint16", "int16"):
        image = np.tile(everything, (4, 4)).astype(dtype)
        for text in ("gamma(a, 0.7)", "sqrt(log(a + 40000)) * 2 + a ** 0.3", "exp(a / 10000) ** 1.5 > 2",
                     "round(sin(a) * 100 + cos(a))"):
            same(run(text, "--chunk", "2000", a=image), run(text, "--chunk", "64", a=image), f"{text} {dtype}")


@test
def gamma_equals_scikit_image():
    for dtype in INTEGERS + ["float32", "float64"]:
        image = blobs(dtype)
        for exponent, gain in ((1, 1), (0.5, 1), (2.2, 0.7), (0, 1))[:3 if image.itemsize == 8 else 4]:
            ours, peer = run(f"gamma(a, {exponent}, gain = {gain})", "--chunk", "9", a=image), \
                exposure.adjust_gamma(image, exponent, gain)
            if image.dtype.kind == "f":
                near(ours, peer, f"{dtype} {exponent}", 1e-6)
                continue
            assert ours.dtype == peer.dtype, ours.dtype
            different = np.abs(ours.astype(float) - peer.astype(float))
            limit = 1 if image.itemsize < 8 else 1e-12 * float(np.iinfo(dtype).max)
            # the peer's table of uint8 is off by one for 24 values where gamma is 1
            assert different.max() <= limit and (different > 0).mean() < (0.2 if dtype == "uint8" else 1e-3), f"{dtype} {gain}"
        if image.dtype.kind != "f" and image.itemsize < 8:
            same(run("gamma(a, 1)", a=image), image, f"{dtype} is left alone by 1")


@test
def invert_equals_scikit_image():
    for dtype in INTEGERS + ["float32", "float64", "bool"]:
        image = (RNG.random((6, 7)) * 90 - (30 if np.dtype(dtype).kind in "if" else 0)).astype(dtype)
        same(run("invert(a)", "--chunk", "4", a=image), skimage.util.invert(image), dtype)
    ends = np.array([[0, 2**64 - 1, 2**63]], np.uint64)
    same(run("invert(a)", a=ends), ~ends)
    ends = np.array([[-2**63, 2**63 - 1, 0]], np.int64)
    same(run("invert(a)", a=ends), ~ends)


@test
def normalize_equals_scipy_and_scikit_image():
    for dtype in INTEGERS + ["float32", "float64"]:
        image = blobs(dtype)
        near(run("normalize(a)", "--chunk", "9", a=image), scipy.stats.zscore(image.astype(float), axis=None), dtype, 2e-6)
        low, high = np.quantile(image.astype(float), (0.02, 0.9))
        near(run('normalize(a, method = "quantile", quantiles = [0.02, 0.9])', a=image),
             exposure.rescale_intensity(image.astype(float), (low, high), (0, 1)), dtype, 2e-6)
    assert not run("normalize(a)", a=np.full((3, 4), 7, np.uint8)).any()
    assert not run('normalize(a, method = "quantile")', a=np.full((3, 4), 7.5)).any()


@test
def equalize_equals_scikit_image():
    for image in (CAMERA, CAMERA.astype("int32") * 7 - 400, COINS.astype("uint16") * 200, blobs("int16"), CAMERA / 255,
                  blobs("float32"), blobs("float64"), CAMERA[:1, :1], np.arange(5, dtype=np.uint8)):
        peer = exposure.equalize_hist(image)
        ours = run("equalize(a)", "--chunk", "31", a=image)
        assert ours.dtype == wide(image), ours.dtype
        near(ours, peer, f"{image.dtype} {image.shape}", 2e-7)
    for image in (CAMERA, blobs("int16"), COINS.astype("uint32") * 9):
        peer = scipy.stats.rankdata(image).reshape(image.shape)
        same(run('equalize(a, method = "rank")', "--chunk", "31", a=image), peer, f"ranks of {image.dtype}")
    near(run("equalize(a, bins = 77)", a=CAMERA / 255), exposure.equalize_hist(CAMERA / 255, 77), "77 bins", 2e-7)
    assert (run("equalize(a)", a=np.full((3, 4), 0.5)) == 1).all()


@test
def match_histogram_equals_scikit_image():
    for image, reference in ((CAMERA, COINS), (COINS.astype("int16") * 5 - 90, CAMERA), (CAMERA.astype("uint16") * 99, COINS),
                             (COINS, CAMERA.astype("int32") * 1000), (CAMERA[:1, :5], COINS)):
        peer = exposure.match_histograms(image, reference)
        near(run("match_histogram(a, b)", "--chunk", "40", a=image, b=reference), peer, f"{image.dtype}", 1e-6)
    image, reference = blobs("float64"), blobs("float64", (20, 30, 10)) ** 2
    # values in one of the 65536 bins are taken as equal, which is seen where few values lie far apart
    different = np.abs(run("match_histogram(a, b)", a=image, b=reference) - exposure.match_histograms(image, reference))
    assert different.max() < 5e-3 and np.median(different) < 3e-5, f"floats: {different.max()} {np.median(different)}"


@test
def clahe_equals_opencv_bit_for_bit():
    noise = RNG.integers(0, 65536, (61, 77)).astype(np.uint16)
    for image in (CAMERA, COINS, COINS[:40, :37], CAMERA.astype("uint16") * 200, noise, noise[:16, :16], COINS[:3, :5],
                  np.full((20, 30), 9, np.uint8)):
        for tiles, limit in ((8, 40), (4, 2), (5, 3.5), (1, 0)):
            peer = cv2.createCLAHE(limit, (tiles, tiles)).apply(np.ascontiguousarray(image))
            same(run(f"clahe(a, tiles = {tiles}, clip_limit = {limit})", "--chunk", "33", a=image), peer,
                 f"{image.dtype} {image.shape} {tiles} {limit}")
    peer = cv2.createCLAHE(2, (3, 7)).apply(CAMERA)  # OpenCV counts tiles along x first
    same(run("clahe(a, tiles = [7, 3], clip_limit = 2)", a=CAMERA), peer, "7 by 3")


@test
def clahe_of_other_types_is_that_of_moved_or_stretched_values():
    image = COINS.astype("int16") * 100 - 9000
    peer = cv2.createCLAHE(3, (4, 4)).apply((image.astype(int) + 32768).astype("uint16")).astype(int) - 32768
    same(run("clahe(a, tiles = 4, clip_limit = 3)", a=image), peer.astype("int16"))
    for dtype in ("float32", "float64", "int32"):
        image = COINS.astype(dtype) * 3
        stretched = ((image - image.min()) / float(np.ptp(image)) * 65535 + 0.5).astype("uint16")
        peer = cv2.createCLAHE(3, (4, 4)).apply(stretched) / 65535
        near(run("clahe(a, tiles = 4, clip_limit = 3)", a=image), peer, dtype, 1e-4)
    image = np.ones((9, 9))
    image[2, 3] = np.nan
    assert np.isnan(run("clahe(a)", a=image)).all()


@test
def clahe_of_a_volume_of_equal_slices_is_that_of_the_slice_where_tiles_are_whole():
    volume = np.stack([COINS[:64, :64]] * 4)
    peer = cv2.createCLAHE(0, (8, 8)).apply(np.ascontiguousarray(COINS[:64, :64]))
    same(run("clahe(a, tiles = [1, 8, 8], clip_limit = 0)", "--chunk", "20", a=volume), np.stack([peer] * 4))
    peer = cv2.createCLAHE(40, (8, 8)).apply(np.ascontiguousarray(COINS[:64, :64]))
    same(run('clahe(name_axes(a, "y x c"))', a=np.ascontiguousarray(np.moveaxis(volume, 0, 2))),
         np.stack([peer] * 4, axis=2), "channels by themselves")


@test
def niblack_equals_scikit_image():
    for image in (CAMERA, CAMERA / 255, blobs("uint16"), blobs("float64")):
        for window in (3, 15):
            near(run(f"niblack(a, {window})", "--chunk", "37", a=image), filters.threshold_niblack(image, window),
                 f"{window} {image.dtype}", 1e-5)
        near(run("niblack(a, 7, k = -0.5)", a=image), filters.threshold_niblack(image, 7, -0.5), "k", 1e-5)
    refused("niblack(a, 4)", "window_size = 4", a=CAMERA)


def spread(image, thresholds):
    """Sum of squared distances from the means of the classes that thresholds make."""
    classes = np.digitize(image.ravel(), thresholds, right=True)
    values = image.ravel().astype(float)
    return sum(((values[classes == k] - values[classes == k].mean()) ** 2).sum() for k in np.unique(classes))


@test
def multi_otsu_equals_scikit_image():
    for image in (CAMERA, COINS, blobs("uint8"), CAMERA[::3, ::3] / 255, blobs("float32")):
        for classes in (2, 3, 4):
            ours = scalars(image, *(f"multi_otsu(a, {classes}, {k})" for k in range(classes - 1)))
            peer = filters.threshold_multiotsu(image, classes)
            if not np.allclose(ours, peer, rtol=1e-6):  # its sums are float32, so it may miss the best by a bin
                assert spread(image, ours) <= spread(image, peer) * 1.001, f"{image.dtype} {classes}: {ours}, the peer has {peer}"
                step = 1 if image.dtype.kind == "u" else np.ptp(image) / 255
                assert np.abs(np.array(ours) - peer).max() <= 1.01 * step, f"{image.dtype} {classes}: {ours}, the peer has {peer}"
    refused("a > multi_otsu(a, 3, 2)", "3 classes have 2 thresholds", a=CAMERA)
    fails("a > multi_otsu(a, 3)", "only 2 different values", a=(CAMERA > 99).astype(np.uint8))


def inertia(points, classes):
    return sum(((points[classes == k] - points[classes == k].mean(0)) ** 2).sum() for k in np.unique(classes))


@test
def kmeans_is_as_good_as_scikit_learn():
    try:
        from sklearn.cluster import KMeans
    except ImportError as missing:
        print(f"skip kmeans: {missing}")
        return
    colour = skimage.data.astronaut()[::5, ::5]
    for image, expression, points in ((CAMERA, "kmeans(a, {k})", CAMERA.reshape(-1, 1)),
                                      (CAMERA / 255, "kmeans(a, {k})", CAMERA.reshape(-1, 1) / 255),
                                      (blobs("int16"), "kmeans(a, {k})", None),
                                      (colour, 'kmeans(name_axes(a, "y x c"), {k})', colour.reshape(-1, 3)),
                                      (np.moveaxis(colour, 2, 0), 'kmeans(name_axes(a, "c y x"), {k})', colour.reshape(-1, 3))):
        points = image.reshape(-1, 1) if points is None else points
        for k in (2, 5, 8):
            ours = run(expression.format(k=k), "--chunk", "33", a=np.ascontiguousarray(image))
            assert ours.dtype == np.uint8 and sorted(np.unique(ours)) == list(range(k)), np.unique(ours)
            peer = KMeans(k, n_init=4, random_state=0).fit(points.astype(float))
            mine, theirs = inertia(points.astype(float), ours.ravel()), peer.inertia_
            assert mine <= theirs * 1.01, f"{image.dtype} {k}: {mine}, the peer has {theirs}"
            means = [points[ours.ravel() == j].sum(1).mean() for j in range(k)]
            assert means == sorted(means), "classes by brightness"


@test
def kmeans_depends_on_its_seed_only():
    colour = skimage.data.astronaut()
    first, again, other = (run(f'kmeans(name_axes(a, "y x c"), 6, seed = {seed})', *chunk, a=colour)
                           for seed, chunk in ((1, ()), (1, ("--chunk", "37")), (2, ())))
    same(first, again)
    assert (first != other).any(), "another seed, another sample"


@test
def kmeans_names_what_it_cannot_do():
    fails("kmeans(a, 3)", "only 2 different values", a=(CAMERA > 99).astype(np.uint8))
    fails('kmeans(name_axes(a, "y x c"), 3)', "only 1 different value", a=np.ones((5, 6, 3), np.uint8))
    for shape, expression in (((4, 5), "kmeans(a)"), ((4, 5, 3), 'kmeans(name_axes(a, "y x c"))')):
        image = RNG.random(shape)
        image.flat[3] = np.nan
        fails(expression, "nan or infinite", a=image)
    refused('kmeans(name_axes(a, "y c"))', "at most 16", a=CAMERA)


@test
def the_rolling_ball_equals_scikit_image():
    for dtype in "uint8 uint16 int16 int32 float32 float64".split():
        image = COINS[:60, :70].astype(dtype)
        if np.dtype(dtype).kind == "i":
            image -= 100
        for radius in (1, 7, 12.5):
            peer = skimage.restoration.rolling_ball(image, radius=radius)
            ours = run(f"background(a, {radius})", "--chunk", "25", a=image)
            if image.dtype.kind == "f":
                near(ours, peer, f"{dtype} {radius}", 1e-6)
            else:
                same(ours, peer, f"{dtype} {radius}")
    volume = blobs("uint8", (9, 14, 15))
    same(run("background(a, 4)", "--chunk", "6", a=volume), skimage.restoration.rolling_ball(volume, radius=4), "volume")
    line = COINS[5]
    same(run("background(a, 20)", a=line), skimage.restoration.rolling_ball(line, radius=20), "a line")


@test
def polynomials_equal_least_squares():
    for image in (COINS[:40, :50], blobs("float64", (7, 9, 12)), blobs("float32", (30,)), blobs("float64", (1, 20))):
        places = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in image.shape]
        grid = np.stack([g.ravel() for g in np.meshgrid(*places, indexing="ij")])
        for order in (0, 1, 2, 4):
            powers = [p for p in np.ndindex(*[order + 1] * image.ndim) if sum(p) <= order]
            matrix = np.stack([np.prod([g ** k for g, k in zip(grid, p)], axis=0) for p in powers], axis=1)
            fit = matrix @ np.linalg.lstsq(matrix, image.ravel().astype(float), rcond=None)[0]
            near(run(f"fit_polynomial(a, {order})", "--chunk", "11", a=image), fit.reshape(image.shape), f"{image.shape} {order}",
                 1e-9 if image.dtype == np.float64 else 1e-6)
    same(run('background(a, method = "polynomial")', a=COINS), run("fit_polynomial(a)", a=COINS))
    same(run('background(a, 5, method = "tophat")', a=COINS), run("open(a, ball(5))", a=COINS))
    refused("fit_polynomial(name_axes(a, \"y x c\"))", "an axis c", a=skimage.data.astronaut())


@test
def nan_and_one_value_are_named():
    image = np.ones((4, 5))
    image[1, 1] = np.nan
    for expression in ("equalize(a)", "match_histogram(a, a)", "kmeans(a)"):
        fails(expression, "nan or infinite", a=image)


test.main()
