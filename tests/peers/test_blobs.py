#!/usr/bin/python3
"""blobs_log, blobs_dog and blobs_doh against skimage.feature, through the command, on several lattices.

Before pruning the blobs are the same set. Pruned ones are compared with the rule of our own documentation, because
scikit-image's pruning follows the order of a Python set."""
import math
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.feature
except ImportError as missing:
    print(f"skip blobs: {missing}")
    sys.exit(0)

from pipelines import Difference, run, test

CHUNKS = ((), ("--chunk", "37"), ("--chunk", "90", "--engine", "processes", "--workers", "2"))
PEER = {"blobs_log": skimage.feature.blob_log, "blobs_dog": skimage.feature.blob_dog, "blobs_doh": skimage.feature.blob_doh}


def cells(shape, seed=0):
    """Bright round cells of several sizes on noise, uint8."""
    random = np.random.default_rng(seed)
    image = random.random(shape) * 20
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    for _ in range(40):
        centre, radius = random.random(len(shape)) * shape, random.uniform(2, 8)
        image += random.uniform(50, 150) * np.exp(-((grid - centre) ** 2).sum(-1) / (2 * radius ** 2))
    return np.clip(image, 0, 255).astype(np.uint8)


def table(text, *options, **arrays):
    ours = run(text, *options, table=True, **arrays)
    return np.stack(list(ours.values()), 1)


def as_set(blobs):
    return set(map(tuple, np.round(np.asarray(blobs, float), 4)))


def check(name, image, arguments, chunks=CHUNKS, different=0):
    """Both sets are equal but for `different` blobs (near ties of floats)."""
    peer = as_set(PEER[name](image, overlap=1, **arguments))
    text = f"{name}(a, overlap = 1, " + ", ".join(f"{k} = {str(v).lower()}" for k, v in arguments.items()) + ")"
    first = None
    for chunk in chunks:
        blobs = table(text, *chunk, a=image)
        ours = as_set(blobs)
        if len(ours ^ peer) > different or len(blobs) != len(ours):
            raise Difference(f"{text} of {image.dtype} {image.shape}: {len(ours)} blobs, the peer has {len(peer)}, "
                             f"{len(ours & peer)} in common")
        if first is not None and not np.array_equal(first, blobs):
            raise Difference(f"{text} depends on the lattice {chunk}")
        first = blobs
    return first


def overlap_of(a, b, n):
    """a is not smaller than b."""
    distance, r, s = math.dist(a[:n], b[:n]) / (a[n] * math.sqrt(n)), 1.0, b[n] / a[n]
    if distance > r + s:
        return 0
    if distance <= r - s:
        return 1
    whole = skimage.feature.blob._compute_disk_overlap if n == 2 else skimage.feature.blob._compute_sphere_overlap
    return whole(distance, r, s)


def pruned(blobs, responses, overlap, n):
    kept = []
    for i in sorted(range(len(blobs)), key=lambda i: (-blobs[i][n], -responses[i], tuple(blobs[i][:n]))):
        if all(overlap_of(k, blobs[i], n) <= overlap for k in kept):
            kept.append(tuple(blobs[i]))
    return kept


@test
def blobs_log_equals_scikit_image_before_pruning():
    check("blobs_log", cells((150, 170)), {"max_sigma": 12, "threshold": 0.05})
    check("blobs_log", cells((150, 170), 1), {"min_sigma": 2, "max_sigma": 30, "num_sigma": 7, "threshold": 0.02,
                                              "log_scale": True})
    check("blobs_log", cells((30, 45, 50), 2), {"min_sigma": 1.5, "max_sigma": 6, "num_sigma": 5, "threshold": 0.05})


@test
def blobs_dog_equals_scikit_image_before_pruning():
    check("blobs_dog", cells((150, 170)), {"max_sigma": 12, "threshold": 0.05})
    check("blobs_dog", cells((30, 45, 50), 2), {"max_sigma": 6, "sigma_ratio": 1.3, "threshold": 0.02})


@test
def blobs_doh_equals_scikit_image_before_pruning():
    check("blobs_doh", cells((150, 170)), {"max_sigma": 12, "threshold": 0.001}, different=4)
    check("blobs_doh", cells((90, 80), 1), {"min_sigma": 2.1, "max_sigma": 30.1, "num_sigma": 8, "threshold": 0.0005,
                                            "log_scale": True}, different=4)


@test
def blobs_of_every_type_equal_those_of_scikit_image():
    image = cells((80, 90), 3)
    arguments = {"min_sigma": 2, "max_sigma": 9, "num_sigma": 6, "threshold": 0.05}
    for dtype, factor in ((np.uint16, 257), (np.int16, 128), (np.int8, 0.5), (np.uint32, 2 ** 24), (np.int32, 2 ** 23),
                          (np.float32, 1 / 255), (np.float64, 1 / 255), (bool, 1 / 100)):
        typed = image > 100 if dtype is bool else (image.astype(float) * factor).astype(dtype)
        check("blobs_log", typed, arguments, CHUNKS[:2], different=2 if dtype is bool else 0)


@test
def a_real_image_has_the_blobs_of_scikit_image():
    import skimage.data
    coins = skimage.data.coins()
    check("blobs_log", coins, {"min_sigma": 4, "max_sigma": 30, "threshold": 0.05}, different=2)
    check("blobs_dog", coins, {"min_sigma": 4, "max_sigma": 40, "threshold": 0.05}, different=2)


@test
def pruning_follows_the_rule():
    for shape, seed in (((150, 170), 4), ((30, 45, 50), 5)):
        image, n = cells(shape, seed), len(shape)
        sigmas = np.linspace(1, 10, 10)
        cube = np.stack([-ndimage.gaussian_laplace(image / 255, s) * s * s for s in sigmas], -1)
        every = table("blobs_log(a, max_sigma = 10, threshold = 0.03, overlap = 1)", a=image)
        responses = [cube[(*map(int, b[:n]), int(np.argmin(abs(sigmas - b[n]))))] for b in every]
        for overlap in (0, 0.3, 0.5, 0.9):
            ours = as_set(table(f"blobs_log(a, max_sigma = 10, threshold = 0.03, overlap = {overlap})", a=image))
            rule = as_set(pruned(every, responses, overlap, n))
            if ours != rule:
                raise Difference(f"{shape} overlap {overlap}: {len(ours)} blobs, the rule leaves {len(rule)}")


@test
def pruned_blobs_are_nearly_those_of_scikit_image():
    image = cells((200, 220), 6)
    peer = as_set(skimage.feature.blob_log(image, max_sigma=12, threshold=0.05))
    ours = as_set(table("blobs_log(a, max_sigma = 12, threshold = 0.05)", a=image))
    if len(ours & peer) < 0.9 * len(peer):
        raise Difference(f"{len(ours)} blobs, the peer has {len(peer)}, {len(ours & peer)} in common")


@test
def strongest_blobs_come_first_and_borders_can_be_left_out():
    image = cells((100, 110), 7)
    blobs = table("blobs_log(a, min_sigma = 3, max_sigma = 3, num_sigma = 1, threshold = 0.02, overlap = 1)", a=image)
    response = -ndimage.gaussian_laplace(image / 255, 3) * 9
    values = response[blobs[:, 0].astype(int), blobs[:, 1].astype(int)]
    if np.any(np.diff(values) > 1e-6):
        raise Difference("weaker blobs come before stronger ones")
    inner = as_set(table("blobs_log(a, max_sigma = 6, threshold = 0.05, overlap = 1, exclude_border = 9)", a=image))
    peer = as_set(skimage.feature.blob_log(image, max_sigma=6, threshold=0.05, overlap=1, exclude_border=9))
    if inner != peer:
        raise Difference(f"{len(inner)} blobs off the border, the peer has {len(peer)}")


@test
def sigmas_may_differ_between_axes():
    image = cells((20, 60, 70), 8)
    peer = skimage.feature.blob_log(image, min_sigma=[1, 2, 2], max_sigma=[3, 6, 6], num_sigma=4, threshold=0.03, overlap=1)
    for chunk in CHUNKS[:2]:
        ours = table("blobs_log(a, min_sigma = [1, 2, 2], max_sigma = [3, 6, 6], num_sigma = 4, threshold = 0.03, overlap = 1)",
                     *chunk, a=image)
        if as_set(ours) != as_set(peer):
            raise Difference(f"{len(ours)} blobs, the peer has {len(peer)}")


@test
def channels_are_searched_one_by_one():
    image = np.stack([cells((60, 70), 9), cells((60, 70), 10)])
    ours = run("blobs_log(a, max_sigma = 6, threshold = 0.05)", table=True, a=image[:, None, None])
    if list(ours)[:2] != ["t", "c"]:
        raise Difference(f"columns {list(ours)}")
    for t in (0, 1):
        alone = run("blobs_log(a, max_sigma = 6, threshold = 0.05)", table=True, a=image[t])
        of_t = {name: ours[name][ours["t"] == t] for name in ("y", "x", "sigma")}
        if any(not np.array_equal(alone[name], of_t[name]) for name in of_t):
            raise Difference(f"channel {t} has other blobs than the image alone")


@test
def images_without_blobs_give_an_empty_table():
    nothing = np.zeros((20, 30), np.uint8)
    unknown = np.full((20, 30), np.nan, np.float32)
    small = np.ones((1, 1), np.uint8), np.ones((2, 3, 1), np.float64), np.zeros(5, np.int16)
    for image in (nothing, nothing + 7, unknown, *small):
        for text in ("blobs_log(a)", "blobs_dog(a)", "blobs_doh(a)")[:3 if image.ndim == 2 else 2]:
            if len(run(text, table=True, a=image)["sigma"]):
                raise Difference(f"{text} finds something in {image.dtype} {image.shape}")


@test
def wrong_parameters_are_told():
    image = cells((20, 20))
    for text, words in (("blobs_log(a, min_sigma = 0)", "min_sigma"), ("blobs_log(a, min_sigma = [1, 2, 3])", "min_sigma"),
                        ("blobs_log(a, min_sigma = 5, max_sigma = 3)", "max_sigma = 3"),
                        ("blobs_log(a, num_sigma = 0)", "num_sigma"), ("blobs_log(a, overlap = 2)", "overlap"),
                        ("blobs_dog(a, sigma_ratio = 1)", "sigma_ratio"), ("blobs_dog(a, sigma_ratio = 1.0001)", "at most 256"),
                        ("blobs_doh(v)", "two are needed")):
        try:
            run(text, a=image, v=np.zeros((3, 4, 5), np.uint8))
        except Difference as told:
            if words not in str(told):
                raise Difference(f"{text} says {told}")
        else:
            raise Difference(f"{text} is accepted")


test.main()
