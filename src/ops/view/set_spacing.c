/* set_spacing: the same image with voxels of another size. */
#include "op/axes.h"
#include "op/op.h"
#include "op/place.h"
#include "op/unchanged.h"

typedef struct {
    fv_numbers  spacing;
    const char *units, *axes;
} set_spacing;

static const fv_param params[] = {
    FV_PARAM(set_spacing, spacing, .min = 0, .above = true, .max = 1e30,
             .doc = "distance between neighbouring voxels, one number or one per axis, slowest first: [2, 0.5, 0.5]"),
    FV_PARAM(set_spacing, units, .def = "",
             .doc = "what these numbers are counted in: \"um\", \"mm\", \"nm\" or the whole word; left out: as before"),
    FV_PARAM(set_spacing, axes, .def = "", .doc = "axes that are meant, as \"y x\" or \"t\"; left out: all spatial axes"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any image" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    set_spacing   *p = i->params;
    fv_image_type *out = &i->out->image;
    int            axis[FV_MAX_DIMS], count;
    char           unit[16];
    FV_TRY(fv__axes_pick(out, p->axes, axis, &count, error));
    FV_TRY(fv__numbers_spread(&p->spacing, count, "spacing", error));
    bool named = p->units && *p->units;
    fv__unit_name(p->units, unit);
    if (named && strlen(p->units) >= sizeof unit)
        return fv_fail(error, FV_ERROR_USAGE, "units = \"%.40s\" is too long for a unit; \"micrometer\" is one", p->units);
    for (int k = 0; k < count; k++) {
        int d = axis[k];
        fv__place_move(out, d, 0, p->spacing.value[k] / out->spacing[d]); /* the first voxel stays where it is */
        out->spacing[d] = p->spacing.value[k];
        if (named) memcpy(out->unit[d], unit, sizeof unit);
    }
    return FV_OK;
}

const fv_op FV_OP(set_spacing) = {
    .name = "set_spacing",
    .family = "view",
    .brief = "say how large the voxels of an image are",
    .also = "pixel_size, voxel_size, set_scale, set_pixel_size, set_voxel_size",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(set_spacing),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc =
        "For files that do not tell it, such as PNG and most TIFF files. The voxels do not change: resample brings an image to "
        "another spacing. measure then gives volumes and lengths in these units, resample goes by them, and files "
        "keep them. If the image has a matrix to the world, its directions and the place of the first voxel stay.",
    .example = "cells = phantom(\"cells\", [40, 200, 200]) |> set_spacing([2, 0.5, 0.5], \"um\")\n"
               "measure(label(cells > 60))",
    .see = "name_axes resample set_sform measure",
};
