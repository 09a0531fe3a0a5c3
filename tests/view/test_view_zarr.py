"""The virtual OME-Zarr of `fovea view` is read by Zarr itself, and only by whom it is meant for."""
import collections.abc
import json
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test
from view_client import View

ORIGIN = "https://neuroglancer-demo.appspot.com"


class Store(collections.abc.MutableMapping):
    """What lies below an address of the server, as Zarr wants to have it."""

    def __init__(self, view, base):
        self.view, self.base = view, base

    def __getitem__(self, key):
        code, _, body = self.view.get(f"{self.base}/{key}", cookie=False)
        if code == 404:
            raise KeyError(key)
        assert code == 200, (key, code, body)
        return body

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __setitem__(self, key, value):
        raise PermissionError

    __delitem__ = None

    def __contains__(self, key):
        try:
            return bool(self[key])
        except KeyError:
            return False


def opened(view, image):
    try:
        import zarr
    except ImportError as error:
        raise Skip(f"no Zarr here: {error}") from error
    base = view.json("/api/session")["zarr"] + str(image)
    return zarr.open_group(Store(view, base), mode="r")


@test
def zarr_reads_every_image(folder):
    random = numpy.random.default_rng(2)
    volume = random.integers(0, 60000, (70, 150, 130), dtype=numpy.uint16)
    colour = random.integers(0, 255, (90, 120, 3), dtype=numpy.uint8)
    movie = random.normal(size=(3, 2, 5, 40, 50)).astype(numpy.float32)
    for name, array in (("v", volume), ("c", colour), ("m", movie)):
        numpy.save(pathlib.Path(folder) / f"{name}.npy", array)
    run("run", "-q", "-e", 'write(read("v.npy"), "v.zarr", chunk = [32, 48, 20], levels = 2)\nwrite(read("v.npy"), "v.nii.gz")\n'
        'write(read("c.npy") |> name_axes("y x c"), "c.png")\nwrite(read("m.npy") |> name_axes("t c z y x"), "m.ome.tif")',
        folder=folder)
    with View("v.npy", "v.zarr", "v.nii.gz", "c.png", "m.ome.tif", "--allow-origin", ORIGIN, folder=folder) as view:
        for image in range(3):
            group = opened(view, image)
            assert numpy.array_equal(group["0"][:], volume), image
            assert numpy.array_equal(group["0"][10:40, 77, 5:9], volume[10:40, 77, 5:9])
        assert numpy.array_equal(opened(view, 1)["1"][:], view.voxels("/api/volume", image=1, level=1))
        assert numpy.array_equal(opened(view, 3)["0"][:], numpy.moveaxis(colour, 2, 0))
        assert numpy.array_equal(opened(view, 4)["0"][:], movie)
        [scale] = opened(view, 1).attrs["multiscales"]
        assert scale["version"] == "0.4" and [axis["name"] for axis in scale["axes"]] == ["z", "y", "x"]
        assert [level["path"] for level in scale["datasets"]][:2] == ["0", "1"]
        for path in ("0/nothing", "0/9/.zarray", "0/0/0/0/9999", "0/0/0/0", "0/0/a/b/c", "99/.zattrs", "x/.zattrs", "0/0/-1/0/0"):
            assert view.get(f"/zarr/{path}")[0] == 404, path


@test
def only_those_who_were_let_in_read_it(folder):
    numpy.save(pathlib.Path(folder) / "a.npy", numpy.zeros((4, 5, 6), numpy.uint8))
    with View("a.npy", "--allow-origin", ORIGIN, folder=folder) as view:
        base = view.json("/api/session")["zarr"]
        assert view.token not in base
        guest = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
        code, headers, body = view.get(base + "0/.zattrs", headers=guest, cookie=False)
        assert code == 200 and headers["Access-Control-Allow-Origin"] == ORIGIN and json.loads(body)["multiscales"]
        assert view.get(base + "0.zarr/.zattrs", headers=guest, cookie=False)[2] == body
        assert view.get(base + "0.zar/.zattrs", headers=guest, cookie=False)[0] == 404
        for origin in ("https://evil.example", "null", ORIGIN + ".evil.example", "http" + ORIGIN[5:]):
            assert view.get(base + "0/.zattrs", headers={"Origin": origin}, cookie=False)[0] == 403, origin
        assert view.get(base + "0/.zattrs", headers={"Sec-Fetch-Site": "cross-site"}, cookie=False)[0] == 403
        assert view.get("/zarr/0/.zattrs", headers={"Origin": ORIGIN}, cookie=False)[0] in (401, 403)
        wrong = base[:-2] + ("0" if base[-2] != "0" else "1") + "/"
        assert view.get(wrong + "0/.zattrs", cookie=False)[0] == 401
        key = base.split("/")[2]
        for path in ("/", f"/?token={key}", "/api/session"):
            assert view.get(path, cookie=False)[0] == 401, path
        assert view.get("/api/session", headers={"Origin": ORIGIN})[0] == 403
    with View("a.npy", folder=folder) as view:
        assert "zarr" not in view.json("/api/session")
        assert view.get(f"/zarr/{view.token}/0/.zattrs", cookie=False)[0] == 401


if __name__ == "__main__":
    main()
