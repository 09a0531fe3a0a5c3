"""Topics as they are in life: empty, with partitions that are added later, compacted; clocks that jump; messages of no use."""
import io
import json
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, long, main, run, wait_for
from kafka import Admin, Broker

try:
    import numpy
except ImportError:
    numpy = None

TEXT = 's = read("scans/*.npy")\nwrite(mean(s), "means.csv")\n'


def image(value):
    return numpy.full((8, 8), value, "uint8")


def begin(folder, name, text=TEXT):
    if numpy is None:
        raise Skip("no numpy")
    here = pathlib.Path(folder) / name
    here.mkdir()
    (here / "p.fov").write_text(text)
    return here


def items(here):
    path = here / "means.csv"
    return sorted(line.split(",")[0] for line in path.read_text().splitlines()[1:]) if path.exists() else []


def start(here, topic, *options):
    return subprocess.Popen([FOVEA, "stream", "p.fov", "--bind", f"s={topic}", *options], cwd=here, stderr=subprocess.PIPE,
                            text=True)


def end(process):
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=600)[1]
    assert process.returncode == 0, said
    return said


def empty_topics(broker, folder):
    topic = broker.topic("empty")
    here = begin(folder, "empty")
    done = run("stream", "p.fov", "--bind", f"s={topic}", "--once", folder=here)
    assert "0 of 0 frames done" in done.stderr, done.stderr
    process = start(here, topic)
    wait_for("the stream", lambda: list(here.glob(".fovea/streams/*/*.status")))
    broker.send("empty", image(1).tobytes(), key="a", fovea_shape="8,8", fovea_dtype="uint8", fovea_index=0)
    wait_for("the frame", lambda: items(here) == ["a-000000"])
    end(process)


def partitions_that_are_added(broker, admin, folder):
    admin.make("grows", 1)
    here = begin(folder, "grows")
    process = start(here, f"kafka://{broker.address}/grows")

    def send(key, partition):
        path = broker.folder / "one"
        path.write_bytes(image(2).tobytes())
        subprocess.run(["kcat", "-b", broker.address, "-t", "grows", "-P", "-k", key, "-p", str(partition), "-H",
                        "fovea-shape=8,8", "-H", "fovea-dtype=uint8", "-H", "fovea-index=0", str(path)], check=True, timeout=60)
    send("first", 0)
    wait_for("the first frame", lambda: items(here) == ["first-000000"])
    admin.grow("grows", 3)
    for partition in (0, 1, 2):
        wait_for("the partition", lambda p=partition: f"partition {p}, leader 1" in subprocess.run(
            ["kcat", "-b", broker.address, "-L", "-t", "grows"], capture_output=True, text=True, check=False).stdout)
        send(f"new{partition}", partition)
    wait_for("the others", lambda: items(here) == ["first-000000", "new0-000000", "new1-000000", "new2-000000"])
    end(process)


def compacted_topics(broker, admin, folder):
    """Only the last message of a key is kept, so offsets have gaps; a message without a body says that a key is gone."""
    admin.make("compact", 1, cleanup_policy="compact", segment_ms=100, min_cleanable_dirty_ratio=0.001, max_compaction_lag_ms=100)
    for i in range(30):
        broker.send("compact", image(i).tobytes(), key=f"k{i % 3}", fovea_shape="8,8", fovea_dtype="uint8", fovea_index=i)
    subprocess.run(["kcat", "-b", broker.address, "-t", "compact", "-P", "-Z", "-K", ":"], input=b"k0:\n", check=True, timeout=60)
    wait_for("the broker's cleaner", lambda: len(broker.messages("compact", "%o\n").split()) < 20)
    kept = broker.messages("compact", "%o %S\n").decode().split("\n")
    here = begin(folder, "compact")
    done = run("stream", "p.fov", "--bind", f"s=kafka://{broker.address}/compact", "--once", "--dead", "aside", folder=here,
               code=1)
    frames = [line for line in kept if line.endswith(" 64")]
    assert f"{len(frames)} of " in done.stderr and len(items(here)) == len(frames) < 20, (done.stderr, kept)
    assert any("empty" in path.read_text() for path in (here / "aside").glob("*.why"))


def marks_of_transactions(broker, admin, folder):
    """The last offset is no message where a transaction ended; one that is open does not count yet, and an aborted one never."""
    admin.make("marked", 1)
    here = begin(folder, "marked")
    file = io.BytesIO()
    numpy.save(file, image(5))

    def stream_once():
        return run("stream", "p.fov", "--bind", f"s=kafka://{broker.address}/marked?group=g", "--once", folder=here).stderr
    admin.begin("marked", file.getvalue(), file.getvalue())(True)
    admin.begin("marked", file.getvalue())(False)
    assert "2 of 2 frames done" in stream_once()
    assert "0 of 0 frames done" in stream_once()
    ended = admin.begin("marked", file.getvalue())
    assert "0 of 0 frames done" in stream_once()
    ended(True)
    assert "1 of 1 frame done" in stream_once()
    assert len(items(here)) == 3, items(here)


def results_that_are_too_large(broker, admin, folder):
    """A message that the broker never takes ends the stream, and says why; what comes is done when there is room for it."""
    here = begin(folder, "large", 's = read("scans/*.npy")\nwrite(s, "out/{stem}.npy")\n')
    admin.make("large", 1)
    admin.make("narrow", 1, max_message_bytes=1000)
    broker.send("large", bytes(4096), key="a", fovea_shape="64,64", fovea_dtype="uint8", fovea_index=0)
    where = f"kafka://{broker.address}/"
    done = run("stream", "p.fov", "--bind", f"s={where}large", "--once", "--to", f"{where}narrow", folder=here, code=2)
    assert "Message size too large" in done.stderr, done.stderr
    admin.make("wide", 1)
    run("stream", "p.fov", "--bind", f"s={where}large", "--once", "--to", f"{where}wide", folder=here)
    assert broker.messages("wide", "%k\n") == b"a-000000\n" and not broker.messages("narrow", "%k\n")


def clocks_that_jump(broker, folder):
    """Windows of a time follow the time that frames tell, back and forth; none is lost without a word."""
    text = 's = read("scans/*.npy")\nwrite(mean(s), "means.csv")\nwrite(project(s, "t", "mean"), "out/{stem}.npy")\n'
    here = begin(folder, "jumps", text)
    topic = broker.topic("jumps")
    for i, at in enumerate([1000, 1001, 900000, 900001, 1002, 900002]):  # ahead, and back
        broker.send("jumps", image(i).tobytes(), key="a", fovea_shape="8,8", fovea_dtype="uint8", fovea_index=i, fovea_time=at)
    done = run("stream", "p.fov", "--bind", f"s={topic}", "--once", "--scan", "t", "--window", "10s", "--dead", "aside",
               folder=here, code=1)
    assert "5 of 6 frames done" in done.stderr and "1 too late" in done.stderr, done.stderr
    assert items(here) == ["window-0-19700101T001640", "window-0-19700111T100000"], items(here)
    assert len(list((here / "aside").glob("*.why"))) == 1


def messages_of_no_use(broker, folder):
    """Late, duplicate, out of order, malformed and too large: each is counted, and put aside with its reason."""
    topic, dead = broker.topic("odd"), broker.topic("odd-dead")
    here = begin(folder, "odd")

    def send(value, index, **headers):
        broker.send("odd", image(value).tobytes(), key="s", fovea_index=index,
                    **{"fovea_shape": "8,8", "fovea_dtype": "uint8", **headers})
    for i in (0, 2, 1, 1):
        send(i, i)
    send(3, 3, fovea_shape="8,9")
    broker.send("odd", bytes(100000), key="s", fovea_shape="100,1000", fovea_dtype="uint8", fovea_index=7)
    send(4, 3, fovea_end="1")
    send(5, 4)
    done = run("stream", "p.fov", "--bind", f"s={topic}", "--once", "--scan", "t", "--most", "10K", "--dead", dead, folder=here,
               code=1)
    for what in ("1 scan,", "1 known already", "1 too late", "1 malformed", "1 too large", "1 out of order"):
        assert what in done.stderr, f"{what}: {done.stderr}"
    reasons = broker.messages("odd-dead", "%h\n").decode()
    assert reasons.count("fovea-why") == 3 and "at most 10240" in reasons and "too late" in reasons and "72" in reasons, reasons


def results_as_messages(broker, folder):
    """Files go out as they are: images as NPY, TIFF or PNG, tables as Arrow; tables that grow as JSON."""
    text = 's = read("scans/*.npy")\n' + "".join(f'write(s, "out/{{stem}}.{ending}")\n' for ending in ("npy", "tif", "png"))
    text += 'write(measure(label(s > 0), s), "out/{stem}.arrows")\n'
    here = begin(folder, "results", text + 'write(mean(s), "means.csv")\n')
    topic, results = broker.topic("results-in"), broker.topic("results-out")
    broker.send("results-in", image(9).tobytes(), key="a", fovea_shape="8,8", fovea_dtype="uint8", fovea_index=3)
    run("stream", "p.fov", "--bind", f"s={topic}", "--once", "--to", results, folder=here)
    parts = broker.messages("results-out", "%h--head--%s--next--").split(b"--next--")
    sent = dict(part.split(b"--head--", 1) for part in parts if part)
    bodies = {head.decode().split("fovea-file=")[1].split(",")[0]: body for head, body in sent.items()}
    for file in ("npy", "tif", "png", "arrows"):
        assert bodies[f"out/a-000003.{file}"] == (here / "out" / f"a-000003.{file}").read_bytes(), file
    assert json.loads(bodies["means.csv"])[0]["mean"] == 9, bodies["means.csv"]


@long
def topics_as_they_are_in_life(folder):
    with Broker(folder) as broker:
        admin = Admin(broker.address)
        empty_topics(broker, folder)
        clocks_that_jump(broker, folder)
        messages_of_no_use(broker, folder)
        results_as_messages(broker, folder)
        compacted_topics(broker, admin, folder)
        marks_of_transactions(broker, admin, folder)
        results_that_are_too_large(broker, admin, folder)
        partitions_that_are_added(broker, admin, folder)
        admin.close()


main()
