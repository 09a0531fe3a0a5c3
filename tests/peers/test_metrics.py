#!/usr/bin/python3
"""Comparisons of two images against scikit-image and scipy."""
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import scipy.spatial.distance
    import scipy.stats
    import skimage.data
    import skimage.metrics as metrics
except ImportError as missing:
    print(f"skip metrics: {missing}")
    sys.exit(0)

from pipelines import FOVEA, Difference, refused, run, test

warnings.simplefilter("ignore")
RNG = np.random.default_rng(3)
CAMERA = skimage.data.camera()[::2, ::2]
NOISY = np.clip(CAMERA + RNG.normal(0, 12, CAMERA.shape), 0, 255).astype(np.uint8)


def scalars(*calls, **arrays):
    with tempfile.TemporaryDirectory() as folder:
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        text = "".join(f'{name} = read("{name}.npy")\n' for name in arrays) + "\n".join(calls)
        done = subprocess.run([FOVEA, "run", "--quiet", "--chunk", "41", "-e", text], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Difference(f"{calls} ends with {done.returncode}: {done.stderr.strip()}")
        return [float(line) for line in done.stdout.split()]


def close(ours, peer, what, relative=1e-10):
    assert np.isclose(ours, peer, rtol=relative, atol=0, equal_nan=True), f"{what}: {ours}, the peer has {peer}"


def pairs():
    for dtype in "uint8 int8 uint16 int16 uint32 int32 float32 float64".split():
        scale = 0.4 if dtype == "int8" else 1 / 255 if dtype.startswith("float") else 1
        yield (CAMERA * scale).astype(dtype), (NOISY * scale).astype(dtype)


@test
def errors_equal_scikit_image_for_every_type():
    for a, b in pairs():
        reach = 1 if a.dtype.kind == "f" else np.iinfo(a.dtype).max - np.iinfo(a.dtype).min
        ours = scalars("mse(a, b)", f"psnr(a, b, data_range = {reach})", a=a, b=b)
        close(ours[0], metrics.mean_squared_error(a.astype(float), b.astype(float)), f"mse {a.dtype}")
        close(ours[1], metrics.peak_signal_noise_ratio(a, b, data_range=reach), f"psnr {a.dtype}", 1e-6)
        if a.dtype.kind != "f":
            assert scalars("psnr(a, b)", a=a, b=b)[0] == ours[1], "the range of the type"
    assert scalars("mse(a, a)", "psnr(a, a)", a=CAMERA) == [0, np.inf]


@test
def ssim_equals_scikit_image():
    for a, b in pairs():
        reach = float(1 if a.dtype.kind == "f" else int(np.iinfo(a.dtype).max) - int(np.iinfo(a.dtype).min))
        x, y = a.astype(float), b.astype(float)
        close(scalars(f"ssim(a, b, data_range = {reach})", a=a, b=b)[0], metrics.structural_similarity(x, y, data_range=reach),
              f"{a.dtype}", 1e-9)
    close(scalars("ssim(a, b, sigma = 1.5)", a=CAMERA, b=NOISY)[0],
          metrics.structural_similarity(CAMERA, NOISY, gaussian_weights=True), "gaussian", 1e-9)
    close(scalars("ssim(a, b, window_size = 11)", a=CAMERA, b=NOISY)[0],
          metrics.structural_similarity(CAMERA, NOISY, win_size=11), "window of 11", 1e-9)
    a = skimage.data.astronaut()[::4, ::4]
    b = np.clip(a + RNG.normal(0, 9, a.shape), 0, 255).astype(np.uint8)
    close(scalars('ssim(name_axes(a, "y x c"), name_axes(b, "y x c"))', a=a, b=b)[0],
          metrics.structural_similarity(a, b, channel_axis=2), "colours", 1e-9)
    volume = RNG.random((9, 12, 15))
    close(scalars("ssim(a, b, data_range = 1)", a=volume, b=volume ** 2)[0],
          metrics.structural_similarity(volume, volume ** 2, data_range=1), "volume", 1e-9)


@test
def overlaps_equal_scipy():
    for part in (0.1, 0.5, 0.9):
        a, b = RNG.random((13, 14, 15)) < part, RNG.random((13, 14, 15)) < 0.4
        ours = scalars("dice(a, b)", "jaccard(a, b)", a=a, b=b)
        close(ours[0], 1 - scipy.spatial.distance.dice(a.ravel(), b.ravel()), "dice")
        close(ours[1], 1 - scipy.spatial.distance.jaccard(a.ravel(), b.ravel()), "jaccard")
    labels = (CAMERA // 60).astype(np.int32)
    assert scalars("dice(a, b)", a=labels, b=labels > 0) == [1]
    empty = np.zeros((4, 5), bool)
    assert np.isnan(scalars("dice(a, a)", "jaccard(a, a)", a=empty)).all()
    assert scalars("dice(a, b)", "jaccard(a, b)", a=empty, b=~empty) == [0, 0]


@test
def hausdorff_equals_scikit_image():
    for shape in ((40, 50), (9, 20, 21), (30,)):
        a, b = RNG.random(shape) < 0.02, RNG.random(shape) < 0.03
        a.flat[0] = b.flat[-1] = True
        close(scalars("hausdorff(a, b)", a=a, b=b)[0], metrics.hausdorff_distance(a, b), f"{shape}", 1e-6)
    a, b = CAMERA > 99, ndimage.binary_erosion(CAMERA > 99, iterations=3)
    close(scalars("hausdorff(a, b)", a=a, b=b)[0], metrics.hausdorff_distance(a, b), "camera", 1e-6)
    points = np.zeros((9, 9), bool), np.zeros((9, 9), bool)
    points[0][1, 1] = points[1][4, 5] = True
    close(scalars("hausdorff(a, b, sampling = [2, 0.5])", a=points[0], b=points[1])[0], np.hypot(6, 2), "sampling", 1e-6)
    empty = np.zeros((4, 5), bool)
    assert scalars("hausdorff(a, a)", "hausdorff(a, b)", "hausdorff(b, a)", a=empty, b=~empty) == [0, np.inf, np.inf]


@test
def colocalization_equals_scipy():
    for dtype in ("uint8", "uint16", "int32"):
        a = (ndimage.gaussian_filter(RNG.random((60, 70)), 3) * 3000 % 200).astype(dtype)
        b = (a * 0.5 + RNG.random(a.shape) * 60).astype(dtype)
        table = run("colocalization(a, b, threshold_a = 90, threshold_b = 60)", "--chunk", "23", table=True, a=a, b=b)
        x, y = a.ravel().astype(float), b.ravel().astype(float)
        peers = {"pearson": scipy.stats.pearsonr(x, y)[0], "spearman": scipy.stats.spearmanr(x, y)[0],
                 "overlap": (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()),
                 "manders_a": x[y > 60].sum() / x.sum(), "manders_b": y[x > 90].sum() / y.sum()}
        assert list(table) == list(peers), table
        for name, peer in peers.items():
            close(table[name][0], peer, f"{name} {dtype}", 1e-9)
    x, y = RNG.random((50, 60)), RNG.random((50, 60)) ** 2
    y += x
    table = run("colocalization(a, b)", table=True, a=x, b=y)
    close(table["pearson"][0], scipy.stats.pearsonr(x.ravel(), y.ravel())[0], "floats")
    close(table["spearman"][0], scipy.stats.spearmanr(x.ravel(), y.ravel())[0], "floats", 1e-3)


@test
def a_comparison_has_all_numbers():
    table = run("compare(a, b)", table=True, a=CAMERA, b=NOISY)
    x, y = CAMERA.astype(float), NOISY.astype(float)
    peers = {"mse": metrics.mean_squared_error(x, y), "rmse": np.sqrt(metrics.mean_squared_error(x, y)),
             "largest": np.abs(x - y).max(), "psnr": metrics.peak_signal_noise_ratio(CAMERA, NOISY),
             "ssim": metrics.structural_similarity(CAMERA, NOISY), "pearson": np.corrcoef(x.ravel(), y.ravel())[0, 1]}
    assert list(table) == list(peers), table
    for name, peer in peers.items():
        close(table[name][0], peer, name, 1e-9)
    a, b = CAMERA > 99, NOISY > 99
    table = run("compare(a, b)", table=True, a=a, b=b)
    assert list(table) == "voxels_a voxels_b different dice jaccard hausdorff".split(), table
    assert [table[n][0] for n in ("voxels_a", "voxels_b", "different")] == [a.sum(), b.sum(), (a != b).sum()], table
    close(table["hausdorff"][0], metrics.hausdorff_distance(a, b), "hausdorff", 1e-6)
    table = run("compare(a, b)", table=True, a=CAMERA / 255, b=NOISY / 255)
    close(table["psnr"][0], metrics.peak_signal_noise_ratio(CAMERA / 255, NOISY / 255, data_range=np.ptp(CAMERA / 255)), "floats")


@test
def mistakes_are_named():
    for name in "mse psnr ssim dice jaccard hausdorff colocalization compare".split():
        refused(f"{name}(a, b)", "shape", a=CAMERA, b=CAMERA[:-1])
    refused("psnr(a, b)", "data_range", a=CAMERA / 255, b=NOISY)
    refused("ssim(a, a)", "wider than the images", a=CAMERA[:5])
    refused("ssim(a, a, window_size = 8)", "must be odd", a=CAMERA)


test.main()
