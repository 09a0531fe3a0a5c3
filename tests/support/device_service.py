"""A running `fovea devices serve` for tests: of PoCL devices where PoCL is installed, else of devices that exist only by name.

    with Service(folder, "--policy", "random", devices=3) as s:
        with s.connect() as c:
            assert say(c, "lease 1").startswith("granted")
"""
import functools
import json
import os
import resource
import socket
import subprocess

from fovea_test import FOVEA, PATIENCE
from fovea_test import run as run_in

GIB = 1 << 30


def run(*arguments, code=0):
    return run_in(*arguments, folder="/tmp", code=code)


def pocl(count):
    """What makes OpenCL find so many small devices."""
    return {"POCL_DEVICES": " ".join(["pthread"] * count), "POCL_MEMORY_LIMIT": "2", "FOVEA_DEVICES": ""}


@functools.cache
def no_pocl():
    """Why there are no PoCL devices here; None if there are."""
    found = run_in("devices", "--json", folder="/tmp", code=None, environment=pocl(3))
    return found.stderr.strip() if found.returncode or len(json.loads(found.stdout)["devices"]) != 3 else None


class Service:
    """A running `fovea devices serve`, of so many PoCL devices of 2 GiB, or else of devices that exist only by name; or of those
    that are named."""

    def __init__(self, folder, *options, devices=2, files=None):
        self.path = os.path.join(folder, "devices.sock")
        self.command = [FOVEA, "devices", "serve", "--socket", self.path, *options]
        self.environment = dict(os.environ)
        self.files = files  # that it may have open
        if isinstance(devices, int) and not no_pocl():
            self.environment.update(pocl(devices))
        else:
            named = [f"card{i}:2G" for i in range(devices)] if isinstance(devices, int) else devices
            self.command += [word for device in named for word in ("--device", device)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True, env=self.environment,
                                        preexec_fn=self.bound)
        line = self.process.stderr.readline()
        assert "given out" in line, line

    def bound(self):
        if self.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.process.stderr.close()

    def status(self):
        return json.loads(run("devices", "--socket", self.path, "--json").stdout)

    def tasks(self):
        return [d["tasks"] for d in self.status()["devices"]]

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(self.path)
        return s

    def lease(self, memory):
        """A command that holds a device until its input ends."""
        return subprocess.Popen([FOVEA, "devices", "lease", "--socket", self.path, "--memory", memory, "--", "sh", "-c",
                                 "echo $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES $FOVEA_DEVICE; cat"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def say(s, text):
    """Sends lines, and gives the line that answers."""
    s.sendall(text.encode() + b"\n")
    return read(s)


def read(s):
    line = b""
    while not line.endswith(b"\n"):
        try:
            got = s.recv(1)
        except ConnectionResetError:
            got = b""
        if not got:
            return None
        line += got
    return line.decode().strip()
