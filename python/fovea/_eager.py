"""One expression of the language, computed at once on arrays: what the drop-ins for other packages call."""
import numpy as np

from . import _library as l
from . import _values
from ._compute import _options, _Pipeline, _Pixels, _run
from ._tables import Table
from ._text import literal


def run(expression, axes=None, **arrays):
    """The value of an expression, an array or a table. Its variables are the named arrays; axes names theirs, if not z, y, x."""
    with _Pipeline() as pipeline:
        for name, array in arrays.items():
            image = _values.array(array, axes=axes if axes and len(axes.split()) == np.ndim(array) else None)
            pipeline.held.append(image._array)
            pipeline.check(l.lib.fv_pipeline_array(pipeline.pointer, name.encode(), image._type.image, image._array.ctypes.data,
                                                   pipeline.error))
        pipeline.check(l.lib.fv_pipeline_add(pipeline.pointer, b"fovea", f"result = {expression}\n".encode(), pipeline.error))
        pipeline.keep("result")
        result = _run(pipeline, _options())
        image_type = l.ImageType()
        address = l.lib.fv_result_array(result.pointer, b"result", image_type)
        if address:
            return np.asarray(_Pixels(result, address, image_type))
        table = Table(l.lib.fv_result_table(result.pointer, b"result").contents)
        return table


def call(operator, image, axes=None, **parameters):
    """What an operator makes of one array, with parameters as Python values; None leaves one out."""
    given = "".join(f", {name} = {literal(value)}" for name, value in parameters.items() if value is not None)
    return run(f"{operator}(a{given})", axes, a=image)
