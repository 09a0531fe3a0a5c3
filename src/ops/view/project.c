/* project: one value for every line of voxels along an axis. */
#include "op/axes.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/place.h"

typedef struct {
    const char *axis;
    fv_choice   method;
} project;

enum { MAX, MIN, MEAN, SUM };

static const fv_param params[] = {
    FV_PARAM(project, axis, .def = "z", .axis = true,
             .doc = "name of the axis along which to look; the result does not have it. \"item\": all images of a collection "
                    "become one"),
    FV_PARAM(project, method, .def = "max", .choices = "max|min|mean|sum",
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
    if (p->method.index == SUM) out->dtype = FV_FLOAT64;
    if (p->method.index == MEAN) out->dtype = wide(in->dtype) ? FV_FLOAT64 : FV_FLOAT32;
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

/* Room for a row of sums and a row of the input as float64. */
static size_t scratch(const fv_need *n) {
    const project *p = n->params;
    int64_t        row = FV_MAX(n->region.size[n->region.ndim - 1], n->in[0]->image.shape[n->in[0]->image.ndim - 1]);
    return p->method.index >= MEAN ? (size_t)row * 16 : 0;
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

/* Sums in float64, voxel after voxel from the axis' start. */
static void add_up(const lines *l, fv_dtype dtype, double *restrict sum, double *restrict row) {
    const fv_kernels *k = fv__kernels_current();
    int64_t           size = (int64_t)fv_dtype_size(dtype);
    for (int64_t i = 0; i < l->count; i++) sum[i] = 0;
    if (l->along == 1)
        for (int64_t i = 0; i < l->count; i++) {
            k->convert(row, FV_FLOAT64, (const char *)l->from + i * l->across * size, dtype, l->depth);
            for (int64_t j = 0; j < l->depth; j++) sum[i] += row[j];
        }
    else
        for (int64_t j = 0; j < l->depth; j++) {
            k->convert(row, FV_FLOAT64, (const char *)l->from + j * l->along * size, dtype, l->count);
            for (int64_t i = 0; i < l->count; i++) sum[i] += row[i];
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
    double         *sum = r->scratch, *row = sum + out->region.size[last];
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
        add_up(&l, in->dtype, sum, row);
        finish_sums(&l, p->method.index, sum, out->dtype, to);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    const project *p = n->params;
    return 0.3 * (double)n->in[0]->image.shape[fv__axis_find(&n->in[0]->image, p->axis)];
}
static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(project) = {
    .name = "project",
    .family = "view",
    .brief = "maximum, minimum, mean or sum along an axis",
    .also = "z_project, zproject, max_projection, mip, maximum_intensity_projection, mean_projection",
    .version = 2,
    .doc = "max and min keep the type of the image and give nan where a line contains one. sum is float64. mean is float32, "
           "or float64 for float64 and for 32 and 64-bit integers. Both add in float64 from the start of the axis to its "
           "end, so integers below 2^53 are exact.\n"
           "If the image has a place in the world, a projection along x, y or z lies in the middle of what it shows.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(project),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "phantom(\"cells\", [40, 200, 200]) |> project(method = \"max\") |> write(\"projection.png\")",
    .see = "montage slice max mean sum",
};
