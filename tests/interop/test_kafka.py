"""Streams from a real Kafka broker: the results of stored data, and every frame once, whatever is killed when."""
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, long, main, run, test, wait_for
from kafka import Broker

try:
    import numpy
except ImportError:
    numpy = None

KILLS = int(os.environ.get("KILLS", "6"))  # make soak takes 50
COUNT = """scans = read("scans/*.npy")
write(gaussian(scans, 2), "out/{stem}.tif")
write(mean(scans), "means.db", table = "means")
write(mean(scans), "means.csv")
"""


def put(folder, count, size=32, seed=0):
    if numpy is None:
        raise Skip("no numpy")
    generator = numpy.random.default_rng(seed)
    (pathlib.Path(folder) / "scans").mkdir(exist_ok=True)
    for i in range(count):
        numpy.save(pathlib.Path(folder) / "scans" / f"a-{i:06d}.npy", generator.integers(0, 256, (size, size)).astype("uint16"))


def rows(folder):
    with sqlite3.connect(pathlib.Path(folder) / "means.db") as database:
        return sorted(database.execute("SELECT * FROM means").fetchall())


def results(folder):
    out = pathlib.Path(folder) / "out"
    lines = (pathlib.Path(folder) / "means.csv").read_text().splitlines()
    return {path.name: path.read_bytes() for path in out.glob("[!.]*")}, rows(folder), sorted(lines)


def text(folder, content=COUNT):
    (pathlib.Path(folder) / "p.fov").write_text(content)
    return "p.fov"


def expected(folder, content=COUNT):
    run("run", "-q", text(folder, content), "--into", "stored", folder=folder)
    there = pathlib.Path(folder) / "stored"
    return results(there)


@test
def frames_of_a_topic_give_what_a_run_over_files_gives(folder):
    put(folder, 20)
    wanted = expected(folder)
    with Broker(folder, 3) as broker:
        for codec in ("none", "lz4", "zstd"):
            topic = broker.topic(f"frames-{codec}")
            run("publish", "-q", "scans/*.npy", "--to", topic, "--codec", codec, folder=folder)
            here = pathlib.Path(folder) / codec
            here.mkdir()
            run("stream", "-q", text(here), "--bind", f"scans={topic}?group=g", "--once", folder=here)
            assert results(here) == wanted, codec
            done = run("stream", text(here), "--bind", f"scans={topic}?group=g", "--once", folder=here)
            assert "0 of 0 frames" in done.stderr, done.stderr


@long
def messages_of_others_are_understood_and_those_of_no_use_put_aside(folder):
    put(folder, 1)
    with Broker(folder) as broker:
        topic, dead, results_topic = (broker.topic(name) for name in ("in", "dead", "out"))
        image = numpy.load(pathlib.Path(folder) / "scans" / "a-000000.npy")
        run("run", "-q", "-e", 'read("scans/a-000000.npy") |> write("a.tif"); read("scans/a-000000.npy") |> write("a.png")',
            folder=folder)
        broker.send("in", image.tobytes(), key="raw", fovea_shape="32,32", fovea_dtype="uint16", fovea_index=4)
        for name in ("a.tif", "a.png", "scans/a-000000.npy"):
            broker.send("in", (pathlib.Path(folder) / name).read_bytes(), key=name.replace("/", "-").replace(".", "-"))
        broker.send("in", b"nothing that makes sense", key="junk")
        broker.send("in", image.tobytes()[:-2], key="short", fovea_shape="32,32", fovea_dtype="uint16")
        done = run("stream", "-q", text(folder), "--bind", f"scans={topic}", "--once", "--dead", dead, "--to", results_topic,
                   folder=folder, code=1)
        assert "junk" not in done.stdout and len({row[2] for row in rows(folder)}) == 1, rows(folder)
        assert len(rows(folder)) == 4 and abs(rows(folder)[0][2] - image.mean()) < 1e-9
        reasons = broker.messages("dead", "%k %h\n").decode()
        assert "short" in reasons and "2046 bytes" in reasons and "junk" in reasons, reasons
        sent = broker.messages("out", "%k %h %S\n").decode()
        assert sent.count("fovea-file=out/") == 4 and sent.count("fovea-table=means") >= 4, sent


@test
def a_broker_or_a_topic_that_is_not_there_is_told(folder):
    (pathlib.Path(folder) / "settings").write_text("security.protocol=secret-thing\n")
    with Broker(folder) as broker:
        told = run("stream", text(folder), "--bind", f"scans=kafka://{broker.address}/none", folder=folder, code=2).stderr
        assert "has no topic none" in told, told
        topic = broker.topic("in")
        told = run("stream", text(folder), "--bind", f"scans={topic}", "--kafka-config", "settings", folder=folder, code=2).stderr
        assert "security.protocol" in told, told
    told = run("stream", text(folder), "--bind", f"scans={topic}", folder=folder, code=2).stderr
    assert "no broker answers" in told, told


@long
def two_streams_of_a_group_share_the_partitions_and_one_takes_over_from_the_other(folder):
    put(folder, 60)
    wanted = expected(folder)[:2]
    content = COUNT.replace('write(mean(scans), "means.csv")\n', "")
    with Broker(folder, 4) as broker:
        topic = broker.topic("frames")
        here = pathlib.Path(folder) / "live"
        here.mkdir()
        command = [FOVEA, "stream", "-q", text(here, content), "--bind", f"scans={topic}?group=g"]
        streams = [subprocess.Popen(command, cwd=here) for _ in range(2)]
        files = sorted((pathlib.Path(folder) / "scans").iterdir())
        for number, file in enumerate(files):  # keys of their own, so that they spread over the partitions
            run("publish", "-q", file, "--to", topic, "--key", f"k{number}", folder=folder)
            if number == 30:
                streams[0].send_signal(signal.SIGKILL)
                streams[0].wait()
        wait_for("all frames", lambda: (here / "means.db").exists() and len(rows(here)) >= 60)
        time.sleep(1)
        streams[1].send_signal(signal.SIGINT)
        assert streams[1].wait() == 0
        items = [row[0] for row in rows(here)]
        assert len(items) == 60 and len(set(items)) == 60, items
        assert sorted(row[2] for row in rows(here)) == sorted(row[2] for row in wanted[1])


@long
def ranks_of_mpi_are_streams_of_one_group(folder):
    launcher = shutil.which("mpiexec.mpich") or shutil.which("mpiexec")
    if not launcher:
        raise Skip("no mpiexec here: apt-get install mpich")
    put(folder, 60)
    wanted = expected(folder)[1]
    content = COUNT.replace('write(mean(scans), "means.csv")\n', "")
    with Broker(folder, 4) as broker:
        topic = broker.topic("frames")
        here = pathlib.Path(folder) / "live"
        here.mkdir()
        for number, file in enumerate(sorted((pathlib.Path(folder) / "scans").iterdir())):
            run("publish", "-q", file, "--to", topic, "--key", f"k{number}", folder=folder)
        command = [FOVEA, "stream", "-q", text(here, content), "--bind", f"scans={topic}?group=g", "--once"]
        subprocess.run([launcher, "-n", "2", *command], cwd=here, check=True, timeout=600)
    assert len({row[0] for row in rows(here)}) == 60, len(rows(here))
    assert sorted(row[2] for row in rows(here)) == sorted(row[2] for row in wanted)


def ranks_in(folder):
    """Processes of Fovea whose working folder is this one."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").samefile(folder) and (entry / "exe").samefile(FOVEA):
                found.append(int(entry.name))
        except OSError:
            pass  # it has gone
    return found


@long
def a_rank_of_mpi_that_is_killed_costs_no_frame(folder):
    launcher = shutil.which("mpiexec.mpich") or shutil.which("mpiexec")
    if not launcher:
        raise Skip("no mpiexec here: apt-get install mpich")
    put(folder, 80)
    wanted = expected(folder)[1]
    content = COUNT.replace('write(mean(scans), "means.csv")\n', "")
    with Broker(folder, 4) as broker:
        topic = broker.topic("frames")
        here = pathlib.Path(folder) / "live"
        here.mkdir()
        command = [launcher, "-n", "3", FOVEA, "stream", "-q", text(here, content), "--bind", f"scans={topic}?group=g"]
        job = subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for number, file in enumerate(sorted((pathlib.Path(folder) / "scans").iterdir())):
            run("publish", "-q", file, "--to", topic, "--key", f"k{number}", folder=folder)
            if number == 40:
                wait_for("the ranks", lambda: len(ranks_in(here)) == 3 and (here / "means.db").exists())
                os.kill(ranks_in(here)[0], signal.SIGKILL)  # mpiexec may end the others, too
        for rank in ranks_in(here):
            os.kill(rank, signal.SIGKILL)
        job.wait()
        subprocess.run([*command, "--once"], cwd=here, check=True, timeout=600)
    assert len({row[0] for row in rows(here)}) == len(rows(here)) == 80, len(rows(here))
    assert sorted(row[2] for row in rows(here)) == sorted(row[2] for row in wanted)


@long
def slow_work_pauses_the_consumer_and_memory_holds(folder):
    put(folder, 120, size=1024)
    with Broker(folder) as broker:
        topic = broker.topic("frames")
        run("publish", "-q", "scans/*.npy", "--to", topic, folder=folder)
        content = 'scans = read("scans/*.npy")\nwrite(mean(median(scans, 5)), "means.db", table = "means")\n'
        command = [FOVEA, "stream", "-q", text(folder, content), "--bind", f"scans={topic}", "--once", "--memory", "96M"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
    assert len(rows(folder)) == 120 and used.ru_maxrss < 96 * 1024, f"{used.ru_maxrss // 1024} MiB"


def check_messages(broker, topic, items):
    """Of every item one message for its file and one for each of its two tables, among those that are committed."""
    headers = sorted(broker.messages(topic, "%h\n").decode().split())
    wanted = []
    for item in items:
        wanted += [f"fovea-item={item},fovea-file=out/{item}.tif", f"fovea-item={item},fovea-file=means.db,fovea-table=means",
                   f"fovea-item={item},fovea-file=means.csv,fovea-table=mean"]
    twice = [line for line in set(headers) if headers.count(line) > 1]
    missing = set(wanted) - set(headers)
    assert headers == sorted(wanted), f"twice: {sorted(twice)[:2]}, missing: {sorted(missing)[:2]}, of {headers[:3]}"


@test
def a_kill_at_any_step_sends_the_messages_of_every_frame_once(folder):
    put(folder, 12)
    wanted = expected(folder)
    with Broker(folder, 2) as broker:
        for step in ("stream.named:1", "stream.commit:1", "stream.sending:1", "stream.sending:2", "stream.sent:1",
                     "stream.sent:2"):
            here = pathlib.Path(folder) / step
            here.mkdir()
            (here / "scans").symlink_to(pathlib.Path(folder) / "scans")
            name = "results-" + step.replace(":", "-")
            command = [FOVEA, "stream", "-q", text(here), "--bind", "scans=watch:scans", "--once", "--to", broker.topic(name)]
            killed = subprocess.run(command, cwd=here, env=dict(os.environ, FOVEA_FAULT=step), check=False, timeout=300)
            assert killed.returncode == 137 or step.endswith(":2"), killed
            again = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False, timeout=300)
            assert again.returncode == 0, again.stderr
            assert results(here) == wanted, step
            check_messages(broker, name, [path[:-4] for path in wanted[0]])


@long
def kills_of_stream_and_broker_account_for_every_frame_once(folder):
    count = 40 * KILLS
    put(folder, count)
    wanted = expected(folder)
    generator = random.Random(3)
    with Broker(folder, 2) as broker:
        topic = broker.topic("frames")
        here = pathlib.Path(folder) / "live"
        here.mkdir()
        command = [FOVEA, "stream", "-q", text(here), "--bind", f"scans={topic}?group=g", "--to", broker.topic("results")]
        publisher = subprocess.Popen([FOVEA, "publish", "-q", "scans/*.npy", "--to", topic, "--rate", "100/s"], cwd=folder)
        stream = subprocess.Popen(command, cwd=here, stderr=subprocess.DEVNULL)
        for kill in range(KILLS):
            time.sleep(generator.uniform(0.1, 1.0))
            if kill % 3 == 2:
                broker.kill()
                broker.start()
            else:
                stream.send_signal(signal.SIGKILL)
                stream.wait()
                stream = subprocess.Popen(command, cwd=here, stderr=subprocess.DEVNULL)
        assert publisher.wait() == 0
        wait_for("all frames", lambda: (here / "means.db").exists() and len(rows(here)) >= count)
        time.sleep(1)
        stream.send_signal(signal.SIGINT)
        assert stream.wait() == 0
        check_messages(broker, "results", [path[:-4] for path in wanted[0]])
    ours = results(here)
    assert ours[0].keys() == wanted[0].keys() and ours[0] == wanted[0], "files"
    assert ours[1] == wanted[1], f"{len(ours[1])} rows of {len(wanted[1])}"
    assert ours[2] == wanted[2], f"{len(ours[2])} lines of {len(wanted[2])}"


@test
def a_scan_from_a_topic_has_the_bits_of_the_stored_one_after_a_kill(folder):
    content = 'p = read("scans/*.tif", axes = "angle z x")\nwrite(fbp(p, parallel(range(0, 179, 2))), "out/{stem}.tif")\n'
    (pathlib.Path(folder) / "scans").mkdir()
    run("run", "-q", "-e", 'xray(phantom("shepp-logan", [8, 64, 64]), parallel(range(0, 179, 2))) |> write("scans/s1.tif")',
        folder=folder)
    run("run", "-q", text(folder, content), "--into", "stored", folder=folder)
    with Broker(folder) as broker:
        topic = broker.topic("tomo")
        command = [FOVEA, "stream", "-q", text(folder, content), "--bind", f"p={topic}", "--scan", "angle", "--count", "90",
                   "--preview", "every=20"]
        publisher = subprocess.Popen([FOVEA, "publish", "-q", "scans/s1.tif", "--slices", "--end", "--to", topic,
                                      "--rate", "15/s"], cwd=folder)
        stream = subprocess.Popen(command, cwd=folder)
        made, preview = (pathlib.Path(folder) / "out" / name for name in ("s1.tif", "s1-preview.tif"))
        wait_for("a preview, or the scan if it was quicker", lambda: preview.exists() or made.exists())
        stream.send_signal(signal.SIGKILL)
        stream.wait()
        stream = subprocess.Popen(command, cwd=folder)
        publisher.wait()
        wait_for("the scan", made.exists)
        wait_for("the stream", lambda: list(pathlib.Path(folder).glob(f".fovea/streams/*/{stream.pid}-*.status")))
        stream.send_signal(signal.SIGINT)
        assert stream.wait() == 0
    assert made.read_bytes() == (pathlib.Path(folder) / "stored" / "out" / "s1.tif").read_bytes()


main()
