"""The page about files says what the formats say about themselves."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, main, test


@test
def the_tables_of_formats_are_those_that_the_formats_describe(folder):
    made = subprocess.run([sys.executable, str(ROOT / "scripts" / "files_page.py"), "--print"], stdout=subprocess.PIPE, text=True,
                          check=True, cwd=folder, env={"FOVEA": FOVEA}).stdout
    assert made == (ROOT / "docs" / "files.md").read_text(), "docs/files.md is out of date: run scripts/files_page.py"


main()
