#!/usr/bin/env python3
"""The door of the library: what libfovea.so shows is what the public headers declare, and nothing changes there unnoticed."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, main, run, test  # noqa: E402

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build"))
LIST = pathlib.Path(__file__).with_name("exports.txt")  # when the interface changes on purpose, this file changes with it


def declared():
    """Functions that the headers declare for others."""
    text = "".join(path.read_text() for path in sorted((ROOT / "include" / "fovea").glob("*.h")))
    return sorted(re.findall(r"^FV_API [^;{]*?\b(fv_[a-z0-9_]+)\s*\(", text, re.M))


def symbols(library, *options):
    out = subprocess.run(["nm", "-D", *options, str(library)], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1].split("@")[0] for line in out.splitlines()]


@test
def the_shared_library_shows_what_its_headers_declare(folder):
    shown = sorted(name for name in symbols(BUILD / "libfovea.so", "--defined-only") if name != "FOVEA_0")
    assert shown == declared(), f"only one of both has {sorted(set(shown) ^ set(declared()))}"


@test
def the_list_of_exported_functions_is_kept(folder):
    listed = LIST.read_text().split()
    assert listed == declared(), f"tests/api/exports.txt and the headers differ in {sorted(set(listed) ^ set(declared()))}"


@test
def what_the_library_keeps_to_itself_begins_with_two_underscores(folder):
    """Descriptors are the exception: they are data, found by the name of their file."""
    out = subprocess.run(["nm", "--defined-only", "--extern-only", str(BUILD / "libfovea.a")], check=True, capture_output=True,
                         text=True).stdout
    found = [line.split() for line in out.splitlines() if len(line.split()) == 3]
    wrong = [name for _, kind, name in found if not name.startswith("fv__") and name not in declared() and
             not (kind in "DR" and re.match("fv_(op|format|table|engine|kernels|estimator)_", name))]
    assert len(found) > 1000 and not wrong, sorted(set(wrong))


@test
def the_library_has_its_name_with_a_version(folder):
    out = subprocess.run(["readelf", "-d", str(BUILD / "libfovea.so")], check=True, capture_output=True, text=True).stdout
    assert "[libfovea.so.0]" in out, out


@test
def every_plug_in_shows_its_entry(folder):
    plugins = sorted(BUILD.glob("fovea-*.so"))
    for plugin in plugins:
        entry = f"fv_{plugin.stem.split('-')[1]}_plugin_get"
        assert entry in symbols(plugin, "--defined-only"), f"{plugin.name} does not show {entry}"


@test
def nothing_in_the_library_ends_the_program(folder):
    asked = symbols(BUILD / "libfovea.so", "--undefined-only")
    assert "exit" not in asked and "quick_exit" not in asked, "the library calls exit"


@test
def an_instruction_set_that_is_not_there_is_an_error_of_the_run(folder):
    done = run("run", "-e", "mean(ones([3, 3]))", folder=folder, code=2, environment={"FOVEA_ISA": "abacus"})
    assert "FOVEA_ISA=abacus" in done.stderr and "instruction set" in done.stderr, done.stderr


main()
