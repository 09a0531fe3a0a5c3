/* set_sform: an image brought to its place by its header alone. */
#include "op/op.h"
#include "op/physical.h"
#include "op/unchanged.h"
#include <math.h>

typedef struct {
    fv_numbers matrix;
    int64_t    code;
} setting;

static const fv_param params[] = {
    FV_PARAM(setting, matrix, .doc = "12 numbers, row by row, from voxels i, j, k to the world, or 16 with the row 0 0 0 1"),
    FV_PARAM(setting, code, .def = "2", .min = 1, .max = 5,
             .doc = "of that world: 1 scanner, 2 aligned to something, 3 Talairach, 4 MNI, 5 another template"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "a volume; its voxels stay" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const setting *p = i->params;
    fv_image_type *out = &i->out->image;
    fv_physical    place;
    const double  *m = p->matrix.value;
    double         unused[12];
    FV_TRY(fv__physical_find(&i->in[0]->image, "image", &place, error));
    if (place.n != 3)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d spatial axes: only a volume has a matrix to the world", place.n);
    if (p->matrix.count != 12 && p->matrix.count != 16)
        return fv_fail(error, FV_ERROR_USAGE, "matrix has %d numbers; give 12, or 16 with the row 0 0 0 1", p->matrix.count);
    if (p->matrix.count == 16 && (m[12] != 0 || m[13] != 0 || m[14] != 0 || m[15] != 1))
        return fv_fail(error, FV_ERROR_USAGE, "the last row of matrix is %g %g %g %g; it must be 0 0 0 1", m[12], m[13], m[14],
                       m[15]);
    if (!fv__matrix_invert(m, unused))
        return fv_fail(error, FV_ERROR_USAGE, "matrix is singular: voxels would lie upon each other");
    memcpy(out->affine, m, sizeof out->affine);
    for (int c = 0; c < 3; c++) out->spacing[place.axis[c]] = sqrt(m[c] * m[c] + m[4 + c] * m[4 + c] + m[8 + c] * m[8 + c]);
    out->has_affine = true;
    out->affine_code = (int)p->code;
    return FV_OK;
}

const fv_op FV_OP(set_sform) = {
    .name = "set_sform",
    .family = "registration",
    .brief = "say where a volume lies in the world, in its header alone",
    .also = "fslorient -setsform, nibabel set_sform, hardening a transform",
    .doc = "Nothing is interpolated: the matrix from voxels to the world becomes this one, and a NIfTI file has it as sform. The "
           "numbers are NIfTI's own, as fslorient -setsform and nibabel's img.affine have them (x to the right, y to the front). "
           "They are given as numbers because where an image lies must be known before anything is computed.",
    .citation = "NIfTI-1: method 3 of the orientation of an image",
    .example = "head = phantom(\"t1\", [20, 30, 30])\n"
               "set_sform(head, [2, 0, 0, -30, 0, 2, 0, -30, 0, 0, 3, -25]) |> write(\"head.nii.gz\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(setting),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "sform register transform",
};
