"""Files of electron microscopy, ITK, teem and the web, as their own libraries write and read them."""
import gzip
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np

from fovea_test import Skip, data, main, run, test


def peer(name):
    """A library to compare with; skips where there is none."""
    try:
        return __import__(name)
    except ImportError as error:
        raise Skip(f"no {name} here: {error}") from error


def volume(dtype, shape=(5, 6, 7), seed=1):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 100, size=shape).astype(dtype)


def convert(folder, source, target, *options):
    run("convert", "-q", "--overwrite", source, target, *options, folder=folder)


@test
def mrcfile_reads_what_fovea_writes_and_fovea_what_mrcfile_writes(folder):
    mrcfile = peer("mrcfile")
    for number, dtype in enumerate(("int8", "int16", "uint16", "float32", "float16")):
        image = volume(dtype)
        name = f"peer{number}.mrc" + (".gz" if number == 3 else "")
        with mrcfile.new(os.path.join(folder, name), compression="gzip" if number == 3 else None) as file:
            file.set_data(image)
            file.voxel_size = (2.5, 3, 4)
        convert(folder, name, "back.npy")
        assert np.array_equal(np.load(os.path.join(folder, "back.npy")), image.astype("float32") if dtype == "float16" else image)
        if dtype == "float16":
            continue
        np.save(os.path.join(folder, "mine.npy"), image)
        convert(folder, name, "mine.mrc")
        with mrcfile.open(os.path.join(folder, "mine.mrc")) as file:
            assert file.data.dtype == image.dtype and np.array_equal(file.data, image)
            assert np.allclose([file.voxel_size.x, file.voxel_size.y, file.voxel_size.z], (2.5, 3, 4))
        assert mrcfile.validate(os.path.join(folder, "mine.mrc"), print_file=open(os.devnull, "w", encoding="utf-8"))


@test
def mrc_keeps_bytes_as_the_least_mode_that_holds_them(folder):
    mrcfile = peer("mrcfile")
    np.save(os.path.join(folder, "a.npy"), volume("uint8"))
    for name in ("a.mrc", "a.rec.gz"):
        convert(folder, "a.npy", name)
        with mrcfile.open(os.path.join(folder, name)) as file:
            assert file.data.dtype == np.uint16 and np.array_equal(file.data, volume("uint8"))


@test
def a_region_of_the_real_map_is_what_mrcfile_reads(folder):
    mrcfile = peer("mrcfile")
    path = data("mrc", "EMD-3197.map")
    convert(folder, path, "part.npy", "--region", "3:9,2:15,::2")
    with mrcfile.open(path, permissive=True) as file:
        assert np.array_equal(np.load(os.path.join(folder, "part.npy")), file.data[3:9, 2:15, ::2])


def vtk_array(reader_name, path):
    """What VTK's reader of that name finds: voxels as z y x, spacing and origin as x y z."""
    vtk = peer("vtk")
    from vtk.util.numpy_support import vtk_to_numpy
    reader = getattr(vtk, reader_name)()
    reader.SetFileName(str(path))
    reader.Update()
    out = reader.GetOutput()
    x, y, z = out.GetDimensions()
    scalars = out.GetPointData().GetScalars()
    assert scalars is not None, f"VTK reads nothing from {path}"
    shape = (z, y, x) + ((scalars.GetNumberOfComponents(),) if scalars.GetNumberOfComponents() > 1 else ())
    return vtk_to_numpy(scalars).reshape(shape), out.GetSpacing(), out.GetOrigin()


@test
def vtk_reads_the_volumes_that_fovea_writes(folder):
    for dtype in ("uint8", "int16", "uint16", "int32", "float32", "float64"):
        image = volume(dtype)
        np.save(os.path.join(folder, "a.npy"), image)
        for name, compression in (("a.mha", "none"), ("a.mhd", "none"), ("a.mha", "gzip")):
            convert(folder, "a.npy", name, "--compression", compression)
            found, _, _ = vtk_array("vtkMetaImageReader", os.path.join(folder, name))
            assert found.dtype == image.dtype and np.array_equal(found, image), (dtype, name)


def read_nrrd(path):
    """Fields and voxels of an NRRD file by its definition; no library for it can be installed from Debian."""
    head, _, body = pathlib.Path(path).read_bytes().partition(b"\n\n")
    lines = head.decode().splitlines()
    assert lines[0].startswith("NRRD000")
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line and not line.startswith("#"))
    kind = {"float": "float32", "double": "float64"}.get(fields["type"], fields["type"].replace("_t", ""))
    voxels = gzip.decompress(body) if fields["encoding"] == "gzip" else body
    sizes = [int(size) for size in fields["sizes"].split()]
    assert len(sizes) == int(fields["dimension"])
    return fields, np.frombuffer(voxels, np.dtype(kind).newbyteorder("<")).reshape(sizes[::-1])


@test
def nrrd_files_are_what_the_definition_says(folder):
    for dtype in ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
        image = volume(dtype)
        np.save(os.path.join(folder, "a.npy"), image)
        for encoding, option in (("raw", "none"), ("gzip", "gzip")):
            convert(folder, "a.npy", "a.nrrd", "--compression", option)
            fields, found = read_nrrd(os.path.join(folder, "a.nrrd"))
            assert fields["encoding"] == encoding and fields["kinds"] == "space space space"
            assert fields["space directions"] == "(1,0,0) (0,1,0) (0,0,1)", fields
            assert found.dtype == image.dtype and np.array_equal(found, image), (dtype, encoding)


@test
def fovea_reads_the_meta_images_that_vtk_writes(folder):
    image = volume("int16")
    vtk, grid = vtk_grid(image)
    for compressed in (False, True):
        writer = vtk.vtkMetaImageWriter()
        writer.SetInputData(grid)
        writer.SetCompression(compressed)
        writer.SetFileName(os.path.join(folder, "v.mha"))
        writer.Write()
        convert(folder, "v.mha", "v.npy")
        assert np.array_equal(np.load(os.path.join(folder, "v.npy")), image)
        convert(folder, "v.mha", "v.nrrd", "--compression", "gzip")
        convert(folder, "v.nrrd", "w.mha")
        found, spacing, _ = vtk_array("vtkMetaImageReader", os.path.join(folder, "w.mha"))
        assert np.array_equal(found, image) and np.allclose(spacing, (0.5, 1.5, 2))


@test
def an_orientation_goes_through_nrrd_and_meta_image_unchanged(folder):
    nibabel = peer("nibabel")
    affine = np.array([[0, -2, 0, 7], [1.5, 0, 0, -3], [0, 0, 4, 11], [0, 0, 0, 1]], float)
    nibabel.Nifti1Image(volume("int16"), affine).to_filename(os.path.join(folder, "a.nii"))
    for source, target in (("a.nii", "a.nrrd"), ("a.nrrd", "a.mha"), ("a.mha", "b.nii.gz")):
        convert(folder, source, target)
    back = nibabel.load(os.path.join(folder, "b.nii.gz"))
    assert np.allclose(back.affine, affine) and np.array_equal(np.asarray(back.dataobj), volume("int16"))


@test
def pillow_and_fovea_agree_on_pgm_and_ppm(folder):
    image_module = peer("PIL.Image").Image
    grey, colour, deep = volume("uint8", (20, 30)), volume("uint8", (20, 30, 3)), volume("uint16", (20, 30)) * 500
    for name, pixels in (("g.pgm", grey), ("c.ppm", colour)):
        image_module.fromarray(pixels).save(os.path.join(folder, name))
        convert(folder, name, "back.npy")
        assert np.array_equal(np.load(os.path.join(folder, "back.npy")), pixels)
        convert(folder, name, "again-" + name)
        assert np.array_equal(np.asarray(image_module.open(os.path.join(folder, "again-" + name))), pixels)
    np.save(os.path.join(folder, "deep.npy"), deep.astype("uint16"))
    convert(folder, "deep.npy", "deep.pgm")
    assert np.array_equal(np.asarray(image_module.open(os.path.join(folder, "deep.pgm"))), deep)


@test
def raw_files_go_in_and_out(folder):
    image = volume("uint16")
    image.tofile(os.path.join(folder, "a.raw"))
    run("run", "-q", "-e", 'read("a.raw", shape = [5, 6, 7], dtype = "uint16") |> write("a.npy")', folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "a.npy")), image)
    convert(folder, "a.npy", "b_5x6x7_uint16.raw")
    assert np.array_equal(np.fromfile(os.path.join(folder, "b_5x6x7_uint16.raw"), "uint16").reshape(image.shape), image)
    convert(folder, "b_5x6x7_uint16.raw", "c.npy", "--region", "1:3,:,2:5")
    assert np.array_equal(np.load(os.path.join(folder, "c.npy")), image[1:3, :, 2:5])
    failed = run("convert", "-q", "a.raw", "d.npy", folder=folder, code=2)
    assert "shape = [" in failed.stderr, failed.stderr


def vtk_grid(image, spacing=(0.5, 1.5, 2), origin=(1, 2, 3)):
    vtk = peer("vtk")
    from vtk.util.numpy_support import numpy_to_vtk
    grid = vtk.vtkImageData()
    grid.SetDimensions(*image.shape[::-1])
    grid.SetSpacing(*spacing)
    grid.SetOrigin(*origin)
    array = numpy_to_vtk(image.ravel(), deep=True)
    array.SetName("density")
    grid.GetPointData().SetScalars(array)
    return vtk, grid


@test
def vti_goes_to_vtk_and_back(folder):
    for dtype in ("uint8", "int8", "int16", "uint16", "int32", "uint32", "float32", "float64"):
        image = volume(dtype)
        vtk, grid = vtk_grid(image)
        writer = vtk.vtkXMLImageDataWriter()
        writer.SetInputData(grid)
        writer.SetDataModeToAppended()
        writer.EncodeAppendedDataOff()
        writer.SetFileName(os.path.join(folder, "v.vti"))
        for compression in ("none", "zlib"):
            (writer.SetCompressorTypeToNone if compression == "none" else writer.SetCompressorTypeToZLib)()
            writer.Write()
            convert(folder, "v.vti", "v.npy", "--region", "1:4,:,2:6")
            assert np.array_equal(np.load(os.path.join(folder, "v.npy")), image[1:4, :, 2:6]), dtype
            convert(folder, "v.vti", "w.vti", "--compression", compression)
            found, spacing, origin = vtk_array("vtkXMLImageDataReader", os.path.join(folder, "w.vti"))
            assert found.dtype == image.dtype and np.array_equal(found, image), (dtype, compression)
            assert spacing == (0.5, 1.5, 2) and origin == (1, 2, 3)


@test
def the_pieces_of_a_pvti_are_one_image(folder):
    image = volume("float32", (9, 8, 7))
    vtk, grid = vtk_grid(image)
    writer = vtk.vtkXMLPImageDataWriter()
    writer.SetInputData(grid)
    writer.SetNumberOfPieces(4)
    writer.SetStartPiece(0)
    writer.SetEndPiece(3)
    writer.SetDataModeToAppended()
    writer.EncodeAppendedDataOff()
    writer.SetCompressorTypeToNone()
    writer.SetFileName(os.path.join(folder, "p.pvti"))
    writer.Write()
    assert len(list(pathlib.Path(folder).rglob("*.vti"))) == 4
    convert(folder, "p.pvti", "p.npy")
    assert np.array_equal(np.load(os.path.join(folder, "p.npy")), image)
    convert(folder, "p.pvti", "q.npy", "--region", "2:8,3:7,1:6")
    assert np.array_equal(np.load(os.path.join(folder, "q.npy")), image[2:8, 3:7, 1:6])


@test
def jpeg_pixels_are_those_of_pillow(folder):
    image_module = peer("PIL.Image").Image
    y, x = np.mgrid[:60, :90]
    colour = np.stack([x * 2, y * 3, x + y], axis=-1).astype("uint8")
    slow = {"progressive": True}
    for name, pixels, options in (("c.jpg", colour, {}), ("g.jpeg", colour[..., 0], {}), ("p.jpg", colour, slow)):
        path = os.path.join(folder, name)
        image_module.fromarray(pixels).save(path, quality=90, **options)
        convert(folder, name, "j.npy")
        expected = np.asarray(image_module.open(path))
        assert np.array_equal(np.load(os.path.join(folder, "j.npy")), expected), name
        convert(folder, name, "j.npy", "--region", "20:50,10:30")
        assert np.array_equal(np.load(os.path.join(folder, "j.npy")), expected[20:50, 10:30]), name
    whole = pathlib.Path(folder, "c.jpg").read_bytes()
    for size in range(0, len(whole) - 2, 97):
        pathlib.Path(folder, "cut.jpg").write_bytes(whole[:size])
        failed = run("convert", "-q", "--overwrite", "cut.jpg", "cut.npy", folder=folder, code=None)
        assert failed.returncode and "cut.jpg" in failed.stderr, (size, failed.stderr)


@test
def npz_goes_to_numpy_and_back(folder):
    for dtype in ("uint8", "int16", "float32", "float64", "complex64", "bool"):
        image = volume("uint8").astype(dtype)
        for save, name in ((np.savez, "stored.npz"), (np.savez_compressed, "deflated.npz")):
            save(os.path.join(folder, name), first=image, second=image[0])
            for path, expected in (("first", image), ("second", image[0])):
                run("run", "-q", "--overwrite", "-e", f'read("{name}", path = "{path}") |> write("n.npy")', folder=folder)
                assert np.array_equal(np.load(os.path.join(folder, "n.npy")), expected), (dtype, name, path)
        convert(folder, "n.npy", "mine.npz")
        with np.load(os.path.join(folder, "mine.npz")) as mine:
            assert list(mine) == ["arr_0"] and mine["arr_0"].dtype == image.dtype and np.array_equal(mine["arr_0"], image[0])
    failed = run("convert", "-q", "stored.npz", "x.npy", folder=folder, code=2)
    assert "several arrays, name one with path: first, second" in failed.stderr, failed.stderr
    told = run("info", "stored.npz", folder=folder).stdout
    assert "5 x 6 x 7 bool" in told, told


@test
def a_folder_of_slices_is_one_volume(folder):
    tifffile, image_module = peer("tifffile"), peer("PIL.Image").Image
    slices = volume("uint16", (12, 40, 30))
    for number, plane in enumerate(slices):  # numbers without zeros in front: 2 comes before 10
        tifffile.imwrite(os.path.join(folder, f"s{number + 1}.tif"), plane, compression="zlib" if number % 2 else None)
    run("run", "-q", "-e", 'read("s*.tif", stack = "z") |> write("all.npy")', folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "all.npy")), slices)
    convert(folder, "s*.tif", "part.npy", "--stack", "z", "--region", "3:11,5:20,::3")
    assert np.array_equal(np.load(os.path.join(folder, "part.npy")), slices[3:11, 5:20, ::3])
    colour = volume("uint8", (3, 20, 30, 3))
    for number, plane in enumerate(colour):
        image_module.fromarray(plane).save(os.path.join(folder, f"c{number}.png"))
    run("run", "-q", "-e", 'read("c*.png", stack = "t") |> write("colour.npy")', folder=folder)
    assert np.array_equal(np.load(os.path.join(folder, "colour.npy")), colour)
    tifffile.imwrite(os.path.join(folder, "s7.tif"), slices[0][:30])
    failed = run("run", "-q", "-e", 'read("s*.tif", stack = "z") |> write("bad.npy")', folder=folder, code=None)
    assert failed.returncode and "s7.tif has another shape or type than s1.tif" in failed.stderr, failed.stderr
    assert not os.path.exists(os.path.join(folder, "bad.npy"))
    failed = run("run", "-q", "-e", 'read("none*.tif", stack = "z") |> write("bad.npy")', folder=folder, code=2)
    assert 'no file matches "none*.tif"' in failed.stderr, failed.stderr


main()
