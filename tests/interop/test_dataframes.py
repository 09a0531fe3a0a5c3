#!/usr/bin/python3
"""Tables and images as rows in pandas, Polars, Dask, Spark and R: the snippets of the page, whose numbers are those of the
images."""
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402
from interop import call, environment, make_page_files, program, python, snippet  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip dataframes: {missing}")
    sys.exit(0)


def make(folder, *names):
    """The files of the page; those that are Parquet too, if such are wanted."""
    make_page_files(folder)
    for name, source in (("cells.parquet", "cells.csv"), ("scan.parquet", "scan.tif")):
        if name in names:
            done = run("convert", "-q", source, name, folder=folder, code=None)
            if done.returncode and "make duckdb" in done.stderr:
                raise Skip("no libduckdb.so: scripts/duckdb.sh could not fetch it")
            assert done.returncode == 0, done.stderr
    with open(f"{folder}/cells.csv", newline="") as file:
        return list(csv.DictReader(file)), np.load(f"{folder}/original.npy")


@test
def pandas_finds_the_same_table_in_every_format_and_the_image_in_its_rows(folder):
    environment("dataframes", "pandas", "pyarrow")
    table, scan = make(folder, "cells.parquet", "scan.parquet")
    text = """
pandas.testing.assert_frame_equal(by_database, by_column, check_exact=True)
for other in (by_text, by_line):  # pandas reads text to the last digit but one
    pandas.testing.assert_frame_equal(by_database, other, rtol=1e-14)
print(json.dumps([len(by_text), float(by_text["volume"].sum()), about, image.astype(int).sum((1, 2)).tolist()]))
"""
    snippets = snippet("pandas", "python") + snippet("An image as rows", "python")
    rows, volume, about, sums = python("dataframes", snippets + text, folder)
    assert rows == len(table) and abs(volume - sum(float(row["volume"]) for row in table)) < 1e-6
    assert about["shape"] == list(scan.shape) and about["spacing"] == [2, 0.5, 0.25] and about["units"] == ["micrometer"] * 3
    assert sums == scan.astype(int).sum((1, 2)).tolist()


@test
def pyarrow_reads_the_batches_of_a_stream(folder):
    environment("dataframes", "pyarrow")
    table, _ = make(folder)
    text = snippet("Arrow", "python") + 'import json\nby_batch.validate(full=True)\nprint(json.dumps(by_batch.to_pydict()))\n'
    columns = python("dataframes", text, folder)
    assert list(columns) == list(table[0]) and columns["volume"] == [float(row["volume"]) for row in table]


@test
def polars_reads_tables(folder):
    environment("dataframes", "polars")
    table, _ = make(folder, "cells.parquet")
    text = snippet("Polars", "python") + 'import json\nprint(json.dumps(large["label"].to_list()))\n'
    assert python("dataframes", text, folder) == [int(row["label"]) for row in table if int(row["voxels"]) > 100]


@test
def dask_reads_tables_and_the_rows_of_an_image(folder):
    environment("dataframes", "dask", "pyarrow")
    table, scan = make(folder, "cells.parquet", "scan.parquet")
    text = snippet("Dask", "python") + "print(json.dumps([float(mean), sorted(sums.tolist())]))\n"
    mean, sums = python("dataframes", text, folder)
    assert abs(mean - np.mean([float(row["volume"]) for row in table])) < 1e-9
    assert sums == sorted(scan.astype(int).sum((1, 2)).tolist())


@test
def spark_reads_tables_and_the_rows_of_an_image_and_what_it_writes_is_read(folder):
    interpreter = environment("dataframes", "pyspark", "pyarrow") / "python"
    program("java")
    table, scan = make(folder, "cells.parquet", "scan.parquet")
    text = """
text = spark.read.csv("cells.csv", header=True, inferSchema=True)
counts = [table.count(), text.count(), spark.read.json("cells.jsonl").count()]
small = table.filter("voxels <= 100").repartition(2)
small.write.csv("small.csv", header=True)
small.write.json("small.jsonl")
print(json.dumps([counts, table.dtypes, sums]))
"""
    counts, types, sums = python("dataframes", snippet("Spark", "python") + text, folder, PYSPARK_PYTHON=str(interpreter),
                                 SPARK_LOCAL_IP="127.0.0.1")
    assert counts == [len(table)] * 3 and ["volume", "double"] in types and ["label", "bigint"] in types
    assert [sums[str(z)] for z in range(len(scan))] == scan.astype(int).sum((1, 2)).tolist()
    for name, wanted in (("large.parquet", True), ("small.csv", False), ("small.jsonl", False)):
        said = run("sql", "--json", name, f"SELECT label FROM {name.split('.')[0]} ORDER BY label", folder=folder).stdout
        found = [row["label"] for row in json.loads(said)]
        assert found == [int(row["label"]) for row in table if (int(row["voxels"]) > 100) == wanted], (name, found)


@test
def r_reads_tables(folder):
    table, _ = make(folder)
    text = 'stopifnot(all.equal(text, table))\ncat(nrow(table), sum(table$voxels), mean(table$volume), "\\n")\n'
    pathlib.Path(folder, "program.R").write_text(snippet("R", "r") + text)
    rows, voxels, mean = call([program("Rscript"), "program.R"], folder).split()
    assert int(rows) == len(table) and int(voxels) == sum(int(row["voxels"]) for row in table)
    assert abs(float(mean) - np.mean([float(row["volume"]) for row in table])) < 1e-3


main()
