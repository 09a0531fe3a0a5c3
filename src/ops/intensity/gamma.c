/* gamma: brighter or darker middle tones, as skimage.exposure.adjust_gamma. */
#include "op/op.h"

typedef struct {
    double gamma, gain;
} gamma_;

static const fv_param params[] = {
    FV_PARAM(gamma_, gamma, .min = 0, .max = 1e3,
             .doc = "exponent: below 1 makes dark parts brighter, above 1 makes them darker"),
    FV_PARAM(gamma_, gain, .def = "1", .doc = "the result is multiplied by this"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image without negative values" }, FV_INPUT_END };

/* Real numbers are limited to no range, so their scale is 1. Integers are computed in float64; what is less than a whole number
 * by rounding alone counts as that number before fractions are cut off, so that a gamma of 1 changes nothing. */
static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const gamma_ *p = i->params;
    fv_dtype      dtype = i->in[0]->image.dtype;
    if (fv_dtype_is_complex(dtype) || dtype == FV_BOOL)
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: it must hold grey values", fv_dtype_name(dtype));
    if (fv_dtype_is_float(dtype)) {
        fv__bytes_printf(text, "image ** %.17g * %.17g", p->gamma, p->gain);
        return FV_OK;
    }
    double scale = ldexp(1, (int)fv_dtype_size(dtype) * 8 - fv_dtype_is_signed(dtype)) - 1;
    fv__bytes_printf(text, "convert((convert(image, \"float64\") / %.17g) ** %.17g * %.17g * %.17g, \"%s\")", scale, p->gamma,
                     scale, p->gain, fv_dtype_name(dtype));
    return FV_OK;
}

const fv_op FV_OP(gamma) = {
    .name = "gamma",
    .family = "intensity",
    .brief = "make the middle tones brighter or darker",
    .version = 1,
    .also = "adjust_gamma, imadjust_gamma, gamma_correction",
    .doc = "(image / largest value of its type) ** gamma, back in the range of the type, as skimage.exposure.adjust_gamma. The "
           "type of the image is kept: fractions are cut off, and what is too large becomes the largest value. The scale of "
           "floating-point images is 1. A negative value is 0 in the result of an integer image and nan otherwise, unless "
           "gamma is a whole number.",
    .citation = "skimage.exposure.adjust_gamma",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(gamma_),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .example = "phantom(\"cells\", [200, 200]) |> gamma(0.5) |> write(\"bright.png\")",
    .see = "rescale normalize equalize power",
};
