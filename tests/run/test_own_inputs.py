"""What a run has written is never its own input: results among the files of a pattern are known again."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test


def save(folder, name, value):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.full((6, 6), value, np.uint8))


def names(folder, pattern="in/*"):
    return sorted(p.name for p in pathlib.Path(folder).glob(pattern) if not p.name.startswith("."))


def scans(folder, count=3):
    for number in range(count):
        save(folder, f"in/{'abcdefgh'[number]}.npy", 10 + number)


SMOOTH = 'read("in/*.npy") + 1 |> write("in/{stem}_s.npy")'


@test
def results_beside_their_sources_are_left_out_of_later_runs(folder):
    scans(folder)
    run("run", "-e", SMOOTH, folder=folder)
    wanted = names(folder)
    assert wanted == ["a.npy", "a_s.npy", "b.npy", "b_s.npy", "c.npy", "c_s.npy"], wanted
    for engine in "threads", "processes":
        done = run("run", "--engine", engine, "-e", SMOOTH, folder=folder)
        assert '3 of the 6 files that match "in/*.npy" are results of earlier runs' in done.stderr, done.stderr
        assert "up to date" in done.stderr and names(folder) == wanted, done.stderr
    save(folder, "in/d.npy", 20)  # the next day
    run("run", "-q", "-e", SMOOTH, folder=folder)
    assert names(folder) == sorted(wanted + ["d.npy", "d_s.npy"])
    planned = run("plan", "-e", SMOOTH, folder=folder)
    assert "4 items" in planned.stdout, planned.stdout


@test
def a_result_stays_one_when_its_source_is_gone_or_the_text_has_changed(folder):
    scans(folder)
    run("run", "-q", "-e", SMOOTH, folder=folder)
    os.unlink(os.path.join(folder, "in/a.npy"))
    run("run", "-q", "-e", 'read("in/*.npy") + 2 |> write("in/{stem}_t.npy")', folder=folder)
    assert names(folder) == ["a_s.npy", "b.npy", "b_s.npy", "b_t.npy", "c.npy", "c_s.npy", "c_t.npy"], names(folder)
    for name in "b", "c":
        os.unlink(os.path.join(folder, f"in/{name}.npy"))
    done = run("run", "-e", SMOOTH, folder=folder, code=2)
    assert 'all files that match "in/*.npy" are results of earlier runs' in done.stderr, done.stderr


@test
def a_second_step_reads_the_results_of_the_first(folder):
    scans(folder, 2)
    run("run", "-q", "-e", SMOOTH, folder=folder)
    step = 'read("in/*_s.npy") + 1 |> write("in/{stem}_s.npy")'
    for _ in range(2):
        run("run", "-q", "-e", step, folder=folder)
    assert names(folder) == ["a.npy", "a_s.npy", "a_s_s.npy", "b.npy", "b_s.npy", "b_s_s.npy"], names(folder)
    assert np.load(os.path.join(folder, "in/a_s_s.npy"))[0, 0] == 12


@test
def what_the_text_itself_would_write_is_left_out_whatever_pattern_made_it(folder):
    scans(folder, 2)
    run("run", "-q", "-e", SMOOTH, folder=folder)
    for _ in range(2):
        run("run", "-q", "-e", SMOOTH.replace("in/*", "./in/[ab]*"), folder=folder)
    assert names(folder) == ["a.npy", "a_s.npy", "b.npy", "b_s.npy"], names(folder)


@test
def sweeps_tables_and_folders_are_known_too(folder):
    scans(folder, 2)
    text = ('param radius = 1\nm = read("in/*") > 10 + radius\nwrite(m, "in/{stem}_{radius}.zarr")\n'
            'write(mean(m), "in/means.csv")\nwrite(mean(m), "in/means.sqlite")')
    for values in "1,2", "1,2", "3":
        done = run("run", "-e", text, "--set", f"radius={values}", "--overwrite", folder=folder)
    assert '6 of the 8 files that match "in/*" are results' in done.stderr, done.stderr
    zarrs = [f"{stem}_{radius}.zarr" for stem in "ab" for radius in (1, 2, 3)]
    assert names(folder) == sorted(["a.npy", "b.npy", "means.csv", "means.sqlite"] + zarrs), names(folder)
    table = pathlib.Path(folder, "in/means.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in table[1:]] == ["a", "b"], table


@test
def results_do_not_disturb_pairs(folder):
    scans(folder)
    for name in "abc":
        save(folder, f"mask/{name}.npy", 1)
    text = 'write(read("in/*.npy") * read("mask/*.npy"), "in/{stem}_m.npy")'
    for _ in range(2):
        run("run", "-q", "-e", text, folder=folder)
    assert len(names(folder)) == 6


@test
def an_interrupted_run_goes_on_with_the_same_items(folder):
    scans(folder, 8)
    more = ["--workers", "1", "--patience", "0.001"]
    run("run", "-q", *more, "-e", SMOOTH, folder=folder, code=None, environment={"FOVEA_FAULT": "replaced:3:kill"})
    assert 8 < len(names(folder)) < 16, names(folder)
    run("run", "-q", *more, "-e", SMOOTH, folder=folder)
    assert len(names(folder)) == 16 and len(list(pathlib.Path(folder, ".fovea/runs").iterdir())) == 1


@test
def an_input_is_never_written_over(folder):
    scans(folder, 2)
    run("run", "-q", "-e", SMOOTH, folder=folder)
    shutil.rmtree(os.path.join(folder, ".fovea"))  # now nobody knows that Fovea made them
    before = {name: pathlib.Path(folder, "in", name).read_bytes() for name in names(folder)}
    for text in SMOOTH, 'read("in/*.npy") + 1 |> write("in/{stem}.npy")', 'read("in/a.npy") + 1 |> write("in/../in/a.npy")', \
            'a = read("in/a.npy") + 1\nwrite(a, "in/b.npy")\nwrite(read("in/b.npy"), "c.npy")':
        for option in [], ["--overwrite"]:
            done = run("run", "-e", text, *option, folder=folder, code=2)
            assert "the run would write over its own input in/" in done.stderr, done.stderr
    assert before == {name: pathlib.Path(folder, "in", name).read_bytes() for name in names(folder)}
    os.symlink("in", os.path.join(folder, "link"))
    done = run("run", "--overwrite", "-e", 'read("link/a.npy") + 1 |> write("in/a.npy")', folder=folder, code=2)
    assert "own input link/a.npy" in done.stderr, done.stderr


@test
def a_result_cannot_become_a_slice(folder):
    scans(folder, 2)
    text = 'read("in/*.npy", stack = "z") |> write("{}")'
    for name in "in/all.npy", "./in/all.npy":
        done = run("run", "-e", text.replace("{}", name), folder=folder, code=2)
        assert 'would match "in/*.npy"' in done.stderr, done.stderr
    run("run", "-q", "-e", text.replace("{}", "in/all.tif"), folder=folder)


@test
def a_database_may_be_read_and_written_by_one_text(folder):
    run("run", "-q", "-e", 'a = phantom("cells", [64, 64]); write(measure(label(a > 100), a), "t.sqlite", table = "one")',
        folder=folder)
    text = 'read("t.sqlite", path = "one") |> filter("label > 1") |> write("t.sqlite", table = "two")'
    run("run", "-q", "-e", text, folder=folder)


main()
