"""Reading a file with no more time and memory than a reader may take of a damaged one: ten seconds of a processor, a gibibyte."""
import resource
import subprocess

from fovea_test import FOVEA, PATIENCE

SECONDS, BYTES = 10, 1 << 30


def limited():
    """In the child: no more memory and time than a reader may take."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def attempt(path, folder, wanted=None):
    """Reads all of a file; gives the exit status and the messages, and fails if that takes too much."""
    command = [FOVEA, "run", "-q", "--fresh", "--workers", "1", "--memory", "256M", "-e", wanted or f'sum(read("{path}"))']
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=limited, timeout=PATIENCE, check=False)
    assert done.returncode in (0, 1, 2), f"{path}: exit status {done.returncode}: {done.stderr[-300:]}"
    return done.returncode, done.stderr.decode(errors="replace")
