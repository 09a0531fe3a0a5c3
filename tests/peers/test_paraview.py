"""ParaView itself opens what Fovea writes and shows it: pvbatch under Xvfb. Both are large; `scripts/bootstrap.sh paraview`
installs them, and without them these tests are skipped."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

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


class Screen:
    """An X server without a screen, on a display that nobody else has."""

    def __enter__(self):
        if not shutil.which("pvbatch") or not shutil.which("Xvfb"):
            raise Skip("no pvbatch or Xvfb; scripts/bootstrap.sh paraview installs them")
        reader, writer = os.pipe()
        command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "800x600x24", "-nolisten", "tcp", "-noreset"]
        self.server = subprocess.Popen(command,
                                       pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writer)
        with os.fdopen(reader) as line:
            self.display = line.readline().strip()
        if not self.display:
            raise Skip("Xvfb does not start here")
        return self

    def __exit__(self, *unused):
        self.server.terminate()
        self.server.wait()

    def shoot(self, folder, name):
        """Opens a file in ParaView: the numbers that it found, and the picture as an array."""
        import numpy as np  # pylint: disable=import-outside-toplevel
        pathlib.Path(folder, "shoot.py").write_text(SCRIPT)
        done = subprocess.run(["pvbatch", "shoot.py", name, f"{name}.png"], cwd=folder, stdin=subprocess.DEVNULL, timeout=500,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              env=dict(os.environ, DISPLAY=f":{self.display}", PYTHONDONTWRITEBYTECODE="1"))
        if "No module named 'paraview'" in done.stderr:
            raise Skip("pvbatch has no python3-paraview, which Debian does not let stand beside python3-vtk9")
        lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("FOUND")]
        assert done.returncode == 0 and lines, (name, done.returncode, done.stdout[-300:], done.stderr[-600:])
        run("convert", f"{name}.png", f"{name}.npy", folder=folder)
        return lines[0], np.load(pathlib.Path(folder, f"{name}.npy")).astype(int)


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
            found, pictures[name] = screen.shoot(folder, name)
            assert found[:7] == ["0", "39", "0", "29", "0", "19", "voxels"], (name, found)
            shown, blue, red = colours(pictures[name])
            assert shown > 0.15 and blue > 0.05 and red > 0.02, (name, shown, blue, red)
        for name in ("packed.vti", "parts.pvti"):
            difference = abs(pictures[name] - pictures["plain.vti"])
            assert (difference > 40).mean() < 0.01, (name, difference.max())


main()
