"""Streams from folders and pipes: the same results as stored data, every frame once, whatever is killed when."""
import io
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, ROOT, Skip, main, run, test, wait_for
from frames import headed
from long_stream import check_flat, sample

try:
    import numpy
except ImportError:
    numpy = None

COUNT = """scans = read("scans/*.npy")
write(gaussian(scans, 2), "out/{stem}.tif")
write(measure(label(gaussian(scans, 1) > 128), scans), "cells.db", table = "cells")
write(mean(scans), "means.csv")
"""


def frames(count, size=48, seed=0):
    if numpy is None:
        raise Skip("no numpy")
    generator = numpy.random.default_rng(seed)
    return [generator.integers(0, 256, (size, size)).astype("uint8") for _ in range(count)]


def npy(image):
    out = io.BytesIO()
    numpy.save(out, image)
    return out.getvalue()


def write_text(folder, text, name="p.fov"):
    (pathlib.Path(folder) / name).write_text(text)
    return name


def stream(folder, text, *options, stdin=b"", code=0, environment=None):
    done = subprocess.run([FOVEA, "stream", write_text(folder, text), *map(str, options)], cwd=folder, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                          env=dict(os.environ, **(environment or {})))
    said = done.stderr.decode()
    if code is not None and done.returncode != code:
        raise AssertionError(f"exit status {done.returncode}, not {code}: {said[-600:]}")
    return done.stdout.decode(), said


def put(folder, images, names="scans/a_%d.npy"):
    for i, image in enumerate(images):
        path = pathlib.Path(folder) / (names % i)
        path.parent.mkdir(exist_ok=True)
        path.with_name("." + path.name).write_bytes(npy(image))
        path.with_name("." + path.name).rename(path)


def rows(folder, file="cells.db", table="cells"):
    with sqlite3.connect(pathlib.Path(folder) / file) as database:
        return sorted(database.execute(f"SELECT * FROM {table}").fetchall())


def lines(folder, file="means.csv"):
    text = (pathlib.Path(folder) / file).read_text().splitlines()
    return text[:1] + sorted(text[1:])


def results(folder):
    files = {path.name: path.read_bytes() for path in (pathlib.Path(folder) / "out").iterdir()}
    return files, rows(folder), lines(folder)


def stored(folder, images, text=COUNT, names="scans/a_%d.npy"):
    """The folder of an ordinary run on the same images."""
    there = pathlib.Path(folder) / "stored"
    there.mkdir()
    put(there, images, names)
    run("run", "-q", write_text(there, text), folder=there)
    return there


# ---------------------------------------------------------------- the same results

@test
def a_watched_folder_gives_what_a_run_over_its_files_gives(folder):
    images = frames(12)
    put(folder, images)
    stream(folder, COUNT, "--bind", "scans=watch:scans", "--once")
    assert results(folder) == results(stored(folder, images))


@test
def frames_of_a_pipe_give_what_a_run_over_files_of_their_names_gives(folder):
    images = frames(12)
    stream(folder, COUNT, "--bind", "scans=-", stdin=b"".join(map(npy, images)))
    assert results(folder) == results(stored(folder, images, names="scans/frame-%06d.npy"))


@test
def files_that_come_while_the_stream_runs_are_taken_when_they_are_complete(folder):
    images = frames(6)
    (pathlib.Path(folder) / "scans").mkdir()
    process = subprocess.Popen([FOVEA, "stream", "-q", write_text(folder, COUNT), "--bind", "scans=watch:scans", "--limit", "6"],
                               cwd=folder)
    try:
        path = pathlib.Path(folder) / "scans" / "a_0.npy"
        bytes_ = npy(images[0])
        with open(path, "wb") as file:  # written in two parts, with a pause: half of it must not count
            file.write(bytes_[:1000])
            file.flush()
            time.sleep(0.5)
            file.write(bytes_[1000:])
        put(folder, images[1:], "scans/b_%d.npy")
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
    assert len(list((pathlib.Path(folder) / "out").glob("*.tif"))) == 6
    assert len({row[0] for row in rows(folder)} | {line.split(",")[0] for line in lines(folder)[1:]}) == 6


# ---------------------------------------------------------------- the protocol

@test
def headers_name_frames_and_what_makes_no_sense_is_put_aside_with_its_reason(folder):
    images = frames(4)
    good = headed(images[0], "beads", 7) + headed(images[1], "beads", 8)
    again = headed(images[0], "beads", 7)
    wrong = headed(images[2], "beads", 9).replace(b"48,48", b"48,47") + headed(images[2], "beads", 9, codec="huffman")
    odd = headed(images[3], "b/c", 1)
    _, said = stream(folder, COUNT, "--bind", "scans=-", "--dead", "aside", stdin=good + again + wrong + odd, code=1)
    assert "2 of 6 frames were put aside" in said, said
    assert "3 of 6 frames done" in said and "1 known already" in said and "2 malformed" in said, said
    assert {"beads-000007.tif", "beads-000008.tif"} < set(results(folder)[0])
    reasons = [path.read_text() for path in (pathlib.Path(folder) / "aside").glob("*.why")]
    assert any("2304 bytes" in text and "2256" in text for text in reasons), reasons
    assert any("huffman" in text for text in reasons), reasons
    bodies = [path.read_bytes() for path in (pathlib.Path(folder) / "aside").glob("*") if path.suffix != ".why"]
    assert bodies == 2 * [images[2].tobytes()], "the messages themselves are put aside, too"


@test
def frames_keep_their_units_and_bytes_that_are_no_image_are_told(folder):
    units = headed(frames(1)[0], "beads", 7, spacing="2,3", units="micrometer,micrometer")
    rubbish = b"fovea-key: k\nfovea-bytes: 7\n\nrubbish"
    text = 'read("scans/*.tif") |> write("{stem}.nii")'
    _, said = stream(folder, text, "--bind", "scans=-", stdin=units + rubbish, code=1)
    assert "its 7 bytes are no file of a known format; voxels alone need the headers fovea-shape" in said, said
    told = run("info", "beads-000007.nii", folder=folder).stdout
    assert "y 2, x 3 micrometer" in " ".join(told.split()), told


@test
def a_message_may_hold_several_frames(folder):
    images = frames(7)
    stack = numpy.stack(images[1:6])
    one = headed(images[0], "frame", 0) + headed(images[6], "frame", 6)
    stream(folder, COUNT, "--bind", "scans=-", stdin=one + headed(stack, "frame", 1, frames=5))
    assert results(folder) == results(stored(folder, images, names="scans/frame-%06d.npy"))


def cbor(value):
    """The few things of CBOR that a detector's messages hold; a tag is a pair ("tag", number, value)."""
    def head(major, number):
        for bits, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
            if number < 24:
                return bytes([major << 5 | number])
            if number < 1 << 8 * size:
                return bytes([major << 5 | bits]) + number.to_bytes(size, "big")
        raise ValueError(number)
    if isinstance(value, tuple):
        return head(6, value[1]) + cbor(value[2])
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(key) + cbor(value[key]) for key in value)


def literal_lz4(data):
    """A block of LZ4 that packs nothing."""
    length, more = len(data), b""
    if length >= 15:
        rest = length - 15
        more = b"\xff" * (rest // 255) + bytes([rest % 255])
    return bytes([min(length, 15) << 4]) + more + data


def blocks(image, shuffle, size=8192):
    """As the HDF5 filters lz4 and bitshuffle write them."""
    data, element = image.tobytes(), image.itemsize
    rest = len(data) % (8 * element) if shuffle else 0
    out = len(data).to_bytes(8, "big") + size.to_bytes(4, "big")
    for at in range(0, len(data) - rest, size):
        block = data[at:min(at + size, len(data) - rest)]
        if shuffle:
            bits = numpy.unpackbits(numpy.frombuffer(block, "uint8").reshape(-1, element), axis=1, bitorder="little")
            block = numpy.packbits(bits.T, axis=1, bitorder="little").tobytes()
        packed = literal_lz4(block)
        out += len(packed).to_bytes(4, "big") + packed
    return out + data[len(data) - rest:]


@test
def messages_of_a_detector_in_cbor_are_understood(folder):
    if numpy is None:
        raise Skip("no numpy")
    generator = numpy.random.default_rng(0)
    images = [generator.integers(0, 60000, (101, 53)).astype("uint16") for _ in range(3)]
    packed = [images[0].tobytes(), ("tag", 56500, ["bslz4", 2, blocks(images[1], True)]),
              ("tag", 56500, ["lz4", 2, blocks(images[2], False)])]
    messages = [{"type": "start", "series_id": 7, "number_of_images": 3, "countrate_correction_enabled": 1}]
    messages += [{"type": "image", "series_id": 7, "image_id": i, "start_time": [i, 1000],
                  "data": {"threshold_1": ("tag", 40, [[101, 53], ("tag", 69, body)])}} for i, body in enumerate(packed)]
    messages += [{"type": "end", "series_id": 7}]

    def headed_cbor(message):
        body = b"\xd9\xd9\xf7" + cbor(message)
        return f"fovea-bytes: {len(body)}\n\n".encode() + body

    text = 'scans = read("scans/*.npy")\nwrite(scans, "out/{stem}.npy")\n'
    body = headed_cbor(messages[1]).split(b"\n\n", 1)[1][:-200]
    cut = f"fovea-bytes: {len(body)}\n\n".encode() + body
    _, said = stream(folder, text, "--bind", "scans=-", stdin=b"".join(map(headed_cbor, messages)) + cut, code=1)
    for i, image in enumerate(images):
        assert numpy.array_equal(numpy.load(pathlib.Path(folder) / "out" / f"series-7-{i:06d}.npy"), image), f"image {i}"
    assert "3 of 6 frames done" in said and "1 malformed" in said, said
    text = 's = read("scans/*.npy")\nwrite(s, "scan/{stem}.npy")\n'
    stream(folder, text, "--bind", "s=-", "--scan", "t", stdin=b"".join(map(headed_cbor, messages)))
    assert numpy.array_equal(numpy.load(pathlib.Path(folder) / "scan" / "series-7.npy"), numpy.stack(images))


@test
def a_frame_larger_than_allowed_is_put_aside(folder):
    _, said = stream(folder, COUNT, "--bind", "scans=-", "--most", "1K", stdin=headed(frames(1)[0], "a", 0), code=2)
    assert "at most 1024" in said, said


@test
def a_frame_that_the_pipeline_cannot_do_does_not_stop_the_others(folder):
    images = frames(3)
    put(folder, images)
    (pathlib.Path(folder) / "scans" / "a_9.npy").write_bytes(b"no image at all")
    _, said = stream(folder, COUNT, "--bind", "scans=watch:scans", "--once", code=1)
    assert "a_9.npy" in said and "1 failed" in said and len(results(folder)[0]) == 3


# ---------------------------------------------------------------- mistakes

@test
def mistakes_of_the_binding_are_told_with_what_there_is(folder):
    def told(*options, text=COUNT):
        return stream(folder, text, *options, code=2)[1]
    assert "did you mean scans?" in told("--bind", "scnas=-")
    assert "expected NAME=ADDRESS" in told() and "no address of a stream" in told("--bind", "scans=ftp://x")
    assert "there is no folder nowhere" in told("--bind", "scans=watch:nowhere")
    assert "--scan" in told("--bind", "scans=-", "--count", "3")
    assert "reads no file" in told("--bind", "x=-", text="max(ones([3, 3]))")


@test
def results_of_all_items_and_tables_that_cannot_grow_are_refused(folder):
    image = npy(frames(1)[0])
    whole = 'scans = read("scans/*.npy")\nwrite(project(scans, "item", "mean"), "mean.tif")\n'
    _, said = stream(folder, whole, "--bind", "scans=-", stdin=image, code=2)
    assert "all items together" in said, said
    grows = 'scans = read("scans/*.npy")\nwrite(mean(scans), "means.arrows")\n'
    _, said = stream(folder, grows, "--bind", "scans=-", stdin=image, code=2)
    assert "cannot grow" in said, said


# ---------------------------------------------------------------- kills

@test
def a_kill_at_any_step_of_a_commit_loses_nothing_and_doubles_nothing(folder):
    images = frames(8)
    expected = results(stored(folder, images))
    for point in ["stream.named", "stream.commit", "stream.apply", "stream.applied", "table.commit", "rename", "ledger"]:
        for number in (1, 2):
            here = pathlib.Path(folder) / f"{point}-{number}"
            put(here.mkdir() or here, images)
            killed = number == 1 and point.startswith("stream.")
            stream(here, COUNT, "--bind", "scans=watch:scans", "--once", "--workers", 2, code=137 if killed else None,
                   environment={"FOVEA_FAULT": f"{point}:{number}"})
            stream(here, COUNT, "--bind", "scans=watch:scans", "--once")
            assert results(here) == expected, f"after a kill at {point}:{number}"


@test
def random_kills_account_for_every_frame_once(folder):
    count, kills = 120, 8
    generator = random.Random(5)
    images = frames(count, size=32)
    expected = results(stored(folder, images))
    (pathlib.Path(folder) / "scans").mkdir()
    sent, ended = 0, 0
    command = [FOVEA, "stream", "-q", write_text(folder, COUNT), "--bind", "scans=watch:scans", "--once"]
    while ended < kills:
        for image in images[sent:sent + 15]:
            put(folder, [image], f"scans/a_{sent}%.0s.npy")
            sent += 1
        process = subprocess.Popen(command, cwd=folder)
        time.sleep(generator.uniform(0.01, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended += 1
    stream(folder, COUNT, "--bind", "scans=watch:scans", "--once")
    assert results(folder) == expected


# ---------------------------------------------------------------- scans

TOMO = """p = read("scans/*.npy", axes = "angle z x")
write(fbp(p, parallel(range(0, 179, 6))), "out/{stem}.tif")
write(mean(p), "means.csv")
write(measure(label(p[0] > 100)), "cells.db", table = "cells")
"""


@test
def frames_of_a_key_become_one_scan_with_the_bits_of_the_stored_one(folder):
    count = 30
    slices = numpy.stack(frames(count, size=24)) if frames(1) else None
    order = list(range(count))
    random.Random(1).shuffle(order)
    bytes_ = b"".join(headed(slices[i], "s1", i) for i in order) + headed(slices[0], "s1", 0)
    _, said = stream(folder, TOMO, "--bind", "p=-", "--scan", "angle", "--count", count, stdin=bytes_)
    assert "1 scan," in said and "out of order" in said and "1 known already" in said, said
    there = pathlib.Path(folder) / "stored"
    (there / "scans").mkdir(parents=True)
    numpy.save(there / "scans" / "s1.npy", slices)
    run("run", "-q", write_text(there, TOMO), folder=there)
    assert results(folder) == results(there)
    assert not list(pathlib.Path(folder).glob(".fovea/streams/*/scans/*")), "what was staged is gone"


@test
def a_scan_survives_kills_and_previews_come_before_its_end(folder):
    count = 30
    slices = numpy.stack(frames(count, size=24)) if frames(1) else None
    put(folder, slices[:20], "scans/s1_%04d.npy")
    options = ["--bind", "p=watch:scans", "--scan", "angle", "--count", count, "--preview", "every=10"]
    process = subprocess.Popen([FOVEA, "stream", "-q", write_text(folder, TOMO), *map(str, options)], cwd=folder)
    wait_for("a preview", lambda: (pathlib.Path(folder) / "out" / "s1-preview.tif").exists())
    process.send_signal(signal.SIGKILL)
    process.wait()
    for i in range(20, count):
        put(folder, [slices[i]], f"scans/s1_{i:04d}%.0s.npy")
    stream(folder, TOMO, *options, "--once")
    there = pathlib.Path(folder) / "stored"
    (there / "scans").mkdir(parents=True)
    numpy.save(there / "scans" / "s1.npy", slices)
    run("run", "-q", write_text(there, TOMO), folder=there)
    for path in (pathlib.Path(folder) / "out").glob("*s1-preview.tif*"):  # the killed one may have left a temporary file, too
        path.unlink()
    ours, theirs = results(folder), results(there)
    assert ours[0] == theirs[0], f"files {sorted(ours[0])}"
    assert ours[1:] == theirs[1:], f"{len(ours[1])} rows, {ours[2]}, {theirs[2]}"


FBP = """p = read("scans/*.npy", axes = "angle z x")
write(fbp(minus_log(p / 255), parallel(range(0, 140)), filter = "hann"), "out/{stem}.npy")
"""


@test
def a_reconstruction_grows_with_its_projections_and_has_the_bits_of_the_stored_one(folder):
    """Projections that are missing count nothing in a preview, as if nothing absorbed there."""
    count, first = 141, 70
    scan = numpy.stack(frames(count, size=24)) | 1 if frames(1) else None
    order = [i ^ 3 if i < first - 2 else i for i in range(count)]  # by fours in another order
    assert sorted(order) == list(range(count))
    options = ["--bind", "p=-", "--scan", "angle", "--count", str(count), "--preview", f"every={first}"]
    process = subprocess.Popen([FOVEA, "stream", "-q", write_text(folder, FBP), *options], cwd=folder, stdin=subprocess.PIPE)
    preview = pathlib.Path(folder) / "out" / "s-preview.npy"
    for i in order[:first]:
        process.stdin.write(headed(scan[i], "s", i))
        process.stdin.flush()
    wait_for("the preview", preview.exists)
    shown = numpy.load(preview)
    for i in order[first:]:
        process.stdin.write(headed(scan[i], "s", i))
    process.stdin.close()
    assert process.wait(timeout=300) == 0
    there = pathlib.Path(folder) / "stored"
    (there / "scans").mkdir(parents=True)
    numpy.save(there / "scans" / "s.npy", scan)
    scan[first:] = 255
    numpy.save(there / "scans" / "part.npy", scan)
    run("run", "-q", write_text(there, FBP), folder=there)
    assert numpy.array_equal(numpy.load(pathlib.Path(folder) / "out" / "s.npy"), numpy.load(there / "out" / "s.npy"))
    assert numpy.array_equal(shown, numpy.load(there / "out" / "part.npy")), "the preview has more than the first projections"


@test
def a_text_that_fits_no_scan_ends_the_stream_and_loses_no_frame(folder):
    slices = frames(4, size=24)
    put(folder, slices, "scans/s1_%d.npy")
    options = ["--bind", "p=watch:scans", "--scan", "angle", "--count", 4, "--once"]
    text = TOMO.replace("range(0, 179, 6)", "range(0, 179, 60)")  # three angles for four frames
    _, said = stream(folder, text, *options, code=2)
    assert "4" in said and "3" in said, said
    assert list(pathlib.Path(folder).glob(".fovea/streams/*/scans/*.slices")), "the frames are still there"
    stream(folder, TOMO.replace("range(0, 179, 6)", "range(0, 179, 45)"), *options)
    assert (pathlib.Path(folder) / "out" / "s1.tif").exists()


@test
def windows_are_scans_of_so_many_frames_in_a_row(folder):
    images = frames(10)
    text = 's = read("scans/*.npy")\nwrite(project(s, "t", "mean"), "out/{stem}.npy")\n'
    stream(folder, text, "--bind", "s=-", "--scan", "t", "--window", "5", stdin=b"".join(map(npy, images)))
    made = sorted((pathlib.Path(folder) / "out").iterdir())
    assert [path.name for path in made] == ["window-000000.npy", "window-000001.npy"]
    for i, path in enumerate(made):
        mean = numpy.mean(numpy.stack(images[5 * i:5 * i + 5]).astype("float64"), axis=0)
        assert numpy.allclose(numpy.load(path), mean, rtol=1e-6)


# ---------------------------------------------------------------- examples

@test
def windows_of_a_time_hold_the_frames_that_were_sent_in_it(folder):
    images = frames(7, size=16)
    times = [1000.5, 1003.9, 1009.99, 1010, 1011, 1041, 1005]  # the last one comes when its window is complete
    text = 's = read("scans/*.npy")\nwrite(project(s, "t", "mean"), "out/{stem}.npy")\nwrite(max(s), "most.csv")\n'
    stdin = b"".join(headed(image, "k", i, time=at) for i, (image, at) in enumerate(zip(images, times)))
    _, said = stream(folder, text, "--bind", "s=-", "--scan", "t", "--window", "10s", stdin=stdin, code=1)
    assert "6 of 7 frames done" in said and "3 scans" in said and "1 too late" in said, said
    made = sorted((pathlib.Path(folder) / "out").glob("*.npy"))
    assert [path.name for path in made] == [f"window-19700101T00{at}.npy" for at in ("1640", "1650", "1720")], made
    for path, part in zip(made, (images[:3], images[3:5], images[5:6])):
        assert numpy.allclose(numpy.load(path), numpy.mean(part, axis=0), atol=1e-4)
    _, said = stream(folder, text, "--bind", "s=-", "--scan", "t", "--window", "10 apples", code=2)
    assert "expected a number of frames, as 100, or a time, as 10s or 5m" in said, said
    _, said = stream(folder, text, "--bind", "s=watch:scans", "--scan", "t", "--window", "10s", code=2)
    assert "is for messages" in said, said


def example(name, folder):
    done = subprocess.run([str(ROOT / "examples" / name)], cwd=folder, env=dict(os.environ, FOVEA=FOVEA), capture_output=True,
                          text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


@test
def a_tomogram_while_it_is_measured_equals_the_stored_one(folder):
    assert "equal the stored ones" in example("live_tomography.sh", folder)


@test
def cells_are_counted_while_a_microscope_writes_its_images(folder):
    counts = example("live_counting.sh", folder).splitlines()[1:]
    assert len(counts) == 8 and all(int(line.split()[1]) > 5 for line in counts), counts


@test
def an_alarm_is_raised_when_the_light_grows_weak(folder):
    said = example("quality_alarm.sh", folder).splitlines()
    weak = [line.split()[0] for line in said[1:-1] if float(line.split()[1]) < 60]
    assert 0 < len(weak) < 6 and said[-1] == f"alarms: {len(weak)}", said
    alarms = [json.loads(line) for line in (pathlib.Path(folder) / "alarms.jsonl").read_text().splitlines()]
    assert sorted(row["item"] for alarm in alarms for row in alarm["rows"]) == weak, alarms


# ---------------------------------------------------------------- telling

@test
def events_status_and_metrics_tell_how_the_stream_does(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = 'scans = read("scans/*.npy")\nmean(scans)\n'
    process = subprocess.Popen([FOVEA, "stream", "--json", write_text(folder, text), "--bind", "scans=-", "--metrics", str(port)],
                               cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        image = frames(1)[0]
        process.stdin.write(npy(image))
        process.stdin.flush()
        event = json.loads(process.stdout.readline())
        assert event["event"] == "frame" and abs(event["mean(scans)"][0]["mean(scans)"] - image.mean()) < 1e-9, event

        def metrics():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return "fovea_stream_done 1\n" in answer.read().decode()
        wait_for("the metrics", metrics)
        wait_for("the status", lambda: '"done":\t1' in run("status", "--json", folder=folder, code=None).stdout)
        assert "  1 frame in " in run("status", folder=folder).stdout
    finally:
        process.stdin.close()
        process.wait()


@test
def alerts_of_the_text_are_told_and_run_a_command_only_if_it_is_allowed(folder):
    images = [numpy.full((8, 8), value, "uint8") for value in (50, 5, 60, 7)] if frames(1) else []
    text = """scans = read("scans/*.npy")
cells = measure(label(scans > 0), scans)
write(cells, "cells.db", table = "cells")
alert(cells, "mean < 10")
"""
    stdin = b"".join(map(npy, images))
    out, said = stream(folder, text, "--bind", "scans=-", "--json", "--on-alert", "cat >> alarms", stdin=stdin)
    alarms = [json.loads(line) for line in (pathlib.Path(folder) / "alarms").read_text().splitlines()]
    assert sorted(alarm["rows"][0]["mean"] for alarm in alarms) == [5, 7] and "2 alerts" in said, said
    assert [event for event in map(json.loads, out.splitlines()) if event["event"] == "alert"] == alarms, out
    assert alarms[0]["rule"] == "mean < 10" and said.count("alert: ") == 2, said
    put(folder, images)
    printed = run("run", "-q", "p.fov", "--overwrite", folder=folder).stdout
    assert len(printed.splitlines()) == 3 and "a_1" in printed and "a_3" in printed, printed
    _, said = stream(folder, text.replace("mean <", "men <"), "--bind", "scans=-", stdin=stdin, code=2)
    assert "no column men" in said and "did you mean mean?" in said, said


@test
def what_came_before_standard_input_broke_off_is_done(folder):
    images = frames(3)
    whole = b"".join(npy(image) for image in images)
    (pathlib.Path(folder) / "p.fov").write_text('s = read("w/*.npy")\nwrite(mean(s), "means.csv")\n')
    for rest, why in ((npy(images[0])[:-9], "ends in the middle of frame 3"), (b"fovea-bytes: -1\n\n", "frame 3 of standard"),
                      (b"II*\0", "frame 3 of standard input is neither an NPY file nor"), (b"shape=8\n", "frame 3 of standard")):
        done = subprocess.run([FOVEA, "stream", "p.fov", "--bind", "s=-"], cwd=folder, input=whole + rest, check=False,
                              capture_output=True, timeout=600)
        assert done.returncode == 2 and why in done.stderr.decode(), done
        made = pathlib.Path(folder) / "means.csv"
        assert len(made.read_text().splitlines()) == 4, made.read_text()
        made.unlink()
        shutil.rmtree(pathlib.Path(folder) / ".fovea")


@test
def a_stream_whose_log_was_taken_over_writes_nothing_more(folder):
    there = pathlib.Path(folder)
    (there / "w").mkdir()
    (there / "p.fov").write_text('s = read("w/*.npy")\nwrite(mean(s), "means.csv")\n')
    process = subprocess.Popen([FOVEA, "stream", "p.fov", "--bind", "s=watch:w"], cwd=folder, stderr=subprocess.PIPE)
    wait_for("the stream", lambda: list(there.glob(".fovea/streams/*/*.status")))
    lease, = there.glob(f".fovea/streams/*/.{process.pid}-*.log.fovea-lease")
    lease.rename(there / "elsewhere")  # as who takes this process for dead does it
    (there / "w" / "a.npy").write_bytes(npy(frames(1)[0]))
    said = process.communicate(timeout=600)[1].decode()
    assert process.returncode == 2 and "was taken over by another process" in said, (process.returncode, said)
    assert not (there / "means.csv").exists()


@test
def clean_forgets_streams_but_not_one_that_runs(folder):
    put(folder, frames(2))
    process = subprocess.Popen([FOVEA, "stream", "-q", write_text(folder, COUNT), "--bind", "scans=watch:scans"], cwd=folder)
    wait_for("the results", lambda: len(list((pathlib.Path(folder) / "out").glob("a_*.tif"))) == 2)
    assert "lives and stays" in run("clean", "--streams", folder=folder).stdout
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 0
    assert "1 stream" in run("clean", folder=folder).stdout
    assert "streams/" in run("clean", "--streams", folder=folder).stdout
    assert not (pathlib.Path(folder) / ".fovea" / "streams").exists()
    _, said = stream(folder, COUNT, "--bind", "scans=watch:scans", "--once")
    assert "2 of 2 frames done" in said, said


@test
def a_full_disk_is_waited_for_and_no_frame_is_lost(folder):
    """Results and log on a small file system, which is filled by somebody else for a while."""
    images = frames(12, size=128)
    disk = pathlib.Path(folder) / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        raise Skip("no file system can be mounted here")
    try:
        text = 's = read("scans/*.npy")\nwrite(gaussian(s, 1), "{stem}.tif", compression = "none")\nwrite(mean(s), "means.db")\n'
        put(folder, images[:2], "in/a_%02d.npy")
        process = subprocess.Popen([FOVEA, "stream", write_text(disk, text), "--bind", "s=watch:../in"], cwd=disk,
                                   stderr=subprocess.PIPE, text=True)
        wait_for("two results", lambda: len(list(disk.glob("a_*.tif"))) == 2)
        ballast = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(ballast, bytes(4096))
        except OSError:
            os.close(ballast)
        put(folder, images, "in/b_%02d.npy")
        said = process.stderr.readline()
        while "waiting" not in said:
            assert said, "the stream ended"
            said = process.stderr.readline()
        (disk / "ballast").unlink()
        wait_for("all results", lambda: len(list(disk.glob("b_*.tif"))) == len(images))
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0 and "14 of 14 frames done" in said and "failed" not in said, said
        with sqlite3.connect(disk / "means.db") as database:
            assert database.execute("SELECT count(*), count(DISTINCT item) FROM means").fetchone() == (14, 14)
    finally:
        subprocess.run(["umount", "-l", str(disk)], capture_output=True, check=False)


def unless_sanitized():
    if {"ASAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ):
        raise Skip("a sanitizer keeps memory of its own")


@test
def memory_holds_however_many_frames_wait(folder):
    unless_sanitized()
    text = 'scans = read("scans/*.npy")\nwrite(mean(median(scans, 5)), "means.csv")\n'
    image = npy(frames(1, size=1024)[0])
    peak = pathlib.Path(folder) / "peak"
    command = f"exec {FOVEA} stream -q {write_text(folder, text)} --bind scans=- --memory 96M --workers 2"
    code = f"import resource, subprocess; r = subprocess.run({command!r}, shell=True, cwd={folder!r}); " \
           f"open({str(peak)!r}, 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)); " \
           f"raise SystemExit(r.returncode)"
    done = subprocess.run([sys.executable, "-c", code], input=image * 120, check=False, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert int(peak.read_text()) < 96 * 1024, f"{int(peak.read_text()) // 1024} MiB for a bound of 96"
    assert len(lines(folder)) == 121


@test
def memory_and_open_files_of_a_long_stream_stay_as_they_are(folder):
    unless_sanitized()
    text = 'scans = read("scans/*.npy")\nwrite(scans + 1, "out/{stem}.npy")\nwrite(mean(scans), "means.db", table = "means")\n'
    image = npy(frames(1, size=64)[0])
    command = [FOVEA, "stream", "-q", write_text(folder, text), "--bind", "scans=-", "--workers", "2"]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE)
    samples = []
    for number in range(1200):
        process.stdin.write(image)
        if number % 30 == 29:
            process.stdin.flush()
            wait_for("the frames so far", lambda: len(list((pathlib.Path(folder) / "out").glob("[!.]*"))) >= number - 30)
            samples.append(sample(process.pid))
    process.stdin.close()
    assert process.wait() == 0
    check_flat(samples)
    assert len(rows(folder, "means.db", "means")) == 1200


main()
