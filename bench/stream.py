#!/usr/bin/env python3
"""Live data beside the same work in Python, on a real Kafka broker of this machine.

    bench/stream.py [frames=150] [tiny=20000] [only=large|tiny|tomography]

Prints a table; nothing is asserted. The figures of docs/streaming.md are those of frames=200 on a quiet machine. kcat, which only
takes the messages, is the floor of the first rows; that of the last ones is a program that has the finished bytes in memory
and does nothing but write and sync them. The Python consumer is confluent-kafka with scipy and zarr, from an environment in
build/stream-peers that is made where PyPI can be reached. Spark Structured Streaming is beside them if that environment has
pyspark, too: build/stream-peers/bin/python -m pip install pyspark==3.5.9 pandas pyarrow; its connector for Kafka comes from Maven.
What is missing is said in its row.
"""
import concurrent.futures
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import maven  # noqa: E402
import numpy  # noqa: E402
from fovea_test import FOVEA, Skip, run  # noqa: E402
from kafka import USUAL, Broker  # noqa: E402

CONNECTOR = "3.5.7"  # of Spark 3.5 for Kafka; Maven need not have the one of the last release yet

PEER = """
import sys, numpy, zarr
from confluent_kafka import Consumer
from scipy.ndimage import gaussian_filter
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "python", "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "fetch.message.max.bytes": 67108864, "receive.message.max.bytes": 167108864})
consumer.subscribe([sys.argv[2]])
count = int(sys.argv[3])
for i in range(count):
    message = None
    while message is None or message.error():
        message = consumer.poll(1.0)
    headers = {name: value.decode() for name, value in message.headers()}
    shape = [int(n) for n in headers["fovea-shape"].split(",")]
    frame = numpy.frombuffer(message.value(), headers["fovea-dtype"]).reshape(shape)
    zarr.save(f"python/{i:06d}.zarr", gaussian_filter(frame.astype("float32"), 2))
    consumer.commit(message, asynchronous=True)
consumer.close()
"""

SPARK = """
import os, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[3]).config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "2g")
         .config("spark.sql.execution.arrow.maxRecordsPerBatch", "8").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")


def work(batches):
    import numpy, pandas, zarr
    from scipy.ndimage import gaussian_filter
    for batch in batches:
        for offset, value in zip(batch["offset"], batch["value"]):
            frame = numpy.frombuffer(value, "uint16").reshape(1024, 1024)
            zarr.save(f"spark/{offset:06d}.zarr", gaussian_filter(frame.astype("float32"), 2))
        yield pandas.DataFrame({"offset": batch["offset"]})


start = time.monotonic()
frames = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", sys.argv[2])
          .option("startingOffsets", "earliest").option("minPartitions", "2").option("maxOffsetsPerTrigger", "32").load())
done = (frames.select("offset", "value").mapInPandas(work, "offset long").writeStream.trigger(availableNow=True)
        .option("checkpointLocation", "spark-state").foreachBatch(lambda rows, number: rows.count()).start())
done.awaitTermination()
print(time.monotonic() - start)
"""


def python():
    """The interpreter with confluent-kafka; None where it cannot be had."""
    place = ROOT / "build" / "stream-peers"
    program = place / "bin" / "python"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=False)
        subprocess.run([program, "-m", "pip", "-q", "install", "confluent-kafka", "numpy", "scipy", "zarr"], check=False)
    works = program.exists() and subprocess.run([program, "-c", "import confluent_kafka, scipy, zarr"], check=False).returncode == 0
    return program if works else None


def timed(command, folder, **options):
    """Seconds of a command, which has the disk for itself: what others have written before is there."""
    os.sync()
    start = time.monotonic()
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{command[:3]}: {done.stderr.decode()[-500:]}")
    return time.monotonic() - start, done


def write(folder, name, text):
    (pathlib.Path(folder) / name).write_text(text)
    return name


def line(what, value, note=""):
    print(f"{what:<62} {value:>14} {note}", flush=True)


def throughput(broker, folder, frames):
    rng = numpy.random.default_rng(0)
    numpy.save(pathlib.Path(folder) / "stack.npy", rng.poisson(200, (frames, 1024, 1024)).astype("uint16"))
    topic = broker.topic("large")
    run("publish", "-q", "stack.npy", "--slices", "--to", topic, folder=folder)
    megabytes = frames * 2.097
    floor, _ = timed(["kcat", "-b", broker.address, "-t", "large", "-C", "-e", "-q", "-f", ""], folder)
    line("2 MB frames: kcat, no work", f"{megabytes / floor:.0f} MB/s")
    seconds = {}
    # The first group of a new broker takes a second more.
    first = write(folder, "first.fov", 'write(mean(read("live/*.npy")), "first.csv")\n')
    timed([FOVEA, "stream", "-q", first, "--bind", f"live={topic}", "--limit", 1], folder)
    for packing, said in (("as usual", ""), ("zstd", ', compression = "zstd"'), ("unpacked", ', compression = "none"')):
        used, name = resource.getrusage(resource.RUSAGE_CHILDREN), packing.replace(" ", "-")
        text = f'scans = read("live/*.npy")\nwrite(gaussian(scans, 2), "{name}/{{stem}}.zarr"{said})\n'
        command = [FOVEA, "stream", "-q", write(folder, "g.fov", text), "--bind", f"scans={topic}", "--once"]
        seconds[packing], _ = timed(command, folder)
        line(f"2 MB frames: fovea stream, gaussian, Zarr ({packing}), all durable", f"{megabytes / seconds[packing]:.0f} MB/s",
             f"{floor / seconds[packing]:.0%} of kcat; {1e3 * processors(used) / frames:.1f} ms of processors a frame")
    ours = seconds["as usual"]
    peers(broker, folder, frames, ours)
    return frames / ours


def processors(since):
    """Seconds of processors that programs have used since then."""
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - since.ru_utime - since.ru_stime


def peers(broker, folder, frames, ours):
    """The same work by others."""
    row, interpreter = "2 MB frames: {}, nothing durable", python()
    if not interpreter:
        line(row.format("confluent-kafka, scipy, zarr"), "skipped", "they are not there, and PyPI cannot be reached")
        return
    (pathlib.Path(folder) / "python").mkdir()
    peer, _ = timed([interpreter, "-c", PEER, broker.address, "large", frames], folder)
    line(row.format("confluent-kafka, scipy, zarr"), f"{frames * 2.097 / peer:.0f} MB/s", f"fovea: {peer / ours:.1f} times as fast")
    row = row.format("Spark Structured Streaming, scipy, zarr")
    found = subprocess.run([interpreter, "-c", "import pyspark, pandas, pyarrow"], capture_output=True, check=False)
    if found.returncode:
        line(row, "skipped", "no pyspark, pandas and pyarrow in build/stream-peers")
        return
    try:
        jars = maven.find_jars("spark-kafka", "SPARK_KAFKA_JARS",
                               f"org.apache.spark:spark-sql-kafka-0-10_2.12:{CONNECTOR}").glob("*.jar")
    except Skip as reason:
        line(row, "skipped", str(reason))
        return
    (pathlib.Path(folder) / "spark").mkdir()
    done = subprocess.run([interpreter, "-c", SPARK, broker.address, "large", ",".join(map(str, jars))], cwd=folder,
                          capture_output=True, text=True, check=False)
    made = len(list((pathlib.Path(folder) / "spark").iterdir()))
    if done.returncode or made != frames:
        said = [text for text in done.stderr.splitlines() if text.strip()][-1:]
        line(row, "skipped", f"{made} of {frames} frames: {' '.join(said)[:120]}")
        return
    peer = float(done.stdout.split()[-1])
    line(row, f"{frames * 2.097 / peer:.0f} MB/s", f"fovea: {peer / ours:.1f} times as fast (its start is not counted)")


def of_hundred(times, number):
    """Milliseconds within which so many of a hundred of these times are."""
    return 1e3 * sorted(times)[(len(times) - 1) * number // 100]


def tell_delays(row, delays):
    line(row, f"{of_hundred(delays, 50):.0f} ms",
         f"99 in a hundred: {of_hundred(delays, 99):.0f} ms, the slowest: {of_hundred(delays, 100):.0f} ms")


PARTS = (("waited", "for a thread"), ("ran", "computing and writing"), ("gathered", "for the batch before"),
         ("synced", "for the disk"), ("recorded", "for the log"))


def tell_parts(events):
    """Where the time of frames went: the slowest one of a hundred of each part, which need not be the same frame."""
    parts = {"on its way": [event["delay"] - event["seconds"] for event in events]}
    parts.update({said: [event["parts"][name] for event in events] for name, said in PARTS})
    told = [f"{name} {of_hundred(times, 50):.0f}, {of_hundred(times, 99):.0f}" for name, times in parts.items()]
    print("    ms of it (half, 99 in a hundred): " + "; ".join(told), flush=True)


def pace(folder, topic, speed):
    """Sends the frames, so many a second."""
    os.sync()
    command = [FOVEA, "publish", "-q", "few.npy", "--slices", "--to", topic, "--rate", f"{speed:.1f}/s"]
    return subprocess.Popen(command, cwd=folder)


def latency(broker, folder, speed, frames, place):
    """Of the stream, and of kcat, which only takes the messages, at this rate; place: where the broker keeps its log."""
    text = 'scans = read("live/*.npy")\nwrite(gaussian(scans, 2), "paced/{stem}.zarr")\n'
    topic = broker.topic("paced")
    stream = subprocess.Popen([FOVEA, "stream", "--json", "-q", write(folder, "l.fov", text), "--bind", f"scans={topic}",
                               "--limit", str(frames)], cwd=folder, stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    sender = pace(folder, topic, speed)
    events = [json.loads(event) for event in stream.communicate()[0].splitlines()]
    sender.wait()
    tell_delays(f"sent until durable, {speed:.0f}/s, broker's log {place}", [event["delay"] for event in events])
    tell_parts(events)
    topic = broker.topic("taken")
    taken = subprocess.Popen(["kcat", "-C", "-b", broker.address, "-t", "taken", "-o", "beginning", "-u", "-q", "-c", str(frames),
                              "-X", "fetch.message.max.bytes=67108864", "-f", "%T\n"], stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    sender = pace(folder, topic, speed)
    delays = [time.time() - int(sent) / 1e3 for sent in taken.stdout]
    sender.wait()
    tell_delays(f"sent until taken by kcat, no work, broker's log {place}", delays)


def raw_latency(folder, speed, frames):
    """Files of 2 MB written and synced at that rate by a program that does nothing else."""
    place, data, delays = pathlib.Path(folder) / "raw", os.urandom(2 << 20), []
    place.mkdir()
    os.sync()
    start = time.monotonic()
    for i in range(frames):
        time.sleep(max(start + i / speed - time.monotonic(), 0))
        with open(place / str(i), "wb", buffering=0) as file:
            file.write(data)
            os.fdatasync(file.fileno())
        delays.append(time.monotonic() - start - i / speed)
    tell_delays("2 MB written and synced, no broker, at the same rate", delays)


def latencies(broker, folder, rate, frames):
    """At half the rate, twice: with the broker's log on the disk of the results and a small virtual machine, whose pauses are long;
    and with one as is usual, and its log in memory, as if it had a disk of its own."""
    speed = max(rate / 2, 1)
    numpy.save(pathlib.Path(folder) / "few.npy", numpy.load(pathlib.Path(folder) / "stack.npy", mmap_mode="r")[:frames])
    latency(broker, folder, speed, frames, "on that disk")
    raw_latency(folder, speed, frames)
    with tempfile.TemporaryDirectory(prefix="fovea-bench-", dir="/dev/shm") as memory:
        with Broker(pathlib.Path(folder) / "second", data=memory, java=USUAL) as second:
            topic = second.topic("first")  # a new broker is slow at first
            run("publish", "-q", "few.npy", "--slices", "--to", topic, folder=folder)
            timed([FOVEA, "stream", "-q", "first.fov", "--bind", f"live={topic}", "--once"], folder)
            latency(second, folder, speed, frames, "in memory")


def tiny(broker, folder, count):
    rng = numpy.random.default_rng(0)
    numpy.save(pathlib.Path(folder) / "tiny.npy", rng.integers(0, 256, (count, 64, 64)).astype("uint8"))
    topic = broker.topic("tiny")
    run("publish", "-q", "tiny.npy", "--slices", "--to", topic, folder=folder)
    text = 'scans = read("live/*.npy")\nwrite(count(scans > 128), "counts.db", table = "counts")\n'
    ours, _ = timed([FOVEA, "stream", "-q", write(folder, "t.fov", text), "--bind", f"scans={topic}", "--once"], folder)
    line("64 x 64 frames: counts into SQLite", f"{count / ours:.0f} frames/s")


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def write_durably(files, place):
    """Seconds until these files, by their names inside of a folder or as one file (""), are durable under their name."""
    hidden, finished = place.with_name(f".{place.name}"), []
    os.sync()
    start = time.monotonic()
    for name, data in files.items():
        finished.append(hidden / name if name else hidden)
        finished[-1].parent.mkdir(parents=True, exist_ok=True)
        finished[-1].write_bytes(data)
    folders = {path.parent for path in finished if path != hidden}
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(sync, [*finished, *folders]))
    hidden.rename(place)
    sync(place.parent)
    return time.monotonic() - start


def floor_of(result, folder):
    """What the disk alone needs for a result: the middle of five times."""
    paths = [path for path in result.rglob("*") if path.is_file()] if result.is_dir() else [result]
    files = {str(path.relative_to(result)) if path != result else "": path.read_bytes() for path in paths}
    place = pathlib.Path(tempfile.mkdtemp(prefix="floor-", dir=folder))
    return sorted(write_durably(files, place / f"{result.name}-{i}") for i in range(5))[2]


def tomography(broker, folder, kind, count):
    """A scan of so many projections over half a turn, stored and live."""
    text = f'''p = read("scans/*.npy", axes = "angle z x")
write(fbp(p, parallel(range(0, 180, count = {count}))), "slices/{{stem}}.{kind}")
'''
    (pathlib.Path(folder) / "scans").mkdir(exist_ok=True)
    numpy.save(pathlib.Path(folder) / "scans" / "s.npy", numpy.random.default_rng(0).random((count, 16, 512), dtype="float32"))
    topic = broker.topic(f"tomo-{kind}-{count}")
    run("run", "-q", write(folder, "f.fov", text), "--into", "warm", folder=folder)
    stored = sorted(timed([FOVEA, "run", "-q", "f.fov", "--into", "stored", "--fresh"], folder)[0] for _ in range(3))[1]
    stream = subprocess.Popen([FOVEA, "stream", "--json", "-q", "f.fov", "--bind", f"p={topic}", "--scan", "angle", "--count",
                               str(count), "--preview", "every=10", "--limit", str(count)], cwd=folder, stdout=subprocess.PIPE,
                              text=True)
    time.sleep(2)
    sender = subprocess.Popen([FOVEA, "publish", "-q", "scans/s.npy", "--slices", "--to", topic, "--rate", "40/s"], cwd=folder)
    arrived, previews, last, parts = {}, [], None, {}
    for event in map(json.loads, stream.stdout):  # read as they come: a stream waits for who reads its events
        if event["event"] == "frame":
            arrived[event["frames"]] = event["time"] - event["seconds"]
        if event["event"] == "preview":
            previews.append(event["time"] - arrived[event["frames"]])
        if event["event"] == "scan":
            last, parts = event["time"] - max(arrived.values()), event["parts"]
    stream.wait()
    sender.wait()
    line(f"{count} projections, 16 slices of 512 x 512, {kind}: preview", f"{of_hundred(previews, 50) / 1e3:.2f} s",
         f"longest {max(previews):.2f} s, {len(previews)} of them")
    line(f"final slices, {kind}, after the last projection", f"{last:.3f} s",
         f"{last / stored:.0%} of the stored scan's run, {stored:.2f} s; {parts['ran']:.3f} s of it computing and writing")
    floor = floor_of(pathlib.Path(folder) / "slices" / f"s.{kind}", folder)
    line(f"the same bytes written and synced, {kind}, no work", f"{floor:.3f} s", f"{floor / stored:.0%} of that run")


def main():
    options = dict(word.split("=") for word in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="fovea-bench-") as folder:
        try:
            broker = Broker(folder)
        except Skip as reason:
            raise SystemExit(f"no broker: {reason}") from reason
        with broker:
            print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
            frames = int(options.get("frames", 150))
            only = options.get("only", "")
            if only in ("", "large"):
                rate = throughput(broker, folder, frames)
                latencies(broker, folder, rate, frames)
            if only in ("", "tiny"):
                tiny(broker, folder, int(options.get("tiny", 20000)))
            if only in ("", "tomography"):
                for count in (180, 720):
                    for kind in ("npy", "tif", "zarr"):
                        tomography(broker, folder, kind, count)


main()
