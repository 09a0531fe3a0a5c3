#!/usr/bin/python3
"""What every format promises, format by format as the command lists them: readers meet cut and changed files with a message that
names them, within ten seconds and a gibibyte; killed writers and writers of the same name at the same time leave a whole file or
the earlier one."""
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
import fuzz  # noqa: E402
from fovea_test import FOVEA, main, run, test  # noqa: E402
from limits import attempt  # noqa: E402

FLAT = ("png", "pgm")  # these hold planes
ROWS = 20000


def described(folder):
    return json.loads(run("ops", "--json", folder=folder).stdout)


def damaged(seed, rng):
    """Shortened, with another beginning, and with some bytes changed; of a bundle the first part."""
    head, content = seed.split(b"\n", 1) if fuzz.BREAK in seed else (None, seed)
    content, *rest = content.split(fuzz.BREAK, 1) if head else (content,)
    variants = [content[: len(content) * k // 4] for k in range(4)] + [b"nothing that anyone knows" + content[25:]]
    for _ in range(3):
        changed = bytearray(content)
        for _ in range(6):
            changed[rng.randrange(min(len(changed), 300))] = rng.randrange(256)
        variants.append(bytes(changed))
    for variant in variants:
        yield variant if head is None else fuzz.BREAK.join([head + b"\n" + variant, *rest])


@test
def every_reader_meets_cut_and_changed_files_with_a_message_that_names_them(folder):
    rng, tried = random.Random(3), []
    tables = {e for f in described(folder)["tables"] for e in f["extensions"]}
    for target in fuzz.targets():
        place = pathlib.Path(folder, target)
        place.mkdir()
        seed = next(iter(fuzz.seeds(place, target)), None)
        if target in ("language", "devices") or seed is None:
            continue
        tried.append(target)
        for number, content in enumerate(damaged(seed, rng)):
            path = fuzz.lay_out(place / f"bad{number}", target, content)
            wanted = f'write(read("{path}"), "out.csv")' if target in tables else None
            status, errors = attempt(path, place, wanted)
            assert status == 0 or path.stem in errors or path.parent.name in errors, (target, number, errors)
    assert len(tried) >= 20, tried


# ---------------------------------------------------------------- writers


def writers(folder):
    """(name of a file, text of a pipeline that writes other contents for every number, text that prints what it holds)"""
    lists = described(folder)
    for f in lists["formats"]:
        if f["writes"] and not f["extensions"]:
            what = 'sum(read("s/result_*.tif", stack = "z"))'
            yield "slices", 'phantom("foam", [16, 150, 150], seed = NUMBER) |> write("s/result_{z}.tif")', what
        elif f["writes"]:
            e = f["extensions"][0]
            name = "result_16x150x150_uint16.raw" if e == "raw" else f"result.{e}"
            shape = "[700, 700]" if e in FLAT else "[16, 150, 150]"
            yield name, f'phantom("foam", {shape}, seed = NUMBER) |> convert("uint16") |> write("{name}")', f'sum(read("{name}"))'
    pathlib.Path(folder, "1.csv").write_text("a,b\n" + "".join(f"{i},{i / 7}\n" for i in range(ROWS)))
    pathlib.Path(folder, "2.csv").write_text("a,b\n" + "".join(f"{-i},{i / 9}\n" for i in range(ROWS)))
    for f in lists["tables"]:
        name = f"result.{f['extensions'][0]}"
        what = f'write(group(read_table("{name}"), "", "count(), sum(a), sum(b)"), "sums.csv")'
        yield name, f'write(read("{folder}/NUMBER.csv"), "{name}")', what if f["reads"] else None


def command(text, store):
    return [FOVEA, "run", "-q", "--overwrite", "--workers", "2", "--store", store, "-e", text]


def held(place, what):
    """What the file holds, in numbers; where it is only written, its bytes."""
    if not what:
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(place).glob("result.*")]
    done = run("run", "-q", "--overwrite", "--fresh", "-e", what, folder=place)
    return done.stdout + (pathlib.Path(place, "sums.csv").read_text() if "sums.csv" in what else "")


def begin(place, text, number, store):
    return subprocess.Popen(command(text.replace("NUMBER", str(number)), store), cwd=place, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def prepared(folder):
    """(folder, text, what, contents by number) of every format that can hold the image here."""
    for index, (name, text, what) in enumerate(writers(folder)):
        place = pathlib.Path(folder, f"place{index}")
        place.mkdir()
        if begin(place, text, 1, "store").wait() == 0:
            first = held(place, what)
            assert begin(place, text, 2, "store").wait() == 0, name
            yield name, place, text, what, [first, held(place, what)]


@test
def killed_writers_leave_the_earlier_file_or_a_whole_one(folder):
    rng, killed = random.Random(5), 0
    for name, place, text, what, contents in prepared(folder):
        assert contents[0] != contents[1], name
        start = time.monotonic()
        assert begin(place, text, 1, "store0").wait() == 0
        length = time.monotonic() - start
        for number in (1, 2):
            process = begin(place, text, 3 - number, f"store{number}")
            time.sleep(rng.uniform(0.3, 0.95) * length)
            os.killpg(process.pid, signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            now = held(place, what)  # slices get their names one by one: each is whole, and the next run goes on
            assert now in contents or name == "slices", name
        assert begin(place, text, 2, "store").wait() == 0 and held(place, what) == contents[1], name
    assert killed > 5, killed


@test
def writers_of_the_same_name_at_the_same_time_leave_a_whole_file(folder):
    for name, place, text, what, contents in prepared(folder):
        both = [begin(place, text, number, f"both{number}") for number in (1, 2)]
        ended = [process.wait() for process in both]
        now = held(place, what)  # slices as above: those of both may lie side by side, each of them whole
        assert 0 in ended and (now in contents or name == "slices"), (name, ended)


main()
