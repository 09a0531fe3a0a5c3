"""Peaks and blobs with the signatures of scikit-image."""
import warnings

import numpy as np

from .. import _eager
from .. import ndimage

__all__ = ["blob_dog", "blob_doh", "blob_log", "peak_local_max"]


# ---------------------------------------------------------------- peaks

def _spaced(coordinates, spacing, p_norm, most):
    """The first of all coordinates that are nearer to one another than the spacing."""
    if spacing <= 0:
        return coordinates[:most]
    kept, cells = [], {}
    width = max(float(spacing), 1.0)
    for place in coordinates:
        cell = tuple((place // width).astype(int))
        near = [q for index in np.ndindex(*[3] * len(cell)) for q in cells.get(tuple(c + i - 1 for c, i in zip(cell, index)), ())]
        if near and (np.linalg.norm(np.array(near) - place, ord=p_norm, axis=1) < spacing).any():
            continue
        kept.append(place)
        cells.setdefault(cell, []).append(place)
        if len(kept) >= most:
            break
    return np.array(kept, coordinates.dtype).reshape(-1, coordinates.shape[1])


def _highest(image, mask, most, spacing, p_norm):
    """Places of a mask, the brightest first."""
    places = np.argwhere(mask)
    order = np.argsort(-image[tuple(places.T)], kind="stable")
    most = None if np.isinf(most) else int(most)
    return _spaced(places[order], spacing, p_norm, len(places) if most is None else most)


def _peak_mask(image, footprint, threshold):
    if image.size == 1 or footprint.size == 1:
        return image > threshold
    highest = ndimage.maximum_filter(image, footprint=footprint, mode="nearest")
    mask = image == highest
    if mask.all():
        mask[...] = False  # a flat image has no peaks
    return mask & (image > threshold)


def _borders(exclude_border, min_distance, ndim):
    if isinstance(exclude_border, bool):
        return (min_distance if exclude_border else 0,) * ndim
    if isinstance(exclude_border, (int, np.integer)):
        if exclude_border < 0:
            raise ValueError("`exclude_border` cannot be a negative value")
        return (int(exclude_border),) * ndim
    if isinstance(exclude_border, tuple):
        if len(exclude_border) != ndim:
            raise ValueError("`exclude_border` should have the same length as the dimensionality of the image.")
        for border in exclude_border:
            if not isinstance(border, (int, np.integer)):
                raise ValueError("`exclude_border`, when expressed as a tuple, must only contain ints.")
            if border < 0:
                raise ValueError("`exclude_border` can not be a negative value")
        return exclude_border
    raise TypeError("`exclude_border` must be bool, int, or tuple with the same length as the dimensionality of the image.")


def _cleared(mask, borders):
    for axis, width in enumerate(borders):
        if width:
            lines = np.moveaxis(mask, axis, 0)
            lines[:width] = lines[-width:] = False
    return mask


def peak_local_max(image, min_distance=1, threshold_abs=None, threshold_rel=None, exclude_border=True, indices=True,
                   num_peaks=np.inf, footprint=None, labels=None, num_peaks_per_label=np.inf, p_norm=np.inf):
    """Coordinates of the peaks of an image, the brightest first; within each label, if there are labels."""
    if not indices:
        warnings.warn("indices argument is deprecated and will be removed in version 0.20. To avoid this warning, please do not "
                      "use the indices argument.", FutureWarning, stacklevel=2)
    image = np.asarray(image)
    if (footprint is None or np.size(footprint) == 1) and min_distance < 1:
        warnings.warn("When min_distance < 1, peak_local_max acts as finding image > max(`threshold_abs`, `threshold_rel * "
                      "max(image)`).", RuntimeWarning, stacklevel=2)
    borders = _borders(exclude_border, min_distance, image.ndim)
    threshold = image.min() if threshold_abs is None else threshold_abs
    if threshold_rel is not None:
        threshold = max(threshold, threshold_rel * image.max())
    size = 2 * min_distance + 1
    box = np.ones((size,) * image.ndim, bool) if footprint is None else np.asarray(footprint)
    if labels is None:
        places = _highest(image, _cleared(_peak_mask(image, box, threshold), borders), num_peaks, min_distance, p_norm)
    else:
        places = _by_label(image, np.asarray(labels), box, threshold, borders, num_peaks_per_label, min_distance, p_norm)
        if not np.isinf(num_peaks) and len(places) > num_peaks:
            order = np.argsort(-image[tuple(places.T)], kind="stable")
            places = places[order[:int(num_peaks)]]
    if indices:
        return places
    found = np.zeros(image.shape, bool)
    found[tuple(places.T)] = True
    return found


def _by_label(image, labels, box, threshold, borders, most, spacing, p_norm):
    numbers = _cleared(labels.astype(np.int64), borders)
    found = [np.zeros((0, image.ndim), np.int64)]
    for number, place in enumerate(ndimage.find_objects(numbers), 1):
        if place is None:
            continue
        inside = labels[place] == number
        part = np.where(inside, image[place], np.min(image))
        mask = _peak_mask(part.astype(image.dtype), box, threshold) & inside
        start = [cut.start for cut in place]
        shape = part.shape
        for axis, width in enumerate(borders):  # the border of the image, seen from the part
            lines = np.moveaxis(mask, axis, 0)
            lines[:max(width - start[axis], 0)] = False
            lines[max(image.shape[axis] - width - start[axis], 0):shape[axis]] = False
        found.append(_highest(part, mask, most, spacing, p_norm) + start)
    return np.concatenate(found)


# ---------------------------------------------------------------- blobs

def _blobs(operator, image, strongest, rel, exclude_border, **parameters):
    image = np.ascontiguousarray(image)
    if not 1 <= image.ndim <= 3:
        raise ValueError(f"blobs are found in images of up to three axes; this one has {image.ndim}")
    image = image.astype(np.float32) if image.dtype == np.float16 else image
    several = [name for name in ("min_sigma", "max_sigma") if np.iterable(parameters[name])]
    for name in several:
        parameters[name] = [float(v) for v in parameters[name]]
    if exclude_border is not None:
        parameters["exclude_border"] = _blob_border(exclude_border)
    if rel is not None:
        least = float(rel) * strongest(image)
        parameters["threshold"] = max(least, least if parameters["threshold"] is None else parameters["threshold"])
    table = _eager.call(operator, image, **parameters)
    names = [c for c in table.columns if c in "zyx"[-image.ndim:]] + [c for c in table.columns if c.startswith("sigma")]
    return np.array([table[name] for name in names], np.float64).T.reshape(-1, len(names))


def _number(value):
    return None if value is None else float(value)


def _blob_border(exclude_border):
    if isinstance(exclude_border, tuple):
        if len(set(exclude_border)) > 1:
            raise ValueError("exclude_border must be one number here, for all axes")
        exclude_border = exclude_border[0]
    if exclude_border is True:
        raise ValueError("exclude_border must be a number of voxels here")
    return int(exclude_border)


def _fractions(image):
    """Integers as fractions of the largest value of their type."""
    return image / np.iinfo(image.dtype).max if image.dtype.kind in "iu" else image.astype(float)


def _scales(low, high, count, logarithmic):
    """Standard deviations from the smallest to the largest, one row each."""
    low, high = (np.atleast_1d(np.asarray(v, float)) for v in (low, high))
    if logarithmic:
        return np.exp(np.linspace(np.log(low), np.log(high), count))
    return np.linspace(low, high, count)


def blob_dog(image, min_sigma=1, max_sigma=50, sigma_ratio=1.6, threshold=0.5, overlap=0.5, *, threshold_rel=None,
             exclude_border=False):
    """Blobs by differences of Gaussians: rows of coordinates and sigma."""
    def strongest(a):
        low, ratio = np.atleast_1d(np.asarray(min_sigma, float)), float(sigma_ratio)
        count = int(np.mean(np.log(np.asarray(max_sigma) / low) / np.log(ratio) + 1))
        smooth = [ndimage.gaussian_filter(_fractions(a), np.broadcast_to(low * ratio**k, a.ndim)) for k in range(count + 1)]
        return max(float((one - next_one).max()) for one, next_one in zip(smooth, smooth[1:])) / (ratio - 1)
    return _blobs("blobs_dog", image, strongest, threshold_rel, exclude_border, min_sigma=min_sigma, max_sigma=max_sigma,
                  sigma_ratio=float(sigma_ratio), threshold=_number(threshold), overlap=float(overlap))


def blob_log(image, min_sigma=1, max_sigma=50, num_sigma=10, threshold=0.2, overlap=0.5, log_scale=False, *, threshold_rel=None,
             exclude_border=False):
    """Blobs by Laplacians of Gaussians: rows of coordinates and sigma."""
    def strongest(a):
        return max(float((-ndimage.gaussian_laplace(_fractions(a), np.broadcast_to(one, a.ndim))).max() * np.mean(one) ** 2)
                   for one in _scales(min_sigma, max_sigma, num_sigma, log_scale))
    return _blobs("blobs_log", image, strongest, threshold_rel, exclude_border, min_sigma=min_sigma, max_sigma=max_sigma,
                  num_sigma=int(num_sigma), threshold=_number(threshold), overlap=float(overlap), log_scale=bool(log_scale))


def blob_doh(image, min_sigma=1, max_sigma=30, num_sigma=10, threshold=0.01, overlap=0.5, log_scale=False, *, threshold_rel=None):
    """Blobs by determinants of Hessians: rows of coordinates and sigma."""
    if threshold_rel is not None or threshold is None:
        raise ValueError("blob_doh takes a threshold of its own, not threshold_rel")
    return _blobs("blobs_doh", image, None, None, None, min_sigma=min_sigma, max_sigma=max_sigma, num_sigma=int(num_sigma),
                  threshold=float(threshold), overlap=float(overlap), log_scale=bool(log_scale))
