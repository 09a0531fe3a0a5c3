#!/usr/bin/python3
"""A stream that runs for long, at half the rate that it can do: python3 tests/soak/long_stream.py [MINUTES [RATE]]

Frames of 2 MB come from a real Kafka broker, RATE a second, are filtered and written, and their files are removed again, for an
hour if MINUTES is left out. If RATE is left out, it is half of what a burst at the start shows. The broker keeps the last 2 GB.
Memory and open files of the stream must stay as they are after its first quarter, and every frame that was sent must be in the
table once. A line a minute tells how it goes."""
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy
from fovea_test import FOVEA, Skip
from kafka import Admin, Broker
from long_stream import check_flat, sample

TEXT = """scans = read("live/*.npy")
write(gaussian(scans, 2), "out/{stem}.zarr")
write(mean(scans), "means.db", table = "means")
"""


def remove_results(folder):
    for made in (folder / "out").glob("[!.]*.zarr"):
        shutil.rmtree(made, ignore_errors=True)


def count_messages(broker):
    """How many were sent to the topic since it was made."""
    said = subprocess.run(["kcat", "-b", broker.address, "-Q", "-t", "frames:0:-1"], capture_output=True, text=True, check=True)
    return int(said.stdout.split()[-1])


def rows(folder):
    """Rows of the table, and how many frames they are about."""
    base = sqlite3.connect(f"file:{folder}/means.db?mode=ro", uri=True, timeout=60)
    try:
        return base.execute("SELECT count(*), count(DISTINCT path) FROM means").fetchone()
    finally:
        base.close()


def measure_rate(broker, folder):
    """Frames a second that the same text does while they are sent as fast as that goes: the second of two bursts, since a new
    broker and its first group are slow."""
    topic, place, rate = broker.topic("burst"), folder / "burst", 0
    place.mkdir()
    (place / "p.fov").write_text(TEXT)
    publisher = subprocess.Popen([FOVEA, "publish", "-q", folder / "few.npy", "--slices", "--loop", "--to", topic])
    for count in (20, 100):
        start = time.monotonic()
        subprocess.run([FOVEA, "stream", "-q", "p.fov", "--bind", f"scans={topic}", "--limit", str(count)], cwd=place, check=True)
        rate = count / (time.monotonic() - start)
    publisher.send_signal(signal.SIGINT)
    publisher.wait()
    shutil.rmtree(place)
    return rate


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory(prefix="fovea-long-") as name:
        folder = pathlib.Path(name)
        try:
            broker = Broker(folder)
        except Skip as reason:
            print(f"skip long_stream: {reason}")
            return
        with broker:
            admin = Admin(broker.address)
            admin.make("frames", retention_bytes=2 << 30, segment_bytes=256 << 20)
            admin.close()
            topic = broker.topic("frames")
            numpy.save(folder / "few.npy", numpy.random.default_rng(0).poisson(200, (20, 1024, 1024)).astype("uint16"))
            (folder / "p.fov").write_text(TEXT)
            fastest = measure_rate(broker, folder)
            rate = float(sys.argv[2]) if len(sys.argv) > 2 else fastest / 2
            print(f"a burst took {fastest:.1f} frames a second; {rate:.1f} are sent", flush=True)
            command = [FOVEA, "publish", "-q", "few.npy", "--slices", "--loop", "--to", topic, "--rate", f"{rate:g}/s"]
            publisher = subprocess.Popen(command, cwd=folder)
            command = [FOVEA, "stream", "-q", "p.fov", "--bind", f"scans={topic}", "--memory", "512M"]
            stream = subprocess.Popen(command, cwd=folder)
            samples, start, told = [], time.monotonic(), 0
            while time.monotonic() < start + 60 * minutes:
                time.sleep(0.5)
                samples.append(sample(stream.pid))
                remove_results(folder)
                if time.monotonic() > start + 60 * told:
                    print(f"minute {told}: {samples[-1][0] / 1024:.0f} MiB, {samples[-1][1]} open files", flush=True)
                    told += 1
            publisher.send_signal(signal.SIGINT)
            publisher.wait()
            sent = count_messages(broker)
            while rows(folder)[0] < sent and stream.poll() is None and time.monotonic() < start + 60 * minutes + 120:
                time.sleep(0.5)
                remove_results(folder)
            stream.send_signal(signal.SIGINT)
            stream.wait()
            assert stream.returncode == 0, stream.returncode
            done, different = rows(folder)
    print(f"{minutes:g} minutes at {rate:.1f} frames a second: {sent} frames sent, {done} rows for {different} in the table")
    print(f"{samples[0][0] / 1024:.0f} MiB and {samples[0][1]} open files at first, {samples[-1][0] / 1024:.0f} MiB and "
          f"{samples[-1][1]} at the end, {max(samples)[0] / 1024:.0f} MiB at most")
    memory, files = check_flat(samples, allowed=32 << 10)
    print(f"middle of the last quarter: {memory / 1024:.0f} MiB, {files:.0f} open files")
    assert done == different == sent, "frames were lost or done twice"


main()
