#!/usr/bin/env python3
"""Checks that no code is bound to the name of an operator: whatever is special about one is a field of its descriptor (op/op.h).

A comparison with a literal that is an operator's name, or a search for an operator by a literal, is a breach in all parts of
src/ that know operators. File formats, the viewer and the command do not: a word there may be a name of theirs. Prints every
breach as FILE:LINE: what is wrong; the exit status is 1 if there is any.
"""
import pathlib
import re
import sys

STRANGERS = "ops formats tables cli plugins view".split()
CALLS = "strcmp|strncmp|strcasecmp|strncasecmp|strstr|memcmp|fv__op_find|fv__equal|fv_equal"

root = pathlib.Path(__file__).resolve().parent.parent


def operators():
    for path in (root / "src" / "ops").rglob("*.c"):
        text = path.read_text()
        if "FV_OP(" in text:
            yield from re.findall(r'\.name = "([a-z_0-9]+)",(?=[^;]*\.family)', text)


def calls_with_literals(text):
    """Each call of a comparison as its place and the literals among its own arguments."""
    for match in re.finditer(rf"\b(?:{CALLS})\(", text):
        depth, at = 1, match.end()
        while at < len(text) and depth:
            literal = re.compile(r'"((?:[^"\\]|\\.)*)"').match(text, at)
            if literal:
                if depth == 1:
                    yield match.start(), literal[1]
                at = literal.end()
                continue
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1


def main():
    names, breaches, count = set(operators()), [], 0
    for path in sorted(p for p in (root / "src").rglob("*.[ch]") if p.relative_to(root / "src").parts[0] not in STRANGERS):
        text = path.read_text()
        count += 1
        for at, literal in calls_with_literals(text):
            if literal in names:
                line = text.count("\n", 0, at) + 1
                breaches.append(f"{path.relative_to(root)}:{line}: the name of the operator {literal}; its descriptor says "
                                "what is special about it")
    if not names:
        breaches.append("src/ops: no operator was found")
    print("\n".join(breaches) if breaches else f"{count} source files name none of the {len(names)} operators")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
