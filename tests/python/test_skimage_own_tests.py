#!/usr/bin/env python3
"""scikit-image's own tests, with the functions of fovea.skimage in the place of its own.

FOVEA_EVERY=1 takes all of them (`make own_tests`); else there is a sample of those that differ by their parameters alone."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support")]
from fovea_test import Skip, main, test  # noqa: E402
from peer_tests import counts, report, tests_of  # noqa: E402

MODULES = ("feature", "feature.blob", "feature.peak", "filters", "filters.thresholding", "measure", "measure._label",
           "measure._regionprops", "morphology", "morphology.extrema", "morphology.grayreconstruct", "morphology.misc",
           "segmentation", "segmentation._clear_border", "segmentation._expand_labels", "segmentation._watershed",
           "transform", "transform.radon_transform")


together = {"passed": [], "failed": {}}


def skimage_tests(folder, title, least, at_least, *files):
    """Fails below a share in per cent, and below a number of tests. A group may stay below what all together must reach."""
    paths = tests_of("skimage", *(f"{f.partition('/')[0]}/tests/test_{f.partition('/')[2]}.py" for f in files))
    found = counts(folder, "fovea.skimage", [f"skimage.{m}" for m in MODULES], paths)
    together["passed"] += found["passed"]
    together["failed"].update(found["failed"])
    report(title, found, least, at_least)


@test
def labels(folder):
    skimage_tests(folder, "labels", 94, 40, "measure/label", "measure/ccomp", "segmentation/clear_border",
                  "segmentation/expand_labels", "morphology/misc")


@test
def watersheds(folder):
    skimage_tests(folder, "watershed", 95, 19, "segmentation/watershed")


@test
def reconstruction_and_peaks(folder):
    skimage_tests(folder, "reconstruction and peaks", 93, 40, "morphology/reconstruction", "morphology/extrema", "feature/peak")


@test
def blobs(folder):
    skimage_tests(folder, "blobs", 80, 14, "feature/blob")


@test
def thresholds(folder):
    skimage_tests(folder, "thresholds", 94, 60, "filters/thresholding")


@test
def tables(folder):
    skimage_tests(folder, "tables", 70, 5, "measure/regionprops")


@test
def projections(folder):
    skimage_tests(folder, "projections", 95, 8, "transform/radon_transform")


@test
def all_together(folder):
    del folder
    if not together["passed"]:
        raise Skip("scikit-image is not installed, or without its tests")
    report("scikit-image", together, 95, 200)


if __name__ == "__main__":
    main()
