/* provided: an image that the calling program reads for the run, piece by piece. */
#include "op/array.h"

static const fv_param params[] = {
    FV_PARAM(fv_array_params, name, .doc = "name under which the program provides the image"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    (void)error;
    i->out->kind = FV_KIND_IMAGE;
    i->out->image = ((const fv_array_params *)i->params)->type;
    return FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    (void)error;
    const fv_array_params *p = params_;
    fv__hasher_add(hasher, &p->content, sizeof p->content);
    return FV_OK;
}

static fv_status layout(const void *params_, fv_layout *out, fv_error *error) {
    (void)error;
    const fv_array_params *p = params_;
    memcpy(out->chunk, p->chunk, sizeof out->chunk);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_array_params *p = r->need.params;
    const fv_block        *out = r->out;
    return p->read(p->context, out->region.start, out->region.size, out->stride, out->data, error);
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(provided) = {
    .name = "provided",
    .role = FV_OP_PROVIDED,
    .family = "source",
    .brief = "an image that the calling program reads piece by piece",
    .version = 1,
    .doc = "Only for programs that use the library. The image is used under its own name, like a variable.",
    .params = params,
    .params_size = sizeof(fv_array_params),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .identity = identity,
    .layout = layout,
    .passes = passes,
    .see = "array read",
};
