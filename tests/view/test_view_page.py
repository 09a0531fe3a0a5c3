#!/usr/bin/python3
"""A sample of what the page of `fovea view` does, in a real browser; tests/interop/test_view_browser.py has the rest."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Page, view  # noqa: E402
from fovea_test import main, run, test  # noqa: E402
from view_cases import centre_pixel, look_at, make_cells, made_scan  # noqa: E402


@test
def planes_show_the_voxels_of_the_file_and_say_their_values(folder):
    scan = made_scan(folder, "uint16")
    with view("scan.npy", folder=folder) as link, Page(link) as page:
        low, high = (page.evaluate(f"fovea.store.get('display')[0].channels[0].{end}") for end in ("low", "high"))
        assert scan.min() <= low < high <= scan.max(), (low, high)
        for position in [(5, 20, 30), (0, 0, 0), (11, 39, 49)]:
            look_at(page, position)
            wanted = min(255, max(0, round((int(scan[position]) - low) * 255 / (high - low))))
            for axis in "zyx":
                assert centre_pixel(page, axis) == [wanted] * 3, (position, axis, centre_pixel(page, axis), wanted)
            page.do("hover", selector="canvas[data-axis=z]")
            page.until(f"document.querySelector('#pointer b')?.textContent === '{scan[position]}'")
        assert page.complaints() == [], page.complaints()


@test
def rows_and_objects_are_linked(folder):
    _, labels = make_cells(folder)
    run("run", "-q", "-e", 'write(measure(read("labels.npy")), "cells.csv")', folder=folder)
    with view("scan.npy", "--labels", "labels.npy", "--table", "cells.csv", folder=folder) as link, Page(link) as page:
        page.click("button:text('Table')")
        page.until("document.querySelectorAll('.rows td.integer').length > 3")
        page.click(".rows tbody tr:nth-of-type(3)")
        page.until("fovea.store.get('selected') === 2")
        page.until("document.querySelector('.rows tr[aria-current] td')?.textContent === '2'")
        page.settle()
        position = tuple(page.state("position"))
        assert labels[position] == 2, (position, labels[position])
        other = tuple(int(places[0]) for places in (labels == 3).nonzero())
        look_at(page, other)
        width, height = page.size("canvas[data-axis=z]")
        page.click("canvas[data-axis=z]", at=[width / 2, height / 2])
        page.until("document.querySelector('.rows tr[aria-current] td')?.textContent === '3'")
        assert page.complaints() == [], page.complaints()


@test
def page_has_no_serious_obstacle_and_obeys_keys(folder):
    make_cells(folder)
    run("run", "-q", "-e", 'write(measure(read("labels.npy")), "cells.csv")', folder=folder)
    with view("scan.npy", "--labels", "labels.npy", "--table", "cells.csv", folder=folder) as link, Page(link) as page:
        page.key("t")
        page.until("document.querySelectorAll('.rows td.integer').length > 3")
        assert page.serious() == [], page.serious()
        before = page.state("position")
        page.key("PageUp", "ArrowRight", "ArrowDown")
        assert page.state("position") == [n + 1 for n in before], (before, page.state("position"))
        page.key("l", "i", "c", "3")
        assert page.state("layout") == "y" and page.count("canvas[data-axis]") == 1 and not page.state("labels")["on"]
        assert page.evaluate("(({invert, map}) => [invert, map])(fovea.store.get('display')[0])") == [True, "viridis"]
        page.key("?")
        assert page.evaluate("document.querySelector('dialog').open")
        page.key("Escape")
        assert not page.evaluate("document.querySelector('dialog').open")


main()
