"""Jobs of a real Slurm keep to the devices that they were given (--gres)."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import slurm
from fovea_test import FOVEA, PATIENCE, ROOT, Skip, main, run, test

POCL = {"POCL_DEVICES": "pthread pthread pthread", "POCL_MEMORY_LIMIT": "2"}
SHOW = "echo $SLURM_STEP_GPUS $FOVEA_DEVICE $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES"


class Node:
    """A cluster whose nodes have three cards, and one service for all of them."""

    def __init__(self, folder):
        self.folder, self.socket = folder, os.path.join(folder, "node.sock")
        self.cluster = slurm.Cluster(devices=3)

    def __enter__(self):
        self.cluster.__enter__()
        command = [FOVEA, "devices", "serve", "--socket", self.socket, "--policy", "round-robin"]
        self.service = subprocess.Popen(command + [w for k in range(3) for w in ("--device", f"card{k}:2G")],
                                        stderr=subprocess.PIPE, text=True)
        assert "given out" in self.service.stderr.readline()
        return self

    def __exit__(self, *_):
        self.service.terminate()
        self.service.wait()
        self.service.stderr.close()
        self.cluster.__exit__()

    def job(self, gres, *command, memory=500, **more):
        environment = {**os.environ, **self.cluster.environment, **POCL, "FOVEA_DEVICES": self.socket,
                       "SLURM_MEM_PER_NODE": str(memory), **more}
        asked = [f"--gres={gres}"] if gres else []
        return subprocess.Popen(["srun", "-w", "n1", "-n", "1", *asked, *command], cwd=self.folder, text=True,
                                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self, gres, *command, memory=500, **more):
        process = self.job(gres, *command, memory=memory, **more)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err


def leases_are_of_the_jobs_own_devices(node):
    lease = [FOVEA, "devices", "lease", "--memory", "1G", "--", "sh", "-c", SHOW + "; cat"]
    run("devices", "lease", "--", "true", folder="/tmp", environment={"FOVEA_DEVICES": node.socket})  # the next would be 1
    first = node.job("gpu:1", *lease)
    said = first.stdout.readline().split()
    if len(said) < 4:
        return f"this Slurm does not tell which devices a job has: {said}"
    second = node.job("gpu:a100:1", *lease)
    assert said == ["0"] * 4 and second.stdout.readline().split() == ["1"] * 4
    for process in first, second:
        process.communicate("")
        assert process.returncode == 0
    code, out, err = node.result("gpu:2", "sh", "-c", f"for i in 1 2 3; do {FOVEA} devices lease -- sh -c '{SHOW}'; done")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and {line[1] for line in lines} == {"0", "1"}, (out, err)
    assert all(line[0] == "0,1" and line[1] == line[2] == line[3] for line in lines), lines
    return None


def the_prolog_of_the_documentation_serves_the_jobs_devices(node):
    page = (ROOT / "docs" / "devices.md").read_text()
    script = next(part for part in page.split("```") if "# TaskProlog" in part).strip()
    script = script.replace("fovea devices", f"{FOVEA} devices")
    path = pathlib.Path(node.folder, "prolog.sh")
    path.write_text(script + "\n")
    path.chmod(0o755)
    code, out, err = node.result("gpu:2", f"--task-prolog={path}", "sh", "-c", f"{FOVEA} devices --json; echo; "
                                 f"{FOVEA} devices lease -- sh -c '{SHOW}'; rm -f $FOVEA_DEVICES*")
    status, _, lease = out.strip().rpartition("\n")
    assert code == 0 and [d["name"] for d in json.loads(status)["devices"]] == ["card0", "card1"], (out, err)
    assert lease.split()[1] == lease.split()[2], lease


def runs_keep_to_the_jobs_devices(node):
    text = 'phantom("cells", [64, 64]) |> gaussian(2) |> write("{}.npy")'
    no_service = {"FOVEA_DEVICES": os.path.join(node.folder, "nobody.sock")}
    here = run("devices", "--json", folder="/tmp", code=None, environment={**POCL, **no_service, "FOVEA_DEVICES": ""})
    if here.returncode:
        return here.stderr.strip()
    for device, good in (("opencl", True), ("opencl:1", True), ("opencl:2", False)):
        code, _, err = node.result("gpu:2", FOVEA, "run", "-q", "-e", text.format(device[-1]), "--device", device, **no_service)
        assert (code == 0) == good and (good or "given others (--gres)" in err), (device, err)
    code, _, err = node.result("gpu:1", FOVEA, "run", "-q", "-e", text.format("little"), "--device", "opencl", memory=200,
                               HOME=node.folder, XDG_CACHE_HOME=node.folder, **no_service)  # no kernel was compiled there
    assert code and "at least --memory" in err and "OpenCL, whose compiler" in err, (code, err)
    serve = (f"{FOVEA} devices serve --socket s.sock 2>/dev/null & "
             f"for i in $(seq 100); do [ -S s.sock ] && break; sleep 0.1; done; {FOVEA} devices --socket s.sock --json; kill $!")
    code, out, err = node.result("gpu:1", "sh", "-c", serve)
    names = [d["name"] for d in json.loads(out)["devices"]]
    assert [name.startswith("(not of this job)") for name in names] == [False, True, True], (names, err)
    return None


def submitted_runs_ask_for_devices_and_use_them(node):
    pathlib.Path(node.folder, "p.fov").write_text('write(gaussian(phantom("cells", [64, 64]), 2), "submitted.npy")\n')
    environment = {**node.cluster.environment, **POCL, "FOVEA_DEVICES": node.socket}
    done = run("submit", "p.fov", "--device", "opencl", "--measure", "0", folder=node.folder, environment=environment)
    place = pathlib.Path(node.folder, done.stdout.splitlines()[0])
    assert any("#SBATCH --gres=gpu:1\n" in script.read_text() for script in place.glob("slurm/*/*.sh"))
    node.cluster.wait_for("the result", lambda: pathlib.Path(node.folder, "submitted.npy").exists())
    node.cluster.idle()
    run("run", "-q", "-e", 'write(gaussian(phantom("cells", [64, 64]), 2), "here.npy")', "--device", "opencl", "--store", "other",
        folder=node.folder, environment=POCL)
    assert pathlib.Path(node.folder, "submitted.npy").read_bytes() == pathlib.Path(node.folder, "here.npy").read_bytes()
    none = run("submit", "p.fov", "--device", "opencl", "--measure", "0", "--dry-run", "--gres", "gpu:a100:2", folder=node.folder,
               environment=environment).stdout.splitlines()[0]
    last = sorted(pathlib.Path(node.folder, none, "slurm").iterdir())[-1]
    assert any("--gres=gpu:a100:2\n" in script.read_text() for script in last.glob("*.sh"))


@test
def jobs_keep_to_the_devices_that_slurm_gave_them(folder):
    why = slurm.missing() or (None if shutil.which("srun") else "no srun")
    if why:
        raise Skip(why)
    os.chmod(folder, 0o755)
    with Node(folder) as node:
        left_out = leases_are_of_the_jobs_own_devices(node)
        if left_out:
            raise Skip(left_out)
        the_prolog_of_the_documentation_serves_the_jobs_devices(node)
        left_out = runs_keep_to_the_jobs_devices(node)
        if not left_out:
            submitted_runs_ask_for_devices_and_use_them(node)
    if left_out:
        print(f"skip runs_keep_to_the_devices_that_slurm_gave_them: {left_out}")


main()
