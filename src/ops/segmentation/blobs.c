/* Blobs: responses of a chunk, their maxima, and the table; see blobs.h. */
#include "ops/segmentation/blobs.h"
#include "base/math.h"
#include "base/take.h"
#include "op/border.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "op/sorted_runs.h"
#include <stdio.h>
#include <stdlib.h>

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* ---------------------------------------------------------------- inference */

bool fv__blobs_round(const fv_numbers *least, const fv_numbers *most) {
    bool same = true;
    for (int k = 1; k < least->count; k++) same &= least->value[k] == least->value[0] && most->value[k] == most->value[0];
    return same;
}

fv_status fv__blobs_infer(fv_infer *i, bool one_sigma, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    fv_table_type       *table = fv__arena_alloc(i->arena, sizeof *table);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be real", fv_dtype_name(image->dtype));
    for (int d = 0; d < image->ndim; d++) {
        fv_column *column = &table->column[table->ncolumns++];
        column->kind = FV_COLUMN_INTEGER;
        snprintf(column->name, sizeof column->name, "%s", image->axis[d]);
    }
    for (int k = 0; k < (one_sigma ? 1 : n); k++) {
        fv_column *column = &table->column[table->ncolumns++];
        column->kind = FV_COLUMN_REAL;
        snprintf(column->name, sizeof column->name, one_sigma ? "sigma" : "sigma_%s", image->axis[spatial[k]]);
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = table };
    return FV_OK;
}

fv_status fv__blobs_sigmas(fv_numbers *least, fv_numbers *most, const fv_image_type *image, fv_error *error) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    FV_TRY(fv__numbers_spread(least, n, "min_sigma", error));
    FV_TRY(fv__numbers_spread(most, n, "max_sigma", error));
    for (int k = 0; k < n; k++)
        if (most->value[k] < least->value[k])
            return fv_fail(error, FV_ERROR_USAGE, "max_sigma = %g: it must not be below min_sigma, which is %g", most->value[k],
                           least->value[k]);
    return FV_OK;
}

double fv__blobs_spacing(double least, double most, int scales, bool log_scale, int scale) {
    if (scale == 0 || scales == 1) return least;
    if (scale == scales - 1) return most;
    if (!log_scale) return (most - least) / (scales - 1) * scale + least;
    double low = fv__log10(least), high = fv__log10(most);
    return fv__pow(10, (high - low) / (scales - 1) * scale + low);
}

/* ---------------------------------------------------------------- the box of a chunk */

static bool is_wide(const fv__blobs *b, fv_dtype dtype) {
    switch (dtype) {
    case FV_UINT32:
    case FV_INT32:
    case FV_UINT64:
    case FV_INT64:
    case FV_FLOAT64: return true;
    default: return b->always_wide;
    }
}

/* A chunk and one voxel around it. */
static fv_region around(const fv_need *n) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t one[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < count; k++) one[spatial[k]] = 1;
    fv_region grown = fv__region_grow(&n->region, one, one);
    return fv__region_clip(&grown, n->in[0]->image.shape);
}

void fv__blobs_need(const fv__blobs *b, const fv_need *n, fv_region *in) {
    int       spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t   reach[FV_MAX_DIMS] = { 0 };
    fv_region region = around(n);
    for (int k = 0; k < count; k++) reach[spatial[k]] = b->reach(b->params, k);
    in[0] = fv__border_need(FV_BORDER_REFLECT, &region, reach, reach, n->in[0]->image.shape);
}

static fv__blob_box box_of(const fv__blobs *b, const fv_need *n) {
    const fv_image_type *image = &n->in[0]->image;
    int                  spatial[FV_MAX_DIMS], count = fv_image_type_spatial(image, spatial);
    fv__blob_box         box = { .wide = is_wide(b, image->dtype) };
    fv_region            out = around(n), in;
    fv__blobs_need(b, n, &in);
    for (int d = 0; d < 3; d++) box.side[d] = (fv_scale_side){ .n = 1, .in_size = 1, .size = 1 };
    for (int k = 0; k < count; k++) {
        int d = spatial[k];
        box.side[3 - count + k] = (fv_scale_side){
            .n = image->shape[d], .in_start = in.start[d], .in_size = in.size[d], .start = out.start[d], .size = out.size[d]
        };
    }
    return box;
}

typedef struct {
    void    *image, *response[3], *line, *rest;
    uint8_t *may;
} room;

static size_t lay_out(const fv__blobs *b, const fv__blob_box *box, room *buffers, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    real = box->wide ? 8 : 4, in = real, out = real;
    for (int d = 0; d < 3; d++) in *= box->side[d].in_size, out *= box->side[d].size;
    buffers->image = fv__scratch_take(&pieces, in);
    for (int k = 0; k < 3; k++) buffers->response[k] = fv__scratch_take(&pieces, out);
    buffers->line = fv__scratch_take(&pieces, box->side[2].in_size * 8);
    buffers->may = fv__scratch_take(&pieces, box->side[2].size);
    buffers->rest = fv__scratch_take(&pieces, (int64_t)b->scratch(b, box));
    return pieces.used;
}

size_t fv__blobs_scratch(const fv__blobs *b, const fv_need *n) {
    fv__blob_box box = box_of(b, n);
    room         buffers;
    return lay_out(b, &box, &buffers, NULL);
}

/* Of neighbours at most one is a blob. */
size_t fv__blobs_bound(const fv__blobs *b, const fv_need *n) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t most = (b->scales + 1) / 2;
    for (int d = 0; d < n->region.ndim; d++) {
        bool is_spatial = false;
        for (int k = 0; k < count; k++) is_spatial |= spatial[k] == d;
        most *= is_spatial ? (n->region.size[d] + 1) / 2 : n->region.size[d];
    }
    return (size_t)most * sizeof(fv__blob);
}

/* ---------------------------------------------------------------- one channel of the input */

static double greatest(fv_dtype dtype) {
    switch (dtype) {
    case FV_UINT8: return UINT8_MAX;
    case FV_INT8: return INT8_MAX;
    case FV_UINT16: return UINT16_MAX;
    case FV_INT16: return INT16_MAX;
    case FV_UINT32: return UINT32_MAX;
    case FV_INT32: return INT32_MAX;
    case FV_UINT64: return (double)UINT64_MAX;
    case FV_INT64: return (double)INT64_MAX;
    default: return 1;
    }
}

/* n voxels `stride` apart, as doubles or floats between -1 and 1 where they were integers. */
static void convert_line(const fv__blob_box *box, const fv_block *in, const char *from, int64_t stride, int64_t n, void *to,
                         void *line) {
    size_t size = fv_dtype_size(in->dtype);
    double scale = 1 / greatest(in->dtype);
    bool   scaled = greatest(in->dtype) != 1;
    if (stride != 1) {
        for (int64_t i = 0; i < n; i++) memcpy((char *)line + (size_t)i * size, from + i * stride * (int64_t)size, size);
        from = line;
    }
    FV_PASTE(fv_kernels_, FV_ISA).convert(to, box->wide ? FV_FLOAT64 : FV_FLOAT32, from, in->dtype, n);
    if (scaled && box->wide)
        for (int64_t i = 0; i < n; i++) ((double *)to)[i] = FV_MAX(((double *)to)[i] * scale, -1);
    else if (scaled)
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = FV_MAX((float)(((float *)to)[i] * (float)scale), -1);
}

/* Position: any voxel of the channel. */
static void convert_channel(const fv__blob_box *box, const fv_block *in, const int *spatial, int count, const int64_t *position,
                            const room *buffers) {
    int64_t at[FV_MAX_DIMS], real = box->wide ? 8 : 4;
    char   *to = buffers->image;
    memcpy(at, position, sizeof at);
    for (int64_t z = 0; z < box->side[0].in_size; z++)
        for (int64_t y = 0; y < box->side[1].in_size; y++, to += box->side[2].in_size * real) {
            if (count > 2) at[spatial[count - 3]] = box->side[0].in_start + z;
            if (count > 1) at[spatial[count - 2]] = box->side[1].in_start + y;
            at[spatial[count - 1]] = box->side[2].in_start;
            convert_line(box, in, fv__block_at(in, at), in->stride[spatial[count - 1]], box->side[2].in_size, to, buffers->line);
        }
}

/* ---------------------------------------------------------------- maxima */

/* Responses of the scale before, of a scale and of the next; the outer ones may be missing. Voxels of a box count from `start`.
 * low ... high: where maxima are looked for, in the image. */
typedef struct {
    const void *response[3];
    int64_t     start[3], size[3], shape[3], low[3], high[3];
    double      threshold;
} maxima;

#define IS_MAXIMUM(name, type)                                                                                                   \
    static bool name(const maxima *m, int64_t z, int64_t y, int64_t x) {                                                         \
        int64_t plane = m->size[1] * m->size[2];                                                                                 \
        type    own = ((const type *)m->response[1])[z * plane + y * m->size[2] + x];                                            \
        for (int64_t i = FV_MAX(z - 1, 0); i <= FV_MIN(z + 1, m->size[0] - 1); i++)                                              \
            for (int64_t j = FV_MAX(y - 1, 0); j <= FV_MIN(y + 1, m->size[1] - 1); j++)                                          \
                for (int64_t k = FV_MAX(x - 1, 0); k <= FV_MIN(x + 1, m->size[2] - 1); k++) {                                    \
                    int64_t place = i * plane + j * m->size[2] + k, mine = z * plane + y * m->size[2] + x;                       \
                    for (int s = 0; s < 3; s++) {                                                                                \
                        if (!m->response[s]) continue;                                                                           \
                        type other = ((const type *)m->response[s])[place];                                                      \
                        bool before = place < mine || (place == mine && s < 1);                                                  \
                        if (other > own || (before && other == own)) return false;                                               \
                    }                                                                                                            \
                }                                                                                                                \
        return true;                                                                                                             \
    }
IS_MAXIMUM(is_maximum_f32, float)
IS_MAXIMUM(is_maximum_f64, double)

/* Where a row of responses is above the threshold and not below the neighbours beside it, in its plane and in scale; the few that
 * are left are looked at closely. The threshold is a little lower here, because a float may lie above it. */
#define CANDIDATES(name, type)                                                                                                   \
    static void name(const maxima *m, int64_t row, int64_t first, int64_t n, bool up, bool down, uint8_t *may) {                 \
        const type *own = (const type *)m->response[1] + row;                                                                    \
        type        level = (type)(m->threshold - fabs(m->threshold) * 1e-6);                                                    \
        int64_t     width = m->size[2];                                                                                          \
        for (int64_t x = 0; x < n; x++) may[x] = own[x] >= level;                                                                \
        for (int64_t x = first == 0; x < n; x++) may[x] &= !(own[x - 1] > own[x]);                                               \
        for (int64_t x = 0; x < n - (first + n == width); x++) may[x] &= !(own[x + 1] > own[x]);                                 \
        for (int64_t x = 0; up && x < n; x++) may[x] &= !(own[x - width] > own[x]);                                              \
        for (int64_t x = 0; down && x < n; x++) may[x] &= !(own[x + width] > own[x]);                                            \
        for (int s = 0; s < 3; s += 2) {                                                                                         \
            const type *other = m->response[s] ? (const type *)m->response[s] + row : own;                                       \
            for (int64_t x = 0; x < n; x++) may[x] &= !(other[x] > own[x]);                                                      \
        }                                                                                                                        \
    }
CANDIDATES(candidates_f32, float)
CANDIDATES(candidates_f64, double)

static void find_maxima(const fv__blob_box *box, const maxima *m, int scale, int64_t first_index, const int64_t *stride,
                        uint8_t *may, fv_bytes *partial) {
    int64_t n = m->high[2] - m->low[2], first = m->low[2] - m->start[2];
    for (int64_t z = m->low[0] - m->start[0]; z < m->high[0] - m->start[0] && n > 0; z++)
        for (int64_t y = m->low[1] - m->start[1]; y < m->high[1] - m->start[1]; y++) {
            int64_t row = (z * m->size[1] + y) * m->size[2] + first;
            (box->wide ? candidates_f64 : candidates_f32)(m, row, first, n, y > 0, y < m->size[1] - 1, may);
            for (int64_t i = 0; i < n; i++) {
                if (!may[i]) continue;
                double value = box->wide ? ((const double *)m->response[1])[row + i] : ((const float *)m->response[1])[row + i];
                if (!(value > m->threshold)) continue;
                if (!(box->wide ? is_maximum_f64 : is_maximum_f32)(m, z, y, first + i)) continue;
                int64_t index =
                    first_index + (z + m->start[0]) * stride[0] + (y + m->start[1]) * stride[1] + (m->low[2] + i) * stride[2];
                fv__blob blob = { value, index, scale };
                fv__bytes_append(partial, &blob, sizeof blob);
            }
        }
}

/* ---------------------------------------------------------------- a chunk */

typedef struct {
    const fv__blobs *b;
    fv_run          *r;
    fv__blob_box     box;
    room             buffers;
    maxima           maxima;
    int              spatial[FV_MAX_DIMS], count;
    int64_t          stride[3]; /* of the image's raster order, along z, y, x */
} chunk;

static void prepare(chunk *c) {
    const fv_need *n = &c->r->need;
    int64_t        raster[FV_MAX_DIMS] = { 0 }, step = 1;
    c->count = fv_image_type_spatial(&n->in[0]->image, c->spatial);
    c->box = box_of(c->b, n);
    lay_out(c->b, &c->box, &c->buffers, c->r->scratch);
    c->box.image = c->buffers.image;
    c->maxima.threshold = c->b->threshold;
    for (int d = n->region.ndim - 1; d >= 0; step *= n->in[0]->image.shape[d--]) raster[d] = step;
    for (int k = 0; k < 3; k++) {
        int                  d = k - 3 + c->count >= 0 ? c->spatial[k - 3 + c->count] : -1;
        const fv_scale_side *side = &c->box.side[k];
        int64_t              border = d >= 0 ? c->b->exclude_border : 0, low = d >= 0 ? n->region.start[d] : 0;
        c->stride[k] = d >= 0 ? raster[d] : 0;
        c->maxima.start[k] = side->start;
        c->maxima.size[k] = side->size;
        c->maxima.low[k] = FV_MAX(low, border);
        c->maxima.high[k] = FV_MIN(low + (d >= 0 ? n->region.size[d] : 1), side->n - border);
    }
}

static void find_in_channel(chunk *c, const int64_t *position) {
    const fv_image_type *image = &c->r->need.in[0]->image;
    int64_t              first = 0;
    for (int d = 0; d < image->ndim; d++) {
        bool spatial = false;
        for (int k = 0; k < c->count; k++) spatial |= c->spatial[k] == d;
        first = first * image->shape[d] + (spatial ? 0 : position[d]);
    }
    convert_channel(&c->box, c->r->in[0], c->spatial, c->count, position, &c->buffers);
    for (int scale = 0; scale <= c->b->scales; scale++) {
        bool last = scale == c->b->scales;
        if (!last) c->b->respond(c->b, &c->box, scale, c->buffers.response[scale % 3], c->buffers.rest);
        if (scale == 0) continue;
        c->maxima.response[0] = scale > 1 ? c->buffers.response[(scale - 2) % 3] : NULL;
        c->maxima.response[1] = c->buffers.response[(scale - 1) % 3];
        c->maxima.response[2] = last ? NULL : c->buffers.response[scale % 3];
        find_maxima(&c->box, &c->maxima, scale - 1, first, c->stride, c->buffers.may, c->r->partial);
    }
}

fv_status fv__blobs_run(const fv__blobs *b, fv_run *r) {
    chunk     c = { .b = b, .r = r };
    fv_region channels = r->need.region;
    fv_rows   rows;
    prepare(&c);
    for (int k = 0; k < c.count; k++) channels.size[c.spatial[k]] = 1;
    for (fv__rows_begin(&rows, &channels); fv__rows_next(&rows);) {
        int64_t position[FV_MAX_DIMS];
        memcpy(position, rows.position, sizeof position);
        for (int64_t i = 0; i < channels.size[channels.ndim - 1]; i++) {
            find_in_channel(&c, position);
            position[channels.ndim - 1]++;
        }
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- the table */

static int strongest_first(const void *a, const void *b) {
    const fv__blob *x = a, *y = b;
    if (x->response != y->response) return x->response > y->response ? -1 : 1;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return x->scale < y->scale ? -1 : x->scale > y->scale;
}

static fv_status put_rows(const fv__blobs *b, fv_finish *f, const fv__blob *blobs, int64_t count, fv_error *error) {
    const fv_image_type *image = &f->in[0]->image;
    fv_row_writer        writer;
    fv_status            status = FV_OK;
    fv__row_writer_init(&writer, f);
    for (int64_t i = 0; i < count && status == FV_OK; i++) {
        fv_cell *row;
        int64_t  index = blobs[i].index;
        if (blobs[i].scale < 0) continue;
        status = fv__row_writer_next(&writer, &row, error);
        if (status != FV_OK) break;
        for (int d = image->ndim - 1; d >= 0; index /= image->shape[d--]) row[d].integer = index % image->shape[d];
        for (int c = image->ndim; c < f->out->table->ncolumns; c++)
            row[c].real = b->sigma(b->params, (int)blobs[i].scale, c - image->ndim);
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

fv_status fv__blobs_finish(const fv__blobs *b, fv_finish *f, fv_error *error) {
    fv_bytes  all = { 0 };
    fv_status status = FV_OK;
    for (int64_t i = 0; i < f->npartials && status == FV_OK; i++) {
        size_t size = f->size(f, i);
        if (size) status = fv__bytes_need(&all, size, error);
        if (size && status == FV_OK) status = f->read(f, i, 0, fv__bytes_append(&all, NULL, size), size, error);
    }
    int64_t count = (int64_t)(all.size / sizeof(fv__blob));
    if (status == FV_OK && count) {
        status = fv__blobs_prune(b, &f->in[0]->image, (fv__blob *)all.data, count, error);
        if (status == FV_OK) qsort(all.data, (size_t)count, sizeof(fv__blob), strongest_first);
        if (status == FV_OK) status = put_rows(b, f, (const fv__blob *)all.data, count, error);
    }
    fv__bytes_release(&all);
    return status;
}
