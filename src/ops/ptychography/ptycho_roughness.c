/* ptycho_roughness: how a change of the object changes the sum of its squared slopes. */
#include "ops/ptychography/exit_waves.h"

enum { OBJECT, CHANGE };

static const fv_input inputs[] = {
    { "object", FV_KIND_IMAGE, .doc = "object: row, part, column" },
    { "change", FV_KIND_IMAGE, .doc = "in which direction it changes" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *o = &i->in[OBJECT]->image, *c = &i->in[CHANGE]->image;
    if (o->ndim != 3 || o->dtype != FV_FLOAT32 || o->shape[1] != 2 || c->ndim != 3 || c->dtype != FV_FLOAT32 ||
        memcmp(o->shape, c->shape, 3 * sizeof *o->shape) != 0)
        return fv_fail(error, FV_ERROR_USAGE,
                       "object and change must be float32 with axes row, part (real, imaginary) and column");
    fv_image_type_init(&i->out->image, FV_FLOAT64, 2, (int64_t[]){ o->shape[0], 2 });
    return FV_OK;
}

/* A row and the one below it. */
static void need(const fv_need *n, fv_region *in) {
    in[OBJECT] = fv__region_whole(&n->in[OBJECT]->image);
    in[OBJECT].start[0] = n->region.start[0];
    in[OBJECT].size[0] = FV_MIN(n->region.size[0] + 1, n->in[OBJECT]->image.shape[0] - n->region.start[0]);
    in[CHANGE] = in[OBJECT];
}

/* Differences of n pairs of neighbours, `apart`. */
static void add_pairs(const float *o, const float *c, int64_t o_apart, int64_t c_apart, int64_t n, double sums[2]) {
    for (int64_t x = 0; x < n; x++) {
        double d = (double)c[x + c_apart] - (double)c[x];
        sums[0] += d * d;
        sums[1] += d * ((double)o[x + o_apart] - (double)o[x]);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *object = r->in[OBJECT], *change = r->in[CHANGE], *out = r->out;
    int64_t         width = object->region.size[2];
    (void)error;
    for (int64_t y = 0; y < out->region.size[0]; y++) {
        double sums[2] = { 0, 0 };
        for (int64_t part = 0; part < 2; part++) {
            const float *o = (float *)object->data + y * object->stride[0] + part * object->stride[1];
            const float *c = (float *)change->data + y * change->stride[0] + part * change->stride[1];
            add_pairs(o, c, 1, 1, width - 1, sums);
            if (y + 1 < object->region.size[0]) add_pairs(o, c, object->stride[0], change->stride[0], width, sums);
        }
        memcpy((double *)out->data + y * out->stride[0], sums + out->region.start[1], (size_t)out->region.size[1] * sizeof *sums);
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_roughness) = {
    .name = "ptycho_roughness",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "how a change of the object changes its slopes: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc =
        "Two sums for each row, as float64, over the differences of its pixels to those on the right and below: |slopes of the "
        "change|^2, and Re conj(slopes of the change) slopes of the object. The best step along the change follows from them.",
    .citation =
        "Thibault and Guizar-Sicairos, Maximum-likelihood refinement for coherent diffractive imaging, New J. Phys. 14, 2012",
    .example = "o = split_complex(phantom(\"cells\", [40, 40]) / 99)\n"
               "write(ptycho_roughness(o, ptycho_limit(o, amplitude = [0, 1])), \"roughness.npy\")",
    .see = "ptycho ptycho_object ptycho_steps",
};
