#!/usr/bin/python3
"""Runs the golden command-line tests: tests/cli/NAME.test.

usage: run.py BUILD_FOLDER [WORD...]      only tests whose name contains one of the words
       run.py BUILD_FOLDER --accept WORD  writes what the commands print into these files, for review

A test file is a session at the prompt:

    # a comment, at the start of a line, until the first command
    requires: data png                    (optional) real test files; operators, formats or commands by name
    $ fovea ops nosuch
    fovea ops: nosuch: no such operator, family or format
    [2]

`$ ` starts a command, `> ` lines right below it are its further lines (a here-document, say). What follows is what it
prints, standard output and standard error together, then [N] if the exit status is not 0. A line `...` stands for any
number of lines, `...` within a line for any characters. Blanks at the end of a line do not count.

Each test runs in a fresh folder with fovea on the PATH and DATA set to the folder of real files. It prints "ok NAME",
"not ok NAME: why" or "skip NAME: why".
"""
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 1800  # seconds by the clock after which a command hangs


class Step:
    def __init__(self, command):
        self.command = command  # lines
        self.expected = []      # lines, the exit status among them


def parse(path):
    """The steps of a test file, what it requires, and the lines before the first command."""
    head, steps, requires = [], [], []
    for line in map(str.rstrip, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("$ "):
            steps.append(Step([line[2:]]))
        elif not steps:
            head.append(line)
            if line.startswith("requires:"):
                requires = line.split(":", 1)[1].split()
        elif re.match(">( |$)", line) and not steps[-1].expected:
            steps[-1].command.append(line[2:])
        else:
            steps[-1].expected.append(line)
    for step in steps:  # blank lines between a step and the next are for the eye
        while step.expected and not step.expected[-1]:
            step.expected.pop()
    return steps, requires, head


def run(step, folder, environment):
    """What the command prints, as lines."""
    try:
        done = subprocess.run(["/bin/sh", "-c", "\n".join(step.command)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return ["(no end after %d seconds)" % PATIENCE]
    lines = [line.rstrip() for line in done.stdout.decode("utf-8", "replace").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if done.returncode:
        lines.append("[%d]" % done.returncode)
    return lines


def line_matches(pattern, line):
    if "..." not in pattern:
        return pattern == line
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("...")), line) is not None


def matches(expected, actual):
    """Whether the lines fit, with `...` lines for any number; by rows, so that many wildcards stay cheap."""
    reachable = {0}
    for pattern in expected:
        if pattern == "...":
            reachable = set(range(min(reachable), len(actual) + 1)) if reachable else set()
        else:
            reachable = {i + 1 for i in reachable if i < len(actual) and line_matches(pattern, actual[i])}
    return len(actual) in reachable


def missing(requires, known, data):
    for word in requires:
        if word == "data":
            if not data:
                return "no real test files here (FOVEA_TEST_DATA)"
        elif word not in known:
            return "this build has no %s" % word
    return None


def known_names(environment):
    """Operators, formats and commands of the build."""
    listing = json.loads(subprocess.run(["fovea", "ops", "--json"], env=environment, stdout=subprocess.PIPE, check=True).stdout)
    names = {entry["name"] for kind in ("operators", "formats", "tables") for entry in listing[kind]}
    overview = subprocess.run(["fovea", "--help"], env=environment, stdout=subprocess.PIPE, check=True).stdout.decode()
    return names | set(re.findall(r"^  (\w+)  ", overview, re.MULTILINE))


def run_test(path, environment, accept):
    """None, or why it failed."""
    steps, _, head = parse(path)
    with tempfile.TemporaryDirectory(prefix="fovea-cli-") as folder:
        for step in steps:
            actual = run(step, folder, environment)
            if matches(step.expected, actual):
                continue
            if not accept:
                difference = difflib.unified_diff(step.expected, actual, "expected", "printed", lineterm="", n=2)
                return "$ %s\n%s" % ("\n> ".join(step.command), "\n".join("    " + line for line in list(difference)[2:]))
            step.expected = actual
    if accept:
        text = head + ["\n".join(["$ " + "\n> ".join(s.command).replace("\n> \n", "\n>\n")] + s.expected) + "\n" for s in steps]
        path.write_text("\n".join(text).rstrip("\n") + "\n", encoding="utf-8")
    return None


def find_data():
    data = os.environ.get("FOVEA_TEST_DATA", str(HERE.parent.parent.parent / "shared" / "data"))
    return data if os.path.isdir(data) else None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    accept = "--accept" in words
    words = [word for word in words if word != "--accept"]
    data = find_data()
    environment = dict(os.environ, PATH=build + os.pathsep + os.environ["PATH"], LC_ALL="C.UTF-8", DATA=data or "")
    known, failures = known_names(environment), 0
    for path in sorted(HERE.glob("*.test")):
        name = path.stem
        if words and not any(word in name for word in words):
            continue
        reason = missing(parse(path)[1], known, data)
        if reason:
            print("skip %s: %s" % (name, reason))
            continue
        reason = run_test(path, environment, accept)
        print("not ok %s: %s" % (name, reason) if reason else "ok %s" % name, flush=True)
        failures += reason is not None
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
