/* ITK's transforms in HDF5 files: TransformGroup/0, 1, ... with a kind and its numbers each. What they mean is in
 * itk_transform.h. */
#include "base/take.h"
#include "formats/hdf5_parts.h"
#include "formats/itk_transform.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ENTRIES = 64 };
#define GROUP "/TransformGroup"

static const fv_format transform_format; /* what readers and writers of one are of */

typedef struct {
    fv_reader        base;
    fv_itk_transform transform;
} reader;

/* ---------------------------------------------------------------- reading */

static void close_transform(fv_reader *base) {
    fv__itk_release(&((reader *)base)->transform);
    fv__reader_free(base);
}

bool fv__hdf5_has_transform(const fv_hdf5_plugin *h5, void *file) {
    char kind[128];
    return h5->read_text(file, GROUP "/0/TransformType", kind, sizeof kind);
}

/* The numbers of a dataset of one axis; older files spell its name wrongly. */
static fv_status read_numbers(const fv_hdf5_plugin *h5, void *file, const char *path, int entry, const char *name,
                              double **numbers, int64_t *count, fv_error *error) {
    char          full[96], message[FV_HDF5_MESSAGE];
    fv_hdf5_about about;
    int64_t       start = 0;
    void         *dataset = NULL;
    for (int old = 0; old < 2 && !dataset; old++) {
        snprintf(full, sizeof full, GROUP "/%d/%s%s", entry, old ? "Tranform" : "Transform", name);
        dataset = h5->open_dataset(file, full, &about, message);
    }
    *numbers = NULL;
    *count = 0;
    if (!dataset) return FV_OK; /* a kind without numbers */
    fv_status status = FV_OK;
    if (about.ndim != 1 || about.kind != 'f' || (about.size != 4 && about.size != 8) || about.shape[0] > 1 << 28)
        status = fv_fail(error, FV_ERROR_INPUT, "%s: %s is no list of numbers", path, full);
    else if (about.shape[0]) {
        *count = about.shape[0];
        status = FV_TAKE(*numbers, (size_t)*count * sizeof **numbers, error);
        if (status == FV_OK && !h5->read_box(dataset, &start, count, *numbers, message))
            status = fv_fail(error, FV_ERROR_INPUT, "%s: %s: %s", path, full, message);
        for (int64_t i = *count - 1; status == FV_OK && about.size == 4 && i >= 0; i--) { /* from the last: they grow */
            float value;
            memcpy(&value, (const char *)*numbers + i * 4, sizeof value);
            (*numbers)[i] = (double)value;
        }
    }
    h5->close_dataset(dataset);
    return status;
}

static fv_status read_entry(const fv_hdf5_plugin *h5, void *file, reader *r, int number, const char *kind, fv_error *error) {
    const char  *path = r->base.path;
    fv_itk_entry e;
    double      *fixed = NULL;
    int64_t      nfixed = 0;
    FV_TRY(fv__itk_begin(path, kind, &e, error));
    fv_status status = read_numbers(h5, file, path, number, "Parameters", &e.parameter, &e.nparameters, error);
    if (status == FV_OK) status = read_numbers(h5, file, path, number, "FixedParameters", &fixed, &nfixed, error);
    e.nfixed = (int)FV_MIN(nfixed, FV_ITK_FIXED);
    if (status == FV_OK && fixed) memcpy(e.fixed, fixed, (size_t)e.nfixed * sizeof *fixed);
    if (status == FV_OK) status = fv__itk_add(path, &e, &r->transform, error);
    free(fixed);
    fv__itk_end(&e);
    return status;
}

fv_status fv__hdf5_open_transform(const fv_hdf5_plugin *h5, void *file, const char *path, fv_reader **out, fv_error *error) {
    reader   *r = fv__reader_new(sizeof *r, &transform_format, path);
    char      name[64], kind[128];
    fv_status status = FV_OK;
    fv_hasher hasher;
    fv__itk_init(&r->transform);
    for (int i = 0; status == FV_OK && i < MOST_ENTRIES; i++) {
        snprintf(name, sizeof name, GROUP "/%d/TransformType", i);
        if (!h5->read_text(file, name, kind, sizeof kind)) break;
        status = read_entry(h5, file, r, i, kind, error);
    }
    if (status == FV_OK && !r->transform.n) status = fv_fail(error, FV_ERROR_INPUT, "%s holds no transform", path);
    if (status == FV_OK) status = fv__itk_type(path, &r->transform, &r->base.type, &r->base.facts, error);
    if (status != FV_OK) {
        close_transform(&r->base);
        return status;
    }
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, r->transform.matrix, sizeof r->transform.matrix);
    if (r->transform.bends)
        fv__hasher_add(&hasher, r->transform.control,
                       (size_t)(r->transform.n * fv__control_points(&r->transform.grid)) * sizeof(double));
    r->base.header = fv__hasher_finish(&hasher);
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_transform(fv_reader *base, const fv_block *block, fv_error *error) {
    (void)error;
    fv__itk_store(&((reader *)base)->transform, &base->type, block);
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

bool fv__hdf5_is_transform(const fv_image_type *type) {
    fv_transform    t;
    fv_control_grid grid;
    return fv__transform_find(type, "", &t, NULL) == FV_OK || fv__control_find(type, "", &grid, NULL) == FV_OK;
}

fv_status fv__hdf5_create_transform(const fv_image_file *file, const fv_file_layout *layout, const char *temporary,
                                    fv_writer **writer, fv_error *error) {
    (void)error;
    *writer = fv__writer_new(sizeof **writer, &transform_format, file, layout, temporary);
    return FV_OK;
}

/* The piece is the entry and its parameters, for whoever assembles the file. */
static fv_status encode_transform(fv_writer *writer, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    fv_itk_entry e;
    (void)piece;
    FV_TRY(fv__itk_entry_of(&writer->type, writer->path, block, &e, error));
    fv__bytes_append(out, e.parameter, (size_t)e.nparameters * sizeof *e.parameter);
    fv__itk_end(&e);
    fv__bytes_append(out, &e, sizeof e);
    return FV_OK;
}

static bool write_entry(const fv_hdf5_plugin *h5, void *file, const fv_itk_entry *e, const double *parameters, char *message) {
    char kind[96];
    snprintf(kind, sizeof kind, "%s_double_%d_%d", e->kind, e->n, e->n);
    return h5->write_text(file, GROUP "/0/TransformType", kind, message) &&
           h5->write_numbers(file, GROUP "/0/TransformFixedParameters", e->fixed, e->nfixed, message) &&
           h5->write_numbers(file, GROUP "/0/TransformParameters", parameters, e->nparameters, message);
}

static fv_status assemble_transform(fv_writer *writer, fv_pieces *pieces, fv_error *error) {
    const fv_hdf5_plugin *h5;
    char                  message[FV_HDF5_MESSAGE];
    const void           *data;
    size_t                size;
    fv_itk_entry          e;
    FV_TRY(fv__hdf5_load(&h5, error));
    FV_TRY(pieces->get(pieces, 0, &data, &size, error));
    memcpy(&e, (const char *)data + size - sizeof e, sizeof e);
    void *file = h5->create(writer->path, message);
    bool  good = file && write_entry(h5, file, &e, data, message) && h5->flush(file, message);
    if (file) h5->close(file);
    return good ? FV_OK : fv__hdf5_not_written(writer->path, message, error);
}

static const fv_format transform_format = {
    .name = "hdf5",
    .brief = "transform of ITK, in HDF5",
    .read = read_transform,
    .close = close_transform,
    .encode = encode_transform,
    .assemble = assemble_transform,
    .free_writer = fv__writer_free,
};
