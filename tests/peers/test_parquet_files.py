"""Parquet files that Fovea writes, as pyarrow reads them, and those of pyarrow as Fovea reads them. Both DuckDB's library and
pyarrow (in build/peers) may be missing."""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, Skip, main, run, test

PEERS = str(ROOT / "build" / "peers" / "bin" / "python")


def duckdb(folder):
    """Skips where Parquet files can be neither read nor written."""
    pathlib.Path(folder, "probe.csv").write_text("a\n1\n")
    done = run("convert", "-q", "probe.csv", "probe.parquet", folder=folder, code=None)
    if done.returncode and "make duckdb" in done.stderr:
        raise Skip("no libduckdb.so: scripts/duckdb.sh could not fetch it")
    assert done.returncode == 0, done.stderr


def pyarrow(text, folder):
    """What a program with pyarrow prints, as JSON."""
    if not os.path.exists(PEERS) or subprocess.run([PEERS, "-c", "import pyarrow"], capture_output=True).returncode:
        raise Skip("no pyarrow in build/peers: scripts/bootstrap.sh pypi could not install it")
    done = subprocess.run([PEERS, "-c", "import json, pyarrow as pa, pyarrow.parquet as pq\n" + text], cwd=folder,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    return json.loads(done.stdout) if done.stdout.strip() else None


@test
def part_files_that_changed_are_read_anew(folder):
    duckdb(folder)
    for place, part, text in (("t.parquet/k=1", "{}.csv", "a\n{}\n"), ("i.parquet", "{}.npy", None)):
        os.makedirs(f"{folder}/{place}")
        whole = place.split("/", maxsplit=1)[0]
        for number in (1, 2):
            source = part.format(number)
            if text:
                pathlib.Path(folder, source).write_text(text.format(number))
            else:
                np.save(f"{folder}/{source}", np.full((3, 4, 5), number, np.uint8))
            run("convert", "-q", source, f"{number}.parquet", "--overwrite", folder=folder)
            shutil.copy(f"{folder}/{number}.parquet", f"{folder}/{place}/part-0.parquet")
            run("run", "-q", "-e", f'read("{whole}") |> write("out.{"csv" if text else "npy"}")', folder=folder)
            seen = pathlib.Path(folder, "out.csv").read_text() if text else np.load(f"{folder}/out.npy").max()
            assert seen == (f"a,k\n{number},1\n" if text else number), (place, seen)


@test
def pyarrow_reads_the_numbers_that_csv_has_to_the_last_bit(folder):
    duckdb(folder)
    run("run", "-e", 'c = phantom("cells", [300, 300])\nt = measure(label(c > 60), c)\nwrite(t, "t.csv")\nwrite(t, "t.parquet")',
        folder=folder)
    with open(os.path.join(folder, "t.csv"), newline="") as file:
        names, *lines = csv.reader(file)
    table = pyarrow("t = pq.read_table('t.parquet')\nprint(json.dumps([t.column_names, [c.to_pylist() for c in t.columns]]))",
                    folder)
    assert table[0] == names and len(lines) > 20
    for column, values in enumerate(table[1]):
        assert len(values) == len(lines)
        for value, line in zip(values, lines):
            assert (line[column] == "") if value is None else type(value)(line[column]) == value, (value, line[column])


@test
def types_and_metadata_of_pyarrow_are_understood(folder):
    duckdb(folder)
    pyarrow("""
import datetime, decimal
t = pa.table({"whole": pa.array([1, 2, 3], pa.int8()), "gaps": pa.array([1, None, 3], pa.int32()),
              "large": pa.array([0, 1, 2**64 - 1], pa.uint64()), "day": [datetime.date(2020, 1, 2)] * 3,
              "price": [decimal.Decimal("1.25")] * 3, "list": [[1, 2], [], None], "yes": [True, False, True],
              "odd, \\"name\\" %s": ["\\u00e4", "", None], "single": pa.array([0.5, 0.25, None], pa.float32())})
pq.write_table(t.replace_schema_metadata({"lab": "Z\\u00fcrich", "voltage": "30 keV"}), "odd.parquet", compression="gzip")
""", folder)
    rows = list(csv.reader(io.StringIO(run("sql", "--csv", "odd.parquet", "SELECT * FROM odd", folder=folder).stdout)))
    assert rows == [["whole", "gaps", "large", "day", "price", "list", "yes", 'odd, "name" %s', "single"],
                    ["1", "1", "0", "2020-01-02", "1.25", "[1, 2]", "1", "\u00e4", "0.5"],
                    ["2", "", "1", "2020-01-02", "1.25", "[]", "0", "", "0.25"],
                    ["3", "3", "1.8446744073709552e+19", "2020-01-02", "1.25", "", "1", "", ""]], rows
    told = json.loads(run("info", "--json", "odd.parquet", folder=folder).stdout)[0]["tables"][0]
    assert told["rows"] == 3 and told["facts"]["compression"] == "gzip" and told["facts"]["metadata lab"] == "Z\u00fcrich"
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds["whole"] == "integer" and kinds["gaps"] == "real" and kinds["day"] == "text" and kinds["yes"] == "integer"


@test
def metadata_outlive_filtering_and_sorting(folder):
    duckdb(folder)
    pyarrow("""
t = pa.table({"a": [3, 1, 2]}).replace_schema_metadata({"lab": "it's \\u00e4", "empty": ""})
pq.write_table(t, "in.parquet")""", folder)
    run("run", "-q", "-e", 'write(sort(filter(read("in.parquet"), "a > 1"), "a"), "out.parquet")', folder=folder)
    told = pyarrow("t = pq.read_table('out.parquet'); m = {k.decode(): v.decode() for k, v in t.schema.metadata.items()}; "
                   "print(json.dumps([t.to_pydict(), m]))", folder)
    assert told[0] == {"a": [2, 3]} and told[1]["lab"] == "it's \u00e4" and told[1]["empty"] == "", told


@test
def parquet_csv_and_sqlite_are_asked_together(folder):
    duckdb(folder)
    pathlib.Path(folder, "cells.csv").write_text("animal,type,volume\n1,cancer,1\n1,healthy,0.1\n2,cancer,0.95\n")
    pathlib.Path(folder, "animals.csv").write_text("id,weight\n1,100\n2,40\n3,80\n")
    pathlib.Path(folder, "places.csv").write_text("animal,place\n1,Bern\n2,Basel\n")
    run("convert", "-q", "cells.csv", "cells.parquet", folder=folder)
    run("convert", "-q", "animals.csv", "animals.db", folder=folder)
    text = ("SELECT place, weight, sum(volume) AS volume "
            "FROM cells JOIN animals ON animal = id JOIN places USING (animal) GROUP BY id")
    found = run("sql", "--json", "cells.parquet", "places.csv", "animals.db", text, folder=folder).stdout
    assert json.loads(found) == [{"place": "Bern", "weight": 100, "volume": 1.1},
                                 {"place": "Basel", "weight": 40, "volume": 0.95}], found


@test
def many_rows_come_through_in_order_and_in_little_memory(folder):
    duckdb(folder)
    pyarrow("""
import numpy as np
n = 2000000
writer = None
for part in range(4):
    i = np.arange(part * n, (part + 1) * n)
    t = pa.table({"i": i, "half": i / 2, "text": pa.array([f"number {k % 1000}" for k in range(n)])})
    writer = writer or pq.ParquetWriter("large.parquet", t.schema)
    writer.write_table(t)
writer.close()""", folder)
    pipeline = 'write(filter(read("large.parquet"), "half > 3999998.5"), "few.csv")'
    run("run", "-q", "--memory", "256M", "-e", pipeline, folder=folder)
    lines = pathlib.Path(folder, "few.csv").read_text().splitlines()
    assert lines == ["i,half,text", "7999998,3999999,number 998", "7999999,3999999.5,number 999"], lines


@test
def an_image_is_rows_of_slices_for_others_and_comes_back(folder):
    duckdb(folder)
    run("run", "-q", "-e", 'v = phantom("foam", [9, 40, 50]) |> convert("uint16")\nwrite(v, "v.npy")\nwrite(v, "v.nii")',
        folder=folder)
    run("convert", "-q", "v.nii", "v.parquet", "--compression", "snappy", folder=folder)
    told = pyarrow("""
import numpy as np
t = pq.read_table("v.parquet")
about = json.loads(t.schema.metadata[b"fovea.image"])
image = np.stack([np.frombuffer(p.as_py(), about["dtype"]).reshape(about["shape"][1:]) for p in t["pixels"]])
np.save("peer.npy", image)
print(json.dumps([t.column_names, t["slice"].to_pylist(), about]))""", folder)
    assert told[0] == ["slice", "pixels"] and told[1] == list(range(9)), told
    assert told[2]["shape"] == [9, 40, 50] and told[2]["dtype"] == "uint16" and told[2]["axes"] == ["z", "y", "x"], told
    whole = np.load(os.path.join(folder, "v.npy"))
    assert np.array_equal(np.load(os.path.join(folder, "peer.npy")), whole)
    run("convert", "-q", "v.parquet", "back.nii", folder=folder)
    before, after = (pathlib.Path(folder, name).read_bytes() for name in ("v.nii", "back.nii"))
    assert before == after
    run("convert", "-q", "v.parquet", "part.npy", "--region", "3:8:2,5:20,::-1", folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "part.npy")), whole[3:8:2, 5:20, ::-1])
    table = run("sql", "--csv", "v.parquet", "SELECT max(slice) FROM v", folder=folder).stdout
    assert table.split() == ["max(slice)", "8"], table


@test
def images_of_any_type_and_shape_come_back_from_rows(folder):
    duckdb(folder)
    random = np.random.default_rng(1)
    arrays = {"plane": random.random((7, 5)), "time": random.integers(0, 9, (2, 3, 4, 6, 5)).astype(np.int8),
              "bools": random.random((3, 6, 4)) > 0.5, "waves": (random.random((2, 5, 6)) + 1j).astype(np.complex64),
              "many": random.integers(0, 255, (3000, 2, 3)).astype(np.uint8)}
    for name, array in arrays.items():
        np.save(os.path.join(folder, name + ".npy"), array)
        run("convert", "-q", name + ".npy", name + ".parquet", folder=folder)
        run("convert", "-q", name + ".parquet", name + "-back.npy", folder=folder)
        back = np.load(os.path.join(folder, name + "-back.npy"))
        assert back.dtype == array.dtype and np.array_equal(back, array), name
    run("run", "-q", "-e", 'write(read("time.parquet")[1, 1:3, :, 2:5, 1:4], "part.npy")', folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "part.npy")), arrays["time"][1, 1:3, :, 2:5, 1:4])


@test
def slices_of_a_tilt_series_have_their_angles(folder):
    duckdb(folder)
    np.save(os.path.join(folder, "t.npy"), np.arange(3 * 4 * 5, dtype=np.int16).reshape(3, 4, 5))
    run("convert", "-q", "t.npy", "t.mrc", folder=folder)
    pathlib.Path(folder, "t.tlt").write_text("-60\n0.5\n61.25\n")
    run("run", "-q", "-e", 'read("t.mrc") + 1 |> write("t.parquet")\nread("t.mrc")[::-1] |> write("turned.parquet")',
        folder=folder)
    assert run("sql", "--csv", "t.parquet", "SELECT * FROM t", folder=folder).stdout.split() == [
        "slice,angle", "0,-60", "1,0.5", "2,61.25"]
    assert run("sql", "--csv", "turned.parquet", "SELECT * FROM turned", folder=folder).stdout.split() == ["slice", "0", "1", "2"]
    told = json.loads(run("info", "--json", "t.parquet", folder=folder).stdout)[0]
    assert told["facts"]["angles"] == "-60 to 61.25 degrees" and told["axes"] == ["angle", "y", "x"], told


@test
def rows_in_another_order_are_put_right_and_wrong_ones_are_named(folder):
    duckdb(folder)
    np.save(os.path.join(folder, "v.npy"), np.arange(5 * 4 * 3, dtype=np.uint16).reshape(5, 4, 3))
    run("convert", "-q", "v.npy", "v.parquet", folder=folder)
    pyarrow("""
t = pq.read_table("v.parquet")
pq.write_table(t.take([3, 1, 4, 0, 2]), "mixed.parquet")
pq.write_table(t.take([3, 1, 4, 0]), "gap.parquet")
pq.write_table(t.take([0, 1, 2, 3, 3, 4]), "twice.parquet")
short = t.set_column(1, "pixels", pa.array([p.as_py()[:-2] for p in t["pixels"]]))
pq.write_table(short, "short.parquet")
for name, text in (("huge", '[1000000000000,1000000,1000000]'), ("negative", '[5,-4,3]'), ("other", '"five"')):
    about = t.schema.metadata[b"fovea.image"].decode().replace("[5,4,3]", text)
    pq.write_table(t.replace_schema_metadata({"fovea.image": about}), name + ".parquet")""", folder)
    run("convert", "-q", "mixed.parquet", "back.npy", folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "back.npy")), np.load(os.path.join(folder, "v.npy")))
    shape = "shape of fovea.image"
    for name, why in (("gap", "only 4 are there"), ("twice", "slice 3 is there twice"), ("huge", shape), ("negative", shape),
                      ("other", shape), ("short", "has 22 bytes of pixels, not 24")):
        done = run("convert", "-q", name + ".parquet", "bad.npy", folder=folder, code=None)
        assert done.returncode and name + ".parquet" in done.stderr and why in done.stderr, (name, done.stderr)


@test
def without_the_library_a_message_says_how_to_get_it(folder):
    pathlib.Path(folder, "a.csv").write_text("a\n1\n")
    nowhere = {"FOVEA_DUCKDB": os.path.join(folder, "nowhere.so")}
    done = run("convert", "-q", "a.csv", "a.parquet", folder=folder, code=None, environment=nowhere)
    assert done.returncode and "make duckdb" in done.stderr and not os.path.exists(os.path.join(folder, "a.parquet")), done.stderr


def make_parts(folder, name, *texts):
    """A folder as Spark leaves it, from the texts of CSV files."""
    os.makedirs(f"{folder}/{name}", exist_ok=True)
    for i, text in enumerate(texts):
        pathlib.Path(folder, "part.csv").write_text(text)
        run("convert", "-q", "--overwrite", "part.csv", f"{name}/part-{i:05}-c000.snappy.parquet", folder=folder)
    for left in ("_SUCCESS", ".part-00000-c000.snappy.parquet.crc"):
        pathlib.Path(folder, name, left).write_bytes(b"")


@test
def the_part_files_of_a_folder_are_one_table(folder):
    duckdb(folder)
    make_parts(folder, "cells.parquet", "cell,size\n1,2.5\n2,3.5\n", "cell,size\n3,4.5\n", "cell,size\n4,0.5\n5,6\n")
    asked = run("sql", "--csv", "cells.parquet", "SELECT count(*), sum(size) FROM cells", folder=folder).stdout.split()[1]
    assert [float(number) for number in asked.split(",")] == [5, 17]
    run("run", "-q", "-e", 'filter(read("cells.parquet"), "size > 3") |> write("large.csv")', folder=folder)
    assert pathlib.Path(folder, "large.csv").read_text().split() == ["cell,size", "2,3.5", "3,4.5", "5,6"]
    told = run("info", "cells.parquet", folder=folder).stdout
    assert "5 rows" in told, told
    make_parts(folder, "days.parquet/day=3", "cell\n1\n")
    make_parts(folder, "days.parquet/day=4", "cell\n2\n")
    assert run("sql", "--csv", "days.parquet", "SELECT * FROM days", folder=folder).stdout.split() == ["cell,day", "1,3", "2,4"]


@test
def the_part_files_of_a_folder_are_one_image(folder):
    duckdb(folder)
    run("run", "-q", "-e", 'phantom("foam", [9, 20, 30]) |> write("v.npy")', folder=folder)
    run("convert", "-q", "v.npy", "v.parquet", folder=folder)
    os.makedirs(f"{folder}/parts.parquet")
    pyarrow("""t = pq.read_table("v.parquet")
for i in range(3): pq.write_table(t.slice(3 * i, 3), f"parts.parquet/part-0000{i}.parquet")""", folder)
    run("convert", "-q", "parts.parquet", "back.npy", folder=folder)
    assert pathlib.Path(folder, "back.npy").read_bytes() == pathlib.Path(folder, "v.npy").read_bytes()


@test
def a_folder_with_a_damaged_part_or_without_parts_is_refused_by_name(folder):
    duckdb(folder)
    make_parts(folder, "t.parquet", "a\n1\n", "a\n2\n")
    part = pathlib.Path(folder, "t.parquet", "part-00001-c000.snappy.parquet")
    part.write_bytes(part.read_bytes()[:50])
    said = run("sql", "t.parquet", "SELECT * FROM t", folder=folder, code=2).stderr
    assert part.name in said, said
    os.makedirs(f"{folder}/none.parquet")
    for command in (("info", "none.parquet"), ("sql", "none.parquet", "SELECT 1")):
        assert "without part files" in run(*command, folder=folder, code=2).stderr


main()
