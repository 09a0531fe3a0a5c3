#!/usr/bin/python3
"""What surrounds a ptychographic reconstruction: unwrap, remove_ramp, align_complex, center_of_mass and dpc, against peers."""
import sys

try:
    import numpy as np
    from scipy import ndimage
    from skimage.restoration import unwrap_phase
except ImportError as missing:
    print(f"skip phase_images: {missing}")
    sys.exit(0)

from pipelines import Difference, near, refused, run, same, test

RNG = np.random.default_rng(20)


def wrap(phase):
    return np.angle(np.exp(1j * phase))


def hills(height, width, size=25.0, noise=0.0):
    y, x = np.mgrid[:height, :width] / max(height, width)
    smooth = size * (np.sin(3 * y + 1) * np.cos(4 * x) + 0.7 * x * y)
    return smooth + noise * RNG.normal(size=smooth.shape)


def smooth_object(n, phase=1.5):
    field = ndimage.gaussian_filter(RNG.normal(size=(n, n)), 4)
    other = ndimage.gaussian_filter(RNG.normal(size=(n, n)), 3)
    return (1 - 0.2 * other / np.abs(other).max()) * np.exp(1j * phase * field / np.abs(field).max())


def fourier_shift(image, by):
    fy, fx = np.fft.fftfreq(image.shape[0])[:, None], np.fft.fftfreq(image.shape[1])[None]
    return np.fft.ifft2(np.fft.fft2(image) * np.exp(-2j * np.pi * (fy * by[0] + fx * by[1])))


@test
def unwrapping_finds_the_phase_again():
    for shape in ((60, 81), (200, 130)):
        truth = hills(*shape)
        ours = run("unwrap(a)", a=wrap(truth))
        near(ours, truth + np.round((ours[0, 0] - truth[0, 0]) / (2 * np.pi)) * 2 * np.pi, relative=1e-12)
        if abs(ours[0, 0] - wrap(truth)[0, 0]) > 1e-12:
            raise Difference("the first pixel has not kept its phase")
        near(run("unwrap(a)", a=wrap(truth).astype(np.float32)), ours, relative=1e-6)
        near(run("unwrap(a)", a=np.exp(1j * truth)), ours, relative=1e-12)


@test
def unwrapping_equals_that_of_scikit_image_in_noise():
    a = wrap(hills(150, 170, noise=0.9))  # neighbours are often more than half a turn apart
    ours, theirs = run("unwrap(a)", a=a), unwrap_phase(a)
    turns = np.round((ours - theirs) / (2 * np.pi))
    if np.abs(ours - theirs - 2 * np.pi * turns).max() > 1e-9:
        raise Difference("pixels are not moved by whole turns")
    inside = turns[1:-1, 1:-1]
    values, counts = np.unique(inside, return_counts=True)
    share = counts.max() / inside.size
    if not share > 0.999:
        raise Difference(f"only {share:.4f} of the pixels inside are moved by as many turns")


@test
def unwrapping_keeps_to_the_mask():
    truth = hills(70, 90)
    mask = np.ones(truth.shape, bool)
    mask[:, 40] = False  # two areas, each with its own constant
    mask[10:14, 5:9] = False
    wrapped = wrap(truth)
    ours = run("unwrap(a, m)", a=wrapped, m=mask)
    same(ours[~mask], wrapped[~mask])
    for part in (np.s_[:, :40], np.s_[:, 41:]):
        off = (ours - truth)[part][mask[part]]
        if np.ptp(off) > 1e-9:
            raise Difference(f"an area has jumps of {np.ptp(off)}")
    holes = np.where(mask, wrapped, np.nan)
    same(np.where(mask, run("unwrap(a)", a=holes), 0), np.where(mask, ours, 0))


@test
def every_plane_is_unwrapped_for_itself_whatever_the_chunks():
    a = np.stack([wrap(hills(40, 33, size, 0.7)) for size in (10, 20, 30)])
    whole = run("unwrap(a)", a=a)
    for k in range(3):
        same(run("unwrap(a)", a=a[k]), whole[k])
    for options in (("--chunk", "9"), ("--workers", "3"), ("--engine", "processes", "--workers", "2")):
        same(run("unwrap(a)", *options, a=a), whole)


@test
def ramps_are_removed():
    n = 96
    obj = smooth_object(n, 0.5)
    y, x = np.mgrid[:n, :n]
    plain = run("remove_ramp(a)", a=obj)
    near(np.angle(plain.sum()), 0.0, relative=1e-7)
    for slopes in ((0.11, -0.23), (2.5, 1.9)):  # the second one turns by almost half a turn a pixel
        tilted = obj * np.exp(1j * (slopes[0] * y + slopes[1] * x + 2))
        for dtype, part in ((np.complex64, 1e-4), (np.complex128, 1e-9)):
            ours = run("remove_ramp(a)", a=tilted.astype(dtype))
            if ours.dtype != dtype or np.abs(ours - plain).max() > part:
                raise Difference(f"{dtype.__name__}: {np.abs(ours - plain).max()} off")
    phase = 0.3 * np.angle(obj) + 0.05 * y - 0.02 * x + 4
    matrix = np.stack([y.ravel(), x.ravel(), np.ones(n * n)], 1)
    fit = np.linalg.lstsq(matrix, phase.ravel(), rcond=None)[0]
    near(run("remove_ramp(a)", a=phase), phase - (matrix @ fit).reshape(n, n), relative=1e-9)


@test
def only_the_mask_tells_the_ramp():
    n = 80
    y, x = np.mgrid[:n, :n]
    air = np.zeros((n, n), bool)
    air[:15] = air[-15:] = True
    sample = np.where(air, 0, 3 * np.sin(y / 9) + 0.1 * x)
    tilted = np.exp(1j * (sample + 0.2 * y - 0.3 * x + 1))
    ours = run("remove_ramp(a, m)", a=tilted, m=air)
    if np.abs(ours - np.exp(1j * sample)).max() > 1e-9:
        raise Difference(f"{np.abs(ours - np.exp(1j * sample)).max()} off")
    near(run("remove_ramp(a, m)", a=sample + 0.2 * y - 0.3 * x + 1, m=air), sample, relative=1e-9)


@test
def halves_are_laid_upon_each_other():
    n = 120
    obj = smooth_object(n)
    y, x = np.mgrid[:n, :n]
    moved = fourier_shift(obj, (3.37, -7.81)) * np.exp(1j * (0.05 * y - 0.08 * x + 1.7))
    noisy = moved + 0.02 * (RNG.normal(size=obj.shape) + 1j * RNG.normal(size=obj.shape))
    middle = np.s_[20:-20, 20:-20]
    for given, part in ((moved, 0.03), (noisy, 0.12)):
        ours = run("align_complex(a, b)", a=given.astype(np.complex64), b=obj.astype(np.complex64))
        off = np.abs(ours - obj)[middle].max()
        if not off < part:
            raise Difference(f"{off:.4f} off")
    rings = run("frc(align_complex(a, b)[20:100, 20:100], b[20:100, 20:100])", table=True, a=noisy, b=obj)
    if not rings["correlation"][1:8].min() > 0.95:
        raise Difference(f"rings correlate by {rings['correlation'][:8]} only")


@test
def noise_of_borders_makes_no_ramp():
    n = 160
    y, x = np.mgrid[:n, :n] - n / 2
    obj = np.exp(1j * np.sin(np.hypot(y, x) / 4 + np.sin(x / 9)))
    rough = np.where(np.maximum(np.abs(y), np.abs(x)) > 50, 0.8, 0.2)
    rng = np.random.default_rng(3)
    a, b = (obj + rough * (rng.normal(size=obj.shape) + 1j * rng.normal(size=obj.shape)) for _ in range(2))
    ours = run("align_complex(a, b)", a=(a * np.exp(0.01j * (y - x))).astype(np.complex64), b=b.astype(np.complex64))
    turns = (ours * b.conj())[40:-40, 40:-40]
    slopes = [np.angle(np.sum(t[40:]) * np.conj(np.sum(t[:40]))) / 40 for t in (turns, turns.T)]
    if not max(map(abs, slopes)) < 5e-4:
        raise Difference(f"ramps of {slopes} radians a pixel are left")


@test
def centers_are_those_of_scipy():
    frames = RNG.poisson(3, (7, 21, 18)).astype(np.uint16)
    mask = RNG.random((21, 18)) > 0.2
    ours = run("frame_centers(f)", f=frames)
    near(ours, [[*ndimage.center_of_mass(f.astype(float)), f.sum()] for f in frames], relative=1e-12)
    theirs = [[*ndimage.center_of_mass(f * mask.astype(float)), (f * mask).sum()] for f in frames]
    near(run("frame_centers(f, m)", "--chunk", "5", f=frames, m=mask), theirs, relative=1e-12)
    rows = run("center_of_mass(f, m)", "--chunk", "5", table=True, f=frames, m=mask)
    near(np.stack([rows[name] for name in ("frame", "y", "x", "counts")], 1), np.column_stack([range(7), theirs]), relative=1e-12)
    frames[3] = 0
    ours = run("frame_centers(f)", f=frames)
    if not (np.isnan(ours[3, :2]).all() and ours[3, 2] == 0 and np.isfinite(ours[2]).all()):
        raise Difference(f"frame without counts: {ours[3]}")


@test
def differential_phase_contrast_shows_the_phase():
    n, size, step = 128, 24, 3
    field = ndimage.gaussian_filter(RNG.normal(size=(n, n)), 9)
    phase = 1.2 * field / np.abs(field).max()
    probe = np.exp(-(np.hypot(*(np.mgrid[:size, :size] - size / 2)) / 3.5)**2)
    for pattern in ("raster", "fermat"):
        ours = run(f'dpc(diffract(o, p, scan_positions("{pattern}", 102, {step})), '
                   f'positions = scan_positions("{pattern}", 102, {step}), step = {step})',
                   o=np.exp(1j * phase).astype(np.complex64), p=probe.astype(np.complex64))
        smooth = ndimage.convolve(phase, np.abs(probe)**2 / np.sum(np.abs(probe)**2))[size // 2:, size // 2:]
        start = 0  # of the field of positions
        theirs = smooth[start:start + step * ours.shape[0]:step, start:start + step * ours.shape[1]:step]
        inside = np.s_[3:-3, 3:-3]
        ours, theirs = ours[inside] - ours[inside].mean(), theirs[inside] - theirs[inside].mean()
        off = np.sqrt(np.mean((ours - theirs)**2) / np.mean(theirs**2))
        if not off < 0.1:
            raise Difference(f"{pattern}: {off:.3f} of the phase off")


@test
def mistakes_are_told():
    real, whole = np.ones((4, 8, 8), np.float32), np.ones((8, 8), np.uint8)
    refused("unwrap(a)", "phase in radians", a=whole)
    refused("unwrap(a, m)", "8 x 8 pixels of a plane", a=real, m=np.ones((4, 8), bool))
    refused("remove_ramp(a)", "phase in radians", a=whole)
    refused("align_complex(a, b)", "must be complex", a=real, b=real)
    refused("align_complex(a, b)", "same shape", a=np.ones((8, 8), complex), b=np.ones((8, 9), complex))
    refused("dpc(a, positions = [0, 0, 1, 1])", "4 frames and 2 positions", a=real)
    refused("dpc(a, positions = [0, 0, 1, 0, 2, 0, 3, 0])", "do not cover a field", a=real)
    try:
        run("dpc(a, positions = [0, 0, 0, 5, 5, 0, 5, 5])", a=real * 0)
    except Difference as told:
        if "only 0 frames have counts" not in str(told):
            raise
    else:
        raise Difference("frames without counts are accepted")


test.main()
