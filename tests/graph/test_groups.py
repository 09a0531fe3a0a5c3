#!/usr/bin/python3
"""Groups of files: names in a pattern, {well}, make an item of all files that share them."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip groups: {missing}")
    sys.exit(0)

WELLS = {"A1": 3, "A10": 2, "B2": 4}


def plate(folder, name="{well}_f{field}"):
    """Images of some wells, each with its own number of fields; gives them by well."""
    generator, made = np.random.default_rng(1), {}
    for well, count in WELLS.items():
        made[well] = generator.integers(0, 255, (count, 12, 17)).astype("uint8")
        for field in range(count):
            path = pathlib.Path(folder, "plate", name.format(well=well, field=field + 1) + ".npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, made[well][field])
    return made


def fovea(folder, text, *more, code=0):
    return run("run", "-q", "--fresh", *more, "-e", text, folder=folder, code=code)


MEANS = 'read("plate/{well}_f*.npy", stack = "field") |> project("field", "mean") |> write("means/{well}.npy")'


def check_means(folder, made):
    assert sorted(p.stem for p in pathlib.Path(folder, "means").glob("*.npy")) == sorted(made)
    for well, images in made.items():
        found = np.load(f"{folder}/means/{well}.npy")
        assert np.array_equal(found, images.astype("float64").mean(axis=0).astype("float32")), well


@test
def each_group_is_an_image(folder):
    made = plate(folder)
    for more in ((), ("--workers", "1"), ("--engine", "processes"), ("--memory", "64M")):
        shutil.rmtree(f"{folder}/means", ignore_errors=True)
        fovea(folder, MEANS, *more)
        check_means(folder, made)


@test
def mpi_ranks_make_them_too(folder):
    made = plate(folder)
    mpi = shutil.which("mpiexec")
    if not mpi:
        raise Skip("no mpiexec here")
    import os
    import subprocess
    from fovea_test import FOVEA
    ranks = subprocess.run([mpi, "-n", "2", FOVEA, "run", "-q", "-e", MEANS], cwd=folder, capture_output=True, text=True,
                           env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                "OMPI_MCA_rmaps_base_oversubscribe": "1"})
    assert ranks.returncode == 0, ranks.stderr
    check_means(folder, made)


@test
def channels_of_a_position_are_merged(folder):
    for position in (1, 2):
        for channel in (1, 2, 3):
            np.save(f"{folder}/img_{position}_c{channel}.npy", np.full((4, 5), 10 * position + channel, "uint8"))
    fovea(folder, 'read("img_{pos}_c*.npy", stack = "c") |> name_channels("a b c") |> write("merged/{stem}.ome.tif")')
    fovea(folder, 'read("merged/2.ome.tif") |> write("two.npy")')
    found = np.load(f"{folder}/two.npy")
    assert found.shape == (3, 4, 5) and found[:, 0, 0].tolist() == [21, 22, 23], found


@test
def folders_names_and_tables_tell_the_groups(folder):
    plate(folder, "{well}/t{field}")
    fovea(folder, """w = read("plate/{well}/t*.npy", stack = "t")
write(w[0], "out/{path}/{index}.npy")
write(facts(w, "mean"), "facts.csv")
write(fold(project(w, "t", "max"), "max"), "all.npy")
""")
    assert sorted(str(p.relative_to(f"{folder}/out")) for p in pathlib.Path(folder, "out").rglob("*.npy")) == [
        "A1/0.npy", "A10/1.npy", "B2/2.npy"]
    rows = pathlib.Path(folder, "facts.csv").read_text().split("\n")
    assert [row.split(",")[0] for row in rows[1:4]] == ["A1", "A10", "B2"], rows
    assert rows[1].split(",")[1] == "plate/{well=A1}/t*.npy", rows
    fovea(folder, 'read("plate/{well=A10}/t*.npy", stack = "t") |> write("a10.npy")')
    assert np.load(f"{folder}/a10.npy").shape == (2, 12, 17)


@test
def groups_are_paired_with_files_of_the_same_name(folder):
    made = plate(folder)
    for well in WELLS:
        np.save(f"{folder}/dark_{well}.npy", np.full((12, 17), len(well), "uint8"))
    fovea(folder, """w = read("plate/{well}_f*.npy", stack = "field")
d = read("dark_*.npy")
write(w + d, "sum/{stem}.npy")""")
    for well, images in made.items():
        assert np.array_equal(np.load(f"{folder}/sum/{well}.npy"), images.astype("int16") + len(well)), well


@test
def names_without_stack_name_results(folder):
    made = plate(folder)
    fovea(folder, 'read("plate/{well}_f{field}.npy") |> write("x/{field}-{well}.npy")')
    assert np.array_equal(np.load(f"{folder}/x/2-A10.npy"), made["A10"][1])
    assert len(list(pathlib.Path(folder, "x").iterdir())) == sum(WELLS.values())


@test
def a_value_is_not_a_part_of_a_longer_one(folder):
    for name in ("a_b_c", "x_c", "y_c"):
        np.save(f"{folder}/{name}.npy", np.zeros((3, 3), "uint8"))
    fovea(folder, 'read("*_{last}.npy", stack = "z") |> write("out/{last}.npy")')
    assert {p.stem: np.load(p).shape[0] for p in pathlib.Path(folder, "out").glob("*.npy")} == {"b_c": 1, "c": 2}
    np.save(f"{folder}/odd[1],y_q.npy", np.zeros((3, 3), "uint8"))
    fovea(folder, 'read("{first}_q.npy", stack = "z") |> write("odd/{first}.npy")')
    assert [p.name for p in pathlib.Path(folder, "odd").glob("*.npy")] == ["odd[1],y.npy"]


@test
def a_bad_file_costs_its_group_only(folder):
    plate(folder)
    pathlib.Path(folder, "plate/A10_f2.npy").write_text("no image")
    said = fovea(folder, MEANS, code=1).stderr
    assert "plate/A10_f2.npy" in said and "means/A10.npy" in said, said
    assert sorted(p.stem for p in pathlib.Path(folder, "means").glob("*.npy")) == ["A1", "B2"]
    np.save(f"{folder}/plate/A10_f2.npy", np.zeros((5, 5), "uint8"))
    said = fovea(folder, MEANS, code=1).stderr
    assert "another shape or type" in said and "A10_f2" in said, said


@test
def mistakes_are_told_before_anything_is_made(folder):
    plate(folder)
    for text, said in (
            (MEANS.replace("means/", "plate/").replace("{well}.npy", "{well}_fm.npy"), "would match"),
            (MEANS.replace("{well}.npy", "{wall}.npy"), "{wall}"),
            (MEANS.replace("{well}.npy", "x.npy"), "each item of a collection needs its own file"),
            (MEANS.replace("_f*", "_g*"), "no file matches")):
        found = fovea(folder, text, code=2)
        assert said in found.stderr, (text, found.stderr)
    assert not pathlib.Path(folder, "means").exists()


main()
