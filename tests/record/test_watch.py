#!/usr/bin/env python3
"""fovea watch: what it shows is what the logs say, while a run goes on, after a kill and at its end; it touches nothing."""
import contextlib
import http.cookiejar
import json
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test  # noqa: E402
from remote_server import serve  # noqa: E402
from stopped_run import PIECES, TASKS, TEXT, stopped  # noqa: E402


def look(folder, *arguments):
    return json.loads(run("watch", "--once", "--json", *arguments, folder=folder).stdout)


@test
def a_finished_run_is_what_its_record_says(folder):
    run("run", "-q", "-e", 'x = phantom("cells", [90, 90])\nlabel(x > otsu(x)) |> write("l.npy")\nmax(x)', "--chunk", "30",
        folder=folder)
    state = look(folder)
    path = next(pathlib.Path(folder).glob(".fovea/runs/*/record.db"))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as record:
        tasks, = record.execute("SELECT count(*) FROM task").fetchone()
        stages = dict(record.execute("SELECT stage, count(*) FROM task GROUP BY stage"))
        spent = dict(record.execute("SELECT operator, seconds FROM spent"))
    assert state["state"] == "done" and state["fraction"] == 1 and state["tasks"]["done"] == state["tasks"]["total"] == tasks
    part, = state["parts"]
    assert {s["index"]: s["done"] for s in part["stages"]} == stages and all(s["tasks"] == s["done"] for s in part["stages"])
    assert all(node["fraction"] == 1 for node in part["nodes"])
    assert {o["op"] for o in state["operators"]} == set(spent)
    assert all(abs(o["seconds"] - spent[o["op"]]) < 1e-4 for o in state["operators"])
    assert state["outputs"] == [{"number": 0, "path": "l.npy", "picture": True}] and state["outputs_total"] == 1
    assert state["values"][0]["name"] == "max(x)"
    width = (state["timeline"]["to"] - state["timeline"]["from"]) / state["timeline"]["bins"]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as record:
        computed, = record.execute("SELECT sum(compute) FROM task").fetchone()
    shown = sum(sum(lane["compute"]) for lane in state["timeline"]["lanes"]) * width
    assert abs(shown - computed) < 0.1 * computed + 2e-3, (shown, computed)


@test
def a_run_that_goes_on_then_is_killed_then_goes_on_again(folder):
    with stopped(folder) as process:
        state = look(folder)
        assert state["state"] == "running" and 0 < state["tasks"]["done"] < 1200 and state["tasks"]["total"] == TASKS
        assert 0 < state["fraction"] < 0.6 and state["left"] > 0 and state["memory"]["resident"] > 1 << 20
        part, = state["parts"]
        assert part["stages"][0]["done"] == state["tasks"]["done"] and 0 < part["nodes"][0]["fraction"] < 0.6
    killed = look(folder)
    assert killed["state"] == "killed" and 0 < killed["tasks"]["done"] < killed["tasks"]["total"] == TASKS, killed["sentence"]
    assert 0 < killed["fraction"] < 1 and killed["left"] is None
    assert killed["processes"][0]["pid"] == process.pid and killed["processes"][0]["state"] == "killed"
    run("run", "-q", "-e", TEXT, *PIECES, folder=folder)
    done = look(folder)
    assert done["state"] == "done" and len(done["processes"]) == 2 and done["fraction"] == 1
    assert done["tasks"]["done"] >= TASKS


@test
def following_shows_progress_and_ends_with_the_run(folder):
    with stopped(folder) as process:
        watcher = subprocess.Popen([FOVEA, "watch", "--json", "--every", "0.1"], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        lines = [watcher.stdout.readline(), watcher.stdout.readline()]
        process.send_signal(signal.SIGCONT)
        lines += watcher.communicate(timeout=600)[0].splitlines()
        assert process.wait() == 0 and watcher.returncode == 0
    states = [json.loads(line) for line in lines]
    done = [s["tasks"]["done"] for s in states]
    assert done == sorted(done) and 0 < done[0] < done[-1] == TASKS and states[-1]["state"] == "done"
    for s in states[:-1]:
        assert s["state"] == "running" and s["tasks"]["total"] == TASKS, s["sentence"]


@test
def the_folder_of_the_run_is_not_touched(folder):
    run("run", "-q", "-e", 'phantom("cells", [90, 90]) |> gaussian(1) |> write("g.npy")', folder=folder)
    files = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in pathlib.Path(folder).rglob("*")}
    run("watch", "--once", folder=folder)
    look(folder)
    assert files == {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in pathlib.Path(folder).rglob("*")}


@test
def failures_have_reasons_and_upset_no_terminal(folder):
    pathlib.Path(folder, "in").mkdir()
    pathlib.Path(folder, "in/\x1b[31mred.png").write_text("no picture")
    pathlib.Path(folder, "in/b.png").write_text("no picture")
    run("run", "-q", "-e", 'read("in/*.png") |> gaussian(1) |> write("out/{stem}.npy")', folder=folder, code=None)
    shown = run("watch", "--once", folder=folder).stdout
    assert "failed: in/b.png: " in shown and "\x1b" not in shown
    state = look(folder)
    assert state["state"] == "failed" and state["failures_total"] == 2 and state["items"]["failed"] == 2


@test
def what_is_found_done_is_counted_and_not_waited_for(folder):
    text = 'x = phantom("foam", [20, 60, 60]) |> median(2)\nlabel(x > otsu(x)) |> write("a.npy")\n'
    run("run", "-q", "-e", text, "--chunk", "20", folder=folder)
    before = {p.name for p in pathlib.Path(folder, ".fovea/runs").iterdir()}
    run("run", "-q", "-e", text + "max(x)", "--chunk", "20", folder=folder)
    name, = {p.name for p in pathlib.Path(folder, ".fovea/runs").iterdir()} - before
    state = look(folder, name)
    assert state["tasks"]["found"] > 0 and state["tasks"]["total"] == state["tasks"]["done"] > 0, state["tasks"]


@test
def worker_processes_are_watched_too(folder):
    run("run", "-q", "-e", 'phantom("foam", [20, 60, 60]) |> median(1) |> write("p.npy")', "--chunk", "10", "--workers", "2",
        "--engine", "processes", folder=folder)
    state = look(folder)
    assert state["engine"] == "processes" and state["tasks"]["done"] == 72 and len(state["timeline"]["lanes"]) == 2


@test
def equals_that_share_a_run_are_told_as_one(folder):
    """The workers of a job array: three processes without a master, then the one that ends the run."""
    pathlib.Path(folder, "p.fov").write_text('phantom("foam", [48, 120, 120]) |> median(2) |> write("m.npy")')
    frozen = run("submit", "p.fov", "--dry-run", "--measure", "0", "--chunk", "12x40x40", folder=folder).stdout.splitlines()[0]
    for place in range(3):
        run("work", frozen, "--workers", "1", "--memory", "300M", folder=folder,
            environment={"SLURM_ARRAY_TASK_ID": str(place), "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_JOB_ID": "77"})
    part = look(folder, frozen)
    assert part["state"] == "waiting" and part["tasks"]["total"] == part["tasks"]["done"] == 36, (part["sentence"], part["tasks"])
    run("work", frozen, "--finish", "--memory", "300M", folder=folder)
    state = look(folder, frozen)
    assert state["state"] == "done" and state["tasks"]["done"] == 36, (state["sentence"], state["tasks"])
    assert len(state["processes"]) == 4 and state["processes"][0]["job"] == "77" and state["processes"][0]["role"] == "worker"


@test
def the_link_of_a_run_tells_events(folder):
    with stopped(folder, "--watch", stderr=subprocess.PIPE) as process:
        link = process.stderr.readline().strip()
        if "libmicrohttpd" in link:
            raise Skip(link)
        assert link.startswith("http://127.0.0.1:"), link
        follow_link(link, process)


def follow_link(link, process):
    """Reads the events of a stopped run, lets it go on, and reads them to its end."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    opener.open(link).read()
    root = link.split("?")[0]
    assert json.load(opener.open(root + "api/session"))["mode"] == "watch"
    last = None
    with opener.open(root + "api/events") as events:
        for line in events:
            if line.startswith(b"data: "):
                last = json.loads(line[6:])
                if last["state"] == "done":
                    break
                assert last["state"] == "running"
                process.send_signal(signal.SIGCONT)
    assert last and last["tasks"]["done"] == TASKS, last and last["sentence"]
    process.communicate(timeout=600)
    assert process.returncode == 0
    try:
        urllib.request.urlopen(root, timeout=5)
        raise AssertionError("the page outlives the run")
    except OSError as error:
        assert not isinstance(error, urllib.error.HTTPError)


@contextlib.contextmanager
def watched(folder, *words):
    """`fovea watch --web` of the last run, or other words that give a link: who has its cookie, and its address."""
    watcher = subprocess.Popen([FOVEA, *(words or ("watch", "--web"))], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        link = watcher.stdout.readline().strip()
        if not link:
            raise Skip(watcher.stderr.read().strip())
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        opener.open(link).read()
        yield opener, link.split("?")[0]
    finally:
        watcher.terminate()
        watcher.communicate()


@test
def results_have_pictures(folder):
    run("run", "-q", "-e", 'x = phantom("cells", [90, 600])\nwrite(x, "x.npy")\nwrite(measure(label(x > 99)), "t.csv")',
        folder=folder)
    with watched(folder) as (opener, root):
        places = {o["path"]: o for o in look(folder)["outputs"]}
        assert places["x.npy"]["picture"] and not places["t.csv"]["picture"], places
        address = root + "api/picture?number="
        answer = opener.open(f"{address}{places['x.npy']['number']}")
        png = answer.read()
        assert answer.headers["Content-Type"] == "image/png" and png.startswith(b"\x89PNG"), png[:8]
        assert (int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")) == (300, 45), png[16:24]
        for number, status in ((places["t.csv"]["number"], 404), (99, 404), ("x", 400)):
            try:
                opener.open(f"{address}{number}")
                raise AssertionError(f"a picture of {number}")
            except urllib.error.HTTPError as error:
                assert error.code == status, (number, error.code)


@test
def no_record_makes_its_reader_ask_another_machine(folder):
    """A record may come from anybody: neither the page nor the report nor the viewer asks the addresses in it."""
    www = pathlib.Path(folder, "www")
    www.mkdir()
    run("run", "-q", "-e", 'phantom("cells", [40, 50]) |> write("www/in.npy")', "--store", "other", folder=folder)
    with serve(www) as server:
        run("run", "-q", "-e", f'x = read("{server.url}/in.npy") + 1\nwrite(x, "{server.url}/out.zarr")\nwrite(x, "here.npy")',
            folder=folder)
        assert server.log
        del server.log[:]
        name = next(pathlib.Path(folder, ".fovea/runs").iterdir()).name
        outputs = {o["path"]: o for o in look(folder)["outputs"]}
        assert outputs["here.npy"]["picture"] and not outputs[f"{server.url}/out.zarr"]["picture"], outputs
        with watched(folder) as (opener, root):
            for number in range(len(outputs)):
                try:
                    opener.open(f"{root}api/picture?number={number}").read()
                except urllib.error.HTTPError as error:
                    assert error.code == 404
        run("report", "-o", "report.html", "--hash", folder=folder)
        page = pathlib.Path(folder, "report.html").read_text()
        assert page.count("an address, which the report does not ask") == 2, page.count("address")
        assert "here.npy" in page and "<img" in page
        with watched(folder, "view", name) as (opener, root):
            assert [image["name"] for image in json.load(opener.open(root + "api/session"))["images"]] == ["here.npy"]
        # A list of steps beside which nothing lies but an address.
        pathlib.Path(folder, "live.pvd").write_text('<VTKFile type="Collection"><Collection><DataSet timestep="1" part="0" '
                                                    f'file="{server.url}/a.vti"/></Collection></VTKFile>')
        assert "a.vti" in run("run", "-e", 'max(read("live.pvd"))', folder=folder, code=2).stderr
        assert not server.log, server.log


@test
def leases_of_devices_are_counted(folder):
    done = run("run", "-q", "-e", 'phantom("foam", [20, 60, 60]) |> gaussian(1) |> write("g.npy")', "--chunk", "20", "--device",
               "opencl", folder=folder, code=None)
    if done.returncode:
        raise Skip(done.stderr.strip().splitlines()[-1])
    state = look(folder)
    assert state["leases"]["count"] >= 9 and state["leases"]["leased"] > 0 and state["leases"]["queued"] >= 0, state.get("leases")
    assert f"leased {state['leases']['count']} times" in run("watch", "--once", folder=folder).stdout


@test
def ranks_are_told_apart(folder):
    if not shutil.which("mpiexec.mpich") or not pathlib.Path(FOVEA).with_name("fovea-mpi-mpich.so").exists():
        raise Skip("no MPICH")
    text = 'phantom("foam", [20, 120, 120]) |> median(2) |> write("m.npy")'
    subprocess.run(["mpiexec.mpich", "-n", "2", FOVEA, "run", "-q", "--engine", "mpi", "--chunk", "20", "-e", text], cwd=folder,
                   check=True, capture_output=True)
    names = [lane["name"] for lane in look(folder)["timeline"]["lanes"]]
    assert names and all(re.fullmatch(r"rank [01], worker \d+", name) for name in names), names


@test
def mistakes_get_a_sentence(folder):
    assert "there is no run" in run("watch", folder=folder, code=2).stderr
    done = run("watch", "--process", "999999999", folder=folder, code=2)
    assert re.search("process 999999999 has begun no run", done.stderr), done.stderr
    done = run("run", "--watch", "--engine", "slurm", "-e", "max(ones([2, 2]))", folder=folder, code=2)
    assert "fovea watch" in done.stderr


main()
