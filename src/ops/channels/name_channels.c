/* name_channels: the same image, whose channels have names, colours and ranges. */
#include "op/channels.h"
#include "op/colors.h"
#include "op/unchanged.h"

typedef struct {
    const char *names, *colors;
    fv_numbers  ranges;
} name_channels;

static const fv_param params[] = {
    FV_PARAM(name_channels, names, .def = "", .doc = FV__CHANNELS_NAMES_DOC "; left out: as they are"),
    FV_PARAM(name_channels, colors, .def = "",
             .doc = "a colour for each channel, such as \"cyan red\": " FV__COLORS_DOC "; left out: as they are"),
    FV_PARAM(name_channels, ranges, .def = "", .blank = true, .doc = FV__CHANNELS_RANGES_DOC "; left out: as they are"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image with an axis c, or a single channel" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const name_channels *p = i->params;
    return fv__channels_say(&i->out->image, p->colors, p->names, &p->ranges, error);
}

const fv_op FV_OP(name_channels) = {
    .name = "name_channels",
    .family = "channels",
    .brief = "give names and colours to the channels of an image",
    .also = "set_channel_names, channel_colors, set_lut",
    .version = 1,
    .doc =
        "The voxels do not change. Names and colours stay with the channels, also when the image is filtered or cut; composite "
        "uses them, and OME-Zarr, OME-TIFF and hyperstacks of ImageJ keep them. Ranges are forgotten where values are computed "
        "anew.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(name_channels),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "cells = stack(phantom(\"cells\", [200, 200], seed = 1), phantom(\"cells\", [200, 200], seed = 2), axis = \"c\")\n"
               "named = name_channels(cells, \"DAPI actin\", \"blue yellow\", ranges = [30, 200, 30, 200])\n"
               "write(named, \"cells.zarr\")\n"
               "composite(named) |> write(\"cells.png\")",
    .see = "merge_channels composite name_axes",
};
