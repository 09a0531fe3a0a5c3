/* crop: part of an image, by the names of its axes. */
#include "op/axes.h"
#include "op/op.h"

typedef struct {
    fv_numbers  start, stop;
    const char *axes;
} crop;

static const fv_param params[] = {
    FV_PARAM(crop, start, .min = -1e15, .max = 1e15, .unit = "px",
             .doc = "first voxel, one number or one per axis; negative: counted from the end"),
    FV_PARAM(crop, stop, .def = "", .min = -1e15, .max = 1e15, .unit = "px",
             .doc = "end, not included; negative: counted from the end; left out: the end of the image"),
    FV_PARAM(crop, axes, .def = "", .doc = "axes that these belong to, as \"z x\"; left out: all spatial axes"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to cut" }, FV_INPUT_END };

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    crop                *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    int                  axis[FV_MAX_DIMS], count;
    FV_TRY(fv__axes_pick(in, p->axes, axis, &count, error));
    FV_TRY(fv__numbers_spread(&p->start, count, "start", error));
    if (p->stop.count) FV_TRY(fv__numbers_spread(&p->stop, count, "stop", error));
    fv__bytes_printf(text, "image[");
    for (int d = 0; d < in->ndim; d++) {
        if (d) fv__bytes_printf(text, ", ");
        int k = 0;
        while (k < count && axis[k] != d) k++;
        if (k < count) fv__bytes_printf(text, "%.17g", p->start.value[k]);
        fv__bytes_printf(text, ":");
        if (k < count && p->stop.count) fv__bytes_printf(text, "%.17g", p->stop.value[k]);
    }
    fv__bytes_printf(text, "]\n");
    return FV_OK;
}

const fv_op FV_OP(crop) = {
    .name = "crop",
    .family = "geometry",
    .brief = "part of an image, by the names of its axes",
    .also = "imcrop, cut, subimage, roi, RegionOfInterest, trim",
    .doc = "crop(image, [10, 20], [90, 80], axes = \"y x\") is image[:, 10:90, 20:80] of a volume z y x. The part keeps its "
           "place in the "
           "world. A part that contains nothing is an error.",
    .citation = "numpy, basic indexing: https://numpy.org/doc/stable/user/basics.indexing.html",
    .example = "phantom(\"cells\", [200, 200]) |> crop([20, 50], [120, 180]) |> write(\"part.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(crop),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .see = "slice pad",
};
