#!/usr/bin/env python3
"""Computing from Python: threads, interruption, memory, many computes in a row."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import PATIENCE, ROOT, main, test  # noqa: E402

import fovea as fv  # noqa: E402


def program(text, folder, **options):
    """A Python program with the package on its path, started."""
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], cwd=folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=str(ROOT / "python")), **options)


@test
def several_threads_compute_at_once(folder):
    a = np.random.default_rng(2).random((200, 200)).astype(np.float32)
    expected = np.asarray(fv.array(a).gaussian(3))
    found, threads = [None] * 6, []
    for k in range(6):
        def work(k=k):
            found[k] = fv.array(a).gaussian(3).compute(workers=1, store=f"{folder}/{k}")
        threads.append(threading.Thread(target=work))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert all((f == expected).all() for f in found)


@test
def other_threads_of_python_go_on_meanwhile(folder):
    ticks, stop = [0], threading.Event()

    def spin():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)
    thread = threading.Thread(target=spin)
    thread.start()
    before = ticks[0]
    fv.phantom("noise", [60, 300, 300]).gaussian(6).median(5).mean().compute(store=folder)
    during = ticks[0] - before
    stop.set()
    thread.join()
    assert during > 20, during


@test
def ctrl_c_ends_a_compute(folder):
    child = program("""
        import sys, fovea as fv
        image = fv.phantom("noise", [2000, 2000, 2000]).gaussian(9).median(9)
        print("ready", flush=True)
        try:
            image.mean().compute()
        except KeyboardInterrupt:
            print("stopped", float(fv.phantom("cells", [32, 32]).max()) > 0)
        """, folder)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0 and out == "stopped True\n", (child.returncode, out, errors[-2000:])


@test
def a_signal_with_a_handler_of_its_own_does_not_end_a_compute(folder):
    child = program("""
        import os, signal, threading, time, fovea as fv
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        threading.Thread(target=lambda: (time.sleep(0.3), os.kill(os.getpid(), signal.SIGUSR1))).start()
        value = fv.phantom("noise", [80, 400, 400]).gaussian(5).median(5).mean().compute()
        print(len(seen), value > 0)
        """, folder)
    out, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0 and out == "1 True\n", (out, errors[-2000:])


@test
def many_computes_leave_nothing_behind(folder):
    child = program("""
        import os, resource, numpy as np, fovea as fv
        a = np.random.default_rng(0).random((40, 40)).astype(np.float32)
        def go(n):
            for _ in range(n):
                float(fv.array(a).gaussian(1).mean())
            return int(open("/proc/self/statm").read().split()[1]) * 4096, len(os.listdir("/proc/self/fd"))
        go(200)
        memory, files = go(100)
        more, still = go(600)
        print((more - memory) >> 20, still - files)
        """, folder)
    out, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, errors[-2000:]
    grown, files = map(int, out.split())
    assert grown < 8 and files <= 0, out


@test
def memory_and_workers_are_checked(folder):
    for options, word in (({"memory": "2 elephants"}, "no size"), ({"memory": -1}, "memory"), ({"workers": 0}, "workers"),
                          ({"engine": "abacus"}, "abacus")):
        try:
            fv.phantom("cells", [16, 16]).mean().compute(store=folder, **options)
        except fv.UsageError as error:
            assert word in str(error), error
        else:
            raise AssertionError(options)


@test
def engines_give_the_same_bits(folder):
    x = fv.phantom("foam", [40, 60, 60], seed=4).gaussian(1)
    labels = (x > x.otsu()).label()
    one = labels.compute(store=f"{folder}/a")
    other = labels.compute(store=f"{folder}/b", memory="150M", workers=3)
    assert (one == other).all() and one.max() > 1


@test
def the_module_is_the_command(folder):
    done = subprocess.run([sys.executable, "-m", "fovea", "run", "-e", "mean(ones([3, 3]))"], cwd=folder, capture_output=True,
                          text=True, env=dict(os.environ, PYTHONPATH=str(ROOT / "python")), check=False)
    assert done.returncode == 0 and done.stdout.strip() == "1", done


@test
def an_estimate_tells_what_a_value_or_a_text_costs(folder):
    fv.phantom("cells", [20, 64, 64]).write(f"{folder}/a.tif")
    for what in (fv.read(f"{folder}/a.tif").gaussian(2), fv.read(f"{folder}/a.tif").otsu(), f'mean(read("{folder}/a.tif"))\n'):
        found = fv.estimate(what, seconds=0.2, workers=4, store=f"{folder}/store")
        assert [p["workers"] for p in found["predictions"]] == [1, 2, 4] and found["predictions"][0]["seconds"] > 0, found
        assert "--cpus-per-task=1" in found["requests"][0]["sbatch"]
    try:
        fv.estimate(fv.array(np.zeros((9, 9))).gaussian(1))
    except fv.UsageError as error:
        assert "write them to files" in str(error)
    else:
        raise AssertionError("an array of this program was estimated in another")


main()
