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
    if interpolation not in ("linear", "nearest"):
        raise ValueError(f"Unknown interpolation: {interpolation}; there are linear and nearest here")
    if not preserve_range and sinogram.dtype.kind in "iu":
        sinogram = sinogram / np.iinfo(sinogram.dtype).max
    width = sinogram.shape[0]
    if output_size is None:
        output_size = width if circle else int(np.floor(np.sqrt(width**2 / 2.0)))
    kind = np.float32 if sinogram.dtype in (np.float16, np.float32) else np.float64
    if interpolation == "nearest":
        lines = _filtered(_centred(sinogram.T, True) if circle else sinogram.T, filter_name)
        found = _nearest(lines, theta, output_size).astype(kind)
        return _inside(found) if circle else found
    angles = ", ".join(repr(float(v)) for v in theta)
    lines = np.ascontiguousarray(_centred(sinogram.T, circle), np.float32)
    size = output_size + 1 - output_size % 2
    found = _eager.run(f'fbp(a, parallel([{angles}]), filter = "{_FILTERS[filter_name]}", size = {size})', axes="angle x",
                       a=lines)
    found = found[:output_size, :output_size].astype(kind)
    return _inside(found) if circle else found


def _inside(plane):
    """The plane within its circle, and zero outside."""
    radius = len(plane) // 2
    y, x = np.mgrid[:len(plane), :len(plane)] - radius
    plane[x**2 + y**2 > radius**2] = 0
    return plane


def _filtered(lines, name):
    """Projections after the ramp of Kak and Slaney (Principles of Computerized Tomographic Imaging, 1988, chapter 3), which is
    made in space so that the mean stays right, and a window that dampens high frequencies."""
    length = max(64, 1 << int(np.ceil(np.log2(2 * lines.shape[1]))))
    spectrum = np.fft.fft(lines, length, axis=1)
    if name is not None:
        odd = np.arange(1, length // 2, 2)
        ramp = np.zeros(length)
        ramp[0] = 0.25
        ramp[odd] = ramp[-odd] = -1 / (np.pi * odd) ** 2
        share = 2 * np.fft.fftfreq(length)  # of the highest frequency
        window = {"ramp": lambda: 1, "shepp-logan": lambda: np.sinc(share / 2), "cosine": lambda: np.cos(np.pi / 2 * share),
                  "hamming": lambda: np.fft.fftshift(np.hamming(length)), "hann": lambda: np.fft.fftshift(np.hanning(length))}
        spectrum *= 2 * np.fft.fft(ramp).real * window[name]()
    return np.fft.ifft(spectrum, axis=1).real[:, :lines.shape[1]]


def _nearest(lines, theta, size):
    """Each voxel takes the nearest value of every projection; the operator interpolates linearly."""
    y, x = np.mgrid[:size, :size] - size // 2
    found, middle = np.zeros((size, size)), lines.shape[1] // 2
    for line, angle in zip(lines, np.deg2rad(theta)):
        at = x * np.cos(angle) - y * np.sin(angle)  # from the middle, so that halves round as in the peer
        seen = (at >= -middle) & (at <= len(line) - 1 - middle)
        found[seen] += line[np.ceil(at[seen] - 0.5).astype(int) + middle]
    return found * np.pi / (2 * len(theta))


def _centred(lines, circle):
    """Projections whose voxel n // 2 is in the middle, as wide as a square around the circle, if they are of a circle."""
    width = lines.shape[1]
    wide = int(np.ceil(np.sqrt(2) * width)) if circle else width
    before = wide // 2 - width // 2
    return np.pad(lines, ((0, 0), (before, wide - width - before + 1 - wide % 2)))
