/* name_axes: the same image with other names for its axes. */
#include "op/axes.h"
#include "op/op.h"
#include "op/unchanged.h"

typedef struct {
    const char *axes;
} name_axes;

static const fv_param params[] = {
    FV_PARAM(name_axes, axes, .doc = "a name for each axis, slowest first, separated by blanks: \"angle z x\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any image" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    return fv__axes_name(&i->out->image, ((const name_axes *)i->params)->axes, error);
}

const fv_op FV_OP(name_axes) = {
    .name = "name_axes",
    .family = "view",
    .brief = "rename the axes of an image",
    .also = "set_axes, axes_order",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(name_axes),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "The voxels do not change. Names decide what operators do along an axis: z, y and x are space, angle counts "
           "projections. A direction matrix is kept, unless x, y or z move to another axis. read(file, axes = ...) does the "
           "same for a file.",
    .example = "stack = phantom(\"shepp-logan\", [16, 128, 128])\n"
               "name_axes(stack, \"t y x\") |> project(\"t\", \"mean\") |> write(\"mean-over-time.tif\")",
    .see = "read slice",
};
