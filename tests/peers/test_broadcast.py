"""Images with different axes in one expression, against numpy with the axes laid out by hand."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import data, main, run, test

RNG = np.random.default_rng(11)
T, Z, Y, X, C = 7, 5, 40, 33, 3
IMAGES = {  # name: axes, values
    "movie": ("t y x", RNG.random((T, Y, X), dtype=np.float32)),
    "volumes": ("t z y x", RNG.integers(0, 250, (T, Z, Y, X), dtype=np.uint8)),
    "volume": ("z y x", RNG.integers(-300, 300, (Z, Y, X), dtype=np.int16)),
    "plane": ("y x", RNG.random((Y, X), dtype=np.float32)),
    "mask": ("y x", RNG.random((Y, X)) < 0.5),
    "colour": ("y x c", RNG.integers(0, 255, (Y, X, C), dtype=np.uint8)),
    "planar": ("c y x", RNG.random((C, Y, X))),
    "weights": ("c", np.array([0.25, 0.5, 0.125], np.float32)),
    "times": ("t", np.arange(T, dtype=np.float64)),
    "row": ("x", np.arange(X, dtype=np.int32)),
    "column": ("y x", RNG.random((Y, 1), dtype=np.float32)),
    "line": ("y x", RNG.random((1, X), dtype=np.float32)),
    "still": ("t y x", RNG.random((1, Y, X), dtype=np.float32)),
    "turned": ("x y", RNG.random((X, Y), dtype=np.float32)),
    "two": ("y x c", RNG.integers(0, 9000, (Y, X, 2), dtype=np.uint16)),
    "four": ("y x c", RNG.random((Y, X, 4))),
    "nine": ("z y x c", RNG.random((Z, Y, X, 9), dtype=np.float32)),
    "grey": ("y x c", RNG.integers(0, 255, (Y, X, 1), dtype=np.uint8)),
}


def laid(name, axes):
    """The image with the axes of a result: missing ones are one voxel long."""
    have, values = IMAGES[name]
    have = have.split()
    keep = [k for k in have if k in axes.split()]
    values = values.reshape([n for k, n in zip(have, values.shape) if k in keep])
    values = values.transpose([keep.index(k) for k in axes.split() if k in keep])
    lengths = iter(values.shape)
    return values.reshape([next(lengths) if k in keep else 1 for k in axes.split()])


def results(folder, cases, *options, environment=None):
    lines = []
    for name, (axes, values) in IMAGES.items():
        np.save(pathlib.Path(folder, name + ".npy"), values)
        lines.append(f'{name} = read("{name}.npy", axes = "{axes}")')
    lines += [f'write({text}, "out{i}.npy")' for i, text in enumerate(cases)]
    pathlib.Path(folder, "axes.fov").write_text("\n".join(lines) + "\n")
    run("run", "axes.fov", "--overwrite", "--fresh", *options, folder=folder, environment=environment)
    return [np.load(pathlib.Path(folder, f"out{i}.npy")) for i in range(len(cases))]


def f32(name, axes):
    return laid(name, axes).astype(np.float32)


CASES = {  # text: axes of the result, what numpy makes of it
    "movie - plane": ("t y x", lambda a: f32("movie", a) - f32("plane", a)),
    "plane - movie": ("t y x", lambda a: f32("plane", a) - f32("movie", a)),
    "volumes * volume": ("t z y x", lambda a: f32("volumes", a) * f32("volume", a)),
    "volumes > plane * 250": ("t z y x", lambda a: laid("volumes", a) > f32("plane", a) * np.float32(250)),
    "where(mask, colour, 0)": ("y x c", lambda a: np.where(laid("mask", a), laid("colour", a), np.uint8(0))),
    "where(mask, planar, plane)": ("c y x", lambda a: np.where(laid("mask", a), laid("planar", a), f32("plane", a))),
    "where(mask, 0, two)": ("y x c", lambda a: np.where(laid("mask", a), np.uint16(0), laid("two", a))),
    "plane * four": ("y x c", lambda a: f32("plane", a) * laid("four", a)),
    "nine / plane - volume": ("z y x c", lambda a: laid("nine", a) / laid("plane", a) - f32("volume", a)),
    "colour * weights": ("y x c", lambda a: f32("colour", a) * f32("weights", a)),
    "weights * planar": ("c y x", lambda a: f32("weights", a) * laid("planar", a)),
    "colour + planar": ("y x c", lambda a: laid("colour", a) + laid("planar", a)),
    "planar - colour": ("c y x", lambda a: laid("planar", a) - laid("colour", a)),
    "movie / (times + 1)": ("t y x", lambda a: laid("movie", a) / (laid("times", a) + 1)),
    "minimum(volume, row)": ("z y x", lambda a: np.minimum(laid("volume", a).astype(float), laid("row", a))),
    "column + line": ("y x", lambda a: f32("column", a) + f32("line", a)),
    "movie - still": ("t y x", lambda a: f32("movie", a) - f32("still", a)),
    "still * movie": ("t y x", lambda a: f32("still", a) * f32("movie", a)),
    "plane - turned": ("y x", lambda a: f32("plane", a) - f32("turned", a)),
    "turned - plane": ("x y", lambda a: f32("turned", a) - f32("plane", a)),
    "still + volume": ("z y x", lambda a: f32("still", a) + f32("volume", a)),
    "grey + colour": ("y x c", lambda a: f32("grey", a) + f32("colour", a)),
    "mask & (movie > plane)": ("t y x", lambda a: laid("mask", a) & (laid("movie", a) > laid("plane", a))),
    "(movie - plane) * (column + line) - row": (
        "t y x", lambda a: (laid("movie", a) - laid("plane", a)) * (laid("column", a) + laid("line", a))
        - laid("row", a).astype(float)),
    "arctan2(movie, plane) > arctan2(still, movie)": (
        "t y x", lambda a: np.arctan2(laid("movie", a), laid("plane", a)) > np.arctan2(laid("still", a), laid("movie", a))),
    'movie - project(movie, "t", "max")': ("t y x", lambda a: laid("movie", a) - laid("movie", a).max(0)),
    'project(volumes, "z", "max") + movie': ("t y x", lambda a: f32("volumes", "t z y x").max(1) + laid("movie", a)),
}


def compare(folder, *options, environment=None):
    for (text, (axes, make)), got in zip(CASES.items(), results(folder, CASES, *options, environment=environment)):
        expected = make(axes)
        assert got.shape == expected.shape, f"{text}: {got.shape}, not {expected.shape}"
        assert got.dtype == expected.dtype, f"{text}: {got.dtype}, not {expected.dtype}"
        assert (got == expected).all(), f"{text}: {got[got != expected][:3]}, not {expected[got != expected][:3]}"


@test
def axes_are_matched_by_name_as_numpy_does_with_axes_laid_out_by_hand(folder):
    compare(folder)


@test
def chunks_do_not_matter(folder):
    compare(folder, "--chunk", "2x16x16")
    compare(folder, "--chunk", "1x3x7x2", "--workers", "2")


@test
def every_instruction_set_gives_the_same(folder):
    compare(folder, environment={"FOVEA_ISA": "base"})


@test
def engines_do_not_matter(folder):
    compare(folder, "--engine", "processes", "--workers", "2", "--chunk", "3x20x9")


@test
def spacing_and_units_come_from_the_image_with_most_axes(folder):
    run("run", "-e", f"""brain = read("{data("nifti", "functional.nii")}")
        write(brain - project(brain, "t", "mean"), "second.nii"); write(project(brain, "t", "mean") - brain, "first.nii")
        write(brain * 1, "brain.nii")""", folder=folder)
    files = ["brain.nii", "first.nii", "second.nii"]
    plain, first, second = [[line for line in run("info", file, folder=folder).stdout.splitlines() if "nii" not in line]
                            for file in files]
    assert plain == first == second, (plain, first, second)
    import nibabel
    brain, first, second = [nibabel.load(pathlib.Path(folder, file)).get_fdata(dtype=np.float64) for file in files]
    mean = brain.mean(3, dtype=np.float64).astype(np.float32)[..., None]
    assert np.array_equal(second, (brain.astype(np.float32) - mean)) and np.array_equal(first, (mean - brain.astype(np.float32)))


@test
def a_mask_cuts_a_colour_picture_out(folder):
    run("run", "-e", f"""hopper = read("{data("tiff", "hopper_lzw.tif")}"); light = project(hopper, "c", "mean")
        write(where(light > 100, hopper, 0), "cut.png"); write(hopper, "whole.npy")""", folder=folder)
    run("convert", "cut.png", "cut.npy", folder=folder)
    whole, cut = np.load(pathlib.Path(folder, "whole.npy")), np.load(pathlib.Path(folder, "cut.npy"))
    light = (whole.astype(np.float64).sum(2) / 3).astype(np.float32)
    assert np.array_equal(cut, np.where(light[..., None] > 100, whole, 0))


@test
def mistakes_name_the_axes_and_their_lengths(folder):
    for text, words in (
        ('movie + name_axes(volume, "p y x")',
         "t y x (7 x 40 x 33) and p y x (5 x 40 x 33): the second has no axis t and the first no axis p"),
        ("colour + plane[0:39]", "y x c (40 x 33 x 3) and y x (39 x 33): y has 40 voxels in the first and 39 in the second. "
         "Axes are matched by name; name_axes(image, ...) gives them other names"),
        ("plane[:, 2:] - plane", "y x (40 x 31) and y x (40 x 33): x has 31 voxels in the first and 33 in the second"),
        ("where(mask, volume, times)", "z y x (5 x 40 x 33) and t (7): the second has no axis z and the first no axis t"),
    ):
        try:
            results(folder, [text])
        except AssertionError as error:
            assert words in str(error), f"{text}: {error}"
        else:
            raise AssertionError(f"{text} is accepted")


@test
def images_of_one_shape_are_taken_voxel_by_voxel_unless_their_axes_are_in_another_order(folder):
    cube = RNG.random((6, 6, 6), dtype=np.float32)
    other = RNG.random((6, 6, 6), dtype=np.float32)
    for name, values in (("cube", cube), ("other", other)):
        np.save(pathlib.Path(folder, name + ".npy"), values)
    for axes, expected in (("t y x", cube - other), ("a b c", cube - other), ("x y z", cube - other.transpose(2, 1, 0)),
                           ("y z x", cube - other.transpose(1, 0, 2))):
        run("run", "-e", f'write(read("cube.npy") - read("other.npy", axes = "{axes}"), "out.npy")', folder=folder)
        assert np.array_equal(np.load(pathlib.Path(folder, "out.npy")), expected), axes


main()
