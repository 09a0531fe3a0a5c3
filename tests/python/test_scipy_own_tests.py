#!/usr/bin/env python3
"""scipy's own tests of scipy.ndimage, with our functions in the place of scipy's.

FOVEA_EVERY=1 takes all of them (`make own_tests`); else there is a sample of those that differ by their parameters alone."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support")]
from fovea_test import main, test  # noqa: E402
from peer_tests import counts, report, tests_of  # noqa: E402

def scipy_tests(folder, file, least, at_least):
    found = counts(folder, "fovea.ndimage", ["scipy.ndimage"], tests_of("scipy", "ndimage/tests/" + file))
    report(file, found, least, at_least)


@test
def filters(folder):
    scipy_tests(folder, "test_filters.py", 99.0, 300)


@test
def morphology(folder):
    scipy_tests(folder, "test_morphology.py", 98.5, 150)


@test
def measurements(folder):
    scipy_tests(folder, "test_measurements.py", 99.0, 100)


@test
def interpolation(folder):
    scipy_tests(folder, "test_interpolation.py", 99.5, 170)
    scipy_tests(folder, "test_splines.py", 100, 1)
    scipy_tests(folder, "test_datatypes.py", 100, 1)


if __name__ == "__main__":
    main()
