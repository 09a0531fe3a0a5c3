#!/usr/bin/python3
"""Scans of diffraction patterns as programs of the field write them (made here with h5py), and results as they read them."""
import pathlib
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"skip diffraction_files: {missing}")
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
from pipelines import FOVEA, Difference, near, same, test  # noqa: E402

EV = 1.602176634e-19
WAVELENGTH = 1.98644586e-25 / (6200 * EV)
DISTANCE, DETECTOR = 7.19, 172e-6
HEIGHT, WIDTH, COUNT = 32, 24, 12
RNG = np.random.default_rng(4)
FRAMES = RNG.poisson(5, (COUNT, HEIGHT, WIDTH)).astype(np.uint16)
PIXEL = np.array([WAVELENGTH * DISTANCE / (n * DETECTOR) for n in (HEIGHT, WIDTH)])  # y, x
AT = np.array([(3.5 * (i // 4), 4.25 * (i % 4)) for i in range(COUNT)])  # y, x in pixels
METRES = AT * PIXEL + 1e-3
XYZ = np.column_stack([METRES[:, ::-1], np.zeros(COUNT)])


def fovea(folder, *arguments, good=True):
    done = subprocess.run([FOVEA, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    if good == bool(done.returncode):
        raise Difference(f"fovea {' '.join(arguments)} ends with {done.returncode}: {done.stderr.strip()}")
    return done.stdout if good else done.stderr


def positions(folder, call):
    """They show themselves where delta functions of an object are cut out: row and column of the corner of each frame."""
    n = 64
    ramp = np.arange(n * n, dtype=float).reshape(n, n)
    np.save(f"{folder}/ramp.npy", (ramp + 1).astype(np.complex128))
    point = np.zeros((2, 2), np.complex64)
    point[0, 0] = 1
    np.save(f"{folder}/point.npy", point)
    fovea(folder, "run", "--quiet", "--overwrite", "-e",
          f'write(diffract(read("ramp.npy"), read("point.npy"), {call}), "out.npy")')
    return np.load(f"{folder}/out.npy")


def given(folder, at):
    return positions(folder, "[" + ", ".join(f"{v:.9g}" for p in at for v in p) + "]")


def check(folder, name, call=None, at=AT):
    near(positions(folder, call or f'read_positions("{name}")'), given(folder, at - at.min(0)), name, relative=1e-4)


def check_frames(folder, name, frames=FRAMES):
    fovea(folder, "run", "--quiet", "--overwrite", "-e", f'write(read("{name}"), "frames.npy")')
    same(np.load(f"{folder}/frames.npy"), frames, name)
    fovea(folder, "run", "--quiet", "--overwrite", "-e", f'write(read("{name}")[3:10, 4:20, 5:9], "part.npy")')
    same(np.load(f"{folder}/part.npy"), frames[3:10, 4:20, 5:9], name)
    about = fovea(folder, "info", name)
    if "frame" not in about:
        raise Difference(f"the axes of {name} are not named: {about}")
    return about


def write_cxi(path, energy=6200 * EV, translation=XYZ, frames=FRAMES):
    with h5py.File(path, "w") as f:
        f["cxi_version"] = 160
        detector = f.create_group("entry_1/instrument_1/detector_1")
        detector["data"] = frames
        detector["data"].attrs["axes"] = "translation:y:x"
        detector["distance"] = DISTANCE
        detector["x_pixel_size"] = detector["y_pixel_size"] = DETECTOR
        detector["mask"] = (FRAMES[0] == 0).astype(np.uint32)
        f["entry_1/instrument_1/source_1/energy"] = energy
        f["entry_1/instrument_1/source_1/illumination"] = np.ones((HEIGHT, WIDTH), np.complex64)
        f["entry_1/sample_1/geometry_1/translation"] = translation
        f["entry_1/data_1/data"] = h5py.SoftLink("/entry_1/instrument_1/detector_1/data")
        f["entry_1/data_1/translation"] = h5py.SoftLink("/entry_1/sample_1/geometry_1/translation")


@test
def cxi_in_si_units():
    with tempfile.TemporaryDirectory() as folder:
        write_cxi(f"{folder}/scan.cxi")
        about = check_frames(folder, "scan.cxi")
        for words in ("wavelength 1.99975e-10 m (6.2 keV)", "detector distance 7.19 m", "object pixel", "positions 12"):
            if words not in " ".join(about.split()):
                raise Difference(f"'{words}' is missing in {about}")
        check(folder, "scan.cxi")
        check(folder, "scan.cxi", 'read_positions("scan.cxi", sign = [1, -1])', AT * (1, -1))
        cut = AT * (16 / HEIGHT, 12 / WIDTH)  # smaller frames, larger pixels
        check(folder, "scan.cxi", 'read_positions("scan.cxi", size = [16, 12])', cut)
        half = positions(folder, 'read_positions("scan.cxi", first = 1, every = 2)')
        near(half, given(folder, AT[1::2]), "every other position", relative=1e-4)
        fovea(folder, "run", "--quiet", "-e", 'write(read("scan.cxi", path = "mask") == 0, "mask.npy")\n'
              'write(read("scan.cxi", path = "probe"), "probe.npy")')
        same(np.load(f"{folder}/mask.npy"), FRAMES[0] != 0)
        same(np.load(f"{folder}/probe.npy"), np.ones((HEIGHT, WIDTH), np.complex64))
        write_cxi(f"{folder}/turned.cxi", translation=XYZ.T)
        check(folder, "turned.cxi")
        write_cxi(f"{folder}/swapped.cxi", translation=XYZ[:, [1, 0, 2]])
        check(folder, "swapped.cxi", 'read_positions("swapped.cxi", order = "yx")')


@test
def older_cxi():
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(f"{folder}/old.cxi", "w") as f:
            f["entry_1/data_1/data"] = FRAMES
            f["entry_1/data_1/translation"] = XYZ
            f["entry_1/instrument_1/source_1/wavelength"] = WAVELENGTH
            f["entry_1/instrument_1/detector_1/corner_position"] = [0.01, 0.01, -DISTANCE]
            f["entry_1/instrument_1/detector_1/x_pixel_size"] = DETECTOR
            f["entry_1/instrument_1/detector_1/y_pixel_size"] = DETECTOR
        check_frames(folder, "old.cxi")
        check(folder, "old.cxi")


@test
def nexus_rasters_with_the_energy_of_the_beam():
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(f"{folder}/raster.nxs", "w") as f:
            f["cxi_version"] = 160
            f.attrs["default"] = "entry_1"
            data = FRAMES.reshape(3, 4, HEIGHT, WIDTH)
            f["entry_1/instrument_1/detector_1/data"] = data
            f.create_dataset("entry_1/data_1/data", data=data, chunks=(1, 2, 16, 24), compression="gzip")
            f["entry_1/data_1"].attrs["signal"] = "data"
            f["entry_1/instrument_1/detector_1/translation"] = XYZ
            f["entry_1/instrument_1/detector_1/distance"] = DISTANCE
            f["entry_1/instrument_1/detector_1/x_pixel_size"] = DETECTOR
            f["entry_1/instrument_1/detector_1/y_pixel_size"] = DETECTOR
            f["entry_1/instrument_1/source_1/energy"] = 3.0e9 * EV  # of the electrons of the machine
            f["entry_1/instrument_1/beam_1/incident_beam_energy"] = 6.2
            f["entry_1/instrument_1/beam_1/incident_beam_energy"].attrs["units"] = "keV"
        check_frames(folder, "raster.nxs")
        check(folder, "raster.nxs")


@test
def scans_of_ptypy():
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(f"{folder}/scan.ptyd", "w") as f:
            f["meta/energy"] = 6.2
            f["meta/distance"] = DISTANCE
            f["meta/psize"] = [DETECTOR, DETECTOR]
            f["meta/shape"] = [HEIGHT, WIDTH]
            f["meta/center"] = [HEIGHT / 2, WIDTH / 2]
            f["meta/propagation"] = "farfield"
            for k, part in enumerate((np.s_[:5], np.s_[5:8], np.s_[8:])):
                f[f"chunks/{k}/data"] = FRAMES[part]
                f[f"chunks/{k}/positions"] = METRES[part]
                f[f"chunks/{k}/indices"] = np.arange(COUNT)[part]
                f[f"chunks/{k}/weights"] = np.zeros(0)
        about = check_frames(folder, "scan.ptyd")
        if "row 16, column 12" not in about:
            raise Difference(f"where the beam is is missing in {about}")
        check(folder, "scan.ptyd")
        fovea(folder, "run", "--quiet", "-e", 'write(read("scan.ptyd", path = "/chunks/1/data"), "one.npy")')
        same(np.load(f"{folder}/one.npy"), FRAMES[5:8])


@test
def other_programs():
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(f"{folder}/fold_slice.h5", "w") as f:
            f["dp"] = FRAMES
            f["ppX"], f["ppY"], f["lambda"], f["dx"] = METRES[None, :, 1], METRES[None, :, 0], WAVELENGTH, PIXEL[0]
        check_frames(folder, "fold_slice.h5")
        check(folder, "fold_slice.h5", at=AT * PIXEL / PIXEL[0])
        with h5py.File(f"{folder}/ptylab.hdf5", "w") as f:
            f["ptychogram"], f["encoder"], f["wavelength"], f["dxd"], f["zo"] = FRAMES, METRES, WAVELENGTH, DETECTOR, DISTANCE
        check_frames(folder, "ptylab.hdf5")
        check(folder, "ptylab.hdf5")
        with h5py.File(f"{folder}/para.hdf5", "w") as f:  # positions and frames are two files
            f["object"] = np.ones((1, 64, 64), np.complex64)
            f["object"].attrs["pixel_height_m"], f["object"].attrs["pixel_width_m"] = PIXEL
            f["probe"] = np.ones((1, 1, HEIGHT, WIDTH), np.complex64)
            f["probe_position_y_m"], f["probe_position_x_m"] = METRES.T
        check(folder, "para.hdf5")
        np.savez(f"{folder}/scan.npz", frames=FRAMES, positions=AT, extra=np.zeros(3))
        fovea(folder, "run", "--quiet", "--overwrite", "-e", 'write(read("scan.npz", path = "frames"), "frames.npy")')
        same(np.load(f"{folder}/frames.npy"), FRAMES)
        text = "# x y, in micrometres\n\n" + "".join(f"{x * 1e6:.9g}\t{y * 1e6:.9g} 0\n" for y, x in METRES)
        pathlib.Path(folder, "at.txt").write_text(text)
        micrometres = PIXEL[0] * 1e6
        check(folder, "at.txt", f'read_positions("at.txt", pixel = {micrometres!r})', AT * PIXEL / PIXEL[0])
        check(folder, "scan.npz", 'read_positions("scan.npz", path = "positions", order = "yx")')


@test
def what_cannot_be_is_told():
    def told(words, call):
        message = fovea(folder, "run", "-e", f'write(dpc(read("ok.cxi"), positions = {call}), "x.npy")', good=False)
        if words not in message:
            raise Difference(f"'{words}' is missing in: {message}")

    with tempfile.TemporaryDirectory() as folder:
        write_cxi(f"{folder}/ok.cxi")
        write_cxi(f"{folder}/ev.cxi", energy=6200.0)
        told("looks like electronvolts, and CXI wants joule", 'read_positions("ev.cxi")')
        write_cxi(f"{folder}/few.cxi", translation=XYZ[:-1])
        told("12 frames and 11 positions", 'read_positions("few.cxi")')
        write_cxi(f"{folder}/micro.cxi", translation=XYZ * 1e6)
        told("they are in another unit", 'read_positions("micro.cxi")')
        np.save(f"{folder}/metres.npy", METRES)
        told("they are in another unit", 'read_positions("metres.npy", order = "yx")')
        pathlib.Path(folder, "words.txt").write_text("nothing\nbut words\n")
        told("holds 0 positions", 'read_positions("words.txt")')
        bad = XYZ.copy()
        bad[4, 1] = np.nan
        write_cxi(f"{folder}/nan.cxi", translation=bad)
        told("position 4 is not finite", 'read_positions("nan.cxi")')
        with h5py.File(f"{folder}/ok.cxi", "a") as f:
            del f["entry_1/instrument_1/detector_1/distance"]
        told("there is no distance of the detector", 'read_positions("ok.cxi")')


@test
def results_are_read_as_the_field_expects():
    with tempfile.TemporaryDirectory() as folder:
        write_cxi(f"{folder}/scan.cxi")
        obj = (RNG.normal(size=(40, 50)) + 1j * RNG.normal(size=(40, 50))).astype(np.complex64)
        np.save(f"{folder}/object.npy", obj)
        fovea(folder, "run", "--quiet", "-e", 'write(read("scan.cxi")[2:9], "part.cxi")\n'
              'write(read("object.npy"), "object.cxi")\nwrite(read("object.npy"), "object.h5")')
        with h5py.File(f"{folder}/part.cxi") as f:
            if f["cxi_version"][()] != 160 or f["cxi_version"].shape or f["cxi_version"].dtype.kind != "i":
                raise Difference(f"cxi_version is {f['cxi_version'][()]!r}")
            same(f["entry_1/data_1/data"][()], FRAMES[2:9])
            same(f["entry_1/instrument_1/detector_1/data"][()], FRAMES[2:9])
            near(f["entry_1/instrument_1/detector_1/x_pixel_size"][()], DETECTOR)
        with h5py.File(f"{folder}/object.cxi") as f:
            same(f["entry_1/image_1/data"][()], obj)
            same(f["entry_1/data_1/data"][()], obj)
            if f["entry_1/image_1/data_space"][()] not in (b"real", [b"real"]) or f["entry_1/image_1/is_fft_shifted"][()] != 0:
                raise Difference("what the image is is not told")
        with h5py.File(f"{folder}/object.h5") as f:
            same(f["data"][()], obj)
        for name in ("object.cxi", "object.h5"):
            fovea(folder, "run", "--quiet", "--overwrite", "-e", f'write(read("{name}"), "again.npy")')
            same(np.load(f"{folder}/again.npy"), obj)


@test
def the_example_goes_from_a_cxi_file_to_the_phase():
    examples = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, examples / "ptycho_scan.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        fovea(folder, "run", "--quiet", "--set", "iterations=25", str(examples / "ptycho_cxi.fov"))
        with h5py.File(f"{folder}/object.cxi") as f:
            phase = np.angle(f["entry_1/image_1/data"][()])
        y, x = np.mgrid[:phase.shape[0], :phase.shape[1]] - (88 - 20)  # the middle of the star, less what was cut off
        part = (np.hypot(y, x) > 25) & (np.hypot(y, x) < 50)
        metal = np.sin(18 * np.arctan2(y, x)) > 0
        step = np.median(phase[part & ~metal]) - np.median(phase[part & metal])
        if not 0.7 < step < 0.9:
            raise Difference(f"the star is {step:.3f} radians deep, not 0.8")
        for name in ("look.png", "phase.png", "frc.png", "residuals.csv"):
            if not pathlib.Path(folder, name).stat().st_size:
                raise Difference(f"{name} is empty")


test.main()
