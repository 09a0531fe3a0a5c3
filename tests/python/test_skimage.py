#!/usr/bin/env python3
"""fovea.skimage beside scikit-image on images of real sizes."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import Skip, main, test  # noqa: E402

from fovea import ndimage  # noqa: E402
from fovea import skimage as ours  # noqa: E402


def peer(name):
    """A module of scikit-image, or a skipped test."""
    try:
        return __import__(f"skimage.{name}", fromlist=["skimage"])
    except ImportError:
        raise Skip("scikit-image is not installed") from None


def peer_version():
    """Its first two numbers."""
    peer("measure")
    import skimage
    return tuple(map(int, skimage.__version__.split(".")[:2]))


def cells(shape=(150, 170), seed=1):
    """A smooth image with values from 0 to 1."""
    a = ndimage.gaussian_filter(np.random.default_rng(seed).random(shape), 3)
    return (a - a.min()) / np.ptp(a)


@test
def labels_of_masks_and_values(folder):
    a = cells()
    for image in (a > 0.5, (a * 5).astype(int), (a * 60).astype(np.uint8), cells((20, 30, 31)) > 0.5):
        for connectivity in (None, 1):
            expected = peer("measure").label(image, connectivity=connectivity, return_num=True)
            found = ours.label(image, connectivity=connectivity, return_num=True)
            assert found[1] == expected[1] and (found[0] == expected[0]).all(), (image.dtype, connectivity)
    labels = peer("measure").label(a > 0.6)
    for found, expected in ((ours.remove_small_objects(labels, 90), peer("morphology").remove_small_objects(labels, 90)),
                            (ours.remove_small_holes(a > 0.4, 50), peer("morphology").remove_small_holes(a > 0.4, 50)),
                            (ours.clear_border(labels), peer("segmentation").clear_border(labels)),
                            (ours.expand_labels(labels, 3) > 0, peer("segmentation").expand_labels(labels, 3) > 0)):
        assert found.dtype == expected.dtype and (found == expected).all()


@test
def watersheds(folder):
    relief, newer = (cells() * 20).astype(np.uint8), peer_version() >= (0, 26)
    markers = np.zeros(relief.shape, int)
    markers[::30, ::40] = np.arange(1, 26).reshape(5, 5)
    for given, options in ((markers, {}), (12, {"compactness": 0.5}), (None, {"mask": relief > 3}),
                           (markers, {"connectivity": 2}), (markers.tolist(), {"watershed_line": True}),
                           (markers, {"connectivity": np.ones((3, 5))})):
        found = ours.watershed(relief, given, **options)
        assert found.shape == relief.shape and set(np.unique(found)) - {0}
        if newer:
            expected = peer("segmentation").watershed(relief, np.asarray(given) if isinstance(given, list) else given, **options)
            assert found.dtype == expected.dtype and (found == expected).all(), options
    assert (ours.watershed(relief, markers, mask=np.zeros(relief.shape)) == 0).all()
    for wrong, word in (({"markers": markers[1:]}, "markers"), ({"mask": relief[1:]}, "mask"),
                        ({"connectivity": np.ones((2, 2))}, "center"), ({"connectivity": np.ones(3)}, "dimension")):
        try:
            ours.watershed(relief, **{"markers": markers, **wrong})
        except ValueError as error:
            assert word in str(error), error
        else:
            raise AssertionError(f"{word}: no ValueError")


@test
def tables_of_objects(folder):
    labels, image = peer("measure").label(cells() > 0.5), cells(seed=2)
    names = ("label", "area", "bbox", "centroid", "eccentricity", "axis_major_length", "perimeter", "euler_number",
             "mean_intensity", "weighted_centroid", "feret_diameter_max")
    expected = peer("measure").regionprops_table(labels, image, properties=names)
    found = ours.regionprops_table(labels, image, properties=names)
    assert list(found) == list(expected)
    assert all(np.allclose(found[k], expected[k]) for k in found)
    try:
        ours.regionprops_table(labels, properties=("moments_hu",))
    except ValueError as error:
        assert "moments_hu" in str(error) and "centroid" in str(error)
    else:
        raise AssertionError("a property that is not measured was taken")


@test
def thresholds_and_peaks(folder):
    filters = peer("filters")
    for image in (cells(), (cells() * 255).astype(np.uint8)):
        for name in ("threshold_otsu", "threshold_yen", "threshold_isodata", "threshold_triangle", "threshold_mean"):
            assert np.isclose(getattr(ours, name)(image), getattr(filters, name)(image)), (name, image.dtype)
        assert abs(ours.threshold_li(image) - filters.threshold_li(image)) < 1e-3 * image.max()
        assert np.allclose(ours.threshold_multiotsu(image), filters.threshold_multiotsu(image))
    image = cells()
    assert np.allclose(ours.threshold_local(image, 31), filters.threshold_local(image, 31))
    assert np.allclose(ours.threshold_sauvola(image), filters.threshold_sauvola(image))
    for options in ({}, {"min_distance": 7}, {"threshold_abs": 0.6, "exclude_border": False}, {"num_peaks": 5}):
        expected = peer("feature").peak_local_max(image, **options)
        assert (ours.peak_local_max(image, **options) == expected).all(), options
    grown = ours.reconstruction(image - 0.1, image)
    assert np.allclose(grown, peer("morphology").reconstruction(image - 0.1, image))
    assert (ours.h_maxima(image, 0.1) == peer("morphology").h_maxima(image, 0.1)).all()


@test
def a_slice_from_its_projections(folder):
    transform = peer("transform")
    y, x = np.mgrid[-1:1:100j, -1:1:100j]
    image = cells((100, 100)) * (x * x + y * y < 0.9)
    for size in (100, 99):
        sinogram = transform.radon(image[:size, :size], np.linspace(0, 180, 70, endpoint=False))
        for name in ("ramp", "hann", None):
            nearest = [f(sinogram, filter_name=name, interpolation="nearest") for f in (ours.iradon, transform.iradon)]
            assert np.allclose(*nearest, rtol=0, atol=1e-12), (size, name)
            found, expected = (f(sinogram, filter_name=name) for f in (ours.iradon, transform.iradon))
            assert found.shape == expected.shape and np.abs(found - expected).max() < 1e-6 * np.abs(expected).max(), (size, name)


if __name__ == "__main__":
    main()
