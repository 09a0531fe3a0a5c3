"""slice, project and montage against numpy, through the language."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

try:
    import numpy as np
except ImportError as missing:
    print(f"skip views: {missing}")
    sys.exit(0)

RNG = np.random.default_rng(7)


def results(folder, array, expressions):
    """What pipeline expressions in x give for an array."""
    np.save(os.path.join(folder, "x.npy"), array)
    text = 'x = read("x.npy")\n' + "".join(f'write({e}, "r{i}.npy")\n' for i, e in enumerate(expressions))
    run("run", "-e", text, "--chunk", "x".join(str(max(n // 2, 1)) for n in array.shape), folder=folder)
    return [np.load(os.path.join(folder, f"r{i}.npy")) for i in range(len(expressions))]


@test
def slices_mean_what_they_mean_in_numpy(folder):
    x = RNG.integers(0, 1000, (9, 12, 15)).astype(np.uint16)
    indices = ["[4]", "[-1]", "[2:7]", "[:, 3]", "[:, :, -2]", "[::2, ::-3, 1:-1:4]", "[0, 1]",
               "[-3:, :-5, 14:2:-1]", "[1:2, 3:4, 5:6]", "[100:0:-2]", "[-100:100]"]
    for index, result in zip(indices, results(folder, x, ["x" + index for index in indices])):
        expected = eval("x" + index)
        assert result.dtype == x.dtype and np.array_equal(result, expected), (index, result.shape, expected.shape)


@test
def projections_are_numpys(folder):
    for dtype in (np.uint8, np.int16, np.int32, np.float32, np.float64):
        x = (RNG.random((7, 10, 13)) * 200).astype(dtype)
        cases = [(axis, method) for axis in "zyx" for method in ("max", "min", "mean", "sum", "std", "median")]
        outputs = results(folder, x, [f'project(x, "{axis}", method = "{method}")' for axis, method in cases])
        for (axis, method), result in zip(cases, outputs):
            expected = getattr(np, method)(x.astype(np.float64), axis="zyx".index(axis))
            assert np.allclose(result, expected, rtol=1e-6, atol=0), (dtype, axis, method)
            if method in ("max", "min") or np.issubdtype(dtype, np.integer) and method == "sum":
                assert np.array_equal(result, expected), (dtype, axis, method)


@test
def deviations_and_medians_of_difficult_lines(folder):
    x = RNG.normal(1e6, 1, (8, 5, 6))
    x[2, 1, 1] = np.nan
    x[:, 3, 3] = 7
    std, median, one = results(folder, x, ['project(x, "z", "std")', 'project(x, "z", "median")', 'project(x[0:1], "z", "std")'])
    assert np.allclose(std, x.std(0), rtol=1e-12, atol=0, equal_nan=True) and np.isnan(std[1, 1]) and std[3, 3] == 0
    assert np.array_equal(median, np.median(x, 0), equal_nan=True) and not one.any()


@test
def a_montage_is_a_transposition(folder):
    x = RNG.integers(0, 255, (6, 5, 4)).astype(np.uint8)
    wide, square = results(folder, x, ["montage(x, columns = 3)", "montage(x)"])
    expected = x.reshape(2, 3, 5, 4).transpose(0, 2, 1, 3).reshape(10, 12)
    assert np.array_equal(wide, expected) and np.array_equal(square, expected)


@test
def colours_of_slices_are_slices_of_colours(folder):
    x = RNG.integers(0, 50, (4, 6, 7)).astype(np.int32)
    whole, one = results(folder, x, ["colorize(x)", "colorize(x[2])"])
    assert whole.shape == (4, 6, 7, 3) and np.array_equal(whole[2], one)
    assert not whole[x == 0].any() and whole[x > 0].max(axis=-1).min() > 100


main()
