#!/usr/bin/env python3
"""Writes docs/operators/: an index and a page for every operator, from what the operators say about themselves.

    scripts/operator_pages.py          brings the pages and pictures up to date
    scripts/operator_pages.py --check  only says which are out of date, and fails if some are

The example of each operator is run. Pictures show the image that goes into the operator and what the example writes; where an
example prints a number or a table, the page shows its first lines. Fovea itself draws the pictures, so they are the same on
every machine.
"""
import array
import ast
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "operators"
FOVEA = os.environ.get("FOVEA", str(ROOT / "build" / "fovea"))
ROWS = 8  # of a printed table
LENGTHS = ("length", "area", "volume")


def fovea(*arguments, folder="/"):
    done = subprocess.run([FOVEA, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, cwd=folder)
    if done.returncode:
        raise SystemExit(f"operator_pages.py: fovea {' '.join(arguments)[:2000]}: {done.stderr.strip()[-1500:]}")
    return done.stdout


# ---------------------------------------------------------------- reading an example

TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]\w*|\d[\w.]*|\|>|\*\*|[<>=!]=|\S')


class Statement:
    """A statement as tokens with their depth in brackets, so that operands and arguments can be cut out as text."""

    def __init__(self, text):
        self.text, self.tokens, depth = text, [], 0
        for match in TOKEN.finditer(text):
            depth -= match.group() in (")", "]")
            self.tokens.append((match.group(), depth, match.start(), match.end()))
            depth += match.group() in ("(", "[")

    def words(self):
        return [token[0] for token in self.tokens]

    def assigned(self):
        words = self.words()
        return words[0] if len(words) > 1 and words[1] == "=" else None

    def value(self):
        """The text behind `name =`."""
        return self.text[self.tokens[1][3]:].strip() if self.assigned() else self.text.strip()

    def left_of(self, index):
        """The text before a token, back to the bracket, comma or = that begins its expression."""
        depth = self.tokens[index][1]
        for word, at, _, end in reversed(self.tokens[:index]):
            if (at < depth and word in "([") or (at == depth and word in (",", "=")):
                return self.text[end:self.tokens[index][2]].strip()
        return self.text[:self.tokens[index][2]].strip()

    def argument(self, index, number=0):
        """An argument of the call whose name is a token, None if there is none."""
        if index + 1 >= len(self.tokens) or self.tokens[index + 1][0] != "(":
            return None
        depth, begin = self.tokens[index + 1][1], self.tokens[index + 1][3]
        for word, at, start, end in self.tokens[index + 2:]:
            if (word == ")" and at == depth) or (word == "," and at == depth + 1):
                if not number:
                    return self.text[begin:start].strip() or None
                if word == ")":
                    return None
                number, begin = number - 1, end
        return None

    def input_of(self, name, sign, number):
        """What goes into the operator of that name as input `number`, None if it is not here."""
        for index in range(len(self.tokens) - 1, -1, -1):
            word, depth = self.tokens[index][:2]
            piped = index and self.tokens[index - 1][0] == "|>"
            if word == name and (piped or (index + 1 < len(self.tokens) and self.tokens[index + 1][0] == "(")):
                return self.left_of(index - 1) if piped else self.argument(index, number) or ""
            if sign and word == sign:
                left = self.left_of(index)
                if left:
                    return left
                rest = [t for t in self.tokens[index + 1:] if t[1] < depth or (t[1] == depth and t[0] in (",", "|>"))]
                return self.text[self.tokens[index][3]:rest[0][2] if rest else None].strip()
            if name == "slice" and word == "[" and index and self.tokens[index - 1][0] == ")":
                return self.left_of(index)
        return None

    def written(self):
        """The value that the statement writes, None if it writes none."""
        words = self.words()
        if words[0] == "write":
            return self.argument(0)
        pipes = [i for i, token in enumerate(self.tokens) if token[0] == "|>" and token[1] == 0]
        if pipes and words[pipes[-1] + 1] == "write":
            return self.text[:self.tokens[pipes[-1]][2]].strip()
        return None


def outermost_input(text):
    """What goes into the last operator of an expression."""
    statement = Statement(text)
    pipes = [i for i, token in enumerate(statement.tokens) if token[0] == "|>" and token[1] == 0]
    if pipes:
        return text[:statement.tokens[pipes[-1]][2]].strip()
    return statement.argument(0)


class Example:
    """before and after: expressions to draw, or None; both in the names of the example."""

    def __init__(self, op):
        self.text = op["example"]
        self.statements = [Statement(part) for part in re.split(r"\n|;\s*", self.text) if part.strip()]
        images = [number for number, i in enumerate(op["inputs"]) if "image" in i["kind"]]
        found = [s.input_of(op["name"], op.get("sign"), images[0] if images else 0) for s in self.statements]
        found = [f for f in found if f is not None]
        written = [w for w in (s.written() for s in self.statements) if w]
        self.prints = any(not s.assigned() and not s.written() for s in self.statements)
        self.before = self.after = None
        if not found or op["result"] == "file" or op.get("place_later"):  # it is written to NIfTI alone
            return
        self.after = written[-1] if written and op["result"] != "table" else None
        if images:
            self.before = found[-1] or None
        elif op["result"] in ("footprint", "list", "geometry") and self.after:
            self.before = outermost_input(self.after)

    def names(self):
        return {s.assigned() for s in self.statements if s.assigned()}


def renamed(text, names, prefix):
    """Names of one example in a text that holds all of them."""
    out, end = [], 0
    for match in TOKEN.finditer(text):
        out.append(text[end:match.start()])
        out.append(prefix + match.group() if match.group() in names else match.group())
        end = match.end()
    return "".join(out) + text[end:]


# ---------------------------------------------------------------- pictures

TYPES = {"|b1": ("bool", "B"), "|u1": ("uint8", "B"), "|i1": ("int8", "b"), "<u2": ("uint16", "H"), "<i2": ("int16", "h"),
         "<u4": ("uint32", "I"), "<i4": ("int32", "i"), "<u8": ("uint64", "Q"), "<i8": ("int64", "q"), "<f4": ("float32", "f"),
         "<f8": ("float64", "d"), "<c8": ("complex64", "f")}


class Picture:
    def __init__(self, path):
        data = path.read_bytes()
        size = int.from_bytes(data[8:10], "little")
        header = ast.literal_eval(data[10:10 + size].decode())
        self.path, self.shape = path, header["shape"]
        self.dtype, code = TYPES[header["descr"]]
        values = array.array(code, data[10 + size:])
        if self.dtype == "complex64":
            values = [math.hypot(*pair) for pair in zip(values[::2], values[1::2])]
        finite = [v for v in values if math.isfinite(v)]
        self.nan = any(v != v for v in values)
        self.infinite = len(values) > len(finite) + self.nan * sum(v != v for v in values)
        self.low, self.high = min(finite, default=0), max(finite, default=0)
        self.colour = len(self.shape) == 3 and self.shape[2] == 3 and self.dtype == "uint8"

    def caption(self):
        shape = " × ".join(map(str, self.shape))
        if self.dtype == "bool":
            return f"bool, {shape}"
        if self.dtype in ("int32", "int64"):
            return f"{self.dtype}, {shape}, labels up to {self.high}"
        if self.dtype == "complex64":
            return f"complex64, {shape}, amplitudes {self.low:.4g} to {self.high:.4g}"
        return (f"{self.dtype}, {shape}, values {self.low:.4g} to {self.high:.4g}{', infinity' * self.infinite}"
                f"{' and nan' * self.nan}")

    def drawing(self, name):
        """Statements that draw it: labels in colours, masks and bytes as they are, other values stretched to grey, of complex
        ones the amplitude."""
        plane = f'read("{self.path.name}"{", axes = " + chr(34) + "y x c" + chr(34) if self.colour else ""})'
        if len(self.shape) > 2 and not self.colour:
            plane += f"[{', '.join(str(n // 2) for n in self.shape[:-2])}]"
        if self.dtype == "complex64":
            plane = f"amplitude({plane})"
        if self.dtype in ("int32", "int64"):
            plane = f"colorize({plane})"
        elif self.dtype not in ("bool", "uint8"):
            if self.nan or self.infinite or self.low == self.high:
                low, high = self.low, self.high if self.high > self.low else self.low + 1
                low -= self.low == self.high != 0
                return f'write(convert(clip(({plane} - {low!r}) * 255 / {high - low!r}, 0, 255), "uint8"), "{name}.png")\n'
            return (f"{name} = {plane}\n{name}_low = quantile({name}, 0.002)\n{name}_high = quantile({name}, 0.998)\n"
                    f"{name}_grey = clip(({name} - {name}_low) * 255 / ({name}_high - {name}_low), 0, 255)\n"
                    f'write(convert({name}_grey, "uint8"), "{name}.png")\n')
        return f'write({plane}, "{name}.png")\n'


def compute(examples, which, folder):
    """Computes what is to be drawn of every example, in one run; {(operator, which): Picture}."""
    text, names = "", []
    for name, example in examples.items():
        value, own = getattr(example, which), example.names()
        if not value:
            continue
        names.append(name)
        text += "".join(renamed(s.text, own, f"{name}_0") + "\n" for s in example.statements if s.assigned())
        text += f'write({renamed(value, own, f"{name}_0")}, "{name}.{which}.npy")\n'
    pathlib.Path(folder, f"{which}.fov").write_text(text)
    fovea("run", "-q", "--allow-commands", f"{which}.fov", folder=folder)
    return {(name, which): Picture(pathlib.Path(folder, f"{name}.{which}.npy")) for name in names}


def draw(examples, folder):
    """{(operator, "before" or "after"): (Picture, bytes of the PNG)}. Three runs draw everything."""
    pictures = {**compute(examples, "before", folder), **compute(examples, "after", folder)}
    text = "".join(picture.drawing(f"{name}_{which}") for (name, which), picture in pictures.items())
    pathlib.Path(folder, "pictures.fov").write_text(text)
    fovea("run", "-q", "--allow-commands", "pictures.fov", folder=folder)
    return {key: (picture, pathlib.Path(folder, f"{key[0]}_{key[1]}.png").read_bytes()) for key, picture in pictures.items()}


# ---------------------------------------------------------------- pages

def code_like(names):
    """Calls of operators, words with an underscore or dots, and `name = value`."""
    calls = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(rf"`[^`]+`|\b(?:{calls})\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|"
                      r"\w+\.\w+\.\w+(?:\.\w+)*|\w+_\w+(?:\.\w+)*|\b[a-z_]+ = (?:\[[^\]]*\]|\"[^\"]*\"|-?\w+(?:\.\w+)?)")


class Pages:
    def __init__(self, folder):
        self.ops = [op for op in json.loads(fovea("ops", "--json"))["operators"] if op.get("example")]
        self.names = {op["name"] for op in self.ops}
        self.code = code_like(self.names)
        self.files = {}
        self.folder = folder
        self.examples = {op["name"]: Example(op) for op in self.ops}
        self.pictures = draw(self.examples, folder)

    def words(self, text):
        """Text as Markdown: what looks like code is set as code, signs with a meaning in Markdown are escaped."""
        out, end = [], 0
        for match in self.code.finditer(text):
            out += [re.sub(r"([*_<|\[\]])", r"\\\1", text[end:match.start()]), "`" + match.group().strip("`") + "`"]
            end = match.end()
        return "".join(out) + re.sub(r"([*_<|\[\]])", r"\\\1", text[end:])

    def cell(self, text):
        return self.words(text).replace("\n", "<br>")

    def picture(self, name, which):
        """A cell with the picture; pictures that several pages show are one file."""
        picture, data = self.pictures[name, which]
        file = f"pictures/{hashlib.sha256(data).hexdigest()[:10]}.png" if which == "before" else f"pictures/{name}.png"
        self.files[file] = data
        return f"![{which} {name}]({file})<br>{picture.caption()}"

    def shown(self, name):
        shown = [which for which in ("before", "after") if (name, which) in self.pictures]
        if not shown:
            return []
        titles = shown if len(shown) == 2 else ["image"]
        return ["| " + " | ".join(titles) + " |", "|" + "---|" * len(shown),
                "| " + " | ".join(self.picture(name, which) for which in shown) + " |", ""]

    def drawn(self, name):
        """The pictures that the example itself writes."""
        names = re.findall(r'"([\w-]+\.svg)"', self.examples[name].text)
        if not names:
            return []
        folder = pathlib.Path(self.folder, "draw-" + name)
        folder.mkdir()
        fovea("run", "-q", "--allow-commands", "-e", self.examples[name].text, folder=folder)
        for file in names:
            self.files[f"pictures/{file}"] = pathlib.Path(folder, file).read_bytes()
        return [f"![{file}](pictures/{file})" for file in names] + [""]

    def printed(self, name):
        if not self.examples[name].prints:
            return []
        folder = pathlib.Path(self.folder, "run-" + name)
        folder.mkdir()
        said = fovea("run", "-q", "--allow-commands", "-e", self.examples[name].text, folder=folder)
        lines = [line.rstrip() for line in said.splitlines()]
        more = [f"... ({len(lines) - ROWS} more rows)"] if len(lines) > ROWS + 2 else []
        return ["It prints", "", "```", *(lines[:ROWS] if more else lines), *more, "```", ""]

    @staticmethod
    def bounds(p):
        if "above" in p:
            return f"above {p['above']:g}" + (f", at most {p['maximum']:g}" if "maximum" in p else "")
        if "minimum" in p:
            return f"{p['minimum']:g} to {p['maximum']:g}" if "maximum" in p else f"at least {p['minimum']:g}"
        return ", ".join(f"`{word}`" for word in p.get("choices", []))

    def parameter(self, p):
        default = json.dumps(p["default"]) if "default" in p and p["kind"] != "footprint" else p.get("default")
        kind = {"integer": "whole number", "flag": "`true` or `false`", "numbers": "number or list", "list": "number or list",
                "dtype": "element type"}.get(p["kind"], p["kind"])
        default = "required" if p["required"] else f"`{default}`" if default is not None else "–"
        return f"| `{p['name']}` | {kind} | {default} | {self.bounds(p)} | {p.get('unit', '')} | {self.cell(p['doc'])} |"

    def column(self, c, chosen):
        name = f"*{c['name'][1:-1]}*" if c["name"].startswith("<") else f"`{c['name']}`"
        asked = f" `{c['property']}`" if "property" in c else " always"
        asked = asked + ", by default" * c.get("usual", False) + " |" if chosen else ""
        return f"| {name} |{asked} {c.get('unit', '')} | {self.cell(c['doc'])} |"

    def columns(self, op):
        if "columns" not in op:
            return []
        chosen = any("property" in c for c in op["columns"])
        note = ["Length, area and volume are in units of the image's spacing.", ""]
        note = note if any(c.get("unit") in LENGTHS for c in op["columns"]) else []
        return ["## Columns of the table", "", f"| column |{' asked for as |' * chosen} unit | meaning |",
                "|---|---|---|" + "---|" * chosen, *(self.column(c, chosen) for c in op["columns"]), "", *note]

    def facts(self, op):
        facts = [f"- Gives: {op['result']}."]
        if "expands" in op:
            facts.append(f"- The same as `{op['expands']}`.")
        facts.append("- The same bits on every processor, for every chunking and engine." if op["numerics"] == "exact" else
                     "- The same bits on every processor and engine with the same chunks; an estimate from other chunks differs."
                     if op["numerics"] == "by-chunks" else
                     f"- Numerics: {op['numerics']}.")
        if "citation" in op:
            facts.append(f"- Reference: {self.words(op['citation'])}.")
        if "also" in op:
            facts.append(f"- Also known as: {self.words(op['also'])}.")
        if "see" in op:
            facts.append("- See also: " + ", ".join(f"[{name}]({name}.md)" for name in op["see"]) + ".")
        return facts

    def page(self, op):
        brief = self.words(op["brief"][0].upper() + op["brief"][1:])
        lines = [f"# {op['name']}", "", f"{brief}.", "", "```", op["signature"], "```", ""]
        for paragraph in op.get("doc", "").split("\n") if op.get("doc") else []:
            lines += [self.words(paragraph), ""]
        lines += ["## Example", "", "```fov", *op["example"].splitlines(), "```", ""]
        lines += self.shown(op["name"]) + self.drawn(op["name"]) + self.printed(op["name"])
        if op["inputs"]:
            lines += ["## Inputs", "", "| input | kind | meaning |", "|---|---|---|"]
            lines += [f"| `{i['name']}` | {i['kind']}{', may be left out' * (not i['required'])} | {self.cell(i['doc'])} |"
                      for i in op["inputs"]] + [""]
        if op["parameters"]:
            lines += ["## Parameters", "", "| parameter | kind | default | range or choices | unit | meaning |",
                      "|---|---|---|---|---|---|", *map(self.parameter, op["parameters"]), ""]
        lines += [*self.columns(op), "## Facts", "", *self.facts(op), "",
                  f"[All operators](README.md) · family {op['family']}", ""]
        return "\n".join(lines)

    def index(self):
        families = {}
        for op in self.ops:
            families.setdefault(op["family"], []).append(op)
        lines = ["# Operators", "", f"All {len(self.ops)} operators, by family. `fovea ops NAME` shows the same in the terminal. "
                 "`make docs` makes these pages from", "what the operators say about themselves.", "",
                 " · ".join(f"[{family}](#{family})" for family in families), ""]
        for family, ops in families.items():
            lines += [f"## {family}", "", "| operator | what it does |", "|---|---|"]
            lines += [f"| [{op['name']}]({op['name']}.md) | {self.cell(op['brief'])} |" for op in ops]
            lines += [""]
        return "\n".join(lines)

    def make(self):
        for op in self.ops:
            self.files[f"{op['name']}.md"] = self.page(op).encode()
        self.files["README.md"] = self.index().encode()
        return self.files


def there():
    return {str(path.relative_to(FOLDER)): path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        made = Pages(folder).make()
    old = there()
    changed = sorted(name for name in made.keys() | old.keys() if made.get(name) != old.get(name))
    if "--check" in sys.argv:
        for name in changed:
            print(f"docs/operators/{name} is out of date")
        return 1 if changed else 0
    for name in changed:
        path = FOLDER / name
        if name in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made[name])
        else:
            path.unlink()
    print(f"docs/operators: {len(changed)} of {len(made)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
