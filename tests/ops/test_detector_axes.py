#!/usr/bin/python3
"""Projections whose detector axes are called v and u, as DataExchange has them, are treated as those called z and x."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test  # noqa: E402

IMAGES = """
median(p, 3); gaussian(p, 1); uniform(p, 3); sobel(p); scharr(p); prewitt(p); laplace(p); unsharp(p); variance(p, 3)
rank(p, 2, 3); percentile(p, 40, 3); maximum_filter(p, 3); minimum_filter(p, 3); gaussian_laplace(p, 1)
gaussian_gradient_magnitude(p, 1); difference_of_gaussians(p, 1, 2); convolve(p, [0, 1, 0, 1, 0, 1, 0, 1, 0])
erode(m, ball(1)); dilate(m, box(3)); open(p, cross()); close(p, disk(2)); tophat(p, box([3, 5])); bottomhat(p, disk(1))
gradient(p, disk(1)); distance(m); fill_holes(m); clear_border(m); remove_small(m, 9); h_maxima(p, 2); h_minima(p, 2)
local_maxima(p); local_minima(p); reconstruct(p - 2, p); label(m); boundaries(label(m)); expand_labels(label(m), 2)
watershed(-p, label(local_maxima(gaussian(p, 2)))); peaks(p); relabel(label(m)); local(p, 5); sauvola(p, 5)
keep(label(m), measure(label(m)), "voxels >= 9"); hysteresis(p, 2, 4); remove_outliers(p, 2); remove_rings(p)
minus_log(p + 1); flatfield(p, f); align(p); misalign(p, 1); poisson(p + 9); expose(p / 9, f); fbp(p, g)
sirt(p, g, iterations = 2); p[:, 3:9, ::2]; p[4]; project(p, "angle"); montage(p); colorize(label(m))
"""
TABLES = ("neighbours(label(m))", "measure(label(m), p)", "blobs_log(p, threshold = 0.05)", "blobs_dog(p, threshold = 0.05)",
          "blobs_doh(p, threshold = 0.001)", "profile(p[2], [1, 1], [9, 12])")
MAKE = 'write(xray(phantom("shepp-logan", [20, 24, 24]), parallel(range(0, 170, 10))) + ' \
       'phantom("noise", [18, 20, 24]) / 200, "p.npy")'


def pipeline(axes, name):
    """Writes what every operator gives; also the names of the files."""
    text = [f'p = read("p.npy", axes = "{axes}")', "m = gaussian(p, 1) > 3", "f = ones([20, 24]) * 9",
            "g = parallel(range(0, 170, 10))"]
    results = []
    for number, call in enumerate(IMAGES.replace("\n", "; ").strip("; ").split(";")):
        results.append(f"{name}/{number}.npy")
        text.append(f'write({call.strip()}, "{results[-1]}")')
    for number, call in enumerate(TABLES):
        results.append(f"{name}/table{number}.csv")
        text.append(f'write({call}, "{results[-1]}")')
    return "\n".join(text), results


@test
def every_operator_takes_detector_axes_for_space(folder):
    run("run", "-q", "-e", MAKE, folder=folder)
    made = []
    for name, axes in (("zx", "angle z x"), ("vu", "angle v u")):
        text, results = pipeline(axes, name)
        pathlib.Path(folder, f"{name}.fov").write_text(text, encoding="utf-8")
        run("run", "-q", f"{name}.fov", folder=folder)
        made.append([pathlib.Path(folder, file).read_bytes().replace(b"_v,", b"_z,").replace(b"_u,", b"_x,")
                     .replace(b"v,u,", b"z,x,") for file in results])
    for file, ours, theirs in zip(results, *made):
        assert ours == theirs, f"{file}: {theirs[:200]}, not {ours[:200]}"


@test
def an_image_without_space_is_told_how_to_get_some(folder):
    run("run", "-q", "-e", MAKE, folder=folder)
    said = run("run", "-q", "-e", 'write(median(read("p.npy", axes = "angle a b"), 3), "m.npy")', folder=folder, code=2).stderr
    assert "0 spatial axes" in said and "name_axes" in said, said


main()
