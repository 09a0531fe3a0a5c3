"""fovea estimate on real pipelines: what it says, that it leaves nothing behind, and mistakes."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test

RNG = np.random.default_rng(5)


def scans(folder, count, shape=(32, 48, 48)):
    for index in range(count):
        np.save(os.path.join(folder, f"scan{index:02}.npy"), RNG.random(shape, dtype=np.float32))
    pathlib.Path(folder, "p.fov").write_text('read("scan*.npy") |> gaussian(1) |> write("out/{stem}.npy")\n')


def estimate(*arguments, folder, **options):
    return json.loads(run("estimate", "--json", "-q", "--seconds", "1", *arguments, folder=folder, **options).stdout)


@test
def a_collection_is_estimated_and_nothing_is_left_behind(folder):
    scans(folder, 6)
    before = sorted(os.listdir(folder))
    found = estimate("p.fov", "--workers", "4", folder=folder)
    assert found["items"] == found["items_present"] == 6 and 2 <= found["items_measured"] <= 6, found
    assert [p["workers"] for p in found["predictions"]] == [1, 2, 4]
    for point in found["predictions"]:
        assert 0 < point["seconds_low"] <= point["seconds"] <= point["seconds_high"]
        assert 0 < point["memory"] <= point["memory_high"]
    assert found["bytes"] == sum(p.stat().st_size for p in pathlib.Path(folder).glob("scan*.npy"))
    assert {cost["name"] for cost in found["work"]} == {"read", "compute", "write", "merge"}
    largest = max(found["work"], key=lambda cost: cost["seconds"])
    assert found["dominates"] == largest["name"]
    assert [r["style"] for r in found["requests"]] == ["serial", "threaded", "distributed", "array"]
    assert sorted(set(os.listdir(folder)) - {".fovea"}) == before
    assert not os.listdir(os.path.join(folder, ".fovea"))


@test
def more_items_than_there_are_take_proportionally_longer(folder):
    scans(folder, 4)
    found = estimate("p.fov", "--items", "40000", "--workers", "64", folder=folder)
    assert found["items"] == 40000 and found["items_present"] == 4
    assert found["most_workers"] >= 40000
    first = found["predictions"][0]
    work = sum(cost["seconds"] for cost in found["work"])
    assert abs(first["seconds"] - found["start"] - found["factor"] * work) <= 1e-6 * first["seconds"]
    assert found["bytes"] == 40000 * os.path.getsize(os.path.join(folder, "scan00.npy"))


@test
def sizes_of_items_are_taken_into_account(folder):
    for index in range(12):
        shape = (8 if index % 2 else 64, 64, 64)
        np.save(os.path.join(folder, f"scan{index:02}.npy"), RNG.random(shape, dtype=np.float32))
    pathlib.Path(folder, "p.fov").write_text('read("scan*.npy") |> gaussian(3) |> write("out/{stem}.npy")\n')
    found = estimate("p.fov", folder=folder)
    compute = next(cost for cost in found["work"] if cost["name"] == "compute")
    assert compute["byte_seconds"] > 0


@test
def a_single_image_is_measured_on_slabs(folder):
    pathlib.Path(folder, "p.fov").write_text("""
a = phantom("foam", [96, 64, 64], seed = 1)
m = label(gaussian(a, 2) < 60)
write(m, "m.zarr")
write(measure(m, a), "m.csv")
""")
    done = run("estimate", "p.fov", "--seconds", "1", folder=folder)
    assert "along z" in done.stderr and "1 item" in done.stdout, (done.stdout, done.stderr)
    assert sorted(os.listdir(folder)) == [".fovea", "p.fov"]


@test
def a_pipeline_that_does_not_work_on_a_slab_is_run_whole(folder):
    pathlib.Path(folder, "p.fov").write_text('a = phantom("foam", [64, 32, 32])\nwrite(a[60], "slice.npy")\n')
    found = estimate("p.fov", folder=folder)
    assert found["predictions"][0]["seconds"] > 0


@test
def a_sweep_and_its_table_are_estimated(folder):
    scans(folder, 3, (16, 32, 32))
    pathlib.Path(folder, "p.fov").write_text("""
param s = 1
write(measure(label(gaussian(read("scan*.npy"), s) > 0.5)), "t.db", table = "t")
""")
    found = estimate("p.fov", "--set", "s=1,2", folder=folder)
    assert found["predictions"][0]["seconds"] > 0 and not os.path.exists(os.path.join(folder, "t.db"))


@test
def mistakes_are_explained(folder):
    scans(folder, 2)
    def refused(*arguments):
        return run("estimate", *arguments, folder=folder, code=2).stderr
    assert "give a pipeline" in refused()
    assert "cannot" in refused("nosuch.fov")
    assert "did you mean gaussian" in refused("-e", 'gausian(read("scan00.npy"), 1) |> write("a.npy")')
    assert "no file matches" in refused("-e", 'read("none*.npy") |> write("{stem}.png")')
    assert "--items 5: the pipeline reads no collection" in refused("-e", 'read("scan00.npy") |> write("a.npy")', "--items", "5")
    assert "--items 0" in refused("p.fov", "--items", "0")
    assert "--workers many" in refused("p.fov", "--workers", "many")
    assert "did you mean --items" in refused("p.fov", "--item", "3")
    assert "no `param t" in refused("p.fov", "--set", "t=3")


@test
def broken_items_do_not_stop_an_estimate_but_only_broken_ones_do(folder):
    scans(folder, 5)
    pathlib.Path(folder, "scan01.npy").write_bytes(b"not an array")
    assert estimate("p.fov", folder=folder)["items"] == 5
    for path in pathlib.Path(folder).glob("scan*.npy"):
        path.write_bytes(b"not an array")
    done = run("estimate", "p.fov", folder=folder, code=2)
    assert done.stderr.strip(), done
    assert not os.listdir(os.path.join(folder, ".fovea"))


main()
