#!/usr/bin/python3
"""What the compiler made of the kernels: no instruction rounds otherwise than the source says."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, run, test

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build"))


@test
def no_sum_beside_a_difference_is_fused(_folder):
    """GCC 12 does so for pairs of neighbours even with -ffp-contract=off; processors without the instruction then differ."""
    if not shutil.which("objdump"):
        raise Skip("objdump is not here")
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", BUILD / "libfovea.so"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    where, found = "", set()
    for line in text.splitlines():
        if line.endswith(">:"):
            where = line
        elif re.search("vfmaddsub|vfmsubadd", line):
            found.add(where)
    assert "fv__op_find" in text and not found, found


@test
def centres_and_displacements_have_the_same_bits_on_every_instruction_set(folder):
    text = 'g = parallel(range(0, 178, 2)); s = phantom("shepp-logan", [6, 90, 90]); ' \
           'p = xray(s, parallel(range(0, 178, 2), center = 43.3)) + name_axes(phantom("noise", [90, 6, 90]), "angle z x"); ' \
           'find_center(p, g, "vo"); find_center(p, g, "phase"); sum(align(p, subpixel = true))'
    usual = run("run", "-q", "-e", text, folder=folder).stdout
    done = run("run", "-q", "--fresh", "-e", text, folder=folder, environment={"FOVEA_ISA": "base"}, code=None)
    if done.returncode == 2 and "base" in done.stderr:
        raise Skip("this build has no instruction set base")
    assert done.stdout == usual and len(usual.split()) == 3, (done.stdout, usual)


main()
