/* flip: an image mirrored along axes, as numpy.flip. */
#include "op/axes.h"
#include "op/op.h"

typedef struct {
    const char *axes;
} flip;

static const fv_param params[] = {
    FV_PARAM(flip, axes, .def = "", .doc = "axes that are turned round, as \"x\" or \"y x\"; left out: all spatial axes"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any image" }, FV_INPUT_END };

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    int                  axis[FV_MAX_DIMS], count;
    FV_TRY(fv__axes_pick(in, ((const flip *)i->params)->axes, axis, &count, error));
    fv__bytes_printf(text, "image[");
    for (int d = 0; d < in->ndim; d++) {
        bool turned = false;
        for (int k = 0; k < count; k++) turned = turned || axis[k] == d;
        fv__bytes_printf(text, "%s%s", d ? ", " : "", turned ? "::-1" : ":");
    }
    fv__bytes_printf(text, "]\n");
    return FV_OK;
}

const fv_op FV_OP(flip) = {
    .name = "flip",
    .family = "geometry",
    .brief = "mirror an image along axes",
    .also = "flipud, fliplr, flipdim, cv2.flip, mirror image, reverse, numpy.flip",
    .doc = "The first voxel becomes the last. A matrix to the world takes part, so that every voxel keeps its place there. "
           "Without a matrix the "
           "spacing stays positive and the origin is the lowest coordinate, as with x[::-1].",
    .citation = "numpy.flip",
    .example = "phantom(\"cells\", [200, 200]) |> flip(\"x\") |> write(\"mirrored.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(flip),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .see = "rotate90 transpose slice",
};
