/* concatenate_transforms: two transforms as one. */
#include "ops/registration/matrices.h"

enum { TRANSFORMS = 2 };

static const fv_input inputs[] = {
    { "first", FV_KIND_IMAGE, .doc = "from the fixed image to one between, as register(between, fixed)" },
    { "second", FV_KIND_IMAGE, .doc = "from there to the moving one, as register(moving, between)" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) { return fv__matrices_infer(i, inputs, TRANSFORMS, error); }

static fv_status make(const fv_need *n, double (*const in)[12], double out[12], fv_error *error) {
    (void)n;
    (void)error;
    fv__matrix_chain(in[1], in[0], out);
    return FV_OK;
}

FV_MATRICES_PASSES

const fv_op FV_OP(concatenate_transforms) = {
    .name = "concatenate_transforms",
    .family = "registration",
    .brief = "make one transform of two that follow each other",
    .also = "CompositeTransform, convert_xfm -concat, ComposeMultiTransform",
    .doc =
        "A place of the fixed image goes through first, and then through second. An image that goes through both is interpolated "
        "only once: a functional scan to the T1, and that to a template.",
    .example = "template = phantom(\"cells\", [200, 200])\n"
               "between = rotate(template, 5, reshape = false)\n"
               "moving = shift(between, [6, -4])\n"
               "t = concatenate_transforms(register(between, template), register(moving, between, kind = \"shift\"))\n"
               "transform(moving, t, onto = template) |> write(\"aligned.tif\")",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .see = "invert_transform register transform",
};
