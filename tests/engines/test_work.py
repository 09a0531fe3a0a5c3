"""Several processes on one run, without a master: same bits, everything once, nobody's death does harm."""
import atexit
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import FOVEA, PATIENCE, main, run, test, wait_for

VOLUME = """
foam = phantom("foam", [48, 120, 120], seed = 1)
walls = gaussian(1 - foam / 255, sigma = [3, 6, 6])
bubbles = label(erode(walls > 0.9, ball(4)))
write(bubbles, "bubbles.zarr")
write(walls, "walls.npy")
write(convert(bubbles, "uint8"), "bubbles.tif")
write(measure(bubbles, foam), "bubbles.csv")
count(walls > 0.9)
"""
FOLDER = """
image = read("in/*.npy")
write(gaussian(image, 2), "out/{stem}.npy")
write(convert(median(image, 3), "uint8"), "out/{stem}.png")
write(measure(label(image > 128)), "all.csv")
"""


def contents(folder):
    """Every file that is a result, with its bytes; nothing hidden may be left but the store."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in (".fovea", "in", "p.fov"):
            found[str(relative)] = path.read_bytes()
    return found


def prepare(folder, text, items=0):
    """A folder with the pipeline and its inputs; gives what one process alone makes of it."""
    pathlib.Path(folder, "p.fov").write_text(text)
    rng = np.random.default_rng(7)
    os.makedirs(os.path.join(folder, "in"), exist_ok=True)
    for i in range(items):
        np.save(os.path.join(folder, "in", f"{i:02}.npy"), rng.integers(0, 255, (60 + i, 90)).astype(np.uint8))


def freeze(folder, *options):
    return run("submit", "p.fov", "--dry-run", "--measure", "0", *options, folder=folder).stdout.splitlines()[0]


def start(folder, run_folder, *options, place=0, places=1, threads=1, environment=None):
    own = {"SLURM_ARRAY_TASK_ID": str(place), "SLURM_ARRAY_TASK_COUNT": str(places), **(environment or {})}
    worker = subprocess.Popen([FOVEA, "work", run_folder, "--workers", str(threads), "--memory", "300M", *options], cwd=folder,
                              env={**os.environ, **own}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    atexit.register(worker.kill)  # whatever fails, none is left behind
    return worker


def end(process, code=0):
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == code, (process.returncode, errors[-600:])


def alone(folder, text, items=0, *options):
    """What one process makes of it, and what it prints."""
    other = os.path.join(folder, "alone")
    os.mkdir(other)
    prepare(other, text, items)
    printed = run("run", "p.fov", *options, folder=other).stdout
    return contents(other), printed


def tasks(folder, run_folder):
    with sqlite3.connect(os.path.join(folder, run_folder, "record.db")) as db:
        return db.execute("select item, stage, task, process from task where status = 'ok'").fetchall()


@test
def four_processes_share_a_volume_and_do_every_task_once(folder):
    expected, printed = alone(folder, VOLUME, 0, "--chunk", "16x48x48")
    together = os.path.join(folder, "together")
    os.mkdir(together)
    prepare(together, VOLUME)
    frozen = freeze(together, "--chunk", "16x48x48")
    workers = [start(together, frozen, "--wait", place=i, places=4) for i in range(4)]
    for worker in workers:
        end(worker)
    last = start(together, frozen, "--finish")
    output, _ = last.communicate(timeout=PATIENCE)
    assert last.returncode == 0 and output == printed
    assert contents(together) == expected
    done = tasks(together, frozen)
    assert len({t[:3] for t in done}) == len(done), "a task ran twice"


@test
def processes_leave_out_what_a_condition_closes(folder):
    """choose: the median behind a condition that turns out 0 is nobody's work, and what is behind a 1 is done once."""
    text = """
foam = phantom("foam", [24, 60, 60], seed = 1)
go = mean(foam) > 1000
fine = mean(foam) < 1000
write(choose(go, checkpoint(median(foam, 3)), foam), "closed.npy")
write(choose(fine, checkpoint(gaussian(foam, 2)), convert(foam, "float32")), "open.npy")
"""
    expected, _ = alone(folder, text, 0, "--chunk", "8x60x60")
    together = os.path.join(folder, "together")
    os.mkdir(together)
    prepare(together, text)
    frozen = freeze(together, "--chunk", "8x60x60")
    workers = [start(together, frozen, "--wait", place=i, places=2) for i in range(2)]
    for worker in workers:
        end(worker)
    end(start(together, frozen, "--finish"))
    assert contents(together) == expected
    record, = pathlib.Path(folder, "alone", ".fovea", "runs").glob("*/record.db")
    done = [task[:3] for task in tasks(together, frozen)]
    assert sorted(done) == sorted(task[:3] for task in tasks(folder, record.parent)), "the tasks of one process alone, once each"
    stages = json.loads(run("plan", "p.fov", "--chunk", "8x60x60", "--json", folder=together).stdout)["stages"]
    assert len(stages) - len({task[1] for task in done}) == 1, "the stage of the median, and only that one, has no task"


@test
def elements_of_an_array_do_their_stage_and_leave_its_end_to_the_merge(folder):
    expected, _ = alone(folder, VOLUME, 0, "--chunk", "16x48x48")
    together = os.path.join(folder, "together")
    os.mkdir(together)
    prepare(together, VOLUME)
    frozen = freeze(together, "--chunk", "16x48x48")
    stages = len(json.loads(run("plan", "p.fov", "--chunk", "16x48x48", "--json", folder=together).stdout)["stages"])
    for stage in range(1, stages + 1):
        for worker in [start(together, frozen, "--stage", str(stage), place=i, places=3) for i in range(3)]:
            end(worker)
        end(start(together, frozen, "--stage", str(stage), "--end"))
    images = {name: data for name, data in expected.items() if not name.endswith(".csv")}
    assert contents(together) == images, "the images are there before the last job"
    end(start(together, frozen, "--finish"))
    assert contents(together) == expected
    done = tasks(together, frozen)
    assert len({t[:3] for t in done}) == len(done), "a task ran twice"


@test
def items_of_a_collection_are_shared_and_tables_gathered_at_the_end(folder):
    expected, _ = alone(folder, FOLDER, 24)
    together = os.path.join(folder, "together")
    os.mkdir(together)
    prepare(together, FOLDER, 24)
    os.utime(os.path.join(together, "in", "03.npy"))
    frozen = freeze(together)
    for worker in [start(together, frozen, place=i, places=3) for i in range(3)]:
        end(worker)
    end(start(together, frozen, "--finish"))
    assert contents(together) == expected
    done = tasks(together, frozen)
    assert len({t[:3] for t in done}) == len(done), "a task ran twice"


@test
def threads_of_several_processes_do_every_task_once(folder):
    """Threads of one process ask for work at the same time, and only one of them looks at the claims of the others."""
    for name, text, items, options in [("volume", VOLUME, 0, ["--chunk", "16x48x48"]), ("folder", FOLDER, 24, [])]:
        place = os.path.join(folder, name)
        together = os.path.join(place, "together")
        os.makedirs(place)
        expected, _ = alone(place, text, items, *options)
        os.mkdir(together)
        prepare(together, text, items)
        frozen = freeze(together, *options)
        for worker in [start(together, frozen, "--wait", place=i, places=2, threads=4) for i in range(2)]:
            end(worker)
        end(start(together, frozen, "--finish", threads=4))
        assert contents(together) == expected
        done = tasks(together, frozen)
        assert len({t[:3] for t in done}) == len(done), "a task ran twice"


@test
def a_frozen_run_can_be_done_by_one_process_alone_on_any_engine(folder):
    expected, printed = alone(folder, FOLDER, 5)
    for engine in ["threads", "processes"]:
        other = os.path.join(folder, engine)
        os.mkdir(other)
        prepare(other, FOLDER, 5)
        worker = start(other, freeze(other), "--alone", "--engine", engine)
        output, _ = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0 and output == printed and contents(other) == expected


@test
def what_to_take_first_changes_nothing_but_the_order(folder):
    expected, _ = alone(folder, FOLDER, 9)
    for order, how in [("fifo", []), ("longest", []), ("memory", []), ("fifo", ["--alone"]), ("longest", ["--alone"])]:
        other = os.path.join(folder, order + "".join(how))
        os.mkdir(other)
        prepare(other, FOLDER, 9)
        frozen = freeze(other)
        end(start(other, frozen, "--order", order, *how))
        if not how:
            end(start(other, frozen, "--finish"))
        assert contents(other) == expected
        with sqlite3.connect(os.path.join(other, frozen, "record.db")) as db:
            items = [row[0] for row in db.execute("select item from task group by item order by min(start)")]
        first = set(items[:2]) if order == "longest" else set()  # two threads: one computes while the other reads
        assert not first or first == {7, 8}, (order, items)


@test
def workers_killed_at_any_moment_leave_nothing_wrong(folder):
    """Two kills a job: three on one item would count against it."""
    for text, items, options in [(VOLUME, 0, ["--chunk", "16x48x48"]), (FOLDER, 24, [])]:
        place = os.path.join(folder, f"{items}")
        os.makedirs(place)
        expected, _ = alone(place, text, items, *options)
        for attempt, waits in enumerate([(0.03, 0.25), (0.1, 0.15), (0.2, 0.05)]):
            together = os.path.join(place, f"together-{attempt}")
            os.mkdir(together)
            prepare(together, text, items)
            frozen = freeze(together, *options)
            for wait in waits:
                workers = [start(together, frozen, "--wait", "--level", "2", place=i, places=3) for i in range(3)]
                time.sleep(wait)
                workers[0].send_signal(signal.SIGKILL)
                workers[0].communicate()
                for worker in workers[1:]:
                    worker.terminate()
                    _, errors = worker.communicate(timeout=PATIENCE)
                    assert worker.returncode in (0, 130, -signal.SIGTERM), (worker.returncode, errors[-600:])
            end(start(together, frozen, "--finish", "--level", "2"))
            assert contents(together).keys() == expected.keys(), contents(together).keys() ^ expected.keys()
            assert contents(together) == expected


@test
def what_killed_three_workers_is_reported_and_the_rest_is_done(folder):
    prepare(folder, FOLDER, 6)
    frozen = freeze(folder)
    for level in range(3):
        worker = start(folder, frozen, "--level", str(level),
                       environment={"FOVEA_FAULT": "item-4:1", "FOVEA_LOG": f"log-{level}"})
        worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 137, worker.returncode
    last = start(folder, frozen, "--finish", "--level", "2")
    _, errors = last.communicate(timeout=PATIENCE)
    assert last.returncode == 1 and "in/04.npy: 3 workers died on this item" in errors and "log-1" in errors, errors
    made = [name for name in contents(folder) if name.startswith("out/")]
    assert len(made) == 10, made


@test
def a_task_that_killed_three_workers_fails_its_run(folder):
    prepare(folder, VOLUME)
    frozen = freeze(folder, "--chunk", "16x48x48")
    for level in range(3):  # the first job opens the item, the second is a task
        worker = start(folder, frozen, "--level", str(level), environment={"FOVEA_FAULT": "item-0:2"})
        worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 137, worker.returncode
    for threads in (1, 3):
        last = start(folder, frozen, "--finish", "--level", "2", threads=threads)
        _, errors = last.communicate(timeout=PATIENCE)
        assert last.returncode == 2 and "3 workers died on stage 1, task 0" in errors, (last.returncode, errors)
    assert not [name for name in contents(folder) if not name.startswith(".")], contents(folder).keys()


@test
def a_worker_on_another_machine_is_given_up_only_when_its_heart_stops(folder):
    expected, _ = alone(folder, FOLDER, 8)
    together = os.path.join(folder, "together")
    os.mkdir(together)
    prepare(together, FOLDER, 8)
    frozen = freeze(together)
    quick = {"FOVEA_LEASE_SECONDS": "2"}
    far = start(together, frozen, environment={**quick, "FOVEA_HOST": "elsewhere", "FOVEA_FAULT": "item-2:1:stop"})
    wait_for("it to stand still", lambda: pathlib.Path(f"/proc/{far.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    near = start(together, frozen, "--wait", "--level", "1", environment=quick)
    end(near)
    far.send_signal(signal.SIGCONT)  # the orphan wakes up, finds itself replaced, and does no harm
    far.communicate(timeout=PATIENCE)
    end(start(together, frozen, "--finish", "--level", "1", environment=quick))
    assert contents(together).keys() == expected.keys(), contents(together).keys() ^ expected.keys()
    assert contents(together) == expected


main()
