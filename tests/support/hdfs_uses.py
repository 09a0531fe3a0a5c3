"""What users do with files behind hdfs:// addresses, for an imitation of HDFS and for a real one."""
import os

from fovea_test import run

NAMES = ["a.zarr", "a.tif", "a.nii.gz", "a.npy", "a.mrc"]


def fetch(folder, text, place, code=0):
    """What an expression gives, as an array, or what is said."""
    import numpy as np
    done = run("run", "--quiet", "--overwrite", "-e", f'{text} |> write("out.npy")', folder=folder, environment=place, code=code)
    return done.stderr if code else np.load(f"{folder}/out.npy")


def written_is_read_by_every_format(folder, place, root):
    """Whole and by region, also below a name with blanks."""
    import numpy as np
    image = np.random.default_rng(5).integers(0, 4000, (24, 70, 90)).astype(np.uint16)
    np.save(f"{folder}/in.npy", image)
    for name in NAMES:
        run("convert", "in.npy", f"{root}/of it/{name}", "--quiet", folder=folder, environment=place)
        assert np.array_equal(fetch(folder, f'read("{root}/of it/{name}")', place), image), name
        part = fetch(folder, f'read("{root}/of it/{name}")[5:9, 10:20, 30:75]', place)
        assert np.array_equal(part, image[5:9, 10:20, 30:75]), name
    assert "uint16" in run("info", f"{root}/of it/a.zarr", folder=folder, environment=place).stdout


def a_study_of_a_folder(folder, place, root):
    """Patterns find files, results and tables go back, the same command has nothing to do, a changed input is computed anew."""
    import numpy as np
    for k in range(4):
        np.save(f"{folder}/in{k}.npy", np.random.default_rng(k).integers(0, 255, (40, 50), np.uint8))
        run("convert", f"in{k}.npy", f"{root}/plate{k % 2}/in{k}.tif", "--quiet", folder=folder, environment=place)
    with open(f"{folder}/study.fov", "w") as file:
        file.write(f'x = read("{root}/plate*/in*.tif")\nwrite(median(x, 3), "{root}/out/{{stem}}.tif")\n'
                   f'write(measure(label(x > 128)), "{root}/cells.csv")\n')
    run("run", "study.fov", folder=folder, environment=place)
    assert "up to date" in run("run", "study.fov", folder=folder, environment=place).stderr
    for k in range(4):
        want = fetch(folder, f'median(read("in{k}.npy"), 3)', place)
        assert np.array_equal(fetch(folder, f'read("{root}/out/in{k}.tif")', place), want), k
    table = run("run", "-q", "-e", f'read_table("{root}/cells.csv")', folder=folder, environment=place).stdout
    assert len(table.splitlines()) > 20, table
    run("convert", "in0.npy", f"{root}/plate1/in3.tif", "--quiet", "--overwrite", folder=folder, environment=place)
    run("run", "study.fov", folder=folder, environment=place)
    assert np.array_equal(fetch(folder, f'read("{root}/out/in3.tif")', place), fetch(folder, 'median(read("in0.npy"), 3)', place))


def what_is_wrong_is_said(folder, place, root):
    """Names that are not there, folders, users that may not, servers that are none."""
    said = fetch(folder, f'read("{root}/none.tif")', place, code=2)
    assert f"there is no file {root}/none.tif" in said, said
    stranger = dict(place, HADOOP_USER_NAME="stranger")
    said = run("run", "-q", "-e", f'write(phantom("cells", [9, 9]), "{root}/no.tif")', folder=folder, environment=stranger,
               code=None).stderr
    assert "denies access (403)" in said and "HADOOP_USER_NAME" in said, said
    said = fetch(folder, f'read("{root}/none.tif")', dict(place, FOVEA_WEBHDFS="http://127.0.0.1:1"), code=2)
    assert "cannot read" in said and "none.tif" in said, said


def all_of_it(folder, place, root):
    """Each in a folder of its own."""
    for use in (written_is_read_by_every_format, a_study_of_a_folder, what_is_wrong_is_said):
        os.makedirs(f"{folder}/{use.__name__}")
        use(f"{folder}/{use.__name__}", place, f"{root}/{use.__name__}")
