/* amplitude: absolute values of complex numbers. */
#include "ops/ptychography/complex_part.h"

static float value_of(float re, float im) { return sqrtf(re * re + im * im); }

const fv_op FV_OP(amplitude) = {
    .name = "amplitude",
    .family = "ptychography",
    .brief = "absolute value of complex numbers",
    .also = "modulus, magnitude",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "The root of the sum of the squared parts, as float32.",
    .example = "amplitude(make_probe(128, radius = 30, defocus = 300)) |> write(\"amplitude.tif\")",
    .see = "phase complex_image",
};
