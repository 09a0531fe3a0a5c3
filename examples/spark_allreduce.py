#!/usr/bin/env python3
"""A sum over ranks of MPI that live in the executors of Spark, beside Spark's own way by the driver.

    spark-submit spark_allreduce.py ALLREDUCE [RANKS]      ALLREDUCE: the program that allreduce.c becomes; 4 ranks if left out

There must be as many slots as ranks. Each rank has 2,000,000 numbers; the program prints how long one sum takes.
"""
import sys
import time

import numpy
from pyspark.sql import SparkSession

import fovea.spark

program, ranks = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
spark = SparkSession.builder.appName("allreduce").getOrCreate()
print("in executors:", fovea.spark.mpi(spark, ranks, [program]).strip())

# The same by Spark: every partition sends its numbers to the driver, which adds them and sends the sum to all.
parts = spark.sparkContext.parallelize(range(ranks), ranks).map(lambda k: numpy.full(2000000, k, numpy.float32)).cache()
parts.count()
began = time.perf_counter()
total = spark.sparkContext.broadcast(sum(parts.collect()))
parts.map(lambda _: float(total.value[0])).collect()
print(f"by Spark itself: {1000 * (time.perf_counter() - began):.0f} ms")
spark.stop()
