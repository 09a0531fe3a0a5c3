#!/usr/bin/env python3
"""The examples of docs/python.md and docs/dask.md, run as they stand."""
import doctest
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import ROOT, Skip, main, test  # noqa: E402


@test
def every_example_gives_what_the_page_says(folder):
    os.chdir(folder)
    found = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False,
                             optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0 and found.attempted >= 12, found


@test
def every_example_of_dask_gives_what_the_page_says(folder):
    try:
        import dask.array  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        raise Skip("no dask: scripts/bootstrap.sh peers could not install it") from None
    os.chdir(folder)
    found = doctest.testfile(str(ROOT / "docs" / "dask.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0 and found.attempted >= 12, found


main()
