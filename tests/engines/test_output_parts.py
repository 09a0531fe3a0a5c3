"""Outputs of a header and a folder of parts: killed at any moment they are the earlier result or the new one, and the next run
leaves nothing behind."""
import os
import pathlib
import shutil
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

WAYS = (("nhdr", ""), ("nhdr", ', compression = "gzip"'), ("mhd", ""), ("pvti", ", chunk = 4"))


def write(folder, extension, options, value, *more, fault=None):
    """A result that holds one value everywhere."""
    text = f'zeros([6, 7, 8]) + {value} |> convert("uint16") |> write("out.{extension}"{options})'
    return run("run", "-q", *more, "-e", text, folder=folder, code=None if fault else 0,
               environment={"FOVEA_FAULT": fault} if fault else {})


def value_of(folder, extension):
    """The one value of the result that is there; None: there is none."""
    if not pathlib.Path(folder, f"out.{extension}").exists():
        return None
    run("convert", "-q", "--overwrite", "--store", "other", f"out.{extension}", "seen.npy", folder=folder)
    seen = np.unique(np.load(f"{folder}/seen.npy"))
    assert len(seen) == 1, seen
    return int(seen[0])


def files_of(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith(("out.", ".out.")))


@test
def a_run_killed_anywhere_leaves_the_earlier_result_or_the_new_one(folder):
    faults = [f"{point}:{number}:kill" for point, most in (("rename", 4), ("replace", 2), ("replaced", 2))
              for number in range(1, most + 1)]
    for extension, options in WAYS[:1] + WAYS[3:]:
        killed = 0
        for fault in faults:
            for path in files_of(folder):
                path = pathlib.Path(folder, path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.rmtree(f"{folder}/.fovea", ignore_errors=True)
            write(folder, extension, options, 3)
            done = write(folder, extension, options, 5, fault=fault)
            killed += done.returncode == 137
            assert value_of(folder, extension) in ((3, 5) if done.returncode else (5,)), (extension, fault)
            write(folder, extension, options, 9)
            assert value_of(folder, extension) == 9, (extension, fault)
            names = files_of(folder)
            assert len(names) == 2 and names[1].startswith(names[0] + "."), (extension, fault, names)
        assert killed >= 5, (extension, killed)


@test
def a_killed_first_run_leaves_no_header_that_points_nowhere(folder):
    for extension, options in WAYS:
        for fault in ("replace:1:kill", "replaced:1:kill", "replace:2:kill"):
            done = write(folder, extension, options, 4, "--fresh", "--overwrite", fault=fault)
            assert done.returncode == 137, (extension, fault, done.stderr)
            assert value_of(folder, extension) in (None, 4), (extension, fault)
        write(folder, extension, options, 4)
        assert value_of(folder, extension) == 4
        assert len([name for name in files_of(folder) if f".{extension}" in name]) == 2, files_of(folder)


@test
def the_same_result_is_not_made_twice_and_lost_parts_are_made_again(folder):
    for extension, options in WAYS:
        write(folder, extension, options, 2)
        header = pathlib.Path(folder, f"out.{extension}")
        made = header.stat().st_mtime_ns
        write(folder, extension, options, 2)
        assert header.stat().st_mtime_ns == made
        shutil.rmtree(next(pathlib.Path(folder).glob(f"out.{extension}.*")))
        write(folder, extension, options, 2)
        assert value_of(folder, extension) == 2


@test
def voxels_that_changed_are_read_anew(folder):
    for extension, options in WAYS:
        write(folder, extension, options, 2)
        assert value_of(folder, extension) == 2
        run("run", "-q", "-e", f'zeros([6, 7, 8]) + 7 |> convert("uint16") |> write("new.{extension}"{options})', folder=folder)
        parts = next(pathlib.Path(folder).glob(f"out.{extension}.*"))
        for part in next(pathlib.Path(folder).glob(f"new.{extension}.*")).iterdir():
            shutil.copy(part, parts)
        assert value_of(folder, extension) == 7, extension


@test
def headers_name_their_parts_whatever_they_are_called(folder):
    image = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.save(f"{folder}/in.npy", image)
    for extension in ("nhdr", "mhd", "pvti"):
        for name in ("two words", " blank", "LIST", "a&<b>'c"):
            run("convert", "-q", "in.npy", f"{name}.{extension}", folder=folder)
            run("convert", "-q", "--overwrite", f"{name}.{extension}", "back.npy", folder=folder)
            assert np.array_equal(np.load(f"{folder}/back.npy"), image), (name, extension)
    for extension in ("nhdr", "mhd"):
        said = run("convert", "-q", "in.npy", f"p%03d.{extension}", folder=folder, code=2).stderr
        assert "choose another name" in said, said


@test
def chunks_of_a_zarr_image_that_changed_are_read_anew(folder):
    for version in "0.4", "0.5":
        for name, value in ("out", 2), ("new", 7):
            run("run", "-q", "-e", f'zeros([6, 7, 8]) + {value} |> convert("uint16") |> write("{name}{version}.zarr", '
                f'version = "{version}", levels = 1)', folder=folder)
        assert run("run", "-e", f'mean(read("out{version}.zarr"))', folder=folder).stdout.strip() == "2"
        chunks = [path for path in pathlib.Path(folder, f"new{version}.zarr", "0").rglob("*") if path.is_file()
                  and not path.name.startswith(".z") and path.name != "zarr.json"]
        assert len(chunks) == 1, chunks
        there = pathlib.Path(folder, f"out{version}.zarr") / chunks[0].relative_to(pathlib.Path(folder, f"new{version}.zarr"))
        there.write_bytes(chunks[0].read_bytes())
        assert run("run", "-e", f'mean(read("out{version}.zarr"))', folder=folder).stdout.strip() == "7", version


@test
def the_files_of_others_stay(folder):
    for extension, options in WAYS:
        others = [f"out.{extension}.txt", f"out.{extension}.0123456789abcdef.more", f"out.{extension}.0123456789abcdeg"]
        for name in others:
            pathlib.Path(folder, name).mkdir(exist_ok=True)
        pathlib.Path(folder, f"out.{extension}").write_text("mine")
        run("run", "-q", "-e", f'zeros([3, 4]) |> write("out.{extension}"{options})', folder=folder, code=2)
        assert pathlib.Path(folder, f"out.{extension}").read_text() == "mine"
        write(folder, extension, options, 1, "--overwrite")
        assert value_of(folder, extension) == 1
        assert all(pathlib.Path(folder, name).is_dir() for name in others)


@test
def many_results_of_a_collection_have_their_own_parts(folder):
    for i in range(5):
        np.save(f"{folder}/in{i}.npy", np.full((4, 5), i, np.uint8))
    for engine in ("threads", "processes"):
        run("run", "-q", "--engine", engine, "-e", 'read("in*.npy") + 1 |> write("out/{stem}.nhdr")', folder=folder)
        run("run", "-q", "--fresh", "-e", 'read("out/in*.nhdr") |> write("back/{stem}.npy")', folder=folder)
        for i in range(5):
            assert np.all(np.load(f"{folder}/back/in{i}.npy") == i + 1)
        assert len(os.listdir(f"{folder}/out")) == 10


main()
