/* DICOM, read only, by the plug-in that holds DCMTK: a file of one or several frames, or a series as one volume z y x: a folder,
 * or with path = "series" the folder around a file.
 *
 * Spacing is in millimetres. Stored values with a slope or an intercept (Hounsfield units) become float32. Files are read frame
 * by frame; a frame that is compressed is unpacked whole. */
#include "base/plugin.h"
#include "base/remote.h"
#include "formats/dicom_parts.h"
#include "op/kernels.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static fv_status load(const fv_dicom_plugin **plugin, fv_error *error) {
    static pthread_mutex_t        mutex = PTHREAD_MUTEX_INITIALIZER;
    static const fv_dicom_plugin *loaded; /* of the process, as every plug-in */
    const void                   *found = NULL;
    pthread_mutex_lock(&mutex);
    fv_status status = loaded ? FV_OK : fv__plugin_load("dicom", FV_DICOM_SYMBOL, "DICOM", "libdcmtk-dev g++", &found, error);
    if (status == FV_OK && !loaded) loaded = found;
    if (loaded && loaded->version != FV_DICOM_VERSION)
        status = fv_fail(error, FV_ERROR_USAGE, "the plug-in for DICOM is of another version of Fovea");
    *plugin = loaded;
    pthread_mutex_unlock(&mutex);
    return status;
}

void fv__dicom_add(fv_dicom_reader *r, const char *path, const fv_dicom_about *about) {
    if (!(r->nslices & (r->nslices - 1)))
        r->slices = fv__realloc(r->slices, (size_t)FV_MAX(2 * r->nslices, 1) * sizeof *r->slices);
    r->slices[r->nslices++] = (fv_dicom_slice){ .path = fv__strdup(path), .about = *about };
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    fv_dicom_reader *r = (fv_dicom_reader *)base;
    for (int64_t i = 0; i < r->nslices; i++) free(r->slices[i].path);
    free(r->slices);
    fv__reader_free(base);
}

static fv_status find_files(fv_dicom_reader *r, const char *inside, fv_error *error) {
    const char    *path = r->base.path;
    fv_dicom_about about;
    FV_TRY(load(&r->dicom, error));
    if (fv__path_is_folder(path)) return fv__dicom_find_series(r, path, inside, error);
    if (inside && strcmp(inside, "series"))
        return fv_fail(error, FV_ERROR_USAGE, "path = \"%s\": of a DICOM file only \"series\" is possible", inside);
    FV_TRY(fv__dicom_about_files(r->dicom, &r->base.path, 1, &about, error));
    if (!inside) {
        fv__dicom_add(r, path, &about);
        return FV_OK;
    }
    const char *name = fv__path_name(path);
    char       *folder = name > path ? fv__sprintf("%.*s", (int)(name - path - 1), path) : fv__strdup(".");
    fv_status   status = fv__dicom_find_series(r, *folder ? folder : "/", about.series, error);
    free(folder);
    return status;
}

/* From one slice to the next, in the patient. */
static void step_of(const fv_dicom_reader *r, double step[3]) {
    const fv_dicom_about *a = &r->slices[0].about;
    const double         *x = a->direction, *y = a->direction + 3;
    double                normal[3] = { x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0] };
    for (int i = 0; i < 3; i++)
        step[i] = r->nslices > 1 ? (r->slices[r->nslices - 1].about.position[i] - a->position[i]) / (double)(r->nslices - 1)
                                 : normal[i] * a->spacing[2];
}

static double usable(double spacing) { return spacing > 0 && isfinite(spacing) ? spacing : 1; }

/* DICOM's axes point to the left and the back of the patient, the affine's to the right and the front. */
static void find_affine(const fv_dicom_reader *r, fv_image_type *type) {
    const fv_dicom_about *a = &r->slices[0].about;
    double                step[3];
    if (!a->placed) return;
    step_of(r, step);
    type->has_affine = true;
    type->affine_code = 1;
    for (int i = 0; i < 3; i++) {
        double sign = i < 2 ? -1 : 1;
        type->affine[4 * i] = sign * a->direction[i] * usable(a->spacing[0]);
        type->affine[4 * i + 1] = sign * a->direction[3 + i] * usable(a->spacing[1]);
        type->affine[4 * i + 2] = sign * step[i];
        type->affine[4 * i + 3] = sign * a->position[i];
    }
}

static fv_status find_dtype(fv_dicom_reader *r, fv_error *error) {
    const fv_dicom_about *a = &r->slices[0].about;
    char                  name[16];
    if (a->is_binary)
        snprintf(name, sizeof name, "bool");
    else
        snprintf(name, sizeof name, "%s%d", a->is_real ? "float" : a->is_signed ? "int" : "uint", a->size * 8);
    if (!fv_dtype_parse(name, &r->stored)) return fv_fail(error, FV_ERROR_INPUT, "%s: pixels of type %s", r->base.path, name);
    for (int64_t i = 0; i < r->nslices; i++) {
        const fv_dicom_about *s = &r->slices[i].about;
        if (!isfinite(s->slope) || !isfinite(s->intercept))
            return fv_fail(error, FV_ERROR_INPUT, "%s: RescaleSlope or RescaleIntercept is no number", r->slices[i].path);
        r->scaled = r->scaled || s->slope != 1 || s->intercept != 0;
    }
    return FV_OK;
}

static fv_status find_type(fv_dicom_reader *r, fv_error *error) {
    const fv_dicom_about    *a = &r->slices[0].about;
    fv_image_type           *type = &r->base.type;
    static const char *const names[] = { "z", "y", "x", "c" };
    int64_t                  shape[4], depth = r->nslices > 1 ? r->nslices : a->frames;
    int                      n = 0, skip = depth == 1;
    double                   between = a->spacing[2], step[3];
    FV_TRY(find_dtype(r, error));
    if (depth > 1) shape[n++] = depth;
    shape[n++] = a->rows;
    shape[n++] = a->columns;
    if (a->samples > 1) shape[n++] = a->samples;
    fv_image_type_init(type, r->scaled ? FV_FLOAT32 : r->stored, n, shape);
    if (fv_image_type_bytes(type) < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: larger than 2^63 bytes", r->base.path);
    step_of(r, step);
    if (r->nslices > 1 && a->placed) between = sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]);
    for (int d = 0; d < n; d++) {
        snprintf(type->axis[d], sizeof type->axis[d], "%s", names[d + skip]);
        if (d + skip == 3) continue;
        type->spacing[d] = usable(d + skip == 0 ? between : a->spacing[2 - d - skip]);
        snprintf(type->unit[d], sizeof type->unit[d], "millimeter");
    }
    find_affine(r, type);
    return FV_OK;
}

/* Slices that are not as far apart as the others: one may be missing. */
static void tell_gaps(fv_dicom_reader *r) {
    double least = INFINITY, most = 0;
    if (r->nslices < 3 || !r->slices[0].about.placed) return;
    for (int64_t i = 1; i < r->nslices; i++) {
        least = fmin(least, r->slices[i].place - r->slices[i - 1].place);
        most = fmax(most, r->slices[i].place - r->slices[i - 1].place);
    }
    if (most > 1.01 * least) fv__bytes_printf(&r->base.facts, "uneven slices: %.6g to %.6g mm apart\n", least, most);
}

static void tell(fv_dicom_reader *r) {
    const fv_dicom_about *a = &r->slices[0].about;
    fv__bytes_printf(&r->base.facts, "modality: %s\ntransfer syntax: %s\ncolours: %s\nfiles: %lld\nseries: %s\n", a->modality,
                     a->transfer, a->colours, (long long)r->nslices, a->series);
    if (r->scaled)
        fv__bytes_printf(&r->base.facts, "stored as: %s\nslope: %.9g\nintercept: %.9g\n", fv_dtype_name(r->stored), a->slope,
                         a->intercept);
    tell_gaps(r);
}

/* All files of a series are its identity. */
static fv_status identify(fv_dicom_reader *r, fv_error *error) {
    fv_hasher hasher;
    fv_status status = FV_OK;
    fv__hasher_init(&hasher);
    for (int64_t i = 0; i < r->nslices && status == FV_OK; i++) {
        fv_file_id id = { 0 };
        status = fv__file_identify(r->slices[i].path, &id, error);
        fv__hasher_text(&hasher, r->slices[i].path);
        fv__hasher_int(&hasher, id.size);
        fv__hasher_int(&hasher, id.mtime_ns);
    }
    r->base.header = fv__hasher_finish(&hasher);
    return status;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error));
    if (fv__is_remote(path)) return fv__remote_refuse(path, "DICOM", error);
    fv_dicom_reader *r = fv__reader_new(sizeof *r, &fv_format_dicom, path);
    bool             given = options && options->path_inside && *options->path_inside;
    fv_status        status = find_files(r, given ? options->path_inside : NULL, error);
    if (status == FV_OK) status = find_type(r, error);
    if (status == FV_OK) status = identify(r, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    const fv_image_type  *type = &r->base.type;
    const fv_dicom_about *a = &r->slices[0].about;
    for (int d = 0; d < type->ndim; d++) r->base.chunk[d] = strcmp(type->axis[d], "z") ? type->shape[d] : 1;
    r->base.whole_pieces = true;
    r->base.read_memory = 4 * a->rows * a->columns * a->samples * a->size;
    tell(r);
    *out = &r->base;
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

/* Bits above those that count may hold anything. */
static void clean_bits(const fv_dicom_about *a, void *frame, int64_t n) {
    int unused = 8 * a->size - a->bits;
    if (!unused) return;
    for (int64_t i = 0; i < n; i++) {
        if (a->size == 1) {
            uint8_t *v = (uint8_t *)frame + i, high = (uint8_t)(*v << unused);
            *v = a->is_signed ? (uint8_t)((int8_t)high >> unused) : (uint8_t)(high >> unused);
        } else if (a->size == 2) {
            uint16_t *v = (uint16_t *)frame + i, high = (uint16_t)(*v << unused);
            *v = a->is_signed ? (uint16_t)((int16_t)high >> unused) : (uint16_t)(high >> unused);
        } else {
            uint32_t *v = (uint32_t *)frame + i, high = *v << unused;
            *v = a->is_signed ? (uint32_t)((int32_t)high >> unused) : high >> unused;
        }
    }
}

static fv_status read_frame(const fv_dicom_reader *r, int64_t z, void *frame, size_t size, fv_error *error) {
    bool                  alone = r->nslices == 1;
    const fv_dicom_slice *slice = &r->slices[alone ? 0 : z];
    FV_TRY(fv__dicom_frame(r->dicom, slice, alone ? z : 0, frame, size, error));
    clean_bits(&slice->about, frame, (int64_t)size / slice->about.size);
    return FV_OK;
}

/* One row of values as they are meant. */
static void put_row(const fv_dicom_reader *r, int64_t z, const void *from, void *to, int64_t n) {
    const fv_dicom_about *a = &r->slices[r->nslices == 1 ? 0 : z].about;
    if (!r->scaled) {
        memcpy(to, from, (size_t)n * fv_dtype_size(r->stored));
        return;
    }
    fv__kernels_current()->convert(to, FV_FLOAT32, from, r->stored, n);
    for (int64_t i = 0; i < n; i++) ((float *)to)[i] = (float)(((float *)to)[i] * a->slope + a->intercept);
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    fv_dicom_reader      *r = (fv_dicom_reader *)base;
    const fv_dicom_about *a = &r->slices[0].about;
    size_t                element = fv_dtype_size(r->stored), size = (size_t)(a->rows * a->columns * a->samples) * element;
    bool                  deep = !strcmp(base->type.axis[0], "z");
    char                 *frame = fv__try_alloc(size);
    int64_t               loaded = -1;
    fv_status             status = frame ? FV_OK : fv_fail(error, FV_ERROR_MEMORY, "%s: a frame exceeds memory", base->path);
    fv_rows               rows;
    for (fv__rows_begin(&rows, &block->region); status == FV_OK && fv__rows_next(&rows);) {
        int64_t at = 0, z = deep ? rows.position[0] : 0;
        if (z != loaded) status = read_frame(r, z, frame, size, error);
        loaded = z;
        for (int d = deep; d < base->type.ndim; d++) at = at * base->type.shape[d] + rows.position[d];
        if (status == FV_OK)
            put_row(r, z, frame + (size_t)at * element, fv__block_at(block, rows.position),
                    block->region.size[block->region.ndim - 1]);
    }
    free(frame);
    return status;
}

const fv_format fv_format_dicom = {
    .name = "dicom",
    .extensions = "dcm dicom",
    .magic = { { 128, 4, "DICM" } },
    .series = true,
    .brief = "DICOM image, or a folder with the files of a series",
    .reads = "frame by frame; RLE, JPEG and JPEG-LS unpacked, colours as RGB, segmentations as bool; a folder is a series",
    .keeps = "spacing, orientation",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
};
