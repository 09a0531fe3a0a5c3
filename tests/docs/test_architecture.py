#!/usr/bin/env python3
"""What docs/architecture.md prints of the source is the source."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, main, test  # noqa: E402


@test
def the_engine_interface_is_printed_as_it_is(_):
    page = pathlib.Path(ROOT, "docs", "architecture.md").read_text()
    printed = re.search(r"## The engine interface.*?```c\n(.*?)```", page, re.S)[1]
    assert "fv__job_next" in printed and "fv__job_lost" in printed and "} fv_engine;" in printed, printed
    assert printed in pathlib.Path(ROOT, "src", "run", "engine.h").read_text(), "src/run/engine.h says something else"


@test
def every_file_that_the_page_names_is_there(_):
    page = pathlib.Path(ROOT, "docs", "architecture.md").read_text()
    names = set(re.findall(r"`([a-z_]+/[a-z_/]+\.[ch])`", page))
    missing = sorted(n for n in names if not any(pathlib.Path(ROOT, base, n).exists() for base in ("src", ".")))
    assert len(names) > 10 and not missing, missing


main()
