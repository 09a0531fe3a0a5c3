#!/usr/bin/python3
"""ParaView itself opens what Fovea writes and shows it: pvbatch under Xvfb. Both are large; `make interop` installs them, and
without them these tests are skipped."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import PATIENCE, Skip, main, run, test  # noqa: E402
from interop import PLACE, Screen, make_page_files, program, snippet  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip paraview: {missing}")
    sys.exit(0)

UNPACKED = PLACE / "paraview" / "usr" / "lib" / "python3" / "dist-packages"

SCRIPT = """
import sys
from paraview.simple import *
source = OpenDataFile(sys.argv[1])
source.UpdatePipeline()
array = source.PointData.GetArray(0)
print("FOUND", *source.GetDataInformation().GetExtent(), array.Name, *array.GetRange())
view = CreateView("RenderView")
view.ViewSize = [400, 300]
view.UseColorPaletteForBackground = 0
view.Background = [1, 1, 1]
shown = Show(source, view)
shown.SetRepresentationType("Surface")
ColorBy(shown, ("POINTS", array.Name))
shown.RescaleTransferFunctionToDataRange()
view.ResetCamera()
GetActiveCamera().Azimuth(30)
GetActiveCamera().Elevation(25)
view.ResetCamera()
Render(view)
SaveScreenshot(sys.argv[2], view)
"""


ROOT_TOO = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def batch(screen, folder, script, *arguments, before=()):
    """Runs a script in ParaView, with the words before it; what it prints."""
    program("pvbatch")
    pathlib.Path(folder, "script.py").write_text(script)
    done = subprocess.run([*before, "pvbatch", "script.py", *arguments], cwd=folder, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(UNPACKED), **ROOT_TOO,
                                   **screen.variables))
    if "No module named 'paraview'" in done.stderr:
        raise Skip("pvbatch has no python3-paraview, which Debian keeps away from python3-vtk9; make interop unpacks it")
    assert done.returncode == 0, (arguments, done.returncode, done.stdout[-300:], done.stderr[-600:])
    return done.stdout


def picture(folder, name):
    run("convert", "-q", "--overwrite", name, "picture.npy", folder=folder)
    return np.load(pathlib.Path(folder, "picture.npy")).astype(int)


def shoot(screen, folder, name):
    """Opens a file in ParaView: the numbers that it found, and the picture as an array."""
    told = batch(screen, folder, SCRIPT, name, f"{name}.png").splitlines()
    return next(line.split()[1:] for line in told if line.startswith("FOUND")), picture(folder, f"{name}.png")


def colours(picture):
    """Shares of the picture that are not background, bluish and reddish."""
    red, blue = picture[..., 0], picture[..., 2]
    return (picture[..., :3].min(2) < 200).mean(), (blue > red + 40).mean(), (red > blue + 40).mean()


@test
def paraview_opens_and_shows_vti_plain_and_compressed_and_pvti(folder):
    text = """a = phantom("foam", [20, 30, 40])
write(a, "plain.vti")
write(a, "packed.vti", compression = "zlib")
write(a[0:11], "first.vti")
write(a[10:20], "second.vti")
"""
    run("run", "-q", "-e", text, folder=folder)
    pieces = "".join(f'<Piece Extent="0 39 0 29 {extent}" Source="{name}.vti"/>'
                     for extent, name in (("0 10", "first"), ("10 19", "second")))
    # The second piece says in its own extent that it begins at 10.
    second = pathlib.Path(folder, "second.vti")
    second.write_bytes(second.read_bytes().replace(b"0 39 0 29 0 9", b"0 39 0 29 10 19"))
    pathlib.Path(folder, "parts.pvti").write_text(
        '<?xml version="1.0"?>\n<VTKFile type="PImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">'
        '<PImageData WholeExtent="0 39 0 29 0 19" GhostLevel="0" Origin="0 0 0" Spacing="1 1 1"><PPointData Scalars="voxels">'
        f'<PDataArray type="UInt8" Name="voxels" NumberOfComponents="1"/></PPointData>{pieces}</PImageData></VTKFile>')
    with Screen() as screen:
        pictures = {}
        for name in ("plain.vti", "packed.vti", "parts.pvti"):
            found, pictures[name] = shoot(screen, folder, name)
            assert found[:7] == ["0", "39", "0", "29", "0", "19", "voxels"], (name, found)
            shown, blue, red = colours(pictures[name])
            assert shown > 0.15 and blue > 0.05 and red > 0.02, (name, shown, blue, red)
        for name in ("packed.vti", "parts.pvti"):
            difference = abs(pictures[name] - pictures["plain.vti"])
            assert (difference > 40).mean() < 0.01, (name, difference.max())


@test
def two_ranks_make_a_picture_of_each_step_of_a_solver(folder):
    text = """g = parallel(range(-72, 72, 6))
p = xray(phantom("shepp-logan", [24, 64, 64]), g)
write(sirt(p, g, iterations = 12), "live.pvti", every = 4, chunk = [12, 64, 64])
"""
    run("run", "-q", "-e", text, folder=folder)
    run("view", "live.pvd", "--paraview-script", "show.py", folder=folder)
    script = pathlib.Path(folder, "show.py").read_text()
    script += """
from paraview import servermanager
print("RANKS", servermanager.ActiveConnection.GetNumberOfDataPartitions())
print("STEPS", *[int(time) for time in times])
"""
    with Screen() as screen:
        batch(screen, folder, "import paraview.simple")  # without it, one rank would wait for ever for the other
        told = batch(screen, folder, script, before=(program("mpiexec.openmpi"), "--oversubscribe", "-n", "2"))
    assert "RANKS 2" in told and "STEPS 4 8 12" in told, told[-500:]
    pictures = [picture(folder, f"live-00{n:02}.png") for n in (4, 8, 12)]
    for seen in pictures:
        assert seen.shape[:2] == (700, 900), seen.shape
        assert len(np.unique(seen[..., :3].reshape(-1, 3), axis=0)) > 1000, "nothing is seen"
    assert (abs(pictures[0] - pictures[2]).max(2) > 20).mean() > 0.005, "the first and the last step look the same"


@test
def the_snippet_of_the_page_shows_a_volume(folder):
    with Screen() as screen:
        make_page_files(folder)
        batch(screen, folder, snippet("ParaView", "python"))
        seen = picture(folder, "scan.png")
        assert len(np.unique(seen[..., :3].reshape(-1, 3), axis=0)) > 200, seen.shape


main()
