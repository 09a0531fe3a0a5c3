/* read_angles: the angles of a scan as its file, or a file beside it, tells them. */
#include "base/take.h"
#include "op/format.h"
#include "op/kernels.h"
#include "op/op.h"
#include <stdlib.h>

typedef struct {
    const char *file, *path;
} read_angles;

enum { MOST = 1000000 };

static const fv_param params[] = {
    FV_PARAM(read_angles, file, .file = true,
             .doc = "a scan (DataExchange, NeXus, MRC), a .tlt, .rawtlt or .mdoc file, a table, or any file with one row of "
                    "numbers"),
    FV_PARAM(read_angles, path, .def = "",
             .doc = "dataset inside the file; of a table, the column (left out: the one named angle, theta or tilt, or the "
                    "only one)"),
    FV_PARAM_END,
};

static fv_status check_count(const char *file, int64_t count, fv_error *error) {
    if (count >= 1 && count <= MOST) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s holds %lld numbers; 1 to %d are possible", file, (long long)count, (int)MOST);
}

/* ---------------------------------------------------------------- tables */

static bool holds_numbers(const fv_column *column) { return column->kind != FV_COLUMN_TEXT; }

/* The column of the angles; -1: none, or more than one might be. */
static int find_column(const fv_table_type *type, const char *name) {
    static const char *const usual[] = { "angle", "angles", "theta", "tilt", "tilt_angle", "tiltangle", "rotation_angle" };
    int                      only = -1, numbers = 0;
    for (int c = 0; c < type->ncolumns; c++) {
        if (!holds_numbers(&type->column[c])) continue;
        only = c;
        numbers++;
        if (name && !strcmp(type->column[c].name, name)) return c;
        for (int k = 0; k < FV_COUNT(usual) && !name; k++)
            if (!strcasecmp(type->column[c].name, usual[k])) return c;
    }
    return !name && numbers == 1 ? only : -1;
}

static fv_status no_column(const read_angles *p, const fv_table_type *type, fv_error *error) {
    fv_bytes names = { 0 };
    for (int c = 0; c < type->ncolumns; c++)
        if (holds_numbers(&type->column[c])) fv__bytes_printf(&names, "%s%s", names.size ? ", " : "", type->column[c].name);
    if (p->path && *p->path)
        fv_fail(error, FV_ERROR_INPUT, "%s has no column %s of numbers; it has %s", p->file, p->path,
                names.size ? (char *)names.data : "none");
    else
        fv_fail(error, FV_ERROR_INPUT, "which column of %s holds the angles? say so: read_angles(\"%s\", path = ...); it has %s",
                p->file, p->file, names.size ? (char *)names.data : "none");
    fv__bytes_release(&names);
    return FV_ERROR_INPUT;
}

static fv_status take_rows(fv_table_reader *reader, int column, double *to, fv_error *error) {
    bool           whole = reader->type.column[column].kind == FV_COLUMN_INTEGER;
    const fv_cell *rows;
    int64_t        n, at = 0;
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &rows, &n, error));
        if (!n) break;
        if (at + n > reader->nrows) return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", reader->path);
        for (int64_t i = 0; i < n; i++) {
            fv_cell cell = rows[i * reader->type.ncolumns + column];
            to[at++] = whole ? (double)cell.integer : cell.real;
        }
    }
    return at == reader->nrows ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", reader->path);
}

static fv_status from_table(const read_angles *p, const fv_table_format *format, fv_arena *arena, fv_list *out, fv_error *error) {
    fv_table_reader *reader;
    fv_file_id       id;
    FV_TRY(fv__file_identify(p->file, &id, error));
    FV_TRY(format->open(p->file, NULL, &reader, error));
    int       column = find_column(&reader->type, p->path && *p->path ? p->path : NULL);
    fv_status status = column < 0 ? no_column(p, &reader->type, error) : check_count(p->file, reader->nrows, error);
    if (status == FV_OK) {
        double *value;
        status = FV_TAKE_IN(arena, value, (size_t)reader->nrows * sizeof *value, error);
        *out = (fv_list){ reader->nrows, value };
        if (status == FV_OK) status = take_rows(reader, column, value, error);
    }
    format->close(reader);
    return status;
}

/* ---------------------------------------------------------------- images */

static fv_status take_voxels(fv_reader *reader, double *to, fv_error *error) {
    const fv_image_type *type = &reader->type;
    fv_region            whole = fv__region_whole(type);
    int64_t              n = fv_image_type_voxels(type);
    fv_block             block;
    void                *raw;
    FV_TRY(FV_TAKE(raw, (size_t)n * fv_dtype_size(type->dtype), error));
    fv__block_init(&block, type->dtype, &whole, raw);
    fv_status status = fv__reader_read(reader, &block, error);
    if (status == FV_OK) fv__kernels_current()->convert(to, FV_FLOAT64, raw, type->dtype, n);
    free(raw);
    return status;
}

static fv_status from_image(const read_angles *p, fv_arena *arena, fv_list *out, fv_error *error) {
    fv_read_options options = { .path_inside = p->path && *p->path ? p->path : NULL };
    fv_reader      *reader;
    FV_TRY(fv__reader_acquire(p->file, &options, &reader, error));
    const fv_image_type *type = &reader->type;
    int64_t              voxels = fv_image_type_voxels(type), longest = 0;
    for (int d = 0; d < type->ndim; d++) longest = FV_MAX(longest, type->shape[d]);
    bool      listed = !reader->nangles && voxels == longest && !fv_dtype_is_complex(type->dtype);
    int64_t   count = reader->nangles ? reader->nangles : longest;
    fv_status status =
        reader->nangles || listed
            ? check_count(p->file, count, error)
            : fv_fail(error, FV_ERROR_INPUT,
                      "%s says no angles; give them as range(...), as a list, or from a .tlt, .mdoc or table file", p->file);
    double *value = NULL;
    if (status == FV_OK) status = FV_TAKE_IN(arena, value, (size_t)count * sizeof *value, error);
    if (status == FV_OK) {
        *out = (fv_list){ count, value };
        if (listed)
            status = take_voxels(reader, value, error);
        else
            memcpy(value, reader->angles, (size_t)count * sizeof *value);
    }
    fv__reader_release(reader);
    return status;
}

static fv_status list(const void *parameters, fv_arena *arena, fv_list *out, fv_error *error) {
    const read_angles     *p = parameters;
    const fv_table_format *format = fv__table_format_for(p->file);
    if (!fv__file_exists(p->file)) return fv_fail(error, FV_ERROR_INPUT, "there is no file %s", p->file);
    FV_TRY(format && format->open ? from_table(p, format, arena, out, error) : from_image(p, arena, out, error));
    for (int64_t i = 0; i < out->count; i++)
        if (!isfinite(out->value[i]))
            return fv_fail(error, FV_ERROR_INPUT, "%s: number %lld is not finite", p->file, (long long)i);
    return FV_OK;
}

const fv_op FV_OP(read_angles) = {
    .name = "read_angles",
    .family = "tomography",
    .brief = "read the angles of a scan from a file",
    .version = 1,
    .params = params,
    .params_size = sizeof(read_angles),
    .result = FV_KIND_LIST,
    .list = list,
    .doc =
        "Gives a list for parallel and cone, in degrees: from /exchange/theta of DataExchange, rotation_angle of NeXus "
        "(without those of flat and dark fields), the extended header of MRC, or the .tlt, .rawtlt or .mdoc file beside "
        "it. Numbers in other files are taken as "
        "they are. The file is read while the pipeline is checked, so angles that do not match the projections are "
        "refused before anything is computed. parallel(angles = read(\"angles.csv\")) does the same. Of a scan that fovea stream "
        "takes, they are those that its frames carry.",
    .example = "g = parallel(range(0, 179))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(fbp(p, g), \"slice.tif\")",
    .see = "parallel cone range read",
};
