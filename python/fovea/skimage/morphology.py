"""Reconstruction and peaks above their surroundings, with the signatures of scikit-image."""
import warnings

import numpy as np

from .. import _eager
from .. import ndimage
from ..ndimage.binary import connectivity_of

__all__ = ["h_maxima", "h_minima", "reconstruction"]


def reconstruction(seed, mask, method="dilation", footprint=None, offset=None):
    """The seed, grown as far as the mask allows."""
    seed, mask = np.asarray(seed), np.asarray(mask)
    if seed.shape != mask.shape:
        raise ValueError("seed and mask must have the same shape")
    if method == "dilation" and np.any(seed > mask):
        raise ValueError("Intensity of seed image must be less than that of the mask image for reconstruction by dilation.")
    if method == "erosion" and np.any(seed < mask):
        raise ValueError("Intensity of seed image must be greater than that of the mask image for reconstruction by erosion.")
    if method not in ("dilation", "erosion"):
        raise ValueError(f"Reconstruction method can be one of 'erosion' or 'dilation'. Got '{method}'.")
    footprint = np.ones([3] * seed.ndim, bool) if footprint is None else np.asarray(footprint).astype(bool)
    if offset is None:
        if not all(n % 2 == 1 for n in footprint.shape):
            raise ValueError("Footprint dimensions must all be odd")
        offset = np.array([n // 2 for n in footprint.shape])
    offset = np.asarray(offset)
    if offset.ndim != footprint.ndim and len(offset) != footprint.ndim:
        raise ValueError("Offset and footprint ndims must be equal.")
    if not all(0 <= o < n for o, n in zip(offset, footprint.shape)):
        raise ValueError("Offset must be included inside footprint")
    centre = tuple(int(o) for o in offset)
    around = footprint.copy()
    around[centre] = True
    real = np.float32 if mask.dtype in (np.float16, np.float32) else np.float64
    dtype = np.promote_types(seed.dtype, mask.dtype)
    dtype = dtype if dtype.kind in "iu" and dtype.itemsize < 8 else real
    connectivity = connectivity_of(around) if centre == tuple(n // 2 for n in around.shape) else None
    a, m = (np.ascontiguousarray(v, dtype) for v in (seed, mask))
    if seed.size and connectivity:
        found = _eager.run(f'reconstruct(a, m, method = "{method}", connectivity = {connectivity})', a=a, m=m)
        return found.astype(real)
    return _step_by_step(a.astype(real), m.astype(real), around, centre, method == "dilation")


def _step_by_step(seed, mask, footprint, centre, grow):
    """Any footprint: dilations under the mask, or erosions above it, until nothing changes."""
    footprint = footprint[(slice(None, None, -1),) * footprint.ndim]  # a value goes where the footprint says, seen from it
    origin = [n - 1 - c - n // 2 for c, n in zip(centre, footprint.shape)]
    step, limit = (ndimage.maximum_filter, np.minimum) if grow else (ndimage.minimum_filter, np.maximum)
    while True:
        grown = step(seed, footprint=footprint, mode="constant", cval=-np.inf if grow else np.inf, origin=origin)
        grown = limit(grown, mask)
        if np.array_equal(grown, seed):
            return seed
        seed = grown


def _above(operator, image, h, footprint):
    image = np.ascontiguousarray(image)
    if h <= 0:
        raise ValueError(f"h = {h}: must be above 0")
    if image.dtype.kind in "iu" and h % 1:
        warnings.warn("possible precision loss converting image to floating point. To silence this warning, ensure image and h "
                      "have same data type.", stacklevel=3)
    connectivity = None
    if footprint is not None:
        connectivity = connectivity_of(np.asarray(footprint).astype(bool))
        if connectivity is None:
            raise ValueError("the footprint must be one of generate_binary_structure(ndim, connectivity)")
    if h > np.ptp(image):
        return np.zeros(image.shape, np.uint8)
    return _eager.call(operator, image, h=float(h), connectivity=connectivity).astype(np.uint8)


def h_maxima(image, h, footprint=None):
    """1 where one must go down by at least h to reach a higher place."""
    return _above("h_maxima", image, h, footprint)


def h_minima(image, h, footprint=None):
    """1 where one must go up by at least h to reach a lower place."""
    return _above("h_minima", image, h, footprint)
