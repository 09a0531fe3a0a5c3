"""Chunks of stages, as `fovea plan` tells them."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test


@test
def a_window_of_which_nothing_is_needed_takes_no_memory(folder):
    """The second pass of fit_polynomial needs the sums and no voxel, so the median before it has nothing to do there."""
    text = 'phantom("cells", [50, 6]) |> median(3, mode = "constant") |> fit_polynomial |> write("fit.npy")'
    assert "fit_polynomial" in run("plan", "-e", text, folder=folder).stdout
    run("run", "-q", "-e", text, folder=folder)


@test
def an_image_that_is_moved_out_of_sight_has_no_tasks(folder):
    text = 'a = phantom("foam", [3, 1]); shift(power(a, local_minima(a)), shift = 3) |> write("dark.npy")'
    assert "0 tasks" in run("plan", "-e", text, folder=folder).stdout
    run("run", "-q", "-e", text, folder=folder)


@test
def chunks_that_are_asked_for_do_not_cut_tables_of_grey_values(folder):
    text = 'clahe(convert(phantom("cells", [20, 24, 28]), "uint16")) |> write("even.npy")'
    tasks = re.findall(r"(\d+) tasks of", run("plan", "--chunk", "7", "-e", text, folder=folder).stdout)
    assert tasks and max(map(int, tasks)) < 1000, tasks


main()
