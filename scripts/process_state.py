#!/usr/bin/env python3
"""Checks that the library keeps no state of the process but what is listed here.

    scripts/process_state.py [build/libfovea.a]

Two pipelines in one process must not see each other, so what a pipeline keeps belongs to its session (base/session.h). A variable
that lives as long as the process and can change is listed below if it must be there, and a comment beside it says why. The
compiled library is looked at, because a compiler knows best what can change. Plug-ins are not: the libraries that they bring are
of the process themselves. Prints what is not listed as FILE: NAME; the exit status is 1 if there is any, or if something that is
listed is no longer there.
"""
import pathlib
import re
import subprocess
import sys

ALLOWED = {  # file: its variables
    "child.c": "number mutex users before swept",
    "device.c": "opencl cards mutex",
    "device_pool.c": "pools pools_mutex",
    "dicom.c": "mutex loaded",
    "duckdb.c": "mutex library loaded",
    "engine.c": "added nadded",
    "expendable.c": "line",
    "file.c": "fault_plan fault_once number passed",
    "guardian.c": "shared",
    "hdf5.c": "mutex loaded",
    "host.c": "self once",
    "kafka_source.c": "loading plugin missing",
    "lease.c": "mutex beats counter token identity since sightings serial",
    "lease_client.c": "reached owed away",
    "lexer.c": "c_locale once",
    "memory.c": "handler failing failing_small",
    "processes.c": "spawn_mutex",
    "ranks.c": "joined",
    "registry.c": "current sorted named count once",
    "remote.c": "mutex loaded",
    "remote_file.c": "slots count mutex",
    "results.c": "mutex",
    "session.c": "process",
    "stitch_tiles.c": "in_order",
    "tiff_write.c": "fv__tiff_classic_limit",
    "zarr_array.c": "mutex",
}

MEMBER = re.compile(r"(\S+)\.o:\s+file format")
# Constants that hold addresses are in .data.rel.ro.
CHANGES = re.compile(r"\sO\s+\.(?:data|bss)(?!\.rel\.ro)\S*\s+[0-9a-f]+\s+(?:\.hidden\s+)?([^\s.]+)")


def variables(library):
    """File and name of everything in the library that lasts and can change. Thread-local variables are in other sections."""
    listing = subprocess.run(["objdump", "-t", library], capture_output=True, text=True, check=True).stdout
    file = None
    for line in listing.splitlines():
        member, changes = MEMBER.match(line), CHANGES.search(line)
        if member:
            file = member[1]
        elif changes:
            yield file, changes[1]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    library = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "build" / "libfovea.a"
    if not library.exists():
        print(f"{library} is not there; run make")
        return 1
    listed = {(file, name) for file, names in ALLOWED.items() for name in names.split()}
    seen = set(variables(str(library)))
    breaches = [f"{file}: {name} belongs to the process: keep it in a session, or list it in scripts/process_state.py and say "
                "beside it why it cannot be" for file, name in sorted(seen - listed)]
    breaches += [f"{file}: there is no {name} any more, but scripts/process_state.py lists it"
                 for file, name in sorted(listed - seen)]
    print("\n".join(breaches) if breaches else f"{len(seen)} variables belong to the process, all of them listed")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
