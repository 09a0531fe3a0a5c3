/* write: a result into a file. */
#include "op/op.h"

typedef struct {
    const char *file;
    const char *table;
    bool        append;
    const char *compression;
    int64_t     level;
    fv_numbers  chunk;
    fv_numbers  shard;
    int64_t     levels;
    const char *version;
} write_params;

static const fv_param params[] = {
    FV_PARAM(write_params, file,
             .doc = "name of the file; {stem}, {name}, {folder}, {path}, {index} of the item and {param} values are filled in"),
    FV_PARAM(write_params, table, .def = "", .doc = "name of the table in a database; the file's stem if left out"),
    FV_PARAM(write_params, append, .def = "false", .doc = "tables: keep the rows that are there"),
    FV_PARAM(write_params, compression, .def = "", .doc = "how to compress, in the format's words; its default if left out"),
    FV_PARAM(write_params, level, .def = "0", .min = 0, .max = 22, .doc = "compression level; 0: the format's default"),
    FV_PARAM(write_params, chunk, .def = "", .min = 1, .max = 1e9,
             .doc = "chunk shape inside the file; the format's default if left out"),
    FV_PARAM(write_params, shard, .def = "", .min = 1, .max = 1e9,
             .doc = "Zarr: shape of a file that holds many chunks, in voxels; a file for each chunk if left out"),
    FV_PARAM(write_params, levels, .def = "0", .min = 0, .max = 32,
             .doc = "Zarr: levels of the pyramid, the image itself counted; 0: until the last is small, 1: no pyramid"),
    FV_PARAM(write_params, version, .def = "",
             .doc = "version of the format, for formats that are written in several, as 0.4 or 0.5 of OME-Zarr"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "value", FV_KIND_NONE, .doc = "image, table or scalar to write" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    (void)error;
    i->out->kind = FV_KIND_NONE;
    return FV_OK;
}

const fv_op FV_OP(write) = {
    .name = "write",
    .family = "file",
    .brief = "write an image, a table or a scalar to a file",
    .version = 1,
    .doc =
        "The format follows from the extension. The file appears under its name only when it is complete; a file that Fovea did "
        "not make is replaced only with --overwrite.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(write_params),
    .result = FV_KIND_NONE,
    .infer = infer,
    .sink = true,
    .example = "zeros([64, 64]) |> write(\"black.png\")",
};
