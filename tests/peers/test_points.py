"""Point-wise operators against numpy, in all element types."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
SMALL = {"bool", "uint8", "int8", "uint16", "int16", "float32"}
RNG = np.random.default_rng(7)
SHAPE = (37, 53)


def image(dtype, seed=0):
    """Values over the whole type; floats with zeros, infinities and nan."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(SHAPE) < 0.5
    if dtype.startswith("float"):
        a = (rng.standard_normal(SHAPE) * 10.0 ** rng.integers(-4, 3, SHAPE)).astype(dtype)
        a.flat[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5]
        return a
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, SHAPE, dtype=dtype, endpoint=True)


def evaluate(folder, images, expressions):
    """Results of pipeline expressions in named images, computed in one run."""
    for name, array in images.items():
        np.save(os.path.join(folder, name + ".npy"), array)
    lines = [f'{name} = read("{name}.npy")' for name in images]
    lines += [f'write({text}, "out{i}.npy")' for i, text in enumerate(expressions)]
    pathlib.Path(folder, "points.fov").write_text("\n".join(lines) + "\n")
    run("run", "points.fov", "--overwrite", folder=folder)
    return [np.load(os.path.join(folder, f"out{i}.npy")) for i in range(len(expressions))]


def promoted(*arrays):
    kind = np.float32 if all(a.dtype.name in SMALL for a in arrays) else np.float64
    return [a.astype(kind) for a in arrays]


def check(got, expected, ulps, what):
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, not {expected.dtype}"
    if ulps == 0 or got.dtype.kind != "f":
        same = (got == expected) | ((got != got) & (expected != expected))
    else:
        with np.errstate(all="ignore"):
            near = np.abs(got - expected) <= ulps * np.spacing(np.abs(expected))
        same = near | (got == expected) | ((got != got) & (expected != expected))
    assert same.all(), f"{what}: {got[~same][:3]}, not {expected[~same][:3]}"


ARITHMETIC = {"a + b": np.add, "a - b": np.subtract, "a * b": np.multiply, "a / b": np.true_divide, "a % b": np.remainder}
COMPARISON = {"a == b": np.equal, "a != b": np.not_equal, "a < b": np.less, "a <= b": np.less_equal, "a > b": np.greater,
              "a >= b": np.greater_equal}


@test
def arithmetic_of_all_pairs_of_types_equals_numpy_in_float(folder):
    for first in TYPES:
        for second in TYPES[::3] + [first]:
            a, b = image(first, 1), image(second, 2)
            x, y = promoted(a, b)
            with np.errstate(all="ignore"):
                for text, got in zip(ARITHMETIC, evaluate(folder, {"a": a, "b": b}, ARITHMETIC)):
                    check(got, ARITHMETIC[text](x, y), 0, f"{text} of {first} and {second}")


@test
def comparisons_of_equal_types_equal_numpy(folder):
    for dtype in TYPES:
        a, b = image(dtype, 1), image(dtype, 2)
        b[::2] = a[::2]
        for text, got in zip(COMPARISON, evaluate(folder, {"a": a, "b": b}, COMPARISON)):
            check(got, COMPARISON[text](a, b), 0, f"{text} of {dtype}")


@test
def integers_compare_with_numbers_as_numpy_does(folder):
    for dtype in TYPES[1:7]:
        a = image(dtype, 1)
        for number in ("0.5", "3.7", "100", "-1", "70000.25"):
            texts = {f"a {sign} {number}": function for sign, function in
                     (("==", np.equal), ("<", np.less), (">=", np.greater_equal))}
            for text, got in zip(texts, evaluate(folder, {"a": a}, texts)):
                check(got, texts[text](a.astype(np.float64), float(number)), 0, f"{text} of {dtype}")


@test
def numbers_take_the_type_of_a_float32_image(folder):
    a = image("float32", 3)
    texts = {"a * 0.1": a * np.float32(0.1), "1 - a / 255": np.float32(1) - a / np.float32(255),
             "a > 0.1": a > np.float32(0.1)}
    for text, got in zip(texts, evaluate(folder, {"a": a}, texts)):
        check(got, texts[text], 0, text)


FUNCTIONS = {"sqrt": np.sqrt, "square": np.square, "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10,
             "sin": np.sin, "cos": np.cos, "tan": np.tan, "arctan": np.arctan, "tanh": np.tanh, "negative": np.negative}


@test
def functions_are_within_two_ulp_of_numpy(folder):
    for dtype in TYPES:
        a = image(dtype, 1)
        x, = promoted(a)
        wide = x.astype(np.longdouble)
        with np.errstate(all="ignore"):
            for name, got in zip(FUNCTIONS, evaluate(folder, {"a": a}, [f"{name}(a)" for name in FUNCTIONS])):
                check(got, FUNCTIONS[name](wide).astype(x.dtype), 2, f"{name} of {dtype}")


@test
def functions_of_two_images_are_within_two_ulp_of_numpy(folder):
    for dtype in ("uint8", "float32", "float64"):
        a, b = image(dtype, 1), image(dtype, 2)
        x, y = promoted(a, b)
        with np.errstate(all="ignore"):
            power, angle = evaluate(folder, {"a": a, "b": b}, ["a ** b", "arctan2(a, b)"])
            check(power, np.power(x.astype(np.longdouble), y.astype(np.longdouble)).astype(x.dtype), 2, f"power of {dtype}")
            check(angle, np.arctan2(x.astype(np.longdouble), y.astype(np.longdouble)).astype(x.dtype), 2, f"arctan2 of {dtype}")


@test
def operators_that_keep_the_type_equal_numpy(folder):
    for dtype in TYPES:
        a, b = image(dtype, 1), image(dtype, 2)
        least = np.iinfo(dtype).min if dtype.startswith("int") else None
        real, flag = dtype[0] == "f", dtype == "bool"
        with np.errstate(all="ignore"):
            size = a if flag else np.abs(a)
            if least is not None:
                size = np.where(a == least, np.iinfo(dtype).max, size).astype(dtype)
            texts = {"abs(a)": size, "sign(a)": a if flag else np.sign(a), "floor(a)": np.floor(a) if real else a,
                     "ceil(a)": np.ceil(a) if real else a, "round(a)": np.round(a) if real else a,
                     "minimum(a, b)": np.minimum(a, b), "maximum(a, b)": np.maximum(a, b),
                     "where(b > a, a, b)": np.where(b > a, a, b),
                     "clip(a, 3, 90)": np.ones_like(a) if flag else np.clip(a, a.dtype.type(3), a.dtype.type(90))}
        for text, got in zip(texts, evaluate(folder, {"a": a, "b": b}, texts)):
            check(got, texts[text], 0, f"{text} of {dtype}")


@test
def bits_equal_numpy(folder):
    for dtype in TYPES[:9]:
        a, b = image(dtype, 1), image(dtype, 2)
        for got, wanted in zip(evaluate(folder, {"a": a, "b": b}, ["a & b", "a | b", "!a"]), (a & b, a | b, ~a)):
            check(got, wanted, 0, dtype)


@test
def special_values_are_found(folder):
    for dtype in ("float32", "float64", "int16"):
        a = image(dtype, 1)
        texts = {"isnan(a)": np.isnan(a), "isinf(a)": np.isinf(a), "isfinite(a)": np.isfinite(a)}
        for text, got in zip(texts, evaluate(folder, {"a": a}, texts)):
            check(got, texts[text], 0, f"{text} of {dtype}")


@test
def convert_truncates_and_saturates(folder):
    for first in TYPES:
        a = image(first, 1)
        results = evaluate(folder, {"a": a}, [f'convert(a, "{second}")' for second in TYPES])
        for second, got in zip(TYPES, results):
            if second == "bool":
                expected = a != 0
            elif second.startswith("float"):
                expected = a.astype(second)
            else:
                info = np.iinfo(second)
                far = np.longdouble(2) ** 70
                wide = np.trunc(np.nan_to_num(a.astype(np.longdouble), nan=0, posinf=far, neginf=-far))
                top, bottom = wide >= info.max, wide <= info.min
                expected = np.where(top | bottom, 0, wide).astype(second)
                expected[top], expected[bottom] = info.max, info.min
            check(got, expected, 0, f"{first} to {second}")


@test
def rescale_reaches_both_ends(folder):
    for dtype in ("uint8", "int16", "int32", "float32", "float64"):
        a = RNG.integers(-90 if dtype[0] != "u" else 3, 120, SHAPE).astype(dtype)
        got, other, flat = evaluate(folder, {"a": a}, ["rescale(a)", "rescale(a, -2, 5)", "rescale(a * 0, 3, 9)"])
        assert got.dtype == np.float32 and got.min() == 0 and got.max() == 1
        wide = a.astype(np.float64)
        unit = (wide - wide.min()) / (wide.max() - wide.min())
        assert np.abs(got - unit).max() < 1e-6 and np.abs(other - (unit * 7 - 2)).max() < 2e-6
        assert (flat == 3).all()


@test
def different_shapes_are_an_error_that_names_both(folder):
    np.save(os.path.join(folder, "a.npy"), np.zeros((3, 4)))
    np.save(os.path.join(folder, "b.npy"), np.zeros((4, 3)))
    done = run("run", "-e", 'write(read("a.npy") + read("b.npy"), "c.npy")', folder=folder, code=2)
    assert "3 x 4" in done.stderr and "4 x 3" in done.stderr, done.stderr


main()
