"""The scheduler of devices: real processes against a real service."""
import csv
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, test
from fovea_test import run as run_in

GIB = 1 << 30


def run(*arguments, code=0):
    return run_in(*arguments, folder="/tmp", code=code)


def wait_for(what, condition, seconds=20):
    for _ in range(int(seconds / 0.02)):
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


class Service:
    """A running `fovea devices serve`."""

    def __init__(self, folder, *options, devices=("a:2G", "b:2G")):
        self.path = os.path.join(folder, "devices.sock")
        self.command = [FOVEA, "devices", "serve", "--socket", self.path, *options]
        self.command += [word for device in devices for word in ("--device", device)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert "given out" in line, line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=10)
        self.process.stderr.close()

    def status(self):
        return json.loads(run("devices", "--socket", self.path, "--json").stdout)

    def tasks(self):
        return [d["tasks"] for d in self.status()["devices"]]

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(self.path)
        return s

    def lease(self, memory):
        """A command that holds a device until its input ends."""
        return subprocess.Popen([FOVEA, "devices", "lease", "--socket", self.path, "--memory", memory, "--", "sh", "-c",
                                 "echo $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES $FOVEA_DEVICE; cat"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def say(s, text):
    """Sends lines, and gives the line that answers."""
    s.sendall(text.encode() + b"\n")
    return read(s)


def read(s):
    line = b""
    while not line.endswith(b"\n"):
        try:
            got = s.recv(1)
        except ConnectionResetError:
            got = b""
        if not got:
            return None
        line += got
    return line.decode().strip()


@test
def a_command_has_a_device_while_it_runs_and_others_wait(folder):
    with Service(folder, devices=["card:2G"]) as s:
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
def who_dies_gives_his_device_back_at_once_and_takes_his_command_with_him(folder):
    with Service(folder, devices=["card:2G"]) as s:
        first = s.lease("2G")
        assert first.stdout.readline()
        children = pathlib.Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
        second = s.lease("2G")
        wait_for("the second to wait", lambda: s.status()["waiting"] == 1)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        assert second.stdout.readline().strip()
        wait_for("the command to end", lambda: not any(os.path.exists(f"/proc/{child}/exe") for child in children))
        second.send_signal(signal.SIGKILL)
        second.communicate()
        wait_for("the device to be free", lambda: s.tasks() == [0])


@test
def a_long_record_is_put_aside_and_a_cut_line_spoils_no_other(folder):
    with Service(folder, devices=["card:2G"]) as s:
        holder = s.lease("2G")
        assert holder.stdout.readline()
        s.process.kill()
        s.process.wait()
        with open(s.path + ".record", "a") as record:
            record.writelines(f"1.000000,lost,{ticket},-1,0,0,1,1\n" for ticket in range(10, 700000))
            record.write("1.0000")
        size = os.path.getsize(s.path + ".record")
        s.process.stderr.close()
        s.start()
        assert s.tasks() == [1]
        assert os.path.getsize(s.path + ".record.old") == size
        rows = list(csv.DictReader(open(s.path + ".record")))
        assert [row["event"] for row in rows] == ["granted"], rows
        holder.communicate()
        wait_for("the device to be free", lambda: s.tasks() == [0])
        with open(s.path + ".record", "a") as record:
            record.write("1.0000")
        s.process.kill()
        s.process.wait()
        s.process.stderr.close()
        s.start()
        run("devices", "lease", "--socket", s.path, "--", "true")
        events = [row["event"] for row in csv.DictReader(open(s.path + ".record"))]
        assert events == ["granted", "returned", None, "granted", "returned"], events


@test
def a_restarted_service_knows_what_is_out(folder):
    with Service(folder, devices=["card:2G"]) as s:
        first, lost = s.lease("1G"), s.lease("1G")
        assert first.stdout.readline() and lost.stdout.readline()
        for how in signal.SIGTERM, signal.SIGKILL:
            waiting = s.lease("2G")
            wait_for("the third to wait", lambda: s.status()["waiting"] == 1)
            s.process.send_signal(how)
            s.process.wait()
            s.process.stderr.close()
            s.start()
            wait_for("the third to ask again", lambda: s.status()["waiting"] == 1)
            assert s.status()["devices"][0]["used"] == 2 * GIB
            waiting.kill()
            waiting.communicate()
        lost.kill()
        lost.communicate()
        wait_for("the dead to be noticed", lambda: s.tasks() == [1])
        first.communicate()
        assert first.returncode == 0
        wait_for("the device to come back", lambda: s.tasks() == [0])


@test
def five_hundred_clients_at_once_all_get_their_turn(folder):
    with Service(folder, "--most", "3") as s:
        clients = [s.connect() for _ in range(500)]
        for c in clients:
            c.sendall(f"lease {GIB // 4}\n".encode())
        held, most = [], 0
        for _ in range(500):
            answers = []
            for c in clients:
                if c not in held:
                    c.setblocking(False)
                    try:
                        first = c.recv(200)
                    except BlockingIOError:
                        first = b""
                    c.settimeout(20)
                    if first:
                        assert first.startswith(b"granted ") and first.endswith(b"\n"), first
                        answers.append((c, first.split()[1].decode()))
            most = max(most, len(answers))
            for c, ticket in answers:
                assert say(c, f"return {ticket}") == "ok"
                c.close()
                clients.remove(c)
            if not clients:
                break
        assert not clients and most <= 6, (len(clients), most)
        assert sum(d["served"] for d in s.status()["devices"]) == 500


@test
def policies_are_changed_while_it_runs(folder):
    with Service(folder, "--policy", "round-robin", devices=["a:2G:1", "b:2G:5", "c:2G:1"]) as s:
        c = s.connect()
        assert [say(c, "lease 1").split()[2] for _ in range(3)] == ["0", "1", "2"]
        run("devices", "policy", "best-fit", "--socket", s.path)
        assert s.status()["policy"] == "best-fit" and say(c, "lease 1").split()[2] == "1"
        assert "best-fit" in run("devices", "policy", "worst", "--socket", s.path, code=2).stderr
        text = run("devices", "--socket", s.path).stdout
        assert "policy best-fit, 0 waiting" in text and text.count("GiB") == 3, text


@test
def malformed_oversized_and_slow_requests_are_refused_and_delay_nobody(folder):
    with Service(folder) as s:
        assert say(s.connect(), "hello").startswith("refused")
        for text in ["lease", "lease many", "lease -5", "lease 99999999999999999999", "return 77", "policy", "status now"]:
            c = s.connect()
            assert say(c, text).startswith("refused"), text
        slow, long, binary, silent = (s.connect() for _ in range(4))
        slow.sendall(b"lea")
        long.sendall(b"lease " + b"1" * 5000)
        assert read(long).startswith("refused") and read(long) is None
        binary.sendall(bytes(range(256)) * 4)
        assert read(binary).startswith("refused")
        start = time.monotonic()
        assert say(s.connect(), "lease 1").startswith("granted")
        assert time.monotonic() - start < 4
        assert read(slow) is None  # after some seconds
        assert say(silent, "status").startswith("{")


@test
def what_can_never_be_given_is_told_at_once(folder):
    with Service(folder, "--waiting-user", "1") as s:
        assert "no device has" in run("devices", "lease", "--socket", s.path, "--memory", "3G", "--", "true", code=2).stderr
        c = s.connect()
        assert say(c, f"lease {2 * GIB}").startswith("granted") and say(c, f"lease {2 * GIB}").startswith("granted")
        c.sendall(f"lease {GIB}\n".encode())
        wait_for("it to wait", lambda: s.status()["waiting"] == 1)
        assert say(s.connect(), f"lease {GIB}") == "refused too many requests are waiting"
        late = run("devices", "lease", "--socket", s.path, "--wait", "0.2", "--", "true", code=2).stderr
        assert "too many requests" in late, late
        c.close()
        assert "cannot run ./nothing" in run("devices", "lease", "--socket", s.path, "--", "./nothing", code=127).stderr


@test
def a_request_may_name_the_devices_that_it_can_use(folder):
    with Service(folder, devices=("a:2G", "b:2G", "c:1G")) as s:
        c = s.connect()
        assert say(c, f"lease {GIB} 2").split()[2] == "1" and say(c, f"lease {GIB} 2").split()[2] == "1"
        c.sendall(f"lease {GIB} 2\n".encode())  # the others are free, but it cannot use them
        wait_for("it to wait", lambda: s.status()["waiting"] == 1)
        assert say(s.connect(), f"lease {2 * GIB} 4") == f"refused no device has {2 * GIB} bytes"
        for wrong in ("x", "-1", "0", "", "2 2", "2x"):
            assert say(s.connect(), f"lease 1 {wrong}").startswith("refused lease needs"), wrong


@test
def others_may_not_ask(folder):
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    os.chmod(folder, 0o755)
    with Service(folder) as s:
        ask = [FOVEA, "devices", "--socket", s.path]
        other = subprocess.run(ask, user=65534, group=65534, extra_groups=[], capture_output=True, text=True)
        assert other.returncode == 2 and "owner and group only" in other.stderr, other.stderr
        os.chmod(s.path, 0o666)  # the service looks for itself
        other = subprocess.run(ask, user=65534, group=65534, extra_groups=[], capture_output=True, text=True)
        assert other.returncode == 2 and "not for you" in other.stderr, other.stderr
        ours = [os.stat(s.path).st_gid]
        member = subprocess.run(ask, user=65534, group=65534, extra_groups=ours, capture_output=True, text=True)
        assert member.returncode == 0, member.stderr


@test
def mistakes_are_explained(folder):
    nobody = os.path.join(folder, "nobody.sock")
    assert "start `fovea devices serve`" in run("devices", "--socket", nobody, code=2).stderr
    without = run_in("devices", "serve", "--socket", nobody, folder=folder, code=2, environment={"FOVEA_PLUGINS": folder}).stderr
    assert "--device a100:40G" in without and "apt-get install ocl-icd-opencl-dev" in without, without
    for device in ["card", "card:", ":2G", "card:2 apples", "card:0", "x" * 80 + ":2G"]:
        assert "expected NAME:MEMORY" in run("devices", "serve", "--socket", nobody, "--device", device, code=2).stderr, device
    pathlib.Path(nobody).write_text("mine")
    assert "is no socket" in run("devices", "serve", "--socket", nobody, "--device", "a:1G", code=2).stderr
    assert pathlib.Path(nobody).read_text() == "mine"
    with Service(folder) as s:
        assert "listens there already" in run("devices", "serve", "--socket", s.path, "--device", "a:1G", code=2).stderr
        assert s.tasks() == [0, 0]
    assert "is none of list" in run("devices", "sreve", code=2).stderr


main()
