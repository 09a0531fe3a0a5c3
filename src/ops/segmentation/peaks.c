/* peaks: marks local maxima that are some distance apart. */
#include "op/op.h"

typedef struct {
    int64_t min_distance;
    bool    exclude_border;
} peaks;

static const fv_param params[] = {
    FV_PARAM(peaks, min_distance, .def = "1", .min = 1, .max = 1000, .unit = "px",
             .doc = "a peak is the highest voxel of the box that reaches this far from it in every direction"),
    FV_PARAM(peaks, exclude_border, .def = "true", .doc = "no peaks nearer than min_distance to the border of the image"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "real image" },
    { "threshold", FV_KIND_SCALAR, .optional = true, .doc = "only values above this are peaks" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *image = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    if (fv_dtype_is_complex(image->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be real", fv_dtype_name(image->dtype));
    if (n < 1 || n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes; one to three named z, y, x are needed", n);
    i->out->image.dtype = FV_BOOL;
    return FV_OK;
}

static fv_region reach(const fv_need *n, const fv_region *region, int64_t far) {
    int     spatial[FV_MAX_DIMS], count = fv_image_type_spatial(&n->in[0]->image, spatial);
    int64_t grow[FV_MAX_DIMS] = { 0 };
    for (int i = 0; i < count; i++) grow[spatial[i]] = far;
    fv_region grown = fv__region_grow(region, grow, grow);
    return fv__region_clip(&grown, n->in[0]->image.shape);
}

static void need(const fv_need *n, fv_region *in) { in[0] = reach(n, &n->region, ((const peaks *)n->params)->min_distance); }

/* ---------------------------------------------------------------- one type of element */

/* Where rows are looked for: the box around a voxel, cut at the border of the image. */
typedef struct {
    const fv_block *in;
    int             nspatial, spatial[FV_MAX_DIMS];
    int64_t         low[FV_MAX_DIMS], high[FV_MAX_DIMS]; /* inclusive */
} box;

static void set_box(box *b, const fv_need *n, const int64_t *position, int64_t far) {
    for (int d = 0; d < n->region.ndim; d++) b->low[d] = b->high[d] = position[d];
    for (int i = 0; i < b->nspatial; i++) {
        int d = b->spatial[i];
        b->low[d] = FV_MAX(position[d] - far, 0);
        b->high[d] = FV_MIN(position[d] + far, n->in[0]->image.shape[d] - 1);
    }
}

/* Whether the voxel is above all earlier voxels of its box, not below any later one, and above at least one: nothing that is
 * not a number takes part. `maybe` asks it of the nearest neighbours of a whole row first. */
#define PEAKS(name, type)                                                                                                        \
    static bool name##_is_peak(const box *b, const int64_t *position) {                                                          \
        type    own = *(const type *)fv__block_at(b->in, position);                                                              \
        int     x = b->spatial[b->nspatial - 1];                                                                                 \
        int64_t at[FV_MAX_DIMS], stride = b->in->stride[x];                                                                      \
        bool    above = false;                                                                                                   \
        memcpy(at, b->low, sizeof at);                                                                                           \
        for (;;) {                                                                                                               \
            const type *row = fv__block_at(b->in, at);                                                                           \
            int         order = 0; /* of the row before or behind the voxel's own */                                             \
            for (int i = 0; i < b->nspatial - 1 && !order; i++)                                                                  \
                order = at[b->spatial[i]] < position[b->spatial[i]] ? -1 : at[b->spatial[i]] > position[b->spatial[i]];          \
            for (int64_t i = b->low[x]; i <= b->high[x]; i++) {                                                                  \
                type other = row[(i - b->low[x]) * stride];                                                                      \
                bool before = order < 0 || (!order && i < position[x]);                                                          \
                if (other > own || (before && other == own)) return false;                                                       \
                above |= other < own;                                                                                            \
            }                                                                                                                    \
            int k = b->nspatial - 2;                                                                                             \
            while (k >= 0 && ++at[b->spatial[k]] > b->high[b->spatial[k]]) at[b->spatial[k]] = b->low[b->spatial[k]], k--;       \
            if (k < 0) return above;                                                                                             \
        }                                                                                                                        \
    }                                                                                                                            \
    static void name##_maybe(uint8_t *restrict to, const type *restrict own, const type *restrict before,                        \
                             const type *restrict after, int64_t n) {                                                            \
        for (int64_t i = 0; i < n; i++) to[i] &= (uint8_t) !(before[i] >= own[i]) & (uint8_t) !(after[i] > own[i]);              \
    }
PEAKS(uint8, uint8_t)
PEAKS(int8, int8_t)
PEAKS(uint16, uint16_t)
PEAKS(int16, int16_t)
PEAKS(uint32, uint32_t)
PEAKS(int32, int32_t)
PEAKS(uint64, uint64_t)
PEAKS(int64, int64_t)
PEAKS(float32, float)
PEAKS(float64, double)

#define EACH(call)                                                                                                               \
    switch (dtype) {                                                                                                             \
    case FV_BOOL:                                                                                                                \
    case FV_UINT8:                                                                                                               \
        call(uint8, uint8_t) case FV_INT8 : call(int8, int8_t) case FV_UINT16 : call(uint16, uint16_t) case FV_INT16             \
            : call(int16, int16_t) case FV_UINT32 : call(uint32, uint32_t) case FV_INT32 : call(int32, int32_t) case FV_UINT64   \
            : call(uint64, uint64_t) case FV_INT64 : call(int64, int64_t) case FV_FLOAT32 : call(float32, float) default         \
            : call(float64, double)                                                                                              \
    }

static bool is_peak(fv_dtype dtype, const box *b, const int64_t *position) {
#define CALL(name, type) return name##_is_peak(b, position);
    EACH(CALL)
#undef CALL
}

static void maybe(fv_dtype dtype, uint8_t *to, const void *own, const void *before, const void *after, int64_t n) {
#define CALL(name, type)                                                                                                         \
    name##_maybe(to, own, before, after, n);                                                                                     \
    return;
    EACH(CALL)
#undef CALL
}

/* Whole numbers are compared with the largest one that is not above the threshold, others as doubles. */
static void cut_below(fv_dtype dtype, uint8_t *to, const void *own, double threshold, int64_t n) {
#define WHOLE(type, least, most)                                                                                                 \
    if (threshold < (double)(least)) return;                                                                                     \
    if (!(threshold < (double)(most)))                                                                                           \
        memset(to, 0, (size_t)n); /* also where it is nan */                                                                     \
    else {                                                                                                                       \
        type level = (type)floor(threshold);                                                                                     \
        for (int64_t i = 0; i < n; i++) to[i] &= ((const type *)own)[i] > level;                                                 \
    }                                                                                                                            \
    return;
#define REAL(type)                                                                                                               \
    for (int64_t i = 0; i < n; i++) to[i] &= (double)((const type *)own)[i] > threshold;                                         \
    return;
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: WHOLE(uint8_t, 0, UINT8_MAX)
    case FV_INT8: WHOLE(int8_t, INT8_MIN, INT8_MAX)
    case FV_UINT16: WHOLE(uint16_t, 0, UINT16_MAX)
    case FV_INT16: WHOLE(int16_t, INT16_MIN, INT16_MAX)
    case FV_UINT32: WHOLE(uint32_t, 0, UINT32_MAX)
    case FV_INT32: WHOLE(int32_t, INT32_MIN, INT32_MAX)
    case FV_UINT64: WHOLE(uint64_t, 0, UINT64_MAX)
    case FV_INT64: WHOLE(int64_t, INT64_MIN, INT64_MAX)
    case FV_FLOAT32: REAL(float)
    default: REAL(double)
    }
}

/* ---------------------------------------------------------------- run */

/* Cuts a row of candidates by the neighbours at one offset and its opposite, where both lie in the image. */
static void cut_row(const fv_run *r, const int64_t *position, const int *step, const int *spatial, int count, uint8_t *row,
                    int64_t n) {
    const fv_block *in = r->in[0];
    int             last = in->region.ndim - 1;
    int64_t         before[FV_MAX_DIMS], after[FV_MAX_DIMS], from = 0, to = n;
    memcpy(before, position, sizeof before);
    memcpy(after, position, sizeof after);
    for (int i = 0; i < count; i++) {
        int d = spatial[i];
        before[d] += step[i];
        after[d] -= step[i];
        if (d == last) {
            from = step[i] && position[d] == 0;
            to = n - (step[i] && position[d] + n == r->need.in[0]->image.shape[d]);
        } else if (FV_MIN(before[d], after[d]) < 0 || FV_MAX(before[d], after[d]) >= r->need.in[0]->image.shape[d])
            return;
    }
    if (from >= to) return;
    int64_t own[FV_MAX_DIMS];
    memcpy(own, position, sizeof own);
    own[last] += from, before[last] += from, after[last] += from;
    maybe(in->dtype, row + from, fv__block_at(in, own), fv__block_at(in, before), fv__block_at(in, after), to - from);
}

/* Candidates of a row: above the threshold, and above the neighbours next to them. */
static void find_candidates(const fv_run *r, const int64_t *position, const int *spatial, int count, uint8_t *row, int64_t n) {
    memset(row, 1, (size_t)n);
    if (r->scalar[1]) cut_below(r->in[0]->dtype, row, fv__block_at(r->in[0], position), fv__scalar_number(r->scalar[1]), n);
    for (int code = 0; code < 13; code++) { /* the half of the neighbours that come earlier */
        int  full[3] = { code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1 }, step[3];
        bool exists = true;
        for (int i = 0; i < 3; i++) {
            if (i < 3 - count)
                exists = exists && !full[i];
            else
                step[i - (3 - count)] = full[i];
        }
        if (exists) cut_row(r, position, step, spatial, count, row, n);
    }
}

static bool near_border(const fv_need *n, const int64_t *position, const int *spatial, int count, int64_t far) {
    for (int i = 0; i < count; i++)
        if (position[spatial[i]] < far || position[spatial[i]] >= n->in[0]->image.shape[spatial[i]] - far) return true;
    return false;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const peaks *p = r->need.params;
    int          last = r->need.region.ndim - 1;
    int64_t      n = r->need.region.size[last];
    box          b = { .in = r->in[0] };
    fv_rows      rows;
    b.nspatial = fv_image_type_spatial(&r->need.in[0]->image, b.spatial);
    for (fv__rows_begin(&rows, &r->need.region); fv__rows_next(&rows);) {
        uint8_t *row = fv__block_at(r->out, rows.position);
        int64_t  position[FV_MAX_DIMS];
        find_candidates(r, rows.position, b.spatial, b.nspatial, row, n);
        memcpy(position, rows.position, sizeof position);
        for (int64_t i = 0; i < n; i++) {
            if (i + 8 <= n && !memcmp(row + i, "\0\0\0\0\0\0\0", 8)) i += 7; /* most are none */
            if (!row[i]) continue;
            position[last] = rows.position[last] + i;
            set_box(&b, &r->need, position, p->min_distance);
            row[i] = !(p->exclude_border && near_border(&r->need, position, b.spatial, b.nspatial, p->min_distance)) &&
                     is_peak(b.in->dtype, &b, position);
        }
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 3;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(peaks) = {
    .name = "peaks",
    .family = "segmentation",
    .brief = "mark local maxima that are some distance apart",
    .also = "peak_local_max, find_peaks",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(peaks),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.feature.peak_local_max with threshold as its threshold_abs, but the result is an image that is true "
           "at the peaks. label(peaks(image)) numbers them, as markers for watershed; measure lists them.\n"
           "A number behind the image is min_distance, as in scikit-image: peaks(image, 5). Give a threshold by its name.\n"
           "Of equal maxima within reach of one another, the first in raster order is kept (scikit-image keeps some of them, "
           "depending on how it sorts). Where all values are equal there is no peak. Nan is no peak and hides none. The "
           "number of peaks is not limited.",
    .citation = "scikit-image: skimage.feature.peak_local_max",
    .example = "inside = distance(phantom(\"cells\", [200, 200], noise = 0) > 100)\n"
               "write(dilate(peaks(inside, min_distance = 5), disk(2)), \"peaks.png\")",
    .see = "local_maxima h_maxima watershed blobs_log",
};
