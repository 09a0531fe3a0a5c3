/* choose: one of two images or numbers, by a number that the pipeline computes; the other one is not made. */
#include "op/op.h"

enum { CONDITION, VALUE, OTHER };

static const fv_input inputs[] = {
    { "condition", FV_KIND_SCALAR, .doc = "a number or a comparison of numbers, such as mean(image) > 5" },
    { "value", FV_KIND_NONE, .doc = "what is taken if the condition is not 0" },
    { "other", FV_KIND_NONE, .doc = "what is taken if it is 0, of the same type and shape" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_type *a = i->in[VALUE], *b = i->in[OTHER];
    *i->out = *a;
    if (a->kind != b->kind || (a->kind != FV_KIND_IMAGE && a->kind != FV_KIND_SCALAR))
        return fv_fail(error, FV_ERROR_USAGE, "value and other must be two images or two numbers");
    if (a->kind == FV_KIND_SCALAR) {
        i->out->dtype = FV_FLOAT64;
        return FV_OK;
    }
    bool same = a->image.dtype == b->image.dtype && a->image.ndim == b->image.ndim &&
                !memcmp(a->image.shape, b->image.shape, sizeof(int64_t) * (size_t)a->image.ndim);
    return same ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "value and other must have the same type and shape");
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__block_copy(r->out, r->in[fv__lazy_input(r->scalar[CONDITION])]);
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(choose) = {
    .name = "choose",
    .family = "logic",
    .brief = "one of two images, depending on a number that is computed",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .lazy = true,
    .doc = "The image that is not taken is not computed, unless something else needs it. (where looks at both, voxel by "
           "voxel.) If value and other are numbers, the result is a number.",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "choose(std(a) > 20, median(a, 7), a) |> write(\"calm.png\")",
    .see = "where std mean",
};
