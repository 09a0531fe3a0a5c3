#!/usr/bin/env python3
"""Packs the Python package, the library, the command and the libraries that they need into one wheel.

    scripts/wheel.py BUILD OUT

The package is plain Python over the shared library, so one wheel serves every Python from 3.9 on. Libraries that each Linux has
(glibc, libstdc++, zlib; the list is that of PEP 600) stay outside; all others lie beside ours and are found there. Plug-ins for
MPI, HDF5 and OpenCL are not inside: they belong to the distribution's libraries, and FOVEA_PLUGINS names their folder. Prints the
wheel's path.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYSTEM = re.compile(r"(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z|util|resolv|nsl))[-.]")


def needed(path):
    """Libraries that a program loads and that not every Linux has."""
    out = subprocess.run(["ldd", str(path)], check=True, capture_output=True, text=True).stdout
    pairs = re.findall(r"^\s*(\S+) => (\S+)", out, re.M)
    return {name: pathlib.Path(where) for name, where in pairs if not SYSTEM.match(name)}


def put_binary(source, target, origin):
    """A stripped copy that looks for libraries beside it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)
    subprocess.run(["patchelf", "--set-rpath", origin, str(target)], check=True)


def fill(build, folder):
    """The package as it is installed."""
    package = folder / "fovea"
    shutil.copytree(ROOT / "python" / "fovea", package, ignore=shutil.ignore_patterns("__pycache__", "lib", "bin"))
    put_binary((build / "libfovea.so.0").resolve(), package / "lib" / "libfovea.so.0", "$ORIGIN")
    put_binary(build / "fovea", package / "bin" / "fovea", "$ORIGIN/../lib")
    libraries = {**needed(build / "libfovea.so.0"), **needed(build / "fovea")}
    for name, path in sorted(libraries.items()):
        put_binary(path.resolve(), package / "lib" / name, "$ORIGIN")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "python_stubs.py"), str(package / "__init__.pyi")], check=True,
                   env={**os.environ, "FOVEA_LIBRARY": str((build / "libfovea.so.0").resolve())})
    shutil.copyfile(ROOT / "LICENSE", package / "LICENSE")


def metadata(folder):
    """Name and version from pyproject.toml, and what pip wants to know beside it."""
    project = (ROOT / "python" / "pyproject.toml").read_text()
    version, brief = (re.search(rf'^{key} = "(.*)"$', project, re.M).group(1) for key in ("version", "description"))
    binaries = [p.read_bytes() for part in ("lib", "bin") for p in (folder / "fovea" / part).iterdir()]
    libc = max(int(n) for data in binaries for n in re.findall(rb"GLIBC_2\.(\d+)", data))
    tag = f"py3-none-manylinux_2_{libc}_{platform.machine()}"
    info = folder / f"fovea-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fovea\nVersion: {version}\nSummary: {brief}\n"
                                   "License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy>=1.22\n")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: fovea\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (info / "entry_points.txt").write_text("[console_scripts]\nfovea = fovea.__main__:main\n\n"
                                           "[napari.manifest]\nfovea = fovea:napari.yaml\n")
    return info, f"fovea-{version}-{tag}.whl"


def digest(data):
    """A file's hash as RECORD wants it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def pack(folder, info, path):
    """The folder as a zip with a list of its files."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        record, listing = [], f"{info.name}/RECORD"

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes from the same build
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
        for file in files:
            name, data = str(file.relative_to(folder)), file.read_bytes()
            add(name, data, file.stat().st_mode)
            record.append(f"{name},{digest(data)},{len(data)}")
        add(listing, "\n".join(record + [f"{listing},,", ""]), 0o100644)


def main():
    build, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        fill(build, folder)
        info, name = metadata(folder)
        pack(folder, info, out / name)
    print(out / name)


if __name__ == "__main__":
    main()
