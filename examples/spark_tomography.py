#!/usr/bin/env python3
"""Tomography on Spark, as a pipeline of one text and as the four steps of published Spark pipelines on a DataFrame.

    spark-submit spark_tomography.py [TILTS]        or python3 spark_tomography.py, where pyspark is installed

TILTS is a tilt series with its angles (.mrc, .zarr); without one a phantom is projected. Both ways give the same bits; volume.png
shows the projection of the volume along z.
"""
import os
import sys

import numpy
from pyspark.sql import SparkSession

import fovea
import fovea.spark

GEOMETRY = "parallel(range(-72, 72, 6))"
ART = f"art({{}}, {GEOMETRY}, iterations = 4)"

# Where the package is not installed, executors find it where the driver did.
found = os.path.dirname(os.path.dirname(fovea.__file__))
spark = SparkSession.builder.appName("tomography").config("spark.executorEnv.PYTHONPATH", found).getOrCreate()

tilts = sys.argv[1] if len(sys.argv) > 1 else "tilts.zarr"
if len(sys.argv) < 2:
    fovea.run(f'write(xray(phantom("shepp-logan", [16, 64, 64]), {GEOMETRY}), "tilts.zarr")', overwrite=True)

# One text: Spark places workers, Fovea cuts the volume into tasks.
fovea.spark.run(spark, f'write({ART.format(f"""read("{tilts}")""")}, "volume.npy")', overwrite=True)

# Four steps. 1. Load the tilt series into a DataFrame: path, item, shape, dtype, axes, spacing, units, angles, bytes, error.
series = fovea.spark.read(tilts)
series.printSchema()
# 2. Repartition: a row for each slice, spread over the executors.
slices = fovea.spark.slices(series, "z").repartition(4, "item")
# 3. ART on each partition.
solved = slices.transform(fovea.spark.apply(ART.format("image")))
# 4. Gather, and render.
rows = solved.orderBy("item").collect()
volume = numpy.stack([numpy.frombuffer(row.bytes, row.dtype).reshape(row.shape) for row in rows])
fovea.array(volume).project("z").rescale(0, 255).convert("uint8").write("volume.png")

print("both ways are the same:", numpy.array_equal(volume, numpy.load("volume.npy")))
spark.stop()
