#!/usr/bin/python3
"""Times Fovea's registration beside scikit-image and SimpleITK, in one run, and tells how far each is from the truth.

usage: registration.py [FOVEA] [TURNS] [WORD...]

FOVEA is the command (default build/fovea); WORDs (phase, rigid, bent) take only these. The programs take turns; times are medians of the processor's time that each used, all threads
together; of Fovea that of the whole command, which reads the files too. SimpleITK is left out by name where it is not installed (pip install SimpleITK).
"""
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.ndimage as ndimage
import skimage.registration

FOVEA = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/fovea").resolve())
TURNS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
RANDOM = np.random.default_rng(2)


def fovea(folder, text):
    """Seconds of the processor that a run took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([FOVEA, "run", "--overwrite", "--fresh", "-e", text], cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(work):
    before = time.process_time()
    result = work()
    return result, time.process_time() - before


def report(name, fovea_seconds, peer, peer_seconds, errors, target):
    ours, theirs = statistics.median(fovea_seconds), statistics.median(peer_seconds)
    print(f"{name:32} {peer:12} {theirs * 1000:9.0f} ms  fovea {ours * 1000:9.0f} ms  {theirs / ours:6.1f} x (target {target})   "
          f"error {errors[1]:.3f}, fovea {errors[0]:.3f}")


def phase(folder):
    image = ndimage.gaussian_filter(RANDOM.random((2100, 2100)), 2) * 1000
    by = np.array([12.3, -7.6])
    moved = ndimage.shift(image, by, order=3)
    moving, fixed = (a[26:-26, 26:-26] + RANDOM.normal(0, 5, (2048, 2048)) for a in (moved, image))
    for name, a in (("m", moving), ("f", fixed)):
        np.save(f"{folder}/{name}.npy", a.astype(np.float32))
    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(fovea(folder, 'register(read("m.npy"), read("f.npy"), kind = "shift") |> write("t.npy")'))
        found, seconds = timed(lambda: skimage.registration.phase_cross_correlation(moving, fixed, upsample_factor=100)[0])
        theirs.append(seconds)
    errors = (np.abs(np.load(f"{folder}/t.npy")[::-1, 2] - by).max(), np.abs(found - by).max())
    report("phase correlation 2048²", ours, "scikit-image", theirs, errors, 5)


def rigid(folder):
    try:
        import SimpleITK as sitk
    except ImportError as missing:
        print(f"skip rigid 128³ beside SimpleITK: {missing}")
        return
    fovea(folder, 'phantom("t1", [128, 128, 128]) |> write("head.npy")')
    head = np.load(f"{folder}/head.npy").astype(float)
    about = np.array([2, 2, 1]) / 3
    cross = np.cross(about, np.eye(3)).T
    angle = np.deg2rad(10)
    turn = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    middle, by = np.full(3, 63.5), np.array([16, -8, 16]) / 3
    moved = ndimage.affine_transform(head, turn.T, middle - turn.T @ (middle + by))
    ramp = np.linspace(0.8, 1.2, 128)
    for name, a in (("m", moved * ramp), ("f", head)):
        np.save(f"{folder}/{name}.npy", (a + RANDOM.normal(0, 25, a.shape)).astype(np.float32))
    points = np.argwhere(head > 100)[::997].astype(float)
    true = (points - middle) @ turn.T + middle + by
    fixed, moving = (sitk.GetImageFromArray(np.load(f"{folder}/{name}.npy")) for name in "fm")
    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(fovea(folder, 'register(read("m.npy"), read("f.npy"), metric = "mutual_information") |> write("t.npy")'))
        method = sitk.ImageRegistrationMethod()
        method.SetMetricAsMattesMutualInformation(32)
        method.SetMetricSamplingStrategy(method.RANDOM)
        method.SetMetricSamplingPercentage(0.25, 1)
        method.SetInterpolator(sitk.sitkLinear)
        method.SetOptimizerAsRegularStepGradientDescent(1.0, 1e-4, 100)
        method.SetOptimizerScalesFromPhysicalShift()
        method.SetShrinkFactorsPerLevel([8, 4, 2, 1])
        method.SetSmoothingSigmasPerLevel([4, 2, 1, 0])
        method.SetInitialTransform(sitk.CenteredTransformInitializer(fixed, moving, sitk.Euler3DTransform(),
                                                                     sitk.CenteredTransformInitializerFilter.GEOMETRY))
        found, seconds = timed(lambda: method.Execute(fixed, moving))
        theirs.append(seconds)
    matrix = np.load(f"{folder}/t.npy")
    of_ours = (points[:, ::-1] @ matrix[:, :3].T + matrix[:, 3])[:, ::-1]
    of_theirs = np.array([found.TransformPoint(p[::-1].tolist())[::-1] for p in points])
    errors = [np.linalg.norm(p - true, axis=1).mean() for p in (of_ours, of_theirs)]
    report("rigid 128³, mutual information", ours, "SimpleITK", theirs, errors, 3)


def bent(folder):
    try:
        import SimpleITK as sitk
    except ImportError as missing:
        print(f"skip B-splines 64³ beside SimpleITK: {missing}")
        return
    fovea(folder, 'phantom("t1", [64, 64, 64]) |> write("head.npy")')
    head = np.load(f"{folder}/head.npy").astype(float)
    random = np.random.default_rng(0)
    field = np.stack([ndimage.gaussian_filter(random.normal(size=head.shape), 8) for _ in range(3)])
    field *= 4 / np.abs(field).max()
    index = np.indices(head.shape)
    moved = ndimage.map_coordinates(head, index + field, order=3, mode="nearest")
    inside = ndimage.binary_erosion(ndimage.gaussian_filter(moved, 2) > 0.1 * moved.max(), iterations=3)
    for name, a in (("m", head), ("f", moved)):
        np.save(f"{folder}/{name}.npy", (a + random.normal(0, 0.02 * np.ptp(head), a.shape)).astype(np.float32))
    for k, axis in enumerate("zyx"):
        np.save(f"{folder}/{axis}.npy", index[k].astype(np.float32))
    fixed, moving = (sitk.GetImageFromArray(np.load(f"{folder}/{name}.npy")) for name in "fm")
    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(fovea(folder, 'register(read("m.npy"), read("f.npy"), kind = "bspline", grid = 8) |> write("t.tfm")'))
        method = sitk.ImageRegistrationMethod()
        method.SetMetricAsCorrelation()
        method.SetInterpolator(sitk.sitkLinear)
        method.SetMetricSamplingStrategy(method.RANDOM)
        method.SetMetricSamplingPercentage(0.25, 1)
        method.SetOptimizerAsLBFGSB(gradientConvergenceTolerance=1e-5, numberOfIterations=40, maximumNumberOfFunctionEvaluations=40)
        method.SetShrinkFactorsPerLevel([4, 2, 1])
        method.SetSmoothingSigmasPerLevel([2, 1, 0.5])
        method.SetInitialTransform(sitk.BSplineTransformInitializer(fixed, [8, 8, 8], 3), inPlace=True)
        found, seconds = timed(lambda: method.Execute(fixed, moving))
        theirs.append(seconds)
    fovea(folder, 't = read("t.tfm")\n' + "".join(
        f'write(transform(read("{axis}.npy"), t, mode = "nearest"), "to-{axis}.npy")\n' for axis in "zyx"))
    of_ours = np.stack([np.load(f"{folder}/to-{axis}.npy") for axis in "zyx"]) - index
    of_theirs = sitk.TransformToDisplacementField(found, sitk.sitkVectorFloat64, fixed.GetSize())
    of_theirs = np.moveaxis(sitk.GetArrayFromImage(of_theirs)[..., ::-1], -1, 0)
    errors = [np.linalg.norm(a - field, axis=0)[inside].mean() for a in (of_ours, of_theirs)]
    report("B-splines 64³, correlation", ours, "SimpleITK", theirs, errors, "-")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for work in (phase, rigid, bent):
            if len(sys.argv) < 4 or work.__name__ in sys.argv[3:]:
                work(folder)


main()
