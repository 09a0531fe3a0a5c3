"""Files in napari: each opens as layers, with spacing and colours, and large ones are read piece by piece."""
import functools
import os

import numpy as np

from . import _descriptors as d
from ._values import Image

_WHOLE = 256 << 20  # bytes up to which a file is read at once


@functools.lru_cache(None)
def _endings():
    return tuple("." + e for f in d.all_formats() if f["reads"] for e in f["extensions"])


class _Lazy:
    """An image as napari likes arrays: the planes that are looked at are computed."""

    def __init__(self, image):
        self.image, self.shape, self.ndim, self.dtype = image, image.shape, image.ndim, image.dtype

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        return np.asarray(self.image[index])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.image, dtype)


def layers_of(image, name):
    """An image as napari's layers: complex values as amplitude and phase, whole numbers called labels as labels."""
    if image.dtype.kind == "c":
        data, scale = np.asarray(image), list(image.spacing)
        return [(np.abs(data), {"name": f"{name} amplitude", "scale": scale}, "image"),
                (np.angle(data), {"name": f"{name} phase", "scale": scale}, "image")]
    data = np.asarray(image) if image.nbytes <= _WHOLE else _Lazy(image)
    rgb = image.axes[-1] == "c" and image.shape[-1] in (3, 4) and image.dtype == np.uint8
    meta = {"name": name, "scale": list(image.spacing[:-1] if rgb else image.spacing)}
    if rgb:
        meta["rgb"] = True
    elif "c" in image.axes:
        at = image.axes.index("c")
        meta["channel_axis"], meta["scale"] = at, [s for k, s in enumerate(image.spacing) if k != at]
        del meta["name"]
        if image.channels:
            meta["name"] = [k.get("name", f"{name} {at}") for at, k in enumerate(image.channels)]
        if image.channels and all("range" in k for k in image.channels):
            meta["contrast_limits"] = [k["range"] for k in image.channels]
    elif "label" in name.lower() and image.dtype.kind in "iu":
        return [(data, meta, "labels")]
    return [(data, meta, "image")]


def get_reader(path):
    """napari's question: a function that reads the path, or None."""
    paths = [path] if isinstance(path, str) else list(path)
    if not all(str(p).lower().rstrip("/").endswith(_endings()) for p in paths):
        return None
    return read_layers


def read_layers(path):
    """napari's layers of one path or several."""
    from . import read
    layers = []
    for one in [path] if isinstance(path, str) else path:
        image = read(os.fspath(one))
        if not isinstance(image, Image):
            raise ValueError(f"{one} holds a table, not an image")
        layers += layers_of(image, os.path.basename(os.fspath(one).rstrip("/")))
    return layers
