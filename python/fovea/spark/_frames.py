"""Images and measurements as Spark DataFrames.

A row holds an image: `path`, `item` (its number in the collection), `shape`, `dtype`, `axes`, `spacing`, `units`, `angles`
(degrees, of a tilt series), `bytes` (its voxels, last axis fastest, little-endian) and `error` (why it could not be read; then
the others are empty). Executors need the package fovea in their Python."""
import functools
import json
import os

import numpy as np

from .._errors import Error, UsageError

IMAGE = ("path string, item bigint, shape array<bigint>, dtype string, axes array<string>, spacing array<double>, "
         "units array<string>, angles array<double>, bytes binary, error string")
_NAMES = [part.split()[0] for part in IMAGE.split(", ")]
_SQL = {"integer": "bigint", "real": "double", "natural": "decimal(20,0)", "text": "string"}


def _session(spark):
    from pyspark.sql import SparkSession
    spark = spark or SparkSession.getActiveSession()
    if spark is None:
        raise UsageError("there is no active session of Spark: make one with SparkSession.builder.getOrCreate()")
    return spark


def _arrow(schema):
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import _parse_datatype_string
    return to_arrow_schema(_parse_datatype_string(schema))


def _there(name, *arguments):
    """A function of this module for mapInArrow. It travels by value, so that an executor without the package can say so."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    def on_batches(batches):
        import importlib
        import os
        import sys
        if importlib.util.find_spec("fovea") is None and os.path.isdir(folder):
            sys.path.append(folder)
        try:
            frames = importlib.import_module("fovea.spark._frames")
        except ImportError as missing:
            raise RuntimeError(f"{sys.executable} on {os.uname().nodename} has no package fovea ({missing}), and does not see "
                               f"that of the driver in {folder}: install the wheel there, or send an environment as an archive")
        yield from getattr(frames, name)(batches, *arguments)
    return on_batches


# ---------------------------------------------------------------- reading

def _row_of(item, path):
    """One image as a row."""
    import fovea
    row = dict.fromkeys(_NAMES)
    row.update(path=path, item=item)
    try:
        image = fovea.read(path)
        pixels = np.ascontiguousarray(np.asarray(image))
        row.update(shape=list(image.shape), dtype=image.dtype.name, axes=list(image.axes), spacing=list(image.spacing),
                   units=list(image.units), bytes=pixels.tobytes())
        if image.axes[0] == "angle":
            row.update(angles=fovea.info(path).get("angles"))
    except (Error, OSError, ValueError) as problem:
        row.update(error=str(problem))
    return row


def _batch(rows, schema):
    import pyarrow
    return pyarrow.RecordBatch.from_pylist(rows, schema=schema)


def read_rows(batches, arrow):
    """In an executor: images, of rows with item and path."""
    for batch in batches:
        for row in batch.to_pylist():
            yield _batch([_row_of(row["item"], row["path"])], arrow)


def read(pattern, spark=None, partitions=None):
    """Images as rows of a DataFrame, read when the rows are asked for. pattern: as in `read("scans/*.tif")` of a pipeline.

    A file that cannot be read is a row whose `error` says why. partitions: how many, by default one for each slot and file."""
    from .._mapped_items import files_of
    spark = _session(spark)
    paths = [p if "://" in p else os.path.abspath(p) for p in files_of(os.fspath(pattern))]
    if not paths:
        raise UsageError(f"no file matches {pattern}")
    parts = min(partitions or 4 * spark.sparkContext.defaultParallelism, len(paths))
    rows = spark.sparkContext.parallelize(list(enumerate(paths)), parts).toDF("item bigint, path string")
    return rows.mapInArrow(_there("read_rows", _arrow(IMAGE)), IMAGE)


# ---------------------------------------------------------------- applying

def _is_text(text):
    """Whether it is made of whole statements."""
    from .._prepared import Pipeline
    with Pipeline() as p:
        try:
            p.add(text)
        except UsageError:
            return False
    return True


@functools.lru_cache(maxsize=64)
def _statements(text):
    """The text with a name for what its last statement gives. That may take several lines: it begins at the last line at which
    both what lies before it and an assignment of the rest are whole."""
    from .._prepared import Pipeline
    lines = text.strip().splitlines()
    with Pipeline() as p:
        p.add(text)  # says what is wrong with the text itself
    for k in range(len(lines) - 1, -1, -1):
        named = "\n".join([*lines[:k], "fovea_result = " + lines[k], *lines[k + 1:]]) + "\n"
        if _is_text("\n".join(lines[:k])) and _is_text(named):
            return named
    raise UsageError("apply needs a text whose last statement is an expression, such as gaussian(image, 2) |> label")


def _type_of(row):
    from .._prepared import _type_of as plain
    t = plain(np.empty(tuple(row["shape"]), row["dtype"]) if row.get("bytes") is None else _pixels(row), row.get("axes"))
    for k, value in enumerate(row.get("spacing") or ()):
        t.spacing[k] = value
    for k, value in enumerate(row.get("units") or ()):
        t.unit[k].value = value.encode()
    return t


def _pixels(row):
    return np.frombuffer(row["bytes"], row["dtype"]).reshape(row["shape"])


def _result_type(text, row):
    """The type of what the text makes of an image like this one."""
    from .. import _library as l
    from .._prepared import Pipeline
    with Pipeline() as p:
        p.check(l.lib.fv_pipeline_array(p.pointer, b"image", _type_of({**row, "bytes": None}), None, p.error))
        p.add(_statements(text))
        found = l.ValueType()
        try:
            p.check(l.lib.fv_pipeline_type(p.pointer, b"fovea_result", found, p.error))
        except UsageError as problem:
            if "gives no value" not in str(problem):
                raise
            raise UsageError("apply is for texts that give an image, a table or a number, and this one gives nothing: a pipeline "
                             "that writes files is for fovea.spark.run") from None
        return found


def _schema_of(text, row):
    from .. import _library as l
    found = _result_type(text, row)
    if found.kind == l.IMAGE:
        return IMAGE
    if found.kind == l.SCALAR:
        return "path string, item bigint, value double, error string"
    kinds = {l.INTEGER: "integer", l.REAL: "real", l.NATURAL: "natural", l.TEXT: "text"}
    columns = [found.table.column[k] for k in range(found.table.ncolumns)]
    named = [f"`{column.name.decode()}` {_SQL[kinds[column.kind]]}" for column in columns]
    return ", ".join(["path string", "item bigint", *named, "error string"])


def _compute(text, row):
    """What the text makes of the image of a row: (kind, value, its type)."""
    from .. import _library as l
    from .._prepared import kept, make, run, value_of
    pixels, t, statements = _pixels(row), _type_of(row), _statements(text)
    with kept(("spark", statements, bytes(t)), [pixels],
              lambda: make(statements, [(b"image", t)], ["fovea_result"])) as pipeline:
        value = value_of(pipeline, run(pipeline, l.RunOptions(transient=True)), b"fovea_result")
        found = l.ValueType()
        pipeline.check(l.lib.fv_pipeline_type(pipeline.pointer, b"fovea_result", found, pipeline.error))
    return value, found


def _rows_of(text, row):
    """The rows that become of one."""
    from .. import _library as l
    same = {"path": row["path"], "item": row["item"]}
    if row.get("error"):
        return [{**same, "error": row["error"]}]
    try:
        value, found = _compute(text, row)
    except Error as problem:
        return [{**same, "error": str(problem)}]
    if found.kind == l.IMAGE:
        t = found.image
        axes = [t.axis[k].value.decode() for k in range(t.ndim)]
        return [{**same, "shape": list(value.shape), "dtype": value.dtype.name, "axes": axes,
                 "spacing": list(t.spacing[:t.ndim]), "units": [t.unit[k].value.decode() for k in range(t.ndim)],
                 "angles": row.get("angles") if "angle" in axes else None, "bytes": np.ascontiguousarray(value).tobytes()}]
    if found.kind == l.SCALAR:
        return [{**same, "value": float(value)}]
    return [{**same, **dict(zip(value.columns, cells))} for cells in value]


def apply(text, dtype=None, ndim=2):
    """A function for rows of images: `df.transform(apply("gaussian(image, 2) > 100 |> label |> measure"))`. In the text the
    image of a row is called `image`.

    A text that gives an image gives rows of images; one that gives a table gives its rows, each with path and item; one that
    gives a number gives a row with `value`. A row whose image cannot be computed has `error`.
    With dtype, the type of the images, and ndim, it is a function for `df.mapInArrow(f, f.schema)`."""
    def on_frame(frame):
        if not hasattr(frame, "mapInArrow"):
            raise UsageError("the columns of the result are not known: use df.transform(apply(text)), or for mapInArrow say what "
                             "the images are, as in apply(text, dtype=\"uint8\", ndim=2)")
        _check_columns(frame, ("units", "angles"))
        rows = frame.filter("error IS NULL").select("shape", "dtype", "axes", "spacing").head(1)
        if not rows:
            raise UsageError("there is no image in these rows from which the columns of the result could be known")
        schema = _schema_of(text, rows[0].asDict())
        return frame.mapInArrow(_there("apply_rows", text, _arrow(schema)), schema)
    if not dtype:
        return on_frame
    schema = _schema_of(text, {"shape": [16] * ndim, "dtype": dtype})
    on_batches = _there("apply_rows", text, _arrow(schema))
    on_batches.schema = schema
    return on_batches


def _check_columns(frame, spared=("angles",)):
    """Whether its rows are images. spared: columns that may be missing."""
    missing = [name for name in _NAMES if name not in frame.columns and name not in spared]
    if missing:
        raise UsageError(f"these rows are no images, as fovea.spark.read gives them: there is no column {', '.join(missing)}")


def _fitting(rows, arrow):
    """Rows under the columns of the result, or one that says why they do not fit there: images of one frame may differ."""
    import pyarrow
    others = [name for name in rows[0] if name not in arrow.names]
    try:
        if not others:
            return _batch(rows, arrow)
        why = f"column {', '.join(others)} is new"
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as problem:
        why = str(problem)
    return _batch([{"path": rows[0]["path"], "item": rows[0]["item"],
                    "error": f"what this image gives does not fit the columns that follow from the first one: {why}"}], arrow)


def apply_rows(batches, text, arrow):
    """In an executor: what becomes of rows of images."""
    for batch in batches:
        for row in batch.to_pylist():
            rows = _rows_of(text, row)
            if rows:
                yield _fitting(rows, arrow)


# ---------------------------------------------------------------- slices

def _slices_of(row, axis):
    """The slices of one image along an axis, as rows."""
    same = {"path": row["path"], "angles": row.get("angles") if axis != "angle" else None}
    if row.get("error") or axis not in row["axes"]:
        return [{**same, "item": row["item"], "error": row.get("error") or f"{row['path']} has no axis {axis}: its axes are "
                 f"{' '.join(row['axes'])}"}]
    at, pixels = row["axes"].index(axis), _pixels(row)

    def others(name):
        return [value for k, value in enumerate(row[name]) if k != at]
    return [{**same, "item": k, "shape": others("shape"), "dtype": row["dtype"], "axes": others("axes"),
             "spacing": others("spacing"), "units": others("units"), "bytes": pixels.take(k, at).tobytes()}
            for k in range(pixels.shape[at])]


def slice_rows(batches, axis, arrow):
    """In an executor: slices of the images of rows."""
    for batch in batches:
        for row in batch.to_pylist():
            yield _batch(_slices_of(row, axis), arrow)


def slices(frame, axis="z"):
    """Images as rows, cut along an axis: a row for each slice, whose `item` is its place there. A slice of a tilt series along z
    has what one slice of the volume is reconstructed from."""
    _check_columns(frame)
    return frame.mapInArrow(_there("slice_rows", axis, _arrow(IMAGE)), IMAGE)


# ---------------------------------------------------------------- tables and files

def table(found, spark=None):
    """A table of Fovea as a DataFrame."""
    return _session(spark).createDataFrame(found.to_pandas())


def write_image(frame, path, about=None):
    """Writes the rows of one image, one for each slice, as Parquet that `read("x.parquet")` of a pipeline reads.

    frame: rows with `slice` (bigint), `pixels` (binary) and, for a tilt series, `angle` (double). about: a dictionary with shape
    and dtype of the whole image and, if they are known, axes, spacing, origin, units and angles."""
    for key in ("shape", "dtype"):
        if key not in about:
            raise UsageError(f"about has no {key}: the rows alone do not say it")
    ndim = len(about["shape"])
    whole = {"axes": ["z", "y", "x"][-ndim:], "spacing": [1.0] * ndim, "origin": [0.0] * ndim, "units": [""] * ndim, **about}
    frame.withMetadata("pixels", {"fovea.image": json.dumps(whole)}).write.mode("overwrite").parquet(os.fspath(path))
