"""The recipes of docs/recipes.md run, and give what scipy, scikit-image and a search by hand give."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402
from recipes import answer, cells_by_scikit_image, close_to, cook, rows, table, within_two_connections  # noqa: E402


@test
def cells_of_a_plane_a_volume_and_a_folder_are_counted_as_by_scikit_image(folder):
    printed = cook(folder, "Counting cells", "The same in 3-D, and over a folder")
    for name, image, spatial in (("cells", "cells.png", 2), ("stack", "stack.tif", 3)):
        volumes = [v for (v,) in rows(folder, f"{name}.db", "SELECT volume FROM cells")]
        close_to(volumes, cells_by_scikit_image(pathlib.Path(folder, image), spatial))
    for dish in "abc":
        volumes = [v for (v,) in rows(folder, "dishes.db", f"SELECT volume FROM cells WHERE item = '{dish}'")]
        close_to(volumes, cells_by_scikit_image(pathlib.Path(folder, f"dishes/{dish}.png"), 2))
    dishes = answer(printed, "GROUP BY item")
    assert [row[0] for row in dishes[1:]] == list("abc"), dishes
    assert pathlib.Path(folder, "cells-found.png").stat().st_size > 0


@test
def cells_within_two_connections_are_those_of_a_search(folder):
    printed = cook(folder, "Counting cells", "Cell contacts, and cells within two connections")
    within, most = within_two_connections(folder, 12)
    assert {int(row[0]) for row in answer(printed, "near.a = 12")[1:]} == within and len(within) >= 3, within
    assert int(answer(printed, "AS neighbours")[1][1]) == most, most


@test
def objects_in_uneven_light_are_all_in_the_table(folder):
    printed = cook(folder, "Uneven light")
    assert int(answer(printed, "uneven.fov")[0][0]) == len(table(folder, "objects.csv")) > 10, printed


@test
def bubbles_of_a_foam_are_whole_and_fewer_with_more_depth(folder):
    printed = cook(folder, "Foam bubbles")
    found = answer(printed, "AS bubbles")
    count, diameter = int(found[1][0]), float(found[1][1])
    assert count >= 8 and 20 < diameter < 45, found
    counts = []
    for depth in (1, 2, 4):
        names, *table = (line.split(",") for line in pathlib.Path(folder, f"bubbles-{depth}.csv").read_text().splitlines())
        assert names[-5:] == ["label", "volume", "equivalent_diameter", "surface_area", "anisotropy"], names
        counts.append(len(table))
    assert counts[0] >= counts[1] >= counts[2] > 1, counts


@test
def blobs_of_a_folder_are_those_of_scikit_image(folder):
    try:
        from skimage.feature import blob_log
        from skimage.io import imread
    except ImportError as missing:
        raise Skip(str(missing)) from missing
    printed = cook(folder, "Counting cells", "The same in 3-D, and over a folder", "Blobs of a folder")
    found = answer(printed, "AS blobs")
    for item, blobs, _ in found[1:]:
        peer = blob_log(imread(pathlib.Path(folder, f"dishes/{item}.png")), min_sigma=4, max_sigma=12, num_sigma=9, threshold=0.1)
        assert abs(int(blobs) - len(peer)) <= 0.1 * len(peer), f"{item}: {blobs} blobs, the peer finds {len(peer)}"


@test
def gaussian_and_median_differ_in_one_word_of_the_text(folder):
    printed = cook(folder, "Counting cells", "Gaussian or median? One word")
    first, second, question = (line for line in printed if "gaussian" in line or "median" in line)
    assert first.replace("gaussian", "median") == second, (first, second)
    with_gaussian, with_median = map(int, printed[question][1])
    assert 0 < with_gaussian < with_median, (with_gaussian, with_median)


@test
def channels_are_measured_in_the_cells_of_the_first(folder):
    cook(folder, "Channels: measure every channel in the cells of one")
    cells = table(folder, "channels.csv")
    assert list(cells[0]) == ["label", "voxels", "mean_c0", "mean_c1"] and len(cells) > 10, cells[0]
    for cell in cells:
        assert abs(float(cell["mean_c1"]) / float(cell["mean_c0"]) - 0.5) < 0.05, cell


@test
def brightness_over_time_falls_as_the_frames_were_made(folder):
    cook(folder, "Time series: brightness over time")
    frames = table(folder, "brightness.csv")
    assert [row["t"] for row in frames] == ["0", "1", "2"] and len({row["cells"] for row in frames}) == 1, frames
    first = float(frames[0]["brightness"])
    assert [round(float(row["brightness"]) / first, 2) for row in frames] == [1, 0.8, 0.6], frames


@test
def outlines_and_overlays_are_in_colour(folder):
    cook(folder, "Counting cells", "Labels over the image")
    for name in ("outlines", "overlay"):
        run("run", "-q", "-e", f'a = read("{name}.png"); max(abs(a[:, :, 0] - a[:, :, 1])) |> write("{name}.csv")', folder=folder)
        [row] = table(folder, f"{name}.csv")
        assert float(*row.values()) > 50, row


@test
def treatments_are_joined_to_every_cell(folder):
    cook(folder, "Counting cells", "The same in 3-D, and over a folder", "What is known about each image, joined to its cells")
    cells = table(folder, "cells-of-treatments.csv")
    assert len(cells) == len(table(folder, "all.csv")) > 20
    assert {(c["item"], c["treatment"]) for c in cells} == {("a", "control"), ("b", "drug"), ("c", "drug")}


@test
def the_difference_of_two_groups_is_that_of_their_means(folder):
    printed = cook(folder, "The mean of a group, and the difference of two")
    value = answer(printed, "groups.fov")
    run("run", "-q", "-e", 'a = mean(read("old/*.nii.gz", stack = "n")); b = mean(read("young/*.nii.gz", stack = "n"))\n'
        'b - a |> write("by-hand.csv")', folder=folder)
    [row] = table(folder, "by-hand.csv")
    assert abs(float(value[0][0]) - float(*row.values())) < 0.01, (value, row)


@test
def a_contact_sheet_shows_all_images(folder):
    cook(folder, "A contact sheet")
    assert "y 200, x 300" in run("info", "sheet.png", folder=folder).stdout


@test
def statistics_of_a_mask_are_those_of_its_pixels(folder):
    printed = cook(folder, "Counting cells", "Statistics inside a mask")
    found = answer(printed, "inside.fov")
    run("run", "-q", "-e", 'a = read("cells.png"); m = gaussian(a, 1) > 100; row(count(m), sum(a * m) / count(m), '
        'names = "n mean") |> write("by-hand.csv")', folder=folder)
    [row] = table(folder, "by-hand.csv")
    values = dict(zip(*(line[0].split() for line in found)))
    assert values["voxels"] == row["n"].split(".")[0], (values, row)
    assert abs(float(values["mean"]) - float(row["mean"])) < 0.01, (values, row)


@test
def a_pattern_may_come_from_a_parameter(folder):
    for name in "ab":
        run("run", "-q", "-e", f'phantom("cells", [20, 30]) |> write("in/{name}.png")', folder=folder)
    text = 'param input = "in/a.png"\nread(input) |> median(3) |> write("{stem}.png")'
    run("run", "-q", "-e", text, "--set", "input=in/*.png", folder=folder)
    assert {p.name for p in pathlib.Path(folder).glob("*.png")} == {"a.png", "b.png"}
    done = run("run", "-q", "-e", text, "--set", "input=in/*.tif", folder=folder, code=2)
    assert 'no file matches "in/*.tif"' in done.stderr, done.stderr


@test
def a_later_scan_and_a_moving_series_are_brought_back(folder):
    cook(folder, "Two scans of the same head", "Motion in a time series")
    [moved] = table(folder, "moved.csv")
    assert 5.8 < abs(float(moved["rotation_z"])) < 6.2, moved
    for row, (y, x) in zip(table(folder, "motion.csv"), ((0, 0), (2.5, -1), (4, 3))):
        assert abs(float(row["shift_y"]) - y) < 0.2 and abs(float(row["shift_x"]) - x) < 0.2, row


main()
