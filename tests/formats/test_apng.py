#!/usr/bin/python3
"""Animated PNG: Pillow shows every frame as it was."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402


def modules():
    try:
        import numpy
        import tifffile
        from PIL import Image
        return numpy, Image, tifffile
    except ImportError:
        raise Skip("no Pillow and tifffile here") from None


def write(folder, axes, name="a.apng", *more):
    run("run", "-q", "--overwrite", "--fresh", *more, "-e", f'read("in.npy", axes = "{axes}") |> write("{name}")', folder=folder)
    return pathlib.Path(folder, name)


@test
def every_frame_is_what_pillow_shows(folder):
    np, Image, _ = modules()
    rng = np.random.default_rng(1)
    for shape, axes, dtype in (((1, 5, 7), "z y x", "uint8"), ((4, 30, 41), "t y x", "uint8"), ((3, 900, 1300), "z y x", "uint8"),
                               ((3, 40, 50, 3), "t y x c", "uint8"), ((5, 31, 17, 4), "z y x c", "uint8"),
                               ((3, 20, 30), "t y x", "uint16"), ((3, 20, 30), "t y x", "bool")):
        array = rng.integers(0, 2 if dtype == "bool" else 256, shape).astype(dtype)
        if array.shape[-1] == 4:
            array[..., 3] = 255  # Pillow blends what is transparent
        np.save(pathlib.Path(folder, "in.npy"), array)
        path = write(folder, axes)
        with Image.open(path) as image:
            assert image.n_frames == shape[0] or shape[0] == 1, (shape, image.n_frames)
            for number in range(shape[0]):
                image.seek(number)
                frame = np.asarray(image)
                wanted = array[number] * 255 if dtype == "bool" else array[number]
                assert np.array_equal(frame.reshape(wanted.shape), wanted), (shape, dtype, number)
        run("run", "-q", "--overwrite", "-e", 'read("a.apng") |> write("first.npy")', folder=folder)
        first = np.load(pathlib.Path(folder, "first.npy"))
        assert np.array_equal(first, array[0] * 255 if dtype == "bool" else array[0]), shape
        whole = path.read_bytes()
        for more in (("--chunk", "100"), ("--workers", "1"), ("--engine", "processes")):
            assert write(folder, axes, "a.apng", *more).read_bytes() == whole, (shape, more)


@test
def a_movie_is_shown_at_its_own_speed(folder):
    np, Image, tifffile = modules()
    array = np.arange(3 * 8 * 9, dtype="uint8").reshape(3, 8, 9)
    told = {"axes": "TYX", "finterval": 0.25, "unit": "um"}
    tifffile.imwrite(pathlib.Path(folder, "in.tif"), array, imagej=True, metadata=told, resolution=(1, 1))
    run("run", "-q", "-e", 'read("in.tif") |> write("a.apng")', folder=folder)
    with Image.open(pathlib.Path(folder, "a.apng")) as image:
        image.seek(1)
        assert image.info["duration"] == 250 and image.info["loop"] == 0, image.info


@test
def what_it_cannot_hold_is_refused_with_a_way_out(folder):
    for value, words in (('phantom("cells", [20, 30])', "written as .png"), ('ones([2, 2, 20, 30])', "image[0]"),
                         ('convert(phantom("foam", [3, 20, 30]), "float32")', "uint8")):
        said = run("run", "-e", f'{value} |> write("a.apng")', folder=folder, code=2).stderr
        assert "a.apng" in said and words in said, said


if __name__ == "__main__":
    main()
