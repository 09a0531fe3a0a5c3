/* read_positions: where the frames of a scan were taken, from its file or a table, as rows and columns in pixels. */
#include "base/take.h"
#include "op/format.h"
#include "op/kernels.h"
#include "ops/ptychography/every_position.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

typedef struct {
    const char *file, *path;
    double      pixel;
    fv_choice   order;
    fv_numbers  sign, size;
    FV_EVERY_FIELDS
} read_positions;
enum { XY, YX };

enum { MOST = 1000000 };

static const fv_param params[] = {
    FV_PARAM(read_positions, file, .file = true,
             .doc = "a scan (CXI, NeXus or any other HDF5 file), an array with two or three numbers a frame (NPY, NPZ), a "
                    "table with columns y and x, or plain text with two numbers a line (.txt, .dat)"),
    FV_PARAM(read_positions, path, .def = "",
             .doc = "dataset inside the file; left out: where CXI, NXcxi_ptycho, .ptyd, fold_slice, PtyLab or pty-chi have them"),
    FV_PARAM(read_positions, pixel, .def = "0", .min = 0, .max = 1e12,
             .doc =
                 "size of a pixel of the object, in the unit of the file: wavelength * distance / (pixels of a frame * pixel of "
                 "the detector); 0: as the file tells, and 1 for tables and arrays, whose positions are in pixels then"),
    FV_PARAM(
        read_positions, order, .def = "xy", .choices = "xy|yx",
        .doc = "which number of a frame comes first in an array; \"yx\" of a scan: its x and y are swapped; of a table: unused"),
    FV_PARAM(read_positions, sign, .def = "[1, 1]", .min = -1, .max = 1,
             .doc = "factors on y and x: -1 where the stage moves the other way"),
    FV_PARAM(read_positions, size, .def = "", .min = 1, .max = 65536, .unit = "px",
             .doc = "rows and columns of the frames that are reconstructed, if they are cut; left out: those of the file"),
    FV_EVERY_PARAMS(read_positions),
    FV_PARAM_END,
};

/* Positions of a scan in metres that span no pixel, or millions of them, are no positions in pixels. */
static fv_status check_span(const read_positions *p, int64_t count, const double span[2], fv_error *error) {
    bool little = count > 1 && span[0] < 0.5 && span[1]<0.5, much = span[0]> 1e6 || span[1] > 1e6;
    if (!little && !much) return FV_OK;
    return fv_fail(
        error, FV_ERROR_INPUT,
        "%s: %lld positions would span %.3g x %.3g pixels of the object: they are in another unit. Say the size of a "
        "pixel of the object in this unit: pixel = wavelength * distance / (pixels of a frame * pixel of the detector)",
        p->file, (long long)count, span[0], span[1]);
}

/* From the y and x of each frame to pixels from the first row and column on. */
static fv_status scale(const read_positions *p, const double pixel[2], int64_t count, double *value, fv_error *error) {
    fv_numbers sign = p->sign;
    double     span[2];
    FV_TRY(fv__numbers_spread(&sign, 2, "sign", error));
    for (int d = 0; d < 2; d++) {
        double least = INFINITY, most = -INFINITY;
        if (sign.value[d] == 0) return fv_fail(error, FV_ERROR_USAGE, "sign must be 1 or -1");
        for (int64_t i = 0; i < count; i++) {
            double *at = value + 2 * i + d;
            *at *= sign.value[d] / pixel[d];
            if (!isfinite(*at)) return fv_fail(error, FV_ERROR_INPUT, "%s: position %lld is not finite", p->file, (long long)i);
            least = FV_MIN(least, *at);
            most = FV_MAX(most, *at);
        }
        for (int64_t i = 0; i < count; i++) value[2 * i + d] -= least;
        span[d] = most - least;
    }
    return check_span(p, count, span, error);
}

static fv_status take_list(const char *file, int64_t count, fv_arena *arena, fv_list *out, double **value, fv_error *error) {
    if (count < 1 || count > MOST)
        return fv_fail(error, FV_ERROR_INPUT, "%s holds %lld positions; 1 to %d are possible", file, (long long)count, (int)MOST);
    FV_TRY(FV_TAKE_IN(arena, *value, (size_t)(2 * count) * sizeof **value, error));
    *out = (fv_list){ 2 * count, *value };
    return FV_OK;
}

/* ---------------------------------------------------------------- tables */

static int column_named(const fv_table_type *type, const char *name) {
    for (int c = 0; c < type->ncolumns; c++)
        if (!strcasecmp(type->column[c].name, name) && type->column[c].kind != FV_COLUMN_TEXT) return c;
    return -1;
}

static fv_status take_rows(fv_table_reader *reader, const int columns[2], double *to, fv_error *error) {
    const fv_cell *rows;
    int64_t        n, at = 0;
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &rows, &n, error));
        if (!n) break;
        if (at + n > reader->nrows) return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", reader->path);
        for (int64_t i = 0; i < n; i++, at++)
            for (int d = 0; d < 2; d++) {
                fv_cell cell = rows[i * reader->type.ncolumns + columns[d]];
                bool    whole = reader->type.column[columns[d]].kind == FV_COLUMN_INTEGER;
                to[2 * at + d] = whole ? (double)cell.integer : cell.real;
            }
    }
    return at == reader->nrows ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", reader->path);
}

static fv_status from_table(const read_positions *p, const fv_table_format *format, fv_arena *arena, fv_list *out,
                            fv_error *error) {
    fv_table_reader *reader;
    double          *value = NULL;
    FV_TRY(format->open(p->file, NULL, &reader, error));
    int       columns[2] = { column_named(&reader->type, "y"), column_named(&reader->type, "x") };
    fv_status status = columns[0] < 0 || columns[1] < 0
                           ? fv_fail(error, FV_ERROR_INPUT, "%s has no columns y and x of numbers", p->file)
                           : take_list(p->file, reader->nrows, arena, out, &value, error);
    if (status == FV_OK) status = take_rows(reader, columns, value, error);
    format->close(reader);
    return status;
}

/* ---------------------------------------------------------------- plain text */

static bool is_text(const char *file) {
    const char *end = strrchr(file, '.');
    return end && (!strcasecmp(end, ".txt") || !strcasecmp(end, ".dat"));
}

/* The first two numbers of a line, with blanks, tabs, commas or semicolons between them; false: it has none, as a comment. */
static bool numbers_of(const char *line, double number[2]) {
    char *end;
    for (int k = 0; k < 2; k++) {
        line += strspn(line, " \t,;");
        if (*line == '#' || *line == '%') return false;
        number[k] = strtod(line, &end);
        if (end == line) return false;
        line = end;
    }
    return true;
}

static fv_status take_lines(const read_positions *p, FILE *file, fv_arena *arena, fv_list *out, fv_error *error) {
    char    line[1000];
    double *value = NULL, number[2];
    int64_t count = 0;
    for (int fill = 0; fill < 2; fill++) {
        int64_t at = 0;
        rewind(file);
        while (at <= MOST && fgets(line, sizeof line, file)) {
            if (!numbers_of(line, number)) continue;
            for (int d = 0; d < 2 && fill && at < count; d++) value[2 * at + d] = number[p->order.index == XY ? 1 - d : d];
            at++;
        }
        if (!fill) FV_TRY(take_list(p->file, count = at, arena, out, &value, error));
    }
    return FV_OK;
}

static fv_status from_text(const read_positions *p, fv_arena *arena, fv_list *out, fv_error *error) {
    FILE *file = fopen(p->file, "r");
    if (!file) return fv_fail(error, FV_ERROR_INPUT, "cannot read %s: %s", p->file, strerror(errno));
    fv_status status = take_lines(p, file, arena, out, error);
    fclose(file);
    return status;
}

/* ---------------------------------------------------------------- arrays */

/* [frames][2 or 3] or [2 or 3][frames] */
static fv_status take_array(const read_positions *p, fv_reader *reader, fv_arena *arena, fv_list *out, fv_error *error) {
    const fv_image_type *type = &reader->type;
    fv_region            whole = fv__region_whole(type);
    fv_block             block;
    void                *raw;
    double              *numbers, *value = NULL;
    bool                 rows = type->ndim == 2 && type->shape[1] >= 2 && type->shape[1] <= 3;
    if (type->ndim != 2 || fv_dtype_is_complex(type->dtype) || (!rows && (type->shape[0] < 2 || type->shape[0] > 3)))
        return fv_fail(error, FV_ERROR_INPUT, "%s: positions must be two or three numbers for each frame", p->file);
    int64_t count = rows ? type->shape[0] : type->shape[1], each = rows ? type->shape[1] : 1, apart = rows ? 1 : count;
    int64_t n = type->shape[0] * type->shape[1];
    FV_TRY(take_list(p->file, count, arena, out, &value, error));
    FV_TRY(FV_TAKE(raw, (size_t)n * (fv_dtype_size(type->dtype) + sizeof(double)), error));
    numbers = raw;
    fv__block_init(&block, type->dtype, &whole, numbers + n);
    fv_status status = fv__reader_read(reader, &block, error);
    if (status == FV_OK) fv__kernels_current()->convert(numbers, FV_FLOAT64, numbers + n, type->dtype, n);
    for (int64_t i = 0; i < count && status == FV_OK; i++)
        for (int d = 0; d < 2; d++) value[2 * i + d] = numbers[i * each + (p->order.index == XY ? 1 - d : d) * apart];
    free(raw);
    return status;
}

static fv_status from_array(const read_positions *p, fv_arena *arena, fv_list *out, fv_error *error) {
    fv_read_options options = { .path_inside = p->path && *p->path ? p->path : NULL };
    fv_reader      *reader;
    FV_TRY(fv__reader_acquire(p->file, &options, &reader, error));
    fv_status status = take_array(p, reader, arena, out, error);
    fv__reader_release(reader);
    return status;
}

/* ---------------------------------------------------------------- scans */

static fv_status pixel_of(const read_positions *p, const fv_diffraction *d, double pixel[2], fv_error *error) {
    fv_numbers size = p->size;
    int64_t    frame[2] = { d->frame[0], d->frame[1] };
    if (size.count) FV_TRY(fv__numbers_spread(&size, 2, "size", error));
    for (int k = 0; k < 2 && size.count; k++) frame[k] = (int64_t)size.value[k];
    if (*d->doubt) return fv_fail(error, FV_ERROR_INPUT, "%s: %s", p->file, d->doubt);
    if (fv__diffraction_pixel(d, frame, pixel)) return FV_OK;
    const char *missing = !(d->wavelength > 0)                          ? "wavelength or energy"
                          : !(d->distance > 0)                          ? "distance of the detector"
                          : !(d->detector[0] > 0 && d->detector[1] > 0) ? "pixel of the detector"
                                                                        : "size of a frame (say size)";
    return fv_fail(
        error, FV_ERROR_INPUT,
        "%s does not tell how large a pixel of the object is: there is no %s. Say it in the unit of the positions: pixel = "
        "wavelength * distance / (pixels of a frame * pixel of the detector)",
        p->file, missing);
}

/* Positions where the program that wrote the scan has them; *found false: it is no such file. */
static fv_status from_scan(const read_positions *p, fv_arena *arena, fv_list *out, double pixel[2], bool *found,
                           fv_error *error) {
    fv_read_options options = { .path_inside = "positions" };
    fv_reader      *reader;
    double         *value = NULL;
    *found = false;
    if (fv__reader_acquire(p->file, &options, &reader, NULL) != FV_OK) return FV_OK;
    const fv_diffraction *d = reader->diffraction;
    fv_status             status = FV_OK;
    *found = d && d->npositions;
    if (*found && d->frames && d->frames != d->npositions)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds %lld frames and %lld positions", p->file, (long long)d->frames,
                         (long long)d->npositions);
    if (*found && status == FV_OK && !(p->pixel > 0)) status = pixel_of(p, d, pixel, error);
    if (*found && status == FV_OK) status = take_list(p->file, d->npositions, arena, out, &value, error);
    for (int64_t i = 0; *found && status == FV_OK && i < 2 * d->npositions; i++) /* order yx is said of a file that swaps them */
        value[i] = d->positions[p->order.index == YX ? i ^ 1 : i];
    fv__reader_release(reader);
    return status;
}

static fv_status list(const void *given, fv_arena *arena, fv_list *out, fv_error *error) {
    const read_positions  *p = given;
    const fv_table_format *format = fv__table_format_for(p->file);
    double                 one = p->pixel > 0 ? p->pixel : 1, pixel[2] = { one, one };
    bool                   found = false;
    if (!fv__file_exists(p->file)) return fv_fail(error, FV_ERROR_INPUT, "there is no file %s", p->file);
    if (format && format->open)
        FV_TRY(from_table(p, format, arena, out, error));
    else if (is_text(p->file))
        FV_TRY(from_text(p, arena, out, error));
    else {
        if (!p->path || !*p->path) FV_TRY(from_scan(p, arena, out, pixel, &found, error));
        if (!found) FV_TRY(from_array(p, arena, out, error));
    }
    FV_TRY(scale(p, pixel, out->count / 2, (double *)(uintptr_t)out->value, error));
    return fv__every_position(p->first, p->every, p->shuffle, out, error);
}

const fv_op FV_OP(read_positions) = {
    .name = "read_positions",
    .family = "ptychography",
    .brief = "read where the frames of a scan were taken",
    .version = 2,
    .params = params,
    .params_size = sizeof(read_positions),
    .result = FV_KIND_LIST,
    .list = list,
    .doc =
        "A list of row and column of each frame in pixels of the object, from 0 on: y0, x0, y1, x1, ..., as ptycho takes them. "
        "Of a scan (CXI, NXcxi_ptycho, .ptyd, fold_slice, PtyLab, pty-chi) the pixel of the object follows from wavelength, "
        "distance "
        "and detector that the file tells; `fovea info` shows them. If a reconstruction does not converge, the axes may be "
        "swapped "
        "(order) or one of them turned (sign): try them with a few iterations and compare residuals. Both turned give the object "
        "turned by 180 degrees with the opposite phase, and the same residual. The file is read while the pipeline is checked.",
    .example = "at = scan_positions(\"fermat\", 64, 8)\n"
               "o = complex_image(ones([128, 128]), phantom(\"cells\", [128, 128]) / 255)\n"
               "write(diffract(o, make_probe(64, radius = 16), at)[0], \"frame.tif\")",
    .see = "ptycho scan_positions read",
};
