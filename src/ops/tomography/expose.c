/* expose: raw counts of a detector that line integrals would have been measured from; what flatfield and minus_log undo. */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/tomography/fields.h"
#include "ops/tomography/quanta.h"

typedef struct {
    int64_t seed;
    bool    noise;
} expose;

static const fv_param params[] = {
    FV_PARAM(expose, seed, .def = "1", .doc = "another number gives other noise"),
    FV_PARAM(expose, noise, .def = "true",
             .doc = "draw the counts from Poisson's distribution; false: give the expected "
                    "counts"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "projections", FV_KIND_IMAGE, .doc = "line integrals of attenuation, axes angle z x" },
                                   { "flat", FV_KIND_IMAGE, .doc = "counts without the object, z x or n z x" },
                                   { "dark", FV_KIND_IMAGE, .optional = true, .doc = "counts without beam; left out: 0" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) { return fv__fields_infer(i, inputs, error); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const expose   *p = r->need.params;
    const fv_block *in = r->in[FV__PROJECTIONS], *out = r->out;
    int64_t         n = out->region.size[2];
    fv_scratch      pieces = { r->scratch };
    float          *raw = fv__scratch_take(&pieces, n * (int64_t)sizeof(float));
    float          *flat = fv__scratch_take(&pieces, n * (int64_t)sizeof(float));
    float          *dark = fv__scratch_take(&pieces, n * (int64_t)sizeof(float));
    for (int64_t z = 0; z < out->region.size[1]; z++) {
        fv__field_row(r->in[FV__FLAT], z, n, raw, flat);
        fv__field_row(r->in[FV__DARK], z, n, raw, dark);
        for (int64_t a = 0; a < out->region.size[0]; a++) {
            float  *to = (float *)out->data + a * out->stride[0] + z * out->stride[1];
            int64_t from = a * in->stride[0] + z * in->stride[1];
            int64_t at[2] = { out->region.start[0] + a, out->region.start[1] + z };
            fv__kernels_current()->convert(to, FV_FLOAT32, (const char *)in->data + from * (int64_t)fv_dtype_size(in->dtype),
                                           in->dtype, n);
            for (int64_t x = 0; x < n; x++)
                to[x] = (float)((double)dark[x] + ((double)flat[x] - (double)dark[x]) * fv__exp(-(double)to[x]));
            if (p->noise) FV_ISA_NAME(fv__quanta_row)(to, n, FV_ISA_NAME(fv__quanta_key)(p->seed, 3, at), out->region.start[2]);
        }
    }
    return FV_OK;
}

static double cost(const fv_need *n) { return ((const expose *)n->params)->noise ? 50 : 10; }

static const fv_pass passes[] = { { .need = fv__fields_need, .scratch = fv__fields_scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(expose) = {
    .name = "expose",
    .family = "tomography",
    .stage = "simulate",
    .brief = "simulate the counts of a detector",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(expose),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "dark + (flat - dark) exp(-projections), with the noise of counted quanta as poisson makes it. flat and dark are "
           "averaged over their images. minus_log(flatfield(counts, flat, dark)) undoes it, except for the noise. The result "
           "is float32.\n"
           "To blur the detector use gaussian(counts, sigma), which does not mix angles; to displace it use misalign.",
    .example = "p = xray(phantom(\"shepp-logan\", [64, 128, 128]), parallel(range(0, 175, 5))) / 20\n"
               "expose(p, ones([64, 128]) * 200) |> write(\"counts.tif\")",
    .see = "flatfield minus_log poisson misalign",
};
