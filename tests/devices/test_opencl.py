"""OpenCL devices, on PoCL: found, measured, given out, and used by runs."""
import json
import os
import shutil
import sqlite3
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test

POCL = {"POCL_DEVICES": "pthread", "FOVEA_DEVICES": ""}
THREE = dict(POCL, POCL_DEVICES="pthread pthread pthread", POCL_MEMORY_LIMIT="2")


def devices(folder, environment):
    """What OpenCL finds; skips where it is not there."""
    found = run("devices", "--json", folder=folder, code=None, environment=environment)
    if found.returncode:
        raise Skip(found.stderr.strip())
    return json.loads(found.stdout)["devices"]


@test
def devices_are_found_with_memory_and_speed(folder):
    three = devices(folder, THREE)
    assert [d["device"] for d in three] == ["opencl:0", "opencl:1", "opencl:2"]
    assert all(d["memory"] == 2 << 30 and d["speed"] > 0 and d["bandwidth"] > 0 for d in three), three
    assert three[0]["kind"] == three[2]["kind"] and "pthread" in three[0]["name"]
    text = run("devices", folder=folder, environment=THREE).stdout
    assert "opencl:2" in text and "2.0 GiB" in text, text
    told = json.loads(run("devices", "discover", folder=folder, environment=THREE).stdout)
    assert told == {"name": "gpu", "addresses": ["0", "1", "2"]}, told


@test
def what_is_missing_is_told(folder):
    assert "apt-get install ocl-icd-opencl-dev" in run("devices", folder=folder, code=2,
                                                       environment=dict(POCL, FOVEA_PLUGINS=folder)).stderr
    devices(folder, POCL)
    empty = run("devices", folder=folder, code=2, environment=dict(POCL, OCL_ICD_VENDORS=folder))
    assert "no OpenCL driver is installed" in empty.stderr, empty.stderr


@test
def found_devices_are_given_out(folder):
    devices(folder, THREE)
    path = os.path.join(folder, "devices.sock")
    service = subprocess.Popen([FOVEA, "devices", "serve", "--socket", path], env=dict(os.environ, **THREE),
                               stderr=subprocess.PIPE, text=True)
    try:
        assert "given out" in service.stderr.readline()
        given = json.loads(run("devices", "--socket", path, "--json", folder=folder).stdout)["devices"]
        assert len(given) == 3 and all(d["memory"] == 2 << 30 and d["speed"] > 1 for d in given), given
        assert "speed" in run("devices", "--socket", path, folder=folder).stdout
        leased = run("devices", "lease", "--socket", path, "--memory", "2G", "--", "sh", "-c", "echo $FOVEA_DEVICE",
                     folder=folder).stdout
        assert leased.strip() in ("0", "1", "2"), leased
    finally:
        service.terminate()
        service.wait()
        service.stderr.close()


# ---------------------------------------------------------------- runs


def compute(folder, expression, device, environment=None, extra=(), code=0):
    """The image that an expression gives, computed anew; None where the run fails as it should."""
    shutil.rmtree(os.path.join(folder, ".fovea"), ignore_errors=True)
    done = run("run", "-e", f'{expression} |> write("out.npy")', "--device", device, "--overwrite", *extra, folder=folder,
               code=code, environment=dict(POCL, **(environment or {})))
    return np.load(os.path.join(folder, "out.npy")) if code == 0 else done.stderr


def facts(folder):
    """What the record of the last run says about it."""
    path = next(pathlib.Path(folder, ".fovea", "runs").glob("*/record.db"))
    with sqlite3.connect(path) as record:
        return dict(record.execute("select name, value from run").fetchall())


def agree(folder, expression, tolerance, environment=None, extra=()):
    on_cpu = compute(folder, expression, "cpu", extra=extra)
    on_device = compute(folder, expression, "opencl", environment, extra)
    assert "pthread" in facts(folder)["device"]
    assert on_cpu.dtype == on_device.dtype and on_cpu.shape == on_device.shape
    if tolerance == 0:
        assert np.array_equal(on_cpu, on_device, equal_nan=on_cpu.dtype.kind == "f"), expression
        return
    assert np.array_equal(np.isfinite(on_cpu), np.isfinite(on_device)), expression
    finite = np.isfinite(on_cpu)
    wide = np.result_type(on_cpu.dtype, float)
    worst = np.abs(on_cpu[finite].astype(wide) - on_device[finite]).max() / np.abs(on_cpu[finite]).max()
    assert worst <= tolerance, (expression, worst)


def images(folder):
    """Images of several types, one of them with numbers that are none."""
    random = np.random.default_rng(7)
    volume = random.normal(size=(21, 37, 50)).astype(np.float32)
    np.save(os.path.join(folder, "real.npy"), volume)
    volume[3, 5, 7], volume[10, 20, 30], volume[20, 36, 49] = np.nan, np.inf, -np.inf
    np.save(os.path.join(folder, "odd.npy"), volume)
    for dtype in ("uint8", "int16", "uint16", "int8"):
        limits = np.iinfo(dtype)
        np.save(os.path.join(folder, f"{dtype}.npy"), random.integers(limits.min, limits.max, (61, 83), dtype=dtype))
    np.save(os.path.join(folder, "colour.npy"), random.integers(0, 255, (30, 41, 3)).astype(np.uint8))


@test
def gaussian_agrees_with_the_cpu(folder):
    devices(folder, POCL)
    images(folder)
    for expression in ('read("real.npy") |> gaussian(2)', 'read("odd.npy") |> gaussian([1, 0.5, 2])',
                       'read("uint8.npy") |> gaussian([1, 5], mode = "nearest")',
                       'read("int16.npy") |> gaussian(3, mode = "wrap")',
                       'read("colour.npy", axes = "y x c") |> gaussian(2, mode = "mirror")',
                       'read("real.npy") |> gaussian(1, order = [1, 0, 2])', 'read("uint16.npy") |> gaussian(40)',
                       'read("uint8.npy") |> gaussian(2, mode = "constant", cval = 9.5)',
                       'read("real.npy") |> gaussian(2, mode = "constant", order = [0, 1, 0])'):
        agree(folder, expression, 1e-6)
        assert "device-left" not in facts(folder), expression
    agree(folder, 'read("real.npy") |> gaussian(1.5)', 1e-6, extra=("--chunk", "8x16x16"))
    for mode in ("reflect", "mirror", "wrap"):  # borders of rows that are shorter than a vector
        agree(folder, f'read("real.npy")[:, :, 3:12] |> gaussian(2, mode = "{mode}")', 1e-6)


@test
def what_the_device_does_not_take_runs_on_the_cpu_and_the_record_says_so(folder):
    devices(folder, POCL)
    images(folder)
    scan = 'name_axes(read("real.npy"), "angle z x")'
    for expression, left in (('read("real.npy") |> gaussian(1, mode = "constant", cval = 3, order = 1)', "gaussian"),
                             ('convert(read("real.npy"), "float64") |> gaussian(1) |> median(3)', "gaussian, median"),
                             (f"sirt({scan}, parallel(range(0, 20)), iterations = 2, stop = 0.1) |> gaussian(1)", "sirt")):
        agree(folder, expression, 1e-6)
        assert facts(folder)["device-left"] == left, (expression, facts(folder))


@test
def median_has_the_same_bits(folder):
    devices(folder, POCL)
    images(folder)
    for expression in ('read("real.npy") |> median(3)', 'read("odd.npy") |> median([1, 5, 5])',
                       'read("uint8.npy") |> median([4, 7])', 'read("int16.npy") |> median(5, mode = "wrap")',
                       'read("int8.npy") |> median(3, mode = "constant", cval = 3)',
                       'read("colour.npy", axes = "y x c") |> median(3)', 'read("uint16.npy") |> median(9)',
                       'read("uint8.npy") |> median(25)'):
        agree(folder, expression, 0)
    agree(folder, 'read("odd.npy") |> median(3)', 0, extra=("--chunk", "8x16x16"))


GEOMETRY = "parallel(angles = range(0, 178, 2), center = 24.3)"


@test
def projections_and_reconstructions_agree_with_the_cpu(folder):
    devices(folder, POCL)
    run("run", "-q", "-e", f'xray(phantom("shepp-logan", [19, 50, 50]), {GEOMETRY}) |> write("scan.npy")', folder=folder)
    scan = 'read("scan.npy", axes = "angle z x")'
    for expression in (f'xray(phantom("shepp-logan", [19, 50, 44]), {GEOMETRY})', f"backproject({scan}, {GEOMETRY})",
                       f'fbp({scan}, {GEOMETRY}, filter = "hann", size = [40, 47])', f"sirt({scan}, {GEOMETRY}, iterations = 6)",
                       f"sirt({scan}, {GEOMETRY}, iterations = 3, relaxation = 0.7, nonnegative = true, "
                       'mask = phantom("shepp-logan", [19, 50, 50]) > 0.1)',
                       f'fbp(xray(phantom("shepp-logan", [50, 50]), {GEOMETRY}), {GEOMETRY})',
                       f"sirt({scan}, {GEOMETRY}, iterations = 3, stop = 0.1)"):
        agree(folder, expression, 1e-5)


CONE = "source = 300, detector = 120, pitch = 1.3"


@test
def cone_beams_agree_with_the_cpu(folder):
    """Whole turns, a short scan, a displaced detector, a fan, a steep one, and a volume that the detector sees a part of."""
    devices(folder, POCL)
    for turn, more, volume, columns, what in (
            ("range(0, 352, 8)", "", "[21, 40, 40]", 48, ""), ("range(0, 200, 5)", "", "[21, 40, 40]", 48, 'filter = "hann"'),
            ("range(0, 352, 8)", ", center = 9.5", "[18, 40, 40]", 40, "size = [35, 50, 33]"),
            ("range(0, 354, 6)", ", center = 23.7", "[48, 48]", 48, "size = [40, 47]"),
            ("range(352, 0, -8)", ", pitch = 0.4", "[5, 12, 12]", 60, "size = [6, 14, 14]")):
        geometry = f"cone({turn}, {CONE}{more})" if "pitch" not in more else f"cone({turn}, 300, 120{more})"
        run("run", "-q", "--overwrite", "-e", f'xray(phantom("shepp-logan", {volume}), {geometry}, columns = {columns}) |> '
            'write("scan.npy")', folder=folder)
        axes = "angle x" if volume.count(",") == 1 else "angle z x"
        agree(folder, f'fdk(read("scan.npy", axes = "{axes}"), {geometry}{", " + what if what else ""})', 1e-5)


@test
def a_cone_beam_goes_through_a_small_card_in_pieces_with_the_same_bits(folder):
    devices(folder, POCL)
    geometry = f"cone(range(0, 356, 4), {CONE})"
    expression = f'fdk(read("scan.npy", axes = "angle z x"), {geometry}, size = [70, 48, 40])'
    run("run", "-q", "-e", f'xray(phantom("shepp-logan", [64, 48, 48]), {geometry}) |> write("scan.npy")', folder=folder)
    agree(folder, expression, 1e-5, {"FOVEA_DEVICE_MEMORY": "1500K"})
    pieces, chunks = np.load(os.path.join(folder, "out.npy")), ("--chunk", "48x17x23")
    assert np.array_equal(pieces, compute(folder, expression, "opencl"))
    assert np.array_equal(pieces, compute(folder, expression, "opencl", extra=chunks))
    assert "of the device, which has" in compute(folder, expression, "opencl", {"FOVEA_DEVICE_MEMORY": "1M"}, code=2)


def diffraction(height, width):
    """A scan of frames of that size: what a reconstruction needs, as text."""
    probe = f"make_probe(70, radius = 11, defocus = 90, counts = 1e6)[{35 - height // 2}:{35 + height // 2}, " \
            f"{35 - width // 2}:{35 + width // 2}]"
    return (f'cells = gaussian(phantom("cells", [120, 120]) / 255, 1)\nat = scan_positions("fermat", 44, 5)\np = {probe}\n'
            "frames = diffract(complex_image(1 - 0.2 * cells, rotate90(cells)), p, at)\n")


PTYCHO = ("iterations = 3", "iterations = 3, modes = 2",
          "iterations = 3, light_from = 1, background_from = 2",
          'iterations = 3, positions_from = 2, method = "dm"')


@test
def ptychography_agrees_with_the_cpu(folder):
    """Sides of all factors, and all that changes a wave. Object and probe follow from the waves of several iterations."""
    devices(folder, POCL)
    for (height, width), words in zip(((64, 64), (60, 42), (54, 70), (48, 50)), PTYCHO):
        scan = diffraction(height, width)
        agree(folder, f"{scan}ptycho(frames, p, positions = at, {words})", 2e-5)
        agree(folder, f'{scan}ptycho(frames, p, positions = at, {words}, output = "probe")', 2e-5)


@test
def waves_go_through_a_small_card_in_pieces_with_the_same_bits(folder):
    devices(folder, POCL)
    expression = diffraction(64, 64) + "ptycho(frames, p, positions = at, iterations = 3, modes = 2)"
    whole = compute(folder, expression, "opencl")
    assert np.array_equal(whole, compute(folder, expression, "opencl", {"FOVEA_DEVICE_MEMORY": "12M"}))
    assert "of the device, which has" in compute(folder, expression, "opencl", {"FOVEA_DEVICE_MEMORY": "1M"}, code=2)
    near_by = diffraction(64, 64).replace("p, at)", "p, at, near = 3)")
    compute(folder, near_by + "ptycho(frames, p, positions = at, iterations = 2, near = 3)", "opencl")
    assert "ptycho_waves" in facts(folder)["device-left"], facts(folder)


@test
def what_is_written_for_cards_agrees_too(folder):
    """Data are copied and a work-item makes one result: PoCL taken for a card, which auto then takes without being asked."""
    devices(folder, POCL)
    images(folder)
    card = {"FOVEA_DEVICE_CARD": "1"}
    cone = f"cone(range(0, 352, 8), {CONE})"
    for name, volume, geometry in (("scan", "[19, 50, 50]", GEOMETRY), ("cone", "[21, 40, 40]", cone)):
        run("run", "-q", "-e", f'xray(phantom("shepp-logan", {volume}), {geometry}) |> write("{name}.npy")', folder=folder)
    scan = 'read("scan.npy", axes = "angle z x")'
    for expression, tolerance in (('read("odd.npy") |> gaussian([1, 0.5, 2], mode = "wrap")', 1e-6),
                                  ('read("real.npy") |> gaussian(3)', 1e-6),
                                  ('read("real.npy") |> gaussian(0.5, mode = "mirror")', 1e-6),
                                  ('read("odd.npy") |> median(3) |> median([1, 4, 5])', 0),
                                  (f'xray(phantom("shepp-logan", [19, 50, 44]), {GEOMETRY}) * 2', 1e-5),
                                  (f"backproject({scan}, {GEOMETRY})", 1e-5), (f"fbp({scan}, {GEOMETRY})", 1e-5),
                                  (f'fdk(read("cone.npy", axes = "angle z x"), {cone})', 1e-5),
                                  (f"sirt({scan}, {GEOMETRY}, iterations = 3)", 1e-5),
                                  (diffraction(48, 40) + "ptycho(frames, p, positions = at, iterations = 2)", 1e-5)):
        agree(folder, expression, tolerance, card)
    compute(folder, 'read("real.npy") |> gaussian(1)', "auto", card)
    assert facts(folder)["device"].endswith(", as a card"), facts(folder)


@test
def what_a_small_card_cannot_hold_goes_through_in_pieces(folder):
    devices(folder, POCL)
    images(folder)
    small = {"FOVEA_DEVICE_MEMORY": "400000"}
    run("run", "-q", "-e", f'xray(phantom("shepp-logan", [19, 50, 50]), {GEOMETRY}) |> write("scan.npy")', folder=folder)
    agree(folder, 'read("real.npy") |> gaussian(1)', 1e-6, small)
    agree(folder, 'read("odd.npy") |> median(3)', 0, small)
    less = {"FOVEA_DEVICE_MEMORY": "1500000"}
    agree(folder, f'backproject(read("scan.npy", axes = "angle z x"), {GEOMETRY})', 1e-5, less)
    agree(folder, f'xray(phantom("shepp-logan", [19, 50, 50]), {GEOMETRY})', 1e-5, less)
    refused = compute(folder, f'sirt(read("scan.npy", axes = "angle z x"), {GEOMETRY})', "opencl", small, code=2)
    assert "of the device, which has" in refused and "--device cpu" in refused, refused


@test
def the_device_is_part_of_a_chunks_key(folder):
    devices(folder, POCL)
    images(folder)
    command = ["run", "-e", 'read("real.npy") |> gaussian(2) |> write("a.npy")', "--json"]
    runs = [json.loads(run(*command, *more, folder=folder, environment=POCL).stdout)["tasks_run"]
            for more in ([], [], ["--device", "opencl"], ["--device", "opencl:0"], ["--device", "cpu"])]
    assert runs[0] > 0 and runs[1] == 0 and runs[2] > 0 and runs[3] == 0, runs


def tasks_run(folder, device, environment, *extra):
    done = run("run", "-e", 'read("real.npy") |> gaussian(2) |> write("out.npy")', "--json", "--overwrite", "--device", device,
               *extra, folder=folder, environment=environment)
    return json.loads(done.stdout)["tasks_run"], np.load(os.path.join(folder, "out.npy"))


@test
def devices_of_two_kinds_are_told_apart_and_never_mixed(folder):
    """PoCL's two drivers are two kinds: what one has made is not taken for the other's, and runs keep to one of them."""
    two = dict(POCL, POCL_DEVICES="basic pthread")
    kinds = {d["kind"] for d in devices(folder, two)}
    if len(kinds) < 2:
        raise Skip("PoCL has one kind of device here")
    images(folder)
    first, second = ([d["name"] for d in devices(folder, two)][i] for i in (0, 1))
    assert tasks_run(folder, "opencl", two, "--chunk", "8x16x16")[0] > 0 and first in facts(folder)["device"]
    assert tasks_run(folder, "opencl:0", two, "--chunk", "8x16x16")[0] == 0
    shutil.rmtree(os.path.join(folder, ".fovea", "runs"))
    assert tasks_run(folder, "opencl:1", two, "--chunk", "8x16x16")[0] > 0 and second in facts(folder)["device"]


@test
def devices_of_one_kind_share_the_work_and_give_the_same_bits(folder):
    if len(devices(folder, THREE)) < 3:
        raise Skip("PoCL gives fewer than three devices")
    images(folder)
    _, alone = tasks_run(folder, "opencl:2", THREE)
    for extra in ((), ("--engine", "processes", "--workers", "2")):
        count, shared = tasks_run(folder, "opencl", dict(THREE, POCL_MEMORY_LIMIT="1"), "--chunk", "8x16x16", "--fresh", *extra)
        assert count > 10 and np.array_equal(alone, shared)


@test
def processes_use_devices_too(folder):
    devices(folder, POCL)
    images(folder)
    agree(folder, 'read("real.npy") |> gaussian(2) |> median(3)', 1e-6,
          extra=("--engine", "processes", "--workers", "2", "--chunk", "8x16x32"))


@test
def compiled_kernels_are_kept(folder):
    devices(folder, POCL)
    images(folder)
    cache = {"XDG_CACHE_HOME": os.path.join(folder, "cache")}
    first = compute(folder, 'read("uint8.npy") |> median(5)', "opencl", cache)
    kept = list(pathlib.Path(folder, "cache", "fovea", "opencl").iterdir())
    assert len(kept) == 1 and kept[0].stat().st_size > 0
    before = kept[0].stat().st_mtime_ns
    assert np.array_equal(first, compute(folder, 'read("uint8.npy") |> median(5)', "opencl", cache))
    assert kept[0].stat().st_mtime_ns == before
    kept[0].write_bytes(b"damaged")
    assert np.array_equal(first, compute(folder, 'read("uint8.npy") |> median(5)', "opencl", cache))
    assert kept[0].stat().st_size > 100


@test
def without_a_device_the_user_is_told_or_the_cpu_is_used(folder):
    images(folder)
    missing = {"FOVEA_PLUGINS": folder}
    said = compute(folder, 'read("real.npy") |> gaussian(1)', "opencl", missing, code=2)
    assert "apt-get install ocl-icd-opencl-dev" in said, said
    compute(folder, 'read("real.npy") |> gaussian(1)', "auto", missing)
    assert facts(folder)["device"] == "cpu" and "plug-in" in facts(folder)["device-note"]
    devices(folder, POCL)
    compute(folder, 'read("real.npy") |> gaussian(1)', "auto")
    assert facts(folder)["device"] == "cpu" and "processor itself" in facts(folder)["device-note"]
    assert "opencl:0 to opencl:0" in compute(folder, 'read("real.npy") |> gaussian(1)', "opencl:7", code=2)
    for wrong in ("opencl:x", "cuda", "opencl:-1", "gpu:0"):
        assert "must be auto, cpu, opencl or opencl:N" in compute(folder, 'read("real.npy") |> gaussian(1)', wrong, code=2), wrong


@test
def a_failing_device_is_told_or_the_cpu_goes_on(folder):
    devices(folder, POCL)
    images(folder)
    fault = {"FOVEA_FAULT": "device:2:error", "FOVEA_DEVICE": "0"}
    expression, chunk = 'read("real.npy") |> gaussian(1)', ("--chunk", "8x16x16")
    right = compute(folder, expression, "cpu", extra=chunk)
    assert "the device fails" in compute(folder, expression, "opencl", fault, chunk, code=1)
    assert np.array_equal(right, compute(folder, expression, "auto", fault, chunk))
    with_cpu = [dict(sqlite3.connect(p).execute("select name, value from run")) for p in
                pathlib.Path(folder, ".fovea", "runs").glob("*/record.db")]
    assert any(f["device"] == "cpu" and "the device fails" in f.get("device-note", "") for f in with_cpu), with_cpu


@test
def runs_lease_from_the_nodes_scheduler(folder):
    devices(folder, THREE)
    images(folder)
    path = os.path.join(folder, "devices.sock")
    service = subprocess.Popen([FOVEA, "devices", "serve", "--socket", path], env=dict(os.environ, **THREE),
                               stderr=subprocess.PIPE, text=True)
    try:
        assert "given out" in service.stderr.readline()
        agree(folder, 'read("real.npy") |> gaussian(2)', 1e-6, dict(THREE, FOVEA_DEVICES=path), ("--chunk", "8x16x16"))
        served = [d["served"] for d in json.loads(run("devices", "--socket", path, "--json", folder=folder).stdout)["devices"]]
        assert sum(served) >= 18, served
        before = served[1]
        compute(folder, 'read("real.npy") |> gaussian(3)', "opencl:1", dict(THREE, FOVEA_DEVICES=path))
        after = json.loads(run("devices", "--socket", path, "--json", folder=folder).stdout)["devices"]
        assert after[1]["served"] > before and after[0]["served"] == served[0] and all(d["tasks"] == 0 for d in after), after
        leased = run("devices", "lease", "--socket", path, "--memory", "1G", "--", FOVEA, "run", "-e",
                     'read("real.npy") |> gaussian(4) |> write("c.npy")', "--device", "opencl", folder=folder,
                     environment=dict(THREE, FOVEA_DEVICES=path))
        assert leased.returncode == 0
    finally:
        service.terminate()
        service.wait()
        service.stderr.close()


main()
