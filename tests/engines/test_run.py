"""What a user relies on when a pipeline runs: seams between language, plan, store, engines and files."""
import gzip
import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test, wait_for
from memory_used import family, memory_of

RNG = np.random.default_rng(3)


def save(folder, name, array):
    np.save(os.path.join(folder, name), array)
    return array


def load(folder, name):
    return np.load(os.path.join(folder, name))


def summary(*arguments, folder, **options):
    return json.loads(run("run", "--json", *arguments, folder=folder, **options).stdout)


def bytes_of(folder, name):
    return pathlib.Path(folder, name).read_bytes()


# ---- graph

@test
def a_late_scalar_is_computed_before_the_stage_that_needs_it(folder):
    a = save(folder, "a.npy", RNG.random((30, 40, 50), dtype=np.float32))
    run("run", "-e", 'a = read("a.npy")\nwrite(a > mean(a) + std(a) / 2, "b.npy")', "--chunk", "7x11x50", folder=folder)
    expected = a > np.float32(a.astype(np.float64).mean() + a.astype(np.float64).std() / 2)
    assert (load(folder, "b.npy") == expected).all()


@test
def one_slice_of_a_filtered_volume_reads_only_the_slabs_it_needs(folder):
    save(folder, "v.npy", RNG.random((200, 64, 64), dtype=np.float32))
    whole = summary("-e", 'read("v.npy") |> gaussian(2) |> write("w.npy")', folder=folder)
    part = summary("-e", 'gaussian(read("v.npy"), 2)[50] |> write("s.npy")', folder=folder)
    plane = 64 * 64 * 4
    assert whole["bytes_read"] >= 200 * plane
    assert part["bytes_read"] == 17 * plane, part["bytes_read"]  # sigma 2 looks 8 planes to each side
    assert (load(folder, "s.npy") == load(folder, "w.npy")[50]).all()


@test
def what_no_sink_needs_is_never_read(folder):
    save(folder, "a.npy", np.ones((8, 8), np.uint8))
    save(folder, "unused.npy", np.ones((512, 512), np.uint8))
    facts = summary("-e", 'u = gaussian(read("unused.npy"), 3)\nsum(read("a.npy"))', folder=folder)
    assert facts["bytes_read"] == 64 and facts["values"][0][0]['sum(read("a.npy"))'] == 64, facts


@test
def equal_nodes_are_computed_once(folder):
    save(folder, "a.npy", RNG.random((64, 64), dtype=np.float32))
    plan = json.loads(run("plan",
    "--json",
    "-e",
    'a = read("a.npy")\nb = read("a.npy")\nwrite(gaussian(a, 2) + gaussian(b, 2), "c.npy")',
     folder=folder).stdout)
    names = [step["operator"] for step in plan["stages"][0]["steps"]]
    assert names.count("gaussian") == 1 and names.count("read") == 1, names


# ---- plan

@test
def the_lattice_does_not_depend_on_memory_or_workers(folder):
    text = 'label(gaussian(phantom("foam", [100, 300, 300]), 3) > 100) |> write("l.zarr")'
    plans = [json.loads(run("plan", "--json", "-e", text, *more, folder=folder).stdout) for more in
             ([], ["--memory", "300M"], ["--workers", "7"])]
    lattices = [[(stage["chunk"], stage["tasks"]) for stage in plan["stages"]] for plan in plans]
    assert lattices[0] == lattices[1] == lattices[2]


@test
def too_little_memory_is_an_error_that_names_the_least(folder):
    text = 'phantom("noise", [64, 512, 512]) |> gaussian(9) |> write("g.npy")'
    least = json.loads(run("plan", "--json", "-e", text, folder=folder).stdout)["least_memory"]
    refused = run("run", "-e", text, "--memory", "50M", folder=folder, code=None)
    if least > 50e6:
        assert refused.returncode != 0 and "at least --memory" in refused.stderr, refused.stderr
    run("run", "-q", "-e", text, "--memory", str(int(least * 1.1)), folder=folder)


# ---- two-pass operators and files

@test
def label_and_its_table_do_not_depend_on_lattice_workers_or_engine(folder):
    save(folder, "m.npy", RNG.random((40, 60, 70)) < 0.35)
    text = 'l = label(read("m.npy"), connectivity = 3)\nwrite(l, "{tag}.npy")\nwrite(measure(l), "{tag}.csv")\n'
    seen = set()
    for tag, more in (("whole", []), ("a", ["--chunk", "9x13x70"]), ("b", ["--chunk", "16", "--workers", "4"]),
                      ("c", ["--chunk", "11x60x17", "--engine", "processes"])):
        pathlib.Path(folder, "p.fov").write_text('param tag = "x"\n' + text)
        run("run", "-q", "p.fov", "--set", f"tag={tag}", *more, folder=folder)
        seen.add((load(folder, f"{tag}.npy").tobytes(), bytes_of(folder, f"{tag}.csv")))
    assert len(seen) == 1


@test
def an_assembled_gzip_file_has_the_same_bytes_on_any_lattice(folder):
    save(folder, "a.npy", (RNG.random((50, 80, 90)) * 1000).astype(np.int16))
    seen = set()
    for index, more in enumerate(([], ["--chunk", "13x80x90"], ["--chunk", "50x7x90",
                                 "--workers", "3"], ["--engine", "processes"])):
        run("run", "-q", "-e", f'read("a.npy") |> gaussian(1) |> write("o{index}.nii.gz")', *more, folder=folder)
        seen.add(bytes_of(folder, f"o{index}.nii.gz"))
    assert len(seen) == 1 and len(gzip.decompress(seen.pop())) == 352 + 50 * 80 * 90 * 4


@test
def partials_larger_than_memory_are_merged_within_the_bound(folder):
    # A checkerboard of single voxels: a million labels, whose records outgrow the store's share of 64 MB by far.
    text = 'a = phantom("noise", [100, 256, 256], seed = 4)\nl = label(a > otsu(a))\nwrite(measure(l, a), "t.csv")\ncount(l)'
    done = run("run", "-e", text, "--memory", "200M", "--chunk", "25x128x256", "--json", folder=folder)
    rows = sum(1 for _ in open(os.path.join(folder, "t.csv"))) - 1
    assert rows > 50_000, rows
    assert json.loads(done.stdout)["peak_memory"] < 200 * 2**20, json.loads(done.stdout)["peak_memory"]


# ---- collections and sweeps

@test
def a_folder_of_mixed_shapes_is_one_collection(folder):
    for name, shape in (("a", (20, 30)), ("b", (7, 9)), ("c", (64, 3)), ("d", (1, 1))):
        save(folder, f"{name}.npy", (RNG.random(shape) * 255).astype(np.uint8))
    os.mkdir(os.path.join(folder, "out"))
    run("run",
    "-q",
    "-e",
    'a = read("*.npy")\nwrite(a + 1, "out/{stem}-{index}.npy")\nwrite(mean(a), "means.csv")',
     folder=folder)
    for index, name in enumerate("abcd"):
        assert (load(folder, f"out/{name}-{index}.npy") == load(folder, f"{name}.npy").astype(np.float32) + 1).all()
    lines = pathlib.Path(folder, "means.csv").read_text().splitlines()
    assert lines[0] == "item,path,mean" and len(lines) == 5 and lines[1].startswith("a,a.npy,"), lines


@test
def a_broken_item_is_named_and_the_others_finish(folder):
    for index in range(6):
        save(folder, f"i{index}.npy", np.full((4, 4), index, np.uint8))
    pathlib.Path(folder, "i3.npy").write_bytes(b"\x93NUMPY\x01\x00broken")
    done = run("run", "-e", 'read("i*.npy") |> write("o-{stem}.npy")', folder=folder, code=1)
    assert "i3.npy" in done.stderr and "1 of 6 items failed" in done.stderr, done.stderr
    assert sorted(p.name for p in pathlib.Path(folder).glob("o-*")) == [f"o-i{i}.npy" for i in (0, 1, 2, 4, 5)]
    stopped = run("run", "-e", 'read("i*.npy") |> write("p-{stem}.npy")',
                  "--stop-on-error", "--workers", "1", folder=folder, code=None)
    assert stopped.returncode in (1, 2)


@test
def two_items_that_would_write_one_file_are_an_error_before_the_run(folder):
    for part in ("x", "y"):
        os.mkdir(os.path.join(folder, part))
        save(folder, f"{part}/a.npy", np.zeros((2, 2), np.uint8))
    done = run("run", "-e", 'read("?/a.npy") |> write("{stem}.npy")', folder=folder, code=2)
    assert "two results would be written to a.npy" in done.stderr
    assert not os.path.exists(os.path.join(folder, "a.npy"))
    done = run("run", "-e", 'read("?/a.npy") |> write("b.npy")', folder=folder, code=2)
    assert "{stem}" in done.stderr


@test
def a_sweep_writes_a_file_for_every_combination_and_a_column_in_tables(folder):
    save(folder, "a.npy", RNG.random((30, 30), dtype=np.float32))
    pathlib.Path(folder, "p.fov").write_text('param sigma = 1\nparam cut = 0.5\na = gaussian(read("a.npy"), sigma)\n'
                                             'write(a, "g-{sigma}-{cut}.npy")\nwrite(count(a > cut), "n.csv")\n')
    run("run", "-q", "p.fov", "--set", "sigma=1,2,3", "--set", "cut=0.4,0.5", folder=folder)
    assert len(list(pathlib.Path(folder).glob("g-*.npy"))) == 6
    lines = pathlib.Path(folder, "n.csv").read_text().splitlines()
    assert lines[0] == "sigma,cut,count" and len(lines) == 7, lines
    assert (load(folder, "g-2-0.4.npy") == load(folder, "g-2-0.5.npy")).all()
    pathlib.Path(folder, "q.fov").write_text('param sigma = 1\nwrite(gaussian(read("a.npy"), sigma), "g.npy")\n')
    done = run("run", "q.fov", "--set", "sigma=1,2", folder=folder, code=2)
    assert "must contain {sigma}" in done.stderr


@test
def a_sweep_of_thousands_gives_each_value_its_row(folder):
    text = 'param n = 1\nimage = phantom("cells", [8, 8], seed = n)\nwrite(sum(image), "sums.csv")\n'
    pathlib.Path(folder, "p.fov").write_text(text)
    run("run", "-q", "p.fov", "--set", "n=1..6000", folder=folder)
    rows = [line.split(",") for line in pathlib.Path(folder, "sums.csv").read_text().splitlines()[1:]]
    assert [int(n) for n, _ in rows] == list(range(1, 6001))
    for n in (1, 3000, 6000):
        alone = run("run", "-q", "-e", f'sum(phantom("cells", [8, 8], seed = {n}))', folder=folder)
        assert float(rows[n - 1][1]) == float(alone.stdout), (rows[n - 1], alone.stdout)


@test
def many_items_need_no_more_memory_than_few(folder):
    peaks = []
    for count in (200, 800):
        sub = os.path.join(folder, str(count))
        os.mkdir(sub)
        image = (RNG.random((120, 120)) * 255).astype(np.uint8)
        for index in range(count):
            save(sub, f"{index:04}.npy", image)
        peaks.append(
    summary(
        "-e",
        'read("*.npy") |> gaussian(2) |> write("o/{stem}.npy")',
        "--memory",
        "300M",
         folder=sub)["peak_memory"])
    assert peaks[1] < peaks[0] + 24 * 2**20, peaks


# ---- resume, outputs, manners

@test
def the_same_command_again_does_nothing_and_a_changed_one_says_why(folder):
    save(folder, "a.npy", RNG.random((50, 50), dtype=np.float32))
    text = 'param sigma = 2\nread("a.npy") |> gaussian(sigma) |> write("g.npy")\n'
    pathlib.Path(folder, "p.fov").write_text(text)
    assert summary("p.fov", folder=folder)["tasks_run"] == 1
    assert summary("p.fov", folder=folder)["tasks_run"] == 0
    changed = run("run", "p.fov", "--set", "sigma=3", folder=folder)
    for word in ("made again", "sigma = [2, 2]", "sigma = [3, 3]"):
        assert word in changed.stderr, changed.stderr
    save(folder, "a.npy", RNG.random((50, 50), dtype=np.float32))
    again = run("run", "p.fov", "--set", "sigma=3", folder=folder)
    assert "made again" in again.stderr and "contents" in again.stderr, again.stderr
    assert summary("p.fov", "--set", "sigma=3", "--fresh", folder=folder)["tasks_run"] == 1


@test
def a_changed_parameter_computes_only_what_it_touches(folder):
    # The smoothing is worth keeping (patience is short), so only the threshold is made again.
    text = 'param shift = 0\na = gaussian(phantom("foam", [60, 200, 200]), 4)\nwrite(a > otsu(a) + shift, "l.npy")\n'
    pathlib.Path(folder, "p.fov").write_text(text)
    first = summary("p.fov", "--patience", "0.001", "--chunk", "30x100x100", folder=folder)
    second = summary("p.fov", "--patience", "0.001", "--chunk", "30x100x100", "--set", "shift=9", folder=folder)
    assert 0 < second["tasks_run"] < first["tasks_run"], (first["tasks_run"], second["tasks_run"])


@test
def a_file_that_fovea_did_not_make_is_replaced_only_on_request(folder):
    pathlib.Path(folder, "z.npy").write_text("precious")
    done = run("run", "-e", 'zeros([4, 4]) |> write("z.npy")', folder=folder, code=2)
    assert "--overwrite" in done.stderr and pathlib.Path(folder, "z.npy").read_text() == "precious"
    run("run", "-q", "-e", 'zeros([4, 4]) |> write("z.npy")', "--overwrite", folder=folder)
    run("run", "-q", "-e", 'zeros([5, 5]) |> write("z.npy")', folder=folder)  # now it is ours
    assert load(folder, "z.npy").shape == (5, 5)
    pathlib.Path(folder, "z.npy").write_text("changed by somebody")
    run("run", "-q", "-e", 'zeros([5, 5]) |> write("z.npy")', folder=folder, code=2)


@test
def a_folder_of_other_files_is_never_replaced(folder):
    for name, text in (("p.tif", 'zeros([4, 4]) |> write("p.tif")'), ("p.zarr", 'zeros([4, 4]) |> write("p.zarr")'),
                       ("p.nhdr", 'zeros([4, 4]) |> write("p.nhdr")'), ("p.csv", 'histogram(zeros([4, 4])) |> write("p.csv")'),
                       ("a.zarr/labels/n", 'label(zeros([4, 4]) > 0) |> write("a.zarr/labels/n")')):
        thesis = pathlib.Path(folder, name, "thesis.txt")
        thesis.parent.mkdir(parents=True)
        thesis.write_text("years of work")
        for options in ((), ("--overwrite",), ("--overwrite", "--fresh")):
            done = run("run", *options, "-e", text, folder=folder, code=2)
            assert f"{name} is a folder of other files" in done.stderr and "--overwrite" not in done.stderr, done.stderr
        assert thesis.read_text() == "years of work" and len(os.listdir(thesis.parent)) == 1
    run("run", "-q", "-e", 'zeros([4, 4]) |> write("q.zarr")', "--store", "elsewhere", folder=folder)
    run("run", "-q", "-e", 'zeros([5, 5]) |> write("q.zarr")', folder=folder, code=2)
    run("run", "-q", "-e", 'zeros([5, 5]) |> write("q.zarr")', "--overwrite", folder=folder)  # an image, and no other files
    pathlib.Path(folder, "empty.zarr").mkdir()
    run("run", "-q", "-e", 'zeros([5, 5]) |> write("empty.zarr")', "--overwrite", folder=folder)


@test
def a_name_that_is_too_long_is_told_before_anything_is_done(folder):
    long = "n" * 250
    pathlib.Path(folder, "in").mkdir()
    save(folder, f"in/{long}.npy", np.zeros((4, 4), np.uint8))
    save(folder, "in/short.npy", np.zeros((4, 4), np.uint8))
    for text in ('write(read("in/*.npy") + 1, "out/{stem}-and-one-more.tif")',
                 'write(read("in/*.npy") + 1, "out/{stem}-and-one-more/a.zarr")',
                 f'write(zeros([4, 4]), "{long}-and-one-more.tif")',
                 f'histogram(zeros([4, 4])) |> write("{long}-and-one-more.csv")',
                 f'histogram(zeros([4, 4])) |> write("{long}-and-one-more.sqlite", table = "a")',
                 f'write(zeros([4, 4]), "{"/".join(["folder"] * 700)}/a.npy")'):
        done = run("run", "-e", text, folder=folder, code=2)
        assert "at most 255 here" in done.stderr or "at most 4095" in done.stderr, done.stderr
        assert sorted(os.listdir(folder)) in (["in"], [".fovea", "in"])
    run("run", "-q", "-e", 'write(read("in/*.npy") + 1, "out/{stem}x.tif")', folder=folder)
    assert len(os.listdir(pathlib.Path(folder, "out"))) == 2


LONG = 'phantom("noise", [120, 256, 256]) |> gaussian(20) |> gaussian(21) |> gaussian(22) |> write("s.npy")'


def start_long(folder, *more):
    process = subprocess.Popen([FOVEA, "run", "-q", "-e", LONG, "--chunk", "20x64x64", "--patience", "0.1", *more], cwd=folder,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for("its lease", lambda: list(pathlib.Path(folder).glob(".s.npy*lease")) or process.poll() is not None)
    return process


@test
def a_second_run_into_the_same_output_is_refused_while_the_first_lives(folder):
    first = start_long(folder)
    try:
        second = run("run", "-e", LONG, "--chunk", "20x64x64", folder=folder, code=None)
        assert second.returncode != 0 and str(first.pid) in second.stderr, second.stderr
    finally:
        first.kill()
        first.wait()
    taken = run("run", "-e", LONG, "--chunk", "20x64x64", folder=folder)
    assert "has died" in taken.stderr, taken.stderr


@test
def an_interrupt_ends_cleanly_and_the_same_command_goes_on(folder):
    process = start_long(folder)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "goes on" in errors, (process.returncode, errors)
    assert not os.path.exists(os.path.join(folder, "s.npy"))
    assert not list(pathlib.Path(folder).glob(".s.npy*lease"))
    rest = summary("-e", LONG, "--chunk", "20x64x64", folder=folder)
    assert rest["outputs_made"] == 1


@test
def a_worker_process_that_dies_is_replaced(folder):
    process = start_long(folder, "--engine", "processes", "--workers", "2")
    killed = set()

    def another():
        lines = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], stdout=subprocess.PIPE, text=True).stdout
        return [int(pid) for pid in lines.split() if int(pid) not in killed] or process.poll() is not None

    for _ in range(2):  # three on one task would be an error
        worker = wait_for("a worker", another)[0]
        time.sleep(0.3)
        os.kill(worker, signal.SIGKILL)
        killed.add(worker)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, (process.returncode, errors)
    run("run", "-q", "-e", LONG.replace("s.npy", "t.npy"), folder=folder)
    assert bytes_of(folder, "s.npy") == bytes_of(folder, "t.npy")


def peak_of_tree(process):
    """Largest proportional memory of a process and its children, sampled until it ends."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory_of(family(process.pid)))
        time.sleep(0.01)
    return peak


def bounded(folder, *more):
    text = ('a = phantom("foam", [400, 400, 400], seed = 2)\ng = gaussian(a, 3)\nl = label(g < 60)\n'
            'write(l, "l.zarr")\nwrite(g, "g.npy")\nmax(l)')
    process = subprocess.Popen([FOVEA, "run", "-q", "-e", text, "--memory", "200M", *more], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = peak_of_tree(process)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert peak < 200 * 2**20, f"{peak / 2**20:.0f} MiB"
    return output


@test
def a_volume_several_times_the_memory_stays_below_the_bound_with_threads(folder):
    bounded(folder)


@test
def a_volume_several_times_the_memory_stays_below_the_bound_with_processes(folder):
    bounded(folder, "--engine", "processes")


@test
def a_full_disk_is_a_clear_error_and_earlier_results_stay_whole(folder):
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m",
                 "none", disk], stderr=subprocess.DEVNULL).returncode:
        raise Skip("mounting a small disk needs more rights")
    try:
        run("run", "-q", "-e", 'phantom("noise", [64, 64]) |> write("small.npy")', folder=disk)
        before = bytes_of(disk, "small.npy")
        for name in ("big.npy", "big.zarr", "big.nii.gz", "big.tif"):
            done = run("run", "-e", f'phantom("noise", [64, 512, 512]) |> write("{name}")', folder=disk, code=1)
            assert "No space left" in done.stderr or "full" in done.stderr, done.stderr
            assert not os.path.exists(os.path.join(disk, name)), name
            for left in pathlib.Path(disk).glob(".big*"):
                subprocess.run(["rm", "-rf", str(left)])
            subprocess.run(["rm", "-rf", os.path.join(disk, ".fovea", "store")])
        assert bytes_of(disk, "small.npy") == before
    finally:
        subprocess.run(["umount", disk])


@test
def the_record_tells_every_task_with_its_times(folder):
    run("run",
    "-q",
    "-e",
    'phantom("foam", [40, 100, 100]) |> gaussian(2) |> write("g.npy")',
    "--chunk",
    "10x50x100",
     folder=folder)
    [path] = pathlib.Path(folder, ".fovea", "runs").glob("*/record.db")
    with sqlite3.connect(path) as database:
        tasks, work = database.execute("SELECT count(*), sum(compute) FROM task WHERE status = 'ok'").fetchone()
        engine = database.execute("SELECT value FROM run WHERE name = 'engine'").fetchone()
    assert tasks == 8 and work > 0 and engine == ("threads",), (tasks, work, engine)


main()
