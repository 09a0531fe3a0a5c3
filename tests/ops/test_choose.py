"""choose: conditions one inside another, and shared by branches, agree with where, and what is not taken is not made."""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

IMAGES = """a = phantom("noise", [9, 20, 20]) / 255
b = minimum_filter(phantom("noise", [9, 20, 20], seed = 3), 3) / 255
c = gaussian(phantom("noise", [9, 20, 20], seed = 4), 2) / 255
"""
CHOICES = [
    # the inner condition is needed outside too, so it does not wait for the outer one by itself
    ("CHOOSE(mean(gaussian(a, 1)) > 0.3, CHOOSE(max(b) > 0.9, gaussian(c, 1), a), b)", "CHOOSE(max(b) > 0.9, b, c)"),
    ("CHOOSE(mean(CHOOSE(mean(b * (max(c) > 1)) > 0.5, c + a, CHOOSE(max(a) > 0.9, c, a)) * (max(b) > 1)) > 0.5, "
     "gaussian(a, 1), CHOOSE(max(b) < 0.5, gaussian(b + a, 1), CHOOSE(mean(c * (max(c) > 1)) > 0.5, "
     "CHOOSE(max(b) < 0.5, c, a), CHOOSE(max(b) > 0.9, c, b))))",
     "CHOOSE(max(a) < 0.9, b + a, CHOOSE(mean(a) > 0.9, CHOOSE(mean(c) > 0.3, a, c), checkpoint(b)))"),
    ("CHOOSE(mean(a) > 0.3, CHOOSE(max(a) > 0.9, CHOOSE(max(c) > 0.3, a, b), c) + "
     "CHOOSE(max(c) > 0.5, CHOOSE(mean(b) < 0.5, b, c), c), checkpoint(CHOOSE(mean(c) < 0.3, a, b)))",
     "CHOOSE(mean(CHOOSE(mean(a) < 0.5, c, a)) > 0.5, c + checkpoint(c), b)"),
]


@test
def nested_and_shared_conditions_agree_with_where(folder):
    for first, second in CHOICES:
        text = f'{IMAGES}write({first} * 1.0, "first.npy")\nwrite({second} * 1.0, "second.npy")\n'
        results = []
        for how, *options in (["where"], ["choose"], ["choose", "--chunk", "4x8x8"], ["choose", "--engine", "processes"]):
            pathlib.Path(folder, "t.fov").write_text(text.replace("CHOOSE", how))
            run("run", "-q", "--fresh", "--overwrite", *options, "t.fov", folder=folder)
            results.append([np.load(pathlib.Path(folder, name)) for name in ("first.npy", "second.npy")])
        for other in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(results[0], other)), (first, second)


@test
def what_is_not_taken_is_not_computed(folder):
    text = IMAGES + 'write(choose(mean(a) > LIMIT, gaussian(checkpoint(median(a, 3)), 1), a), "o.npy")'
    medians = []
    for limit in "0", "2":
        pathlib.Path(folder, "t.fov").write_text(text.replace("LIMIT", limit))
        run("run", "-q", "--fresh", "--overwrite", "t.fov", folder=folder)
        report = json.loads(run("report", "--json", folder=folder).stdout)
        medians.append("median" in json.dumps(report))
    assert medians == [True, False], medians


@test
def what_is_not_taken_may_be_needed_by_others_in_part(folder):
    """Of an image that choose does not take, a task holds what others need of it, which may be less than choose would."""
    text = """a = phantom("cells", [200, 200])
write(median(a, 5), "median.npy")
write(choose(std(a) > 20, median(a, 5), a), "chosen.npy")
write(reconstruct(erode(a, disk(6)), a), "reconstructed.npy")
"""
    pathlib.Path(folder, "t.fov").write_text(text)
    for options in [], ["--chunk", "70"], ["--engine", "processes"]:
        run("run", "-q", "--fresh", "--overwrite", *options, "t.fov", folder=folder)
        median, chosen = (np.load(pathlib.Path(folder, name + ".npy")) for name in ("median", "chosen"))
        assert np.array_equal(chosen, median), options


main()
