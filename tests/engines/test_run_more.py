"""Seams where work could be lost, wrong or stuck: turns and locks, shared results, odd names, sizes and tables."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import FOVEA, PATIENCE, main, run, test, wait_for

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
    run("run", "-q", "--workers", "1", "--patience", "0.001", "-e",
        'read("in/*.npy") + 1 |> write("out/{stem}.npy")', folder=folder)
    assert all((load(folder, f"out/{i:03}.npy") == i + 1).all() for i in range(60))


@test
def stages_that_are_forgotten_while_others_end_stop_nobody(folder):
    """What was committed is dropped with a line in the log: who writes it wants its turn back, and must hold nothing then."""
    for i in range(40):
        save(folder, f"in/{i:03}.npy", RNG.integers(0, 200, (24, 60, 60), np.uint8))
    text = 'g = gaussian(read("in/*.npy"), 1)\nwrite(gaussian(g > otsu(g), 1), "out/{stem}.nii.gz")'
    for workers in "1", "2", "3":
        run("run", "-q", "--workers", workers, "--patience", "0.001", "--chunk", "12x30x60", "--fresh", "-e", text,
            folder=folder)


@test
def a_scalar_that_comes_from_disk_stops_nobody(folder):
    text = 'a = phantom("noise", [32, 64, 64])\nwrite(a > mean(a), "b.npy")'
    for _ in range(3):
        pathlib.Path(folder, "b.npy").unlink(missing_ok=True)
        run("run", "-q", "--workers", "1", "--chunk", "2x64x64", "--patience", "0.001", "-e", text, folder=folder)


# ---- temporaries

@test
def what_an_earlier_run_left_under_another_key_is_removed(folder):
    for name in "a.png", "a.npy", "a.zarr":
        pathlib.Path(folder, f".{name}.0123456789abcdef.fovea").write_bytes(b"old")
        pathlib.Path(folder, f".{name}.0123456789abcdef-01234567.fovea").write_bytes(b"old")
        pathlib.Path(folder, f".{name}.note.fovea").write_bytes(b"not ours")
        pathlib.Path(folder, f".{name}.b.0123456789abcdef.fovea").write_bytes(b"of another output")
        run("run", "-q", "-e", f'phantom("noise", [40, 40]) |> convert("uint8") |> write("{name}")', folder=folder)
        left = sorted(p.name for p in pathlib.Path(folder).glob(f".{name}.*"))
        assert left == [f".{name}.b.0123456789abcdef.fovea", f".{name}.note.fovea"], left


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
        run("run", "-q", "--workers", "3", "--engine", engine, "--fresh",
            "--chunk", "16x64", "-e", text, folder=folder)
        results = [load(folder, f"out/{i:02}.npy") for i in range(24)]
        quotients = [image / result for image, result in zip(images, results)]
        assert all(np.allclose(q, quotients[0], rtol=1e-5) for q in quotients), engine
    assert flat.shape == quotients[0].shape


@test
def a_fresh_run_leaves_the_store_of_a_run_that_goes_on_alone(folder):
    process = start_slow(folder, "--patience", "0.001")
    store = pathlib.Path(folder, ".fovea/store")
    logs = wait_for("something stored", lambda: {log for log in store.glob("*.log") if log.stat().st_size > 256})
    run("run", "-q", "--fresh", "-e", 'mean(phantom("noise", [10, 10]))', folder=folder)
    assert all(log.exists() for log in logs)
    process.kill()
    process.wait()
    time.sleep(0.2)
    run("run", "-q", "--fresh", "-e", 'mean(phantom("noise", [10, 10]))', folder=folder)
    assert not any(log.exists() for log in logs)


@test
def an_output_has_its_name_before_the_rest_of_the_run_is_done(folder):
    text = 'a = phantom("noise", [32, 64, 64])\nwrite(a, "first.npy")\nwrite(median(a, 3) > mean(median(a, 3)), "second.npy")'
    run("run", "-q", "--workers", "1", "--chunk", "4x64x64", "-e", text,
        folder=folder, code=None, environment={"FOVEA_FAULT": "end:3"})
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


# ---- plans

@test
def an_expression_of_any_length_simply_works(folder):
    a = save(folder, "a.npy", RNG.random((40, 50)).astype(np.float64))
    run("run", "-e", 'read("a.npy")' + " + 1 * 2" * 150 + ' |> write("b.npy")', folder=folder)
    expected = a
    for _ in range(150):
        expected = expected + 2.0
    assert (load(folder, "b.npy") == expected).all()
    steps = "".join(f"b{i} = abs(b{i - 1}) + {i} / 8 - minimum(b{i - 1}, 1)\n" for i in range(1, 100))
    run("run", "-e", f'b0 = read("a.npy")\n{steps}write(b99, "c.npy")', folder=folder)
    expected = a
    for i in range(1, 100):
        expected = np.abs(expected) + i / 8 - np.minimum(expected, 1)
    assert (load(folder, "c.npy") == expected).all()


@test
def a_sum_of_many_images_simply_works(folder):
    images = [save(folder, f"{i}.npy", RNG.random((30, 30))) for i in range(40)]
    run("run", "-e", " + ".join(f'read("{i}.npy")' for i in range(40)) + ' |> write("b.npy")', folder=folder)
    expected = images[0]
    for image in images[1:]:
        expected = expected + image
    assert (load(folder, "b.npy") == expected).all()


@test
def values_used_many_times_are_planned_once(folder):
    steps = "".join(f"b{i} = b{i - 1} * b{i - 1} + b{i - 1}\n" for i in range(1, 40))
    scalars = "".join(f"s{i} = s{i - 1} * s{i - 1} - s{i - 1}\n" for i in range(1, 40))
    text = (f'b0 = phantom("noise", [300, 300, 300]) * 0.0\n{steps}s0 = mean(b0)\n{scalars}'
            'write(gaussian(b39, 2) * s39, "b.npy")\nabs(s39)')
    run("plan", "-e", text, folder=folder, processor=20)


@test
def a_volume_beyond_all_disks_is_planned_at_once(folder):
    for end in 'gaussian(2) |> write("a.zarr")', 'gaussian(2) |> write("a.npy")', "mean()":
        run("plan", "-e", f'phantom("noise", [1000000, 1000000, 1000000]) |> {end}', folder=folder, processor=20)
    refused = run(
    "plan",
    "-e",
    'phantom("noise", [100000000, 1000000, 1000000]) |> gaussian(2) |> write("a.npy")',
    folder=folder,
     code=2)
    assert "more bytes" in refused.stderr or "too" in refused.stderr, refused.stderr
    run("run", "-e", 'phantom("noise", [1000000, 1000000, 1000000]) |> write("a.npy")', folder=folder, code=1, processor=60)


# ---- tables

@test
def whole_and_real_numbers_of_items_share_a_column(folder):
    save(folder, "in/a.npy", np.array([[1, 7]], np.uint8))
    save(folder, "in/b.npy", np.array([[0.25, 2.5]], np.float32))
    run("run", "-q", "-e", 'write(max(read("in/*.npy")), "m.csv")', folder=folder)
    lines = pathlib.Path(folder, "m.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in lines[1:]] == ["7", "2.5"], lines


@test
def an_item_with_other_columns_is_named_and_the_rest_is_written(folder):
    for name, shape in ("a", (8, 8)), ("b", (4, 8, 8)), ("c", (8, 8)):
        save(folder, f"in/{name}.npy", np.ones(shape, np.uint8))
    done = run("run", "-e", 'a = read("in/*.npy")\nwrite(measure(label(a > 0), a), "m.csv")', folder=folder, code=1)
    lines = pathlib.Path(folder, "m.csv").read_text().splitlines()
    assert len(lines) == 3 and "in/b.npy" in done.stderr and "other columns" in done.stderr, (lines, done.stderr)


@test
def tables_without_rows_and_images_of_one_voxel_work(folder):
    save(folder, "a.npy", np.zeros((5, 5), np.uint8))
    save(folder, "one.npy", np.full((1, 1, 1), 3, np.uint8))
    text = 'a = read("a.npy")\nb = read("one.npy")\nwrite(measure(label(a > 0), a), "m.csv")\n' \
           'write(gaussian(b, 2), "g.tif")\nwrite(measure(label(b > 0), b), "n.csv")\nwrite(label(b > 0), "l.zarr")\nmean(b)'
    for engine in "threads", "processes":
        done = run("run", "-q", "--fresh", "--engine", engine, "-e", text, folder=folder)
        assert done.stdout.strip() == "3"
        assert len(pathlib.Path(folder, "m.csv").read_text().splitlines()) == 1
        assert len(pathlib.Path(folder, "n.csv").read_text().splitlines()) == 2


@test
def two_statements_may_append_to_one_table(folder):
    save(folder, "a.npy", np.full((4, 4), 3, np.uint8))
    text = 'a = read("a.npy")\nwrite(mean(a), "t.csv", append = true)\nwrite(mean(a + 1), "t.csv", append = true)'
    for _ in range(2):
        run("run", "-q", "-e", text, folder=folder)
        assert pathlib.Path(folder, "t.csv").read_text().splitlines() == ["mean", "3", "4"]


# ---- names

@test
def names_with_blanks_and_quotes_reach_worker_processes(folder):
    a = save(folder, "a.npy", RNG.random((20, 20), dtype=np.float32))
    names = [" begins.npy", 'it is "quoted".npy', " dir with blanks/ä %s %n.npy", "ends .zarr"]
    writes = [f'write(a + {i}, {json.dumps(name, ensure_ascii=False)})' for i, name in enumerate(names)]
    run("run", "--engine", "processes", "--workers", "2", "-e", "\n".join(['a = read("a.npy")'] + writes), folder=folder)
    for i, name in enumerate(names[:3]):
        assert np.allclose(load(folder, name), a + np.float32(i)), name
    assert pathlib.Path(folder, names[3], "zarr.json").exists()


@test
def one_file_has_many_names_and_is_known_under_all_of_them(folder):
    save(folder, "a.npy", np.zeros((4, 4), np.uint8))
    whole = os.path.join(folder, "b.npy")
    for name in "b.npy", "./b.npy", whole:
        run("run", "-q", "-e", f'read("a.npy") + {len(name)} |> write("{name}")', folder=folder)
    for other in "./b.npy", whole:
        done = run("run", "-e", f'a = read("a.npy")\nwrite(a, "b.npy")\nwrite(a + 1, "{other}")', folder=folder, code=2)
        assert "two results" in done.stderr, done.stderr


@test
def two_tables_of_one_name_are_refused_before_the_run(folder):
    save(folder, "a.npy", np.zeros((4, 4), np.uint8))
    for name, code in ("t.csv", 2), ("t.db", 2):
        text = f'a = read("a.npy")\nwrite(mean(a), "{name}")\nwrite(max(a), "{name}")'
        done = run("run", "-e", text, folder=folder, code=code)
        assert "two results" in done.stderr, done.stderr
    text = 'a = read("a.npy")\nwrite(mean(a), "t.db", table = "one")\nwrite(max(a), "t.db", table = "two")'
    run("run", "-q", "-e", text, folder=folder)


@test
def temporaries_of_another_output_stay(folder):
    save(folder, "a.npy", np.zeros((4, 4), np.uint8))
    other = pathlib.Path(folder, ".b.npy.npy.0123456789abcdef-01234567.fovea")
    stale = pathlib.Path(folder, ".b.npy.0123456789abcdef-01234567.fovea")
    other.touch()
    stale.touch()
    run("run", "-q", "-e", 'read("a.npy") |> write("b.npy")', folder=folder)
    assert other.exists() and not stale.exists()


@test
def a_line_end_in_an_outputs_name_is_refused(folder):
    save(folder, "in/one.npy", np.zeros((4, 4), np.uint8))
    save(folder, "in/t\nwo.npy", np.zeros((4, 4), np.uint8))
    done = run("run", "--engine", "processes", "-e", 'read("in/*.npy") + 1 |> write("out/{stem}.npy")', folder=folder, code=1)
    assert "line ends" in done.stderr and pathlib.Path(folder, "out/one.npy").exists(), done.stderr


# ---- worker processes

def children(parent):
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found


def start_slow(folder, *more):
    text = 'phantom("noise", [4, 2000, 2000]) |> median(15) |> write("m.npy")'
    command = [FOVEA, "run", "-q", "--engine", "processes", "--workers", "2", "--chunk", "1x250x250", *more, "-e", text]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    wait_for("the workers", lambda: len(children(process.pid)) == 2)
    return process


@test
def workers_end_with_their_parent(folder):
    process = start_slow(folder)
    workers = children(process.pid)
    process.kill()
    process.wait()
    wait_for("the workers to end", lambda: not any(pathlib.Path(f"/proc/{worker}").exists() for worker in workers))


@test
def a_request_to_stop_is_heard_with_worker_processes(folder):
    process = start_slow(folder)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(timeout=PATIENCE) == 130, process.returncode
    assert not pathlib.Path(folder, "m.npy").exists()


main()
