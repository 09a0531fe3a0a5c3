#!/usr/bin/python3
"""Runs whose workers another system places: here threads of this program stand for its tasks."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, main, run, test  # noqa: E402
from placed import alone, files, there  # noqa: E402

sys.path.insert(0, str(ROOT / "python"))
try:
    import numpy as np
    import fovea as fv
    from fovea._placed import PlacedRun, placed_run, share_of_memory
    from fovea._placed_worker import Problem
except ImportError as missing:
    print(f"skip placed: {missing}")
    sys.exit(0)

FOAM = """
param level = 100
foam = phantom("cells", [32, 96, 96])
bubbles = label(gaussian(foam, 1) > level)
write(bubbles, "bubbles.npy")
write(measure(bubbles, foam), "bubbles.csv")
max(bubbles)
"""


def together(functions):
    """Calls all at once; gives what they give."""
    found = [None] * len(functions)

    def call(k):
        try:
            found[k] = functions[k]()
        except Exception as exception:
            found[k] = exception
    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@there
def placed_workers_make_what_threads_make(folder):
    expected, made = alone(folder, FOAM)
    with placed_run(FOAM) as placed:
        done = []
        for job in placed.jobs(least=0):
            done += together([placed.worker(FOVEA, k, 3, job, memory=400 << 20) for k in range(3)])
        assert placed.finish() == expected
        assert sum(d["tasks_run"] for d in done) == placed.look()["tasks_done"], done
        assert [s["done"] for s in placed.look()["stages"]] == [s["tasks"] for s in placed.look()["stages"]]
        assert any("gaussian" in job.name for job in placed.jobs()) and placed.look()["finished"]
        assert len(placed.jobs(least=0)) == len(placed.look()["stages"]) > len(placed.jobs()) == 1
        assert placed.jobs()[0].last == len(placed.look()["stages"])
    assert files(folder) == made


@there
def a_killed_worker_is_started_again_and_a_bad_item_is_named(folder):
    for k in range(6):
        np.save(folder / f"in{k}.npy", np.full((200, 200), k, np.uint8))
    (folder / "in6.npy").write_bytes(b"no image")
    text = 'x = read("in*.npy")\nwrite(median(x, 5), "out-{index}.npy")\n'
    os.environ["FOVEA_FAULT"] = "item-3:1"  # each process dies on it, so three do, and then it is left
    try:
        with placed_run(text) as placed:
            found = together([placed.worker(FOVEA, k, 2) for k in range(2)])
            del os.environ["FOVEA_FAULT"]
            try:
                placed.finish()
                raise AssertionError("nothing failed")
            except fv.InputError as error:
                assert "in6.npy" in str(error) and "workers died" in str(error), error
    finally:
        os.environ.pop("FOVEA_FAULT", None)
    assert not any(isinstance(f, Problem) for f in found), found
    assert sorted(p.name for p in folder.glob("out-*")) == [f"out-{k}.npy" for k in (0, 1, 2, 4, 5)]
    assert fv.run(text.replace("in*", "in[0-5]")) == [] and (folder / "out-3.npy").exists()


@there
def what_cannot_work_is_said_in_a_sentence(folder):
    with placed_run(FOAM) as placed:
        for function, words in ((placed.check("/nowhere/fovea"), None), (placed.worker(FOVEA, 0, 1, memory=1 << 20), "at least"),
                                (PlacedRun(folder / "nothing").check(FOVEA), f"does not see {folder}/nothing")):
            try:
                facts = function()
                assert words is None and facts["cores"] > 0 and share_of_memory([facts] * 2) <= facts["free"] / 4
            except Problem as problem:
                assert words and words in str(problem), problem
        other = folder / "fovea-of-another-day"
        other.write_text("#!/bin/sh\necho fovea 0.0.1\n")
        other.chmod(0o755)
        try:
            placed.check(str(other))()
            raise AssertionError("another version was taken")
        except Problem as problem:
            assert "0.0.1" in str(problem) and fv.__version__ in str(problem), problem


@there
def workers_stop_when_they_are_asked_to(folder):
    slow = 'write(median(phantom("cells", [20000, 20000]) * 1.5, 31), "slow.npy")\n'
    with placed_run(slow) as placed:
        threading.Timer(1, placed.stop).start()
        assert together([placed.worker(FOVEA, k, 2) for k in range(2)]) == [{"stopped": True}] * 2
        assert not (folder / "slow.npy").exists()


@there
def a_worker_ends_with_the_program_that_started_it(folder):
    with placed_run('write(median(phantom("cells", [20000, 20000]) * 1.5, 31), "slow.npy")\n') as placed:
        script = ("import subprocess, sys\n"
                  f"command = [{str(FOVEA)!r}, 'work', {placed.folder!r}, '--wait', '--tied']\n"
                  "c = subprocess.Popen(command, stdin=subprocess.PIPE)\n"
                  "print(c.pid, flush=True)\nc.wait()\n")
        parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        for _ in range(100):
            try:
                if pathlib.Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                    break
            except FileNotFoundError:
                break
            time.sleep(0.1)
        else:
            raise AssertionError(f"process {child} lives on")


@test
def the_place_of_a_worker_is_checked(folder):
    said = run("work", "--place", "2", "nowhere", folder=folder, code=2)
    assert "expected I/N" in said.stderr, said.stderr


main()
