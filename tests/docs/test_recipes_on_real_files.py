"""The recipes of docs/recipes.md on real images in the place of the drawn ones, against scipy, scikit-image and numpy.

There is no real foam, no real volume of cells and no real NXtomo file at hand. In their place: the dark parts of a brain, a head,
and the real frames of the tooth, which the test writes as NXtomo.
"""
import importlib.util
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, data, main, run, test  # noqa: E402
from recipes import TEXT, answer, cells_by_scikit_image, close_to, cook, rows, table, within_two_connections  # noqa: E402

try:
    import numpy as np
    from scipy import ndimage
    from skimage.feature import blob_log
    from skimage.filters import threshold_otsu
    from skimage.io import imread
    from skimage.measure import regionprops
    from skimage.morphology import h_maxima
    from skimage.segmentation import clear_border, watershed
except ImportError as missing:
    print(f"skip recipes_on_real_files: {missing}")
    sys.exit(0)

COUNTING = "Counting cells"
FOLDER = "The same in 3-D, and over a folder"


def tissue():
    """Stained tissue with blue nuclei and brown membranes, which scikit-image brings along."""
    path = pathlib.Path(importlib.util.find_spec("skimage").origin).parent / "data" / "ihc.png"
    if not path.exists():
        raise Skip("scikit-image came without ihc.png")
    return path


def sky():
    path = tissue().parent / "hubble_deep_field.jpg"
    if not path.exists():
        raise Skip("scikit-image came without hubble_deep_field.jpg")
    return path


def put(folder, name, text):
    """Writes a part of a real file under the name that the recipe reads."""
    run("run", "-q", "-e", f'{text} |> write("{name}")', folder=folder)


def nuclei(rows_and_columns, channel=0):
    """Stain is dark; turned round, nuclei are bright as in fluorescence."""
    return f'255 - read("{tissue()}")[{rows_and_columns}, {channel}] |> convert("uint8")'


def put_cells(folder):
    put(folder, "cells.png", nuclei("250:450, 150:400"))
    return imread(pathlib.Path(folder, "cells.png")).astype(np.float64)


def put_dishes(folder):
    for name, part in (("a", "250:450, 150:400"), ("b", "300:500, 260:512"), ("c", "150:300, 250:500")):
        put(folder, f"dishes/{name}.png", nuclei(part))


def put_head(folder, name):
    put(folder, name, f'read("{data("nifti", "example4d.nii.gz")}")[0]')


def labelled(mask):
    return ndimage.label(mask)[0]


def objects(labels):
    return np.arange(1, labels.max() + 1)


@test
def nuclei_and_a_head_are_counted_as_by_scikit_image(folder):
    put_cells(folder)
    put_dishes(folder)
    put_head(folder, "stack.tif")
    printed = cook(folder, COUNTING, FOLDER, real=True)
    for name, image, spatial in (("cells", "cells.png", 2), ("stack", "stack.tif", 3)):
        volumes = [v for (v,) in rows(folder, f"{name}.db", "SELECT voxels FROM cells")]
        close_to(volumes, cells_by_scikit_image(pathlib.Path(folder, image), spatial))
    for dish in "abc":
        volumes = [v for (v,) in rows(folder, "dishes.db", f"SELECT volume FROM cells WHERE item = '{dish}'")]
        close_to(volumes, cells_by_scikit_image(pathlib.Path(folder, f"dishes/{dish}.png"), 2))
    assert [row[0] for row in answer(printed, "GROUP BY item")[1:]] == list("abc")


@test
def grains_of_asphalt_touch_as_a_search_finds(folder):
    put(folder, "cells.png", f'read("{data("images", "asphalt_gray.tif")}")[0:500, 0:700]')
    printed = cook(folder, COUNTING, "Cell contacts, and cells within two connections", real=True)
    within, most = within_two_connections(folder, 12)
    assert {int(row[0]) for row in answer(printed, "near.a = 12")[1:]} == within and within, within
    assert int(answer(printed, "AS neighbours")[1][1]) == most
    volumes = [v for (v,) in rows(folder, "cells.db", "SELECT volume FROM cells")]
    close_to(volumes, cells_by_scikit_image(pathlib.Path(folder, "cells.png"), 2))


@test
def all_coins_are_found_in_uneven_light(folder):
    shutil.copy(data("images", "coins.png"), pathlib.Path(folder, "uneven.png"))
    printed = cook(folder, "Uneven light", real=True)
    assert answer(printed, "uneven.fov") == [["24"]], printed
    places = [(float(c["centroid_y"]), float(c["centroid_x"]), int(c["voxels"])) for c in table(folder, "objects.csv")]
    assert [sum(low <= y < low + 75 for y, _, _ in places) for low in (10, 85, 160, 235)] == [6, 6, 6, 6], places  # as they lie
    assert min(size for _, _, size in places) > 500, places


@test
def shapes_of_coins_and_of_a_brain_at_two_times_are_those_of_scikit_image(folder):
    shutil.copy(data("images", "coins.png"), pathlib.Path(folder, "shapes.png"))
    put(folder, "movie.npy", f'read("{data("nifti", "example4d.nii.gz")}")[:, 12]')
    cook(folder, "Shapes, medians and overlaps", real=True)
    coins, movie = imread(pathlib.Path(folder, "shapes.png")), np.load(pathlib.Path(folder, "movie.npy"))
    cells = labelled(coins > 60)
    ours, areas = table(folder, "shapes.csv"), ndimage.sum_labels(cells > 0, cells, objects(cells))
    assert [float(row["volume"]) for row in ours] == areas.tolist()
    assert [float(row["median"]) for row in ours] == ndimage.median(coins, cells, objects(cells)).tolist()
    for row, region in zip(ours, regionprops(cells)):
        if region.area > 20:
            assert abs(float(row["solidity"]) - region.solidity) < 1e-9, (row, region.solidity)
    spots = labelled(ndimage.gaussian_filter(coins.astype(float), 1) > 110)
    pairs = {(a, b) for a, b in zip(spots.ravel(), cells.ravel()) if a and b}
    assert abs(len(table(folder, "spots_in_cells.csv")) - len(pairs)) <= 2  # a voxel at the threshold may differ by rounding
    times = [labelled(frame > 80).max() for frame in movie]
    each = [int(row["t"]) for row in table(folder, "each_time.csv")]
    assert len(movie) == 2 and set(each) == {0, 1} and len(each) >= max(times), (each[:5], times)


@test
def coins_that_move_across_the_picture_are_followed(folder):
    """A real picture seen through a window that moves by known steps: each coin in sight is one track that moves as far."""
    put(folder, "light.npy", f'read("{data("images", "coins.png")}") |> gaussian(3) |> tophat(box(75))')
    light = np.load(pathlib.Path(folder, "light.npy"))
    steps = [0, 6, 12, 18]
    movie = np.stack([light[:, x:x + 300] for x in steps]).astype(np.float32)
    np.save(pathlib.Path(folder, "times.npy"), movie / light.max() * 300)
    cook(folder, "Tracking: who is who from time to time", real=True)
    whole = [row for row in table(folder, "tracks.csv") if int(row["start"]) == 0 and int(row["end"]) == 3]
    inside = [labelled(frame > 120) for frame in np.load(pathlib.Path(folder, "times.npy"))]
    kept = [k for k in objects(inside[0]) if 30 < np.argwhere(inside[0] == k)[:, 1].min() and
            np.argwhere(inside[0] == k)[:, 1].max() < 298]
    moved = [float(row["displacement"]) for row in whole]
    assert len(kept) > 5 and sum(abs(m - 18) < 1e-6 for m in moved) >= len(kept), (len(kept), moved)


@test
def dark_parts_of_a_brain_are_cut_apart_as_bubbles(folder):
    put(folder, "foam.tif", f'read("{data("nifti", "anatomical.nii")}") / 62 |> clip(0, 255) |> convert("uint8")')
    cook(folder, "Foam bubbles", real=True)
    brain = imread(pathlib.Path(folder, "foam.tif")).astype(np.float32)
    dark = ndimage.gaussian_filter(brain, 1) < 100
    inside = ndimage.distance_transform_edt(dark).astype(np.float32)
    for depth in (1, 2, 4):
        cores = ndimage.label(h_maxima(inside, depth))[0]
        whole = clear_border(watershed(-inside, cores, mask=dark))
        peer = np.sort(np.unique(whole[whole > 0], return_counts=True)[1])
        ours = np.sort([float(row["volume"]) / 8 for row in table(folder, f"bubbles-{depth}.csv")])  # voxels of 2 mm
        assert len(ours) == len(peer) and np.allclose(ours, peer, rtol=0.15), (depth, ours, peer)  # but for ties of the watershed
        assert len(ours) > 1 or depth > 1, ours


@test
def galaxies_are_the_blobs_of_scikit_image(folder):
    for name, part in (("a", "0:200, 0:300"), ("b", "300:500, 500:800"), ("c", "600:750, 100:350")):
        put(folder, f"dishes/{name}.png", f'read("{sky()}")[{part}, 1]')
    printed = cook(folder, "Blobs of a folder", real=True)
    for item, blobs, _ in answer(printed, "AS blobs")[1:]:
        image = imread(pathlib.Path(folder, f"dishes/{item}.png"))
        peer = len(blob_log(image, min_sigma=4, max_sigma=12, num_sigma=9, threshold=0.1))
        assert abs(int(blobs) - peer) <= 0.1 * peer and peer > 5, f"{item}: {blobs} blobs, the peer finds {peer}"


@test
def gaussian_and_median_count_nuclei_as_scipy_does(folder):
    image = put_cells(folder).astype(np.float32)
    printed = cook(folder, "Gaussian or median? One word", real=True)
    smooth = ndimage.gaussian_filter(image, 3), ndimage.median_filter(image, 3)
    peers = [labelled(s > threshold_otsu(s)).max() for s in smooth]
    found = [int(n) for n in answer(printed, "with_median")[1]]
    assert all(abs(f - p) <= 1 for f, p in zip(found, peers)) and found[0] < found[1], (found, peers)


@test
def two_stains_are_measured_in_the_nuclei_of_the_first(folder):
    for name, channel in (("dapi", 0), ("gfp", 2)):
        put(folder, f"plate/well1_{name}.tif", nuclei("250:450, 150:400", channel))
    cook(folder, "Channels: measure every channel in the cells of one", real=True)
    first, second = (imread(pathlib.Path(folder, f"plate/well1_{name}.tif")).astype(np.float32) for name in ("dapi", "gfp"))
    smooth = ndimage.gaussian_filter(first, 2)
    labels = labelled(smooth > threshold_otsu(smooth))
    cells = table(folder, "channels.csv")
    assert list(cells[0]) == ["label", "voxels", "mean_c0", "mean_c1"]
    assert len(cells) == labels.max() > 10, (len(cells), labels.max())
    for column, image in (("mean_c0", first), ("mean_c1", second)):
        ours = [float(cell[column]) for cell in cells]
        assert np.allclose(np.sort(ours), np.sort(ndimage.mean(image, labels, objects(labels))), atol=2), column


@test
def brightness_of_a_functional_scan_is_that_of_its_frames(folder):
    series = data("nifti", "functional.nii")
    for t in range(20):
        put(folder, f"movie/frame{t + 1}.tif", f'read("{series}")[{t}, 1]')
    for drawn in ("frame2", "frame10"):
        assert pathlib.Path(folder, f"movie/{drawn}.tif").exists()
    cook(folder, "Time series: brightness over time", real=True)
    movie = np.stack([imread(pathlib.Path(folder, f"movie/frame{t + 1}.tif")) for t in range(20)])
    smooth = ndimage.gaussian_filter(movie[0], 2)
    labels = labelled(smooth > threshold_otsu(smooth))
    frames = table(folder, "brightness.csv")
    assert [row["t"] for row in frames] == [str(t) for t in range(20)] and {row["cells"] for row in frames} == {str(labels.max())}
    peer = [np.mean(ndimage.mean(frame, labels, objects(labels))) for frame in movie]
    assert np.allclose([float(row["brightness"]) for row in frames], peer, rtol=1e-4), frames[:3]


@test
def outlines_lie_on_nuclei_and_the_rest_is_the_image(folder):
    image = put_cells(folder)
    cook(folder, COUNTING, "Labels over the image", real=True)
    outlines, overlay = (imread(pathlib.Path(folder, name)).astype(int) for name in ("outlines.png", "overlay.png"))
    coloured = np.ptp(outlines, axis=2) > 0
    assert 0.02 < coloured.mean() < 0.5, coloured.mean()
    assert np.array_equal(outlines[~coloured][:, 0], image[~coloured]), "beside the outlines, the image stays as it is"
    assert (np.ptp(overlay, axis=2) > 50).mean() > 0.1


@test
def treatments_are_joined_to_real_nuclei(folder):
    put_dishes(folder)
    cook(folder, "What is known about each image, joined to its cells", real=True)
    cells = table(folder, "cells-of-treatments.csv")
    assert {(c["item"], c["treatment"]) for c in cells} == {("a", "control"), ("b", "drug"), ("c", "drug")}
    for dish in "abc":
        image = imread(pathlib.Path(folder, f"dishes/{dish}.png")).astype(np.float32)
        count = labelled(ndimage.gaussian_filter(image, 1) > 90).max()
        ours = sum(c["item"] == dish for c in cells)
        assert abs(ours - count) <= 1 and count > 10, f"{dish}: {ours} cells, scipy finds {count}"


@test
def the_difference_of_two_halves_of_a_functional_scan_is_that_of_numpy(folder):
    series = data("nifti", "functional.nii")
    for name, t in (("old/a", 0), ("old/b", 1), ("young/a", 18), ("young/b", 19)):
        put(folder, f"{name}.nii.gz", f'read("{series}")[{t}]')
    printed = cook(folder, "The mean of a group, and the difference of two", real=True)
    put(folder, "series.npy", f'read("{series}")')
    put(folder, "difference.npy", 'read("difference.nii.gz")')
    series, ours = (np.load(f"{folder}/{name}.npy").astype(np.float64) for name in ("series", "difference"))
    peer = series[18:].mean(axis=0) - series[:2].mean(axis=0)
    assert np.allclose(ours, peer, atol=1e-3 * np.abs(peer).max()) and np.abs(peer).max() > 0
    assert abs(float(answer(printed, "groups.fov")[0][0]) - peer.mean()) < 1e-2 * np.abs(peer).max()
    places = [line for file in (data("nifti", "functional.nii"), "difference.nii.gz")
              for line in run("info", file, folder=folder).stdout.splitlines() if "affine" in line]
    assert len(places) == 2 and places[0] == places[1], places


@test
def a_contact_sheet_shows_real_wells_in_order(folder):
    corners = {"A1": "0:100, 0:150", "A2": "0:100, 150:300", "B1": "250:350, 150:300", "B2": "350:450, 150:300"}
    for name, part in corners.items():
        put(folder, f"wells/{name}.png", nuclei(part))
    cook(folder, "A contact sheet", real=True)
    wells = [imread(pathlib.Path(folder, f"wells/{name}.png")) for name in sorted(corners)]
    assert np.array_equal(imread(pathlib.Path(folder, "sheet.png")), np.block([wells[:2], wells[2:]]))


@test
def statistics_inside_a_mask_are_those_of_numpy(folder):
    image = put_cells(folder)
    printed = cook(folder, "Statistics inside a mask", real=True)
    inside = image[ndimage.gaussian_filter(image.astype(np.float32), 1) > 100]
    values = dict(zip(*(line[0].split() for line in answer(printed, "inside.fov"))))
    assert abs(int(values["voxels"]) - inside.size) <= 1, (values, inside.size)
    for name, peer in (("mean", inside.mean()), ("std", inside.std()), ("min", inside.min()), ("max", inside.max())):
        assert abs(float(values[name]) - peer) < 0.05, (name, values, peer)


def tooth(folder):
    """The raw counts of the tooth and its angles; skips without the plug-in that reads them."""
    try:
        import h5py
    except ImportError as missing:
        raise Skip(str(missing)) from missing
    path = data("tomography", "tooth.h5")
    if run("info", path, folder=folder, code=None).returncode:
        raise Skip("the HDF5 plug-in is not here")
    return h5py, path


def enamel_and_air(folder, name):
    """Slices of the tooth: enamel is bright, the air around it is empty."""
    run("run", "-q", "-e", f'write(read("{name}")[1], "slice.npy")', folder=folder)
    middle = np.load(f"{folder}/slice.npy")
    inside, outside = middle[400:440, 400:420].mean(), middle[20:60, 300:340].mean()
    assert 0.006 < inside < 0.01 and abs(outside) < 0.001, (inside, outside)


@test
def the_tooth_is_reconstructed_by_the_recipe_of_data_exchange(folder):
    _, path = tooth(folder)
    shutil.copy(path, pathlib.Path(folder, "scan.h5"))
    cook(folder, "DataExchange from raw frames to slices", real=True)
    center = float(run("run", "-q", "exchange.fov", "--set", "row=1", folder=folder).stdout)
    assert abs(center + 0.5 - 296) < 1.5, center  # TomoPy's guide finds 296, counted from half a column further left
    enamel_and_air(folder, "slices.zarr")


@test
def frames_of_the_tooth_written_as_nxtomo_are_reconstructed_by_the_recipe_of_nexus(folder):
    h5py, path = tooth(folder)
    with h5py.File(path) as source:
        projections, flats, darks = (source[f"exchange/{name}"][...] for name in ("data", "data_white", "data_dark"))
        theta = source["exchange/theta"][...] if "exchange/theta" in source else np.linspace(0, 180, len(projections))
    with h5py.File(f"{folder}/scan.nxs", "w") as scan:
        for group, kind in (("entry", "NXentry"), ("entry/instrument", "NXinstrument"),
                            ("entry/instrument/detector", "NXdetector"), ("entry/sample", "NXsample")):
            scan.create_group(group).attrs["NX_class"] = kind
        scan["entry/definition"] = "NXtomo"
        detector = scan["entry/instrument/detector"]
        detector["data"] = np.concatenate([darks, flats, projections])
        detector["image_key"] = [2] * len(darks) + [1] * len(flats) + [0] * len(projections)
        scan["entry/sample/rotation_angle"] = np.concatenate([np.zeros(len(darks) + len(flats)), theta])
        scan["entry/sample/rotation_angle"].attrs["units"] = "degree"
    cook(folder, "A NeXus scan from raw frames to slices", real=True)
    center = float(run("run", "-q", "nexus.fov", "--set", "row=1", folder=folder).stdout)
    assert abs(center + 0.5 - 296) < 1.5, center
    enamel_and_air(folder, "slices.tif")


@test
def tiles_of_tissue_come_back_to_where_they_were_cut(folder):
    put(folder, "slide.tif", nuclei("60:430, 0:512"))
    image = np.pad(imread(f"{folder}/slide.tif"), [(0, 0), (0, 18)], mode="reflect")
    np.save(f"{folder}/slide.npy", image)
    run("run", "-q", "--overwrite", "-e", 'read("slide.npy") |> write("slide.tif")', folder=folder)
    cook(folder, "Stitching the tiles of a slide", real=True)
    found = np.array([[float(row["y"]), float(row["x"])] for row in table(folder, "places.csv")])
    off = found - [[4, 3], [1, 166], [6, 322], [163, 1], [166, 160], [160, 324]]
    assert np.abs(off - off.mean(0)).max() < 0.1, found
    run("run", "-q", "-e", 'read("slide.zarr") |> write("whole.npy")', folder=folder)
    y, x = (np.round(found[0]) + 5 - [4, 3]).astype(int)
    assert np.array_equal(np.load(f"{folder}/whole.npy")[y + 10:y + 350, x + 10:x + 510], image[10:350, 10:510])


@test
def a_real_head_is_turned_back_and_a_real_series_lies_still(folder):
    put_head(folder, "first.nii.gz")
    later = f'read("{data("nifti", "example4d.nii.gz")}")[1]'
    put(folder, "later.nii.gz", f"{later} |> rotate(5, reshape = false) |> shift([0, 3, 2])")
    put(folder, "moving.npy", f'read("{data("nifti", "functional.nii")}")[:, 1]')
    cook(folder, "Two scans of the same head", "Motion in a time series", real=True)
    [moved] = table(folder, "moved.csv")
    assert abs(float(moved["scale"]) - 1) < 1e-9 and 4.5 < abs(float(moved["rotation_z"])) < 5.5, moved
    series = table(folder, "motion.csv")
    assert len(series) == 20 and all(float(row["displacement"]) < 0.5 for row in series), series
    movie, steady = (np.load(pathlib.Path(folder, name))[:, 3:-3, 3:-3] for name in ("moving.npy", "steady.npy"))
    assert steady.std(axis=0).mean() < 1.1 * movie.std(axis=0).mean()


@test
def no_recipe_is_left_out(_):
    tests = pathlib.Path(__file__).read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", TEXT, re.M)
    assert len(titles) > 10 and not [title for title in titles if f'"{title}"' not in tests], titles


main()
