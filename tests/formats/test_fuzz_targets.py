#!/usr/bin/python3
"""Every format that is read has a fuzz target, and every target a seed that its reader takes: a fuzzer that starts from nothing
finds nothing."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
import fuzz  # noqa: E402
from fovea_test import FOVEA, main, run, test  # noqa: E402

BUILD = pathlib.Path(FOVEA).resolve().parent
NO_FILES = ("language", "devices")


def missing(target, folder):
    """Why files of a target cannot be made here."""
    if target in ("h5", "dcm") and not (BUILD / f"fovea-{'hdf5' if target == 'h5' else 'dicom'}.so").exists():
        return "its plug-in is not built"
    if target.startswith("parquet"):
        pathlib.Path(folder, "probe.csv").write_text("a\n1\n")
        if run("convert", "-q", "--overwrite", "probe.csv", "probe.parquet", folder=folder, code=None).returncode:
            return "DuckDB's library is not there"
    return None


@test
def every_format_that_is_read_has_a_target(folder):
    images, tables = fuzz.formats()
    targets = fuzz.targets()
    assert len(set(targets)) == len(targets), targets
    for described in images + tables:
        if described["reads"]:
            assert {described["name"], *described["extensions"]} & set(targets), f"{described['name']} has no fuzz target"
    both = {e for f in images for e in f["extensions"]} & {e for f in tables if f["reads"] for e in f["extensions"]}
    for described in images:
        if set(described["extensions"]) & both:
            assert described["name"] in targets, f"{described['name']} is fuzzed as a table only"


@test
def every_target_has_a_seed_that_its_reader_takes(folder):
    for target in fuzz.targets():
        place = pathlib.Path(folder, target)
        place.mkdir()
        seeds = list(fuzz.seeds(place, target))
        if missing(target, folder):
            continue
        assert seeds, f"{target} has no seed"
        if target not in NO_FILES:
            taken = []
            for number, seed in enumerate(seeds):
                path = fuzz.lay_out(place / f"try{number}", target, seed)
                taken.append(run("info", path, folder=folder, code=None).returncode == 0)
                if taken[-1]:
                    break
            assert any(taken), f"no seed of {target} is taken"


main()
