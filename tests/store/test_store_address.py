#!/usr/bin/python3
"""A store behind an address (--store s3://..., hdfs://...): what one machine has committed, another one goes on with."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import remote_server  # noqa: E402
import webhdfs_server  # noqa: E402
from fovea_test import FOVEA, main, run, test  # noqa: E402

if not (pathlib.Path(FOVEA).resolve().parent / "fovea-remote.so").exists():
    print("skip store_address: no fovea-remote.so; libcurl is missing")
    sys.exit(0)

TEXT = """
foam = phantom("foam", [48, 96, 96], seed = 3)
walls = gaussian(foam, 2)
cells = label(walls < 120)
write(cells, "cells.zarr")
write(distance(cells > 0), "OUT/distance.npy")
write(measure(cells, foam), "cells.csv")
mean(walls)
"""
TASKS = ["--chunk", "16,96,96", "--workers", "2", "--patience", "0.001"]


class Machine:
    """A folder, a home and a name of its own: nothing that another one sees."""

    def __init__(self, folder, name, place, store):
        self.folder, self.store = pathlib.Path(folder, name), store
        self.place = {**place, "HOME": str(self.folder / "home"), "XDG_CACHE_HOME": "", "FOVEA_HOST": name}
        (self.folder / "home").mkdir(parents=True)

    def run(self, text, *more, code=0, fault=None, store=None):
        """Runs a text: the facts of the run, or what went wrong."""
        place = dict(self.place, **({"FOVEA_FAULT": fault} if fault else {}))
        done = run("run", "--json", "--store", store or self.store, *TASKS, *more, "-e", text, folder=self.folder, code=code,
                   environment=place)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def made(self):
        """What lies in the folder, by name."""
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in sorted(self.folder.rglob("*"))
                if p.is_file() and p.relative_to(self.folder).parts[0] not in ("home", ".fovea")}


def at_s3(folder):
    """A server with a bucket, the environment for it, and an address in it."""
    os.makedirs(f"{folder}/there/bucket")
    return remote_server.serve(f"{folder}/there", key=("KEY", "SECRET")), "s3://bucket/some prefix"


def access(server):
    return {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET",
            "FOVEA_WEBHDFS": server.url, "HADOOP_USER_NAME": "ada"}


def objects(folder, kind):
    return sorted(pathlib.Path(folder, "there").rglob(f"*.{kind}"))


def go_on_elsewhere(folder, serving, address):
    """Machines that are killed one after another at their first commits; then what the last one made."""
    text = TEXT.replace("OUT", f"{address}/out")
    alone = pathlib.Path(folder, "alone")
    alone.mkdir()
    run("run", "-q", *TASKS, "-e", text.replace(f"{address}/", ""), folder=alone)
    with serving as server:
        place = access(server)
        for k in range(4):
            Machine(folder, f"killed{k}", place, address).run(text, code=None, fault=f"mirror-push:{k + 2}")
        last = Machine(folder, "last", place, address)
        facts = last.run(text)
        assert facts["tasks_run"] < 15, facts
        again = last.run(text)
        assert list(pathlib.Path(folder, "there").rglob("record.db"))
        assert again["tasks_run"] == 0 and again["outputs_current"] == 3 and again["values"] == facts["values"], again
        assert last.run(text, "--fresh")["tasks_run"] > facts["tasks_run"]
        for name in ("cells.csv", "cells.zarr/0/zarr.json"):
            assert last.made()[name] == (alone / name).read_bytes(), name
        assert {n for n in last.made()} == {str(p.relative_to(alone)) for p in alone.rglob("*") if p.is_file()
                                            and p.relative_to(alone).parts[0] not in (".fovea", "out")}
        found = next(pathlib.Path(folder, "there").rglob("distance.npy")).read_bytes()
        assert found == (alone / "out" / "distance.npy").read_bytes()


@test
def a_run_goes_on_from_a_bucket_wherever_it_was_killed(folder):
    go_on_elsewhere(folder, *at_s3(folder))


@test
def a_run_goes_on_from_hdfs_wherever_it_was_killed(folder):
    os.makedirs(f"{folder}/there")
    go_on_elsewhere(folder, webhdfs_server.serve(f"{folder}/there"), "hdfs://name/some prefix")


@test
def outputs_in_the_bucket_are_known_to_all_machines(folder):
    serving, address = at_s3(folder)
    with serving as server:
        first, second = (Machine(folder, name, access(server), address) for name in ("first", "second"))
        text = 'write(gaussian(phantom("cells", [64, 64]), 2), "s3://bucket/smooth.npy")'
        assert first.run(text)["outputs_made"] == 1
        facts = second.run(text)
        assert facts["outputs_current"] == 1 and facts["tasks_run"] == 0, facts
        pathlib.Path(folder, "there/bucket/smooth.npy").write_bytes(b"somebody else's")
        assert "--overwrite" in second.run(text, code=2)


@test
def what_is_damaged_or_gone_there_is_made_again(folder):
    serving, address = at_s3(folder)
    text = 'x = gaussian(phantom("foam", [48, 96, 96]), 2)\nwrite(label(x < otsu(x)), "labels.npy")\notsu(x)'
    with serving as server:
        first = Machine(folder, "first", access(server), address)
        want = first.run(text)["values"]
        packs = objects(folder, "pack")
        assert packs
        for k, pack in enumerate(packs):
            pack.write_bytes(bytes(pack.stat().st_size)) if k % 2 else pack.unlink()
        for other in objects(folder, "log")[:1]:
            other.with_name("readme.txt").write_text("somebody else's")
        second = Machine(folder, "second", access(server), address)
        found = second.run(text, code=None)
        for _ in range(40):  # a run ends where it meets damage, and the next one makes that again
            if not isinstance(found, str):
                break
            assert "damaged and has to be made again" in found, found
            found = second.run(text, code=None)
        assert found["values"] == want and second.made() == first.made()


@test
def a_refused_commit_ends_the_run_and_says_why(folder):
    os.makedirs(f"{folder}/there/bucket")
    with remote_server.serve(f"{folder}/there", key=("KEY", "SECRET")) as server:
        here = Machine(folder, "here", access(server), "s3://bucket/runs")
        here.place["AWS_SECRET_ACCESS_KEY"] = "wrong"
        said = here.run("mean(gaussian(phantom(\"cells\", [64, 64]), 2))", code=2)
        assert "403" in said and "wrong" not in said, said
    with webhdfs_server.serve(f"{folder}/there") as server:
        here = Machine(folder, "there too", {**access(server), "HADOOP_USER_NAME": "eve"}, "hdfs://name/runs")
        said = here.run("mean(gaussian(phantom(\"cells\", [64, 64]), 2))", code=None)
        assert "cannot be kept in hdfs://name/runs/store" in said and "403" in said, said


@test
def a_fresh_run_forgets_what_is_there_whatever_the_machines_are_called(folder):
    serving, address = at_s3(folder)
    text = 'mean(gaussian(phantom("cells", [64, 64]), 2))'
    with serving as server:
        first, second, third = (Machine(folder, name, access(server), address) for name in ("first", "second", "third"))
        assert first.run(text)["tasks_run"] > 0
        for thing in objects(folder, "log") + objects(folder, "pack"):  # a word that might be a time far ahead
            thing.rename(thing.with_name(f"node-ffffffffffffffff-{thing.name}"))
        assert second.run(text)["tasks_run"] == 0
        assert third.run(text, "--fresh")["tasks_run"] > 0
        assert third.run(text)["tasks_run"] == 0


@test
def what_cannot_keep_its_results_there_is_refused(folder):
    serving, address = at_s3(folder)
    with serving as server:
        here = Machine(folder, "here", access(server), address)
        said = here.run('mean(phantom("cells", [64, 64]))', "--engine", "processes", code=2)
        assert "--engine processes" in said and "--apart" in said, said
        assert "s3:// or hdfs://" in here.run('mean(phantom("cells", [64, 64]))', code=2, store="http://host/runs")
        line = 'write(phantom("cells", [9, 9]), "a.npy")'
        for words, why in ((("submit", "--dry-run", "-e", line), "jobs of Slurm need a folder"),
                           (("each", "true", "a"), "only `fovea run`")):
            said = run(words[0], "--store", address, *words[1:], folder=here.folder, code=2, environment=here.place).stderr
            assert why in said, said


main()
