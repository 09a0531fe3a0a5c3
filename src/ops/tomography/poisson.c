/* poisson: counts of quanta where an image says how many are to be expected. */
#include "op/kernels.h"
#include "ops/tomography/quanta.h"

typedef struct {
    int64_t seed;
} poisson;

static const fv_param params[] = {
    FV_PARAM(poisson, seed, .def = "1", .doc = "another number gives other noise"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "expected counts" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    if (fv_dtype_is_complex(i->in[0]->image.dtype)) return fv_fail(error, FV_ERROR_USAGE, "image must be real, not complex");
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const fv_block *in = r->in[0], *out = r->out;
    int             last = out->region.ndim - 1;
    int64_t         n = out->region.size[last], at[FV_MAX_DIMS];
    memcpy(at, out->region.start, sizeof at);
    for (;;) {
        int64_t from = 0, to = 0;
        for (int d = 0; d < last; d++) {
            from += (at[d] - in->region.start[d]) * in->stride[d];
            to += (at[d] - out->region.start[d]) * out->stride[d];
        }
        float *row = (float *)out->data + to;
        fv__kernels_current()->convert(row, FV_FLOAT32, (const char *)in->data + from * (int64_t)fv_dtype_size(in->dtype),
                                       in->dtype, n);
        FV_ISA_NAME(fv__quanta_row)
        (row, n, FV_ISA_NAME(fv__quanta_key)(((const poisson *)r->need.params)->seed, last + 1, at), out->region.start[last]);
        int d = last - 1;
        while (d >= 0 && ++at[d] == out->region.start[d] + out->region.size[d]) {
            at[d] = out->region.start[d];
            d--;
        }
        if (d < 0) return FV_OK;
    }
}

static double cost(const fv_need *n) {
    (void)n;
    return 40;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(poisson) = {
    .name = "poisson",
    .family = "tomography",
    .also = "random_noise, imnoise, poissrnd",
    .stage = "simulate",
    .brief = "add the noise of counted quanta",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(poisson),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Every voxel is drawn from Poisson's distribution with the voxel as its mean; it is 0 if the mean is not "
           "positive. The noise depends only on seed and place, so it is the same for all chunks and processors. The result "
           "is float32.",
    .citation = "Hormann, The transformed rejection method for generating Poisson random variables, Insurance: Mathematics and "
                "Economics 12, 1993",
    .example = "poisson(phantom(\"shepp-logan\", [200, 200]) * 30) |> write(\"counts.tif\")",
    .see = "expose misalign phantom",
};
