/* Operators on linear transforms; see matrices.h. */
#include "ops/registration/matrices.h"
#include "op/axes.h"

fv_status fv__matrices_infer(fv_infer *i, const fv_input *inputs, int transforms, fv_error *error) {
    fv_transform first, t;
    int          axis[FV_MAX_DIMS];
    *i->out = *i->in[0];
    for (int k = 0; k < transforms; k++) {
        FV_TRY(fv__transform_find(&i->in[k]->image, inputs[k].name, &t, error));
        if (!k) first = t;
        if (t.n != first.n)
            return fv_fail(error, FV_ERROR_USAGE, "%s has %d dimensions and %s has %d: they cannot go together", inputs[0].name,
                           first.n, inputs[k].name, t.n);
        if (t.before > i->out->image.ndim - 2) *i->out = *i->in[k];
    }
    for (int k = 0; k < transforms; k++) {
        FV_TRY(fv__transform_find(&i->in[k]->image, inputs[k].name, &t, error));
        FV_TRY(fv__transform_match(&i->in[k]->image, &t, &i->out->image, "the others", axis, error));
    }
    return FV_OK;
}

void fv__matrices_need(const fv_need *n, int transforms, fv_region *in) {
    for (int k = 0; k < FV_MAX_INPUTS && k < n->ninputs; k++) {
        const fv_image_type *type = &n->in[k]->image;
        in[k] = (fv_region){ .ndim = n->in[k]->kind == FV_KIND_IMAGE ? type->ndim : 0 };
        if (k >= transforms) continue;
        in[k] = fv__region_whole(type);
        for (int d = 0; d < type->ndim - 2; d++) {
            int axis = fv__axis_find(&n->out->image, type->axis[d]);
            in[k].start[d] = n->region.start[axis];
            in[k].size[d] = n->region.size[axis];
        }
    }
}

fv_status fv__matrices_run(fv_run *r, int transforms, fv_matrix_make *make, fv_error *error) {
    const fv_image_type *out = &r->need.out->image;
    fv_region            places = r->out->region;
    fv_transform         made, t;
    fv_rows              walk;
    FV_TRY(fv__transform_find(out, "transform", &made, error));
    for (int d = made.row; d < places.ndim; d++) places.size[d] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        double in[FV_MAX_INPUTS][12], matrix[12];
        for (int k = 0; k < transforms; k++) {
            int     axis[FV_MAX_DIMS];
            int64_t at[FV_MAX_DIMS] = { 0 };
            FV_TRY(fv__transform_find(&r->need.in[k]->image, "transform", &t, error));
            FV_TRY(fv__transform_match(&r->need.in[k]->image, &t, out, "the others", axis, error));
            for (int d = 0; d < t.before; d++) at[d] = walk.position[axis[d]];
            fv__transform_load(r->in[k], &t, at, in[k]);
        }
        FV_TRY(make(&r->need, in, matrix, error));
        fv__transform_store(r->out, &made, walk.position, matrix);
    }
    return FV_OK;
}
