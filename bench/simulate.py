#!/usr/bin/env python3
"""How well `fovea scale --simulate` predicts two workers from the tasks of one, on three pipelines, and what it says of larger work.

    bench/simulate.py [--repeats 5] [--small]

--small leaves the larger work out.

The prediction uses nothing but the run on one worker; both are the fastest of the repeats. On a busy machine the figures say little:
what others take is not in the model.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
PIPELINES = {
    "median": 'phantom("foam", [120, 700, 700]) |> median(4) |> write("a.npy")',
    "segment": 'x = phantom("foam", [120, 500, 500]) |> median(3) |> gaussian(3)\nl = label(x > otsu(x))\nl |> write("l.npy")\n'
               'measure(l, x) |> write("t.csv")',
    "sirt": 'g = parallel(range(-72, 72, 2))\np = xray(phantom("shepp-logan", [64, 160, 160]), g)\n'
            'sirt(p, g, iterations = 30) |> write("r.npy")',
}
LARGE = [("11500 x 2800 x 628 zebrafish", 20.2e9, 1), ("1000 GVx of brain", 1e12, 1),
         ("a thousand zebrafish", 20.2e9, 1000), ("a thousand brains", 1e12, 1000)]
VOXELS = {"median": 120 * 700 * 700, "segment": 120 * 500 * 500, "sirt": 64 * 160 * 160}


def simulate(text, folder, *arguments):
    words = [FOVEA, "scale", "-q", "--json", "-e", text, "--simulate", *arguments]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", default="5")
    parser.add_argument("--small", action="store_true")
    asked = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("pipeline   1 worker  2 measured  2 predicted      off")
    worst = 0
    for name, text in PIPELINES.items():
        with tempfile.TemporaryDirectory() as folder:
            a = simulate(text, folder, "2", "--repeats", asked.repeats, "--chunk", "30x100x100", "--engine", "threads")
            off = abs(a["predicted_two"] / a["measured_two"] - 1)
            worst = max(worst, off)
            print(f"{name:9} {a['measured']:8.3f} s {a['measured_two']:9.3f} s {a['predicted_two']:10.3f} s {100 * off:6.1f} %")
            for what, voxels, volumes in [] if asked.small else LARGE:
                b = simulate(text, folder, "24,192,1000,24000", "--repeats", "1", "--chunk", "30x100x100", "--cores", "24",
                             "--times", str(round(voxels / VOXELS[name])), "--volumes", str(volumes), "--most-tasks", "1000000")
                rows = [r for r in b["rows"] if r["workers"] in (24, 192, 1000, 24000)]
                print(f"  SIMULATED {what} ({b['all_tasks']:.3g} tasks): " +
                      ", ".join(f"{r['workers']}: {r['seconds']:.0f} s" for r in rows) +
                      f"; worth it: {b['worth']} workers; 24000: {rows[-1]['bottleneck']}; "
                      f"batches make it unsure by {100 * max(r['unsure'] for r in b['rows']):.2g} %")
    print(f"largest deviation {100 * worst:.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
