#!/usr/bin/python3
"""The bundle of the page that is committed is the one that its sources give, is small, and needs nothing that its content policy
forbids."""
import gzip
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, test  # noqa: E402

WEB = ROOT / "web"
FORBIDDEN = r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function"
MODULES = ROOT / "build" / "web" / "node_modules"


@test
def bundle_belongs_to_the_sources(_):
    digest = hashlib.sha256()
    for folder in ("src", "vendor"):
        for path in sorted((WEB / folder).iterdir(), key=lambda one: one.name):
            digest.update(f"{folder}/{path.name}\n".encode())
            digest.update(path.read_bytes())
    assert (WEB / "dist/sources.sha256").read_text().strip() == digest.hexdigest(), "run node web/build.mjs and commit web/dist"


@test
def bundle_is_what_esbuild_makes_of_the_sources(folder):
    if not shutil.which("node") or not (MODULES / "esbuild").is_dir():
        raise Skip("no node or esbuild; scripts/bootstrap.sh browser fetches them")
    subprocess.run(["node", WEB / "build.mjs", MODULES, folder], check=True)
    for path in (WEB / "dist").iterdir():
        assert pathlib.Path(folder, path.name).read_bytes() == path.read_bytes(), f"{path.name} differs; run node web/build.mjs"


@test
def bundle_is_small(_):
    parts = [path.read_bytes() for path in (WEB / "dist").iterdir() if path.suffix in (".html", ".js", ".css")]
    size, packed = sum(map(len, parts)), sum(len(gzip.compress(part, 9)) for part in parts)
    assert size <= 250_000 and packed <= 90_000, (size, packed)


@test
def page_has_no_text_that_becomes_program_or_markup(_):
    for path in (WEB / "src").iterdir():
        found = re.search(FORBIDDEN, path.read_text())
        assert not found, f"{path.name} has {found and found[0]}"
    index = (WEB / "src/index.html").read_text()
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\son\w+=|style=", index), "something inline"


main()
