"""The graph of a lazy value as a drawing that a browser shows by itself: inputs above, what is made of them below."""
import html

_MOST = 60  # operators that are drawn
_HIGH, _APART, _LETTER = 36, 26, 6.6  # of a box, between boxes, of a letter, in pixels


def _in_order(value):
    """A value and all that it is made of, inputs first; values deeper than Python's own stack are no trouble."""
    found, seen, todo = [], set(), [(value, False)]
    while todo:
        one, ready = todo.pop()
        if ready:
            found.append(one)
        elif id(one) not in seen:
            seen.add(id(one))
            todo.append((one, True))
            todo.extend((other, False) for other in reversed(one._inputs))
    return found


def _words(value):
    """What stands in a box: the operator, and what it gives."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return value._hint, f"{'×'.join(map(str, shape))} {value.dtype}"
    return value._hint, "table" if hasattr(value, "columns") else str(getattr(value, "dtype", ""))


class _Box:
    """A box, or without words the place where a line passes a row."""

    def __init__(self, row, above, words=()):
        self.row, self.above, self.words, self.x = row, above, words, 0
        self.width = max(len(w) for w in words) * _LETTER + 16 if words else 6
        self.top = row * (_HIGH + _APART) + 2


def _boxes_of(values):
    """A box of each value, below all of its inputs, and places for the lines that pass other rows on their way."""
    own, found, places = {}, [], {}
    for value in values:
        inputs = [own[id(one)] for one in value._inputs]
        row = 1 + max((box.row for box in inputs), default=-1)
        above = []
        for box in inputs:
            for between in range(box.row + 1, row):
                key = id(box), between
                if key not in places:
                    places[key] = _Box(between, [places.get((id(box), between - 1), box)])
                    found.append(places[key])
            above.append(places.get((id(box), row - 1), box))
        own[id(value)] = _Box(row, above, _words(value))
        found.append(own[id(value)])
    return found


def _spread(boxes):
    """Gives each box its place in its row, as near to the middle of what is above it as others allow; gives the width of all."""
    rows = [[b for b in boxes if b.row == k] for k in range(1 + max(b.row for b in boxes))]
    wide = max(sum(b.width + _APART for b in row) - _APART for row in rows)
    for row in rows:
        for box in row:
            box.x = sum(b.x for b in box.above) / len(box.above) if box.above else 0
        row.sort(key=lambda b: b.x)
        at = 2 + (wide - sum(b.width + _APART for b in row) + _APART) / 2
        for box in row:
            box.x = at + box.width / 2
            at += box.width + _APART
    return wide


def _drawn(box):
    """Lines to a box and its frame; and its words."""
    lines, words = [], []
    for above in box.above:
        start, middle = above.top + _HIGH, box.top - _APART / 2
        bend = f"{above.x:.0f} {middle:.0f} {box.x:.0f} {middle:.0f}"
        lines.append(f'<path d="M{above.x:.0f} {start}C{bend} {box.x:.0f} {box.top}"/>')
    if not box.words:
        lines.append(f'<path d="M{box.x:.0f} {box.top}v{_HIGH}"/>')
    else:
        lines.append(f'<rect x="{box.x - box.width / 2:.0f}" y="{box.top}" width="{box.width:.0f}" height="{_HIGH}" rx="5"/>')
    for k, word in enumerate(box.words):
        faint = ' opacity=".6"' if k else ""
        words.append(f'<text x="{box.x:.0f}" y="{box.top + 15 + 14 * k}"{faint}>{html.escape(word)}</text>')
    return "".join(lines), "".join(words)


def graph_svg(value):
    """The drawing, or a sentence if there are too many operators for one."""
    values = _in_order(value)
    if len(values) > _MOST:
        return f"<p>{len(values)} operators; graph() gives them in the language of Graphviz.</p>"
    boxes = _boxes_of(values)
    wide, drawn = _spread(boxes), [_drawn(box) for box in boxes]
    high = max(box.top for box in boxes) + _HIGH + 2
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 4:.0f}" height="{high}" font-family="sans-serif" '
            f'font-size="12" text-anchor="middle" fill="currentColor"><g fill="none" stroke="currentColor" opacity=".7">'
            f'{"".join(lines for lines, _ in drawn)}</g>{"".join(words for _, words in drawn)}</svg>')
