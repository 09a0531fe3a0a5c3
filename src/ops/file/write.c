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
    int64_t     quality;
    bool        hyperstack;
    int64_t     every;
} write_params;

static const fv_param params[] = {
    FV_PARAM(write_params, file, .file = true,
             .doc = "name of the file. {stem}, {name}, {folder}, {path} and {index} stand for the input "
                    "file's name without extension, its name, folder, path and number; {NAME} for the "
                    "value of a param; {z}, {t} or another axis for the number of a slice along it: a file for each"),
    FV_PARAM(write_params, table, .def = "",
             .doc = "name of the table in a database; left out: the name of the file without "
                    "its extension"),
    FV_PARAM(write_params, append, .def = "false", .doc = "of tables: add rows to those that are in the file already"),
    FV_PARAM(write_params, compression, .def = "",
             .doc = "how to compress; `fovea ops FORMAT` lists the words of a format; "
                    "left out: its default"),
    FV_PARAM(write_params, level, .def = "0", .min = 0, .max = 22, .doc = "compression level; 0: the format's default"),
    FV_PARAM(write_params, chunk, .def = "", .min = 1, .max = 1e9,
             .doc = "shape of a chunk inside the file; left out: the format's default"),
    FV_PARAM(write_params, shard, .def = "", .min = 1, .max = 1e9,
             .doc = "of Zarr: shape of a shard, a file that holds many chunks, in voxels; left out: one file for each chunk"),
    FV_PARAM(write_params, levels, .def = "0", .min = 0, .max = 32,
             .doc = "of Zarr and OME-TIFF: levels of the pyramid, including the image itself; 0: until the last one is small, "
                    "1: no pyramid"),
    FV_PARAM(write_params, version, .def = "",
             .doc = "version of the format, if it is written in several, such as \"0.4\" or \"0.5\" of OME-Zarr"),
    FV_PARAM(write_params, quality, .def = "0", .min = 0, .max = 100,
             .doc = "of JPEG: 1 to 100, where 100 changes pixels least; 0: 90"),
    FV_PARAM(write_params, hyperstack, .def = "false",
             .doc =
                 "of TIFF: a hyperstack as ImageJ writes it, whatever the order of the axes t, z and c; read again, it has the "
                 "axes t z c y x"),
    FV_PARAM(write_params, every, .def = "0", .min = 0, .max = 1e9,
             .doc = "of the result of an iterative solver (sirt, cgls, ptycho, ...): write it after each so many iterations, "
                    "too, as name-0010.pvti, name-0020.pvti, ...; of VTI and PVTI, name.pvd lists what is there for ParaView; "
                    "0: only the end"),
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
    .brief = "write an image, a table or a number to a file",
    .also = "imwrite, imsave, io.imsave, cv2.imwrite, save, np.save, niftiwrite, writetable, to_csv",
    .version = 1,
    .doc = "The extension of the name decides the format. The file gets its name only when it is complete. A file that Fovea "
           "did not make is replaced only with --overwrite.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(write_params),
    .result = FV_KIND_NONE,
    .infer = infer,
    .sink = true,
    .example = "phantom(\"cells\", [200, 200]) |> write(\"cells.png\")",
    .see = "read convert colorize",
};
