"""Every reader, on files that are cut, changed, or claim more than they hold: a message that names the file, in time
and memory."""
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test

SECONDS, BYTES = 60, 1 << 30  # 10 seconds on a machine that is not busy
# How to make a small file of each format, by its extension; what is not here is made from the phantom as it is.
PIPELINES = {"png": "[9, 11]", "pgm": "[9, 11]", "ppm": None, "jpg": None, "pvti": None, "hdr": None, "st": None}
# What a header may claim: bytes to look for and what to put there, so that the image would have 10^15 voxels or a negative size.
CLAIMS = [
    ("nrrd", b"sizes: 11 9 4", b"sizes: 100000 100000 100000"), ("nrrd", b"sizes: 11 9 4", b"sizes: -11 9 4"),
    ("mha", b"DimSize = 11 9 4", b"DimSize = 100000 100000 100000"), ("mha", b"DimSize = 11 9 4", b"DimSize = 11 -9 4"),
    ("npy", b"(4, 9, 11)", b"(100000, 100000, 100000)"), ("npy", b"(4, 9, 11)", b"(4, -9, 11)"),
    ("vti", b"0 10 0 8 0 3", b"0 99999 0 99999 0 99999"), ("vti", b"0 10 0 8 0 3", b"0 -10 0 8 0 3"),
    ("pgm", b"11 9", b"100000000 10000000"), ("pgm", b"11 9", b"-11 9"),
    ("mrc", (11).to_bytes(4, "little"), (2000000000).to_bytes(4, "little")),
    ("mrc", (11).to_bytes(4, "little"), (-11).to_bytes(4, "little", signed=True)),
    ("nii", (11).to_bytes(2, "little"), (32767).to_bytes(2, "little")),
    ("nii", (11).to_bytes(2, "little"), (-11).to_bytes(2, "little", signed=True)),
]


def limited():
    """In the child: no more memory than a reader may take. Address space counts more than what is used, so there is some room."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES + (1 << 30), BYTES + (1 << 30)))


def attempt(path, folder):
    """Reads all of a file; gives the exit status and the messages, and fails if that takes too much."""
    done = subprocess.run([FOVEA, "run", "-q", "--fresh", "--workers", "1", "--memory", "512M", "-e", f'sum(read("{path}"))'],
                          cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=limited, timeout=SECONDS)
    assert done.returncode in (0, 1, 2), f"{path}: exit status {done.returncode}: {done.stderr[-300:]}"
    return done.returncode, done.stderr.decode(errors="replace")


def formats(folder):
    """Extensions of the formats that are read and written as single files."""
    described = json.loads(run("ops", "--json", folder=folder).stdout)["formats"]
    return [f["extensions"][0] for f in described if f["reads"] and f["writes"] and f["name"] not in ("zarr", "raw")]


def make(folder, extension):
    """A small file of a format; None where it takes more than a phantom to make one."""
    shape = PIPELINES.get(extension, "[4, 9, 11]")
    if not shape:
        return None
    name = f"whole.{extension}"
    text = f'phantom("foam", {shape}) |> convert("uint16") |> write("{name}")'
    done = run("run", "-q", "-e", text, folder=folder, code=None)
    return pathlib.Path(folder, name) if done.returncode == 0 else None


@test
def cut_and_changed_files_give_an_image_or_a_message_that_names_them(folder):
    rng, tried = random.Random(7), []
    for extension in formats(folder):
        whole = make(folder, extension)
        if not whole:
            continue
        tried.append(extension)
        content = whole.read_bytes()
        damaged = [content[: len(content) * k // 6] for k in range(6)]
        for _ in range(4):
            changed = bytearray(content)
            for _ in range(8):
                changed[rng.randrange(min(len(changed), 400))] = rng.randrange(256)
            damaged.append(bytes(changed))
        damaged.append(b"nothing that anyone knows " * 40)
        for number, data in enumerate(damaged):
            path = pathlib.Path(folder, f"bad{number}.{extension}")
            path.write_bytes(data)
            status, errors = attempt(path.name, folder)
            assert status == 0 or path.name in errors, (path.name, errors)
            assert status or number in range(6, 10), (path.name, "was read")
            path.unlink()
    assert len(tried) >= 8, tried


@test
def headers_that_claim_too_much_are_refused(folder):
    for extension, old, new in CLAIMS:
        whole = make(folder, extension)
        content = whole.read_bytes()
        assert old in content, (extension, old)
        path = pathlib.Path(folder, f"claims.{extension}")
        path.write_bytes(content.replace(old, new, 1))
        status, errors = attempt(path.name, folder)
        assert status and path.name in errors, (extension, new, status, errors)
        whole.unlink()
    shutil.rmtree(os.path.join(folder, ".fovea"), ignore_errors=True)


main()
