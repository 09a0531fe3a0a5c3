#!/usr/bin/env python3
"""The test runner itself: it must not overlook a crash, a silence or a hang."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import run  # noqa: E402

failures = 0


def check(name, good, why=""):
    global failures
    failures += not good
    print(f"ok {name}" if good else f"not ok {name}: {why}", flush=True)


def outcome(script, seconds=60, hangs=10):
    """What the runner makes of a shell script that may use so many seconds of processors, and so many times that by the clock."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        run.SECONDS["plain"], run.HANGS, run.LOOK = seconds, hangs, 0.1
        return run.Program("plain", "fake", ["/bin/sh", file.name]).run()


p = outcome("echo ok a; echo ok b; echo skip c: no reason; echo chatter")
check("results_are_counted", (p.passed, p.failures, p.skips) == (2, [], [("c", "no reason")]), vars(p))
p = outcome("echo ok a; echo 'not ok b: x is 3, not 4'; exit 1")
check("a_failure_is_counted_once_with_its_reason", p.failures == [("b", "x is 3, not 4")], p.failures)
p = outcome("echo ok a; kill -SEGV $$")
check("a_crash_is_a_failure", len(p.failures) == 1 and "SIGSEGV" in p.failures[0][1], p.failures)
p = outcome("echo ok a; echo because >&2; exit 3")
why = p.failures[0][1] if len(p.failures) == 1 else ""
check("a_bad_exit_is_a_failure", "status 3" in why and "because" in why, p.failures)
p = outcome("true")
check("silence_is_a_failure", len(p.failures) == 1 and "no result" in p.failures[0][1], p.failures)
p = outcome("echo ok a; sleep 600 & sleep 600", seconds=1, hangs=2)
check("a_hang_is_a_failure", len(p.failures) == 1 and "longer than 2 s" in p.failures[0][1] and p.seconds < 300, p.failures)
p = outcome("echo ok a; sleep 2", seconds=1)
check("who_waits_is_not_ended_before_the_clock_says_that_it_hangs", not p.failures and p.seconds >= 2, p.failures)
p = outcome("echo ok a; sh -c 'while :; do :; done'", seconds=1, hangs=10000)
check("what_a_program_starts_may_not_use_processors_for_ever",
      len(p.failures) == 1 and "more than 1 s of processors" in p.failures[0][1], p.failures)
p = outcome("sh -c 'i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done'; echo ok a; sleep 600", seconds=0.2, hangs=10000)
check("what_children_have_used_that_are_gone_counts_too",
      len(p.failures) == 1 and "of processors" in p.failures[0][1], p.failures)
p = run.Program("plain", "gone", ["/no/such/program"]).run()
check("a_missing_program_is_a_failure", len(p.failures) == 1 and "not there" in p.failures[0][1], p.failures)
sys.exit(failures > 0)
