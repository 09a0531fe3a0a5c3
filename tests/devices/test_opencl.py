"""OpenCL devices, on PoCL: found, measured, given out, and used by runs."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test

POCL = {"POCL_DEVICES": "pthread", "FOVEA_DEVICES": ""}
THREE = dict(POCL, POCL_DEVICES="pthread pthread pthread", POCL_MEMORY_LIMIT="2")


def devices(folder, environment):
    """What OpenCL finds; skips where it is not there."""
    found = run("devices", "--json", folder=folder, code=None, environment=environment)
    if found.returncode:
        raise Skip(found.stderr.strip())
    return json.loads(found.stdout)["devices"]


@test
def devices_are_found_with_memory_and_speed(folder):
    three = devices(folder, THREE)
    assert [d["device"] for d in three] == ["opencl:0", "opencl:1", "opencl:2"]
    assert all(d["memory"] == 2 << 30 and d["speed"] > 0 and d["bandwidth"] > 0 for d in three), three
    assert three[0]["kind"] == three[2]["kind"] and "pthread" in three[0]["name"]
    text = run("devices", folder=folder, environment=THREE).stdout
    assert "opencl:2" in text and "2.0 GiB" in text, text


@test
def what_is_missing_is_told(folder):
    assert "apt-get install ocl-icd-opencl-dev" in run("devices", folder=folder, code=2,
                                                       environment=dict(POCL, FOVEA_PLUGINS=folder)).stderr
    devices(folder, POCL)
    empty = run("devices", folder=folder, code=2, environment=dict(POCL, OCL_ICD_VENDORS=folder))
    assert "no OpenCL driver is installed" in empty.stderr, empty.stderr


@test
def found_devices_are_given_out(folder):
    devices(folder, THREE)
    path = os.path.join(folder, "devices.sock")
    service = subprocess.Popen([FOVEA, "devices", "serve", "--socket", path], env=dict(os.environ, **THREE),
                               stderr=subprocess.PIPE, text=True)
    try:
        assert "given out" in service.stderr.readline()
        given = json.loads(run("devices", "--socket", path, "--json", folder=folder).stdout)["devices"]
        assert len(given) == 3 and all(d["memory"] == 2 << 30 and d["speed"] > 1 for d in given), given
        assert "speed" in run("devices", "--socket", path, folder=folder).stdout
        leased = run("devices", "lease", "--socket", path, "--memory", "2G", "--", "sh", "-c", "echo $FOVEA_DEVICE",
                     folder=folder).stdout
        assert leased.strip() in ("0", "1", "2"), leased
    finally:
        service.terminate()
        service.wait()
        service.stderr.close()


main()
