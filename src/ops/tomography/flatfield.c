/* flatfield: projections as a share of what the beam gives without an object. */
#include "op/scratch.h"
#include "ops/tomography/fields.h"

typedef struct {
    double least;
} flatfield;

static const fv_param params[] = {
    FV_PARAM(flatfield, least, .def = "1e-6", .above = true, .max = 1e6, .doc = "the beam is taken as at least this bright"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "projections", FV_KIND_IMAGE, .doc = "raw projections, axes angle z x" },
                                   { "flat", FV_KIND_IMAGE,
                                     .doc = "one or several images of the beam without the object; axes z x or n z x" },
                                   { "dark", FV_KIND_IMAGE, .optional = true,
                                     .doc = "one or several images without beam; "
                                            "left out: 0" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) { return fv__fields_infer(i, inputs, error); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const flatfield *p = r->need.params;
    const fv_block  *in = r->in[FV__PROJECTIONS], *out = r->out;
    int64_t          n = out->region.size[2];
    fv_scratch       pieces = { r->scratch };
    float           *raw = fv__scratch_take(&pieces, n * (int64_t)sizeof(float));
    float           *flat = fv__scratch_take(&pieces, n * (int64_t)sizeof(float));
    float           *dark = fv__scratch_take(&pieces, n * (int64_t)sizeof(float)), least = (float)p->least;
    for (int64_t z = 0; z < out->region.size[1]; z++) {
        fv__field_row(r->in[FV__FLAT], z, n, raw, flat);
        fv__field_row(r->in[FV__DARK], z, n, raw, dark);
        for (int64_t x = 0; x < n; x++) flat[x] = flat[x] - dark[x] > least ? flat[x] - dark[x] : least;
        for (int64_t a = 0; a < out->region.size[0]; a++) {
            float *to = (float *)out->data + a * out->stride[0] + z * out->stride[1];
            fv__kernels_current()->convert(to, FV_FLOAT32,
                                           (const char *)in->data +
                                               (a * in->stride[0] + z * in->stride[1]) * (int64_t)fv_dtype_size(in->dtype),
                                           in->dtype, n);
            for (int64_t x = 0; x < n; x++) to[x] = (to[x] - dark[x]) / flat[x];
        }
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = fv__fields_need, .scratch = fv__fields_scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(flatfield) = {
    .name = "flatfield",
    .family = "tomography",
    .also = "normalize_bg, flat_field, background_correction",
    .stage = "filter",
    .brief = "divide projections by the beam without an object",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(flatfield),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .doc = "(projections - dark) / (flat - dark), where flat and dark are averaged over their images. The result is the "
           "transmitted share, near 1 beside the object. As tomopy.normalize. The result is float32.",
    .example = "p = xray(phantom(\"shepp-logan\", [64, 128, 128]), parallel(range(0, 175, 5))) / 20\n"
               "flat = rescale(gaussian(phantom(\"noise\", [64, 128]), 8), 300, 1000)\n"
               "flatfield(expose(p, flat), flat) |> write(\"transmitted.tif\")",
    .see = "minus_log expose divide",
};
