#!/usr/bin/env python3
"""Makes the pictures of docs/plots.md by running its examples, into docs/plots/.

    scripts/plot_pictures.py          brings them up to date
    scripts/plot_pictures.py --check  only says which are out of date, and fails if some are
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "plots"
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))


def made():
    """The pictures that the page shows, by name."""
    page = (ROOT / "docs" / "plots.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for text in re.findall(r"^```fov\n(.*?)^```", page, re.M | re.S):
            done = subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, text=True)
            if done.returncode:
                raise SystemExit(f"plot_pictures.py: {text}: {done.stderr.strip()[-1000:]}")
        return {name: pathlib.Path(folder, name).read_bytes() for name in re.findall(r"\]\(plots/([\w-]+\.svg)\)", page)}


def main():
    new, old = made(), {path.name: path.read_bytes() for path in FOLDER.glob("*")}
    changed = sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))
    for name in changed:
        if "--check" in sys.argv:
            print(f"docs/plots/{name} is out of date")
        elif name in new:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_bytes(new[name])
        else:
            (FOLDER / name).unlink()
    if "--check" in sys.argv:
        return 1 if changed else 0
    print(f"docs/plots: {len(changed)} of {len(new)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
