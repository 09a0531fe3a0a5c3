/* mse: mean squared difference, as skimage.metrics.mean_squared_error. */
#include "ops/metrics/pair.h"

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "an image" },
    { "b", FV_KIND_IMAGE, .doc = "an image of the same shape" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    FV_TRY(fv__pair_check(i, "a", "b", error));
    fv__bytes_printf(text, "mean(square(convert(a, \"float64\") - convert(b, \"float64\")))");
    return FV_OK;
}

const fv_op FV_OP(mse) = {
    .name = "mse",
    .family = "metrics",
    .brief = "mean squared difference of two images",
    .version = 1,
    .also = "mean_squared_error, immse",
    .doc = "As skimage.metrics.mean_squared_error, computed in float64. sqrt(mse(a, b)) is the root mean squared error. Nan if a "
           "value is nan.",
    .citation = "skimage.metrics.mean_squared_error",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "mse(a, gaussian(a, 1))",
    .see = "psnr ssim compare",
};
