/* array: an image that the calling program holds in memory. */
#include "op/array.h"

static const fv_param params[] = {
    FV_PARAM(fv_array_params, name, .doc = "name under which the program bound the array"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_array_params *p = i->params;
    if (!p->type.ndim) return fv_fail(error, FV_ERROR_USAGE, "name = \"%s\": no array of this name is bound", p->name);
    i->out->kind = FV_KIND_IMAGE;
    i->out->image = p->type;
    return FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    (void)error;
    const fv_array_params *p = params_;
    fv__hasher_add(hasher, &p->content, sizeof p->content);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_array_params *p = r->need.params;
    fv_region              all = fv__region_whole(&p->type);
    fv_block               whole;
    fv__block_init(&whole, p->type.dtype, &all, (void *)(uintptr_t)p->data);
    fv__block_copy(r->out, &whole);
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(array) = {
    .name = "array",
    .role = FV_OP_ARRAY,
    .family = "source",
    .brief = "an image that the calling program provides",
    .version = 1,
    .doc = "Only for programs that use the library. The array can also be used under its own name, like a variable.",
    .params = params,
    .params_size = sizeof(fv_array_params),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .identity = identity,
    .passes = passes,
    .see = "read",
};
