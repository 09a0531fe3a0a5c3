#!/usr/bin/env python3
"""Functions of Python on blocks of images and on items: the same for any number of workers, and failures that say where."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "support"),
                str(pathlib.Path(__file__).resolve().parent.parent.parent / "python")]
import numpy as np  # noqa: E402
from fovea_test import PATIENCE, ROOT, main, test  # noqa: E402

import fovea as fv  # noqa: E402


def raised(kind, function):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def mean3(block):
    """Of each voxel and its neighbours along the first axis."""
    padded = np.concatenate([block[:1], block, block[-1:]])
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3


@test
def blocks_with_halo_equal_the_whole(folder):
    del folder
    a = np.random.default_rng(0).random((40, 30, 20))
    for block in None, 7, (3, 30, 20), (40, 4, 5):
        for workers in 1, 3:
            found = fv.map_blocks(mean3, a, halo=(1, 0, 0), block=block, workers=workers).compute()
            assert (found == mean3(a)).all(), (block, workers)
    import scipy.ndimage
    found = fv.map_blocks(lambda b: scipy.ndimage.median_filter(b, 5), a, halo=2, block=9).compute()
    assert (found == scipy.ndimage.median_filter(a, 5)).all()
    for block in None, 7:  # bytes in another order, as files of other machines have them
        assert (fv.map_blocks(lambda b: b.astype(">f8"), a, block=block).compute() == a).all()


@test
def a_mapped_image_is_an_image(folder):
    a = np.arange(60, dtype=np.uint8).reshape(6, 10)
    x = fv.map_blocks(lambda b: b.astype(np.float32) / 2, fv.array(a, spacing=0.5), dtype="float32", block=4)
    assert x.shape == (6, 10) and x.dtype == np.float32 and x.spacing == (0.5, 0.5)
    assert (np.asarray(x + 1) == a / 2 + 1).all() and float(x.max()) == 29.5
    assert "stage" in (x.gaussian(1)).plan() and "read(" in (x + 1).text()
    again = fv.map_blocks(lambda b: b * 2, x.gaussian(1), block=3)
    assert np.allclose(again.compute(), 2 * x.gaussian(1).compute())
    x.write(f"{folder}/x.npy", store=f"{folder}/store")
    assert (np.load(f"{folder}/x.npy") == a / 2).all()


@test
def nothing_is_computed_before_it_is_asked_for(folder):
    marker = pathlib.Path(folder) / "called"

    def touch(block):
        with open(marker, "a", encoding="ascii") as file:
            file.write("x")
        return block
    x = fv.map_blocks(touch, np.ones((4, 4)), block=2)
    (x + 1).plan()
    assert not marker.exists()
    x.compute()
    (x + 1).compute()
    assert marker.read_text() == "xxxx"


@test
def a_function_that_raises_is_named_with_its_block(folder):
    marker = pathlib.Path(folder) / "repaired"

    def picky(block):
        if block[0, 0] == 6 and not marker.exists():
            raise RuntimeError("six is too much")
        return block
    a = np.repeat(np.arange(10.0), 4).reshape(10, 4)
    x = fv.map_blocks(picky, a, block=(2, 4), workers=2)
    why = raised(fv.BlockError, x.compute)
    assert "picky failed on block 4 of 5 (y 6:8, x 0:4)" in why and "six is too much" in why and "in picky" in why, why
    assert "_workers.py" not in why, why
    marker.touch()
    assert (x.compute() == a).all()  # what was done is not done again, and the rest is


@test
def wrong_results_are_refused(folder):
    del folder
    a = np.ones((4, 6), np.float32)
    why = raised(fv.BlockError, fv.map_blocks(lambda b: b[1:], a).compute)
    assert "block 1 of 1" in why and "must keep the shape" in why, why
    why = raised(fv.BlockError, fv.map_blocks(lambda b: b.astype(int), a).compute)
    assert 'dtype="int64"' in why, why
    why = raised(fv.BlockError, fv.map_blocks(lambda b: b.fill(1), a).compute)
    assert "read-only" in why, why
    for word, call in (("function", lambda: fv.map_blocks(3, a)), ("image", lambda: fv.map_blocks(abs, fv.ball(2))),
                       ("array", lambda: fv.map_blocks(abs, "x"))):
        assert word in raised(TypeError, call)
    for word, options in (("halo", {"halo": -1}), ("halo", {"halo": (1, 2, 3)}), ("block", {"block": 0}),
                          ("workers", {"workers": 0}), ("dtype", {"dtype": "U3"}), ("version", {"store": "x"})):
        assert word in raised(fv.UsageError, lambda o=options: fv.map_blocks(abs, a, **o)), word


@test
def a_function_that_kills_its_process_is_told(folder):
    marker = pathlib.Path(folder) / "deaths"

    def die(block):
        with open(marker, "a", encoding="ascii") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    why = raised(fv.BlockError, fv.map_blocks(die, np.ones((4, 4))).compute)
    assert "block 1 of 1" in why and "SIGKILL" in why and marker.read_text() == "xxx", why

    def die_once(block):
        if block[0, 0] == 2 and not os.path.exists(f"{folder}/once"):
            open(f"{folder}/once", "w", encoding="ascii").close()
            os._exit(3)
        return block
    a = np.arange(4.0).reshape(4, 1)
    assert (fv.map_blocks(die_once, a, block=1, workers=2).compute() == a).all()


@test
def a_store_goes_on_where_a_program_stopped(folder):
    text = """
        import os, sys, numpy as np, fovea as fv
        def f(block):
            if block[0, 0] == 3 and not os.path.exists("go"):
                os.kill(os.getppid(), 9)
                import time; time.sleep(1)
            open("calls", "a").write("x")
            return block + 1
        a = np.repeat(np.arange(6.0), 5).reshape(6, 5)
        found = fv.map_blocks(f, a, block=(1, 5), workers=1, store="kept", version=sys.argv[1]).compute()
        print((found == a + 1).all())
        """

    def go(version):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(text), version], cwd=folder, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=str(ROOT / "python")), timeout=PATIENCE, check=False)
    calls = pathlib.Path(folder) / "calls"
    assert go("1").returncode == -9
    assert calls.read_text().count("x") <= 4  # the one that was running may still end
    before = 3
    calls.write_text("")
    (pathlib.Path(folder) / "go").touch()
    assert go("1").stdout == "True\n" and calls.read_text() == "x" * (6 - before), calls.read_text()
    assert go("1").stdout == "True\n" and calls.read_text() == "x" * (6 - before)
    assert go("2").stdout == "True\n" and calls.read_text() == "x" * (12 - before)


@test
def what_does_not_fit_into_memory_goes_through_files(folder):
    os.environ["TMPDIR"] = folder
    x = fv.phantom("foam", [100, 300, 300], seed=1).gaussian(1)
    mapped = fv.map_blocks(lambda b: b * 2, x, memory="60M", block=(20, 300, 300))  # 36 MB each
    large = fv.map_blocks(lambda b: b * 2, x, memory="1G", block=(20, 300, 300)).compute()
    assert (mapped.compute() == large).all() and not os.listdir(folder), os.listdir(folder)


@test
def a_function_may_use_fovea(folder):
    del folder
    a = np.random.default_rng(3).random((30, 40)).astype(np.float32)
    fv.array(a).gaussian(1).compute()  # so that something is kept in this process
    found = fv.map_blocks(lambda b: fv.array(b).gaussian(1).compute(workers=1), a, halo=4, block=(10, 40), workers=2).compute()
    assert np.abs(found - fv.array(a).gaussian(1).compute()).max() == 0


@test
def ctrl_c_ends_the_workers(folder):
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
        import os, time, numpy as np, fovea as fv
        def slow(block):
            open(f"pid-{os.getpid()}", "w").close()
            time.sleep(60)
            return block
        print("ready", flush=True)
        try:
            fv.map_blocks(slow, np.ones((4, 4)), block=1, workers=2).compute()
        except KeyboardInterrupt:
            print("stopped")
        """)], cwd=folder, stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
    assert child.stdout.readline() == "ready\n"
    end = time.monotonic() + PATIENCE
    while len(list(pathlib.Path(folder).glob("pid-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=PATIENCE)[0] == "stopped\n"
    for path in pathlib.Path(folder).glob("pid-*"):
        assert not os.path.exists(f"/proc/{path.name[4:]}"), path


@test
def items_are_mapped_in_order(folder):
    for k in range(5):
        np.save(f"{folder}/i{k}.npy", np.full((3, 4), k, np.float32))
    sums = fv.map_items(lambda a: float(a.sum()), f"{folder}/i*.npy", workers=2)
    assert sums == [12.0 * k for k in range(5)], sums
    large, = fv.map_items(lambda a: np.ones((200, 300)) * a.max(), [f"{folder}/i3.npy"])
    assert large.shape == (200, 300) and (large == 3).all()
    mixed = fv.map_items(np.max, [np.arange(3), fv.array(np.arange(4.0)) + 1, pathlib.Path(folder) / "i2.npy"])
    assert mixed == [2, 4.0, 2.0], mixed
    assert fv.map_items(np.max, []) == []


@test
def a_bad_item_does_not_stop_the_rest(folder):
    for k in range(3):
        np.save(f"{folder}/i{k}.npy", np.full((3, 4), k, np.float32))
    (pathlib.Path(folder) / "i1.npy").write_bytes(b"no array")
    try:
        fv.map_items(lambda a: a.max() / 4, f"{folder}/i*.npy", workers=2)
    except fv.ItemsError as error:
        assert error.results[2] == 0.5 and error.results[1] is None and len(error.failures) == 1, error.results
        assert "item 2 of 3" in str(error) and "i1.npy" in str(error), error
    else:
        raise AssertionError("no ItemsError")
    assert "no file matches" in raised(fv.InputError, lambda: fv.map_items(np.max, f"{folder}/none*.tif"))


@test
def items_in_a_store_are_done_once(folder):
    for k in range(4):
        np.save(f"{folder}/i{k}.npy", np.full((3, 4), k, np.float32))
    calls = pathlib.Path(folder) / "calls"

    def called():
        found = calls.read_text().count("x") if calls.exists() else 0
        calls.write_text("")
        return found

    def picky(a):
        if a[0, 0] == 2 and not os.path.exists(f"{folder}/repaired"):
            raise RuntimeError("two is too much")
        with open(calls, "a", encoding="ascii") as file:
            file.write("x")
        return np.repeat(a, 9000).reshape(-1, 9000) if a[0, 0] == 3 else {"sum": float(a.sum())}
    given = {"store": f"{folder}/kept", "version": "1", "workers": 2}
    why = raised(fv.ItemsError, lambda: fv.map_items(picky, f"{folder}/i*.npy", **given))
    assert "item 3 of 4" in why and "i2.npy" in why and "in picky" in why and "two is too much" in why and called() == 3, why
    pathlib.Path(f"{folder}/repaired").touch()
    found = fv.map_items(picky, f"{folder}/i*.npy", **given)
    assert called() == 1 and found[:3] == [{"sum": 0.0}, {"sum": 12.0}, {"sum": 24.0}], found[:3]
    assert isinstance(found[3], np.memmap) and found[3].shape == (12, 9000) and (found[3] == 3).all()
    assert fv.map_items(picky, f"{folder}/i*.npy", **given)[1] == {"sum": 12.0} and called() == 0
    np.save(f"{folder}/i1.npy", np.full((3, 5), 7, np.float32))  # another file
    assert fv.map_items(picky, f"{folder}/i*.npy", **given)[1] == {"sum": 105.0} and called() == 1
    assert fv.map_items(picky, f"{folder}/i*.npy", **{**given, "version": "2"})[0] == {"sum": 0.0} and called() == 4
    mixed = [np.arange(3.0).reshape(1, 3), fv.array(np.ones((2, 2))) + 1]
    assert fv.map_items(picky, mixed, **given) == fv.map_items(picky, mixed, **given) and called() == 2
    assert not [name for name in os.listdir(f"{folder}/kept/items") if name.endswith(".part")]
    assert "version" in raised(fv.UsageError, lambda: fv.map_items(np.max, mixed, store=folder))


@test
def memory_says_how_many_items_are_worked_on_at_once(folder):
    def count(a):
        with open(f"{folder}/now", "a", encoding="ascii") as file:
            file.write("+")
        time.sleep(0.05)
        with open(f"{folder}/now", "a", encoding="ascii") as file:
            file.write("-")
        return a.shape
    items = [np.zeros((1000, 1000), np.uint8)] * 4
    assert fv.map_items(count, items, workers=4, memory="3M") == [(1000, 1000)] * 4
    assert pathlib.Path(f"{folder}/now").read_text() == "+-" * 4


@test
def an_item_that_kills_its_process_is_named(folder):
    del folder

    def die(a):
        if a[0] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return int(a[0])
    try:
        fv.map_items(die, [np.array([k]) for k in range(3)], workers=2)
    except fv.ItemsError as error:
        assert "item 2 of 3" in str(error) and "SIGKILL" in str(error) and error.results == [0, None, 2], error
    else:
        raise AssertionError("no ItemsError")


@test
def nothing_is_left_behind(folder):
    del folder
    a = np.ones((8, 8))
    fv.map_blocks(lambda b: b, a, block=4, workers=2).compute()
    files = len(os.listdir("/proc/self/fd"))
    kept = [fv.map_blocks(lambda b: b, a, block=4, workers=2).compute() for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == files and len(kept) == 20
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
    else:
        raise AssertionError("a process is left")


main()
