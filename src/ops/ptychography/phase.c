/* phase: angles of complex numbers. */
#include "base/math.h"
#include "ops/ptychography/complex_part.h"

static float value_of(float re, float im) { return (float)fv__atan2((double)im, (double)re); }

const fv_op FV_OP(phase) = {
    .name = "phase",
    .family = "ptychography",
    .brief = "angle of complex numbers, in radians",
    .also = "arg, np.angle",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "From -pi to pi, 0 for the number 0, as float32.",
    .example = "phase(make_probe(128, radius = 30, defocus = 300)) |> write(\"phase.tif\")",
    .see = "amplitude complex_image",
};
