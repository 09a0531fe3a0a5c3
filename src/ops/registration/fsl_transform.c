/* fsl_transform: a transform from what flirt wrote. */
#include "op/axes.h"
#include "ops/registration/fsl_space.h"

static const fv_input inputs[] = {
    { "matrix", FV_KIND_IMAGE, .doc = "read(\"t.mat\"), as flirt -omat wrote it" },
    { "moving", FV_KIND_IMAGE, .doc = "what flirt calls -in; its voxels are not read" },
    { "fixed", FV_KIND_IMAGE, .doc = "what flirt calls -ref; its voxels are not read" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *type = &i->in[FV_FSL_SUBJECT]->image;
    fv_image_type        none = { .ndim = 0 };
    fv_need              n = { .in = { NULL, i->in[FV_FSL_MOVING], i->in[FV_FSL_FIXED] } };
    double               unused[2][12];
    if (type->ndim != 2 || fv__axis_find(type, "fsl_row") != 0 || type->shape[0] != 4 || type->shape[1] != 4 ||
        type->dtype != FV_FLOAT64)
        return fv_fail(error, FV_ERROR_USAGE, "matrix is none of FSL: give read(\"t.mat\")");
    FV_TRY(fv__fsl_both(&n, unused[0], unused[1], error));
    fv__transform_linear(&none, 3, &i->out->image);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    in[FV_FSL_SUBJECT] = fv__region_whole(&n->in[FV_FSL_SUBJECT]->image);
    for (int k = FV_FSL_MOVING; k <= FV_FSL_FIXED; k++) in[k] = (fv_region){ .ndim = n->in[k]->image.ndim };
}

static fv_status run(fv_run *r, fv_error *error) {
    fv_transform t;
    double       moving[12], fixed[12], matrix[12], back[12];
    FV_TRY(fv__transform_find(&r->need.out->image, "", &t, error));
    FV_TRY(fv__fsl_both(&r->need, moving, fixed, error));
    for (int k = 0; k < 12; k++) {
        int64_t at[2] = { k / 4, k % 4 };
        matrix[k] = *(const double *)fv__block_at(r->in[FV_FSL_SUBJECT], at);
    }
    if (!fv__matrix_invert(matrix, back)) return fv_fail(error, FV_ERROR_INPUT, "matrix is singular: it presses the image flat");
    fv__matrix_chain(back, fixed, matrix);
    fv__matrix_invert(moving, back);
    fv__matrix_chain(back, matrix, matrix);
    fv__transform_store(r->out, &t, NULL, matrix);
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(fsl_transform) = {
    .name = "fsl_transform",
    .family = "registration",
    .brief = "make a transform of a matrix that FSL's flirt wrote",
    .also = "flirt -init, fsl2ras",
    .doc = "transform(moving, fsl_transform(read(\"t.mat\"), moving, fixed), onto = fixed) gives what flirt -applyxfm does.",
    .example = "fixed = phantom(\"t1\", [30, 40, 40])\n"
               "moving = shift(fixed, [0, 2, -3])\n"
               "matrix = fsl_matrix(register(moving, fixed), moving, fixed)\n"
               "transform(moving, fsl_transform(matrix, moving, fixed), onto = fixed) |> write(\"aligned.nii.gz\")",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .see = "fsl_matrix transform",
};
