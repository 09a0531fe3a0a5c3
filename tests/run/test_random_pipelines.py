"""Operators put together by chance: a sample; tests/soak/random_pipelines.py runs as many as wanted."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import random_pipelines
from fovea_test import main, test

FIRST, COUNT, LEAST = 1, 60, 25  # of so many at least some run to their end; the others are refused in both ways


@test
def pipelines_by_chance_have_the_same_bits_in_chunks_and_never_crash(folder):
    fovea, ended, wrong = os.environ["FOVEA"], 0, []
    known = random_pipelines.operators(fovea)
    for seed in range(FIRST, FIRST + COUNT):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            trial = random_pipelines.Trial(fovea, known, seed, own)
        ended += trial.ended
        if trial.wrong:
            wrong.append(f"--seed {seed}: {trial.wrong}")
    assert not wrong, "\n".join(wrong)
    assert ended >= LEAST, f"only {ended} of {COUNT} ran to their end"


main()
