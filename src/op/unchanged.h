/* Operators that change what is known of an image and none of its voxels: their one pass. Included by the operator's file. */
#ifndef FV_UNCHANGED_H
#define FV_UNCHANGED_H

#include "op/op.h"

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__block_copy(r->out, r->in[0]);
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };
static double        cost(const fv_need *n) { return 0.1 * (double)fv_dtype_size(n->out->image.dtype); }

#endif
