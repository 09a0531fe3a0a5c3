/* rescale: map the values of an image onto a range. */
#include "op/op.h"

typedef struct {
    double min, max;
} rescale;

static const fv_param params[] = {
    FV_PARAM(rescale, min, .def = "0", .doc = "what the smallest value becomes"),
    FV_PARAM(rescale, max, .def = "1", .doc = "what the largest value becomes"),
    FV_PARAM_END,
};

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to map" },
    FV_INPUT_END,
};

/* Dividing first makes the greatest value come out as exactly 1. */
const fv_op FV_OP(rescale) = {
    .name = "rescale",
    .family = "arithmetic",
    .brief = "stretch the values of an image to a range",
    .version = 1,
    .also = "rescale_intensity, imadjust, mat2gray",
    .doc = "Maps the values linearly, so that the smallest becomes min and the largest becomes max. The result is float32. "
           "If all values are equal, the result is min everywhere.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(rescale),
    .result = FV_KIND_IMAGE,
    .expands = "convert((image - min(image)) / where(max(image) > min(image), max(image) - min(image), 1)"
               "    * (max - min) + min, \"float32\")",
    .example = "rescale(gaussian(phantom(\"cells\", [200, 200]), 3), 0, 255) |> convert(\"uint8\") |> "
               "write(\"stretched.png\")",
    .see = "convert clip colorize",
};
