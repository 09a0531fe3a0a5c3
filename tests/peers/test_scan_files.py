#!/usr/bin/python3
"""Scans as synchrotrons write them, made by h5py: NXtomo with links and image_key, DataExchange; raw frames become slices."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, run, test  # noqa: E402

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"skip scan_files: {missing}")
    sys.exit(0)

ANGLES = np.linspace(0, 180, 91)
ROWS, WIDTH, CENTER = 6, 64, 33.0


def printed(text, folder, code=0):
    done = run("run", "-q", "-e", text, folder=folder, code=code)
    return done.stdout.strip() if code == 0 else done.stderr


def array(text, folder, name="array.npy"):
    run("run", "-q", "--overwrite", "-e", f'write({text}, "{name}")', folder=folder)
    return np.load(f"{folder}/{name}")


def frames(folder):
    """Counts of projections, flats and darks as a camera gives them: with a pattern in the beam and an offset."""
    run("run", "-q", "-e", f'write(xray(phantom("shepp-logan", [{ROWS}, {WIDTH}, {WIDTH}]), parallel(range(0, 180, 2), '
        f'center = {CENTER})), "lines.npy")', folder=folder)
    lines = np.load(f"{folder}/lines.npy")
    random = np.random.default_rng(5)
    beam = 20000 * (1 + 0.3 * np.sin(np.arange(WIDTH) / 3)) + random.normal(0, 300, (ROWS, WIDTH))
    counts = [np.round(beam * np.exp(-lines / 40) + 100), np.round(np.repeat(beam[None], 4, 0) + 100),
              np.full((3, ROWS, WIDTH), 100.0)]
    return [c.astype("uint16") for c in counts]


def tomo_frames(folder):
    """All frames in the order of a scan, with their keys and angles: darks, flats, projections, an invalid frame, flats."""
    p, flat, dark = frames(folder)
    broken = np.full_like(p[:1], 65535)
    data = np.concatenate([dark, flat[:2], p[:45], broken, p[45:], flat[2:]])
    key = [2] * 3 + [1] * 2 + [0] * 45 + [3] + [0] * 46 + [1] * 2
    angle = np.concatenate([np.zeros(5), ANGLES[:45], [ANGLES[44]], ANGLES[45:], [180, 180]])
    return data, np.array(key), angle, (p, flat, dark)


def classed(parent, name, kind):
    group = parent.create_group(name)
    group.attrs["NX_class"] = kind
    return group


def nxtomo(path, data, key, angle, entry="entry", units="degree", unpacked=True, source=None):
    """As the definition has it: everything below the detector and the sample, and soft links to it in NXdata."""
    with h5py.File(path, "w") as f:
        f.attrs["NX_class"], f.attrs["default"] = "NXroot", entry
        top = f
        for level, part in enumerate(entry.split("/")):
            top = classed(top, part, "NXentry" if level == 0 else "NXsubentry")
        top.attrs["default"] = "data"
        top["definition"] = "NXtomo"
        detector = classed(classed(top, "instrument", "NXinstrument"), "detector", "NXdetector")
        if source:
            source(detector, data)
        elif unpacked:
            detector["data"] = data
        else:
            detector.create_dataset("data", data=data, chunks=(1, *data.shape[1:]), compression="gzip", shuffle=True)
        detector["image_key"] = key
        detector["x_pixel_size"] = 1.5e-6
        sample = classed(top, "sample", "NXsample")
        sample["name"] = "tooth"
        sample["rotation_angle"] = angle
        sample["rotation_angle"].attrs["units"] = units
        nxdata = classed(top, "data", "NXdata")
        nxdata.attrs["signal"] = "data"
        nxdata.attrs["axes"] = ["rotation_angle", ".", "."]
        for name, place in (("data", "instrument/detector/data"), ("image_key", "instrument/detector/image_key"),
                            ("rotation_angle", "sample/rotation_angle")):
            nxdata[name] = h5py.SoftLink(f"/{entry}/{place}")
        classed(top, "control", "NXmonitor")["frames"] = np.ones((4, 5, 6), "float32")  # another image, which is not meant


def exchange(path, p, flat, dark, theta=ANGLES, units="deg"):
    with h5py.File(path, "w") as f:
        f["implements"] = "exchange"
        for name, value in (("data", p), ("data_white", flat), ("data_dark", dark), ("theta", theta)):
            if value is not None:
                f[f"exchange/{name}"] = value
        if theta is not None:
            f["exchange/theta"].attrs["units"] = units


def needs_plugin(folder, name):
    if "fovea-hdf5" in run("info", name, folder=folder, code=None).stderr:
        raise Skip("the HDF5 plug-in is not here")


def same_parts(folder, name, parts):
    for word, want in zip(("projections", "flats", "darks"), parts):
        assert np.array_equal(array(f'read("{name}", path = "{word}")', folder), want), (name, word)
    assert np.array_equal(array(f'read("{name}")', folder), parts[0]), name
    assert np.array_equal(array(f'read("{name}")[40:50, 2:4, 5:]', folder), parts[0][40:50, 2:4, 5:]), name
    ours = array(f'fbp(read("{name}"), parallel(read_angles("{name}")))', folder)
    assert np.allclose(ours, array(f'fbp(read("{name}"), parallel(range(0, 180, 2)))', folder), rtol=1e-4, atol=1), name


@test
def the_frames_of_an_nxtomo_are_told_apart_by_their_key(folder):
    data, key, angle, parts = tomo_frames(folder)
    nxtomo(f"{folder}/plain.nxs", data, key, angle)
    needs_plugin(folder, "plain.nxs")
    nxtomo(f"{folder}/packed.nxs", data, key, angle, entry="entry1/tomo_entry", unpacked=False)
    nxtomo(f"{folder}/radians.h5", data, key.astype("int8"), np.deg2rad(angle), entry="entry0000", units="rad")
    for name in ("plain.nxs", "packed.nxs", "radians.h5"):
        same_parts(folder, name, parts)
    said = run("info", "plain.nxs", folder=folder).stdout
    assert re.search("91 projections, 4 flat fields, 3 dark fields, 1 others", said), said
    whole = array('read("plain.nxs", path = "/entry/instrument/detector/data")', folder)
    assert np.array_equal(whole, data)


@test
def frames_may_lie_in_other_files(folder):
    data, key, angle, parts = tomo_frames(folder)
    pathlib.Path(folder, "raw").mkdir()
    with h5py.File(f"{folder}/raw/images.h5", "w") as f:
        f["padding"] = np.arange(5000)
        f["frames"] = data
        f.create_dataset("packed", data=data, chunks=(1, ROWS, WIDTH), compression="gzip")

    def external(name):
        def link(detector, _):
            detector["data"] = h5py.ExternalLink("raw/images.h5", name)
        return link

    def virtual(detector, values):
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[:] = h5py.VirtualSource(f"{folder}/raw/images.h5", "frames", values.shape)
        detector.create_virtual_dataset("data", layout)

    nxtomo(f"{folder}/external.nxs", data, key, angle, source=external("frames"))
    needs_plugin(folder, "external.nxs")
    nxtomo(f"{folder}/chunked.nxs", data, key, angle, source=external("packed"))
    nxtomo(f"{folder}/virtual.nxs", data, key, angle, source=virtual)
    for name in ("external.nxs", "chunked.nxs", "virtual.nxs"):
        same_parts(folder, name, parts)
    with h5py.File(f"{folder}/master.nxs", "w") as f:  # nothing but a link to the entry
        f["entry"] = h5py.ExternalLink("external.nxs", "/entry")
    same_parts(folder, "master.nxs", parts)


@test
def the_parts_of_a_data_exchange_have_names(folder):
    p, flat, dark = frames(folder)
    exchange(f"{folder}/scan.h5", p, flat, dark)
    needs_plugin(folder, "scan.h5")
    same_parts(folder, "scan.h5", (p, flat, dark))
    assert array('median(read("scan.h5"), 3)', folder).shape == p.shape


@test
def what_a_scan_lacks_is_said(folder):
    p, flat, dark = frames(folder)
    data, key, angle, _ = tomo_frames(folder)
    exchange(f"{folder}/nodark.h5", p, flat, None)
    needs_plugin(folder, "nodark.h5")
    exchange(f"{folder}/notheta.h5", p, flat, dark, theta=None)
    nxtomo(f"{folder}/noflat.nxs", data, np.where(key == 1, 3, key), angle)
    nxtomo(f"{folder}/short.nxs", data, key[:-3], angle)
    nxtomo(f"{folder}/noangle.nxs", data, key, angle[:-3])
    with h5py.File(f"{folder}/other.h5", "w") as f:
        f["volume"] = np.zeros((3, 4, 5))
    for text, part in (('read("nodark.h5", path = "darks")', "holds no dark fields: DataExchange keeps them in "),
                       ('fbp(read("notheta.h5"), parallel(read_angles("notheta.h5")))', "notheta.h5 says no angles"),
                       ('read("noflat.nxs", path = "flats")', "noflat.nxs holds no flat fields: no number of"),
                       ('read("short.nxs")', "must hold a number for each of the 99 frames"),
                       ('fbp(read("noangle.nxs"), parallel(read_angles("noangle.nxs")))', "noangle.nxs says no angles"),
                       ('read("other.h5", path = "flats")', 'path = "flats" is for scans, and this is none')):
        said = printed(f'write({text}, "x.npy")', folder, code=2)
        assert part in " ".join(said.split()), (text, said)


@test
def lists_are_indexed_and_cut_as_numpy_does(folder):
    numbers = list(range(3, 103))
    for index in ("0:20", "::2", "-5:", "90:10:-7", "::-1", "7:8", "200:", "5:5"):
        want = eval(f"numbers[{index}]")  # pylint: disable=eval-used
        text = f"a = range(3, 102, 1)[{index}]; xray(phantom(\"shepp-logan\", [8, 8]), parallel(a))"
        if not want:
            assert "takes nothing of the list" in printed(f'{text} |> write("x.npy")', folder, code=2)
            continue
        ours = array(f"xray(phantom(\"shepp-logan\", [8, 8]), parallel(range(3, 102)[{index}]))", folder)
        theirs = array(f"xray(phantom(\"shepp-logan\", [8, 8]), parallel({want}))", folder)
        assert np.array_equal(ours, theirs), index
    assert printed("a = range(3, 102)[4]; mean(ones([2, 2]) * a)", folder) == "7"
    assert printed("mean(ones([2, 2]) * [5, 6, 7][-1])", folder) == "7"
    for text, part in (("range(0, 5)[9]", "outside the list"), ("range(0, 5)[1, 2]", "one index"),
                       ("range(0, 5)[::0]", "must not be 0"), ('"text"[2]', "only an image or a list can be sliced")):
        assert part in printed(f"write(ones([2, 2]) * ({text}), \"x.npy\")", folder, code=2), text


# ---------------------------------------------------------------- recipes

def recipe(name, folder):
    """The pipeline of that name in the page of recipes."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    block = re.search(rf"^```fov\n(# {name}\n.*?)^```", text, re.M | re.S).group(1)
    pathlib.Path(folder, name).write_text(block, encoding="utf-8")


def near_the_phantom(slices, folder, most):
    """The error in the middle of the slices, against that of a volume of the right mean."""
    truth = array(f'circle(phantom("shepp-logan", [{ROWS}, {WIDTH}, {WIDTH}]))', folder)
    error = np.sqrt(np.mean((slices * 40 - truth) ** 2)) / truth.std()
    assert error < most, error


@test
def the_recipe_of_nexus_reconstructs_raw_frames(folder):
    data, key, angle, _ = tomo_frames(folder)
    nxtomo(f"{folder}/visit.nxs", data, key, angle, entry="entry1/tomo_entry", unpacked=False)
    needs_plugin(folder, "visit.nxs")
    recipe("nexus.fov", folder)
    center = float(run("run", "-q", "nexus.fov", "--set", "scan=visit.nxs", folder=folder).stdout)
    assert abs(center - CENTER) < 0.2, center
    near_the_phantom(array('read("slices.tif")', folder), folder, 0.6)
    assert pathlib.Path(folder, "slice.png").stat().st_size > 500


@test
def the_recipe_of_data_exchange_reconstructs_raw_frames(folder):
    p, flat, dark = frames(folder)
    p[7, 2, 20], p[31, 4, 9] = 65535, 65535
    exchange(f"{folder}/scan_001.h5", p, flat, dark)
    needs_plugin(folder, "scan_001.h5")
    recipe("exchange.fov", folder)
    center = float(run("run", "-q", "exchange.fov", "--set", "scan=scan_001.h5", folder=folder).stdout)
    assert abs(center - CENTER) < 0.6, center
    near_the_phantom(array('read("slices.zarr")', folder), folder, 0.5)
    assert pathlib.Path(folder, "preview.png").stat().st_size > 500


main()
