#!/usr/bin/env python3
"""The wheel: built from a checkout, installed without a network, and used where no compiler and no checkout is."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import PATIENCE, ROOT, Skip, main, test  # noqa: E402

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build"))
USE = """
import numpy as np, fovea as fv
assert fv.__file__.startswith({venv!r}), fv.__file__
a = np.random.default_rng(0).random((60, 70)).astype(np.float32)
from scipy import ndimage
assert np.abs(np.asarray(fv.array(a).gaussian(2)) - ndimage.gaussian_filter(a, 2)).max() < 1e-5
x = fv.phantom("cells", [64, 64])
print(x.label().compute(engine="processes", workers=2).max() > 0)
"""


def call(*command, folder, **environment):
    """Runs a program with nothing of the build in its environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FOVEA", "PYTHON", "LD_"))}
    done = subprocess.run([str(c) for c in command], cwd=folder, env={**clean, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, (command, done.stdout[-500:], done.stderr[-2000:])
    return done.stdout


@test
def a_wheel_is_installed_and_used(folder):
    for tool in "patchelf", "strip":
        if not shutil.which(tool):
            raise Skip(f"no {tool}: scripts/bootstrap.sh wheel could not install it")
    folder = pathlib.Path(folder)
    wheel = call(sys.executable, ROOT / "scripts" / "wheel.py", BUILD, folder / "out", folder=folder).strip()
    assert pathlib.Path(wheel).stat().st_size < 15e6, "a wheel stays below 15 MB"
    again = call(sys.executable, ROOT / "scripts" / "wheel.py", BUILD, folder / "again", folder=folder).strip()
    assert pathlib.Path(wheel).read_bytes() == pathlib.Path(again).read_bytes(), "two wheels of one build differ"
    venv = folder / "venv"
    made = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", venv], capture_output=True, check=False)
    if made.returncode:
        raise Skip("no python3-venv: scripts/bootstrap.sh wheel could not install it")
    call(venv / "bin" / "pip", "install", "--no-index", "--no-deps", wheel, folder=folder)
    path = str(venv / "bin")  # no compiler, no fovea of the system
    assert call(venv / "bin" / "python", "-c", USE.format(venv=str(venv)), folder=folder, PATH=path) == "True\n"
    assert call(venv / "bin" / "fovea", "run", "-e", "mean(ones([3, 3]))", folder=folder, PATH=path).strip() == "1"
    loaded = call("ldd", venv / "bin" / ".." / "lib" / f"python3.{sys.version_info[1]}" / "site-packages" / "fovea" / "lib" /
                  "libfovea.so.0", folder=folder)
    tiff = [line for line in loaded.splitlines() if "libtiff" in line]
    assert tiff and "site-packages/fovea/lib" in tiff[0], "the wheel's own libraries are used"


READ_ALL = "import ast, pathlib, sys\nfor p in pathlib.Path(sys.argv[1]).rglob('*.py'): ast.parse(p.read_bytes(), str(p))"


@test
def every_python_from_3_9_on_can_read_the_package(folder):
    del folder
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = 0
    for minor in range(9, 14):
        python = next(map(str, versions.glob(f"3.{minor}.*/bin/python")), None) or shutil.which(f"python3.{minor}")
        if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
            print(f"skip python3.{minor}: it is not installed")
            continue
        done = subprocess.run([python, "-c", READ_ALL, str(ROOT / "python" / "fovea")], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        assert done.returncode == 0, (python, done.stderr[-400:])
        found += 1
    assert found


main()
