"""Whole numbers up to 2^64 - 1 come out right by every way out."""
import csv
import json
import os
import pathlib
import sqlite3
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

TOP = 2**64 - 1


def save(folder, name, values, descr="<u8"):
    """A row of 8-byte integers as a NumPy file."""
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(values)},), }}".encode()
    head += b" " * (64 - (len(head) + 11) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}{'Q' if descr == '<u8' else 'q'}", *values)
    pathlib.Path(folder, name).write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + data)


def value(text, folder, code=0):
    done = run("run", "-q", "-e", text, folder=folder, code=code)
    return done.stdout.strip() if not code else done.stderr


@test
def scalars_are_printed_exactly(folder):
    save(folder, "a.npy", [3, 2**63, 2**63 + 5, TOP])
    save(folder, "b.npy", [2**63 + 5, 2**63 + 7])
    for expression, expected in (("max(a)", TOP), ("min(a)", 3), ("min(b)", 2**63 + 5), ("max(b)", 2**63 + 7), ("count(a)", 4),
                                 ("max(a[0:3])", 2**63 + 5), ("sum(a[0:2])", 2**63 + 3), ("max(where(a > 3, a, a))", TOP)):
        assert value(f'a = read("a.npy"); b = read("b.npy"); {expression}', folder) == str(expected), expression
        done = run("run", "--json", "-q", "-e", f'a = read("a.npy"); b = read("b.npy"); {expression}', folder=folder)
        assert list(json.loads(done.stdout)["values"][0][0].values()) == [expected], done.stdout
    assert value('a = read("a.npy"); count(a == max(a))', folder) == "1"


@test
def what_64_bits_do_not_hold_is_said_and_not_cut(folder):
    save(folder, "a.npy", [TOP, 5])
    save(folder, "i.npy", [-2**63, -1], "<i8")
    save(folder, "j.npy", [-2**63, 2**63 - 1], "<i8")
    for name, kind in (("a", "uint64"), ("i", "int64")):
        said = value(f'sum(read("{name}.npy"))', folder, code=1)
        assert f"more than {kind} holds" in said and 'sum(convert(image, "float64"))' in said, said
    assert float(value('sum(convert(read("a.npy"), "float64"))', folder)) == 2.0**64
    assert value('sum(read("j.npy"))', folder) == "-1"
    assert value('min(read("i.npy"))', folder) == str(-2**63)


@test
def tables_hold_them(folder):
    save(folder, "a.npy", [3, 2**63 + 5])
    save(folder, "s.npy", [3, 2**53 + 1])
    sinks = "".join(f'write(max(a), "{n}.{e}")\n' for n, e in (("a", "csv"), ("a", "jsonl"), ("a", "db")))
    run("run", "-q", "-e", 'a = read("a.npy")\n' + sinks, folder=folder)
    with open(os.path.join(folder, "a.csv"), newline="") as file:
        assert list(csv.reader(file)) == [["max"], [str(2**63 + 5)]]
    assert json.loads(pathlib.Path(folder, "a.jsonl").read_text()) == {"max": 2**63 + 5}
    with sqlite3.connect(os.path.join(folder, "a.db")) as database:
        assert database.execute("SELECT max FROM a").fetchall() == [(float(2**63 + 5),)]  # SQLite ends at 2^63 - 1
    run("run", "-q", "-e", 'write(max(read("s.npy")), "s.db")', folder=folder)
    with sqlite3.connect(os.path.join(folder, "s.db")) as database:
        assert database.execute("SELECT max FROM s").fetchall() == [(2**53 + 1,)]
    done = run("run", "-q", "-e", 'write(max(read("a.npy")), "a.parquet")', folder=folder, code=None)
    if done.returncode and "DuckDB" in done.stderr:
        raise Skip("no DuckDB")
    assert "9.22337e+18" in run("run", "-q", "-e", 'read("a.parquet")', folder=folder).stdout
    assert str(2**63 + 5)[:6] in run("sql", "a.parquet", "SELECT * FROM a", folder=folder).stdout.replace(".", "")


@test
def collections_of_both_signs_are_one_column(folder):
    save(folder, "u1.npy", [TOP])
    save(folder, "u2.npy", [7])
    run("run", "-q", "-e", 'write(max(read("u*.npy")), "u.csv")', folder=folder)
    assert pathlib.Path(folder, "u.csv").read_text().split() == ["item,path,max", f"u1,u1.npy,{TOP}", "u2,u2.npy,7"]
    save(folder, "u3.npy", [-5], "<i8")  # then no whole type holds all
    run("run", "-q", "-e", 'write(max(read("u*.npy")), "v.csv")', folder=folder)
    assert [float(line.split(",")[2]) for line in pathlib.Path(folder, "v.csv").read_text().split()[1:]] == [float(TOP), 7, -5]


@test
def measurements_are_the_nearest_real_numbers(folder):
    save(folder, "a.npy", [3, 2**63, 2**63 + 5, TOP])
    run("run", "-q", "-e", 'a = read("a.npy"); write(measure(label(a > 0), a), "m.csv"); write(histogram(a, bins = 2), "h.csv")',
        folder=folder)
    with open(os.path.join(folder, "m.csv"), newline="") as file:
        [row] = csv.DictReader(file)
    assert float(row["max"]) == float(TOP) and float(row["min"]) == 3, row
    assert float(row["mean"]) == (3 + 2**63 + 2**63 + 5 + TOP) / 4, row
    with open(os.path.join(folder, "h.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["count"]) for row in rows] == [1, 3] and float(rows[-1]["high"]) == float(TOP), rows
    said = value('otsu(read("a.npy"))', folder, code=1)
    assert f"from 3 to {TOP};" in said, said


main()
