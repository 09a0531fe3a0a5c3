"""Thresholds with the signatures of scikit-image."""
import warnings

import numpy as np

from .. import _eager
from .. import ndimage

__all__ = ["apply_hysteresis_threshold", "threshold_isodata", "threshold_li", "threshold_local", "threshold_mean",
           "threshold_multiotsu", "threshold_niblack", "threshold_otsu", "threshold_sauvola", "threshold_triangle",
           "threshold_yen"]


def _image(image, name):
    image = np.ascontiguousarray(image)
    if image.ndim > 2 and image.shape[-1] in (3, 4):
        warnings.warn(f"{name} is expected to work correctly only for grayscale images; image shape {image.shape} looks like "
                      "that of an RGB image.", stacklevel=3)
    return image.astype(np.float32) if image.dtype == np.float16 else image


# ---------------------------------------------------------------- one threshold

def _counts(image, nbins, hist):
    """How many values there are of each, and which: given ones without empty ends, or counted."""
    if hist is not None:
        counts, values = hist if isinstance(hist, (tuple, list)) else (hist, np.arange(np.size(hist)))
        counts, values = np.asarray(counts, float), np.asarray(values)
        held = np.flatnonzero(counts)
        ends = slice(held[0], held[-1] + 1) if len(held) else slice(None)
        return counts[ends], values[ends]
    if image.dtype.kind in "iub":
        low = int(image.min())
        counts = np.bincount((image.ravel().astype(np.int64) - low))
        return counts.astype(float), np.arange(low, low + len(counts))
    counts, edges = np.histogram(image.ravel(), nbins)
    return counts.astype(float), (edges[:-1] + edges[1:]) / 2


def _found(operator, image, nbins, hist, name, by_counts):
    """A threshold: the operator's, which counts integers value by value and others in 256 bins, or of other counts."""
    if image is None and hist is None:
        raise Exception("Either image or hist must be provided.")
    image = None if image is None else _image(image, name)
    if hist is not None or (nbins != 256 and image.dtype.kind == "f"):
        return by_counts(*_counts(image, nbins, hist))
    flat = image.reshape(image.shape if image.ndim <= 3 else -1)  # all axes count, however many there are
    found = _eager.run(f"{operator}(a)", a=flat)
    return image.dtype.type(found) if image.dtype.kind in "iub" else np.float64(found)


def _otsu(counts, values):
    """Where the means of the two classes are furthest apart, weighted with their sizes."""
    below, total = np.cumsum(counts), np.cumsum(counts * values)
    above = below[-1] - below[:-1]
    apart = total[:-1] / below[:-1] - (total[-1] - total[:-1]) / above
    return values[np.argmax(below[:-1] * above * apart**2)]


def threshold_otsu(image=None, nbins=256, *, hist=None):
    """Otsu's threshold."""
    if image is not None and np.size(image) and (np.asarray(image) == np.ravel(image)[0]).all():
        return np.ravel(image)[0]
    return _found("otsu", image, nbins, hist, "threshold_otsu", _otsu)


def _yen(counts, values):
    if len(values) == 1:
        return values[0]
    share = counts / counts.sum()
    below, squares = np.cumsum(share)[:-1], np.cumsum(share**2)
    above = np.cumsum(share[::-1] ** 2)[::-1][1:]
    return values[np.argmax(np.log((squares[:-1] * above) ** -1 * (below * (1 - below)) ** 2))]


def threshold_yen(image=None, nbins=256, *, hist=None):
    """Yen's threshold."""
    return _found("yen", image, nbins, hist, "threshold_yen", _yen)


def _isodata(counts, values):
    """All values that lie in the middle between the means of both classes, to a bin's width."""
    if len(values) == 1:
        return values
    below, total = np.cumsum(counts), np.cumsum(counts * values)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = (total[:-1] / below[:-1] + (total[-1] - total[:-1]) / (below[-1] - below[:-1])) / 2
        apart = middle - values[:-1]
        return values[:-1][(apart >= 0) & (apart < values[1] - values[0])]


def threshold_isodata(image=None, nbins=256, return_all=False, *, hist=None):
    """The threshold of Ridler and Calvard, in the middle between the means of both classes: the lowest, or all of them."""
    if return_all:
        if image is None and hist is None:
            raise Exception("Either image or hist must be provided.")
        return _isodata(*_counts(None if image is None else _image(image, "threshold_isodata"), nbins, hist))
    return _found("isodata", image, nbins, hist, "threshold_isodata", lambda *given: _isodata(*given)[0])


def threshold_triangle(image, nbins=256):
    """The threshold of the triangle under the histogram."""
    def refused(*_):
        raise ValueError("threshold_triangle counts values that are no integers in 256 bins: nbins is not taken here")
    return _found("triangle", image, nbins, None, "threshold_triangle", refused)


def threshold_li(image, *, tolerance=None, initial_guess=None, iter_callback=None):
    """Li's threshold of least cross entropy. Nan and infinity do not count."""
    if tolerance is not None or initial_guess is not None or iter_callback is not None:
        raise ValueError("threshold_li takes an image alone: no tolerance, initial_guess or iter_callback")
    image = _image(image, "threshold_li")
    finite = image[np.isfinite(image)] if image.dtype.kind == "f" else image.ravel()
    if len(finite) == 0:
        infinite = np.unique(image[~np.isnan(image)])
        return np.nan if len(infinite) == 0 else infinite[0] if len(infinite) == 1 else 0.0
    if (finite == finite[0]).all():
        return finite[0]
    return np.float64(_eager.run("li(a)", a=image if finite.size == image.size and image.ndim <= 3 else finite))


# ---------------------------------------------------------------- several, or one of every voxel

def threshold_mean(image):
    """The mean."""
    return np.mean(image)


def threshold_multiotsu(image=None, classes=3, nbins=256, *, hist=None):
    """Otsu's thresholds between several classes."""
    if hist is not None or image is None:
        raise ValueError("threshold_multiotsu takes an image, not counts")
    image = _image(image, "threshold_multiotsu")
    different = len(np.unique(image))
    if different < classes:
        raise ValueError(f"The input image has only {different} different values. It cannot be thresholded in {classes} classes.")
    if nbins < classes or (nbins != 256 and image.dtype.kind == "f"):
        raise ValueError("threshold_multiotsu counts values that are no integers in 256 bins: nbins is not taken here")
    if different == classes:
        return np.unique(image)[:-1]
    found = [_eager.run(f"multi_otsu(a, {classes}, {k})", a=image) for k in range(classes - 1)]
    return np.array(found, image.dtype if image.dtype.kind in "iu" else float)


def _window(window_size, ndim):
    sizes = list(window_size) if np.iterable(window_size) else [window_size] * ndim
    if len(sizes) != ndim:
        raise ValueError(f"window_size has {len(sizes)} values; the image has {ndim} axes")
    for size in sizes:
        if size % 2 == 0:
            raise ValueError(f"Window size for `threshold_sauvola` or `threshold_niblack` must not be even on any dimension. "
                             f"Got {window_size}")
    return [int(n) for n in sizes]


def _real(image):
    image = np.ascontiguousarray(image)
    return image if image.dtype == np.float32 else image.astype(np.float32 if image.dtype == np.float16 else np.float64)


def threshold_niblack(image, window_size=15, k=0.2):
    """Niblack's threshold of every voxel: the mean minus k standard deviations of its surroundings."""
    real = _real(image)
    return _eager.call("niblack", real, window_size=_window(window_size, real.ndim), k=float(k))


def threshold_sauvola(image, window_size=15, k=0.2, r=None):
    """Sauvola's threshold of every voxel."""
    image = np.asarray(image)
    if r is None:
        limits = (np.iinfo(image.dtype).min, np.iinfo(image.dtype).max) if image.dtype.kind in "iu" else (-1, 1)
        limits = (0, 1) if image.dtype == bool else limits
        r = 0.5 * (limits[1] - limits[0])
    real = _real(image)
    return _eager.call("sauvola", real, window_size=_window(window_size, real.ndim), k=float(k), r=float(r))


def threshold_local(image, block_size=3, method="gaussian", offset=0, mode="reflect", param=None, cval=0):
    """The threshold of every voxel from its surroundings: a Gaussian mean, a mean, a median."""
    image = np.asarray(image)
    sizes = list(block_size) if np.iterable(block_size) else [block_size] * image.ndim
    if any(n % 2 == 0 for n in sizes):
        raise ValueError(f"block_size must be odd! Given block_size {tuple(sizes)} contains even values.")
    if len(sizes) != image.ndim:
        raise ValueError("len(block_size) must equal image.ndim.")
    image = _real(image)
    if method == "generic":
        return ndimage.generic_filter(image, param, sizes, mode=mode, cval=cval) - offset
    if method == "gaussian" and param is not None:
        return ndimage.gaussian_filter(image, param, mode=mode, cval=cval) - offset
    if method not in ("gaussian", "mean", "median"):
        raise ValueError("Invalid method specified. Please use `generic`, `gaussian`, `mean`, or `median`.")
    return _eager.call("local", image, block_size=[int(n) for n in sizes], method=method, offset=float(offset), mode=mode,
                       cval=float(cval))


def apply_hysteresis_threshold(image, low, high):
    """What lies above a low threshold and is connected to something above a high one."""
    image = np.ascontiguousarray(image)
    if np.ndim(low) or np.ndim(high):
        raise TypeError("low and high are numbers here, not images")
    return _eager.run(f"hysteresis(a, {float(low)!r}, {float(high)!r})", a=image)
