#!/usr/bin/env python3
"""What `make check` says: layers, names, lines and format of the sources, and what cppcheck finds."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import PATIENCE, ROOT, Skip, main, test  # noqa: E402


def finds_nothing(*command):
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


@test
def layers_names_and_lines_are_in_order(_):
    finds_nothing(sys.executable, "scripts/layers.py")


@test
def a_breach_of_the_layers_is_found(folder):
    """In a copy with a file of the lowest layer that includes from the highest, a long line and a name that is there twice."""
    for part in "src", "scripts", "include", "tests", "bench", "python":
        shutil.copytree(ROOT / part, pathlib.Path(folder, part), ignore=shutil.ignore_patterns("findings", "__pycache__"))
    wrong = pathlib.Path(folder, "src", "base", "budget.c")
    wrong.write_text('#include "api/report.h"\n' + "/* " + "x" * 200 + " */\n")
    done = subprocess.run([sys.executable, "scripts/layers.py"], cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 3, done.stdout
    for words in "base must not include api/report.h", "line of 206 characters", "there is another budget.c":
        assert any(words in line for line in lines), (words, lines)


@test
def no_code_is_bound_to_the_name_of_an_operator(_):
    finds_nothing(sys.executable, "scripts/operator_names.py")


@test
def code_that_is_bound_to_the_name_of_an_operator_is_found(folder):
    """In a copy where a file of the graph compares with two names of operators, and with two words that are none."""
    for part in "src", "scripts":
        shutil.copytree(ROOT / part, pathlib.Path(folder, part), ignore=shutil.ignore_patterns("__pycache__"))
    pathlib.Path(folder, "src", "graph", "wrong.c").write_text(
        'bool a(const fv_op *op) { return !strcmp(op->name, "gaussian") || !strcmp(op->family, "filters"); }\n'
        'const fv_op *b(void) {\n    return strcmp(name("read"),\n                  "x") ? fv__op_find("otsu") : NULL;\n}\n')
    done = subprocess.run([sys.executable, "scripts/operator_names.py"], cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 2, done.stdout
    assert lines[0].startswith("src/graph/wrong.c:1: the name of the operator gaussian"), lines
    assert lines[1].startswith("src/graph/wrong.c:4: the name of the operator otsu"), lines


@test
def no_state_belongs_to_the_process_but_what_is_listed(_):
    finds_nothing(sys.executable, "scripts/process_state.py")


@test
def state_of_the_process_that_is_not_listed_is_found(folder):
    """In a library with a variable, a variable in a function, one of a thread, a constant and a table of constants."""
    pathlib.Path(folder, "wrong.c").write_text(
        "static int kept; const int constant = 4; static const char *const names[] = { \"a\", \"b\" };\n"
        "static _Thread_local int own;\n"
        "int next(void) { static long count = 3; return kept++ + own++ + names[kept][0] + (int)count++; }\n")
    subprocess.run(["cc", "-fPIC", "-c", "wrong.c", "-o", "wrong.c.o"], cwd=folder, check=True)
    subprocess.run(["ar", "rc", "wrong.a", "wrong.c.o"], cwd=folder, check=True)
    done = subprocess.run([sys.executable, ROOT / "scripts" / "process_state.py", "wrong.a"], cwd=folder, capture_output=True,
                          text=True, check=False)
    lines = [line.split(" belongs")[0] for line in done.stdout.splitlines() if " belongs to the process" in line]
    assert done.returncode == 1 and lines == ["wrong.c: count", "wrong.c: kept"], done.stdout


@test
def pages_for_developers_name_what_is_there(_):
    finds_nothing(sys.executable, "scripts/doc_names.py")


@test
def names_that_are_gone_are_found(folder):
    """In a copy whose pages name a file, a folder and a function that are not there, and show a line that a header has not."""
    for part in "src", "scripts", "include", "docs":
        shutil.copytree(ROOT / part, pathlib.Path(folder, part), ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    for name in "tests", "bench", "python", "web":
        pathlib.Path(folder, name).symlink_to(ROOT / name)
    page, name = pathlib.Path(folder, "docs", "architecture.md"), "_".join(["fv_", "gone"])  # not written here as one word
    page.write_text(page.read_text().replace("    int64_t          memory;", "    int              memory;").replace(
        "    int64_t         memory;", "    int             memory;") + f"`run/gone.c` `gone/` `{name}`, `run/run.c`\n")
    done = subprocess.run([sys.executable, "scripts/doc_names.py"], cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 4, done.stdout
    for words in "no such line", "there is no run/gone.c", "there is no gone/", f"nothing is called {name}":
        assert any(words in line for line in lines), (words, lines)


@test
def cppcheck_finds_nothing(_):
    if not shutil.which("cppcheck"):
        raise Skip("no cppcheck: scripts/bootstrap.sh check could not install it")
    finds_nothing("scripts/cppcheck.sh")


@test
def every_file_is_formatted(_):
    if not shutil.which("clang-format"):
        raise Skip("no clang-format: scripts/bootstrap.sh check could not install it")
    finds_nothing("scripts/format.sh", "--check")


main()
