#!/usr/bin/python3
"""Writes scan.cxi, a simulated ptychographic scan as a beamline would keep it (CXI 1.6, SI units): python3 ptycho_scan.py [FILE]

A Siemens star is lit by a defocused beam at positions on a Fermat spiral. The detector has dark counts, hot pixels and a mask.
Needs numpy and h5py.
"""
import sys

import h5py
import numpy as np

FRAME, STEP, FIELD = 64, 6.0, 110  # pixels of a frame, between positions, of the field of positions
ENERGY, DISTANCE, DETECTOR = 8000 * 1.602176634e-19, 2.0, 75e-6  # joule, metres
WAVELENGTH = 1.98644586e-25 / ENERGY
PIXEL = WAVELENGTH * DISTANCE / (FRAME * DETECTOR)  # of the object


def star(n, spokes=18):
    y, x = np.mgrid[:n, :n] - n / 2
    radius, angle = np.hypot(y, x), np.arctan2(y, x)
    metal = (np.sin(spokes * angle) > 0) & (radius > 6) & (radius < 0.46 * n)
    return np.where(metal, 0.85 * np.exp(-0.8j), 1)


def beam(n, counts=1e6, radius=11, defocus=130):
    """A round aperture after a little way (in pixels squared: wavelength * way / area of a pixel)."""
    y, x = np.mgrid[:n, :n] - n / 2
    f = np.fft.fftfreq(n)
    way = np.exp(-1j * np.pi * defocus * (f[:, None]**2 + f[None]**2))
    wave = np.fft.ifft2(np.fft.fft2(np.clip(radius - np.hypot(y, x) + 0.5, 0, 1)) * way)
    return wave * np.sqrt(counts / np.sum(np.abs(wave)**2))


def main():
    rng = np.random.default_rng(1)
    index = np.arange(int((FIELD / STEP)**2 * 1.2))
    radius, angle = STEP * np.sqrt(index / np.pi), index * np.pi * (3 - np.sqrt(5))
    at = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)]) + FIELD / 2
    at = at[np.all((at >= 0) & (at <= FIELD), axis=1)]
    obj, probe = star(FRAME + FIELD + 2), beam(FRAME)
    fy, fx = np.fft.fftfreq(FRAME)[:, None], np.fft.fftfreq(FRAME)[None]
    hot = rng.random((FRAME, FRAME)) < 0.002
    dark = np.where(hot, 4000, 0.2)
    frames = []
    for y, x in at:
        whole, part = np.floor([y, x]).astype(int), np.modf([y, x])[0]
        moved = np.fft.ifft2(np.fft.fft2(probe) * np.exp(-2j * np.pi * (fy * part[0] + fx * part[1])))
        wave = np.fft.fft2(moved * obj[whole[0]:whole[0] + FRAME, whole[1]:whole[1] + FRAME])
        frames.append(rng.poisson(np.fft.fftshift(np.abs(wave)**2) / FRAME**2 + dark))
    with h5py.File(sys.argv[1] if len(sys.argv) > 1 else "scan.cxi", "w") as file:
        file["cxi_version"] = 160
        detector = file.create_group("entry_1/instrument_1/detector_1")
        detector.create_dataset("data", data=np.array(frames, np.uint16), chunks=(16, FRAME, FRAME), compression="gzip")
        detector["data_dark"] = rng.poisson(dark, (20, FRAME, FRAME)).astype(np.uint16)
        detector["mask"] = hot.astype(np.uint32)  # 0: a good pixel
        detector["distance"], detector["x_pixel_size"], detector["y_pixel_size"] = DISTANCE, DETECTOR, DETECTOR
        file["entry_1/instrument_1/source_1/energy"] = ENERGY
        file["entry_1/sample_1/geometry_1/translation"] = np.column_stack([at[:, ::-1] * PIXEL, np.zeros(len(at))])
        file["entry_1/data_1/data"] = h5py.SoftLink("/entry_1/instrument_1/detector_1/data")
    print(f"{len(at)} frames, pixel of the object {PIXEL * 1e9:.1f} nm")


main()
