"""Values of items and values of the run: what users do with a folder of images and something beside it."""
import csv
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test, wait_for

LAUNCH = {"mpich": ["mpiexec.mpich"], "openmpi": ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"]}


def scans(folder, count=4, shape=(40, 60), name="scans", seed=5):
    """Blocks of 150 on 20, as many as the number of the image: image 0 has none."""
    rng = np.random.default_rng(seed)
    images = {}
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    for k in range(count):
        image = rng.integers(10, 30, shape).astype(np.uint8)
        for b in range(k):
            image[4:10, 4 + 12 * b:10 + 12 * b] = 150 + k
        stem = f"s{k}"
        np.save(os.path.join(folder, name, stem + ".npy"), image)
        images[stem] = image
    return images


def rows(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def load(folder, name):
    return np.load(os.path.join(folder, name))


def put(folder, name, text):
    pathlib.Path(folder, name).write_text(text, encoding="utf-8")


def results(folder):
    """Every file that is a result, with its bytes."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in (".fovea", "p.fov", "animals.csv", "scans", "flats"):
            found[str(relative)] = path.read_bytes()
    return found


# ---- images

@test
def a_single_image_is_written_once_beside_a_folder(folder):
    images = scans(folder)
    np.save(os.path.join(folder, "reference.npy"), np.arange(12, dtype=np.uint8).reshape(3, 4))
    done = run("run", "-e", 'c = read("scans/*.npy")\nr = read("reference.npy")\nwrite(c * 2, "out/{stem}.npy")\n'
               'write(r + 1, "reference-out.npy")\nmean(r)\nmean(c)', folder=folder)
    assert (load(folder, "reference-out.npy") == np.arange(1, 13).reshape(3, 4)).all()
    for stem, image in images.items():
        assert (load(folder, f"out/{stem}.npy") == image.astype(np.float32) * 2).all()
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert ["5.5"] in lines, done.stdout  # once, and not for every item
    table = [line for line in lines if line[0].startswith("s")]
    assert [line[0] for line in table] == list(images), done.stdout
    assert [float(line[-1]) for line in table] == [float(f"{image.mean():.6g}") for image in images.values()] or \
        np.allclose([float(line[-1]) for line in table], [image.mean() for image in images.values()], rtol=1e-5), done.stdout


@test
def a_flat_of_a_folder_is_divided_out_of_every_item(folder):
    images, flats = scans(folder), scans(folder, 3, name="flats", seed=8)
    run("run", "-e", 'flat = project(read("flats/*.npy"), "item", "mean")\nc = read("scans/*.npy")\n'
        'write(c / flat, "out/{stem}.npy")\nwrite(flat, "flat.npy")', folder=folder)
    flat = np.mean(np.stack(list(flats.values())).astype(np.float64), axis=0).astype(np.float32)
    assert (load(folder, "flat.npy") == flat).all()
    for stem, image in images.items():
        assert (load(folder, f"out/{stem}.npy") == image.astype(np.float32) / flat).all()


@test
def projections_of_computed_items_equal_numpy(folder):
    images = scans(folder, 5)
    text = 'c = gaussian(read("scans/*.npy"), 2)\n' + "".join(
        f'write(project(c, "item", "{how}"), "{how}.npy")\n' for how in ("mean", "max", "min", "sum"))
    text += 'write(c, "g/{stem}.npy")'
    run("run", "-e", text, "--chunk", "16x16", folder=folder)
    stack = np.stack([load(folder, f"g/{stem}.npy") for stem in images])
    assert (load(folder, "max.npy") == stack.max(0)).all() and (load(folder, "min.npy") == stack.min(0)).all()
    total = np.zeros(stack.shape[1:])
    for plane in stack:
        total += plane
    assert (load(folder, "sum.npy") == total).all()
    assert (load(folder, "mean.npy") == (total / 5).astype(np.float32)).all()


@test
def a_fold_is_exact_and_does_not_depend_on_the_order_of_the_files(folder):
    rng = np.random.default_rng(3)
    images = [np.array(1e17 * (-1.0) ** k, np.float64) + rng.normal(0, 1e3, (9, 14)) for k in range(8)]
    images[2][0, 0], images[5][0, 0], images[3][0, 1] = np.inf, -np.inf, np.inf
    whole = [rng.integers(2 ** 61, 2 ** 62, (5, 7)) for _ in range(7)]
    orders = {"a": range(8), "b": rng.permutation(8)}
    for name, order in orders.items():
        os.makedirs(os.path.join(folder, name))
        os.makedirs(os.path.join(folder, name + "64"))
        for place, k in enumerate(order):
            np.save(os.path.join(folder, name, f"{place}.npy"), images[k])
            if k < 7:
                np.save(os.path.join(folder, name + "64", f"{place}.npy"), whole[k])
        text = "".join(f'write(fold(c{kind}, "{how}"), "{name}-{how}{kind}.npy")\n'
                       for kind in ("", "64") for how in ("sum", "mean", "max", "min"))
        run("run", "-e", f'c = read("{name}/*.npy")\nc64 = read("{name}64/*.npy")\n' + text, folder=folder)
    for how in ("sum", "mean", "max", "min"):
        for kind in ("", "64"):
            np.testing.assert_array_equal(load(folder, f"a-{how}{kind}.npy"), load(folder, f"b-{how}{kind}.npy"))
    exact = np.array([[math.fsum(i[y, x] for i in images) if y or x > 1 else np.nan if not x else np.inf for x in range(14)]
                      for y in range(9)])
    np.testing.assert_array_equal(load(folder, "a-sum.npy"), exact)
    np.testing.assert_array_equal(load(folder, "a-mean.npy"), exact / 8)
    np.testing.assert_array_equal(load(folder, "a-max.npy"), np.max(images, axis=0))
    total = np.array([[float(sum(int(i[y, x]) for i in whole)) for x in range(7)] for y in range(5)])
    np.testing.assert_array_equal(load(folder, "a-sum64.npy"), total)
    said = run("run", "-e", 'fold(read("a/0.npy")) |> write("x.npy")', folder=folder, code=2).stderr
    assert "a collection" in said and "project" in said, said


@test
def one_threshold_of_all_items_is_used_for_every_item(folder):
    images = scans(folder)
    text = ('c = read("scans/*.npy")\ng = c + 1\nt = mean(together(g))\nwrite(g > t, "out/{stem}.npy")\nmean(together(g))\n'
            'quantile(together(g), 0.5)\notsu(together(c))\notsu(together(g))')
    done = run("run", "-e", text, folder=folder)
    every = np.stack(list(images.values())).astype(np.float64) + 1
    printed = [float(line) for line in done.stdout.split() if line.replace(".", "").replace("-", "").isdigit()]
    assert np.allclose(printed[:2], [every.mean(), np.median(every)], rtol=1e-5), done.stdout
    assert abs(printed[2] + 1 - printed[3]) < 1, done.stdout
    for stem, image in images.items():
        assert (load(folder, f"out/{stem}.npy") == (image.astype(np.float32) + 1 > np.float32(every.mean()))).all()


@test
def items_of_different_shapes_have_statistics_in_common_and_no_projection(folder):
    rng = np.random.default_rng(1)
    os.makedirs(os.path.join(folder, "scans"))
    images = [rng.integers(0, 200, shape).astype(np.uint8) for shape in ((20, 30), (31, 17), (9, 50))]
    for k, image in enumerate(images):
        np.save(os.path.join(folder, "scans", f"{k}.npy"), image)
    text = ('c = read("scans/*.npy")\nmean(together(c))\nquantile(together(c), 0.25)\nmax(together(gaussian(c, 1)))\n'
            'write(c, "copy/{stem}.npy")')
    done = run("run", "-e", text, folder=folder)
    every = np.concatenate([image.ravel() for image in images])
    printed = [float(word) for word in done.stdout.split()]
    assert np.allclose(printed[:2], [every.mean(), np.quantile(every, 0.25)], rtol=1e-5), done.stdout
    done = run("run", "-e", 'write(project(read("scans/*.npy"), "item", "mean"), "m.npy")', folder=folder, code=None)
    assert done.returncode and "scans/0.npy is uint8 20 x 30" in done.stderr and "scans/1.npy is uint8 31 x 17" in done.stderr, \
        done.stderr


@test
def scalars_of_items_are_a_line(folder):
    images = scans(folder)
    done = run("run", "-e", 'c = read("scans/*.npy")\nmax(together(mean(c)))\nmean(together(max(c)))', folder=folder)
    printed = [float(word) for word in done.stdout.split()]
    means, highest = [i.mean() for i in images.values()], [i.max() for i in images.values()]
    assert np.allclose(printed, [max(means), np.mean(highest)]), done.stdout


@test
def two_unrelated_patterns_are_collections_of_their_own(folder):
    images, others = scans(folder, 4), scans(folder, 3, (20, 20), name="flats")
    run("run", "-e", 'write(read("scans/*.npy") + 1, "a/{stem}.npy")\nwrite(read("flats/*.npy") + 2, "b/{stem}.npy")\n'
        'write(measure(label(read("flats/*.npy") > 100)), "b.csv")', folder=folder)
    assert sorted(os.listdir(os.path.join(folder, "a"))) == [f"{stem}.npy" for stem in images]
    assert sorted(os.listdir(os.path.join(folder, "b"))) == [f"{stem}.npy" for stem in others]
    assert (load(folder, "b/s2.npy") == others["s2"].astype(np.float32) + 2).all()
    assert {row["path"] for row in rows(folder, "b.csv")} == {"flats/s1.npy", "flats/s2.npy"}


@test
def a_list_of_files_is_a_collection_like_any_other(folder):
    images = scans(folder)
    put(folder, "list.csv", "file\nscans/s3.npy\nscans/s1.npy\n")
    text = 'c = read(files("list.csv"))\nmax(together(c))\nwrite(c - project(c, "item", "min"), "out/{stem}.npy")'
    done = run("run", "-e", text, folder=folder)
    assert float(done.stdout) == images["s3"].max(), done.stdout
    least = np.minimum(images["s1"], images["s3"])
    assert (load(folder, "out/s3.npy") == images["s3"].astype(np.float32) - least).all()
    assert sorted(os.listdir(os.path.join(folder, "out"))) == ["s1.npy", "s3.npy"]


@test
def plans_and_graphs_show_items_and_run(folder):
    scans(folder)
    put(folder, "p.fov", 'c = read("scans/*.npy")\nwrite(c > otsu(together(c + 1)), "out/{stem}.npy")\n'
        'write(measure(label(c > 100)), "a.csv")')
    plan = run("plan", "p.fov", folder=folder).stdout
    order = [line for line in plan.splitlines() if line.endswith(":")]
    assert order == ["for each item of scans/*.npy:", "once for the run:", "for each item of scans/*.npy:"], plan
    parts = json.loads(run("plan", "p.fov", "--json", folder=folder).stdout)["parts"]
    assert [part["items"] for part in parts] == [4, 1, 4], parts
    graph = run("graph", "p.fov", folder=folder).stdout
    assert graph.count("digraph") == 1 and graph.count("subgraph") == 3 and graph.count("{") == graph.count("}"), graph
    run("run", "p.fov", folder=folder)
    report = run("report", folder=folder).stdout
    assert "otsu" in report and "measure" in report, report


# ---- tables

@test
def measurements_are_joined_with_a_list_of_samples_by_stem_name_and_path(folder):
    images = scans(folder)
    treatment = {"s0": "salt", "s1": "drug", "s2": "drug", "s3": "salt"}
    put(folder, "by-stem.csv", "sample,treatment\n" + "".join(f"{s},{t}\n" for s, t in treatment.items()))
    put(folder, "by-name.csv", "item,treatment\n" + "".join(f"{s}.npy,{t}\n" for s, t in treatment.items()))
    put(folder, "by-path.csv", "file,treatment\n" + "".join(f"scans/{s}.npy,{t}\n" for s, t in treatment.items()))
    expected = {"drug": (3, 36 * 3), "salt": (3, 36 * 3)}
    for name, on in (("by-stem", "item = sample"), ("by-name", "item"), ("by-path", "item = file"), ("by-path", "path = file")):
        text = (f't = measure(label(read("scans/*.npy") > 100))\nj = join(t, read("{name}.csv"), on = "{on}")\n'
                'write(group(j, "treatment", "count() as n, sum(voxels)"), "out.csv")\nwrite(j, "all.csv")')
        run("run", "-e", text, folder=folder)
        found = {row["treatment"]: (int(row["n"]), int(row["sum_voxels"])) for row in rows(folder, "out.csv")}
        assert found == expected, (name, on, found)
        assert list(rows(folder, "all.csv")[0])[:3] == ["item", "path", "label"]
    assert len(images) == 4


@test
def a_join_that_matches_nothing_says_so(folder):
    scans(folder)
    put(folder, "m.csv", "sample,treatment\nmouse_a,salt\n")
    text = 't = measure(label(read("scans/*.npy") > 100))\nwrite(join(t, read("m.csv"), on = "item = sample"), "j.csv")'
    done = run("run", "-e", text, folder=folder, code=1)
    assert "no row has a partner" in done.stderr and '"s1"' in done.stderr and '"mouse_a"' in done.stderr, done.stderr


@test
def items_without_objects_count_as_zero(folder):
    scans(folder)
    text = ('t = measure(label(read("scans/*.npy") > 100))\nwrite(group(t, "item", "count() as n, mean(voxels)"), "n.csv")\n'
            'write(group(filter(t, "voxels > 1000"), "item"), "none.csv")\nwrite(sort(t, "-label, item"), "sorted.csv")')
    run("run", "-e", text, folder=folder)
    assert [(row["item"], row["n"]) for row in rows(folder, "n.csv")] == [("s0", "0"), ("s1", "1"), ("s2", "2"), ("s3", "3")]
    assert rows(folder, "n.csv")[0]["mean_voxels"] in ("", "nan") and float(rows(folder, "n.csv")[1]["mean_voxels"]) == 36
    assert [row["count"] for row in rows(folder, "none.csv")] == ["0"] * 4
    assert [(row["item"], row["label"]) for row in rows(folder, "sorted.csv")] == \
        [("s3", "3"), ("s2", "2"), ("s3", "2"), ("s1", "1"), ("s2", "1"), ("s3", "1")]


@test
def a_table_beside_an_image_of_an_item_is_that_items(folder):
    """keep() with a filtered table, and with one that was sorted over all items."""
    images = scans(folder)
    text = ('c = read("scans/*.npy")\nl = label(c > 100)\nt = measure(l)\n'
            'write(keep(l, filter(t, "label != 1"), "voxels > 0"), "f/{stem}.npy")\n'
            'write(keep(l, sort(t, "-label"), "label != 2"), "k/{stem}.npy")')
    run("run", "-e", text, folder=folder)
    for k, stem in enumerate(images):
        assert sorted(set(load(folder, f"f/{stem}.npy").ravel())) == [0] + list(range(2, k + 1)), stem
        assert sorted(set(load(folder, f"k/{stem}.npy").ravel())) == [0] + [x for x in range(1, k + 1) if x != 2], stem


@test
def sweeps_combine_with_values_of_the_run(folder):
    images = scans(folder)
    text = ('param low = 100\nc = read("scans/*.npy")\nt = measure(label(c > low))\nwrite(group(t, "item"), "n.csv")\n'
            'write(project(c > low, "item", "sum"), "sum-{low}.npy")\nwrite(t, "all.csv")\n'
            'write(filter(t, "voxels > 1"), "some.csv")')
    run("run", "-e", text, "--set", "low=100,151,152", folder=folder)
    for low in (100, 151, 152):
        assert (load(folder, f"sum-{low}.npy") == sum((i > low).astype(float) for i in images.values())).all()
        counts = [row["count"] for row in rows(folder, "n.csv") if float(row["low"]) == low]
        assert counts == [str(k) if 150 + k > low else "0" for k in range(4)], (low, counts)
    assert list(rows(folder, "all.csv")[0])[:4] == ["item", "path", "low", "label"]
    assert list(rows(folder, "some.csv")[0])[:4] == ["item", "path", "low", "label"]


# ---- mistakes

@test
def names_of_items_in_files_of_the_run_are_refused(folder):
    scans(folder)
    text = 'c = read("scans/*.npy")\nwrite(project(c, "item", "mean"), "mean-{stem}.npy")'
    done = run("run", "-e", text, folder=folder, code=2)
    assert "{stem} names an item, but this value is one for the whole run" in done.stderr, done.stderr
    done = run("run", "-e", 'c = read("scans/*.npy")\nwrite(c, "copy.npy")', folder=folder, code=2)
    assert "each item of a collection needs its own file" in done.stderr, done.stderr
    done = run("run", "-e", 'c = read("scans/s1.npy")\nmean(together(c))', folder=folder, code=2)
    assert "a collection such as" in done.stderr, done.stderr
    done = run("run", "-e", 'c = read("scans/*.npy")\nwrite(group(measure(label(c > 9)), "itm"), "x.csv")', folder=folder, code=2)
    assert "itm" in done.stderr and not os.path.exists(os.path.join(folder, "x.csv")), done.stderr


@test
def a_failing_item_fails_only_what_needs_it(folder):
    images = scans(folder)
    put(folder, "scans/s2.npy", "this is no image")
    text = ('c = read("scans/*.npy")\ng = c + 1\nwrite(g, "out/{stem}.npy")\nwrite(project(g, "item", "mean"), "mean.npy")\n'
            'write(g > otsu(together(g)), "mask/{stem}.npy")\nwrite(read("one.npy"), "copy.npy")\n'
            'write(measure(label(c > 100)), "all.csv")')
    np.save(os.path.join(folder, "one.npy"), np.ones((3, 3), np.uint8))
    done = run("run", "-e", text, folder=folder, code=1)
    assert done.stderr.count("because scans/s2.npy failed") == 1 and "because some failed" not in done.stderr, done.stderr
    assert "1 of 4 items failed, and with them what needs every item" in done.stderr, done.stderr
    assert not os.path.exists(os.path.join(folder, "mean.npy")) and not os.path.exists(os.path.join(folder, "mask"))
    assert sorted(os.listdir(os.path.join(folder, "out"))) == ["s0.npy", "s1.npy", "s3.npy"]
    assert os.path.exists(os.path.join(folder, "copy.npy")) and len(rows(folder, "all.csv")) == 4
    np.save(os.path.join(folder, "scans", "s2.npy"), images["s2"])
    run("run", "-e", text, folder=folder)
    mean = np.mean([i.astype(np.float64) + 1 for i in images.values()], axis=0)
    assert (load(folder, "mean.npy") == mean.astype(np.float32)).all()
    assert len(os.listdir(os.path.join(folder, "mask"))) == 4


# ---- some of the items

CHOSEN = """
c = read("scans/*.npy")
g = gaussian(c, 1)
bright = filter(c, "max > 151 & part(item, 's', 1) != '4'")
t = measure(label(bright > 100), bright)
write(bright + 1, "out/{stem}.npy")
write(fold(bright, "sum"), "sum.npy")
write(together(sort(filter(g, "mean > 20 & x == 60"), "-mean, item")), "sorted.npy")
write(g - fold(bright), "less/{stem}.npy")
write(t, "t.csv")
write(group(t, "item", "count() as n"), "n.csv")
write(facts(c, "max std y type"), "facts.csv")
max(together(max(bright)))
"""


def choose(folder, *options, launch=()):
    scans(folder, 6)
    put(folder, "p.fov", CHOSEN)
    done = subprocess.run([*launch, FOVEA, "run", "p.fov", *options], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert done.returncode == 0, done.stderr[-800:]
    return done


@test
def a_filter_keeps_some_of_the_items_and_a_sort_orders_them(folder):
    images = scans(folder, 6)
    done = choose(folder)
    kept = ["s2", "s3", "s5"]
    assert sorted(os.listdir(os.path.join(folder, "out"))) == [f"{name}.npy" for name in kept]
    for name in kept:
        assert (load(folder, f"out/{name}.npy") == images[name].astype(np.float32) + 1).all()
    assert (load(folder, "sum.npy") == sum(images[name].astype(np.float64) for name in kept)).all()
    mean = (sum(images[name].astype(np.float64) for name in kept) / 3).astype(np.float32)
    smooth = {name: load(folder, f"less/{name}.npy") + mean for name in images}
    assert len(smooth) == 6  # what depends on the mean of some is made for all
    order = sorted((name for name in images if smooth[name].mean() > 20), key=lambda name: -smooth[name].mean())
    got = load(folder, "sorted.npy")
    assert 2 <= len(order) < 6 and len(got) == len(order), order
    assert all(np.abs(got[k] - smooth[name]).max() < 1e-3 for k, name in enumerate(order)), order
    assert [row["item"] for row in rows(folder, "n.csv")] == kept
    assert [int(row["n"]) for row in rows(folder, "n.csv")] == [2, 3, 5]
    assert {row["item"] for row in rows(folder, "t.csv")} == set(kept)
    told = rows(folder, "facts.csv")
    assert [(row["item"], float(row["max"]), row["y"], row["type"]) for row in told] == \
        [(name, float(image.max()), "40", "uint8") for name, image in images.items()], told
    assert done.stdout.split() == ["155"], done.stdout


@test
def the_items_that_are_kept_are_the_same_on_every_engine(folder):
    expected, launches = None, {"threads": (), "processes": (), "memory": ()}
    for flavour, command in LAUNCH.items():
        if shutil.which(command[0]) and (pathlib.Path(FOVEA).parent / f"fovea-mpi-{flavour}.so").exists():
            launches[flavour] = (*command, "-n", "2")
    options = {"processes": ["--engine", "processes", "--workers", "2"], "memory": ["--memory", "100M", "--chunk", "16x16"]}
    for name, launch in launches.items():
        place = os.path.join(folder, name)
        os.makedirs(place)
        choose(place, *options.get(name, []), launch=launch)
        expected = expected or results(place)
        assert results(place) == expected, name


@test
def a_filter_that_keeps_nothing_or_is_wrong_says_so(folder):
    scans(folder, 3)
    done = run("run", "-e", 'c = filter(read("scans/*.npy"), "mean > 1000")\nwrite(c, "out/{stem}.npy")', folder=folder)
    assert not os.path.exists(os.path.join(folder, "out")) and done.returncode == 0
    said = run("run", "-e", 'c = filter(read("scans/*.npy"), "mean > 1000")\nwrite(fold(c), "m.npy")',
               folder=folder, code=1).stderr
    assert "none of the 3 items was kept" in said, said
    for text, words in (('filter(read("scans/*.npy"), "maen > 3") |> write("o/{stem}.npy")', ("maen", "mean, std")),
                        ('filter(read("scans/*.npy"), "mean >") |> write("o/{stem}.npy")', ("condition", "mean >")),
                        ('sort(read("scans/*.npy"), "") |> together() |> write("o.npy")', ("by",)),
                        ('filter_items(read("scans/s0.npy"), "mean > 3") |> write("o.npy")', ("one value", "collection")),
                        ('filter(read("scans/s0.npy"), "mean > 3") |> write("o.npy")', ("must be a table",)),
                        ('facts(read("scans/s0.npy"), "mean z")', ("z is nothing", "spacing_y"))):
        said = run("run", "-e", text, folder=folder, code=2).stderr
        assert all(word in said for word in words), said


# ---- every engine

WHOLE = """
c = read("scans/*.npy")
g = gaussian(c, 2)
m = project(g, "item", "mean")
t = measure(label(c > 100), c)
j = join(t, read("animals.csv"), on = "item = animal")
write(g - m, "out/{stem}.npy")
write(m, "mean.npy")
write(g > otsu(together(g)), "mask/{stem}.png")
write(group(t, "item", "count() as n, mean(mean)"), "n.csv")
write(group(j, "treatment", "count() as n, sum(voxels)"), "treatment.csv")
write(sort(t, "-voxels, path"), "sorted.csv")
write(t, "all.csv")
write(read("flats/*.npy") / project(read("flats/*.npy"), "item", "max"), "flat/{stem}.npy")
"""


def prepare(folder):
    os.makedirs(folder, exist_ok=True)
    scans(folder, 6)
    scans(folder, 3, (30, 30), name="flats")
    put(folder, "animals.csv", "animal,treatment\n" + "".join(f"s{k},{'drug' if k % 2 else 'salt'}\n" for k in range(6)))
    put(folder, "p.fov", WHOLE)
    return folder


def alone(folder):
    one = prepare(os.path.join(folder, "alone"))
    run("run", "p.fov", "--workers", "1", folder=one)
    expected = results(one)
    assert len(expected) == 6 + 1 + 6 + 4 + 3, list(expected)
    return expected


@test
def threads_processes_and_small_memory_give_the_same_bytes(folder):
    expected = alone(folder)
    for name, options in (("threads", ["--workers", "3"]), ("processes", ["--engine", "processes", "--workers", "2"]),
                          ("memory", ["--memory", "100M", "--chunk", "16x16"])):
        other = prepare(os.path.join(folder, name))
        run("run", "p.fov", *options, folder=other)
        assert results(other) == expected, name


@test
def ranks_give_the_same_bytes(folder):
    expected, ran = alone(folder), 0
    for flavour, command in LAUNCH.items():
        if not shutil.which(command[0]) or not (pathlib.Path(FOVEA).parent / f"fovea-mpi-{flavour}.so").exists():
            continue
        other = prepare(os.path.join(folder, flavour))
        done = subprocess.run([*command, "-n", "2", FOVEA, "run", "p.fov"], cwd=other, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        assert done.returncode == 0, (flavour, done.stderr[-800:])
        assert results(other) == expected, flavour
        ran += 1
    if not ran:
        raise Skip("no MPI is installed")


@test
def workers_of_one_run_give_the_same_bytes(folder):
    expected = alone(folder)
    other = prepare(os.path.join(folder, "shared"))
    frozen = run("submit", "p.fov", "--dry-run", "--measure", "0", folder=other).stdout.splitlines()[0]
    workers = [subprocess.Popen([FOVEA, "work", frozen, "--workers", "1", "--memory", "300M", "--wait"], cwd=other,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for _ in range(2)]
    for worker in workers:
        _, errors = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0, errors[-800:]
    run("work", frozen, "--finish", "--wait", "--memory", "300M", folder=other)
    assert results(other) == expected


@test
def a_killed_run_goes_on_and_ends_with_the_same_bytes(folder):
    expected = alone(folder)
    other = prepare(os.path.join(folder, "killed"))
    for count in (3, 9, 4, 14):
        run("run", "p.fov", folder=other, code=None, environment={"FOVEA_FAULT": f"task:{count}"})
    run("run", "p.fov", folder=other)
    assert results(other) == expected
    again = run("run", "p.fov", "--json", folder=other)
    assert json.loads(again.stdout)["tasks_run"] == 0, again.stdout
    assert results(other) == expected


@test
def a_changed_file_makes_only_what_it_must(folder):
    images = scans(folder, 5)
    text = 'g = gaussian(read("scans/*.npy"), 2)\nwrite(project(g, "item", "max"), "m.npy")\nwrite(g, "out/{stem}.npy")'
    first = json.loads(run("run", "--json", "-e", text, folder=folder).stdout)
    np.save(os.path.join(folder, "scans", "s1.npy"), images["s1"][::-1])
    again = json.loads(run("run", "--json", "-e", text, folder=folder).stdout)
    assert again["tasks_run"] < first["tasks_run"] and again["outputs_made"] == 2, (first, again)
    assert (load(folder, "m.npy") == np.max([load(folder, f"out/{s}.npy") for s in images], axis=0)).all()

@test
def numbered_files_are_joined_with_a_column_of_numbers(folder):
    os.makedirs(os.path.join(folder, "num"))
    for name, value in (("1", 3), ("10", 5), ("007", 7)):
        np.save(os.path.join(folder, "num", name + ".npy"), np.full((4, 5), value, np.uint8))
    put(folder, "animals.csv", "animal,kind\n1,control\n10,treated\n7,treated\n,nobody\n99,away\n")
    for left, right, on in (("t", "a", "item = animal"), ("t", "a", "path = animal"), ("a", "t", "animal = item")):
        run("run", "-q", "--overwrite", "-e", 'c = read("num/*.npy")\nt = measure(label(c > 0), c, properties = "mean")\n'
            f'a = read_table("animals.csv")\nwrite(join({left}, {right}, on = "{on}"), "joined.csv")', folder=folder)
        found = {(row["kind"], float(row["mean"])) for row in rows(folder, "joined.csv")}
        assert found == {("control", 3), ("treated", 5), ("treated", 7)}, (on, found)
    put(folder, "animals.csv", "animal,kind\n4,control\n5,treated\n")
    text = ('c = read("num/*.npy")\nwrite(join(measure(label(c > 0)), read_table("animals.csv"), on = "%s"), "none.csv")')
    said = run("run", "-q", "-e", text % "item = animal", folder=folder, code=None).stderr
    assert "no row has a partner" in said and '"1"' in said and "second 4" in said, said
    said = run("run", "-q", "-e", text % "label = kind", folder=folder, code=None).stderr
    assert "only one of them is text" in said, said


# ---- two at once

def start_and_stop(folder, text):
    """Starts a run and stops it once it has claimed what it makes."""
    claim = ".means.csv.fovea-lease" if "means.csv" in text else ".fovea/runs/*/.run.fovea-lease"
    process = subprocess.Popen([FOVEA, "run", "-q", "--workers", "1", "-e", text], cwd=folder, stderr=subprocess.PIPE, text=True)
    wait_for("the claim", lambda: process.poll() is not None or list(pathlib.Path(folder).glob(claim)))
    process.send_signal(signal.SIGSTOP)
    assert process.poll() is None
    return process


@test
def the_same_command_a_second_time_is_refused_while_the_first_lives(folder):
    pathlib.Path(folder, "in").mkdir()
    for i in range(30):
        np.save(pathlib.Path(folder, f"in/{i:02}.npy"), np.full((400, 400), i, np.float32))
    for text in ('mean(gaussian(read("in/*.npy"), 6)) |> write("means.csv")',
                 'c = gaussian(read("in/*.npy"), 7)\nwrite(c, "out/{stem}.npy")\nmean(c) |> write("means.csv")',
                 'mean(gaussian(read("in/*.npy"), 8)) |> write("means.sqlite", table = "means")'):
        first = start_and_stop(folder, text)
        try:
            done = run("run", "-e", text, folder=folder, code=2)
            assert f"is being written by another run: process {first.pid} on " in done.stderr, done.stderr
            if "csv" in text:  # another pipeline that replaces the same table
                done = run("run", "-e", 'max(read("in/*.npy")) |> write("means.csv")', folder=folder, code=2)
                assert f"means.csv is being written by another run: process {first.pid} on " in done.stderr, done.stderr
            run("run", "-q", "-e", 'max(read("in/*.npy"))', folder=folder)  # writes nothing
        finally:
            first.send_signal(signal.SIGCONT)
        assert first.wait(PATIENCE) == 0, first.stderr.read()
        run("run", "-q", "-e", text, folder=folder)
    assert len(pathlib.Path(folder, "means.csv").read_text().splitlines()) == 31
    assert len(os.listdir(pathlib.Path(folder, "out"))) == 30
    assert not list(pathlib.Path(folder).rglob("*.fovea-lease"))


@test
def a_killed_run_hinders_neither_the_same_command_nor_another_one(folder):
    pathlib.Path(folder, "in").mkdir()
    for i in range(30):
        np.save(pathlib.Path(folder, f"in/{i:02}.npy"), np.full((400, 400), i, np.float32))
    text = 'c = gaussian(read("in/*.npy"), 6)\nmean(c) |> write("means.csv")\nwrite(c, "out/{stem}.npy")'
    for then in text, 'max(read("in/*.npy")) |> write("means.csv")':
        first = start_and_stop(folder, text)
        first.kill()
        first.wait(PATIENCE)
        run("run", "-q", "-e", then, folder=folder)
        assert len(pathlib.Path(folder, "means.csv").read_text().splitlines()) == 31
        text = text.replace("6", "7")


# ---- what is said about failures

LOSES = """c = read("scans/*.npy")
t = otsu(together(gaussian(c, 1)))
write((c > t) * 1, "mask/{stem}.npy")
write(project((c > t) * 1, "item", "mean"), "share.npy")
write(project(c, "item", "mean"), "mean.npy")
write(gaussian(c, 2), "g/{stem}.npy")
"""


@test
def only_items_that_failed_themselves_are_blamed_and_what_is_old_is_named(folder):
    for engine in ("threads", "processes"):
        for bad in ("s0", "s2"):
            place = os.path.join(folder, f"{engine}-{bad}")
            images = scans(place)
            run("run", "-q", "-e", LOSES, folder=place)
            os.unlink(os.path.join(place, "share.npy"))
            put(place, f"scans/{bad}.npy", "this is no image")
            said = run("run", "-q", "--engine", engine, "-e", LOSES, folder=place, code=1).stderr
            assert all(f"scans/{stem}.npy" not in said for stem in images if stem != bad), said
            assert f"scans/{bad}.npy: scans/{bad}.npy" not in said and said.count("what needs every item was") <= 2, said
            line = next(part for part in said.splitlines() if part.startswith("fovea: not made: "))
            missing, _, old = line.partition(". Of an earlier run, and out of date: ")
            assert missing.startswith("fovea: not made: mean.npy, share.npy, ") and missing.endswith(" more"), said
            assert old.startswith("mean.npy, ") and "share.npy" not in old, said
            assert all(f"g/{stem}.npy" not in line for stem in images if stem != bad), said  # these are up to date


@test
def a_failure_that_stops_the_run_is_said_once(folder):
    scans(folder)
    put(folder, "scans/s2.npy", "this is no image")
    said = run("run", "-q", "--stop-on-error", "-e", 'write(gaussian(read("scans/*.npy"), 1), "g/{stem}.npy")', folder=folder,
               code=None).stderr
    assert said.count("scans/s2.npy") == 1 and len(said.splitlines()) == 1, said


@test
def an_engine_that_does_not_exist_is_told_all_that_do(folder):
    said = run("run", "--engine", "foo", "-e", "1 + 1", folder=folder, code=2).stderr
    assert all(name in said for name in ("mpi", "processes", "threads", "slurm")), said


main()
