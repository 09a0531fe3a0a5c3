"""The classic word count: the same bytes on threads, processes and MPI, and what Python counts. (Slurm: test_slurm.py.)"""
import collections
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, ROOT, Skip, main, run, test

LAUNCH = {"mpich": ["mpiexec.mpich"], "openmpi": ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"]}
PAGES = sorted((ROOT / "docs").glob("*.md"))
WORD = re.compile(r"\w+(?:[-'\u2019]\w+)*")


def texts(folder):
    """Pages of the documentation, and a text with letters, marks and signs of many kinds."""
    where = pathlib.Path(folder, "texts")
    where.mkdir(parents=True)
    for page in PAGES:
        shutil.copy(page, where / (page.stem + ".txt"))
    (where / "signs.txt").write_text("Ärger ÄRGER \u201cärger\u201d\u2014Don\u2019t don't DON'T e-mail --- a-\nb 'quoted' "
                                     "Στο ΣΤΟ Да да ДА Łódź łódź 3.14 x_1 naïve… ÷×°\ufeff 東京 東京。\n" * 3, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "wordcount.fov", folder)
    return folder


def words(path):
    return [word.replace("\u2019", "'").lower() for word in WORD.findall(path.read_text(encoding="utf-8"))]


def table(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def results(folder):
    return {name: pathlib.Path(folder, name).read_bytes() for name in ("frequencies.csv", "texts.csv")}


@test
def words_and_their_frequencies_are_those_that_python_counts(folder):
    texts(folder)
    done = run("run", "wordcount.fov", folder=folder)
    files = sorted(pathlib.Path(folder, "texts").glob("*.txt"))
    all_words = collections.Counter(word for file in files for word in words(file))
    expected = sorted(all_words.items(), key=lambda pair: (-pair[1], pair[0].encode()))
    found = [(row["word"], int(row["count"])) for row in table(folder, "frequencies.csv")]
    assert dict(found) == dict(expected), sorted(set(found) ^ set(expected))[:20]
    assert found == expected
    rows = {row["item"]: (int(row["words"]), int(row["different"])) for row in table(folder, "texts.csv")}
    assert rows == {file.stem: (len(words(file)), len(set(words(file)))) for file in files}
    assert expected[0][0] in done.stdout and len(done.stdout.splitlines()) == 11, done.stdout


@test
def threads_processes_and_small_memory_count_the_same(folder):
    expected = None
    for name, options in (("one", ["--workers", "1"]), ("threads", ["--workers", "3"]),
                          ("processes", ["--engine", "processes", "--workers", "2"]), ("memory", ["--memory", "80M"])):
        place = texts(os.path.join(folder, name))
        run("run", "wordcount.fov", *options, folder=place)
        expected = expected or results(place)
        assert results(place) == expected, name


@test
def ranks_count_the_same(folder):
    alone, ran = texts(os.path.join(folder, "alone")), 0
    run("run", "wordcount.fov", folder=alone)
    for flavour, command in LAUNCH.items():
        if not shutil.which(command[0]) or not (pathlib.Path(FOVEA).parent / f"fovea-mpi-{flavour}.so").exists():
            continue
        place = texts(os.path.join(folder, flavour))
        done = subprocess.run([*command, "-n", "3", FOVEA, "run", "wordcount.fov"], cwd=place, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        assert done.returncode == 0, done.stderr[-500:]
        assert results(place) == results(alone), flavour
        ran += 1
    if not ran:
        raise Skip("no MPI")


@test
def more_different_values_than_fit_are_counted(folder):
    """More than are counted at a time: their counts meet again on disk."""
    where = pathlib.Path(folder, "texts")
    where.mkdir()
    for file in range(3):
        (where / f"{file}.txt").write_text(" ".join(f"w{(k * 7919 + file) % 90000:x}" for k in range(120000)))
    run("run", "-e", 'words("texts/*.txt") |> frequencies("word") |> write("f.csv")', folder=folder)
    expected = collections.Counter(word for file in where.iterdir() for word in file.read_text().split())
    assert {row["word"]: int(row["count"]) for row in table(folder, "f.csv")} == expected


@test
def numbers_are_counted_and_missing_values_are_not(folder):
    pathlib.Path(folder, "t.csv").write_text("a,b,c\n1,x,0.5\n2,,0.5\n1,x,\n3,y,-0\n3,,0\n")
    said = run("run", "--json", "-e", 't = read("t.csv")\nfrequencies(t, "a")\nfrequencies(t, "b")\nfrequencies(t, "c")',
               folder=folder).stdout
    found = [[tuple(row.values()) for row in rows] for rows in json.loads(said)["values"]]
    assert found == [[(1, 2), (3, 2), (2, 1)], [("x", 2), ("y", 1)], [(0, 2), (0.5, 2)]], said


@test
def what_is_no_text_is_named_and_the_others_are_counted(folder):
    texts(folder)
    pathlib.Path(folder, "texts", "old.txt").write_bytes("Grün".encode("latin-1"))
    pathlib.Path(folder, "texts", "picture.txt").write_bytes(b"\x89PNG\0\0")
    done = run("run", "-e", 'group(words("texts/*.txt"), "item", "count()") |> write("all.csv")\n'
               'words("texts/*.txt") |> write("{stem}.csv")', folder=folder, code=1)
    assert "old.txt, byte 2" in done.stderr and "iconv" in done.stderr and "picture.txt" in done.stderr, done.stderr
    assert pathlib.Path(folder, "signs.csv").exists() and not pathlib.Path(folder, "all.csv").exists()
    wrong = run("run", "-e", 'frequencies(words("texts/a*.txt"), "wrod")', folder=folder, code=2).stderr
    assert "wrod" in wrong and "word" in wrong, wrong


main()
