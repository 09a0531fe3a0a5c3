/* remove_small: takes away objects of few voxels. */
#include "ops/morphology/sieve.h"

typedef struct {
    int64_t min_size, connectivity;
} remove_small;

static const fv_param params[] = {
    FV_PARAM(remove_small, min_size, .def = "64", .min = 0, .max = 0x1p62, .unit = "voxels",
             .doc = "objects with fewer voxels are removed"),
    FV_PARAM(remove_small, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "of masks, how voxels are connected: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool image, or label image" }, FV_INPUT_END };

static fv__sieve sieve_of(const void *p) {
    const remove_small *r = p;
    return (fv__sieve){ .connectivity = r->connectivity, .least = r->min_size, .most = INT64_MAX };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__sieve s = sieve_of(i->params);
    return fv__sieve_infer(i, &s, true, error);
}

static double cost(const fv_need *n) {
    (void)n;
    return 2;
}

FV__SIEVE_PASSES

const fv_op FV_OP(remove_small) = {
    .name = "remove_small",
    .family = "morphology",
    .brief = "remove objects with few voxels",
    .also = "remove_small_objects, bwareaopen, area_opening, size_filter",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(remove_small),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.morphology.remove_small_objects. Objects are the connected parts of a mask, or the labels of a label "
           "image (all voxels of a label count together). To fill small holes: !remove_small(!image, n).",
    .citation = "scikit-image: skimage.morphology.remove_small_objects",
    .example = "phantom(\"cells\", [200, 200], noise = 0) > 100 |> remove_small(350) |> write(\"large.png\")",
    .see = "keep clear_border open fill_holes",
};
