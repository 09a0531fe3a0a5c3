#!/usr/bin/python3
"""Sheets of Excel workbooks as tables: every cell is what openpyxl finds, and files that are damaged or made to do harm are
refused."""
import csv
import datetime
import json
import pathlib
import random
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
from fovea_test import FOVEA, Skip, main, run, test  # noqa: E402


def openpyxl():
    try:
        import openpyxl as module
        return module
    except ImportError:
        raise Skip("no openpyxl; on Debian: apt-get install python3-openpyxl") from None


def save(folder, name="t.xlsx", **sheets):
    book = openpyxl().Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(pathlib.Path(folder, name))


def rows(folder, path="", name="t.xlsx"):
    run("run", "-q", "--overwrite", "-e", f'read("{name}", path = "{path}") |> write("out.csv")', folder=folder)
    with open(pathlib.Path(folder, "out.csv"), newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def written(cell):
    """A value of openpyxl as Fovea writes it."""
    if cell is None:
        return ""
    if isinstance(cell, datetime.datetime):
        return str(cell if cell.time() != datetime.time() else cell.date())
    if isinstance(cell, bool):
        return str(int(cell))
    return str(cell)


@test
def cells_are_what_openpyxl_finds(folder):
    day, noon = datetime.date(2024, 2, 29), datetime.datetime(1999, 12, 31, 12, 0, 1)
    table = [["id", "name", "weight", "day", "time", "flag", "clock", "none"],
             [1, "a & b <c> \"q\"", 0.1, day, noon, True, datetime.time(6, 30), None],
             [-2, "µ, 漢字\nnext", None, None, datetime.datetime(1900, 1, 31), False, datetime.time(23, 59, 59), None],
             [3, "007", 1.5e-300, datetime.date(9999, 12, 31), None, True, None, None]]
    save(folder, Data=table)
    found = rows(folder)
    sheet = openpyxl().load_workbook(pathlib.Path(folder, "t.xlsx")).active
    assert found == [[written(cell) for cell in row] for row in sheet.iter_rows(values_only=True)], found
    kinds = [c["kind"] for c in json.loads(run("info", "--json", "t.xlsx", folder=folder).stdout)[0]["tables"][0]["columns"]]
    assert kinds == ["integer", "text", "real", "text", "text", "integer", "text", "real"], kinds


@test
def sheets_have_names_and_may_begin_anywhere(folder):
    save(folder, First=[["x"], [1]], Second=[[], [None, "a", None, "b"], [], [None, 5, 6, 7], []], Notes=[["a"], ["b", "c"]])
    assert rows(folder) == [["x"], ["1"]]
    assert rows(folder, "Second") == [["a", "column_2", "b"], ["5", "6", "7"]]
    assert "cell B2" in run("run", "-q", "-e", 'read("t.xlsx", path = "Notes")', folder=folder, code=2).stderr
    assert "it has First, Second, Notes" in run("run", "-q", "-e", 'read("t.xlsx", path = "no")', folder=folder, code=2).stderr
    assert "read and not written" in run("run", "-q", "-e", 'read("t.xlsx") |> write("u.xlsx")', folder=folder, code=2).stderr
    info = run("info", "t.xlsx", folder=folder).stdout
    assert "First, 1 row" in info and "Notes cannot be read" in info, info
    assert run("sql", "--csv", "t.xlsx", "SELECT t.x, a FROM t JOIN Second", folder=folder).stdout == "x,a\n1,5\n"


@test
def many_rows_stay_within_the_memory(folder):
    generator = random.Random(1)
    strings = "".join(f"<si><t>text {i}</t></si>" for i in range(500))
    body = "".join(f'<row><c t="s"><v>{i % 500}</v></c><c><v>{generator.random()}</v></c></row>' for i in range(60000))
    workbook(folder, "t.xlsx", f'<row><c t="str"><v>s</v></c><c t="str"><v>n</v></c></row>{body}', strings)
    out = run("run", "-q", "--memory", "64M", "-e", 'group(read("t.xlsx"), "s", "count()") |> top(2, by = "s")', folder=folder)
    assert out.stdout.split()[:6] == ["s", "count", "text", "0", "120", "text"], out.stdout


def workbook(folder, name, cells, strings="", method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(pathlib.Path(folder, name), "w", method) as archive:
        archive.writestr("xl/_rels/workbook.xml.rels",
                         '<Relationships><Relationship Id="r1" Target="/xl/worksheets/sheet1.xml"/></Relationships>')
        archive.writestr("xl/workbook.xml", '<x:workbook><x:sheets><x:sheet name="S" r:id="r1"/></x:sheets></x:workbook>')
        archive.writestr("xl/sharedStrings.xml", f"<sst>{strings}</sst>")
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")


def refused(folder, name, said):
    result = run("run", "-q", "-e", f'read("{name}")', folder=folder, code=2)
    assert said in result.stderr, (said, result.stderr)


@test
def harm_is_refused(folder):
    head = '<row><c t="str"><v>a</v></c></row>'
    workbook(folder, "index.xlsx", head + '<row><c t="s"><v>7</v></c></row>')
    refused(folder, "index.xlsx", "text number 7")
    workbook(folder, "far.xlsx", head + '<row><c r="ZZZZ2"><v>7</v></c></row>')
    refused(folder, "far.xlsx", "a cell of no column")
    workbook(folder, "open.xlsx", head + "<row><c><v>7</v>")
    refused(folder, "open.xlsx", "ends within row 2")
    workbook(folder, "entity.xlsx", '<!DOCTYPE x [<!ENTITY e "' + 999 * "x" + '">]>' + head +
             '<row><c t="str"><v>&e;&e;&#65;</v></c></row>')
    assert rows(folder, name="entity.xlsx")[1] == ["&e;&e;A"]  # never looked up
    workbook(folder, "long.xlsx", head + '<row><c t="str"><v>' + (8 << 20) * "x" + "</v></c></row>")
    refused(folder, "long.xlsx", "a text of more than 4 MB")
    with zipfile.ZipFile(pathlib.Path(folder, "bomb.xlsx"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/_rels/workbook.xml.rels", '<Relationship Id="r" Target="worksheets/s.xml"/>')
        archive.writestr("xl/workbook.xml", '<sheet name="S" r:id="r"/>')
        with archive.open("xl/worksheets/s.xml", "w") as file:
            file.write(b"<sheetData>" + head.encode())
            for _ in range(300):
                file.write((1 << 20) // 6 * b"<row/>")
    refused(folder, "bomb.xlsx", "more than 250 times its size")
    pathlib.Path(folder, "text.xlsx").write_text("a,b\n1,2\n")
    refused(folder, "text.xlsx", "not an XLSX workbook")


@test
def damaged_files_end_no_process(folder):
    import fuzz
    generator = random.Random(2)
    for seed in fuzz.xlsx_seeds():
        for number in range(60):
            changed = bytearray(seed[:generator.randrange(len(seed))] if number % 3 == 0 else seed)
            for _ in range(generator.randrange(8)):
                changed[generator.randrange(len(changed))] = generator.randrange(256) if changed else 0
            pathlib.Path(folder, "a.xlsx").write_bytes(bytes(changed))
            ended = subprocess.run([FOVEA, "info", "a.xlsx"], cwd=folder, capture_output=True, check=False)
            assert ended.returncode in (0, 1, 2), (number, ended)


main()
