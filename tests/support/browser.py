"""Chromium for tests of pages, and `fovea view` for it to look at. What is missing skips the tests by name.

    with view("scan.npy", folder=folder) as link, Page(link) as page:
        page.key("PageUp")
        assert page.state("position")[0] == 5
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fovea_test import FOVEA, ROOT, PATIENCE, Skip  # noqa: E402

MODULES = ROOT / "build" / "web" / "node_modules"


def chromium():
    """The browser's program; skips where it, Node.js or what drives it is not there."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        raise Skip("no chromium; scripts/bootstrap.sh browser installs it")
    if not shutil.which("node"):
        raise Skip("no node; scripts/bootstrap.sh browser installs it with npm")
    if not (MODULES / "playwright-core").is_dir():
        raise Skip("no playwright-core; scripts/bootstrap.sh browser fetches it")
    return program


@contextlib.contextmanager
def view(*arguments, folder, command="view"):
    """`fovea view` (or another command that gives a link) with these arguments, and its link."""
    chromium()
    server = subprocess.Popen([FOVEA, command, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    link = server.stdout.readline().strip()
    if not link.startswith("http://"):
        why = server.communicate()[1].strip()
        if "libmicrohttpd" in why:
            raise Skip(why)
        raise AssertionError(f"fovea {command} gave no link: {why}")
    try:
        yield link
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=PATIENCE)


class Page:
    """A page in a browser of its own. Actions have the names and arguments of browser.mjs."""

    def __init__(self, url, ready="window.fovea && !fovea.busy() && document.querySelector('.app')", **options):
        driver = pathlib.Path(__file__).with_name("browser.mjs")
        self.process = subprocess.Popen(["node", str(driver), str(MODULES), chromium()], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=dict(os.environ, NODE_NO_WARNINGS="1"))
        self.do("open", url=url, **options)
        if ready:
            self.do("until", text=f"Boolean({ready})")
        if "busy" in ready:
            self.settle()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)

    def do(self, name, **fields):
        self.process.stdin.write(json.dumps({"do": name, **fields}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the browser has ended at {name} {fields}"
        answer = json.loads(line)
        assert "error" not in answer, f"{name} {fields}: {answer['error']}"
        return answer["result"]

    def evaluate(self, text):
        return self.do("evaluate", text=text)

    def until(self, text):
        return self.do("until", text=text)

    def settle(self):
        """Waits until no plane is on its way and what has arrived is drawn."""
        self.evaluate("new Promise((done) => { const look = (quiet) => requestAnimationFrame(() => "
                      "quiet > 3 ? done() : look(fovea.busy() ? 0 : quiet + 1)); look(0); })")

    def state(self, key):
        return self.evaluate(f"fovea.store.get('{key}')")

    def key(self, *keys):
        for key in keys:
            self.do("key", key=key)
        self.settle()

    def click(self, selector, at=None, count=1):
        self.do("click", selector=selector, at=at, count=count)
        self.settle()

    def select(self, selector, value):
        self.do("select", selector=selector, value=value)
        self.settle()

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent.replace(/\\s+/g, ' ').trim()")

    def count(self, selector):
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def size(self, selector):
        return self.evaluate("(({width, height}) => [width, height])"
                             f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())")

    def pixel(self, axis, x, y):
        """Red, green and blue of a point of a plane's canvas, in pixels of the page."""
        return self.evaluate(f"[...document.querySelector('canvas[data-axis={axis}]').getContext('2d')"
                             f".getImageData({x}, {y}, 1, 1).data]")[:3]

    def complaints(self):
        """What the page has written to the console as errors and warnings."""
        own = ("GPU stall", "willReadFrequently")  # what the tests themselves cause by reading pixels
        return [text for text in self.do("complaints") if not any(words in text for words in own)]

    def serious(self):
        """What axe finds that is serious or critical."""
        return [found for found in self.do("axe") if found["impact"] in ("serious", "critical")]
