#!/usr/bin/python3
"""label against scipy.ndimage.label, bit for bit, through the command, on several lattices and engines."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
except ImportError as missing:
    print(f"skip label: {missing}")
    sys.exit(0)

from pipelines import run, same, test

CHUNKS = ((), ("--chunk", "13"), ("--chunk", "7x64x31"), ("--chunk", "40", "--engine", "processes", "--workers", "2"))


def check(mask, chunks=CHUNKS):
    for connectivity in range(1, mask.ndim + 1):
        peer, _ = ndimage.label(mask, ndimage.generate_binary_structure(mask.ndim, connectivity))
        for chunk in chunks:
            same(run(f"label(a, connectivity = {connectivity})", *chunk, a=mask), peer.astype(np.int32),
                 f"connectivity {connectivity}, chunk {chunk}:")


@test
def noise_of_every_density_equals_scipy():
    random = np.random.default_rng(1)
    for density in (0.02, 0.1, 0.25, 0.5, 0.8):
        check(random.random((34, 45, 70)) < density, CHUNKS[:3] if density != 0.25 else CHUNKS)


@test
def planes_and_blobs_equal_scipy():
    noise = ndimage.gaussian_filter(np.random.default_rng(3).random((200, 310)), 2)
    planes = tuple(chunk for chunk in CHUNKS if "7x64x31" not in chunk)
    check(noise > np.quantile(noise, 0.6), planes)
    noise = ndimage.gaussian_filter(np.random.default_rng(4).random((60, 80, 100)), 2)
    check(noise > np.quantile(noise, 0.55))


@test
def integers_are_foreground_where_not_zero():
    values = np.random.default_rng(5).integers(-2, 3, (40, 50)).astype(np.int16)
    peer, _ = ndimage.label(values != 0)
    same(run("label(a)", a=values), peer.astype(np.int32))


@test
def a_slice_of_the_labels_is_a_slice_of_scipys():
    mask = np.random.default_rng(6).random((40, 50, 60)) < 0.3
    peer, _ = ndimage.label(mask, np.ones((3, 3, 3)))
    ours = run("label(a, connectivity = 3)[17:23, 5:50, 11:12]", "--chunk", "16", a=mask)
    same(ours, peer[17:23, 5:50, 11:12].astype(np.int32))


@test
def times_are_labelled_apart():
    mask = np.random.default_rng(7).random((5, 12, 20, 22)) < 0.3
    structure = np.zeros((3, 3, 3, 3), bool)
    structure[1] = ndimage.generate_binary_structure(3, 2)
    peer, _ = ndimage.label(mask, structure)
    same(run("label(a, connectivity = 2)", a=mask), peer.astype(np.int32))
    same(run("label(a, connectivity = 2)", "--chunk", "2x7x9x11", a=mask), peer.astype(np.int32))


test.main()
