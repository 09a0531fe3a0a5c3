#!/usr/bin/python3
"""diffract and ptycho against the formulas written out in numpy, simulated truth, and on several lattices."""
import pathlib
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skip ptychography: {missing}")
    sys.exit(0)

from diffraction_formulas import (N, SIZE, frames_of, make_object, make_probe, near_complex, raster, residual, shifted, text,
                                  transform)
from pipelines import Difference, near, refused, run, same, test


def projected(wave, frame, free=None):
    """The wave with the measured amplitudes."""
    spectrum, a = transform(wave), np.sqrt(np.fft.ifftshift(frame)) * N
    scale = a / np.maximum(np.abs(spectrum), 1e-20)
    if free is not None:
        scale = np.where(np.fft.ifftshift(free), 1, scale)
    return np.fft.ifft2(spectrum * scale)


def raar(frames, positions, probe, iterations, beta, rounds, free=None, damping=(0.02, 0.3), polish=0):
    """The last iterations, `polish` of them, are projections alone."""
    n = [int(max(p[d] for p in positions)) + N for d in (0, 1)]
    obj = np.ones(n, complex)
    probe = probe * np.sqrt(frames.sum() / len(frames) / np.sum(np.abs(probe)**2))
    parts = [np.s_[int(y):int(y) + N, int(x):int(x) + N] for y, x in positions]
    z = [probe * obj[s] for s in parts]
    for number in range(1, iterations + 1):
        s = [probe * obj[k] for k in parts]
        if number > iterations - polish:
            z, beta = s, 1
        z = [beta * a + (1 - 2 * beta) * b + beta * projected(2 * b - a, f, free) for a, b, f in zip(z, s, frames)]
        for _ in range(rounds):
            num, den = np.zeros(n, complex), np.zeros(n)
            for a, k in zip(z, parts):
                num[k] += probe.conj() * a
                den[k] += np.abs(probe)**2
            g = damping[0] * den.max()
            obj = (num + g * obj) / (den + g)
            num = sum(obj[k].conj() * a for a, k in zip(z, parts))
            den = sum(np.abs(obj[k])**2 for k in parts)
            g = damping[1] * den.max()
            probe = (num + g * probe) / (den + g)
    return obj, probe


@test
def diffraction_is_the_transform_of_probe_times_object():
    obj, probe = make_object(), make_probe()
    positions = [(0, 0), (3.25, 7.5), (20, 20.9), (11.1, 0)]
    ours = run(f"diffract(o, p, {text(positions)})", o=obj, p=probe)
    theirs = frames_of(obj, probe, positions)
    near(ours, theirs, relative=2e-6)


@test
def a_detector_near_by_sees_the_wave_after_its_way():
    obj, probe = make_object(), make_probe()
    positions, near_by = [(0, 0), (3.25, 7.5), (20, 20)], 9.5
    fy, fx = np.fft.fftfreq(N)[:, None], np.fft.fftfreq(N)[None]
    theirs = []
    for y, x in positions:
        iy, ix = int(y), int(x)
        wave = shifted(probe, y - iy, x - ix) * obj[iy:iy + N, ix:ix + N]
        theirs.append(np.abs(np.fft.ifft2(np.fft.fft2(wave) * np.exp(-1j * np.pi * near_by * (fy**2 + fx**2))))**2)
    ours = run(f"diffract(o, p, {text(positions)}, near = {near_by})", o=obj, p=probe)
    near(ours, theirs, relative=3e-6)
    same(run(f"diffract(o, p, {text(positions)}, near = {near_by})", "--chunk", "7", o=obj, p=probe), ours)


@test
def a_frame_has_the_counts_of_its_wave():
    obj, probe = np.exp(1j * np.angle(make_object())).astype(np.complex64), make_probe()
    ours = run("diffract(o, p, [4, 5])", o=obj, p=probe)
    near(ours.sum(), np.sum(np.abs(probe)**2), relative=1e-4)


@test
def iterations_are_those_of_the_formulas():
    positions = raster(6)  # 16 frames: one block
    frames = frames_of(make_object(), make_probe(), positions)
    start = make_probe(8, 0.01)
    free = np.zeros((N, N), bool)
    free[3:6, 4:9] = True
    for method, beta, rounds, mask, polish in (("raar", 0.75, 2, None, 0), ("dm", 1, 1, None, 2), ("raar", 0.9, 3, free, 0)):
        obj, probe = raar(frames, positions, start, 4, beta, rounds, mask, polish=polish)
        call = (f'ptycho(f, s, positions = {text(positions)}, method = "{method}", beta = {beta}, beta_start = {beta}, '
                f"rounds = {rounds}, polish = {polish}, iterations = 4")
        arrays = dict(f=frames, s=start)
        if mask is not None:
            call += ", mask = m"
            arrays["m"] = ~mask
        near_complex(run(call + ")", **arrays), obj, 2e-5)
        near_complex(run(call + ', output = "probe")', **arrays), probe, 2e-5)


def least_squares(frames, positions, probe, iterations, damping, momentum):
    """All frames as one group: the best steps along preconditioned gradients, which sink to a tenth in the last quarter of the
    iterations, then a part of the way so far once more."""
    probe = probe * np.sqrt(frames.sum() / len(frames) / np.sum(np.abs(probe)**2))
    n = [int(max(p[d] for p in positions)) + N for d in (0, 1)]
    obj, speed, turn = np.ones(n, complex), 0, 0
    parts = [np.s_[int(y):int(y) + N, int(x):int(x) + N] for y, x in positions]
    for number in range(1, iterations + 1):
        error = [projected(probe * obj[k], f) - probe * obj[k] for k, f in zip(parts, frames)]
        num, den = np.zeros(n, complex), np.zeros(n)
        for e, k in zip(error, parts):
            num[k] += probe.conj() * e
            den[k] += np.abs(probe)**2
        d = num / (den + damping[0] * den.max())
        weight = sum(np.abs(obj[k])**2 for k in parts)
        p = sum(obj[k].conj() * e for e, k in zip(error, parts)) / (weight + damping[1] * weight.max())
        ways = [np.concatenate([w.ravel() for w in way]) for way in ([probe * d[k] for k in parts], [p * obj[k] for k in parts])]
        matrix = np.stack([np.concatenate([v.real, v.imag]) for v in ways], 1)
        right = np.concatenate([e.ravel() for e in error])
        best = np.linalg.lstsq(matrix, np.concatenate([right.real, right.imag]), rcond=None)[0]
        along, aside = best * (1 - 0.9 * max(0, 4 * number / iterations - 3))
        speed, turn = along * d + 0.7 * speed, aside * p + 0.7 * turn
        obj, probe = obj + along * d + momentum * speed, probe + aside * p + momentum * turn
    return obj, probe


@test
def least_squares_take_the_steps_that_leave_least():
    positions = raster(6)
    frames, start = frames_of(make_object(), make_probe(), positions), make_probe(8, 0.01)
    for iterations, momentum in ((1, 0), (5, 0.5)):
        obj, probe = least_squares(frames, positions, start, iterations, (0.2, 0.3), momentum)
        call = (f'ptycho(f, s, positions = {text(positions)}, method = "lsq", group = 16, '
                f"iterations = {iterations}, momentum = {momentum}")
        near_complex(run(call + ")", f=frames, s=start), obj, 1e-5)
        near_complex(run(call + ', output = "probe")', f=frames, s=start), probe, 1e-5)


def as_complex(parts):
    """Of an image with the axes row, part, column."""
    return parts[..., 0, :] + 1j * parts[..., 1, :]


@test
def sums_are_adjoint_to_the_forward_model():
    """<P O, z> = <O, sum of conj(P) z> = <P, sum of conj(O) z>, frame by frame shifted between pixels. Waves whose pixels are all
    free are probe times object themselves."""
    rng = np.random.default_rng(11)
    scan, shifts, n = "[0, 0, 0, 1, 1, 2, 7, 0, 2, 9, 9, 1]", "[0, 0, 0.25, 0.625]", N + 9
    noise = [rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((n, n), (N, N), (n, n), (N, N))]
    arrays = {name: a.astype(np.complex64) for name, a in zip("opuv", noise)}
    arrays |= {"f": np.ones((3, N, N), np.float32), "m": np.zeros((N, N), bool)}
    at = f"scan = {scan}, shifts = {shifts}"
    made = f"ptycho_waves(ptycho_frames(f, m, {at}), split_complex({{}}), ptycho_start({{}}, shifts = {shifts}), {at})"

    def waves(image):
        return as_complex(image[0, :3 * N].reshape(3, N, 2, N))

    lit, other = (run(made.format(*names), **arrays) for names in (("o", "p"), ("u", "v")))
    product = np.vdot(waves(lit), waves(other))
    sums = run(f"ptycho_sums({made.format('u', 'v')}, ptycho_start(p, shifts = {shifts}), {at})", **arrays)[0].ravel()
    box = sums[:3 * n * n].reshape(n, 3, n)  # frames reach all sides: the box is the object
    back = np.vdot(arrays["o"], box[:, 0] + 1j * box[:, 1])
    probe = run(f"ptycho_overlap({made.format('u', 'v')}, split_complex(o), ptycho_start(p, shifts = {shifts}), {at}, "
                'kind = "direction")', **arrays)[0]
    spectrum = np.vdot(np.fft.fft2(arrays["p"]), as_complex(probe)) / N**2
    for name, found in (("object", back), ("probe", spectrum)):
        if abs(found - product) > 1e-5 * np.linalg.norm(waves(lit)) * np.linalg.norm(waves(other)):
            raise Difference(f"{name}: {found} beside {product}")


@test
def noisy_frames_are_explained_as_well_as_their_noise_allows():
    positions = [(y + i * 5 % 3 * 0.5, x) for i, (y, x) in enumerate(raster(2))]
    obj, probe = make_object(N + SIZE + 2), make_probe() / 2  # 100,000 counts a frame, 98 in a pixel
    frames = np.random.default_rng(2).poisson(frames_of(obj, probe, positions)).astype(np.float32)
    truth = residual(frames, obj, probe, positions)
    for beta in (0.6, 0.75, 0.9):
        for part in (np.s_[:], np.s_[0::2], np.s_[1::2]):
            at = positions[part]
            left = run(f"ptycho(f, s, positions = {text(at)}, beta = {beta}, iterations = 60, output = \"residuals\")",
                       table=True, f=frames[part], s=make_probe(7.5, 0.018))["residual"]
            if not float(left[-1]) <= 0.17 or not float(left[-1]) <= 1.1 * truth:
                raise Difference(f"beta {beta}: {left[-1]:.4f}; the truth leaves {truth:.4f}")


def stripes(positions, block):
    """The order in which blocks take frames: stripes of rows, columns to and fro."""
    blocks = -(-len(positions) // block)
    each = -(-blocks // int(np.sqrt(blocks) + 0.5)) * block
    down = sorted(range(len(positions)), key=lambda f: (positions[f][0], f))
    stripe = {f: i // each for i, f in enumerate(down)}
    return sorted(down, key=lambda f: (stripe[f], positions[f][1] * (-1 if stripe[f] % 2 else 1), f))


def pie(frames, positions, probe, iterations, block, share, momentum=False):
    """ePIE (share 1) and rPIE, frames of a block one after the other, blocks as a batch."""
    n = [int(max(p[d] for p in positions)) + N for d in (0, 1)]
    obj, speed = np.ones(n, complex), 0
    probe = probe * np.sqrt(frames.sum() / len(frames) / np.sum(np.abs(probe)**2))
    order = stripes(positions, block)
    for _ in range(iterations):
        num, den, change = np.zeros(n, complex), np.zeros(n), []
        for first in range(0, len(order), block):
            o, p, light = obj.copy(), probe.copy(), np.zeros(n)
            for f in order[first:first + block]:
                y, x = positions[f]
                k, d = np.s_[int(y):int(y) + N, int(x):int(x) + N], (y - int(y), x - int(x))
                q = shifted(p, *d)
                error = projected(q * o[k], frames[f]) - q * o[k]
                light[k] += np.abs(q)**2
                p = p + shifted(o[k].conj() * error / np.max(np.abs(o[k])**2), -d[0], -d[1])
                o[k] += q.conj() * error / ((1 - share) * np.abs(q)**2 + share * np.max(np.abs(q)**2))
            num += light * (o - obj)
            den += light
            change.append(p - probe)
        step = num / (den + 1e-6 * den.max())
        speed = step + 0.7 * speed
        obj = obj + step + (0.3 * speed if momentum else 0)
        probe = probe + sum(change) / len(change)
    return obj, probe


@test
def engines_go_through_blocks_as_the_formulas_say():
    positions = [(y, x + 0.3 * (y > 5)) for y, x in raster(6)]
    frames, start = frames_of(make_object(N + SIZE + 2), make_probe(), positions), make_probe(8, 0.01)
    for method, share, block, iterations in (("epie", 1, 16, 1), ("rpie", 0.2, 6, 2), ("mpie", 0.2, 6, 2)):
        obj, probe = pie(frames, positions, start, iterations, block, share, method == "mpie")
        call = f'ptycho(f, s, positions = {text(positions)}, method = "{method}", block = {block}, iterations = {iterations}'
        near_complex(run(call + ")", f=frames, s=start), obj, 1e-5)
        near_complex(run(call + ', output = "probe")', f=frames, s=start), probe, 1e-5)


@test
def frames_are_moved_to_where_they_were_taken():
    rng = np.random.default_rng(11)
    true = [(2.5 + y, 2.5 + x) for y, x in raster(4)]
    told = [(y + dy, x + dx) for (y, x), (dy, dx) in zip(true, rng.uniform(-2, 2, (len(true), 2)))]
    frames = frames_of(make_object(N + SIZE + 6), make_probe(), true)
    call = (f'ptycho(f, s, positions = {text(told)}, method = "rpie", iterations = 150, positions_from = 5, block = 36, '
            'output = "positions")')
    found = run(call, table=True, f=frames, s=make_probe())
    found = np.column_stack([np.asarray(found["y"], float), np.asarray(found["x"], float)])
    off = found - np.array(true)
    off -= off.mean(0)  # where the whole lies nobody can tell
    error = np.sqrt((off**2).mean())
    if not error < 0.1:
        raise Difference(f"positions are off by {error:.3f} px")


@test
def positions_may_stand_before_the_probe_or_behind_it():
    positions = raster(5)
    given = dict(f=frames_of(make_object(), make_probe(), positions), s=make_probe())
    named, before, behind = (run(f"ptycho({words}, iterations = 2)", **given) for words in
                             (f"f, s, positions = {text(positions)}", f"f, {text(positions)}, s", f"f, s, {text(positions)}"))
    if not (np.array_equal(named, before) and np.array_equal(named, behind)):
        raise Difference("the order of positions and probe matters")


@test
def the_focus_is_found_out():
    positions, f = raster(4), np.fft.fftfreq(N)
    away = np.hypot(f[:, None], f[None])
    for defocus in (40, -40):
        cone = np.fft.fftshift(np.fft.ifft2((away < 0.3) * np.exp(-1j * np.pi * defocus * away**2)))
        table = run(f"try_defocus(f, positions = {text(positions)}, defocus = [-40, 0, 40])", table=True,
                    f=frames_of(make_object(), cone * 1e3 / np.linalg.norm(cone), positions))
        left, tried = (np.asarray(table[name], float) for name in ("residual", "defocus"))
        if tried[np.argmin(left)] != defocus or not left.min() < 0.8 * left[tried == -defocus]:
            raise Difference(f"defocus {defocus}: residuals {np.round(left, 3)} of {tried}")


@test
def a_turned_detector_is_found_out():
    positions = raster(5)
    frames = frames_of(make_object(), make_probe(), positions)
    turned = np.roll(frames[:, ::-1], 1, 1).transpose(0, 2, 1)  # the detector's rows are flipped columns
    table = run(f"try_orientations(f, s, positions = {text(positions)}, iterations = 12)", table=True, f=turned, s=make_probe())
    left = np.asarray(table["residual"], float)
    best = int(np.argmin(left))
    whole = run(f"ptycho_frames(f, scan = [0, 0, 0, 0], shifts = [0, 0], orientation = {best})", f=turned[:1])
    near(whole[0, :N], np.sqrt(np.fft.ifftshift(frames[0])) * N, f"orientation {best}", relative=1e-5)
    if not left[best] < 0.8 * np.sort(left)[1]:
        raise Difference(f"residuals {left}")


@test
def least_squares_stop_where_the_residual_is_small():
    positions = raster(4)
    arrays = dict(f=frames_of(make_object(), make_probe(), positions), s=make_probe(7.5, 0.018))
    call = f'ptycho(f, s, positions = {text(positions)}, method = "lsq", group = 12, last_step = 1, iterations = '
    left = run(call + '6, output = "residuals")', table=True, **arrays)["residual"]
    same(run(call + f"6, stop = {(left[2] + left[3]) / 2:.9g})", **arrays), run(call + "3)", **arrays))


@test
def many_small_groups_are_possible():
    positions = raster(4)
    frames = frames_of(make_object(), make_probe(), positions)
    run(f'ptycho(f, s, positions = {text(positions)}, method = "lsq", group = 1, iterations = 2)', f=frames, s=make_probe())


@test
def error_waves_point_along_the_gradient():
    """Half the sum of (a - |wave|)^2 changes by - Re <error, change> to first order: finite differences along the object."""
    positions = raster(10)
    obj, probe = make_object(), make_probe()
    frames, other = frames_of(obj, probe, positions), make_probe(8, 0.01)
    rng = np.random.default_rng(3)
    n = obj.shape[0]
    change = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    parts = [np.s_[int(y):int(y) + N, int(x):int(x) + N] for y, x in positions]

    def loss(o):
        left = (np.sqrt(np.fft.ifftshift(f)) - np.abs(transform(other * o[k])) / N for k, f in zip(parts, frames))
        return sum(np.sum(v**2) for v in left) / 2

    scan = "[" + ", ".join(f"{i}, {int(y)}, {int(x)}, 0" for i, (y, x) in enumerate(positions)) + "]"
    waves = run(f'ptycho_waves(ptycho_frames(f, {scan}, [0, 0]), split_complex(o), ptycho_start(p, shifts = [0, 0]), '
                f'scan = {scan}, shifts = [0, 0], kind = "error")', f=frames, o=obj, p=other)
    error = waves[0, :16 * N].reshape(16, N, 2, N)
    error = error[:, :, 0] + 1j * error[:, :, 1]
    slope = -sum(np.sum((error[j].conj() * (other * change[k]))).real for j, k in enumerate(parts))
    step = 1e-4
    measured = (loss(obj + step * change) - loss(obj - step * change)) / (2 * step)
    if abs(measured - slope) > 1e-3 * abs(slope):
        raise Difference(f"finite differences give {measured}, the error waves {slope}")


@test
def truth_is_found_without_noise():
    positions = [(y + (i * 7 % 3) - 1 if 0 < y < 20 else y, x) for i, (y, x) in enumerate(raster(4))]
    obj, probe = make_object(), make_probe()
    frames = frames_of(obj, probe, positions)
    for method, extra, limit in (("raar", ", beta = 0.9", 0.005), ("lsq", ", group = 6, object_damping = 0.1", 0.005)):
        call = f'ptycho(f, s, positions = {text(positions)}, method = "{method}", iterations = 120{extra}'
        arrays = dict(f=frames, s=make_probe(7.5, 0.018))
        ours = run(call + ")", **arrays), run(call + ', output = "probe")', **arrays)
        r = residual(frames, *ours, positions)
        if not r <= limit:
            raise Difference(f"{method}: residual {r:.4f}")


@test
def two_modes_explain_what_one_cannot():
    positions = raster(4)
    obj, first = make_object(), make_probe()
    second = (np.roll(first, 3, 1) * np.exp(0.4j * np.arange(N)) * 0.6).astype(np.complex64)
    frames = frames_of(obj, first, positions) + frames_of(obj, second, positions)
    left = [run(f"ptycho(f, s, positions = {text(positions)}, iterations = 100, modes = {m}, "
                'output = "residuals")', table=True, f=frames, s=make_probe(7.5, 0.018)) for m in (1, 2)]
    one, two = (float(t["residual"][-1]) for t in left)
    if not two < 0.6 * one:
        raise Difference(f"one mode leaves {one:.3f}, two {two:.3f}")


@test
def modes_are_orthogonal_and_as_bright_as_before():
    rng = np.random.default_rng(8)
    modes = (rng.normal(size=(4, 12, 15)) + 1j * rng.normal(size=(4, 12, 15))).astype(np.complex64)
    modes[1] = modes[0] * (2 - 1j) + 0.01 * modes[1]
    given = np.ascontiguousarray(np.stack([modes.real, modes.imag], 2))  # mode, y, part, x
    found = run("ptycho_modes(p)", p=given)
    same(run("ptycho_modes(p)", "--chunk", "5", p=given), found)
    ours = found[:, :, 0] + 1j * found[:, :, 1]
    flat = ours.reshape(4, -1)
    products = flat.conj() @ flat.T
    power = np.diag(products).real
    near_complex(products, np.diag(power), 1e-6)
    near(power, np.sort(np.linalg.eigvalsh(modes.reshape(4, -1).conj() @ modes.reshape(4, -1).T))[::-1], relative=1e-4)
    near((np.abs(ours)**2).sum(0), (np.abs(modes)**2).sum(0), relative=1e-5)


@test
def probes_of_several_modes_come_out_orthogonal():
    positions = raster(5)
    frames = frames_of(make_object(), make_probe(), positions)
    found = run(f'ptycho(f, s, positions = {text(positions)}, iterations = 5, modes = 3, output = "probe")', f=frames,
                s=make_probe(7.5, 0.018)).reshape(3, -1)
    products = np.abs(found.conj() @ found.T)
    if not (products - np.diag(np.diag(products))).max() < 1e-5 * products.max() or np.any(np.diff(np.diag(products)) > 0):
        raise Difference(f"products of modes: {products}")


@test
def objects_stay_within_limits():
    obj = make_object() * np.linspace(0.5, 1.5, N + SIZE + 1)[None]
    obj[3, 4] = 0
    parts = np.stack([obj.real, obj.imag], 1).astype(np.float32)
    ours = run("ptycho_limit(o, amplitude = [0.8, 1.1], phase = [-0.5, 0.25])", o=parts)
    theirs = np.clip(np.abs(obj), 0.8, 1.1) * np.exp(1j * np.clip(np.angle(obj), -0.5, 0.25))
    near_complex(ours[:, 0] + 1j * ours[:, 1], theirs, 1e-6)
    same(run("ptycho_limit(o)", o=parts), parts)
    positions = raster(5)
    frames = frames_of(make_object(), make_probe(), positions)
    for method in ("raar", "lsq", "rpie"):
        found = run(f'ptycho(f, s, positions = {text(positions)}, iterations = 4, method = "{method}", '
                    "amplitude_limits = [0, 1], phase_limits = [-1, 1])", f=frames, s=make_probe())
        if np.abs(found).max() > 1.00001 or np.abs(np.angle(found)).max() > 1.00001:
            raise Difference(f"{method}: amplitude {np.abs(found).max()}, phase {np.abs(np.angle(found)).max()}")
    refused(f"ptycho(f, positions = {text(positions)}, phase_limits = [1, -1])", "least and the most", f=frames)


@test
def bits_do_not_depend_on_chunks_workers_or_engine():
    positions = [(y + 0.3, x + 0.55) for y, x in raster(4)]
    frames = frames_of(make_object(N + SIZE + 2), make_probe(), positions)
    for method in ("raar", "lsq", "rpie"):
        call = f'ptycho(f, positions = {text(positions)}, method = "{method}", iterations = 3, group = 20, block = 6)'
        whole = run(call, f=frames)
        for options in (("--workers", "1"), ("--workers", "3"), ("--chunk", "7"), ("--engine", "processes", "--workers", "2")):
            same(run(call, *options, f=frames), whole)


@test
def positions_come_from_tables_arrays_and_scans():
    obj, probe, at = make_object(), make_probe(), np.array([(0, 0), (3, 7.5), (20, 20), (11, 0)])
    theirs = run(f"diffract(o, p, {text(at)})", o=obj, p=probe)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/at.npy", at)
        np.save(f"{folder}/three.npy", np.column_stack([at[:, ::-1] * 2e-8 + 5e-6, at[:, 0]]))
        pathlib.Path(folder, "at.csv").write_text("x,y\n" + "".join(f"{x},{-y}\n" for y, x in at))
        calls = [f'"{folder}/at.npy", order = "yx"', f'"{folder}/three.npy", pixel = 2e-8', f'"{folder}/at.csv", sign = [-1, 1]']
        try:
            import h5py
        except ImportError:
            print("skip positions_of_cxi: no h5py")
        else:
            with h5py.File(f"{folder}/scan.cxi", "w") as file:
                file["/entry_1/sample_1/geometry_1/translation"] = np.column_stack([at[:, ::-1] * 1e-8, at[:, 0] * 0])
            calls.append(f'"{folder}/scan.cxi", pixel = 1e-8')
        for call in calls:
            near(run(f"diffract(o, p, read_positions({call}))", o=obj, p=probe), theirs, call, relative=1e-5)
        refused(f'diffract(o, p, read_positions("{folder}/none.npy"))', "there is no file", o=obj, p=probe)


@test
def frames_are_cut_around_the_beam():
    a = np.arange(2 * 11 * 13, dtype=np.float32).reshape(2, 11, 13)
    same(run("crop_frames(a)", a=a), a[:, 1:9, 2:10])
    same(run("crop_frames(a, size = [6, 5], center = [4, 8])", a=a), a[:, 1:7, 6:11])
    refused("crop_frames(a, size = 8, center = [2, 6])", "do not fit", a=a)
    refused("crop_frames(a, size = 11)", "product of 2, 3, 5 and 7", a=a)


@test
def rings_correlate_as_in_numpy():
    rng = np.random.default_rng(5)
    a = rng.normal(size=(24, 30)) + 1j * rng.normal(size=(24, 30))
    a, b = a.astype(np.complex64), (np.exp(0.7j) * (a + 0.5 * rng.normal(size=a.shape))).astype(np.complex64)
    ours = run("frc(a, b, taper = 0)", table=True, a=a, b=b)
    fa, fb = np.fft.fft2(a), np.fft.fft2(b)
    fy, fx = np.abs(np.fft.fftfreq(24))[:, None], np.abs(np.fft.fftfreq(30))[None]
    rings = np.floor(np.hypot(fy, fx) * 24 + 0.5).astype(int)
    inside = rings <= 12
    turn = np.exp(-1j * np.angle(np.sum((fa * fb.conj())[inside])))
    for k in range(13):
        r = rings == k
        theirs = np.sum((fa * fb.conj())[r] * turn).real / np.sqrt(np.sum(np.abs(fa[r])**2) * np.sum(np.abs(fb[r])**2))
        near(ours["correlation"][k], theirs, f"ring {k}", relative=1e-6)
        n = np.sqrt(r.sum())
        near(ours["half_bit"][k], (0.2071 + 1.9102 / n) / (1.2071 + 0.9102 / n), relative=1e-9)
    whole = run("frc(a, a)", table=True, a=rng.normal(size=(9, 10, 11)).astype(np.float32))
    near(whole["correlation"], np.ones(5), relative=1e-9)


def fails(expression, words, **arrays):
    """It runs, and what the data lack is told."""
    try:
        run(expression, **arrays)
    except Difference as told:
        if words not in str(told):
            raise
        return
    raise Difference(f"{expression} is accepted")


@test
def mistakes_are_told():
    frames, none = np.ones((4, 8, 8), np.float32), np.ones((8, 8), np.complex64)
    spread = "[0, 0, 0, 3, 3, 0, 3, 3]"
    refused("ptycho(f, positions = [0, 0, 0, 3, 3, 0])", "3 positions", f=frames)
    refused("ptycho(f, positions = [0, 0])", "not enough", f=frames[:1])
    refused("ptycho(f, positions = [0, 0, 0, 99, 99, 0, 99, 99])", "overlap too little", f=frames)
    refused("ptycho(f, positions = [0, 0, 0, 3e9, 3e9, 0, 3, 3])", "in metres", f=frames)
    refused("ptycho(f, positions = [0, 0, 3])", "row and a column", f=frames)
    refused("ptycho(f, positions = [0])", "row and a column", f=frames)
    refused(f"ptycho(f, positions = {spread})", "crop_frames", f=np.ones((4, 11, 8), np.float32))
    refused(f"ptycho(f, p, positions = {spread})", "pixels of a frame", f=frames, p=np.ones((9, 8), np.complex64))
    fails(f"ptycho(f, p, positions = {spread})", "0 everywhere", f=frames, p=none * 0)
    fails(f"ptycho(f, p, positions = {spread})", "nothing to reconstruct", f=frames * 0, p=none)
    fails(f"ptycho(f, p, positions = {spread})", "not finite", f=frames, p=none * np.nan)
    refused("diffract(o, p, [0, 0, 30, 30])", "leaves the object", o=make_object(), p=make_probe())
    refused("phase(f)", "must be complex", f=frames)
    lost = run("diffract(o, p, [0, 0], saturation = 5)", o=make_object() * np.nan, p=make_probe())
    if not np.isnan(lost).all():
        raise Difference("an object without numbers gives counts")


test.main()
