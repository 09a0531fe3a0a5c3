"""What `make install` puts somewhere works there, and `make uninstall` takes all of it away again."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, Skip, main, run, test

BUILD = pathlib.Path(FOVEA).parent


def script(name, *arguments, code=0, **options):
    done = subprocess.run([str(ROOT / "scripts" / name), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)
    assert done.returncode == code, done.stdout[-800:]
    return done.stdout


def installed(folder):
    prefix = pathlib.Path(folder, "prefix")
    script("install.sh", BUILD, prefix)
    return prefix


def everything(folder):
    return {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")}


def compile_as_told(source, prefix, folder, static):
    """The command that stands in the comment at the head of an example, with the pkg-config file of the prefix."""
    [command] = re.findall(r"^ \* +(cc .*pkg-config.*)$", source.read_text(), re.M)
    if static:
        command = command.replace("pkg-config", "pkg-config --static")
    [pc] = prefix.rglob("fovea.pc")
    shutil.copy(source, folder)
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={"PKG_CONFIG_PATH": str(pc.parent), "PATH": "/usr/bin:/bin"}, check=False)
    assert done.returncode == 0, (command, done.stdout[-1500:])
    return pathlib.Path(folder, command.split()[-1])


@test
def the_programs_among_the_examples_are_compiled_as_they_say_and_run(folder):
    prefix = installed(folder)
    for static in (False, True):
        if static:  # what a machine without the shared library does
            for shared in prefix.rglob("libfovea.so*"):
                shared.unlink()
        for source in sorted((ROOT / "examples").glob("*.c")):
            program = compile_as_told(source, prefix, folder, static)
            library = ":".join({str(p.parent) for p in prefix.rglob("libfovea.*")})
            done = subprocess.run([str(program)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={"LD_LIBRARY_PATH": library, "PATH": "/usr/bin"}, check=False)
            assert done.returncode == 0, (source.name, static, done.stderr[-500:])
            lines = done.stdout.splitlines()
            if source.stem == "count_bubbles":
                assert lines[0].startswith("2 bubbles") and "label 2" in lines[0] and len(lines) == 3, lines
            else:
                assert lines, source.name


@test
def uninstalling_leaves_what_was_there_before_and_nothing_else(folder):
    prefix = pathlib.Path(folder, "prefix")
    (prefix / "share" / "man" / "man7").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "mine.txt").write_text("mine")
    before = everything(prefix)
    script("install.sh", BUILD, prefix)
    script("install.sh", BUILD, prefix)  # once more changes nothing
    after = everything(prefix)
    for name in ("bin/fovea", "include/fovea/fovea.h", "share/man/man1/fovea-run.1", "share/man/man7/fovea-gaussian.7",
                 "share/bash-completion/completions/fovea", "share/zsh/site-functions/_fovea",
                 "share/fish/vendor_completions.d/fovea.fish", "share/doc/fovea/docs/language.md",
                 "share/doc/fovea/examples/foam.fov"):
        assert name in after, name
    script("uninstall.sh", prefix)
    assert everything(prefix) == before, everything(prefix) ^ before
    assert "has put nothing" in script("uninstall.sh", prefix, code=1)


@test
def an_empty_place_is_empty_again_and_a_staged_one_too(folder):
    prefix = installed(folder)
    script("uninstall.sh", prefix)
    assert not everything(prefix), everything(prefix)
    stage = dict(os.environ, DESTDIR=str(pathlib.Path(folder, "stage")))
    script("install.sh", BUILD, "/opt/fovea", env=stage)
    assert pathlib.Path(folder, "stage/opt/fovea/bin/fovea").exists()
    script("uninstall.sh", "/opt/fovea", env=stage)
    left = [path for path in everything(stage["DESTDIR"]) if not pathlib.Path(stage["DESTDIR"], path).is_dir()]
    assert not left, left


@test
def every_command_and_operator_has_a_page_that_formatters_take(folder):
    run("man", "--into", "man", folder=folder)
    pages = pathlib.Path(folder, "man")
    commands = re.findall(r"^  (\w+)  ", run("--help", folder=folder).stdout, re.M)
    operators = [op["name"] for op in json.loads(run("ops", "--json", folder=folder).stdout)["operators"]]
    assert {page.name for page in pages.glob("man1/*")} == {"fovea.1", *(f"fovea-{name}.1" for name in commands)}
    assert {page.name for page in pages.glob("man7/*")} == {f"fovea-{name}.7" for name in operators}
    assert run("man", "gaussian", folder=folder).stdout == pages.joinpath("man7/fovea-gaussian.7").read_text()
    assert "no such command or operator" in run("man", "gausian", folder=folder, code=2).stderr
    formatter = shutil.which("groff") or shutil.which("mandoc")
    if not formatter:
        raise Skip("neither groff nor mandoc is here")
    for page in sorted(pages.rglob("fovea*")):
        check = [formatter, "-man", "-Tutf8", "-ww", "-z"] if formatter.endswith("groff") else [formatter, "-Tlint", "-Wwarning"]
        done = subprocess.run([*check, str(page)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0 and not done.stdout.strip(), (page.name, done.stdout[-500:])


def completed(folder, *words):
    """What bash would offer for the last of these words."""
    source = pathlib.Path(folder, "completion.bash")
    source.write_text(run("completion", "bash", folder=folder).stdout)
    line = " ".join(f"'{word}'" for word in words)
    text = f"""source {source}
COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
$(complete -p fovea | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-u", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


@test
def bash_completes_commands_options_values_and_operators(folder):
    assert completed(folder, "fovea", "pl") == ["plan"]
    assert "run" in completed(folder, "fovea", "")
    assert completed(folder, "fovea", "run", "--over") == ["--overwrite"]
    assert completed(folder, "fovea", "ops", "gaussian_l") == ["gaussian_laplace"]
    assert completed(folder, "fovea", "completion", "f") == ["fish"]
    assert completed(folder, "fovea", "run", "some") == []  # files, which bash does by itself
    assert completed(folder, "fovea", "run", "--memory", "-") == []


@test
def other_shells_take_their_completions(folder):
    tried = 0
    for shell, check in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
        text = run("completion", shell, folder=folder).stdout
        assert "gaussian" in text and "overwrite" in text
        if shutil.which(shell):
            tried += 1
            file = pathlib.Path(folder, f"completion.{shell}")
            file.write_text(text)
            subprocess.run([*check, str(file)], check=True)
    assert "expected bash, zsh or fish" in run("completion", "csh", folder=folder, code=2).stderr
    if not tried:
        raise Skip("neither zsh nor fish is here")


main()
