/* fold: one image from all images of a collection. What project does along their axis item. */
#include "op/axes.h"
#include "op/op.h"

typedef struct {
    fv_choice   method;
    const char *axis;
} fold;

static const fv_param params[] = {
    FV_PARAM(fold, method, .def = "mean", .choices = "max|min|mean|sum|std|median",
             .doc = "what to compute from all images, voxel by voxel"),
    FV_PARAM(fold, axis, .def = "item", .axis = true, .own = true, .doc = "that of the items"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "images of a collection, all of the same shape" },
                                   FV_INPUT_END };

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    if (fv__axis_find(&i->in[0]->image, "item") < 0)
        return fv_fail(error, FV_ERROR_USAGE,
                       "image is one image; a collection such as read(\"scans/*.tif\") belongs here. project does the same along "
                       "an axis of one image");
    fv__bytes_printf(text, "project(image, axis, method)");
    return FV_OK;
}

const fv_op FV_OP(fold) = {
    .name = "fold",
    .family = "view",
    .brief = "one image from all images of a collection: their mean, sum, maximum, median and so on",
    .also = "reduce, accumulate, mean_image, average_image",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fold),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .doc =
        "The same as project(c, \"item\", method). Sums are exact and rounded once, so the result does not depend on the order "
        "of the files, and not on who computes what. All images must have the same shape, type and place.",
    .example = "c = name_axes(phantom(\"cells\", [8, 200, 200]), \"item y x\")\nfold(c, \"max\") |> write(\"brightest.png\")",
    .see = "project together group filter",
};
