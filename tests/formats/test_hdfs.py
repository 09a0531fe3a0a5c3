#!/usr/bin/python3
"""Files behind hdfs:// addresses, from an imitation of WebHDFS on loopback. tests/interop/test_hdfs.py does the same with a real
HDFS."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test  # noqa: E402
from webhdfs_server import serve  # noqa: E402

import hdfs_uses  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip hdfs: {missing}")
    sys.exit(0)

if not (pathlib.Path(FOVEA).resolve().parent / "fovea-remote.so").exists():
    print("skip hdfs: no fovea-remote.so; libcurl is missing")
    sys.exit(0)


def place_of(server):
    """The environment of a user who may write."""
    return {"FOVEA_WEBHDFS": server.url + "/", "HADOOP_USER_NAME": "ada"}


@test
def what_users_do(folder):
    os.makedirs(f"{folder}/there")
    with serve(f"{folder}/there") as server:
        hdfs_uses.all_of_it(folder, place_of(server), "hdfs://name:8020/data")
    left = [str(path) for path in pathlib.Path(folder, "there").rglob("*.part")]
    assert not left, left
    assert all("data CREATE" != operation or path.endswith(".part") for operation, path in server.log)


@test
def a_region_is_asked_of_the_data_node_alone_and_little_more_than_itself(folder):
    os.makedirs(f"{folder}/there")
    np.save(f"{folder}/there/a.npy", np.arange(4 << 20, dtype=np.uint8).reshape(64, 256, 256))
    with serve(f"{folder}/there") as server:
        part = hdfs_uses.fetch(folder, 'read("hdfs://name/a.npy")[60]', place_of(server))
        assert np.array_equal(part, np.load(f"{folder}/there/a.npy")[60])
        assert 1 <= sum(operation == "data OPEN" for operation, _ in server.log) <= 3, server.log


@test
def servers_that_are_busy_or_break_off(folder):
    os.makedirs(f"{folder}/there")
    for name in "abc":
        np.save(f"{folder}/there/{name}.npy", np.ones((30, 40), np.float32))
    with serve(f"{folder}/there", {"/a.npy": "busy", "/b.npy": "denied", "/c.npy": "short"}) as server:
        assert hdfs_uses.fetch(folder, 'read("hdfs://name/a.npy")', place_of(server)).sum() == 1200
        assert "denies access" in hdfs_uses.fetch(folder, 'read("hdfs://name/b.npy")', place_of(server), code=2)
        assert "ends early" in hdfs_uses.fetch(folder, 'read("hdfs://name/c.npy")', place_of(server), code=2)
        os.makedirs(f"{folder}/there/taken.npy")
        said = run("run", "-q", "-e", 'write(read("hdfs://name/a.npy"), "hdfs://name/taken.npy")', folder=folder,
                   environment=place_of(server), code=None).stderr
        assert "taken.npy" in said and not list(pathlib.Path(folder, "there").glob("*.part")), said


@test
def a_worker_takes_first_what_lies_on_its_machine(folder):
    for k in range(40):
        os.makedirs(f"{folder}/there/in", exist_ok=True)
        np.save(f"{folder}/there/in/{k:02}.npy", np.full((30, 40), k, np.uint8))
    hosts = {f"/in/{k:02}.npy": ["far.net", "node7.net" if k % 2 else "node7"] for k in (5, 14, 20, 33)}
    pathlib.Path(folder, "p.fov").write_text('x = read("hdfs://name/in/*.npy")\nwrite(measure(x, x), "all.csv")\n')
    for name, faults in (("told", {}), ("untold", {"/in/00.npy": "nowhere"})):
        with serve(f"{folder}/there", faults, hosts) as server:
            place = {**place_of(server), "FOVEA_HOST": "node7.net"}
            store = ["--store", f"{folder}/{name}"]
            frozen = run("submit", "p.fov", "--dry-run", "--measure", "0", *store, folder=folder,
                         environment=place).stdout.splitlines()[0]
            server.log.clear()
            run("work", frozen, "--workers", "1", folder=folder, environment=place)
            opened = list(dict.fromkeys(int(path[4:6]) for operation, path in server.log if operation == "data OPEN"))
            asked = [path for operation, path in server.log if operation == "GETFILEBLOCKLOCATIONS"]
            run("work", frozen, "--finish", "--overwrite", folder=folder, environment=place)
        soon = [opened.index(k) < 10 for k in (5, 14, 20)]  # 20 when it is among those that come soon
        assert soon == ([True] * 3 if name == "told" else [True, False, False]) and sorted(opened) == list(range(40)), opened
        assert len(asked) == len(set(asked)) and len(asked) == (40 if name == "told" else 1), asked
        table = pathlib.Path(folder, "all.csv").read_text().splitlines()
        assert len(table) == 40, table  # of the first, in which all is 0, nothing is measured
        os.unlink(f"{folder}/all.csv")


if __name__ == "__main__":
    main()
