#!/usr/bin/env python3
"""scipy's own tests of scipy.ndimage, with our functions in the place of scipy's.

FOVEA_EVERY=1 takes all of them (`make own_tests`); else there is a sample of those that differ by their parameters alone."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from fovea_test import PATIENCE, ROOT, Skip, main, test  # noqa: E402

SAMPLE = "7"


def counts(folder, drop_in, peers, files):
    """Which of a peer's tests pass and which fail with our functions."""
    for needed in ("pytest", peers[0].partition(".")[0]):
        if importlib.util.find_spec(needed) is None:
            raise Skip(f"{needed} is not installed")
    files = [str(file) for file in files if os.path.exists(file)]
    if not files:
        raise Skip("the peer is installed without its tests")
    found = os.path.join(folder, "counts.json")
    environment = dict(os.environ, FOVEA_DROP_IN=drop_in, FOVEA_PEER=",".join(peers), FOVEA_COUNTS=found,
                       FOVEA_EVERY=os.environ.get("FOVEA_EVERY", SAMPLE),
                       PYTHONPATH=os.pathsep.join([str(ROOT / "python"), str(HERE.parent / "support")]))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "own_tests", "-p", "no:cacheprovider", "--tb=no", *files],
                          cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=PATIENCE)
    assert os.path.exists(found), done.stdout[-800:]
    with open(found, encoding="utf-8") as file:
        return json.load(file)


def report(title, found, least, at_least):
    """Prints what passed and why the rest failed, group by group; fails below a share of `least` per cent."""
    passed, failed = len(found["passed"]), found["failed"]
    share = 100 * passed / max(passed + len(failed), 1)
    print(f"# {title}: {passed} passed, {len(failed)} failed ({share:.1f} %)")
    groups = {}
    for name, why in failed.items():
        groups.setdefault(name.rpartition("/")[2].partition("[")[0], []).append(why)
    for name, reasons in groups.items():
        print(f"#   {len(reasons)} of {name}: {reasons[0][:160]}")
    assert passed >= at_least, f"{title}: only {passed} tests passed that call a function of ours"
    assert share >= least, f"{title}: {share:.1f} % of the tests that call a function of ours pass, not {least} %"


def scipy_tests(folder, file, least, at_least):
    spec = importlib.util.find_spec("scipy")
    if spec is None:
        raise Skip("scipy is not installed")
    path = pathlib.Path(spec.origin).parent / "ndimage" / "tests" / file
    report(file, counts(folder, "fovea.ndimage", ["scipy.ndimage"], [path]), least, at_least)


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
