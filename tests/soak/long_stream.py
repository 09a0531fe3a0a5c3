#!/usr/bin/python3
"""A stream that runs for long, below the rate that it can do: python3 tests/soak/long_stream.py [MINUTES [RATE]]

Frames of 2 MB come from a real Kafka broker, RATE a second (30), are filtered and written, and their files are removed again,
for an hour if MINUTES is left out. The broker keeps the last 2 GB. Memory and open files of the stream must stay as they are
after its first quarter."""
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


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 30
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
            command = [FOVEA, "publish", "-q", "few.npy", "--slices", "--loop", "--to", topic, "--rate", f"{rate:g}/s"]
            publisher = subprocess.Popen(command, cwd=folder)
            command = [FOVEA, "stream", "-q", "p.fov", "--bind", f"scans={topic}", "--memory", "512M"]
            stream = subprocess.Popen(command, cwd=folder)
            samples, end = [], time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                time.sleep(0.5)
                samples.append(sample(stream.pid))
                for made in (folder / "out").glob("[!.]*.zarr"):
                    shutil.rmtree(made, ignore_errors=True)
            for process in (publisher, stream):
                process.send_signal(signal.SIGINT)
                process.wait()
            assert stream.returncode == 0, stream.returncode
            done = sqlite3.connect(folder / "means.db").execute("SELECT count(*) FROM means").fetchone()[0]
    assert done >= 60 * minutes, f"only {done} frames were done"
    memory, files = check_flat(samples, allowed=32 << 10)
    print(f"{minutes:g} minutes at {rate:g} frames a second: {memory / 1024:.0f} MiB, {files:.0f} open files at the end")


main()
