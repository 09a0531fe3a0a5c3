"""Functions of scikit-image with the same signatures, computed at once by the library on all cores. They lie side by side here,
whichever module scikit-image keeps them in.

    >>> import numpy as np
    >>> from fovea import skimage
    >>> skimage.label(np.array([[1, 1, 0], [0, 0, 2]]))
    array([[1, 1, 0],
           [0, 0, 2]])
"""
from . import features, labels, measurements, morphology, segmentation, thresholds, tomography
from .features import *  # noqa: F401,F403
from .labels import *  # noqa: F401,F403
from .measurements import *  # noqa: F401,F403
from .morphology import *  # noqa: F401,F403
from .segmentation import *  # noqa: F401,F403
from .thresholds import *  # noqa: F401,F403
from .tomography import *  # noqa: F401,F403

_FAMILIES = (features, labels, measurements, morphology, segmentation, thresholds, tomography)
__all__ = [name for family in _FAMILIES for name in family.__all__]


def __getattr__(name):
    raise AttributeError(f"fovea.skimage has no {name!r}; it has {', '.join(sorted(__all__))}")


def __dir__():
    return sorted(__all__)
