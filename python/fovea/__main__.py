"""python -m fovea is the command."""
import os
import pathlib
import shutil
import sys


def command():
    """The path of the program that belongs to this package."""
    here = pathlib.Path(__file__).resolve().parent
    for path in here / "bin" / "fovea", here.parent.parent / "build" / "fovea":
        if path.exists():
            return str(path)
    return shutil.which("fovea")


def main():
    """Becomes the command, with the same arguments."""
    path = command()
    if not path:
        sys.exit("fovea: the command is not installed beside the package nor on the PATH")
    os.environ.setdefault("FOVEA_PYTHON", sys.executable)  # whoever it starts finds this package
    os.execv(path, ["fovea", *sys.argv[1:]])


if __name__ == "__main__":
    main()
