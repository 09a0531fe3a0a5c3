"""A real Slurm, started here: arrays, dependencies, requeue, memory, cancel, pilot. One cluster for all tests."""
import json
import os
import pathlib
import shutil
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
import slurm
from fovea_test import FOVEA, ROOT, Skip, main, run, test

WHY_NOT = slurm.missing()
CLUSTER = None
VOLUME = """
foam = phantom("foam", [48, 120, 120], seed = 1)
walls = gaussian(1 - foam / 255, sigma = [3, 6, 6])
bubbles = label(erode(walls > 0.9, ball(4)))
write(bubbles, "bubbles.zarr")
write(walls, "walls.npy")
write(measure(bubbles, foam), "bubbles.csv")
"""
CHUNK = ["--chunk", "16x48x48"]
FOLDER = """
image = read("in/*.npy")
write(gaussian(image, 2), "out/{stem}.npy")
write(measure(label(image > 128)), "all.csv")
"""


def cluster():
    """The cluster, started by the first test that needs it."""
    global CLUSTER
    if WHY_NOT:
        raise Skip(WHY_NOT)
    if CLUSTER is None:
        CLUSTER = slurm.Cluster()
        CLUSTER.__enter__()
    return CLUSTER


def prepare(folder, text, items=0):
    os.makedirs(folder, exist_ok=True)
    pathlib.Path(folder, "p.fov").write_text(text)
    rng = np.random.default_rng(7)
    os.makedirs(os.path.join(folder, "in"), exist_ok=True)
    for i in range(items):
        np.save(os.path.join(folder, "in", f"{i:02}.npy"), rng.integers(0, 255, (60 + i, 90)).astype(np.uint8))


def results(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in (".fovea", "in", "p.fov", "alone", "site"):
            found[str(relative)] = path.read_bytes()
    return found


def alone(folder, text, items=0, *options):
    """What one process on this machine makes of it."""
    other = os.path.join(folder, "alone")
    prepare(other, text, items)
    run("run", "p.fov", *options, folder=other)
    return results(other)


def submit(folder, *options, environment=None):
    done = run("submit", "p.fov", "--measure", "0", *options, folder=folder,
               environment={**cluster().environment, **(environment or {})})
    return done.stdout.splitlines()


FIRST = r'[ -n \"$SLURM_RESTART_COUNT\" ] || '  # start of a job
ELEMENT = r'[ -z \"$SLURM_ARRAY_TASK_ID\" ] || '  # of an array


def fault(folder, what, only=""):
    """A profile that makes jobs meet a fault; the environment that finds it."""
    where = pathlib.Path(folder, "site", "profiles")
    where.mkdir(parents=True)
    (where / "default.fov").write_text(f'param setup = "{only}export FOVEA_FAULT={what}"\n')
    return {"FOVEA_SITE": str(where.parent), "XDG_CONFIG_HOME": folder}


def stuck(folder, count):
    """The node of the only element of the array that still runs, after all others have ended."""
    found = elements(folder, "items")
    left = [node for state, node in found.values() if state == "RUNNING"] if len(found) == count else []
    return left[0] if len(left) == 1 else None


def logs(folder):
    found = [p for p in sorted(pathlib.Path(folder, ".fovea").rglob("*.log")) if "slurm" in str(p)]
    return "\n".join(f"{p.name}: {p.read_text()}" for p in found)


def status(folder):
    return json.loads(run("status", "--json", folder=folder, environment=cluster().environment).stdout)


def job(folder, name, number=1):
    """Slurm's number of a job of the last run."""
    jobs = next(pathlib.Path(folder, ".fovea", "runs").glob(f"*/slurm/{number}/jobs")).read_text()
    return next(line.split()[0] for line in jobs.splitlines() if line.split()[1] == name)


def elements(folder, name):
    """What the queue says of the elements of an array: {element: (state, node)}."""
    lines = cluster().call("squeue", "-h", "-r", "-j", job(folder, name), "-t", "all", "-o", "%K %T %N").splitlines()
    return {line.split()[0]: (line.split() + [""])[1:3] for line in lines}


def until_finished(folder):
    """Waits until the run is over, whatever number of tries it takes, and gives its status."""
    return cluster().wait_for("the end of the run", lambda: (lambda s: s if s["over"] else None)(status(folder)))


@test
def a_volume_runs_as_arrays_with_merges_between(folder):
    c = cluster()
    prepare(folder, VOLUME)
    expected = alone(folder, VOLUME, 0, *CHUNK)
    printed = submit(folder, *CHUNK, "--min-time", "0.002", "--array-size", "3", "--at-once", "2")
    jobs = [line.split() for line in pathlib.Path(folder, printed[0], "slurm", "1", "jobs").read_text().splitlines()]
    assert [j[1] for j in jobs][-2:] == ["finish", "again"] and any(j[3] == "3" for j in jobs), jobs
    assert any("merge" in j[1] for j in jobs), jobs
    again = run("submit", "p.fov", *CHUNK, "--measure", "0", folder=folder, code=2, environment=c.environment)
    assert "in the queue already" in again.stderr, again.stderr
    refused = run("submit", "p.fov", "--measure", "0", "--into", "other", "--partition", "nowhere", folder=folder, code=2,
                  environment=c.environment)
    assert "nvalid partition" in refused.stderr, refused.stderr  # and status still finds the one that was submitted
    end = until_finished(folder)
    assert end["complete"] and end["tasks_repeated"] == 0 and end["tries"] == 1, end
    assert all(s["done"] == s["tasks"] for s in end["stages"]), end["stages"]
    assert results(folder) == expected, logs(folder)
    text = run("status", folder=folder, environment=c.environment).stdout
    assert "asked and used" in text and "would have fitted: --mem" in text, text
    assert "finish.log" in run("logs", "--job", "finish", folder=folder, environment=c.environment).stdout


@test
def a_job_of_a_node_that_dies_is_queued_again_and_goes_on(folder):
    c = cluster()
    prepare(folder, FOLDER, 12)
    expected = alone(folder, FOLDER, 12)
    submit(folder, "--min-time", "0.0001", "--array-size", "2", environment=fault(folder, "item-3:1:stop", FIRST + ELEMENT))
    running = c.wait_for("the element that hangs", lambda: stuck(folder, 2))
    c.kill_node(running)
    try:
        end = until_finished(folder)
    finally:
        c.start_node(running)
    assert end["complete"] and sum(j["requeued"] for j in end["jobs"]) >= 1, (end, logs(folder))
    assert results(folder) == expected, logs(folder)
    c.wait_for("the node to come back", lambda: c.call("sinfo", "-h", "-t", "idle,alloc,mix", "-o", "%D").strip() == "4")


@test
def a_job_that_lacked_memory_is_submitted_again_with_more(folder):
    prepare(folder, FOLDER, 12)
    expected = alone(folder, FOLDER, 12)
    os.mkdir(os.path.join(folder, "out"))
    pathlib.Path(folder, "out", "05.npy").write_text("not made by Fovea")  # the second try may replace it too
    submit(folder, "--min-time", "0.0001", "--array-size", "2", "--overwrite", environment=fault(folder, "item-5:1:eat600"))
    end = until_finished(folder)
    assert end["complete"] and end["tries"] == 2, (end, logs(folder))
    assert results(folder) == expected, logs(folder)
    asked = [pathlib.Path(p).read_text() for p in sorted(pathlib.Path(folder, ".fovea").rglob("finish.sh"))]
    assert "--mem=384M" in asked[0] and "--mem=768M" in asked[1], asked


@test
def cancel_ends_all_jobs_and_the_same_command_goes_on(folder):
    c = cluster()
    prepare(folder, FOLDER, 12)
    expected = alone(folder, FOLDER, 12)
    submit(folder, "--min-time", "0.0001", "--array-size", "2", environment=fault(folder, "item-3:1:stop", FIRST + ELEMENT))
    c.wait_for("the element that hangs", lambda: stuck(folder, 2))
    run("cancel", folder=folder, environment=c.environment)
    c.idle()
    assert not status(folder)["complete"] and "all.csv" not in results(folder), logs(folder)
    submit(folder, "--min-time", "0.0001")
    end = until_finished(folder)
    assert end["complete"] and results(folder) == expected, logs(folder)


@test
def a_job_told_to_stop_before_its_time_limit_goes_on_after_the_requeue(folder):
    c = cluster()
    prepare(folder, FOLDER, 12)
    expected = alone(folder, FOLDER, 12)
    submit(folder, "--min-time", "0.0001", "--array-size", "1", "--time", "2:00:00",
           environment=fault(folder, "item-3:1:eat1", FIRST))
    c.wait_for("the job to start", lambda: c.call("squeue", "-h", "-j", job(folder, "finish"), "-o", "%T").strip() == "RUNNING")
    c.wait_for("its item", lambda: list(pathlib.Path(folder, ".fovea").rglob("*.now")))
    c.call("scancel", "--batch", "--signal=TERM", job(folder, "finish"))
    end = until_finished(folder)
    assert end["complete"] and end["jobs"][0]["requeued"] == 1 and end["tries"] == 1, (end, logs(folder))
    assert results(folder) == expected, logs(folder)


@test
def the_last_element_of_an_array_is_queued_again_without_the_others(folder):
    """Its number is that of the whole array."""
    c = cluster()
    prepare(folder, FOLDER, 12)
    expected = alone(folder, FOLDER, 12)
    first = pathlib.Path(folder, "go")
    only = rf'[ \"$SLURM_ARRAY_TASK_ID\" != 0 ] || until [ -e {first} ]; do sleep 0.1; done; {FIRST}{ELEMENT}'
    submit(folder, "--min-time", "0.0001", "--array-size", "2", environment=fault(folder, "write:1:eat1", only))
    c.wait_for("what it does", lambda: list(pathlib.Path(folder, ".fovea").rglob("*.now")))
    c.call("scancel", "--batch", "--signal=TERM", f"{job(folder, 'items')}_1")
    first.touch()
    end = until_finished(folder)
    assert end["complete"] and end["jobs"][0]["requeued"] == 1 and end["tries"] == 1, (end, logs(folder))
    first.unlink()
    assert results(folder) == expected, logs(folder)


@test
def a_pilot_does_all_in_one_allocation(folder):
    prepare(folder, VOLUME)
    expected = alone(folder, VOLUME, 0, *CHUNK)
    printed = submit(folder, *CHUNK, "--one-job", "--nodes", "3", "--order", "longest")
    assert len(pathlib.Path(folder, printed[0], "slurm", "1", "jobs").read_text().splitlines()) == 2
    end = until_finished(folder)
    assert end["complete"] and results(folder) == expected, logs(folder)
    with sqlite3.connect(os.path.join(folder, printed[0], "record.db")) as db:
        assert db.execute("select count(distinct process) from task").fetchone()[0] > 1, "one worker did all"


@test
def a_pilot_of_mpi_ranks_gives_the_same(folder):
    if not os.path.exists(os.path.join(os.path.dirname(FOVEA), "fovea-mpi-mpich.so")):
        raise Skip("the plug-in for MPICH is not built")
    prepare(folder, VOLUME)
    expected = alone(folder, VOLUME, 0, *CHUNK)
    submit(folder, *CHUNK, "--one-job", "--nodes", "2", "--mpi", "pmi2")
    end = until_finished(folder)
    assert end["complete"] and results(folder) == expected, (end, logs(folder))


@test
def the_engine_slurm_waits_and_shows_the_values(folder):
    prepare(folder, FOLDER + "\ncount(image > 128)\n", 5)
    here = run("run", "p.fov", "--into", "here", folder=folder).stdout
    there = run("run", "p.fov", "--engine", "slurm", folder=folder, environment=cluster().environment)
    assert there.stdout == here and "out/04.npy" in there.stderr, there.stderr


@test
def words_of_a_folder_are_counted_by_an_array(folder):
    text = (ROOT / "examples" / "wordcount.fov").read_text()
    for place in (folder, os.path.join(folder, "alone")):
        os.makedirs(os.path.join(place, "texts"))
        for page in (ROOT / "docs").glob("*.md"):
            shutil.copy(page, os.path.join(place, "texts", page.stem + ".txt"))
        prepare(place, text)
    run("run", "p.fov", folder=os.path.join(folder, "alone"))
    submit(folder, "--min-time", "0.0001", "--array-size", "3")
    end = until_finished(folder)
    assert end["complete"], (end, logs(folder))
    for name in ("frequencies.csv", "texts.csv"):
        assert pathlib.Path(folder, name).read_bytes() == pathlib.Path(folder, "alone", name).read_bytes(), name


@test
def scaling_is_measured_with_jobs(folder):
    prepare(folder, FOLDER, 6)
    study = json.loads(run("scale", "p.fov", "--engine", "slurm", "--workers", "1,2", "--repeats", "1", "--json", "-q",
                           folder=folder, environment=cluster().environment).stdout)
    assert [(row["workers"], row["size"]) for row in study["rows"]] == [(1, 6), (2, 6)], study
    assert study["rows"][0]["tasks"] == study["rows"][1]["tasks"] > 0 and all(row["seconds"] > 0 for row in study["rows"]), study
    timeline = pathlib.Path(folder, "scaling", "timeline.csv").read_text()
    assert timeline.count("\n") > 12, timeline
    assert pathlib.Path(folder, "scaling", "scaling.svg").exists() and not pathlib.Path(folder, "out").exists()

try:
    main()
finally:
    if CLUSTER:
        CLUSTER.stop()
