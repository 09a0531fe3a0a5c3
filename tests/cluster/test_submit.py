"""Job scripts and profiles, without any Slurm: what is written, what is refused."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test

PIPELINE = """
foam = phantom("foam", [48, 120, 120], seed = 1)
walls = gaussian(1 - foam / 255, sigma = [3, 6, 6])
bubbles = label(erode(walls > 0.9, ball(4)))
write(bubbles, "bubbles.zarr")
write(measure(bubbles, foam), "bubbles.csv")
"""


def profile(folder, name, text, kind="user"):
    where = pathlib.Path(folder, kind, *(["fovea"] if kind == "user" else []), "profiles")
    where.mkdir(parents=True, exist_ok=True)
    (where / f"{name}.fov").write_text(text)


def submit(folder, *options, code=0, path="/usr/bin:/bin"):
    """Writes the scripts of the pipeline in the folder; gives {name: text}, or the message if it is refused."""
    pathlib.Path(folder, "p.fov").write_text(PIPELINE)
    environment = {"XDG_CONFIG_HOME": f"{folder}/user", "FOVEA_SITE": f"{folder}/site", "PATH": path}
    measure = [] if "--measure" in options else ["--measure", "0"]
    done = run("submit", "p.fov", "--chunk", "16x48x48", *measure, *options, folder=folder, code=code,
               environment=environment)
    if code:
        return done.stderr
    scripts = sorted(pathlib.Path(folder, done.stdout.splitlines()[0], "slurm").iterdir())[-1]
    return {path.stem: path.read_text() for path in scripts.iterdir()}


def options_of(script):
    lines = [line[len("#SBATCH --"):] for line in script.splitlines() if line.startswith("#SBATCH --")]
    return {line.partition("=")[0]: line.partition("=")[2] for line in lines}


@test
def scripts_ask_for_what_was_asked_for_and_are_good_shell(folder):
    scripts = submit(folder, "--dry-run", "--min-time", "0.0001", "--array-size", "5", "--at-once", "2", "--partition", "big",
                     "--account", "lab", "--time", "1:30:00", "--mem", "2G", "--cpus-per-task", "3", "--gres", "gpu:1",
                     "--mail-user", "me@here", "--constraint", "fast&new")
    asked = options_of(scripts["stage-1"])
    assert asked["array"] == "0-4%2" and asked["partition"] == "big" and asked["account"] == "lab", asked
    assert asked["time"] == "1:30:00" and asked["mem"] == "2048M" and asked["cpus-per-task"] == "3", asked
    assert asked["gres"] == "gpu:1" and asked["constraint"] == "'fast&new'" and asked["signal"] == "B:TERM@60", asked
    assert "mail-user" not in asked and options_of(scripts["finish"])["mail-user"] == "me@here"
    assert "--workers 3" in scripts["stage-1"] and "--memory 1" in scripts["stage-1"]
    for name, text in scripts.items():
        if text.startswith("#!"):
            assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0, name


@test
def each_job_waits_for_the_one_before_and_a_failure_of_the_last_is_tried_again(folder):
    script = submit(folder, "--dry-run", "--min-time", "0.002")["submit"]
    lines = [line for line in script.splitlines() if line.startswith("submit ")]
    assert "dependency" not in lines[0] and "finish.sh" in lines[-2] and "again.sh" in lines[-1], lines
    assert all("--dependency=afterany:$id" in line for line in lines[1:-1]), lines
    assert "afternotok:$id" in lines[-1] and "kill-on-invalid-dep" in lines[-1]


@test
def jobs_ask_for_the_time_that_a_few_tasks_make_expect(folder):
    guessed = submit(folder, "--dry-run", "--min-time", "0.0001")
    measured = submit(folder, "--dry-run", "--min-time", "0.0001", "--measure", "0.5")
    given = submit(folder, "--dry-run", "--min-time", "0.0001", "--measure", "0.5", "--time", "2:00")
    for name in "stage-1", "finish":
        assert "time" not in options_of(guessed[name]), guessed[name]
        assert options_of(measured[name])["time"] == "0:20:00", measured[name]
        assert options_of(given[name])["time"] == "2:00", given[name]


@test
def few_tiny_tasks_are_one_job(folder):
    assert not [name for name in submit(folder, "--dry-run") if name.startswith("stage")]


@test
def a_collection_is_one_array_over_its_items(folder):
    os.mkdir(f"{folder}/in")
    for i in range(7):
        np.save(f"{folder}/in/{i}.npy", np.zeros((40, 40), np.uint8))
    global PIPELINE
    volume, PIPELINE = PIPELINE, 'read("in/*.npy") |> gaussian(1) |> write("out/{stem}.npy")\n'
    try:
        scripts = submit(folder, "--dry-run", "--min-time", "0.000001")
    finally:
        PIPELINE = volume
    assert options_of(scripts["items"])["array"] == "0-6" and " --stage " not in scripts["items"], scripts["items"]


@test
def a_pilot_is_one_job_with_a_worker_on_every_node(folder):
    scripts = submit(folder, "--dry-run", "--one-job", "--nodes", "4", "--order", "longest")
    assert options_of(scripts["pilot"])["nodes"] == "4" and "srun " in scripts["pilot"] and "--order longest" in scripts["pilot"]
    ranks = submit(folder, "--dry-run", "--one-job", "--nodes", "4", "--mpi", "pmix")["pilot"]
    assert "srun --mpi=pmix " in ranks and "--alone --order memory" in ranks
    for option, value in [("--nodes", "4"), ("--mpi", "pmi2"), ("--order", "fifo")]:
        message = submit(folder, "--dry-run", option, value, code=2)
        assert f"{option} is for one job" in message, message


@test
def a_job_that_is_told_to_stop_queues_nothing_but_itself_again(folder):
    scripts = submit(folder, "--dry-run", "--min-time", "0.0001", "--array-size", "5")
    element = '"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"'  # $SLURM_JOB_ID of the last one means all of them
    assert f"scontrol requeue {element}\n" in scripts["stage-1"] and f"squeue -h -j {element} " in scripts["stage-1"]
    assert 'scontrol requeue "$SLURM_JOB_ID"\n' in scripts["finish"]


@test
def memory_that_is_too_little_for_one_task_is_refused(folder):
    for memory in ["4000", "10M", "183M"]:
        message = submit(folder, "--dry-run", "--mem", memory, code=2)
        assert "needs at least" in message, message
    least = int(message.rpartition("needs at least ")[2].partition("M")[0])
    finish = submit(folder, "--dry-run", "--mem", f"{least}M")["finish"]
    assert int(options_of(finish)["mem"][:-1]) <= least, finish


@test
def what_an_estimate_says_of_arrays_can_be_submitted(folder):
    submit(folder, "--dry-run")
    said = run("estimate", "p.fov", "--chunk", "16x48x48", "--seconds", "0.5", "-q", folder=folder).stdout
    memory = said.rpartition(" array ")[2].partition("--mem=")[2].split()[0]
    assert options_of(submit(folder, "--dry-run", "--mem", memory)["finish"])["mem"] == memory, said


@test
def the_next_try_of_a_run_overwrites_if_the_first_one_did(folder):
    assert "param overwrite = 1\n" in submit(folder, "--dry-run", "--overwrite")["request"]
    assert "overwrite" not in submit(folder, "--dry-run")["request"]


@test
def the_users_profile_goes_over_the_sites_and_the_command_over_both(folder):
    profile(folder, "genoa", 'param partition = "site"\nparam account = "site"\nparam modules = "gcc/12 openmpi"\n', "site")
    profile(folder, "genoa", '# mine\nparam account = "mine"\nparam cpus = 2\nparam environment = "OMP_NUM_THREADS=1"\n'
            'param setup = "ulimit -n 4096"\nparam array = 3\n')
    script = submit(folder, "--dry-run", "--profile", "genoa", "--min-time", "0.0001", "--cpus-per-task", "4")["stage-1"]
    asked = options_of(script)
    assert (asked["partition"], asked["account"], asked["cpus-per-task"], asked["array"]) == ("site", "mine", "4", "0-2"), asked
    for line in ["module load gcc/12", "module load openmpi", "export OMP_NUM_THREADS=1", "ulimit -n 4096"]:
        assert line in script.splitlines(), line


@test
def mistakes_in_profiles_are_explained(folder):
    for text, part in [("param partitoin = \"x\"\n", "has no param partitoin; did you mean partition?"),
                       ("param cpus = 0\n", "param cpus needs a whole number of at least 1"),
                       ("param cpus = \"two\"\n", "param cpus needs a whole number"),
                       ("param memory = \"4 apples\"\n", "expected a size as \"512M\" or \"4G\""),
                       ("param partition = 3\n", "needs a text in quotes"),
                       ("param order = \"best\"\n", "expected fifo, longest or memory"),
                       ("cpus = 2\n", "lines `param NAME = VALUE` only"),
                       ("param cpus = = 2\n", "wrong.fov:1:")]:
        profile(folder, "wrong", text)
        message = submit(folder, "--dry-run", "--profile", "wrong", code=2)
        assert part in message, (text, message)
    assert "there is neither" in submit(folder, "--dry-run", "--profile", "nowhere", code=2)
    assert "without .fov" in submit(folder, "--dry-run", "--profile", "../x", code=2)


def pretend(folder, **commands):
    """A folder with commands that only say what they are told to, and a shell; the PATH with it alone."""
    where = pathlib.Path(folder, "bin")
    where.mkdir(exist_ok=True)
    for name, text in {"sbatch": "echo 7", "scontrol": "exit 1", "squeue": "exit 1", "sacct": "exit 1", **commands}.items():
        (where / name).write_text(f"#!/bin/sh\n{text}\n")
        (where / name).chmod(0o755)
    for name in ["sh", "dirname", "rm"]:
        (where / name).exists() or (where / name).symlink_to(f"/bin/{name}")
    return str(where)


def status(folder, path, *options):
    return run("status", *options, folder=folder, environment={"PATH": path}).stdout


@test
def jobs_that_have_left_the_queue_are_over_where_there_is_no_accounting(folder):
    path = pretend(folder, squeue="echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    scripts = submit(folder, path=path)
    assert "finish.sh" in scripts["submit"], scripts
    text = status(folder, path)
    assert "over, not complete" in text and "has left the queue" in text, text
    frozen = text.partition(":")[0]
    run("work", frozen, "--finish", "-q", folder=folder)
    assert f"{frozen}: done" in status(folder, path)
    path = pretend(folder, squeue="echo '7|PENDING|Resources|'")
    assert f"{frozen}: going on" in status(folder, path)


@test
def what_a_job_used_is_told_of_its_last_start(folder):
    line = "echo '7|{}|2026-01-01T00:00:00|2026-01-01T00:{}:00|2026-01-01T00:{}:10|00:0{}.000||1|n1'"
    starts = "\n".join([line.format("REQUEUED", 10, 10, 9), line.format("COMPLETED", 20, 20, 5)])
    path = pretend(folder, squeue="echo 'Invalid job id specified' >&2; exit 1", sacct=starts)
    submit(folder, path=path)
    text = status(folder, path)
    assert "1 times queued again" in text and " 50 % " in text, text


@test
def without_slurm_it_says_so_and_nothing_is_submitted(folder):
    os.mkdir(f"{folder}/bin")
    os.symlink("/bin/sh", f"{folder}/bin/sh")
    message = submit(folder, code=2, path=f"{folder}/bin")
    assert "there is no sbatch here: Slurm is not installed" in message, message
    assert "no run in .fovea/runs was submitted" in run("status", folder=folder, code=2).stderr
    run("status", folder=folder, code=2)
    assert "no run in .fovea/runs was submitted" in run("status", folder=folder, code=2).stderr


main()
