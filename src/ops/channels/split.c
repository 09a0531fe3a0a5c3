/* split: one of the pieces into which an axis is cut, as numpy.array_split. */
#include "op/axes.h"
#include "op/op.h"

typedef struct {
    int64_t     index, parts;
    const char *axis;
} split;

static const fv_param params[] = {
    FV_PARAM(split, index, .doc = "number of the piece, from 0; negative numbers count from the end"),
    FV_PARAM(split, axis, .def = "c", .doc = "name of the axis that is cut"),
    FV_PARAM(split, parts, .def = "0", .min = 0, .max = 1e9,
             .doc = "into how many pieces; 0: every voxel of the axis is a piece, and the piece does not have the axis"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to cut" }, FV_INPUT_END };

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const split         *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    int                  axis = fv__axis_find(in, p->axis);
    char                 names[FV_MAX_DIMS * 10] = "";
    for (int d = 0; d < in->ndim; d++) strcat(strcat(names, d ? " " : ""), in->axis[d]);
    if (axis < 0) return fv_fail(error, FV_ERROR_USAGE, "axis = \"%.40s\": the image has the axes %s", p->axis, names);
    int64_t length = in->shape[axis], parts = p->parts ? p->parts : length, index = p->index < 0 ? p->index + parts : p->index;
    if (parts > length)
        return fv_fail(error, FV_ERROR_USAGE, "parts = %lld: the axis %s has only %lld voxels", (long long)parts, p->axis,
                       (long long)length);
    if (index < 0 || index >= parts)
        return fv_fail(error, FV_ERROR_USAGE, "index = %lld: there are %lld pieces along %s, counted from 0", (long long)p->index,
                       (long long)parts, p->axis);
    if (!p->parts && in->ndim == 1)
        return fv_fail(error, FV_ERROR_USAGE, "the image has no other axis than %s: one of its voxels is no image", p->axis);
    int64_t size = length / parts, longer = length % parts; /* the first pieces are one longer */
    int64_t start = index * size + FV_MIN(index, longer), end = start + size + (index < longer);
    fv__bytes_printf(text, "image[");
    for (int d = 0; d < axis; d++) fv__bytes_printf(text, ":, ");
    if (p->parts)
        fv__bytes_printf(text, "%lld:%lld]", (long long)start, (long long)end);
    else
        fv__bytes_printf(text, "%lld]", (long long)start);
    return FV_OK;
}

const fv_op FV_OP(split) = {
    .name = "split",
    .family = "channels",
    .brief = "take one channel, or one of several equal pieces along an axis",
    .version = 1,
    .also = "array_split, split_channels, imsplit, extract_channel",
    .doc = "split(image, 1) is the second channel, wherever the image has its axis c. With parts, the axis is cut into that "
           "many pieces as numpy.array_split cuts it, and the piece keeps the axis.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(split),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .example = "a = colorize(phantom(\"cells\", [200, 200]), map = \"heat\")\n"
               "split(a, 1) |> write(\"green.png\")",
    .see = "stack concatenate merge_channels slice luminance",
};
