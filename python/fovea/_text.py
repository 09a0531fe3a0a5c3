"""From values to the text of a pipeline."""
import math
import numbers

from ._errors import UsageError


def quoted(text):
    """A text as the language writes it."""
    for bad in "\n", "\0":
        if bad in text:
            raise UsageError(f"a text in a pipeline cannot hold {bad!r}: {text!r}")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def number(value):
    """A number as the language writes it, exactly."""
    if isinstance(value, numbers.Integral):
        return str(int(value))
    value = float(value)
    if math.isnan(value) or math.isinf(value):
        return {"nan": "(0 / 0)", "inf": "(1 / 0)", "-inf": "(-1 / 0)"}[repr(value)]  # the language has no words for them
    return repr(value)


def literal(value):
    """A plain Python or numpy value as the language writes it."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, numbers.Real):
        return number(value)
    if hasattr(value, "__fspath__"):
        return quoted(value.__fspath__())
    if hasattr(value, "tolist") and not isinstance(value, (list, tuple)):
        return literal(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    if isinstance(value, type) or hasattr(value, "name"):  # a dtype
        return quoted(getattr(value, "name", None) or value.__name__)
    raise UsageError(f"{value!r} of type {type(value).__name__} cannot be an argument of an operator")


def lines_of(targets, known=None):
    """Statements that make the targets, in order, the variable of each value by identity, and the names of the operators that
    they call. known: variables of values that need no statement."""
    names, counts, out = dict(known or {}), {}, []
    for target in targets:
        todo = [(target, False)]
        while todo:  # no recursion: chains may be thousands of operators long
            value, ready = todo.pop()
            if id(value) in names:
                continue
            if not ready:
                todo.append((value, True))
                todo.extend((i, False) for i in reversed(value._inputs) if id(i) not in names)
                continue
            counts[value._hint] = counts.get(value._hint, 0) + 1
            names[id(value)] = f"{value._hint}{counts[value._hint]}"
            line = value._line(names)
            if line is not None:
                out.append(f"{names[id(value)]} = {line}")
    return out, names, counts.keys()
