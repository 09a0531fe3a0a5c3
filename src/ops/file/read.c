/* read: an image from a file, or each image of a collection. Of table files it becomes read_table. */
#include "op/axes.h"
#include "op/read_options.h"
#include "op/sampling.h"

typedef struct {
    const char     *file;
    const char     *path;
    const char     *axes;
    const char     *stack;
    fv_numbers      shape;
    fv_dtype_choice dtype;
    int64_t         offset;
    bool            match;
} read_params;

static const fv_param params[] = {
    FV_PARAM(read_params, file, .file = true, .many = true,
             .doc = "name of the file, or for a collection a pattern such as \"scans/*.tif\" or files(\"list.txt\")"),
    FV_PARAM(read_params, path, .def = "",
             .doc = "dataset inside the file, for formats that hold several; of a scan also \"flats\" or \"darks\", of one of "
                    "diffraction patterns \"mask\", \"dark\" or \"probe\""),
    FV_PARAM(read_params, axes, .def = "",
             .doc = "names of the axes, slowest first, if the file does not say them or says others: \"angle z x\""),
    FV_PARAM(read_params, stack, .def = "", .joins = true,
             .doc = "with a pattern: the files are slices of one image along an axis of this name, instead of a collection"),
    FV_PARAM(read_params, shape, .def = "", .min = 1, .max = 1e15, .unit = "px",
             .doc = "size of each axis, slowest first, of files without a header (.raw)"),
    FV_PARAM(read_params, dtype, .def = "", .doc = "element type of files without a header, such as \"uint16\""),
    FV_PARAM(read_params, offset, .def = "0", .min = 0, .max = 1e15,
             .doc = "bytes before the first voxel of files without a header"),
    FV_PARAM(read_params, match, .def = "true",
             .doc = "with stack: all files must lie in the same place (spacing, units, orientation); false: what they do not "
                    "share is left out"),
    FV_PARAM_END,
};

static fv_status acquire(const read_params *p, fv_reader **reader, fv_error *error) {
    fv_read_options options;
    FV_TRY(fv__read_options_make(p->path, &p->shape, p->dtype.dtype, p->offset, &options, error));
    return fv__reader_acquire(p->file, &options, reader, error);
}

/* Table files and slices are made another way than a single image. */
static const char *becomes(const void *params_) {
    const read_params *p = params_;
    if (p->stack && *p->stack) return "read_stack";
    return fv__table_format_of_file(p->file) ? "read_table" : NULL;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_reader *reader;
    FV_TRY(acquire(i->params, &reader, error));
    i->out->kind = FV_KIND_IMAGE;
    i->out->image = reader->type;
    fv__reader_release(reader);
    const char *axes = ((const read_params *)i->params)->axes;
    return axes && *axes ? fv__axes_name(&i->out->image, axes, error) : FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    const read_params *p = params_;
    fv_file_id         id;
    fv_reader         *reader;
    FV_TRY(fv__file_identify(p->file, &id, error));
    FV_TRY(acquire(p, &reader, error));
    fv__hasher_int(hasher, id.size);
    fv__hasher_int(hasher, id.mtime_ns);
    fv__hasher_add(hasher, &reader->header, sizeof reader->header);
    fv__reader_release(reader);
    return FV_OK;
}

static fv_status layout(const void *params_, fv_layout *out, fv_error *error) {
    fv_reader *reader;
    FV_TRY(acquire(params_, &reader, error));
    memcpy(out->chunk, reader->chunk, sizeof out->chunk);
    out->sequential = reader->sequential;
    out->whole_pieces = reader->whole_pieces;
    out->read_memory = reader->read_memory;
    fv__reader_release(reader);
    return FV_OK;
}

static void angles(const void *params_, fv_arena *arena, fv_list *out) {
    fv_reader *reader;
    if (acquire(params_, &reader, NULL) != FV_OK) return;
    if (reader->angles && reader->nangles == reader->type.shape[0]) {
        size_t size = (size_t)reader->nangles * sizeof *reader->angles;
        *out = (fv_list){ reader->nangles, memcpy(fv__arena_alloc(arena, size), reader->angles, size) };
    }
    fv__reader_release(reader);
}

static fv_status run(fv_run *r, fv_error *error) {
    fv_reader *reader;
    FV_TRY(acquire(r->need.params, &reader, error));
    const fv_image_type *then = &r->need.out->image, *now = &reader->type;
    bool                 same = now->ndim == then->ndim && now->dtype == then->dtype;
    for (int d = 0; same && d < now->ndim; d++) same = now->shape[d] == then->shape[d];
    fv_status status =
        same ? fv__reader_read(reader, r->out, error)
             : fv_fail(error, FV_ERROR_INPUT, "%s has changed while it was read: it has another shape or type now", reader->path);
    fv__reader_release(reader);
    return status;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

static bool is_level_of(const fv_reader *level, const fv_image_type *image) {
    return level->type.ndim == image->ndim && !level->sequential;
}

/* The name before one in a list of names, each of which ends with 0; NULL: it is the first. */
static const char *name_before(const char *first, const char *name) {
    if (name == first) return NULL;
    for (name--; name > first && name[-1];) name--;
    return name;
}

/* Levels come from fine to coarse, the first of which is the image itself. The coarsest is opened first, because opening one of
 * many files takes long. */
static fv_status coarse(const void *params_, const fv_image_type *image, int64_t least, fv_reader **out, fv_error *error) {
    const read_params *p = params_;
    const fv_format   *format;
    fv_bytes           names = { 0 };
    *out = NULL;
    FV_TRY(fv__format_for_reading(p->file, &format, error));
    if (!format->levels) return FV_OK;
    fv_status   status = format->levels(p->file, &(fv_read_options){ .path_inside = p->path }, &names, error);
    const char *first = (char *)names.data, *inside = names.size ? name_before(first, first + names.size) : NULL;
    for (bool enough = false; status == FV_OK && inside && inside != first && !enough; inside = name_before(first, inside)) {
        fv_reader *level;
        status = fv__reader_acquire(p->file, &(fv_read_options){ .path_inside = inside }, &level, error);
        if (status != FV_OK) break;
        bool fits = is_level_of(level, image);
        enough = fits && fv_image_type_voxels(&level->type) >= least;
        if (fits && *out) fv__reader_release(*out);
        if (fits)
            *out = level;
        else
            fv__reader_release(level);
    }
    if (status != FV_OK && *out) fv__reader_release(*out);
    if (status != FV_OK) *out = NULL;
    fv__bytes_release(&names);
    return status;
}

const fv_op FV_OP(read) = {
    .name = "read",
    .family = "file",
    .brief = "read an image, a collection of images, or a table",
    .also = "imread, io.imread, cv2.imread, load, niftiread, dicomread, tifffile.imread, nibabel.load, np.load",
    .version = 1,
    .doc = "Only the header is read at first. Pixels are read when they are needed, and where the format allows it only the "
           "region that is needed.\n"
           "A name with * or ? stands for all files that match, and ** for folders of any depth. The files are the items of "
           "a collection, sorted by name, with numbers by their value (a2 before a10), and every operator is applied to each "
           "of them. Several collections are paired by what their wildcards stand for.\n"
           "Table files (CSV, JSON lines, Parquet, SQLite) are read as tables; path then names the table inside a database.\n"
           "Relative names start from the folder in which fovea was started.",
    .params = params,
    .params_size = sizeof(read_params),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .identity = identity,
    .layout = layout,
    .becomes = becomes,
    .numbers = "read_angles",
    .angles = angles,
    .example = "phantom(\"cells\", [200, 200]) |> write(\"in.png\")",
    .see = "write read_stack read_table read_angles",
};

const fv_estimator FV_ESTIMATOR(read) = { .coarse = coarse };
