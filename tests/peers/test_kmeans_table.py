"""kmeans of tables against scikit-learn."""
import csv
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import numpy as np
from fovea_test import main, run, test
from sklearn.cluster import KMeans


def put(folder, points, name="t.csv", more=""):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write("name,a,b,c\n" + "".join(f"r{k},{a!r},{b!r},{c!r}\n" for k, (a, b, c) in enumerate(points.tolist())) + more)


def classes(folder, name="out.csv"):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return np.array([int(row["class"]) for row in csv.DictReader(file)])


def points(seed, count, spread):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-20, 20, (4, 3))
    return np.concatenate([centre + rng.normal(0, spread, (count, 3)) for centre in centres])[rng.permutation(4 * count)]


def inertia(data, which):
    return sum(((data[which == k] - data[which == k].mean(0)) ** 2).sum() for k in np.unique(which))


@test
def classes_are_as_good_as_those_of_scikit_learn(folder):
    for seed, spread in ((1, 1.0), (2, 3.0), (3, 8.0)):
        data = points(seed, 300, spread)
        put(folder, data)
        run("run", "--overwrite", "-e", 'kmeans(read("t.csv"), "a, b, c", classes = 4) |> write("out.csv")', folder=folder)
        found = classes(folder)
        peer = KMeans(4, n_init=10, random_state=0).fit(data)
        assert inertia(data, found) <= peer.inertia_ * 1.01, (seed, inertia(data, found), peer.inertia_)
        sums = [data[found == k].mean(0).sum() for k in range(4)]
        assert sums == sorted(sums), sums
        if spread == 1.0:  # far apart: there is only one answer
            pairs = set(zip(found, peer.labels_))
            assert len(pairs) == 4, pairs


@test
def scaled_columns_count_alike(folder):
    data = points(4, 200, 2.0)
    data[:, 0] *= 1e6
    put(folder, data)
    run("run", "-e", 'kmeans(read("t.csv"), "a, b, c", classes = 4, scale = true) |> write("out.csv")', folder=folder)
    scaled = data / data.std(0)
    peer = KMeans(4, n_init=10, random_state=0).fit(scaled)
    assert inertia(scaled, classes(folder)) <= peer.inertia_ * 1.01


@test
def seeds_workers_and_samples(folder):
    data = points(5, 20000, 3.0)  # more than are looked at
    put(folder, data)
    texts = [f'kmeans(read("t.csv"), "a, b", classes = 5, seed = {seed}) |> write("{seed}.csv")' for seed in (1, 2)]
    run("run", "-e", "\n".join(texts), folder=folder)
    first = classes(folder, "1.csv")
    run("run", "--overwrite", "-e", texts[0], "--workers", "1", "--memory", "90M", "--store", "other", folder=folder)
    assert (classes(folder, "1.csv") == first).all()
    peer = KMeans(5, n_init=3, random_state=0).fit(data[:, :2])
    assert inertia(data[:, :2], first) <= peer.inertia_ * 1.05


@test
def missing_values_have_no_class_and_mistakes_are_named(folder):
    put(folder, points(6, 20, 1.0), more="x,,1,2\ny,nan,1,2\n")
    run("run", "-e", 'kmeans(read("t.csv"), "a", classes = 3) |> write("out.csv")', folder=folder)
    assert (classes(folder)[-2:] == -1).all() and set(classes(folder)[:-2]) == {0, 1, 2}
    for text, words in (('kmeans(read("t.csv"), "name")', ("name", "text")), ('kmeans(read("t.csv"), "d")', ("columns", "a")),
                        ('kmeans(read("t.csv"), "")', ("empty",)), ('kmeans(read("t.csv"), "a", classes = 1)', ("classes",))):
        said = run("run", "-e", text, folder=folder, code=2).stderr
        assert all(word in said for word in words), said
    said = run("run", "-e", 'kmeans(filter(read("t.csv"), "b > 1e9"), "b")', folder=folder, code=None).stderr
    assert "0 different rows" in said, said


main()
