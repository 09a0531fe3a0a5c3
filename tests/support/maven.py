"""Programs for Java from Maven, for tests."""
import os
import pathlib
import shutil
import subprocess

from fovea_test import ROOT, Skip

POM = """<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>jars</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>{}</dependencies></project>"""
ONE = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def find_jars(name, variable, *artifacts):
    """The folder that has these artifacts ("group:name:version") and all that they need: the one that the variable names, or
    build/NAME-jars, or ~/.cache/NAME-jars; fetched once. Where they cannot be had the test is skipped."""
    first = artifacts[0].split(":")[1]
    folder, usual = pathlib.Path(os.environ.get(variable, ROOT / "build" / f"{name}-jars")), pathlib.Path.home() / ".cache"
    for place in (folder, usual / f"{name}-jars"):
        if list(place.glob(f"{first}-*.jar")):
            return place
    if not shutil.which("mvn"):
        raise Skip(f"no mvn here to fetch {name} with: apt-get install maven")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(POM.format("".join(ONE.format(*artifact.split(":")) for artifact in artifacts)))
    done = subprocess.run(["mvn", "-q", "-B", "-ntp", "-f", str(folder / "pom.xml"), f"-DoutputDirectory={folder}",
                           "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise Skip(f"{name} cannot be fetched from Maven: " + " ".join(done.stdout.split())[-200:])
    return folder
