"""fovea each: programs as units, with the manners of real ones: they leak, fork, hang, print without end and die."""
import csv
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from device_service import Service, say
from fovea_test import FOVEA, PATIENCE, ROOT, Skip, main, run, test, wait_for

PYTHON = "/usr/bin/python3"


def put(folder, name, text=""):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def rows(folder, name="units.csv"):
    with open(os.path.join(folder, name), newline="") as file:
        return list(csv.DictReader(file))


def table(folder, name, columns, lines):
    with open(os.path.join(folder, name), "w", newline="") as file:
        csv.writer(file).writerows([columns] + lines)
    return name


def each(folder, *arguments, **options):
    return run("each", *arguments, folder=folder, **options)


def alive(mark):
    """Processes that have this word among their arguments."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


# ---- commands and names

@test
def file_names_may_contain_anything(folder):
    names = ["a b.txt", "quote'd.txt", 'two".txt', "$HOME.txt", "; echo x.txt", "{brace}.txt", "-n.txt", "ü.txt"]
    for name in names:
        put(folder, f"in/{name}", name)
    each(folder, "-q", "cp {} {output}", *[f"in/{name}" for name in names], "--output", "out/{name}")
    assert sorted(os.listdir(os.path.join(folder, "out"))) == sorted(names)
    each(folder, "-q", "--shell", "cat {} > {output}", *[f"in/{name}" for name in names], "--output", "shell/{name}")
    assert all(pathlib.Path(folder, "shell", name).read_text() == name for name in names)


@test
def quotes_group_words_and_braces_can_be_written(folder):
    put(folder, "a.txt")
    done = each(folder, "-n", "say 'one word' \"{stem} too\" a\\ b {{}} {index}".replace("say", "echo"), "a.txt")
    assert done.stdout.strip() == "echo 'one word' 'a too' 'a b' '{}' 0", done.stdout
    done = each(folder, "echo 'one word' {{{stem}}}", "a.txt")
    assert done.stdout.strip() == "one word {a}", done.stdout


@test
def mistakes_are_found_before_anything_runs(folder):
    put(folder, "a.txt")
    table(folder, "t.csv", ["id", "dep", "mem"], [["a", "b", "1G"], ["b", "a", "x"]])
    for words, text in [
        (["echo {steem}", "a.txt"], "is {stem} meant"),
        (["echo {}"], "for which files"),
        (["nosuchprogram {}", "a.txt"], "no program nosuchprogram"),
        (["echo '{}", "a.txt"], "no closing '"),
        (["echo {", "a.txt"], "without a }"),
        (["  ", "a.txt"], "empty"),
        (["echo {output}", "a.txt"], "needs --output"),
        (["echo {}", "a.txt", "--output", "x"], "needs the word {output}"),
        (["touch {output}", "a.txt", "b.txt", "--output", "same"], "two units would make same"),
        (["echo {}", "a.txt", "--time", "10"], "such as 30s or 10m"),
        (["echo {}", "a.txt", "--cpus", "99", "-j", "2"], "asks for 99 processors"),
        (["echo {id}", "--from", "t.csv", "--name", "id", "--after", "dep"], "waits for itself"),
        (["echo {id}", "--from", "t.csv", "--memory", "mem"], "row 1 has \"x\""),
        (["echo {id}", "--from", "t.csv", "--name", "idd"], "is id meant"),
        (["echo {id}", "--from", "none.csv"], "none.csv"),
        (["echo {}", "a.txt", "--order", "round-robin"], "--by"),
        (["echo {}", "a.txt", "-o", "u.tif"], "such as units.csv"),
    ]:
        done = each(folder, *words, code=2)
        assert text in done.stderr, (words, done.stderr)


# ---- what is done stays done

@test
def only_what_is_new_changed_or_failed_runs_again(folder):
    for name in "abc":
        put(folder, f"{name}.txt", name)
    counted = "sh -c 'echo x >> count; cp \"$0\" \"$1\"' {} {output}"
    first = json.loads(each(folder, counted, "a.txt", "b.txt", "--output", "{stem}.out", "--json", "-q").stdout)
    assert first["done"] == 2 and first["kept"] == 0, first
    second = json.loads(each(folder, counted, "a.txt", "b.txt", "c.txt", "--output", "{stem}.out", "--json", "-q").stdout)
    assert second["done"] == 3 and second["kept"] == 2, second
    os.unlink(os.path.join(folder, "b.out"))  # gone: made again
    put(folder, "a.txt", "changed")           # changed: made again, but only if that is wanted
    refused = each(folder, counted, "a.txt", "b.txt", "c.txt", "--output", "{stem}.out", code=2)
    assert "a.out exists" in refused.stderr and "--overwrite" in refused.stderr
    third = json.loads(each(folder, counted, "a.txt", "b.txt", "c.txt", "--output", "{stem}.out", "--json", "-q",
                            "--overwrite").stdout)
    assert third["kept"] == 1 and pathlib.Path(folder, "a.out").read_text() == "changed", third
    assert len(pathlib.Path(folder, "count").read_text().split()) == 5


@test
def half_an_output_never_has_its_name(folder):
    put(folder, "a.txt")
    done = each(folder, "sh -c 'echo half > \"$0\"; exit 3' {output}", "a.txt", "--output", "a.out", code=1)
    assert "exit code 3" in done.stderr
    assert [name for name in os.listdir(folder) if "out" in name] == []
    done = each(folder, "true {output}", "a.txt", "--output", "a.out", code=1)
    assert "did not make its output" in done.stderr


@test
def killed_at_random_it_goes_on_and_each_unit_is_done_once(folder):
    table(folder, "t.csv", ["n"], [[n] for n in range(60)])
    words = ["each", "-q", "sh -c 'sleep 0.02; echo {n} > \"$0\"; echo {n} >> started' {output}", "--from", "t.csv", "--output",
             "out/{n}.txt", "-j", "4"]
    draw = random.Random(3)
    for _ in range(20):
        process = subprocess.Popen([FOVEA, *words], cwd=folder, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.02, 0.25))
        process.send_signal(signal.SIGKILL)
        process.wait()
    run(*words, folder=folder)
    for n in range(60):
        assert pathlib.Path(folder, f"out/{n}.txt").read_text() == f"{n}\n"
    assert sorted(os.listdir(os.path.join(folder, "out"))) == sorted(f"{n}.txt" for n in range(60)), "a temporary file is left"
    again = json.loads(run(*words, "--json", folder=folder).stdout)
    assert again["kept"] == 60, again


@test
def ctrl_c_ends_what_runs_and_the_same_command_goes_on(folder):
    table(folder, "t.csv", ["n"], [[0.01], [77.5]])
    process = subprocess.Popen([FOVEA, "each", "sleep {n}", "--from", "t.csv", "-j", "2"], cwd=folder, stderr=subprocess.PIPE,
                               text=True)
    wait_for("the second unit", lambda: alive("77.5"))
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 130 and "goes on" in errors, errors
    assert not alive("77.5")


@test
def the_same_units_twice_at_once_are_refused_and_shared_if_asked(folder):
    table(folder, "t.csv", ["n"], [[n] for n in range(40)])
    words = ["each", "-q", "sh -c 'sleep 0.1; echo {n} >> log'", "--from", "t.csv", "-j", "1"]
    first = subprocess.Popen([FOVEA, *words], cwd=folder)
    wait_for("the first unit", lambda: os.path.exists(os.path.join(folder, "log")))
    assert "process" in run(*words, folder=folder, code=2).stderr
    first.terminate()
    first.wait()
    both = [subprocess.Popen([FOVEA, *words, "--share", "--again"], cwd=folder) for _ in range(1)]
    both += [subprocess.Popen([FOVEA, *words, "--share"], cwd=folder) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0, 0]
    done = [int(line) for line in pathlib.Path(folder, "log").read_text().split()]
    assert set(done) == set(range(40)), done


@test
def what_newcomers_type_is_done_or_explained(folder):
    put(folder, "-x.txt", "dash")
    put(folder, "a.txt", "a")
    assert each(folder, "cat {}", "--", "-x.txt").stdout == "dash"
    assert each(folder, "echo {}", "--", "-1").stdout == "-1\n"  # not a file
    for command in ("cat {} > {stem}.out", "cat {} | wc -c", "cat {} && true"):
        refused = each(folder, command, "a.txt", code=2)
        assert "--shell" in refused.stderr and not os.path.exists(os.path.join(folder, ">")), refused.stderr
    assert each(folder, "echo '>' {}", "a.txt").stdout == "> a.txt\n"
    assert "no such file" in each(folder, "echo {}", "scans/*.tif", code=2).stderr
    refused = run("run", "--allow-commands", "-e", 'command_number("cat {input} | wc -c", input = phantom("cells", [9, 9]))',
                  folder=folder, code=2)
    assert "shell = true" in refused.stderr, refused.stderr
    each(folder, "printf 'a\\000b\\033[1m\\nwhy\\n%s' {}", "x")
    shown = run("logs", folder=folder).stdout
    assert "a?b?[1m\nwhy\n" in shown, repr(shown[-200:])  # a NUL does not end it, and terminals are not driven


@test
def a_kill_between_the_line_and_the_name_of_a_file_is_mended(folder):
    words = ["each", "-q", "sh -c 'echo $0 >> log; echo {} > $0' {output}", "a", "--output", "{stem}.out"]
    run(*words, folder=folder)
    made, log = pathlib.Path(folder, "a.out"), pathlib.Path(folder, "log")
    temporary = pathlib.Path(folder, log.read_text().strip())
    made.rename(temporary)
    run(*words, folder=folder)
    assert made.read_text() == "a\n" and len(log.read_text().split()) == 2 and not temporary.exists()
    shutil.copy(made, temporary)  # with --overwrite another file may have had the name before
    run(*words, "--overwrite", folder=folder)
    assert len(log.read_text().split()) == 3 and not temporary.exists()


# ---- programs with bad manners

@test
def what_runs_too_long_is_ended_with_all_that_it_started(folder):
    script = put(folder, "hang.py", "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                 "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(900)\n    os._exit(0)\n"
                 "time.sleep(900)\n")
    done = each(folder, f"{PYTHON} {script} mark-{os.getpid()}", "x", "--time", "1s", "-o", "units.csv", code=1)
    assert "longer than its limit" in done.stderr, done.stderr
    assert rows(folder)[0]["signal"] == "9" and not alive(f"mark-{os.getpid()}")


@test
def what_a_unit_leaves_behind_is_ended(folder):
    mark = f"left-{os.getpid()}"
    script = put(folder, "leave.py", "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(900)\n")
    each(folder, "-q", f"{PYTHON} {script} {mark}", "x")
    assert not alive(mark)


def own_group():
    """The control group of this process in which others can be made; skips where there is none."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    places = [words[1] for words in mounts if words[2] == "cgroup2"]
    own = [line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    group = pathlib.Path(places[0] + own[0]) if places and own else None
    if group is None or not os.access(group, os.W_OK):
        raise Skip("no control group of version 2 is delegated to us")
    try:
        (group / "fovea-probe").mkdir()
        (group / "fovea-probe").rmdir()
    except OSError:
        raise Skip("no control group can be made here") from None
    return group


@test
def what_hides_from_its_group_and_mark_is_ended_by_the_control_group(folder):
    group = own_group()
    script = put(folder, "hide.py", "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
                 "        os.execve('/bin/sleep', ['sleep', sys.argv[1]], {})\n    os._exit(0)\ntime.sleep(float(sys.argv[2]))\n")
    for seconds, code in (("0.3", 0), ("900", 1)):  # one that ends, and one that runs longer than it may
        number = f"90{code}.{os.getpid()}"
        words = [FOVEA, "each", "-q", f"{PYTHON} {script} {number} {{}}", seconds, "--time", "2s"]
        process = subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL)
        assert process.wait(PATIENCE) == code and not alive(number)
        assert not list(group.glob(f"fovea-*.{process.pid}.*")), "a control group is left"


@test
def memory_is_bounded_by_the_control_group_where_it_is_counted(folder):
    group = own_group()
    if "memory" not in (group / "cgroup.controllers").read_text():
        raise Skip("control groups of version 2 do not count memory here")
    script = put(folder, "grab.py", "kept = bytearray(10**9)\nkept[::4096] = b'x' * len(kept[::4096])\n")
    done = each(folder, f"{PYTHON} {script} {{}}", "x", "--memory", "150M", code=1)
    assert "more than its 150.0 MiB of memory" in done.stderr, done.stderr


@test
def what_a_killed_command_left_is_ended_by_the_next_one(folder):
    number = f"905.{os.getpid()}"
    first = subprocess.Popen([FOVEA, "each", f"sh -c 'sleep {number}; true' {{}}", "x"], cwd=folder)
    wait_for("the unit", lambda: alive(number))
    first.kill()
    first.wait()
    each(folder, "-q", "true {}", "y")  # or any other that is started meanwhile: it was not a child of the first itself
    wait_for("its end", lambda: not alive(number))


@test
def what_is_of_another_machine_or_a_job_of_slurm_is_not_ended(folder):
    for i, setting in enumerate(({"FOVEA_HOST": "elsewhere"}, {"SLURM_JOB_ID": "77"})):
        number = f"91{i}.{os.getpid()}"
        first = subprocess.Popen([FOVEA, "each", f"sh -c 'sleep {number}; true' {{}}", "x"], cwd=folder,
                                 env={**os.environ, **setting})
        wait_for("the unit", lambda: alive(number))
        first.kill()
        first.wait()
        each(folder, "-q", "true {}", f"y{i}")
        time.sleep(0.3)
        left = alive(number)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert left, setting


@test
def who_is_left_himself_ends_neither_his_shell_nor_its_others(folder):
    """As a job that was handed to another system: its shell bears the mark of a command that has ended."""
    put(folder, "job.sh", f"while [ ! -e go ]; do sleep 0.05; done\n'{FOVEA}' each -q 'true {{}}' z\necho $? > survived\n")
    first = subprocess.Popen([FOVEA, "each", "sh -c 'setsid sh job.sh & touch begun; sleep 900' {}", "x"], cwd=folder)
    wait_for("the unit", lambda: os.path.exists(os.path.join(folder, "begun")))
    first.kill()
    first.wait()
    put(folder, "go")
    wait_for("the end of the job", lambda: os.path.exists(os.path.join(folder, "survived")))


@test
def what_leaks_memory_is_ended(folder):
    script = put(folder, "leak.py",
                 "import time\nkept = []\nfor _ in range(60):\n    kept.append(bytearray(10**7))\n    time.sleep(0.05)\n")
    done = each(folder, f"{PYTHON} {script} {{}}", "x", "--memory", "150M", code=1)
    assert "more than its 150.0 MiB of memory" in done.stderr, done.stderr


@test
def what_prints_without_end_is_bounded_and_order_is_kept(folder):
    script = put(folder, "loud.py", "import sys\nfor _ in range(30): sys.stdout.write('x' * 10**6)\n")
    done = each(folder, f"{PYTHON} {script} {{}}", "x")
    assert len(done.stdout) < 1.2 * 2**20 and "more bytes were left out" in done.stdout
    done = each(folder, "sh -c 'echo out {index}; echo err {index} >&2; echo out {index}'", "x", "y")
    for index in "01":
        assert f"out {index}\nerr {index}\nout {index}\n" in done.stdout, done.stdout


@test
def gigabytes_of_output_are_not_kept(folder):
    done = each(folder, "head -c 2000000000 {}", "/dev/zero", "--memory", "100M")
    assert len(done.stdout) < 1.2 * 2**20 and f"[{2000000000 - 2**20} more bytes were left out]" in done.stdout[-100:]
    kept = [path.stat().st_size for path in pathlib.Path(folder, ".fovea/each").rglob("*.txt")]
    assert max(kept) < 1.2 * 2**20, kept


@test
def units_that_end_at_random_are_done_in_the_end(folder):
    """They exit, kill themselves, or kill all of their group, and now and then they work."""
    script = put(folder, "dice.py", "import os, random, signal, sys\ndraw = random.randrange(6)\n"
                 "open(f'tries-{sys.argv[1]}', 'a').write('x')\n"
                 "if draw == 1: sys.exit(random.randrange(1, 256))\n"
                 "if draw == 2: os.kill(os.getpid(), random.choice([6, 9, 11, 15]))\n"
                 "if draw == 3: os.killpg(0, signal.SIGKILL)\nopen(sys.argv[2], 'w').write(sys.argv[1])\n")
    each(folder, "-q", f"{PYTHON} {script} {{index}} {{output}}", *"abcdefgh", "--output", "{}.out", "--retries", "200",
         "--pause", "0.0001s", "-o", "units.csv")
    for n, row in enumerate(rows(folder)):
        assert row["state"] == "done" and int(row["tries"]) == len(pathlib.Path(folder, f"tries-{n}").read_text()), row
        assert pathlib.Path(folder, f"{'abcdefgh'[n]}.out").read_text() == str(n)


@test
def a_unit_that_dies_by_a_signal_says_so_and_has_no_descriptors_of_ours(folder):
    done = each(folder, "sh -c 'kill -SEGV $$'", "x", "-o", "units.csv", code=1)
    assert "signal 11" in done.stderr and rows(folder)[0]["signal"] == "11"
    done = each(folder, f"{PYTHON} -c 'import os; print(sorted(int(f) for f in os.listdir(\"/proc/self/fd\")))'", "x")
    assert done.stdout.strip() in ("[0, 1, 2, 3]", "[0, 1, 2]"), done.stdout  # 3 is the listing itself


@test
def failures_are_tried_again_and_exit_codes_can_mean_well(folder):
    flaky = "sh -c 'echo x >> tries; test $(wc -l < tries) -ge 3'"
    each(folder, flaky, "x", "--retries", "3", "--pause", "0.05s", "-o", "units.csv")
    assert rows(folder)[0]["state"] == "done" and rows(folder)[0]["tries"] == "3"
    each(folder, "sh -c 'exit 2'", "x", "--ok", "0,2")
    each(folder, "sh -c 'exit 1'", "x", "--ok", "0,2", code=1)


# ---- order

@test
def units_wait_for_those_before_them_and_are_blocked_if_they_fail(folder):
    table(folder, "t.csv", ["id", "dep", "code"], [["d", "b c", 0], ["c", "a", 0], ["b", "a", 0], ["a", "", 0], ["y", "x", 0],
                                                   ["x", "", 1], ["z", "y", 0]])
    each(folder, "sh -c 'echo {id} >> log; exit {code}'", "--from", "t.csv", "--name", "id", "--after", "dep", "-j", "2", "-o",
         "units.csv", code=1)
    order = pathlib.Path(folder, "log").read_text().split()
    assert sorted(order) == ["a", "b", "c", "d", "x"]
    assert order.index("a") < order.index("b") < order.index("d") and order.index("c") < order.index("d"), order
    states = {row["unit"]: row["state"] for row in rows(folder)}
    assert states == {"a": "done", "b": "done", "c": "done", "d": "done", "x": "failed", "y": "blocked", "z": "blocked"}, states


def starts(folder, order, *more):
    each(folder, "-q", "sh -c 'sleep {s}'", "--from", "t.csv", "--name", "id", "-j", "2", "--order", order, "--again", "-o",
         "units.csv", *more)
    return [row["unit"] for row in sorted(rows(folder), key=lambda row: float(row["started"]))]


@test
def orders_do_what_their_names_say(folder):
    table(folder, "t.csv", ["id", "s", "cpus", "time", "memory", "who"],
          [["a", 0.4, 1, "10s", "101M", "ann"], ["b", 0.3, 2, "20s", "102M", "ann"], ["c", 0.1, 1, "5s", "108M", "bob"],
           ["d", 0.1, 1, "40s", "104M", "bob"]])
    needs = ["--cpus", "cpus", "--time", "time"]
    assert starts(folder, "fifo", *needs) == ["a", "b", "c", "d"]
    assert starts(folder, "backfill", *needs) == ["a", "c", "b", "d"]  # c ends before b can start; d might not
    assert starts(folder, "longest", "--time", "time", "-j", "1") == ["d", "b", "a", "c"]
    assert starts(folder, "memory", "--memory", "memory", "-j", "1") == ["c", "d", "b", "a"]
    assert starts(folder, "round-robin", "--by", "who", "-j", "1") == ["a", "c", "b", "d"]


@test
def a_wide_unit_is_not_passed_for_ever(folder):
    """Units come and go in such a way that four processors are never free at once, unless they are kept free."""
    lines = [["w", 0.01, 4, "ann"] if n == 5 else [f"s{n}", 0.02 + 0.01 * (n % 3), 1, "bob"] for n in range(120)]
    table(folder, "t.csv", ["id", "s", "cpus", "who"], lines)
    for order in ("round-robin", "memory", "longest"):
        found = starts(folder, order, "--cpus", "cpus", "--by", "who", "-j", "4")
        assert found.index("w") < 50, (order, found.index("w"))


@test
def memory_for_all_bounds_how_many_run_at_once(folder):
    table(folder, "t.csv", ["n"], [[n] for n in range(6)])
    each(folder, "-q", "sh -c 'echo + >> log; sleep 0.1; echo - >> log'", "--from", "t.csv", "-j", "6", "--memory", "100M",
         "--bound", "250M")
    running = most = 0
    for sign in pathlib.Path(folder, "log").read_text().split():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert most == 2, most


# ---- ranks and devices

SUM_OF_RANKS = """#include <mpi.h>
#include <stdio.h>
int main(int n, char **words) {
    int rank, sum;
    MPI_Init(&n, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    FILE *file = rank ? NULL : fopen(words[1], "w");
    if (file) fprintf(file, "%d\\n", sum), fclose(file);
    return MPI_Finalize();
}
"""


@test
def programs_of_mpi_are_units_and_commands(folder):
    if not shutil.which("mpicc.mpich") or not shutil.which("mpiexec.mpich"):
        raise Skip("no MPICH: apt-get install mpich")
    put(folder, "sum.c", SUM_OF_RANKS)
    subprocess.run(["mpicc.mpich", "sum.c", "-o", "sum"], cwd=folder, check=True)
    mpich = {"FOVEA_MPIEXEC": "mpiexec.mpich"}
    table(folder, "t.csv", ["n"], [[1], [2], [4]])
    each(folder, "-q", "./sum {output} {n}", "--from", "t.csv", "--ranks", "n", "-j", "4", "--output", "{n}.txt",
         environment=mpich)
    assert [pathlib.Path(folder, f"{n}.txt").read_text() for n in (1, 2, 4)] == ["0\n", "1\n", "6\n"]
    assert "asks for 4 processors" in each(folder, "./sum {n}", "--from", "t.csv", "--ranks", "n", "-j", "2", code=2).stderr
    number = run("run", "--allow-commands", "-e", 'command_number("./sum {output} {input}", input = phantom("cells", [9, 9]), '
                 'ranks = 3)', folder=folder, environment=mpich)
    assert number.stdout == "3\n", number.stdout
    none = each(folder, "/bin/true {}", "a", "--ranks", "2", "-j", "2", code=2,
                environment={"PATH": "/nowhere", "FOVEA_MPIEXEC": "", "SLURM_JOB_ID": ""})
    assert "neither srun nor mpiexec" in none.stderr, none.stderr


@test
def devices_are_leased_for_units_and_commands(folder):
    with Service(folder, devices=["a:2G", "b:2G"]) as service:
        there = {"FOVEA_DEVICES": service.path}
        said = each(folder, "sh -c 'echo $FOVEA_DEVICE $CUDA_VISIBLE_DEVICES $FOVEA_DEVICE_MEMORY; sleep 0.2' {}", *"abcdef",
                    "-j", "6", "--device", "1500M", "-o", "units.csv", environment=there).stdout.split()
        assert sorted(said[::3]) == ["0"] * 3 + ["1"] * 3 and said[::3] == said[1::3], said
        assert set(said[2::3]) == {str(1500 << 20)}, said
        times = [(float(row["started"]), float(row["started"]) + float(row["seconds"])) for row in rows(folder)]
        assert all(sum(start <= at < end for start, end in times) <= 2 for at, _ in times), times
        number = run("run", "--allow-commands", "-e", 'command_number("sh -c \'echo $FOVEA_DEVICE_MEMORY\' {input}", input = '
                     'phantom("cells", [9, 9]), device = "1G")', folder=folder, environment=there)
        assert number.stdout.strip() == str(1 << 30), number.stdout
        assert "no device has" in each(folder, "true {}", "x", "--device", "9G", code=2, environment=there).stderr
    assert "fovea devices serve" in each(folder, "true {}", "y", "--device", "1G", code=2, environment=there).stderr


@test
def who_waits_for_a_device_can_be_stopped(folder):
    """Also while the scheduler of devices hangs."""
    with Service(folder, devices=["a:2G"]) as service, service.connect() as other:
        assert say(other, f"lease {1500 << 20}").startswith("granted")
        for hangs, number in ((False, signal.SIGTERM), (True, signal.SIGINT)):
            waits = subprocess.Popen([FOVEA, "each", "touch {}", "a", "b", "--device", "1500M"], cwd=folder, text=True,
                                     stderr=subprocess.PIPE, env=dict(os.environ, FOVEA_DEVICES=service.path))
            wait_for("the question", lambda: service.status()["waiting"])
            if hangs:
                service.process.send_signal(signal.SIGSTOP)
            waits.send_signal(number)
            errors = waits.communicate(timeout=PATIENCE)[1]
            service.process.send_signal(signal.SIGCONT)
            assert waits.returncode == 130 and "0 of 2 done" in errors, errors
        wait_for("nobody to wait", lambda: not service.status()["waiting"])


@test
def logs_show_what_failed_units_printed_and_clean_takes_them_away(folder):
    table(folder, "t.csv", ["id", "code"], [["a", "0"], ["b", "7"], ["c", "0"]])
    each(folder, "-q", "sh -c 'echo here is $0; exit $1' {id} {code}", "--from", "t.csv", "--name", "id", code=1)
    failed = run("logs", "--failed", folder=folder).stdout
    assert "here is b" in failed and "exit code 7" in failed and "here is a" not in failed, failed
    everything = run("logs", folder=folder).stdout
    assert "here is a" in everything and everything.count("state: done") == 2, everything
    assert "environment: environment-" in everything, everything
    each(folder, "-q", "sh -c 'echo here is $0; exit $1' {id} {code}", "--from", "t.csv", "--name", "id", "--ok", "0,7")
    assert not run("logs", "--failed", folder=folder).stdout
    assert "units of fovea each" in run("clean", folder=folder).stdout
    run("clean", "--runs", folder=folder)
    assert not os.path.exists(os.path.join(folder, ".fovea", "each"))


@test
def the_study_of_orders_runs_with_few(folder):
    done = subprocess.run([str(ROOT / "examples" / "studies" / "units.sh"), "10", "8"], cwd=folder, capture_output=True,
                          text=True, env=dict(os.environ, FOVEA=FOVEA))
    assert done.returncode == 0, done.stderr
    found = {row["order"]: row for row in rows(folder, "units/orders.csv")}
    assert sorted(found) == ["backfill", "fifo", "longest", "memory", "round-robin"], found
    for row in found.values():
        assert float(row["makespan"]) > 0 and 0 <= float(row["mean_wait"]) <= float(row["makespan"]), row
        assert 0 < float(row["utilisation"]) <= 1.01, row
    assert all(pathlib.Path(folder, "units", name).stat().st_size for name in ("orders.svg", "waits.svg", "starts.svg"))


if __name__ == "__main__":
    main()
