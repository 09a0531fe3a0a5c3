"""What goes wrong on the first day with a stream is told, and ends."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test

TEXT = 'scans = read("scans/*.tif")\nwrite(mean(scans), "means.csv")\n'


def begin(folder, *names):
    here = pathlib.Path(folder)
    (here / "p.fov").write_text(TEXT)
    (here / "incoming").mkdir()
    for number, name in enumerate(names):
        run("run", "-q", "-e", f'phantom("cells", [32, 32], seed = {number + 1}) |> write("incoming/{name}")', folder=folder)
    return here


def stream(folder, *options, code=0):
    return run("stream", "p.fov", *options, folder=folder, code=code).stderr


@test
def options_of_other_commands_and_a_second_binding_are_refused_with_what_is_done_instead(folder):
    begin(folder)
    told = stream(folder, "--bind", "scans=watch:incoming", "--engine", "mpi", code=2)
    assert "no --engine here" in told and "mpiexec -n 4 fovea stream" in told, told
    told = stream(folder, "--bind", "scans=watch:incoming", "--into", "there", code=2)
    assert "no --into here" in told and "another folder" in told, told
    told = stream(folder, "--bind", "scans=watch:incoming", "--bind", "darks=watch:darks", code=2)
    assert "--bind can be given once" in told and "watch:incoming" in told, told


@test
def folders_that_are_not_there_or_have_no_name_are_told(folder):
    begin(folder)
    assert "no folder nowhere" in stream(folder, "--bind", "scans=watch:nowhere", code=2)
    assert "watch:FOLDER" in stream(folder, "--bind", "scans=watch:", code=2)
    assert "watch:incoming" in stream(folder, "--bind", "scans=incoming", code=2)


@test
def files_that_do_not_fit_the_pattern_are_not_passed_over_in_silence(folder):
    here = begin(folder, "a.png")
    told = stream(folder, "--bind", "scans=watch:incoming", "--once")
    assert "fits the pattern *.tif" in told and "a.png" in told and "0 of 0 frames" in told, told
    run("run", "-q", "-e", 'phantom("cells", [32, 32]) |> write("incoming/a.tif")', folder=folder)
    told = stream(folder, "--bind", "scans=watch:incoming", "--once")
    assert "pattern" not in told and "1 of 1 frame" in told, told
    assert len((here / "means.csv").read_text().splitlines()) == 2


@test
def an_empty_file_fails_and_does_not_keep_the_stream_from_its_end(folder):
    here = begin(folder, "my image 1.tif", "my image 2.tif")
    (here / "incoming" / "empty.tif").touch()
    (here / "incoming" / "half.tif").write_bytes((here / "incoming" / "my image 1.tif").read_bytes()[:300])
    told = stream(folder, "--bind", "scans=watch:incoming", "--once", code=1)
    assert "empty.tif" in told and "half.tif" in told and "2 of 4 frames done" in told, told
    assert "my image 2" in (here / "means.csv").read_text()


@test
def an_axis_that_frames_have_is_told(folder):
    begin(folder, "s_1.tif", "s_2.tif")
    told = stream(folder, "--bind", "scans=watch:incoming", "--scan", "y", "--count", "2", "--once", code=1)
    assert "axis y already" in told and "2 malformed" in told, told
    told = stream(folder, "--bind", "scans=watch:incoming", "--preview", "every=2", code=2)
    assert "--scan AXIS" in told, told


@test
def files_that_count_from_one_are_told_that_numbers_begin_with_zero(folder):
    begin(folder, "s_1.tif", "s_2.tif")
    told = stream(folder, "--bind", "scans=watch:incoming", "--scan", "z", "--count", "2", "--once", code=1)
    assert "1 of 2 frames never came, first of all number 0" in told, told
    assert "s_2.tif: its number is 2, and the 2 frames of its scan s have the numbers 0 to 1" in told, told


main()
