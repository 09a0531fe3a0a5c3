"""Errors of the library as Python exceptions with the same sentences."""
from . import _library as l


class Error(Exception):
    """Something that Fovea could not do. `code` is the name of the library's status."""
    code = "error"


class UsageError(Error, ValueError):
    """A bad argument, parameter or pipeline text."""
    code = "usage"


class InputError(Error, OSError):
    """An input is missing or damaged, or a result cannot be written."""
    code = "input"


class OutOfMemory(Error, MemoryError):
    """The work does not fit the memory bound."""
    code = "memory"


class MissingPart(Error, ImportError):
    """An optional part is not installed."""
    code = "missing"


_KINDS = {l.USAGE: UsageError, l.INPUT: InputError, l.IO: InputError, l.FULL: InputError, l.BUSY: InputError,
          l.MEMORY: OutOfMemory, l.MISSING: MissingPart}


def raise_status(status, error, messages=""):
    """Raises what a status other than OK and CANCELLED means."""
    sentence = messages.strip() or error.message.decode("utf-8", "replace") or "no reason was given"
    raise _KINDS.get(status, Error)(sentence)
