"""How values show themselves in a notebook, and the bar of a run that goes on."""
import base64
import html
import struct
import sys
import zlib

import numpy as np

from ._drawn_graph import graph_svg

_ROWS = 10  # of a table that are shown at its head
_SIDE = 256  # longest side of a thumbnail


def table_html(table):
    """A table's head as HTML; names and texts are text, never markup."""
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    rows = []
    for k, row in enumerate(table):
        if k == _ROWS:
            break
        rows.append("<tr>" + "".join(f"<td>{html.escape(_cell(v))}</td>" for v in row) + "</tr>")
    more = f"<p>{len(table)} rows × {len(table.columns)} columns</p>"
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"


def _cell(value):
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _png(pixels):
    """A small grey or RGB picture as PNG."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _plane(image):
    """The middle plane of an image, as a lazy value, thinned out to a thumbnail's size."""
    axes = image.axes
    colour = image.ndim >= 3 and axes[-1] == "c" and image.shape[-1] in (3, 4)
    last = 3 if colour else 2
    cut = [n // 2 for n in image.shape[:max(image.ndim - last, 0)]]
    sides = image.shape[len(cut):len(cut) + 2]
    step = max(1, -(-max(sides) // _SIDE))
    index = tuple(cut) + (slice(None, None, step),) * len(sides)
    return image[index], colour


def thumbnail(image):
    """The middle plane between its 0.1 and 99.9 percent, as bytes of a PNG."""
    plane, colour = _plane(image)
    pixels = np.asarray(plane)
    if pixels.ndim == 1:
        pixels = pixels[None]
    if colour and pixels.dtype == np.uint8:
        return _png(np.ascontiguousarray(pixels[..., :3]))
    values = np.abs(pixels) if pixels.dtype.kind == "c" else pixels.astype(float)
    finite = values[np.isfinite(values)]
    low, high = np.percentile(finite, [0.1, 99.9]) if finite.size else (0, 1)
    grey = np.clip((np.nan_to_num(values, nan=low) - low) / (high - low if high > low else 1), 0, 1) * 255
    grey = grey if grey.ndim == 2 else grey[..., 0]
    return _png(grey.astype(np.uint8))


def _folded(title, content):
    return f"<details><summary>{title}</summary>{content}</details>"


def image_html(image):
    """Type, size and spacing of an image, a thumbnail if that is cheap, and folded up its graph, its plan and its text."""
    spacing = " × ".join(f"{s:g} {u}".strip() for s, u in zip(image.spacing, image.units))
    facts = (f"{' × '.join(map(str, image.shape))} ({' '.join(image.axes)}) · {image.dtype} · "
             f"{image.nbytes / 1e6:.3g} MB · spacing {spacing}")
    picture = ""
    if not image.items and image.nbytes <= 1 << 26:
        picture = f'<img alt="middle plane" src="data:image/png;base64,{base64.b64encode(thumbnail(image)).decode()}">'
    folded = [("graph", graph_svg(image)), ("plan", f"<pre>{html.escape(image.plan())}</pre>"),
              ("pipeline", f"<pre>{html.escape(image.text())}</pre>")]
    return f"<div><p>{html.escape(facts)}</p>{picture}{''.join(_folded(*one) for one in folded)}</div>"


def shower():
    """What shows the progress of a run: one line that is drawn again, on standard error."""
    over = []

    def show(state):
        if over:
            return
        moved, seconds = (state.bytes_read + state.bytes_written) / 1e6, max(state.seconds, 1e-9)
        rate = f"{moved / seconds:.0f} MB/s" if moved else f"{state.tasks_done / seconds:.0f} tasks/s"
        filled = int(30 * min(state.fraction, 1))
        sys.stderr.write(f"\r[{'█' * filled}{' ' * (30 - filled)}] {100 * state.fraction:3.0f} %  {rate}  "
                         f"{state.memory / 1e6:.0f} MB   ")
        if state.fraction >= 1:
            over.append(True)
            sys.stderr.write("\n")
        sys.stderr.flush()
    return show


def load_ipython_extension(shell):
    """%load_ext fovea gives the cell magic %%fovea: the cell is a pipeline, what it prints is shown."""
    from ._compute import run

    def fovea(line, cell):
        names = dict(part.split("=", 1) for part in line.split())
        found = run(cell, names or None)
        return found[0] if len(found) == 1 else found or None
    shell.register_magic_function(fovea, "cell", "fovea")
