"""Tables of objects with the signature of scikit-image."""
import inspect

import numpy as np

from .. import _eager

__all__ = ["regionprops_table"]

# Names of scikit-image, older ones too, and what the operator measure calls them.
_MAJOR, _MINOR = ("axis_lengths", "axis_major_length"), ("axis_lengths", "axis_minor_length")
_SCALARS = {"label": ("", "label"), "area": ("voxels",) * 2, "num_pixels": ("voxels",) * 2, "extent": ("extent",) * 2,
            "equivalent_diameter": ("equivalent_diameter",) * 2, "equivalent_diameter_area": ("equivalent_diameter",) * 2,
            "major_axis_length": _MAJOR, "axis_major_length": _MAJOR, "minor_axis_length": _MINOR, "axis_minor_length": _MINOR,
            "eccentricity": ("eccentricity",) * 2, "orientation": ("orientation",) * 2, "euler_number": ("euler_number",) * 2,
            "perimeter": ("perimeter",) * 2, "perimeter_crofton": ("perimeter_crofton",) * 2,
            "mean_intensity": ("mean",) * 2, "intensity_mean": ("mean",) * 2, "min_intensity": ("min",) * 2,
            "intensity_min": ("min",) * 2, "max_intensity": ("max",) * 2, "intensity_max": ("max",) * 2,
            "intensity_std": ("std",) * 2, "feret_diameter_max": ("feret_max",) * 2}
_VECTORS = {"bbox": ("bbox", ("bbox_min_", "bbox_max_")), "centroid": ("centroid", ("centroid_",)),
            "weighted_centroid": ("weighted_centroid", ("weighted_centroid_",)),
            "centroid_weighted": ("weighted_centroid", ("weighted_centroid_",)),
            "inertia_tensor_eigvals": ("inertia_tensor_eigvals", ("inertia_tensor_eigvals_",))}
_DERIVED = {"area_bbox": "bbox", "bbox_area": "bbox", "centroid_local": "bbox centroid", "local_centroid": "bbox centroid"}
_OF_INTENSITY = {"mean", "min", "max", "std", "weighted_centroid"}


def regionprops_table(label_image, intensity_image=None, properties=("label", "bbox"), *, cache=True, separator="-",
                      extra_properties=None):
    """Properties of each label as a dictionary of columns; those of several numbers have a column for each. extra_properties are
    functions of yours of an object's mask, and of its part of the intensity image if they take two arguments."""
    labels = np.ascontiguousarray(label_image)
    if labels.dtype.kind not in "iu":
        raise TypeError("Non-integer label_image types are ambiguous: use skimage.label")
    for name in properties:
        if name not in _SCALARS and name not in _VECTORS and name not in _DERIVED:
            known = sorted({**_SCALARS, **_VECTORS, **_DERIVED})
            raise ValueError(f"property {name!r} is not measured here; there are {', '.join(known)}")
    wanted = {word for name in properties
              for word in (_DERIVED.get(name) or (_SCALARS.get(name) or _VECTORS.get(name))[0]).split()}
    if extra_properties:
        wanted.add("bbox")
    if wanted & _OF_INTENSITY and intensity_image is None:
        raise AttributeError(f"{', '.join(sorted(wanted & _OF_INTENSITY))}: an intensity image is needed")
    arrays = {"a": labels}
    if wanted & _OF_INTENSITY:
        arrays["i"] = np.ascontiguousarray(intensity_image)
    table = _eager.run(f"measure(a{', i' if 'i' in arrays else ''}, properties = \"{' '.join(sorted(wanted)) or 'voxels'}\")",
                       **arrays)
    found = {}
    for name in properties:
        if name in _SCALARS:
            column = table[_SCALARS[name][1]]
            found[name] = column.astype(np.int64) if name == "euler_number" else column
            continue
        low, high, middle = (_columns(table, start) for start in ("bbox_min_", "bbox_max_", "centroid_"))
        if name in ("area_bbox", "bbox_area"):
            found[name] = np.prod([b - a for a, b in zip(low, high)], axis=0)
            continue
        several = [m - a for m, a in zip(middle, low)] if name in _DERIVED else \
            [column for start in _VECTORS[name][1] for column in _columns(table, start)]
        for k, column in enumerate(several):
            found[f"{name}{separator}{k}"] = column
    for function in extra_properties or ():
        found[function.__name__] = _called(function, table, labels, intensity_image)
    return found


def _columns(table, start):
    return [table[name] for name in table.columns if name.startswith(start)]


def _called(function, table, labels, intensity_image):
    """A function of the caller's for each object, in its box."""
    takes = len(inspect.signature(function).parameters)
    if takes > 1 and intensity_image is None:
        raise AttributeError(f"{function.__name__}: an intensity image is needed")
    low, high = np.array(_columns(table, "bbox_min_")).T, np.array(_columns(table, "bbox_max_")).T
    results = []
    for number, first, last in zip(table["label"], low, high):
        place = tuple(slice(a, b) for a, b in zip(first, last))
        mask = labels[place] == number
        results.append(function(mask, np.asarray(intensity_image)[place]) if takes > 1 else function(mask))
    if all(np.ndim(one) == 0 for one in results):
        return np.array(results)
    objects = np.empty(len(results), object)  # lists and the like, each as it is
    objects[:] = results
    return objects
