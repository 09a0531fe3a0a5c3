/* normalize: images brought to a common brightness. */
#include "op/op.h"

typedef struct {
    fv_choice  method;
    fv_numbers quantiles;
} normalize;

enum { ZSCORE, QUANTILE };

static const fv_param params[] = {
    FV_PARAM(normalize, method, .def = "zscore", .choices = "zscore|quantile",
             .doc = "zscore: mean 0 and standard deviation 1; quantile: the two quantiles become 0 and 1, and what lies outside "
                    "is cut off"),
    FV_PARAM(normalize, quantiles, .def = "[0.01, 0.99]", .min = 0, .max = 1, .doc = "the two quantiles, for that method"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to normalize" }, FV_INPUT_END };

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const normalize *p = i->params;
    fv_dtype         dtype = i->in[0]->image.dtype;
    double           low = p->quantiles.value[0], high = p->quantiles.value[1];
    if (fv_dtype_is_complex(dtype)) return fv_fail(error, FV_ERROR_USAGE, "image is %s: it must be real", fv_dtype_name(dtype));
    if (p->quantiles.count != 2 || !(low < high))
        return fv_fail(error, FV_ERROR_USAGE, "quantiles: two numbers are needed, the first below the second");
    if (p->method.index == ZSCORE)
        fv__bytes_printf(text, "(image - mean(image)) / where(std(image) > 0, std(image), 1)");
    else
        fv__bytes_printf(text,
                         "low = quantile(image, %.17g)\nhigh = quantile(image, %.17g)\n"
                         "clip((image - low) / where(high > low, high - low, 1), 0, 1)",
                         low, high);
    return FV_OK;
}

const fv_op FV_OP(normalize) = {
    .name = "normalize",
    .family = "intensity",
    .brief = "bring images to a common brightness and contrast",
    .version = 1,
    .also = "zscore, standardize, NormalizeImageFilter, stretchlim, percentile_stretch",
    .doc =
        "zscore subtracts the mean and divides by the standard deviation, as scipy.stats.zscore does with all values. quantile "
        "stretches as skimage.exposure.rescale_intensity does between two quantiles: a few very bright or dark voxels then "
        "do not decide. If all values are equal, the result is 0. The result is float32; it is float64 for images of "
        "float64 and of 32 or 64-bit integers.",
    .citation = "scipy.stats.zscore; skimage.exposure.rescale_intensity",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(normalize),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .example = "normalize(phantom(\"cells\", [200, 200]), method = \"quantile\") * 255 |> convert(\"uint8\") |> "
               "write(\"stretched.png\")",
    .see = "rescale equalize match_histogram quantile flatfield",
};
