"""What goes wrong on the first day with a stream is told, and ends."""
import io
import pathlib
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test, wait_for

try:
    import numpy
except ImportError:
    numpy = None

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
    assert "watch:incoming takes those" in stream(folder, "--bind", "scans=watch:incoming/*.tif", code=2)


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


def lines(here, file="means.csv"):
    """The header, and the rows in their order."""
    text = (here / file).read_text().splitlines()
    return text[:1] + sorted(text[1:])


@test
def what_the_text_reads_beside_frames_is_missed_before_any_frame_is_lost(folder):
    here = begin(folder, "a.tif", "b.tif")
    for dark in ('read("dark/*.tif")', 'read("dark/x.tif")'):
        (here / "p.fov").write_text(f'scans = read("scans/*.tif")\nwrite(mean(scans - {dark}), "means.csv")\n')
        told = stream(folder, "--bind", "scans=watch:incoming", "--once", code=2)
        assert "line 2" in told and "dark/" in told, told
    run("run", "-q", "-e", 'phantom("cells", [32, 32]) * 0 |> write("dark/x.tif")', folder=folder)
    assert "2 of 2 frames" in stream(folder, "--bind", "scans=watch:incoming", "--once")


@test
def too_little_memory_is_told_before_any_frame_is_lost(folder):
    here = begin(folder, "a.tif", "b.tif")
    told = stream(folder, "--bind", "scans=watch:incoming", "--once", "--memory", "1M", code=2)
    assert "at least --memory" in told and "leave 0 MiB" in told, told
    assert "2 of 2 frames" in stream(folder, "--bind", "scans=watch:incoming", "--once")
    assert len(lines(here)) == 3


@test
def half_a_file_that_comes_first_fails_alone(folder):
    here = begin(folder, "b.tif")
    (here / "incoming" / "a.tif").write_bytes((here / "incoming" / "b.tif").read_bytes()[:300])
    told = stream(folder, "--bind", "scans=watch:incoming", "--once", "--workers", "1", code=1)
    assert "1 of 2 frames done" in told, told


@test
def a_table_that_was_removed_begins_anew(folder):
    here = begin(folder, "a.tif")
    stream(folder, "--bind", "scans=watch:incoming", "--once")
    (here / "means.csv").unlink()
    run("run", "-q", "-e", 'phantom("cells", [32, 32]) |> write("incoming/b.tif")', folder=folder)
    stream(folder, "--bind", "scans=watch:incoming", "--once")
    head, row = lines(here)
    assert head == "item,path,mean" and row.startswith("b,incoming/b.tif,"), (head, row)


@test
def a_frame_whose_table_has_other_columns_fails_and_the_others_go_on(folder):
    here = begin(folder, "a.tif", "c.tif")
    run("run", "-q", "-e", 'phantom("cells", [4, 32, 32]) |> write("incoming/b.tif")', folder=folder)
    (here / "p.fov").write_text('s = read("scans/*.tif")\nt = measure(label(s > 100), s)\nwrite(t, "all.csv")\n'
                                'write(t, "all.db", table = "cells")\n')
    told = stream(folder, "--bind", "s=watch:incoming", "--once", "--workers", "1", code=1)
    assert "b.tif: its table has other columns than that of a" in told and "2 of 3 frames done" in told, told
    run("run", "-q", "-e", 'phantom("cells", [5, 32, 32]) |> write("incoming/d.tif")', folder=folder)
    told = stream(folder, "--bind", "s=watch:incoming", "--once", code=1)
    assert "d.tif: its table has other columns than the rows that are in all.csv" in told, told
    head, *rows = lines(here, "all.csv")
    assert "centroid_z" not in head and {row.split(",")[0] for row in rows} == {"a", "c"}, (head, rows)
    assert all(row.count(",") == head.count(",") for row in rows), rows
    with sqlite3.connect(here / "all.db") as database:
        assert {item for item, in database.execute("SELECT item FROM cells")} == {"a", "c"}


@test
def rows_of_another_text_are_told_and_stay(folder):
    here = begin(folder, "a.tif")
    assert "rows already" not in stream(folder, "--bind", "scans=watch:incoming", "--once")
    (here / "p.fov").write_text(TEXT.replace("mean(scans)", "mean(scans + 1)"))
    told = stream(folder, "--bind", "scans=watch:incoming", "--once")
    assert "means.csv has rows already, which stay there" in told, told
    assert len(lines(here)) == 3
    run("run", "-q", "-e", 'phantom("cells", [32, 32]) |> write("incoming/b.tif")', folder=folder)
    assert "rows already" not in stream(folder, "--bind", "scans=watch:incoming", "--once")


@test
def a_scan_that_nothing_completes_is_told(folder):
    begin(folder, "s_0.tif", "s_1.tif")
    told = stream(folder, "--bind", "scans=watch:incoming", "--scan", "z", "--limit", "2")
    assert "scan s is not complete: 2 frames of it wait" in told and "--count, --silence" in told, told
    told = stream(folder, "--bind", "scans=watch:incoming", "--scan", "z", "--count", "3", "--limit", "2")
    assert "not complete" in told and "--silence" not in told, told


@test
def a_folder_that_goes_away_is_waited_for(folder):
    here = begin(folder, "a.tif", "b.tif")
    process = subprocess.Popen([FOVEA, "stream", "p.fov", "--bind", "scans=watch:incoming"], cwd=folder, stderr=subprocess.PIPE,
                               text=True)
    try:
        wait_for("both frames", lambda: (here / "means.csv").exists() and len(lines(here)) == 3)
        (here / "incoming").rename(here / "away")
        assert "incoming cannot be looked into" in process.stderr.readline()
        (here / "incoming").mkdir()
        (here / "away" / "a.tif").rename(here / "incoming" / "c.tif")
        wait_for("the frame that came then", lambda: len(lines(here)) == 4)
    finally:
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and "3 of 3 frames" in told, told


def pipe(folder, *images, code=0):
    out = io.BytesIO()
    for image in images:
        numpy.save(out, image)
    done = subprocess.run([FOVEA, "stream", "p.fov", "--bind", "scans=-"], cwd=folder, input=out.getvalue(), capture_output=True,
                          timeout=600, check=False)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done.stderr.decode()


@test
def arrays_as_numpy_saves_them_come_through_a_pipe(folder):
    if numpy is None:
        raise Skip("no numpy")
    here, image = begin(folder), numpy.arange(12.0).reshape(3, 4)
    pipe(folder, image.T, image.astype(">i2"), image.astype("float16"), image.astype("uint8"))
    assert [float(row.split(",")[2]) for row in lines(here)[1:]] == [5.5] * 4, lines(here)
    assert "frame 1 of standard input: this NPY array cannot be a frame" in pipe(folder, image, numpy.array(3.0), code=2)


@test
def frames_of_a_pipe_that_begin_to_count_anew_are_told(folder):
    if numpy is None:
        raise Skip("no numpy")
    begin(folder)
    image = numpy.ones((3, 4), "uint8")
    assert "done before" not in pipe(folder, image)
    told = pipe(folder, image, image)
    assert "frame-000000, which was done before" in told and "fovea-key" in told and "1 of 2 frames done" in told, told


main()
