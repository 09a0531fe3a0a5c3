"""Lazy values: images, numbers and tables that are known by how they are made, and computed when somebody asks."""
import ctypes as c
import operator

import numpy as np

from . import _descriptors as d
from . import _library as l
from . import _text
from ._sources import from_xarray, source_of
from ._errors import UsageError, raise_status

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%", "power": "**", "less": "<",
          "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "and": "&", "or": "|"}
# numpy's ufuncs under the names that their operators have here
_UFUNCS = {"true_divide": "divide", "bitwise_and": "and", "bitwise_or": "or", "logical_and": "and", "logical_or": "or",
           "logical_not": "not", "invert": "not", "bitwise_not": "not", "float_power": "power", "mod": "remainder",
           "fmin": "minimum", "fmax": "maximum", "conjugate": "conj", "absolute": "abs", "fabs": "abs"}


class Value:
    """What an operator gives. Nothing is computed before it is asked for."""
    __slots__ = ("_call", "_inputs", "_hint", "_type", "__weakref__")
    _word = "value"

    def __init__(self, call, inputs, hint, value_type=None):
        self._call, self._inputs, self._hint, self._type = call, inputs, hint, value_type

    def _line(self, names):
        return self._call(names)

    def text(self):
        """The pipeline that makes this value, as text for a `.fov` file. Arrays of this program appear as files to read."""
        lines, names, _ = _text.lines_of([self])
        arrays = [f'{names[id(v)]} = read("{names[id(v)]}.npy")  # an array of the program: numpy.save writes it'
                  for v in self._sources()]
        tables = {names[id(v)] for v in _all_before(self) if isinstance(v, GivenTable)}
        for k, line in enumerate(lines):
            name = line.partition(" = ")[0]
            if name in tables:
                lines[k] = f'{name} = read("{name}.csv")  # a table of the program'
        return "\n".join(arrays + lines) + "\n"

    def __copy__(self):
        return self  # nothing in it changes

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a lazy value cannot be pickled: send its text() or what compute() gives")

    def _sources(self):
        """Arrays of this program that the value is made of."""
        return [v for v in _all_before(self) if isinstance(v, (ArrayImage, SourceImage))]

    def compute(self, **options):
        """The value itself: a numpy array, a number or a table. Options are those of fovea.compute."""
        from ._compute import compute
        return compute(self, **options)[0]

    def plan(self, **options):
        """What a run would do, as text, without reading a pixel."""
        from ._compute import plan
        return plan(self, **options)

    def graph(self, chunks=False):
        """The graph of operators, or with chunks of tasks, in the language of Graphviz."""
        from ._compute import graph
        return graph(self, chunks=chunks)

    def write(self, path, *, _options=None, **arguments):
        """Computes the value and writes it to a file, whose extension tells the format; gives the paths of the files.

        Arguments that `write` has in a pipeline (level, chunk, append ...) go into the text, all others to the run."""
        from ._compute import write
        return write(self, path, **arguments)

    def __bool__(self):
        raise TypeError(f"whether a lazy {self._word} is true is not known before it is computed; "
                        "use & and | between masks, or .compute() first")


def _operator_method(name):
    operation = d.python_names()[name]

    def method(self, *arguments, **named):
        return call(operation, (self, *arguments), named)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = d.documentation_of(operation)
    return method


class _Arithmetic(Value):
    """Signs, ufuncs and methods of images and numbers."""
    __slots__ = ()
    __hash__ = object.__hash__

    def __getattr__(self, name):
        if name.startswith("_") or name not in d.python_names():
            raise AttributeError(f"a lazy {self._word} has no operator or attribute {name!r}{advice(name + '()')}")
        setattr(_Arithmetic, name, _operator_method(name))  # the next time it is there
        return getattr(self, name)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and not options and name in d.all_operators():
            return call(name, inputs, {})
        if any(isinstance(one, Value) for one in options.get("out", ())):
            return NotImplemented
        computed = [np.asarray(one) if isinstance(one, Value) else one for one in inputs]  # numpy does what has no operator here
        return getattr(ufunc, method)(*computed, **options)

    def __neg__(self):
        return call("negative", (self,), {})

    def __pos__(self):
        return self

    def __invert__(self):
        return call("not", (self,), {})

    def __abs__(self):
        return call("abs", (self,), {})


def _sign(name, swapped):
    def method(self, other):
        if not isinstance(other, (Value, int, float, np.generic, np.ndarray)):
            return NotImplemented
        return call(name, (other, self) if swapped else (self, other), {})
    return method


for _name, _method in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"), ("remainder", "mod"),
                       ("power", "pow"), ("and", "and"), ("or", "or")):
    setattr(_Arithmetic, f"__{_method}__", _sign(_name, False))
    setattr(_Arithmetic, f"__r{_method}__", _sign(_name, True))
for _name, _method in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"), ("equal", "eq"),
                       ("not_equal", "ne")):
    setattr(_Arithmetic, f"__{_method}__", _sign(_name, False))


class Image(_Arithmetic):
    """An image that is computed when somebody asks. Every operator is a method, numpy's ufuncs and slices work."""
    __slots__ = ()
    _word = "image"

    @property
    def shape(self):
        """Voxels along each axis."""
        t = self._type.image
        return tuple(t.shape[:t.ndim])

    @property
    def ndim(self):
        """How many axes the image has."""
        return self._type.image.ndim

    @property
    def dtype(self):
        """numpy's type of an element."""
        return np.dtype(l.DTYPES[self._type.image.dtype])

    @property
    def size(self):
        """How many voxels there are."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self):
        """Bytes of the computed image."""
        return self.size * self.dtype.itemsize

    @property
    def axes(self):
        """Names of the axes, slowest first."""
        t = self._type.image
        return tuple(t.axis[k].value.decode() for k in range(t.ndim))

    @property
    def spacing(self):
        """Distance between voxels along each axis; 1 where it is not known."""
        t = self._type.image
        return tuple(t.spacing[:t.ndim])

    @property
    def origin(self):
        """Where the first voxel lies along each axis, in units of the spacing's."""
        t = self._type.image
        return tuple(t.origin[:t.ndim])

    @property
    def units(self):
        """Unit of each axis' spacing, or an empty text."""
        t = self._type.image
        return tuple(t.unit[k].value.decode() for k in range(t.ndim))

    @property
    def channels(self):
        """What is known of each channel: a dictionary with what there is of name, color ("#rrggbb") and range (low, high)."""
        t = self._type.image
        return tuple({**({"name": k.name.decode()} if k.name else {}), **({"color": f"#{k.color:06x}"} if k.has_color else {}),
                      **({"range": (k.low, k.high)} if k.low < k.high else {})} for k in t.channel[:t.nchannels])

    @property
    def voxel_to_world(self):
        """The matrix from voxels (x y z) to the world, 4 by 4, or None; fovea.array takes it as affine."""
        t = self._type.image
        return np.vstack([np.array(t.affine[:12]).reshape(3, 4), [0, 0, 0, 1]]) if t.has_affine else None

    @property
    def items(self):
        """How many items the collection has that this is one of; 0 if it is a single image."""
        return self._type.items

    def to_xarray(self, **options):
        """The computed image as an xarray.DataArray with coordinates."""
        from ._sources import to_xarray
        return to_xarray(self, **options)

    def __len__(self):
        if self.items:
            raise TypeError("the images of a collection have no common length: .items says how many there are, .shape what the "
                            "first is like")
        return self.shape[0]

    def __iter__(self):
        return iter([self[k] for k in range(len(self))])

    def __array__(self, dtype=None, copy=None):
        array = self.compute()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __getitem__(self, index):
        return _slice(self, index)

    def _repr_html_(self):
        from ._notebook import image_html
        return image_html(self)

    def __repr__(self):
        axes = " ".join(self.axes)
        many = f", one of each of {self.items} items" if self.items else ""
        return f"<fovea.Image {'×'.join(map(str, self.shape))} {self.dtype} ({axes}){many}, {self._hint}>"


class ArrayImage(Image):
    """An array of this program."""
    __slots__ = ("_array",)

    def __init__(self, array, value_type):
        super().__init__(None, (), "array", value_type)
        self._array = array

    def _line(self, names):
        return None


class SourceImage(Image):
    """An array of this program that is read piece by piece, such as a dask or zarr array."""
    __slots__ = ("_source",)

    def __init__(self, source, value_type):
        super().__init__(None, (), "array", value_type)
        self._source = source

    def _line(self, names):
        return None


class Scalar(_Arithmetic):
    """A number that is computed when somebody asks."""
    __slots__ = ()
    _word = "number"

    @property
    def dtype(self):
        """numpy's type of the number."""
        return np.dtype(l.DTYPES[self._type.dtype])

    @property
    def items(self):
        """How many items the collection has of which this is a number of each; 0 if it is a single number."""
        return self._type.items

    def _number(self):
        if self.items:
            raise TypeError(f"this is a number of each of {self.items} items: .compute() gives a table with a row for each, "
                            "fovea.together(number) an image of all of them")
        return self.compute()

    def __float__(self):
        return float(self._number())

    def __int__(self):
        return int(self._number())

    def __index__(self):
        return operator.index(self._number())

    def __bool__(self):
        return bool(self._number())

    def __round__(self, digits=None):
        return round(self._number(), digits)

    def __format__(self, form):
        return format(self._number(), form) if form else repr(self)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._number(), dtype)

    def __repr__(self):
        return f"<fovea.Scalar {self.dtype}, {self._hint}>"


class LazyTable(Value):
    """A table that is computed when somebody asks."""
    __slots__ = ()
    _word = "table"

    @property
    def columns(self):
        """Names of the columns."""
        t = self._type.table
        return tuple(t.column[k].name.decode() for k in range(t.ncolumns))

    def __getattr__(self, name):
        if name.startswith("_") or name not in d.python_names():
            there = f"; .compute()[{name!r}] is that column" if name in self.columns else advice(name + "()")
            raise AttributeError(f"a lazy table has no operator or attribute {name!r}{there}")
        return lambda *arguments, **named: call(d.python_names()[name], (self, *arguments), named)

    def to_pandas(self, **options):
        """The computed table as a pandas DataFrame."""
        return self.compute(**options).to_pandas()

    def to_arrow(self, **options):
        """The computed table as a pyarrow Table."""
        return self.compute(**options).to_arrow()

    def __arrow_c_stream__(self, requested_schema=None):
        return self.compute().__arrow_c_stream__(requested_schema)

    def __getitem__(self, name):
        raise TypeError("a lazy table has no cells before it is computed: t = table.compute(), then t['volume']")

    def __len__(self):
        raise TypeError("how many rows a lazy table has is not known before it is computed: len(table.compute())")

    def __repr__(self):
        return f"<fovea.Table of {', '.join(self.columns)}; {self._hint}>"


class GivenTable(LazyTable):
    """A table of this program."""
    __slots__ = ("_file",)


_CLASSES = {l.IMAGE: Image, l.SCALAR: Scalar, l.TABLE: LazyTable}


# ---------------------------------------------------------------- typing

_known_types = {}  # of texts that read no files, by their inputs' types; the oldest go first
MOST_KNOWN = 256  # of about 24 KB each


def infer(value, rows=False):
    """Finds the type of a new value from those of its inputs, so that mistakes are found where they are made. rows: it is made of
    tables or is one; then images of a collection are not replaced by one image, because a table of theirs has more columns. What
    one image is refused for may be meant for a collection, as together and fold are."""
    try:
        return _infer(value, rows)
    except UsageError:
        if rows or not any(one._type and one._type.items for one in value._inputs):
            raise
    return _infer(value, True)


def _infer(value, rows):
    known, images = {}, []
    for image in _images_before(value, rows):
        images.append(image._type)
        known[id(image)] = f"input{len(images)}"
    if all(id(one) in known for one in value._inputs):
        name, operators = value._hint + "1", (value._hint,)
        text = f"{name} = {value._call(known)}"
    else:
        lines, names, operators = _text.lines_of([value], known)
        name, text = names[id(value)], "\n".join(lines)
    key = (text, *[t.identity() for t in images])
    found = _known_types.get(key)
    if found is None:
        found = _ask_type(text, [(f"input{k + 1}", t.image) for k, t in enumerate(images)], name)
        if d.file_operators().isdisjoint(operators):
            if len(_known_types) >= MOST_KNOWN:
                _known_types.pop(next(iter(_known_types), None), None)
            _known_types[key] = found
    for one in value._inputs if not rows else ():
        if one._type is not None and one._type.items > found.items:
            found = l.ValueType.from_buffer_copy(found)
            found.items = one._type.items
    return found


def _ask_type(text, arrays, name):
    error, found = l.ErrorStruct(), l.ValueType()
    pipeline = l.lib.fv_pipeline_new()
    try:
        status = l.OK
        for variable, image_type in arrays:
            status = status or l.lib.fv_pipeline_array(pipeline, variable.encode(), image_type, None, error)
        status = status or l.lib.fv_pipeline_add(pipeline, b"fovea", (text + "\n").encode(), error)
        status = status or l.lib.fv_pipeline_type(pipeline, name.encode(), found, error)
        if status:
            raise_status(status, error, l.lib.fv_pipeline_messages(pipeline).decode("utf-8", "replace"))
    finally:
        l.lib.fv_pipeline_free(pipeline)
    return found


def advice(text):
    """What the library advises about a mistake in a text, behind a semicolon, if it does."""
    try:
        _ask_type(f"a = {text}", [], "a")
    except UsageError as mistake:
        hints = [line.strip() for line in str(mistake).splitlines() if line.startswith("  hint: ")]
        return "; " + hints[0].removeprefix("hint: ") if hints else ""
    return ""


def _all_before(value):
    """A value and everything that it is made of."""
    found, seen, todo = [], set(), [value]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            found.append(one)
            todo.extend(one._inputs)
    return found


def _images_before(value, rows):
    """The nearest images that a value is made of, each once, through whatever else is between. rows: and through images of a
    collection."""
    found, seen, todo = [], set(), list(value._inputs)
    for one in todo:
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Image) and not (rows and one._type.items):
            found.append(one)
        else:
            todo.extend(one._inputs)
    return found


# ---------------------------------------------------------------- building

def _typed(make, inputs, hint, kind):
    """A value of the class that its type asks for."""
    value = Value(make, inputs, hint)
    if kind in ("footprint", "list", "geometry", "list of files"):
        return value
    value_type = infer(value, kind == "table" or any(isinstance(i, LazyTable) for i in inputs))
    return _CLASSES[value_type.kind](make, inputs, hint, value_type)


def _operand(value, kind):
    """What a call was given, as a value or a literal. kind: of the input that it is for; None: it is for a parameter."""
    if kind is None and isinstance(value, np.ndarray):
        return (value.astype(int) if value.dtype == bool else value).ravel().tolist() if value.ndim else value
    if kind == "table" and not isinstance(value, Value):
        return table(value)
    if kind == "image" and not isinstance(value, Value) and getattr(value, "ndim", 0):
        return array(value)
    return value if isinstance(value, Value) else array(value) if isinstance(value, np.ndarray) and value.ndim else value


def _footprint(value):
    """An array as scipy takes it, or what a call was given."""
    return call("pattern", (value,), {"shape": value.shape}) if isinstance(value, np.ndarray) else value


def _along(name, positional, named):
    """A statistic along an axis, as numpy asks for it: by number or by name."""
    (image, *more), axis = positional, named["axis"]
    others = [key for key, value in named.items() if key != "axis" and value is not None and (key, value) != ("ddof", 0)
              and (key, value) != ("keepdims", False)]
    if more or others:
        raise TypeError(f"{name} along an axis takes the axis alone, not {', '.join(others) or 'further arguments'}; "
                        f"numpy.{name}(numpy.asarray(image), ...) takes what numpy takes")
    image = _operand(image, "image")
    if not isinstance(axis, str):
        if not -image.ndim <= axis < image.ndim:
            raise IndexError(f"axis = {axis}: the image has {image.ndim} axes ({' '.join(image.axes)})")
        axis = image.axes[axis]
    return call("project", (image, axis, name), {})


_OF_NUMPY = ("axis", "dtype", "out", "keepdims")  # numpy.mean(image) and the like hand them on as None, and ddof as 0


def call(name, positional, named):
    """The value that an operator gives of arguments as in the language."""
    order, footprints, leading, kind = d.call_of(name)
    kinds = d.input_kinds(name)
    if len(positional) > len(order):
        raise TypeError(f"{name} takes {len(order)} arguments ({', '.join(order)}), not {len(positional)}")
    given = dict(zip(order, positional))
    for key, value in named.items():
        key = key[:-1] if key.endswith("_") and key not in order else key
        if key not in order and (value is None and key in _OF_NUMPY or key == "ddof" and value == 0):
            continue
        if (key == "axis" and kind == "scalar" and name in d.choices_of("project", "method") and positional
                and isinstance(value, (int, str))):
            return _along(name, positional, named)
        if key not in order:
            raise TypeError(f"{name} has no argument {key!r}; it has {', '.join(order)}{advice(f'{name}({key} = 0)')}")
        if key in given:
            raise TypeError(f"{name} was given {key} twice")
        given[key] = value
    pieces = []
    for key, value in sorted(given.items(), key=lambda item: order.index(item[0])) if named else given.items():
        if value is None:
            continue
        pieces.append((key, _footprint(value) if key in footprints else _operand(value, kinds.get(key))))
    inputs = tuple(v for _, v in pieces if isinstance(v, Value))
    sign = _SIGNS.get(name)

    def line(names):
        texts = [names[id(v)] if isinstance(v, Value) else _text.literal(v) for _, v in pieces]
        if sign and len(texts) == 2:
            return f"{texts[0]} {sign} {texts[1]}"
        placed = [t if k < leading and pieces[k][0] == order[k] else f"{pieces[k][0]} = {t}" for k, t in enumerate(texts)]
        return f"{name}({', '.join(placed)})"
    return _typed(line, inputs, name, kind)


def _slice(image, index):
    index = index if isinstance(index, tuple) else (index,)
    if sum(i is Ellipsis for i in index) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = next((k for k, i in enumerate(index) if i is Ellipsis), None)
    if at is not None:
        index = index[:at] + (slice(None),) * (image.ndim - len(index) + 1) + index[at + 1:]
    if len(index) > image.ndim:
        raise IndexError(f"too many indices: the image has {image.ndim} axes ({' '.join(image.axes)}), {len(index)} were given")
    pieces = []
    for axis, part in enumerate(index):
        if isinstance(part, slice):
            start, stop, step = part.start, part.stop, part.step
            numbers = ["" if v is None else str(operator.index(v)) for v in (start, stop)]
            pieces.append(":".join(numbers) + (f":{operator.index(step)}" if step is not None else ""))
            continue
        try:
            number = operator.index(part)
        except TypeError:
            raise IndexError(f"an image is cut by whole numbers, slices and ..., not by {type(part).__name__}; "
                             "compute it first for other indices") from None
        if not -image.shape[axis] <= number < image.shape[axis]:
            raise IndexError(f"index {number} is out of bounds for axis {axis} ({image.axes[axis]}) with size "
                             f"{image.shape[axis]}")
        pieces.append(str(number))
    cut = ", ".join(pieces)
    return _typed(lambda names: f"{names[id(image)]}[{cut}]", (image,), "slice", "image")


def array(a, spacing=None, axes=None, units=None, affine=None):
    """An array of this program as an image. The pixels are not copied if they lie in C order; do not change them before
    the image is computed. Arrays of dask, zarr, h5py and xarray are read piece by piece when they are needed."""
    if isinstance(a, Image):
        return a
    origin = None
    if type(a).__module__.partition(".")[0] == "xarray" and hasattr(a, "dims"):
        a, own_axes, own_spacing, origin, own_units = from_xarray(a)
        axes, spacing, units = axes or own_axes, spacing or own_spacing, units or own_units
    source = source_of(a)
    if isinstance(a, np.ma.MaskedArray) or isinstance(getattr(a, "_meta", None), np.ma.MaskedArray):
        raise TypeError("a masked array has no place for its mask in an image; a.filled(...) or two arrays do")
    a = a if source else _as_array(a)
    if a.dtype.kind not in "buifc" or a.dtype.name not in l.DTYPES:
        raise TypeError(f"an image has elements of {', '.join(l.DTYPES)}; this array has {a.dtype}")
    if a.ndim < 1 or a.ndim > l.MAX_DIMS:
        raise ValueError(f"an image has 1 to {l.MAX_DIMS} axes; this array has {a.ndim}")
    if 0 in a.shape:
        raise ValueError(f"an image has at least one voxel along each axis; this array has the shape {a.shape}")
    if not source and not (a.flags.c_contiguous and a.dtype.isnative):
        a = np.ascontiguousarray(a, a.dtype.newbyteorder("="))
    found = l.ValueType()
    t = found.image
    l.lib.fv_image_type_init(t, l.DTYPES.index(a.dtype.name), a.ndim, (c.c_int64 * a.ndim)(*a.shape))
    found.dtype = t.dtype
    _set_axes(t, axes)
    for name, values, put in (("spacing", spacing, t.spacing), ("units", units, None)):
        if values is None:
            continue
        values = [values] * a.ndim if isinstance(values, (int, float, str)) else list(values)
        if len(values) != a.ndim:
            raise ValueError(f"{name} has {len(values)} values; the array has {a.ndim} axes")
        if put is not None and not all(0 < float(v) < float("inf") for v in values):
            raise ValueError(f"{name} = {values}: each must be a number above 0")
        for k, value in enumerate(values):
            if put is None:
                t.unit[k].value = value.encode()
            else:
                put[k] = float(value)
    if affine is not None:
        matrix = np.asarray(affine, float)
        if matrix.shape not in ((3, 4), (4, 4)):
            raise ValueError(f"affine is a matrix of 4 by 4, not of shape {matrix.shape}")
        t.has_affine, t.affine = True, (c.c_double * 12)(*matrix[:3].ravel())
    for k, first in enumerate(origin or ()):
        t.origin[k] = first
    return SourceImage(source, found) if source else ArrayImage(a, found)


def table(t):
    """A table of this program as an input of join, filter, group ...: a DataFrame of pandas or polars, a table of pyarrow,
    a dictionary of columns, a computed table, or anything that speaks Arrow. Its cells are copied."""
    if isinstance(t, LazyTable):
        return t
    from ._given_tables import statement
    line, file = statement(t)
    made = Value(lambda names: line, (), "table")
    value = GivenTable(made._call, (), "table", infer(made))
    value._file = file
    return value


def _as_array(a):
    """Anything with numpy's protocols, DLPack or a buffer."""
    if isinstance(a, np.ndarray):
        return a
    if not hasattr(a, "__array__") and not hasattr(a, "__array_interface__") and hasattr(a, "__dlpack__"):
        return np.from_dlpack(a)
    return np.asarray(a)


def _set_axes(t, axes):
    if axes is None:
        return
    names = axes.split() if isinstance(axes, str) and " " in axes else list(axes)
    if len(names) != t.ndim:
        raise ValueError(f"axes names {len(names)} axes; the array has {t.ndim}")
    if len(set(names)) != len(names):
        raise ValueError(f"axes {' '.join(names)} has a name twice")
    for k, name in enumerate(names):
        if not name or len(name.encode()) > 7:
            raise ValueError(f"the name of an axis has 1 to 7 letters, not {name!r}")
        t.axis[k].value = name.encode()
