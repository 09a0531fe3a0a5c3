"""Seams where work could be lost, wrong or stuck: turns and locks, shared results, odd names, sizes and tables."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test

RNG = np.random.default_rng(5)


def save(folder, name, array):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return array


def load(folder, name):
    return np.load(os.path.join(folder, name))


def summary(*arguments, folder, **options):
    return json.loads(run("run", "--json", *arguments, folder=folder, **options).stdout)


# ---- turns and locks

@test
def many_items_with_one_worker_never_wait_for_each_other(folder):
    """A thread that syncs gave its turn away; those who wait for what it holds must do so too."""
    for i in range(60):
        save(folder, f"in/{i:03}.npy", np.full((32, 32), i, np.uint8))
    run("run", "-q", "--workers", "1", "--patience", "0.001", "-e", 'read("in/*.npy") + 1 |> write("out/{stem}.npy")', folder=folder, timeout=60)
    assert all((load(folder, f"out/{i:03}.npy") == i + 1).all() for i in range(60))


@test
def a_scalar_that_comes_from_disk_stops_nobody(folder):
    text = 'a = phantom("noise", [32, 64, 64])\nwrite(a > mean(a), "b.npy")'
    for _ in range(3):
        pathlib.Path(folder, "b.npy").unlink(missing_ok=True)
        run("run", "-q", "--workers", "1", "--chunk", "2x64x64", "--patience", "0.001", "-e", text, folder=folder, timeout=60)


# ---- what is in the store

def damage(folder):
    """Flips bytes all over the packs, as a bad disk would."""
    for pack in pathlib.Path(folder, ".fovea/store").glob("*.pack"):
        data = bytearray(pack.read_bytes())
        for i in range(0, len(data), 7):
            data[i] ^= 0x55
        pack.write_bytes(data)


@test
def damaged_results_are_made_again_and_never_taken_for_empty_ones(folder):
    save(folder, "a.npy", RNG.random((16, 48, 48), dtype=np.float32))
    text = 'a = read("a.npy")\nl = label(a > 0.8)\nwrite(l, "l.npy")\nwrite(measure(l, a), "t.csv")'
    more = ["-q", "--chunk", "8x24x48", "--patience", "0.001", "-e", text]
    run("run", *more, folder=folder)
    labels, table = load(folder, "l.npy"), pathlib.Path(folder, "t.csv").read_bytes()
    assert labels.max() > 3
    for name in "l.npy", "t.csv":
        pathlib.Path(folder, name).unlink()
    damage(folder)
    for _ in range(100):  # every attempt finds one damaged result, says so, and leaves it out from then on
        done = run("run", *more, folder=folder, code=None)
        if done.returncode == 0:
            break
        assert done.returncode == 1 and "damaged" in done.stderr, done.stderr
    assert (load(folder, "l.npy") == labels).all() and pathlib.Path(folder, "t.csv").read_bytes() == table


@test
def items_share_what_is_equal_in_all_of_them(folder):
    """One item that is done must not take away what another is about to read."""
    flat = save(folder, "flat.npy", RNG.random((64, 64), dtype=np.float32) + 1)
    images = [save(folder, f"in/{i:02}.npy", RNG.random((64, 64), dtype=np.float32)) for i in range(24)]
    text = 'flat = gaussian(read("flat.npy"), 3)\nwrite(read("in/*.npy") / flat / max(flat), "out/{stem}.npy")'
    for engine in "threads", "processes":
        run("run", "-q", "--workers", "3", "--engine", engine, "--fresh", "--chunk", "16x64", "-e", text, folder=folder, timeout=120)
        results = [load(folder, f"out/{i:02}.npy") for i in range(24)]
        quotients = [image / result for image, result in zip(images, results)]
        assert all(np.allclose(q, quotients[0], rtol=1e-5) for q in quotients), engine
    assert flat.shape == quotients[0].shape


@test
def an_output_has_its_name_before_the_rest_of_the_run_is_done(folder):
    text = 'a = phantom("noise", [32, 64, 64])\nwrite(a, "first.npy")\nwrite(median(a, 3) > mean(median(a, 3)), "second.npy")'
    run("run", "-q", "--workers", "1", "--chunk", "4x64x64", "-e", text, folder=folder, code=None, environment={"FOVEA_FAULT": "end:3"})
    assert pathlib.Path(folder, "first.npy").exists() and not pathlib.Path(folder, "second.npy").exists()


@test
def a_collection_leaves_nothing_but_results_and_a_second_run_has_nothing_to_do(folder):
    for i in range(12):
        save(folder, f"in/{i:02}.npy", RNG.integers(0, 255, (200, 200), np.uint8))
    text = 'a = read("in/*.npy")\nwrite(gaussian(a, 2), "out/{stem}.tif")\nmean(a)'
    run("run", "-q", "--patience", "0.001", "-e", text, folder=folder)
    packs = sum(f.stat().st_blocks * 512 for f in pathlib.Path(folder, ".fovea/store").glob("*.pack"))
    assert packs < 12 * 200 * 200, packs
    again = summary("-e", text, folder=folder)
    assert again["tasks_run"] == 0 and again["outputs_current"] == 12 and len(again["values"][0]) == 12, again


main()
