#!/usr/bin/python3
"""What Python costs beside the work itself: calls, graphs, handing over, functions in processes; beside scipy and dask.

Each row is done by turns in a process of its own; medians of processor time, of the process and its children, are compared, which
other programs on the machine disturb less than the time on the wall. Single functions beside scipy's are in bench/ndimage.py.

usage: bench/python.py [ROUNDS] [ROW...]    rows: call lazy graph handing map loop import
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
GB = 1 << 30


def seconds(function, repeats=1):
    """Processor seconds of a call, with those of processes that it has waited for."""
    def now():
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(r.ru_utime + r.ru_stime for r in both)
    before = now()
    for _ in range(repeats):
        function()
    return (now() - before) / repeats


def status(name):
    """A line of /proc/self/status in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


# ---------------------------------------------------------------- rows: each gives facts by name

def call():
    """A small filter, all included."""
    import numpy as np
    import scipy.ndimage
    from fovea import ndimage
    a = np.random.default_rng(0).random((100, 100)).astype(np.float32)
    found = {}
    for name, module in (("fovea", ndimage), ("scipy", scipy.ndimage)):
        module.gaussian_filter(a, 2)
        found[f"{name} us"] = 1e6 * seconds(lambda m=module: m.gaussian_filter(a, 2), 2000)
    return found


def lazy():
    """The same as a lazy image that is made, typed and computed."""
    import numpy as np
    import fovea as fv
    a = np.random.default_rng(0).random((100, 100)).astype(np.float32)

    def one():
        return fv.array(a).gaussian(2).compute()
    one()
    found = {"fovea us": 1e6 * seconds(one, 1000)}
    try:
        import dask.array as da
        import scipy.ndimage
    except ImportError:
        return found

    def other():
        return da.from_array(a, chunks=a.shape).map_blocks(lambda b: scipy.ndimage.gaussian_filter(b, 2),
                                                           dtype=a.dtype).compute(scheduler="synchronous")
    other()
    found["dask us"] = 1e6 * seconds(other, 200)
    return found


def graph():
    """A graph of 1,000 operators on 64 x 64: made, and planned (dask: optimised)."""
    import numpy as np
    import fovea as fv
    a = np.ones((64, 64), np.float32)

    def chain(x):
        for k in range(1000):
            x = x + k
        return x
    chain(fv.array(a[:32]))  # other types: nothing of the chain below is known yet
    made = []
    found = {"fovea making ms": 1e3 * seconds(lambda: made.append(chain(fv.array(a))))}
    found["fovea planning ms"] = 1e3 * seconds(made[0].plan)
    try:
        import dask
        import dask.array as da
    except ImportError:
        return found
    chain(da.from_array(a[:32]))
    found["dask making ms"] = 1e3 * seconds(lambda: made.append(chain(da.from_array(a))))
    found["dask optimising ms"] = 1e3 * seconds(lambda: dask.optimize(made[1]))
    return found


def handing():
    """1 GB in, and 1 GB out: time and memory beyond the two arrays."""
    import numpy as np
    import fovea as fv
    a = np.ones((1024, 512, 512), np.float32)
    (fv.array(a[:2]) + 1).compute()
    before = status("VmRSS")
    image = []
    found = {"in ms": 1e3 * seconds(lambda: image.append(fv.array(a))), "in MB": (status("VmRSS") - before) / 1e6}
    result = []
    found["x + 1, out s"] = seconds(lambda: result.append((image[0] + 1).compute()))
    found["most memory GB beyond the input"] = (status("VmHWM") - before) / GB
    found["numpy's s"] = seconds(lambda: a + 1)
    return found


def mapped():
    """An identity on 1 GB in blocks of 64 MB on 2 cores: processor seconds of all processes."""
    import numpy as np
    import fovea as fv
    a = np.ones((1024, 512, 512), np.float32)
    block = (64, 512, 512)
    fv.map_blocks(lambda b: b, a[:64], block=32, workers=2).compute()
    began = time.perf_counter()
    took = seconds(lambda: fv.map_blocks(lambda b: b, a, block=block, workers=2).compute())
    found = {"fovea s": took, "fovea GB/s of 2 cores": 2 * a.nbytes / took / 1e9, "fovea wall s": time.perf_counter() - began}
    try:
        import dask.array as da
        import dask.multiprocessing  # noqa: F401
    except ImportError:
        return found
    x = da.from_array(a, chunks=block).map_blocks(same, dtype=a.dtype)
    da.from_array(a[:64], chunks=32).map_blocks(same, dtype=a.dtype).compute(scheduler="processes", num_workers=2)
    began = time.perf_counter()
    took = seconds(lambda: x.compute(scheduler="processes", num_workers=2))
    return dict(found, **{"dask s": took, "dask wall s": time.perf_counter() - began})


def same(block):
    """For dask, which pickles functions."""
    return block


def loop():
    """10,000 computes: memory and descriptors that are left."""
    import numpy as np
    import fovea as fv
    a = np.ones((40, 40), np.float32)

    def go(n):
        for k in range(n):
            (fv.array(a) + k % 100).mean().compute()
    go(1000)
    before, files = status("VmRSS"), len(os.listdir("/proc/self/fd"))
    took = seconds(lambda: go(10000))
    return {"grown MB": (status("VmRSS") - before) / 1e6, "descriptors": len(os.listdir("/proc/self/fd")) - files,
            "us each": took * 100}


def importing():
    """Loading the package beyond numpy."""
    import numpy  # noqa: F401

    def load():
        import fovea  # noqa: F401
    return {"ms": 1e3 * seconds(load)}


ROWS = {"call": call, "lazy": lazy, "graph": graph, "handing": handing, "map": mapped, "loop": loop, "import": importing}


def main():
    """Prints the medians of each row."""
    given = sys.argv[1:]
    rounds = int(given.pop(0)) if given and given[0].isdigit() else 3
    if given[:1] == ["--row"]:
        print(json.dumps(ROWS[given[1]]()))
        return
    try:
        import dask
        print(f"dask {dask.__version__}")
    except ImportError:
        print("skipped: dask, which is not installed (Debian: python3-dask)")
    for row in given or ROWS:
        found = []
        for _ in range(1 if row == "loop" else rounds):
            done = subprocess.run([sys.executable, __file__, "--row", row], capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
        print(f"{row}: {(ROWS[row].__doc__ or '').strip()}")
        for name in found[0]:
            print(f"    {name:34} {statistics.median(f[name] for f in found):10.3g}")


if __name__ == "__main__":
    main()
