#!/usr/bin/python3
"""Times Fovea's filters, distance and label beside OpenCV, SciPy, scikit-image and others in one run.

usage: peer_filters.py [--targets] [BUILD] [WORD...]

BUILD is the folder of the build (default build); --targets takes only the cases that have a target; WORDs take only the cases
whose name has one of them. Filters and peers take turns; the times are medians of the turns, of which each of Fovea's is the least of
five repetitions. distance and label run once before their peers (the least of a few repetitions):

  peer, fovea   milliseconds of two quiet cores: processor time over the threads that each uses (Fovea: 2)
  x, target     their ratio, and what it has to be
  wall x        ratio of the least wall times, which is lower if other work goes on
  limit         share of the nearer limit of the machine that is reached: 31 GB/s of reading and writing or 227 GFLOP/s, which is
                also 227 / 2 * 4 / n G minima or maxima per second of n bytes; + is the operations' limit
  whole         milliseconds of the whole command: reading and writing a file, planning, starting

Fovea's time is the operator's own in warm buffers (kernel_time.c, parallel.h). The first line says what machine_limits.c finds.
"""
import dataclasses, os, statistics, subprocess, sys, tempfile, time
from typing import Callable

import cv2
import numpy as np
import scipy.ndimage as ndimage
from skimage.filters import rank as skimage_rank
from skimage.filters import threshold_sauvola
from skimage.morphology import ball, disk

RANDOM = np.random.default_rng(1)


def noise(dtype, shape):
    if dtype == "bool":  # foreground with holes some way apart, so that distances are not all short
        return RANDOM.random(shape, dtype=np.float32) > 2e-4
    if dtype == "float32":
        return RANDOM.random(shape, dtype=np.float32)
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def gaussian_cv(image, sigma):
    out = np.empty_like(image)
    return lambda: cv2.GaussianBlur(image, (0, 0), sigma, out, borderType=cv2.BORDER_REFLECT)


def median_cv(image, size):
    out = np.empty_like(image)
    return lambda: cv2.medianBlur(image, size, out)


def blur_cv(image, size):
    out = np.empty_like(image)
    return lambda: cv2.blur(image, (size, size), out, borderType=cv2.BORDER_REFLECT)


def erode_cv(image, radius, shape=None):
    out = np.empty_like(image)
    element = cv2.getStructuringElement(shape, (2 * radius + 1,) * 2) if shape is not None else disk(radius)
    return lambda: cv2.erode(image, element, out)


def sobel_cv(image):
    out = np.empty_like(image)
    return lambda: cv2.Sobel(image, -1, 1, 0, out, borderType=cv2.BORDER_REFLECT)


def laplace_cv(image):
    out = np.empty_like(image)
    return lambda: cv2.Laplacian(image, -1, out, borderType=cv2.BORDER_REFLECT)


KERNEL = [float(k % 7 - 3) for k in range(25)]


def convolve_cv(image):
    out, kernel = np.empty_like(image), np.array(KERNEL, np.float32).reshape(5, 5)
    return lambda: cv2.filter2D(image, -1, kernel, out, borderType=cv2.BORDER_REFLECT)


@dataclasses.dataclass
class Case:
    """One piece of work, the peer's call for it (given the image) and how it is measured."""
    peer: str
    operator: str
    parameters: str
    dtype: str
    shape: tuple
    call: Callable
    target: float = 0
    operations: int = 0  # per voxel: floating-point ones of float32, else minima and maxima
    threads: int = 1  # that the peer uses

    @property
    def name(self):
        shape = "x".join(map(str, self.shape))
        return f"{self.operator} {self.parameters[:24]} {self.dtype} {shape} ({self.peer})".replace("  ", " ")

    @property
    def pipeline(self):
        return f'read("image.npy") |> {self.operator}({self.parameters.replace(";", ", ")}) |> write("out.npy")'


def scipy_case(operator, parameters, dtype, shape, call, **more):
    return Case("SciPy", operator, parameters, dtype, shape, lambda a: lambda: call(a), **more)


def opencv_case(operator, parameters, dtype, shape, call, **more):
    return Case("OpenCV", operator, parameters, dtype, shape, call, **more)


PLANE, SMALL, TINY, VOLUME = (4000, 4000), (2000, 2000), (1000, 1000), (256, 256, 256)

CASES = [
    opencv_case("gaussian", "sigma=2", "float32", PLANE, lambda a: gaussian_cv(a, 2), target=2.5, operations=2 * 17 * 2),
    opencv_case("gaussian", "sigma=10", "float32", PLANE, lambda a: gaussian_cv(a, 10), target=4, operations=2 * 81 * 2),
    scipy_case("gaussian", "sigma=2", "float32", VOLUME, lambda a: ndimage.gaussian_filter(a, 2), target=30,
               operations=3 * 17 * 2),
    opencv_case("median", "size=5", "uint8", PLANE, lambda a: median_cv(a, 5), target=3, operations=90),
    opencv_case("median", "size=5", "uint16", PLANE, lambda a: median_cv(a, 5), target=3, operations=90),
    scipy_case("median", "size=5", "uint8", PLANE, lambda a: ndimage.median_filter(a, 5), target=500, operations=90),
    scipy_case("median", "size=5", "uint16", PLANE, lambda a: ndimage.median_filter(a, 5), target=500, operations=90),
    Case("skimage", "median", "size=5", "uint8", VOLUME,
         lambda a: lambda: skimage_rank.median(a, np.ones((5, 5, 5), np.uint8)), target=100, operations=764),
    scipy_case("erode", "footprint=ball(12)", "bool", VOLUME, lambda a: ndimage.distance_transform_edt(a) > 12, target=150),
    opencv_case("gaussian", "sigma=1", "float32", PLANE, lambda a: gaussian_cv(a, 1), operations=2 * 9 * 2),
    scipy_case("gaussian", "sigma=2", "uint8", VOLUME, lambda a: ndimage.gaussian_filter(a, 2, output=np.float32)),
    scipy_case("gaussian", "sigma=10", "float32", VOLUME, lambda a: ndimage.gaussian_filter(a, 10), operations=3 * 81 * 2),
    opencv_case("uniform", "size=5", "float32", PLANE, lambda a: blur_cv(a, 5)),
    opencv_case("uniform", "size=21", "float32", PLANE, lambda a: blur_cv(a, 21)),
    scipy_case("uniform", "size=5", "float32", VOLUME, lambda a: ndimage.uniform_filter(a, 5)),
    scipy_case("uniform", "size=21", "float32", VOLUME, lambda a: ndimage.uniform_filter(a, 21)),
    opencv_case("median", "size=3", "uint8", PLANE, lambda a: median_cv(a, 3)),
    opencv_case("median", "size=3", "uint16", PLANE, lambda a: median_cv(a, 3)),
    opencv_case("median", "size=5", "float32", PLANE, lambda a: median_cv(a, 5)),
    opencv_case("median", "size=7", "uint8", SMALL, lambda a: median_cv(a, 7)),
    opencv_case("median", "size=9", "uint8", SMALL, lambda a: median_cv(a, 9)),
    opencv_case("median", "size=13", "uint8", SMALL, lambda a: median_cv(a, 13)),
    opencv_case("median", "size=21", "uint8", SMALL, lambda a: median_cv(a, 21)),
    opencv_case("median", "size=51", "uint8", SMALL, lambda a: median_cv(a, 51)),
    scipy_case("median", "size=13", "uint16", (500, 500), lambda a: ndimage.median_filter(a, 13)),
    scipy_case("median", "size=21", "float32", (500, 500), lambda a: ndimage.median_filter(a, 21)),
    scipy_case("median", "size=3", "uint8", (128, 256, 256), lambda a: ndimage.median_filter(a, 3)),
    opencv_case("erode", "footprint=disk(12)", "uint8", PLANE, lambda a: erode_cv(a, 12)),
    opencv_case("erode", "footprint=box(25)", "uint8", PLANE, lambda a: erode_cv(a, 12, cv2.MORPH_RECT)),
    scipy_case("erode", "footprint=ball(3)", "uint8", (128, 128, 128), lambda a: ndimage.grey_erosion(a, footprint=ball(3))),
    scipy_case("minimum_filter", "size=25", "float32", VOLUME, lambda a: ndimage.minimum_filter(a, 25)),
    scipy_case("gaussian_laplace", "sigma=2", "float32", VOLUME, lambda a: ndimage.gaussian_laplace(a, 2)),
    scipy_case("gaussian_gradient_magnitude", "sigma=2", "float32", SMALL, lambda a: ndimage.gaussian_gradient_magnitude(a, 2)),
    opencv_case("sobel", "axis=1", "float32", PLANE, sobel_cv),
    opencv_case("laplace", "", "float32", PLANE, laplace_cv),
    opencv_case("convolve", "kernel=" + str(KERNEL).replace(" ", ""), "float32", PLANE, convolve_cv, operations=50),
    scipy_case("variance", "size=5", "float32", SMALL,
               lambda a: ndimage.uniform_filter(a * a, 5) - ndimage.uniform_filter(a, 5) ** 2),
    Case("skimage", "sauvola", "window_size=15", "uint8", SMALL, lambda a: lambda: threshold_sauvola(a, 15)),
    scipy_case("percentile", "percentile=20;size=5", "uint8", TINY, lambda a: ndimage.percentile_filter(a, 20, 5)),
]


def distance_cases():
    """Beside the lines of bench_distance that they are about."""
    def edt_package(anisotropy):
        def make(a):
            import edt
            return lambda: edt.edt(a, anisotropy=anisotropy, parallel=2)
        return make

    for line, sampling, least in (("distance 256^3  ", (1, 1, 1), 80), ("distance 256^3, spacing 2.5 1 1", (2.5, 1, 1), 20),
                                  ("distance 256^3, spacing in no simple", (1.7320508, 1.4142135, 1), 20)):
        parameters = "" if sampling == (1, 1, 1) else "sampling=" + str(list(sampling))
        yield line, scipy_case("distance", parameters, "bool", VOLUME,
                               lambda a, s=sampling: ndimage.distance_transform_edt(a, sampling=s), target=least)
        yield line, Case("edt", "distance", parameters, "bool", VOLUME, edt_package(sampling), target=1, threads=2)


def label_cases():
    """Beside the lines of bench_label that they are about."""
    def cc3d_package(a):
        import cc3d
        return lambda: cc3d.connected_components(a, connectivity=26)

    line, shape = "label 512^3 blobs, connectivity 3 ", (512, 512, 512)
    yield line, scipy_case("label", "connectivity=3", "bool", shape, lambda a: ndimage.label(a, np.ones((3, 3, 3))), target=12)
    yield line, Case("cc3d", "label", "connectivity=3", "bool", shape, cc3d_package, target=1)


# ---------------------------------------------------------------- measuring

def timed(call):
    """Wall and processor time in milliseconds."""
    start, used = time.perf_counter(), time.process_time()
    call()
    return 1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - used)


def kernel(build, case):
    """Wall time on two threads and processor time of both, in milliseconds."""
    done = subprocess.run([f"{build}/bench/kernel_time", case.operator, case.parameters, case.dtype,
                           "x".join(map(str, case.shape)), "5"], capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()[1:]))


def take_turns(ours, peers, seconds=4):
    """Turns of both, at least three; a peer that takes long gets fewer."""
    own, theirs, end = [], [], time.perf_counter() + seconds
    if timed(peers)[0] < 500:  # once more, now that its memory is there
        peers()
    while len(own) < 3 or time.perf_counter() < end and len(own) < 15:
        own.append(ours())
        if not theirs or sum(wall for wall, _ in theirs) < 3000 * seconds:
            theirs.append(timed(peers))
    return own, theirs


def whole_command(build, case, image):
    """Milliseconds of the whole command, the least of three."""
    with tempfile.TemporaryDirectory(prefix="fovea-bench-") as folder:
        np.save(f"{folder}/image.npy", image)
        command = [os.path.abspath(f"{build}/fovea"), "run", "-q", "--fresh", "--overwrite", "-e", case.pipeline]
        return min(timed(lambda: subprocess.run(command, cwd=folder, check=True))[0] for _ in range(3))


def share_of_limit(case, milliseconds):
    """Share of the nearer limit, and + if that is the one of operations."""
    voxels, size = float(np.prod(case.shape)), np.dtype(case.dtype).itemsize
    out = {"distance": 4, "label": 4, "gaussian": 4}.get(case.operator, size)
    moving = voxels * (size + out) / 31e6
    rate = 227e6 if case.dtype == "float32" else 227e6 / 2 * 4 / size
    computing = voxels * case.operations / rate
    return f"{100 * max(moving, computing) / milliseconds:.0f} %" + ("+" if computing > moving else " ")


def report(build, case, own, theirs, image):
    fovea = statistics.median(cpu for _, cpu in own) / 2
    peer = statistics.median(cpu for _, cpu in theirs) / case.threads
    wall = min(wall for wall, _ in theirs) / min(wall for wall, _ in own)
    target = f">= {case.target:g}" if case.target else ""
    whole = f"{whole_command(build, case, image):8.0f}" if case.target else ""
    missed = "  missed" if case.target > peer / fovea else ""
    print(f"{case.name:64} {peer:9.2f} {fovea:9.2f} {peer / fovea:7.1f} {target:>7} {wall:7.1f} "
          f"{share_of_limit(case, fovea):>7} {whole:>8}{missed}", flush=True)


def filters(build, chosen):
    for case in filter(chosen, CASES):
        image = noise(case.dtype, case.shape)
        report(build, case, *take_turns(lambda: kernel(build, case), case.call(image)), image)


def volumes(build, program, cases, chosen):
    """Operators of several passes: their program runs once and leaves its image for the peers."""
    cases = [(line, case) for line, case in cases if chosen(case)]
    if not cases:
        return
    with tempfile.TemporaryDirectory(prefix="fovea-bench-") as folder:
        done = subprocess.run([f"{build}/bench/{program}", folder], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        for start, case in cases:
            image = np.fromfile(f"{folder}/blobs.raw", bool).reshape(case.shape)
            [words] = [line.split("ms") for line in lines if line.startswith(start)]
            own = [(float(words[1]), float(words[2].split(")")[1]))]
            try:
                call = case.call(image)
            except ImportError as missing:
                print(f"{case.name:64} not compared: {missing}")
                continue
            report(build, case, own, [timed(call) for _ in range(2)], image)


def main():
    words = sys.argv[1:]
    only_targets = "--targets" in words
    words = [word for word in words if word != "--targets"]
    build = words.pop(0) if words and os.path.isdir(words[0]) else "build"
    limits = subprocess.run([f"{build}/bench/machine_limits"], capture_output=True, text=True, check=True).stdout.split()
    print(f"this machine on two threads: {limits[0]} GB/s read + written, {limits[1]} GFLOP/s")
    print(f"{'milliseconds':64} {'peer':>9} {'fovea':>9} {'x':>7} {'target':>7} {'wall x':>7} {'limit':>7} {'whole':>8}")

    def chosen(case):
        return (case.target or not only_targets) and (not words or any(word in case.name for word in words))

    filters(build, chosen)
    volumes(build, "bench_distance", distance_cases(), chosen)
    volumes(build, "bench_label", label_cases(), chosen)


if __name__ == "__main__":
    main()
