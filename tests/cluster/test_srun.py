"""`srun fovea run` under a real Slurm: ranks on several nodes, and launches that would become singletons."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import slurm
from fovea_test import FOVEA, PATIENCE, Skip, main, run, test

BUILD = pathlib.Path(FOVEA).parent
TEXT = """cells = label(phantom("cells", [300, 300], seed = 1) > 90)
write(cells, "cells.npy")
count(cells > 0)
"""


def srun(cluster, kind, folder, code):
    """fovea on two nodes; pmix cannot have two pretend nodes on one machine, since both make the same folder."""
    nodes, tasks = ("1", "2") if kind == "pmix" else ("2", "4")
    environment = {**os.environ, **cluster.environment, "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"}
    done = subprocess.run(["srun", f"--mpi={kind}", "-N", nodes, "-n", tasks, FOVEA, "run", "p.fov", "--chunk", "50",
                           "--workers", "1"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert (done.returncode == 0) == (code == 0), (done.returncode, done.stderr[-800:])
    return done


def works(cluster, kind, flavour, folder):
    if not (BUILD / f"fovea-mpi-{flavour}.so").exists():
        return f"no mpicc.{flavour}"
    kinds = subprocess.run(["srun", "--mpi=list"], env={**os.environ, **cluster.environment}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True).stdout
    if kind not in kinds:
        return f"this Slurm knows no --mpi={kind}"
    place = pathlib.Path(folder, kind)
    place.mkdir()
    (place / "p.fov").write_text(TEXT)
    done = srun(cluster, kind, place, 0)
    assert done.stdout == run("run", "p.fov", "--chunk", "50", "--store", "alone", "--into", "alone", folder=place).stdout
    assert (place / "cells.npy").read_bytes() == (place / "alone" / "cells.npy").read_bytes()
    return None


@test
def srun_starts_ranks_of_both_flavours_and_refuses_singletons(folder):
    why = slurm.missing() or (None if shutil.which("srun") else "no srun")
    if why:
        raise Skip(why)
    with slurm.Cluster() as cluster:
        pathlib.Path(folder, "p.fov").write_text(TEXT)
        refused = srun(cluster, "none", folder, 2)
        assert "--mpi=pmi2" in refused.stderr and refused.stderr.count("do not know each other") == 1, refused.stderr
        left_out = {kind: works(cluster, kind, flavour, folder) for kind, flavour in (("pmi2", "mpich"), ("pmix", "openmpi"))}
    if all(left_out.values()):
        raise Skip(str(left_out))
    for kind, reason in left_out.items():
        if reason:
            print(f"skip srun_with_{kind}: {reason}")


main()
