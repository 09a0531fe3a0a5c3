"""approx: intervals that cover the truth, the same bits everywhere, nothing computed twice, and clear refusals.

Coverage is asked over some hundred seeds here; `bench/approximate.py` asks it over a thousand.
"""
import contextlib
import json
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test

CHUNK = ("--chunk", "8x16x16")
SHAPE = (64, 128, 128)  # 512 chunks


def save(folder, name, image):
    np.save(pathlib.Path(folder, name), image)


def waves(seed=1):
    """Noise on a slope: chunks differ, and their voxels resemble each other."""
    noise = np.random.default_rng(seed).normal(100, 20, SHAPE)
    return (noise + np.linspace(0, 40, SHAPE[0])[:, None, None]).astype(np.float32)


def values(text, folder, *options, chunk=CHUNK):
    done = json.loads(run("run", "-q", "--json", *chunk, *options, "-e", text, folder=folder).stdout)
    return done, done["values"]


def first(row):
    return next(iter(row.values()))


@test
def intervals_hold_what_numpy_computes(folder):
    image = waves()
    save(folder, "v.npy", image)
    small = np.clip(image, 0, 255).astype(np.uint8)
    save(folder, "u.npy", small)
    asked = {"mean(v)": image.mean(dtype=float), "sum(v)": image.sum(dtype=float), "std(v)": image.std(dtype=float),
             "var(v)": image.var(dtype=float), "count(v > 120)": np.count_nonzero(image > 120),
             "quantile(v, 0.5)": np.quantile(image, 0.5), "quantile(u, 0.9)": np.quantile(small, 0.9)}
    text = 'v = read("v.npy")\nu = read("u.npy")\n' + "\n".join(f"approx({call}, error = 0.05, confidence = 0.9999)"
                                                                 for call in asked)
    _, found = values(text, folder)
    for (call, truth), (row,) in zip(asked.items(), found):
        assert row["seen"] < row["chunks"] == 512, (call, row)
        assert row["low"] <= truth <= row["high"], (call, truth, row)
        assert max(row["high"] - first(row), first(row) - row["low"]) <= 0.05 * first(row) * 1.0001, (call, row)


@test
def a_sample_does_not_wait_for_an_image_that_is_stored_as_a_whole(folder):
    """What halos overlap in and pieces of files that are decoded often are worth storing, but not for some of the chunks."""
    save(folder, "v.npy", waves())
    run("run", "-q", "-e", 'read("v.npy") |> write("v.zarr", chunk = [16, 16, 16])', folder=folder)
    for call in ('objects(v > 150, "count()", reach = 14)', "mean(median(gaussian(v, 3), 3))"):
        done, [[row]] = values(f'v = read("v.zarr")\napprox({call}, error = 0.2)', folder)
        assert row["seen"] <= done["tasks_run"] < row["chunks"], (call, done["tasks_run"], row)


def covered(call, error, truth, seeds, folder):
    text = f'param seed = 0\nv = read("v.npy")\napprox({call}, error = {error}, seed = seed)'
    _, (rows,) = values(text, folder, "--set", f"seed=1..{seeds}")
    sampled = [row for row in rows if row["seen"] < row["chunks"]]
    assert len(rows) == seeds and len(sampled) >= seeds / 2, (call, len(rows), len(sampled))
    return np.mean([row["low"] <= truth <= row["high"] for row in sampled]), np.mean([row["seen"] for row in sampled])


@test
def nineteen_of_twenty_intervals_hold_the_truth(folder):
    numbers = np.random.default_rng(3)
    sizes = np.exp(0.6 * numbers.normal(size=(8, 8, 8)))  # a few chunks are far brighter than all others
    phantoms = {"slope": (waves(), 0.02), "tails": (np.kron(sizes, np.ones((8, 16, 16))).astype(np.float32), 0.2)}
    for name, (image, error) in phantoms.items():
        save(folder, "v.npy", image)
        for call, truth in {"mean(v)": image.mean(dtype=float), "quantile(v, 0.5)": np.quantile(image, 0.5)}.items():
            share, seen = covered(call, error, truth, 150, folder)
            assert share >= 0.88, (name, call, share, seen)  # 0.95 less four standard deviations of 150 draws


def two_classes():
    """A third is bright: of large numbers that differ little, so that few bits of a float would not do."""
    numbers = np.random.default_rng(0)
    return numbers.normal(995, 1, SHAPE) + 5 * (numbers.random(SHAPE) < 0.3)


@test
def thresholds_of_all_types_hold_the_exact_ones(folder):
    image = two_classes()
    for name, kind in (("float32", np.float32), ("float64", float), ("int32", np.int32), ("uint16", np.uint16)):
        scaled = image if name.startswith("float") else image * 20
        save(folder, "v.npy", scaled.astype(kind))
        calls = [f"{method}(v)" for method in ("otsu", "li", "yen", "triangle", "isodata", "multi_otsu")]
        text = 'v = read("v.npy")\n' + "\n".join(calls + [f"approx({call}, error = 0.01, confidence = 0.999)" for call in calls])
        _, found = values(text, folder)
        for call, [exact], [row] in zip(calls, found, found[6:]):
            assert row["seen"] < row["chunks"] == 512, (name, call, row)
            assert row["low"] <= first(exact) <= row["high"] and row["method"] == "bootstrap", (name, call, exact, row)


@test
def no_row_of_a_chunk_counts_more_than_others(folder):
    """Of large chunks of floats a part is looked at. The first row of each chunk is bright here: 2.0 becomes 2.3 for who always
    takes it."""
    numbers = np.random.default_rng(6)
    bright = numbers.random((32, 256, 1024)) < 0.1
    bright[:, ::128] = True
    save(folder, "v.npy", np.where(bright, numbers.normal(6, 1, bright.shape), numbers.exponential(1, bright.shape))
         .astype(np.float32))
    text = 'param seed = 0\nv = read("v.npy")\napprox(li(v), error = 0.05, seed = seed)'
    _, (rows,) = values(text, folder, "--set", "seed=1..40", chunk=("--chunk", "1x128x1024"))
    _, [[exact]] = values('li(read("v.npy"))', folder, chunk=("--chunk", "1x128x1024"))
    assert all(row["seen"] < row["chunks"] == 64 for row in rows), rows[0]
    found = np.array([next(value for name, value in row.items() if name.startswith("approx")) for row in rows]) / first(exact)
    assert abs(found.mean() - 1) < 0.02, (found.mean(), exact)
    held = np.mean([row["low"] <= first(exact) <= row["high"] for row in rows])
    assert held >= 0.81, held  # 0.95 less four standard deviations of 40 draws


@test
def histograms_of_floats_have_the_bins_that_are_asked_for(folder):
    image = two_classes().astype(np.float32)
    save(folder, "v.npy", image)
    text = 'v = read("v.npy")\napprox(histogram(v, bins = 5, range = [992, 1002]), error = 0.1, confidence = 0.9999)\n' \
           'histogram(v, bins = 5, range = [992, 1002])'
    some, (rows, exact) = values(text, folder)
    truth = np.histogram(image, 5, (992, 1002))[0]
    assert [row["count"] for row in exact] == list(truth), exact
    assert all(row["seen"] < row["chunks"] == 512 for row in rows), rows
    assert all(row["count_low"] <= count <= row["count_high"] for row, count in zip(rows, truth)), (rows, truth)


@test
def a_value_and_its_estimate_in_one_text(folder):
    """Both look at the same partial results, and neither takes them from the other."""
    save(folder, "v.npy", two_classes().astype(np.float32))
    for call in ("mean", "otsu", "std") * 3:
        _, ([row], [exact]) = values(f'v = read("v.npy")\napprox({call}(v), error = 0.01, confidence = 0.9999)\n{call}(v)',
                                     folder, "--fresh")
        assert row["low"] <= first(exact) <= row["high"], (call, row, exact)


@test
def rare_things_are_not_missed(folder):
    """A sample that met none or few of them does not say that it knows."""
    image = np.zeros(SHAPE, np.uint8)
    for place in np.random.default_rng(5).integers(0, 120, (6, 3)) % (60, 120, 120):
        image[tuple(slice(p, p + 4) for p in place)] = 200
    save(folder, "v.npy", image)
    _, found = values('v = read("v.npy")\napprox(count(v > 100), error = 0.2)\napprox(mean(v), error = 0.2)', folder)
    for (row,), truth in zip(found, (np.count_nonzero(image), image.mean())):
        assert row["low"] <= truth <= row["high"], (row, truth)
        assert row["low"] > 0 or row["seen"] == row["chunks"], row


@test
def chunks_of_one_value_do_not_end_a_threshold(folder):
    for dtype, background in (np.float32, 0), (np.uint16, 1000), (np.int32, 1000):
        image = np.full(SHAPE, background, dtype)
        image[3:5, 7:9, 100:103] = 30000
        save(folder, "v.npy", image)
        _, ((row,),) = values('approx(otsu(read("v.npy")), error = 0.01)', folder, "--fresh")
        _, ((exact,),) = values('row(otsu(read("v.npy")), names = "t")', folder, "--fresh")
        assert row["low"] <= exact["t"] <= row["high"], (row, exact)
        assert row["seen"] == row["chunks"] or row["low"] < row["high"], row


@test
def equal_bits_on_every_engine_and_number_of_workers(folder):
    save(folder, "v.npy", waves())
    text = 'v = read("v.npy")\napprox(mean(v), error = 0.02, seed = 4)\napprox(quantile(v, 0.3), error = 0.03)\n' \
           'approx(std(gaussian(v, 1)), error = 0.2)'
    found = [values(text, folder, "--fresh", *options)[1]
             for options in (["--workers", "1"], ["--workers", "5"], ["--engine", "processes", "--workers", "2"])]
    assert all(row["seen"] < row["chunks"] for (row,) in found[0]), found[0]
    assert found[0] == found[1] == found[2], found


@test
def going_on_to_the_exact_value_computes_nothing_twice(folder):
    """Tasks that no look needed, since a worker would have waited, are not lost either."""
    save(folder, "v.npy", waves())
    read = 'v = read("v.npy")\n'
    exact, [[whole]] = values(read + "mean(v)", folder, "--store", "other")
    some, [[guess]] = values(read + "approx(mean(v), error = 0.02)", folder)
    assert guess["seen"] <= some["tasks_run"] < 512 == exact["tasks_run"], (some["tasks_run"], guess)
    more, [[better]] = values(read + "approx(mean(v), error = 0.01)", folder)
    assert guess["seen"] < better["seen"] <= some["tasks_run"] + more["tasks_run"] < 512, (some, more, better, guess)
    again, [[same]] = values(read + "approx(mean(v), error = 0.01)", folder)
    assert again["tasks_run"] == 0 and same == better, again
    rest, [[all_seen]] = values(read + "approx(mean(v), error = 0.0000001)", folder)
    assert rest["tasks_run"] == 512 - some["tasks_run"] - more["tasks_run"], (rest["tasks_run"], some, more)
    assert first(all_seen) == first(whole) == all_seen["low"] == all_seen["high"] and all_seen["method"] == "exact", all_seen
    last, [[end]] = values(read + "mean(v)", folder)
    assert last["tasks_run"] == 0 and first(end) == first(whole), last


@test
def one_worker_runs_no_task_that_the_sample_does_not_need(folder):
    save(folder, "v.npy", waves())
    for error in (0.02, 0.01):
        some, [[row]] = values(f'approx(mean(read("v.npy")), error = {error})', folder, "--workers", "1", "--fresh")
        assert some["tasks_run"] == row["seen"] < 512, (some["tasks_run"], row)


@test
def a_damaged_chunk_that_the_sample_does_not_need_does_not_matter(folder):
    """Workers that would wait take chunks that may come next; what becomes of these changes nothing."""
    save(folder, "v.npy", waves())
    run("run", "-q", "-e", 'read("v.npy") |> write("v.zarr", chunk = [8, 16, 16])', folder=folder)
    files = [path for path in pathlib.Path(folder, "v.zarr").rglob("*") if path.is_file() and path.suffix != ".json"]
    assert len(files) == 512, len(files)
    text = 'v = read("v.zarr")\napprox(mean(v), error = 0.02)\napprox(quantile(v, 0.5), error = 0.02)'
    _, found = values(text, folder, "--workers", "1")
    record, = (path for path in pathlib.Path(folder, ".fovea", "runs").glob("*/record.db") if "approx" in
               path.with_name("manifest.json").read_text())
    with contextlib.closing(sqlite3.connect(record)) as book:
        needed = {task for task, in book.execute("SELECT DISTINCT task FROM task WHERE status = 'ok'")}
    assert 16 <= len(needed) < 200, needed
    for path in files:
        z, y, x = (int(part) for part in path.parts[-3:])
        if (z * 8 + y) * 8 + x not in needed:
            path.write_bytes(b"damaged")
    for workers in ("1", "2", "5"):
        assert values(text, folder, "--workers", workers, "--fresh")[1] == found, workers
    done = run("run", *CHUNK, "-e", 'mean(read("v.zarr"))', folder=folder, code=1)
    assert "v.zarr" in done.stderr, done.stderr


@test
def a_time_is_kept_and_a_second_run_repeats_it(folder):
    text = 'approx(mean(gaussian(phantom("noise", [2048, 2048, 2048]), 2)), time = 0.4)'
    started = time.monotonic()
    some, [[row]] = values(text, folder, chunk=("--chunk", "64x128x128"))
    took = time.monotonic() - started
    assert 0 < some["tasks_run"] < row["chunks"] and row["seen"] == some["tasks_run"], (some["tasks_run"], row)
    assert took < 60, took  # all chunks take far longer than any delay of a busy machine
    again, [[same]] = values(text, folder, chunk=("--chunk", "64x128x128"))
    assert same == row and again["tasks_run"] == 0, (row, same)


TIMED = """v = gaussian(phantom("noise", [128, 512, 512]), 2)
approx(otsu(v), time = 0.2)
write(v > approx(otsu(v), time = 0.2), "mask.npy")"""


@test
def a_sample_of_a_time_is_repeated_without_the_store_and_after_kills(folder):
    """How far it came stands beside the manifest, so that no file is made of two thresholds."""
    chunk = ("--chunk", "32x64x64")
    killed = run("run", "-q", *chunk, "-e", TIMED, folder=folder, code=None, environment={"FOVEA_FAULT": "task:200"})
    assert killed.returncode not in (0, 1, 2), killed
    some, [[row]] = values(TIMED, folder, chunk=chunk)
    mask = np.load(pathlib.Path(folder, "mask.npy"))
    limit = first(row)
    whole = run("run", "-q", *chunk, "-e", f'write(gaussian(phantom("noise", [128, 512, 512]), 2) > {limit!r}, "same.npy")',
                folder=folder)
    assert np.array_equal(mask, np.load(pathlib.Path(folder, "same.npy"))), (row, whole)
    sizes = [path.read_text() for path in pathlib.Path(folder, ".fovea", "runs").glob("*/samples/*")]
    assert sizes == [f"{row['seen']} chunks of 256, otsu\n"], (sizes, row)
    again, [[same]] = values(TIMED, folder, chunk=chunk)
    assert again["tasks_run"] == 0 and same == row, (same, row)
    for engine in ("threads", "processes"):
        shutil.rmtree(pathlib.Path(folder, ".fovea", "store"))
        repeated, [[same]] = values(TIMED, folder, "--engine", engine, chunk=chunk)
        assert same == row and repeated["tasks_run"] >= row["seen"], (engine, same, row)
        assert np.array_equal(mask, np.load(pathlib.Path(folder, "mask.npy"))), engine


@test
def ctrl_c_tells_what_is_known(folder):
    command = [FOVEA, "run", "--patience", "0.05", "--chunk", "32x64x64", "-e",
               'approx(mean(gaussian(phantom("noise", [1024, 2048, 2048]), 3)), error = 0.0000001)']
    store = pathlib.Path(folder, ".fovea", "store")
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        begun = time.monotonic()
        while time.monotonic() - begun < 120 and not any(f.stat().st_size for f in store.rglob("*") if f.is_file()):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        text = process.communicate()[1]
    assert process.returncode == 130, (process.returncode, text)
    assert "mean so far: " in text and " of 32768 chunks" in text and "goes on from here" in text, text


LONG = 'v = gaussian(phantom("noise", [96, 1024, 1024]), 6)\nmean(v)\nstd(v) * 2'


def stopped(folder, *options, text=LONG):
    """A run that is stopped when it has told estimates: these, and what it said at the end."""
    command = [FOVEA, "run", "--json", "--workers", "1", "--patience", "0.05", "--chunk", "32x32x32", *options, "-e", text]
    told, rest = [], []
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            event = json.loads(line) if line.startswith("{") else None
            rest += [] if event else [line]
            if event and event["estimates"] and not told:
                process.send_signal(signal.SIGINT)
            told += event["estimates"] if event else []
        process.communicate()
    if process.returncode == 0:
        raise Skip("this machine is through before anything is told")
    assert process.returncode == 130, (process.returncode, rest)
    return told, "".join(rest)


def tasks_of_runs(folder):
    """How many tasks all runs of the folder's one text ran, and how many different ones."""
    record, = pathlib.Path(folder, ".fovea", "runs").glob("*/record.db")
    with contextlib.closing(sqlite3.connect(record)) as book:
        return book.execute("SELECT count(*), count(DISTINCT key) FROM task WHERE status = 'ok'").fetchone()


@test
def an_exact_run_tells_estimates_and_goes_on_after_ctrl_c(folder):
    """Each task is run once, whichever order the tasks came in, and the bits are those of a run in one go."""
    whole = json.loads(run("run", "-q", "--json", "--chunk", "32x32x32", "-e", LONG, folder=folder).stdout)
    for engine in ("threads", "processes"):
        place = pathlib.Path(folder, engine)
        place.mkdir()
        told, text = stopped(place, "--engine", engine)
        assert {"mean(v)", "std"} == {one["name"] for one in told}, told
        assert all(one["low"] < one["value"] < one["high"] and 8 <= one["seen"] < one["chunks"] == 3072 for one in told), told
        assert "mean(v) so far: " in text and "std so far: " in text and "goes on from here" in text, text
        rest = json.loads(run("run", "-q", "--json", "--chunk", "32x32x32", "-e", LONG, folder=place).stdout)
        assert 0 < rest["tasks_run"] < 3072 and tasks_of_runs(place) == (3072, 3072), (rest["tasks_run"], tasks_of_runs(place))
        assert rest["values"] == whole["values"], (rest["values"], whole["values"])
        mean = first(whole["values"][0][0])
        assert any(one["low"] <= mean <= one["high"] for one in told if one["name"] == "mean(v)"), (mean, told)


@test
def estimates_are_parameters_and_go_into_tables(folder):
    image = np.where(np.random.default_rng(2).random(SHAPE) < 0.3, 200, 50).astype(np.uint8)
    save(folder, "v.npy", image)
    run("run", "-q", *CHUNK, "-e", 'v = read("v.npy")\nwrite(v > approx(otsu(v), error = 0.1), "mask.npy")\n'
        'write(approx(mean(v), error = 0.05), "mean.csv")', folder=folder)
    assert np.array_equal(np.load(pathlib.Path(folder, "mask.npy")), image > 100)
    head, row = pathlib.Path(folder, "mean.csv").read_text().strip().split("\n")
    assert head.endswith("low,high,confidence,seen,chunks,method"), head
    assert abs(float(row.split(",")[0]) - image.mean()) < 0.1 * image.mean(), row


@test
def a_collection_has_a_row_for_each_item_and_one_value_together(folder):
    for k in range(3):
        save(folder, f"item{k}.npy", waves(k) + 10 * k)
    _, (rows, (together,)) = values('c = read("item*.npy")\napprox(mean(c), error = 0.02)\n'
                                    'approx(mean(together(c)), error = 0.02)', folder)
    assert [row["item"] for row in rows] == ["item0", "item1", "item2"], rows
    assert all(abs(row["approx(mean(c), error = 0.02)"] - 120 - 10 * k) < 5 for k, row in enumerate(rows)), rows
    assert abs(first(together) - 130) < 6 and together["seen"] < together["chunks"], together


@test
def a_whole_run_within_a_time_or_an_error(folder):
    save(folder, "v.npy", waves())
    text = 'v = read("v.npy")\nmean(v)\nmax(v[0])\nwrite(v * 2, "double.npy")'
    _, found = values(text, folder, "--within-error", "5%")
    assert found[0][0]["seen"] < 512 and len(found[1][0]) == 1, found
    assert not pathlib.Path(folder, "double.npy").exists()
    printed = run("run", "-q", *CHUNK, "-e", text, "--within-error", "5%", folder=folder).stdout
    assert " ± " in printed and " (95 %, " in printed and " of 512 chunks, " in printed, printed
    _, found = values(text, folder, "--within", "20s")
    assert found[0][0]["low"] <= 121 <= found[0][0]["high"] + 2, found
    for bad in (("--within", "0s"), ("--within", "soon"), ("--within-error", "-1%"), ("--within", "1s", "--within-error", "1%")):
        assert "--within" in run("run", *bad, "-e", "1", folder=folder, code=2).stderr


@test
def what_cannot_be_estimated_is_refused_with_a_reason(folder):
    save(folder, "v.npy", waves())
    cases = [("max(v)", "error = 0.1", "max cannot be estimated", "quantile"),
             ("min(v)", "error = 0.1", "min cannot", "quantile"),
             ("max(label(v > 120))", "error = 0.1", "max cannot", 'objects(mask, "count()'),
             ("histogram(v)", "time = 1", "whole image", "range"),
             ('histogram(convert(v, "uint8"))', "time = 1", "whole image", "range"),
             ("label(v > 120)", "error = 0.1", "an image", "objects"),
             ("measure(label(v > 120))", "error = 0.1", "summary", "group"),
             ('objects(v > 120, "max(volume)")', "error = 0.1", "may hold a larger", "quantile"),
             ('objects(v > 120, "count()", intensity = v[:, :9])', "error = 0.1", "image has the axes", "9 in intensity"),
             ('group(measure(label(v > 120)), "label", "count()")', "error = 0.1", "summary", "group"),
             ('group(filter(filter(measure(label(v > 120)), "volume > 3"), "volume < 9"), "", "count()")', "error = 0.1",
              "summary", "group"),
             ("mean(v) * 2", "time = 1", "other numbers", "approx(mean"),
             ("otsu(v > 3)", "time = 1", "mask", "two values"), ("mean(v)", "error = 0", "error", "above 0"),
             ("mean(v)", "time = -2", "time", "above 0"), ("mean(v)", "absolute = -2", "absolute", "above 0"),
             ("mean(v)", "error = 0.1, confidence = 1", "confidence", "below 1"), ("3", "error = 0.1", "known already", ""),
             ("mean(v)", "error = 1%", "after '%'", "1 % is written 0.01"),
             ("mean(v)", "error = 1", "1 times the value", "1 % is written 0.01"),
             ("approx(mean(v), error = 0.1)", "error = 0.01", "estimate already", "a smaller error"),
             ('read("t.csv")', "error = 0.1", "summary", "fovea sql --within-error"),
             ('group(read("t.csv"), "a", "mean(b)")', "error = 0.1", "cannot be estimated", "fovea sql --within-error"),
             ("mean(v)", 'error = "1%"', "expected a number", "as 0.01"), ("mean(v)", 'time = "5 s"', "a number", "as 5"),
             ("mean(v)", 'time = "2min"', "expected a number in s", ""),
             ("mean(v)", "within = 5", "no argument within", "time = 5"),
             ("mean(v)", "error = 0.1, time = 1", "one of error", "time"), ("mean(v)", "seed = 3", "one of error", "time")]
    pathlib.Path(folder, "t.csv").write_text("a,b\n1,2\n")
    for value, how, *words in cases:
        text = run("run", "-e", f'v = read("v.npy")\napprox({value}, {how})', folder=folder, code=2).stderr
        assert all(word in text for word in words), (value, how, text)


@test
def a_sum_that_its_type_does_not_hold_is_refused_as_the_exact_one_is(folder):
    image = np.random.default_rng(1).integers(2**62, 2**63, SHAPE).astype(np.uint64)
    save(folder, "v.npy", image)
    for call in ("sum(v)", "approx(sum(v), error = 0.01)"):
        text = run("run", *CHUNK, "-e", f'v = read("v.npy")\n{call}', folder=folder, code=1).stderr
        assert "more than uint64 holds" in text and 'convert(image, "float64")' in text, (call, text)
    _, [[row]] = values('approx(sum(convert(read("v.npy"), "float64")), error = 0.01)', folder)
    assert row["low"] <= image.sum(dtype=float) <= row["high"] and row["seen"] < 512, row


@test
def files_that_are_read_in_order_are_told_and_sampled_as_items(folder):
    image = waves()
    text = 'write(read("v.npy") + {0}, "part{0:02d}.nii.gz")'
    save(folder, "v.npy", image[:16])
    run("run", "-q", "-e", "\n".join(text.format(k) for k in range(40)), folder=folder)
    done = run("run", "--chunk", "4x16x16", "-e", 'approx(mean(read("part03.nii.gz")), error = 0.01)', folder=folder)
    assert "part03.nii.gz can only be read in order" in done.stderr and "together" in done.stderr, done.stderr
    some, [[row]] = values('approx(mean(together(read("part*.nii.gz"))), error = 0.1)', folder, chunk=("--chunk", "1x16x128x128"))
    assert row["seen"] <= some["tasks_run"] < row["chunks"] == 40, row
    assert some["bytes_read"] == some["tasks_run"] * image[:16].nbytes, some["bytes_read"]
    assert row["low"] <= image[:16].mean() + 19.5 <= row["high"], row


def masks(folder, count=80):
    """A folder with small objects and one with large ones, of which there are fewer; images of two sizes."""
    from scipy import ndimage
    numbers = np.random.default_rng(7)
    for k in range(count):
        small = k < count // 2
        noise = ndimage.gaussian_filter(numbers.normal(size=(64, 96) if small else (96, 128)), 1.5 if small else 2.5)
        place = pathlib.Path(folder, "small" if small else "large")
        place.mkdir(exist_ok=True)
        save(place, f"item{k:03d}.npy", (noise > np.quantile(noise, 0.9 - 0.1 * numbers.random())).astype(np.uint8))


CELLS = 'measure(label(read("*/item*.npy")))'


@test
def items_are_sampled_and_nothing_is_computed_twice(folder):
    masks(folder)
    group = f'group({CELLS}, "", "count(), mean(volume), median(volume)")'
    some, [[row]] = values(f"approx({group}, error = 0.3)", folder, chunk=())
    assert 16 <= row["seen"] < row["items"] == 80, row
    names = {name for name in row if not name.endswith(("_low", "_high"))}
    assert names == {"count", "mean_volume", "median_volume", "confidence", "seen", "items", "method"}, row
    more, [[better]] = values(f"approx({group}, error = 0.12)", folder, chunk=())
    rest, [[all_seen]] = values(f"approx({group}, error = 0.0000001)", folder, chunk=())
    assert row["seen"] < better["seen"] < 80 == all_seen["seen"] and all_seen["method"] == "exact", (better, all_seen)
    whole, [[exact]] = values(group, folder, chunk=())
    alone, [[same]] = values(group, folder, "--store", "other", chunk=())
    assert same == exact and some["bytes_read"] < 0.9 * alone["bytes_read"], (some["bytes_read"], alone["bytes_read"])
    assert all(exact[name] == all_seen[name] == all_seen[name + "_low"] for name in exact), (exact, all_seen)
    tasks = [done["tasks_run"] for done in (some, more, rest, whole)]
    assert tasks[3] <= 2 and sum(tasks[:3]) <= 2 * 80 + 3 * 2, tasks  # label and measure once for each item, and the group
    found = [values(f"approx({group}, error = 0.3)", folder, "--fresh", *options, chunk=())[1]
             for options in (["--workers", "1"], ["--engine", "processes", "--workers", "2"])]
    assert found[0] == found[1] == [[row]], found


@test
def items_of_one_folder_are_strata_where_their_names_are_in_order(folder):
    masks(folder)
    for file in pathlib.Path(folder, "large").iterdir():
        file.rename(pathlib.Path(folder, "small", file.name))
    group = f'group({CELLS}, "", "mean(volume)")'
    text = f"param seed = 0\napprox({group}, absolute = 1e9, seed = seed)\n{group}"
    _, (rows, [exact, *_]) = values(text, folder, "--set", "seed=1..20", chunk=())
    assert sum(row["method"] == "stratified" for row in rows) > 10, rows
    held = sum(row["mean_volume_low"] <= exact["mean_volume"] <= row["mean_volume_high"] for row in rows)
    assert held >= 16, (held, exact)


@test
def sampled_items_give_intervals_that_hold_and_have_no_bias(folder):
    """Items of two folders, as strata; also of groups, one of which few items have."""
    masks(folder)
    values_of = '"count(), mean(volume), quantile(volume, 0.9)"'
    table = f'with({CELLS}, "large = volume > 60")'
    text = f'param seed = 0\napprox(group({table}, "", {values_of}), absolute = 1e9, seed = seed)\n' \
           f'approx(group({table}, "large", "count(), mean(volume)"), absolute = 1e9, seed = seed)'
    _, (rows, groups) = values(text, folder, "--set", "seed=1..150", chunk=())
    _, ([exact], by_group) = values(f'group({table}, "", {values_of})\ngroup({table}, "large", "count(), mean(volume)")', folder)
    assert len(rows) == 150 and sum(row["method"] == "stratified" for row in rows) > 75, rows[:3]
    cases = [(rows, exact)] + [([row for row in groups if row["large"] == group["large"]], group) for group in by_group]
    for some, truth in cases:
        sampled = [row for row in some if row["seen"] < row["items"]]
        assert len(sampled) > 30, (truth, len(sampled))
        for name in (name for name in truth if name != "large"):
            held = np.mean([row[name + "_low"] <= truth[name] <= row[name + "_high"] for row in sampled])
            least = 0.95 - 4 * (0.95 * 0.05 / len(sampled)) ** 0.5  # four standard deviations of so many draws
            assert held >= least, (name, held)
            found = np.array([row[name] for row in some]) / truth[name]
            bias, deviation = found.mean() - 1, found.std() / len(found) ** 0.5
            assert abs(bias) < 4 * deviation + (0.01 if name != "count" else 0), (name, bias, deviation)  # ratios: 1 / items


@test
def items_and_chunks_of_them_are_sampled(folder):
    """Of each item that is taken only some chunks are looked at. Both kinds of chance are in the interval."""
    from scipy import ndimage
    numbers = np.random.default_rng(11)
    counts = []
    for k in range(60):
        noise = ndimage.gaussian_filter(numbers.normal(size=(192, 192)), 1)
        mask = noise > np.quantile(noise, 0.9 + 0.06 * numbers.random())
        counts.append(ndimage.label(mask)[1])
        save(folder, f"item{k:02d}.npy", mask.astype(np.uint8))
    text = 'param seed = 0\nt = approx(objects(read("item*.npy"), "count()", reach = 64), error = 0.5, seed = seed)\n' \
           'g = group(t, "", "sum(count)")\napprox(g, absolute = 1e9, seed = seed)\napprox(g, absolute = 1, seed = seed)'
    _, (some, rows) = values(text, folder, "--set", "seed=1..80", chunk=("--chunk", "16x16"))
    truth = sum(counts)
    for found, items in (some, 16), (rows, 60):
        assert len(found) == 80 and all(row["seen"] >= items and row["items"] == 60 for row in found), found[0]
        held = np.mean([row["sum_count_low"] <= truth <= row["sum_count_high"] for row in found])
        assert held >= 0.85, (items, held)  # 0.95 less four standard deviations of 80 draws
        ratio = np.array([row["sum_count"] for row in found]) / truth
        assert abs(ratio.mean() - 1) < 4 * ratio.std() / len(ratio) ** 0.5, (items, ratio.mean(), ratio.std())
    assert all(row["sum_count_low"] < row["sum_count_high"] for row in rows), rows[0]


@test
def an_exact_table_of_items_tells_estimates_of_its_groups_meanwhile(folder):
    masks(folder)
    blurred = 'gaussian(median(read("*/item*.npy"), 15) * 1.0, 4)'
    text = f'group(with(measure(label({blurred} > 0.12)), "large = volume > 300"), "large", "count()")'
    told, said = stopped(folder, text=text)
    assert all(one["items"] == 80 and 16 <= one["seen"] < 80 and one["low"] < one["value"] < one["high"] for one in told), told
    assert {one["group"] for one in told} <= {"0", "1"} and {one["column"] for one in told} == {"count"}, told
    assert "count of 1 so far: " in said and " of 80 items" in said and "goes on from here" in said, said
    rest, [rows] = values(text, folder, chunk=("--chunk", "32x32x32"))
    _, [whole] = values(text, folder, "--store", "other", chunk=("--chunk", "32x32x32"))
    assert rest["tasks_run"] > 0 and rows == whole, (rows, whole)
    counts = {str(row["large"]): row["count"] for row in whole}
    assert all(one["low"] <= counts[one["group"]] <= one["high"] for one in told), (told, counts)
    all_tasks, different = tasks_of_runs(folder)
    assert all_tasks == different, (all_tasks, different)


@test
def a_time_ends_a_sample_of_items_and_is_repeated(folder):
    masks(folder)
    text = 'approx(group(measure(label(gaussian(read("*/item*.npy") * 1.0, 30) > 0.11)), "", "count()"), time = 0.3)'
    some, [[row]] = values(text, folder, chunk=())
    shutil.rmtree(pathlib.Path(folder, ".fovea", "store"))
    again, [[same]] = values(text, folder, chunk=())
    assert same == row and 1 <= row["seen"] <= 80, (same, row)
    sizes = [path.read_text() for path in pathlib.Path(folder, ".fovea", "runs").glob("*/samples/*")]
    assert row["seen"] == 80 or sizes == [f"{row['seen']} items of 80, group\n"], (sizes, row)


@test
def what_needs_all_items_is_still_made_of_all(folder):
    masks(folder)
    group = f'group({CELLS}, "", "count(), mean(volume)")'
    _, ([row], [exact]) = values(f"approx({group}, error = 0.1)\n{group}", folder)
    assert row["seen"] < row["items"] and row["count_low"] <= exact["count"] <= row["count_high"] * 1.1, (row, exact)
    _, ([whole],) = values(group, folder, "--fresh")
    assert whole == exact, (whole, exact)
    text = f'approx({group}, error = 0.1)\nc = read("*/item*.npy")\nwrite(c * 2, "out/{{stem}}.npy")'
    _, ([same],) = values(text, folder, "--fresh")
    assert same == row and len(list(pathlib.Path(folder, "out").iterdir())) == 80, same
    _, ([within],) = values(group, folder, "--fresh", "--within-error", "10%")
    assert within == row, (within, row)


@test
def an_item_that_fails_is_named_only_if_the_sample_needs_it(folder):
    masks(folder)
    for place in list(pathlib.Path(folder).glob("*/item*.npy"))[:40]:
        place.write_bytes(b"no image")
    text = f'approx(group({CELLS}, "", "count()"), error = 0.0000001)'
    told = run("run", "-q", "-e", text, folder=folder, code=1).stderr
    assert "items failed" in told and "no image" not in told, told


@test
def groups_of_items_that_cannot_be_estimated_are_refused(folder):
    masks(folder, 4)
    cases = [('"", "max(volume)"', "may hold a larger", "quantile"), ('"item", "count()"', "a group of its own", "objects"),
             ('"", "first(volume)"', "follow from a sample", "group")]
    for asked, *words in cases:
        told = run("run", "-e", f"approx(group({CELLS}, {asked}), error = 0.1)", folder=folder, code=2).stderr
        assert all(word in told for word in words), (asked, told)
    told = run("run", "-e", f'approx(group(sort({CELLS}, "volume"), "", "count()"), error = 0.1)', folder=folder, code=2).stderr
    assert "all items at once" in told and "approx(group(" in told, told


def blobs(size=1.6):
    """A mask with some thousand objects of different sizes, many of which lie across the borders of chunks."""
    from scipy import ndimage
    noise = ndimage.gaussian_filter(np.random.default_rng(2).normal(size=SHAPE), size)
    return (noise > np.quantile(noise, 0.95)).astype(np.uint8)


def sizes_of(mask):
    from scipy import ndimage
    labels, count = ndimage.label(mask)
    longest = max(part.stop - part.start for box in ndimage.find_objects(labels) for part in box)
    return ndimage.sum(mask, labels, range(1, count + 1)), longest


@test
def objects_are_counted_once_and_as_a_whole(folder):
    mask = blobs()
    sizes, longest = sizes_of(mask)
    save(folder, "m.npy", mask)
    summaries = '"count(), mean(volume), std(volume), median(volume), quantile(volume, 0.9), sum(voxels), max(volume)"'
    _, [[whole], [labelled]] = values(f'm = read("m.npy")\nobjects(m, {summaries}, reach = {longest})\n'
                                      f'group(measure(label(m)), "", {summaries})', folder)
    assert whole.pop("longer") == 0 and whole == labelled and whole["count"] == len(sizes), (whole, labelled)
    _, [[small]] = values(f'objects(read("m.npy"), {summaries}, reach = 6)', folder)
    _, [[same]] = values(f'objects(read("m.npy"), {summaries}, reach = 6)', folder, chunk=("--chunk", "64x128x128"))
    assert small == same and 0 < small["longer"] == mask.sum() - small["sum_voxels"], (small, same)


@test
def summaries_of_objects_are_estimated_without_bias(folder):
    """Chunks are as small as the objects: who counts parts, or leaves out what a border cuts, is wrong by far more than 5 %."""
    mask = blobs(1)
    sizes, longest = sizes_of(mask)
    save(folder, "m.npy", mask)
    for call, name, truth in (("count()", "count", len(sizes)), ("mean(volume)", "mean_volume", sizes.mean())):
        # Any width is good enough, so that samples do not end when they happen to look narrow:
        text = f'param seed = 0\napprox(objects(read("m.npy"), "{call}", reach = {longest}), absolute = 1e9, seed = seed)'
        _, (rows,) = values(text, folder, "--set", "seed=1..300", chunk=("--chunk", "8x8x8"))
        assert all(row["seen"] < row["chunks"] == 2048 for row in rows), call
        held = np.mean([row[name + "_low"] <= truth <= row[name + "_high"] for row in rows])
        assert held >= 0.9, (call, held)  # 0.95 less four standard deviations of 300 draws
        found = np.array([row[name] for row in rows]) / truth
        deviation = found.std() / len(rows) ** 0.5
        assert deviation < 0.0125 and abs(found.mean() - 1) < 4 * deviation, (call, found.mean(), deviation)


@test
def a_group_of_measured_labels_is_sampled(folder):
    mask = blobs()
    sizes, longest = sizes_of(mask)
    save(folder, "m.npy", mask)
    assert longest > 32, longest
    text = 'approx(group(measure(label(read("m.npy"))), "", "mean(volume)"), error = 0.2)'
    assert "reach = " in run("run", *CHUNK, "-e", text, folder=folder, code=1).stderr
    save(folder, "m.npy", mask * (np.arange(SHAPE[2]) % 16 < 12))  # no object is longer than 32 voxels along x
    sizes, longest = sizes_of(np.load(pathlib.Path(folder, "m.npy")))
    assert longest <= 32, longest
    table = 'filter(measure(label(read("m.npy"))), "volume > 3")'
    text = f'approx(group({table}, "", "count(), mean(volume)"), error = 0.2)'
    some, [[row]] = values(text, folder)
    more, [[joint]] = values(text.replace("error", "joint = true, error"), folder)
    assert row["seen"] < 512 and row["longer"] == 0, row
    large = sizes[sizes > 3]
    assert row["count_low"] <= len(large) <= row["count_high"], (row, len(large))
    assert joint["seen"] > row["seen"] or joint["count_high"] - joint["count_low"] > row["count_high"] - row["count_low"], joint
    rest, [[all_seen]] = values(text.replace("0.2", "0.0000001"), folder)
    assert rest["tasks_run"] == 512 - some["tasks_run"] - more["tasks_run"], rest["tasks_run"]
    assert all_seen["count"] == all_seen["count_low"] == len(large) and all_seen["method"] == "exact", all_seen
    _, [[exact]] = values(f'group({table}, "", "count(), mean(volume)")', folder)
    assert all_seen["mean_volume"] == exact["mean_volume"], (all_seen, exact)
    found = [values(text, folder, "--fresh", *options)[1]
             for options in (["--workers", "1"], ["--engine", "processes", "--workers", "2"])]
    assert found[0] == found[1] == [[row]], found


@test
def objects_of_a_collection_have_a_row_for_each_item(folder):
    for k, part in enumerate(np.split(blobs(1), 2)):
        save(folder, f"part{k}.npy", part)
    objects = 'objects(read("part*.npy"), "count()", reach = 24)'
    text = f't = approx({objects}, error = 0.2)\nt\nwrite(t, "t.csv")\n{objects}'
    _, (found, exact) = values(text, folder)
    assert [row["item"] for row in found] == ["part0", "part1"] and all(row["seen"] < row["chunks"] for row in found), found
    assert all(abs(row["count"] / whole["count"] - 1) < 0.4 for row, whole in zip(found, exact)), (found, exact)
    head, *rows = pathlib.Path(folder, "t.csv").read_text().splitlines()
    assert head.startswith("item,path,longer,count,count_low,count_high") and len(rows) == 2, (head, rows)
    _, (within,) = values(objects, folder, "--within-error", "20%")
    assert within == found, (within, found)


@test
def a_histogram_with_a_range_is_estimated(folder):
    image = np.clip(waves(), 0, 255).astype(np.uint8)
    save(folder, "u.npy", image)
    text = 'approx(histogram(read("u.npy"), bins = 4, range = [60, 180]), error = 0.1, confidence = 0.9999)'
    _, (rows,) = values(text, folder)
    counts, edges = np.histogram(image, 4, (60, 180))
    assert [(row["low"], row["high"]) for row in rows] == list(zip(edges, edges[1:])), rows
    assert all(row["seen"] < row["chunks"] for row in rows), rows
    assert all(row["count_low"] <= truth <= row["count_high"] for row, truth in zip(rows, counts)), (rows, counts)
    _, (rows,) = values(text.replace("0.1", "0.00000001"), folder)
    assert [row["count"] for row in rows] == list(counts) and rows[0]["method"] == "exact", rows


@test
def a_coarse_level_makes_intervals_narrower_and_keeps_their_promise(folder):
    """Level 1 of the file is made wrong in scale and noisy, so that it tells something of each chunk and not all."""
    noise = np.random.default_rng(8)
    spread = np.kron(noise.normal(size=(8, 8, 8)), np.ones((8, 16, 16)))
    image = 2000 + 20 * noise.normal(size=SHAPE) + 300 * spread + np.linspace(0, 2000, SHAPE[0])[:, None, None]
    image = image.astype(np.uint16)
    save(folder, "v.npy", image)
    run("run", "-q", "-e", 'read("v.npy") |> write("v.zarr", chunk = [8, 16, 16], levels = 2, compression = "none", '
        'version = "0.4")', folder=folder)
    coarse = [file for file in pathlib.Path(folder, "v.zarr", "1").rglob("*") if file.is_file() and file.name[0] != "."]
    assert coarse
    for file in coarse:
        values_there = np.frombuffer(file.read_bytes(), np.uint16)
        file.write_bytes((0.5 * values_there + noise.normal(0, 40) + 30 * noise.normal(size=values_there.size)).astype(np.uint16))
    text = 'param seed = 0\napprox(mean(read("v.zarr")), error = 0.01, seed = seed)'
    _, (rows,) = values(text, folder, "--set", "seed=1..200")
    _, (plain,) = values(text.replace("zarr", "npy"), folder, "--set", "seed=1..20")
    used = [row for row in rows if row["method"] == "control variate"]
    seen, without = (np.median([row["seen"] for row in some]) for some in (rows, plain))
    assert len(used) > 150 and 3 * seen < without, (len(used), seen, without)
    truth = image.mean(dtype=float)
    held = np.mean([row["low"] <= truth <= row["high"] for row in rows])
    assert held >= 0.89, held  # 0.95 less four standard deviations of 200 draws
    found = np.array([next(value for name, value in row.items() if name.startswith("approx")) for row in rows]) / truth
    assert abs(found.mean() - 1) < 4 * found.std() / len(rows) ** 0.5, (found.mean(), found.std())
    shutil.rmtree(pathlib.Path(folder, "v.zarr", "1"))  # one that is not there is no reason to fail
    _, [[row]] = values('approx(mean(read("v.zarr")), error = 0.01, seed = 0)', folder, "--fresh")
    assert row["low"] <= truth <= row["high"] and row["method"] != "control variate", row


@test
def items_of_different_levels_are_strata(folder):
    """Sixteen images of other brightness each: what chunks differ by from others of their image is little."""
    numbers = np.random.default_rng(12)
    images = [(level + numbers.normal(0, 4, (8, 64, 64)) + 10 * np.kron(numbers.normal(size=(1, 4, 4)), np.ones((8, 16, 16))))
              .astype(np.float32) for level in np.exp(numbers.normal(5, 0.6, 16))]
    for k, image in enumerate(images):
        save(folder, f"item{k:02d}.npy", image)
    text = 'param seed = 0\napprox(mean(together(read("item*.npy"))), error = 0.02, seed = seed)'
    _, (rows,) = values(text, folder, "--set", "seed=1..200", chunk=("--chunk", "1x8x16x16"))
    assert all(row["chunks"] == 256 for row in rows), rows[0]
    truth = np.mean([image.mean(dtype=float) for image in images])
    held = np.mean([row["low"] <= truth <= row["high"] for row in rows])
    assert held >= 0.89, held  # 0.95 less four standard deviations of 200 draws
    assert sum(row["method"] == "stratified" for row in rows) > 150, rows[:5]
    spread = np.concatenate([image.reshape(8, 4, 16, 4, 16).mean((0, 2, 4)).ravel() for image in images]).std()
    plain = (2 * spread / (0.02 * truth)) ** 2  # chunks that a simple random sample needs, of a large population
    assert np.median([row["seen"] for row in rows]) < 256 / (1 + 256 / plain) * 0.8, (plain, rows[:3])


@test
def medians_use_a_coarse_level_and_keep_their_promise(folder):
    """Level 1 is noisy and of another scale. What is told of it are ranks, so that this does not matter."""
    noise = np.random.default_rng(9)
    bright = np.kron(noise.uniform(0.2, 0.8, (8, 8, 8)), np.ones((8, 16, 16)))  # part of each chunk that is bright
    image = np.where(noise.random(SHAPE) < bright, 3000, 1000) + noise.normal(0, 300, SHAPE)
    image = image.clip(0).astype(np.uint16)
    save(folder, "v.npy", image)
    run("run", "-q", "-e", 'read("v.npy") |> write("v.zarr", chunk = [8, 16, 16], levels = 2, version = "0.4")', folder=folder)
    text = 'param seed = 0\napprox(quantile(read("v.zarr"), 0.3), error = 0.05, seed = seed)'
    _, (rows,) = values(text, folder, "--set", "seed=1..200")
    _, (plain,) = values(text.replace("zarr", "npy"), folder, "--set", "seed=1..20")
    truth = np.quantile(image, 0.3)
    held = np.mean([row["low"] <= truth <= row["high"] for row in rows])
    assert held >= 0.89, held  # 0.95 less four standard deviations of 200 draws
    used = [row for row in rows if row["method"] == "control variate"]
    seen, without = (np.median([row["seen"] for row in some]) for some in (rows, plain))
    assert len(used) > 100 and seen < without, (len(used), seen, without)


@test
def all_intervals_that_a_run_shows_hold_at_once(folder):
    program = pathlib.Path(FOVEA).parent / "bench" / "bench_running"
    if not program.exists():
        raise Skip("bench/bench_running.c is not built; `ninja tests` does")
    lines = subprocess.run([program, "40"], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert len(lines) == 5, lines
    for line in lines:
        name, *shares = (word.strip() for word in line.strip("|").split("|"))
        assert all(float(share) >= 0.81 for share in shares), line  # 0.95 less four standard deviations of 40 draws


@test
def few_chunks_have_no_interval(folder):
    done = subprocess.run([FOVEA, "run", "-q", "--json", "--chunk", "32x64x64", "-e",
                           'approx(mean(gaussian(phantom("noise", [512, 512, 512]), 3)), time = 0.000001)'], cwd=folder,
                          capture_output=True, text=True, check=True)
    [[row]] = json.loads(done.stdout)["values"]
    assert row["seen"] < 8 and row["low"] is None and row["method"] == "too few", row


main()
