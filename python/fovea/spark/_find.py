"""Finding Spark: the package pyspark, or that of a Spark that is installed on the system."""
import glob
import importlib.util
import os
import shutil
import sys

from .._errors import MissingPart

FOR_PYTHON_3_11 = (3, 4)  # the first version of Spark that knows it


def _check_version():
    """An old one would fail in the middle of a run, with words that do not tell why."""
    from importlib.metadata import PackageNotFoundError, version
    try:
        found = version("pyspark")
    except PackageNotFoundError:  # that of SPARK_HOME
        from pyspark import __version__ as found
    if sys.version_info >= (3, 11) and tuple(int(word) for word in found.split(".")[:2]) < FOR_PYTHON_3_11:
        raise MissingPart(f"pyspark {found} does not know Python 3.{sys.version_info[1]}, which {sys.executable} is: take "
                          "at least Spark 3.4, or with FOVEA_PYTHON an older Python")


def find_pyspark():
    """Makes `import pyspark` possible, or says what is missing."""
    if importlib.util.find_spec("pyspark") is None:
        home = os.environ.get("SPARK_HOME")
        program = shutil.which("spark-submit")
        if not home and program:
            home = os.path.dirname(os.path.dirname(os.path.realpath(program)))
        parts = [os.path.join(home, "python"), *glob.glob(os.path.join(home, "python", "lib", "py4j-*.zip"))] if home else []
        if not home or not os.path.isdir(os.path.join(parts[0], "pyspark")):
            raise MissingPart(f"{sys.executable} has no pyspark, and neither SPARK_HOME nor spark-submit on the PATH leads to a "
                              "Spark; `pip install pyspark` installs one, FOVEA_PYTHON names another Python")
        sys.path[:0] = parts
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if not java or not os.access(java, os.X_OK):
        raise MissingPart("Spark needs Java, and there is none: JAVA_HOME is not set to one, and no java is on the PATH; Debian: "
                          "apt-get install openjdk-17-jre-headless")
    _check_version()
