/* complex_image: complex numbers of an amplitude and a phase. */
#include "base/math.h"
#include "op/kernels.h"
#include "op/op.h"

enum { AMPLITUDE, PHASE };
static const fv_input inputs[] = {
    { "amplitude", FV_KIND_IMAGE, .doc = "absolute values" },
    { "phase", FV_KIND_IMAGE, .doc = "angles in radians, of the same shape" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[AMPLITUDE]->image, *p = &i->in[PHASE]->image;
    if (fv_dtype_is_complex(a->dtype) || fv_dtype_is_complex(p->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "amplitude and phase must be real");
    if (a->ndim != p->ndim || memcmp(a->shape, p->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "amplitude and phase must have the same shape");
    i->out->image.dtype = FV_COMPLEX64;
    return FV_OK;
}

static size_t scratch(const fv_need *n) { return (size_t)(2 * n->region.size[n->region.ndim - 1]) * sizeof(double); }

static fv_status run(fv_run *r, fv_error *error) {
    int64_t n = r->out->region.size[r->out->region.ndim - 1];
    double *a = r->scratch, *p = a + n;
    fv_rows rows;
    (void)error;
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        float *to = fv__block_at(r->out, rows.position);
        fv__kernels_current()->convert(a, FV_FLOAT64, fv__block_at(r->in[AMPLITUDE], rows.position), r->in[AMPLITUDE]->dtype, n);
        fv__kernels_current()->convert(p, FV_FLOAT64, fv__block_at(r->in[PHASE], rows.position), r->in[PHASE]->dtype, n);
        for (int64_t x = 0; x < n; x++) {
            to[2 * x] = (float)(a[x] * fv__cos(p[x]));
            to[2 * x + 1] = (float)(a[x] * fv__sin(p[x]));
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .scratch = scratch, .run = run }, FV_PASS_END };
static double        cost(const fv_need *n) {
           (void)n;
           return 20;
}

const fv_op FV_OP(complex_image) = {
    .name = "complex_image",
    .family = "ptychography",
    .stage = "simulate",
    .brief = "complex numbers from an amplitude and a phase",
    .also = "polar_to_complex",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "amplitude * exp(i phase), complex64: for instance an object to simulate a scan of.",
    .example = "cells = phantom(\"cells\", [200, 200]) / 255\n"
               "write(phase(complex_image(1 - cells * 0.2, cells)), \"phase.tif\")",
    .see = "phase amplitude diffract",
};
