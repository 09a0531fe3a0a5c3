#!/usr/bin/python3
"""What the page of `fovea view` does, in a real browser: every kind of image, contrast, links, levels, labels, tables, volume,
comparison, collections, live values, sizes of screen, and what goes wrong."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Page, view  # noqa: E402
from fovea_test import Skip, long, main, run  # noqa: E402
from view_cases import centre_pixel, look_at, made_scan, make_cells, np, save, write  # noqa: E402

DISPLAY = "fovea.store.get('display')[fovea.store.get('image')]"


def pointed(page, axis="z"):
    """What the page says about the voxel in the middle of a plane."""
    page.do("hover", selector=f"canvas[data-axis={axis}]")
    page.until("document.querySelector('#pointer b')?.textContent")
    return page.text("#pointer b")


def drawn(page, selector):
    """How many pixels of a canvas are not empty, and how bright they are together."""
    return page.evaluate(f"""(() => {{
        const from = document.querySelector('{selector}'), to = document.createElement('canvas');
        to.width = from.width; to.height = from.height;
        const ctx = to.getContext('2d'); ctx.drawImage(from, 0, 0);
        const data = ctx.getImageData(0, 0, to.width, to.height).data; let count = 0, sum = 0;
        for (let i = 0; i < data.length; i += 4) {{
            const bright = data[i] + data[i + 1] + data[i + 2];
            count += bright > 0; sum += bright;
        }}
        return [count, sum]; }})()""")


@long
def floats_with_what_is_no_number_are_shown(folder):
    plane = save(folder, "plane.npy", np.linspace(-1, 1, 40 * 60).reshape(40, 60).astype(np.float32))
    plane[10, 20], plane[5, 5] = np.nan, np.inf
    np.save(f"{folder}/plane.npy", plane)
    with view("plane.npy", folder=folder) as link, Page(link) as page:
        look_at(page, (0, 10, 20))
        assert pointed(page) == "not a number", pointed(page)
        assert centre_pixel(page, "z") == [0, 0, 0]
        look_at(page, (0, 30, 30))
        assert abs(float(pointed(page)) - plane[30, 30]) < 1e-4, pointed(page)
        assert "not a number" in page.text(".ends"), page.text(".ends")
        assert page.count("canvas[data-axis]") == 1 and page.complaints() == [], page.complaints()


@long
def wide_integers_and_doubles_are_shown(folder):
    for dtype in ("float64", "int64", "uint64", "int16", "int8", "uint32"):
        plane = save(folder, "plane.npy", np.arange(30 * 40).reshape(30, 40).astype(dtype))
        with view("plane.npy", folder=folder) as link, Page(link) as page:
            look_at(page, (0, 7, 9))
            assert float(pointed(page)) == float(plane[7, 9]), (dtype, pointed(page))


@long
def colours_are_shown_as_they_are(folder):
    y, x = np.indices((40, 50))
    rgb = np.stack([x * 5, y * 6, (x + y) * 2], -1).astype(np.uint8)
    np.save(f"{folder}/rgb.npy", rgb)
    write(folder, 'read("rgb.npy", axes = "y x c") |> write("rgb.png")')
    with view("rgb.png", folder=folder) as link, Page(link) as page:
        look_at(page, (0, 11, 31))
        assert centre_pixel(page, "z") == rgb[11, 31].tolist(), (centre_pixel(page, "z"), rgb[11, 31])
        assert pointed(page) == ", ".join(map(str, rgb[11, 31])), pointed(page)


@long
def complex_images_have_amplitude_and_phase(folder):
    y, x = np.indices((30, 40))
    wave = save(folder, "wave.npy", ((x + 1) * np.exp(1j * y / 5)).astype(np.complex64))
    with view("wave.npy", folder=folder) as link, Page(link) as page:
        look_at(page, (0, 12, 20))
        assert abs(float(pointed(page)) - abs(wave[12, 20])) < 1e-3, pointed(page)
        page.select("#part", "phase")
        page.until(f"Math.abs({DISPLAY}.channels[0].high - Math.PI) < 1e-9")
        page.settle()
        page.do("hover", selector="canvas[data-axis=z]", at=[5, 5])
        assert abs(float(pointed(page)) - np.angle(wave[12, 20])) < 1e-3, pointed(page)


@long
def channels_and_times_are_chosen(folder):
    t, c, z, y, x = np.indices((3, 2, 4, 20, 30))
    movie = save(folder, "movie.npy", (t * 1000 + c * 100 + z * 10 + x + y).astype(np.uint16))
    write(folder, 'read("movie.npy", axes = "t c z y x") |> name_channels("DAPI GFP", colors = "blue green")'
                  ' |> write("movie.zarr")')
    with view("movie.zarr", folder=folder) as link, Page(link) as page:
        look_at(page, (2, 10, 15))
        assert pointed(page) == f"{movie[0, 0, 2, 10, 15]}, {movie[0, 1, 2, 10, 15]}", pointed(page)
        assert page.evaluate(f"{DISPLAY}.channels.map(({{colour}}) => colour.toLowerCase())") == ["#0000ff", "#00ff00"]
        assert centre_pixel(page, "z")[0] == 0
        page.key("]", "]")
        page.do("hover", selector="canvas[data-axis=z]", at=[5, 5])
        assert pointed(page) == f"{movie[2, 0, 2, 10, 15]}, {movie[2, 1, 2, 10, 15]}", pointed(page)
        page.click(".channel input[type=checkbox]")
        page.until("!fovea.busy()")
        assert centre_pixel(page, "z")[2] == 0, "only the green channel is left"


@long
def heads_are_up_and_the_scale_is_that_of_the_file(folder):
    try:
        import nibabel
    except ImportError as missing:
        raise Skip(str(missing)) from missing
    x, y, z = np.indices((30, 40, 20))
    head = (x * 7 + y * 31 + z * 97).astype(np.int16)
    image = nibabel.Nifti1Image(head, np.diag([2, 2, 3, 1]))
    image.header.set_xyzt_units("mm")
    nibabel.save(image, f"{folder}/head.nii")
    with view("head.nii", folder=folder) as link, Page(link) as page:
        assert "voxel 2 × 2 × 3 mm" in page.text(".side"), page.text(".side")
        look_at(page, (10, 20, 15))
        for axis, above in (("z", head[15, 21, 10]), ("y", head[15, 20, 11]), ("x", head[15, 20, 11])):
            width, height = page.size(f"canvas[data-axis={axis}]")
            page.do("hover", selector=f"canvas[data-axis={axis}]", at=[width / 2, height / 2 - (16 if axis == "z" else 24)])
            page.until(f"document.querySelector('#pointer b')?.textContent === '{above}'")
        page.evaluate("document.querySelector('canvas[data-axis=z]').focus()")
        page.key("ArrowUp")
        assert page.state("position") == [10, 21, 15]
        page.do("drag", selector="canvas[data-axis=z]", **{"from": [0.5, 0.3], "to": [0.5, 0.6]})
        assert page.state("centre")[1] > 21, "what is above comes down"


@long
def a_run_is_watched(folder):
    lines = ['scan = phantom("cells", [20, 100, 100])', "smooth = gaussian(scan, 2)", "cells = label(smooth > otsu(smooth))",
             'write(cells, "cells.npy")', 'write(measure(cells, scan), "cells.csv")']
    write(folder, "\n".join(lines))
    with view("--web", folder=folder, command="watch") as link:
        for scheme in ("dark", "light"):
            with Page(link, ready="document.querySelector('.graph')", scheme=scheme) as page:
                steps = page.text(".graph")
                assert all(step in steps for step in ("phantom", "gaussian", "label")), steps
                cut = page.evaluate("""(() => {
                    const { y, height } = document.querySelector('.graph').viewBox.baseVal;
                    const lines = [...document.querySelectorAll('.graph polyline')].flatMap((line) => [...line.points]);
                    return lines.filter((point) => point.y < y || point.y > y + height).length; })()""")
                assert cut == 0, "lines leave the picture"
                assert "done" in page.text("h2.state").lower() and "cells.npy" in page.text("[aria-label=results]")
                assert page.serious() == [] and page.complaints() == [], (page.serious(), page.complaints())


@long
def smallest_images_are_shown(folder):
    save(folder, "one.npy", np.array([[7]], np.uint8))
    with view("one.npy", folder=folder) as link, Page(link) as page:
        assert pointed(page) == "7" and page.complaints() == []
        assert drawn(page, "canvas[data-axis=z]")[0] > 100
    save(folder, "thin.npy", np.arange(50, dtype=np.float32).reshape(50, 1, 1))
    with view("thin.npy", folder=folder) as link, Page(link) as page:
        look_at(page, (10, 0, 0))
        assert pointed(page) == "10" and page.complaints() == []


@long
def contrast_is_dragged_and_comes_back(folder):
    made_scan(folder, "uint16")
    with view("scan.npy", folder=folder) as link, Page(link) as page:
        before = page.evaluate(f"[{DISPLAY}.channels[0].low, {DISPLAY}.channels[0].high]")
        page.do("drag", selector=".handle.high", **{"from": [0.5, 0.5], "to": [-6, 0.5]})
        after = page.evaluate(f"[{DISPLAY}.channels[0].low, {DISPLAY}.channels[0].high]")
        assert after[0] == before[0] and after[1] < before[1], (before, after)
        page.click("button:text-is('Auto')")
        assert page.evaluate(f"[{DISPLAY}.channels[0].low, {DISPLAY}.channels[0].high]") == before
        page.evaluate("document.querySelector('.handle.low').focus()")
        page.key("ArrowRight")
        assert page.evaluate(f"{DISPLAY}.channels[0].low") > before[0]
        page.select("#map", "viridis")
        look_at(page, (5, 20, 30))
        assert len(set(centre_pixel(page, "z"))) > 1, "viridis has colours"


@long
def link_brings_the_same_view_back(folder):
    make_cells(folder)
    keys = ["position", "centre", "zoom", "layout", "labels", "image"]
    with view("scan.npy", "--labels", "labels.npy", folder=folder) as link:
        with Page(link) as page:
            look_at(page, (7, 16, 21), zoom=5)
            page.select("#map", "inferno")
            page.key("i", "o", "2")
            page.evaluate("new Promise((done) => setTimeout(done, 400))")
            kept = [page.state(key) for key in keys] + [page.evaluate(f"[{DISPLAY}.map, {DISPLAY}.invert]")]
            address = page.evaluate("location.hash")
        with Page(link) as page:
            page.evaluate(f"location.hash = {json.dumps(address)}")
            page.until("fovea.store.get('layout') === 'z'")
            page.settle()
            again = [page.state(key) for key in keys] + [page.evaluate(f"[{DISPLAY}.map, {DISPLAY}.invert]")]
            assert again == kept, (again, kept)


@long
def only_what_is_seen_is_read_from_the_level_that_suits(folder):
    write(folder, 'phantom("cells", [64, 1500, 2000]) |> write("large.zarr", levels = 4)')
    with view("large.zarr", folder=folder) as link, Page(link) as page:
        sent = page.evaluate("performance.getEntriesByType('resource').filter(({name}) => name.includes('/api/plane'))"
                             ".map(({name, encodedBodySize}) => [name, encodedBodySize])")
        assert sent and all(size < 2_000_000 and "level=0" not in name for name, size in sent), sent
        look_at(page, (30, 700, 900), zoom=2)
        asked = page.evaluate("performance.getEntriesByType('resource').filter(({name}) => name.includes('level=0')).length")
        assert asked and page.evaluate("fovea.busy()") is False
        start = page.state("centre")
        page.do("drag", selector="canvas[data-axis=z]", **{"from": [0.7, 0.5], "to": [0.3, 0.5]})
        page.settle()
        moved = page.state("centre")
        assert moved[2] > start[2] + 20 and moved[:2] == start[:2], (start, moved)
        page.do("wheel", selector="canvas[data-axis=z]", by=-300, key="Control")
        page.settle()
        assert page.state("zoom") > 2
        page.click("canvas[data-axis=z]", count=2)
        assert page.state("zoom") is None


@long
def last_of_many_steps_is_the_one_that_is_shown(folder):
    scan = made_scan(folder, "uint16", (60, 40, 50))
    with view("scan.npy", folder=folder) as link, Page(link) as page:
        look_at(page, (0, 20, 30))
        for _ in range(25):
            page.do("wheel", selector="canvas[data-axis=z]", by=100)
        page.settle()
        position = page.state("position")
        assert position[0] == 25, position
        low, high = page.evaluate(f"[{DISPLAY}.channels[0].low, {DISPLAY}.channels[0].high]")
        wanted = min(255, max(0, round((int(scan[25, 20, 30]) - low) * 255 / (high - low))))
        assert centre_pixel(page, "z") == [wanted] * 3
        page.do("hover", selector="canvas[data-axis=z]", at=[6, 6])
        assert pointed(page) == str(scan[25, 20, 30])


@long
def labels_lie_over_the_image(folder):
    _, labels = make_cells(folder)
    inside = (6, 15, 15)
    with view("scan.npy", "--labels", "labels.npy", folder=folder) as link, Page(link) as page:
        look_at(page, inside)
        filled = centre_pixel(page, "z")
        assert len(set(filled)) > 1, filled
        page.do("hover", selector="canvas[data-axis=z]")
        page.until(f"document.querySelector('#pointer').textContent.includes('label {labels[inside]}')")
        page.key("o")
        assert len(set(centre_pixel(page, "z"))) == 1, "an outline leaves the middle free"
        page.key("o", "l")
        assert len(set(centre_pixel(page, "z"))) == 1, "without labels it is grey"


@long
def labels_alone_have_colours_until_others_are_chosen(folder):
    _, labels = make_cells(folder)
    inside = (6, 15, 15)
    with view("labels.npy", folder=folder) as link, Page(link) as page:
        look_at(page, inside)
        colour = centre_pixel(page, "z")
        assert len(set(colour)) > 1 and page.evaluate(f"{DISPLAY}.map") == "objects", colour
        assert pointed(page) == str(labels[inside]), pointed(page)
        page.until("document.querySelector('canvas.cast')?.dataset.quality === 'fine'")
        page.select("#map", "grey")
        assert len(set(centre_pixel(page, "z"))) == 1 and page.count(".histogram") == 1
        page.until("location.hash.includes('m=grey')")
        grey = page.evaluate("location.hash")
        page.select("#map", "objects")
        assert centre_pixel(page, "z") == colour and page.count(".histogram") == 0
        page.key("c")
        assert page.evaluate(f"{DISPLAY}.map") == "grey", "the next map after the last one is the first"
        page.select("#map", "objects")
    with view("labels.npy", folder=folder) as link, Page(link + grey) as page:
        assert page.evaluate(f"{DISPLAY}.map") == "grey", "a link keeps the choice"
        assert page.complaints() == [], page.complaints()


def with_table(folder, rows=0):
    scan, labels = make_cells(folder)
    write(folder, 'write(measure(read("labels.npy"), read("scan.npy")), "cells.csv")')
    if rows:
        lines = pathlib.Path(folder, "cells.csv").read_text().splitlines()
        first = lines[1].split(",")
        lines += [",".join([str(k), *first[1:]]) for k in range(len(lines), rows + 1)]
        pathlib.Path(folder, "cells.csv").write_text("\n".join(lines) + "\n")
    return scan, labels


@long
def brushing_a_plot_lights_up_objects(folder):
    _, labels = with_table(folder)
    with view("scan.npy", "--labels", "labels.npy", "--table", "cells.csv", folder=folder) as link, Page(link) as page:
        page.click("button:text('Table')")
        page.until("document.querySelector('.plot .u-over') && document.querySelectorAll('.rows td').length > 3")
        page.do("drag", selector=".plot .u-over", **{"from": [0.5, 0.5], "to": [0.999, 0.6]})
        page.until("fovea.store.get('lit') !== null")
        lit = page.evaluate("[...fovea.store.get('lit')].sort()")
        sizes = {k: int((labels == k).sum()) for k in range(1, 7)}
        where = page.evaluate("fovea.store.get('table').where[0]")
        assert where["column"] == "voxels", where
        wanted = [k for k, size in sizes.items() if where["low"] <= size <= where["high"]]
        assert lit == wanted and 0 < len(lit) < 6, (lit, sizes, where)
        page.until(f"document.querySelector('.table .head').textContent.includes('{len(lit)} of 6 rows')")
        page.click(".chip")
        page.until("fovea.store.get('lit') === null")
        page.do("fill", selector="[aria-label='voxels from']", value=str(sizes[4]))
        page.key("Enter")
        page.until("fovea.store.get('lit')?.size > 0")
        assert page.evaluate("[...fovea.store.get('lit')].sort()") == [k for k, size in sizes.items() if size >= sizes[4]]
        page.click(".chip")
        page.until("fovea.store.get('lit') === null")
        page.select("select[aria-label='second column']", "mean")
        page.until("document.querySelector('.plot[aria-label=\"mean against voxels\"] .u-over')")
        page.do("drag", selector=".plot .u-over", **{"from": [0.4, 0.01], "to": [0.999, 0.99]})
        page.until("fovea.store.get('lit') !== null && fovea.store.get('table').where.length === 2")
        page.select("#colour-by", "voxels")
        page.until("fovea.store.get('values') !== null")
        assert page.evaluate("fovea.store.get('values').places.get(6)") == 255 and page.complaints() == []


@long
def long_tables_are_sorted_and_scrolled(folder):
    with_table(folder, rows=50_000)
    with view("scan.npy", "--labels", "labels.npy", "--table", "cells.csv", folder=folder) as link, Page(link) as page:
        page.click("button:text('Table')")
        page.until("document.querySelector('.rows td.integer')?.textContent === '1'")
        page.click(".rows th:first-child button")
        page.click(".rows th:first-child button")
        page.until("document.querySelector('.rows td.integer')?.textContent === '50000'")
        page.evaluate("{ const box = document.querySelector('.rows'); box.scrollTop = box.scrollHeight; }")
        page.until("[...document.querySelectorAll('.rows td:first-child')].at(-1)?.textContent === '1'")
        assert page.count(".rows tbody tr") < 60


@long
def volume_is_drawn_coarse_and_then_fine(folder):
    make_cells(folder)
    with view("scan.npy", "--labels", "labels.npy", folder=folder) as link, Page(link) as page:
        page.key("5")
        page.until("document.querySelector('.cast')?.dataset.quality === 'fine'")
        page.until("document.querySelector('.pane .tag')?.textContent.includes('80 × 60 × 24')")
        seen = set()
        for mode in ("maximum", "average", "composite"):
            page.select("#rays", mode)
            page.until("document.querySelector('.cast').dataset.quality === 'fine'")
            page.do("shot", path=f"{folder}/{mode}.png")
            seen.add(pathlib.Path(folder, f"{mode}.png").read_bytes())
        assert len(seen) == 3, "three ways, three pictures"
        page.evaluate("document.querySelector('.turn').focus()")
        page.do("key", key="ArrowLeft")
        page.until("document.querySelector('.cast').dataset.quality === 'fine'")
        page.click("text=labels instead of the image")
        page.until("document.querySelector('.cast').dataset.quality === 'fine'")
        page.do("shot", path=f"{folder}/labels.png")
        assert pathlib.Path(folder, "labels.png").read_bytes() not in seen and page.complaints() == [], page.complaints()


def volume_colours(page, folder, *places):
    """Colours of the volume that is drawn, at these parts of its width and height: what is on the screen, for a canvas of WebGL
    cannot be read."""
    page.until("document.querySelector('.cast')?.dataset.quality === 'fine'")
    page.do("shot", path=f"{folder}/seen.png")
    run("convert", "-q", "--overwrite", "seen.png", "seen.npy", folder=folder)
    seen, box = np.load(f"{folder}/seen.npy"), page.evaluate("document.querySelector('.cast').getBoundingClientRect().toJSON()")
    return [seen[int(box["y"] + y * box["height"]), int(box["x"] + x * box["width"]), :3].tolist() for x, y in places]


@long
def volumes_with_colours_are_drawn_in_them(folder):
    halves = np.zeros((3, 20, 20, 40), "uint8")
    halves[0, :, :, :20] = halves[1, :, :, 20:] = halves[2, :, :, 20:] = 255  # red, and green with blue
    save(folder, "channels.npy", halves)
    save(folder, "colours.npy", np.moveaxis(halves, 0, -1).copy())
    write(folder, """a = name_axes(read("channels.npy"), "c z y x")
write(name_channels(a, names = "one two three", colors = "red yellow blue"), "channels.zarr")
write(name_axes(read("colours.npy"), "z y x c"), "colours.zarr")""")
    left, right = (0.4, 0.5), (0.6, 0.5)
    for name, wanted in (("channels.zarr", [[255, 0, 0], [255, 255, 255]]), ("colours.zarr", [[255, 0, 0], [0, 255, 255]])):
        with view(name, folder=folder) as link, Page(link) as page:
            page.evaluate("fovea.store.set({ layout: 'volume' }); fovea.store.merge('volume', { yaw: 0, pitch: 0 })")
            page.until("document.querySelector('.pane .tag')?.textContent.includes('40 × 20 × 20')")
            seen = volume_colours(page, folder, left, right)
            assert seen == wanted, (name, seen)
            assert page.complaints() == [], page.complaints()


@long
def a_file_that_is_replaced_is_shown_anew_with_the_same_contrast(folder):
    scan = made_scan(folder, "uint16")
    with view("scan.npy", folder=folder) as link, Page(link) as page:
        look_at(page, (5, 20, 30))
        before, contrast = centre_pixel(page, "z"), page.evaluate(f"{DISPLAY}.channels[0].low")
        save(folder, "new.npy", scan.max() - scan)
        os.replace(f"{folder}/new.npy", f"{folder}/scan.npy")
        page.until(f"fovea.store.get('session').images[0].serial > 1 && !fovea.busy()")
        page.settle()
        assert centre_pixel(page, "z") != before and page.evaluate(f"{DISPLAY}.channels[0].low") == contrast
        assert int(pointed(page)) == scan.max() - scan[5, 20, 30], (pointed(page), scan[5, 20, 30])


@long
def the_last_step_of_a_solver_is_followed(folder):
    solve = """g = parallel(range(-72, 72, 8))
p = xray(phantom("shepp-logan", [6, 32, 32]), g)
write(sirt(p, g, iterations = {n}), "live.pvti", every = 2)"""
    write(folder, solve.format(n=2))
    with view("live.pvd", folder=folder) as link, Page(link) as page:
        look_at(page, (3, 16, 16))
        first = pointed(page)
        write(folder, solve.format(n=6))
        page.until(f"fovea.store.get('session').images[0].serial > 1 && !fovea.busy()")
        page.do("hover", selector="canvas[data-axis=y]")
        page.settle()
        assert pointed(page) != first, first


@long
def without_webgl_the_planes_stay(folder):
    scan = made_scan(folder, "uint16")
    with view("scan.npy", folder=folder) as link, Page(link, webgl=False) as page:
        assert "Volumes need WebGL2" in page.text(".planes"), page.text(".planes")
        look_at(page, (5, 20, 30))
        assert pointed(page) == str(scan[5, 20, 30])


@long
def images_are_compared(folder):
    scan = made_scan(folder, "uint16")
    other = save(folder, "other.npy", np.where(scan > 30000, scan, 0).astype(np.uint16))
    with view("scan.npy", "other.npy", folder=folder) as link, Page(link) as page:
        page.select("#compare", "side")
        page.until("document.querySelectorAll('canvas[data-axis]').length === 2")
        look_at(page, (5, 20, 30))
        values = page.evaluate("[...document.querySelectorAll('canvas[data-axis]')].map((one) => "
                               "one.getContext('2d').getImageData(one.width >> 1, one.height >> 1, 1, 1).data.join())")
        assert (values[0] == values[1]) == (scan[5, 20, 30] == other[5, 20, 30]), values
        page.select("#compare", "difference")
        page.settle()
        place = tuple(int(n) for n in np.argwhere(scan == other)[7])
        look_at(page, place)
        assert min(centre_pixel(page, "z")) > 240, "equal voxels are white"
        place = tuple(int(n) for n in np.argwhere(scan.astype(int) - other > 20000)[7])
        look_at(page, place)
        red, _, blue = centre_pixel(page, "z")
        assert red > blue + 50, "the first is larger: red"
        page.select("#compare", "blink")
        page.evaluate("new Promise((done) => setTimeout(done, 700))")
        first = page.evaluate("document.querySelector('canvas[data-axis=z]').toDataURL()")
        page.until(f"document.querySelector('canvas[data-axis=z]').toDataURL() !== {json.dumps(first)}")


@long
def collections_are_a_sheet_that_opens(folder):
    for k in range(12):
        save(folder, f"well{k:02d}.npy", np.full((20 + k, 30), k, np.uint8))
    with view("well*.npy", folder=folder) as link, Page(link) as page:
        page.until("document.querySelectorAll('.sheet li').length === 12")
        page.until("document.querySelectorAll('.sheet canvas')[3].height === 23")
        page.click(".sheet li:nth-child(6) button")
        page.until("document.querySelector('canvas[data-axis=z]')")
        page.settle()
        assert pointed(page) == "5", pointed(page)
        page.click("button:text('Sheet')")
        page.until("document.querySelectorAll('.sheet li').length === 12")


@long
def values_of_a_pipeline_follow_their_parameters(folder):
    scan = made_scan(folder, "float32", (8, 60, 70))
    lines = ["param sigma = 2", 'scan = read("scan.npy")', "smooth = gaussian(scan, sigma)", "mask = smooth > 30000"]
    pathlib.Path(folder, "p.fov").write_text("\n".join([*lines, 'write(mask, "mask.npy")', ""]))
    for sigma in (2, 5):
        write(folder, f'gaussian(read("scan.npy"), sigma = {sigma}) |> write("s{sigma}.npy")')
    with view("p.fov", folder=folder) as link, Page(link) as page:
        assert page.evaluate("document.querySelector('#value').value") == "mask"
        page.select("#value", "smooth")
        page.until("fovea.store.get('session').images[0].dtype === 'float32'")
        look_at(page, (4, 30, 35))
        assert abs(float(pointed(page)) - np.load(f"{folder}/s2.npy")[4, 30, 35]) < 1, pointed(page)
        page.do("fill", selector="[aria-label=values] input[type=range]", value="5")
        page.settle()
        page.do("hover", selector="canvas[data-axis=z]", at=[6, 6])
        assert abs(float(pointed(page)) - np.load(f"{folder}/s5.npy")[4, 30, 35]) < 1, pointed(page)
        assert not pathlib.Path(folder, "mask.npy").exists() and scan.size


@long
def names_are_text(folder):
    name = '<img src=x onerror=alert(1)>&amp;.npy'
    np.save(pathlib.Path(folder, name), np.zeros((5, 6), np.uint8))
    with view(name, folder=folder) as link, Page(link) as page:
        assert page.text(".name") == name and page.count("img") == 0, page.text(".name")
        assert page.complaints() == [], page.complaints()


@long
def what_goes_wrong_is_told_in_a_sentence(folder):
    made_scan(folder, "uint16", (40, 300, 400))
    write(folder, 'read("scan.npy") |> write("scan.tif")')
    with view("scan.tif", folder=folder) as link, Page(link) as page:
        os.remove(f"{folder}/scan.tif")
        page.evaluate("fovea.store.set({ position: [33, 20, 20] })")
        page.evaluate("new Promise((done) => setTimeout(done, 500))")
        assert page.evaluate("document.querySelector('canvas[data-axis=z]').width") > 10
    with view("scan.npy", folder=folder) as link:
        page = Page(link)
    page.evaluate("fovea.store.set({ position: [3, 4, 5] })")
    page.until("document.querySelector('.message').textContent.includes('does not answer')")
    page.__exit__()


@long
def every_size_and_colour_scheme_has_no_serious_obstacle(folder):
    with_table(folder)
    with view("scan.npy", "--labels", "labels.npy", "--table", "cells.csv", folder=folder) as link:
        for size, scheme in [([1280, 720], "light"), ([390, 780], "dark"), ([390, 780], "light"), ([1920, 1080], "dark")]:
            with Page(link, size=size, scheme=scheme, touch=size[0] < 500) as page:
                page.key("t")
                page.until("document.querySelectorAll('.rows td').length > 3")
                assert page.serious() == [], (size, scheme, page.serious())
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= size[0], f"{wide} pixels on a screen of {size[0]}"
                page.key("?")
                assert page.serious() == [], (size, scheme, page.serious())


main()
