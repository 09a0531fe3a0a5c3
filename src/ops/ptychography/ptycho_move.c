/* ptycho_move: an image and a part of its change, made in one piece, because those who need it need all of it. */
#include "op/op.h"

enum { IMAGE, CHANGE, BY };

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "object or probe, float32" },
    { "change", FV_KIND_IMAGE, .doc = "direction in which it changes, of the same shape" },
    { "by", FV_KIND_SCALAR, .doc = "how far" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[IMAGE]->image, *b = &i->in[CHANGE]->image;
    if (a->dtype != FV_FLOAT32 || b->dtype != FV_FLOAT32 || a->ndim != b->ndim ||
        memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "image and change must be float32 and have the same shape");
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    float   by = (float)fv__scalar_number(r->scalar[BY]);
    fv_rows rows;
    (void)error;
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        const float *a = fv__block_at(r->in[IMAGE], rows.position), *b = fv__block_at(r->in[CHANGE], rows.position);
        float *restrict to = fv__block_at(r->out, rows.position);
        int64_t n = r->out->region.size[r->out->region.ndim - 1];
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) to[x] = a[x] + by * b[x];
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, (size_t)n->out->image.ndim * sizeof *chunk);
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_move) = {
    .name = "ptycho_move",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "object or probe, moved along a direction: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc = "image + by * change, as one chunk.",
    .example = "cells = convert(phantom(\"cells\", [64, 64]), \"float32\")\n"
               "write(ptycho_move(cells, gaussian(cells, 2), -0.8), \"moved.npy\")",
    .see = "ptycho ptycho_steps",
};
