"""Scans that grow: what previews show of solvers and statistics, and that the end has the bits of the stored scan."""
import csv
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test
from frames import headed

try:
    import numpy
except ImportError:
    numpy = None


class Live:
    """A stream that is given the frames of a scan one by one."""

    def __init__(self, folder, text, axis, *options):
        self.folder = pathlib.Path(folder)
        (self.folder / "p.fov").write_text(text)
        self.process = subprocess.Popen([FOVEA, "stream", "p.fov", "--bind", "p=-", "--scan", axis, "--json", *map(str, options)],
                                        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def send(self, scan, *indices, angles=None):
        for i in indices:
            told = {} if angles is None else {"angle": angles[i]}
            self.process.stdin.write(headed(scan[i], "s", i, **told))
        self.process.stdin.flush()

    def preview(self):
        """The next one: its event."""
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read().decode()
            event = json.loads(line)
            if event["event"] == "preview":
                return event

    def shown(self, name="s-preview.npy"):
        self.preview()
        return numpy.load(self.folder / "out" / name)

    def end(self, code=0):
        said = self.process.communicate(timeout=600)[1].decode()
        assert self.process.returncode == code, said
        return said


def stored(folder, text, name, scan):
    """What an ordinary run makes of these frames."""
    there = pathlib.Path(folder) / f"stored-{name}"
    (there / "scans").mkdir(parents=True)
    numpy.save(there / "scans" / "s.npy", scan)
    (there / "p.fov").write_text(text)
    run("run", "-q", "p.fov", folder=there)
    return numpy.load(there / "out" / "s.npy")


def sirt(angles, iterations=8):
    return f"""p = read("scans/*.npy", axes = "angle z x")
write(sirt(p, parallel({angles}), iterations = {iterations}), "out/{{stem}}.npy")
"""


def projections(folder, angles):
    if numpy is None:
        raise Skip("no numpy")
    run("run", "-q", "-e", f'xray(phantom("shepp-logan", [3, 40, 40]), parallel({angles})) |> write("p.npy")', folder=folder)
    return numpy.load(pathlib.Path(folder) / "p.npy")


@test
def a_solver_sees_the_projections_that_are_there_and_their_angles(folder):
    scan = projections(folder, "range(0, 174, 6)")
    live = Live(folder, sirt("range(0, 174, 6)"), "angle", "--count", 30, "--preview", "every=10")
    live.send(scan, *range(10))
    first = live.shown()
    live.send(scan, *range(19, 9, -1))
    second = live.shown()
    live.send(scan, *range(29, 19, -1))
    live.end()
    assert numpy.array_equal(first, stored(folder, sirt("range(0, 54, 6)"), "first", scan[:10]))
    assert numpy.array_equal(second, stored(folder, sirt("range(0, 114, 6)"), "second", scan[:20]))
    last = numpy.load(pathlib.Path(folder) / "out" / "s.npy")
    assert numpy.array_equal(last, stored(folder, sirt("range(0, 174, 6)"), "all", scan))


@test
def gaps_are_left_out_and_previews_may_end_after_fewer_iterations(folder):
    scan = projections(folder, "range(0, 174, 6)")
    live = Live(folder, sirt("range(0, 174, 6)"), "angle", "--preview", "every=5,rounds=3")  # it ends with its source
    live.send(scan, 0, 3, 4, 9, 20)
    shown = live.shown()
    live.send(scan, *(i for i in range(30) if i not in (0, 3, 4, 9, 20)))
    live.end()
    assert numpy.array_equal(shown, stored(folder, sirt("[0, 18, 24, 54, 120]", 3), "part", scan[[0, 3, 4, 9, 20]]))
    last = numpy.load(pathlib.Path(folder) / "out" / "s.npy")
    assert numpy.array_equal(last, stored(folder, sirt("range(0, 174, 6)"), "all", scan))


def contents(folder):
    """Of all files of results, by their name."""
    out = pathlib.Path(folder) / "out"
    files = [path for path in out.rglob("*") if path.is_file() and "preview" not in str(path)]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@test
def slices_that_workers_share_in_parts_have_the_bytes_of_the_stored_scan(folder):
    if numpy is None:
        raise Skip("no numpy")
    scan = numpy.random.default_rng(4).random((11, 17, 301), dtype="float32")  # beyond what one task sums up, and an odd number
    text = 'p = read("scans/*.npy", axes = "angle z x")\nv = fbp(p, parallel(range(0, 160, 16)))\n'
    text += "".join(f'write(v, "out/{{stem}}.{ending}")\n' for ending in ("npy", "tif", "zarr"))
    live = Live(folder, text, "angle", "--count", 11, "--preview", "every=4")
    live.send(scan, *range(4))
    live.preview()
    live.send(scan, *range(4, 11))
    live.end()
    stored(folder, text, "all", scan)
    wanted, got = contents(pathlib.Path(folder) / "stored-all"), contents(folder)
    assert wanted and wanted.keys() == got.keys(), wanted.keys() ^ got.keys()
    assert wanted == got, [name for name in wanted if wanted[name] != got[name]]


UNEVEN = [0, 7, 11, 20.5, 29, 33, 47, 52, 60.25, 71, 80, 88, 93, 107, 111, 120, 133, 141, 150, 166]
OF_SCAN = """p = read("scans/*.mrc", axes = "angle z x")
g = parallel(read_angles("scans/*.mrc"){center})
write({solver}, "out/{{stem}}.npy")
"""


def angles_of_the_file(folder, solver, center=""):
    """Projections at uneven angles, the text that takes these from the scan itself, and what a run over the stored scan makes."""
    there = pathlib.Path(folder) / "stored"
    (there / "scans").mkdir(parents=True)
    scan = projections(folder, str(UNEVEN))
    run("run", "-q", "-e", 'read("../p.npy", axes = "angle z x") |> write("scans/s.mrc")', folder=there)
    (there / "scans" / "s.tlt").write_text("".join(f"{angle}\n" for angle in UNEVEN))
    text = OF_SCAN.format(solver=solver, center=center)
    (there / "p.fov").write_text(text)
    run("run", "-q", "p.fov", folder=there)
    return scan, text, numpy.load(there / "out" / "s.npy")


@test
def a_frame_with_an_angle_and_a_senseless_number_is_put_aside(folder):
    text = 'p = read("scans/*.npy", axes = "angle y x")\nwrite(project(p, "angle", "sum"), "out/{stem}.npy")'
    live = Live(folder, text, "angle", "--dead", "aside")  # it ends with its source
    frame = numpy.ones((4, 5), numpy.uint8)
    for index in (0, 10 ** 9, 1):
        live.process.stdin.write(headed(frame, "s", index, angle=3 * index))
    live.end(code=1)
    why, = (live.folder / "aside").glob("*.why")
    assert "too large for a frame with an angle" in why.read_text(), why.read_text()
    assert (numpy.load(live.folder / "out" / "s.npy") == 2).all()


@test
def angles_that_frames_carry_are_those_of_the_stored_scan(folder):
    cases = ("fbp(p, g)", ""), ("fbp(p, g)", ", center = 18"), ("sirt(p, g, iterations = 5)", "")
    for number, (solver, center) in enumerate(cases):
        here = pathlib.Path(folder) / str(number)
        here.mkdir()
        scan, text, wanted = angles_of_the_file(here, solver, center)
        live = Live(here, text, "angle", "--count", 20, "--preview", "every=6")
        live.send(scan, *range(6), angles=UNEVEN)
        shown = live.shown()
        live.send(scan, 6, 7, 10, 9, 8, *range(19, 10, -1), angles=UNEVEN)
        live.end()
        assert numpy.array_equal(numpy.load(here / "out" / "s.npy"), wanted), (solver, center)
        told = stored(here, text.replace(".mrc", ".npy").replace('read_angles("scans/*.npy")', str(UNEVEN[:6])), "part", scan[:6])
        scale = 6 / 20 if solver.startswith("fbp") and not center else 1  # a sum so far has the weight of the whole scan
        assert numpy.allclose(shown, told * scale, atol=1e-5), (solver, center)


@test
def angles_survive_a_kill(folder):
    scan, text, wanted = angles_of_the_file(folder, "fbp(p, g)")
    (pathlib.Path(folder) / "p.fov").write_text(text)
    body = b"".join(headed(scan[i], "s", i, angle=UNEVEN[i]) for i in range(20))
    command = [FOVEA, "stream", "-q", "p.fov", "--bind", "p=-", "--scan", "angle", "--count", "20"]
    killed = subprocess.Popen(command + ["--json"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    killed.stdin.write(body[:len(body) // 2])
    killed.stdin.flush()
    for _ in range(9):
        assert json.loads(killed.stdout.readline())["event"] == "frame"
    killed.kill()
    killed.communicate()
    half = b"".join(headed(scan[i], "s", i, angle=UNEVEN[i]) for i in range(9, 20))
    subprocess.run(command, cwd=folder, input=half, check=True, timeout=600)
    assert numpy.array_equal(numpy.load(pathlib.Path(folder) / "out" / "s.npy"), wanted)


@test
def frames_without_angles_are_told_where_the_text_asks_for_them(folder):
    scan, text, _ = angles_of_the_file(folder, "fbp(p, g)")
    some = {i: 9 * i for i in range(19)}
    for angles, said in ((None, "the frames tell no angles"), (some, "frame 19 of the scan tells no angle")):
        here = pathlib.Path(folder) / str(len(angles or {}))
        here.mkdir()
        (here / "p.fov").write_text(text)
        body = b"".join(headed(scan[i], "s", i, **({"angle": angles[i]} if angles and i in angles else {})) for i in range(20))
        command = [FOVEA, "stream", "-q", "p.fov", "--bind", "p=-", "--scan", "angle", "--count", "20"]
        done = subprocess.run(command, cwd=here, input=body, capture_output=True, check=False, timeout=600)
        assert done.returncode and said in done.stderr.decode(), done
    several = headed(scan[:4], "s", 0, frames=4, angle="0 1 2")
    done = subprocess.run(command, cwd=here, input=several, capture_output=True, check=False, timeout=600)
    assert "fovea-angle has 3 numbers for 4 frames" in done.stderr.decode(), done.stderr


def ptycho(corners):
    at = ", ".join(f"{y}, {x}" for y, x in corners)
    return f"""p = read("scans/*.npy", axes = "frame y x")
probe = make_probe(32, radius = 8, counts = 1e5)
write(amplitude(ptycho(p, probe, positions = [{at}], iterations = 6)), "out/{{stem}}.npy")
"""


@test
def ptychography_begins_with_a_fifth_of_the_scan(folder):
    if numpy is None:
        raise Skip("no numpy")
    corners = [(y, x) for y in range(0, 48, 8) for x in range(0, 48, 8)]
    at = ", ".join(f"{y}, {x}" for y, x in corners)
    run("run", "-q", "-e", 'o = complex_image(ones([96, 96]), phantom("cells", [96, 96]) / 255)\n'
        f'diffract(o, make_probe(32, radius = 8, counts = 1e5), positions = [{at}]) |> write("p.npy")', folder=folder)
    scan = numpy.load(pathlib.Path(folder) / "p.npy")
    live = Live(folder, ptycho(corners), "frame", "--count", len(scan), "--preview", "every=6")
    live.send(scan, *range(6))  # of 36: too early
    live.send(scan, *range(6, 12))
    event = live.preview()
    assert event["frames"] == 12 and "why" not in event, event
    shown = numpy.load(pathlib.Path(folder) / "out" / "s-preview.npy")
    assert numpy.array_equal(shown, stored(folder, ptycho(corners[:12]), "part", scan[:12]))
    live.send(scan, *range(12, len(scan)))
    live.end()
    last = numpy.load(pathlib.Path(folder) / "out" / "s.npy")
    assert numpy.array_equal(last, stored(folder, ptycho(corners), "all", scan))


@test
def statistics_have_running_values(folder):
    if numpy is None:
        raise Skip("no numpy")
    scan = numpy.random.default_rng(2).integers(0, 200, (12, 9, 11)).astype("uint8")
    text = 'p = read("scans/*.npy", axes = "t y x")\nmean(p)\nwrite(project(p, "t", "mean"), "out/{stem}.npy")\n'
    live = Live(folder, text, "t", "--count", 12, "--preview", "every=4")
    for until in (4, 8):
        live.send(scan, *range(until - 4, until))
        event = live.preview()
        assert abs(event["mean(p)"][0]["mean(p)"] - scan[:until].mean()) < 1e-9, event
        shown = numpy.load(pathlib.Path(folder) / "out" / "s-preview.npy")
        assert numpy.allclose(shown, scan[:until].mean(axis=0), rtol=1e-6)
    live.send(scan, *range(8, 12))
    live.end()
    assert numpy.array_equal(numpy.load(pathlib.Path(folder) / "out" / "s.npy"), stored(folder, text, "all", scan))


@test
def a_text_that_needs_a_frame_which_has_not_come_sees_zeros_until_then(folder):
    if numpy is None:
        raise Skip("no numpy")
    scan = numpy.random.default_rng(2).integers(1, 200, (6, 9, 11)).astype("uint8")
    text = 'p = read("scans/*.npy")\nwrite(p[5] + p[0], "out/{stem}.npy")\n'
    live = Live(folder, text, "t", "--count", 6, "--preview", "every=3")
    live.send(scan, *range(3))
    assert numpy.array_equal(live.shown(), scan[0])
    live.send(scan, *range(3, 6))
    live.end()
    assert numpy.array_equal(numpy.load(pathlib.Path(folder) / "out" / "s.npy"), stored(folder, text, "all", scan))


@test
def windows_have_a_mean_image_a_dose_and_a_drift(folder):
    if numpy is None:
        raise Skip("no numpy")
    run("run", "-q", "-e", 'gaussian(phantom("cells", [100, 100]), 1) |> write("still.npy")', folder=folder)
    still = numpy.load(pathlib.Path(folder) / "still.npy")
    scan = numpy.stack([numpy.roll(still, (i % 4, 2 * (i % 4)), (0, 1))[10:74, 10:74] + i // 4 for i in range(8)])
    text = """p = read("scans/*.npy")
write(project(p, "t", "mean"), "mean/{stem}.npy")
write(sum(p), "dose.csv")
write(motion(register(p[-1], p[0], kind = "shift"), p[0]), "drift.csv")
"""
    live = Live(folder, text, "t", "--window", 4)
    live.send(scan, *range(8))
    live.end()
    names = ["window-000000", "window-000001"]

    def rows(file):
        with open(pathlib.Path(folder) / file, newline="", encoding="utf-8") as lines:
            return {row["item"]: row for row in csv.DictReader(lines)}
    for k, name in enumerate(names):
        part = scan[4 * k:4 * k + 4]
        assert numpy.allclose(numpy.load(pathlib.Path(folder) / "mean" / f"{name}.npy"), part.mean(axis=0), rtol=1e-5)
        assert abs(float(rows("dose.csv")[name]["sum"]) - part.astype("float64").sum()) < 1e-3 * part.sum()
        drift = rows("drift.csv")[name]
        assert abs(float(drift["shift_x"]) - 6) < 0.1 and abs(float(drift["shift_y"]) - 3) < 0.1, drift


main()
