"""Other people's programs for tests: Python environments in build/interop, programs of Debian, a screen that nobody sees, and the
snippets of docs/elsewhere.md, which the tests run as they stand there. What is missing skips a test with its reason."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from fovea_test import PATIENCE, ROOT, Skip, run

PLACE = pathlib.Path(os.environ.get("FOVEA_INTEROP", ROOT / "build" / "interop"))
PAGE = ROOT / "docs" / "elsewhere.md"


def environment(name, *modules):
    """The folder of programs of a Python environment that has these modules."""
    programs = PLACE / name / "bin"
    for module in modules:
        if not list(PLACE.glob(f"{name}/lib/python3*/site-packages/{module}*")):
            raise Skip(f"no {module} in build/interop/{name}; make interop installs it where PyPI can be reached")
    return programs


def program(*names):
    """The first of these programs that is there."""
    for name in names:
        if shutil.which(name):
            return shutil.which(name)
    raise Skip(f"no {names[0]}; scripts/bootstrap.sh viewers installs it")


def snippet(title, language):
    """The first block of a language below a heading of the page."""
    part = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    block = part and re.search(rf"^```{language}\n(.*?)^```", part[1], re.M | re.S)
    assert block, f"docs/elsewhere.md has no {language} below {title}"
    return block[1]


def call(command, folder, **variables):
    """What a program prints; it must end well."""
    done = subprocess.run(list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=PATIENCE, check=False, env=dict(os.environ, **variables))
    assert done.returncode == 0, (command[0], done.returncode, done.stdout[-400:], done.stderr[-1200:])
    return done.stdout


def python(name, text, folder, *modules, **variables):
    """Runs a program in an environment; what its last line of output says, as JSON."""
    path = pathlib.Path(folder, "program.py")
    path.write_text(text)
    out = call([environment(name, *modules) / "python", path.name], folder, PYTHONWARNINGS="ignore", **variables)
    return json.loads(out.splitlines()[-1])


class Screen:
    """An X server without a screen, on a display that nobody else has."""

    def __enter__(self):
        reader, writer = os.pipe()
        command = [program("Xvfb"), "-displayfd", str(writer), "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset"]
        self.server = subprocess.Popen(command, pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writer)
        with os.fdopen(reader) as line:
            self.display = line.readline().strip()
        if not self.display:
            raise Skip("Xvfb does not start here")
        return self

    def __exit__(self, *unused):
        self.server.terminate()
        self.server.wait()

    @property
    def variables(self):
        """What a program must be told to appear there."""
        return {"DISPLAY": f":{self.display}"}


def make_page_files(folder):
    """Runs the pipeline of the page on a scan with voxels of 2 x 0.5 x 0.25 µm; original.npy and cells.npy hold the images."""
    import numpy  # pylint: disable=import-outside-toplevel
    run("run", "-q", "-e", 'phantom("cells", [24, 120, 160]) |> write("original.npy")', folder=folder)
    scan = numpy.load(pathlib.Path(folder, "original.npy"))
    head = (f"NRRD0005\ntype: uint8\ndimension: 3\nsizes: {' '.join(map(str, scan.shape[::-1]))}\nencoding: raw\n"
            'spacings: 0.25 0.5 2\nunits: "um" "um" "um"\n\n')
    pathlib.Path(folder, "original.nrrd").write_bytes(head.encode() + scan.tobytes())
    text = re.search(r"^```fov\n(.*?)^```", PAGE.read_text(), re.M | re.S)[1]
    assert 'phantom("cells", [24, 120, 160])' in text
    text = text.replace('phantom("cells", [24, 120, 160])', 'read("original.nrrd")') + 'write(cells, "cells.npy")\n'
    run("run", "-q", "-e", text, folder=folder)
