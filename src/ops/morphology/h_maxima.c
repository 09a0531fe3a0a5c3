/* h_maxima: marks maxima that stand out by a height. */
#include "ops/morphology/rebuild.h"

typedef struct {
    double  h;
    int64_t connectivity;
} h_maxima;

static const fv_param params[] = {
    FV_PARAM(h_maxima, h, .def = "1", .min = 0, .above = true, .doc = "smallest height above the surroundings"),
    FV_PARAM(h_maxima, connectivity, .def = "", .min = 1, .max = 3,
             .doc = "which voxels are neighbours: 1 by faces, 2 also by edges, 3 also by corners; left out: all of them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image" }, FV_INPUT_END };

static fv__rebuild rebuild_of(const void *p) {
    const h_maxima *q = p;
    return (fv__rebuild){ .kind = FV__LOWERED, .erosion = false, .connectivity = q->connectivity, .h = q->h };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__rebuild b = rebuild_of(i->params);
    return fv__rebuild_infer(i, &b, &((h_maxima *)i->params)->connectivity, error);
}

FV__REBUILD_PASSES

const fv_op FV_OP(h_maxima) = {
    .name = "h_maxima",
    .family = "morphology",
    .brief = "mark maxima that stand out by at least h",
    .also = "imhmax, imextendedmax",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(h_maxima),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "True at the voxels from which one must go down by at least h to reach a higher one. As "
           "skimage.morphology.h_maxima with a footprint of the given connectivity, but bool. If all values differ by less "
           "than h, there are no maxima. Floating-point values are compared as they are (scikit-image allows for some "
           "rounding). Infinity stands out by any h; nan counts as larger than infinity.",
    .citation = "Soille, Morphological Image Analysis, 2003, section 6.3.4",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(2) |> h_maxima(20) |> dilate(disk(2)) |> write(\"tops.png\")",
    .see = "h_minima local_maxima peaks watershed",
};
