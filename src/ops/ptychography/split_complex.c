/* split_complex: real and imaginary parts as an axis of their own. */
#include "ops/ptychography/complex_rows.h"

static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image, complex or real" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    int                  last = in->ndim - 1;
    if (in->ndim < 1 || in->ndim >= FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d axes; 1 to %d are possible", in->ndim, FV_MAX_DIMS - 1);
    int64_t shape[FV_MAX_DIMS];
    memcpy(shape, in->shape, sizeof shape);
    shape[last] = 2;
    shape[last + 1] = in->shape[last];
    fv_image_type_init(out, FV_FLOAT32, in->ndim + 1, shape);
    for (int d = 0; d <= in->ndim; d++) {
        int from = d < last ? d : d - 1;
        if (d == last) {
            memcpy(out->axis[d], "part", 5);
            continue;
        }
        memcpy(out->axis[d], in->axis[from], sizeof out->axis[d]);
        out->spacing[d] = in->spacing[from];
        out->origin[d] = in->origin[from];
        memcpy(out->unit[d], in->unit[from], sizeof out->unit[d]);
    }
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int last = n->region.ndim - 2;
    in[0] = n->region;
    in[0].ndim = last + 1;
    in[0].start[last] = n->region.start[last + 1];
    in[0].size[last] = n->region.size[last + 1];
}

static size_t scratch(const fv_need *n) { return (size_t)(2 * n->region.size[n->region.ndim - 1]) * sizeof(float); }

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *in = r->in[0];
    int             last = in->region.ndim - 1;
    int64_t         n = in->region.size[last];
    float          *parts = r->scratch;
    fv_rows         rows;
    (void)error;
    for (fv__rows_begin(&rows, &in->region); fv__rows_next(&rows);) {
        int64_t at[FV_MAX_DIMS];
        memcpy(at, rows.position, sizeof at);
        at[last + 1] = rows.position[last];
        fv__complex_row(in, rows.position, n, parts, parts + n);
        for (int64_t part = 0; part < out->region.size[last]; part++) {
            at[last] = out->region.start[last] + part;
            memcpy(fv__block_at(out, at), parts + at[last] * n, (size_t)n * sizeof *parts);
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(split_complex) = {
    .name = "split_complex",
    .family = "ptychography",
    .brief = "real and imaginary parts as an axis of their own",
    .also = "real, imag, view_as_real",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "A new axis before the last one: 0 is the real part, 1 the imaginary one, as float32. Operators that know no complex "
           "numbers can work on them; join_complex puts them together again.",
    .example = "p = split_complex(make_probe(64, radius = 20, defocus = 80))\nwrite(p[:, 0], \"real.tif\")",
    .see = "join_complex complex_image phase amplitude",
};
