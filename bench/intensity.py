#!/usr/bin/python3
"""Intensity operators beside OpenCV, scikit-learn, scikit-image and, where it is installed, SimpleITK, in one run.

Each is done by turns; medians of processor time are compared. That of Fovea is of the whole command less the time of one that
only reads and writes the same files; that of the others is of the call. The first row compares two calls: array in, array out.

usage: bench/intensity.py [ROUNDS]
"""
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy as np
import skimage.exposure
import skimage.metrics
import skimage.restoration
from sklearn.cluster import KMeans

try:
    import SimpleITK as sitk
except ImportError:
    sitk = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
os.environ.setdefault("FOVEA_LIBRARY", str(ROOT / "build" / "libfovea.so.0"))
sys.path.insert(0, str(ROOT / "python"))
import fovea
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3


def command(folder, text):
    """Processor seconds of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([FOVEA, "run", "--quiet", "--fresh", "--overwrite", "-e", text], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def call(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def array_row(large):
    """clahe of an array, from Python, beside the same call of OpenCV."""
    theirs = cv2.createCLAHE(40, (8, 8))
    assert (np.asarray(fovea.clahe(fovea.array(large))) == theirs.apply(large)).all()
    times = [(call(lambda: np.asarray(fovea.clahe(fovea.array(large)))), call(lambda: theirs.apply(large)))
             for _ in range(3 * ROUNDS)]
    ours, peer = (statistics.median(t[k] for t in times) for k in (0, 1))
    print(f"clahe 4000x4000 uint16 of an array, OpenCV: {peer:.3f} s, Fovea {ours:.3f} s, ratio {peer / ours:.1f}", flush=True)


def n4(image):
    """As SimpleITK's own example: every fourth voxel, Otsu's mask; then the whole image divided by the field."""
    whole = sitk.GetImageFromArray(image)
    method = sitk.N4BiasFieldCorrectionImageFilter()
    method.Execute(sitk.Shrink(whole, [4] * 3), sitk.Shrink(sitk.OtsuThreshold(whole, 0, 1, 200), [4] * 3))
    return whole / sitk.Exp(method.GetLogBiasFieldAsImage(whole))


def main():
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        large = cv2.GaussianBlur(rng.integers(0, 65536, (4000, 4000)).astype(np.uint16), (0, 0), 3)
        values = rng.normal(0, 1, (2500, 4000)).astype(np.float32)
        small = np.ascontiguousarray(large[:1000, :1000] >> 8).astype(np.uint8)
        for name, array in (("large", large), ("values", values), ("small", small)):
            np.save(f"{folder}/{name}.npy", array)
        array_row(large)
        command(folder, 'phantom("t1", [160, 192, 192]) |> convert("float32") |> write("head.npy")')
        head = np.load(f"{folder}/head.npy")
        cases = [
            ("clahe 4000x4000 uint16, OpenCV", "large", "clahe(a)", lambda: cv2.createCLAHE(40, (8, 8)).apply(large)),
            ("kmeans 8 classes of 10 M values, scikit-learn", "values", "kmeans(a, 8)",
             lambda: KMeans(8, n_init=1, random_state=0).fit(values.reshape(-1, 1))),
            ("equalize 4000x4000 uint16, scikit-image", "large", "equalize(a)", lambda: skimage.exposure.equalize_hist(large)),
            ("match_histogram 4000x4000 uint16, scikit-image", "large", "match_histogram(a, a[0:900])",
             lambda: skimage.exposure.match_histograms(large, large[:900])),
            ("gamma 4000x4000 uint16, scikit-image", "large", "gamma(a, 0.7)", lambda: skimage.exposure.adjust_gamma(large, 0.7)),
            ("rolling ball 25, 1000x1000 uint8, scikit-image", "small", "background(a, 25)",
             lambda: skimage.restoration.rolling_ball(small, radius=25)),
            ("ssim 4000x4000 uint16, scikit-image", "large", "ssim(a, a[::-1])",
             lambda: skimage.metrics.structural_similarity(large, large[::-1])),
        ]
        if sitk:
            cases.append(("correct_bias 160x192x192 float32, SimpleITK's N4", "head", "correct_bias(a, shrink = 4)",
                          lambda: n4(head)))
        for name, source, expression, peer in cases:
            scalar = expression.startswith("ssim")
            floor = f'max(read("{source}.npy"))' if scalar else f'write(read("{source}.npy"), "out.npy")'
            text = expression.replace("(a", f'(read("{source}.npy")').replace(" a[", f' read("{source}.npy")[')
            text = text if scalar else f'write({text}, "out.npy")'
            times = [(command(folder, text) - command(folder, floor), call(peer)) for _ in range(ROUNDS)]
            ours, theirs = (max(statistics.median(t[k] for t in times), 1e-3) for k in (0, 1))
            print(f"{name}: {theirs:.2f} s, Fovea {ours:.2f} s, ratio {theirs / ours:.1f}", flush=True)


main()
