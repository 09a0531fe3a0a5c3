"""What operators say of themselves: names, inputs, parameters, defaults, documentation. Read once, when it is first needed."""
import functools
import inspect
import json
import keyword

from . import _library as l


@functools.lru_cache(None)
def all_operators():
    """Descriptors by name."""
    return {op["name"]: op for op in json.loads(l.taken(l.lib.fv_describe_all(1)))["operators"]}


@functools.lru_cache(None)
def file_operators():
    """Names of the operators that read or write files: what they give may change without the text."""
    return frozenset(name for name, op in all_operators().items() if any(p.get("file") for p in op["parameters"]))


@functools.lru_cache(None)
def all_formats():
    """Descriptors of the formats of images."""
    return json.loads(l.taken(l.lib.fv_describe_all(1)))["formats"]


@functools.lru_cache(None)
def python_names():
    """Operators by the name that they have in Python: `and` is and_."""
    return {name + "_" if keyword.iskeyword(name) else name: name for name in all_operators()}


@functools.lru_cache(None)
def call_of(name):
    """What a call of an operator needs to know: its arguments in order (inputs, then parameters), those that are footprints,
    how many inputs there are, and the kind of the result."""
    op = all_operators()[name]
    order = tuple(item["name"] for item in op["inputs"] + op["parameters"])
    footprints = frozenset(p["name"] for p in op["parameters"] if p["kind"] == "footprint")
    return order, footprints, len(op["inputs"]), op["result"]


@functools.lru_cache(None)
def input_kinds(name):
    """What each input of an operator is: image, table, scalar ... by its name."""
    return {item["name"]: item["kind"] for item in all_operators()[name]["inputs"]}


@functools.lru_cache(None)
def choices_of(name, parameter):
    """The words that a parameter of an operator takes."""
    return next(p["choices"] for p in all_operators()[name]["parameters"] if p["name"] == parameter)


def default_of(parameter):
    """The default as a Python value; inspect.Parameter.empty where there is none."""
    if parameter.get("required"):
        return inspect.Parameter.empty
    return parameter.get("default")


@functools.lru_cache(None)
def signature_of(name):
    """The signature of an operator's function."""
    op, found = all_operators()[name], []
    for item in op["inputs"]:
        default = inspect.Parameter.empty if item.get("required") else None
        found.append((item["name"], default))
    for item in op["parameters"]:
        found.append((item["name"], default_of(item)))
    seen_default, parameters = False, []
    for argument, default in found:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if default is inspect.Parameter.empty and seen_default:
            kind = inspect.Parameter.KEYWORD_ONLY
        seen_default = seen_default or default is not inspect.Parameter.empty
        safe = argument + "_" if keyword.iskeyword(argument) else argument
        parameters.append(inspect.Parameter(safe, kind, default=default))
    parameters.sort(key=lambda p: p.kind)
    return inspect.Signature(parameters)


def documentation_of(name):
    """A docstring from the descriptor."""
    op = all_operators()[name]
    lines = [op["brief"][:1].upper() + op["brief"][1:] + ".", ""]
    if op.get("doc"):
        lines += [op["doc"], ""]
    items = op["inputs"] + op["parameters"]
    if items:
        lines += ["Parameters", "----------"]
        for item in items:
            kind = item["kind"] if "choices" not in item else "one of " + ", ".join(map(str, item["choices"]))
            lines += [f"{item['name']} : {kind}", f"    {item.get('doc', '')}"]
        lines.append("")
    if op.get("example"):
        lines += ["In a pipeline's text::", "", *("    " + line for line in op["example"].splitlines()), ""]
    if op.get("see"):
        lines.append("See also: " + ", ".join(op["see"]))
    return "\n".join(lines).rstrip()


def function_of(python_name, call):
    """An operator as a Python function: call gets the operator's name and the arguments."""
    operation = python_names()[python_name]

    def function(*arguments, **named):
        return call(operation, arguments, named)
    function.__name__ = function.__qualname__ = python_name
    function.__doc__ = documentation_of(operation)
    function.__signature__ = signature_of(operation)
    return function
