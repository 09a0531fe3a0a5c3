"""mesh: areas against scikit-image's marching cubes, closed surfaces, and the files that it is written to."""
import collections
import csv
import json
import os
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import Skip, main, run, test
from scipy import ndimage
from skimage.measure import marching_cubes, mesh_surface_area

Z, Y, X = np.mgrid[:30, :34, :38]
BALL = (11 - np.sqrt((Z - 15.2) ** 2 + (Y - 16.1) ** 2 + (X - 18.7) ** 2)).astype(np.float32)


def area(folder, text):
    said = run("run", "--json", "-e", f'group({text}, "", "sum(area) as a")', folder=folder).stdout
    return json.loads(said)["values"][0][0]["a"]


def peer(image, level, spacing=(1, 1, 1), method="lewiner"):
    points, triangles, _, _ = marching_cubes(image, level, spacing=spacing, method=method)
    return mesh_surface_area(points, triangles), len(triangles)


def stl(path):
    """Corners and normals of the triangles."""
    data = pathlib.Path(path).read_bytes()
    [count] = struct.unpack("<I", data[80:84])
    triangles = np.frombuffer(data[84:], np.dtype([("normal", "<3f4"), ("corner", "<9f4"), ("more", "<u2")]))
    assert len(triangles) == count and not triangles["more"].any()
    return triangles["corner"].reshape(-1, 3, 3), triangles["normal"]


def ply(path):
    head, _, body = pathlib.Path(path).read_bytes().partition(b"end_header\n")
    points, faces = (int(n) for n in re.findall(rb"element \w+ (\d+)", head))
    place = np.frombuffer(body[:12 * points], "<f4").reshape(-1, 3)
    which = np.frombuffer(body[12 * points:], np.dtype([("n", "u1"), ("point", "<3i4")]))
    assert len(which) == faces and (which["n"] == 3).all()
    return place, which["point"]


def vtp(path):
    data = pathlib.Path(path).read_bytes()
    head, _, body = data.partition(b'<AppendedData encoding="raw">\n_')
    points, faces = (int(re.search(rb'NumberOf%s="(\d+)"' % name, head).group(1)) for name in (b"Points", b"Polys"))
    arrays = []
    for size in (12 * points, 12 * faces, 8 * faces):
        assert struct.unpack("<Q", body[:8])[0] == size
        arrays.append(body[8:8 + size])
        body = body[8 + size:]
    assert body == b"\n</AppendedData>\n</VTKFile>\n"
    assert (np.frombuffer(arrays[2], "<i8") == 3 * np.arange(1, faces + 1)).all()
    return np.frombuffer(arrays[0], "<f4").reshape(-1, 3), np.frombuffer(arrays[1], "<i4").reshape(-1, 3)


@test
def areas_are_those_of_scikit_image(folder):
    rng = np.random.default_rng(1)
    images = {"ball": (BALL, 0.25), "mask": ((BALL > 0).astype(np.uint8), 0.5), "wide": (BALL.astype(np.float64) * 1e6, 12.5),
              "grey": (np.clip(BALL * 10 + 100, 0, 255).astype(np.uint8), 100.5),
              "negative": ((BALL * 900).astype(np.int16), -7.5)}
    for name, (image, level) in images.items():
        np.save(os.path.join(folder, name + ".npy"), image)
        expected, _ = peer(image.astype(np.float64), level)
        assert abs(area(folder, f'mesh(read("{name}.npy"), level = {level})') / expected - 1) < 1e-5, name
    smooth = ndimage.gaussian_filter(rng.normal(size=(24, 26, 28)), 2).astype(np.float32)
    np.save(os.path.join(folder, "smooth.npy"), smooth)
    expected, count = peer(smooth, 0.01, method="lorensen")
    run("run", "-e", 'mesh(read("smooth.npy"), level = 0.01) |> write("smooth.stl")', folder=folder)
    corners, _ = stl(os.path.join(folder, "smooth.stl"))
    assert len(corners) == count
    assert abs(area(folder, 'mesh(read("smooth.npy"), level = 0.01)') / expected - 1) < 1e-3  # some rings are cut otherwise


@test
def spacing_and_place_are_those_of_the_image(folder):
    run("run", "-q", "-e", 'phantom("foam", [20, 24, 28], noise = 0) |> gaussian(1) |> write("a.npy")', folder=folder)
    image = np.load(os.path.join(folder, "a.npy"))
    header = ("NRRD0004\ntype: float\ndimension: 3\nsizes: 28 24 20\nencoding: raw\nendian: little\nspace dimension: 3\n"
              "space directions: (0.5,0,0) (0,0.5,0) (0,0,2)\nspace origin: (10,20,30)\n\n")
    pathlib.Path(folder, "a.nrrd").write_bytes(header.encode() + image.astype("<f4").tobytes())
    level = float(image.mean())
    expected, _ = peer(image, level, spacing=(2, 0.5, 0.5))
    assert abs(area(folder, f'mesh(read("a.nrrd"), level = {level})') / expected - 1) < 1e-3
    run("run", "-e", f'mesh(read("a.nrrd"), level = {level}) |> write("a.ply")', folder=folder)
    points, _ = ply(os.path.join(folder, "a.ply"))
    assert (points.min(0) >= [10, 20, 30]).all() and (points.max(0) <= [23.5, 31.5, 68]).all(), (points.min(0), points.max(0))


@test
def surfaces_are_closed_and_face_outwards(folder):
    """Noise has every case; each side of a triangle is that of another one, the other way round."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(12, 13, 14)).astype(np.float32)
    noise[0] = noise[-1] = -9
    noise[:, 0] = noise[:, -1] = noise[:, :, 0] = noise[:, :, -1] = -9
    np.save(os.path.join(folder, "noise.npy"), noise)
    np.save(os.path.join(folder, "ball.npy"), BALL)
    for name, inside in (("noise", None), ("ball", 4 / 3 * np.pi * 11 ** 3)):
        run("run", "-e", f'm = mesh(read("{name}.npy"), level = 0)\nwrite(m, "{name}.ply")\nwrite(m, "{name}.stl")\n'
            f'write(m, "{name}.vtp")', folder=folder)
        points, triangles = ply(os.path.join(folder, name + ".ply"))
        sides = collections.Counter()
        for triangle in triangles:
            for k in range(3):
                sides[triangle[k], triangle[(k + 1) % 3]] += 1
        assert all(sides[b, a] == count for (a, b), count in sides.items()), name
        corners, normals = stl(os.path.join(folder, name + ".stl"))
        assert (points[triangles] == corners).all() and len(np.unique(points, axis=0)) == len(points)
        other, same = vtp(os.path.join(folder, name + ".vtp"))
        assert (other == points).all() and (same == triangles).all()
        p = corners.astype(np.float64)
        volume = np.einsum("ij,ij->", p[:, 0], np.cross(p[:, 1], p[:, 2])) / 6
        assert volume > 0 and (inside is None or abs(volume / inside - 1) < 0.01), volume
        turned = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        long = np.linalg.norm(turned, axis=1) > 1e-3
        assert (np.einsum("ij,ij->i", turned, normals)[long] > 0).all()


@test
def vtk_opens_the_files_and_finds_the_same_area_and_volume(folder):
    try:
        import vtk
    except ImportError:
        raise Skip("no vtk; on Debian: apt-get install python3-vtk9") from None
    np.save(os.path.join(folder, "ball.npy"), BALL)
    run("run", "-e", 'm = mesh(read("ball.npy"), level = 0)\nwrite(m, "m.vtp")\nwrite(m, "m.ply")\nwrite(m, "m.stl")\n'
        'group(m, "", "count() as n, sum(area) as area") |> write("m.csv")', folder=folder)
    row = next(csv.DictReader(open(os.path.join(folder, "m.csv"), encoding="utf-8")))
    for ending, reader in (("vtp", vtk.vtkXMLPolyDataReader()), ("ply", vtk.vtkPLYReader()), ("stl", vtk.vtkSTLReader())):
        reader.SetFileName(os.path.join(folder, "m." + ending))
        reader.Update()
        surface, open_edges, sizes = reader.GetOutput(), vtk.vtkFeatureEdges(), vtk.vtkMassProperties()
        open_edges.SetInputData(surface)
        open_edges.FeatureEdgesOff()
        open_edges.Update()
        sizes.SetInputData(surface)
        sizes.Update()
        assert reader.GetErrorCode() == 0 and surface.GetNumberOfPolys() == int(row["n"]), ending
        assert open_edges.GetOutput().GetNumberOfCells() == 0, ending  # closed
        assert abs(sizes.GetSurfaceArea() / float(row["area"]) - 1) < 1e-5, ending
        assert abs(sizes.GetVolume() / (4 / 3 * np.pi * 11 ** 3) - 1) < 0.01, ending


@test
def each_label_has_a_surface_of_its_own(folder):
    labels = np.zeros((16, 24, 24), np.int32)
    labels[3:9, 3:10, 3:8], labels[3:9, 3:10, 8:15], labels[10:13, 12:20, 5:9] = 7, 3, 2 ** 20
    np.save(os.path.join(folder, "labels.npy"), labels)
    run("run", "-e", 'm = mesh(read("labels.npy"), each = true)\ngroup(m, "label", "count() as n, sum(area) as area") |> '
        'write("areas.csv")\nfilter(m, "label == 7") |> write("seven.stl")', folder=folder)
    rows = list(csv.DictReader(open(os.path.join(folder, "areas.csv"), encoding="utf-8")))
    assert [int(row["label"]) for row in rows] == [3, 7, 2 ** 20]
    for row in rows:
        expected, count = peer((labels == int(row["label"])).astype(np.float32), 0.5)
        assert abs(float(row["area"]) / expected - 1) < 1e-5 and int(row["n"]) == count, row
    assert len(stl(os.path.join(folder, "seven.stl"))[0]) == peer((labels == 7).astype(np.float32), 0.5)[1]


@test
def files_are_the_same_for_all_chunks_engines_and_memory(folder):
    expected = None
    text = ('a = gaussian(phantom("foam", [40, 60, 70], seed = 3), 1)\nm = mesh(a, level = 120)\nwrite(m, "m.stl")\n'
            'write(m, "m.ply")\nwrite(m, "m.vtp")\nwrite(mesh(label(a > 120), each = true), "l.csv")')
    for name, options in (("whole", []), ("odd", ["--chunk", "7x13x70"]), ("small", ["--chunk", "16", "--memory", "90M"]),
                          ("processes", ["--chunk", "20x20x20", "--engine", "processes", "--workers", "2"])):
        place = os.path.join(folder, name)
        os.makedirs(place)
        run("run", "-e", text, *options, folder=place)
        found = {file: pathlib.Path(place, file).read_bytes() for file in ("m.stl", "m.ply", "m.vtp", "l.csv")}
        expected = expected or found
        assert found == expected, name
    assert len(expected["m.stl"]) > 100000


@test
def what_cannot_be_done_is_said(folder):
    np.save(os.path.join(folder, "flat.npy"), np.zeros((4, 5, 6), np.float32))
    np.save(os.path.join(folder, "thin.npy"), BALL[15:16])
    infinite = BALL.copy()
    infinite[15, 16, 18], infinite[10, 10, 10] = np.inf, np.nan
    np.save(os.path.join(folder, "infinite.npy"), infinite)
    for name in ("flat", "thin"):
        run("run", "-e", f'mesh(read("{name}.npy")) |> write("{name}.stl")', folder=folder)
        assert len(stl(os.path.join(folder, name + ".stl"))[0]) == 0
    run("run", "-e", 'mesh(read("infinite.npy"), level = 10.5) |> write("i.ply")', folder=folder)
    assert np.isfinite(ply(os.path.join(folder, "i.ply"))[0]).all()
    for text, words in (('mesh(phantom("cells", [20, 20])) |> write("a.stl")', ("volume", "z, y, x")),
                        ('mesh(read("flat.npy"), each = true) |> write("a.stl")', ("each", "label")),
                        ('measure(label(read("flat.npy") > 1)) |> write("a.stl")', ("triangles", "mesh()")),
                        ('mean(read("flat.npy")) |> write("a.ply")', ("triangles", "number"))):
        said = run("run", "-e", text, folder=folder, code=2).stderr
        assert all(word in said for word in words), said
    for k in range(2):
        np.save(os.path.join(folder, f"b{k}.npy"), BALL + k)
    run("run", "-e", 'mesh(read("b?.npy"), level = 0) |> write("{stem}.stl")', folder=folder)
    assert len(stl(os.path.join(folder, "b1.stl"))[0]) > len(stl(os.path.join(folder, "b0.stl"))[0]) > 100
    said = run("run", "-e", 'mesh(read("b?.npy"), level = 0) |> write("all.stl")', folder=folder, code=2).stderr
    assert "{stem}" in said, said


main()
