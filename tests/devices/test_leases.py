"""Programs that lease a device: any command by `fovea devices lease`, and plain C."""
import csv
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from device_service import GIB, Service, run
from fovea_test import FOVEA, Skip, main, test, wait_for


@test
def a_command_has_a_device_while_it_runs_and_others_wait(folder):
    with Service(folder, devices=1) as s:
        first = s.lease("2G")
        assert first.stdout.readline().split() == ["0", "0", "0"]
        second = s.lease("1G")
        wait_for("the second to wait", lambda: s.status()["waiting"] == 1)
        assert s.tasks() == [1]
        first.communicate()
        assert second.stdout.readline().split() == ["0", "0", "0"]
        second.communicate()
        assert first.returncode == second.returncode == 0
        wait_for("the device to be free", lambda: s.tasks() == [0])
        done = run("devices", "lease", "--socket", s.path, "--memory", "1G", "--", "sh", "-c", "exit 7", code=7)
        assert not done.stderr
    events = [row["event"] for row in csv.DictReader(open(s.path + ".record"))]
    assert sorted(events) == ["granted"] * 3 + ["returned"] * 3, events


@test
def of_the_devices_that_a_job_was_given_one_is_named(folder):
    with Service(folder, "--policy", "round-robin") as s:
        given = {**os.environ, "CUDA_VISIBLE_DEVICES": "3,GPU-7", "ROCR_VISIBLE_DEVICES": ""}
        show = [FOVEA, "devices", "lease", "--socket", s.path, "--", "sh", "-c",
                "echo $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES"]
        said = [subprocess.run(show, env=given, capture_output=True, text=True).stdout.split() for _ in range(2)]
        assert said == [["3", "0"], ["GPU-7", "1"]], said


@test
def a_command_is_told_its_device_in_the_usual_ways(folder):
    names = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "POCL_DEVICES",
             "FOVEA_DEVICE", "FOVEA_DEVICE_MEMORY"]
    clean = {k: v for k, v in os.environ.items() if k not in names}
    with Service(folder, "--policy", "round-robin", devices=3) as s:
        command = [FOVEA, "devices", "lease", "--socket", s.path, "--memory", "512M", "--", "sh", "-c",
                   "echo " + " ".join(f"${name}" for name in names)]
        said = [subprocess.run(command, env=dict(clean, POCL_DEVICES="pthread basic pthread"), capture_output=True,
                               text=True).stdout.split() for _ in range(2)]
        half = str(GIB // 2)
        assert said == [["0", "0", "0", "0", "pthread", "0", half], ["1", "1", "0", "0", "basic", "1", half]], said
        none = subprocess.run(command, env=dict(clean, SLURM_JOB_ID="3", CUDA_VISIBLE_DEVICES="NoDevFiles"), capture_output=True,
                              text=True)
        assert none.returncode == 2 and "--gres=gpu:1" in none.stderr, none.stderr


PROGRAM = r"""
#include <fovea/device_lease.h>
#include <stdio.h>
int main(int argc, char **argv) {
    fv_device_lease lease;
    if (argc < 2 || !fv_device_lease_take(argv[1], (int64_t)1 << 30, 5, &lease)) return printf("%s\n", lease.message), 1;
    printf("%d %lld\n", lease.index, (long long)lease.memory);
    fv_device_lease_return(&lease);
    return 0;
}
"""


@test
def programs_in_plain_c_lease_devices_without_any_other_library(folder):
    build, compiler = os.path.dirname(FOVEA), shutil.which("cc")
    needed = subprocess.run(["readelf", "-d", f"{build}/libfovea-devices.so"], capture_output=True, text=True)
    if not compiler or needed.returncode:
        raise Skip("no compiler, or no shared library")
    libraries = [line.split("[")[1].rstrip("]") for line in needed.stdout.splitlines() if "(NEEDED)" in line]
    if any("san" in name for name in libraries):
        raise Skip("built with a sanitizer")
    assert libraries == ["libc.so.6"], libraries
    pathlib.Path(folder, "p.c").write_text(PROGRAM)
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{root}/include", "p.c", f"-L{build}",
                    "-lfovea-devices", f"-Wl,-rpath,{build}", "-o", "p"], cwd=folder, check=True)
    with Service(folder, devices=1) as s:
        assert subprocess.run(["./p", s.path], cwd=folder, capture_output=True, text=True).stdout.split() == ["0", str(GIB)]
        assert s.tasks() == [0] and s.status()["devices"][0]["served"] == 1


main()
