/* Routes that give voxels: planes, volumes, single values, and how they are spread. */
#include "base/take.h"
#include "view/view_parts.h"
#include "view/view_statistics.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PIXELS = 4096 * 4096, MOST_VOLUME = 512 * 512 * 512 };

/* ---------------------------------------------------------------- types */

/* As what voxels are to be sent; false: answered. */
static bool ask_type(const fv_view_query *q, fv_dtype dtype, fv_dtype *sent, fv_view_answer *a) {
    const char *as = fv_view_query_text(q, "as");
    *sent = fv_view_voxels_sent(dtype);
    if (!as) return true;
    fv_dtype wanted;
    if (fv_dtype_parse(as, &wanted) &&
        (wanted == FV_FLOAT32 || wanted == FV_INT32 || wanted == FV_UINT32 || wanted == FV_UINT8)) {
        *sent = wanted;
        return true;
    }
    fv_view_answer_refuse(a, 400, "as = %.40s: can be float32, int32, uint32 or uint8", as);
    return false;
}

/* In place where the new type is not wider. */
static fv_status convert(fv_dtype from, fv_view_part part, fv_dtype to, void **data, int64_t n, fv_error *error) {
    void *other = NULL;
    if (from == to || (from == FV_BOOL && to == FV_UINT8)) return FV_OK;
    FV_TRY(FV_TAKE(other, (size_t)n * fv_dtype_size(to) + 1, error));
    fv_view_voxels_convert(from, *data, part, to, other, n);
    free(*data);
    *data = other;
    return FV_OK;
}

static void send_voxels(fv_view_answer *a, fv_dtype dtype, void *data, int64_t n) {
    a->body = data;
    a->size = (size_t)n * fv_dtype_size(dtype);
    a->type = "application/octet-stream";
    a->dtype = fv_dtype_name(dtype);
}

static bool nobody_waits(const void *context) {
    const fv_view_answer *a = context;
    return a->gone(a);
}

/* ---------------------------------------------------------------- planes */

static bool ask_plane(const fv_view_query *q, const fv_view_asked *asked, fv_view_plane *p, fv_view_answer *a) {
    static const char *const axes = "zyx";
    const fv_view_source    *s = asked->source;
    const fv_view_level     *l = &s->level[asked->level];
    const char              *axis = fv_view_query_text(q, "axis");
    int                      row, column;
    *p = (fv_view_plane){ .source = asked->source, .level = asked->level };
    memcpy(p->fixed, asked->fixed, sizeof p->fixed);
    if (axis && (!axis[0] || axis[1] || !strchr(axes, axis[0]))) {
        fv_view_answer_refuse(a, 400, "axis = %.40s: can be z, y or x", axis);
        return false;
    }
    p->axis = axis ? (int)(strchr(axes, axis[0]) - axes) : 0;
    fv_view_plane_axes(s, p->axis, &row, &column);
    int64_t height = row < 0 ? 1 : l->shape[row], width = column < 0 ? 1 : l->shape[column];
    int64_t depth = s->space[p->axis] < 0 ? 1 : l->shape[s->space[p->axis]];
    if (!fv_view_ask_integer(q, "index", 0, FV_MAX(depth - 1, 0), 0, &p->index, a) ||
        !fv_view_ask_integer(q, "y", 0, height, 0, &p->row, a) || !fv_view_ask_integer(q, "x", 0, width, 0, &p->column, a) ||
        !fv_view_ask_integer(q, "h", 0, height - p->row, height - p->row, &p->height, a) ||
        !fv_view_ask_integer(q, "w", 0, width - p->column, width - p->column, &p->width, a))
        return false;
    if (p->width == 0 || p->height <= MOST_PIXELS / p->width) return true;
    fv_view_answer_refuse(a, 400, "%lld x %lld pixels are too many at once: at most %d; take a coarser level or a part",
                          (long long)p->height, (long long)p->width, MOST_PIXELS);
    return false;
}

typedef struct {
    fv_view_job    base;
    fv_view_files *files;
    fv_view_plane  plane;
} ahead;

static bool somebody_waits(const void *context) {
    const ahead *job = context;
    return fv_view_pool_waits(fv_view_server_pool(job->files->server));
}

static void prepare(fv_view_job *base, bool drop) {
    ahead *job = (ahead *)base;
    if (!drop) fv_view_plane_prepare(&job->plane, job->files->cache, somebody_waits, job);
    fv_view_source_unref(job->plane.source);
    free(job);
}

/* Pieces of the planes that come next in the direction in which the page goes. */
static void look_ahead(fv_view_files *f, fv_view_image *image, const fv_view_plane *plane) {
    pthread_mutex_lock(&image->mutex);
    int64_t before = image->last[plane->axis], place = plane->index * FV_MAX(1, plane->source->level[plane->level].factor[0]);
    image->last[plane->axis] = place;
    pthread_mutex_unlock(&image->mutex);
    int64_t next = place == before ? -1 : fv_view_plane_beyond(plane, place > before ? 1 : -1);
    if (next < 0) return;
    ahead *job = fv__calloc(sizeof *job);
    *job = (ahead){ .base.run = prepare, .files = f, .plane = *plane };
    job->plane.index = next;
    fv_view_source_ref(plane->source);
    fv_view_pool_ahead(fv_view_server_pool(f->server), &job->base);
}

static fv_status read_plane(fv_view_files *f, const fv_view_asked *asked, const fv_view_plane *p, fv_dtype sent,
                            fv_view_answer *a, fv_error *error) {
    fv_dtype dtype = p->source->type.dtype;
    int      samples = fv_view_plane_samples(p->source);
    int64_t  n = p->height * p->width * samples;
    void    *data = NULL;
    FV_TRY(FV_TAKE(data, (size_t)n * fv_dtype_size(dtype) + 1, error));
    fv_status status = fv_view_plane_read(p, f->cache, fv_view_server_pool(f->server), data, nobody_waits, a, error);
    if (status == FV_OK) status = convert(dtype, asked->part, sent, &data, n, error);
    if (status != FV_OK) {
        free(data);
        return status;
    }
    send_voxels(a, sent, data, n);
    snprintf(a->shape, sizeof a->shape, samples > 1 ? "%lld,%lld,%d" : "%lld,%lld", (long long)p->height, (long long)p->width,
             samples);
    return FV_OK;
}

void fv_view_route_plane(void *context, const fv_view_query *q, fv_view_answer *a) {
    fv_view_files *f = context;
    fv_view_asked  asked;
    fv_view_plane  plane;
    fv_dtype       sent;
    fv_error       error = { 0 };
    if (!fv_view_ask(f, q, &asked, a)) return;
    if (ask_plane(q, &asked, &plane, a) && ask_type(q, asked.source->type.dtype, &sent, a)) {
        if (read_plane(f, &asked, &plane, sent, a, &error) != FV_OK)
            fv_view_answer_error(a, &error);
        else
            look_ahead(f, asked.image, &plane);
    }
    fv_view_source_unref(asked.source);
}

/* ---------------------------------------------------------------- volumes */

static fv_region whole_region(const fv_view_asked *asked) {
    const fv_view_source *s = asked->source;
    const fv_view_level  *l = &s->level[asked->level];
    fv_region             region = { .ndim = s->type.ndim };
    for (int d = 0; d < region.ndim; d++) {
        bool space = d == s->space[0] || d == s->space[1] || d == s->space[2];
        region.start[d] = space || d == s->colour ? 0 : asked->fixed[d];
        region.size[d] = space ? l->shape[d] : d == s->colour ? FV_MIN(l->shape[d], 3) : 1;
    }
    return region;
}

/* In the order z, y, x, whatever that of the file is. */
static bool in_order(const fv_view_source *s) {
    return s->space[0] < s->space[1] && s->space[1] < s->space[2] && (s->colour < 0 || s->colour > s->space[2]);
}

static fv_status read_volume(const fv_view_asked *asked, const fv_region *region, void **data, fv_error *error) {
    const fv_view_source *s = asked->source;
    size_t                size = fv_dtype_size(s->type.dtype);
    int64_t               n = fv__region_voxels(region);
    void                 *read = NULL;
    FV_TRY(FV_TAKE(read, (size_t)n * size + 1, error));
    fv_status status = fv_view_source_read(asked->source, asked->level, region, read, error);
    *data = read;
    if (status != FV_OK || in_order(s)) return status;
    char *turned = NULL, *to;
    FV_TRY(FV_TAKE(turned, (size_t)n * size + 1, error));
    fv_block block;
    int64_t  place[FV_MAX_DIMS], length[FV_VIEW_SPACE], samples = s->colour < 0 ? 1 : region->size[s->colour];
    fv__block_init(&block, s->type.dtype, region, read);
    memcpy(place, region->start, sizeof place);
    for (int i = 0; i < FV_VIEW_SPACE; i++) length[i] = s->space[i] < 0 ? 1 : region->size[s->space[i]];
    to = turned;
    size *= (size_t)samples; /* colour is the last axis */
    for (int64_t i = 0; i < length[0] * length[1] * length[2]; i++, to += size) {
        const int64_t index[FV_VIEW_SPACE] = { i / (length[1] * length[2]), i / length[2] % length[1], i % length[2] };
        for (int k = 0; k < FV_VIEW_SPACE; k++)
            if (s->space[k] >= 0) place[s->space[k]] = index[k];
        memcpy(to, fv__block_at(&block, place), size);
    }
    free(read);
    *data = turned;
    return FV_OK;
}

static fv_status send_volume(const fv_view_query *q, const fv_view_asked *asked, const fv_region *region, fv_dtype sent,
                             fv_view_answer *a, fv_error *error) {
    const fv_view_source *s = asked->source;
    int64_t               n = fv__region_voxels(region);
    void                 *data = NULL;
    double                low, high;
    fv_view_query_number(q, "low", 0, &low);
    fv_view_query_number(q, "high", 0, &high);
    fv_status status = read_volume(asked, region, &data, error);
    if (status == FV_OK && sent == FV_UINT8 && high > low)
        fv_view_voxels_scale(s->type.dtype, data, asked->part, low, high, data, n);
    else if (status == FV_OK)
        status = convert(s->type.dtype, asked->part, sent, &data, n, error);
    if (status != FV_OK) {
        free(data);
        return status;
    }
    send_voxels(a, sent, data, n);
    int used = 0;
    for (int i = 0; i < FV_VIEW_SPACE; i++)
        used += snprintf(a->shape + used, sizeof a->shape - (size_t)used, i ? ",%lld" : "%lld",
                         s->space[i] < 0 ? 1LL : (long long)region->size[s->space[i]]);
    if (s->colour >= 0) snprintf(a->shape + used, sizeof a->shape - (size_t)used, ",%lld", (long long)region->size[s->colour]);
    return FV_OK;
}

void fv_view_route_volume(void *context, const fv_view_query *q, fv_view_answer *a) {
    fv_view_asked asked;
    fv_dtype      sent;
    fv_error      error = { 0 };
    if (!fv_view_ask(context, q, &asked, a)) return;
    fv_region region = whole_region(&asked);
    int64_t   size = (int64_t)fv_dtype_size(asked.source->type.dtype);
    if (!ask_type(q, asked.source->type.dtype, &sent, a)) {
    } else if (fv__region_voxels(&region) > MOST_VOLUME / size)
        fv_view_answer_refuse(a, 400, "level %d has %lld voxels, more than %d bytes; take a coarser one", asked.level,
                              (long long)fv__region_voxels(&region), MOST_VOLUME);
    else if (send_volume(q, &asked, &region, sent, a, &error) != FV_OK)
        fv_view_answer_error(a, &error);
    fv_view_source_unref(asked.source);
}

/* ---------------------------------------------------------------- statistics and single voxels */

void fv_view_route_statistics(void *context, const fv_view_query *q, fv_view_answer *a) {
    fv_view_asked asked;
    fv_error      error = { 0 };
    cJSON        *json;
    if (!fv_view_ask(context, q, &asked, a)) return;
    if (fv_view_statistics(asked.source, asked.fixed, asked.part, &json, &error) == FV_OK)
        fv_view_answer_json(a, json);
    else
        fv_view_answer_error(a, &error);
    fv_view_source_unref(asked.source);
}

/* A pixel through the same pieces as planes. */
static bool read_pixel(fv_view_files *f, const fv_view_asked *asked, const int64_t position[FV_VIEW_SPACE], void *data,
                       fv_view_answer *a) {
    fv_view_plane p = {
        .source = asked->source, .index = position[0], .row = position[1], .column = position[2], .height = 1, .width = 1
    };
    fv_error error = { 0 };
    memcpy(p.fixed, asked->fixed, sizeof p.fixed);
    if (fv_view_plane_read(&p, f->cache, fv_view_server_pool(f->server), data, NULL, NULL, &error) == FV_OK) return true;
    fv_view_answer_error(a, &error);
    return false;
}

static cJSON *value_json(const fv_view_asked *asked, const void *data) {
    fv_dtype dtype = asked->source->type.dtype;
    int      samples = fv_view_plane_samples(asked->source);
    cJSON   *list = samples > 1 ? cJSON_CreateArray() : NULL;
    for (int i = 0; i < samples; i++) {
        double value = fv_view_voxel(dtype, data, i, asked->part);
        cJSON *number = isfinite(value) ? cJSON_CreateNumber(value)
                                        : cJSON_CreateString(isnan(value) ? "NaN"
                                                             : value > 0  ? "Infinity"
                                                                          : "-Infinity");
        if (!list) return number;
        cJSON_AddItemToArray(list, number);
    }
    return list;
}

void fv_view_route_value(void *context, const fv_view_query *q, fv_view_answer *a) {
    static const char *const names[] = { "z", "y", "x" };
    fv_view_files           *f = context;
    fv_view_asked            asked;
    int64_t                  position[FV_VIEW_SPACE] = { 0 };
    double                   voxel[3 * 2], physical[FV_VIEW_SPACE];
    bool                     good = true;
    if (!fv_view_ask(f, q, &asked, a)) return;
    const fv_view_source *s = asked.source;
    for (int i = 0; i < FV_VIEW_SPACE && good; i++) {
        int d = s->space[i];
        good = fv_view_ask_integer(q, names[i], 0, d < 0 ? 0 : s->type.shape[d] - 1, 0, &position[i], a);
        physical[i] = d < 0 ? 0 : s->type.origin[d] + (double)position[i] * s->type.spacing[d];
    }
    if (good && read_pixel(f, &asked, position, voxel, a)) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddItemToObject(json, asked.image->labels ? "label" : "value", value_json(&asked, voxel));
        if (asked.image->labels) cJSON_AddItemToObject(json, "value", value_json(&asked, voxel));
        if (fv_dtype_is_complex(s->type.dtype))
            cJSON_AddNumberToObject(json, "phase", fv_view_voxel(s->type.dtype, voxel, 0, FV_VIEW_PHASE));
        cJSON_AddItemToObject(json, "position", cJSON_CreateDoubleArray(physical, FV_VIEW_SPACE));
        cJSON_AddItemToObject(json, "unit", fv_view_unit(s) ? cJSON_CreateString(fv_view_unit(s)) : cJSON_CreateNull());
        fv_view_answer_json(a, json);
    }
    fv_view_source_unref(asked.source);
}
