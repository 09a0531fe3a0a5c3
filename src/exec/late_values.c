/* Parameters that the pipeline itself computes. */
#include "exec/late_values.h"
#include <stdlib.h>

/* Inference again, now with the value: what it would have refused in the text it refuses here. */
static fv_status check(const fv_node *node, void *params, fv_error *error) {
    fv_type  type = node->in[0] ? node->in[0]->type : (fv_type){ 0 };
    fv_arena arena = { 0 };
    fv_infer i = {
        .params = params, .params_size = node->op->params_size, .ninputs = node->ninputs, .out = &type, .arena = &arena
    };
    for (int k = 0; k < node->ninputs; k++) i.in[k] = node->in_type[k];
    fv_status status = node->op->infer(&i, error);
    fv__arena_release(&arena);
    const int64_t *planned = node->type.image.shape, *found = type.image.shape;
    bool           same = node->type.kind != FV_KIND_IMAGE || !memcmp(planned, found, sizeof node->type.image.shape);
    if (status == FV_OK && !same)
        status =
            fv_fail(error, FV_ERROR_INPUT,
                    "the centre that the pipeline has found changes the size of the result (a whole turn with the axis far from "
                    "the middle of the detector is a half acquisition); write the number into the geometry");
    return status;
}

fv_status fv__late_params(const fv_node *node, const fv_scalar *const *scalars, const void **params, void **room,
                          fv_error *error) {
    *room = NULL;
    if (!node->late) return FV_OK;
    size_t size = (node->op->params_size + 7) / 8 * 8;
    char  *copy = fv__alloc(size + sizeof(double));
    double center = fv__scalar_number(scalars[node->ninputs - 1]);
    memcpy(copy, node->params, node->op->params_size);
    memcpy(copy + size, &center, sizeof center);
    for (const fv_param *p = node->op->params; p->name; p++)
        if (p->kind == FV_PARAM_GEOMETRY)
            ((fv_geometry *)(void *)(copy + p->offset))->center = (fv_list){ 1, (const double *)(void *)(copy + size) };
    fv_status status = check(node, copy, error);
    if (status == FV_OK)
        *params = *room = copy;
    else
        free(copy);
    return status;
}
