/* reconstruct: grows a seed image as far as a mask image allows. */
#include "ops/morphology/rebuild.h"

typedef struct {
    fv_choice method;
    int64_t   connectivity;
} reconstruct;

static const fv_param params[] = {
    FV_PARAM(reconstruct, method, .def = "dilation", .choices = "dilation|erosion",
             .doc = "dilation: the seed rises under the mask; erosion: it sinks onto the mask"),
    FV_PARAM(reconstruct, connectivity, .def = "", .min = 1, .max = 3,
             .doc = "which voxels are neighbours: 1 by faces, 2 also by edges, 3 also by corners; left out: all of them"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "seed", FV_KIND_IMAGE, .doc = "where reconstruction starts" },
    { "mask", FV_KIND_IMAGE, .doc = "image of the same shape and type, the limit of the growth" },
    FV_INPUT_END,
};

static fv__rebuild rebuild_of(const void *p) {
    const reconstruct *r = p;
    return (fv__rebuild){ .kind = FV__SEEDED, .erosion = r->method.index == 1, .connectivity = r->connectivity };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__rebuild b = rebuild_of(i->params);
    return fv__rebuild_infer(i, &b, &((reconstruct *)i->params)->connectivity, error);
}

FV__REBUILD_PASSES

const fv_op FV_OP(reconstruct) = {
    .name = "reconstruct",
    .family = "morphology",
    .brief = "grow a seed image as far as a mask image allows",
    .also = "imreconstruct, morphological_reconstruction, reconstruction, geodesic_dilation",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(reconstruct),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As skimage.morphology.reconstruction with a footprint of the given connectivity. There are two differences: the "
           "type is kept (scikit-image gives float64), and a seed above the mask (for an erosion: below it) is brought to "
           "the mask (scikit-image refuses it). Nan counts as larger than infinity.",
    .citation = "Vincent: Morphological grayscale reconstruction in image analysis, IEEE Trans. Image Processing 2, 1993",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(reconstruct(erode(a, disk(6)), a), \"smoothed.png\")",
    .see = "fill_holes h_maxima hysteresis",
};
