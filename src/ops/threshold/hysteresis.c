/* hysteresis: what is bright, and all that hangs together with it. */
#include "op/op.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with dark and bright parts" },
    { "low", FV_KIND_SCALAR, .doc = "voxels above this are kept if they are connected to a bright one" },
    { "high", FV_KIND_SCALAR, .doc = "voxels above this are bright" },
    FV_INPUT_END,
};

const fv_op FV_OP(hysteresis) = {
    .name = "hysteresis",
    .family = "threshold",
    .brief = "keep what lies above low, if it is connected to something above high",
    .also = "apply_hysteresis_threshold, hysteresis_threshold",
    .version = 1,
    .doc = "Equal to skimage.filters.apply_hysteresis_threshold: of the parts of image > low that are connected by faces, "
           "those that contain a voxel of image > high. If low is larger than high, high is used for both. Nan lies above "
           "nothing.",
    .citation = "J. Canny, A computational approach to edge detection, IEEE Trans. Pattern Anal. Mach. Intell. 8, 1986",
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .expands = "reconstruct(image > high, image > minimum(low, high), connectivity = 1)",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(1) |> hysteresis(60, 180) |> write(\"cells.png\")",
    .see = "otsu reconstruct label",
};
