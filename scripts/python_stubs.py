#!/usr/bin/env python3
"""The types of the package fovea, for editors and type checkers, from what operators say of themselves.

    scripts/python_stubs.py FILE

scripts/wheel.py puts them into the wheel as fovea/__init__.pyi. The library of the build is asked, as the package does.
"""
import inspect
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from fovea import _descriptors as d  # noqa: E402

HEAD = (ROOT / "scripts" / "python_stubs_head.pyi").read_text()
INPUTS = {"image": "ImageLike", "image or scalar": "ImageOrNumber", "scalar": "Number", "table": "TableLike",
          "image, table or scalar": "Value"}
PARAMETERS = {"number": "Number", "numbers": "Union[Number, Sequence[Number]]", "integer": "Union[int, Scalar]", "text": "str",
              "flag": "bool", "geometry": "Value", "footprint": "Union[Value, Sequence[Any], NDArray[Any]]",
              "dtype": "DTypeLike", "list": "Union[Value, Sequence[float], NDArray[Any]]"}
RESULTS = {"image": "Image", "scalar": "Scalar", "table": "LazyTable", "image or scalar": "Image"}


def kind_of(item, is_input):
    """The type of an argument."""
    if is_input:
        return INPUTS[item["kind"]]
    if "choices" in item and item["kind"] == "choice":
        return "Literal[" + ", ".join(f'"{c}"' for c in item["choices"]) + "]"
    return PARAMETERS[item["kind"]]


def arguments(name, narrowed=None, method=False):
    """The arguments of an operator's function, as text. narrowed: types of the first inputs that differ from the usual."""
    op = d.all_operators()[name]
    kinds = [kind_of(i, True) for i in op["inputs"]] + [kind_of(p, False) for p in op["parameters"]]
    kinds = dict(zip(d.call_of(name)[0], kinds))
    for k, kind in enumerate(narrowed or ()):
        kinds[op["inputs"][k]["name"]] = kind
    out, star = [], False
    for k, p in enumerate(d.signature_of(name).parameters.values()):
        if method and k == 0:
            out.append("self")
            continue
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            out.append("*")
            star = True
        kind = kinds.get(p.name) or kinds[p.name.rstrip("_")]
        required = p.default is inspect.Parameter.empty
        out.append(f"{p.name}: {kind}" if required else f"{p.name}: Optional[{kind}] = ...")
    return out


def definition(python_name, given, result, indent="", more=()):
    """One `def`, broken into lines."""
    lines, line = [indent + m for m in more], f"{indent}def {python_name}("
    for k, one in enumerate(given):
        piece = one + (f") -> {result}: ..." if k == len(given) - 1 else ",")
        if len(line) + len(piece) > 120:
            lines, line = lines + [line.rstrip()], indent + "        "
        line += piece + " "
    return lines + [line.rstrip() if given else f"{line}) -> {result}: ..."]


def overloads(name):
    """Types of the inputs by which an operator that takes images and numbers gives an image or a number."""
    n = sum(i["kind"] == "image or scalar" for i in d.all_operators()[name]["inputs"])
    return [(["Number"] * k + ["ImageLike"], "Image") for k in range(n)] + [(["Number"] * n, "Scalar")]


def functions():
    """All operators as functions."""
    for python_name, name in sorted(d.python_names().items()):
        op = d.all_operators()[name]
        if f"\ndef {python_name}(" in HEAD:
            continue  # the package has a function of its own, which takes more than a pipeline can: array, write
        if op["result"] == "image or scalar":
            for narrowed, result in overloads(name):
                yield from definition(python_name, arguments(name, narrowed), result, more=["@overload"])
            continue
        yield from definition(python_name, arguments(name), RESULTS.get(op["result"], "Value"))


def methods(kinds, result_of_both):
    """Operators as methods of their first input."""
    for python_name, name in sorted(d.python_names().items()):
        op = d.all_operators()[name]
        if not op["inputs"] or op["inputs"][0]["kind"] not in kinds or op["result"] == "file":
            continue
        result = result_of_both if op["result"] == "image or scalar" else RESULTS.get(op["result"], "Value")
        yield from definition(python_name, arguments(name, method=True), result, "    ")


def stub():
    """The whole file."""
    parts = {"# IMAGE METHODS": methods(("image", "image or scalar"), "Image"),
             "# SCALAR METHODS": methods(("scalar", "image or scalar"), "Scalar"),
             "# TABLE METHODS": methods(("table",), "LazyTable"), "# FUNCTIONS": functions()}
    lines = []
    for line in HEAD.splitlines():
        lines += list(parts.pop(line.strip())) if line.strip() in parts else [line]
    assert not parts, parts
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(stub())
