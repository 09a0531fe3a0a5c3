"""What a run needs, in the words of Spark."""
from .._placed import placed_run
from ._place import OF_OVERHEAD


def resources(pipeline, params=None, *, tasks=1, cores=1, heap="512m", devices=0, discovery=None, **options):
    """A ResourceProfile of executors that a run fits into: `fovea.spark.run(spark, text, resources=fovea.spark.resources(text))`.

    Its memory beside the JVM is what the plan of the pipeline needs for `tasks` workers of `cores` cores each. heap: of the JVM.
    devices: how many each worker gets, found by the script `discovery`. Other options are those of fovea.spark.run. Spark starts
    such executors where dynamic allocation is enabled."""
    from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests
    with placed_run(pipeline, params, **options) as run:
        wanted = run.look()["ask"] * tasks * cores
    executor = ExecutorResourceRequests().cores(tasks * cores).memory(heap)
    executor = executor.memoryOverhead(f"{max(int(wanted / OF_OVERHEAD) >> 20, 384)}m")
    task = TaskResourceRequests().cpus(cores)
    if devices:
        executor = executor.resource("gpu", tasks * devices, discovery or "")
        task = task.resource("gpu", devices)
    return ResourceProfileBuilder().require(executor).require(task).build
