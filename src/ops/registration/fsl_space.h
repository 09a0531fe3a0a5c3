/* FSL's coordinates: voxels times their length, counted from the right where the matrix of the image does not mirror. */
#ifndef FV_FSL_SPACE_H
#define FV_FSL_SPACE_H

#include "op/op.h"
#include "op/physical.h"

enum { FV_FSL_SUBJECT, FV_FSL_MOVING, FV_FSL_FIXED, FV_FSL_INPUTS };

/* Physical space to FSL's coordinates. */
static inline fv_status fv__fsl_of(const fv_image_type *type, const char *name, double to[12], fv_error *error) {
    fv_physical p;
    double      back[12], scale[12] = { 0 };
    FV_TRY(fv__physical_find(type, name, &p, error));
    if (p.n != 3) return fv_fail(error, FV_ERROR_USAGE, "%s has %d spatial axes: matrices of FSL are of volumes", name, p.n);
    const double *m = p.space;
    double all = m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) + m[2] * (m[4] * m[9] - m[5] * m[8]);
    for (int c = 0; c < 3; c++) scale[c * 5] = sqrt(m[c] * m[c] + m[4 + c] * m[4 + c] + m[8 + c] * m[8 + c]);
    if (all > 0) { /* turning both x and y round, as between ITK's space and NIfTI's, changes no sign here */
        scale[3] = scale[0] * (double)(type->shape[p.axis[0]] - 1);
        scale[0] = -scale[0];
    }
    fv__matrix_invert(p.space, back);
    fv__matrix_chain(scale, back, to);
    return FV_OK;
}

static inline fv_status fv__fsl_both(const fv_need *n, double moving[12], double fixed[12], fv_error *error) {
    FV_TRY(fv__fsl_of(&n->in[FV_FSL_MOVING]->image, "moving", moving, error));
    return fv__fsl_of(&n->in[FV_FSL_FIXED]->image, "fixed", fixed, error);
}

#endif
