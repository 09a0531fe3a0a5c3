"""Frames of a simulated scan, for the tests of ptychography."""
import numpy as np
from pipelines import Difference

N = 32
SIZE = 20  # of the field of positions, in pixels


def transform(wave):
    return np.fft.fft2(wave)


def shifted(probe, dy, dx):
    fy, fx = np.fft.fftfreq(probe.shape[-2])[:, None], np.fft.fftfreq(probe.shape[-1])[None]
    return np.fft.ifft2(np.fft.fft2(probe) * np.exp(-2j * np.pi * (fy * dy + fx * dx)))


def raster(step):
    return [(y, x) for y in np.arange(0, SIZE + 0.01, step) for x in np.arange(0, SIZE + 0.01, step)]


def text(positions):
    return "[" + ", ".join(f"{v:.6g}" for p in positions for v in p) + "]"


def make_object(n=N + SIZE + 1):
    y, x = np.mgrid[:n, :n] / n
    return ((1 - 0.3 * (np.sin(9 * y) * np.cos(14 * x) > 0.2)) * np.exp(1j * np.sin(17 * x * y + 4 * y))).astype(np.complex64)


def make_probe(radius=7.0, bend=0.02):
    y, x = np.mgrid[:N, :N] - N / 2
    soft = 1 / (1 + np.exp((np.hypot(y, x) - radius) * 2))
    wave = soft * np.exp(1j * bend * (y**2 + x**2))
    return (wave * np.sqrt(4e5 / np.sum(np.abs(wave)**2))).astype(np.complex64)


def frames_of(obj, probe, positions):
    out = []
    for y, x in positions:
        iy, ix = int(np.floor(y)), int(np.floor(x))
        wave = shifted(probe, y - iy, x - ix) * obj[iy:iy + N, ix:ix + N]
        out.append(np.fft.fftshift(np.abs(transform(wave))**2 / N**2))
    return np.asarray(out, np.float32)


def residual(frames, obj, probe, positions):
    left = all_of = 0.0
    for frame, (y, x) in zip(frames, positions):
        iy, ix = int(np.floor(y)), int(np.floor(x))
        wave = np.abs(transform(shifted(probe, y - iy, x - ix) * obj[iy:iy + N, ix:ix + N])) / N
        a = np.sqrt(np.fft.ifftshift(frame))
        left += np.abs(a - wave).sum()
        all_of += a.sum()
    return left / all_of


def near_complex(ours, theirs, part):
    size = np.abs(theirs).max()
    off = np.abs(ours - theirs).max()
    if not off <= part * size:
        raise Difference(f"{off / size:.3g} of the largest value off")
