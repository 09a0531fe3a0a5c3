/* minus_log: from what was transmitted to line integrals of attenuation. */
#include "op/op.h"

typedef struct {
    double least;
} minus_log;

static const fv_param params[] = {
    FV_PARAM(minus_log, least, .def = "1e-6", .above = true, .max = 1, .doc = "smaller values are taken as this"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "share of the beam that was transmitted" }, FV_INPUT_END };

const fv_op FV_OP(minus_log) = {
    .name = "minus_log",
    .family = "tomography",
    .also = "minuslog",
    .stage = "filter",
    .brief = "minus the logarithm: from transmitted light to attenuation along each ray",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(minus_log),
    .result = FV_KIND_IMAGE,
    .expands = "negative(log(maximum(image, least)))",
    .doc = "Beer and Lambert's law: the transmitted share falls exponentially with the attenuation along the ray. Dead "
           "pixels at or below 0 give a large finite number instead of infinity.",
    .example = "p = xray(phantom(\"shepp-logan\", [64, 128, 128]), parallel(range(0, 175, 5))) / 20\n"
               "minus_log(exp(-p)) |> write(\"lines.tif\")",
    .see = "flatfield log expose",
};
