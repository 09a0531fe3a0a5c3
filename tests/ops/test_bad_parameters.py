"""Bad parameters of every operator of an analysis: the message names the parameter, the value and what is allowed.

A table has one good call of each operator. Bad values follow from what its help says about each parameter; they are written into
pipelines, whose messages are looked at line by line. What the help cannot say (shapes and types that do not fit) is listed.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

FAMILIES = ("filter", "threshold", "morphology", "segmentation", "measurement", "statistics", "footprint")
IMAGES = """grey = convert(phantom("cells", [40, 50], seed = 1), "float32")
mask = grey > 100
marks = label(mask)
sizes = measure(marks)
volume = zeros([5, 6, 7])
wave = read("wave.npy")
"""
FIRST = IMAGES.count("\n") + 1  # line of the first call

# Inputs of a good call where they are not one grey image, and parameters that it needs.
INPUTS = {"fill_holes": "mask", "remove_small": "mask", "clear_border": "mask", "label": "mask", "objects": "mask",
          "measure": "marks", "keep": "marks, sizes", "neighbours": "marks", "boundaries": "marks",
          "expand_labels": "marks", "relabel": "marks", "watershed": "grey, marks",
          "watershed_queue": "grey, marks", "hulls": "marks", "overlaps": "marks, marks",
          "percentiles": "marks, grey", "track": 'name_axes(label(volume > 0), "t y x")',
          "reconstruct": "grey, grey", "hysteresis": "grey, 3, 7", "ball": "", "box": "", "disk": "",
          "cross": "", "pattern": "", "mesh": "volume", "approx": "mean(grey)"}
NEEDED = {"approx": {"error": "0.1"},
          "gaussian": {"sigma": "1"}, "gaussian_laplace": {"sigma": "1"}, "gaussian_gradient_magnitude": {"sigma": "1"},
          "difference_of_gaussians": {"low_sigma": "1"}, "convolve": {"kernel": "[1, 2, 3, 4]"}, "rank": {"rank": "1"},
          "percentile": {"percentile": "20"}, "keep": {"condition": '"voxels > 3"'}, "quantile": {"q": "0.5"},
          "ball": {"radius": "2"}, "disk": {"radius": "2"}, "box": {"size": "3"},
          "pattern": {"values": "[0, 1, 0, 1, 1, 0, 0, 0, 1]"}, "profile": {"start": "[0, 0]", "end": "[5, 5]"}}
TABLES = ("measure", "objects", "neighbours", "profile", "blobs_log", "blobs_dog", "blobs_doh", "histogram", "hulls", "overlaps",
          "percentiles", "track", "mesh")


def operators(folder):
    listed = json.loads(run("ops", "--json", folder=folder).stdout)["operators"]
    return [op for op in listed if op["family"] in FAMILIES]


def call(op, **changed):
    """A call of an operator with good parameters but for the changed ones."""
    name = op["name"]
    given = ", ".join(f"{key} = {value}" for key, value in {**NEEDED.get(name, {}), **changed}.items())
    text = f"{name}({', '.join(part for part in (INPUTS.get(name, 'grey'), given) if part)})"
    return f"erode(grey, {text})" if op["family"] == "footprint" else text


def bad_values(parameter):
    """Values that the help excludes, and what the message must have beside the parameter's name."""
    kind = parameter["kind"]
    if kind in ("number", "numbers", "integer"):
        yield '"many"', "expected"
        if "minimum" in parameter:
            yield f"{parameter['minimum'] - 1:.17g}", f"{parameter['minimum'] - 1:g}"
        if "above" in parameter:
            yield f"{parameter['above']:.17g}", f"{parameter['above']:g}"
        if parameter.get("maximum", 1e30) < 1e12:
            yield f"{parameter['maximum'] * 2 + 1:.17g}", "must be"
        if kind == "integer":
            yield "1.5", "1.5"
        if kind != "numbers":
            yield "[1, 2, 3]", "expected"
    elif kind == "choice":
        yield '"nonsense"', parameter["choices"][0]
        yield "3", "expected"
    elif kind == "flag":
        yield "3", "expected"
    elif kind == "text":
        yield "3", "expected"
    elif kind == "footprint":
        yield "3", "expected a footprint"


def messages(calls, folder, at_once=100):
    """Greatest exit status, and the message about each call; the command tells only so many at once."""
    worst, found = 0, {}
    for start in range(0, len(calls), at_once):
        code, some = tell(calls[start:start + at_once], folder)
        worst = max(worst, code)
        found.update({start + index: text for index, text in some.items()})
    return worst, found


def tell(calls, folder):
    """Exit status and messages of a pipeline that has one call a line."""
    name = [f'out{index}.{"csv" if text.split("(")[0] in TABLES else "npy"}' for index, text in enumerate(calls)]
    lines = [f'write({text}, "{file}")' for text, file in zip(calls, name)]
    write_wave(folder)
    pathlib.Path(folder, "all.fov").write_text(IMAGES + "\n".join(lines) + "\n")
    done = run("run", "-q", "all.fov", folder=folder, code=None)
    found = {}
    for number, text in re.findall(r"^all\.fov:(\d+):\d+: error: (.*)$", done.stderr, re.M):
        found.setdefault(int(number) - FIRST, text)
    return done.returncode, found


def write_wave(folder):
    """An image of complex numbers, without numpy."""
    header = "{'descr': '<c8', 'fortran_order': False, 'shape': (4, 5), }"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    pathlib.Path(folder, "wave.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(4 * 5 * 8))


@test
def the_good_calls_are_accepted(folder):
    calls = [call(op) for op in operators(folder) if op["result"] != "scalar"]
    code, found = messages(calls, folder)
    assert code == 0, "; ".join(f"{calls[index]}: {text}" for index, text in found.items())


@test
def values_that_the_help_excludes_are_named(folder):
    cases = [(op, parameter["name"], value, words) for op in operators(folder) for parameter in op["parameters"]
             for value, words in bad_values(parameter)]
    assert len(cases) > 200, len(cases)
    calls = [call(op, **{name: value}) for op, name, value, _ in cases]
    code, found = messages(calls, folder)
    wrong = [] if code == 2 else [f"exit status {code}"]
    for index, (op, name, value, words) in enumerate(cases):
        text = found.get(index, "accepted")
        if name not in text or words not in text or not re.search("must be|expected|give one", text):
            wrong.append(f"{calls[index]}: {text}")
    assert not wrong, f"{len(wrong)} of {len(cases)}: " + "; ".join(wrong[:40])


MISFITS = [
    ("gaussian(grey, [1, 2, 3])", "sigma has 3 numbers", "one per axis"),
    ("median(grey, [3, 3, 3])", "size has 3 numbers", "one per axis"),
    ("median(grey, 2.5)", "size = 2.5", "whole number"),
    ("local(grey, 4)", "block_size = 4", "odd"),
    ("sauvola(grey, 8)", "window_size = 8", "odd"),
    ("erode(grey, box(4))", "size = 4", "odd"),
    ("rank(grey, 9, size = 3)", "rank = 9", "-9"),
    ("sobel(grey, axis = 2)", "axis = 2", "1"),
    ("difference_of_gaussians(grey, 3, 1)", "high_sigma = 1", "low_sigma"),
    ("convolve(grey, [1, 2, 3])", "3", "square"),
    ("convolve(grey, volume)", "weights have 3 axes", "2"),
    ("matmul(grey, volume)", "a has 2 axes and b 3", "as many as"),
    ("distance(grey, sampling = [1, 1, 1])", "sampling has 3 numbers", "one per axis"),
    ("distance(grey, sampling = 2, physical = true)", "physical", "sampling"),
    ("fill_holes(grey)", "float32", "bool"),
    ("remove_small(grey)", "float32", "bool"),
    ("clear_border(grey)", "float32", "bool"),
    ("fill_holes(mask, connectivity = 3)", "connectivity = 3", "2"),
    ("local_maxima(grey, connectivity = 3)", "connectivity = 3", "2"),
    ("label(mask, connectivity = 3)", "connectivity = 3", "2"),
    ("watershed(grey, marks, connectivity = 3)", "connectivity = 3", "2"),
    ("reconstruct(grey, volume)", "shape", "40 x 50"),
    ("reconstruct(mask, grey)", "bool", "float32"),
    ("watershed(grey, volume)", "markers", "40 x 50"),
    ("watershed(grey, marks, volume > 0)", "mask", "40 x 50"),
    ("watershed(grey, grey)", "markers", "float32"),
    ("watershed(grey, marks, grey)", "mask", "bool"),
    ("measure(grey)", "labels", "float32"),
    ("measure(marks, volume)", "intensity", "40 x 50"),
    ('measure(marks, properties = "volume weight")', "weight", "volume"),
    ("neighbours(grey)", "labels", "float32"),
    ("boundaries(grey)", "labels", "float32"),
    ("relabel(grey)", "labels", "float32"),
    ("expand_labels(grey, 3)", "labels", "float32"),
    ("label(grey)", "float32", "image > 0"),
    ('keep(grey, sizes, "voxels > 3")', "labels", "float32"),
    ('keep(marks, sizes, "weight > 3")', "weight", "voxels"),
    ('keep(marks, sizes, "voxels >")', "condition", ""),
    ("blobs_log(grey, min_sigma = 5, max_sigma = 2)", "max_sigma", "min_sigma"),
    ("blobs_dog(grey, min_sigma = 5, max_sigma = 2)", "max_sigma", "min_sigma"),
    ("blobs_doh(grey, min_sigma = 5, max_sigma = 2)", "max_sigma", "min_sigma"),
    ("blobs_doh(volume)", "image has 3", "two are needed"),
    ("profile(grey, [0, 0, 0], [5, 5])", "start", "2"),
    ("histogram(grey, range = [5, 2])", "range", "5"),
    *((f"{name}(wave)", "complex64", f"{name}: ") for name in (
        "median", "minimum_filter", "maximum_filter", "variance", "local", "sauvola", "erode", "open", "tophat", "unsharp",
        "distance", "local_maxima", "h_maxima", "label", "fill_holes", "peaks", "blobs_log")),
]


@test
def images_and_lists_that_do_not_fit_are_named(folder):
    calls = [text for text, _, _ in MISFITS]
    code, found = messages(calls, folder)
    wrong = [] if code == 2 else [f"exit status {code}"]
    for index, (text, *words) in enumerate(MISFITS):
        said = found.get(index, "accepted")
        if not all(word in said for word in words):
            wrong.append(f"{text}: {said}")
    assert not wrong, f"{len(wrong)} of {len(MISFITS)}: " + "; ".join(wrong)


@test
def an_unknown_parameter_gets_a_suggestion(folder):
    code, found = messages(["gaussian(grey, sgima = 2)", "erode(grey, footprnt = box(3))"], folder)
    assert code == 2 and "sigma" in found[0] and "footprint" in found[1], found


main()
