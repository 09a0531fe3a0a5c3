#!/usr/bin/python3
"""Scans as they come from microscopes and beams: angles from files, a centre that the pipeline finds, the tooth, bad input."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, data, main, run, test

SHIFTED = 'g = parallel(range(0, 180, 2)); ' \
          'p = xray(phantom("shepp-logan", [4, 40, 40]), parallel(range(0, 180, 2), center = 21.25));'
SIX = "parallel(range(0, 150, 30))"


def printed(pipeline, folder, *options):
    return run("run", "-q", "-e", pipeline, *options, folder=folder).stdout.strip()


def tilts(folder, count=6):
    """A scan of six projections, as a file that says nothing of angles."""
    run("run", "-q", "-e", f'xray(phantom("shepp-logan", [3, 16, 16]), parallel(range(0, {30 * count - 30}, 30))) '
        '|> name_axes("z y x") |> write("p.mrc")', folder=folder)


@test
def the_tooth_is_reconstructed_from_raw_counts(folder):
    shutil.copy(data("tomography", "tooth.h5"), folder)
    if run("info", "tooth.h5", folder=folder, code=None).returncode:
        raise Skip("the HDF5 plug-in is not here")
    center = float(run("run", "-q", str(ROOT / "examples" / "tooth.fov"), folder=folder).stdout)
    assert abs(center + 0.5 - 296) < 0.75, center  # TomoPy's guide finds 296, counted from half a column further left
    slice0 = 'read("tooth.zarr")[0]'
    inside, outside = (float(printed(f"mean({slice0}[{box}])", folder)) for box in ("400:440, 400:420", "20:60, 300:340"))
    assert 0.006 < inside < 0.01 and abs(outside) < 0.0005, (inside, outside)  # enamel and air
    assert pathlib.Path(folder, "tooth.png").stat().st_size > 20000


@test
def a_displaced_tilt_series_becomes_a_volume_and_its_stages_are_timed(folder):
    series = 'g = parallel(range(-73, 73, 2)); p = xray(phantom("shepp-logan", [32, 48, 48]), g) * 500;'
    displaced = 'misalign(p, 3, whole = true) |> convert("uint16") |> name_axes("z y x") |> write("tilts.tif")'
    run("run", "-q", "-e", series + displaced, folder=folder)
    done = run("run", str(ROOT / "examples" / "tem.fov"), "--set", "iterations=3", "--store", "store", folder=folder)
    times = done.stderr.splitlines()[-1]
    assert re.search("workers' time: read [0-9.]+, filter [0-9.]+, reconstruct [0-9.]+, .*write [0-9.]+ s\\)", times), times
    table = [line.split()[:2] for line in run("report", "--store", "store", folder=folder).stdout.splitlines()]
    for row in (["read", "read"], ["filter", "gaussian"], ["filter", "align"], ["reconstruct", "sirt"], ["write", "write"]):
        assert row in table, (row, table)
    clean = series + "v = sirt(gaussian(p, 0.5), g, iterations = 3, nonnegative = true);"
    error = float(printed(clean + 'mean(abs(read("tem.vti") - v))', folder))
    moved = 'sirt(gaussian(read("tilts.tif", axes = "angle z x"), 0.5), g, iterations = 3, nonnegative = true)'
    assert error < 0.9 * float(printed(clean + f"mean(abs({moved} - v))", folder)), error


@test
def a_centre_that_was_found_serves_the_reconstruction_of_the_same_pipeline(folder):
    found = float(printed(SHIFTED + "find_center(p, g)", folder))
    assert abs(found - 21.25) < 0.1, found
    late = "fbp(p, parallel(range(0, 180, 2), center = find_center(p, g)))"
    fixed = f"fbp(p, parallel(range(0, 180, 2), center = {found!r}))"
    for options in ((), ("--chunk", "3x7x11"), ("--engine", "processes", "--workers", "2")):
        assert printed(SHIFTED + f"max(abs({late} - {fixed}))", folder, *options) == "0", options
    for solver in ("sirt", "art", "cgls"):
        call = f"{solver}(p, parallel(range(0, 180, 2), center = C), iterations = 2)"
        difference = f"max(abs({call.replace('C', 'find_center(p, g)')} - {call.replace('C', repr(found))}))"
        assert printed(SHIFTED + difference, folder) == "0", solver
    half = f"fbp(p, parallel(range(0, 180, 2), center = find_center(p, g) + 0.5)) - {fixed}"
    assert float(printed(SHIFTED + f"max(abs({half}))", folder)) > 0.01, "half a column further"


@test
def a_centre_is_found_in_a_stored_scan_however_it_is_cut(folder):
    calls = SHIFTED + 'q = checkpoint(p); find_center(q, g, "vo"); find_center(q, parallel(range(0, 360, count = 91))); '
    whole = printed(calls, folder)
    for chunk in ("200x1x40", "7x3x11"):
        assert printed(calls, folder, "--chunk", chunk) == whole, chunk


@test
def the_centre_of_a_displaced_cone_is_found(folder):
    noise = " + (poisson(ones([120, 6, 34]) * 1000) / 1000 - 1) * 5"
    for beam, shape, center, more, chunk in (("100, 50", "[6, 32, 32]", 17.3, "", "7x2x9"),
                                             ("100, 50", "[6, 32, 32]", 17.3, noise, "7x2x9"),
                                             ("60, 30, 1.4", "[5, 32, 32]", 13.25, "", "50x3x34"),
                                             ("300, 0", "[32, 32]", 18.8, "", "7x9")):
        scan = f'p = xray(phantom("shepp-logan", {shape}), cone(range(0, 357, 3), {beam}, center = {center}), columns = 34);'
        call = scan + f"find_center(p{more}, cone(range(0, 357, 3), {beam}))"
        found = printed(call, folder)
        assert abs(float(found) - center) < 0.1, (beam, more, found)
        assert printed(call, folder, "--chunk", chunk) == found, beam


@test
def a_centre_that_turns_out_outside_the_detector_is_named(folder):
    call = 'fbp(p, parallel(range(0, 180, 2), center = C)) |> write("v.tif")'
    done = run("run", "-q", "-e", SHIFTED + call.replace("C", "find_center(p, g) + 40"), folder=folder, code=1)
    assert "center = 61." in done.stderr and "between 0 and 39" in done.stderr, done.stderr
    done = run("run", "-q", "-e", SHIFTED + call.replace("C", "log(-1 - mean(p))"), folder=folder, code=1)
    assert "center = " in done.stderr, done.stderr


@test
def angles_come_from_every_kind_of_file(folder):
    tilts(folder)
    numbers = [0, 30, 60, 90, 120, 150]
    files = {
        "a.tlt": "\n".join(f" {n:.2f}" for n in numbers) + "\n",
        "a.rawtlt": "\n".join(map(str, numbers)),
        "a.mdoc": "PixelSpacing = 2\n" + "".join(f"[ZValue = {n // 30}]\nTiltAngle = {n}\nVoltage = 3\n" for n in numbers),
        "one.csv": "degrees\n" + "".join(f"{n}\n" for n in numbers),
        "several.csv": "shift,theta\n" + "".join(f"0.5,{n}\n" for n in numbers),
        "other.csv": "shift,turn\n" + "".join(f"0.5,{n}\n" for n in numbers),
        "radians.csv": "angle\n" + "".join(f"{n * 3.141592653589793 / 180!r}\n" for n in numbers),
    }
    for name, text in files.items():
        pathlib.Path(folder, name).write_text(text)
    shutil.copy(pathlib.Path(folder, "a.tlt"), pathlib.Path(folder, "p.tlt"))
    calls = [f'read_angles("{name}")' for name in ("a.tlt", "a.rawtlt", "a.mdoc", "one.csv", "several.csv", "p.mrc")]
    calls += ['read_angles("other.csv", path = "turn")', 'read("one.csv")', 'read("a.tlt")']
    for call in calls:
        ours = f'fbp(read("p.mrc"), parallel({call}))'
        assert printed(f'p = read("p.mrc"); max(abs({ours} - fbp(p, {SIX})))', folder) == "0", call
    radians = 'fbp(read("p.mrc"), parallel(read_angles("radians.csv"), unit = "rad"))'
    assert float(printed(f'max(abs({radians} - fbp(read("p.mrc"), {SIX})))', folder)) < 1e-5


@test
def angles_of_a_scan_are_theta_in_degrees(folder):
    try:
        import h5py
        import numpy
    except ImportError as missing:
        raise Skip(str(missing)) from missing
    for name, units, scale in (("degrees.h5", "degrees", 1), ("radians.h5", "radians", numpy.pi / 180)):
        with h5py.File(pathlib.Path(folder, name), "w") as file:
            file["implements"] = "exchange"
            file["exchange/data"] = numpy.ones((6, 3, 16), "f4")
            file["exchange/theta"] = numpy.arange(0, 180, 30) * scale
            file["exchange/theta"].attrs["units"] = units
        if run("info", name, folder=folder, code=None).returncode:
            raise Skip("the HDF5 plug-in is not here")
        ours = f'fbp(read("{name}"), parallel(read_angles("{name}")))'
        assert float(printed(f'max(abs({ours} - fbp(read("{name}"), {SIX})))', folder)) < 1e-6, name
    same = 'fbp(read("degrees.h5"), parallel(read("degrees.h5", path = "/exchange/theta")))'
    assert printed(f'max(abs({same} - fbp(read("degrees.h5"), {SIX})))', folder) == "0"


@test
def each_item_of_a_collection_has_its_own_angles(folder):
    for name, count in (("a", 6), ("b", 4)):
        tilts(folder, count)
        pathlib.Path(folder, "p.mrc").rename(pathlib.Path(folder, f"{name}.mrc"))
        pathlib.Path(folder, f"{name}.tlt").write_text("".join(f"{30 * i}\n" for i in range(count)))
    run("run", "-q", "-e", 'fbp(read("*.mrc"), parallel(read_angles("*.mrc"))) |> write("{stem}.tif")', folder=folder)
    assert pathlib.Path(folder, "b.tif").exists()


PROJECTIONS = 'read("p.mrc", axes = "angle z x")'
BAD = [
    (f'fbp({PROJECTIONS}, parallel(read_angles("five.csv")))', "5 angles for 6 projections"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("none.csv")))', "there is no file none.csv"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("words.tlt")))', "words.tlt: line 2 is not an angle"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("empty.mdoc")))', "empty.mdoc holds no angles"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("p.mrc")))', "p.mrc says no angles"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("two.csv")))', "which column of two.csv"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("two.csv", path = "c")))', "no column c of numbers; it has a, b"),
    (f'fbp({PROJECTIONS}, parallel(read_angles("hole.csv")))', "number 1 is not finite"),
    (f'fbp(read("p.mrc"), {SIX})', 'projections have the axes "z y x"'),
    (f'fbp({PROJECTIONS}, parallel(range(0, 150, 30), center = 16))', "between 0 and 15"),
    (f'fbp({PROJECTIONS}, parallel(range(0, 150, 30), "rad"))', "whole numbers from 0 to 150, which are degrees"),
    ("parallel(range(0, 3.14, count = 180))", 'half a turn in radians; say unit = "rad"'),
    ("parallel(range(0, 3.141, 0.0174533))", 'half a turn in radians; say unit = "rad"'),
    ("cone(range(0, 6.266, count = 360), 100, 50)", 'a whole turn in radians; say unit = "rad"'),
    (f'fdk({PROJECTIONS}, cone(range(0, 300, 60), 100, 50, 0.01))', "16 detector columns span 0.107 voxels at the axis, 0.67 %"),
    (f'sirt({PROJECTIONS}, cone(range(0, 300, 60), 100, 50, 0.001))', "pitch = 0.001: 16 detector columns span 0.0107 voxels"),
    (f'fdk({PROJECTIONS}, cone(range(0, 300, 60), 100, 50, 80))', "the whole volume is seen by 0.3 of a detector column"),
    (f'fdk({PROJECTIONS}, cone(range(0, 300, 60), 5, 50))', "the source would touch the volume"),
    (f'find_center({PROJECTIONS}, cone(range(0, 300, 60), 100, 50))', "needs angles over a whole turn, at most 10 degrees apart"),
    (f'find_center({PROJECTIONS}, cone(range(0, 300, 60), 100, 50), "vo")', 'of a cone only "mirror" is possible'),
    (f'fdk({PROJECTIONS}, cone(range(0, 300, 60), 100, -1))', "detector = -1: must be between 0"),
    (f'fdk({PROJECTIONS}, cone(range(0, 300, 60), 100, 50, -2))', "pitch = -2: must be between 0"),
    (f'fbp({PROJECTIONS}, parallel(range(0, 150, 30), center = -1))', "between 0 and 15"),
    (f'fbp({PROJECTIONS}, parallel(range(0, 150, 30), center = [1, 2]))', "2 numbers for 6 angles"),
    ('flatfield(read("p.mrc"), read("p.mrc")[:, :2])', "flat must be 3 rows of 16 columns"),
    ('flatfield(read("p.mrc"))', "flatfield needs flat"),
    ('flatfield(read("p.mrc"), read("flats.tif"))', "there is no file flats.tif"),
]


@test
def a_scan_of_three_degrees_in_even_steps_is_one_of_degrees(folder):
    run("run", "-q", "-e", 'fbp(name_axes(ones([64, 2, 8]), "angle z x"), parallel(range(0, 3.15, 0.05))) |> write("v.tif")',
        folder=folder)
    assert pathlib.Path(folder, "v.tif").exists()


@test
def bad_scans_are_refused_before_anything_is_computed(folder):
    tilts(folder)
    for name, text in (("five.csv", "angle\n0\n30\n60\n90\n120\n"), ("words.tlt", "0\nthirty\n"),
                       ("empty.mdoc", "PixelSpacing = 1\n"), ("two.csv", "a,b\n1,2\n"),
                       ("hole.csv", "angle,k\n0.5,1\n,2\n1.5,3\n")):
        pathlib.Path(folder, name).write_text(text)
    for pipeline, message in BAD:
        done = run("run", "-q", "-e", pipeline + ' |> write("v.tif")', folder=folder, code=2)
        assert message in done.stderr, f"{pipeline}: {done.stderr.strip()}"
        assert not pathlib.Path(folder, "v.tif").exists(), pipeline


@test
def values_that_are_no_numbers_are_named_with_their_place(folder):
    tilts(folder)
    holes = 'p = read("p.mrc", axes = "angle z x"); q = where(p == max(p), log(p - 1000), p);'
    for call in (f"fbp(q, {SIX})", f"sirt(q, {SIX}, iterations = 1)", f"backproject(q, {SIX})"):
        done = run("run", "-q", "-e", holes + call + ' |> write("v.tif")', folder=folder, code=1)
        assert "projection " in done.stderr and "is not a finite number" in done.stderr, f"{call}: {done.stderr}"


main()
