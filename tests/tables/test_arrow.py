"""Arrow streams: read by a small decoder of the format's own description, and by pyarrow where it is there."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import Skip, main, run, test

TABLE = "name,n,x\na,1,2.5\n,2,\nlonger text ä,-3,1e300\n"
WANTED = {"name": ["a", None, "longer text ä"], "n": [1, 2, -3], "x": [2.5, None, 1e300]}


def number(data, form, at):
    return struct.unpack_from("<" + form, data, at)[0]


class Table:
    """One of FlatBuffers."""

    def __init__(self, data, at):
        self.data, self.at, self.list = data, at, at - number(data, "i", at)

    def place(self, field):
        known = 4 + 2 * field < number(self.data, "H", self.list)
        offset = number(self.data, "H", self.list + 4 + 2 * field) if known else 0
        return self.at + offset if offset else None

    def value(self, field, form):
        place = self.place(field)
        assert place is None or place % struct.calcsize(form) == 0, "a number lies at a multiple of its size"
        return 0 if place is None else number(self.data, form, place)

    def refer(self, field):
        return self.place(field) + number(self.data, "I", self.place(field))

    def table(self, field):
        return Table(self.data, self.refer(field))

    def tables(self, field):
        at = self.refer(field)
        return [Table(self.data, place + number(self.data, "I", place))
                for place in range(at + 4, at + 4 + 4 * number(self.data, "I", at), 4)]

    def pairs(self, field):
        at = self.refer(field)
        assert (at + 4) % 8 == 0
        return [struct.unpack_from("<qq", self.data, at + 4 + 16 * i) for i in range(number(self.data, "I", at))]

    def text(self, field):
        at = self.refer(field)
        return self.data[at + 4:at + 4 + number(self.data, "I", at)].decode()


def messages(data):
    """Kind, content and body of each."""
    at = 0
    while True:
        mark, size = struct.unpack_from("<iI", data, at)
        assert mark == -1 and at % 8 == 0 and size % 8 == 0
        at += 8
        if not size:
            assert at == len(data), "nothing follows the end"
            return
        description = data[at:at + size]
        root = Table(description, number(description, "I", 0))
        assert root.value(0, "h") == 4, "version 5 of the description"
        at += size
        length = root.value(3, "q")
        yield root.value(1, "B"), root.table(2), data[at:at + length]
        at += length


def read(path):
    data = path.read_bytes()
    (kind, schema, _), *batches = messages(data)
    assert kind == 1
    fields = schema.tables(1)
    columns = {field.text(0): [] for field in fields}
    for kind, batch, body in batches:
        assert kind == 3
        rows, nodes = batch.value(0, "q"), batch.pairs(1)
        buffers = iter([body[start:start + size] for start, size in batch.pairs(2)])
        for field, (length, missing) in zip(fields, nodes):
            there, values = next(buffers), next(buffers)
            assert length == rows
            kind = field.value(2, "B")
            if kind == 5:
                ends, texts = struct.unpack(f"<{rows + 1}i", values), next(buffers)
                cells = [texts[a:b].decode() for a, b in zip(ends, ends[1:])]
            else:
                signed = kind == 2 and field.table(3).value(1, "B")
                cells = struct.unpack(f"<{rows}{'d' if kind == 3 else 'q' if signed else 'Q'}", values)
            cells = [cell if there[i // 8] >> i % 8 & 1 else None for i, cell in enumerate(cells)]
            assert cells.count(None) == missing
            columns[field.text(0)] += cells
    return columns


def write(folder):
    (pathlib.Path(folder) / "t.csv").write_text(TABLE)
    run("run", "-q", "-e", 'write(read_table("t.csv"), "t.arrows")\nwrite(filter(read_table("t.csv"), "n > 5"), "none.arrows")\n'
        'cells = measure(label(phantom("cells", [600, 600]) > 100))\nwrite(cells, "cells.arrows")\nwrite(cells, "cells.csv")',
        folder=folder)


@test
def columns_and_cells_are_where_the_format_says(folder):
    write(folder)
    assert read(pathlib.Path(folder) / "t.arrows") == WANTED
    assert read(pathlib.Path(folder) / "none.arrows") == {name: [] for name in WANTED}
    cells = read(pathlib.Path(folder) / "cells.arrows")
    head, *lines = (pathlib.Path(folder) / "cells.csv").read_text().splitlines()
    assert list(cells) == head.split(",") and len(lines) > 100
    assert [list(map(float, line.split(","))) for line in lines] == [list(map(float, row)) for row in zip(*cells.values())]


@test
def long_tables_are_several_batches(folder):
    with open(pathlib.Path(folder) / "long.csv", "w", encoding="utf-8") as file:
        file.write("i,name\n")
        file.writelines(f"{i},{'x' * (i % 7) or 'none'}\n" for i in range(150000))
    run("run", "-q", "-e", 'write(read_table("long.csv"), "long.arrows")', folder=folder)
    path = pathlib.Path(folder) / "long.arrows"
    assert len(list(messages(path.read_bytes()))) == 4
    columns = read(path)
    assert columns["i"] == list(range(150000)) and columns["name"][6:8] == ["xxxxxx", "none"]


@test
def pyarrow_reads_it(folder):
    try:
        from pyarrow import ipc
    except ImportError as missing:
        raise Skip("no pyarrow: it is not in Debian") from missing
    write(folder)
    table = ipc.open_stream(str(pathlib.Path(folder) / "t.arrows")).read_all()
    table.validate(full=True)
    assert table.to_pydict() == WANTED


@test
def a_stream_cannot_be_appended_to(folder):
    (pathlib.Path(folder) / "t.csv").write_text(TABLE)
    said = run("run", "-q", "-e", 'write(read_table("t.csv"), "t.arrows", append = true)', folder=folder, code=1).stderr
    assert "cannot be appended to" in said, said


main()
