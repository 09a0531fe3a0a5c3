/* project: one value for every line of voxels along an axis. */
#include "base/exact_sum.h"
#include "kernels/find_place.h"
#include "op/axes.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/place.h"
#include <math.h>

typedef struct {
    const char *axis;
    fv_choice   method;
} project;

enum { MAX, MIN, MEAN, SUM, STD, MEDIAN };

static const fv_param params[] = {
    FV_PARAM(project, axis, .def = "z", .axis = true,
             .doc = "name of the axis along which to look; the result does not have it. \"item\": all images of a collection "
                    "become one"),
    FV_PARAM(project, method, .def = "max", .choices = "max|min|mean|sum|std|median",
             .doc = "what to compute from the voxels along "
                    "that axis"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to project" }, FV_INPUT_END };

static bool wide(fv_dtype dtype) { return dtype == FV_FLOAT64 || (fv_dtype_is_integer(dtype) && fv_dtype_size(dtype) >= 4); }

static fv_status infer(fv_infer *i, fv_error *error) {
    const project       *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    int                  axis = fv__axis_find(in, p->axis);
    if (axis < 0) {
        char names[FV_MAX_DIMS * 10] = "";
        for (int d = 0; d < in->ndim; d++) strcat(strcat(names, d ? " " : ""), in->axis[d]);
        return fv_fail(error, FV_ERROR_USAGE, "axis = \"%.40s\": the image has the axes %s", p->axis, names);
    }
    if (in->ndim < 2) return fv_fail(error, FV_ERROR_USAGE, "axis = \"%s\": the image has no other axis to keep", p->axis);
    if (fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s, which has no order: project its magnitude or one of its parts",
                       fv_dtype_name(in->dtype));
    if (p->method.index == SUM)
        out->dtype = FV_FLOAT64;
    else if (p->method.index >= MEAN)
        out->dtype = wide(in->dtype) ? FV_FLOAT64 : FV_FLOAT32;
    double n = (double)in->shape[axis]; /* one thick voxel takes the place of the line */
    fv__place_move(out, axis, (n - 1) / 2, n);
    fv__axis_drop(out, axis);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    const project *p = n->params;
    int            axis = fv__axis_find(&n->in[0]->image, p->axis);
    in->ndim = n->in[0]->image.ndim;
    for (int d = 0, e = 0; d < in->ndim; d++) {
        in->start[d] = d == axis ? 0 : n->region.start[e];
        in->size[d] = d == axis ? n->in[0]->image.shape[d] : n->region.size[e];
        e += d != axis;
    }
}

/* Room for a row of sums, of what their additions rounded off, of marks where that was rounded too, and of the input as float64:
 * a row of it, or a line. */
static size_t scratch(const fv_need *n) {
    const project *p = n->params;
    int64_t        row = n->region.size[n->region.ndim - 1];
    int64_t        depth = n->in[0]->image.shape[fv__axis_find(&n->in[0]->image, p->axis)];
    return p->method.index >= MEAN ? (size_t)(3 * row + FV_MAX(row, depth)) * sizeof(double) : 0;
}

/* The lines that end in one row of the output: count lines of depth voxels. Next to each other in a line they lie `along`
 * elements apart, from line to line `across`; one of the two is 1. */
typedef struct {
    const void *from;
    int64_t     count, depth, along, across;
} lines;

/* Keeps a NaN once it is met, as numpy does. */
#define EXTREME(TYPE, BEATS)                                                                                                     \
    {                                                                                                                            \
        const TYPE *restrict from = l->from;                                                                                     \
        TYPE *restrict to = out;                                                                                                 \
        for (int64_t i = 0; i < l->count; i++) to[i] = from[i * l->across];                                                      \
        if (l->along == 1) {                                                                                                     \
            for (int64_t i = 0; i < l->count; i++)                                                                               \
                for (int64_t k = 1; k < l->depth; k++) {                                                                         \
                    TYPE v = from[i * l->across + k];                                                                            \
                    to[i] = (v BEATS to[i]) | (v != v) ? v : to[i];                                                              \
                }                                                                                                                \
            return;                                                                                                              \
        }                                                                                                                        \
        for (int64_t k = 1; k < l->depth; k++)                                                                                   \
            for (int64_t i = 0; i < l->count; i++) {                                                                             \
                TYPE v = from[k * l->along + i];                                                                                 \
                to[i] = (v BEATS to[i]) | (v != v) ? v : to[i];                                                                  \
            }                                                                                                                    \
        return;                                                                                                                  \
    }
#define EXTREMES(NAME, BEATS)                                                                                                    \
    static void NAME(const lines *l, fv_dtype dtype, void *out) {                                                                \
        switch (dtype) {                                                                                                         \
        case FV_BOOL:                                                                                                            \
        case FV_UINT8: EXTREME(uint8_t, BEATS)                                                                                   \
        case FV_INT8: EXTREME(int8_t, BEATS)                                                                                     \
        case FV_UINT16: EXTREME(uint16_t, BEATS)                                                                                 \
        case FV_INT16: EXTREME(int16_t, BEATS)                                                                                   \
        case FV_UINT32: EXTREME(uint32_t, BEATS)                                                                                 \
        case FV_INT32: EXTREME(int32_t, BEATS)                                                                                   \
        case FV_UINT64: EXTREME(uint64_t, BEATS)                                                                                 \
        case FV_INT64: EXTREME(int64_t, BEATS)                                                                                   \
        case FV_FLOAT32: EXTREME(float, BEATS)                                                                                   \
        case FV_FLOAT64: EXTREME(double, BEATS)                                                                                  \
        default: return;                                                                                                         \
        }                                                                                                                        \
    }
EXTREMES(greatest, >)
EXTREMES(least, <)

/* Sums are exact and rounded once, so they do not depend on the order of the voxels. Nearly always two float64 hold the sum
 * exactly: the rounded one, and what its additions rounded off (D. Knuth's two-sum). `lost` is not zero where that is not so,
 * and there a wide sum does it. */
typedef struct {
    double *restrict sum, *restrict rest, *restrict lost, *restrict row;
} sums;

static inline double two_sum(double a, double b, double *rest) {
    double sum = a + b, other = sum - a;
    *rest = (a - (sum - other)) + (b - other);
    return sum;
}

static inline void add_one(double value, double *sum, double *rest, double *lost) {
    double off, more;
    *sum = two_sum(*sum, value, &off);
    *rest = two_sum(*rest, off, &more);
    *lost = more != 0 ? 1 : *lost; /* also where something is infinite or nan */
}

/* Sums of whole numbers below 2^53 are exact as they are. */
static bool is_always_exact(fv_dtype dtype, int64_t depth) {
    return dtype == FV_BOOL || (fv_dtype_is_integer(dtype) && fv_dtype_size(dtype) <= 4 && depth <= (int64_t)1 << 21);
}

static void add_row(const sums *s, int64_t count, bool exact) {
    if (exact)
        for (int64_t i = 0; i < count; i++) s->sum[i] += s->row[i];
    else
        for (int64_t i = 0; i < count; i++) add_one(s->row[i], &s->sum[i], &s->rest[i], &s->lost[i]);
}

static void add_line(const sums *s, int64_t i, int64_t depth, bool exact) {
    for (int64_t j = 0; j < depth; j++)
        if (exact)
            s->sum[i] += s->row[j];
        else
            add_one(s->row[j], &s->sum[i], &s->rest[i], &s->lost[i]);
}

/* One line in a wide sum. */
static double add_widely(const lines *l, fv_dtype dtype, int64_t i) {
    fv_sum_any sum;
    bool       natural = dtype == FV_UINT64, whole = natural || dtype == FV_INT64;
    fv__sum_init(&sum.sum, whole ? FV_SUM_INTEGER : FV_SUM_FLOAT64);
    for (int64_t j = 0; j < l->depth; j++) {
        const char *at = (const char *)l->from + (i * l->across + j * l->along) * (int64_t)fv_dtype_size(dtype);
        int64_t     integer = whole && !natural ? *(const int64_t *)at : 0;
        double      value;
        if (natural)
            fv__sum_add_integer(&sum.sum, false, *(const uint64_t *)at);
        else if (whole)
            fv__sum_add_integer(&sum.sum, integer < 0, integer < 0 ? -(uint64_t)integer : (uint64_t)integer);
        else {
            fv__kernels_current()->convert(&value, FV_FLOAT64, at, dtype, 1);
            fv__sum_add(&sum.sum, value);
        }
    }
    return fv__sum_value(&sum.sum);
}

static void add_up(const lines *l, fv_dtype dtype, const sums *s) {
    const fv_kernels *k = fv__kernels_current();
    int64_t           size = (int64_t)fv_dtype_size(dtype);
    bool              exact = is_always_exact(dtype, l->depth), wide_integers = fv_dtype_is_integer(dtype) && size == 8;
    for (int64_t i = 0; i < l->count; i++) {
        s->sum[i] = s->rest[i] = 0;
        s->lost[i] = wide_integers;
    }
    for (int64_t i = 0; i < l->count && l->along == 1 && !wide_integers; i++) {
        k->convert(s->row, FV_FLOAT64, (const char *)l->from + i * l->across * size, dtype, l->depth);
        add_line(s, i, l->depth, exact);
    }
    for (int64_t j = 0; j < l->depth && l->along != 1 && !wide_integers; j++) {
        k->convert(s->row, FV_FLOAT64, (const char *)l->from + j * l->along * size, dtype, l->count);
        add_row(s, l->count, exact);
    }
    for (int64_t i = 0; i < l->count; i++) s->sum[i] = s->lost[i] != 0 ? add_widely(l, dtype, i) : s->sum[i] + s->rest[i];
}

/* The mean square of the distances from the mean, which is in s->sum, by way of s->rest. They are added one after the other along
 * the line, so that the result is the same however many lines there are. */
static void add_squares(const lines *l, fv_dtype dtype, const sums *s) {
    const fv_kernels *k = fv__kernels_current();
    int64_t           size = (int64_t)fv_dtype_size(dtype);
    for (int64_t i = 0; i < l->count; i++) {
        s->sum[i] /= (double)l->depth;
        s->rest[i] = 0;
    }
    for (int64_t i = 0; i < l->count && l->along == 1; i++) {
        k->convert(s->row, FV_FLOAT64, (const char *)l->from + i * l->across * size, dtype, l->depth);
        for (int64_t j = 0; j < l->depth; j++) s->rest[i] += (s->row[j] - s->sum[i]) * (s->row[j] - s->sum[i]);
    }
    for (int64_t j = 0; j < l->depth && l->along != 1; j++) {
        k->convert(s->row, FV_FLOAT64, (const char *)l->from + j * l->along * size, dtype, l->count);
        for (int64_t i = 0; i < l->count; i++) s->rest[i] += (s->row[i] - s->sum[i]) * (s->row[i] - s->sum[i]);
    }
    for (int64_t i = 0; i < l->count; i++) s->sum[i] = sqrt(s->rest[i] / (double)l->depth);
}

FV_FIND_PLACE(find_place, double)

/* The middle of a line's values, or the mean of the two in the middle; nan if there is one, as numpy does. */
static double middle(double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (isnan(values[i])) return values[i];
    double upper = find_place(values, count, count / 2), lower = values[0];
    if (count % 2) return upper;
    for (int64_t i = 1; i < count / 2; i++) lower = FV_MAX(lower, values[i]);
    return (lower + upper) / 2;
}

static void find_middles(const lines *l, fv_dtype dtype, const sums *s) {
    const fv_kernels *k = fv__kernels_current();
    int64_t           size = (int64_t)fv_dtype_size(dtype);
    for (int64_t i = 0; i < l->count; i++) {
        const char *from = (const char *)l->from + i * l->across * size;
        if (l->along == 1) k->convert(s->row, FV_FLOAT64, from, dtype, l->depth);
        for (int64_t j = 0; j < l->depth && l->along != 1; j++)
            k->convert(s->row + j, FV_FLOAT64, from + j * l->along * size, dtype, 1);
        s->sum[i] = middle(s->row, l->depth);
    }
}

static void finish_sums(const lines *l, int method, double *sum, fv_dtype dtype, void *out) {
    for (int64_t i = 0; i < l->count && method == MEAN; i++) sum[i] /= (double)l->depth;
    fv__kernels_current()->convert(out, dtype, sum, FV_FLOAT64, l->count);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const project  *p = r->need.params;
    const fv_block *in = r->in[0], *out = r->out;
    int             axis = fv__axis_find(&r->need.in[0]->image, p->axis), last = out->region.ndim - 1;
    int64_t         width = out->region.size[last];
    double         *room = r->scratch;
    sums            s = { room, room + width, room + 2 * width, room + 3 * width };
    lines           l = { .count = out->region.size[last],
                          .depth = in->region.size[axis],
                          .along = in->stride[axis],
                          .across = in->stride[axis > last ? last : last + 1] };
    fv_rows         rows;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        int64_t position[FV_MAX_DIMS];
        for (int d = 0, e = 0; d < in->region.ndim; d++) position[d] = d == axis ? 0 : rows.position[e++];
        l.from = fv__block_at(in, position);
        void *to = fv__block_at(out, rows.position);
        if (p->method.index == MAX) greatest(&l, in->dtype, to);
        if (p->method.index == MIN) least(&l, in->dtype, to);
        if (p->method.index < MEAN) continue;
        if (p->method.index == MEDIAN)
            find_middles(&l, in->dtype, &s);
        else
            add_up(&l, in->dtype, &s);
        if (p->method.index == STD) add_squares(&l, in->dtype, &s);
        finish_sums(&l, p->method.index, s.sum, out->dtype, to);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    const project *p = n->params;
    double         each = p->method.index == MEDIAN ? 6 : p->method.index == STD ? 0.6 : 0.3;
    return each * (double)n->in[0]->image.shape[fv__axis_find(&n->in[0]->image, p->axis)];
}
static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(project) = {
    .name = "project",
    .family = "view",
    .brief = "maximum, minimum, mean, sum, standard deviation or median along an axis",
    .also = "z_project, zproject, max_projection, mip, maximum_intensity_projection, mean_projection, std_projection, "
            "median_projection",
    .version = 3,
    .doc = "max and min keep the type of the image and give nan where a line contains one. sum is float64. The "
           "others are float32, or float64 for float64 and for 32 and 64-bit integers. The sum is exact and rounded once to "
           "float64, so it does not depend on the order of the voxels. std is that of the population, as numpy's; the median "
           "of an even number of voxels is the mean of the two in the middle.\n"
           "If the image has a place in the world, a projection along x, y or z lies in the middle of what it shows.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(project),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .example = "phantom(\"cells\", [40, 200, 200]) |> project(method = \"max\") |> write(\"projection.png\")",
    .see = "fold montage slice max mean sum",
};
