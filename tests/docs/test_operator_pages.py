"""The operator reference says and shows what the operators of this build say and do."""
import csv
import io
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, main, run, test

OPERATORS = {op["name"]: op for op in json.loads(run("ops", "--json", folder="/").stdout)["operators"]}


@test
def the_pages_and_pictures_are_those_that_the_operators_make(folder):
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "operator_pages.py"), "--check"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=folder, env={"FOVEA": FOVEA})
    assert not done.returncode, f"run `make docs`: {(done.stdout + done.stderr)[-800:]}"


@test
def the_pictures_of_plots_are_those_that_the_page_makes(folder):
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "plot_pictures.py"), "--check"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=folder, env={"FOVEA": FOVEA})
    assert not done.returncode, f"run `make docs`: {(done.stdout + done.stderr)[-800:]}"


@test
def links_of_the_pages_lead_somewhere(folder):
    pages = ROOT / "docs" / "operators"
    for page in pages.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (pages / link).exists(), f"{page.name}: {link}"


@test
def operators_that_are_related_are_there(folder):
    for op in OPERATORS.values():
        for other in op.get("see", []):
            assert other in OPERATORS and other != op["name"], f"{op['name']}: see {other}"


def matches(column, documented):
    """Whether a column of a table is one that the descriptor describes; AXIS and N stand for names and numbers."""
    if documented.startswith("<"):
        return True
    return re.fullmatch(documented.replace("AXIS", "[a-z]+").replace("_N", r"_\d+"), column)


def columns_of(text, folder):
    text = re.sub(r'\s*\|> write\("[^"]*"\)$', "", text)
    table = text.strip().splitlines()[-1]
    run("run", "-q", "--allow-commands", "-e", text.strip().rsplit("\n", 1)[0] + "\nwrite(" + table + ', "table.csv")',
        "--overwrite", folder=folder)
    return next(csv.reader(io.StringIO(pathlib.Path(folder, "table.csv").read_text())))


@test
def every_operator_that_gives_a_table_describes_its_columns(folder):
    for op in OPERATORS.values():
        assert (op["result"] == "table") == ("columns" in op), op["name"]
        if "columns" not in op or op["name"] in ("read_table", "words", "stitch_positions", "list_tiles", "measure"):
            # they need files; measure: below, with all
            continue
        for column in columns_of(op["example"], folder):
            assert any(matches(column, c["name"]) for c in op["columns"]), f"{op['name']}: {column} is not described"


@test
def measure_describes_all_of_its_columns_and_no_others(folder):
    described, met = OPERATORS["measure"]["columns"], set()
    for shape in ("[60, 80]", "[20, 30, 40]"):
        image = f'a = phantom("cells", {shape})\n'
        every = columns_of(image + 'measure(label(a > 100), a, properties = "all median percentile_95")', folder)
        usual = columns_of(image + "measure(label(a > 100), a)", folder)
        for column in every:
            found = [c for c in described if matches(column, c["name"])]
            assert len(found) == 1, f"{column}: {[c['name'] for c in found]}"
            assert (column in usual) == (found[0].get("usual", True)), column
            met.add(found[0]["name"])
        for c in described:
            if "property" in c and any(matches(column, c["name"]) for column in every):
                word = c["property"].replace("_N", "_95")
                asked = columns_of(image + f'measure(label(a > 100), a, properties = "{word}")', folder)
                assert any(matches(column, c["name"]) for column in asked), c["name"]
    assert met == {c["name"] for c in described}, {c["name"] for c in described} - met


main()
