/* phase and amplitude: a real number of each complex one. */
#ifndef FV_COMPLEX_PART_H
#define FV_COMPLEX_PART_H

#include "ops/ptychography/complex_rows.h"

static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "complex image" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    if (!fv_dtype_is_complex(i->in[0]->image.dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image must be complex, not %s", fv_dtype_name(i->in[0]->image.dtype));
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

static float value_of(float re, float im);

static size_t scratch(const fv_need *n) { return (size_t)(2 * n->region.size[n->region.ndim - 1]) * sizeof(float); }

static fv_status run(fv_run *r, fv_error *error) {
    int64_t n = r->out->region.size[r->out->region.ndim - 1];
    float  *re = r->scratch, *im = re + n;
    fv_rows rows;
    (void)error;
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        float *to = fv__block_at(r->out, rows.position);
        fv__complex_row(r->in[0], rows.position, n, re, im);
        for (int64_t x = 0; x < n; x++) to[x] = value_of(re[x], im[x]);
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .scratch = scratch, .run = run }, FV_PASS_END };

#endif
