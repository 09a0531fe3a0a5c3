"""A plug-in for pytest that puts functions of a drop-in in the place of a peer's, and counts which of the peer's own tests pass.

    export FOVEA_DROP_IN=fovea.ndimage FOVEA_PEER=scipy.ndimage FOVEA_COUNTS=counts.json
    python3 -m pytest -p own_tests --pyargs scipy.ndimage

FOVEA_EVERY=N takes only every N-th of the tests that differ by their parameters alone. Only tests that call at least one of our
functions count. counts.json has the list "passed" and the dictionary "failed", from a test's name to the first line of its
error."""
import functools
import importlib
import inspect
import json
import os

_called = []
_passed, _failed = [], {}


def _watched(function):
    """The function, which notes that it was called. Its signature stays, for tests that look at it."""
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        _called.append(function.__name__)
        return function(*arguments, **named)
    return wrapper


def pytest_configure(config):
    """Replaces the functions before any test is imported."""
    ours = importlib.import_module(os.environ["FOVEA_DROP_IN"])
    for place in os.environ["FOVEA_PEER"].split(","):
        peer = importlib.import_module(place)
        for name in ours.__all__:
            if hasattr(peer, name) and inspect.isfunction(getattr(ours, name)):
                watched, replaced = _watched(getattr(ours, name)), getattr(peer, name)
                setattr(peer, name, watched)
                _keep_capabilities(replaced, watched)


def _keep_capabilities(replaced, watched):
    """scipy's tests of other kinds of arrays look a function up in a table of what it can do."""
    try:
        from scipy._lib._array_api import xp_capabilities_table as table
    except ImportError:
        return
    if replaced in table:
        table[watched] = table[replaced]


def pytest_collection_modifyitems(config, items):
    """A sample: every so many tests of those that differ by their parameters alone, and all others."""
    every, seen, kept, left = int(os.environ.get("FOVEA_EVERY", "1")), {}, [], []
    for item in items:
        name = item.nodeid.partition("[")[0]
        seen[name] = seen.get(name, -1) + 1
        (kept if seen[name] % every == 0 else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_runtest_setup(item):
    """What is called from here on belongs to this test."""
    _called.clear()


def pytest_runtest_logreport(report):
    """Notes how a test ended."""
    if report.when != "call" or not _called or report.skipped:
        return
    if report.passed:
        _passed.append(report.nodeid)
    else:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = next((line for line in crash.message.splitlines() if line.strip()), "") if crash else str(report.longrepr)[-200:]
        _failed[report.nodeid] = f"{','.join(sorted(set(_called)))}: {why}"


def pytest_sessionfinish(session):
    """Writes the counts."""
    with open(os.environ["FOVEA_COUNTS"], "w", encoding="utf-8") as file:
        json.dump({"passed": _passed, "failed": _failed}, file, indent=1)
