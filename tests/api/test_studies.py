"""fovea scale on real pipelines: rows, tables, pictures, mistakes."""
import csv
import json
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test

RNG = np.random.default_rng(8)


def scans(folder, count):
    for index in range(count):
        np.save(os.path.join(folder, f"scan{index:02}.npy"), RNG.random((16, 32, 32), dtype=np.float32))
    pathlib.Path(folder, "p.fov").write_text("""
a = read("scan*.npy")
m = label(gaussian(a, 1) > otsu(a))
write(m, "out/{stem}.npy")
write(measure(m, a), "all.csv")
""")


def scale(*arguments, folder, **options):
    return json.loads(run("scale", "--json", "-q", "--repeats", "2", *arguments, folder=folder, **options).stdout)


def table(*parts):
    with open(os.path.join(*parts), newline="") as file:
        return list(csv.DictReader(file))


def check_rows(found):
    for row in found["rows"]:
        one = next(r for r in found["rows"] if r["study"] == row["study"] and r["workers"] == 1)
        ratio = one["seconds"] / row["seconds"]
        efficiency = ratio if row["study"] == "weak" else ratio / row["workers"]
        assert abs(row["efficiency"] - efficiency) < 1e-6, row
        assert abs(row["speedup"] - efficiency * row["workers"]) < 1e-6, row
        assert row["least"] <= row["seconds"] <= row["most"], row


@test
def a_study_of_a_collection_counts_every_task_and_leaves_only_its_folder(folder):
    scans(folder, 8)
    before = set(os.listdir(folder))
    found = scale("p.fov", "--workers", "2,4", "--strong", "--weak", folder=folder)
    check_rows(found)
    rows = {(r["study"], r["workers"]): r for r in found["rows"]}
    assert set(rows) == {(s, n) for s in ("strong", "weak") for n in (1, 2, 4)}
    assert [rows["weak", n]["size"] for n in (1, 2, 4)] == [2, 4, 8]
    each = rows["strong", 1]["tasks"] / 8
    for (study, workers), row in rows.items():  # nothing came from a cache, nothing ran twice
        assert row["tasks"] == each * row["size"], row
    assert set(os.listdir(folder)) - before == {".fovea", "scaling"}
    assert not os.listdir(os.path.join(folder, ".fovea"))


@test
def tables_and_pictures_are_well_formed(folder):
    scans(folder, 4)
    found = scale("p.fov", "--workers", "1,2", "-o", "study", folder=folder)
    rows = table(folder, "study", "scaling.csv")
    assert [float(r["seconds"]) for r in rows] == [round(r["seconds"], 6) for r in found["rows"]]
    stages = table(folder, "study", "stages.csv")
    lines = table(folder, "study", "timeline.csv")
    assert len(lines) == sum(r["tasks"] for r in found["rows"])
    for index, row in enumerate(found["rows"]):
        mine = [s for s in stages if s["workers"] == str(row["workers"])]
        assert len(mine) == len(row["stages"])
        total = sum(float(s["seconds"]) for s in mine)
        assert abs(total - row["read"] - row["compute"] - row["write"]) < 1e-4
    for line in lines:
        assert float(line["start"]) >= 0 and float(line["seconds"]) >= 0
    for name, words in (("scaling", ["Time to completion", "Speed-up", "Efficiency", "workers", "seconds", "ideal", "compute"]),
                        ("timeline", ["seconds since the first task", "stage 1"])):
        root = xml.parse(os.path.join(folder, "study", name + ".svg")).getroot()
        width, height = (float(root.get(side).replace("pt", "")) for side in ("width", "height"))
        texts = [t for t in root.iter("{http://www.w3.org/2000/svg}text")]
        for word in words:
            assert any(t.text == word for t in texts), (name, word)
        for text in texts:  # every label lies inside; those that stand upright are moved there
            place = re.match(r"translate\((\S+) (\S+)\)", text.get("transform") or "")
            x, y = place.groups() if place else (text.get("x"), text.get("y"))
            assert 0 <= float(x) <= width and 0 <= float(y) <= height, text.text
        for shape in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert float(shape.get("y") or 0) >= 0 and shape.get("fill"), name
        np_png = run("info", "--json", f"study/{name}.png", folder=folder)
        [facts] = json.loads(np_png.stdout)
        assert facts["shape"] == [2 * height, 2 * width, 3], facts
        run("run", "-q", "-e", f'read("study/{name}.png") |> write("{name}.npy")', folder=folder)
        pixels = np.load(os.path.join(folder, name + ".npy"))
        ink = (pixels < 128).any(axis=2).mean()
        assert 0.001 < ink < 0.5, ink  # drawn upon, not filled


@test
def a_single_image_scales_weakly_by_slabs(folder):
    pathlib.Path(folder, "p.fov").write_text('phantom("foam", [64, 64, 64]) |> gaussian(2) |> write("a.npy")\n')
    found = scale("p.fov", "--workers", "1,2", "--weak", "--chunk", "8x64x64", folder=folder)
    check_rows(found)
    assert [r["size"] for r in found["rows"]] == [32, 64] and "serial_fraction" not in found
    assert 0 < found["rows"][0]["tasks"] < found["rows"][1]["tasks"]


@test
def processes_can_be_studied_too(folder):
    scans(folder, 4)
    found = scale("p.fov", "--workers", "1,2", "--engine", "processes", folder=folder)
    check_rows(found)
    assert found["rows"][0]["tasks"] == found["rows"][1]["tasks"]


@test
def mistakes_are_explained(folder):
    scans(folder, 3)
    def refused(*arguments, code=2):
        return run("scale", *arguments, folder=folder, code=code).stderr
    assert "give a pipeline" in refused()
    assert "--workers 1;2: expected" in refused("p.fov", "--workers", "1;2")
    assert "--workers 0: expected" in refused("p.fov", "--workers", "0")
    assert "--items 9: there are 3 items" in refused("p.fov", "--items", "9")
    assert "4 workers need at least 4 items" in refused("p.fov", "--workers", "1,4", "--weak")
    assert "there is no such engine" in refused("p.fov", "--engine", "steam", "--repeats", "1")
    assert "cannot start nosuchlauncher" in refused("p.fov", "--launcher", "nosuchlauncher", "--repeats", "1")
    assert "did you mean --repeats" in refused("p.fov", "--repeat", "1")
    pathlib.Path(folder, "scan01.npy").write_bytes(b"no array")
    assert "1 item failed" in refused("p.fov", "--repeats", "1", "-q")
    assert not os.listdir(os.path.join(folder, ".fovea"))


@test
def a_folder_that_cannot_be_made_is_an_error_after_the_table(folder):
    scans(folder, 2)
    done = run("scale", "p.fov", "--workers", "1", "--repeats", "1", "-q", "-o", "p.fov/place", folder=folder, code=1)
    assert "strong" in done.stdout and "cannot make folder p.fov/place" in done.stderr, done.stderr


main()
