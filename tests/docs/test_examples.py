"""Every example in the help, the README, the docs and the examples folder runs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, main, run, test


@test
def every_operator_has_an_example_that_runs(folder):
    failures = []
    for op in json.loads(run("ops", "--json", folder=folder).stdout)["operators"]:
        example = op.get("example")
        if op["name"] in ("array", "provided"):  # only for programs
            continue
        if not example:
            failures.append(f"{op['name']} has none")
            continue
        sub = pathlib.Path(folder, op["name"])
        sub.mkdir()
        done = run("run", "-q", "--allow-commands", "-e", example, folder=sub, code=None)
        if done.returncode:
            failures.append(f"{op['name']}: {done.stderr.strip()[:300]}")
    assert not failures, "; ".join(failures)


def blocks(path):
    """(language, text) of every fenced block of a Markdown file."""
    return re.findall(r"^```(\w+)\n(.*?)^```", path.read_text(), re.M | re.S)


def check_document(path, folder):
    """Blocks marked `fov` are pipelines, blocks marked `console` are sessions; both run in order in one folder."""
    count = 0
    for index, (language, text) in enumerate(blocks(path)):
        if language == "fov":
            count += 1
            name = re.match(r"# (\S+\.fov)", text)
            file = pathlib.Path(folder, name.group(1) if name else f"block{index}.fov")
            file.write_text(text)
            if not name:
                run("run", "-q", file.name, folder=folder)
        elif language == "console":
            for line in text.splitlines():
                if line.startswith(("$ fovea ", "$ printf ")):
                    count += 1
                    done = subprocess.run(["/bin/sh", "-c", line[2:].replace("fovea", FOVEA, 1)], cwd=folder,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    assert done.returncode == 0, f"{path.name}: {line}: {done.stderr.strip()[-500:]}"
    return count


@test
def every_example_in_the_readme_and_the_docs_runs(folder):
    total = 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        sub = pathlib.Path(folder, path.stem)
        sub.mkdir()
        total += check_document(path, sub)
    assert total >= 10, total


@test
def the_pipelines_in_the_examples_folder_run(folder):
    run("run", "-q", "-e", 'phantom("foam", [40, 160, 160], seed = 1) |> write("foam.tif")', folder=folder)
    run("run", "-q", "-e", 'xray(phantom("shepp-logan", [16, 48, 48]), parallel(range(-73, 73, 2))) * 1000 |> convert("uint16") '
        '|> name_axes("z y x") |> write("tilts.tif")', folder=folder)
    pathlib.Path(folder, "texts").mkdir()
    shutil.copy(ROOT / "docs" / "runs.md", pathlib.Path(folder, "texts", "runs.txt"))
    pipelines = sorted((ROOT / "examples").glob("*.fov"))
    assert pipelines
    for path in pipelines:
        if path.stem in ("tooth", "ptycho_cxi"):  # have tests of their own, where there is the scan
            continue
        shutil.copy(path, folder)
        run("run", "-q", path.name, folder=folder)


def study(name, *arguments, folder):
    script = [str(ROOT / "examples" / "studies" / name), *map(str, arguments)]
    done = subprocess.run(script, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, FOVEA=FOVEA, WORKERS="1,2"))
    assert done.returncode == 0, done.stderr[-500:]
    for file in ("scaling.csv", "scaling.svg", "scaling.png", "timeline.svg"):
        assert pathlib.Path(folder, "scaling", file).stat().st_size > 0
    return done.stdout


@test
def the_study_of_many_small_items_runs_with_few(folder):
    text = study("segment.sh", 12, 64, folder=folder)
    assert len(re.findall(r"^(?:strong|weak) +[12] ", text, re.M)) == 4, text


@test
def the_studies_of_watershed_and_blobs_run_with_few(folder):
    for pipeline, table in (("watershed", "cells.csv"), ("blobs", "blobs.csv")):
        text = study("segment.sh", 6, 64, pipeline, folder=folder)
        assert len(re.findall(r"^(?:strong|weak) +[12] ", text, re.M)) == 4, text
        run("run", "-q", ROOT / "examples" / "studies" / f"{pipeline}.fov", folder=folder)
        items = {line.split(",")[0] for line in pathlib.Path(folder, table).read_text().splitlines()[1:]}
        assert items == {f"{index:05}" for index in range(6)}, items
        shutil.rmtree(pathlib.Path(folder, "scaling"))


@test
def the_denoising_study_runs_with_few(folder):
    text = study("denoise.sh", 4, "24x28x24", folder=folder)
    for way in ("serial", "threads", "processes"):
        for files in (1, 4):
            assert re.search(rf"^{files} files, {way}: [0-9.]+ s$", text, re.M), text
    assert "for Slurm" in text and "Amdahl" in text


main()
