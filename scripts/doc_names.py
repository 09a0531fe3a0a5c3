#!/usr/bin/env python3
"""Checks that the pages for developers name only what is there: files, folders, and the names of functions, types and constants.

A path in `backquotes` is below the root or below src/; a file without a folder is anywhere. What has a word in capitals in it
(src/formats/NAME.c) stands for many, and what a page tells to write (Write `src/ops/math/cube.c`) is not there yet. Names are
also looked up in blocks of code, but for those of the examples. Lines of a block that a page says is from a file are lines of
that file. Prints every breach as FILE:LINE: what is wrong; the exit status is 1 if there is any.
"""
import pathlib
import re
import sys

PAGES = ["docs/architecture.md", "docs/style.md", "docs/developing.md"]
ENDINGS = "c h cl py sh md txt".split()
EXAMPLES = re.compile(r"noun|verb|word|gray8|hello|cube|NAME", re.IGNORECASE)  # names that stand for many, or for new ones

root = pathlib.Path(__file__).resolve().parent.parent


def files():
    for folder in ["src", "include", "tests", "bench", "scripts"]:
        yield from (path for path in (root / folder).rglob("*") if path.suffix[1:] in ENDINGS)


def is_path(word):
    is_file = word.rpartition(".")[2] in ENDINGS and "." in word[1:]
    return bool(re.fullmatch(r"[\w./-]+", word)) and (word.endswith("/") or is_file)


def is_there(word, names):
    if any(part.isupper() for part in re.split(r"[/._]", word)):
        return True
    if any((root / base / word).exists() for base in ("", "src", "docs")):
        return True
    return "/" not in word.rstrip("/") and word.rstrip("/") in names


def check_page(page, names, identifiers):
    """The breaches of one page."""
    inside, copied, last = False, None, ""
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        place = f"{page}:{number}"
        if line.lstrip().startswith("```"):
            inside = not inside
            source = re.search(r"from `([\w/]+\.h)`:$", last) if inside else None
            copied = (root / "src" / source[1]).read_text().splitlines() if source else None
            continue
        last = line or last
        if copied is not None and inside and line not in copied:
            yield f"{place}: the file has no such line"
        told = set(re.findall(r"Write `([^`]+)`", line))
        for quoted in [line] if inside else re.findall(r"`([^`]+)`", line):
            if not inside and is_path(quoted) and quoted not in told and not is_there(quoted, names):
                yield f"{place}: there is no {quoted}"
            for word in re.findall(r"\b(?:fv|FV)_\w+", quoted):
                if word not in identifiers and not EXAMPLES.search(word):
                    yield f"{place}: nothing is called {word}"


def main():
    paths = list(files())
    names = {path.name for path in paths} | {path.parent.name for path in paths}
    identifiers = {name for path in paths for name in re.findall(r"\b(?:fv|FV)_\w+", path.read_text())}
    breaches = [breach for page in PAGES for breach in check_page(page, names, identifiers)]
    print("\n".join(breaches) if breaches else f"{len(PAGES)} pages for developers name what is there")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
