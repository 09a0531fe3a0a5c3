"""Streams that stand still, are cut off, or hand their partitions on: every frame counts once all the same."""
import atexit
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, long, main, run, wait_for
from kafka import Broker

try:
    import numpy
except ImportError:
    numpy = None

SLOW = """s = read("live/*.npy")
slow = median(median(median(s, 11), 13), 15)
write(mean(slow), "means.db", table = "means")
"""
QUICK = 'session.timeout.ms=3000\nheartbeat.interval.ms=500\nsocket.timeout.ms=4000\n'  # the broker waits no longer


def put(folder, topic, scans, frames, size):
    """Scans of frames in a topic, each with a key of its own."""
    if numpy is None:
        raise Skip("no numpy")
    generator = numpy.random.default_rng(0)
    for k in range(scans):
        numpy.save(pathlib.Path(folder) / f"k{k}.npy", generator.integers(0, 256, (frames, size, size)).astype("uint16"))
        run("publish", "-q", f"k{k}.npy", "--slices", "--to", topic, folder=folder)


def items(folder):
    path = pathlib.Path(folder) / "means.db"
    if not path.exists():
        return []
    with sqlite3.connect(path) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'means'").fetchall():
            return []
        return sorted(row[0] for row in database.execute("SELECT item FROM means"))


def start(folder, topic, *options):
    (pathlib.Path(folder) / "p.fov").write_text(SLOW)
    (pathlib.Path(folder) / "quick").write_text(QUICK)
    command = [FOVEA, "stream", "-q", "p.fov", "--bind", f"s={topic}?group=g", "--kafka-config", "quick", *options]
    process = subprocess.Popen(command, cwd=folder)
    atexit.register(process.kill)  # if the test fails
    return process


def end(*streams):
    for stream in streams:
        stream.send_signal(signal.SIGINT)
    for stream in streams:
        assert stream.wait() == 0, stream.returncode


def wanted(scans, frames):
    return sorted(f"k{k}-{i:06d}" for k in range(scans) for i in range(frames))


@long
def a_stream_that_stood_still_leaves_its_frames_to_the_others(folder):
    with Broker(folder, 4) as broker:
        topic, results = broker.topic("frames"), broker.topic("results")
        put(folder, topic, 8, 25, 320)
        first, second = (start(folder, topic, "--workers", "1", "--to", results) for _ in range(2))
        wait_for("the first frames", lambda: len(items(folder)) > 5)
        first.send_signal(signal.SIGSTOP)
        time.sleep(8)
        assert len(items(folder)) < 200, "all frames were done before anything could happen"
        first.send_signal(signal.SIGCONT)
        wait_for("all frames", lambda: len(set(items(folder))) == 200)
        time.sleep(2)
        end(first, second)
        sent = sorted(line.split(",")[0] for line in broker.messages("results", "%h\n").decode().split())
    assert items(folder) == wanted(8, 25), len(items(folder))
    assert sent == [f"fovea-item={item}" for item in wanted(8, 25)], len(sent)


@long
def a_cut_of_the_network_loses_nothing_and_doubles_nothing(folder):
    with Broker(folder, 2, wired=True) as broker:
        broker.topic("frames")
        broker.topic("results")
        put(folder, f"kafka://{broker.address}/frames", 4, 50, 256)
        topic, results = (f"kafka://{broker.wired}/{name}" for name in ("frames", "results"))
        stream = start(folder, topic, "--workers", "1", "--to", results)
        for number, seconds in enumerate((2, 6, 1)):  # shorter and longer than the broker waits
            wait_for("some frames", lambda number=number: len(items(folder)) > 10 + 40 * number)
            broker.wire.cut()
            time.sleep(seconds)
            if number == 1:
                broker.wire.snap()
            broker.wire.mend()
        wait_for("all frames", lambda: len(set(items(folder))) == 200)
        time.sleep(1)
        end(stream)
        sent = sorted(line.split(",")[0] for line in broker.messages("results", "%h\n").decode().split())
    assert items(folder) == wanted(4, 50), len(items(folder))
    assert sent == [f"fovea-item={item}" for item in wanted(4, 50)], len(sent)


@long
def two_streams_that_are_cut_off_together_share_their_topic_again(folder):
    with Broker(folder, 4, wired=True) as broker:
        put(folder, broker.topic("frames"), 8, 25, 320)
        streams = [start(folder, f"kafka://{broker.wired}/frames", "--workers", "1") for _ in range(2)]
        wait_for("the first frames", lambda: len(items(folder)) > 5)
        broker.wire.cut()
        time.sleep(8)
        broker.wire.mend()
        wait_for("all frames", lambda: len(set(items(folder))) == 200)
        time.sleep(2)
        end(*streams)
    assert items(folder) == wanted(8, 25), len(items(folder))


@long
def half_a_scan_goes_along_with_its_partition(folder):
    content = 'p = read("scans/*.npy", axes = "angle z x")\nwrite(fbp(p, parallel(range(0, 179, 3))), "out/{stem}.npy")\n'
    names = [f"s{k}" for k in range(6)]
    here = pathlib.Path(folder)
    with Broker(folder, 4) as broker:
        topic = broker.topic("tomo")
        if numpy is None:
            raise Skip("no numpy")
        generator = numpy.random.default_rng(1)
        (here / "scans").mkdir()
        (here / "half").mkdir()
        (here / "p.fov").write_text(content)
        for name in names:
            scan = generator.random((60, 4, 48), dtype="float32")
            numpy.save(here / "scans" / f"{name}.npy", scan)
            for part, frames in enumerate((scan[:35], scan[35:])):
                (here / "half" / str(part)).mkdir(exist_ok=True)
                numpy.save(here / "half" / str(part) / f"{name}.npy", frames)
        run("run", "-q", "p.fov", "--into", "stored", folder=folder)
        command = [FOVEA, "stream", "-q", "p.fov", "--bind", f"p={topic}?group=g", "--scan", "angle", "--count", "60", "--json"]
        with open(here / "events", "w", encoding="utf-8") as events:
            streams = [subprocess.Popen(command, cwd=folder, stdout=events)]
            run("publish", "-q", *(f"half/0/{name}.npy" for name in names), "--slices", "--to", topic, folder=folder)
            wait_for("the first halves", lambda: (here / "events").read_text().count('"frame"') >= 35 * 6)
            streams.append(subprocess.Popen(command, cwd=folder, stdout=events))
            wait_for("the second stream", lambda: len(list(here.glob(".fovea/streams/*/*.status"))) == 2)
            time.sleep(5)  # until it has its partitions
            seconds = [f"half/1/{name}.npy" for name in names]
            run("publish", "-q", *seconds, "--slices", "--first", "35", "--to", topic, folder=folder)
            wait_for("all scans", lambda: len(list((here / "out").glob("[!.]*.npy"))) == 6 if (here / "out").exists() else False)
            end(*streams)
    for name in names:
        assert (here / "out" / f"{name}.npy").read_bytes() == (here / "stored" / "out" / f"{name}.npy").read_bytes(), name
    assert (here / "events").read_text().count('"scan"') == 6


main()
