#!/usr/bin/python3
"""Files behind http and s3 addresses, from servers on loopback that this test starts: the same voxels as from the local file, by
range; clear errors; signatures that the server checks by itself; and Zarr written to both."""
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test  # noqa: E402
from remote_server import serve  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip remote: {missing}")
    sys.exit(0)

BUILD = pathlib.Path(FOVEA).resolve().parent
if not (BUILD / "fovea-remote.so").exists():
    print("skip remote: no fovea-remote.so; libcurl is missing")
    sys.exit(0)
SECRETS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalr/XUtnFEMI+bPxRfiCY", "AWS_REGION": "eu-west-3"}
NOBODY = {name: "" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")}


def make(folder, *names, shape=(24, 70, 90)):
    """An image under www/bucket in several formats."""
    image = np.random.default_rng(5).integers(0, 4000, shape).astype(np.uint16)
    os.makedirs(f"{folder}/www/bucket", exist_ok=True)
    np.save(f"{folder}/in.npy", image)
    for name in names:
        run("convert", "in.npy", f"www/bucket/{name}", "--quiet", folder=folder)
    return image


def fetch(folder, path, text='read("PATH")', environment=None, code=0):
    """What read gives, as an array, or what it says."""
    done = run("run", "--quiet", "--overwrite", "-e", f'{text.replace("PATH", path)} |> write("out.npy")', folder=folder,
               environment=dict(NOBODY, **(environment or {})), code=code)
    assert done.returncode in (0, 1, 2)
    return np.load(f"{folder}/out.npy") if code == 0 else done.stderr


def data_bytes(server):
    """Bytes that were asked for by range."""
    spans = [entry[2].removeprefix("bytes=").split("-") for entry in server.log if entry[2]]
    return sum(int(high) - int(low) + 1 for low, high in spans)


@test
def every_format_reads_the_same_from_a_server(folder):
    names = ["a.zarr", "a.tif", "a.nii", "a.nii.gz", "a.npy", "a.mrc", "a.nrrd"]
    names += ["a.h5"] if (BUILD / "fovea-hdf5.so").exists() else []
    image = make(folder, *names)
    with serve(f"{folder}/www") as server:
        for name in names:
            assert np.array_equal(fetch(folder, f"{server.url}/bucket/{name}"), image.astype(np.uint16)), name
        assert "uint16" in run("info", f"{server.url}/bucket/a.zarr", folder=folder).stdout


@test
def pictures_are_read_from_a_server(folder):
    make(folder)
    with open(f"{folder}/www/bucket/a.pgm", "wb") as file:
        file.write(b"P5\n30 20\n255\n" + bytes(range(250)) + bytes(350))
    run("convert", "www/bucket/a.pgm", "www/bucket/a.png", "--quiet", folder=folder)
    with serve(f"{folder}/www") as server:
        for name in ("a.pgm", "a.png"):
            picture = fetch(folder, f"{server.url}/bucket/{name}")
            assert picture.shape == (20, 30) and picture.ravel()[249] == 249, name


@test
def a_region_fetches_little_more_than_itself(folder):
    image = make(folder, "a.nii", "a.tif", "a.zarr", shape=(64, 200, 200))
    with serve(f"{folder}/www") as server:
        for name, most in (("a.nii", 400_000), ("a.tif", 900_000)):
            server.log.clear()
            part = fetch(folder, f"{server.url}/bucket/{name}", 'read("PATH")[30:33]')
            assert np.array_equal(part, image[30:33]), name
            assert 0 < data_bytes(server) < most, (name, data_bytes(server))
        server.log.clear()
        part = fetch(folder, f"{server.url}/bucket/a.zarr", 'read("PATH")[:, 0:10, 0:10]')
        assert np.array_equal(part, image[:, :10, :10])
        assert sum("/0/c/" in entry[1] and entry[0] == "GET" for entry in server.log) == 1, server.log


@test
def shards_and_missing_chunks_are_read_by_range(folder):
    make(folder)
    image = np.zeros((64, 64, 64), np.uint16)
    image[:32, :32, :32] = np.arange(32 ** 3).reshape(32, 32, 32)
    np.save(f"{folder}/in.npy", image)
    run("run", "-q", "-e", 'read("in.npy") |> write("www/bucket/s.zarr", chunk = 32, shard = 64, levels = 1)', folder=folder)
    run("run", "-q", "-e", 'read("in.npy") |> write("www/bucket/m.zarr", chunk = 32, levels = 1)', folder=folder)
    os.remove(f"{folder}/www/bucket/m.zarr/0/c/1/1/1")
    with serve(f"{folder}/www") as server:
        assert np.array_equal(fetch(folder, f"{server.url}/bucket/s.zarr"), image)
        assert np.array_equal(fetch(folder, f"{server.url}/bucket/m.zarr"), image)


@test
def a_server_without_ranges_or_head_or_patience_is_coped_with(folder):
    image = make(folder, "a.tif", "b.nii", "c.nii")
    faults = {"/bucket/a.tif": "no-range", "/bucket/b.nii": "busy", "/bucket/c.nii": "no-head"}
    with serve(f"{folder}/www", faults) as server:
        for name in ("a.tif", "b.nii", "c.nii"):
            assert np.array_equal(fetch(folder, f"{server.url}/bucket/{name}"), image), name


@test
def what_goes_wrong_is_named(folder):
    make(folder, "a.nii", "b.nii", "c.nii")
    faults = {"/bucket/a.nii": "truncated", "/bucket/b.nii": "denied", "/bucket/c.nii": "changed"}
    with serve(f"{folder}/www", faults) as server:
        for name, why in (("none.nii", "there is no"), ("a.nii", "cannot read"), ("b.nii", "denies access (403)"),
                          ("c.nii", "has changed while it was being read"), ("none.zarr", "there is no")):
            said = fetch(folder, f"{server.url}/bucket/{name}", code=None)
            assert why in said and name in said, said
    with socket.socket() as probe:  # nobody listens here any more
        probe.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{probe.getsockname()[1]}"
    said = fetch(folder, f"{gone}/a.nii", code=None)
    assert "tried 4 times" in said and "onnect" in said, said


@test
def a_changed_remote_file_is_computed_anew_and_an_unchanged_one_is_not(folder):
    make(folder, "a.nii")
    with serve(f"{folder}/www") as server:
        def again():
            return run("run", "-e", f'gaussian(read("{server.url}/bucket/a.nii"), 1) |> write("out.npy")', folder=folder).stderr
        again()
        assert "up to date" in again()
        before = np.load(f"{folder}/out.npy")
        image = np.load(f"{folder}/in.npy") + 7
        np.save(f"{folder}/in.npy", image)
        run("convert", "in.npy", "www/bucket/a.nii", "--quiet", "--overwrite", folder=folder)
        assert "up to date" not in again()
        assert not np.array_equal(np.load(f"{folder}/out.npy"), before)


@test
def s3_is_signed_where_there_are_keys_and_public_otherwise(folder):
    image = make(folder, "a.zarr", "a b+c.nii")
    with serve(f"{folder}/www", key=(SECRETS["AWS_ACCESS_KEY_ID"], SECRETS["AWS_SECRET_ACCESS_KEY"])) as server:
        place = dict(SECRETS, AWS_ENDPOINT_URL=server.url)
        assert np.array_equal(fetch(folder, "s3://bucket/a.zarr", environment=place), image)
        assert np.array_equal(fetch(folder, "s3://bucket/a b+c.nii", environment=place), image)
        assert np.array_equal(fetch(folder, "s3://bucket/a.zarr", environment=dict(place, AWS_SESSION_TOKEN="abc")), image)
        said = fetch(folder, "s3://bucket/a.zarr", environment=dict(place, AWS_SECRET_ACCESS_KEY="other"), code=2)
        assert "denies access (403)" in said and "other" not in said, said
        said = fetch(folder, "s3://bucket/a.zarr", environment={"AWS_ENDPOINT_URL": server.url}, code=2)
        assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" in said, said
    with serve(f"{folder}/www") as server:
        assert np.array_equal(fetch(folder, "s3://bucket/a.zarr", environment={"AWS_ENDPOINT_URL": server.url}), image)


@test
def zarr_is_written_to_http_and_s3_with_its_metadata_last(folder):
    image = make(folder)
    with serve(f"{folder}/www", key=(SECRETS["AWS_ACCESS_KEY_ID"], SECRETS["AWS_SECRET_ACCESS_KEY"])) as server:
        place = dict(SECRETS, AWS_ENDPOINT_URL=server.url)
        write = 'read("in.npy") |> write("s3://bucket/out.zarr", chunk = 32, levels = 2)'
        run("run", "-q", "-e", write, folder=folder, environment=place)
        puts = [entry[1] for entry in server.log if entry[0] == "PUT"]
        assert puts[-1] == "/bucket/out.zarr/zarr.json", puts
        last_chunk = max(i for i, name in enumerate(puts) if "/c/" in name and name.startswith("/bucket/out.zarr/0"))
        assert puts.index("/bucket/out.zarr/0/zarr.json") > last_chunk
        assert np.array_equal(fetch(folder, "s3://bucket/out.zarr", environment=place), image)
        assert "up to date" in run("run", "-e", write, folder=folder, environment=place).stderr
        run("run", "-q", "-e", 'read("in.npy") + 1 |> write("s3://bucket/out.zarr")', folder=folder, environment=place)
    run("convert", "www/bucket/out.zarr", "local.npy", "--quiet", folder=folder)
    assert np.array_equal(np.load(f"{folder}/local.npy"), image + 1)
    for path in pathlib.Path(folder, ".fovea").rglob("*"):
        assert not path.is_file() or SECRETS["AWS_SECRET_ACCESS_KEY"].encode() not in path.read_bytes(), path
    with serve(f"{folder}/www") as server:
        run("convert", "in.npy", f"{server.url}/bucket/http.zarr", "--quiet", folder=folder)
    run("convert", "www/bucket/http.zarr", "local.npy", "--quiet", "--overwrite", folder=folder)
    assert np.array_equal(np.load(f"{folder}/local.npy"), image)


@test
def what_others_have_written_there_is_not_replaced(folder):
    make(folder, "theirs.zarr")
    with serve(f"{folder}/www") as server:
        said = run("convert", "in.npy", f"{server.url}/bucket/theirs.zarr", "--quiet", folder=folder, code=2).stderr
        assert "--overwrite" in said, said
        said = run("convert", "in.npy", f"{server.url}/bucket/a.tif", "--quiet", folder=folder, code=2).stderr
        assert "end the name in .zarr" in said, said


@test
def without_the_plug_in_there_is_a_clear_message(folder):
    os.makedirs(f"{folder}/none")
    said = fetch(folder, "http://127.0.0.1:1/a.nii", environment={"FOVEA_PLUGINS": f"{folder}/none"}, code=2)
    assert "fovea-remote.so" in said and "libcurl" in said, said


main()
