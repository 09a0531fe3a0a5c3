"""What tests of runs have in common whose workers another system places."""
import os
import pathlib
import subprocess

from fovea_test import FOVEA, test


def there(function):
    """A test that works in its folder, as a user's program does."""
    def inside(folder):
        before = os.getcwd()
        os.chdir(folder)
        try:
            function(pathlib.Path(folder))
        finally:
            os.chdir(before)
    inside.__name__ = function.__name__
    return test(inside)


def files(folder, but=()):
    """Everything that was written in a folder, by name; what lies in stores and in folders called as in `but` is left out."""
    hidden = {".fovea", "alone", *but}
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
            if p.is_file() and not hidden & set(p.relative_to(folder).parts)}


def alone(folder, text, params=None):
    """What a run on threads prints and writes; the files are taken away again."""
    import fovea as fv
    before = files(folder)
    printed = fv.run(text, params, store="alone")
    made = {name: content for name, content in files(folder).items() if name not in before}
    for name in made:
        (folder / name).unlink()
    for left in sorted((p for p in folder.rglob("*.zarr*") if "alone" not in p.parts), reverse=True):
        for inner in sorted(left.rglob("*"), reverse=True):
            inner.rmdir()
        left.rmdir()
    assert made
    return printed, made


def values(printed):
    """Numbers, and rows of tables."""
    return [list(v) if hasattr(v, "columns") else v for v in printed]


def processes(*words):
    """Ids of the processes in whose command line all of these stand."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if all(os.fsencode(word) in line for word in words):
            found.append(int(path.parent.name))
    return found


def blind(command, *hidden):
    """The path of a fovea that finds these folders empty, as if it ran on another machine; of the usual one where there are no
    namespaces of mounts for that."""
    if subprocess.run(["unshare", "-rm", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        return FOVEA
    inside = command.with_suffix(".inside")
    inside.write_text("".join(f"mount -t tmpfs none '{folder}'\n" for folder in hidden) + f'cd /\nexec {FOVEA} "$@"\n')
    command.write_text(f'#!/bin/sh\nexec unshare -rm sh -e {inside} "$@"\n')
    command.chmod(0o755)
    return str(command)
