#!/usr/bin/python3
"""profile against skimage.measure.profile_line, through the command, on several lattices."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.measure
except ImportError as missing:
    print(f"skip profile: {missing}")
    sys.exit(0)

from pipelines import Difference, near, run, test

CHUNKS = ((), ("--chunk", "7"), ("--chunk", "16", "--engine", "processes", "--workers", "2"))


def check(image, start, end, linewidth=1, order=1, chunks=CHUNKS):
    peer = skimage.measure.profile_line(image, start, end, linewidth=linewidth, order=order, mode="reflect")
    for chunk in chunks:
        text = f"profile(a, {list(start)}, {list(end)}, linewidth = {linewidth}, order = {order})"
        ours = run(text, *chunk, table=True, a=image)
        near(ours["value"], peer, f"{start} {end} {linewidth} {order}", 1e-6 if image.dtype == np.float32 else 1e-12)
        length = float(np.hypot(*np.subtract(end, start)))
        near(ours["distance"], np.linspace(0, length, len(peer)), "distance")


@test
def lines_in_a_plane_equal_profile_line():
    image = np.random.default_rng(0).random((40, 50))
    for start, end in (((3, 4), (30, 45)), ((30, 45), (3, 4)), ((5, 0), (5, 49)), ((39, 7), (0, 7)), ((2.5, 3.25), (17.1, 40.9)),
                       ((8, 8), (8, 8))):
        check(image, start, end)
        check(image, start, end, linewidth=4)
    check(image, (1, 1), (38, 48), linewidth=9)


@test
def every_type_has_a_profile():
    random = np.random.default_rng(1)
    for dtype in (np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32, np.float64):
        image = (random.random((30, 31)) * 100).astype(dtype)
        peer = skimage.measure.profile_line(image.astype(float), (2, 3), (27, 29), linewidth=2, order=1, mode="reflect")
        near(run("profile(a, [2, 3], [27, 29], linewidth = 2)", table=True, a=image)["value"], peer, str(dtype), 1e-9)


@test
def the_nearest_voxel_is_taken_with_order_0():
    check(np.random.default_rng(2).integers(0, 255, (30, 40)).astype(np.uint8), (2.2, 3.3), (27.4, 31.1), order=0)


@test
def lines_through_a_volume_equal_map_coordinates():
    volume = np.random.default_rng(3).random((20, 25, 30))
    start, end = np.array([1, 2, 3.5]), np.array([18, 20.25, 29])
    count = int(np.ceil(np.linalg.norm(end - start) + 1))
    peer = ndimage.map_coordinates(volume, [np.linspace(a, b, count) for a, b in zip(start, end)], order=1, mode="reflect")
    for chunk in CHUNKS:
        near(run(f"profile(a, {start.tolist()}, {end.tolist()})", *chunk, table=True, a=volume)["value"], peer, "volume")


@test
def colours_have_a_column_each():
    import subprocess
    import tempfile
    import csv
    import skimage.io
    from pipelines import FOVEA
    image = np.random.default_rng(4).integers(0, 255, (20, 30, 3)).astype(np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        skimage.io.imsave(f"{folder}/c.png", image, check_contrast=False)
        subprocess.run([FOVEA, "run", "--quiet", "-e", 'write(profile(read("c.png"), [1, 2], [18, 25]), "out.csv")'], cwd=folder,
                       check=True)
        with open(f"{folder}/out.csv", newline="") as file:
            rows = list(csv.DictReader(file))
    peer = skimage.measure.profile_line(image.astype(float), (1, 2), (18, 25), order=1, mode="reflect")
    for c in range(3):
        near(np.array([float(row[f"value_{c}"]) for row in rows]), peer[:, c], "colour")


@test
def wrong_lines_are_told():
    image = np.zeros((10, 20), np.uint8)
    for text, words in (("profile(a, [1, 2, 3], [1, 2])", "start has 3 numbers; the image has 2"),
                        ("profile(a, [1, 2], [1, 20])", "20 lies outside axis x"),
                        ("profile(a, [-1, 2], [1, 2])", "-1 lies outside"),
                        ("profile(a, [1, 2], [1, 5], order = 3)", "order"),
                        ("profile(v, [0, 0, 0], [1, 1, 1], linewidth = 3)", "only planes have one direction across")):
        try:
            run(text, a=image, v=np.zeros((3, 3, 3), np.uint8))
        except Difference as told:
            if words not in str(told):
                raise Difference(f"{text} says {told}")
        else:
            raise Difference(f"{text} is accepted")


test.main()
