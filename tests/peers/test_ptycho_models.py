#!/usr/bin/python3
"""What ptycho finds beside object and probe: background, light and places of frames; detectors near by, and smooth objects."""
import sys

try:
    import numpy as np
except ImportError as missing:
    print(f"skip ptycho_models: {missing}")
    sys.exit(0)

from diffraction_formulas import N, SIZE, frames_of, make_object, make_probe, near_complex, raster, text
from pipelines import Difference, near, refused, run, same, test

GRID = [(y, x) for y, x in raster(6)]  # 16 frames: one block


class Model:
    """The waves of probe times object at a detector, and back."""

    def __init__(self, near_by=0):
        fy, fx = np.fft.fftfreq(N)[:, None], np.fft.fftfreq(N)[None]
        self.travel = np.exp(-1j * np.pi * near_by * (fy**2 + fx**2)) if near_by else None

    def there(self, wave):
        spectrum = np.fft.fft2(wave)
        return spectrum / N if self.travel is None else np.fft.ifft2(spectrum * self.travel)

    def back(self, wave):
        return np.fft.ifft2(wave * N) if self.travel is None else np.fft.ifft2(np.fft.fft2(wave) / self.travel)

    def counts(self, frame):
        return np.fft.ifftshift(frame) if self.travel is None else frame

    def projected(self, wave, counts, background):
        at = self.there(wave)
        return self.back(at * np.sqrt(counts / np.maximum(np.abs(at)**2 + background, 1e-30)))


def neighbours(obj):
    p = np.pad(obj, 1, "edge")
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]


def slopes(obj):
    return np.concatenate([np.diff(obj, axis=0).ravel(), np.diff(obj, axis=1).ravel()])


class Solver:
    """raar (beta 0.75, two rounds) and lsq (one group, no momentum) at whole pixels, with all that is found beside."""

    def __init__(self, frames, probe, model=Model(), background=0, smoothness=0, background_from=0, light_from=0):
        self.model, self.counts, self.smoothness = model, np.array([model.counts(f) for f in frames.astype(float)]), smoothness
        self.background = model.counts(background) if np.ndim(background) else background
        self.background_from, self.light_from = background_from, light_from
        self.obj, self.light = np.ones((N + SIZE - 2, N + SIZE - 2), complex), np.ones(len(frames))
        self.probe = probe * np.sqrt(frames.sum() / len(frames) / np.sum(np.abs(probe)**2))
        self.parts = [np.s_[int(y):int(y) + N, int(x):int(x) + N] for y, x in GRID]
        if background_from and not np.ndim(background):
            mean = self.counts.mean(0)
            self.background = np.minimum(mean, 0.1 * mean.mean())

    def waves(self):
        return [self.probe * self.obj[k] for k in self.parts]

    def projected(self, waves):
        return [self.model.projected(w, c / a**2, self.background) for w, c, a in zip(waves, self.counts, self.light)]

    def sums(self, waves):
        num, den = np.zeros(self.obj.shape, complex), np.zeros(self.obj.shape)
        for w, k in zip(waves, self.parts):
            num[k] += self.probe.conj() * w
            den[k] += np.abs(self.probe)**2
        return num, den

    def fit_object(self, z):
        num, den = self.sums(z)
        g, r = 0.02 * den.max(), self.smoothness * den.max()
        self.obj = (num + g * self.obj + r * neighbours(self.obj)) / (den + g + 4 * r)

    def fit_probe(self, z):
        num = sum(self.obj[k].conj() * a for a, k in zip(z, self.parts))
        den = sum(np.abs(self.obj[k])**2 for k in self.parts)
        g = 0.3 * den.max()
        self.probe = (num + g * self.probe) / (den + g)

    def refine(self, k):
        sizes = [np.sqrt(np.abs(self.model.there(w))**2 + self.background) for w in self.waves()]
        ratios = [np.sqrt(c) / a / np.maximum(s, 1e-20) for c, a, s in zip(self.counts, self.light, sizes)]
        if self.light_from and k >= self.light_from:
            self.light = np.array([np.sqrt(np.sum(c) / np.sum(s**2)) for c, s in zip(self.counts, sizes)])
        if self.background_from and k >= self.background_from:
            self.background = self.background * np.mean(ratios, 0)**2

    def raar(self, iterations, beta=0.75):
        z = self.waves()
        for k in range(1, iterations + 1):
            s = self.waves()
            reflected = self.projected([2 * b - a for a, b in zip(z, s)])
            z = [beta * a + (1 - 2 * beta) * b + beta * c for a, b, c in zip(z, s, reflected)]
            for _ in range(2):
                self.fit_object(z)
                self.fit_probe(z)
            self.refine(k)
        return self

    def lsq(self, iterations):
        for k in range(1, iterations + 1):
            error = [a - b for a, b in zip(self.projected(self.waves()), self.waves())]
            num, den = self.sums(error)
            r = self.smoothness * den.max()
            d = (num + r * (neighbours(self.obj) - 4 * self.obj)) / (den + 0.02 * den.max() + 4 * r)
            weight = sum(np.abs(self.obj[p])**2 for p in self.parts)
            e = sum(self.obj[p].conj() * w for w, p in zip(error, self.parts)) / (weight + 0.3 * weight.max())
            ways = [np.concatenate([w.ravel() for w in way] + [extra])
                    for way, extra in (([self.probe * d[p] for p in self.parts], np.sqrt(r) * slopes(d)),
                                       ([e * self.obj[p] for p in self.parts], 0 * slopes(d)))]
            matrix = np.stack([np.concatenate([v.real, v.imag]) for v in ways], 1)
            right = np.concatenate([w.ravel() for w in error] + [-np.sqrt(r) * slopes(self.obj)])
            along, aside = np.linalg.lstsq(matrix, np.concatenate([right.real, right.imag]), rcond=None)[0]
            self.obj, self.probe = self.obj + along * d, self.probe + aside * e
            self.refine(k)
        return self


def number(call, **arrays):
    """The last residual."""
    return float(run(call + ', output = "residuals")', table=True, **arrays)["residual"][-1])


def background_of(level):
    y, x = np.mgrid[:N, :N] - N / 2
    return (level * (0.3 + np.exp(-(y**2 + (x - 3)**2) / 128))).astype(np.float32)


def grid_frames():
    return frames_of(make_object(), make_probe(), GRID)


START = make_probe(8, 0.01)
CALLS = {"raar": 'method = "raar", beta = 0.75, beta_start = 0.75',
         "lsq": 'method = "lsq", group = 16, momentum = 0, object_damping = 0.02, last_step = 1'}


def compare(options, frames, part=2e-5, iterations=4, arrays=None, methods=CALLS, **settings):
    """Object, probe and what else is found, beside the formulas. The last change of the background is made by what was found
    after the last iteration."""
    for method in methods:
        words = CALLS[method]
        theirs = getattr(Solver(frames, START, **settings), method)(iterations)
        call = f"ptycho(f, s{options}, positions = {text(GRID)}, {words}, iterations = {iterations}"
        given = dict(f=frames, s=START) | (arrays or {})
        near_complex(run(call + ")", **given), theirs.obj, part)
        near_complex(run(call + ', output = "probe")', **given), theirs.probe, part)
        if np.ndim(theirs.background):
            shown = theirs.background if settings.get("model") else np.fft.fftshift(theirs.background)
            near_complex(run(call + ', output = "background")', **given), shown, part)
        if settings.get("light_from"):
            near(run(call + ', output = "positions")', table=True, **given)["light"], theirs.light**2, relative=1e-4)


@test
def a_background_that_is_known_is_a_part_of_the_model():
    there = background_of(50)
    compare(", background = b", grid_frames() + there, arrays=dict(b=there), background=there)


@test
def a_background_that_is_not_known_follows_the_formulas():
    compare(", background_from = 2", grid_frames() + background_of(50), background_from=2)


@test
def light_of_frames_follows_the_formulas():
    """Frames of different light contradict each other until it is found, and raar then magnifies rounding: the formulas
    themselves, rounded to single precision in numpy, are off by up to 2e-4 where there is little light after four iterations."""
    frames = grid_frames() * np.linspace(0.7, 1.4, len(GRID))[:, None, None].astype(np.float32)
    compare(", light_from = 1", frames, 2e-6, iterations=1, light_from=1)
    compare(", light_from = 2", frames, 1e-5, light_from=2, methods=["lsq"])
    compare(", light_from = 2", frames, 1e-4, light_from=2, methods=["raar"])
    there = background_of(20)
    compare(", background = b, light_from = 1, background_from = 3", frames + there, 1e-4, arrays=dict(b=there),
            background=there, light_from=1, background_from=3)


def near_frames(near_by):
    return run(f"diffract(o, p, {text(GRID)}, near = {near_by})", o=make_object(), p=make_probe())


@test
def detectors_near_by_follow_the_formulas():
    compare(", near = 9.5", near_frames(9.5), model=Model(9.5))
    there = background_of(30)
    compare(", background = b, near = 9.5", near_frames(9.5) + there, arrays=dict(b=there), model=Model(9.5), background=there)


@test
def smooth_objects_follow_the_formulas():
    compare(", smoothness = 0.05", grid_frames(), smoothness=0.05)


@test
def a_background_is_told_from_the_waves():
    positions, obj, there = raster(4), make_object(), background_of(40)
    frames = np.random.default_rng(1).poisson(frames_of(obj, make_probe(), positions) + there).astype(np.float32)
    for method in ("raar", "lsq", "rpie"):
        call = f'ptycho(f, s, positions = {text(positions)}, method = "{method}", iterations = 60'
        arrays = dict(f=frames, s=make_probe(7.5, 0.018))
        without, found = (number(call + more, **arrays) for more in
                          ("", ", background_from = 3"))
        if not found < 0.75 * without:
            raise Difference(f"{method}: {without:.4f} without and {found:.4f} with a background")
        off = np.abs(run(call + ', background_from = 3, output = "background")', **arrays) - there)
        if not np.median(off) < 0.15 * there.mean():
            raise Difference(f"{method}: the background is off by {np.median(off):.2f} of {there.mean():.2f}")


@test
def light_that_flickers_is_found():
    positions = raster(4)
    light = np.random.default_rng(4).uniform(0.6, 1.5, len(positions))
    frames = (frames_of(make_object(), make_probe(), positions) * light[:, None, None]).astype(np.float32)
    for method, allowed in (("raar", 0.01), ("lsq", 0.01), ("rpie", 0.04)):
        call = f'ptycho(f, s, positions = {text(positions)}, method = "{method}", iterations = 60'
        arrays = dict(f=frames, s=make_probe(7.5, 0.018))
        table = run(call + ', light_from = 3, output = "positions")', table=True, **arrays)
        off = np.log(table["light"] / light)
        even = np.column_stack([np.array(positions), np.ones(len(positions))])
        off -= even @ np.linalg.lstsq(even, off, rcond=None)[0]  # light that rises evenly could be an object that does
        if not np.sqrt(np.mean(off**2)) < allowed:
            raise Difference(f"{method}: light is off by {np.sqrt(np.mean(off**2)):.3f}")
        without, found = (number(call + more, **arrays) for more in ("", ", light_from = 3"))
        if not found < 0.3 * without:
            raise Difference(f"{method}: {without:.4f} with equal light and {found:.4f} without")


@test
def frames_are_moved_by_all_methods():
    rng = np.random.default_rng(11)
    true = [(2.5 + y, 2.5 + x) for y, x in raster(4)]
    told = [(y + dy, x + dx) for (y, x), (dy, dx) in zip(true, rng.uniform(-2, 2, (len(true), 2)))]
    frames = frames_of(make_object(N + SIZE + 6), make_probe(), true)
    for words in ('method = "raar"', 'method = "dm", subpixel = 16', 'method = "lsq", group = 18',
                  'method = "raar", modes = 2, near = 0'):
        found = run(f'ptycho(f, s, positions = {text(told)}, {words}, iterations = 150, positions_from = 5, '
                    'output = "positions")', table=True, f=frames, s=make_probe())
        off = np.column_stack([found["y"], found["x"]]) - np.array(true)
        off -= off.mean(0)  # where the whole lies nobody can tell
        if not np.sqrt((off**2).mean()) < 0.1:
            raise Difference(f"{words}: positions are off by {np.sqrt((off**2).mean()):.3f} px")


@test
def objects_have_the_same_place_whether_frames_are_moved_or_not():
    positions = [(y + 0.3, x + 0.55) for y, x in raster(4)]
    frames = frames_of(make_object(N + SIZE + 2), make_probe(), positions)
    call = f"ptycho(f, s, positions = {text(positions)}, iterations = 30"
    still, moved = (run(call + more, f=frames, s=make_probe()) for more in (")", ", positions_from = 25, reach = 0.001)"))
    near_complex(moved, still, 0.01)


@test
def a_near_detector_tells_the_truth():
    positions = raster(3)
    obj, probe = make_object(), make_probe(9, 0.02)
    frames = run(f"diffract(o, p, {text(positions)}, near = 4)", o=obj, p=probe)
    for words in ('method = "raar", beta = 0.9', 'method = "lsq", group = 16', 'method = "rpie"'):
        left = number(f"ptycho(f, s, positions = {text(positions)}, near = 4, iterations = 100, {words}", f=frames,
                      s=make_probe(9.5, 0.018))
        if not left < 0.02:
            raise Difference(f"{words}: residual {left:.4f}")


@test
def smoothness_calms_noise():
    positions = raster(4)
    y, x = np.mgrid[:N + SIZE + 1, :N + SIZE + 1] / 20
    obj = np.exp(0.5j * np.sin(x) * np.cos(y)).astype(np.complex64)
    frames = np.random.default_rng(2).poisson(frames_of(obj, make_probe() / 20, positions)).astype(np.float32)
    inner = np.s_[N // 2:N // 2 + SIZE, N // 2:N // 2 + SIZE]
    for method, less in (("raar", 0.96), ("lsq", 0.9), ("rpie", 1)):
        off = []
        for smoothness in (0, 0.1):
            found = run(f'ptycho(f, s, positions = {text(positions)}, probe_from = 0, iterations = 40, method = "{method}", '
                        f"smoothness = {smoothness})", f=frames, s=make_probe() / 20)[inner]
            turned = found * np.exp(-1j * np.angle(np.vdot(obj[inner], found)))
            off.append(np.linalg.norm(turned - obj[inner]) / np.linalg.norm(obj[inner]))
        if not off[1] < less * off[0]:
            raise Difference(f"{method}: off by {off[0]:.3f} without and {off[1]:.3f} with smoothness")


@test
def a_fly_scan_is_explained_by_modes():
    """While a frame is taken, the stage moves by 4 pixels: the intensities of its way add up."""
    positions = raster(4)
    obj = make_object(N + SIZE + 6)
    frames = np.mean([frames_of(obj, make_probe(), [(y, x + d) for y, x in positions]) for d in np.linspace(0, 4, 9)], 0)
    call = f'ptycho(f, s, positions = {text([(y, x + 2) for y, x in positions])}, method = "lsq", group = 12, iterations = 100, '
    one, three = (number(call + f"modes = {m}", f=frames.astype(np.float32), s=make_probe(7.5, 0.018)) for m in (1, 3))
    if not three < 0.5 * one:
        raise Difference(f"one mode leaves {one:.3f}, three {three:.3f}")


@test
def probes_stay_until_they_are_to_change():
    frames = grid_frames()
    for method in ("raar", "dm", "lsq", "epie", "rpie", "mpie"):
        call = f'ptycho(f, s, positions = {text(GRID)}, method = "{method}", output = "probe", momentum = 0, iterations = '
        kept = run(call + "2, probe_from = 3)", f=frames, s=START)
        near_complex(kept, START * np.vdot(START, kept) / np.vdot(START, START), 1e-6)
        same(run(call + "2, probe_from = 0)", f=frames, s=START), kept)
        changed = run(call + "3, probe_from = 3)", f=frames, s=START)
        if np.abs(changed - kept).max() < 1e-3 * np.abs(kept).max():
            raise Difference(f"{method}: the probe does not change")


@test
def frames_and_positions_are_shuffled_alike():
    obj, probe, scan = make_object(), make_probe(), 'scan_positions("fermat", 20, 3'
    plain = run(f"diffract(o, p, {scan}))", o=obj, p=probe)
    for seed in (1, 7):
        mixed = run(f"shuffle_frames(f, {seed})", f=plain)
        same(run(f"shuffle_frames(f, {seed})", "--chunk", "7", f=plain), mixed)
        order = [int(np.abs(plain - f).max((1, 2)).argmin()) for f in mixed]
        if sorted(order) != list(range(len(plain))) or order == list(range(len(plain))):
            raise Difference(f"seed {seed}: the order is {order}")
        near(run(f"diffract(o, p, {scan}, shuffle = {seed}))", o=obj, p=probe), mixed, relative=1e-6)
        near(run(f"diffract(o, p, {scan}, shuffle = {seed}, first = 1, every = 2))", o=obj, p=probe), mixed[1::2], relative=1e-6)


EVERYTHING = ("background_from = 2, light_from = 1, positions_from = 2, smoothness = 0.01, stop = 1e-4, group = 20, block = 6, "
              "near = {}, iterations = 4, method = \"{}\"")


@test
def bits_do_not_depend_on_chunks_workers_or_engine():
    positions = [(y + 0.3, x + 0.55) for y, x in raster(4)]
    frames = frames_of(make_object(N + SIZE + 2), make_probe(), positions) + background_of(9)
    for method, near_by in (("raar", 0), ("lsq", 3), ("rpie", 0)):
        call = f"ptycho(f, s, positions = {text(positions)}, {EVERYTHING.format(near_by, method)})"
        whole = run(call, f=frames, s=make_probe())
        for options in (("--workers", "1"), ("--workers", "3"), ("--chunk", "7"), ("--engine", "processes", "--workers", "2")):
            same(run(call, *options, f=frames, s=make_probe()), whole)


@test
def a_part_of_an_object_is_that_of_the_whole():
    positions = [(y * 2, x) for y, x in raster(4)]  # more than 64 rows, so that an object has several chunks
    frames = frames_of(make_object(N + 2 * SIZE + 2), make_probe(), positions)
    for method in ("raar", "lsq"):
        call = f'ptycho(f, s, positions = {text(positions)}, iterations = 3, method = "{method}")'
        whole = run(call, f=frames, s=make_probe())
        for part, cut in (("[0:30]", np.s_[:30]), ("[30:-9, 5:-20]", np.s_[30:-9, 5:-20])):
            same(run(call + part, f=frames, s=make_probe()), whole[cut])


@test
def mistakes_are_told():
    frames, spread = np.ones((4, 8, 8), np.float32), "positions = [0, 0, 0, 3, 3, 0, 3, 3]"
    refused(f"ptycho(f, {spread}, background = b)", "pixels of a frame", f=frames, b=np.ones((9, 8), np.float32))
    refused(f"ptycho(f, {spread}, near = 3)", "give one", f=frames)
    refused(f"ptycho(f, {spread}, light_from = 9, iterations = 3)", "light_from is 9", f=frames)
    refused(f"ptycho(f, {spread}, background_from = 9, iterations = 3)", "background_from is 9", f=frames)
    refused(f"ptycho(f, {spread}, positions_from = 9, iterations = 3)", "positions_from is 9", f=frames)
    refused(f'ptycho(f, {spread}, output = "positions")', "positions_from or light_from", f=frames)
    refused(f'ptycho(f, {spread}, output = "background")', "background_from says", f=frames)
    refused(f"ptycho(f, f[0], o, {spread}, positions_from = 1)", "pixels around all frames", f=frames,
            o=np.ones((12, 12), np.complex64))
    refused(f"ptycho(f, {spread}, smoothness = -1)", "smoothness", f=frames)


test.main()
