"""What the server of `fovea view` sends is what lies in the file: formats, axes, levels, types, and files that change."""
import os
import pathlib
import re
import shlex
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import ROOT, main, run, test
from view_client import View

RANDOM = numpy.random.default_rng(7)


def save(folder, name, array):
    numpy.save(pathlib.Path(folder) / name, array)
    return array


def write(folder, text):
    run("run", "-q", "-e", text, folder=folder)


def planes_agree(view, array, **fields):
    """Planes across all axes of a volume z y x, whole and in part."""
    for place, axis in enumerate("zyx"):
        for index in sorted({0, array.shape[place] // 2, array.shape[place] - 1}):
            expected = numpy.take(array, index, axis=place)
            got = view.plane(axis=axis, index=index, **fields)
            assert got.dtype == expected.dtype and numpy.array_equal(got, expected), f"{fields} across {axis} at {index}"
    part = array[array.shape[0] // 3, 5:17, 7:20]
    got = view.plane(axis="z", index=array.shape[0] // 3, y=5, x=7, h=part.shape[0], w=part.shape[1], **fields)
    assert numpy.array_equal(got, part), fields


@test
def planes_of_every_format_are_those_of_the_array(folder):
    array = save(folder, "a.npy", RANDOM.integers(0, 60000, (21, 150, 90), dtype=numpy.uint16))
    names = ["a.npy", "a.tif", "a.nii", "a.nii.gz", "a.nrrd", "a.mha", "a.mrc", "a.vti", "a.npz", "a.zarr", "sharded.zarr",
             "small.zarr", "a.h5"]
    options = {"a.tif": 'compression = "deflate"', "sharded.zarr": "chunk = [8, 32, 32], shard = [16, 64, 64], levels = 1",
               "small.zarr": "chunk = [7, 20, 33], levels = 1", "a.h5": "chunk = [4, 64, 64]"}
    wanted = "\n".join(f'write(a, "{name}"{", " + options[name] if name in options else ""})' for name in names[1:])
    write(folder, f'a = read("a.npy")\n{wanted}')
    with View(*names, folder=folder) as view:
        images = view.json("/api/session")["images"]
        assert [image["name"] for image in images] == names
        for image in images:
            assert image["shape"] == [21, 150, 90] and image["axes"] == ["z", "y", "x"], image
            planes_agree(view, array, image=image["id"])
            whole = view.voxels("/api/volume", image=image["id"], level=0)
            assert numpy.array_equal(whole, array), image["name"]


@test
def pictures_and_colours_are_sent_pixel_by_pixel(folder):
    grey = save(folder, "g.npy", RANDOM.integers(0, 255, (40, 70), dtype=numpy.uint8))
    colour = save(folder, "c.npy", RANDOM.integers(0, 255, (40, 70, 3), dtype=numpy.uint8))
    write(folder, 'g = read("g.npy")\nwrite(g, "g.png")\nwrite(g, "g.pgm")\n'
                  'c = read("c.npy") |> name_axes("y x c")\nwrite(c, "c.png")\nwrite(c, "c.tif")\nwrite(c, "c.ppm")')
    with View("g.png", "g.pgm", "c.png", "c.tif", "c.ppm", folder=folder) as view:
        images = view.json("/api/session")["images"]
        assert [image["rgb"] for image in images] == [False, False, True, True, True]
        for image in range(2):
            assert numpy.array_equal(view.plane(image=image, axis="z", index=0), grey)
        for image in range(2, 5):
            assert numpy.array_equal(view.plane(image=image, axis="z", index=0), colour)
            part = view.plane(image=image, axis="z", index=0, y=3, x=9, h=20, w=11)
            assert numpy.array_equal(part, colour[3:23, 9:20])
        assert view.json("/api/value", image=2, y=3, x=4)["value"] == colour[3, 4].tolist()


@test
def colours_in_a_file_without_names_of_axes_are_found(folder):
    flat = save(folder, "flat.npy", RANDOM.integers(0, 255, (40, 50, 3), dtype=numpy.uint8))
    solid = save(folder, "solid.npy", RANDOM.integers(0, 255, (6, 40, 50, 3), dtype=numpy.uint8))
    save(folder, "channels.npy", RANDOM.integers(0, 255, (3, 6, 40, 50), dtype=numpy.uint8))
    save(folder, "narrow.npy", RANDOM.integers(0, 255, (40, 4, 3), dtype=numpy.uint8))
    with View("flat.npy", "solid.npy", "channels.npy", "narrow.npy", folder=folder) as view:
        told = [(image["axes"], image["rgb"]) for image in view.json("/api/session")["images"]]
        assert told == [(["y", "x", "c"], True), (["z", "y", "x", "c"], True), (["c", "z", "y", "x"], False),
                        (["z", "y", "x"], False)], told
        assert numpy.array_equal(view.plane(image=0), flat)
        assert numpy.array_equal(view.plane(image=1, axis="z", index=4), solid[4])
        assert numpy.array_equal(view.plane(image=1, axis="x", index=7), solid[:, :, 7])


@test
def every_type_of_voxel_arrives(folder):
    shape = (5, 33, 20)
    arrays = {}
    for kind in "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64".split():
        arrays[kind] = save(folder, f"{kind}.npy", (RANDOM.normal(0, 100, shape)).astype(kind))
    with View(*[f"{kind}.npy" for kind in arrays], folder=folder) as view:
        for image, (kind, array) in enumerate(arrays.items()):
            sent = array.view(numpy.uint8) if kind == "bool" else array
            planes_agree(view, sent, image=image)
            assert numpy.array_equal(view.plane(image=image, index=2, **{"as": "float32"}), array[2].astype(numpy.float32)), kind
        low = view.plane(image=list(arrays).index("int64"), index=1, **{"as": "int32"})
        assert low.dtype == numpy.int32 and numpy.array_equal(low, arrays["int64"][1].astype(numpy.int32))


@test
def complex_voxels_are_amplitude_and_phase(folder):
    array = save(folder, "z.npy", RANDOM.normal(size=(4, 30, 40)).astype(numpy.float32).view(numpy.complex64))
    with View("z.npy", folder=folder) as view:
        assert view.json("/api/session")["images"][0]["complex"] is True
        amplitude, phase = view.plane(index=2, part="amplitude"), view.plane(index=2, part="phase")
        assert amplitude.dtype == numpy.float32 and numpy.allclose(amplitude, abs(array[2]), rtol=1e-6)
        assert numpy.allclose(phase, numpy.angle(array[2]), atol=1e-6)
        assert numpy.array_equal(view.plane(index=2), amplitude)
        assert "amplitude or phase" in view.json("/api/plane", status=400, part="real")["error"]


@test
def time_and_channels_are_chosen(folder):
    array = save(folder, "a.npy", RANDOM.integers(0, 1000, (3, 2, 6, 40, 30), dtype=numpy.uint16))
    write(folder, 'a = read("a.npy") |> name_axes("t c z y x")\nwrite(a, "a.zarr", levels = 1)\nwrite(a, "a.ome.tif")')
    with View("a.zarr", "a.ome.tif", folder=folder) as view:
        for image in range(2):
            assert view.json("/api/session")["images"][image]["axes"] == ["t", "c", "z", "y", "x"]
            for t in range(3):
                for c in range(2):
                    planes_agree(view, array[t, c], image=image, t=t, c=c)
        said = view.json("/api/plane", status=400, image=0, t=3)["error"]
        assert "t = 3: must be a whole number from 0 to 2" in said, said


@test
def levels_are_those_of_the_pyramid(folder):
    array = save(folder, "a.npy", RANDOM.integers(0, 60000, (70, 200, 300), dtype=numpy.uint16))
    write(folder, 'write(read("a.npy"), "a.zarr", chunk = [16, 32, 32], levels = 3)')
    write(folder, 'write(read("a.zarr", path = "1"), "one.npy")\nwrite(read("a.zarr", path = "2"), "two.npy")')
    with View("a.zarr", folder=folder) as view:
        levels = view.json("/api/session")["images"][0]["levels"]
        finer = [array, numpy.load(pathlib.Path(folder) / "one.npy"), numpy.load(pathlib.Path(folder) / "two.npy")]
        for level, expected in enumerate(finer):
            assert levels[level]["shape"] == list(expected.shape), levels
            planes_agree(view, expected, level=level)
        assert levels[1]["factors"] == [round(a / b) for a, b in zip(array.shape, finer[1].shape)]


@test
def levels_of_an_ome_tiff_are_used(folder):
    array = save(folder, "a.npy", RANDOM.integers(0, 60000, (3, 700, 900), dtype=numpy.uint16))
    colour = save(folder, "c.npy", RANDOM.integers(0, 255, (600, 800, 3), dtype=numpy.uint8))
    write(folder, 'write(read("a.npy") |> name_axes("c y x"), "a.ome.tif", levels = 2)\n'
                  'write(read("c.npy") |> name_axes("y x c"), "c.ome.tif", levels = 2)')
    write(folder, 'write(read("a.ome.tif", path = "level 1"), "one.npy")\nwrite(read("c.ome.tif", path = "level 1"), "two.npy")')
    one, two = (numpy.load(pathlib.Path(folder) / f"{name}.npy") for name in ("one", "two"))
    with View("a.ome.tif", "c.ome.tif", folder=folder) as view:
        levels = view.json("/api/session")["images"][0]["levels"]
        assert [level["shape"] for level in levels] == [[3, 700, 900], [3, 350, 450], [3, 175, 225]], levels
        assert numpy.array_equal(view.plane(image=0, level=0, c=1), array[1])
        assert numpy.array_equal(view.plane(image=0, level=1, c=2), one[2])
        rows, columns = numpy.minimum(numpy.arange(175) * 2 + 1, 349), numpy.minimum(numpy.arange(225) * 2 + 1, 449)
        assert numpy.array_equal(view.plane(image=0, level=2, c=2), one[2][rows][:, columns])
        assert numpy.array_equal(view.plane(image=1, level=0), colour) and numpy.array_equal(view.plane(image=1, level=1), two)


@test
def a_file_without_a_pyramid_is_seen_whole_by_every_nth_voxel(folder):
    array = save(folder, "a.npy", RANDOM.integers(0, 60000, (30, 700, 900), dtype=numpy.uint16))
    write(folder, 'write(read("a.npy"), "a.tif", compression = "deflate")')
    with View("a.npy", "a.tif", folder=folder) as view:
        levels = view.json("/api/session")["images"][0]["levels"]
        assert [level["factors"] for level in levels] == [[1, 1, 1], [1, 2, 2], [1, 4, 4]], levels
        for image in range(2):
            for level, step in enumerate((1, 2, 4)):
                rows = numpy.minimum(numpy.arange(-(-700 // step)) * step + step // 2, 699)
                columns = numpy.minimum(numpy.arange(-(-900 // step)) * step + step // 2, 899)
                expected = array[:, rows][:, :, columns]
                assert levels[level]["shape"] == list(expected.shape)
                planes_agree(view, expected, image=image, level=level)
                assert numpy.array_equal(view.voxels("/api/volume", image=image, level=level), expected)


@test
def volumes_are_scaled_to_bytes(folder):
    array = save(folder, "a.npy", RANDOM.normal(100, 40, (10, 20, 30)).astype(numpy.float32))
    array[0, 0, 0] = numpy.nan
    save(folder, "a.npy", array)
    with View("a.npy", folder=folder) as view:
        got = view.voxels("/api/volume", level=0, low=50, high=150, **{"as": "uint8"})
        expected = numpy.rint(numpy.clip((array.astype(float) - 50) * 2.55, 0, 255))
        expected[0, 0, 0] = 0
        assert abs(got.astype(float) - expected).max() <= 1 and (got != expected).mean() < 0.01


@test
def statistics_are_those_of_the_array(folder):
    array = RANDOM.normal(10, 3, (20, 60, 50)).astype(numpy.float32)
    array[0, 0, :7] = numpy.nan
    array[0, 1, 0] = numpy.inf
    save(folder, "a.npy", array)
    with View("a.npy", folder=folder) as view:
        told = view.json("/api/statistics", image=0)
        finite = array[numpy.isfinite(array)]
        assert told["nan"] == 7 and numpy.allclose([told["min"], told["max"]], [finite.min(), finite.max()], rtol=1e-12), told
        assert numpy.allclose([told["low"], told["high"]], numpy.quantile(finite, [0.001, 0.999]), atol=0.05), told
        counts, _ = numpy.histogram(finite, 256, (finite.min(), finite.max()))
        assert sum(told["histogram"]["counts"]) == finite.size
        assert abs(numpy.array(told["histogram"]["counts"]) - counts).sum() <= 4
        assert told["from"] == "all voxels"
        assert view.json("/api/value", z=0, y=0, x=0)["value"] == "NaN"


@test
def numbers_of_objects_are_told_from_pictures(folder):
    """By name, type and whether neighbours are equal; a table without --labels finds them."""
    rng = numpy.random.default_rng(3)
    labels = numpy.kron(rng.integers(0, 9, (12, 16)), numpy.ones((30, 30))).astype(int)
    noise, mask = rng.integers(0, 4000, labels.shape), (labels > 4) * 255
    ramp = numpy.add.outer(numpy.arange(360), numpy.arange(480))
    cases = [("cells.npy", labels, "uint8", True), ("a.npy", labels, "uint16", True), ("b.npy", labels, "int32", True),
             ("labels.npy", labels * 1000, "int64", True), ("My_Seg.npy", labels, "uint8", True),
             ("c.npy", labels, "float32", False), ("d.npy", -labels, "int16", False), ("e.npy", noise, "uint16", False),
             ("f.npy", noise, "int32", False), ("mask.npy", mask, "uint8", False), ("g.npy", ramp, "uint16", False),
             ("labels_noise.npy", noise, "uint16", False), ("h.npy", labels > 4, "bool", False)]
    for name, array, dtype, _ in cases:
        save(folder, name, array.astype(dtype))
    with View(*(name for name, *_ in cases), folder=folder) as view:
        told = [view.json("/api/statistics", image=k)["objects"] for k in range(len(cases))]
    wrong = [(case[0], case[2]) for case, found in zip(cases, told) if found != case[3]]
    assert not wrong, wrong
    pathlib.Path(folder, "t.csv").write_text("label,area\n1,5\n2,6\n")
    with View("e.npy", "b.npy", "--table", "t.csv", folder=folder) as view:
        session = view.json("/api/session")
        assert [image["role"] for image in session["images"]] == ["image", "labels"]
        assert session["tables"][0]["labels"] == 1, session["tables"]
    with View("e.npy", "b.npy", folder=folder) as view:
        assert [image["role"] for image in view.json("/api/session")["images"]] == ["image", "image"]


@test
def one_voxel_and_empty_images_are_shown(folder):
    save(folder, "one.npy", numpy.array([[[7]]], numpy.uint8))
    save(folder, "line.npy", numpy.arange(12, dtype=numpy.int16))
    save(folder, "flat.npy", numpy.zeros((4, 5), numpy.float32))
    with View("one.npy", "line.npy", "flat.npy", folder=folder) as view:
        assert view.plane(image=0).tolist() == [[7]]
        assert view.json("/api/statistics", image=0)["max"] == 7
        assert view.plane(image=1).tolist() == [list(range(12))]
        told = view.json("/api/statistics", image=2)
        assert told["min"] == told["max"] == 0 and sum(told["histogram"]["counts"]) == 20
        assert view.plane(image=2, h=0).shape == (0, 5)
        assert view.json("/api/value", image=2, y=1, x=2)["value"] == 0
    save(folder, "empty.npy", numpy.zeros((0, 5), numpy.float32))
    said = run("view", "empty.npy", folder=folder, code=None)
    assert said.returncode == 2 and "empty.npy" in said.stderr, said


@test
def only_what_is_seen_is_read(folder):
    save(folder, "a.npy", RANDOM.integers(0, 255, (256, 512, 512), dtype=numpy.uint8))
    write(folder, 'write(read("a.npy"), "a.zarr", chunk = 64, levels = 1)')
    for name in ("a.npy", "a.zarr"):
        with View(name, folder=folder) as view:
            def bytes_read():
                return int(pathlib.Path(f"/proc/{view.process.pid}/io").read_text().split()[1])
            view.json("/api/session")
            before = bytes_read()
            view.plane(index=70, y=100, x=100, h=50, w=50)
            assert bytes_read() - before < 3e6, (name, bytes_read() - before)  # of 67 MB
            view.plane(index=71)
            assert bytes_read() - before < 40e6, (name, bytes_read() - before)  # a layer of chunks, for it and for those ahead


@test
def a_file_that_is_replaced_is_read_anew(folder):
    first = save(folder, "a.npy", numpy.full((4, 20, 30), 1, numpy.uint16))
    with View("a.npy", folder=folder) as view:
        assert numpy.array_equal(view.plane(index=1), first[1])
        second = numpy.full((6, 25, 30), 2, numpy.uint16)
        numpy.save(pathlib.Path(folder) / "b.npy", second)
        os.replace(pathlib.Path(folder) / "b.npy", pathlib.Path(folder) / "a.npy")
        assert view.json("/api/session")["images"][0]["shape"] == [6, 25, 30]
        assert numpy.array_equal(view.plane(index=5), second[5])


@test
def a_file_that_is_gone_is_said_to_be(folder):
    save(folder, "a.npy", numpy.zeros((4, 20, 30), numpy.uint16))
    kept = save(folder, "b.npy", numpy.ones((4, 20, 30), numpy.uint16))
    with View("a.npy", "b.npy", folder=folder) as view:
        os.unlink(pathlib.Path(folder) / "a.npy")
        said = view.json("/api/plane", status=404, image=0, index=0)["error"]
        assert "a.npy" in said and "No such file" in said, said
        images = view.json("/api/session")["images"]
        assert "a.npy" in images[0]["error"] and images[1]["shape"] == [4, 20, 30]
        assert numpy.array_equal(view.plane(image=1, index=0), kept[0])


@test
def a_dataset_inside_of_a_file_is_chosen(folder):
    one, two = RANDOM.integers(0, 99, (3, 20, 30), dtype=numpy.uint8), RANDOM.normal(size=(4, 40, 300)).astype(numpy.float32)
    numpy.savez(pathlib.Path(folder) / "a.npz", one=one, two=two)
    for name, array in (("one", one), ("two", two)):
        with View("a.npz", "--path", name, folder=folder) as view:
            planes_agree(view, array)
            assert numpy.array_equal(view.voxels("/api/volume", level=0), array)
    said = run("view", "a.npz", folder=folder, code=2).stderr
    assert "one" in said and "two" in said, said
    assert "three" in run("view", "a.npz", "--path", "three", folder=folder, code=2).stderr


@test
def collections_are_seen_item_by_item(folder):
    arrays = [save(folder, f"s{k}.npy", RANDOM.integers(0, 99, (3, 10 + k, 12), dtype=numpy.uint8)) for k in range(3)]
    with View("s*.npy", folder=folder) as view:
        [image] = view.json("/api/session")["images"]
        assert image["collection"] == ["s0.npy", "s1.npy", "s2.npy"]
        for item, array in enumerate(arrays):
            assert view.json("/api/image", image=0, item=item)["shape"] == list(array.shape)
            assert numpy.array_equal(view.plane(item=item, index=1), array[1])
        assert "items 0 to 2" in view.json("/api/plane", status=400, item=3)["error"]


@test
def a_folder_is_the_collection_of_its_images(folder):
    place = pathlib.Path(folder, "plate")
    place.mkdir()
    for k, name in enumerate(("b.npy", "a.npy", ".hidden.npy")):
        save(place, name, numpy.full((4, 5), k, "u1"))
    (place / "notes.txt").write_text("none of them")
    (place / "t.csv").write_text("label\n1\n")
    with View("plate", folder=folder) as view:
        image, = view.json("/api/session")["images"]
        assert image["collection"] == ["a.npy", "b.npy"], image
        assert (view.plane(image=0, axis="z", index=0, item=1) == 0).all()
    (place / "a.npy").unlink()
    (place / "b.npy").unlink()
    run("view", "plate", folder=folder, code=2)


@test
def spacing_orientation_and_channels_are_told(folder):
    save(folder, "a.npy", RANDOM.integers(0, 99, (5, 6, 7), dtype=numpy.int16))
    import nibabel
    affine = numpy.array([[-0.5, 0, 0, 1], [0, 0.6, 0, 2], [0, 0, -2, 3], [0, 0, 0, 1]])
    nibabel.save(nibabel.Nifti1Image(RANDOM.integers(0, 99, (7, 6, 5)).astype(numpy.int16), affine),
                 pathlib.Path(folder) / "a.nii.gz")
    with View("a.nii.gz", "a.npy", folder=folder) as view:
        nifti, plain = view.json("/api/session")["images"]
        assert numpy.allclose(nifti["spacing"], [2, 0.6, 0.5]) and nifti["unit"] in ("mm", None), nifti
        assert nifti["orientation"] == ["I", "A", "L"], nifti["orientation"]
        assert plain["spacing"] is None and plain["orientation"] is None


@test
def the_examples_of_the_page_of_the_manual_are_shown(folder):
    lines = 0
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs" / "view.md").read_text(), re.M | re.S):
        if language == "fov":
            (pathlib.Path(folder) / re.match(r"# (\S+\.fov)", text)[1]).write_text(text)
        for line in text.splitlines():
            if language == "console" and line.startswith("$ fovea "):
                run(*shlex.split(line)[2:], folder=folder)
            elif language == "sh" and line.startswith("fovea view "):
                lines += 1
                with View(*shlex.split(line)[2:], folder=folder) as view:
                    session = view.json("/api/session")
                    assert session["images"] and not any("error" in image for image in session["images"]), line
                    assert view.plane(image=0, index=0).size > 0
    assert lines >= 5, lines


@test
def what_cannot_be_shown_is_refused_in_plain_words(folder):
    save(folder, "a.npy", numpy.zeros((2, 3000, 3000), numpy.uint8))
    cases = [((), "FILE"), (("missing.tif",), "missing.tif"), (("a.npy", "--port", "99999"), "port"),
             (("a.npy", "--listen", "example.org"), "no address in digits"), (("a.npy", "--labels", "no.npy"), "no.npy")]
    for arguments, word in cases:
        said = run("view", *arguments, folder=folder, code=2).stderr
        assert word in said, said
    with View("a.npy", folder=folder) as view:
        for fields, word in [({"axis": "q"}, "z, y or x"), ({"index": 2}, "from 0 to 1"), ({"level": 99}, "level = 99"),
                             ({"as": "text"}, "float32"), ({"w": 4000}, "w = 4000"), ({"x": -1}, "x = -1"),
                             ({"h": "1e3"}, "h = 1e3")]:
            assert word in view.json("/api/plane", status=400, **fields)["error"], fields
        assert "no such image" in view.json("/api/plane", status=404, image=1)["error"]
    save(folder, "wide.npy", numpy.zeros((5000, 4000), numpy.uint8))
    with View("wide.npy", folder=folder) as view:
        assert "coarser level" in view.json("/api/plane", status=400)["error"]
        assert view.plane(level=1).shape == (2500, 2000)


if __name__ == "__main__":
    main()
