"""Finding Spark: the package pyspark, or that of a Spark that is installed on the system."""
import glob
import importlib.util
import os
import shutil
import sys

from .._errors import MissingPart


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
