#!/usr/bin/env python3
"""The types of the package, as a checker sees them: right programs pass mypy --strict, wrong ones are told where."""
import pathlib
import shutil
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
from fovea_test import PATIENCE, ROOT, Skip, main, test  # noqa: E402

import fovea as fv  # noqa: E402
from fovea import _descriptors  # noqa: E402

GOOD = '''
import numpy as np
import fovea as fv

cells: fv.Image = fv.phantom("cells", [64, 64], seed=1)
smooth = cells.gaussian(2, mode="mirror")
labels = (smooth > smooth.otsu()).label()
table: fv.Table = labels.measure(cells).compute()
count: float = float(labels.max())
darker: fv.Image = fv.minimum(2.0, smooth)
number: fv.Scalar = fv.minimum(2.0, labels.max())
array = np.asarray(smooth[::2])
turned: fv.Image = cells.affine([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
rows: fv.LazyTable = fv.table({"label": [1, 2]}).join(labels.measure(cells), on="label")
names = fv.write(smooth, "x.tif", level=3) + smooth.write("y.tif")
text: str = smooth.text() + fv.plan("p.fov", {"sigma": 2})
'''
BAD = {'cells.gaussian("wide")': "gaussian", 'cells.gaussian(2, mode="reflekt")': "Literal['reflekt']",
       "cells.gausian(2)": "gausian", "n: fv.Image = cells.mean()": "Scalar", "cells.label().measure().gaussian(1)": "gaussian"}


def checked(folder, text):
    """What mypy says of a program that uses the package as it is installed."""
    if not shutil.which("mypy"):
        raise Skip("no mypy: scripts/bootstrap.sh peers could not install it")
    package = pathlib.Path(folder) / "fovea"
    if not package.exists():
        shutil.copytree(ROOT / "python" / "fovea", package, ignore=shutil.ignore_patterns("__pycache__", "lib", "bin"))
        subprocess.run([sys.executable, ROOT / "scripts" / "python_stubs.py", package / "__init__.pyi"], check=True)
    (pathlib.Path(folder) / "program.py").write_text(text)
    return subprocess.run(["mypy", "--strict", "--no-error-summary", "program.py"], cwd=folder, capture_output=True, text=True,
                          timeout=PATIENCE, check=False).stdout


@test
def a_right_program_passes(folder):
    said = checked(folder, GOOD)
    assert said == "", said


@test
def each_mistake_is_told_at_its_line(folder):
    head = 'import fovea as fv\ncells = fv.phantom("cells", [9, 9])\n'
    said = checked(folder, head + "\n".join(BAD) + "\n").splitlines()
    assert len(said) == len(BAD), said
    for k, (line, word) in enumerate(BAD.items()):
        assert said[k].startswith(f"program.py:{k + 3}:") and word in said[k], (line, said[k])


@test
def no_attribute_hides_an_operator(folder):
    for kind in fv.Image, fv.Scalar, fv.LazyTable:
        hidden = set(_descriptors.python_names()) & set(dir(kind)) - {"write"}
        assert not hidden, (kind, hidden)


main()
