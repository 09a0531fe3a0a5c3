"""`fovea devices study`: real workers against a real service, the same tasks for every policy."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test, wait_for

POLICIES = ["random", "round-robin", "least-processes", "best-fit"]
SMALL = ["--workers", "5", "--tasks", "14", "--seconds", "0.06", "--memory", "1G"]
MISSING = {"FOVEA_PLUGINS": "/nowhere"}  # without OpenCL tasks only take their time


def rows(folder, name):
    with open(os.path.join(folder, name), newline="") as file:
        return list(csv.DictReader(file))


def check(folder, environment):
    """Runs a small study and compares everything that it leaves with everything else."""
    told = json.loads(run("devices", "study", *SMALL, "--json", "-o", "out", folder=folder, environment=environment).stdout)
    place = os.path.join(folder, "out")
    leases = rows(place, "leases.csv")
    assert [p["policy"] for p in told["policies"]] == POLICIES and len(leases) == 4 * 14
    lists = [[(r["memory"], r["length"]) for r in leases if r["policy"] == p] for p in POLICIES]
    assert all(one == lists[0] for one in lists) and len({memory for memory, _ in lists[0]}) > 2
    for policy in told["policies"]:
        ours = [r for r in leases if r["policy"] == policy["policy"]]
        times = np.array([[float(r[k]) for k in ("asked", "granted", "returned")] for r in ours])
        devices, memory = np.array([int(r["device"]) for r in ours]), np.array([int(r["memory"]) for r in ours])
        assert (np.diff(times, axis=1) >= 0).all() and set(devices) <= {0, 1, 2}
        assert len({r["pid"] for r in ours}) == len({r["worker"] for r in ours}) > 1
        assert abs(policy["makespan"] - times[:, 2].max()) < 1e-5 and policy["makespan"] >= told["least"] - 0.02
        assert abs(policy["wait"] - np.mean(times[:, 1] - times[:, 0])) < 1e-5
        moments = np.sort(times[:, 1:].ravel())
        middles = (moments[1:] + moments[:-1]) / 2
        for d, device in enumerate(policy["devices"]):
            here = (devices == d) & (times[:, 1] <= middles[:, None]) & (times[:, 2] > middles[:, None])
            used = here @ memory
            assert device["peak"] == used.max() <= 1 << 30, (device, used.max())
            assert abs(device["occupancy"] - np.diff(moments)[used > 0].sum() / policy["makespan"]) < 1e-4
        record = rows(place, policy["policy"] + ".record")
        granted = sorted((int(r["pid"]), int(r["device"]), int(r["memory"])) for r in record if r["event"] == "granted")
        assert granted == sorted((int(r["pid"]), int(r["device"]), int(r["memory"])) for r in ours)
        assert sum(r["event"] == "returned" for r in record) == 14
    everything = json.loads(pathlib.Path(place, "study.json").read_text())
    assert len(everything["leases"]) == 56 and everything["policies"] == told["policies"]
    return told, place


@test
def every_lease_of_a_study_with_kernels_is_told_as_it_was(folder):
    told, place = check(folder, {"FOVEA_DEVICES": ""})
    if not told["opencl"]:
        raise Skip(told["work"])
    assert told["work"].startswith("OpenCL kernels on 3 devices"), told
    words = [e.text for e in xml.etree.ElementTree.parse(os.path.join(place, "study.svg")).iter() if e.text and e.text.strip()]
    for word in [*POLICIES, "seconds", "time / s", "memory in use / GiB", "5 workers, 14 tasks, 3 devices of 1 GiB"]:
        assert word in words, (word, words)
    assert sum(word.startswith("device 2: busy") for word in words) == 4
    assert pathlib.Path(place, "study.png").read_bytes().startswith(b"\x89PNG")
    size = run("info", "--json", os.path.join(place, "study.png"), folder=folder).stdout
    assert json.loads(size)[0]["shape"][1] == 1920, size


@test
def without_opencl_tasks_take_their_time_and_the_study_says_so(folder):
    told, _ = check(folder, MISSING)
    assert not told["opencl"] and told["work"].startswith("timed work without kernels: "), told
    text = run("devices", "study", *SMALL, "--policy", "best-fit", folder=folder, environment=MISSING).stdout
    assert "timed work without kernels" in text and "best-fit" in text and "random" not in text, text
    assert os.path.exists(os.path.join(folder, "devices-study", "best-fit.record"))


@test
def devices_larger_than_the_machine_are_studied_without_kernels(folder):
    told = run("devices", "study", "--workers", "1", "--tasks", "2", "--seconds", "0.01", "--memory", "4000T",
               "--policy", "random", folder=folder).stdout
    assert "timed work without kernels" in told, told


@test
def another_seed_is_another_list_of_tasks(folder):
    lists = []
    for number, seed in enumerate([3, 3, 4]):
        run("devices", "study", *SMALL, "--policy", "round-robin", "--seed", seed, "-o", str(number), folder=folder,
            environment=MISSING)
        lists.append([(r["memory"], r["length"]) for r in rows(os.path.join(folder, str(number)), "leases.csv")])
    assert lists[0] == lists[1] != lists[2]


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@test
def a_study_that_is_stopped_or_loses_a_worker_leaves_nobody_behind(folder):
    os.mkdir(os.path.join(folder, "temporary"))
    for how, code in ((signal.SIGINT, 130), ("worker", 1)):
        study = subprocess.Popen([FOVEA, "devices", "study", "--workers", "4", "--seconds", "20"], cwd=folder, text=True,
                                 stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=dict(os.environ, **MISSING, TMPDIR=os.path.join(folder, "temporary")))
        wait_for("the service and four workers", lambda: len(children(study.pid)) == 5)
        family = children(study.pid)
        if how == "worker":
            os.kill(family[-1], signal.SIGKILL)
        else:
            study.send_signal(how)
        said = study.communicate(timeout=PATIENCE)[1]
        assert study.returncode == code, (study.returncode, said)
        assert how != "worker" or "was ended by signal 9" in said, said
        assert not any(os.path.exists(f"/proc/{pid}/exe") for pid in family)
        assert not os.listdir(os.path.join(folder, "temporary"))


@test
def wrong_numbers_are_refused(folder):
    for words, why in ((["--workers", "0"], "--workers"), (["--tasks", "x"], "--tasks"), (["--devices", "17"], "--devices"),
                       (["--memory", "1M"], "16M at least"), (["--policy", "worst"], "best-fit"),
                       (["--seconds", "-1"], "--seconds"), (["--output", "/proc/here"], "/proc/here")):
        assert why in run("devices", "study", *words, folder=folder, code=None, environment=MISSING).stderr, words


main()
