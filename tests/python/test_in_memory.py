#!/usr/bin/env python3
"""Computations that stay in memory: nothing on disk, little beside the work itself, nothing left behind."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import threading

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import PATIENCE, ROOT, Skip, main, test  # noqa: E402

import fovea as fv  # noqa: E402
from fovea._prepared import call  # noqa: E402


def program(text, folder, *before, **environment):
    """What a Python program with the package on its path prints."""
    done = subprocess.run([*before, sys.executable, "-B", "-c", textwrap.dedent(text)], cwd=folder, capture_output=True,
                          text=True, timeout=PATIENCE, check=False,
                          env=dict(os.environ, PYTHONPATH=str(ROOT / "python"), **environment))
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


CHANGES = re.compile(r"O_CREAT|O_TMPFILE|O_WRONLY|O_RDWR|^\S*\s*(mkdir|rename|unlink|rmdir|link|symlink|mknod)")


@test
def no_file_is_made(folder):
    if not shutil.which("strace"):
        raise Skip("no strace; the Debian package strace has it")
    program("""
        import os, numpy as np, fovea as fv
        a = np.random.default_rng(0).random((300, 300)).astype(np.float32)
        os.path.exists("begin")
        x = fv.array(a, spacing=0.5)
        labels = (x.gaussian(2) > 0.5).label()
        table, total = fv.compute(labels.measure(x), labels.max())
        smooth = fv.phantom("foam", [50, 150, 150]).median(3).compute(workers=2)
        print(len(table), total, smooth.shape)
        """, folder, "strace", "-f", "-o", f"{folder}/trace", "-e", "trace=%file")
    lines = (pathlib.Path(folder) / "trace").read_text().splitlines()
    begin = next(k for k, line in enumerate(lines) if '"begin"' in line)
    made = [line for line in lines[begin:] if CHANGES.search(line) and '"/dev/' not in line]
    assert not made, made
    assert os.listdir(folder) == ["trace"], os.listdir(folder)


@test
def what_does_not_fit_is_spilled_without_a_name(folder):
    os.mkdir(f"{folder}/spill")
    text = """
        import os, fovea as fv
        x = fv.phantom("foam", [100, 300, 300], seed=4).gaussian(2)
        labels = (x > x.otsu()).label()
        found = fv.compute(x.max(), labels.max(), (x - x.mean()).std(), memory={memory!r}, workers=2)
        print(*found)
        """
    roomy = program(text.format(memory=None), folder, TMPDIR=f"{folder}/spill")
    tight = program(text.format(memory="90M"), folder, TMPDIR=f"{folder}/spill")
    assert roomy == tight, (roomy, tight)
    assert os.listdir(folder) == ["spill"] and not os.listdir(f"{folder}/spill"), os.listdir(folder)


@test
def a_store_that_is_asked_for_is_used(folder):
    out = program("""
        import os, numpy as np, fovea as fv
        x = fv.array(np.ones((50, 50), np.uint8)).gaussian(1)
        x.compute(store="mine")
        np.save("a.npy", np.arange(12.0).reshape(3, 4))
        fv.read("a.npy").mean().compute()
        print(sorted(os.listdir(".")), sorted(os.listdir("mine")))
        """, folder)
    assert "'.fovea', 'a.npy', 'mine'" in out and "runs" in out, out


@test
def a_pipeline_is_used_again_on_other_pixels(folder):
    del folder
    random = np.random.default_rng(1)
    for _ in range(3):
        for dtype in np.float32, np.uint8, ">i2":
            a = (random.random((20, 30)) * 100).astype(dtype)
            smooth, largest = call("b = gaussian(a, sigma = 1)\nm = max(a)\n", {"a": a}, ("b", "m"))
            assert largest == a.max()
            assert (smooth == fv.array(a).gaussian(1).compute(workers=1)).all()
            turned, = call("b = a + 1\n", {"a": a.T}, ("b",))
            assert (turned == a.T + 1).all()
    a = np.ones((4, 4), np.float32)
    first, = call("b = a + 1\n", {"a": a}, ("b",))
    second, = call("b = a + 1\n", {"a": a * 5}, ("b",))
    assert (first == 2).all() and (second == 6).all()
    table, = call("t = measure(label(a > 0))\n", {"a": a}, ("t",))
    assert isinstance(table, fv.Table) and list(table["voxels"]) == [16]


@test
def a_mistake_does_not_spoil_the_next_call(folder):
    del folder
    a = np.ones((8, 8), np.float32)
    for _ in range(2):
        try:
            call("b = gaussian(a, sigma = -1)\n", {"a": a}, ("b",))
        except fv.UsageError as error:
            assert "sigma" in str(error)
        else:
            raise AssertionError("sigma = -1 was taken")
        try:
            call("b = a\n", {"a": np.array(["x"])}, ("b",))
        except TypeError as error:
            assert "elements" in str(error)
        else:
            raise AssertionError("an array of texts was taken")
    assert (call("b = a * 2\n", {"a": a}, ("b",))[0] == 2).all()


@test
def threads_share_what_is_kept(folder):
    del folder
    wrong = []

    def work(k):
        a = np.full((30, 30), k, np.float32)
        for _ in range(100):
            if not (call("b = a * 2\n", {"a": a}, ("b",))[0] == 2 * k).all():
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


@test
def a_result_is_made_where_it_stays(folder):
    out = program("""
        import numpy as np, fovea as fv
        def most():
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
        a = np.ones((160, 512, 512), np.float32)
        (fv.array(a[:8]) + 1).compute(workers=1)
        before = most()
        x = fv.array(a) + 1
        y = x.gaussian(1)
        first = x.compute(workers=1)
        print((most() - before) * 1024 / a.nbytes, bool((first == 2).all()))
        first, second, total = fv.compute(x, y, x.mean(), workers=2)  # one of them is read again on the way
        print(bool((first == 2).all() and abs(second - 2).max() < 1e-6), total)
        one, other = fv.compute(x, x + 0, workers=2)
        print(bool((one == 2).all() and (other == 2).all()))
        """, folder)
    most, *rest = out.split()
    assert float(most) < 1.3 and rest == ["True", "True", "2.0", "True"], out


@test
def many_calls_leave_nothing_behind(folder):
    out = program("""
        import os, numpy as np, fovea as fv
        from fovea._prepared import call
        def go(n):
            for k in range(n):
                a = np.ones((40, 40 + k % 50), np.float32)
                call("b = gaussian(a, sigma = 1)", {"a": a}, ("b",))
                if k % 4 == 0:
                    float((fv.array(a) + k).mean())
            return int(open("/proc/self/statm").read().split()[1]) * 4096, len(os.listdir("/proc/self/fd"))
        go(500)
        memory, files = go(500)
        more, still = go(2000)
        print((more - memory) >> 20, still - files, os.listdir("."))
        """, folder)
    grown, files, left = out.split()
    assert int(grown) < 8 and int(files) <= 0 and left == "[]", out


main()
