/* join_complex: complex numbers from an axis of real and imaginary parts. */
#include "ops/ptychography/complex_rows.h"

static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image whose last axis but one has two parts" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    int                  part = in->ndim - 2;
    if (part < 0 || in->shape[part] != 2 || fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image must be real, and its last axis but one must have 2 parts");
    int64_t shape[FV_MAX_DIMS];
    memcpy(shape, in->shape, sizeof shape);
    shape[part] = in->shape[part + 1];
    fv_image_type_init(out, FV_COMPLEX64, in->ndim - 1, shape);
    for (int d = 0; d < out->ndim; d++) {
        int from = d < part ? d : d + 1;
        memcpy(out->axis[d], in->axis[from], sizeof out->axis[d]);
        out->spacing[d] = in->spacing[from];
        out->origin[d] = in->origin[from];
        memcpy(out->unit[d], in->unit[from], sizeof out->unit[d]);
    }
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int last = n->region.ndim - 1;
    in[0] = n->region;
    in[0].ndim = last + 2;
    in[0].start[last] = 0;
    in[0].size[last] = 2;
    in[0].start[last + 1] = n->region.start[last];
    in[0].size[last + 1] = n->region.size[last];
}

static size_t scratch(const fv_need *n) { return (size_t)(2 * n->region.size[n->region.ndim - 1]) * sizeof(float); }

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *in = r->in[0];
    int             last = out->region.ndim - 1;
    int64_t         n = out->region.size[last];
    float          *parts = r->scratch;
    fv_rows         rows;
    (void)error;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        int64_t at[FV_MAX_DIMS];
        memcpy(at, rows.position, sizeof at);
        at[last + 1] = rows.position[last];
        for (int part = 0; part < 2; part++) {
            at[last] = part;
            fv__kernels_current()->convert(parts + part * n, FV_FLOAT32, fv__block_at(in, at), in->dtype, n);
        }
        float *to = fv__block_at(out, rows.position);
        for (int64_t x = 0; x < n; x++) {
            to[2 * x] = parts[x];
            to[2 * x + 1] = parts[n + x];
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(join_complex) = {
    .name = "join_complex",
    .family = "ptychography",
    .brief = "complex numbers from an axis of real and imaginary parts",
    .also = "view_as_complex",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "The last axis but one holds the real part and then the imaginary one; it vanishes. The result is complex64.",
    .example = "p = split_complex(make_probe(64, radius = 20, defocus = 80))\n"
               "write(phase(join_complex(p * 2)), \"phase.tif\")",
    .see = "split_complex complex_image",
};
