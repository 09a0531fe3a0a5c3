#!/usr/bin/python3
"""JPEG files that are written: they are the pictures that Pillow makes, whatever bands they were encoded in."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test  # noqa: E402


def modules():
    try:
        import numpy
        from PIL import Image
        return numpy, Image
    except ImportError:
        raise Skip("no Pillow here") from None


def picture(np, shape, seed=1):
    y, x = np.mgrid[:shape[0], :shape[1]]
    smooth = 127 + 60 * np.sin(y / 9) + 60 * np.cos(x / 7)
    noise = np.random.default_rng(seed).normal(0, 9, shape)
    return np.clip((smooth if len(shape) == 2 else smooth[..., None]) + noise, 0, 255).astype("uint8")


def written(folder, name, options="", more=()):
    run("run", "-q", "--overwrite", *more, "-e", f'read("in.npy", axes = AXES) |> write("{name}"{options})'.replace(
        "AXES", '"y x c"' if name.startswith("c") else '"y x"'), folder=folder)
    return pathlib.Path(folder, name)


@test
def pictures_are_those_of_pillow(folder):
    np, Image = modules()
    for shape in ((1, 1), (7, 9), (64, 64), (65, 100), (300, 5000), (1700, 2100), (40, 50, 3), (700, 1500, 3)):
        array = picture(np, shape)
        np.save(pathlib.Path(folder, "in.npy"), array)
        for quality in (0, 30, 100):
            name = "c.jpg" if len(shape) == 3 else "g.jpeg"
            path = written(folder, name, f", quality = {quality}" if quality else "")
            Image.fromarray(array).save(pathlib.Path(folder, "peer.jpg"), quality=quality or 90, subsampling=0)
            ours, theirs = (np.asarray(Image.open(p)) for p in (path, pathlib.Path(folder, "peer.jpg")))
            assert ours.shape == array.shape and np.array_equal(ours, theirs), (shape, quality)
            run("run", "-q", "--overwrite", "-e", f'read("{name}") |> write("again.npy")', folder=folder)
            assert np.array_equal(np.load(pathlib.Path(folder, "again.npy")), ours), (shape, quality)


@test
def bytes_do_not_depend_on_chunks_and_workers(folder):
    np, _ = modules()
    np.save(pathlib.Path(folder, "in.npy"), picture(np, (900, 3000)))
    first = written(folder, "g.jpg").read_bytes()
    for more in (("--chunk", "100x700"), ("--workers", "1"), ("--engine", "processes"), ("--memory", "64M", "--fresh")):
        assert written(folder, "g.jpg", more=(*more, "--fresh")).read_bytes() == first, more


@test
def what_it_cannot_hold_is_refused_with_a_way_out(folder):
    np, _ = modules()
    for array, axes, words in ((np.ones((4, 5), "float32"), "y x", 'convert(rescale(image, 0, 255), "uint8")'),
                               (np.ones((4, 5), "bool"), "y x", "PNG"), (np.ones((3, 4, 5), "uint8"), "z y x", "image[0]"),
                               (np.ones((4, 5, 4), "uint8"), "y x c", "image[:, :, 0:3]"),
                               (np.ones((1, 70000), "uint8"), "y x", "65500")):
        np.save(pathlib.Path(folder, "in.npy"), array)
        said = run("run", "-e", f'read("in.npy", axes = "{axes}") |> write("a.jpg")', folder=folder, code=2).stderr
        assert "a.jpg" in said and words in said and not pathlib.Path(folder, "a.jpg").exists(), said
    said = run("run", "-e", 'phantom("cells", [20, 20]) |> write("a.png", quality = 50)', folder=folder, code=2).stderr
    assert "quality" in said, said
    said = run("run", "-e", 'phantom("cells", [20, 20]) |> convert("uint8") |> write("a.jpg", quality = 101)', folder=folder,
               code=2).stderr
    assert "quality" in said and "100" in said, said


if __name__ == "__main__":
    main()
