/* median: the middle value of a box, as scipy.ndimage.median_filter. */
#include "kernels/rank.h"
#include "op/window.h"

typedef struct { fv_numbers size; fv_choice mode; double cval; } median;

static const fv_param params[] = {
    FV_PARAM(median, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(median, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(median, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static double voxels(const median *p) {
    double n = 1;
    for (int k = 0; k < p->size.count; k++) n *= p->size.value[k];
    return n;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    median *p = i->params;
    int     axis[FV_MAX_DIMS], n;
    if (fv_dtype_is_complex(i->in[0]->image.dtype))
        return fv_fail(error, FV_ERROR_USAGE, "median: complex numbers have no order; the image must be real");
    FV_TRY(fv_window_axes(i->in[0], "median", axis, &n, error));
    FV_TRY(fv_window_sizes(&p->size, n, FV_RANK_MAX_VOXELS, error));
    if (voxels(p) > FV_RANK_MAX_VOXELS)
        return fv_fail(error, FV_ERROR_USAGE, "size: the box has %.0f voxels; at most %d are possible", voxels(p),
                       FV_RANK_MAX_VOXELS);
    return FV_OK;
}

static fv_rank filter(const fv_need *n) {
    const median *p = n->params;
    return (fv_rank){ .box = fv_box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                      .rank = (int64_t)voxels(p) / 2 };
}

static void need(const fv_need *n, fv_region *in) {
    fv_rank f = filter(n);
    in[0] = fv_box_need(&f.box, &n->in[0]->image, &n->region);
}

static size_t scratch(const fv_need *n) {
    fv_rank f = filter(n);
    return fv_rank_scratch(&f, n);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_rank f = filter(&r->need);
    fv_rank_run(&f, r);
    return FV_OK;
}

static double cost(const fv_need *n) {
    fv_rank f = filter(n);
    return fv_rank_cost(&f, n->in[0]->image.dtype);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(median) = {
    .name = "median",
    .family = "filter",
    .brief = "middle value of a box",
    .doc = "Removes specks and keeps edges. A box of even size reaches one voxel further back than ahead; of an even number of "
           "voxels "
           "the upper middle one is taken. Not-a-numbers count as larger than all numbers. The type stays.",
    .citation = "scipy.ndimage.median_filter",
    .example = "zeros([64, 64]) |> median(5) |> write(\"calm.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(median),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
};
