#!/usr/bin/python3
"""moto's imitation of S3, on loopback: what Fovea reads from it by region and writes to it, signed, and what boto3, Amazon's own
client, finds there."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test  # noqa: E402
from s3_bucket import boto, bucket, upload  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip s3: {missing}")
    sys.exit(0)

BUILD = pathlib.Path(FOVEA).resolve().parent
if not (BUILD / "fovea-remote.so").exists():
    print("skip s3: no fovea-remote.so; libcurl is missing")
    sys.exit(0)
NAMES = ["a.zarr", "a.tif", "a.nii", "a.nii.gz"] + (["a.h5"] if (BUILD / "fovea-hdf5.so").exists() else [])


def fetch(folder, text, place, code=0):
    done = run("run", "--quiet", "--overwrite", "-e", f'{text} |> write("out.npy")', folder=folder, environment=place, code=code)
    return done.stderr if code else np.load(f"{folder}/out.npy")


@test
def every_remote_format_is_read_whole_and_by_region_with_a_signature(folder):
    image = np.random.default_rng(5).integers(0, 4000, (24, 70, 90)).astype(np.uint16)
    np.save(f"{folder}/in.npy", image)
    os.makedirs(f"{folder}/up")
    for name in NAMES:
        run("convert", "in.npy", f"up/{name}", "--quiet", folder=folder)
    run("run", "-q", "-e", 'read("in.npy") |> write("up/s.zarr", chunk = 16, shard = 64)', folder=folder)
    with bucket(folder) as place:
        upload(folder, place)
        for name in [*NAMES, "s.zarr"]:
            assert np.array_equal(fetch(folder, f'read("s3://bucket/{name}")', place), image), name
            part = fetch(folder, f'read("s3://bucket/{name}")[5:9, 10:20, 30:75]', place)
            assert np.array_equal(part, image[5:9, 10:20, 30:75]), name
        assert "uint16" in run("info", "s3://bucket/a.zarr", folder=folder, environment=place).stdout


@test
def a_wrong_key_is_refused_with_a_clear_message_and_never_shown(folder):
    np.save(f"{folder}/in.npy", np.arange(60, dtype=np.uint8).reshape(3, 4, 5))
    os.makedirs(f"{folder}/up")
    run("convert", "in.npy", "up/a.zarr", "--quiet", folder=folder)
    run("convert", "in.npy", "up/a.nii", "--quiet", folder=folder)
    with bucket(folder) as place:
        upload(folder, place)
        wrong = dict(place, AWS_SECRET_ACCESS_KEY="not-the-secret")
        for name in ("a.zarr", "a.nii"):
            said = fetch(folder, f'read("s3://bucket/{name}")', wrong, code=2)
            assert "denies access (403)" in said and name in said and "not-the-secret" not in said, said
        said = run("run", "-q", "-e", 'read("in.npy") |> write("s3://bucket/new.zarr")', folder=folder, environment=wrong,
                   code=None)
        assert said.returncode and "403" in said.stderr, said.stderr
        said = fetch(folder, 'read("s3://bucket/none.nii")', place, code=2)
        assert "there is no" in said and "none.nii" in said, said
        said = fetch(folder, 'read("s3://nowhere/a.nii")', place, code=2)
        assert "nowhere" in said, said


@test
def zarr_written_to_s3_is_what_a_local_one_is_and_amazons_client_finds_it(folder):
    image = np.random.default_rng(6).integers(0, 4000, (40, 50, 60)).astype(np.uint16)
    np.save(f"{folder}/in.npy", image)
    with bucket(folder) as place:
        for options in ("chunk = 16, levels = 2", "chunk = 8, shard = 32, levels = 1", 'version = "0.4", compression = "blosc"'):
            for target in ("s3://bucket/out.zarr", "local.zarr"):
                run("run", "-q", "--overwrite", "-e", f'read("in.npy") |> write("{target}", {options})', folder=folder,
                    environment=place)
            assert np.array_equal(fetch(folder, 'read("s3://bucket/out.zarr")', place), image), options
            local = {str(path.relative_to(f"{folder}/local.zarr")): path.stat().st_size
                     for path in pathlib.Path(folder, "local.zarr").rglob("*") if path.is_file()}
            listed = boto("""
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix="out.zarr/")
print(json.dumps({o["Key"].removeprefix("out.zarr/"): o["Size"] for page in pages for o in page["Contents"]}))""", folder, place)
            missing = {name: size for name, size in local.items() if listed.get(name) != size}
            assert not missing, (options, missing)


@test
def a_folder_in_a_bucket_is_processed_file_by_file(folder):
    os.makedirs(f"{folder}/up/plate 1/deep")
    names = [f"plate 1/well+{index}.tif" for index in range(3)] + ["plate 1/deep/other.tif", "readme.txt"]
    for index, name in enumerate(names[:4]):
        np.save(f"{folder}/in.npy", np.full((4, 5), index, np.uint8))
        run("convert", "in.npy", f"up/{name}", "--quiet", folder=folder)
    pathlib.Path(folder, "up/readme.txt").write_text("words")
    with bucket(folder) as place:
        upload(folder, place)
        run("run", "-q", "-e", 'a = read("s3://bucket/plate */*.tif") + 1; write(a, "s3://bucket/more/{stem}.nii.gz"); '
            'write(facts(a, "max"), "s3://bucket/facts.csv")', folder=folder, environment=place)
        listed = boto("""
print(json.dumps([o["Key"] for o in s3.list_objects_v2(Bucket="bucket")["Contents"]]))""", folder, place)
        more = [name for name in listed if name.startswith("more/")]
        assert more == [f"more/well+{index}.nii.gz" for index in range(3)], listed
        run("run", "-q", "-e", 'write(read("s3://bucket/facts.csv"), "facts.csv")', folder=folder, environment=place)
        rows = pathlib.Path(folder, "facts.csv").read_text().splitlines()[1:]
        assert [row.split(",")[-1] for row in rows] == ["1", "2", "3"], rows


main()
