"""A run that stands still in its middle, so that what is seen of it does not depend on how fast the machine is.

    with stopped(folder) as process:
        ...                                  # about 1000 of its 2000 tasks are in its log
        process.send_signal(signal.SIGCONT)  # it goes on
"""
import contextlib
import os
import pathlib
import signal
import subprocess

from fovea_test import FOVEA, wait_for

TEXT = 'phantom("foam", [40, 200, 200]) |> median(1) |> write("slow.npy")'
PIECES = ["--chunk", "2x20x20", "--workers", "1"]
TASKS = 2000


def _is_stopped(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


@contextlib.contextmanager
def stopped(folder, *more, stderr=subprocess.DEVNULL):
    """The run, stopped before its 1200th task; killed at the end if it is still there."""
    process = subprocess.Popen([FOVEA, "run", "-q", "-e", TEXT, *PIECES, *more], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=stderr, text=True,
                               env=dict(os.environ, FOVEA_FAULT="task:1200:stop"))
    try:
        wait_for("the run to stop", lambda: _is_stopped(process))
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
