"""One expression of the language, computed at once on arrays: what the drop-ins for other packages call."""
import numpy as np

from . import _prepared
from ._text import literal


def run(expression, axes=None, **arrays):
    """The value of an expression, an array or a table. Its variables are the named arrays; axes names theirs, if not z, y, x."""
    return _prepared.call(f"result = {expression}\n", arrays, ("result",), axes and tuple(axes.split()))[0]


def call(operator, image, *, named=None, dtype=None, **parameters):
    """What an operator makes of one array, with parameters as Python values; None leaves one out. dtype: the type that the array
    gets first."""
    given = "".join([f", {name} = {_word(value)}" for name, value in parameters.items() if value is not None])
    return run(f"{operator}({typed(image, dtype)}{given})", named, a=image)


def typed(image, dtype):
    """The variable a, which is that array, in an element type: the library converts without another array."""
    return "a" if dtype is None or image.dtype == dtype else f'convert(a, "{np.dtype(dtype).name}")'


def _word(value):
    """A value as the language writes it; the usual types without a detour, because small calls are made of them."""
    kind = type(value)
    if kind is float or kind is int:
        return repr(value)
    if kind is list:
        return "[" + ", ".join([_word(one) for one in value]) + "]"
    return literal(value)
