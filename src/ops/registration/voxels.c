/* The images of a registration; see voxels.h. */
#include "ops/registration/voxels.h"
#include "op/axes.h"
#include "op/kernels.h"
#include <math.h>

void fv__voxels_part(const fv_need *n, int input, int before, fv_region *in) {
    *in = fv__region_whole(&n->in[input]->image);
    for (int d = 0; d < before; d++) {
        int axis = fv__axis_find(&n->in[input]->image, n->out->image.axis[d]);
        if (axis < 0) continue;
        in->start[axis] = n->region.start[d];
        in->size[axis] = n->region.size[d];
    }
}

int64_t fv__voxels_count(const fv_image_type *type, const fv_physical *place) {
    int64_t all = 1;
    for (int c = 0; c < place->n; c++) all *= type->shape[place->axis[c]];
    return all;
}

void fv__voxels_visit(const fv_block *block, const fv_physical *place, const fv_region *part, float *row, fv_row_visit *visit,
                      void *context) {
    fv_rows rows;
    int     last = part->ndim - 1, along = 3;
    for (int c = 0; c < place->n; c++)
        if (place->axis[c] == last) along = c;
    for (fv__rows_begin(&rows, part); fv__rows_next(&rows);) {
        int64_t at[3] = { 0 };
        for (int c = 0; c < place->n; c++) at[c] = rows.position[place->axis[c]];
        fv__kernels_current()->convert(row, FV_FLOAT32, fv__block_at(block, rows.position), block->dtype, part->size[last]);
        visit(context, row, part->size[last], at, along);
    }
}

/* In so many sums, which a processor makes at once. */
enum { SUMS = 8 };

typedef struct {
    double sum[SUMS], squares[SUMS], moment[SUMS], low[SUMS], high[SUMS], odd[SUMS];
} row_sums;

/* odd becomes nan by a value that is not finite. */
static void add_value(row_sums *s, int l, double value, double place) {
    s->sum[l] += value;
    s->squares[l] += value * value;
    s->moment[l] += value * place;
    s->low[l] = value < s->low[l] ? value : s->low[l];
    s->high[l] = value > s->high[l] ? value : s->high[l];
    s->odd[l] += value - value;
}

static void summarize_row(void *context, const float *row, int64_t n, const int64_t at[3], int along) {
    fv_voxel_summary *m = context;
    row_sums          s = { { 0 } };
    double            place[SUMS];
    int64_t           i = 0;
    for (int l = 0; l < SUMS; l++) {
        place[l] = l;
        s.low[l] = INFINITY;
        s.high[l] = -INFINITY;
    }
    for (; i + SUMS <= n; i += SUMS)
        for (int l = 0; l < SUMS; l++) {
            add_value(&s, l, (double)row[i + l], place[l]);
            place[l] += SUMS;
        }
    for (; i < n; i++) add_value(&s, 0, (double)row[i], (double)i);
    for (int step = SUMS / 2; step > 0; step /= 2)
        for (int l = 0; l < step; l++) {
            s.sum[l] += s.sum[l + step];
            s.squares[l] += s.squares[l + step];
            s.moment[l] += s.moment[l + step];
            s.odd[l] += s.odd[l + step];
        }
    m->finite = m->finite && s.odd[0] == 0;
    m->sum += s.sum[0];
    m->squares += s.squares[0];
    for (int l = 0; l < SUMS; l++) {
        m->low = FV_MIN(m->low, s.low[l]);
        m->high = FV_MAX(m->high, s.high[l]);
    }
    for (int c = 0; c < 3; c++) m->moment[c] += s.sum[0] * (double)at[c] + (c == along ? s.moment[0] : 0);
}

fv_status fv__voxels_summarize(const fv_block *block, const fv_physical *place, const fv_region *part, float *row,
                               const char *name, fv_voxel_summary *m, fv_error *error) {
    *m = (fv_voxel_summary){ .low = INFINITY, .high = -INFINITY, .finite = true };
    fv__voxels_visit(block, place, part, row, summarize_row, m);
    if (!m->finite)
        return fv_fail(error, FV_ERROR_INPUT, "%s holds nan or infinite values: replace them, as where(isfinite(%s), %s, 0)",
                       name, name, name);
    if (!(m->high > m->low))
        return fv_fail(error, FV_ERROR_INPUT, "%s is constant, %g everywhere: nothing in it can be recognised", name, m->low);
    return FV_OK;
}

fv_voxel_scale fv__voxels_scale(const fv_voxel_summary *m, int64_t voxels) {
    double mean = m->sum / (double)voxels, variance = m->squares / (double)voxels - mean * mean;
    double least = 1e-12 * (m->high - m->low) * (m->high - m->low);
    return (fv_voxel_scale){ .offset = mean, .share = 1 / sqrt(FV_MAX(variance, least)) };
}

typedef struct {
    const fv_voxel_scale *by;
    int64_t               step[3];
    float                *to;
} keeping;

static void keep_row(void *context, const float *row, int64_t n, const int64_t at[3], int along) {
    const keeping *k = context;
    float         *to = k->to + at[0] * k->step[0] + at[1] * k->step[1] + at[2] * k->step[2];
    for (int64_t i = 0; i < n; i++)
        to[along < 3 ? i * k->step[along] : 0] = (float)(((double)row[i] - k->by->offset) * k->by->share);
}

void fv__voxels_keep(const fv_block *block, const fv_physical *place, const fv_region *part, float *row,
                     const fv_voxel_scale *scale, const int64_t size[3], float *to) {
    keeping k = { scale, { 1, size[0], size[0] * size[1] }, to };
    fv__voxels_visit(block, place, part, row, keep_row, &k);
}
