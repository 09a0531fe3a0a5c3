#!/usr/bin/python3
"""A folder of part files, as Spark and Dask write them, is one table: for read, sql and info."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test  # noqa: E402


def put(folder, **files):
    """Writes files; __ in a name stands for a dot."""
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        pathlib.Path(folder, name.replace("__", ".")).write_text(text)


def rows(folder, query="SELECT * FROM cells", name="cells"):
    return json.loads(run("sql", "--json", name, query, folder=folder).stdout)


@test
def parts_are_read_in_order_of_name_and_hidden_and_empty_files_are_passed_over(folder):
    put(f"{folder}/cells", b__csv="id,size\n3,1.5\n", a__csv="id,size\n1,2.5\n2,0.25\n", c__csv="id,size\n", d__csv="",
        _SUCCESS="", **{"__a__csv__crc": "not a table"})
    assert rows(folder) == [{"id": 1, "size": 2.5}, {"id": 2, "size": 0.25}, {"id": 3, "size": 1.5}]
    run("run", "-q", "-e", 'write(read("cells/"), "all.csv")', folder=folder)
    assert pathlib.Path(folder, "all.csv").read_text() == "id,size\n1,2.5\n2,0.25\n3,1.5\n"
    told = json.loads(run("info", "--json", "cells", folder=folder).stdout)[0]["tables"][0]
    assert told["rows"] == 3 and told["facts"]["parts"] == "4 files", told


@test
def columns_are_put_together_by_name_and_kind(folder):
    put(f"{folder}/cells", **{"part-0__json": '{"id": 1, "name": "a"}\n', "part-1__json": '{"size": 2, "id": 2.5}\n',
                              "part-2__jsonl": '{"id": 3, "size": 4, "name": "c"}\n'})
    assert rows(folder) == [{"id": 1, "name": "a", "size": None}, {"id": 2.5, "name": None, "size": 2},
                            {"id": 3, "name": "c", "size": 4}], rows(folder)


@test
def text_beside_numbers_is_refused_with_column_and_file(folder):
    put(f"{folder}/cells", a__csv="id\n1\n", b__csv="id\nx\n")
    said = run("sql", "cells", "SELECT * FROM cells", folder=folder, code=None)
    assert said.returncode and "cells/b.csv" in said.stderr and "column id holds text" in said.stderr, said.stderr


@test
def a_folder_with_something_else_in_it_is_no_table(folder):
    put(f"{folder}/cells", a__csv="id\n1\n", b__txt="words")
    assert run("sql", "cells", "SELECT * FROM cells", folder=folder, code=None).returncode
    os.remove(f"{folder}/cells/b.txt")
    os.makedirs(f"{folder}/cells/more")
    assert run("sql", "cells", "SELECT * FROM cells", folder=folder, code=None).returncode
    put(f"{folder}/damaged", a__csv="id\n1\n", b__jsonl='{"id": ')
    said = run("run", "-q", "-e", 'write(read("damaged"), "all.csv")', folder=folder, code=None)
    assert said.returncode and "damaged/b.jsonl" in said.stderr, said.stderr


@test
def a_changed_part_is_read_anew(folder):
    put(f"{folder}/cells", a__csv="id\n1\n", b__csv="id\n2\n")
    text = 'write(sort(read("cells"), "-id"), "all.csv")'
    run("run", "-e", text, folder=folder)
    assert "up to date" in run("run", "-e", text, folder=folder).stderr
    pathlib.Path(folder, "cells", "b.csv").write_text("id\n7\n")
    run("run", "-e", text, folder=folder)
    assert pathlib.Path(folder, "all.csv").read_text() == "id\n7\n1\n"


main()
