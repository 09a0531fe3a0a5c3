/* invert_transform: the way back. */
#include "ops/registration/matrices.h"

enum { TRANSFORMS = 1 };

static const fv_input inputs[] = { { "transform", FV_KIND_IMAGE, .doc = "a linear transform, or one for each time" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) { return fv__matrices_infer(i, inputs, TRANSFORMS, error); }

static fv_status make(const fv_need *n, double (*const in)[12], double out[12], fv_error *error) {
    (void)n;
    if (!fv__matrix_invert(in[0], out))
        return fv_fail(error, FV_ERROR_INPUT, "transform is singular: it presses the image flat, and there is no way back");
    return FV_OK;
}

FV_MATRICES_PASSES

const fv_op FV_OP(invert_transform) = {
    .name = "invert_transform",
    .family = "registration",
    .brief = "turn a transform round, from moving to fixed",
    .also = "GetInverse, convert_xfm -inverse, inverse_transform",
    .doc = "transform(fixed, invert_transform(t), onto = moving) brings the fixed image to the moving one, where "
           "t = register(moving, fixed).",
    .example = "fixed = phantom(\"cells\", [200, 200])\n"
               "moving = rotate(fixed, 5, reshape = false)\n"
               "back = invert_transform(register(moving, fixed))\n"
               "transform(fixed, back, onto = moving) |> write(\"turned.tif\")",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .see = "concatenate_transforms register transform",
};
