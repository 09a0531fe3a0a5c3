#!/usr/bin/python3
"""Files behind http and s3 addresses, from servers on loopback that this test starts: the same voxels as from the local file, by
range; clear errors; signatures that the server checks by itself; and Zarr written to both."""
import gzip
import json
import os
import pathlib
import shutil
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test  # noqa: E402
from limits import attempt  # noqa: E402
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


def make_scan(folder, shape=(60, 100, 120)):
    """A scan with chunks, one without, one that the library must convert, and a variable of NetCDF 4."""
    if not (BUILD / "fovea-hdf5.so").exists():
        raise Skip("no fovea-hdf5.so; libhdf5 is missing")
    try:
        import h5py  # pylint: disable=import-outside-toplevel
    except ImportError as missing:
        raise Skip(str(missing)) from missing
    image = np.random.default_rng(5).integers(0, 4000, shape).astype(np.uint16)
    os.makedirs(f"{folder}/www/bucket", exist_ok=True)
    with h5py.File(f"{folder}/www/bucket/scan.h5", "w") as file:
        file.create_dataset("/exchange/data", data=image, chunks=(10, 50, 60), compression="gzip", shuffle=True)
        file["/exchange/theta"] = np.linspace(0, 180, shape[0])
        file["/plain"] = image
        file.create_dataset("/converted", data=image, chunks=(10, 50, 60), scaleoffset=0)
    with h5py.File(f"{folder}/www/bucket/sea.nc", "w") as file:
        file.attrs["_NCProperties"] = "version=2"
        file.create_dataset("heat", data=image, chunks=(10, 50, 60), compression="gzip")
        for name, n in zip(("time", "lat", "lon"), shape):
            file[name] = np.arange(n) * 0.5
            file[name].make_scale(name)
        for i, name in enumerate(("time", "lat", "lon")):
            file["heat"].dims[i].attach_scale(file[name])
    return image


@test
def hdf5_and_netcdf_are_read_by_range(folder):
    image = make_scan(folder)
    whole = os.path.getsize(f"{folder}/www/bucket/scan.h5")
    with serve(f"{folder}/www") as server:
        for name in ("/exchange/data", "/plain", "/converted"):
            server.log.clear()
            part = fetch(folder, f"{server.url}/bucket/scan.h5", f'read("PATH", path = "{name}")[20:23]')
            assert np.array_equal(part, image[20:23]), name
            assert 0 < data_bytes(server) < whole / 4, (name, data_bytes(server), whole)
        assert np.array_equal(fetch(folder, f"{server.url}/bucket/scan.h5"), image)
        for engine in ("threads", "processes"):
            run("run", "-q", "--engine", engine, "--fresh", "--chunk", "13", "-e",
                f'read("{server.url}/bucket/scan.h5") + 1 |> write("more.npy")', folder=folder)
            assert np.array_equal(np.load(f"{folder}/more.npy"), image + 1), engine
        server.log.clear()
        part = fetch(folder, f"{server.url}/bucket/sea.nc", 'read("PATH", path = "heat")[20:23]')
        assert np.array_equal(part, image[20:23])
        assert 0 < data_bytes(server) < os.path.getsize(f"{folder}/www/bucket/sea.nc") / 3, data_bytes(server)
        said = run("info", f"{server.url}/bucket/scan.h5", folder=folder).stdout
        assert "DataExchange" in said and "/exchange/theta" in said and "/converted" in said, said


@test
def damaged_hdf5_behind_an_address_is_named_and_so_is_a_broken_server(folder):
    make_scan(folder)
    bucket = pathlib.Path(folder, "www", "bucket")
    whole = (bucket / "scan.h5").read_bytes()
    (bucket / "cut.h5").write_bytes(whole[:len(whole) // 2])
    (bucket / "none.h5").write_bytes(b"nothing of the kind" * 100)
    changed = bytearray(whole)
    changed[200:3000:7] = bytes(255 for _ in changed[200:3000:7])
    (bucket / "changed.h5").write_bytes(changed)
    with serve(f"{folder}/www", {"/bucket/sea.nc": "broken", "/bucket/scan.h5": "truncated"}) as server:
        for name, why in (("cut.h5", "damaged"), ("none.h5", "not HDF5"), ("changed.h5", ""), ("sea.nc", "500"),
                          ("scan.h5", "cannot read")):
            said = fetch(folder, f"{server.url}/bucket/{name}", code=None)
            assert name in said and why in said, (name, said)


@test
def info_lists_a_remote_hierarchy(folder):
    make(folder)
    run("run", "-q", "-e", 'read("in.npy") |> write("www/bucket/a.zarr", chunk = 32, levels = 2)', folder=folder)
    run("run", "-q", "-e", 'read("in.npy") > 9 |> label() |> write("www/bucket/a.zarr/labels/cells")', folder=folder)
    local = run("info", "www/bucket/a.zarr", folder=folder).stdout.split("contents", 1)[1]
    with serve(f"{folder}/www") as server:
        assert run("info", f"{server.url}/bucket/a.zarr", folder=folder).stdout.split("contents", 1)[1] == local
    top = pathlib.Path(folder, "www", "bucket", "group.zarr")
    array = pathlib.Path(folder, "www", "bucket", "a.zarr", "0", "zarr.json")
    (top / "one" / "two").mkdir(parents=True)
    shutil.copy(array, top / "one" / "two")
    (top / "one" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    names = {"one": {}, "one/two": {}}
    (top / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
        "kind": "inline", "must_understand": False, "metadata": names}}))
    old = pathlib.Path(folder, "www", "bucket", "old.zarr")
    run("run", "-q", "-e", 'read("in.npy") |> write("www/bucket/b.zarr", version = "0.4", levels = 1)', folder=folder)
    shutil.copytree(f"{folder}/www/bucket/b.zarr/0", old / "deep" / "raw")
    for place in (old, old / "deep"):
        (place / ".zgroup").write_text('{"zarr_format": 2}')
    (old / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": {
        ".zgroup": {}, "deep/.zgroup": {}, "deep/raw/.zarray": {}}}))
    with serve(f"{folder}/www") as server:
        assert "one/two" in run("info", f"{server.url}/bucket/group.zarr", folder=folder).stdout
        assert "deep/raw" in run("info", f"{server.url}/bucket/old.zarr", folder=folder).stdout


@test
def tables_come_from_a_server_and_what_cannot_is_named(folder):
    make(folder)
    bucket = pathlib.Path(folder, "www", "bucket")
    (bucket / "t.csv").write_text("a,b\n1,x\n3,y\n")
    names = ["t.csv", "t.jsonl"]
    for name in ("t.jsonl", "t.db", "t.parquet"):
        made = run("convert", "-q", "www/bucket/t.csv", f"www/bucket/{name}", folder=folder, code=None)
        names += [name] if name == "t.parquet" and made.returncode == 0 else []  # DuckDB's library may be missing
    (bucket / "d.dcm").write_bytes(bytes(128) + b"DICM" + bytes(200))
    with serve(f"{folder}/www") as server:
        for name in names:
            said = run("sql", "--csv", f"{server.url}/bucket/{name}", "SELECT sum(a) FROM t", folder=folder).stdout
            assert said.split()[1] == "4", (name, said)
            assert "2 rows" in run("info", f"{server.url}/bucket/{name}", folder=folder).stdout, name
        for name in ("t.db", "d.dcm"):
            said = run("info", f"{server.url}/bucket/{name}", folder=folder, code=2).stderr
            assert name in said and "download it first" in said, said
        if "t.parquet" in names:
            run("convert", "-q", "in.npy", "www/bucket/i.parquet", folder=folder)
            assert np.array_equal(fetch(folder, f"{server.url}/bucket/i.parquet"), np.load(f"{folder}/in.npy"))


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
    make(folder, "a.tif", "b.nii", "c.nii")
    image = make(folder, "d.nii")
    faults = {"/bucket/a.tif": "no-range", "/bucket/b.nii": "busy", "/bucket/c.nii": "no-head", "/bucket/d.nii": "reset"}
    with serve(f"{folder}/www", faults) as server:
        for name in ("a.tif", "b.nii", "c.nii", "d.nii"):
            assert np.array_equal(fetch(folder, f"{server.url}/bucket/{name}"), image), name


@test
def a_file_without_ranges_is_fetched_once_and_nothing_of_it_stays(folder):
    image = make(folder, "a.nii", "b.nii", "c.nii", shape=(40, 200, 200))
    os.makedirs(f"{folder}/tmp")
    faults = {"/bucket/a.nii": "no-range", "/bucket/b.nii": "neither", "/bucket/c.nii": "no-range"}
    with serve(f"{folder}/www", faults) as server:
        for name in ("a.nii", "b.nii"):
            server.log.clear()
            run("run", "-q", "--fresh", "--overwrite", "--chunk", "16", "-e",
                f'read("{server.url}/bucket/{name}") + 1 |> write("out.npy")', folder=folder,
                environment={"TMPDIR": f"{folder}/tmp"})
            assert np.array_equal(np.load(f"{folder}/out.npy"), image + 1), name
            whole = [entry for entry in server.log if entry[0] == "GET" and not entry[2]]
            assert len(whole) == 1, (name, server.log)
        assert not os.listdir(f"{folder}/tmp")
        said = run("run", "-q", "-e", f'sum(read("{server.url}/bucket/c.nii"))', folder=folder, code=None,
                   environment={"TMPDIR": "/dev/fd"}).stderr
        assert "c.nii" in said and "TMPDIR" in said, said


@test
def a_claim_of_a_petabyte_is_refused_with_its_size(folder):
    make(folder, "a.npy")
    with serve(f"{folder}/www", {"/bucket/": "huge"}) as server:
        for name in ("a.nii", "a.bin", "a.h5", "a.tif", "a.nii.gz", "a.csv"):
            shutil.copy(f"{folder}/in.npy", f"{folder}/www/bucket/{name}")
            code, said = attempt(f"{server.url}/bucket/{name}", folder)
            assert code == 2 and name in said and "1000000000000000 bytes (909.5 TiB)" in said and "Content-Length" in said, said


@test
def the_query_of_an_address_goes_with_every_request_and_tells_no_format(folder):
    names = ["a.nii", "a.tif", "a.zarr", "a.mrc", "a.nii.gz", "a.nhdr"]
    image = make(folder, *names)
    names += ["a.npy.gz", "h.hdr", "h.img"]
    bucket = pathlib.Path(folder, "www", "bucket")
    (bucket / "a.npy.gz").write_bytes(gzip.compress(pathlib.Path(folder, "in.npy").read_bytes()))
    whole = (bucket / "a.nii").read_bytes()
    (bucket / "h.hdr").write_bytes(whole[:108] + bytes(4) + whole[112:344] + b"ni1\0")
    (bucket / "h.img").write_bytes(whole[352:])
    (bucket / "t.csv").write_text("a,b\n1,x\n3,y\n")
    with serve(f"{folder}/www", {"/bucket/": "query"}) as server:
        for name in names:
            assert np.array_equal(fetch(folder, f"{server.url}/bucket/{name}?token=right/x.y"), image), name
        address = f"{server.url}/bucket/a.zarr?token=right/x.y"
        assert np.array_equal(fetch(folder, address, 'read("PATH", path = "0")'), image)
        assert "contents" in run("info", address, folder=folder).stdout
        assert "2 rows" in run("info", f"{server.url}/bucket/t.csv?token=right/x.y#top", folder=folder).stdout
        run("convert", "-q", "in.npy", f"{server.url}/bucket/out.zarr?token=right/x.y", folder=folder)
        assert server.asked and all(path.endswith("?token=right/x.y") for path in server.asked), server.asked
        said = fetch(folder, f"{server.url}/bucket/a.tif?token=wrong", code=2)
        assert "a.tif" in said and "wrong" not in said.splitlines()[0], said  # the pipeline's own line follows
    run("convert", "-q", "www/bucket/out.zarr", "back.npy", folder=folder)
    assert np.array_equal(np.load(f"{folder}/back.npy"), image)
    assert not [path for path in pathlib.Path(folder).rglob("*token*")]


@test
def servers_that_are_slow_late_or_elsewhere(folder):
    image = make(folder, "slow.nii", "late.nii", "moved.nii", "round.nii")
    os.makedirs(f"{folder}/www/elsewhere")
    os.rename(f"{folder}/www/bucket", f"{folder}/www/elsewhere/bucket")
    os.makedirs(f"{folder}/www/bucket")
    for name in ("slow", "late", "round"):
        shutil.copy(f"{folder}/www/elsewhere/bucket/{name}.nii", f"{folder}/www/bucket/{name}.nii")
    with serve(f"{folder}/www", {f"/bucket/{name}.nii": name for name in ("slow", "late", "moved", "round")}) as server:
        assert np.array_equal(fetch(folder, f"{server.url}/bucket/moved.nii"), image)
        for name, why in (("slow", "tried 4 times"), ("late", "answers 503; it was asked several times"), ("round", "redirect")):
            said = fetch(folder, f"{server.url}/bucket/{name}.nii", code=None,
                         environment={"FOVEA_PATIENCE": "1"} if name == "slow" else {})
            assert why in said and f"{name}.nii" in said, said


@test
def what_goes_wrong_is_named(folder):
    make(folder, "a.nii", "b.nii", "c.nii")
    faults = {"/bucket/a.nii": "truncated", "/bucket/b.nii": "denied", "/bucket/c.nii": "changed"}
    with serve(f"{folder}/www", faults) as server:
        for name, why in (("none.nii", "there is no"), ("a.nii", "cannot read"), ("b.nii", "denies access (403)"),
                          ("c.nii", "has changed while it was being read"), ("none.zarr", "there is no")):
            said = fetch(folder, f"{server.url}/bucket/{name}", code=None)
            assert why in said and name in said, said
    faults = {f"/bucket/{fault}.nii": fault for fault in ("undated", "dated", "longer", "shifted")}
    image = make(folder, *(f"{fault}.nii" for fault in faults.values()))
    with serve(f"{folder}/www", faults) as server:
        assert np.array_equal(fetch(folder, f"{server.url}/bucket/undated.nii"), image)
        for name, why in (("dated", "has changed while it was being read"), ("longer", "has changed while it was being read"),
                          ("shifted", "another range")):
            said = fetch(folder, f"{server.url}/bucket/{name}.nii", code=None)
            assert why in said and f"{name}.nii" in said, said
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
def a_server_that_is_busy_or_breaks_off_gets_all_chunks_and_one_that_refuses_is_named(folder):
    image = make(folder)
    write = 'read("in.npy") |> write("URL/bucket/NAME.zarr", chunk = 40, levels = 1)'
    faults = {"/bucket/busy.zarr/": "busy", "/bucket/reset.zarr/": "reset", "/bucket/denied.zarr/0/c/": "denied",
              "/bucket/broken.zarr/0/c/": "broken"}
    with serve(f"{folder}/www", faults) as server:
        for name in ("busy", "reset"):
            run("run", "-q", "-e", write.replace("URL", server.url).replace("NAME", name), folder=folder)
            run("convert", "-q", "--overwrite", f"www/bucket/{name}.zarr", "back.npy", folder=folder)
            assert np.array_equal(np.load(f"{folder}/back.npy"), image), name
        for name, why in (("denied", "denies access (403)"), ("broken", "answers 500")):
            said = run("run", "-q", "-e", write.replace("URL", server.url).replace("NAME", name), folder=folder, code=1).stderr
            assert why in said and f"{name}.zarr" in said, said
            assert not os.path.exists(f"{folder}/www/bucket/{name}.zarr/zarr.json")


@test
def what_others_have_written_there_is_not_replaced(folder):
    make(folder, "theirs.zarr")
    with serve(f"{folder}/www") as server:
        said = run("convert", "in.npy", f"{server.url}/bucket/theirs.zarr", "--quiet", folder=folder, code=2).stderr
        assert "--overwrite" in said, said
        for name, why in (("a_{z}.tif", "a file for each slice"), ("a.nhdr", "in files beside it"),
                          ("a.zarr/inside/0", "lies inside another")):
            said = run("run", "-q", "-e", f'read("in.npy") |> write("{server.url}/bucket/{name}")', folder=folder, code=2).stderr
            assert "only whole images are written" in said and why in said, said
        said = run("run", "-q", "-e", f'write(measure(label(read("in.npy") > 3990)), "{server.url}/bucket/t.db")', folder=folder,
                   code=2).stderr
        assert "local" in said, said


@test
def patterns_find_files_in_buckets(folder):
    make(folder)
    names = ["day 1/a2.tif", "day 1/a10.tif", "day 1/b+&.tif", "day2/deep/a1.tif", "day2/c.tif", "other.npy", "day2/image.zarr"]
    for index, name in enumerate(names):
        run("run", "-q", "-e", f'ones([{index + 2}, 5]) |> write("www/bucket/{name}")', folder=folder)
    with serve(f"{folder}/www", key=(SECRETS["AWS_ACCESS_KEY_ID"], SECRETS["AWS_SECRET_ACCESS_KEY"])) as server:
        place = dict(SECRETS, AWS_ENDPOINT_URL=server.url)
        for pattern, wanted in (("day*/a*.tif", names[:2]), ("day 1/*.tif", names[:3]), ("day2/*.zarr", names[6:]),
                                ("**/*.tif", [*names[:3], names[4], names[3]]), ("*.npy", names[5:6]),
                                ("day2/{c,d}.tif", names[4:5])):
            text = f'write(facts(read("s3://bucket/{pattern}"), "y"), "f.csv")'
            run("run", "-q", "--overwrite", "-e", text, folder=folder, environment=place)
            found = [line.split(",")[1] for line in pathlib.Path(folder, "f.csv").read_text().splitlines()[1:]]
            assert found == [f"s3://bucket/{name}" for name in wanted], (pattern, found)
        run("run", "-q", "-e", 'read("s3://bucket/day*/*.tif") + 1 |> write("s3://bucket/more/{stem}.npy")', folder=folder,
            environment=place)
        assert sorted(os.listdir(f"{folder}/www/bucket/more")) == ["a10.npy", "a2.npy", "b+&.npy", "c.npy"]
        said = run("run", "-e", 'sum(read("s3://bucket/none/*.tif"))', folder=folder, environment=place, code=2).stderr
        assert "s3://bucket/none/*.tif" in said, said
    with serve(f"{folder}/www", {"/bucket": "denied"}) as server:
        place = dict(NOBODY, AWS_ENDPOINT_URL=server.url)
        said = run("run", "-e", 'sum(read("s3://bucket/*.tif"))', folder=folder, environment=place, code=2).stderr
        assert "denies access" in said, said


@test
def every_format_is_written_to_a_server_and_so_are_tables(folder):
    make(folder)
    names = ["a.tif", "a.nii", "a.nii.gz", "a.npy", "a.mrc", "a.nrrd", "a.raw"]
    names += ["a.h5"] if (BUILD / "fovea-hdf5.so").exists() else []
    with serve(f"{folder}/www", key=(SECRETS["AWS_ACCESS_KEY_ID"], SECRETS["AWS_SECRET_ACCESS_KEY"])) as server:
        place = dict(SECRETS, AWS_ENDPOINT_URL=server.url)
        for name in names:
            write = f'read("in.npy") |> write("s3://bucket/{name}")'
            run("run", "-q", "-e", write, folder=folder, environment=place)
            run("convert", "in.npy", name, "--quiet", folder=folder)
            assert pathlib.Path(folder, name).read_bytes() == pathlib.Path(folder, "www/bucket", name).read_bytes(), name
            assert "up to date" in run("run", "-e", write, folder=folder, environment=place).stderr, name
        table = 'measure(label(read("in.npy") > 3990), read("in.npy"))'
        for name in ("t.csv", "t.tsv", "t.jsonl"):
            for target in (name, f"s3://bucket/{name}"):
                run("run", "-q", "-e", f'write({table}, "{target}")', folder=folder, environment=place)
            assert pathlib.Path(folder, name).read_bytes() == pathlib.Path(folder, "www/bucket", name).read_bytes(), name
    assert not list(pathlib.Path(folder, ".fovea/remote").iterdir())


@test
def without_the_plug_in_there_is_a_clear_message(folder):
    os.makedirs(f"{folder}/none")
    said = fetch(folder, "http://127.0.0.1:1/a.nii", environment={"FOVEA_PLUGINS": f"{folder}/none"}, code=2)
    assert "fovea-remote.so" in said and "libcurl" in said, said


main()
