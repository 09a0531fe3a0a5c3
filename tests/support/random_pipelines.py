"""Pipelines by chance: operators put together as nobody has thought of, from what operators say about themselves. Each is run as
a whole, and again in random chunks with other workers, another engine or little memory: results must have the same bits, and what
is refused must be refused with a sentence."""
import json
import math
import pathlib
import random
import re
import subprocess

FAMILIES = {"math", "filter", "geometry", "morphology", "intensity", "arithmetic", "segmentation", "view", "metrics",
            "statistics", "threshold", "measurement", "channels", "logic", "comparison", "tomography"}
TYPES = ["uint8", "uint8", "uint16", "int16", "int32", "float32", "float32", "float64", "bool", "uint64"]
READ = [".npy", ".tif", ".zarr", ".nii.gz", ".nii", ".mrc", ".nrrd", ".png", ".ome.tif", ".mha"]
WRITTEN = [".npy", ".npy", ".npy", ".tif", ".zarr", ".nii.gz", ".nrrd", ".png"]
SECONDS = 300  # most take less than one


def operators(fovea):
    """Those whose results do not depend on chunks, with what they take."""
    told = subprocess.run([fovea, "ops", "--json"], capture_output=True, text=True, check=True).stdout
    return [o for o in json.loads(told)["operators"] if o["family"] in FAMILIES and o["numerics"] == "exact"]


class Maker:
    """Makes one pipeline, which follows from the seed alone."""

    def __init__(self, seed, known, accepts):
        self.rng = random.Random(seed)
        self.known, self.accepts = known, accepts  # accepts: whether a text can be planned
        self.lines, self.made = [], {"image": [], "scalar": [], "table": []}
        self.many = set()  # names of values that each item has
        self.axes = self.rng.choice([2, 2, 3, 3, 3, 4])

    def add(self, kind, text):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.made[kind].append(name)
        if "*" in text or self.many & set(re.findall(r"\bv\d+\b", text)):
            self.many.add(name)

    def drop_last(self):
        name = self.lines.pop().split()[0]
        self.many.discard(name)
        for names in self.made.values():
            if name in names:
                names.remove(name)

    def source(self, files):
        chance = self.rng.random()
        if files and chance < 0.1:
            return 'read("in/*.npy")'
        if files and chance < 0.6:
            return f'read("{self.rng.choice(files)}")'
        top = {2: 90, 3: 34, 4: 12}[self.axes]
        shape = [self.rng.choice([1, 2, 3, 5, 17, self.rng.randint(4, top), top]) for _ in range(self.axes)]
        text = f'phantom("{self.rng.choice(["cells", "noise", "foam"])}", {shape}, seed = {self.rng.randint(0, 9)})'
        if self.rng.random() < 0.5:
            return text
        return f'convert({text} * {self.rng.choice([1, 100, 0.01])}, "{self.rng.choice(TYPES)}")'

    def part(self):
        def along_an_axis():
            chance, a, b = self.rng.random(), self.rng.randint(-4, 8), self.rng.randint(-3, 40)
            return (":" if chance < 0.35 else str(a) if chance < 0.55 else f"{a}:{b}" if chance < 0.75 else
                    f"::{self.rng.choice([-1, 2, 3, -2])}" if chance < 0.9 else f"{a}:")
        axes = self.rng.randint(1, self.axes)
        self.add("image", f"{self.rng.choice(self.made['image'])}[{', '.join(along_an_axis() for _ in range(axes))}]")
        return True

    def number(self, parameter):
        low = max(parameter.get("minimum", -3), -5)
        high = max(min(parameter.get("maximum", 6), low + 7), low)
        whole = math.ceil(low)
        return f"{self.rng.choice([self.rng.uniform(low, high), self.rng.randint(whole, max(whole, int(high)))]):.3g}"

    def value(self, parameter):
        """None: nothing is known that fits."""
        kind = parameter["kind"]
        if kind == "choice":
            return json.dumps(self.rng.choice(parameter["choices"]))
        if kind == "flag":
            return self.rng.choice(["true", "false"])
        if kind == "integer":
            low = int(max(parameter.get("minimum", 0), -3))
            return str(self.rng.randint(low, int(max(low, min(parameter.get("maximum", low + 5), low + 5)))))
        if kind == "number":
            late = self.made["scalar"] and self.rng.random() < 0.15
            return self.rng.choice(self.made["scalar"]) if late else self.number(parameter)
        if kind == "numbers":
            count = self.rng.choice([0, 0, 0, self.axes, self.axes, 2, 3])
            return f"[{', '.join(self.number(parameter) for _ in range(count))}]" if count else self.number(parameter)
        if kind == "footprint":
            return f'{self.rng.choice(["ball", "box", "disk", "cross"])}({self.rng.randint(1, 3)})'
        if kind == "geometry":
            return f"parallel(angles = range(0, 170, {self.rng.choice([10, 30, 85])}))"
        return json.dumps(self.rng.choice(TYPES)) if kind == "dtype" else None

    def input(self, wanted):
        pool = []
        for kind, times in ("image", 3), ("scalar", 1), ("table", 1):
            pool += times * self.made[kind] if kind in wanted["kind"] else []
        if "scalar" in wanted["kind"]:
            pool.append(str(self.rng.randint(-2, 120)))
        if wanted["name"] in ("mask", "labels") and self.rng.random() < 0.7:
            mask = f"{self.rng.choice(self.made['image'])} > {self.rng.randint(0, 90)}"
            return f"label({mask})" if wanted["name"] == "labels" else mask
        return self.rng.choice(pool) if pool else None

    def call(self):
        """Whether a call could be written down."""
        op, words = self.rng.choice(self.known), []
        for wanted in op["inputs"]:
            if not wanted["required"] and self.rng.random() < 0.6:
                continue
            given = self.input(wanted)
            if given is None:
                return False
            words.append(given if wanted["required"] else f"{wanted['name']} = {given}")
        for parameter in op["parameters"]:
            if not parameter["required"] and self.rng.random() < 0.7:
                continue
            given = self.value(parameter)
            if given is None and parameter["required"]:
                return False
            if given is not None:
                words.append(f"{parameter['name']} = {given}")
        kind = op["result"].split()[0]
        if kind not in self.made:
            return False
        self.add(kind, f"{op['name']}({', '.join(words)})")
        return True

    def sink(self, kind):
        name = self.made[kind][-1]
        if kind != "image":
            return name
        return f'write({name}, "out-{name}{"-{stem}" if name in self.many else ""}{self.rng.choice(WRITTEN)}")'

    def text(self, files):
        for _ in range(self.rng.choice([1, 1, 2])):
            self.add("image", self.source(files))
        wanted, tries = self.rng.randint(2, 6), 0
        while wanted and tries < 40:
            tries += 1
            if not (self.part() if self.rng.random() < 0.15 else self.call()):
                continue
            kind = next(k for k, names in self.made.items() if f"v{len(self.lines) - 1}" in names)
            if self.accepts("\n".join([*self.lines, self.sink(kind)])):
                wanted -= 1
            else:
                self.drop_last()
        return "\n".join(self.lines + [self.sink(kind) for kind, names in self.made.items() if names])


class Trial:
    """One pipeline in a folder of its own; wrong: what is wrong with it, None: nothing."""

    def __init__(self, fovea, known, seed, folder):
        self.fovea, self.folder, self.wrong, self.ended = fovea, pathlib.Path(folder), None, False
        rng = random.Random(seed + 1)
        files = self.make_files(rng)
        self.text = Maker(seed, known, self.accepts).text(files)
        if self.wrong:
            return
        whole, options = self.run(self.text, "--workers", "1"), self.other_way(rng)
        made = self.results()
        again = self.run(self.text, *options)
        if self.wrong:
            return
        self.ended = whole[0] == 0
        little = again[0] and "--memory" in again[2]
        if again[0] != whole[0] and not little:
            self.wrong = (f"{self.text}\n{options}: status {again[0]}, and {whole[0]} as a whole\n{whole[2][-800:]}\n"
                          f"{again[2][-800:]}")
        elif not whole[0] and not again[0] and (again[1] != whole[1] or self.results() != made):
            other = [name for name, data in self.results().items() if made.get(name) != data]
            self.wrong = f"{self.text}\n{options}: other results: {other or [whole[1][:600], again[1][:600]]}"

    def run(self, text, *options, command="run"):
        """Exit status, what was printed, and messages; a crash is wrong whatever the text is."""
        fresh = ("-q", "--fresh", "--overwrite") if command == "run" else ()
        try:
            done = subprocess.run([self.fovea, command, *fresh, *options, "-e", text], cwd=self.folder, capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.wrong = f"{text}\n{command} {options} took longer than {SECONDS} s"
            return -1, "", ""
        crashed = re.search("Sanitizer|runtime error|[Ii]nternal error|[Aa]ssertion", done.stderr)
        if crashed or done.returncode not in (0, 1, 2):
            self.wrong = f"{text}\n{command} {options} ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.returncode, done.stdout, done.stderr

    def accepts(self, text):
        return self.run(text, command="plan")[0] == 0

    def results(self):
        return {p.relative_to(self.folder).as_posix(): p.read_bytes()
                for p in sorted(self.folder.rglob("*")) if p.is_file() and p.relative_to(self.folder).parts[0].startswith("out-")}

    def make_files(self, rng):
        """Small files to read, of several formats and types."""
        names = []
        for k, ending in enumerate([".npy", ".npy"] + rng.sample(READ, 3)):
            shape = [rng.randint(3, 80) for _ in range(2)] if rng.random() < 0.4 else [rng.randint(3, 30) for _ in range(3)]
            what, kind = rng.choice(["cells", "noise"]), rng.choice(["uint8", "uint8", "uint16", "float32", "int16"])
            text = f'write(convert(phantom("{what}", {shape}) * 200, "{kind}"), "in/f{k}{ending}")'
            if self.run(text)[0] == 0:
                names.append(f"in/f{k}{ending}")
        return names

    @staticmethod
    def other_way(rng):
        sides = [str(rng.choice([3, 7, 16, 20, 33])) for _ in range(rng.choice([1, 1, 2, 3]))]
        options = ["--chunk", "x".join(sides), "--workers", str(rng.choice([1, 2, 3]))]
        options += ["--engine", "processes"] if rng.random() < 0.2 else []
        return options + (["--memory", "64M"] if rng.random() < 0.3 else [])
