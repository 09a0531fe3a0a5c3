#!/usr/bin/python3
"""Stitching: tiles of a phantom come back to where they were cut, and shifts are those of scikit-image."""
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402


def modules():
    try:
        import numpy
        import scipy.ndimage
        import tifffile
        return numpy, scipy.ndimage, tifffile
    except ImportError:
        raise Skip("no scipy and tifffile here") from None


def phantom(np, folder, shape):
    run("run", "-q", "--overwrite", "-e", f'phantom("cells", {shape}, seed = 4) |> convert("float32") |> write("big.npy")',
        folder=folder)
    return np.load(pathlib.Path(folder, "big.npy"))


def cut(np, ndimage, big, y, x, edge):
    """A tile whose first pixel lies at fractions of pixels."""
    top, left = int(y) - 8, int(x) - 8
    part = big[top:top + edge + 17, left:left + edge + 17]
    return ndimage.shift(part, [-(y - int(y)), -(x - int(x))], order=3)[8:8 + edge, 8:8 + edge]


def grid(folder, rows=5, columns=5, edge=200, overlap=0.2, error=5.0, noise=4.0, seed=3, dtype="uint16", name="tile_{:03d}.tif",
         order=lambda r, c, columns: r * columns + c):
    """Tiles with a stage error, and where they really were."""
    np, ndimage, tifffile = modules()
    step, rng = edge * (1 - overlap), np.random.default_rng(seed)
    big = phantom(np, folder, [int(rows * step + edge + 60), int(columns * step + edge + 60)])
    truth = np.zeros((rows * columns, 2))
    for r in range(rows):
        for c in range(columns):
            y, x = np.array([r, c]) * step + 20 + rng.uniform(-error, error, 2)
            tile = cut(np, ndimage, big, y, x, edge) * 50 + 500
            tile += rng.normal(0, noise * 50, tile.shape)
            number = order(r, c, columns)
            truth[number] = y, x
            path = pathlib.Path(folder, name.format(number))
            path.parent.mkdir(exist_ok=True)
            tifffile.imwrite(path, np.clip(tile, 0, 60000).astype(dtype))
    return truth


def positions(np, folder, call):
    run("run", "-q", "--overwrite", "-e", f'{call} |> write("places.csv")', folder=folder)
    with open(pathlib.Path(folder, "places.csv")) as file:
        return np.array([[float(row["y"]), float(row["x"])] for row in csv.DictReader(file)])


def rms(np, found, truth):
    off = found - truth
    return np.sqrt(((off - off.mean(0)) ** 2).sum(1).mean())


@test
def a_grid_with_stage_errors_comes_back(folder):
    np, _, _ = modules()
    truth = grid(folder)
    found = positions(np, folder, 'stitch_positions("tile_*.tif", grid = [5, 5], overlap = 0.2)')
    assert rms(np, found, truth) < 0.1, rms(np, found, truth)
    nominal = positions(np, folder, 'stitch_positions("tile_*.tif", grid = [5, 5], overlap = 0.2, refine = false)')
    assert rms(np, nominal, truth) > 2 and np.allclose(nominal[7], [160, 320]), nominal[7]


@test
def shifts_are_those_of_scikit_image(folder):
    np, ndimage, tifffile = modules()
    try:
        from skimage.registration import phase_cross_correlation
    except ImportError:
        raise Skip("no scikit-image here") from None
    big, rng = phantom(np, folder, [400, 700]), np.random.default_rng(2)
    for trial in range(6):
        off = rng.uniform(-6, 6, 2)
        tiles = [cut(np, ndimage, big, 20, 20, 300), cut(np, ndimage, big, 20 + off[0], 170 + off[1], 300)]
        tiles = [t + rng.normal(0, 3, t.shape) for t in tiles]
        for number, tile in enumerate(tiles):
            tifffile.imwrite(pathlib.Path(folder, f"s{number}.tif"), tile.astype("float32"))
        call = 'tile_shifts("s?.tif", grid = [1, 2], overlap = 0.5) |> write("s.npy")'
        run("run", "-q", "--overwrite", "-e", call, folder=folder)
        (y, x, agreement), = np.load(pathlib.Path(folder, "s.npy"))
        peer = phase_cross_correlation(tiles[0][:, 150:], tiles[1][:, :150], upsample_factor=50)[0]
        ours = np.array([y, x])
        assert agreement > 0.8 and np.abs(ours - off).max() < 0.1, (off, ours, agreement)
        assert np.abs(ours - off).max() < max(np.abs(peer - off).max(), 0.05), (off, ours, peer)


@test
def large_overlaps_are_compared_coarsely_first_and_then_exactly(folder):
    np, ndimage, tifffile = modules()
    rng = np.random.default_rng(5)
    big = ndimage.gaussian_filter(rng.normal(0, 1, (760, 1100)), 1.2) * 2000 + 3000  # details of few pixels
    for off in ([-31.4, 44.25], [23.0, -60.7], [0.5, 0.5]):
        tiles = [cut(np, ndimage, big, 40, 40, 600), cut(np, ndimage, big, 40 + off[0], 340 + off[1], 600)]
        for number, tile in enumerate(tiles):
            noisy = (tile + rng.normal(0, 200, tile.shape)).clip(0, 65535).astype("uint16")
            tifffile.imwrite(pathlib.Path(folder, f"s{number}.tif"), noisy)
        call = 'tile_shifts("s?.tif", grid = [1, 2], overlap = 0.5) |> write("s.npy")'
        run("run", "-q", "--overwrite", "-e", call, folder=folder)
        (y, x, agreement), = np.load(pathlib.Path(folder, "s.npy"))
        assert agreement > 0.5 and np.abs(np.array([y, x]) - off).max() < 0.1, (off, y, x, agreement)


@test
def orders_of_the_files_are_followed(folder):
    np, _, _ = modules()
    for word, order in (("snake", lambda r, c, n: r * n + (c if r % 2 == 0 else n - 1 - c)),
                        ("columns", lambda r, c, n: c * 3 + r),
                        ("snake_columns", lambda r, c, n: c * 3 + (r if c % 2 == 0 else 2 - r))):
        truth = grid(folder, 3, 4, edge=120, error=3, name=word + "/t{}.tif", order=order)
        found = positions(np, folder, f'stitch_positions("{word}/t*.tif", grid = [3, 4], order = "{word}", overlap = 0.2)')
        assert rms(np, found, truth) < 0.2, (word, rms(np, found, truth))


@test
def the_image_is_that_which_was_cut_for_every_chunk_and_engine(folder):
    np, _, tifffile = modules()
    big = phantom(np, folder, [420, 540]).astype("uint8")
    for number, (y, x) in enumerate(((0, 0), (3, 158), (2, 321), (163, 4), (160, 160), (158, 317))):
        tifffile.imwrite(pathlib.Path(folder, f"t{number}.tif"), big[10 + y:210 + y, 10 + x:200 + x])
    call = 'stitch("t*.tif", grid = [2, 3], overlap = [0.2, 0.16], margin = 5)'
    run("run", "-q", "-e", f'{call} |> write("whole.npy")', folder=folder)
    whole = np.load(pathlib.Path(folder, "whole.npy"))
    places = positions(np, folder, call.replace("stitch(", "stitch_positions(").replace(", margin = 5", ""))
    y, x = np.round(places[0]).astype(int) + 5
    inside = big[10:10 + 330, 10:10 + 470]
    assert np.array_equal(whole[y + 5:y + 330, x + 5:x + 470], inside[5:330, 5:470]), "the image is not what was cut"
    for more in (("--chunk", "50x70"), ("--workers", "1"), ("--engine", "processes"), ("--memory", "64M", "--chunk", "33x400")):
        run("run", "-q", "--fresh", "--overwrite", *more, "-e", f'{call} |> write("again.npy")', folder=folder)
        assert np.array_equal(np.load(pathlib.Path(folder, "again.npy")), whole), more
    run("run", "-q", "-e", f'{call} |> write("whole.zarr", levels = 3)', folder=folder)
    run("run", "-q", "-e", 'read("whole.zarr") |> write("of_zarr.npy")', folder=folder)
    assert np.array_equal(np.load(pathlib.Path(folder, "of_zarr.npy")), whole)


@test
def the_plan_tells_how_much_is_read(folder):
    np, _, tifffile = modules()
    for number in range(4):
        tifffile.imwrite(pathlib.Path(folder, f"t{number}.tif"), np.zeros((100, 120), "uint16"))
    call = 'stitch("t?.tif", grid = [2, 2], overlap = 0.25 MORE) |> write("x.npy")'
    plain = json.loads(run("plan", "--json", "-e", call.replace("MORE", ", refine = false"), folder=folder).stdout)
    tiles = 4 * 100 * 120 * 2
    assert plain["bytes_read"] == tiles, plain["bytes_read"]
    both = json.loads(run("plan", "--json", "-e", call.replace("MORE", ""), folder=folder).stdout)
    shared = 2 * 2 * (2 * 100 * 30 + 2 * 25 * 120)
    assert both["bytes_read"] == tiles + shared, both["bytes_read"]
    done = json.loads(run("run", "--json", "-q", "-e", call.replace("MORE", ""), folder=folder).stdout)
    assert done["bytes_read"] == both["bytes_read"], done["bytes_read"]


@test
def tiles_change_steadily_into_each_other_and_none_takes_whole_ones(folder):
    np, _, tifffile = modules()
    for number, value in enumerate((100, 200)):
        tifffile.imwrite(pathlib.Path(folder, f"t{number}.tif"), np.full((40, 60), value, "uint8"))
    call = 'stitch("t*.tif", grid = [1, 2], overlap = 0.5, refine = falseBLEND) |> write("a.npy")'
    run("run", "-q", "-e", call.replace("BLEND", ""), folder=folder)
    row = np.load(pathlib.Path(folder, "a.npy"))[20].astype(int)
    assert row.shape == (90,) and (row[:30] == 100).all() and (row[60:] == 200).all() and (np.diff(row) >= 0).all(), row
    assert np.abs(row[30:60] - np.interp(np.arange(30), [0, 29], [101.6, 198.4])).max() < 1, row
    run("run", "-q", "--overwrite", "-e", call.replace("BLEND", ', blend = "none"'), folder=folder)
    row = np.load(pathlib.Path(folder, "a.npy"))[20].astype(int)
    assert set(row) == {100, 200} and (np.diff(row) != 0).sum() == 1, row


@test
def wrong_pairs_and_empty_tiles_do_not_spoil_the_others(folder):
    np, _, tifffile = modules()
    truth = grid(folder)
    rng = np.random.default_rng(5)
    for number in (6, 18):  # one without anything to see, one with something else
        tile = np.full((200, 200), 500.0) if number == 6 else rng.normal(2000, 500, (200, 200))
        tifffile.imwrite(pathlib.Path(folder, f"tile_{number:03d}.tif"), tile.astype("uint16"))
    found = positions(np, folder, 'stitch_positions("tile_*.tif", grid = [5, 5], overlap = 0.2)')
    others = [i for i in range(25) if i not in (6, 18)]
    assert rms(np, found[others], truth[others]) < 0.15, rms(np, found[others], truth[others])
    assert np.abs(found[6] - [160, 160]).max() < 8, found[6]


@test
def tables_and_stages_say_where_tiles_lie(folder):
    np, ndimage, tifffile = modules()
    rng = np.random.default_rng(6)
    big = phantom(np, folder, [400, 400])
    stage = np.array([[10.0, 10], [12, 130], [133, 8], [130, 131]])
    truth = stage + rng.uniform(-3, 3, stage.shape)
    pathlib.Path(folder, "ome").mkdir()
    lines = ["file,x,y"]
    for number, ((y, x), (sy, sx)) in enumerate(zip(truth, stage)):
        tile = (cut(np, ndimage, big, y, x, 160) * 50 + 500).clip(0).astype("uint16")
        tifffile.imwrite(pathlib.Path(folder, f"t{number}.tif"), tile)
        lines.insert(1, f"t{number}.tif,{sx * 0.5},{sy * 0.5}")
        text = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
                '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint16" SizeX="160" SizeY="160" '
                'SizeZ="1" SizeC="1" SizeT="1" PhysicalSizeX="0.5" PhysicalSizeY="0.5">'
                '<Channel ID="Channel:0:0" SamplesPerPixel="1"/><TiffData/>'
                f'<Plane TheZ="0" TheT="0" TheC="0" PositionX="{sx * 0.5 / 1000}" PositionXUnit="mm" PositionY="{-sy * 0.5}" '
                'PositionYUnit="&#181;m"/></Pixels></Image></OME>').replace("&#181;", "u")
        tifffile.imwrite(pathlib.Path(folder, "ome", f"t{number}.ome.tif"), tile, description=text, metadata=None)
    pathlib.Path(folder, "stage.csv").write_text("\n".join(lines) + "\n")
    found = positions(np, folder, 'stitch_positions("t*.tif", positions = "stage.csv", pixel_size = 0.5)')
    assert rms(np, found, truth) < 0.1, rms(np, found, truth)
    of_files = positions(np, folder, 'stitch_positions("ome/*.tif", flip = "y")')
    assert rms(np, of_files, truth) < 0.1, (of_files, truth)


def cut_volume(np, ndimage, big, at, shape):
    """A tile whose first voxel lies at fractions of voxels."""
    whole = np.floor(at).astype(int) - 6
    part = big[tuple(slice(w, w + n + 13) for w, n in zip(whole, shape))]
    return ndimage.shift(part, whole + 6 - at, order=3)[tuple(slice(6, 6 + n) for n in shape)]


def volumes(folder, layers, shape=(40, 70, 80), overlap=0.3, error=3.0, seed=4):
    """Volumes with stage errors along all axes: where they really were, and where they should be."""
    np, ndimage, tifffile = modules()
    step, rng = np.array(shape) * (1 - overlap), np.random.default_rng(seed)
    run("run", "-q", "--overwrite", "-e", 'gaussian(phantom("cells", [100, 200, 220], seed = 4), 1) |> convert("float32") |> '
        'write("big.npy")', folder=folder)
    big = np.load(pathlib.Path(folder, "big.npy"))
    should = np.array([[k, r, c] for k in range(layers) for r in range(2) for c in range(2)]) * step
    truth = should + 12 + rng.uniform(-error, error, should.shape)
    for number, at in enumerate(truth):
        tile = cut_volume(np, ndimage, big, at, shape) * 50 + 500
        tile += rng.normal(0, 100, tile.shape)
        tifffile.imwrite(pathlib.Path(folder, f"v{number}.tif"), tile.clip(0, 60000).astype("uint16"), imagej=True,
                         metadata={"axes": "ZYX"})
    return truth, should


def positions_of_volumes(np, folder, call):
    run("run", "-q", "--overwrite", "-e", f'{call} |> write("places.csv")', folder=folder)
    with open(pathlib.Path(folder, "places.csv")) as file:
        return np.array([[float(row[axis]) for axis in "zyx"] for row in csv.DictReader(file)])


@test
def volumes_with_stage_errors_along_z_come_back(folder):
    np, _, tifffile = modules()
    for layers in (1, 2):
        truth, should = volumes(folder, layers)
        pattern = "v[0-3].tif" if layers == 1 else "v*.tif"
        found = positions_of_volumes(np, folder, f'stitch_positions("{pattern}", grid = [{layers}, 2, 2], overlap = 0.3)')
        assert rms(np, found, truth) < 0.1, (layers, rms(np, found, truth))
        assert rms(np, should, truth) > 2
    lines = ["file,x,y,z"] + [f"v{i}.tif,{x * 0.5},{y * 0.5},{z * 2}" for i, (z, y, x) in enumerate(should)]
    pathlib.Path(folder, "stage.csv").write_text("\n".join(lines) + "\n")
    again = positions_of_volumes(np, folder, 'stitch_positions("v*.tif", positions = "stage.csv", pixel_size = [2, 0.5, 0.5])')
    assert np.abs(again - found).max() < 1e-6, np.abs(again - found).max()
    for i, (z, y, x) in enumerate(should):  # the files themselves say it
        tile = tifffile.imread(pathlib.Path(folder, f"v{i}.tif"))
        planes = {f"Position{axis}": [float(at)] * len(tile) for axis, at in (("X", x * 0.5), ("Y", y * 0.5), ("Z", z * 2))}
        planes.update({f"Position{axis}Unit": ["\u00b5m"] * len(tile) for axis in "XYZ"})
        tifffile.imwrite(pathlib.Path(folder, f"o{i}.ome.tif"), tile, ome=True, metadata={
            "axes": "ZYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 2, "Plane": planes})
    of_files = positions_of_volumes(np, folder, 'stitch_positions("o*.ome.tif")')
    assert np.abs(of_files - found).max() < 1e-6, np.abs(of_files - found).max()


@test
def stitched_volumes_are_what_was_cut_for_every_chunk(folder):
    np, _, tifffile = modules()
    run("run", "-q", "-e", 'phantom("cells", [70, 130, 140]) |> write("big.npy")', folder=folder)
    big = np.load(pathlib.Path(folder, "big.npy"))
    for number, (z, y, x) in enumerate([(k, r, c) for k in (0, 29) for r in (0, 51) for c in (0, 62)]):
        z, y, x = z + number % 3, y + number % 2, x + 2 - number % 3
        tifffile.imwrite(pathlib.Path(folder, f"t{number}.tif"), big[z:z + 36, y:y + 70, x:x + 72], imagej=True,
                         metadata={"axes": "ZYX"})
    call = 'stitch("t*.tif", grid = [2, 2, 2], overlap = [0.19, 0.27, 0.139], margin = 3)'
    run("run", "-q", "-e", f'{call} |> write("whole.npy")', folder=folder)
    whole = np.load(pathlib.Path(folder, "whole.npy"))
    found = positions_of_volumes(np, folder, call.replace("stitch(", "stitch_positions(").replace(", margin = 3", ""))
    at = np.round(found[0]).astype(int) + 3
    inside = np.s_[at[0] + 3:at[0] + 60, at[1] + 3:at[1] + 115, at[2] + 3:at[2] + 125]
    assert np.array_equal(whole[inside], big[3:60, 3:115, 5:127]), "the volume is not what was cut"
    for more in (("--chunk", "7x50x33"), ("--workers", "1", "--chunk", "64x20x200")):
        run("run", "-q", "--fresh", "--overwrite", *more, "-e", f'{call} |> write("again.npy")', folder=folder)
        assert np.array_equal(np.load(pathlib.Path(folder, "again.npy")), whole), more


@test
def planes_and_colours_move_together(folder):
    np, _, tifffile = modules()
    big = phantom(np, folder, [200, 300]).astype("uint8")
    colours = np.stack([big, 255 - big, big // 2], -1)
    stack = np.stack([big, 200 - big // 2])
    for number, x in enumerate((10, 112)):
        tifffile.imwrite(pathlib.Path(folder, f"c{number}.tif"), colours[20:180, x:x + 130], photometric="rgb")
        tifffile.imwrite(pathlib.Path(folder, f"z{number}.tif"), stack[:, 20:180, x:x + 130])
    for letter, whole in (("c", colours[20:180, 10:242]), ("z", stack[:, 20:180, 10:242])):
        run("run", "-q", "-e", f'stitch("{letter}*.tif", grid = [1, 2], overlap = 0.2, margin = 3) |> write("{letter}.npy")',
            folder=folder)
        made = np.load(pathlib.Path(folder, f"{letter}.npy"))
        axis = 0 if letter == "c" else 1
        part = made[4:160] if letter == "c" else made[:, 4:160]
        wanted = whole[1:157] if letter == "c" else whole[:, 1:157]
        assert any(np.array_equal(np.take(part, range(k, k + 230), axis + 1), np.take(wanted, range(1, 231), axis + 1))
                   for k in range(8)), letter


@test
def what_cannot_be_stitched_is_told_before_anything_is_computed(folder):
    np, _, tifffile = modules()
    for number in range(4):
        tifffile.imwrite(pathlib.Path(folder, f"t{number}.tif"), np.zeros((50, 60), "uint8"))
    tifffile.imwrite(pathlib.Path(folder, "small.tif"), np.zeros((40, 60), "uint8"))
    tifffile.imwrite(pathlib.Path(folder, "t_other.tif"), np.zeros((50, 60), "uint16"))
    pathlib.Path(folder, "few.csv").write_text("x,y\n0,0\n40,0\n")
    pathlib.Path(folder, "far.csv").write_text("x,y\n0,0\n40,0\n0,40\n900,40\n")
    pathlib.Path(folder, "none.csv").write_text("u,v\n0,0\n")
    for call, words in (('"t?.tif", grid = [2, 3]', "has 6 tiles, and \"t?.tif\" matches 4 files; some are missing"),
                        ('"t?.tif", grid = [1, 3]', "matches 4 files"), ('"t?.tif", grid = [4]', "[rows, columns]"),
                        ('"t?.tif", grid = [1, 2, 2]', "no axis z"),
                        ('"t?.tif"', "give grid = [rows, columns]"), ('"nothing*.tif", grid = [2, 2]', "no file matches"),
                        ('"t1.tif", grid = [1, 1]', "two tiles at least"),
                        ('"t?.tif", grid = [2, 2], overlap = 0.01', "shares no 8"),
                        ('"*l*.tif", grid = [1, 1]', "two tiles"), ('"[st]*.tif", grid = [2, 3]', "must have the same"),
                        ('"t*.tif", grid = [1, 5]', "uint16"),
                        ('"t?.tif", positions = "few.csv"', "does not say where t2.tif lies"),
                        ('"t?.tif", positions = "far.csv"', "t3.tif shares no 8"),
                        ('"t?.tif", positions = "none.csv"', "columns x and y"),
                        ('"t?.tif", positions = "far.csv", grid = [2, 2]', "give one of them")):
        said = run("run", "-e", f'stitch({call}) |> write("x.npy")', folder=folder, code=2).stderr
        assert words in said and not pathlib.Path(folder, "x.npy").exists(), (call, said)
    run("run", "-q", "-e", 'stitch("t?.tif", grid = [2, 2], overlap = 0.5) |> write("flat.npy")', folder=folder)
    assert np.load(pathlib.Path(folder, "flat.npy")).shape == (75, 90)


if __name__ == "__main__":
    main()
