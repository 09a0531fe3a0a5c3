/* fsl_matrix: a transform as flirt writes it. */
#include "ops/registration/fsl_space.h"
#include <stdio.h>

static const fv_input inputs[] = {
    { "transform", FV_KIND_IMAGE, .doc = "a linear transform of volumes, as register(moving, fixed) gives" },
    { "moving", FV_KIND_IMAGE, .doc = "what flirt calls -in; its voxels are not read" },
    { "fixed", FV_KIND_IMAGE, .doc = "what flirt calls -ref; its voxels are not read" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *type = &i->in[FV_FSL_SUBJECT]->image;
    int64_t              shape[2] = { 4, 4 };
    fv_need              n = { .in = { NULL, i->in[FV_FSL_MOVING], i->in[FV_FSL_FIXED] } };
    fv_transform         t;
    double               unused[2][12];
    FV_TRY(fv__transform_find(type, "transform", &t, error));
    FV_TRY(fv__fsl_both(&n, unused[0], unused[1], error));
    if (t.n != 3 || t.before) return fv_fail(error, FV_ERROR_USAGE, "transform must be one transform of volumes");
    fv_image_type_init(&i->out->image, FV_FLOAT64, 2, shape);
    snprintf(i->out->image.axis[0], sizeof i->out->image.axis[0], "fsl_row");
    snprintf(i->out->image.axis[1], sizeof i->out->image.axis[1], "fsl_col");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    in[FV_FSL_SUBJECT] = fv__region_whole(&n->in[FV_FSL_SUBJECT]->image);
    for (int k = FV_FSL_MOVING; k <= FV_FSL_FIXED; k++) in[k] = (fv_region){ .ndim = n->in[k]->image.ndim };
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_region *region = &r->out->region;
    fv_transform     t;
    double           moving[12], fixed[12], matrix[16] = { [15] = 1 }, through[12];
    FV_TRY(fv__transform_find(&r->need.in[FV_FSL_SUBJECT]->image, "transform", &t, error));
    FV_TRY(fv__fsl_both(&r->need, moving, fixed, error));
    fv__transform_load(r->in[FV_FSL_SUBJECT], &t, NULL, through);
    if (!fv__matrix_invert(through, matrix))
        return fv_fail(error, FV_ERROR_INPUT, "transform is singular: it presses the image flat");
    fv__matrix_chain(fixed, matrix, through); /* flirt leads from the moving image to the fixed one */
    fv__matrix_invert(moving, moving);
    fv__matrix_chain(through, moving, matrix);
    for (int64_t row = region->start[0]; row < region->start[0] + region->size[0]; row++)
        for (int64_t column = region->start[1]; column < region->start[1] + region->size[1]; column++) {
            int64_t at[2] = { row, column };
            *(double *)fv__block_at(r->out, at) = matrix[row * 4 + column];
        }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(fsl_matrix) = {
    .name = "fsl_matrix",
    .family = "registration",
    .brief = "make the matrix that FSL's flirt would write of a transform",
    .also = "flirt -omat, c3d_affine_tool",
    .doc = "For flirt -applyxfm and others: write(fsl_matrix(t, moving, fixed), \"t.mat\"). FSL's coordinates are voxels times "
           "their "
           "length, so that a matrix belongs to its two images.",
    .example = "fixed = phantom(\"t1\", [30, 40, 40])\n"
               "moving = shift(fixed, [0, 2, -3])\n"
               "write(fsl_matrix(register(moving, fixed), moving, fixed), \"t.mat\")",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .see = "fsl_transform register",
};
