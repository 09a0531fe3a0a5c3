/* ptycho_follow: object or probe, moved along its change by the least squares of ptycho_steps. */
#include "ops/ptychography/moved_image.h"

typedef struct {
    fv_choice kind;
    double    part;
} ptycho_follow;
enum { IMAGE, CHANGE, STEPS };
enum { OBJECT, PROBE, ALONE };
enum { AA, BB, AB, AE, BE, SUMS };

static const fv_param params[] = {
    FV_PARAM(ptycho_follow, kind, .def = "object", .choices = "object|probe|alone",
             .doc = "which of both is moved; alone: the object, and the probe stays as it is"),
    FV_PARAM(ptycho_follow, part, .def = "1", .above = true, .max = 1, .doc = "which part of the step is gone"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "object or probe, float32" },
    { "change", FV_KIND_IMAGE, .doc = "direction in which it changes; it may have more planes, behind those of the image" },
    { "steps", FV_KIND_IMAGE, .doc = "what ptycho_steps gives" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[IMAGE]->image, *b = &i->in[CHANGE]->image, *s = &i->in[STEPS]->image;
    if (a->dtype != FV_FLOAT32 || b->dtype != FV_FLOAT32 || a->ndim != b->ndim || a->ndim < 1 || a->shape[0] > b->shape[0] ||
        memcmp(a->shape + 1, b->shape + 1, (size_t)(a->ndim - 1) * sizeof *a->shape) != 0)
        return fv_fail(error, FV_ERROR_USAGE, "image and change must be float32 and have the same shape");
    if (s->dtype != FV_FLOAT64 || s->ndim != 2 || s->shape[1] != SUMS)
        return fv_fail(error, FV_ERROR_USAGE, "steps is not what ptycho_steps gives");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    in[IMAGE] = in[CHANGE] = n->region;
    in[STEPS] = fv__region_whole(&n->in[STEPS]->image);
}

/* How far, by the sums of all blocks in their order. */
static double find_step(const fv_block *steps, int kind) {
    double s[SUMS] = { 0 };
    for (int64_t b = 0; b < steps->region.size[0]; b++)
        for (int k = 0; k < SUMS; k++) s[k] += ((const double *)steps->data)[b * steps->stride[0] + k * steps->stride[1]];
    if (kind == ALONE) return s[AE] / FV_MAX(s[AA], 1e-300);
    double by = 1 / (s[AA] * s[BB] * 1.000001 - s[AB] * s[AB] + 1e-300);
    return by * (kind == OBJECT ? s[AE] * s[BB] - s[BE] * s[AB] : s[BE] * s[AA] - s[AE] * s[AB]);
}

static fv_status run(fv_run *r, fv_error *error) {
    const ptycho_follow *p = r->need.params;
    float                by = (float)(p->part * find_step(r->in[STEPS], p->kind.index));
    (void)error;
    fv__move_image(r, IMAGE, CHANGE, by);
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_follow) = {
    .name = "ptycho_follow",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "object or probe, moved by least squares: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_follow),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = fv__move_slab,
    .doc = "image + step * change, as one chunk. The steps of object and probe solve the two linear equations that the sums of "
           "ptycho_steps, of all blocks together, give.",
    .citation = "Odstrcil, Menzel and Guizar-Sicairos, Iterative least-squares solver for generalized maximum-likelihood "
                "ptychography, Optics Express 26, 2018",
    .example = "cells = convert(phantom(\"cells\", [64, 64]), \"float32\")\n"
               "sums = convert(phantom(\"noise\", [2, 5]), \"float64\")\n"
               "write(ptycho_follow(cells, gaussian(cells, 2), sums), \"moved.npy\")",
    .see = "ptycho ptycho_steps ptycho_move",
};
