#!/usr/bin/python3
"""track beside the same rules written down in Python, and movies whose tracks are known."""
import itertools
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
except ImportError as missing:
    print(f"skip track: {missing}")
    sys.exit(0)

from pipelines import Difference, near, run, test

CHUNKS = ((), ("--chunk", "7"), ("--chunk", "5", "--engine", "processes", "--workers", "2"))


def movie(seed, times=6, shape=(40, 50)):
    """Blobs that drift, and blink now and then."""
    random = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(random.random((times, *shape)), (0.7, 2, 2))
    return np.stack([ndimage.label(frame > np.quantile(frame, 0.75))[0] for frame in noise]).astype(np.int32)


def objects_of(labels):
    found = []
    for t, frame in enumerate(labels):
        for label in np.unique(frame[frame > 0]):
            found.append((t, int(label), np.argwhere(frame == label).mean(0)))
    return found


def linked(labels, by, gap=0, max_distance=20, divide=True):
    """Tracks and parents of all objects, by the rules of the page."""
    objects = objects_of(labels)
    bonds = []
    for (i, a), (k, b) in itertools.product(enumerate(objects), repeat=2):
        ahead = b[0] - a[0]
        if not 1 <= ahead <= gap + 1:
            continue
        if by == "overlap":
            common = int(((labels[a[0]] == a[1]) & (labels[b[0]] == b[1])).sum())
            if common:
                bonds.append((ahead, -common, i, k))
        else:
            far = float(np.sqrt(((a[2] - b[2]) ** 2).sum()))
            if far <= max_distance:
                bonds.append((ahead, far, i, k))
    source, children = {}, dict.fromkeys(range(len(objects)), 0)
    for ahead, _, i, k in sorted(bonds):
        if k in source or (children[i] and not (by == "overlap" and divide and ahead == 1)):
            continue
        source[k] = i
        children[i] += 1
    tracks, parents = [], []
    for k in range(len(objects)):
        i = source.get(k)
        if i is not None and children[i] == 1:
            tracks.append(tracks[i])
        else:
            parents.append(tracks[i] if i is not None else 0)
            tracks.append(len(parents))
    return objects, tracks, parents


@test
def objects_are_linked_by_the_rules_on_any_lattice():
    for seed, (options, rules) in enumerate((
            ("", {"by": "overlap"}), (", gap = 2", {"by": "overlap", "gap": 2}),
            (", divide = false, gap = 1", {"by": "overlap", "gap": 1, "divide": False}),
            (', by = "distance", max_distance = 6', {"by": "distance", "max_distance": 6}),
            (', by = "distance", max_distance = 4, gap = 2', {"by": "distance", "max_distance": 4, "gap": 2}))):
        labels = movie(seed)
        objects, tracks, parents = linked(labels, **rules)
        for chunk in CHUNKS:
            ours = run(f'track(name_axes(l, "t y x"), rows = "objects"{options})', *chunk, table=True, l=labels)
            near(ours["t"], [o[0] for o in objects], "t", 0)
            near(ours["label"], [o[1] for o in objects], "label", 0)
            near(ours["track"], tracks, "track", 0)
            near(ours["parent"], [parents[t - 1] for t in tracks], "parent", 0)
            near(ours["centroid_x"], [o[2][1] for o in objects], "centroid", 1e-12)
        ours = run(f'track(name_axes(l, "t y x"){options})', "--chunk", "11", table=True, l=labels)
        near(ours["parent"], parents, "parent", 0)
        for number in range(1, len(parents) + 1):
            mine = [o for o, t in zip(objects, tracks) if t == number]
            steps = [np.linalg.norm(a[2] - b[2]) for a, b in zip(mine, mine[1:])]
            theirs = (mine[0][0], mine[-1][0], len(mine), np.linalg.norm(mine[0][2] - mine[-1][2]), sum(steps))
            for name, value in zip(("start", "end", "objects", "displacement", "path"), theirs):
                near(ours[name][number - 1:number], [value], name, 1e-12)


def squares(*places):
    """A frame of 5 x 5 squares, numbered in raster order as label does it."""
    mask = np.zeros((40, 60), bool)
    for y, x in places:
        mask[y:y + 5, x:x + 5] = True
    return ndimage.label(mask)[0]


@test
def a_cell_divides_and_one_that_is_lost_is_found_again():
    labels = np.stack([squares((5, 10), (25, 10)), squares((5, 12)), squares((5, 9), (5, 15), (25, 12)),
                       squares((5, 7), (5, 17), (25, 13))]).astype(np.uint8)
    ours = run('track(name_axes(l, "t y x"), gap = 1)', table=True, l=labels)
    rows = sorted(zip(*(ours[name].astype(int) for name in ("track", "parent", "start", "end", "objects"))))
    if rows != [(1, 0, 0, 1, 2), (2, 0, 0, 3, 3), (3, 1, 2, 3, 2), (4, 1, 2, 3, 2)]:
        raise Difference(f"{rows}")
    near(ours["displacement"], [2, 3, 2, 2], "displacement", 1e-12)


@test
def two_fast_objects_are_told_apart_by_distance():
    labels = np.stack([squares((5, 5 + 7 * t), (25, 50 - 7 * t)) for t in range(6)]).astype(np.uint8)
    ours = run('track(name_axes(l, "t y x"), by = "distance", max_distance = 8)', "--chunk", "6", table=True, l=labels)
    near(ours["objects"], [6, 6], "objects", 0)
    near(ours["displacement"], [35, 35], "displacement", 1e-12)


@test
def volumes_are_tracked_too():
    labels = np.stack([np.stack([frame] * 4) for frame in movie(9)])
    flat = run('track(name_axes(l, "t y x"))', table=True, l=labels[:, 0])
    ours = run('track(name_axes(l, "t z y x"))', "--chunk", "9", table=True, l=labels)
    for name in ours:
        near(ours[name], flat[name], name, 1e-12)


@test
def labels_without_a_time_are_refused():
    try:
        run("track(l)", table=True, l=movie(0))
    except Difference as told:
        if "has no axis t" not in str(told):
            raise
    else:
        raise Difference("labels without t are tracked")


test.main()
