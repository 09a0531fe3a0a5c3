"""fovea each by worker processes, ranks of MPICH, and jobs of a real Slurm: the same files and the same table as here."""
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import slurm
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test, wait_for

COLUMNS = ("unit", "state", "code", "signal", "tries", "why")  # of the table, those that do not tell how long and where


def units(folder):
    """Some of them fail, one comes after one that fails, and one works after another."""
    lines = [[f"u{n}", "u3" if n == 7 else "u1 u2" if n == 9 else "", 5 if n == 3 else 0] for n in range(24)]
    with open(os.path.join(folder, "t.csv"), "w", newline="", encoding="ascii") as file:
        csv.writer(file).writerows([["id", "dep", "code"]] + lines)
    return ["each", "sh -c 'echo unit {id}; echo {id} > $0; echo {id} >> log; exit {code}' {output}", "--from", "t.csv", "--name",
            "id", "--after", "dep", "--output", "out/{id}.txt", "-o", "units.csv", "--json"]


def outcome(folder, printed):
    """What there is at the end, without times and hosts."""
    with open(os.path.join(folder, "units.csv"), newline="", encoding="utf-8") as file:
        rows = [tuple(row.get(name, "") for name in COLUMNS) for row in csv.DictReader(file)]
    files = {path.name: path.read_text() for path in pathlib.Path(folder, "out").iterdir()}
    lines = printed.splitlines()
    said = json.loads(lines[-1])
    ran = sorted(pathlib.Path(folder, "log").read_text().split())
    return rows, files, sorted(lines[:-1]), {k: v for k, v in said.items() if k != "seconds"}, ran


def expected(folder):
    """By the process itself, in a folder of its own."""
    place = os.path.join(folder, "plain")
    os.mkdir(place)
    found = outcome(place, run(*units(place), folder=place, code=1).stdout)
    assert found[3] == {"units": 24, "done": 22, "kept": 0, "failed": 1, "blocked": 1}, found[3]
    return found


def again(folder, words, **more):
    """What is done stays done, wherever it was done."""
    said = json.loads(run(*units(folder), *words, folder=folder, code=1, **more).stdout.splitlines()[-1])
    assert said["kept"] == 22 and said["failed"] == 1, said


@test
def worker_processes_do_what_this_process_does(folder):
    plain, words = expected(folder), ["--engine", "processes", "-j", "3"]
    assert outcome(folder, run(*units(folder), *words, folder=folder, code=1).stdout) == plain
    again(folder, words)
    again(folder, [])
    assert not os.listdir(os.path.join(folder, ".fovea/pilots")), "workers are left"


@test
def worker_processes_share_one_bound_of_memory(folder):
    files = [f"x{n}" for n in range(6)]
    run("each", "sh -c 'mkdir lock || exit 3; sleep 0.2; rmdir lock' {}", *files, "--engine", "processes", "-j", "3",
        "--memory", "2G", "--bound", "3G", folder=folder)


@test
def mistakes_are_told(folder):
    for words, message in ((["--engine", "slurm", "--pilot", "p"], "leave out --engine"), (["--one-job"], "for --engine slurm"),
                           (["--engine", "processes", "--cpus", "99"], "asks for 99 processors")):
        assert message in run("each", "true {}", "x", *words, folder=folder, code=2).stderr
    assert "no program nosuch" in run("each", "nosuch {}", "x", "--engine", "processes", folder=folder, code=2).stderr
    none = run("each", "/bin/true {}", "x", "--engine", "slurm", folder=folder, code=2, environment={"PATH": "/usr/nowhere"})
    assert "Slurm" in none.stderr, none.stderr
    assert not os.path.exists(os.path.join(folder, ".fovea/pilots")) or not os.listdir(os.path.join(folder, ".fovea/pilots"))


@test
def jobs_that_slurm_refuses_leave_nothing(folder):
    sbatch = pathlib.Path(folder, "bin/sbatch")
    sbatch.parent.mkdir()
    sbatch.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'sbatch: error: no such account' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    path = {"PATH": f"{sbatch.parent}:{os.environ['PATH']}"}
    refused = run("each", "true {}", "x", "--engine", "slurm", folder=folder, code=2, environment=path)
    assert "no such account" in refused.stderr and not os.listdir(os.path.join(folder, ".fovea/pilots")), refused.stderr


@test
def ctrl_c_ends_the_workers_and_what_they_run(folder):
    number = f"906.{os.getpid()}"
    asked = subprocess.Popen([FOVEA, "each", "sleep {}", number, "--engine", "processes"], cwd=folder, stderr=subprocess.PIPE,
                             text=True)
    there = lambda: subprocess.run(["pgrep", "-f", f"^sleep {number}"], stdout=subprocess.DEVNULL).returncode == 0
    wait_for("the unit", there)
    asked.send_signal(signal.SIGINT)
    errors = asked.communicate(timeout=PATIENCE)[1]
    assert asked.returncode == 130 and "goes on" in errors, errors
    assert not there() and not os.listdir(os.path.join(folder, ".fovea/pilots"))


@test
def workers_go_on_alone_and_end_when_all_is_done(folder):
    """Their command is killed: what was asked for is done all the same, and nothing lives on."""
    words = ["each", "sh -c 'sleep 0.3; echo {} >> log'", *map(str, range(8)), "--engine", "processes", "-j", "2"]
    asked = subprocess.Popen([FOVEA, *words], cwd=folder)
    log = pathlib.Path(folder, "log")
    wait_for("the first", log.exists)
    asked.kill()
    asked.wait()
    wait_for("the end of all", lambda: len(log.read_text().split()) == 8)
    served = lambda: subprocess.run(["pgrep", "-f", f"pilot serve {os.path.realpath(folder)}"], stdout=subprocess.DEVNULL)
    wait_for("the end of the workers", lambda: served().returncode)
    said = json.loads(run(*words, "--json", folder=folder).stdout)
    assert said["kept"] == 8 and sorted(map(int, log.read_text().split())) == list(range(8)), said


@test
def ranks_of_mpich_do_what_one_process_does(folder):
    if not shutil.which("mpiexec.mpich"):
        raise Skip("no MPICH: apt-get install mpich")
    plain = expected(folder)
    words = ["mpiexec.mpich", "-n", "3", FOVEA, *units(folder), "--engine", "mpi", "-j", "1"]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 1, done.stderr
    assert outcome(folder, done.stdout) == plain, done.stdout
    again(folder, ["--engine", "mpi"])  # a rank alone
    words = ["mpiexec.mpich", "-n", "2", FOVEA, "each", "sh -c env {}", "x", "--engine", "mpi"]
    printed = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, check=True, text=True, timeout=PATIENCE).stdout
    assert "FOVEA_UNIT=" in printed and "PMI_RANK" not in printed, printed  # programs are no ranks of ours


@test
def files_of_others_are_not_replaced_by_ranks(folder):
    made = pathlib.Path(folder, "a.out")
    made.write_text("precious")
    command = [FOVEA, "each", "sh -c 'echo {} > $0' {output}", "a", "--output", "a.out", "--engine", "mpi"]
    ways = [[]] + ([["mpiexec.mpich", "-n", "2"]] if shutil.which("mpiexec.mpich") else [])
    for way in ways:
        done = subprocess.run([*way, *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        assert done.returncode and "--overwrite replaces it" in done.stderr, done
        assert made.read_text() == "precious"
    subprocess.run([*ways[-1], *command, "--overwrite"], cwd=folder, check=True, timeout=PATIENCE)
    assert made.read_text() == "a\n"


@test
def jobs_of_slurm_do_what_one_process_does(folder):
    why = slurm.missing()
    if why:
        raise Skip(why)
    plain = expected(folder)
    with slurm.Cluster() as cluster:
        for way in (["-j", "3"], ["-j", "2", "--one-job"]):
            place = os.path.join(folder, "one" if "--one-job" in way else "array")
            os.mkdir(place)
            words = ["--engine", "slurm", *way]
            done = run(*units(place), *words, folder=place, code=1, environment=cluster.environment)
            assert outcome(place, done.stdout) == plain, done.stdout
            again(place, words, environment=cluster.environment)
            assert not os.listdir(os.path.join(place, ".fovea/pilots"))
        queue = lambda: subprocess.run(["squeue", "-h", "-t", "PENDING,RUNNING"], env=dict(os.environ, **cluster.environment),
                                       stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        wait_for("an empty queue", lambda: not queue())


if __name__ == "__main__":
    main()
