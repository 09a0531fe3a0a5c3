"""Runs a peer's own tests with functions of ours in the place of its own, through the plug-in own_tests.py, and judges
the counts."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

from fovea_test import PATIENCE, ROOT, Skip

HERE = pathlib.Path(__file__).resolve().parent

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
                       PYTHONPATH=os.pathsep.join([str(ROOT / "python"), str(HERE)]))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "own_tests", "-p", "no:cacheprovider", "--tb=no",
                           *(["--import-mode=importlib"] if "own_tests" in files[0] else []),
                           f"--confcutdir={_root(files[0])}", *files],
                          cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=PATIENCE)
    assert os.path.exists(found), done.stdout[-800:]
    with open(found, encoding="utf-8") as file:
        return json.load(file)


def _root(file):
    """The folder of the package that a test belongs to, whose fixtures it may use."""
    folder = pathlib.Path(file).parent
    while (folder.parent / "__init__.py").exists() or (folder.parent / "conftest.py").exists():
        folder = folder.parent
    return folder


def tests_of(package, *files):
    """Paths of a package's own tests, which are in it, or beside it where it is installed without them; skips where it is not
    installed."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise Skip(f"{package} is not installed")
    beside = pathlib.Path(sys.prefix) / "own_tests" / package
    if beside.exists():
        return [beside / file.replace("/tests/", "/") for file in files]
    return [pathlib.Path(spec.origin).parent / file for file in files]


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
