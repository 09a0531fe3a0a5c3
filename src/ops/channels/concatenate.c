/* concatenate: images one behind the other along an axis that they have. */
#include "ops/channels/joined.h"

typedef struct {
    const char *axis;
} concatenate;

static const fv_param params[] = {
    FV_PARAM(concatenate, axis, .doc = "name of the axis along which the images follow each other"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const concatenate *p = i->params;
    fv_image_type     *out = &i->out->image;
    int                count, axis = fv__axis_find(out, p->axis);
    if (axis < 0) {
        char names[FV_MAX_DIMS * 10] = "";
        for (int d = 0; d < out->ndim; d++) strcat(strcat(names, d ? " " : ""), out->axis[d]);
        return fv_fail(error, FV_ERROR_USAGE, "axis = \"%.40s\": the first image has the axes %s; stack makes a new axis",
                       p->axis, names);
    }
    FV_TRY(fv__joined_count(i, &count, error));
    FV_TRY(fv__joined_alike(i, count, axis, error));
    for (int k = 1; k < count; k++) out->shape[axis] += i->in[k]->image.shape[axis];
    if (!strcmp(p->axis, "c")) fv__joined_channels(i, count);
    if (fv_image_type_bytes(out) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "the images together would be larger than can be counted");
    return FV_OK;
}

static fv__joining joining(const fv_need *n) {
    const concatenate *p = n->params;
    fv__joining        j = { .axis = fv__axis_find(&n->out->image, p->axis) };
    while (j.count < n->ninputs && n->in[j.count]->kind == FV_KIND_IMAGE) {
        j.start[j.count + 1] = j.start[j.count] + n->in[j.count]->image.shape[j.axis];
        j.count++;
    }
    return j;
}

FV_JOINED_PASSES

const fv_op FV_OP(concatenate) = {
    .name = "concatenate",
    .family = "channels",
    .brief = "put images one behind the other along an axis that they have",
    .version = 1,
    .also = "np.concatenate, hstack, vstack, hconcat, vconcat",
    .doc = "As numpy.concatenate, with the axis called by its name. The images must have the same type and axes; only along "
           "that axis their lengths may differ.",
    .inputs = fv__joined_inputs,
    .params = params,
    .params_size = sizeof(concatenate),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "a = phantom(\"cells\", [100, 100])\n"
               "concatenate(a, 255 - a |> convert(\"uint8\"), axis = \"x\") |> write(\"pair.png\")",
    .see = "stack split merge_channels montage",
};
