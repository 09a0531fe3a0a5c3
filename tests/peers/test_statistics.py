"""Statistics against numpy and scikit-image, whole and in chunks."""
import os
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test
import skimage
from skimage.filters import threshold_otsu

warnings.simplefilter("ignore")
TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
WIDER = {"float32": "float64"}  # numpy 2 rounds results of float32
SHAPE = (23, 45, 67)


def image(dtype, seed=0):
    """Two overlapping bells, with negative values where the type has them."""
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(SHAPE) < 0.3, rng.normal(160, 25, SHAPE), rng.normal(60, 20, SHAPE))
    if dtype == "bool":
        return a > 100
    if dtype.startswith("float"):
        return (a / 100 - 0.5).astype(dtype)
    if dtype in ("uint16", "int16", "uint32", "int32", "uint64", "int64"):
        a = a * 37
    if dtype.startswith("int"):
        a = a - a.mean()
    info = np.iinfo(dtype)
    return np.clip(np.round(a), info.min, info.max).astype(dtype)


def value(folder, array, call, *options):
    """What the command prints for an expression in a."""
    np.save(os.path.join(folder, "a.npy"), array)
    return float(run("run", "-e", f'a = read("a.npy")\n{call}', *options, folder=folder).stdout)


def exact(array):
    return [int(v) for v in array.ravel()] if array.dtype.kind in "iub" else None


@test
def sum_mean_min_max_and_count_equal_numpy(folder):
    for dtype in TYPES:
        a = image(dtype, 1)
        wide = a.astype(np.longdouble)
        for options in ((), ("--chunk", "7x20x67")):
            total = value(folder, a, "sum(a)", *options)
            assert abs(total - wide.sum()) <= 1e-12 * np.abs(wide).sum(), (dtype, total)
            if exact(a):
                assert total == sum(exact(a))
            assert abs(value(folder, a, "mean(a)", *options) - wide.mean()) <= 1e-12 * np.abs(wide).mean()
            assert value(folder, a, "min(a)", *options) == float(a.min())
            assert value(folder, a, "max(a)", *options) == float(a.max())
            assert value(folder, a, "count(a)", *options) == np.count_nonzero(a)


@test
def var_and_std_equal_numpy(folder):
    for dtype in TYPES:
        a = image(dtype, 2)
        wide = a.astype(np.longdouble)
        assert abs(value(folder, a, "var(a)") / wide.var() - 1) < 1e-14
        assert abs(value(folder, a, "std(a)", "--chunk", "5x45x11") / wide.std() - 1) < 1e-14


@test
def a_large_offset_does_not_cancel_the_variance(folder):
    a = 1e9 + np.random.default_rng(1).random(SHAPE)
    assert abs(value(folder, a, "var(a)") / a.astype(np.longdouble).var() - 1) < 1e-14


@test
def nan_and_infinity_follow_numpy(folder):
    for dtype in ("float32", "float64"):
        for special in (np.nan, np.inf, -np.inf):
            a = image(dtype, 3)
            a[3, 4, 5] = special
            with np.errstate(all="ignore"):
                for name in ("sum", "mean", "min", "max", "var", "std"):
                    got, expected = value(folder, a, f"{name}(a)"), float(getattr(np, name)(a))
                    same = (np.isnan(got) and np.isnan(expected)) or abs(got - expected) < 1e-4 or got == expected
                    assert same, (name, special, got, expected)


@test
def quantiles_are_numpys_to_the_last_bit(folder):
    for dtype in TYPES[1:]:
        a = image(dtype, 4)
        for q in (0.0, 0.5, 0.123, 0.999, 1.0):
            got = value(folder, a, f"quantile(a, {q})", "--chunk", "9x9x67")
            expected = float(np.quantile(a.astype(WIDER.get(dtype, dtype)), q))
            assert got == expected, (dtype, q, got, expected)


def histogram(folder, array, arguments, *options):
    np.save(os.path.join(folder, "a.npy"), array)
    run("run", "-e", f'histogram(read("a.npy"){arguments}) |> write("h.csv")', "--overwrite", *options, folder=folder)
    table = np.genfromtxt(os.path.join(folder, "h.csv"), delimiter=",", names=True)
    return table["low"], table["high"], table["count"].astype(np.int64)


@test
def histograms_equal_numpy(folder):
    for dtype in TYPES:
        a = image(dtype, 5)
        for arguments, options in (("", {"bins": 256}), (", 10", {"bins": 10}),
                                   (", 33, range = [0.25, 100.5]", {"bins": 33, "range": (0.25, 100.5)})):
            low, high, count = histogram(folder, a, arguments, "--chunk", "11x20x67")
            expected, edges = np.histogram(a.astype(np.uint8) if dtype == "bool" else a, **options)
            assert (count == expected).all(), (dtype, arguments, count - expected)
            room = 1e-6 * float(edges[-1] - edges[0])  # numpy 2 has edges of float32 for such images
            assert np.allclose(low, edges[:-1], 1e-6, room) and np.allclose(high, edges[1:], 1e-6, room)


@test
def random_float32_fall_in_numpys_bins(folder):
    rng = np.random.default_rng(8)
    for k in range(4):
        a = (rng.random((200, 300), dtype=np.float32) * np.float32(10.0 ** (k - 2)) + np.float32(k)).astype(np.float32)
        a[::3] = np.round(a[::3], 1)
        for bins in (7, 256, 1000):
            assert (histogram(folder, a, f", {bins}")[2] == np.histogram(a, bins)[0]).all(), (k, bins)


@test
def otsu_equals_scikit_image(folder):
    for dtype in TYPES:
        if dtype == "uint64":
            continue  # scikit-image 0.19 cannot
        for seed in range(3):
            a = image(dtype, seed)
            got, peer = value(folder, a, "otsu(a)", "--chunk", "9x45x30"), float(threshold_otsu(a))
            bin_width = 0 if skimage.__version__.startswith("0.19") else (float(a.max()) - float(a.min())) / 255
            assert abs(got - peer) <= bin_width, (dtype, got, peer)  # later versions sum in float32


@test
def otsu_of_one_value_is_that_value(folder):
    for dtype in ("uint8", "int16", "float32"):
        assert value(folder, np.full((5, 6), 3, dtype), "otsu(a)") == 3


@test
def otsu_of_real_images_equals_scikit_image(folder):
    from skimage import data as images
    for a in (images.camera(), images.coins(), images.page()):
        assert value(folder, a, "otsu(a)") == threshold_otsu(a)
        assert value(folder, a.astype(np.float32) / 255, "otsu(a)") == float(threshold_otsu(a.astype(np.float32) / 255))


main()
