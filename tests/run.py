#!/usr/bin/env python3
"""Runs the tests that make has built and counts their results.

    tests/run.py [--groups plain,base,asan,tsan,python] [--minutes N] [NAME ...]

Every test is a program that prints "ok NAME", "not ok NAME: why" or "skip NAME: why". A program that ends badly without a
"not ok", gives no result at all or takes too long is a failure; what counts is the time that it and what it started spend on
processors, so that a busy machine fails no test, and only who hangs is ended by the clock. Groups: plain (build/), base (the
operators' tests again on the weakest instruction set), asan (build-asan/, and the tests of streams with its command), tsan
(build-tsan/, only tests named *threads* or *engine*, and streams from folders and pipes with its command),
python (tests/**/test_*.py and tests/cli/run.py). NAME takes only programs
whose name contains it. With --minutes all is repeated until the time is over or something fails.
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = os.environ.get("FOVEA_PYTHON", "/usr/bin/python3")
AT_ONCE = 3  # one more than the cores of a small machine: some programs mostly wait
GROUPS = ["plain", "base", "asan", "tsan", "python"]
SECONDS = {"plain": 1200, "base": 1200, "asan": 3600, "tsan": 3600, "python": 3600}  # of processors, that a program may use
# The command and its plug-in that answers the network, under the address sanitizer too:
SANITIZED_SCRIPTS = ["view/test_view_server.py", "view/test_view_planes.py", "view/test_view_tables.py", "view/test_view_zarr.py"]
RACED_SCRIPTS = ["stream/test_stream.py", "stream/test_growing.py"]  # they need no broker
HANGS = 3  # times as long by the clock: more than ten times what the slowest program takes on a machine that is not busy
LOOK = 5  # seconds between two looks at a program that runs
TICKS = os.sysconf("SC_CLK_TCK")
RESULT = re.compile(r"(ok|not ok|skip) ([^\s:]+)(?:: (.*))?$")


def processor_seconds(session):
    """What the processes of a session, and the children that they have waited for, have used of processors."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            total += sum(map(int, fields[11:15]))
    return total / TICKS


class Program:
    """One test program of a group, and what came of it."""

    def __init__(self, group, name, command, environment=None):
        self.group, self.name, self.command = group, name, command
        self.environment = environment or {}
        self.passed, self.failures, self.skips = 0, [], []
        self.seconds, self.used = 0.0, 0.0  # by the clock; of processors, as last looked at

    @property
    def title(self):
        return self.name if self.group in ("plain", "python") else f"{self.group}:{self.name}"

    def fail(self, test, why):
        self.failures.append((test, why))

    def run(self):
        """Runs the program and reads its results."""
        start = time.monotonic()
        missing = [part for part in self.command if "/" in part and not os.path.exists(part)]
        if missing:
            self.fail("(all)", f"{os.path.relpath(missing[0], ROOT)} is not there; run make test")
            return self
        build = str(ROOT / "build")
        environment = {**os.environ, "FOVEA": f"{build}/fovea", "FOVEA_BUILD": build, **self.environment}
        process = subprocess.Popen(self.command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        late = None
        while True:
            try:
                output, errors = process.communicate(timeout=None if late else LOOK)
                break
            except subprocess.TimeoutExpired:
                late = self.overdue(process.pid, time.monotonic() - start)
            if late:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.killpg(process.pid, signal.SIGKILL)
        self.seconds = time.monotonic() - start
        self.read(output, errors, process.returncode, late)
        return self

    def overdue(self, session, seconds):
        """Why the program has to be ended after so many seconds by the clock; None: it may go on."""
        most, used = SECONDS[self.group], processor_seconds(session)
        self.used = max(self.used, used)
        if used > most:
            return f"used more than {most} s of processors and was killed"
        if seconds > HANGS * most:
            return f"took longer than {HANGS * most} s, {used:.0f} s of them on processors, and was killed"
        return None

    def read(self, output, errors, status, late):
        for line in output.splitlines():
            match = RESULT.match(line)
            if not match:
                continue
            if match[1] == "ok":
                self.passed += 1
            elif match[1] == "skip":
                self.skips.append((match[2], match[3] or "no reason given"))
            else:
                self.fail(match[2], match[3] or "no reason given")
        last = "\n".join("    " + line for line in errors.splitlines()[-30:])
        if late:
            self.fail("(all)", f"{late}\n{last}")
        elif status and not self.failures:
            ended = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            self.fail("(all)", f"{ended}\n{last}")
        elif not self.passed and not self.failures and not self.skips:
            self.fail("(all)", f"printed no result\n{last}")


def without_randomization():
    """The thread sanitizer cannot place its shadow under strong address randomization: a prefix that switches it off."""
    command = [shutil.which("setarch") or "setarch", platform.machine(), "-R"]
    try:
        works = subprocess.run(command + ["true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    return command if works else []


def compiled(folder):
    """Names of the tests written in C, below a folder of tests/."""
    return sorted(path.stem for path in (ROOT / "tests" / folder).rglob("test_*.c"))


def collect(groups):
    """All programs of the groups."""
    def binary(build, name):
        return [str(ROOT / build / "tests" / name)]

    programs = []
    if "plain" in groups:
        programs += [Program("plain", name, binary("build", name)) for name in compiled("")]
    if "base" in groups:
        names = compiled("ops") + compiled("kernels")
        programs += [Program("base", name, binary("build", name), {"FOVEA_ISA": "base"}) for name in names]
    if "asan" in groups:
        options = {"UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "allocator_may_return_null=1",
                   "LSAN_OPTIONS": f"print_suppressions=0:suppressions={ROOT}/tests/fuzz/leaks.txt",
                   "FOVEA_DUCKDB": str(ROOT / "build" / "libraries")}
        programs += [Program("asan", name, binary("build-asan", name), options) for name in compiled("")]
        command = dict(options, FOVEA=str(ROOT / "build-asan" / "fovea"))
        programs += [Program("asan", str(p.relative_to(ROOT / "tests")), [PYTHON, str(p)], command)
                     for p in sorted((ROOT / "tests" / "stream").glob("test_*.py"))]
        programs += [Program("asan", name, [PYTHON, str(ROOT / "tests" / name)], command) for name in SANITIZED_SCRIPTS]
    if "tsan" in groups:
        prefix = without_randomization()
        programs += [Program("tsan", name, prefix + binary("build-tsan", name)) for name in compiled("")
                     if "threads" in name or "engine" in name]
        command = {"FOVEA": str(ROOT / "build-tsan" / "fovea"), "TSAN_OPTIONS": "exitcode=66"}
        programs += [Program("tsan", name, prefix + [PYTHON, str(ROOT / "tests" / name)], command) for name in RACED_SCRIPTS]
    if "python" in groups:
        scripts = sorted((ROOT / "tests").rglob("test_*.py"))
        programs += [Program("python", str(p.relative_to(ROOT / "tests")), [PYTHON, str(p)]) for p in scripts]
        programs.append(Program("python", "cli/run.py", [PYTHON, str(ROOT / "tests/cli/run.py"), str(ROOT / "build")]))
    return programs


def run_all(programs):
    """Runs the programs and prints what failed, what was skipped and what took long. True if all is well."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for program in pool.map(Program.run, programs):
            mark = "not ok" if program.failures else "ok"
            print(f"{mark:6} {program.title} ({program.passed} passed, {program.seconds:.1f} s)", flush=True)
            for test, why in program.failures:
                print(f"  failed {test}: {why}", flush=True)
    for program in programs:
        for test, why in program.skips:
            print(f"skipped {program.title} {test}: {why}")
    slowest = sorted(programs, key=lambda program: -program.seconds)[:20]
    print("slowest, by the clock and of processors: " +
          ", ".join(f"{program.title} {program.seconds:.0f} s {program.used:.0f} s" for program in slowest))
    passed, failed, skipped = (sum(counts) for counts in zip(*((p.passed, len(p.failures), len(p.skips)) for p in programs)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", default=",".join(GROUPS), help="groups of tests, with commas between")
    parser.add_argument("--minutes", type=float, default=0, help="repeat for so long")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who was started in the background was told to ignore Ctrl-C
    groups = options.groups.split(",")
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        parser.error(f"no group is called {unknown[0]}; groups are {', '.join(GROUPS)}")
    end = time.monotonic() + options.minutes * 60
    while True:
        programs = [p for p in collect(groups) if not options.names or any(name in p.title for name in options.names)]
        if not programs:
            print("no test program has such a name", file=sys.stderr)
            return 2
        if not run_all(programs):
            return 1
        if time.monotonic() >= end:
            return 0


if __name__ == "__main__":
    sys.exit(main())
