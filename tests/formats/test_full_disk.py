"""Writing of every format onto a disk that gets full: a message that says so, and what was there before stays whole. And the
progress of convert, which a terminal shows as a bar."""
import json
import os
import pathlib
import pty
import select
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test

DISK = "2m"  # room on the small disk, in a name space of mounts of our own
LARGE = {"png": "[4000, 3000]", "pgm": "[4000, 3000]"}  # others are volumes
SMALL = {"png": "[9, 11]", "pgm": "[9, 11]"}


def on_small_disk(folder, script):
    """Runs a shell script in an empty folder on a small disk; skips where such cannot be had."""
    place = os.path.join(folder, "disk")
    os.makedirs(place, exist_ok=True)
    mount = f"mount -t tmpfs -o size={DISK} none '{place}' || exit 77; cd '{place}' || exit 77\n"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mount + script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        raise Skip("no file system may be mounted here")
    return done


def extensions(folder):
    described = json.loads(run("ops", "--json", folder=folder).stdout)
    images = [f["extensions"][0] for f in described["formats"] if f["writes"] and f["extensions"]]
    return images, [f["extensions"][0] for f in described["tables"]]


@test
def a_full_disk_is_named_and_the_earlier_image_stays_whole(folder):
    fovea = f"'{FOVEA}' run -q --overwrite --store '{folder}/store' -e"
    for extension in extensions(folder)[0]:
        name = "result_4x9x11_uint16.raw" if extension == "raw" else f"result.{extension}"
        small, large = SMALL.get(extension, "[4, 9, 11]"), LARGE.get(extension, "[60, 300, 400]")
        noise = f'phantom("foam", {large}) |> convert("uint16")'
        script = f"""
{fovea} 'phantom("foam", {small}) |> convert("uint16") |> write("{name}")' || exit 3
{fovea} 'sum(read("{name}"))' > '{folder}/before' || exit 3
{fovea} '{noise} |> write("{name}")' 2> '{folder}/said'; echo "status $?"
{fovea} 'sum(read("{name}"))' > '{folder}/after' || exit 4
cmp '{folder}/before' '{folder}/after' && echo same
cat '{folder}/said'
"""
        done = on_small_disk(folder, script)
        if done.returncode == 3:  # the format cannot hold this image
            continue
        said = done.stdout + done.stderr
        assert done.returncode == 0, (extension, done.returncode, said)
        assert "status 1" in said and "same" in said, (extension, said)
        assert "No space left" in said and "result" in said, (extension, said)
        assert ".fovea" not in said and ".partial" not in said, (extension, said)  # the result is named, not its temporary


@test
def a_full_disk_is_named_and_the_earlier_table_stays_whole(folder):
    rows = "\n".join(f"{i},{i * 0.37},some words that take room {i}" for i in range(300000))
    pathlib.Path(folder, "many.csv").write_text("id,size,name\n" + rows + "\n")
    pathlib.Path(folder, "few.csv").write_text("id,size,name\n1,2.5,a\n2,3.5,b\n")
    for extension in extensions(folder)[1]:
        name = f"result.{extension}"
        run_it = f"'{FOVEA}' run -q --overwrite --store '{folder}/store' -e"
        script = f"""
{run_it} 'write(read("{folder}/few.csv"), "{name}")' || exit 3
'{FOVEA}' sql --csv {name} 'SELECT * FROM result' > '{folder}/before' || exit 3
{run_it} 'write(read("{folder}/many.csv"), "{name}")' 2> '{folder}/said'; echo "status $?"
'{FOVEA}' sql --csv {name} 'SELECT * FROM result' > '{folder}/after' || exit 4
cmp '{folder}/before' '{folder}/after' && echo same
cat '{folder}/said'
"""
        done = on_small_disk(folder, script)
        said = done.stdout + done.stderr
        if done.returncode == 3:
            continue
        assert done.returncode == 0 and "status 1" in said and "same" in said, (extension, done.returncode, said)
        assert ("No space left" in said or "full" in said) and "result" in said, (extension, said)
        assert ".fovea" not in said, (extension, said)


def on_terminal(command, folder):
    """What a program writes to a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    seen = b""
    while select.select([terminal], [], [], 120)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen.decode(errors="replace")


@test
def convert_shows_its_progress_on_a_terminal_and_nothing_elsewhere(folder):
    run("run", "-q", "-e", 'phantom("noise", [1000, 400, 400]) |> write("a.npy")', folder=folder)
    status, seen = on_terminal([FOVEA, "convert", "--workers", "1", "a.npy", "b.nii.gz"], folder)
    bars = [part for part in seen.split("\r") if part.startswith("[") and "% " in part and " left" in part]
    assert status == 0 and bars and "#" in bars[-1], seen[-500:]
    assert "\r" not in run("convert", "a.npy", "c.nii.gz", folder=folder).stderr
    status, seen = on_terminal([FOVEA, "convert", "-q", "a.npy", "d.nii.gz"], folder)
    assert status == 0 and "%" not in seen, seen


main()
