/* fill_holes: background that does not reach the border of the image becomes foreground. */
#include "ops/morphology/sieve.h"

typedef struct {
    int64_t connectivity;
} fill_holes;

static const fv_param params[] = {
    FV_PARAM(fill_holes, connectivity, .def = "1", .min = 1, .max = 3,
             .doc = "how background is connected: 1 by faces, 2 also by edges, 3 also by corners"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool image" }, FV_INPUT_END };

static fv__sieve sieve_of(const void *p) {
    return (fv__sieve){
        .connectivity = ((const fill_holes *)p)->connectivity, .border = 1, .least = 1, .most = INT64_MAX, .holes = true
    };
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv__sieve s = sieve_of(i->params);
    return fv__sieve_infer(i, &s, false, error);
}

static double cost(const fv_need *n) {
    (void)n;
    return 2;
}

FV__SIEVE_PASSES

const fv_op FV_OP(fill_holes) = {
    .name = "fill_holes",
    .family = "morphology",
    .brief = "fill holes: background that does not reach the border of the image",
    .also = "binary_fill_holes, imfill, remove_small_holes, fillholes",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fill_holes),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "As scipy.ndimage.binary_fill_holes with structure = generate_binary_structure(ndim, connectivity). In a volume, "
           "a hole must be closed on all sides; holes of single slices are not filled. For grey images, use "
           "reconstruct(seed, image, method = \"erosion\").",
    .citation = "Soille, Morphological Image Analysis, 2003, section 6.3.7",
    .example = "phantom(\"foam\", [200, 200], size = 50) > 120 |> fill_holes() |> write(\"filled.png\")",
    .see = "close remove_small reconstruct",
};
