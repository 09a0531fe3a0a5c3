"""command, command_table, command_number: programs inside a pipeline, with the manners of real ones, on every engine."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import slurm
from fovea_test import FOVEA, ROOT, Skip, main, run, test, wait_for

PYTHON = "/usr/bin/python3"
INVERT = """import sys, numpy as np
a = np.load(sys.argv[1])
np.save(sys.argv[2], (int(sys.argv[3]) - a.astype(np.int64)).astype(a.dtype))
"""


def script(folder, text, name="tool.py"):
    pathlib.Path(folder, name).write_text(text)
    return name


def scans(folder, count=3, shape=(20, 30)):
    os.makedirs(os.path.join(folder, "in"), exist_ok=True)
    images = {}
    for i in range(count):
        images[f"s{i}"] = np.random.default_rng(i).integers(0, 200, shape).astype(np.uint8)
        np.save(os.path.join(folder, "in", f"s{i}.npy"), images[f"s{i}"])
    return images


def call(words="/usr/bin/python3 tool.py {input} {output} {top}", rest="top = 255", image='read("in/*.npy")', output="npy"):
    return f'command("{words}", input = {image}, output = "{output}", time = "2m"{", " if rest else ""}{rest})'


def go(folder, text, *options, allow=True, **more):
    return run("run", "-q", "-e", text, *(["--allow-commands"] if allow else []), *options, folder=folder, **more)


def alive(mark):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


# ---- consent

@test
def no_program_runs_without_consent(folder):
    scans(folder, 1)
    script(folder, "open('ran', 'w')")
    text = call() + ' |> write("out/{stem}.npy")'
    refused = go(folder, text, allow=False, code=2)
    assert "--allow-commands" in refused.stderr and "command" in refused.stderr, refused.stderr
    planned = run("plan", "-e", text.replace("time =", 'version = "--version", time ='), folder=folder)
    assert "command" in planned.stdout, planned.stdout
    refused = run("submit", "-e", text, folder=folder, code=2)
    assert not os.path.exists(os.path.join(folder, "ran"))


@test
def the_consent_in_a_run_s_folder_is_that_of_its_owner(folder):
    if os.geteuid():
        raise Skip("only root can give a file to another user")
    scans(folder, 1)
    script(folder, "import os, sys, numpy\nopen('ran', 'a').write('x')\n"
                   "sys.exit(3) if os.path.exists('bad') else numpy.save(sys.argv[2], numpy.load(sys.argv[1]))")
    pathlib.Path(folder, "bad").touch()
    go(folder, call(f"{PYTHON} {folder}/tool.py {{input}} {{output}}", "") + ' |> write("out/{stem}.npy")', code=1)
    ran, (manifest,) = pathlib.Path(folder, "ran"), pathlib.Path(folder, ".fovea", "runs").glob("*/manifest.json")
    before = ran.read_text()
    os.chown(manifest, 65534, -1)
    os.remove(os.path.join(folder, "bad"))
    refused = run("work", str(manifest.parent), "--alone", folder=folder, code=2)
    assert "--allow-commands" in refused.stderr and ran.read_text() == before, refused.stderr
    os.chown(manifest, 0, -1)
    assert not manifest.stat().st_mode & 0o22
    os.chmod(manifest, 0o664)  # others of the group can have changed it
    assert "--allow-commands" in run("work", str(manifest.parent), "--alone", folder=folder, code=2).stderr
    assert ran.read_text() == before
    os.chmod(manifest, 0o644)
    run("work", str(manifest.parent), "--alone", folder=folder)
    assert ran.read_text() != before and os.path.exists(os.path.join(folder, "out", "s0.npy"))


@test
def a_run_of_another_user_gets_the_consent_of_this_one_anew(folder):
    if os.geteuid():
        raise Skip("only root can give a file to another user")
    images = scans(folder, 1)
    script(folder, INVERT)
    words = ["run", "-q", "--allow-commands", "--engine", "processes", "--workers", "2", "-e",
             call() + ' |> write("out/{stem}.npy")']
    before = os.umask(0o002)
    try:
        run(*words, folder=folder)
        (manifest,) = pathlib.Path(folder, ".fovea", "runs").glob("*/manifest.json")
        assert manifest.stat().st_mode & 0o777 == 0o644
        os.chown(manifest, 65534, -1)
        shutil.rmtree(f"{folder}/out")
        run(*words, "--fresh", folder=folder)
    finally:
        os.umask(before)
    assert manifest.stat().st_uid == 0 and np.array_equal(np.load(f"{folder}/out/s0.npy"), 255 - images["s0"])


@test
def a_text_that_the_user_trusts_runs_programs_and_nothing_else_does(folder):
    scans(folder, 1)
    script(folder, INVERT)
    own, text = {"XDG_CONFIG_HOME": f"{folder}/own"}, call() + ' |> write("out/{stem}.npy")'
    pathlib.Path(folder, "p.fov").write_text(text + "\n")
    words = ["run", "p.fov", "--fresh"]
    assert "fovea trust" in run(*words, folder=folder, environment=own, code=2).stderr
    run("trust", "p.fov", folder=folder, environment=own)
    run("trust", "p.fov", folder=folder, environment=own)
    listed = run("trust", "--list", folder=folder, environment=own).stdout
    sums = subprocess.run(["sha256sum", os.path.realpath(f"{folder}/p.fov")], stdout=subprocess.PIPE, text=True, check=True)
    assert listed == sums.stdout, (listed, sums.stdout)
    run(*words, folder=folder, environment=own)
    assert os.path.exists(os.path.join(folder, "out/s0.npy"))
    run("run", "-e", text, "--fresh", folder=folder, environment=own, code=2)  # its last line does not end: another text
    pathlib.Path(folder, "p.fov").write_text(text + "\n\n")
    assert "--allow-commands" in run(*words, folder=folder, environment=own, code=2).stderr
    pathlib.Path(folder, "p.fov").write_text(text + "\n")
    # lists beside the pipeline, or such as others could have written, do not count
    for place in ("trusted", "fovea/trusted", ".config/fovea/trusted", ".fovea/trusted"):
        pathlib.Path(folder, place).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(folder, place).write_text(listed)
    other = {"XDG_CONFIG_HOME": f"{folder}/nobody"}
    run(*words, folder=folder, environment=other, code=2)
    os.chmod(os.path.join(folder, "own/fovea/trusted"), 0o666)
    assert "not believed" in run(*words, folder=folder, environment=own, code=2).stderr
    os.chmod(os.path.join(folder, "own/fovea/trusted"), 0o600)
    run("trust", "p.fov", "--remove", folder=folder, environment=own)
    assert not run("trust", "--list", folder=folder, environment=own).stdout
    run(*words, folder=folder, environment=own, code=2)
    # the site's list, by hand
    pathlib.Path(folder, "site").mkdir()
    pathlib.Path(folder, "site/trusted").write_text(listed)
    run(*words, folder=folder, environment=dict(own, FOVEA_SITE=f"{folder}/site"))


# ---- images

@test
def an_image_goes_through_a_program_and_only_what_changed_runs_again(folder):
    images = scans(folder)
    script(folder, INVERT + "open('runs', 'a').write('x')\n")
    text = "param top = 255\n" + call(rest="top = top") + ' |> write("out/{stem}-{top}.npy")'
    count = lambda: len(pathlib.Path(folder, "runs").read_text())
    go(folder, text)
    for name, image in images.items():
        assert np.array_equal(np.load(f"{folder}/out/{name}-255.npy"), 255 - image)
    assert count() == 3
    go(folder, text)
    assert count() == 3
    go(folder, text, "--set", "top=255,200")  # a sweep over a word of the command
    assert np.array_equal(np.load(f"{folder}/out/s1-200.npy"), 200 - images["s1"]) and count() == 6
    script(folder, INVERT + "open('runs', 'a').write('x')  # changed\n")
    go(folder, text)
    assert count() == 9


@test
def a_new_version_of_the_program_computes_anew(folder):
    scans(folder, 1)
    program = pathlib.Path(folder, "my tool")
    def make(version):
        program.write_text(f"#!{PYTHON}\nimport sys, shutil\n"
                           "if '--version' in sys.argv: print(open('version').read()); sys.exit()\n"
                           "open('runs', 'a').write('x'); shutil.copy(sys.argv[1], sys.argv[2])\n")
        program.chmod(0o755)
        pathlib.Path(folder, "version").write_text(version)
    text = call("'./my tool' {input} {output}", 'version = "--version"') + ' |> write("{stem}.npy")'
    for version, runs in [("1.0", 1), ("1.0", 1), ("1.1", 2)]:
        make(version)
        go(folder, text, "--overwrite")
        assert len(pathlib.Path(folder, "runs").read_text()) == runs, version


@test
def types_are_those_of_like_or_said_and_others_are_refused(folder):
    images = scans(folder, 1)
    script(folder, "import sys, numpy as np\na = np.load(sys.argv[1])\n"
                   "np.save(sys.argv[2], a[::2, ::3].astype(np.float32) / 2)\n")
    words = "/usr/bin/python3 tool.py {input} {output}"
    image = 'read("in/s0.npy")'
    go(folder, call(words, 'dtype = "float32", shape = [10, 10]', image) + ' |> write("a.npy")')
    assert np.array_equal(np.load(f"{folder}/a.npy"), images["s0"][::2, ::3].astype(np.float32) / 2)
    go(folder, call(words, f"like = {image}[0:10, 0:10] / 2", image) + ' |> write("b.npy")')
    assert np.array_equal(np.load(f"{folder}/b.npy"), np.load(f"{folder}/a.npy"))
    failed = go(folder, call(words, "", image) + ' |> write("c.npy")', code=1)
    assert "float32 10 x 10" in failed.stderr and "uint8 20 x 30" in failed.stderr, failed.stderr


@test
def a_first_run_finds_the_type_of_an_image(folder):
    images = scans(folder)
    script(folder, "import sys, numpy as np\nopen('runs', 'a').write('x')\n"
           "np.save(sys.argv[2], np.load(sys.argv[1])[::2, :int(sys.argv[3])].astype(np.float32))\n")
    text = call(rest="top = 10, first = true") + ' |> write("out/{stem}.npy")'
    assert "first = true" in go(folder, text.replace(", first = true", ""), code=1).stderr  # which is a way out
    pathlib.Path(folder, "runs").unlink()
    go(folder, text)
    for name, image in images.items():
        assert np.array_equal(np.load(f"{folder}/out/{name}.npy"), image[::2, :10].astype(np.float32))
    assert len(pathlib.Path(folder, "runs").read_text()) == 4  # of the first item twice
    go(folder, text)
    assert len(pathlib.Path(folder, "runs").read_text()) == 4
    pathlib.Path(folder, "p.fov").write_text(
        "# für später\nparam n = 10\n\n" + text.replace("top = 10", "top = n  # ) \"\n") + "\n")
    own = {"XDG_CONFIG_HOME": f"{folder}/own"}
    run("trust", "p.fov", folder=folder, environment=own)
    run("run", "p.fov", "--engine", "processes", "--set", "n=7", "--fresh", folder=folder, environment=own)
    assert np.load(f"{folder}/out/s1.npy").shape == (10, 7)
    assert "to plan it" in run("plan", "-e", text, folder=folder, code=2).stderr
    assert "first run" in go(folder, text, allow=False, code=2).stderr
    assert "slices" in go(folder, text.replace("first = true", 'first = true, slices = "y"'), code=2).stderr
    script(folder, "raise SystemExit('no such luck')")
    assert "no such luck" in go(folder, text, code=1).stderr


@test
def a_first_run_finds_the_columns_of_a_table(folder):
    scans(folder, 2)
    script(folder, "import sys, numpy as np\na = np.load(sys.argv[1])\n"
           "print('label,area,name'); print('1,2.5,x'); print('2,3,m%d' % a.max())\n")
    table = 't = read("in/*.npy") |> command_table("/usr/bin/python3 tool.py {input}", format = "npy")\n'
    said = table.replace('"npy")', '"npy", columns = "label:int, area, name:text")')
    rest = 'filter(t, area > 2.6) |> write("big.csv")\nt |> write("all.csv")'
    go(folder, table + rest)
    found = [pathlib.Path(folder, name).read_text() for name in ("big.csv", "all.csv")]
    go(folder, said + rest, "--overwrite", "--fresh")
    assert found == [pathlib.Path(folder, name).read_text() for name in ("big.csv", "all.csv")]
    assert "label" in found[0] and len(found[0].splitlines()) == 3, found
    assert "-e:2:1: error" in go(folder, table + "gausian(t)", code=2).stderr
    script(folder, 'print(\'[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]\')')
    both = 'b = command("cp {input} {output}", input = a, output = "npy", first = true)\nt = command_table("/usr/bin/python3 ' \
        'tool.py {input}", input = b, format = "npy", output = "json")\nt\nmean(b)'
    several = go(folder, 'a = command("cp {input} {output}", input = read("in/s0.npy"), output = "npy", first = true)\n' + both)
    assert several.stdout.split()[:6] == ["a", "b", "1", "x", "2", "y"], several.stdout
    json_table = 'command_table("/usr/bin/python3 tool.py {input}", input = read("in/s0.npy"), format = "npy", output = "json"'
    assert go(folder, json_table + ")").stdout.split() == ["a", "b", "1", "x", "2", "y"]
    assert go(folder, json_table + ', columns = "*")').stdout.split() == ["name", "kind", "a", "int", "b", "text"]
    assert "columns" in run("plan", "-e", table + "t", folder=folder, code=2).stderr
    for name in ('x", shell = true', "a{b}", "a:b", "a, b", "a\\b", "a\nb"):  # no part of the text
        script(folder, f"print({json.dumps([{name: 1}])!r})")
        refused = go(folder, json_table + ")", code=1)
        assert "say columns" in refused.stderr, refused.stderr
    script(folder, 'print(\'[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]\')')
    # what looks like brackets in comments and in texts of either kind, and a comma at the end
    for rest in (" # (so)\n)", ", # (so\n)", ", word = 'a) \\' \" (')", ', word = "b) \\" \' (",\n # it\'s\n )', " , )"):
        told = go(folder, json_table.replace("{input}", "{input} {word}" if "word" in rest else "{input}") + rest).stdout.split()
        assert told == ["a", "b", "1", "x", "2", "y"], (rest, told)


@test
def slices_and_several_inputs_and_formats(folder):
    volume = np.random.default_rng(0).integers(0, 200, (4, 12, 14)).astype(np.uint16)
    np.save(f"{folder}/v.npy", volume)
    np.save(f"{folder}/w.npy", volume[0])
    script(folder, "import sys, numpy as np\na, b = (np.load(n) for n in sys.argv[1:3])\nassert a.ndim == 2\n"
                   "np.save(sys.argv[3], a + b)\nopen('runs', 'a').write('x')\n")
    text = ('command("/usr/bin/python3 tool.py {input} {input2} {output}", input = read("v.npy"), input2 = read("w.npy"), '
            'output = "npy", slices = "z") |> write("out.npy")')
    go(folder, text, "--chunk", "3x5x5")
    assert np.array_equal(np.load(f"{folder}/out.npy"), volume + volume[0])
    assert len(pathlib.Path(folder, "runs").read_text()) == 4
    for ending in ("nii.gz", "tif", "nrrd", "mha"):
        go(folder, f'command("cp {{input}} {{output}}", input = read("v.npy"), output = "{ending}") |> write("{ending}.npy")')
        assert np.array_equal(np.load(f"{folder}/{ending}.npy"), volume), ending


@test
def what_is_printed_is_the_image_where_the_command_has_no_output(folder):
    images = scans(folder, 1)
    go(folder, call("cat {input}", "", 'read("in/s0.npy")') + ' |> write("a.npy")')
    assert np.array_equal(np.load(f"{folder}/a.npy"), images["s0"])


# ---- words

@test
def words_are_split_once_and_nothing_is_special_without_a_shell(folder):
    scans(folder, 1)
    script(folder, "import sys, json\njson.dump(sys.argv[2:], open('words', 'w'))\nprint(1)\n")
    text = ('command_number("/usr/bin/python3 tool.py {input} \'two words\' {a} {b} {c} $HOME ; x", format = "npy", '
            'input = read("in/s0.npy"), a = "it\'s; a b", b = [1, 2.5], c = true)')
    go(folder, text)
    words = json.loads(pathlib.Path(folder, "words").read_text())
    assert words == ["two words", "it's; a b", "1,2.5", "true", "$HOME", ";", "x"], words
    shell = ('command_number("test -f {input} && echo {a} | tr -cd [:digit:]", format = "npy", input = read("in/s0.npy"), '
             'a = "1; echo 2 > x", shell = true)')
    done = go(folder, shell)
    assert done.stdout.split()[-1] == "12" and not os.path.exists(f"{folder}/x"), done.stdout


@test
def mistakes_are_found_before_anything_runs(folder):
    scans(folder, 1)
    image = 'input = read("in/s0.npy")'
    for text, words in [
        (f'command("nosuchprogram {{input}} {{output}}", {image})', "no program nosuchprogram"),
        (f'command("cp {{input}} {{outptu}}", {image})', "is {output} meant"),
        (f'command("cp a {{output}}", {image})', "{input} is not in the command"),
        (f'command("cp {{input}} {{input2}}", {image})', "no input2 is given"),
        (f'command("cp {{input}} {{output}}", {image}, f = 0.5)', "no {f} for it"),
        (f'command("cp {{input}} {{output}}", {image}, output = "xyz")', "xyz"),
        (f'command("cp {{input}} {{output}}", {image}, memory = "lots")', 'such as "2G"'),
        (f'command("cp {{input}} {{output}}", {image}, time = "10")', 'such as "30s"'),
        (f'command("cp {{input}} {{output}}", {image}, f = mean(read("in/s0.npy")))', "constant"),
        (f'command("cp {{input}} \'{{output}}", {image})', "no closing '"),
        (f'command("cp {{input}} {{output}}", {image}, slices = "q")', "no such axis"),
        ('command("cp {input} {output}")', "there is no input"),
        (f'command_table("cat {{input}}", {image}, columns = "a:number")', "text, int or real"),
        (f'command_table("cat {{input}}", {image}, columns = "a", output = "png")', "csv, tsv, json"),
    ]:
        done = go(folder, text, code=2)
        assert words in done.stderr, (text, done.stderr)


# ---- tables and numbers

@test
def tables_and_numbers_come_back(folder):
    images = scans(folder)
    script(folder, """import sys, json, numpy as np
a = np.load(sys.argv[1])
rows = [{"name": f"row {i}, x", "sum": int(r.sum()), "mean": float(r.mean())} for i, r in enumerate(a[:2])]
if sys.argv[2] == "csv":
    print("name,sum,mean")
    for r in rows: print(f'"{r["name"]}",{r["sum"]},{r["mean"]}')
elif sys.argv[2] == "json": json.dump(rows, open(sys.argv[3], "w"))
elif sys.argv[2] == "number": print(a.mean(), "is the mean")
else: print("first\\n\\nthird")
""")
    wanted = [(n, f"row {i}, x", str(a[i].sum())) for n, a in images.items() for i in range(2)]
    for kind, file in (("csv", ""), ("json", " {output}")):
        text = (f'command_table("/usr/bin/python3 tool.py {{input}} {kind}{file}", input = read("in/*.npy"), format = "npy", '
                f'output = "{kind}", columns = "mean, sum:int, name:text") |> write("{kind}.csv")')
        go(folder, text)
        import csv
        with open(f"{folder}/{kind}.csv", newline="") as opened:
            rows = list(csv.DictReader(opened))
        assert [(os.path.basename(r["item"]).split(".")[0], r["name"], r["sum"]) for r in rows] == wanted, rows
        assert float(rows[0]["mean"]) == images["s0"][0].mean()
    done = go(folder, 'x = read("in/s1.npy")\n'
                      'sum(x > command_number("/usr/bin/python3 tool.py {input} number", input = x, format = "npy"))')
    assert done.stdout.split()[-1] == str((images["s1"] > images["s1"].mean()).sum()), done.stdout
    done = go(folder, 'command_table("/usr/bin/python3 tool.py {input} text", input = read("in/s1.npy"), format = "npy", '
                      'output = "txt")')
    assert "third" in done.stdout and len(done.stdout.strip().splitlines()) == 4, done.stdout
    wrong = go(folder, 'command_table("/usr/bin/python3 tool.py {input} csv", input = read("in/s1.npy"), format = "npy", '
                       'columns = "nmae:text")', code=1)
    assert "name" in wrong.stderr and "nmae" in wrong.stderr, wrong.stderr


# ---- programs that fail

@test
def a_program_that_fails_is_named_with_its_last_words_and_the_others_finish(folder):
    images = scans(folder)
    script(folder, INVERT + "import os\nif 's1' in os.environ.get('X', '') or a.sum() == " + str(images["s1"].sum()) +
           ":\n    print('first line'); print('no skull found', file=sys.stderr); os.remove(sys.argv[2]); sys.exit(3)\n")
    text = call() + ' |> write("out/{stem}.npy")'
    failed = go(folder, text, code=1)
    for words in ("in/s1.npy", "exit code 3", "no skull found"):
        assert words in failed.stderr, (words, failed.stderr)
    assert sorted(p.name for p in pathlib.Path(folder, "out").glob("[!.]*")) == ["s0.npy", "s2.npy"]
    logs = run("logs", "--failed", folder=folder).stdout
    assert "no skull found" in logs and "exit code 3" in logs and "environment: environment-" in logs, logs
    assert logs.count("==>") == 1, logs
    assert run("logs", folder=folder).stdout.count("==>") == 3
    assert not [n for n in os.listdir(os.environ.get("TMPDIR", "/tmp")) if n.startswith("fovea-new-")]


@test
def limits_end_programs_with_all_that_they_started(folder):
    scans(folder, 1)
    mark = f"command-{os.getpid()}-{random.random()}"
    bad = {
        "sleeps": (f"import subprocess, time\nsubprocess.Popen(['sleep', '1000', '{mark}'][:2] + [], start_new_session=True)\n"
                   f"subprocess.Popen(['{PYTHON}', '-c', 'import time; time.sleep(1000)', '{mark}'], start_new_session=True)\n"
                   "time.sleep(1000)\n", 'time = "1s"', "limit of 1 s"),
        "ignores": ("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1000)\n", 'time = "1s"',
                    "limit of 1 s"),
        "leaks": ("import time\nx = []\nwhile True: x.append(bytearray(b'x') * (8 << 20)); time.sleep(0.01)\n",
                  'memory = "100M", time = "60s"', "used more than its"),
        "kills": ("import os\nos.kill(os.getpid(), 9)\n", "", "signal 9"),
        "nothing": ("", "", "did not make its output"),
        "lies": ("import sys\nopen(sys.argv[2], 'w').write('no image')\n", "", "output.npy"),
    }
    for name, (text, rest, words) in bad.items():
        script(folder, text, f"{name}.py")
        said = (f'command("/usr/bin/python3 {name}.py {{input}} {{output}}", input = read("in/s0.npy"), output = "npy"'
                f'{", " if rest else ""}{rest})')
        done = go(folder, said + ' |> write("x.npy")', code=1)
        assert words in done.stderr, (name, done.stderr)
        assert not os.path.exists(f"{folder}/x.npy")
    assert not alive(mark)


@test
def output_without_end_is_cut_and_a_flood_of_the_file_is_stopped(folder):
    images = scans(folder, 1)
    script(folder, INVERT + "for i in range(3000): sys.stderr.write('x' * 1023 + '\\n')\n")
    go(folder, call(image='read("in/s0.npy")') + ' |> write("a.npy")')
    assert np.array_equal(np.load(f"{folder}/a.npy"), 255 - images["s0"])
    log, = [p for p in pathlib.Path(folder).glob(".fovea/runs/*/commands/*.txt") if "environment" not in p.name]
    assert log.stat().st_size < 2 << 20 and "bytes were left out" in log.read_text()
    script(folder, "import sys\nwhile True: sys.stdout.write('x' * (1 << 20))\n")
    done = go(folder, call("/usr/bin/python3 tool.py {input}", "", 'read("in/s0.npy")') + ' |> write("b.npy")', code=1)
    assert "printed more than" in done.stderr, done.stderr


@test
def no_descriptor_is_inherited_and_the_environment_says_how_many_processors(folder):
    scans(folder, 1)
    script(folder, "import os, sys, json\n"
                   "json.dump([sorted(os.listdir('/proc/self/fd')), dict(os.environ)], open('seen', 'w'))\nprint(1)")
    go(folder, 'command_number("/usr/bin/python3 tool.py {input} {cpus}", input = read("in/s0.npy"), format = "npy", cpus = 2)',
       environment={**os.environ, "MY_TOKEN": "hidden", "MY_PLACE": "shown"})
    descriptors, environment = json.loads(pathlib.Path(folder, "seen").read_text())
    assert len(descriptors) <= 4, descriptors  # the last is that of the listing
    assert environment["OMP_NUM_THREADS"] == "2" and "fovea-command-" in environment["TMPDIR"]
    kept, = pathlib.Path(folder).glob(".fovea/runs/*/commands/environment-*.txt")
    assert "MY_PLACE=shown" in kept.read_text() and "hidden" not in kept.read_text()


# ---- recipes of docs/programs.md with programs that Debian has

def program(name, words, *options):
    """Skips where a program is not here, or is another one of this name."""
    path = shutil.which(name, path="/usr/bin:/bin:" + os.environ.get("PATH", ""))
    told = subprocess.run([path, *options], capture_output=True, text=True).stdout if path else ""
    if words not in told:
        raise Skip(f"there is no {words} here")
    return path


@test
def imagemagick_sharpens_slices_and_gives_a_threshold(folder):
    convert = program("convert", "ImageMagick", "--version")
    volume = np.random.default_rng(0).integers(0, 200, (3, 24, 20)).astype(np.uint8)
    np.save(f"{folder}/v.npy", volume)
    go(folder, f'command("{convert} {{input}} -negate {{output}}", input = read("v.npy"), output = "png", slices = "z") '
               '|> write("n.npy")')
    assert np.array_equal(np.load(f"{folder}/n.npy"), 255 - volume)
    done = go(folder, f'command_number("{convert} {{input}} -format %[fx:mean*255] info:", input = read("v.npy")[0], '
                      'format = "png")')
    assert abs(float(done.stdout.split()[-1]) - volume[0].mean()) < 0.01, done.stdout


def recipes(word):
    """Lines of the recipes for programs that have this word."""
    page = (ROOT / "docs" / "programs.md").read_text()
    found = [line for line in page.splitlines() if " = command" in line and word in line]
    assert found, f"no recipe has {word}"
    return "\n".join(found) + "\n"


@test
def the_recipes_for_volumes_run_with_mrtrix(folder):
    program("mrfilter", "mrfilter", "--version")
    from scipy import ndimage
    go(folder, 'phantom("cells", [40, 44, 48], seed = 2) |> write("scan.nii.gz")', allow=False)
    values = go(folder, 'scan = read("scan.nii.gz")\n' + recipes('"mr') +
                'inside\nsmooth |> write("smooth.npy")\nmask |> write("mask.npy")\nscan |> write("scan.npy")').stdout
    scan, smooth, mask = (np.load(f"{folder}/{name}.npy") for name in ("scan", "smooth", "mask"))
    assert np.array_equal(mask != 0, scan >= 100)
    assert abs(float(values.split()[-1]) - scan[scan >= 100].mean()) < 0.01, values
    wanted = ndimage.gaussian_filter(scan.astype(np.float64), 2.5 / 2.3548)
    assert smooth.dtype == np.float32 and np.abs(smooth - wanted)[5:-5, 5:-5, 5:-5].max() < 0.05 * scan.max()


@test
def the_recipe_with_c3d_runs(folder):
    program("c3d", "Convert", "-version")
    go(folder, 'phantom("cells", [20, 24, 28], seed = 2) |> write("scan.nii.gz")', allow=False)
    go(folder, 'scan = read("scan.nii.gz")\n' + recipes('"c3d') + 'smooth |> write("smooth.npy")')
    assert np.load(f"{folder}/smooth.npy").shape == (20, 24, 28)


@test
def dcm2niix_makes_nifti_of_dicom_series(folder):
    converter = program("dcm2niix", "dcm2nii", "-h")
    image = np.random.default_rng(0).integers(0, 2000, (3, 16, 12)).astype(np.uint16)
    os.makedirs(f"{folder}/series")
    try:
        import pydicom
        from pydicom.dataset import FileDataset, FileMetaDataset
    except ImportError:
        raise Skip("pydicom is not installed") from None
    uid = pydicom.uid.generate_uid()
    for z, plane in enumerate(image):
        meta = FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
        meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        d = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
        d.is_little_endian, d.is_implicit_VR = True, False
        d.SOPClassUID, d.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        d.SeriesInstanceUID = d.StudyInstanceUID = uid
        d.Modality, d.Manufacturer, d.SeriesNumber, d.InstanceNumber = "CT", "Fovea", 1, z + 1
        d.Rows, d.Columns, d.PixelSpacing, d.SliceThickness = *plane.shape, [1, 1], 2
        d.ImagePositionPatient, d.ImageOrientationPatient = [0, 0, 2 * z], [1, 0, 0, 0, 1, 0]
        d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation, d.SamplesPerPixel = 16, 16, 15, 0, 1
        d.PhotometricInterpretation, d.RescaleSlope, d.RescaleIntercept = "MONOCHROME2", 1, 0
        d.PixelData = plane.tobytes()
        d.save_as(f"{folder}/series/{z}.dcm", write_like_original=False)
    os.makedirs(f"{folder}/nifti")
    run("each", "-q", f"{converter} -z y -f {{name}} -o nifti {{}}", "series", folder=folder)
    run("run", "-q", "-e", 'read("nifti/series.nii.gz") |> write("a.npy")', folder=folder)
    assert sorted(np.load(f"{folder}/a.npy").ravel()) == sorted(image.ravel())


# ---- admission

@test
def processors_and_memory_bound_how_many_run_at_once(folder):
    scans(folder, 6, (8, 8))
    script(folder, INVERT + """import os, time
os.makedirs('now', exist_ok=True)
mine = f'now/{os.getpid()}'
open(mine, 'w').close()
time.sleep(0.3)
open('most', 'a').write(f'{len(os.listdir("now"))}\\n')
os.remove(mine)
""")
    def most(*options, rest):
        for name in ("most",):
            pathlib.Path(folder, name).unlink(missing_ok=True)
        go(folder, call(rest="top = 255, " + rest) + ' |> write("out/{stem}.npy")', "--fresh", "--overwrite", *options)
        return max(map(int, pathlib.Path(folder, "most").read_text().split()))
    assert most("--workers", "4", rest="cpus = 1") > 1
    assert most("--workers", "4", rest="cpus = 2") <= 2
    assert most("--workers", "4", rest="cpus = 9") == 1
    assert most("--workers", "4", "--memory", "3G", rest='memory = "2G"') == 1


# ---- engines and kills

@test
def every_engine_gives_the_same(folder):
    images = scans(folder, 5)
    script(folder, INVERT)
    text = call() + ' |> write("out/{stem}.npy")'
    ways = [("threads", ["run"]), ("processes", ["run", "--engine", "processes", "--workers", "2"])]
    if shutil.which("mpiexec.mpich"):
        ways.append(("mpich", None))
    for name, way in ways:
        where = os.path.join(folder, name)
        os.makedirs(where)
        shutil.copytree(f"{folder}/in", f"{where}/in")
        script(where, INVERT)
        if way:
            run(*way, "-q", "-e", text, "--allow-commands", folder=where)
        else:
            done = subprocess.run(["mpiexec.mpich", "-n", "2", FOVEA, "run", "-q", "-e", text, "--allow-commands"], cwd=where,
                                  capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        for stem, image in images.items():
            assert np.array_equal(np.load(f"{where}/out/{stem}.npy"), 255 - image), (name, stem)


@test
def a_slurm_array_gets_the_consent_with_the_run(folder):
    if slurm.missing():
        raise Skip(slurm.missing())
    images = scans(folder, 4)
    script(folder, INVERT)
    with slurm.Cluster() as cluster:
        run("run", "-q", "--engine", "slurm", "--workers", "2", "--allow-commands", "-e", call() + ' |> write("out/{stem}.npy")',
            folder=folder, environment=cluster.environment)
    for stem, image in images.items():
        assert np.array_equal(np.load(f"{folder}/out/{stem}.npy"), 255 - image)


@test
def runs_that_are_killed_go_on_and_leave_no_folders(folder):
    images = scans(folder, 12)
    script(folder, INVERT + "import time\ntime.sleep(0.05)\nopen('runs', 'a').write('x')\n")
    temporary = pathlib.Path(folder, "tmp")
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [FOVEA, "run", "-q", "--patience", "0.1", "--allow-commands", "-e", call() + ' |> write("out/{stem}.npy")']
    dice = random.Random(4)
    for _ in range(20):
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command, cwd=folder, env=environment, check=True)
    for stem, image in images.items():
        assert np.array_equal(np.load(f"{folder}/out/{stem}.npy"), 255 - image), stem
    assert not [p.name for p in temporary.iterdir() if p.name.startswith("fovea-command-")]


@test
def ctrl_c_ends_the_program_and_the_same_command_goes_on(folder):
    scans(folder, 1)
    mark = f"command-{os.getpid()}-{random.random()}"
    script(folder, "import sys, time, os, shutil\nopen('started', 'w')\nif os.path.exists('slow'): time.sleep(1000)\n"
                   "shutil.copy(sys.argv[1], sys.argv[2])\n")
    pathlib.Path(folder, "slow").touch()
    text = (f'command("/usr/bin/python3 tool.py {{input}} {{output}} {mark}", input = read("in/s0.npy"), output = "npy") '
            '|> write("a.npy")')
    command = [FOVEA, "run", "-q", "--allow-commands", "-e", text]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    wait_for("the program", lambda: os.path.exists(f"{folder}/started"))
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert not alive(mark)
    os.remove(f"{folder}/slow")
    subprocess.run(command, cwd=folder, check=True)


main()
