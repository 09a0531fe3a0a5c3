"""A worker where another system has placed it: finds the command there and takes part in a run.

This module uses the standard library only and travels to the workers by value: it runs where the package is not installed, and
says so."""
import collections
import json
import os
import shutil
import subprocess
import sys
import threading

MOST_TRIES = 3  # as FV_MOST_TRIES: what as many workers died on is reported and left
LOOK = 0.2  # seconds between looks at the process and at whether to stop
CONNECT = 30  # seconds to reach the program that started the run


class Problem(Exception):
    """Something that trying again would not cure, in a sentence for the user."""


def find_command(given=None):
    """The fovea command of this machine: the one that is named, that of the installed package, or the one on the PATH."""
    import importlib.util
    package = importlib.util.find_spec("fovea")
    places = [given]
    for folder in package.submodule_search_locations or () if package else ():
        places += [os.path.join(folder, "bin", "fovea"), os.path.join(folder, "..", "..", "build", "fovea")]
    for path in [p for p in places if p] + [shutil.which("fovea")]:
        if path and os.access(path, os.X_OK):
            return path
    raise Problem(f"the worker on {os.uname().nodename} has no Fovea: neither {given or 'a command named by the run'}, nor the "
                  f"package in {sys.executable}, nor the command on its PATH. Install the wheel there, send an environment "
                  "with it as an archive, or name a folder that it sees")


def check(given, version, places, why):
    """Whether a worker can take part in a run from here: facts about the machine, or a Problem. places: files and folders that it
    must see; why: what to do if it does not."""
    command, host = find_command(given), os.uname().nodename
    asked = subprocess.run([command, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True)
    found = asked.stdout.strip().split()[-1] if asked.returncode == 0 and asked.stdout.strip() else None
    if found is None:
        raise Problem(f"{command} on {host} does not start: {asked.stdout.strip() or asked.returncode}")
    if found != version:
        raise Problem(f"{command} on {host} is Fovea {found}, but the program that started the run has {version}: all of them "
                      "must have the same version")
    for place in places:
        if not os.path.exists(place):
            raise Problem(f"the worker on {host} does not see {place}: {why}")
    return {"host": host, "pid": os.getpid(), "command": command, "cores": len(os.sched_getaffinity(0)), "free": free_memory()}


def free_memory():
    """Bytes that this machine, or the control group of this process, has left."""
    free = 0
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) << 10
    for limit, used in (("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")):
        try:
            with open(limit) as a, open(used) as b:
                free = min(free, max(int(a.read()) - int(b.read()), 0))
        except (OSError, ValueError):  # no such file, or "max"
            pass
    return free


def stop_path(run, token):
    """The file that asks all workers of one placing to stop."""
    return os.path.join(run, "stop-" + token)


class _Said:
    """What a program says on its standard error: passed on, and its last lines kept."""

    def __init__(self, stream):
        self.last = collections.deque(maxlen=20)
        self.thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.thread.start()

    def _read(self, stream):
        for line in stream:
            self.last.append(line.rstrip())
            sys.stderr.write(line)
        sys.stderr.flush()

    def text(self):
        """The last lines, without the name of the program in front of the first."""
        self.thread.join(5)
        text = "\n".join(self.last)
        for name in ("fovea work: ", "fovea: "):
            if text.startswith(name):
                text = text[len(name):]
        return text


def _once(arguments, folder, environment, stop):
    """One process of the command: its exit status, what it printed, what it said. It ends when this process does."""
    child = subprocess.Popen(arguments, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env={**os.environ, **environment})
    printed, said = [], _Said(child.stderr)
    reader = threading.Thread(target=lambda: printed.append(child.stdout.read()), daemon=True)
    reader.start()
    try:
        while child.poll() is None:
            if os.path.exists(stop):
                child.stdin.close()  # it commits what it has, and ends
                child.wait()
                break
            reader.join(LOOK)
            if not reader.is_alive():  # it has closed its output, which it does at its end
                child.wait()
    finally:
        if not child.stdin.closed:
            child.stdin.close()
        if child.poll() is None:
            child.wait()
    reader.join(5)
    return child.returncode, printed[0] if printed else "", said.text()


def work(command, run, folder, token, place, places, options=(), environment=None):
    """Takes part in a run until it is done: the summary of `fovea work --json`, with `stopped` if it was asked to stop.

    A process that dies is started again. What several die on is left to the end of the run, which names it."""
    command, stop = find_command(command), stop_path(run, token)
    arguments = [command, "work", run, "--tied", "--wait", "--json", "--level", str(MOST_TRIES - 1),
                 "--place", f"{place}/{places}", *options]
    for _ in range(MOST_TRIES):
        code, printed, said = _once(arguments, folder, environment or {}, stop)
        if os.path.exists(stop):
            return {"stopped": True}
        if code in (0, 1):  # 1: items failed, which the end of the run tells
            return json.loads(printed) if printed.strip() else {}
        if code == 2:
            raise Problem(said or "a worker refused the run and gave no reason")
    raise RuntimeError(f"the worker on {os.uname().nodename} ended with {code} {MOST_TRIES} times: {said or 'it said nothing'}")


def _connect(host, port, key):
    """A socket to the program that started the run."""
    import socket
    try:
        link = socket.create_connection((host, port), CONNECT)
    except OSError as error:
        raise Problem(f"the worker on {os.uname().nodename} cannot reach the program that started the run at {host}:{port} "
                      f"({error.strerror or error}): workers must be able to connect to it under this address") from None
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(key.encode())
    return link


def work_apart(command, host, port, key, folder, cores=1, environment=None):
    """Takes part in a run without seeing its folder, with a process for each core, until the program that started it has nothing
    left to do."""
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        work = [pool.submit(_work_on_core, find_command(command), host, port, key, folder, environment) for _ in range(cores)]
    return [future.result() for future in work][0]


def _work_on_core(command, host, port, key, folder, environment):
    """One process; one that dies is started again."""
    said = ""
    for tries in range(MOST_TRIES):
        try:
            link = _connect(host, port, key)
        except Problem:
            if tries:  # it has ended meanwhile
                return {"stopped": True}
            raise
        child = subprocess.Popen([command, "task", "--apart"], cwd=folder if os.path.isdir(folder) else None, stdin=link,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, **(environment or {})})
        link.close()
        heard = _Said(child.stderr)
        try:
            child.wait()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        said = heard.text()
        if child.returncode == 0:
            return {}
    raise RuntimeError(f"the worker on {os.uname().nodename} ended with {child.returncode} {MOST_TRIES} times: "
                       f"{said or 'it said nothing'}")


def outcome(function):
    """What a call came to, for systems that would try a failure again: ("done", value) or ("problem", sentence)."""
    try:
        return "done", function()
    except Problem as problem:
        return "problem", str(problem)
