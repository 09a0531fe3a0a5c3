/* correct_bias: an image without the uneven brightness that bias_field finds. */
#include "ops/intensity/bias_spline.h"

enum { IMAGE, MASK };

static const fv_param params[] = { FV_BIAS_PARAMS, FV_PARAM_END };
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with an uneven brightness" },
    { "mask", FV_KIND_IMAGE, .optional = true,
      .doc = "voxels that count, those of the object; left out: those above Otsu's threshold" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    (void)error;
    fv__bytes_printf(text, "image / bias_field(image, %s%s" FV_BIAS_SAME ")\n",
                     i->in[MASK]->kind == FV_KIND_IMAGE ? "mask, " : "",
                     ((const fv__bias *)i->params)->shrink.count ? "shrink = shrink, " : "");
    return FV_OK;
}

const fv_op FV_OP(correct_bias) = {
    .name = "correct_bias",
    .family = "intensity",
    .brief = "make the brightness of an image even, as N4 does with magnetic resonance images",
    .also = "N4BiasFieldCorrection, N4ITK, N3, nu_correct, FAST, intensity inhomogeneity, shading correction",
    .version = 1,
    .doc = "The image divided by its bias_field. Everything else stays as it is, so grey values of one tissue become alike "
           "wherever they lie; give a mask of the object if the background is not dark. Values at or below 0 do not count.",
    .citation = "Tustison et al., N4ITK: improved N3 bias correction, IEEE TMI 29, 2010",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fv__bias),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .example = "head = phantom(\"t1\", [48, 64, 64])\n"
               "even = correct_bias(head)\n"
               "rescale(even[24], 0, 255) |> convert(\"uint8\") |> write(\"even.png\")",
    .see = "bias_field bias_lattice background flatfield normalize",
};
