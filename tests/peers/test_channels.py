#!/usr/bin/python3
"""Channels, colours and overlays against numpy and scikit-image."""
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import skimage.color
    import skimage.data
    import skimage.segmentation
except ImportError as missing:
    print(f"skip channels: {missing}")
    sys.exit(0)

from pipelines import FOVEA, Difference, near, refused, run, same, test

warnings.simplefilter("ignore")
RNG = np.random.default_rng(11)
DTYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64 complex64".split()


def noise(dtype, shape=(7, 9, 11)):
    return (RNG.random(shape) * 100).astype(dtype)


@test
def stack_and_concatenate_equal_numpy_for_every_type():
    for dtype in DTYPES:
        a, b, c = (noise(dtype) for _ in range(3))
        for position in (0, 1, 3, -1, -3):
            same(run(f'stack(a, b, c, axis = "t", position = {position})', "--chunk", "4", a=a, b=b, c=c),
                 np.stack([a, b, c], axis=position), f"{dtype} {position}")
        for axis, name in enumerate("zyx"):
            part = np.take(b, range(2), axis=axis)
            same(run(f'concatenate(a, b, c, axis = "{name}")', "--chunk", "5", a=a, b=part, c=c),
                 np.concatenate([a, part, c], axis=axis), f"{dtype} {name}")


@test
def a_single_image_and_single_voxels_can_be_joined():
    one = np.array([[5]], np.uint8)
    same(run('stack(a, axis = "z")', a=one), one[None])
    same(run('concatenate(a, b, axis = "x")', a=one, b=one + 1), np.array([[5, 6]], np.uint8))
    same(run("merge_channels(a, b)", a=one, b=one), np.full((2, 1, 1), 5, np.uint8))


@test
def split_equals_numpy():
    a = noise("int16")
    for parts in (1, 2, 3, 4, 9):
        for index, peer in enumerate(np.array_split(a, parts, axis=1)):
            same(run(f'split(a, {index}, axis = "y", parts = {parts})', a=a), peer, f"{index} of {parts}")
    same(run('split(a, -2, axis = "x")', a=a), a[:, :, -2])


@test
def luminance_equals_scikit_image():
    picture = skimage.data.astronaut()[::3, ::4]
    for image in (picture, picture / 255, (picture / 255).astype("float32"), picture.astype("uint16") * 257):
        top = {"u": np.iinfo(image.dtype).max if image.dtype.kind == "u" else 1}.get(image.dtype.kind, 1)
        near(run('luminance(name_axes(a, "y x c"))', "--chunk", "50", a=image) / top, skimage.color.rgb2gray(image),
             f"{image.dtype}", 1e-6)
        alpha = (RNG.random(image.shape[:2]) * top).astype(image.dtype)
        rgba = np.dstack([image, alpha])
        near(run('luminance(name_axes(a, "y x c"))', a=rgba) / top, skimage.color.rgb2gray(skimage.color.rgba2rgb(rgba)),
             f"{image.dtype} RGBA", 1e-6)
    grey = skimage.data.camera()[::5, ::5]
    same(run("luminance(a)", a=grey), grey)
    near(run('luminance(name_axes(a, "c y x"))', a=np.moveaxis(picture, 2, 0)) / 255, skimage.color.rgb2gray(picture), "c first",
         1e-6)


def added(channels, colors, ranges):
    """What composite promises, in numpy."""
    light = sum(np.clip((channel.astype(float) - low) / (high - low), 0, 1)[..., None] * np.array(color, float)
                for channel, color, (low, high) in zip(channels, colors, ranges))
    return np.floor(np.minimum(light, 255) + 0.5).astype(np.uint8)


@test
def a_composite_adds_coloured_light():
    green, red = noise("uint16", (40, 50)) * 30, noise("uint16", (40, 50))
    ranges = [(green.min(), green.max()), (red.min(), red.max())]
    ours = run('composite(merge_channels(a, b), colors = "green #ff0080")', "--chunk", "16", a=green, b=red)
    peer = added([green, red], [(0, 255, 0), (255, 0, 128)], ranges)
    assert ours.dtype == np.uint8 and np.abs(ours.astype(int) - peer).max() <= 1, "by the range of each channel"
    ours = run('composite(merge_channels(a, b), colors = "cyan white", ranges = [100, 2000, 10, 90])', a=green, b=red)
    peer = added([green, red], [(0, 255, 255), (255, 255, 255)], [(100, 2000), (10, 90)])
    assert np.abs(ours.astype(int) - peer).max() <= 1, "by given ranges"
    flat = np.full((4, 5), 7, np.uint8)
    assert not run("composite(merge_channels(a, b))", a=flat, b=flat).any(), "channels of one value are black"


@test
def overlays_equal_scikit_image():
    coins = skimage.data.coins()
    labels = skimage.measure.label(coins > 110)[::2, ::2]
    labels = skimage.segmentation.relabel_sequential(labels)[0].astype(np.int32)
    coins = coins[::2, ::2]
    colour = np.dstack([coins, 255 - coins, coins // 2])
    peer = skimage.color.label2rgb(labels, coins, bg_label=0, bg_color=None)
    ours = run("overlay(a, b)", "--chunk", "64", a=coins, b=labels)
    assert ours.dtype == np.uint8 and np.abs(ours - peer * 255).max() < 0.51, np.abs(ours - peer * 255).max()
    for image, name in ((coins, "a"), (colour, 'name_axes(a, "y x c")')):
        peer = skimage.segmentation.mark_boundaries(image, labels)
        ours = run(f'overlay({name}, b, mode = "outline")', "--chunk", "64", a=image, b=labels)
        assert np.abs(ours - peer * 255).max() < 0.51, "outlines"
    peer = skimage.color.label2rgb(labels, coins / 255, colors=["red", "blue"], alpha=0.7, bg_label=0, bg_color=None)
    ours = run('overlay(a, b, 0, 1, alpha = 0.7, colors = "red blue")', a=(coins / 255).astype("float32"), b=labels)
    assert np.abs(ours - peer * 255).max() < 0.51, "two colours"
    masked = run("overlay(a, b, low = 0, high = 300)", a=coins.astype("int32"), b=labels > 0)
    assert (masked[labels == 0] == np.floor(coins[labels == 0] * 0.85 + 0.5)[:, None]).all(), "a mask, and a range"
    stretched = run("overlay(a, b)", "--chunk", "64", a=coins.astype("uint16") * 16, b=np.zeros_like(labels))
    low, high = int(coins.min()), int(coins.max())
    assert np.abs(stretched[..., 0] - (coins - low) / (high - low) * 255).max() < 0.51, "12 bits of 16 are seen"
    above = run("overlay(a, b, low = 1600)", a=coins.astype("uint16") * 16, b=np.zeros_like(labels))
    assert above.min() == 0 and above.max() == 255, "only the lower end is given"
    assert run("overlay(a, b)", a=np.full((4, 5), 7, "float32"), b=labels[:4, :5]).shape == (4, 5, 3), "an image of one value"


@test
def two_files_become_one_picture():
    with tempfile.TemporaryDirectory() as folder:
        text = """phantom("cells", [60, 80], seed = 1) |> write("dapi.tif")
phantom("cells", [60, 80], seed = 2) |> write("gfp.tif")"""
        subprocess.run([FOVEA, "run", "--quiet", "-e", text], cwd=folder, check=True)
        text = """both = merge_channels(read("dapi.tif"), read("gfp.tif"))
write(both, "both.zarr")
write(composite(both, colors = "blue green"), "direct.png")"""
        subprocess.run([FOVEA, "run", "--quiet", "-e", text], cwd=folder, check=True)
        text = """write(composite(read("both.zarr"), colors = "blue green"), "again.png")"""
        subprocess.run([FOVEA, "run", "--quiet", "-e", text], cwd=folder, check=True)
        assert pathlib.Path(folder, "again.png").read_bytes() == pathlib.Path(folder, "direct.png").read_bytes()


@test
def mistakes_are_named():
    a, b = np.zeros((4, 5), np.uint8), np.zeros((4, 6), np.uint8)
    refused('composite(stack(a, a, axis = "c"), colors = ["red", "green"])', "several words are one text", a=a)
    refused('stack(a, b, axis = "z")', "second has the axes", a=a, b=b)
    refused('stack(a, b, axis = "z")', "second is uint16 and first is uint8", a=a, b=a.astype("uint16"))
    refused('stack(a, b, axis = "x")', "the images have it already", a=a, b=a)
    refused('stack(a, b, axis = "z", position = 4)', "position = 4", a=a, b=a)
    refused('concatenate(a, b, axis = "z")', "the first image has the axes y x", a=a, b=b)
    refused('concatenate(a, b, axis = "y")', "apart from the length of y", a=a, b=b)
    refused("split(a, 0)", "the image has the axes y x", a=a)
    refused('split(a, 9, axis = "y")', "index = 9", a=a)
    refused('composite(merge_channels(a, b), colors = "green")', "1 for 2 channels", a=a, b=a)
    refused('composite(merge_channels(a, b), colors = "green pinkish")', "pinkish", a=a, b=a)
    refused("composite(a)", "no axis c", a=a)
    refused("composite(merge_channels(a, b), ranges = [1, 2])", "2 channels need 4", a=a, b=a)
    refused("composite(merge_channels(a, b), ranges = [1, 2, 5, 5])", "low must be below high", a=a, b=a)
    refused("overlay(a, b)", "different shapes", a=a, b=b)
    refused("overlay(a, b / 2)", "labels is float32", a=a, b=a)
    refused('luminance(name_axes(a, "y c"))', "5 channels", a=a)


test.main()
