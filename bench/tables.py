#!/usr/bin/python3
"""Tables of a million rows and six columns: the writers alone, from memory to a durable file, beside pandas.to_sql and
pyarrow.parquet.write_table, in turns; medians of wall times and of CPU times, which say more on a busy machine.

    bench/tables.py [ROWS]

pyarrow and a newer pandas are those of build/peers; Debian's pandas is taken where that is missing.
"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITER = ROOT / "build" / "bench" / "bench_tables"
PEERS = str(ROOT / "build" / "peers" / "bin" / "python")
REPEATS = 5

# The same rows as bench_tables makes; the time of the peer alone.
ROWS = """
import os, sqlite3, sys, time
import numpy as np
n = int(sys.argv[1])
with np.errstate(over="ignore"):
    z = np.arange(1, 4 * n + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15) + np.uint64(1)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    z = (z ^ z >> np.uint64(31)).reshape(n, 4)
columns = {"label": np.arange(1, n + 1), "volume": (z[:, 0] >> np.uint64(33)).astype(float) / 1000,
           "anisotropy": (z[:, 1] >> np.uint64(11)).astype(float) * 2.0**-53,
           "depth": (z[:, 2] % np.uint64(100)).astype(float),
           "type": np.where(np.arange(n) % 3, "cancer", "healthy"), "neighbours": (z[:, 3] % np.uint64(1000)).astype(np.int64)}
def timed(path, work):
    start, used = time.perf_counter(), time.process_time()
    work()
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    return f"{time.perf_counter() - start} {time.process_time() - used}"
"""
PANDAS = ROWS + """
import pandas
frame = pandas.DataFrame(columns)
connection = sqlite3.connect("peer.db")
print(timed("peer.db", lambda: frame.to_sql("rows", connection, index=False, if_exists="replace")), pandas.__version__)
"""
PYARROW = ROWS + """
import pyarrow, pyarrow.parquet
table = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
pyarrow.parquet.write_table(table.slice(0, 1000), "warm.parquet")
print(timed("peer.parquet", lambda: pyarrow.parquet.write_table(table, "peer.parquet")), pyarrow.__version__)
"""


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None, done.stderr.strip().splitlines()[-1:]


def compare(title, own, peer, target, rows, folder):
    """Both in turns; skipped by name where one of them cannot run."""
    times = {"own": [], "peer": []}  # (wall, CPU)
    version = ""
    for _ in range(REPEATS):
        for name, command in (("own", [str(WRITER), own, str(rows)]), ("peer", [peer[0], "-c", peer[1], str(rows)])):
            found, why = run(command, folder)
            if not found:
                print(f"skip {title}: {' '.join(why)}")
                return
            times[name].append([float(seconds) for seconds in found[:2]])
            version = found[2] if len(found) > 2 else version
    mine, other = ([statistics.median(column) for column in zip(*times[name])] for name in ("own", "peer"))
    print(f"{title:24} {peer[2]} {version:7} {other[0]:7.3f} s ({other[1]:.3f} CPU)   fovea {mine[0]:7.3f} s ({mine[1]:.3f} CPU)   "
          f"{other[0] / mine[0]:5.2f}x ({other[1] / mine[1]:.2f}x CPU)   target {target}", flush=True)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    newer = os.path.exists(PEERS) and not subprocess.run([PEERS, "-c", "import pandas"], capture_output=True).returncode
    folder = tempfile.mkdtemp(prefix="fovea-bench-")
    try:
        compare(f"{rows} rows to SQLite", "own.db", (PEERS if newer else sys.executable, PANDAS, "pandas"), "3x", rows, folder)
        compare(f"{rows} rows to Parquet", "own.parquet", (PEERS, PYARROW, "pyarrow"), "1x", rows, folder)
    finally:
        shutil.rmtree(folder)


main()
