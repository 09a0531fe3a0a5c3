#!/usr/bin/python3
"""The newest dask and distributed: the tests of arrays and of the engine once more, with more workers killed."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, test  # noqa: E402

PYTHON = ROOT / "build" / "interop" / "dask" / "bin" / "python"


def whole(name, **environment):
    """Runs a test program with that Python; its failures are this one's."""
    if not PYTHON.exists():
        raise Skip("no dask of PyPI: scripts/bootstrap.sh dask could not fetch it")
    done = subprocess.run([str(PYTHON), str(ROOT / "tests" / "python" / name)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    failed = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert done.returncode == 0 and not failed and "\nok " in done.stdout, "\n".join(failed) or done.stderr[-800:]


@test
def operators_on_arrays_of_the_newest_dask(folder):
    whole("test_dask_arrays.py")


@test
def runs_on_the_newest_distributed_with_ten_workers_killed(folder):
    whole("test_dask_engine.py", FOVEA_KILLS="10")


main()
