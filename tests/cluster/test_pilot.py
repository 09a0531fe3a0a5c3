"""Pilots: processors that several commands share, on this machine and in a job of a real Slurm."""
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
import slurm
from fovea_test import FOVEA, PATIENCE, Skip, long, main, run, test, wait_for

PIPELINE = ["-e", 'label(phantom("cells", [400, 400], seed = 3) > 90) |> write("cells.npy")', "-e",
            'count(phantom("cells", [400, 400], seed = 3) > 90)', "--chunk", "100"]


class Pilot:
    """One that ends with the test."""

    def __init__(self, folder, *words, environment=None):
        self.folder, self.environment = folder, environment
        run("pilot", "start", "p", *words, folder=folder, environment=environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        run("pilot", "stop", "p", folder=self.folder, environment=self.environment, code=None)

    def status(self):
        return json.loads(run("pilot", "status", "p", "--json", folder=self.folder, environment=self.environment).stdout)

    def begin(self, *words):
        return subprocess.Popen([FOVEA, *words, "--pilot", "p"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=dict(os.environ, **(self.environment or {})))


def rows(folder, name):
    with open(os.path.join(folder, name), newline="") as file:
        return list(csv.DictReader(file))


def table(folder, name, columns, lines):
    with open(os.path.join(folder, name), "w", newline="") as file:
        csv.writer(file).writerows([columns] + lines)


def until_told(folder, seconds):
    """A program that waits for the file go, and then a little."""
    return f"sh -c 'until [ -e {folder}/go ]; do sleep 0.05; done; sleep {seconds}'"


def tell(folder):
    with open(os.path.join(folder, "go"), "w", encoding="ascii"):
        pass


def local(folder, *words):
    return Pilot(folder, "--local", *words)


@test
def runs_and_programs_give_what_they_give_without_a_pilot(folder):
    plain = run("run", *PIPELINE, "--store", "other", "--into", "plain", folder=folder)
    with local(folder, "--nodes", "2", "--cpus", "2"):
        piloted = run("run", *PIPELINE, "--pilot", "p", folder=folder)
        assert piloted.stdout == plain.stdout, (piloted.stdout, plain.stdout)
        assert "cells.npy" in piloted.stderr and "up to date" not in piloted.stderr, piloted.stderr
        assert pathlib.Path(folder, "cells.npy").read_bytes() == pathlib.Path(folder, "plain/cells.npy").read_bytes()
        table(folder, "t.csv", ["n", "code"], [[n, 3 if n == 7 else 0] for n in range(20)])
        done = run("each", "sh -c 'echo unit {n}; echo {n} > $0; exit {code}' {output}", "--from", "t.csv", "--output",
                   "out/{n}.txt", "--pilot", "p", "-o", "units.csv", folder=folder, code=1)
        assert sorted(done.stdout.split("\n")[:-1]) == sorted(f"unit {n}" for n in range(20)), done.stdout
        assert "exit code 3" in done.stderr and "19 of 20 done" in done.stderr, done.stderr
        assert [row["state"] for row in rows(folder, "units.csv")] == ["failed" if n == 7 else "done" for n in range(20)]
        assert len(os.listdir(os.path.join(folder, "out"))) == 19
        again = run("each", "sh -c 'echo unit {n}; echo {n} > $0; exit {code}' {output}", "--from", "t.csv", "--output",
                    "out/{n}.txt", "--pilot", "p", folder=folder, code=1)
        assert again.stdout == "unit 7\n" and "19 of them before" in again.stderr, again.stderr


@test
def mistakes_are_told_where_they_are_made(folder):
    assert "there is no pilot p here" in run("each", "true {}", "a", "--pilot", "p", folder=folder, code=2).stderr
    assert "at least 10s" in run("pilot", "start", "p", "--local", "--time", "1s", folder=folder, code=2).stderr
    assert "letters, digits" in run("pilot", "start", "../p", "--local", folder=folder, code=2).stderr
    assert "start, status or stop" in run("pilot", "begin", folder=folder, code=2).stderr
    assert "one pilot at a time" in run("pilot", "stop", "p", "q", folder=folder, code=2).stderr
    with local(folder, "--cpus", "2"):
        assert "is there already" in run("pilot", "start", "p", "--local", folder=folder, code=2).stderr
        assert "no program nosuch" in run("each", "nosuch {}", "a", "--pilot", "p", folder=folder, code=2).stderr
        assert "leave out --engine" in run("run", *PIPELINE, "--engine", "threads", "--pilot", "p", folder=folder, code=2).stderr
        wide = run("each", "true {}", "a", "--cpus", "99", "-j", "99", "--pilot", "p", folder=folder, code=2)
        assert "asks for 99 processors" in wide.stderr, wide.stderr
    assert "has ended" in run("each", "true {}", "a", "--pilot", "p", folder=folder, code=2).stderr


@test
def nobody_else_can_put_work_into_a_pilot(folder):
    """Not even where everybody may write into everything: what is in the book is run in the owner's name."""
    place = pathlib.Path(folder, ".fovea/pilots/p")
    before = os.umask(0)
    try:
        with local(folder, "--cpus", "1"):
            assert place.stat().st_mode & 0o777 == 0o700, oct(place.stat().st_mode)
            assert run("each", "echo {}", "a", "--pilot", "p", folder=folder).stdout == "a\n"
    finally:
        os.umask(before)
    place.chmod(0o770)
    for words in (["each", "echo {}", "b", "--pilot", "p"], ["pilot", "serve", str(place), "0"]):
        refused = run(*words, folder=folder, code=2)
        assert "others may write into" in refused.stderr and "chmod 700" in refused.stderr, refused.stderr
    with local(folder, "--cpus", "1"):  # which mends it
        assert run("each", "echo {}", "b", "--pilot", "p", folder=folder).stdout == "b\n"


@test
def a_pilot_that_is_removed_is_not_waited_for(folder):
    with local(folder, "--cpus", "1") as pilot:
        asked = pilot.begin("each", "sleep {}", "903.5")
        wait_for("the unit", lambda: any(job["cpus"] for job in pilot.status()["jobs"]))
        shutil.rmtree(os.path.join(folder, ".fovea/pilots"))
        errors = asked.communicate(timeout=PATIENCE)[1]
        assert asked.returncode == 130 and "the pilot has ended" in errors, errors


@test
def commands_that_share_a_pilot_get_equal_parts(folder):
    """Forty units of one came first; those of the other, which came later, do not wait for them."""
    table(folder, "t.csv", ["n"], [[n] for n in range(40)])
    with local(folder, "--cpus", "4") as pilot:
        first = pilot.begin("each", until_told(folder, 0.2) + " a{n}", "--from", "t.csv", "-o", "a.csv")
        wait_for("the first", lambda: any(job["cpus"] == 4 for job in pilot.status()["jobs"]))
        table(folder, "u.csv", ["n"], [[n] for n in range(12)])
        second = pilot.begin("each", until_told(folder, 0.2) + " b{n}", "--from", "u.csv", "-o", "b.csv")
        wait_for("the second", lambda: len(pilot.status()["jobs"]) == 2)
        tell(folder)
        assert second.wait(PATIENCE) == 0 and first.wait(PATIENCE) == 0, (first.stderr.read(), second.stderr.read())
    a, b = ([float(row["started"]) for row in rows(folder, name)] for name in ("a.csv", "b.csv"))
    beside = sum(min(b) <= start <= max(b) for start in a)
    assert 4 <= beside <= 20, (beside, sorted(a), sorted(b))  # equal parts would be 12


@test
def a_wide_unit_gets_its_processors_beside_many_small_ones(folder):
    table(folder, "t.csv", ["n"], [[n] for n in range(60)])
    with local(folder, "--cpus", "4") as pilot:
        small = pilot.begin("each", until_told(folder, 0.1) + " {n}", "--from", "t.csv", "-o", "small.csv")
        wait_for("the small ones", lambda: any(job["cpus"] == 4 for job in pilot.status()["jobs"]))
        wide = pilot.begin("each", "true {}", "x", "--cpus", "4", "-j", "4", "-o", "wide.csv")
        wait_for("the wide one", lambda: len(pilot.status()["jobs"]) == 2)
        tell(folder)
        assert wide.wait(PATIENCE) == 0, wide.stderr.read()
        assert small.wait(PATIENCE) == 0, small.stderr.read()
    last = max(float(row["started"]) for row in rows(folder, "small.csv"))
    assert float(rows(folder, "wide.csv")[0]["started"]) < last


@test
def nothing_is_begun_that_cannot_end_and_the_rest_waits_for_the_next(folder):
    table(folder, "t.csv", ["n", "limit", "s"], [[0, "2s", 0.1], [1, "60s", 0.1], [2, "2s", 0.1]])
    words = ["each", "sh -c 'echo {n} >> log; sleep {s}'", "--from", "t.csv", "--time", "limit", "-o", "units.csv"]
    with local(folder, "--cpus", "1", "--time", "20s") as pilot:
        first = pilot.begin(*words)
        errors = first.communicate(timeout=PATIENCE)[1]
        assert first.returncode == 130 and "before all was done" in errors, errors
        assert pathlib.Path(folder, "log").read_text().split() == ["0", "2"]
        assert [row["state"] for row in rows(folder, "units.csv")] == ["done", "waiting", "done"]
        assert [job["state"] for job in pilot.status()["jobs"]] == ["waits"]
    with local(folder, "--cpus", "1") as pilot:  # nobody has to ask again
        wait_for("what was left", lambda: [job["state"] for job in pilot.status()["jobs"]] == ["done"])
    assert pathlib.Path(folder, "log").read_text().split() == ["0", "2", "1"]


@test
def what_is_taken_back_ends_and_what_kills_its_worker_fails(folder):
    with local(folder, "--cpus", "2") as pilot:
        asked = pilot.begin("each", "sleep {}", "901.5")
        wait_for("the unit", lambda: any(job["cpus"] for job in pilot.status()["jobs"]))
        asked.send_signal(signal.SIGINT)
        assert asked.wait(PATIENCE) == 130
        wait_for("its end", lambda: not subprocess.run(["pgrep", "-f", "sleep 901.5"], stdout=subprocess.DEVNULL).returncode == 0)
        assert [job["state"] for job in pilot.status()["jobs"]] == ["cancelled"]
        killer = run("each", "sh -c 'kill -9 $PPID' {}", "a", "--pilot", "p", folder=folder, code=None)
        assert killer.returncode != 0 and "died" in killer.stderr, killer.stderr
        assert run("each", "echo {}", "b", "--pilot", "p", folder=folder).stdout == "b\n"  # the pilot lives


@test
def an_agent_that_is_killed_takes_all_with_it_and_the_queue_stays(folder):
    with local(folder, "--cpus", "2") as pilot:
        asked = pilot.begin("each", "sh -c 'test -e go || sleep 902.5' {}", "a", "b")
        wait_for("the units", lambda: any(job["cpus"] for job in pilot.status()["jobs"]))
        agent = subprocess.run(["pgrep", "-f", f"pilot serve {os.path.realpath(folder)}"], stdout=subprocess.PIPE, text=True)
        for pid in agent.stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        assert asked.wait(PATIENCE) == 130 and "pilot start" in asked.stderr.read()
        pathlib.Path(folder, "go").touch()
        with local(folder, "--cpus", "2") as second:
            wait_for("what was left", lambda: [job["state"] for job in second.status()["jobs"]] == ["done"])
        left = lambda: subprocess.run(["pgrep", "-f", "^sleep 902.5"], stdout=subprocess.DEVNULL).returncode == 0
        wait_for("the end of what the units had started", lambda: not left())


def kill_agents(folder, times):
    """Agents are killed at random while units run: each unit is done, and what was done is never done again."""
    count = 25 * times
    table(folder, "t.csv", ["n"], [[n] for n in range(count)])
    words = ["each", "-q", "sh -c 'sleep 0.1; echo {n} > $0' {output}", "--from", "t.csv", "--output", "out/{n}.txt", "-o",
             "units.csv"]
    draw, made, out = random.Random(5), {}, pathlib.Path(folder, "out")
    for _ in range(times):
        with local(folder, "--cpus", "2", "--nodes", "2") as pilot:
            asked = pilot.begin(*words)
            time.sleep(draw.uniform(0.1, 1.2))
            serve = subprocess.run(["pgrep", "-f", f"pilot serve {os.path.realpath(folder)}"], stdout=subprocess.PIPE, text=True)
            for pid in serve.stdout.split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:  # of a parent that was killed before
                    pass
            assert asked.wait(PATIENCE) in (0, 130), asked.stderr.read()
        for path in out.glob("[0-9]*.txt"):
            assert path.read_text() == f"{path.stem}\n"
            assert made.setdefault(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns, f"{path.name} was made twice"
    run(*words, folder=folder)
    assert sorted(os.listdir(out)) == sorted(f"{n}.txt" for n in range(count)), "a temporary file is left"
    assert all((out / name).stat().st_mtime_ns == stamp for name, stamp in made.items())
    states = [row["state"] for row in rows(folder, "units.csv")]
    assert states.count("kept") >= len(made) > 0 and set(states) <= {"kept", "done"}, states


@test
def a_pilot_that_is_killed_at_random_loses_nothing_and_doubles_nothing(folder):
    kill_agents(folder, 3)


@long
def twenty_kills_of_a_pilot_lose_nothing_and_double_nothing(folder):
    kill_agents(folder, 20)


@test
def a_pilot_that_is_started_twice_at_one_moment_is_one(folder):
    words = [FOVEA, "pilot", "start", "p", "--local", "--cpus", "1"]
    several = [subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate(timeout=PATIENCE) for process in several]
    try:
        assert sorted(process.returncode for process in several) == [0, 2, 2, 2], said
        agents = subprocess.run(["pgrep", "-f", f"pilot serve {os.path.realpath(folder)}"], stdout=subprocess.PIPE, text=True)
        assert len(agents.stdout.split()) == 1, agents.stdout
    finally:
        run("pilot", "stop", "p", folder=folder)


@test
def a_pilot_in_a_job_of_slurm_is_shared(folder):
    why = slurm.missing()
    if why:
        raise Skip(why)
    plain = run("run", *PIPELINE, "--store", "other", "--into", "plain", folder=folder)
    with slurm.Cluster() as cluster:
        with Pilot(folder, "--nodes", "2", "--time", "5m", environment=cluster.environment) as pilot:
            wait_for("two nodes", lambda: len(pilot.status()["nodes"]) == 2)
            table(folder, "t.csv", ["n"], [[n] for n in range(40)])
            programs = pilot.begin("each", "sh -c 'sleep 0.3; echo $SLURMD_NODENAME' {n}", "--from", "t.csv", "-o", "units.csv")
            piloted = run("run", *PIPELINE, "--pilot", "p", folder=folder, environment=cluster.environment)
            assert piloted.stdout == plain.stdout
            assert pathlib.Path(folder, "cells.npy").read_bytes() == pathlib.Path(folder, "plain/cells.npy").read_bytes()
            printed, errors = programs.communicate(timeout=PATIENCE)
            assert programs.returncode == 0, errors
            assert len(set(printed.split())) == 2, printed  # both nodes had some
            ranks = run("each", "sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS' {}", "a", "b", "--ranks", "2", "-j", "2", "--pilot",
                        "p", folder=folder, environment=cluster.environment).stdout
            assert sorted(ranks.split("\n")) == ["", "0 of 2", "0 of 2", "1 of 2", "1 of 2"], ranks
        wait_for("its end", lambda: pilot.status()["state"] == "ended")


@long
def a_pilot_of_slurm_whose_time_is_over_is_queued_again(folder):
    why = slurm.missing()
    if why:
        raise Skip(why)
    table(folder, "t.csv", ["n"], [[n] for n in range(40)])
    with slurm.Cluster() as cluster:
        with Pilot(folder, "--nodes", "1", "--cpus", "1", "--time", "60s", environment=cluster.environment) as pilot:
            units = pilot.begin("each", "sh -c 'echo {n} >> log; sleep 2'", "--from", "t.csv", "--time", "20s", "-o", "units.csv")
            errors = units.communicate(timeout=PATIENCE)[1]
            assert units.returncode == 0, errors
    assert sorted(map(int, pathlib.Path(folder, "log").read_text().split())) == list(range(40)), "a unit ran twice"
    starts = sorted(float(row["started"]) for row in rows(folder, "units.csv"))
    assert max(later - earlier for earlier, later in zip(starts, starts[1:])) > 10, starts  # nothing that cannot end is begun


if __name__ == "__main__":
    main()
