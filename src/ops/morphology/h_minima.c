/* h_minima: marks minima that are deep enough. */
#include "ops/morphology/rebuild.h"

typedef struct {
    double  h;
    int64_t connectivity;
} h_minima;

static const fv_param params[] = {
    FV_PARAM(h_minima, h, .def = "1", .min = 0, .above = true, .doc = "smallest depth below the surroundings"),
    FV_PARAM(h_minima, connectivity, .def = "", .min = 1, .max = 3,
             .doc = "which voxels are neighbours: 1 by faces, 2 also by edges, 3 also by corners; left out: all of them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "real image" }, FV_INPUT_END };

static fv__rebuild rebuild_of(const void *p) {
    const h_minima *q = p;
    return (fv__rebuild){ .kind = FV__LOWERED, .erosion = true, .connectivity = q->connectivity, .h = q->h };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__rebuild b = rebuild_of(i->params);
    return fv__rebuild_infer(i, &b, &((h_minima *)i->params)->connectivity, error);
}

FV__REBUILD_PASSES

const fv_op FV_OP(h_minima) = {
    .name = "h_minima",
    .family = "morphology",
    .brief = "mark minima that lie at least h below their surroundings",
    .also = "imhmin, imextendedmin",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(h_minima),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "True at the voxels from which one must go up by at least h to reach a lower one. As skimage.morphology.h_minima "
           "with a footprint of the given connectivity, but bool. If all values differ by less than h, there are no minima. "
           "Floating-point values are compared as they are (scikit-image allows for some rounding). Minus infinity lies "
           "deeper than any h; nan counts as larger than infinity.",
    .citation = "Soille, Morphological Image Analysis, 2003, section 6.3.4",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(2) |> h_minima(20) |> dilate(disk(2)) |> write(\"basins.png\")",
    .see = "h_maxima local_minima watershed",
};
