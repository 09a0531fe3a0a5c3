"""The smallest test frame for Python, and how to call the command.

    from fovea_test import test, main, run

    @test
    def gaussian_equals_scipy(folder):
        run("run", "-e", 'read("a.npy") |> gaussian(2) |> write("b.npy")', folder=folder)
        assert ...

    main()

Each test gets a fresh folder and prints "ok NAME", "not ok NAME: why" or "skip NAME: why".
"""
import functools
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
TESTS = []
PATIENCE = 1800  # seconds by the clock after which something hangs: far more than ten times what anything here takes


class Skip(Exception):
    """Raised with the reason why a test cannot run here."""


def test(function):
    """Marks a function as a test."""
    TESTS.append(function)
    return function


def long(function):
    """Marks a test that takes so long that `make test` leaves it to `make interop`, which sets FOVEA_LONG. Called by its name it
    runs, too."""
    @functools.wraps(function)
    def one(folder):
        if not os.environ.get("FOVEA_LONG") and len(sys.argv) < 2:
            raise Skip("it takes long; `make interop` runs it")
        function(folder)
    return test(one)


def data(*parts):
    """A file of the real test data; skips where there is none."""
    folder = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data"))
    path = folder.joinpath(*parts)
    if not path.exists():
        raise Skip(f"no test data at {path.name}")
    return path


def processor_seconds(seconds):
    """For preexec_fn: a process that uses more of the processor is ended, however long it takes on a busy machine."""
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def run(*arguments, folder, code=0, environment=None, processor=None):
    """Runs fovea and gives the finished process; the exit status must be `code` (None: any). processor: seconds of it at most."""
    done = subprocess.run([FOVEA, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})), timeout=PATIENCE,
                          preexec_fn=processor and processor_seconds(processor))
    if code is not None and done.returncode != code:
        raise AssertionError(
            f"exit status {done.returncode}, not {code}: fovea {' '.join(map(str, arguments))}: {done.stderr.strip()[-800:]}")
    return done


def raises(kind, words, function):
    """The message of the exception that a call raises, which must have all these words, with | between them."""
    try:
        function()
    except kind as error:
        for word in words.split("|"):
            assert word in str(error), f"no {word!r} in: {error}"
        return str(error)
    raise AssertionError(f"nothing was raised where {kind.__name__} was expected")


def wait_for(what, condition):
    """Waits until the condition gives something true, and gives that."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def main():
    """Runs all tests, or those whose name contains an argument."""
    failures = 0
    for function in TESTS:
        if len(sys.argv) > 1 and not any(word in function.__name__ for word in sys.argv[1:]):
            continue
        folder = tempfile.mkdtemp(prefix="fovea-test-")
        try:
            function(folder)
            print(f"ok {function.__name__}", flush=True)
        except Skip as reason:
            print(f"skip {function.__name__}: {reason}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failures += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            why = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"not ok {function.__name__}: {os.path.basename(where.filename)}:{where.lineno}: {why}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(failures > 0)
