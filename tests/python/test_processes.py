#!/usr/bin/env python3
"""Threads and processes of Python around Fovea: computing in several at once, and going on after a fork."""
import concurrent.futures
import multiprocessing
import os
import pathlib
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import PATIENCE, main, test  # noqa: E402

import fovea as fv  # noqa: E402


def work(seed):
    """A number that takes several stages to find."""
    x = fv.array(np.random.default_rng(seed).random((60, 70)).astype(np.float32)).gaussian(2)
    return int((x > x.otsu()).label().max())


def in_child(function):
    """Whether a function gives true in a forked child, in time."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if function() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")


@test
def threads_give_what_one_gives(folder):
    del folder
    expected = [work(k) for k in range(12)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(12))) == expected


@test
def a_spinning_thread_goes_on(folder):
    del folder
    count, stop = [0], threading.Event()

    def spin():
        while not stop.is_set():
            count[0] += 1
    thread = threading.Thread(target=spin)
    thread.start()
    image = fv.phantom("noise", [40, 256, 256]).median(5)
    before, began = count[0], time.thread_time()
    image.compute(workers=1)
    own, during = time.thread_time() - began, count[0] - before
    stop.set()
    thread.join()
    assert during > 20000, (during, own)  # with the lock held it would be none


@test
def a_fork_may_compute(folder):
    del folder
    expected = work(3)
    assert in_child(lambda: work(3) == expected)
    assert in_child(lambda: in_child(lambda: work(3) == expected))
    assert work(3) == expected


@test
def a_fork_amid_computing_threads_may_compute(folder):
    del folder
    expected, stop, wrong = work(3), threading.Event(), []

    def busy(seed):
        right = work(seed)
        while not stop.is_set():
            if work(seed) != right:
                wrong.append(seed)
    threads = [threading.Thread(target=busy, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(25):
            assert in_child(lambda: work(3) == expected)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong


@test
def pools_of_processes_compute(folder):
    del folder
    expected = [work(k) for k in range(4)]
    for way in "fork", "spawn":
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(way)) as pool:
            assert list(pool.map(work, range(4), timeout=PATIENCE)) == expected, way


@test
def values_are_not_pickled_by_mistake(folder):
    del folder
    import pickle
    x = fv.array(np.ones((3, 3), np.float32)).gaussian(1)
    try:
        pickle.dumps(x)
    except TypeError as error:
        assert "text()" in str(error) or "compute" in str(error), error
    else:
        raise AssertionError("a lazy image was pickled")


if __name__ == "__main__":
    main()
