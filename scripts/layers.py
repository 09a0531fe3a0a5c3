#!/usr/bin/env python3
"""Checks what the compiler does not: which part includes which, unique file names, and the shape of lines.

A file includes only from its own layer and those before it. Operators, formats and tables know the lower layers and files of
their own folder, and not each other. The command and the tests of the public interface include <fovea/...>. Prints every
breach as FILE:LINE: what is wrong; the exit status is 1 if there is any.
"""
import pathlib
import re
import sys

# study and view belong to the command, not to the library
LAYERS = ("base draw devices image op kernels lang graph plan store units record exec run stream engines cluster story api study "
          "view").split()
FAMILIES = "ops formats tables".split()  # these know LAYERS up to kernels
LONGEST = 130

root = pathlib.Path(__file__).resolve().parent.parent
breaches = []


def breach(path, number, text):
    breaches.append(f"{path.relative_to(root)}:{number}: {text}")


def allowed(part, folder, target):
    """Whether a file of a part of src/, in folder, may include the quoted target."""
    first = target.split("/")[0]
    if part == "plugins":  # built apart: nothing but the header that says what it has to offer, and its own
        return target.endswith("_plugin.h") or first == "plugins"
    if "/" not in target:
        return True  # beside the file itself
    if part == "cli":
        return first == "cli"
    if part in FAMILIES:
        return first in LAYERS[: LAYERS.index("kernels") + 1] or target.rsplit("/", 1)[0] == folder
    return first in LAYERS[: LAYERS.index(part) + 1]


def check_includes(path):
    inside = path.relative_to(root / "src")
    part, folder = inside.parts[0], str(inside.parent)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match and not allowed(part, folder, match[1]):
            breach(path, number, f"{part} must not include {match[1]}")


def check_names(paths):
    seen = {}
    for path in paths:
        if path.name in seen:
            breach(path, 1, f"there is another {path.name} in {seen[path.name].parent.relative_to(root)}")
        seen[path.name] = path


def check_lines(path):
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST:
            breach(path, number, f"line of {len(line)} characters; at most {LONGEST}")
        if "\t" in line:
            breach(path, number, "tab")
        if line != line.rstrip():
            breach(path, number, "blank at the end of the line")
    if text and not text.endswith("\n"):
        breach(path, text.count("\n") + 1, "no newline at the end of the file")


def main():
    def files(folder, *suffixes):
        return sorted(p for p in (root / folder).rglob("*") if p.suffix in suffixes)

    source = files("src", ".c", ".h")
    for path in source:
        part = path.relative_to(root / "src").parts[0]
        if part in LAYERS + FAMILIES + ["cli", "plugins"]:
            check_includes(path)
        else:
            breach(path, 1, f"src/{part} is no known layer; scripts/layers.py lists them")
    check_names(source)
    check_names([p for p in files("tests", ".c") if p.name.startswith("test_")])
    tests, scripts = files("tests", ".c", ".h", ".py"), files("scripts", ".py", ".sh") + files("python", ".py")
    for path in source + files("include", ".h") + tests + files("bench", ".c", ".h") + scripts:
        check_lines(path)
    print("\n".join(breaches) if breaches else f"{len(source)} source files keep to their layers")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
