#!/usr/bin/python3
"""Projections and reconstructions of parallel beams beside those of the ASTRA toolbox's processor code."""
import sys

try:
    import astra
    import numpy as np
except ImportError as missing:
    print(f"skip astra: {missing}")
    sys.exit(0)

from pipelines import Difference, run, test

COUNT, N = 60, 72
ANGLES = np.arange(COUNT) * 3.0
GEOMETRY = "parallel(range(0, 177, 3))"
SLICE = astra.create_vol_geom(N, N)
BEAM = astra.create_proj_geom("parallel", 1.0, N, np.radians(ANGLES))
PROJECTOR = astra.create_projector("linear", BEAM, SLICE)
RANDOM = np.random.default_rng(3)


def object_without_symmetry():
    image = np.zeros((N, N), np.float32)
    image[20:50, 15:30] = 1
    image[40:60, 35:50] += 0.5
    image[12:18, 50:58] = 2
    return image


def peer(name, sinogram, iterations=1, **options):
    """What an ASTRA algorithm makes of a sinogram."""
    data, volume = astra.data2d.create("-sino", BEAM, sinogram), astra.data2d.create("-vol", SLICE, 0)
    settings = astra.astra_dict(name)
    settings.update(ProjectionDataId=data, ReconstructionDataId=volume, ProjectorId=PROJECTOR, option=options)
    algorithm = astra.algorithm.create(settings)
    astra.algorithm.run(algorithm, iterations)
    result = astra.data2d.get(volume)
    astra.algorithm.delete(algorithm)
    astra.data2d.delete([data, volume])
    return result


def check(ours, theirs, least, what):
    error = np.sqrt(np.mean((ours - theirs)**2)) / np.sqrt(np.mean(theirs**2))
    if not error < least:
        raise Difference(f"{what}: relative difference {error}")


@test
def projections_equal_those_of_the_linear_projector():
    image = object_without_symmetry()
    number, theirs = astra.create_sino(image, PROJECTOR)
    astra.data2d.delete(number)
    check(run(f"xray(a, {GEOMETRY})", a=image), theirs, 1e-5, "a random object")


@test
def iterations_equal_those_of_the_peer():
    sinogram = run(f"xray(a, {GEOMETRY})", a=object_without_symmetry())
    for iterations in (1, 10):
        ours = run(f'sirt(name_axes(p, "angle x"), {GEOMETRY}, iterations = {iterations})', p=sinogram)
        check(ours, peer("SIRT", sinogram, iterations), 1e-4, f"sirt, {iterations} iterations")
        ours = run(f'cgls(name_axes(p, "angle x"), {GEOMETRY}, iterations = {iterations})', p=sinogram)
        check(ours, peer("CGLS", sinogram, iterations), 1e-3, f"cgls, {iterations} iterations")


@test
def filtered_backprojection_is_as_near_to_the_object():
    image = object_without_symmetry()
    sinogram = run(f"xray(a, {GEOMETRY})", a=image)
    ours, theirs = run(f'fbp(name_axes(p, "angle x"), {GEOMETRY})', p=sinogram), peer("FBP", sinogram)
    y, x = np.mgrid[:N, :N] - (N - 1) / 2
    disk = y**2 + x**2 < (N / 2)**2
    errors = [np.sqrt(np.mean((volume - image)[disk]**2)) for volume in (ours, theirs)]
    if errors[0] > 1.02 * errors[1]:
        raise Difference(f"our error {errors[0]}, theirs {errors[1]}")


test.main()
