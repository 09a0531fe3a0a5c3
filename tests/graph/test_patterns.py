"""Collections: what patterns match, in which order, which files belong together, and what results are called."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test


def save(folder, name, value):
    path = pathlib.Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        np.save(file, np.full((4, 4), value, np.uint8))


def printed(folder, text, code=0):
    """Rows of the only table that a text prints, as (path, number)."""
    done = run("run", "-q", "-e", text, folder=folder, code=code)
    rows = [line.rsplit(None, 1) for line in done.stdout.splitlines()[1:]]
    return [(columns.split(None, 1)[-1], float(number)) for columns, number in rows]


def refused(folder, text):
    done = run("run", "-e", text, folder=folder, code=2)
    assert not pathlib.Path(folder, "out").exists()
    return done.stderr


# ---- pairs

@test
def files_are_paired_by_what_the_wildcards_stand_for(folder):
    for number in 1, 2, 10:
        save(folder, f"img_{number}_c1.npy", number)
        save(folder, f"img_{number}x_c2.npy", 0)
        save(folder, f"img_{number}_c2.npy", number + 100)
        save(folder, f"other/{number}.dat.npy", number + 50)
    assert 'in "img_*_c1.npy": img_1x_c2.npy' in refused(folder, 'mean(read("img_*_c2.npy") - read("img_*_c1.npy"))')
    for number in 1, 2, 10:
        os.unlink(os.path.join(folder, f"img_{number}x_c2.npy"))
    rows = printed(folder, 'mean(read("img_*_c2.npy") - read("img_*_c1.npy"))')
    assert rows == [(f"img_{n}_c2.npy", 100) for n in (1, 2, 10)], rows
    rows = printed(folder, 'mean(read("other/*.dat.npy") - read("img_*_c1.npy") + read("img_*_c2.npy"))')
    assert [row[1] for row in rows] == [151, 152, 160], rows


@test
def pairs_follow_the_names_and_not_the_order_of_the_files(folder):
    """By folder, the T1w of subject 1 comes first; by folder, its mask comes last."""
    for subject, site in ("01", "z"), ("02", "a"):
        save(folder, f"t1w/sub-{subject}_T1w.npy", int(subject))
        save(folder, f"masks/{site}/sub-{subject}_mask.npy", 50 + int(subject))
    for mask in "masks/?/sub-*_mask.npy", "masks/**/*_mask.npy", "masks/{a,z}/*_mask.npy":
        wanted = mask.rsplit("/", 1)[1].replace("_mask", "_T1w")
        rows = printed(folder, f'mean(read("{mask}") - read("t1w/{wanted}"))')
        assert [row[1] for row in rows] == [50, 50] and "sub-02" in rows[0][0], (mask, rows)


@test
def a_pattern_with_more_wildcards_is_paired_by_those_that_fit(folder):
    for subject in "01", "02":
        save(folder, f"bids/sub-{subject}/anat/sub-{subject}_T1w.npy", int(subject))
        save(folder, f"masks/sub-{subject}_seg.npy", 70 + int(subject))
        save(folder, f"masks/by-number/{subject}.npy", 90 + int(subject))
        save(folder, f"masks/sub-{subject}_seg.txt.npy", 0)
    t1w = 'read("bids/sub-*/anat/*_T1w.npy")'
    for mask, difference in ("masks/*_seg.npy", 70), ("masks/sub-*_seg.npy", 70), ("masks/by-number/*.npy", 90):
        assert [row[1] for row in printed(folder, f'mean(read("{mask}") - {t1w})')] == [difference] * 2, mask
        assert [row[1] for row in printed(folder, f'mean({t1w} - read("{mask}"))')] == [-difference] * 2, mask
    for subject, site in ("01", "z"), ("02", "a"):  # by site, subject 2 comes first
        save(folder, f"sites/{site}/sub-{subject}_T1w.npy", int(subject))
    rows = printed(folder, 'mean(read("masks/*_seg.npy") - read("sites/*/*_T1w.npy"))')
    assert [row[1] for row in rows] == [70, 70], rows


@test
def files_without_a_partner_stop_the_run_and_are_named(folder):
    for name in "abc":
        save(folder, f"dapi/{name}.npy", 1)
    for name in "acd":
        save(folder, f"gfp/{name}.npy", 1)
    said = refused(folder, 'write(read("dapi/*.npy") + read("gfp/*.npy"), "out/{stem}.npy")')
    assert 'without a partner in "gfp/*.npy": dapi/b.npy\n' in said, said
    assert 'without a partner in "dapi/*.npy": gfp/d.npy\n' in said, said
    os.unlink(os.path.join(folder, "gfp/d.npy"))
    said = refused(folder, 'write(read("dapi/*.npy") + read("gfp/*.npy"), "out/{stem}.npy")')
    assert "dapi/b.npy" in said and "gfp/" not in said.split("without a partner in")[1].split(": ")[1], said
    for number in range(40):
        save(folder, f"dapi/n{number}.npy", 1)
    said = refused(folder, 'write(read("dapi/*.npy") + read("gfp/*.npy"), "out/{stem}.npy")')
    assert "dapi/n3.npy and 36 more" in said, said


@test
def patterns_that_would_pair_are_proposed(folder):
    for number in range(1, 13):
        save(folder, f"d/exp1_dapi_{number:02}.npy", number)
        save(folder, f"g/exp1_gfp_{number:02}.npy", number)
    said = refused(folder, 'write(read("d/*.npy") + read("g/*.npy"), "out/{stem}.npy")')
    assert '"d/exp1_dapi_*.npy" and "g/exp1_gfp_*.npy"' in said, said
    assert [row[1] for row in printed(folder, 'mean(read("d/exp1_dapi_*.npy") - read("g/exp1_gfp_*.npy"))')] == [0] * 12


@test
def one_file_cannot_be_the_partner_of_two(folder):
    for plate in "p1", "p2":
        save(folder, f"plates/{plate}/a.npy", 1)
    save(folder, "flat/a.npy", 1)
    said = refused(folder, 'write(read("plates/*/*.npy") - read("flat/*.npy"), "out/{folder}_{stem}.npy")')
    assert "plates/p2/a.npy" in said and "without a partner" in said, said


# ---- what matches, and in which order

@test
def numbers_in_names_count_by_value(folder):
    for number in 10, 2, 1, 9:
        save(folder, f"in/img{number}.npy", number)
    assert [row[1] for row in printed(folder, 'mean(read("in/*.npy"))')] == [1, 2, 9, 10]
    run("run", "-q", "-e", 'read("in/*.npy") |> write("out/{index}.npy")', folder=folder)
    assert [np.load(os.path.join(folder, f"out/{i}.npy"))[0, 0] for i in range(4)] == [1, 2, 9, 10]


@test
def folders_of_any_depth_are_searched_and_can_be_mirrored(folder):
    for number, name in enumerate(("a", "p1/w1/a", "p2/a", "p1/.hidden/a", ".b")):
        save(folder, f"tree/{name}.npy", number)
    os.symlink("..", os.path.join(folder, "tree/p2/back"))
    text = 'read("tree/**/*.npy") |> write("out/{path}/{stem}_s.npy")'
    for _ in range(2):
        run("run", "-q", "-e", text, folder=folder)
    made = sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder, "out").rglob("*.npy"))
    assert made == ["out/a_s.npy", "out/p1/w1/a_s.npy", "out/p2/a_s.npy"], made
    assert np.load(os.path.join(folder, "out/p1/w1/a_s.npy"))[0, 0] == 1
    run("run", "-q", "--engine", "processes", "-e", 'read("tree/**/*.npy") |> write("flat/{folder}-{stem}.npy")', folder=folder)
    assert sorted(os.listdir(os.path.join(folder, "flat"))) == ["p2-a.npy", "tree-a.npy", "w1-a.npy"]


@test
def two_items_of_one_name_are_told_apart_by_their_folders(folder):
    for plate in "p1", "p2":
        save(folder, f"plates/{plate}/a.npy", 1)
    said = refused(folder, 'read("plates/*/*.npy") |> write("out/{stem}.npy")')
    assert "plates/p1/a.npy" in said and "plates/p2/a.npy" in said and "{folder}" in said, said


@test
def images_that_are_folders_are_not_searched(folder):
    run("run", "-q", "-e", 'a = phantom("noise", [8, 8]); write(a, "in/p/a.zarr"); write(a, "in/p/a.zarr/labels/x.zarr")',
        folder=folder, code=None)
    run("run", "-q", "-e", 'phantom("noise", [8, 8]) |> write("in/p/a.zarr")', "--overwrite", folder=folder)
    pathlib.Path(folder, "in/p/a.zarr/inside.zarr").mkdir()
    assert [row[0] for row in printed(folder, 'mean(read("in/**/*.zarr"))')] == ["in/p/a.zarr"]
    assert [row[0] for row in printed(folder, 'mean(read("in/*/*.zarr"))')] == ["in/p/a.zarr"]


@test
def odd_names_are_taken_as_they_are(folder):
    names = ["-q", "x y", "ü'\"", "a[1]", "{b}", "100%", "a\\b"]
    for name in names:
        save(folder, f"odd [1]/{name}.npy", 3)
    rows = printed(folder, 'mean(read("odd [1]/*.npy"))')
    assert sorted(os.path.basename(row[0])[:-4] for row in rows) == sorted(names) and all(row[1] == 3 for row in rows), rows
    run("run", "-q", "-e", 'read("odd [1]/*.npy") |> write("out/{stem}.npy")', folder=folder)
    assert sorted(os.listdir(os.path.join(folder, "out"))) == sorted(name + ".npy" for name in names)
    for pattern, count in ("odd [1]/?'*.npy", 1), ("odd [1]/[à-ý]*.npy", 1), ("odd*/-*.npy", 1), ("odd [1]/a\\\\[*.npy", 1), \
            ("odd [1]/{-q,x y,none}.npy", 2), ("odd [[]1]/[[:digit:]]*%.npy", 1), ("./odd*//*y.npy", 1):
        assert len(printed(folder, f'mean(read("{pattern}"))')) == count, pattern


@test
def a_link_to_nothing_is_an_item_that_fails(folder):
    save(folder, "in/a.npy", 1)
    os.symlink("../annex/object", os.path.join(folder, "in/b.npy"))
    done = run("run", "-e", 'read("in/*.npy") |> write("out/{stem}.npy")', folder=folder, code=1)
    assert "in/b.npy: it is a link to something that is not there" in done.stderr, done.stderr
    assert os.listdir(os.path.join(folder, "out")) == ["a.npy"]


@test
def a_pattern_that_matches_nothing_tells_what_is_there(folder):
    save(folder, "Scans/A.NPY", 1)
    save(folder, "Scans/B.NPY", 1)
    for pattern in "Scans/*.npy", "scans/*.NPY", "scans/[a-b].npy":
        said = refused(folder, f'read("{pattern}") |> write("out/{{stem}}.npy")')
        assert f'no file matches "{pattern}"' in said and "small and capital letters differ: Scans/A.NPY" in said, said
    assert "there is no folder nowhere/deep" in refused(folder, 'read("nowhere/deep/*.npy") |> write("out/{stem}.npy")')
    assert "hint" not in refused(folder, 'read("Scans/*.tif") |> write("out/{stem}.npy")')


@test
def a_pattern_may_have_a_name_in_the_text(folder):
    save(folder, "in/a.npy", 1)
    save(folder, "in/b.npy", 2)
    assert [row[1] for row in printed(folder, 'where = "in/*.npy"\nmean(read(where))')] == [1, 2]


@test
def a_folder_is_told_how_to_read(folder):
    for number in 1, 2:
        save(folder, f"plate/s{number}.NPY", number)
    save(folder, "plate/other.npz.txt", 1)
    for name in "plate", "plate/":
        said = refused(folder, f'read("{name}") |> write("out/a.npy")')
        assert 'is a folder with 2 .NPY files: "plate/*.NPY" reads each' in said and 'stack = "z"' in said, said
    save(folder, "plate/a.npy", 1)
    assert "2 .NPY files and others" in refused(folder, 'read("plate") |> write("out/a.npy")')
    assert '"plate/*.NPY"' in run("info", "plate", folder=folder, code=2).stderr
    os.makedirs(os.path.join(folder, "deep/p1"))
    assert '"deep/**/*.tif" searches the folders in it' in refused(folder, 'read("deep") |> write("out/a.npy")')
    assert "deep/p1 is a folder that holds no image files\n" in refused(folder, 'read("deep/p1") |> write("out/a.npy")')
    done = run("run", "-e", 'read("{plate,deep}") |> write("out/{name}.npy")', folder=folder, code=None)
    assert "plate is a folder with" in done.stderr, done.stderr


@test
def slices_are_in_the_same_order_as_items(folder):
    for number in 1, 2, 9, 10:
        save(folder, f"in/s{number}/img{20 - number}.npy", number)
    run("run", "-q", "-e", 'read("in/**/*.npy", stack = "z") |> write("out.npy")', folder=folder)
    assert (np.load(os.path.join(folder, "out.npy"))[:, 0, 0] == [1, 2, 9, 10]).all()


@test
def slices_are_no_items_beside_a_collection_of_the_same_files(folder):
    """However the axis of the stack is given: by name, by its place, or by read_stack's own default."""
    for number in 1, 2, 3:
        save(folder, f"in/s{number}.npy", number)
    for stack in 'read("in/*.npy", stack = "z")', 'read("in/*.npy", "", "", "z")', 'read_stack("in/*.npy")':
        text = f'write(mean({stack}), "all.csv")\nwrite(mean(read("in/*.npy")), "each.csv")'
        run("run", "-q", "--fresh", "--overwrite", "-e", text, folder=folder)
        each, whole = (pathlib.Path(folder, name).read_text().splitlines()[1:] for name in ("each.csv", "all.csv"))
        assert whole == ["2"] and [row.rsplit(",", 1)[1] for row in each] == ["1", "2", "3"], (stack, whole, each)


main()
