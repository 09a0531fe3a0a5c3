/* stack: images side by side along a new axis. */
#include "ops/channels/joined.h"

typedef struct {
    const char *axis;
    int64_t     position;
} stack;

static const fv_param params[] = {
    FV_PARAM(stack, axis, .doc = "name of the new axis: \"z\", \"t\", \"c\" or another of up to 7 letters"),
    FV_PARAM(stack, position, .def = "0", .min = -FV_MAX_DIMS, .max = FV_MAX_DIMS,
             .doc = "where the new axis comes among the others: 0 first, -1 last"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    stack         *p = i->params;
    fv_image_type *out = &i->out->image;
    int            count;
    size_t         length = strlen(p->axis);
    FV_TRY(fv__joined_count(i, &count, error));
    FV_TRY(fv__joined_alike(i, count, -1, error));
    if (!length || length > 7 || strchr(p->axis, ' '))
        return fv_fail(error, FV_ERROR_USAGE, "axis = \"%.40s\": must be one word of at most 7 letters", p->axis);
    if (fv__axis_find(out, p->axis) >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "axis = \"%s\": the images have it already; concatenate joins them along it",
                       p->axis);
    if (out->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the images have %d axes already: there is no room for another", out->ndim);
    if (p->position > out->ndim || p->position < -out->ndim - 1)
        return fv_fail(error, FV_ERROR_USAGE, "position = %lld: the images have %d axes, so it is at most %d",
                       (long long)p->position, out->ndim, out->ndim);
    if (p->position < 0) p->position += out->ndim + 1;
    fv__axis_insert(out, (int)p->position, p->axis, count);
    if (!strcmp(p->axis, "c")) fv__joined_channels(i, count);
    return FV_OK;
}

static fv__joining joining(const fv_need *n) { return fv__joining_fresh(n, (int)((const stack *)n->params)->position); }

FV_JOINED_PASSES

const fv_op FV_OP(stack) = {
    .name = "stack",
    .family = "channels",
    .brief = "put images side by side along a new axis",
    .version = 1,
    .also = "np.stack, dstack, cat",
    .doc = "As numpy.stack. The images must have the same type, axes and lengths. To stack all files of a pattern, use "
           "read(\"*.tif\", stack = \"z\").",
    .inputs = fv__joined_inputs,
    .params = params,
    .params_size = sizeof(stack),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "a = phantom(\"cells\", [100, 100])\n"
               "stack(a, gaussian(a, 4) |> convert(\"uint8\"), axis = \"z\") |> montage(columns = 2) |> write(\"both.png\")",
    .see = "concatenate split merge_channels read",
};
