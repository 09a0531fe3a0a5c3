#!/usr/bin/python3
"""A real HDFS, on loopback: what users do with hdfs:// addresses, on threads and on executors of Spark that share nothing else
with the driver."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, main, run, test  # noqa: E402
from hdfs import Hdfs  # noqa: E402
from spark_cluster import Cluster  # noqa: E402

import hdfs_uses  # noqa: E402

try:
    import numpy as np
except ImportError as missing:
    print(f"skip hdfs: {missing}")
    sys.exit(0)

if not (pathlib.Path(FOVEA).resolve().parent / "fovea-remote.so").exists():
    print("skip hdfs: no fovea-remote.so; libcurl is missing")
    sys.exit(0)


@test
def what_users_do(folder):
    with Hdfs(f"{folder}/hdfs") as there:
        hdfs_uses.all_of_it(folder, there.environment(), f"{there.root}/user data")


@test
def executors_read_it_and_share_no_folder_with_the_driver(folder):
    driver = pathlib.Path(folder, "driver")
    driver.mkdir()
    text = 'x = read("{0}/in/*.tif")\nwrite(median(x, 5), "{0}/{1}/{{stem}}.tif")\nwrite(measure(label(x > 128)), "{1}.csv")\n'
    with Hdfs(f"{folder}/hdfs") as there, Cluster("build/spark", f"{folder}/cluster", hidden=driver) as cluster:
        place = {**there.environment(), **cluster.environment()}
        for k in range(8):
            np.save(f"{folder}/in{k}.npy", np.random.default_rng(k).integers(0, 255, (200, 200), np.uint8))
            run("convert", f"in{k}.npy", f"{there.root}/in/in{k}.tif", "--quiet", folder=folder, environment=place)
        for name in ("threads", "spark"):
            (driver / f"{name}.fov").write_text(text.format(there.root, name))
        run("run", "threads.fov", folder=driver, environment=place)
        settings = [word for name, value in there.environment().items()
                    for word in ("--spark-conf", f"spark.executorEnv.{name}={value}")]
        run("run", "spark.fov", "--engine", "spark", "--master", cluster.master, "--apart", "--spark-conf",
            "spark.executor.memory=512m", "--spark-conf", "spark.ui.enabled=false", *settings, folder=driver, environment=place)
        assert (driver / "threads.csv").read_bytes() == (driver / "spark.csv").read_bytes()
        for k in range(8):
            one, two = (hdfs_uses.fetch(folder, f'read("{there.root}/{name}/in{k}.tif")', place) for name in ("threads", "spark"))
            assert np.array_equal(one, two), k


if __name__ == "__main__":
    main()
