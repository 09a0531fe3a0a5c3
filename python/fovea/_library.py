"""libfovea through ctypes: the functions of its public headers that the package uses, and the structs that they take."""
import ctypes as c
import os
import pathlib

MAX_DIMS, MAX_COLUMNS = 6, 256
DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64",
          "complex64", "complex128")
OK, USAGE, INPUT, IO, FULL, MEMORY, BUSY, CANCELLED, MISSING, INTERNAL, DEVICE = range(11)
IMAGE, SCALAR, TABLE = range(3)
INTEGER, REAL, TEXT, NATURAL = range(4)


class ErrorStruct(c.Structure):
    _fields_ = [("code", c.c_int), ("op", c.c_char * 32), ("item", c.c_char * 256), ("chunk", c.c_int64), ("rank", c.c_int),
                ("message", c.c_char * 768)]


class Channel(c.Structure):
    _fields_ = [("name", c.c_char * 32), ("has_color", c.c_bool), ("color", c.c_uint32), ("low", c.c_double),
                ("high", c.c_double)]


class ImageType(c.Structure):
    _fields_ = [("dtype", c.c_int), ("ndim", c.c_int), ("shape", c.c_int64 * MAX_DIMS), ("axis", (c.c_char * 8) * MAX_DIMS),
                ("spacing", c.c_double * MAX_DIMS), ("origin", c.c_double * MAX_DIMS), ("unit", (c.c_char * 16) * MAX_DIMS),
                ("has_affine", c.c_bool), ("affine", c.c_double * 12), ("affine_code", c.c_int),
                ("nchannels", c.c_int), ("channel", Channel * 64)]


class Column(c.Structure):
    _fields_ = [("name", c.c_char * 40), ("kind", c.c_int)]


class TableType(c.Structure):
    _fields_ = [("ncolumns", c.c_int), ("column", Column * MAX_COLUMNS), ("metadata", c.c_char_p)]


class TableStruct(c.Structure):
    _fields_ = [("type", TableType), ("nrows", c.c_int64), ("cell", c.c_void_p)]


class ValueType(c.Structure):
    _fields_ = [("kind", c.c_int), ("dtype", c.c_int), ("image", ImageType), ("table", TableType), ("items", c.c_int64)]

    def identity(self):
        """The bytes of the image's type, once it is complete."""
        known = self.__dict__.get("_identity")
        if known is None:
            known = self._identity = bytes(self.image)
        return known


class RunState(c.Structure):
    _fields_ = [("items", c.c_int64), ("items_done", c.c_int64), ("items_failed", c.c_int64), ("tasks", c.c_int64),
                ("tasks_done", c.c_int64), ("fraction", c.c_double), ("bytes_read", c.c_int64), ("bytes_written", c.c_int64),
                ("memory", c.c_int64), ("seconds", c.c_double), ("estimate", c.c_char_p)]


_NUMBERS = c.POINTER(c.c_int64)
SOURCE_READ = c.CFUNCTYPE(c.c_int, c.c_void_p, _NUMBERS, _NUMBERS, _NUMBERS, c.c_void_p, c.POINTER(ErrorStruct))
PROGRESS = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(RunState))


class RunOptions(c.Structure):
    _fields_ = [("engine", c.c_char_p), ("workers", c.c_int), ("memory", c.c_int64), ("ranks", c.c_int), ("patience", c.c_double),
                ("store", c.c_char_p), ("fresh", c.c_bool), ("overwrite", c.c_bool), ("stop_on_error", c.c_bool),
                ("allow_commands", c.c_bool), ("transient", c.c_bool), ("items", c.c_int64), ("into", c.c_char_p),
                ("device", c.c_char_p), ("part", c.c_char_p), ("within", c.c_double), ("within_error", c.c_double),
                ("waited", c.c_double), ("poison", c.c_int), ("command", c.c_char_p), ("progress", PROGRESS),
                ("context", c.c_void_p), ("cancel", c.c_void_p)]


class WorkOptions(c.Structure):
    _fields_ = [("stage", c.c_int), ("end", c.c_bool), ("wait", c.c_bool), ("finish", c.c_bool), ("alone", c.c_bool),
                ("place", c.c_int), ("places", c.c_int), ("order", c.c_char_p), ("level", c.c_int),
                ("allowance", c.c_void_p)]


class EstimateOptions(c.Structure):
    _fields_ = [("items", c.c_int64), ("workers", c.c_int), ("memory", c.c_int64), ("budget", c.c_double), ("store", c.c_char_p),
                ("command", c.c_char_p), ("tell", c.c_void_p), ("context", c.c_void_p), ("cancel", c.c_void_p)]


def _find():
    """Beside the package in a wheel, in the build folder of a checkout, or where an installation or the system has it."""
    here = pathlib.Path(__file__).resolve().parent
    given = os.environ.get("FOVEA_LIBRARY")
    if given:
        return given
    installed = here.parents[3] if here.parts[-4:-1] == ("share", "fovea", "python") else here
    for path in (here / "lib" / "libfovea.so.0", here.parent.parent / "build" / "libfovea.so.0",
                 *installed.glob("lib*/libfovea.so.0"), *installed.glob("lib/*/libfovea.so.0")):
        if path.exists():
            return str(path)
    return "libfovea.so.0"


path = _find()
try:
    lib = c.CDLL(path)
except OSError as error:
    raise ImportError(f"fovea: the library {path} cannot be loaded: {error}. FOVEA_LIBRARY names another one.") from None

_P, _T, _E = c.c_void_p, c.c_char_p, c.POINTER(ErrorStruct)
for _name, _result, *_arguments in (
        ("fv_version", _T),
        ("fv_describe_all", _P, c.c_int),
        ("fv_describe_name", c.c_int, _T, c.c_int, c.POINTER(_P), _E),
        ("fv_describe_file", c.c_int, _T, _T, c.c_int, c.POINTER(_P), _E),
        ("fv_match_files", c.c_int, _T, c.POINTER(c.POINTER(_T)), c.POINTER(c.c_int), _E),
        ("fv_image_type_init", None, c.POINTER(ImageType), c.c_int, c.c_int, c.POINTER(c.c_int64)),
        ("fv_pipeline_new", _P),
        ("fv_pipeline_free", None, _P),
        ("fv_pipeline_add", c.c_int, _P, _T, _T, _E),
        ("fv_pipeline_add_file", c.c_int, _P, _T, _E),
        ("fv_pipeline_set", c.c_int, _P, _T, _E),
        ("fv_pipeline_array", c.c_int, _P, _T, c.POINTER(ImageType), _P, _E),
        ("fv_pipeline_source", c.c_int, _P, _T, c.POINTER(ImageType), _NUMBERS, _T, SOURCE_READ, _P, _E),
        ("fv_pipeline_keep", c.c_int, _P, _T, _E),
        ("fv_pipeline_chunk", c.c_int, _P, c.POINTER(c.c_int64), c.c_int, _E),
        ("fv_pipeline_type", c.c_int, _P, _T, c.POINTER(ValueType), _E),
        ("fv_pipeline_messages", _T, _P),
        ("fv_pipeline_run", c.c_int, _P, c.POINTER(RunOptions), c.POINTER(_P), _E),
        ("fv_pipeline_apply", c.c_int, _P, _P, _P, _P, _E),
        ("fv_pipeline_plan", c.c_int, _P, c.POINTER(RunOptions), c.c_int, c.POINTER(_P), _E),
        ("fv_pipeline_graph", c.c_int, _P, c.c_bool, c.POINTER(_P), _E),
        ("fv_pipeline_estimate_text", c.c_int, _P, c.POINTER(EstimateOptions), c.c_int, c.POINTER(_P), _E),
        ("fv_pipeline_freeze", c.c_int, _P, c.POINTER(RunOptions), c.POINTER(_P), _E),
        ("fv_work", c.c_int, _T, c.POINTER(WorkOptions), c.POINTER(RunOptions), c.POINTER(_P), _E),
        ("fv_run_renew", c.c_int, _T, _E),
        ("fv_run_describe", c.c_int, _T, c.POINTER(_P), _E),
        ("fv_result_array", _P, _P, _T, c.POINTER(ImageType)),
        ("fv_result_table", c.POINTER(TableStruct), _P, _T),
        ("fv_result_printed", c.c_int, _P),
        ("fv_result_printed_table", c.POINTER(TableStruct), _P, c.c_int, c.POINTER(c.c_bool)),
        ("fv_result_failures", c.c_int, _P),
        ("fv_result_failure", _T, _P, c.c_int, _E),
        ("fv_result_outputs", c.c_int, _P),
        ("fv_result_output", _T, _P, c.c_int),
        ("fv_result_free", None, _P),
        ("fv_size_parse", c.c_bool, _T, c.POINTER(c.c_int64)),
        ("fv_messages", None, c.c_int, _P, _P),
):
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, _arguments

free = c.CDLL(None).free
free.argtypes, free.restype = [c.c_void_p], None


def taken(pointer):
    """The text at a pointer that the caller has to free, as str."""
    if not pointer:
        return ""
    value = c.string_at(pointer).decode("utf-8", "replace")
    free(pointer)
    return value
