/* ptycho_move: an image and a part of its change, made in one piece, because those who need it need all of it. */
#include "ops/ptychography/moved_image.h"

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
    float by = (float)fv__scalar_number(r->scalar[BY]);
    (void)error;
    fv__move_image(r, IMAGE, CHANGE, by);
    return FV_OK;
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
    .slab = fv__move_slab,
    .doc = "image + by * change, as one chunk.",
    .example = "cells = convert(phantom(\"cells\", [64, 64]), \"float32\")\n"
               "write(ptycho_move(cells, gaussian(cells, 2), -0.8), \"moved.npy\")",
    .see = "ptycho ptycho_steps",
};
