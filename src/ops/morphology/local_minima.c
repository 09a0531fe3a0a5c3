/* local_minima: marks voxels and plateaus that are lower than all around them. */
#include "ops/morphology/rebuild.h"

typedef struct {
    int64_t connectivity;
} local_minima;

static const fv_param params[] = {
    FV_PARAM(local_minima, connectivity, .def = "", .min = 1, .max = 3,
             .doc = "which voxels are neighbours: 1 by faces, 2 also by edges, 3 also by corners; left out: all of them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image" }, FV_INPUT_END };

static fv__rebuild rebuild_of(const void *p) {
    const local_minima *q = p;
    return (fv__rebuild){ .kind = FV__STEPPED, .erosion = true, .connectivity = q->connectivity };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__rebuild b = rebuild_of(i->params);
    return fv__rebuild_infer(i, &b, &((local_minima *)i->params)->connectivity, error);
}

FV__REBUILD_PASSES

const fv_op FV_OP(local_minima) = {
    .name = "local_minima",
    .family = "morphology",
    .brief = "mark voxels and plateaus that are lower than everything around them",
    .also = "imregionalmin, regional_minima",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(local_minima),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.morphology.local_minima, borders included. A plateau is a connected set of equal values; it is a "
           "minimum if all its neighbours are higher. An image with only one value has no minima. Nan counts as larger than "
           "infinity. watershed(image, label(local_minima(image))) floods from all of them.",
    .citation = "scikit-image: skimage.morphology.local_minima",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(3) |> local_minima() |> dilate(disk(2)) |> write(\"minima.png\")",
    .see = "local_maxima h_minima watershed",
};
