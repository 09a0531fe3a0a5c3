/* hysteresis: what is bright, and all that hangs together with it. */
#include "op/op.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with dark and bright parts" },
    { "low", FV_KIND_SCALAR, .doc = "parts above this are kept where they touch a bright part" },
    { "high", FV_KIND_SCALAR, .doc = "parts above this are bright" },
    FV_INPUT_END,
};

const fv_op FV_OP(hysteresis) = {
    .name = "hysteresis", .family = "threshold", .brief = "what lies above low and hangs together with something above high",
    .version = 1,
    .doc = "Equal to skimage.filters.apply_hysteresis_threshold: of the face-connected parts of image > low those that hold a "
           "voxel of image > high. A low above high counts as high. Nan lies above nothing.",
    .citation = "J. Canny, A computational approach to edge detection, IEEE Trans. Pattern Anal. Mach. Intell. 8, 1986",
    .inputs = inputs, .result = FV_KIND_IMAGE,
    .expands = "reconstruct(image > high, image > minimum(low, high), connectivity = 1)",
    .example = "phantom(\"cells\", [64, 64]) |> hysteresis(60, 120) |> write(\"cells.png\")",
};
