/* What operators on linear transforms share: each transform is made by itself, whole, from the transforms and the grids given. */
#ifndef FV_MATRICES_H
#define FV_MATRICES_H

#include "op/op.h"
#include "op/physical.h"

/* One transform from those of the inputs (an image that is none has no matrix). */
typedef fv_status fv_matrix_make(const fv_need *n, double (*const in)[12], double out[12], fv_error *error);

#define fv__matrices_infer FV_ISA_NAME(fv__matrices_infer)
#define fv__matrices_need FV_ISA_NAME(fv__matrices_need)
#define fv__matrices_run FV_ISA_NAME(fv__matrices_run)

/* That the first `transforms` inputs are linear transforms of the same dimensions, and axes before those agree; the type of the
 * result, which has all of these axes. */
fv_status fv__matrices_infer(fv_infer *i, const fv_input *inputs, int transforms, fv_error *error);
void      fv__matrices_need(const fv_need *n, int transforms, fv_region *in);
fv_status fv__matrices_run(fv_run *r, int transforms, fv_matrix_make *make, fv_error *error);

/* The passes of an operator that has TRANSFORMS and make. */
#define FV_MATRICES_PASSES                                                                                                       \
    static void          need(const fv_need *n, fv_region *in) { fv__matrices_need(n, TRANSFORMS, in); }                         \
    static fv_status     run(fv_run *r, fv_error *error) { return fv__matrices_run(r, TRANSFORMS, make, error); }                \
    static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

#endif
