/* ptycho_limit: the object between limits of amplitude and phase. */
#include "base/math.h"
#include "op/op.h"

typedef struct {
    fv_list amplitude, phase;
} ptycho_limit;

static const fv_param params[] = {
    FV_PARAM(ptycho_limit, amplitude, .def = "", .min = 0, .max = 1e30, .doc = "least and most amplitude; left out: any"),
    FV_PARAM(ptycho_limit, phase, .def = "", .min = -4, .max = 4, .unit = "rad", .doc = "least and most phase; left out: any"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "object", FV_KIND_IMAGE, .doc = "object: row, part, column" },
    FV_INPUT_END,
};

static fv_status check_pair(const fv_list *pair, const char *name, fv_error *error) {
    if (!pair->count || (pair->count == 2 && pair->value[0] <= pair->value[1])) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "%s takes two numbers, the least and the most", name);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const ptycho_limit  *p = i->params;
    const fv_image_type *o = &i->in[0]->image;
    if (o->ndim != 3 || o->dtype != FV_FLOAT32 || o->shape[1] != 2)
        return fv_fail(error, FV_ERROR_USAGE, "object must be float32 with axes row, part (real, imaginary) and column");
    FV_TRY(check_pair(&p->amplitude, "amplitude", error));
    return check_pair(&p->phase, "phase", error);
}

/* Both parts of a pixel make each of them. */
static void need(const fv_need *n, fv_region *in) {
    in[0] = n->region;
    in[0].start[1] = 0;
    in[0].size[1] = 2;
}

static double between(double value, const fv_list *limits) {
    return limits->count ? FV_MIN(FV_MAX(value, limits->value[0]), limits->value[1]) : value;
}

/* A pixel that is within stays as it is, to the bit. */
static void limit(const ptycho_limit *p, float *re, float *im) {
    double a = sqrt((double)*re * (double)*re + (double)*im * (double)*im), b = between(a, &p->amplitude);
    double phase = p->phase.count || a == 0 ? fv__atan2((double)*im, (double)*re) : 0, turned = between(phase, &p->phase);
    if (turned != phase || (a == 0 && b > 0)) {
        *re = (float)(b * fv__cos(turned));
        *im = (float)(b * fv__sin(turned));
    } else if (b != a) {
        *re = (float)((double)*re * b / a);
        *im = (float)((double)*im * b / a);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out, *in = r->in[0];
    (void)error;
    for (int64_t y = 0; y < out->region.size[0]; y++)
        for (int64_t x = 0; x < out->region.size[2]; x++) {
            const float *from = (float *)in->data + y * in->stride[0] + x;
            float        part[2] = { from[0], from[in->stride[1]] };
            limit(r->need.params, &part[0], &part[1]);
            for (int64_t k = 0; k < out->region.size[1]; k++)
                ((float *)out->data)[y * out->stride[0] + k * out->stride[1] + x] = part[out->region.start[1] + k];
        }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(ptycho_limit) = {
    .name = "ptycho_limit",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "the object between limits of amplitude and phase: a step of ptycho",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(ptycho_limit),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "An amplitude below the least becomes the least, one above the most the most; phases alike, from -pi to pi. Pixels "
           "within "
           "the limits stay as they are.",
    .example = "o = split_complex(complex_image(phantom(\"cells\", [64, 64]) / 100, phantom(\"noise\", [64, 64])))\n"
               "write(join_complex(ptycho_limit(o, amplitude = [0, 1], phase = [-0.2, 0.2])), \"limited.npy\")",
    .see = "ptycho ptycho_object",
};
