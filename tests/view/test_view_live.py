"""Values of a pipeline in `fovea view` are those of a run, whatever part of them is seen, and nothing is written."""
import os
import pathlib
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test, wait_for
from view_client import View

TEXT = """param sigma = 2
param level = 100
image = read("a.zarr")   # kept in pieces
smooth = gaussian(image, sigma)
mask = smooth > level; write(mask, "mask.tif")
cells = label(mask)
max(smooth)
"""


def pipeline(folder, text=TEXT):
    array = numpy.random.default_rng(5).integers(0, 255, (40, 90, 120), dtype=numpy.uint8)
    numpy.save(pathlib.Path(folder) / "a.npy", array)
    run("run", "-q", "-e", 'write(read("a.npy"), "a.zarr", chunk = [16, 32, 32])', folder=folder)
    (pathlib.Path(folder) / "p.fov").write_text(text)
    return array


def computed(folder, sigma, level):
    run("run", "-q", "-e", f'a = gaussian(read("a.npy"), {sigma})\nwrite(a, "s.npy")\nwrite(a > {level}, "m.npy")\n'
        f'write(label(a > {level}), "l.npy")', "--overwrite", folder=folder)
    return [numpy.load(pathlib.Path(folder) / f"{name}.npy") for name in "sml"]


@test
def what_is_seen_is_what_a_run_computes(folder):
    array = pipeline(folder)
    before = set(os.listdir(folder))
    with View("p.fov", "--value", "mask", folder=folder) as view:
        image = view.json("/api/session")["images"][0]
        assert image["values"] == ["image", "smooth", "mask", "cells"] and image["value"] == "mask" and image["dtype"] == "bool"
        assert [(p["name"], p["value"]) for p in image["parameters"]] == [("sigma", 2), ("level", 100)]
        assert set(os.listdir(folder)) == before, "something was written"
        for sigma, level in ((2, 100), (1.5, 127), (4, 120)):
            smooth, mask, cells = computed(folder, sigma, level)
            fields = {"p.sigma": sigma, "p.level": level}
            for place, axis in enumerate("zyx"):
                index = array.shape[place] // 3
                for value, whole in (("smooth", smooth), ("mask", mask.view(numpy.uint8)), ("cells", cells), ("image", array)):
                    got = view.plane(value=value, axis=axis, index=index, **fields)
                    assert numpy.array_equal(got, numpy.take(whole, index, place)), (value, axis, sigma)
            part = view.plane(value="smooth", index=7, y=11, x=13, h=20, w=30, **fields)
            assert numpy.array_equal(part, smooth[7, 11:31, 13:43])
            assert numpy.isclose(view.json("/api/value", value="smooth", z=3, y=4, x=5, **fields)["value"], smooth[3, 4, 5])
        told = view.json("/api/statistics", value="smooth")
        assert told["from"] == "the middle of the image" and told["min"] < told["low"] < told["high"] < told["max"]
        assert view.json("/api/image", value="cells")["dtype"] == "int32"
    assert not (pathlib.Path(folder) / "mask.tif").exists()


@test
def a_text_that_changes_is_read_anew(folder):
    pipeline(folder, "a = read(\"a.npy\")\nb = a + 1\n")
    with View("p.fov", folder=folder) as view:
        first = view.plane(index=3)
        (pathlib.Path(folder) / "p.fov").write_text("param k = 5\na = read(\"a.npy\")\nb = a + k\n")
        assert numpy.array_equal(view.plane(index=3), first + 4)
        assert numpy.array_equal(view.plane(index=3, **{"p.k": 7}), first + 6)
        (pathlib.Path(folder) / "p.fov").write_text("a = read(\"a.npy\")\nb = nothing(a)\n")
        assert "nothing" in view.json("/api/plane", status=400, index=3)["error"]
        assert "nothing" in view.json("/api/session")["images"][0]["error"]


@test
def what_cannot_be_shown_is_said(folder):
    pipeline(folder)
    assert "did you mean mask" in run("view", "p.fov", "--value", "mast", folder=folder, code=2).stderr
    for text, word in (("a = 3", "gives no single image a name"), ("a = read(\"none.tif\")", "none.tif"), ("a = (", "p.fov:1")):
        (pathlib.Path(folder) / "p.fov").write_text(text)
        said = run("view", "p.fov", folder=folder, code=2).stderr
        assert word in said, said
    (pathlib.Path(folder) / "p.fov").write_text(TEXT)
    with View("p.fov", folder=folder) as view:
        for fields, word in (({"p.sigma": "2)+read(\"/etc/passwd\""}, "no number"), ({"p.nothing": 1}, "no such parameter"),
                             ({"p.sigma": -1}, "sigma = -1"), ({"value": "max(image)"}, "no image called"),
                             ({"p.sigma": "nan"}, "no number")):
            assert word in view.json("/api/plane", status=400, **fields)["error"], fields


@test
def what_nobody_waits_for_is_not_computed_to_its_end(folder):
    text = 'param k = 1\na = phantom("foam", [500, 500, 500], seed = 3)\nb = label(median(a + k, 21) > 90)\n'
    pipeline(folder, text)

    def processor(view):
        fields = pathlib.Path(f"/proc/{view.process.pid}/stat").read_text().split()
        return int(fields[13]) + int(fields[14])

    with View("p.fov", folder=folder) as view:
        for k in range(3):
            connection = view.open()
            connection.sendall(view.request(f"GET /api/plane?value=b&index=3&p.k={k} HTTP/1.1"))
            wait_for("the work to begin", lambda before=processor(view): processor(view) > before + 5)
            connection.close()

        def at_rest():
            before = processor(view)
            time.sleep(0.5)
            return processor(view) == before

        wait_for("the end of the work", at_rest)
        used = processor(view) / os.sysconf("SC_CLK_TCK")
        assert used < 60, f"{used} s of the processor: all of it would be many minutes"
        assert view.plane(value="a", index=3).shape == (500, 500)


if __name__ == "__main__":
    main()
