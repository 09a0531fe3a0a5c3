"""The blocks of docs/recipes.md, for tests that cook them: on the images that the page draws, or on other files."""
import csv
import pathlib
import re
import sqlite3
import subprocess

from fovea_test import FOVEA, ROOT, Skip

TEXT = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")


def blocks(section):
    """(language, text) of each block of the section with that title."""
    for part in re.split(r"^## ", TEXT, flags=re.M)[1:]:
        if part.splitlines()[0] == section:
            return re.findall(r"^```(\w+)\n(.*?)^```", part, re.M | re.S)
    raise AssertionError(f"docs/recipes.md has no section {section}")


def cook(folder, *sections, real=False):
    """Runs the blocks of the sections; {command: what it printed}. real: what the page draws lies there already."""
    printed = {}
    for language, text in [block for section in sections for block in blocks(section)]:
        if language == "fov":
            pathlib.Path(folder, re.match(r"# (\w+\.fov)", text).group(1)).write_text(text, encoding="utf-8")
            continue
        if language != "console":
            continue
        for line in text.splitlines():
            drawn = re.search(r'phantom\(.*write\("(.*?)"\)', line)
            if real and drawn:
                assert pathlib.Path(folder, drawn.group(1)).exists(), f"no real file in the place of {drawn.group(1)}"
                continue
            command = line[2:].replace("fovea sql", "fovea sql --csv").replace("fovea", FOVEA, 1)
            done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            assert done.returncode == 0, f"{line}: {done.stderr[-500:]}"
            printed[line] = [row.split(",") for row in done.stdout.splitlines()]
    return printed


def answer(printed, part):
    """What the one command that contains this part printed."""
    [lines] = [lines for command, lines in printed.items() if part in command]
    return lines


def rows(folder, file, question):
    with sqlite3.connect(pathlib.Path(folder, file)) as base:
        return base.execute(question).fetchall()


def table(folder, file):
    with open(pathlib.Path(folder, file), encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def cells_by_scikit_image(path, spatial):
    """The volumes of the cells that count.fov should find, but for ties of the watershed."""
    try:
        import numpy as np
        from scipy import ndimage
        from skimage.feature import peak_local_max
        from skimage.filters import threshold_otsu
        from skimage.io import imread
        from skimage.segmentation import watershed
    except ImportError as missing:
        raise Skip(str(missing)) from missing
    image = imread(path)
    assert image.ndim == spatial
    smooth = ndimage.gaussian_filter(image.astype(np.float32), 1)
    mask = smooth > threshold_otsu(smooth)
    inside = ndimage.distance_transform_edt(mask).astype(np.float32)
    markers = np.zeros(image.shape, np.int32)
    peaks = peak_local_max(ndimage.gaussian_filter(inside, 1), min_distance=5, exclude_border=False)
    markers[tuple(peaks.T)] = np.arange(1, len(peaks) + 1)
    sizes = np.bincount(watershed(-inside, markers, mask=mask).ravel())[1:]
    return sizes[sizes >= 40]


def close_to(found, peer):
    assert len(peer) > 0
    assert abs(len(found) - len(peer)) <= 0.02 * len(peer) + 1, f"{len(found)} cells, the peer finds {len(peer)}"
    assert abs(sum(found) - sum(peer)) <= 0.01 * sum(peer), f"{sum(found)} voxels, the peer finds {sum(peer)}"


def within_two_connections(folder, cell):
    """The cells that a search in the table of contacts finds, and how many neighbours the best connected cell has."""
    near = {}
    for a, b in rows(folder, "cells.db", "SELECT label_a, label_b FROM contacts"):
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return near[cell].union(*(near[b] for b in near[cell])) - {cell}, max(map(len, near.values()))
