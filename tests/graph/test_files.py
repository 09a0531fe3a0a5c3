"""Collections whose files a list names: text files and columns of tables, in their order."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test


def save(folder, name, value):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.full((4, 4), value, np.uint8))


def write(folder, name, text):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def printed(folder, text):
    done = run("run", "-q", "-e", text, folder=folder)
    return [(" ".join(line.split()[:-1]), float(line.rsplit(None, 1)[1])) for line in done.stdout.splitlines()[1:]]


def refused(folder, text):
    return run("run", "-e", text, folder=folder, code=2).stderr


def images(folder):
    for number, name in enumerate(("a", "b", "c d", "z*")):
        save(folder, f"in/{name}.npy", number)


@test
def a_text_file_names_the_items_in_its_order(folder):
    images(folder)
    write(folder, "list.txt", "\ufeff# the good ones\r\nin/c d.npy\r\n\r\nin/a.npy\r\nin/z*.npy")
    rows = printed(folder, 'mean(read(files("list.txt")))')
    assert rows == [("c d in/c d.npy", 2), ("a in/a.npy", 0), ("z* in/z*.npy", 3)], rows
    for engine in "threads", "processes":
        text = 'scans = files("list.txt")\nread(scans) + 1 |> write("out/{index}_{stem}.npy")'
        run("run", "-q", "--engine", engine, "-e", text, folder=folder)
        assert sorted(os.listdir(os.path.join(folder, "out"))) == ["0_c d.npy", "1_a.npy", "2_z*.npy"]
    assert np.load(os.path.join(folder, "out/0_c d.npy"))[0, 0] == 3
    done = run("run", "-e", 'param l = "list.txt"\nread(file = files(l)) + 1 |> write("out/{index}_{stem}.npy")', folder=folder)
    assert "up to date" in done.stderr, done.stderr


@test
def names_are_looked_for_here_and_then_beside_the_list(folder):
    save(folder, "data/deep/a.npy", 1)
    save(folder, "data/b.npy", 2)
    save(folder, "b.npy", 3)
    write(folder, "data/list.txt", f"deep/a.npy\nb.npy\n{folder}/data/b.npy\n")
    rows = printed(folder, 'mean(read(files("data/list.txt")))')
    assert rows == [("data/deep/a data/deep/a.npy", 1), ("b b.npy", 3), (f"{folder}/data/b {folder}/data/b.npy", 2)], rows
    write(folder, "data/list.txt", "deep/a.npy\ndata/b.npy\n")
    run("run", "-q", "-e", 'read(files("data/list.txt")) |> write("out/{path}/{stem}.npy")', folder=folder)
    assert pathlib.Path(folder, "out/deep/a.npy").exists() and pathlib.Path(folder, "out/b.npy").exists()


@test
def columns_of_a_table_go_together_row_by_row(folder):
    images(folder)
    save(folder, "flat.npy", 1)
    write(folder, "meta.csv", 'file,flat,dose\nin/b.npy,flat.npy,1\n"in/c d.npy",flat.npy,2\n')
    text = 'mean(read(files("meta.csv", column = "file")) - read(files("meta.csv", column = "flat")))'
    assert printed(folder, text) == [("b in/b.npy", 0), ("c d in/c d.npy", 1)]
    said = refused(folder, 'mean(read(files("meta.csv", column = "flat")))')
    assert "names flat.npy more than once" in said, said
    assert "which column of meta.csv" in refused(folder, 'mean(read(files("meta.csv")))')
    assert "no column scan; its columns of texts are: file, flat" in refused(folder, 'mean(read(files("meta.csv", "scan")))')
    assert "column dose of meta.csv holds numbers" in refused(folder, 'mean(read(files("meta.csv", "dose")))')
    write(folder, "one.csv", "file,dose\nin/b.npy,1\n")
    assert printed(folder, 'mean(read(files("one.csv")))') == [("b in/b.npy", 1)]
    said = refused(folder, 'mean(read(files("one.csv")) - read(files("meta.csv", column = "flat")))')
    assert "lists go together line by line" in said, said
    said = refused(folder, 'mean(read(files("one.csv")) - read("in/*.npy"))')
    assert "give both as lists" in said, said


@test
def what_is_missing_is_named_before_anything_starts(folder):
    images(folder)
    write(folder, "list.txt", "in/a.npy\nin/none.npy\n" + "".join(f"in/n{i}.npy\n" for i in range(9)))
    said = refused(folder, 'read(files("list.txt")) |> write("out/{stem}.npy")')
    assert "10 of the 11 files that list.txt names are not there: in/none.npy (line 2), in/n0.npy (line 3)" in said, said
    assert not pathlib.Path(folder, "out").exists()
    write(folder, "meta.csv", "file,x\nin/a.npy,1\n,2\n")
    assert "row 2 of meta.csv names no file" in refused(folder, 'mean(read(files("meta.csv", column = "file")))')
    write(folder, "empty.txt", "# nothing\n\n")
    assert "empty.txt names no files" in refused(folder, 'mean(read(files("empty.txt")))')
    assert "there is no file none.txt" in refused(folder, 'mean(read(files("none.txt")))')
    assert "neither a text nor a table" in refused(folder, 'mean(read(files("in/a.npy")))')


@test
def a_file_that_all_items_need_is_missed_before_the_first_begins(folder):
    images(folder)
    items = 'c = read("in/?.npy"); write(c + 1, "out/{stem}.npy"); '
    for more in ('write(c - read("none.npy"), "out/{stem}_d.npy")', 'write(fold(c) - read("none.npy"), "mean.npy")',
                 'write(join(measure(c > 0), read("none.csv"), on = "item = name"), "all.csv")', 'mean(read("none.npy"))'):
        assert "there is no file none." in refused(folder, items + more), more
        assert not pathlib.Path(folder, "out").exists(), more


@test
def a_list_of_files_is_no_other_value(folder):
    images(folder)
    write(folder, "list.txt", "in/a.npy\n")
    assert "expected a text" in refused(folder, 'read("in/a.npy") |> write(files("list.txt"))')
    assert "list of files" in refused(folder, 'gaussian(files("list.txt"), 1) |> write("a.npy")')
    assert "needs list" in refused(folder, 'mean(read(files()))')
    assert "a pattern, not a list" in refused(folder, 'read(files("list.txt"), stack = "z") |> write("a.npy")')


main()
