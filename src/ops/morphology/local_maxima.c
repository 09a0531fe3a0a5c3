/* local_maxima: marks voxels and plateaus that are higher than all around them. */
#include "ops/morphology/rebuild.h"

typedef struct {
    int64_t connectivity;
} local_maxima;

static const fv_param params[] = {
    FV_PARAM(local_maxima, connectivity, .def = "", .min = 1, .max = 3,
             .doc = "which voxels are neighbours: 1 by faces, 2 also by edges, 3 also by corners; left out: all of them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image" }, FV_INPUT_END };

static fv__rebuild rebuild_of(const void *p) {
    const local_maxima *q = p;
    return (fv__rebuild){ .kind = FV__STEPPED, .erosion = false, .connectivity = q->connectivity };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__rebuild b = rebuild_of(i->params);
    return fv__rebuild_infer(i, &b, &((local_maxima *)i->params)->connectivity, error);
}

FV__REBUILD_PASSES

const fv_op FV_OP(local_maxima) = {
    .name = "local_maxima",
    .family = "morphology",
    .brief = "mark voxels and plateaus that are higher than everything around them",
    .also = "maxima, imregionalmax, regional_maxima, find_maxima",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(local_maxima),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.morphology.local_maxima, borders included. A plateau is a connected set of equal values; it is a "
           "maximum if all its neighbours are lower. An image with only one value has no maxima. Nan counts as larger than "
           "infinity.",
    .citation = "scikit-image: skimage.morphology.local_maxima",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(3) |> local_maxima() |> dilate(disk(2)) |> write(\"maxima.png\")",
    .see = "local_minima h_maxima peaks",
};
