#!/usr/bin/env python3
"""Writes the tables of formats in docs/files.md from what the formats say about themselves.

    scripts/files_page.py          brings the page up to date
    scripts/files_page.py --print  prints the page as it should be
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "files.md"
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))


def described():
    return json.loads(subprocess.run([FOVEA, "ops", "--json"], stdout=subprocess.PIPE, check=True, cwd="/").stdout)


def cell(has, words, compressions=()):
    """What is known about one direction: words of the format, and its compressions, the default first."""
    parts = [words] if words else []
    if compressions:
        parts.append("compression " + ", ".join(compressions))
    return "; ".join(parts) or "yes" if has else "–"


def row(format_):
    extensions = "`" + " ".join("." + e for e in format_["extensions"]) + "`" if format_["extensions"] else "–"
    return (f"| **{format_['name']}**: {format_['brief']} | {extensions} | {cell(format_['reads'], format_.get('reading'))} | "
            f"{cell(format_['writes'], format_.get('writing'), format_.get('compressions', []))} | "
            f"{format_.get('keeps', '–')} |")


def images(formats):
    return "\n".join(["| format | extensions | read | write | kept beside the voxels |", "|---|---|---|---|---|"] +
                     [row(f) for f in sorted(formats, key=lambda f: f["name"])])


def tables(formats):
    lines = ["| format | extensions | read | write |", "|---|---|---|---|"]
    for f in formats:
        extensions = " ".join("." + e for e in f["extensions"])
        lines.append(f"| **{f['name']}**: {f['brief']} | `{extensions}` | {cell(f['reads'], '')} | {cell(f['writes'], '')} |")
    return "\n".join(lines)


def page(text):
    """The page with its made parts made anew."""
    known = described()
    for name, made in (("images", images(known["formats"])), ("tables", tables(known["tables"]))):
        begin, end = f"<!-- {name}: made by scripts/files_page.py -->\n\n", f"\n\n<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
        if not pattern.search(text):
            raise SystemExit(f"files_page.py: docs/files.md has no place for {name}")
        text = pattern.sub(lambda _, b=begin, m=made, e=end: b + m + e, text)
    return text


if __name__ == "__main__":
    NEW = page(PAGE.read_text())
    if "--print" in sys.argv:
        sys.stdout.write(NEW)
    else:
        PAGE.write_text(NEW)
