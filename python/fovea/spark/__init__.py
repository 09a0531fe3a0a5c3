"""Fovea on Spark.

    fovea.spark.run(spark, "foam.fov", {"radius": 12})

Spark places and restarts workers, one long task for each slot; Fovea gives out the work. Results and errors are those of
fovea.run. `fovea run foam.fov --engine spark --master spark://host:7077` does the same from the shell. mpi runs any MPI program
inside of Spark's executors; read and apply make DataFrames of images and of what is measured in them."""
from ._frames import apply, read, slices, table, write_image
from ._mpi import mpi
from ._place import run
from ._resources import resources

__all__ = ["apply", "mpi", "read", "resources", "run", "slices", "table", "write_image"]
