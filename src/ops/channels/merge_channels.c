/* merge_channels: images of the same place become the channels of one. */
#include "ops/channels/joined.h"

/* Behind t and whatever comes before the spatial axes, as OME has it. */
static int place_of_channels(const fv_image_type *image) {
    int spatial[FV_MAX_DIMS];
    return fv_image_type_spatial(image, spatial) ? spatial[0] : 0;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_image_type *out = &i->out->image;
    int            count;
    FV_TRY(fv__joined_count(i, &count, error));
    FV_TRY(fv__joined_alike(i, count, -1, error));
    if (fv__axis_find(out, "c") >= 0)
        return fv_fail(error, FV_ERROR_USAGE,
                       "the images have an axis c already: concatenate(..., axis = \"c\") joins them, and split takes one "
                       "channel");
    if (out->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the images have %d axes already: there is no room for another", out->ndim);
    fv__axis_insert(out, place_of_channels(out), "c", count);
    return FV_OK;
}

static fv__joining joining(const fv_need *n) { return fv__joining_fresh(n, fv__axis_find(&n->out->image, "c")); }

FV_JOINED_PASSES

const fv_op FV_OP(merge_channels) = {
    .name = "merge_channels",
    .family = "channels",
    .brief = "make one image with channels from several images of the same place",
    .version = 1,
    .also = "multichannel, cat_channels",
    .doc = "Gives an image with an axis c before z, y and x, as OME-Zarr has it. composite shows it in colours.",
    .inputs = fv__joined_inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "nuclei = phantom(\"cells\", [200, 200], seed = 1)\n"
               "actin  = phantom(\"cells\", [200, 200], seed = 2)\n"
               "both   = merge_channels(nuclei, actin)\n"
               "composite(both, colors = \"cyan red\") |> write(\"both.png\")",
    .see = "composite split stack colocalization",
};
