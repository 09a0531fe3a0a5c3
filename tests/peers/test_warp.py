#!/usr/bin/python3
"""warp, polar and log_polar against scipy.ndimage.map_coordinates and skimage.transform.warp_polar."""
import sys

try:
    import numpy as np
    import scipy.ndimage as ndimage
    import skimage.data
    import skimage.transform
except ImportError as missing:
    print(f"skip warp: {missing}")
    sys.exit(0)

from pipelines import Difference, as_dtypes, near, refused, run, run_all, same, test, tolerance

MODES = "reflect mirror nearest wrap constant grid-wrap grid-mirror grid-constant".split()
TYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64"
RANDOM = np.random.default_rng(4)
PLANE = ndimage.gaussian_filter(RANDOM.random((41, 53)), 1) * 100
VOLUME = ndimage.gaussian_filter(RANDOM.random((17, 23, 31)), 1) * 100
CHUNK = ("--chunk", "13")


def field_of(shape, size):
    return np.stack([ndimage.gaussian_filter(RANDOM.normal(size=shape), 2) * size for _ in shape])


def moved(image, field, **named):
    return ndimage.map_coordinates(image, np.indices(field.shape[1:]) + field, **named)


@test
def warp_equals_scipy_in_every_order_and_mode():
    for image, names in ((PLANE, "c y x"), (VOLUME, "c z y x"), (VOLUME.astype(np.float32), "c z y x")):
        field = field_of(image.shape, 60)
        jobs = [(order, mode) for order in (0, 1, 3) for mode in MODES]
        texts = [f'warp(a, name_axes(f, "{names}"), order = {order}, mode = "{mode}", cval = 7)' for order, mode in jobs]
        for (order, mode), text, ours in zip(jobs, texts, run_all(texts, *CHUNK, a=image, f=field)):
            theirs = moved(image if order == 0 else image.astype(float), field, order=order, mode=mode, cval=7)
            if order == 0:
                same(ours, theirs, text)
            else:
                near(ours, theirs, text, max(tolerance(image), 1e-7 * (mode == "nearest")), image)


@test
def warp_takes_every_type_and_keeps_its_limit():
    field = field_of(VOLUME.shape, 20).astype(np.float32)
    most = float(np.abs(field).max())
    for image in as_dtypes(VOLUME, TYPES):
        theirs = moved(image.astype(float), field.astype(float), order=1, mode="mirror")
        near(run(f'warp(a, name_axes(f, "c z y x"), {most + 1}, mode = "mirror")', *CHUNK, a=image, f=field), theirs,
             str(image.dtype), tolerance(image), image)
    last = np.ascontiguousarray(np.moveaxis(field, 0, -1))
    near(run('warp(a, name_axes(f, "z y x c"), order = 1)', *CHUNK, a=VOLUME, f=last),
         moved(VOLUME, field.astype(float), order=1))
    try:
        run(f'warp(a, name_axes(f, "c z y x"), {most / 2})', a=VOLUME, f=field)
    except Difference as error:
        assert "exceeds limit" in str(error), error
    else:
        raise AssertionError("a displacement beyond limit is accepted")


@test
def large_images_need_no_limit():
    """More than 64 MiB are not read whole: near displacements, far ones, and ones that are not numbers, in little memory."""
    image = RANDOM.integers(0, 255, (70, 1000, 1000)).astype(np.uint8)
    for most, order, mode in ((20, 1, "constant"), (900, 1, "nearest"), (900, 0, "constant")):
        field = RANDOM.uniform(-most, most, (3, 2, 60, 70))
        field[0] /= 10
        if order:
            field[1, 1, 5, 6] = np.nan
        at = np.indices(field.shape[1:]) + field
        theirs = ndimage.map_coordinates(image, at, order=order, mode=mode, cval=7, output=np.float64 if order else np.uint8)
        ours = run(f'warp(a, name_axes(f, "c z y x"), order = {order}, mode = "{mode}", cval = 7)', "--memory", "160M", a=image,
                   f=field)
        known = ~np.isnan(field).any(axis=0)
        near(ours[known], theirs[known], f"{most} {order} {mode}", 1e-4)
        assert np.all(ours[~known] == 7)


@test
def parts_of_an_image_are_the_whole():
    """warp_part after warp_part is warp, for displacements that lead far away too."""
    field = field_of(PLANE.shape, 60)
    named = 'name_axes(f, "c y x")'
    field[0, 5, 6:9] = np.inf, -np.inf, np.nan
    for order in (0, 1, 3):
        for mode in ("nearest", "constant", "grid-constant"):
            how = f'order = {order}, mode = "{mode}", cval = 7, prefilter = false'
            first = f"warp_part(a, {named}, until = 20, {how})"
            texts = [f"warp(a, {named}, {how})", f"warp_part(a, {named}, {first}, from = 20, {how})"]
            whole, ours = run_all(texts, *CHUNK, a=PLANE, f=field)
            same(ours, whole, f"{order} {mode}")
            assert (ours[5, 6] == 7) == (mode != "nearest") and ours[5, 8] == 7


@test
def warp_gives_the_constant_where_a_displacement_is_nan():
    field = np.zeros((2, 41, 53))
    field[1, 5, 6] = np.nan
    ours = run('warp(a, name_axes(f, "c y x"), order = 1, cval = -4)', a=PLANE, f=field)
    assert ours[5, 6] == -4 and np.count_nonzero(ours != PLANE) == 1


@test
def polar_and_log_polar_equal_skimage():
    camera = skimage.data.camera()[100:260, 120:330].astype(float)
    for image in (camera, camera.astype(np.float32), PLANE):
        for name, scaling in (("polar", "linear"), ("log_polar", "log")):
            for text, named in (("", {}), (", radius = 60", {"radius": 60}),
                                (", center = [30, 41.5], radius = 33.3, output_shape = [100, 77]",
                                 {"center": (30, 41.5), "radius": 33.3, "output_shape": (100, 77)})):
                theirs = skimage.transform.warp_polar(image.astype(float), scaling=scaling, **named)
                # a place on the border itself may be rounded to either side
                ours = run(f"{name}(a{text})", *CHUNK, a=image)
                off = np.abs(ours - theirs) > 1e-9 * 255 if image.dtype == float else np.abs(ours - theirs) > 2e-5 * 255
                assert off.sum() <= 2, f"{name}{text}: {off.sum()} of {off.size}, up to {np.abs(ours - theirs).max()}"
    planes = run("polar(a, radius = 10)", *CHUNK, a=VOLUME)
    theirs = np.stack([skimage.transform.warp_polar(plane, radius=10) for plane in VOLUME])
    near(planes, theirs, "planes of a volume", 1e-10, VOLUME)


@test
def mistakes_are_named_before_anything_runs():
    refused("warp(a, a)", "field has 2 axes", a=PLANE)
    refused("warp(a, f)", "components", a=PLANE, f=np.zeros((3, 41, 53)))
    refused('warp(a, name_axes(f, "c z x"))', "field has no axis y", a=PLANE, f=np.zeros((2, 41, 53)))
    refused("log_polar(a, radius = 1)", "larger than 1", a=PLANE)
    refused("polar(a, center = 3)", "center has 1 number", a=PLANE)
    refused("polar(a, output_shape = [10, 2.5])", "whole number", a=PLANE)


test.main()
