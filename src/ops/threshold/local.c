/* local: a threshold for every voxel from what is around it, as skimage.filters.threshold_local. */
#include "kernels/bell.h"
#include "kernels/rank.h"
#include "op/kernels.h"
#include "op/scratch.h"

typedef struct {
    fv_numbers block_size;
    fv_choice  method;
    double     offset;
    fv_choice  mode;
    double     cval;
} local;
enum { GAUSSIAN, MEAN, MEDIAN };

static const fv_param params[] = {
    FV_PARAM(local, block_size, .def = "3", .min = 1, .unit = "px",
             .doc = "edge of the neighbourhood, an odd number: one for all spatial axes, or one for each"),
    FV_PARAM(local, method, .def = "gaussian", .choices = "gaussian|mean|median",
             .doc = "what is computed from the neighbourhood; the Gaussian has a standard deviation of (block_size - 1) / 6"),
    FV_PARAM(local, offset, .def = "0", .doc = "subtracted from the threshold"),
    FV_PARAM(local, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(local, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image with uneven lighting, such as a page of text" },
                                   FV_INPUT_END };

static double sigma(const local *p, int k) { return (p->block_size.value[k] - 1) / 6; }

static fv_status infer(fv_infer *i, fv_error *error) {
    local *p = i->params;
    int    axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__window_odd(&p->block_size, n, FV_SEPARABLE_MAX_TAPS / 4, "block_size", error));
    if (p->method.index == MEDIAN && fv__rank_voxels(&p->block_size) > FV_RANK_MAX_VOXELS)
        return fv_fail(error, FV_ERROR_USAGE, "block_size: the box has %lld voxels; at most %d are possible for the median",
                       (long long)fv__rank_voxels(&p->block_size), FV_RANK_MAX_VOXELS);
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static void weights(const void *params_, int k, double *weight) {
    const local *p = params_;
    fv__bell_weights(sigma(p, k), fv__bell_radius(sigma(p, k), 4), 0, weight);
}

static fv_separable linear(const fv_need *n) {
    const local *p = n->params;
    double       size[FV_MAX_DIMS];
    for (int k = 0; k < p->block_size.count; k++)
        size[k] = p->method.index == MEAN ? p->block_size.value[k] : (double)(2 * fv__bell_radius(sigma(p, k), 4) + 1);
    return (fv_separable){ .box = fv__box_new(&n->in[0]->image, size, (fv_border)p->mode.index, p->cval),
                           .weights = p->method.index == MEAN ? NULL : weights,
                           .params = p };
}

static fv_rank median(const fv_need *n) {
    const local *p = n->params;
    return (fv_rank){ .box = fv__box_new(&n->in[0]->image, p->block_size.value, (fv_border)p->mode.index, p->cval),
                      .rank = fv__rank_voxels(&p->block_size) / 2 };
}

static bool is_median(const fv_need *n) { return ((const local *)n->params)->method.index == MEDIAN; }

static void need(const fv_need *n, fv_region *in) {
    fv_box box = is_median(n) ? median(n).box : linear(n).box;
    in[0] = fv__box_need(&box, &n->in[0]->image, &n->region);
}

/* The median keeps the image's type: it is made in a block of its own first. */
static size_t lay_out(const fv_need *n, void *memory, void **values, void **rest) {
    fv_scratch pieces = { memory, 0 };
    if (is_median(n)) {
        fv_rank f = median(n);
        *values = fv__scratch_take(&pieces, fv__region_voxels(&n->region) * (int64_t)fv_dtype_size(n->in[0]->image.dtype));
        *rest = fv__scratch_take(&pieces, (int64_t)fv__rank_scratch(&f, n));
    } else {
        fv_separable s = linear(n);
        *rest = fv__scratch_take(&pieces, (int64_t)fv__separable_scratch(&s, n));
    }
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    void *values, *rest;
    return fv__region_empty(&n->region) ? 0 : lay_out(n, NULL, &values, &rest);
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

static void take_off(const fv_block *out, const fv_block *values, double offset) {
    int64_t n = out->region.size[out->region.ndim - 1];
    fv_rows rows;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        void *row = fv__block_at(out, rows.position);
        if (values) FV_PASTE(fv_kernels_, FV_ISA).convert(row, out->dtype, fv__block_at(values, rows.position), values->dtype, n);
        if (out->dtype == FV_FLOAT32)
            for (int64_t i = 0; i < n; i++) ((float *)row)[i] -= (float)offset;
        else
            for (int64_t i = 0; i < n; i++) ((double *)row)[i] -= offset;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    double offset = ((const local *)r->need.params)->offset;
    fv_run part = *r;
    void  *values;
    if (fv__region_empty(&r->need.region)) return FV_OK;
    lay_out(&r->need, r->scratch, &values, &part.scratch);
    if (is_median(&r->need)) {
        fv_rank  f = median(&r->need);
        fv_block block;
        fv__block_init(&block, r->in[0]->dtype, &r->need.region, values);
        part.out = &block;
        fv__rank_run(&f, &part);
        take_off(r->out, &block, offset);
    } else {
        fv_separable s = linear(&r->need);
        fv__separable_run(&s, &part);
        if (offset != 0) take_off(r->out, NULL, offset);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    double taps = 0;
    if (is_median(n)) {
        fv_rank f = median(n);
        return 0.5 + fv__rank_cost(&f, n->in[0]->image.dtype);
    }
    fv_separable s = linear(n);
    for (int k = 0; k < s.box.naxes; k++) taps += (double)s.box.size[k] / (s.weights ? 1 : 4);
    return 0.4 + taps * (fv__separable_type(n->in[0]->image.dtype) == FV_FLOAT32 ? 0.03 : 0.06);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(local) = {
    .name = "local",
    .family = "threshold",
    .brief = "a separate threshold for every voxel, from its surroundings",
    .also = "threshold_local, adaptthresh, adaptiveThreshold, adaptive_threshold",
    .doc = "The weighted mean, mean or median of the neighbourhood, minus offset. Compare the image with it: a > local(a, "
           "35). Nan and infinity spread to every voxel that the filter reaches from there. For the median, nan counts as "
           "larger than every number, and cval is kept in the image's type. The result is float32; it is float64 for images "
           "of float64 and of 32 or 64-bit integers.",
    .citation = "skimage.filters.threshold_local",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(a > local(a, 75), \"cells.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(local),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "sauvola otsu gaussian",
};
