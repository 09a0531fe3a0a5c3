#!/usr/bin/python3
"""Every operator of the families filter, threshold and morphology against its peer on everything that an image may be.

Each row of the table is one call and its peer; the walk gives it a real picture, a volume of every type, every boundary mode,
images smaller than the footprint, one voxel, constant images, and floats with nan and infinities. Operators without a row fail.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Callable, Optional

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.filters as filters
    import skimage.io
    import skimage.morphology as morphology
    import skimage.segmentation as segmentation
except ImportError as missing:
    print(f"skip matrix: {missing}")
    sys.exit(0)

from pipelines import FOVEA, MODES, ROOT, Difference, near, refused, remove_small_objects, run_all, same, test, wide

warnings.simplefilter("ignore")
np.seterr(all="ignore")
RANDOM = np.random.default_rng(12)
TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64".split()
REAL, MASKS, COUNTED = TYPES[1:], TYPES[:1], TYPES[:-2]
SHAPES = (1, 1), (1, 1, 1), (2, 3), (1, 7), (5, 1), (2, 1, 3)  # smaller than most footprints
CUT = ("--chunk", "5")  # the lattice must not matter


# ---------------------------------------------------------------- what nan and infinity do

def by_order(peer):
    """Operators that only compare: of the places of the values in their order, nan above all."""
    def apply(image, **mode):
        values, place = np.unique(image, return_inverse=True)  # numpy sorts nan last
        if "cval" in mode:
            raise Difference("modes are not tested with nan")
        made = peer(place.reshape(image.shape).astype(np.int64), **mode)
        return made if made.dtype == bool else values[made]
    return apply


def far_away(peer):
    """Operators that measure heights: infinities lie far above and below, nan above both."""
    return lambda image: peer(np.nan_to_num(image.astype(float), nan=2e6, posinf=1e6, neginf=-1e6))


def minus(high, low):
    """A difference that is 0 between equal infinities; nan stays."""
    return np.where(high == low, 0, high - low).astype(high.dtype)


# ---------------------------------------------------------------- the table

@dataclass
class Row:
    """A call in the image a; MODE stands for the boundary mode. ndim: only images of so many axes are given to it."""
    call: str
    peer: Callable
    types: list
    exact: bool = True
    ndim: int = 0
    odd: Optional[Callable] = None  # what is expected of images with nan and infinities; None: as the peer does
    refuses_odd: bool = False
    tolerance: float = 2e-6

    @property
    def name(self):
        return re.findall(r"(\w+)\(", self.call)[0]

    @property
    def outside(self):
        """The constant around the image: linear filters take one that integers do not have, the others keep the type."""
        return 9 if self.exact or "median" in self.call else 9.5

    @property
    def has_modes(self):
        return "MODE" in self.call

    def text(self, image, mode="reflect"):
        return re.sub(r"\ba\b", image, self.call).replace("MODE", f'mode = "{mode}", cval = {self.outside}')


ROWS = []


def linear(call, peer, odd=None, ndim=0, tolerance=2e-6, types=TYPES):
    ROWS.append(Row(call, lambda a, **mode: peer(a.astype(float), **mode), types, False, ndim, odd, tolerance=tolerance))


def ordered(call, peer, types=TYPES, ndim=0):
    ROWS.append(Row(call, peer, types, True, ndim, by_order(peer)))


def surrounded(peer):
    """Peers that see the constant anew for each axis, given an image that it surrounds once."""
    def apply(image, mode="reflect", cval=0):
        if mode != "constant":
            return peer(image, mode=mode)
        return peer(np.pad(image, 2, constant_values=cval))[(slice(2, -2),) * image.ndim]
    return apply


def box_mean(size):
    return lambda a, **mode: ndimage.convolve(a, np.full((size,) * a.ndim, 1 / size**a.ndim), **mode)


def box_variance(size):
    return lambda a, **mode: ndimage.generic_filter(a.astype(float), np.var, size, **mode)


def scharr(image, mode="reflect", cval=0):
    def slope(axis):
        made = image
        for other in range(image.ndim):
            weights = [-1 / 2, 0, 1 / 2] if other == axis else [3 / 16, 10 / 16, 3 / 16]
            made = ndimage.correlate1d(made, weights, other, mode=mode)
        return 2 * made
    if mode == "constant":
        return scharr(np.pad(image, 2, constant_values=cval))[(slice(2, -2),) * image.ndim]
    return np.sqrt(sum(slope(axis)**2 for axis in range(image.ndim)) / image.ndim)


def around(image, size):
    """Mean and deviation of the box around each voxel. Those of scikit-image come from sums that nan would spoil."""
    values = np.pad(image.astype(float), size // 2, mode="reflect") if min(image.shape) > size // 2 else None
    if values is None:  # numpy reflects tiny images by other rules
        mean = ndimage.generic_filter(image.astype(float), np.mean, size, mode="mirror")
        deviation = ndimage.generic_filter(image.astype(float), np.std, size, mode="mirror")
    else:
        inside = (slice(size // 2, -(size // 2)),) * image.ndim
        mean = ndimage.generic_filter(values, np.mean, size)[inside]
        deviation = ndimage.generic_filter(values, np.std, size)[inside]
    return mean, deviation


def sauvola(image, size=5, k=0.2):
    """As threshold_sauvola."""
    kind = image.dtype
    half_range = 1 if kind.kind == "f" else 0.5 if kind == bool else (float(np.iinfo(kind).max) - float(np.iinfo(kind).min)) / 2
    mean, deviation = around(image, size)
    return mean * (1 + k * (deviation / half_range - 1))


def niblack(image, size=5, k=0.2):
    """As threshold_niblack."""
    mean, deviation = around(image, size)
    return mean - k * deviation


def unsharp(image):
    """scikit-image takes three voxels along x for colours."""
    if image.shape[-1] == 3:
        return image + 2 * (image - ndimage.gaussian_filter(image, 1.5, mode="reflect"))
    return filters.unsharp_mask(image, 1.5, 2, preserve_range=True)


linear("gaussian(a, 1.3, MODE)", lambda a, **m: ndimage.gaussian_filter(a, 1.3, **m))
linear("gaussian(a, [0.7, 0, 2], MODE)", lambda a, **m: ndimage.gaussian_filter(a, [0.7, 0, 2], **m), ndim=3)
linear("gaussian(a, 1.3, order = 1, MODE)", lambda a, **m: ndimage.gaussian_filter(a, 1.3, order=1, **m))
linear("gaussian_laplace(a, 1.2, MODE)", lambda a, **m: ndimage.gaussian_laplace(a, 1.2, **m))
linear("gaussian_laplace(a, [1, 2, 1.5], MODE)", lambda a, **m: ndimage.gaussian_laplace(a, [1, 2, 1.5], **m), ndim=3)
linear("gaussian_gradient_magnitude(a, 1.2, MODE)", lambda a, **m: ndimage.gaussian_gradient_magnitude(a, 1.2, **m))
linear("difference_of_gaussians(a, 1, 2, MODE)", lambda a, **m: filters.difference_of_gaussians(a, 1, 2, **m))
linear("laplace(a, MODE)", lambda a, **m: ndimage.laplace(a, **m))
linear("sobel(a, MODE)", surrounded(ndimage.sobel))
linear("sobel(a, 0, MODE)", surrounded(lambda a, **m: ndimage.sobel(a, 0, **m)))
linear("prewitt(a, MODE)", surrounded(ndimage.prewitt))
linear("scharr(a, MODE)", scharr)
linear("uniform(a, 3, MODE)", lambda a, **m: ndimage.uniform_filter(a, 3, **m), box_mean(3))
linear("uniform(a, [1, 4, 3], MODE)", lambda a, **m: ndimage.uniform_filter(a, [1, 4, 3], **m),
       lambda a: ndimage.convolve(a, np.full((1, 4, 3), 1 / 12), origin=(0, -1, 0)), ndim=3)
linear("convolve(a, [0, 1, 0, 1, -3, 1, 0, 2, 1], MODE)",
       lambda a, **m: ndimage.convolve(a, np.array([[0, 1, 0], [1, -3, 1], [0, 2, 1]]), **m), ndim=2)
linear("convolve(a, [1, 2, 3, 4, 5, 6, 7, 8], MODE)",
       lambda a, **m: ndimage.convolve(a, np.arange(1, 9).reshape(2, 2, 2), **m), ndim=3)
linear("variance(a, 3, MODE)", lambda a, **m: box_variance(3)(a, **m))
linear("unsharp(a, 1.5, 2)", unsharp)
linear("local(a, 5, MODE)", lambda a, **m: filters.threshold_local(a, 5, **m))
linear('local(a, 3, method = "mean", MODE)', lambda a, **m: filters.threshold_local(a, 3, "mean", **m), box_mean(3))
linear('local(a, 3, method = "median", offset = 2, MODE)',
       lambda a, **m: filters.threshold_local(a, 3, "median", offset=2, **m),
       lambda a: by_order(lambda b: ndimage.median_filter(b, 3))(a) - 2, types=REAL)
ROWS.append(Row("sauvola(a, 5)", sauvola, TYPES, False, tolerance=1e-5))
ROWS.append(Row("niblack(a, 5)", niblack, TYPES, False, tolerance=1e-5))


def wide_median(image, size=17, mode="reflect", cval=0):
    """scipy's is wrong for images much smaller than the box, where numpy tells what lies around them."""
    if min(image.shape) > size // 2:
        return ndimage.median_filter(image, size, mode=mode, cval=cval)
    names = {"reflect": "symmetric", "nearest": "edge", "mirror": "reflect"}
    more = {"constant_values": cval} if mode == "constant" else {}
    around = np.pad(image, size // 2, mode=names.get(mode, mode), **more)
    windows = np.lib.stride_tricks.sliding_window_view(around, (size, size)).reshape(*image.shape, -1)
    return np.sort(windows, axis=-1)[..., size * size // 2]


ordered("median(a, 3, MODE)", lambda a, **m: ndimage.median_filter(a, 3, **m))
ordered("median(a, [1, 4, 3], MODE)", lambda a, **m: ndimage.median_filter(a, [1, 4, 3], **m), ndim=3)
ordered("median(a, 17, MODE)", wide_median, ndim=2)
ordered("percentile(a, 30, size = 4, MODE)", lambda a, **m: ndimage.percentile_filter(a, 30, 4, **m))
ordered("rank(a, -2, size = 3, MODE)", lambda a, **m: ndimage.rank_filter(a, -2, 3, **m))
ordered("minimum_filter(a, 4, MODE)", lambda a, **m: ndimage.minimum_filter(a, 4, **m))
ordered("maximum_filter(a, 4, MODE)", lambda a, **m: ndimage.maximum_filter(a, 4, **m))


def footprints():
    """Names in a call, and the peer's array for images of so many axes."""
    yield "cross()", lambda ndim: ndimage.generate_binary_structure(ndim, 1)
    yield "box(3)", lambda ndim: np.ones((3,) * ndim, bool)
    yield "ball(2)", lambda ndim: morphology.ball(2).astype(bool) if ndim == 3 else morphology.disk(2).astype(bool)
    yield "disk(3)", lambda ndim: morphology.disk(3).astype(bool).reshape((1,) * (ndim - 2) + (7, 7))


def erosion(a, shape):
    return ndimage.binary_erosion(a, shape, border_value=1) if a.dtype == bool else ndimage.grey_erosion(a, footprint=shape)


def dilation(a, shape):
    return ndimage.binary_dilation(a, shape) if a.dtype == bool else ndimage.grey_dilation(a, footprint=shape)


def excess(high, low):
    """What the type can hold of a difference."""
    if high.dtype == bool:
        return high & ~low
    if high.dtype.kind == "i":
        most = np.iinfo(high.dtype).max
        return np.array([min(int(h) - int(l), most) for h, l in zip(high.flat, low.flat)], high.dtype).reshape(high.shape)
    return high - low


def footprint_rows(name, shape):
    def low(a):
        return erosion(a, shape(a.ndim))

    def high(a):
        return dilation(a, shape(a.ndim))

    for call, peer in (("erode", low), ("dilate", high), ("open", lambda a: high(low(a))), ("close", lambda a: low(high(a)))):
        ordered(f"{call}(a, {name})", peer)
    odd_low, odd_high = by_order(low), by_order(high)
    for call, above, below, odd in (
            ("gradient", high, low, lambda a: minus(odd_high(a), odd_low(a))),
            ("tophat", lambda a: a, lambda a: high(low(a)), lambda a: minus(a, odd_high(odd_low(a)))),
            ("bottomhat", lambda a: low(high(a)), lambda a: a, lambda a: minus(odd_low(odd_high(a)), a))):
        ROWS.append(Row(f"{call}(a, {name})", lambda a, above=above, below=below: excess(above(a), below(a)), TYPES, odd=odd))


for one_name, one_shape in footprints():
    footprint_rows(one_name, one_shape)


def every_neighbour(ndim):
    return np.ones((3,) * ndim, bool)


def extrema(name):
    """Constant images have none (scikit-image says so of an image of one voxel, too)."""
    peer = getattr(morphology, name)
    return lambda a: np.zeros(a.shape, bool) if (a == a.flat[0]).all() else peer(np.pad(a, 1, mode="edge"))[
        (slice(1, -1),) * a.ndim].astype(bool) if min(a.shape) < 3 else peer(a).astype(bool)


def h_extrema(name):
    """Images that differ by less than h altogether have none."""
    def apply(image, h=3):
        values = image if image.dtype.kind == "f" else image.astype(np.int64)
        if np.ptp(values) < h:
            return np.zeros(image.shape, bool)
        return getattr(morphology, name)(values, h, every_neighbour(image.ndim)).astype(bool)
    return apply


def distance(image, **more):
    """An image without background is infinitely far from it."""
    if image.all():
        return np.full(image.shape, np.inf, np.float32)
    return ndimage.distance_transform_edt(image, **more).astype(np.float32)


def rebuilt(first, method):
    """What grows again of what a box has taken away."""
    def apply(image):
        seed = first(image, every_neighbour(image.ndim))
        return morphology.reconstruction(seed, image, method, every_neighbour(image.ndim)).astype(image.dtype)
    return apply


def thresholded(function):
    """Nothing lies above the threshold of an image of one value."""
    return lambda a: np.zeros(a.shape, bool) if (a == a.flat[0]).all() else a > function(a)


def border_cleared(image):
    """A label goes with all its voxels (scikit-image leaves those that do not connect to the border)."""
    if image.dtype == bool:
        return segmentation.clear_border(image) if min(image.shape) > 1 else np.zeros_like(image)
    inside = np.zeros(image.shape, bool)
    inside[(slice(1, -1),) * image.ndim] = True
    return np.where(np.isin(image, np.unique(image[~inside])), 0, image).astype(image.dtype)


INTEGERS = "uint8 int8 uint16 int16 uint32 int32 int64".split()
for one_name in ("otsu", "li", "triangle", "yen", "isodata"):
    ROWS.append(Row(f"a > {one_name}(a)", thresholded(getattr(filters, "threshold_" + one_name)),
                    INTEGERS + ["float32", "float64"] * (one_name != "li"), refuses_odd=True))

for one_name, one_first, one_method in (("erode", erosion, "dilation"), ("dilate", dilation, "erosion")):
    ordered(f'reconstruct({one_name}(a, box(3)), a, method = "{one_method}")', rebuilt(one_first, one_method), REAL)

ROWS += [
    Row("fill_holes(a)", ndimage.binary_fill_holes, MASKS),
    Row("fill_holes(a, connectivity = 2)",
        lambda a: ndimage.binary_fill_holes(a, ndimage.generate_binary_structure(a.ndim, 2)), MASKS),
    Row("remove_small(a, 20)", lambda a: remove_small_objects(a, 20), MASKS),
    Row("remove_small(a, 20)", lambda a: remove_small_objects(a.astype(np.int64), 20).astype(a.dtype), COUNTED[1:]),
    Row("clear_border(a)", border_cleared, COUNTED),
    Row("distance(a)", distance, TYPES, odd=distance),
    Row("distance(a, sampling = [2.5, 1, 0.5])", lambda a: distance(a, sampling=[2.5, 1, 0.5]), TYPES, False, ndim=3,
        tolerance=1e-7),
    Row("local_maxima(a)", extrema("local_maxima"), REAL, odd=by_order(extrema("local_maxima"))),
    Row("local_minima(a)", extrema("local_minima"), REAL, odd=by_order(extrema("local_minima"))),
    Row("h_maxima(a, 3)", h_extrema("h_maxima"), REAL, odd=far_away(h_extrema("h_maxima"))),
    Row("h_minima(a, 3)", h_extrema("h_minima"), REAL, odd=far_away(h_extrema("h_minima"))),
    Row("hysteresis(a, 40, 70)", lambda a: filters.apply_hysteresis_threshold(a, 40, 70), REAL),
]


# ---------------------------------------------------------------- the images

def typed(image, dtype):
    return image > 50 if dtype == "bool" else image.astype(dtype)


def scene(shape):
    """Soft noise from 0 to 100, whole numbers and quarters, with plateaus."""
    noise = ndimage.gaussian_filter(RANDOM.random(shape), 0.8)
    return np.round(400 * (noise - noise.min()) / max(np.ptp(noise), 1e-9)) / 4


VOLUME, PLANE = scene((8, 13, 15)), scene((14, 22))
TINY = [scene(shape) if np.prod(shape) > 1 else np.full(shape, 60.0) for shape in SHAPES]


def with_odd_values(image, dtype):
    odd = image.astype(dtype)
    odd.flat[[7, 60, 61]] = np.nan, np.inf, np.inf
    odd.flat[140] = -np.inf
    return odd


def real_picture():
    """A part of a photograph of coins, or None where the test data are not."""
    path = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data"), "images", "coins.png")
    return skimage.io.imread(path)[20:120, 30:160] if path.exists() else None


# ---------------------------------------------------------------- the walk

def compare(row, cases, options=CUT, peer=None):
    """Cases are pairs of an image and a boundary mode (None: the call has none)."""
    cases = [(image, mode) for image, mode in cases if row.ndim in (0, image.ndim)]
    if not cases:
        return
    arrays = {f"v{index}": image for index, (image, _) in enumerate(cases)}
    made = run_all([row.text(name, mode or "reflect") for name, (_, mode) in zip(arrays, cases)], *options, **arrays)
    for ours, (image, mode) in zip(made, cases):
        expected = (peer or row.peer)(image, **({"mode": mode, "cval": row.outside} if mode else {}))
        what = f"{row.text('a', mode or 'reflect')} of {image.dtype} {image.shape}"
        if row.exact:
            same(ours, expected, what)
        else:
            if row.name != "distance" and ours.dtype != wide(image):
                raise Difference(f"{what} gives {ours.dtype}")
            finite = np.isfinite(expected)
            same(np.isfinite(ours), finite, f"{what}: finite voxels:")
            near(np.where(finite, ours, 0), np.where(finite, expected, 0), what,
                 row.tolerance if ours.dtype == np.float32 else 1e-11, np.where(np.isfinite(image), image, 0))


def walk(check):
    """Every row; the first three differences are told."""
    wrong = []
    for row in ROWS:
        try:
            check(row)
        except Difference as difference:
            wrong.append(str(difference))
    if wrong:
        raise Difference(f"{len(wrong)} of {len(ROWS)} calls: " + "; ".join(wrong[:int(os.environ.get("TOLD", 3))]))


def helps():
    """Name and help of every operator of the three families."""
    listed = json.loads(subprocess.run([FOVEA, "ops", "--json"], capture_output=True, text=True, check=True).stdout)["operators"]
    return {op["name"]: op["doc"] for op in listed if op["family"] in ("filter", "threshold", "morphology")}


@test
def every_operator_has_a_row():
    lacking = set(helps()) - {row.name for row in ROWS} - {"multi_otsu"}  # refuses one value; see test_intensity.py
    assert not lacking, f"no row for {sorted(lacking)}"


@test
def every_operator_that_takes_floats_says_what_nan_does():
    takes = {row.name for row in ROWS if "float32" in row.types}
    silent = [name for name, doc in helps().items() if name in takes and not re.search("nan|not-a-number", doc, re.I)]
    assert not silent, f"nothing about nan in the help of {silent}"


@test
def volumes_of_every_type_equal_the_peer():
    walk(lambda row: compare(row, [(typed(VOLUME, t), "reflect" if row.has_modes else None) for t in row.types]))


@test
def planes_of_every_type_equal_the_peer():
    walk(lambda row: compare(row, [(typed(PLANE, t), "reflect" if row.has_modes else None) for t in row.types]))


@test
def every_boundary_mode_equals_the_peer():
    images = [(image, "uint8" if index % 2 else "float64") for index, image in enumerate((VOLUME, PLANE))]
    walk(lambda row: compare(row, [(typed(image, t), mode) for image, t in images for mode in MODES * row.has_modes]))


@test
def images_smaller_than_the_footprint_and_single_voxels_equal_the_peer():
    walk(lambda row: compare(row, [(typed(image, t), mode) for image in TINY for t in row.types[::4]
                                   for mode in (MODES if row.has_modes else [None])]))


@test
def constant_images_equal_the_peer():
    walk(lambda row: compare(row, [(typed(np.full(shape, value), t), "reflect" if row.has_modes else None)
                                   for shape in ((9, 11), (5, 6, 7)) for t in row.types[::3] for value in (0, 60)]))


def refuses(row, image):
    try:
        run_all([row.call], a=image)
    except Difference as error:
        assert "nan or infinite" in str(error), str(error)
    else:
        raise Difference(f"{row.call} accepts nan")


@test
def nan_and_infinities_do_what_the_help_says():
    def check(row):
        for image in (with_odd_values(PLANE, "float32"), with_odd_values(VOLUME, "float64")):
            if image.dtype not in row.types or row.ndim not in (0, image.ndim):
                continue
            if row.refuses_odd:
                refuses(row, image)
            else:
                compare(row, [(image, "reflect" if row.has_modes and not row.odd else None)], peer=row.odd)
    walk(check)


@test
def a_real_picture_equals_the_peer():
    walk(lambda row: compare(row, [(typed(PICTURE, t), "reflect" if row.has_modes else None)
                                   for t in ("uint8", "bool") if t in row.types], ("--chunk", "64")))


@test
def empty_images_are_refused_by_name():
    for row in ROWS:
        if row.ndim != 3 and (row.types != MASKS):
            refused(row.text("a"), "axis 0 of the array is empty", a=np.zeros((0, 5), row.types[0]))


PICTURE = real_picture()
if PICTURE is None:
    test.functions.remove(a_real_picture_equals_the_peer)
    print("skip a_real_picture_equals_the_peer: no real test files here (FOVEA_TEST_DATA)")
test.main()
