/* Any image that is shown as a virtual OME-Zarr 0.4 (Zarr 2, uncompressed chunks), for programs that read that: Neuroglancer,
 * napari.
 *
 *     /zarr/0/.zgroup   /zarr/0/.zattrs   /zarr/0/2/.zarray   /zarr/0/2/1/0/3     also as /zarr/0.zarr/...
 *
 * Axes are put into the order that OME-Zarr wants, t c z y x. Chunks are those of the file where it has some of a fair size, so
 * that none is decoded often. */
#include "base/take.h"
#include "view/view_parts.h"
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 64, LEAST = 16, MOST = 256, AXES = 5 };

typedef struct {
    fv_view_source *source;
    int             level;
    int             ndim;
    int             axis[AXES]; /* of the file, in the order of OME-Zarr */
    int64_t         shape[AXES], chunk[AXES];
} array;

static int find_axis(const fv_view_source *s, const char *name) {
    for (int d = 0; d < s->type.ndim; d++)
        if (!strcmp(s->axis[d], name)) return d;
    return -1;
}

static int64_t chunk_side(const array *a, int d) {
    const fv_view_source *s = a->source;
    const fv_view_level  *l = &s->level[a->level];
    bool                  space = d == s->space[0] || d == s->space[1] || d == s->space[2];
    int64_t               own = l->chunk[d] / l->step[d];
    if (!space) return 1;
    return FV_MIN(l->whole_pieces && own >= LEAST && own <= MOST ? own : SIDE, FV_MAX(l->shape[d], 1));
}

/* False: an axis of it has no place in OME-Zarr. */
static bool describe(array *a, fv_view_source *source, int level) {
    static const char *const names[AXES] = { "t", "c", "z", "y", "x" };
    *a = (array){ .source = source, .level = level };
    for (int i = 0; i < AXES; i++) {
        int d = find_axis(source, names[i]);
        if (d < 0) continue;
        a->axis[a->ndim] = d;
        a->shape[a->ndim] = source->level[level].shape[d];
        a->chunk[a->ndim++] = chunk_side(a, d);
    }
    return a->ndim == source->type.ndim;
}

/* ---------------------------------------------------------------- metadata */

static const char *type_code(fv_dtype dtype) {
    static const char *const codes[FV_DTYPES] = { "|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4",
                                                  "<u8", "<i8", "<f4", "<f8", "<c8", "<c16" };
    return codes[dtype];
}

static cJSON *integers(const int64_t *values, int count) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i]));
    return list;
}

static cJSON *array_json(const array *a) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "zarr_format", 2);
    cJSON_AddItemToObject(json, "shape", integers(a->shape, a->ndim));
    cJSON_AddItemToObject(json, "chunks", integers(a->chunk, a->ndim));
    cJSON_AddStringToObject(json, "dtype", type_code(a->source->type.dtype));
    cJSON_AddNullToObject(json, "compressor");
    cJSON_AddNullToObject(json, "filters");
    cJSON_AddNumberToObject(json, "fill_value", 0);
    cJSON_AddStringToObject(json, "order", "C");
    cJSON_AddStringToObject(json, "dimension_separator", "/");
    return json;
}

static cJSON *transform_json(const char *kind, const double *values, int count) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "type", kind);
    cJSON_AddItemToObject(json, kind, cJSON_CreateDoubleArray(values, count));
    return json;
}

/* A voxel of a coarser level lies in the middle of those that it stands for. */
static cJSON *level_json(const array *a, int level) {
    const fv_image_type *type = &a->source->type;
    const fv_view_level *l = &a->source->level[level];
    double               scale[AXES], shift[AXES];
    char                 name[16];
    for (int i = 0; i < a->ndim; i++) {
        int d = a->axis[i];
        scale[i] = type->spacing[d] * (double)l->factor[d];
        shift[i] = type->origin[d] + type->spacing[d] * (double)(l->factor[d] - 1) / 2;
    }
    snprintf(name, sizeof name, "%d", level);
    cJSON *json = cJSON_CreateObject(), *list = cJSON_CreateArray();
    cJSON_AddStringToObject(json, "path", name);
    cJSON_AddItemToArray(list, transform_json("scale", scale, a->ndim));
    cJSON_AddItemToArray(list, transform_json("translation", shift, a->ndim));
    cJSON_AddItemToObject(json, "coordinateTransformations", list);
    return json;
}

static cJSON *image_json(const array *a, const char *name) {
    const fv_image_type *type = &a->source->type;
    cJSON               *json = cJSON_CreateObject(), *scales = cJSON_AddArrayToObject(json, "multiscales");
    cJSON               *scale = cJSON_CreateObject(), *axes = cJSON_CreateArray(), *levels = cJSON_CreateArray();
    for (int i = 0; i < a->ndim; i++) {
        const char *own = a->source->axis[a->axis[i]], *unit = type->unit[a->axis[i]];
        cJSON      *axis = cJSON_CreateObject();
        cJSON_AddStringToObject(axis, "name", own);
        cJSON_AddStringToObject(axis, "type", *own == 't' ? "time" : *own == 'c' ? "channel" : "space");
        if (*unit) cJSON_AddStringToObject(axis, "unit", unit);
        cJSON_AddItemToArray(axes, axis);
    }
    for (int k = 0; k < a->source->nlevels; k++) cJSON_AddItemToArray(levels, level_json(a, k));
    cJSON_AddStringToObject(scale, "version", "0.4");
    cJSON_AddStringToObject(scale, "name", name);
    cJSON_AddItemToObject(scale, "axes", axes);
    cJSON_AddItemToObject(scale, "datasets", levels);
    cJSON_AddItemToArray(scales, scale);
    return json;
}

/* ---------------------------------------------------------------- chunks */

static void place_part(const array *a, const fv_region *part, const int64_t *corner, const char *from, char *to) {
    size_t   size = fv_dtype_size(a->source->type.dtype);
    int64_t  step[FV_MAX_DIMS] = { 0 }, product = 1;
    fv_block block;
    fv_rows  rows;
    int      last = part->ndim - 1;
    for (int i = a->ndim - 1; i >= 0; i--) {
        step[a->axis[i]] = product;
        product *= a->chunk[i];
    }
    fv__block_init(&block, a->source->type.dtype, part, (void *)from);
    for (fv__rows_begin(&rows, part); fv__rows_next(&rows);) {
        int64_t offset = 0;
        for (int d = 0; d <= last; d++) offset += (rows.position[d] - corner[d]) * step[d];
        const char *row = fv__block_at(&block, rows.position);
        for (int64_t i = 0; i < part->size[last]; i++)
            memcpy(to + (offset + i * step[last]) * (int64_t)size, row + (size_t)i * size, size);
    }
}

static fv_status read_chunk(const array *a, const int64_t *index, void **data, size_t *size, fv_error *error) {
    fv_region part = { .ndim = a->ndim };
    int64_t   voxels = 1;
    void     *read = NULL;
    for (int i = 0; i < a->ndim; i++) {
        part.start[a->axis[i]] = index[i] * a->chunk[i];
        part.size[a->axis[i]] = FV_MIN(a->chunk[i], a->shape[i] - index[i] * a->chunk[i]);
        voxels *= a->chunk[i];
    }
    *size = (size_t)voxels * fv_dtype_size(a->source->type.dtype);
    FV_TRY(FV_TAKE_ZEROED(*data, *size, error));
    FV_TRY(FV_TAKE(read, *size, error));
    fv_status status = fv_view_source_read(a->source, a->level, &part, read, error);
    if (status == FV_OK) place_part(a, &part, part.start, read, *data);
    free(read);
    return status;
}

/* "1/0/3"; false: it is none of the chunks. */
static bool parse_index(const array *a, const char *text, int64_t *index) {
    for (int i = 0; i < a->ndim; i++) {
        char     *end;
        long long number = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
        if (number < 0 || number > (a->shape[i] - 1) / a->chunk[i] || *end != (i == a->ndim - 1 ? 0 : '/')) return false;
        index[i] = number;
        text = end + 1;
    }
    return true;
}

/* ---------------------------------------------------------------- routes */

static void send_chunk(const array *a, const char *key, fv_view_answer *answer) {
    int64_t  index[AXES];
    fv_error error = { 0 };
    if (!parse_index(a, key, index)) {
        fv_view_answer_refuse(answer, 404, "there is no such chunk");
        return;
    }
    fv_status status = read_chunk(a, index, &answer->body, &answer->size, &error);
    answer->type = "application/octet-stream";
    if (status != FV_OK) fv_view_answer_error(answer, &error);
}

static void send_part(fv_view_image *image, fv_view_source *source, const char *rest, fv_view_answer *answer) {
    array a;
    char *end;
    long  level = strtol(rest, &end, 10);
    if (!describe(&a, source, 0))
        fv_view_answer_refuse(answer, 404, "%s has axes that OME-Zarr does not know", image->name);
    else if (!strcmp(rest, ".zgroup"))
        fv_view_answer_json(answer, cJSON_Parse("{\"zarr_format\": 2}"));
    else if (!strcmp(rest, ".zattrs"))
        fv_view_answer_json(answer, image_json(&a, image->name));
    else if (*rest < '0' || *rest > '9' || *end != '/' || level >= source->nlevels || !describe(&a, source, (int)level))
        fv_view_answer_refuse(answer, 404, "there is nothing of this name");
    else if (!strcmp(end + 1, ".zarray"))
        fv_view_answer_json(answer, array_json(&a));
    else
        send_chunk(&a, end + 1, answer);
}

void fv_view_route_zarr(void *context, const fv_view_query *q, fv_view_answer *answer) {
    fv_view_files  *f = context;
    fv_view_source *source;
    fv_error        error = { 0 };
    const char     *rest = q->path + strlen("/zarr/");
    char           *end;
    long            id = *rest >= '0' && *rest <= '9' ? strtol(rest, &end, 10) : -1;
    if (id >= 0 && !strncmp(end, ".zarr/", 6)) end += 5; /* napari goes by the name */
    if (id < 0 || id >= f->nimages || *end != '/')
        fv_view_answer_refuse(answer, 404, "there is no such image");
    else if (fv_view_image_asked(f->images[id], q, &source, &error) != FV_OK)
        fv_view_answer_error(answer, &error);
    else {
        send_part(f->images[id], source, end + 1, answer);
        fv_view_source_unref(source);
    }
}
