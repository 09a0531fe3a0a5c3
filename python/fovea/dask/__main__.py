"""The program that `fovea run --engine dask` starts: `python -m fovea.dask RUN_FOLDER --scheduler ADDRESS ...`.

It is a client of a dask cluster that places workers on a run that is frozen in a folder."""
import os
import sys

from .._errors import UsageError
from .._placed_program import arguments, program
from ._place import place, place_apart

PATIENCE = 10  # seconds for a scheduler to answer


def _arguments():
    parser = arguments("dask")
    parser.add_argument("--scheduler", default=os.environ.get("DASK_SCHEDULER_ADDRESS"))
    return parser.parse_args()


def _client(address, workers):
    """A client of the scheduler at an address; "local" starts a cluster on this machine, to try it out."""
    try:
        import distributed
    except ImportError as missing:
        raise UsageError(f"--engine dask needs distributed in {sys.executable} ({missing}): pip install 'dask[distributed]', or "
                         "Debian's python3-distributed; FOVEA_PYTHON names another Python") from None
    if not address:
        raise UsageError("--engine dask needs --scheduler: tcp://host:8786, a scheduler file that ends in .json, or local to try "
                         "it out")
    if address == "local":
        cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
        return distributed.Client(cluster), cluster
    try:
        given = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
        return distributed.Client(**given, timeout=PATIENCE), None
    except (OSError, ValueError, TimeoutError) as failure:
        first = (str(failure).strip() or type(failure).__name__).splitlines()[0]
        raise UsageError(f"--scheduler {address}: no scheduler of dask answers there ({first})") from None


def _work(given, run):
    client, cluster = _client(given.scheduler, given.workers)
    try:
        (place_apart if given.apart or run.without_folder else place)(client, run, given.memory, most=given.workers)
    finally:
        client.close()
        if cluster:
            cluster.close()


def main():
    """The exit status, after the workers have done what there was."""
    given = _arguments()
    return program(given, lambda run: _work(given, run))


if __name__ == "__main__":
    sys.exit(main())
