/* merge_channels: images of the same place become the channels of one. */
#include "op/channels.h"
#include "op/colors.h"
#include "ops/channels/joined.h"

typedef struct {
    const char *colors, *names;
    fv_numbers  ranges;
} merge_channels;

static const fv_param params[] = {
    FV_PARAM(merge_channels, colors, .def = "",
             .doc = "a colour for each channel, such as \"cyan red\": " FV__COLORS_DOC "; left out: those that the images have"),
    FV_PARAM(merge_channels, names, .def = "", .doc = FV__CHANNELS_NAMES_DOC "; left out: those that the images have"),
    FV_PARAM(merge_channels, ranges, .def = "", .blank = true, .doc = FV__CHANNELS_RANGES_DOC),
    FV_PARAM_END,
};

/* Behind t and whatever comes before the spatial axes, as OME has it. */
static int place_of_channels(const fv_image_type *image) {
    int spatial[FV_MAX_DIMS];
    return fv_image_type_spatial(image, spatial) ? spatial[0] : 0;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const merge_channels *p = i->params;
    fv_image_type        *out = &i->out->image;
    int                   count;
    FV_TRY(fv__joined_count(i, &count, error));
    FV_TRY(fv__joined_alike(i, count, -1, error));
    if (fv__axis_find(out, "c") >= 0)
        return fv_fail(error, FV_ERROR_USAGE,
                       "the images have an axis c already: concatenate(..., axis = \"c\") joins them, and split takes one "
                       "channel");
    if (out->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the images have %d axes already: there is no room for another", out->ndim);
    fv__axis_insert(out, place_of_channels(out), "c", count);
    fv__joined_channels(i, count);
    return fv__channels_say(out, p->colors, p->names, &p->ranges, error);
}

static fv__joining joining(const fv_need *n) { return fv__joining_fresh(n, fv__axis_find(&n->out->image, "c")); }

FV_JOINED_PASSES

const fv_op FV_OP(merge_channels) = {
    .name = "merge_channels",
    .family = "channels",
    .brief = "make one image with channels from several images of the same place",
    .version = 2,
    .also = "multichannel, cat_channels",
    .doc = "Gives an image with an axis c before z, y and x, as OME-Zarr has it. Names, colours and ranges stay with the "
           "channels, also when the image is filtered or cut. composite shows the channels in their colours, and OME-Zarr "
           "and hyperstacks of ImageJ keep them; OME-TIFF keeps names and colours, and has no place for ranges. Ranges "
           "are forgotten where values are computed anew.",
    .inputs = fv__joined_inputs,
    .params = params,
    .params_size = sizeof(merge_channels),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "nuclei = phantom(\"cells\", [200, 200], seed = 1)\n"
               "actin  = phantom(\"cells\", [200, 200], seed = 2)\n"
               "both   = merge_channels(nuclei, actin, colors = \"cyan red\", names = \"DAPI actin\")\n"
               "composite(both) |> write(\"both.png\")\n"
               "write(both, \"both.ome.tif\")",
    .see = "name_channels composite split stack colocalization",
};
