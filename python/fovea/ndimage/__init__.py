"""Functions of scipy.ndimage with the same signatures, computed at once by the library on all cores.

    >>> import numpy as np
    >>> from fovea import ndimage
    >>> ndimage.maximum_filter(np.arange(6), 3)
    array([1, 2, 3, 4, 5, 5])
"""
from . import binary, boxes, distances, grey, interpolation, linear, measurements, objects
from .binary import *  # noqa: F401,F403
from .boxes import *  # noqa: F401,F403
from .distances import *  # noqa: F401,F403
from .grey import *  # noqa: F401,F403
from .interpolation import *  # noqa: F401,F403
from .linear import *  # noqa: F401,F403
from .measurements import *  # noqa: F401,F403
from .objects import *  # noqa: F401,F403

__all__ = [name for family in (binary, boxes, distances, grey, interpolation, linear, measurements, objects)
           for name in family.__all__]


def __getattr__(name):
    raise AttributeError(f"fovea.ndimage has no {name!r}; it has {', '.join(sorted(__all__))}")


def __dir__():
    return sorted(__all__)
