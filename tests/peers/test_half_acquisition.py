#!/usr/bin/python3
"""Half acquisition: a whole turn with the axis near the edge of the detector sees an object of almost twice its width. Judged
by the object itself, by the half turn with a detector wide enough, and by what comes out where the weights are left out."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip half_acquisition: {missing}")
    sys.exit(0)

SIZE, COLUMNS, CENTER = 127, 72, 8  # the axis sees 8 columns on one side and 63 on the other: 63 + 1 + 63 in all
WHOLE, HALF = "range(0, 360, count = 360)", "range(0, 180, count = 180)"


def arrays(folder, **texts):
    """What each text gives, computed in one run."""
    lines = [f'object = phantom("shepp-logan", [3, {SIZE}, {SIZE}])',
             f'narrow = xray(object, parallel({WHOLE}, center = {CENTER}), columns = {COLUMNS})',
             f'other = xray(object, parallel({WHOLE}, center = {COLUMNS - 1 - CENTER}), columns = {COLUMNS})',
             f"wide = xray(object, parallel({HALF}))"]
    lines += [f'write({text}, "{name}.npy")' for name, text in texts.items()]
    run("run", "-q", "--overwrite", "-e", "\n".join(lines), folder=folder)
    return [np.load(f"{folder}/{name}.npy") for name in texts]


def error(ours, truth):
    """Inside the circle that is seen, as a part of the object's own deviation."""
    y, x = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    inside = x ** 2 + y ** 2 < 61 ** 2
    return float(np.sqrt(np.mean((ours - truth)[:, inside] ** 2)) / truth[:, inside].std())


@test
def filtered_back_projection_sees_the_whole_object(folder):
    g = f"parallel({WHOLE}, center = {CENTER})"
    truth, ours, left, stitched = arrays(folder, truth="object", ours=f"fbp(narrow, {g})",
                                         left=f"fbp(other, parallel({WHOLE}, center = {COLUMNS - 1 - CENTER}))",
                                         stitched=f"fbp(wide, parallel({HALF}))")
    assert ours.shape == truth.shape == left.shape, ours.shape
    good = error(stitched, truth)
    assert error(ours, truth) < 1.02 * good and error(left, truth) < 1.02 * good, (error(ours, truth), error(left, truth), good)
    assert error(ours, stitched) < 0.03, error(ours, stitched)
    np.save(f"{folder}/padded.npy", np.pad(arrays(folder, narrow="narrow")[0], ((0, 0), (0, 0), (55, 0))))
    plain, = arrays(folder, plain=f'fbp(read("padded.npy", axes = "angle z x"), parallel({WHOLE}))')
    assert error(plain, truth) > 2 * good, (error(plain, truth), good)  # what is measured once counts half


@test
def every_filter_and_a_size_of_ones_own_do(folder):
    g = f"parallel({WHOLE}, center = {CENTER})"
    for name in ("hann", "none"):
        ours, stitched = arrays(folder, ours=f'fbp(narrow, {g}, filter = "{name}")',
                                stitched=f'fbp(wide, parallel({HALF}), filter = "{name}")')
        assert error(ours, stitched) < 0.03, (name, error(ours, stitched))
    small, whole = arrays(folder, small=f"fbp(narrow, {g}, size = 61)", whole=f"fbp(narrow, {g})")
    assert np.allclose(small, whole[:, 33:-33, 33:-33], atol=1e-4)


@test
def iterative_methods_get_room_for_the_whole_object(folder):
    g = f"parallel({WHOLE}, center = {CENTER})"
    for method, options in (("sirt", "iterations = 30"), ("cgls", "iterations = 8"), ("art", "iterations = 2"),
                            ("sart", "iterations = 2"), ("mlem", "iterations = 10")):
        truth, ours, wide, narrow = arrays(folder, truth="object", ours=f"{method}(narrow, {g}, {options})",
                                           wide=f"{method}(wide, parallel({HALF}), {options})",
                                           small=f"{method}(narrow, {g}, {options}, size = {COLUMNS})")
        assert ours.shape == truth.shape, (method, ours.shape)
        assert error(ours, truth) < 1.25 * error(wide, truth), (method, error(ours, truth), error(wide, truth))
        cut = np.pad(narrow, ((0, 0), (28, 27), (28, 27)))  # a grid of the detector's width leaves out what the rays have met
        assert error(cut, truth) > 1.5 * error(ours, truth), (method, error(cut, truth), error(ours, truth))
    ours, = arrays(folder, ours=f"backproject(narrow, {g})")
    assert ours.shape == (3, SIZE, SIZE)


@test
def results_do_not_depend_on_chunks_and_workers(folder):
    text = f'narrow = xray(phantom("shepp-logan", [20, 63, 63]), parallel({WHOLE}, center = 5), columns = 37); ' \
           f'fbp(narrow, parallel({WHOLE}, center = 5)) |> write("v.npy")'
    made = set()
    for options in (("--workers", "1"), ("--chunk", "5x16x37"), ("--engine", "processes", "--workers", "2")):
        run("run", "-q", "--overwrite", "--fresh", "-e", text, *options, folder=folder)
        made.add(pathlib.Path(folder, "v.npy").read_bytes())
    assert len(made) == 1


@test
def what_cannot_be_right_is_refused(folder):
    head = f'p = xray(phantom("shepp-logan", [4, 63, 63]), parallel({WHOLE}, center = 5), columns = 37);'
    late = f'fbp(p, parallel({WHOLE}, center = max(p) * 0 + 5)) |> write("v.npy")'
    said = " ".join(run("run", "-q", "-e", head + late, folder=folder, code=1).stderr.split())
    assert "a half acquisition. Write the number into parallel(..., center = 5)" in said, said
    sized = late.replace(")) |>", "), size = 20) |>")
    assert "a half acquisition" in run("run", "-q", "-e", head + sized, folder=folder, code=1).stderr
    solved = late.replace("fbp(", "sirt(")
    assert "changes the size of the result" in run("run", "-q", "-e", head + solved, folder=folder, code=1).stderr
    many = f'fbp(p, parallel({WHOLE}, center = range(5, 5.5, count = 360))) |> write("v.npy")'
    assert "has one centre" in run("run", "-q", "-e", head + many, folder=folder, code=2).stderr


main()
