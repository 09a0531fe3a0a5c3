"""What the programs have in common that `fovea run` starts to have workers placed: `python -m fovea.ENGINE RUN_FOLDER ...`.

When its standard input ends such a program stops the workers and ends too. What went wrong is the last thing that it prints."""
import argparse
import os
import signal
import sys
import threading

from ._errors import Error, MissingPart, OutOfMemory, UsageError
from ._placed import PlacedRun


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"{self.prog}: {message}", flush=True)
        sys.exit(2)


def arguments(engine):
    """A parser of what all engines are told; it says on standard output what is wrong."""
    parser = _Parser(prog=f"--engine {engine}")
    parser.add_argument("run")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--memory", type=int)
    parser.add_argument("--overwrite")
    parser.add_argument("--apart")
    return parser


def _end_with_input(run):
    """Ctrl-C, or the end of the command that started us."""
    def watch():
        while os.read(0, 64):
            pass
        run.stop()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=watch, daemon=True).start()


def program(given, work):
    """Calls work with the run that the arguments name: the exit status, 0, 1 if something failed, 2 if nothing was begun, 130."""
    run = PlacedRun(given.run)
    run.run_options.overwrite = bool(given.overwrite)
    _end_with_input(run)
    try:
        work(run)
    except KeyboardInterrupt:
        return 130
    except (UsageError, MissingPart, OutOfMemory) as problem:
        print(problem, flush=True)
        return 2
    except Error as problem:
        print(problem, flush=True)
        return 1
    return 0
