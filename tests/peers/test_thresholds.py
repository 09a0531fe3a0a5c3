#!/usr/bin/python3
"""Thresholds against scikit-image: the scalar ones and those that give an image."""
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.filters as filters
except ImportError as missing:
    print(f"skip thresholds: {missing}")
    sys.exit(0)

from pipelines import FOVEA, MODES, Difference, near, refused, run, same, test, tolerance

warnings.simplefilter("ignore")
SPLITS = {"otsu": filters.threshold_otsu, "triangle": filters.threshold_triangle, "yen": filters.threshold_yen,
          "isodata": filters.threshold_isodata}
PICTURES = [skimage.data.camera(), skimage.data.coins(), skimage.data.page()]


def cells(dtype, seed=0, shape=(23, 45, 67)):
    """Two overlapping bells, with negative values where the type has them and scikit-image can take them."""
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(shape) < 0.3, rng.normal(160, 25, shape), rng.normal(60, 20, shape))
    if np.dtype(dtype).kind == "f":
        return (a / 100 - 0.5).astype(dtype)
    if np.dtype(dtype).itemsize > 1:
        a = a * 37
    if dtype in ("int16", "int32", "int64"):
        a = a - a.mean()
    return np.clip(np.round(a), np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def scalars(array, *calls, chunk="9x45x30"):
    """What the command prints for each call."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/a.npy", array)
        text = 'a = read("a.npy")\n' + "\n".join(calls)
        done = subprocess.run([FOVEA, "run", "--quiet", "--chunk", chunk, "-e", text], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Difference(f"{calls} ends with {done.returncode}: {done.stderr.strip()}")
        return [float(line) for line in done.stdout.split()]


def check_splits(image, what, chunk="9x45x30"):
    """Equal to scikit-image 0.19; later versions sum in float32, and may take the bin beside it."""
    bin_width = 0 if skimage.__version__.startswith("0.19") else (float(image.max()) - float(image.min())) / 255
    for name, ours in zip(SPLITS, scalars(image, *(f"{name}(a)" for name in SPLITS), chunk=chunk)):
        peer = float(SPLITS[name](image))
        assert abs(ours - peer) <= bin_width, f"{name} of {what}: {ours}, the peer has {peer}"


@test
def thresholds_of_every_type_equal_scikit_image():
    for dtype in "uint8 int8 uint16 int16 uint32 int32 int64 float32 float64".split():
        for seed in range(3):
            check_splits(cells(dtype, seed), dtype)


@test
def thresholds_of_real_images_equal_scikit_image():
    for image in PICTURES:
        for typed in (image, image.astype(np.float32) / 255, image / 255, image[::7, ::5].astype(np.int32) * 9 - 300):
            check_splits(typed, f"{typed.dtype} {typed.shape}", "100")


@test
def li_of_integers_equals_scikit_image():
    for image in (*PICTURES, *(cells(dtype, 4) for dtype in "uint8 uint16 uint32 int64".split())):
        ours, peer = scalars(image, "li(a)", chunk="20")[0], float(filters.threshold_li(image))
        assert abs(ours - peer) <= 1e-9 * abs(peer), f"{image.dtype}: {ours}, the peer has {peer}"


@test
def li_of_real_numbers_is_within_four_bins_of_scikit_image_with_the_same_tolerance():
    for image in (*(p / 255 for p in PICTURES), cells("float32"), cells("float64")):
        bin = np.ptp(image) / 65536
        ours, peer = scalars(image, "li(a)", chunk="20")[0], float(filters.threshold_li(image, tolerance=bin / 2))
        assert abs(ours - peer) <= 4 * bin, f"{image.dtype}: {ours}, the peer has {peer}"


@test
def an_image_of_one_value_gives_that_value():
    for value, dtype in ((7, "uint8"), (-3, "int32"), (0.25, "float64")):
        for shape in ((1,), (5, 6)):
            ours = scalars(np.full(shape, value, dtype), *(f"{name}(a)" for name in (*SPLITS, "li")), chunk="3")
            assert ours == [value] * 5, f"{dtype}: {ours}"


@test
def two_values_are_separated():
    image = np.array([[3] * 5 + [200] * 4], np.uint8)
    assert all(3 <= t < 200 for t in scalars(image, *(f"{name}(a)" for name in SPLITS), chunk="4")), "of a two-valued image"
    check_splits(image, "two values", "4")


@test
def nan_and_infinity_are_refused():
    for bad in (np.nan, np.inf):
        image = np.ones((4, 5))
        image[2, 2] = bad
        for name in (*SPLITS, "li"):
            try:
                scalars(image, f"{name}(a)")
            except Difference as error:
                assert "nan or infinite" in str(error), str(error)
            else:
                raise Difference(f"{name} accepts {bad}")


@test
def local_equals_scikit_image():
    for image in (PICTURES[2], PICTURES[0][:90, :110] / 255, cells("float64"), cells("uint16"), cells("float32")[:2, :3, :5]):
        for method in ("gaussian", "mean", "median"):
            for block in (3, 11):
                peer = filters.threshold_local(image.astype(float), block, method, offset=1.5)
                near(run(f'local(a, {block}, method = "{method}", offset = 1.5)', "--chunk", "37", a=image), peer,
                     f"{method} {block} {image.dtype}", 2 * tolerance(image))
    for mode in MODES:
        near(run(f'local(a, [5, 9], mode = "{mode}", cval = 9)', a=PICTURES[2]),
             filters.threshold_local(PICTURES[2].astype(float), (5, 9), mode=mode, cval=9), mode, 2e-6)


@test
def sauvola_equals_scikit_image():
    for image in (PICTURES[2], PICTURES[0][:90, :110] / 255, cells("uint16"), cells("float64")):
        for window in (3, 15):
            near(run(f"sauvola(a, {window})", "--chunk", "37", a=image), filters.threshold_sauvola(image, window),
                 f"{window} {image.dtype}", 1e-5)
        near(run("sauvola(a, 7, k = 0.5, r = 30)", a=image), filters.threshold_sauvola(image, 7, 0.5, 30), "k and r", 1e-5)
    for dtype, r in (("int8", 127.5), ("uint32", (2**32 - 1) / 2), ("float32", 1), ("int64", (2.0**64 - 1) / 2)):
        image = cells(dtype)[0]
        near(run("sauvola(a, 5)", a=image), filters.threshold_sauvola(image.astype(float), 5, r=r), dtype, 1e-5)


@test
def local_thresholds_name_bad_parameters():
    refused("local(a, 4)", "block_size = 4", a=PICTURES[0])
    refused("sauvola(a, 8)", "window_size = 8", a=PICTURES[0])
    refused("sauvola(a, r = 0)", "r", a=PICTURES[0])
    refused('local(a, 3, method = "mode")', "method", a=PICTURES[0])


@test
def hysteresis_equals_scikit_image():
    noise = ndimage.gaussian_filter(np.random.default_rng(5).random((30, 40, 50)), 1)
    for image in (skimage.data.coins(), skimage.data.camera()[::2, ::2], noise, noise.astype(np.float32)):
        low, high = (float(np.quantile(image, q)) for q in (0.7, 0.95))
        for chunk in ((), ("--chunk", "17")):
            same(run(f"hysteresis(a, {low}, {high})", *chunk, a=image), filters.apply_hysteresis_threshold(image, low, high))
    same(run("hysteresis(a, 200, 100)", a=PICTURES[0]), filters.apply_hysteresis_threshold(PICTURES[0], 200, 100))
    image = PICTURES[1]
    same(run("hysteresis(a, mean(a), otsu(a))", a=image),
         filters.apply_hysteresis_threshold(image, image.mean(), filters.threshold_otsu(image)))


test.main()
