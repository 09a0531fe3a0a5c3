/* psnr: peak signal to noise ratio, as skimage.metrics.peak_signal_noise_ratio. */
#include "ops/metrics/pair.h"

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "the true image" },
    { "b", FV_KIND_IMAGE, .doc = "an image of the same shape" },
    FV__PAIR_RANGE_INPUT,
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    FV_TRY(fv__pair_check(i, "a", "b", error));
    FV_TRY(fv__pair_range(i, 2, text, error));
    fv__bytes_printf(text, "10 * log10(square(range) / mse(a, b))");
    return FV_OK;
}

const fv_op FV_OP(psnr) = {
    .name = "psnr",
    .family = "metrics",
    .brief = "peak signal to noise ratio of two images, in decibels",
    .version = 1,
    .also = "peak_signal_noise_ratio",
    .doc = "10 log10(data_range² / mse), as skimage.metrics.peak_signal_noise_ratio. Equal images give infinity.",
    .citation = "skimage.metrics.peak_signal_noise_ratio",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "psnr(a, median(a, 3))",
    .see = "mse ssim compare",
};
