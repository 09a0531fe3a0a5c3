"""The foam example against scipy, from the made-up specimen to the table of bubbles."""
import os
import pathlib
import re
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "foam.fov"

try:
    import numpy as np
    import scipy.ndimage as ndimage
except ImportError as missing:
    print(f"skip foam: {missing}")
    sys.exit(0)


def eroded(mask, radius):
    """By a ball, nothing taken away at the image's border."""
    edge = radius + 1
    inner = (slice(edge, -edge),) * mask.ndim
    return ndimage.distance_transform_edt(np.pad(mask, edge, constant_values=True))[inner] > radius


def run_example(folder, shape, radius):
    """The example itself, its image written as NPY so that numpy reads it, and with the steps between written too."""
    run("run", "-e", f'phantom("foam", {list(shape)}, seed = 1) |> write("foam.tif")', folder=folder)
    text = re.sub(r"\.zarr", ".npy", EXAMPLE.read_text())
    text += '\nwrite(foam, "foam.npy")\nwrite(walls, "walls.npy")\nwrite(walls > 0.9, "mask.npy")\n'
    pathlib.Path(folder, "foam.fov").write_text(text)
    run("run", "foam.fov", "--set", f"radius={radius}", folder=folder)
    return [np.load(os.path.join(folder, name)) for name in ("foam.npy", "walls.npy", "mask.npy", f"bubbles-{radius}.npy")]


@test
def the_foam_example_gives_scipys_bubbles(folder):
    foam, walls, mask, bubbles = run_example(folder, (60, 200, 200), 6)
    exact = ndimage.gaussian_filter(1 - foam.astype(np.float64) / 255, [3, 6, 6])
    assert abs(walls - exact).max() < 1e-6, abs(walls - exact).max()
    flips = mask.astype(bool) != (exact > 0.9)  # rounding only
    assert not flips.any() or abs(exact[flips] - 0.9).max() < 1e-6, int(flips.sum())
    expected, count = ndimage.label(eroded(mask.astype(bool), 6))
    assert count > 5 and np.array_equal(bubbles, expected), (count, int(bubbles.max()))
    with sqlite3.connect(os.path.join(folder, "bubbles.db")) as database:
        rows = dict(database.execute("SELECT label, voxels FROM bubbles"))
    assert rows == dict(enumerate(np.bincount(expected.ravel())[1:].tolist(), 1))


@test
def the_demo_specimen_has_some_dozens_of_bubbles(folder):
    *_, bubbles = run_example(folder, (100, 400, 400), 12)
    radius = (np.bincount(bubbles.ravel())[1:] * 3 / 4 / np.pi) ** (1 / 3)
    assert 24 <= (radius >= 10).sum() <= 80 and (radius >= 20).sum() >= 8 and radius.max() < 50, sorted(radius)[-40:]


main()
