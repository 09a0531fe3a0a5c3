"""Reconstruction from projections with the signature of scikit-image."""
import numpy as np

from .. import _eager

__all__ = ["iradon"]

_FILTERS = {"ramp": "ramp", "shepp-logan": "shepp-logan", "cosine": "cosine", "hamming": "hamming", "hann": "hann", None: "none"}


def iradon(radon_image, theta=None, output_size=None, filter_name="ramp", interpolation="linear", circle=True,
           preserve_range=True):
    """A plane from its projections, one in each column, by filtered back-projection."""
    sinogram = np.asarray(radon_image)
    if sinogram.ndim != 2:
        raise ValueError("The input image must be 2-D")
    theta = np.linspace(0, 180, sinogram.shape[1], endpoint=False) if theta is None else np.asarray(theta, float)
    if len(theta) != sinogram.shape[1]:
        raise ValueError("The given ``theta`` does not match the number of projections in ``radon_image``.")
    if filter_name not in _FILTERS:
        raise ValueError(f"Unknown filter: {filter_name}")
    if interpolation != "linear":
        raise ValueError(f"Unknown interpolation: {interpolation}; there is linear here")
    if not preserve_range and sinogram.dtype.kind in "iu":
        sinogram = sinogram / np.iinfo(sinogram.dtype).max
    width = sinogram.shape[0]
    if output_size is None:
        output_size = width if circle else int(np.floor(np.sqrt(width**2 / 2.0)))
    kind = np.float32 if sinogram.dtype in (np.float16, np.float32) else np.float64
    angles = ", ".join(repr(float(v)) for v in theta)
    lines = np.ascontiguousarray(_centred(sinogram.T, circle), np.float32)
    size = output_size + 1 - output_size % 2
    found = _eager.run(f'fbp(a, parallel([{angles}]), filter = "{_FILTERS[filter_name]}", size = {size})', axes="angle x",
                       a=lines)
    found = found[:output_size, :output_size].astype(kind)
    if circle:
        radius = output_size // 2
        y, x = np.mgrid[:output_size, :output_size] - radius
        found[x**2 + y**2 > radius**2] = 0
    return found


def _centred(lines, circle):
    """Projections whose voxel n // 2 is in the middle, as wide as a square around the circle, if they are of a circle."""
    width = lines.shape[1]
    wide = int(np.ceil(np.sqrt(2) * width)) if circle else width
    before = wide // 2 - width // 2
    return np.pad(lines, ((0, 0), (before, wide - width - before + 1 - wide % 2)))
