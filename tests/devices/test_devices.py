"""The scheduler of devices: real processes against a real service, which gives out PoCL devices where PoCL is installed."""
import csv
import os
import pathlib
import pty
import random
import select
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from device_service import GIB, Service, no_pocl, read, run, run_in, say
from fovea_test import FOVEA, PATIENCE, Skip, main, test, wait_for


@test
def who_dies_gives_his_device_back_at_once_and_takes_his_command_with_him(folder):
    with Service(folder, devices=1) as s:
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
    with Service(folder, devices=1) as s:
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
def a_record_that_grows_long_is_put_aside_while_leases_go_on(folder):
    line = "1.000000,lost,1,-1,0,0,1,1\n"
    path = os.path.join(folder, "long.record")
    with open(path, "w") as record:
        record.write(line * ((16 << 20) // len(line)))
    with Service(folder, "--record", path, devices=1) as s:
        holder = s.lease("1G")
        assert holder.stdout.readline()
        run("devices", "lease", "--socket", s.path, "--", "true")
        wait_for("the old record", lambda: os.path.exists(path + ".old") and os.path.getsize(path) < 1000)
        rows = list(csv.DictReader(open(path)))
        assert rows[0]["event"] == "granted" and int(rows[0]["memory"]) == GIB, rows
        s.process.kill()
        s.process.wait()
        s.process.stderr.close()
        s.start()
        assert s.tasks() == [1], "the one that follows knows the lease"
        holder.communicate()
        wait_for("the device to be free", lambda: s.tasks() == [0])


@test
def a_restarted_service_knows_what_is_out(folder):
    with Service(folder, devices=1) as s:
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
        last = s.lease("1G")
        assert last.stdout.readline()
        s.process.kill()
        s.process.wait()
        s.process.stderr.close()
        last.kill()  # while nobody looks
        last.communicate()
        s.start()
        assert s.tasks() == [0]
    assert replay(s.path + ".record", 2 * GIB, 2) == {}  # all ends are recorded


@test
def one_user_cannot_have_all_connections(folder):
    if os.getuid() != 0:
        raise Skip("only root can be two users")
    os.chmod(folder, 0o755)
    with Service(folder, files=132) as s:  # for a hundred connections
        crowd = [s.connect() for _ in range(75)]
        assert all(say(c, "status").startswith("{") for c in crowd)
        assert "you have too many connections" in read(s.connect())
        ask = [FOVEA, "devices", "--socket", s.path]
        member = subprocess.run(ask, user=65534, group=65534, extra_groups=[os.stat(s.path).st_gid], capture_output=True,
                                text=True)
        assert member.returncode == 0, member.stderr
        for c in crowd:
            c.close()
        wait_for("the connections to end", lambda: run("devices", "--socket", s.path, code=None).returncode == 0)


def client(path, memory, number):
    """In a process of its own: a lease, held for a moment. 0 if all went as it should."""
    random.seed(number)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE)
    s.connect(path)
    granted = say(s, f"lease {memory}").split()
    time.sleep(random.random() * 0.004)
    return 0 if granted[0] == "granted" and say(s, f"return {granted[1]}") == "ok" else 1


def replay(record, memory, most):
    """Follows a record; no device may ever have been given out beyond its memory or its number of tasks."""
    out, used, tasks = {}, {}, {}
    for row in csv.DictReader(open(record)):
        ticket, device = row["ticket"], row["device"]
        if row["event"] == "granted":
            out[ticket] = device, int(row["memory"])
            used[device] = used.get(device, 0) + int(row["memory"])
            tasks[device] = tasks.get(device, 0) + 1
            assert used[device] <= memory and tasks[device] <= most, row
        elif ticket in out:
            device, freed = out.pop(ticket)
            used[device] -= freed
            tasks[device] -= 1
    return out


@test
def five_hundred_processes_at_once_all_get_their_turn_and_no_device_too_much(folder):
    with Service(folder, "--most", "5", devices=3) as s:
        children = []
        for number in range(500):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = client(s.path, GIB // [8, 4, 2, 1][number % 4], number)
                finally:
                    os._exit(code)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 500
        assert sum(d["served"] for d in s.status()["devices"]) == 500 and s.tasks() == [0] * 3
    assert replay(s.path + ".record", 2 * GIB, 5) == {}


@test
def five_hundred_connections_are_open_at_once(folder):
    with Service(folder, "--most", "3") as s:
        clients = [s.connect() for _ in range(500)]
        for c in clients:
            c.sendall(f"lease {GIB // 4}\n".encode())
        wait_for("all but six to wait", lambda: s.status()["waiting"] == 494)
        assert s.tasks() == [3, 3]
        for c in clients:  # who gets a device ends, one after the other
            assert read(c).startswith("granted ")
            c.close()
        wait_for("the devices to be free", lambda: s.tasks() == [0, 0])
        assert sum(d["served"] for d in s.status()["devices"]) == 500


@test
def every_policy_gives_devices_in_its_order(folder):
    def order(s, memories):
        with s.connect() as c:
            given = [int(say(c, f"lease {memory}").split()[2]) for memory in memories]
        wait_for("the devices to be free", lambda: s.tasks() == [0] * 3)
        return given

    with Service(folder, "--policy", "round-robin", devices=3) as s:
        assert order(s, [1] * 5) == [0, 1, 2, 0, 1] and order(s, [1] * 2) == [2, 0]
        assert order(s, [2 * GIB, GIB, GIB, GIB]) == [1, 2, 0, 2]  # 1 is full
        run("devices", "policy", "least-processes", "--socket", s.path)
        assert order(s, [1] * 5) == [0, 1, 2, 0, 1] and order(s, [1] * 2) == [0, 1]
        run("devices", "policy", "random", "--socket", s.path)
        assert set(order(s, [1] * 60)) == {0, 1, 2}
        run("devices", "policy", "best-fit", "--socket", s.path)
        speeds = [d["speed"] for d in s.status()["devices"]]
        expected, tasks, used = [], [0] * 3, [0] * 3
        memories = [GIB, GIB // 2, GIB // 4, GIB, GIB // 8, GIB]  # each fits somewhere, whatever the speeds
        for memory in memories:
            fitting = [d for d in range(3) if 2 * GIB - used[d] >= memory]
            best = max(fitting, key=lambda d: (speeds[d] / (tasks[d] + 1), used[d]))
            expected.append(best)
            tasks[best] += 1
            used[best] += memory
        assert order(s, memories) == expected, (speeds, expected)


@test
def two_users_get_devices_in_turn(folder):
    if os.getuid() != 0:
        raise Skip("only root can be two users")
    os.chmod(folder, 0o755)
    with Service(folder, devices=1) as s:
        script = "echo started; exec sleep 0.02"
        command = [FOVEA, "devices", "lease", "--socket", s.path, "--memory", "2G", "--", "sh", "-c", script]
        first = s.lease("2G")
        assert first.stdout.readline()
        crowd = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(20)]
        wait_for("the crowd to wait", lambda: s.status()["waiting"] == 20)
        other = [subprocess.Popen(command, stdout=subprocess.PIPE, user=65534, group=65534,
                                  extra_groups=[os.stat(s.path).st_gid]) for _ in range(5)]
        wait_for("all to wait", lambda: s.status()["waiting"] == 25)
        first.communicate()
        for process in crowd + other:
            process.communicate()
            assert process.returncode == 0
    users = [row["user"] for row in csv.DictReader(open(s.path + ".record")) if row["event"] == "granted"]
    assert len(users) == 26 and users[1:11].count("65534") == 5, users  # in turn until nothing more is wanted


@test
def hostile_bytes_harm_nobody(folder):
    words = [b"lease ", b"return ", b"policy ", b"status", b"\n", b"\0", b" ", b"-1", b"1", b"ffffffffffffffffff", b"best-fit",
             b"%s%n", b"\xff\xfe", b"9" * 300]
    source = random.Random(5)
    with Service(folder) as s:
        good = s.connect()
        for _ in range(300):
            c = s.connect()
            try:
                c.sendall(b"".join(source.choice(words) for _ in range(source.randrange(1, 40))))
                if source.random() < 0.5:
                    c.shutdown(socket.SHUT_WR)
            except OSError:  # it has been refused meanwhile
                pass
            c.close()
            granted = say(good, "lease 1").split()
            assert granted[0] == "granted" and say(good, f"return {granted[1]}") == "ok"
        good.close()
        wait_for("the devices to be free", lambda: s.tasks() == [0, 0] and s.status()["waiting"] == 0)


@test
def occupancy_is_shown_live(folder):
    with Service(folder, devices=1) as s:
        main_end, end = pty.openpty()
        watch = subprocess.Popen([FOVEA, "devices", "watch", "--socket", s.path], stdout=end, stderr=end)
        os.close(end)
        seen = b""
        while seen.count(b"0 tasks now") < 2:
            seen += os.read(main_end, 1000)
        assert b"\x1b[2A" in seen and b"0.0 of 2.0 GiB" in seen, seen  # it draws over what it has drawn
        held = s.lease("1G")
        while b"1 task now" not in seen:
            seen += os.read(main_end, 1000)
        assert b"##########.........." in seen and b"1.0 of 2.0 GiB" in seen and b"policy best-fit, 0 waiting" in seen, seen
        held.communicate()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=PATIENCE) == 0
        os.close(main_end)


LONG_RUN = 'phantom("cells", [128, 128, 128]) |> gaussian([2, 1, 1]) |> write("a.npy")'


def long_run(s, folder):
    """Many tasks, each of which leases a PoCL device."""
    return subprocess.Popen([FOVEA, "run", "-q", "-e", LONG_RUN, "--device", "opencl", "--chunk", "8x16x16", "--store",
                             os.path.join(folder, "store")], cwd=folder, stderr=subprocess.PIPE, text=True,
                            env=dict(s.environment, FOVEA_DEVICES=s.path))


def served(s):
    return sum(d["served"] for d in s.status()["devices"])


@test
def a_run_on_devices_goes_on_after_the_service_was_killed_and_started_again(folder):
    if no_pocl():
        raise Skip(no_pocl())
    with Service(folder, devices=3) as s:
        process = long_run(s, folder)
        wait_for("some tasks", lambda: served(s) > 10)
        process.send_signal(signal.SIGSTOP)  # so that it is not done before the service has gone
        s.process.kill()
        s.process.wait()
        s.process.stderr.close()
        process.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        assert process.poll() is None
        s.start()
        assert process.wait(timeout=PATIENCE) == 0, process.stderr.read()
        process.stderr.close()
        assert served(s) > 10 and s.tasks() == [0, 0, 0]
    assert replay(s.path + ".record", 2 * GIB, 1000) == {}


@test
def a_run_that_is_killed_inside_a_kernel_gives_its_devices_back(folder):
    if no_pocl():
        raise Skip(no_pocl())
    with Service(folder, devices=3) as s:
        process = long_run(s, folder)
        wait_for("some tasks", lambda: served(s) > 3)
        process.kill()
        process.communicate()
        wait_for("the devices to be free", lambda: s.tasks() == [0, 0, 0])
        assert long_run(s, folder).wait(timeout=PATIENCE) == 0 and os.path.exists(os.path.join(folder, "a.npy"))


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


def answered_meanwhile(s):
    """Whether somebody is served before one who stops in the middle of a word is given up, after some seconds."""
    slow, other = s.connect(), s.connect()
    slow.sendall(b"lea")
    assert say(other, "lease 1").startswith("granted")
    given_up = bool(select.select([slow], [], [], 0)[0])
    assert read(slow) is None
    return not given_up


@test
def malformed_oversized_and_slow_requests_are_refused_and_delay_nobody(folder):
    with Service(folder) as s:
        assert say(s.connect(), "hello").startswith("refused")
        for text in ["lease", "lease many", "lease -5", "lease 99999999999999999999", "return 77", "policy", "status now"]:
            c = s.connect()
            assert say(c, text).startswith("refused"), text
        long, binary, silent = (s.connect() for _ in range(3))
        long.sendall(b"lease " + b"1" * 5000)
        assert read(long).startswith("refused") and read(long) is None
        binary.sendall(bytes(range(256)) * 4)
        assert read(binary).startswith("refused")
        wait_for("an answer before the slow one is given up", lambda: answered_meanwhile(s))
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
    assert "policy needs a name: random" in run("devices", "policy", code=2).stderr


main()
