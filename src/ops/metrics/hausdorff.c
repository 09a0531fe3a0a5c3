/* hausdorff: how far two masks lie apart at most, as skimage.metrics.hausdorff_distance. */
#include "ops/metrics/pair.h"

typedef struct {
    fv_numbers sampling;
} hausdorff;

static const fv_param params[] = {
    FV_PARAM(hausdorff, sampling, .def = "", .min = 0, .above = true,
             .doc = "edges of a voxel, one number or one per spatial axis; left out: 1"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "a mask, or labels: what is not 0 counts" },
    { "b", FV_KIND_IMAGE, .doc = "another of the same shape" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const hausdorff *p = i->params;
    const char      *sampling = p->sampling.count ? ", sampling = sampling" : "";
    FV_TRY(fv__pair_check(i, "a", "b", error));
    fv__bytes_printf(text,
                     "x = a != 0\ny = b != 0\n"
                     "far = maximum(max(where(x, distance(!y%s), 0)), max(where(y, distance(!x%s), 0)))\n"
                     "where(count(x) > 0, where(count(y) > 0, far, exp(1000)), where(count(y) > 0, exp(1000), 0))",
                     sampling, sampling);
    return FV_OK;
}

const fv_op FV_OP(hausdorff) = {
    .name = "hausdorff",
    .family = "metrics",
    .brief = "how far two masks lie apart where they differ most",
    .version = 1,
    .also = "hausdorff_distance, directed_hausdorff",
    .doc = "The largest distance of a voxel of one mask from the nearest voxel of the other, as "
           "skimage.metrics.hausdorff_distance. 0 if both are empty, infinite if one is.",
    .citation = "skimage.metrics.hausdorff_distance",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(hausdorff),
    .result = FV_KIND_SCALAR,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "hausdorff(gaussian(a, 2) > 90, gaussian(a, 4) > 90)",
    .see = "dice jaccard distance compare",
};
