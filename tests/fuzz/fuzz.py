#!/usr/bin/env python3
"""Runs every fuzz target for some time, starting from small files that Fovea itself writes.

    tests/fuzz/fuzz.py [--seconds 60] [--at-once 2] [--keep FOLDER] [TARGET ...]

Targets are the extensions of all formats that are read (those of one format once), "parquet-image", which shares its extension
with tables, "language" and "devices". What is found is left in build-fuzz/found; a repaired finding is kept as
tests/fuzz/findings/TARGET-WHAT, which a test reads again.
Prints "ok TARGET", "not ok TARGET: why" or "skip TARGET: why".
"""
import argparse
import base64
import bz2
import concurrent.futures
import gzip
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOVEA, FUZZ = os.environ.get("FOVEA", ROOT / "build" / "fovea"), ROOT / "build-fuzz" / "fuzz"
FOUND, FINDINGS = ROOT / "build-fuzz" / "found", ROOT / "tests" / "fuzz" / "findings"
BREAK = b"\xffFV\xff"
LARGEST = 20000  # bytes of an input
SLOW = 60  # seconds for one, on a machine that does other things too
# Extensions that are read in their own way besides the first of a format.
BUNDLES = ("zarr", "mhd", "nhdr", "hdr", "pvti", "pvd", "st")
MORE = ["mhd", "nhdr", "st", "ppm", "mdoc", "bz2", "zst", "zip"]
IMAGES = [("[3, 5, 7]", "uint8"), ("[3, 5, 7]", "uint16"), ("[3, 5, 7]", "float32"), ("[6, 8]", "uint8"), ("[5, 7]", "bool")]
# 8 x 8 grey pixels.
JPEG = ("/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP////////////////////////////////////////////////////////////////////////////////////"
        "//wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z")
# Two chunks of frames with positions, as ptypy keeps them; packed.
PTYD = """
eNrr9HBx4+WS4mLm4GCAgf9QsFoIwjeAiicfNuHz93AJYlII3fQnCxlXMAkha4QBLiYGRgYGNkEGIMWWnFGal118nhFiFhs/SJAlN7UkkUGAAdUeEkBFze0Z
YCcxMjAymjAwMDEzMjJB5VjQaFzizDwMjCAnQFzGwcAKdDUzFwfQRyyMDNBQUYBZOINh0IILWTPayYkeHpDXGQ2SoOED5RvyskLNtSDfSdWRZwrIcRIkcaQk
liQehprEJgIS4izIL84syczPK/4Ki01dEp10cVXqI3iKUQGmCiZEisFFM4swMAoqyENTjAKDOAeDeD2QhZxSFKApBZaYGRYwDHpg8Un+Ay1zj8EQyj0HVxQI
UpZUGVmwJ9UFrGQm1QnrlefSIqkGDMGkesz57UJ4WLBA/Avxqz20jHZgMOFmMPnPjOrXBKhf4bXbAYYhD8xLDDKoZhgjEzMLKxs7BycXNw8vH7+AoJCwiKiY
uISklLSMrJw8QmGDPTiQiVYPVAvEZ8+AgIQDREjGQddZ5vUjMyl7hlEwCkbBKBgFo2AUDBggvz+fmpdalF65hg3a6BUGCXKkZBaXJOYlp06Gti3ZBEDCrAXF
mVWp8wWhdkrgds5WYSNjcpp5GcOwmfdRjM2PnLAoGIZhkS9otB4A+nP2EA==
"""
PROGRAMS = ['a = read("foam.tif")\nb = gaussian(1 - a / 255, sigma = [3, 6, 6])\nwrite(label(b > 0.9), "b-{r}.zarr")\n',
            'param r = 12\nx = read("a.png")[0:100, :, ::2] |> median(5) |> write("out.png") # why\n',
            'm = !(a & b | c) == (d ** -2 % 3.5e-3) <= "text\\n" != [true, false]\n', "(" * 300 + ")" * 300]
PICTURES = [b"P6\n2 2\n255\n" + bytes(range(12)), b"P3 # colours\n2 1 7\n1 2 3\n4 5 6\n", b"P1\n3 2\n1 0 1\n0 1 0\n",
            b"P4\n9 2\n\1\2\3\4", b"P2 3 1 65535\n0 1 65535", b"P5 2 2 300\n" + bytes(8)]
MDOC = b"PixelSpacing = 2.5\n[ZValue = 0]\nTiltAngle = -3\n[ZValue = 1]\nTiltAngle = 0\n[ZValue = 2]\nTiltAngle = 3\n"
TRANSFORM = (b"#Insight Transform File V1.0\n#Transform 0\nTransform: Euler3DTransform_double_3_3\n"
             b"Parameters: 0.1 0.2 0.3 4 5 6\nFixedParameters: 7 8 9 0\n")
SPOKEN = ["lease 1000\nlease 5 3\nreturn 1\nstatus\n", "policy best-fit\npolicy random\nlease 99999999999\nlease -1\nreturn 77\n"]


def formats():
    described = json.loads(subprocess.run([FOVEA, "ops", "--json"], stdout=subprocess.PIPE, check=True, cwd="/").stdout)
    return described["formats"], described["tables"]


def targets():
    images, tables = formats()
    taken = {e for f in tables if f["reads"] for e in f["extensions"]}
    names = [f["name"] if f["extensions"][0] in taken else f["extensions"][0] for f in images if f["reads"]]
    names += [f["extensions"][0] for f in tables if f["reads"]]
    return names + [e for e in MORE if any(e in f["extensions"] for f in images + tables)] + ["language", "devices"]


def fovea(folder, text):
    """Runs a pipeline; a format that cannot hold this image is no failure."""
    subprocess.run([FOVEA, "run", "-q", "-e", text], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)


def written(folder, extension):
    """Small images of some types, with every compression."""
    choices = [""]
    for f in formats()[0]:
        if extension in f["extensions"]:
            choices += [f', compression = "{c}"' for c in f.get("compressions", [])[1:]]
    lines = [f'phantom("foam", {shape}) |> convert("{dtype}") |> write("{i}-{j}.{extension}"{choice})'
             for i, (shape, dtype) in enumerate(IMAGES) for j, choice in enumerate(choices) if i == 0 or j == 0]
    for line in lines:
        fovea(folder, line)
    return sorted(pathlib.Path(folder).glob(f"*.{extension}"))


def part(name, content):
    return name.encode() + b"\n" + content


def bundle(folder):
    """All files of a folder, metadata first."""
    files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: (p.suffix != ".json" and p.name[0] != ".", p))
    return BREAK.join(part(str(p.relative_to(folder)), p.read_bytes()) for p in files)


def zarr_seeds(folder):
    for path in written(folder, "zarr"):
        yield bundle(path)
    others = ['version = "0.4"', 'version = "0.4", compression = "blosc"', "chunk = 4, shard = 8", "levels = 2"]
    for i, options in enumerate(others):
        fovea(folder, f'phantom("foam", [6, 10, 12]) |> write("more{i}.zarr", {options})')
        yield bundle(pathlib.Path(folder, f"more{i}.zarr"))


def detached_seeds(folder, extension):
    """Headers with their voxels in a second file."""
    attached = {"mhd": "mha", "nhdr": "nrrd", "hdr": "nii", "pvti": "vti", "pvd": "vti", "st": "mrc"}[extension]
    for path in written(folder, attached):
        content = path.read_bytes()
        if extension == "mhd":
            head, voxels = content.split(b"LOCAL\n", 1)
            yield part("a.mhd", head + b"v.raw\n") + BREAK + part("v.raw", voxels)
        elif extension == "nhdr":
            head, voxels = content.split(b"\n\n", 1)
            yield part("a.nhdr", head + b"\ndata file: v.raw\n\n") + BREAK + part("v.raw", voxels)
        elif extension == "hdr":
            head = content[:108] + bytes(4) + content[112:344] + b"ni1\0"  # voxels begin at 0
            yield part("a.hdr", head) + BREAK + part("a.img", content[352:])
        elif extension == "pvti":
            extent = content.split(b'WholeExtent="', 1)[1].split(b'"')[0]
            head = (b'<VTKFile type="PImageData" byte_order="LittleEndian">'
                    b'<PImageData WholeExtent="%s" Spacing="1 1 1" Origin="0 0 0">'
                    b'<PPointData Scalars="image"><PDataArray type="UInt8" Name="image"/></PPointData>'
                    b'<Piece Extent="%s" Source="p.vti"/></PImageData></VTKFile>' % (extent, extent))
            yield part("a.pvti", head) + BREAK + part("p.vti", content)
        elif extension == "pvd":
            head = (b'<VTKFile type="Collection" version="0.1"><Collection>'
                    b'<DataSet timestep="1" part="0" file="p.vti"/></Collection></VTKFile>')
            yield part("a.pvd", head) + BREAK + part("p.vti", content)
        else:
            yield part("a.st", content) + BREAK + part("a.tlt", b"-60\n0\n60\n")
            yield part("a.st", content) + BREAK + part("a.st.mdoc", MDOC)


def vti_text_seeds():
    """Voxels as numbers, as base64 and in blocks of LZ4, inside the XML and behind it."""
    voxels = bytes(range(8))
    plain = base64.b64encode(struct.pack("<I", 8) + voxels)
    packed = bytes([0x80]) + voxels  # eight literals and nothing to copy
    blocks = base64.b64encode(struct.pack("<4I", 1, 8, 0, len(packed))) + base64.b64encode(packed)
    for more, how, text in ((b"", b"ascii", b"0 1 2 3 4 5 6 7"), (b"", b"binary", plain),
                            (b' compressor="vtkLZ4DataCompressor"', b"binary", blocks)):
        front = (b'<VTKFile type="ImageData" byte_order="LittleEndian"%s><ImageData WholeExtent="0 1 0 1 0 1">'
                 b'<Piece Extent="0 1 0 1 0 1"><PointData>' % more)
        back = b"</PointData></Piece></ImageData>"
        yield front + b'<DataArray type="UInt8" Name="a" format="%s">%s</DataArray>' % (how, text) + back + b"</VTKFile>"
        if how == b"binary":
            yield (front + b'<DataArray type="UInt8" Name="a" format="appended" offset="0"/>' + back +
                   b'<AppendedData encoding="base64">_%s</AppendedData></VTKFile>' % text)


def table_seeds(folder, extension):
    rows = 'name,count,size\nfirst,1,0.5\n"sec,ond ""q""",,-2e9\nthird,3,nan\n'
    pathlib.Path(folder, "rows.csv").write_text(rows)
    subprocess.run([FOVEA, "convert", "-q", "rows.csv", f"out.{extension}"], cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    for name in ("rows.csv", f"out.{extension}"):
        if name.endswith(extension) and pathlib.Path(folder, name).exists():
            yield pathlib.Path(folder, name).read_bytes()


def xlsx_seeds():
    """A small workbook, packed and as it is."""
    parts = {
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/workbook.xml": '<workbook><sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/sharedStrings.xml": "<sst><si><t>name</t></si><si><r><t>a &amp; </t></r><r><t>b&#233;</t></r></si></sst>",
        "xl/styles.xml": '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm"/></numFmts>'
                         '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c>'
                                    '<c r="B1" t="inlineStr"><is><t>when</t></is></c><c r="C1" t="str"><v>n</v></c></row>'
                                    '<row r="3"><c r="A3" t="s"><v>1</v></c><c r="B3" s="1"><v>45000.5</v></c>'
                                    '<c r="C3"><f>1+1</f><v>2</v></c></row><row><c><v>1e3</v></c><c t="b"><v>1</v></c>'
                                    '<c t="e"><v>#N/A</v></c></row></sheetData></worksheet>'}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", method) as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
        yield memory.getvalue()


def dicom_seed():
    """A frame of 3 x 4 pixels, explicit VR, little endian."""
    def element(group, number, kind, value):
        value += b"\0" * (len(value) % 2)
        length = struct.pack("<HI", 0, len(value)) if kind in (b"OB", b"OW") else struct.pack("<H", len(value))
        return struct.pack("<HH", group, number) + kind + length + value
    head = element(2, 0x10, b"UI", b"1.2.840.10008.1.2.1")
    shorts = [(0x28, 2, 1), (0x28, 0x10, 3), (0x28, 0x11, 4), (0x28, 0x100, 8), (0x28, 0x101, 8), (0x28, 0x102, 7),
              (0x28, 0x103, 0)]
    body = [element(8, 0x16, b"UI", b"1.2.840.10008.5.1.4.1.1.7"), element(0x20, 0x13, b"IS", b"1 "),
            element(0x28, 4, b"CS", b"MONOCHROME2 "), element(0x28, 0x30, b"DS", b"0.5\\0.5 ")]
    body += [element(group, number, b"US", struct.pack("<H", value)) for group, number, value in shorts]
    body.sort(key=lambda e: struct.unpack("<HH", e[:4]))
    size = element(2, 0, b"UL", struct.pack("<I", len(head)))
    return bytes(128) + b"DICM" + size + head + b"".join(body) + element(0x7fe0, 0x10, b"OW", bytes(range(12)))


def packed_seeds(folder, extension):
    """Small files of which the packing is fuzzed and not the format inside."""
    for path in [*written(folder, "npy"), *written(folder, "nrrd")]:
        content = path.read_bytes()
        if extension == "zip":
            memory = io.BytesIO()
            with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(path.name, content)
            yield memory.getvalue()
        elif extension == "zst":  # one frame of one raw block
            block = struct.pack("<I", len(content) << 3 | 1)[:3] + content
            yield b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(content)) + block
        else:
            yield {"gz": gzip.compress, "bz2": bz2.compress}[extension](content)


def real_seeds(extension):
    """Small files of the real test data, where there is any."""
    data = pathlib.Path(os.environ.get("FOVEA_TEST_DATA", ROOT.parent / "shared" / "data"))
    for path in sorted(data.glob(f"tiff/*.{extension}*")) if data.is_dir() else []:
        if path.stat().st_size <= LARGEST:
            yield path.read_bytes()


def seeds(folder, target):
    if target == "language":
        yield from (text.encode() for text in PROGRAMS)
    elif target == "devices":
        yield from (text.encode() for text in SPOKEN)
    elif target == "jpg":
        yield base64.b64decode(JPEG)
    elif target == "dcm":
        yield dicom_seed()
    elif target == "ptyd":
        yield zlib.decompress(base64.b64decode(PTYD))
    elif target == "ppm":
        yield from PICTURES
    elif target in ("tlt", "mdoc"):
        yield b"-60\n0\n60.5\n" if target == "tlt" else MDOC
    elif target in ("tfm", "mat"):
        yield TRANSFORM if target == "tfm" else b"1  0  0  2.5\n0  1  0  -3\n0  0  1  1e-3\n0  0  0  1\n"
    elif target in ("gz", "bz2", "zst", "zip"):
        yield from packed_seeds(folder, target)
    elif target == "parquet-image":
        yield from (path.read_bytes() for path in written(folder, "parquet"))
    elif target == "zarr":
        yield from zarr_seeds(folder)
    elif target == "xlsx":
        yield from xlsx_seeds()
    elif target in ("mhd", "nhdr", "hdr", "pvti", "pvd", "st"):
        yield from detached_seeds(folder, target)
    elif any(target in f["extensions"] for f in formats()[1] if f["reads"]):
        yield from table_seeds(folder, target)
    else:
        yield from (path.read_bytes() for path in written(folder, target))
        yield from real_seeds(target)
        yield from vti_text_seeds() if target == "vti" else ()


def lay_out(folder, target, seed):
    """Puts a seed where its reader finds it, as the fuzz target does."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    if target not in BUNDLES:
        path = pathlib.Path(folder, f"seed_2x3x4_uint8.{'parquet' if target == 'parquet-image' else target}")
        path.write_bytes(seed)
        return path
    names = []
    for part in seed.split(BREAK):
        name, content = part.split(b"\n", 1)
        names.append(pathlib.Path(folder, f"a.{target}", name.decode()))
        names[-1].parent.mkdir(parents=True, exist_ok=True)
        names[-1].write_bytes(content)
    return pathlib.Path(folder, f"a.{target}") if target == "zarr" else names[0]


def fuzz(target, seconds, keep):
    """One target: what to print."""
    corpus = pathlib.Path(keep or tempfile.mkdtemp(prefix="fovea-fuzz-"), target)
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fovea-seeds-") as folder:
        for i, content in enumerate(seeds(folder, target)):
            (corpus / f"seed{i:03}").write_bytes(content)
    for path in FINDINGS.glob(f"{target}-*"):
        shutil.copy(path, corpus)
    FOUND.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, FOVEA_FUZZ=target, FOVEA_PLUGINS=str(ROOT / "build"), UBSAN_OPTIONS="print_stacktrace=1",
                       LSAN_OPTIONS=f"print_suppressions=0:suppressions={ROOT}/tests/fuzz/leaks.txt",
                       ASAN_SYMBOLIZER_PATH=shutil.which("llvm-symbolizer-14") or "",
                       ASAN_OPTIONS="allocator_may_return_null=1:quarantine_size_mb=16:detect_odr_violation=0")
    log = FOUND / f"{target}.log"
    with open(log, "wb") as out:
        status = subprocess.run([FUZZ, f"-max_total_time={seconds}", f"-max_len={LARGEST}", f"-timeout={SLOW}",
                                 "-rss_limit_mb=1024", "-malloc_limit_mb=1024", "-print_final_stats=1",
                                 f"-artifact_prefix={FOUND}/{target}-", corpus],
                                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False).returncode
    lines = log.read_text(errors="replace").splitlines()
    runs = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    covered = next((line.split("cov: ")[1].split()[0] for line in reversed(lines) if "cov: " in line), "?")
    if not keep:
        shutil.rmtree(corpus.parent)
    if status == 0:
        return True, f"ok {target}\n# {runs} inputs, {covered} edges"
    telling = [line for line in lines if "runtime error" in line or line.startswith(("fuzz:", "SUMMARY"))]
    why = telling[0] if telling else f"exit status {status}"
    return False, f"not ok {target}: {why} ({log.relative_to(ROOT)})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of every target")
    parser.add_argument("--at-once", type=int, default=2, help="targets")
    parser.add_argument("--keep", help="folder in which what was tried stays, for the next time")
    parser.add_argument("names", nargs="*", metavar="TARGET")
    options = parser.parse_args()
    known = targets()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no target is called {unknown[0]}; targets are {', '.join(known)}")
    if not FUZZ.exists():
        parser.error(f"{FUZZ.relative_to(ROOT)} is not there; run make fuzz")
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        results = [pool.submit(fuzz, target, options.seconds, options.keep) for target in options.names or known]
        good = True
        for result in concurrent.futures.as_completed(results):
            good &= result.result()[0]
            print(result.result()[1], flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
