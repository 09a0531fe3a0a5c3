"""Images for tests of the page of `fovea view`, and where to look."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fovea_test import run  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip view_page: {missing}")
    sys.exit(0)


def made_scan(folder, dtype, shape=(12, 40, 50)):
    """scan.npy: a smooth volume of numbers that are all different enough to be told apart, as an array."""
    z, y, x = np.indices(shape)
    scan = ((x * 37 + y * 101 + z * 211) % 997 * 60).astype(dtype)
    np.save(f"{folder}/scan.npy", scan)
    return scan


def make_cells(folder, shape=(24, 60, 80)):
    """scan.npy and labels.npy with some balls, as arrays."""
    z, y, x = np.indices(shape)
    labels = np.zeros(shape, np.int32)
    centres = [(6, 15, 15), (6, 15, 60), (12, 40, 40), (18, 30, 65), (18, 48, 15), (12, 14, 38)]
    for k, (cz, cy, cx) in enumerate(centres):
        labels[((z - cz) * 1.5) ** 2 + (y - cy) ** 2 + (x - cx) ** 2 < (6 + k) ** 2] = k + 1
    scan = (labels * 3000 + (labels > 0) * 8000 + (x * 13 + y * 7 + z * 29) % 500).astype(np.uint16)
    np.save(f"{folder}/scan.npy", scan)
    np.save(f"{folder}/labels.npy", labels)
    return scan, labels


def save(folder, name, array):
    np.save(f"{folder}/{name}", array)
    return array


def write(folder, text):
    """Files that Fovea writes."""
    run("run", "-q", "-e", text, folder=folder)


def look_at(page, position, zoom=16):
    """Puts a voxel into the middle of every plane, so large that the middle is it alone."""
    centre = [p + 0.5 for p in position]
    page.evaluate(f"fovea.store.set({{ position: {list(position)}, centre: {centre}, zoom: {zoom} }})")
    page.settle()


def centre_pixel(page, axis):
    width, height = page.size(f"canvas[data-axis={axis}]")
    return page.pixel(axis, int(width / 2), int(height / 2))
