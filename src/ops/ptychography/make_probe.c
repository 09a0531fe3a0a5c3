/* make_probe: the wave behind an aperture, at some distance from it. */
#include "base/math.h"
#include "kernels/spectrum.h"
#include "op/op.h"
#include "op/scratch.h"

typedef struct {
    fv_numbers size;
    double     radius, edge, defocus, counts;
} make_probe;

static const fv_param params[] = {
    FV_PARAM(make_probe, size, .min = 1, .max = 8192, .unit = "px", .doc = "rows and columns, one number or two"),
    FV_PARAM(make_probe, radius, .def = "", .min = 0, .max = 8192, .unit = "px",
             .doc = "of the aperture; left out: a quarter of the shorter side"),
    FV_PARAM(make_probe, edge, .def = "2", .min = 0, .max = 1000, .unit = "px", .doc = "width of its soft edge"),
    FV_PARAM(make_probe, defocus, .def = "0", .unit = "px^2",
             .doc = "distance behind the aperture: wavelength times distance, by the area of a pixel"),
    FV_PARAM(make_probe, counts, .def = "1", .above = true, .max = 1e18, .doc = "sum of the squared amplitudes"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    make_probe *p = i->params;
    FV_TRY(fv__numbers_spread(&p->size, 2, "size", error));
    int64_t shape[] = { (int64_t)p->size.value[0], (int64_t)p->size.value[1] };
    for (int d = 0; d < 2; d++)
        if ((double)shape[d] != p->size.value[d]) return fv_fail(error, FV_ERROR_USAGE, "size must be whole numbers");
    if (!(fabs(p->defocus) < 1e12)) return fv_fail(error, FV_ERROR_USAGE, "defocus = %g is not possible", p->defocus);
    if (!(p->radius > 0)) p->radius = (double)FV_MIN(shape[0], shape[1]) / 4;
    i->out->kind = FV_KIND_IMAGE;
    fv_image_type_init(&i->out->image, FV_COMPLEX64, 2, shape);
    return FV_OK;
}

typedef struct {
    fv_spectrum axes[2];
    double     *wave;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch     pieces = { memory };
    const int64_t *shape = n->out->image.shape;
    k->wave = fv__scratch_take(&pieces, 2 * shape[0] * shape[1] * (int64_t)sizeof(double));
    for (int d = 0; d < 2; d++) {
        void *room = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(shape[d]));
        if (memory) FV_ISA_NAME(fv__spectrum_prepare)(&k->axes[d], shape[d], room);
    }
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

static void fill_aperture(const make_probe *p, int64_t height, int64_t width, double *wave) {
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double dy = (double)y - (double)(height / 2), dx = (double)x - (double)(width / 2);
            double inside = p->radius - sqrt(dy * dy + dx * dx);
            double soft = p->edge > 0 ? inside / p->edge + 0.5 : inside >= 0;
            soft = FV_MIN(FV_MAX(soft, 0), 1);
            wave[2 * (y * width + x)] = soft * soft * (3 - 2 * soft);
            wave[2 * (y * width + x) + 1] = 0;
        }
}

/* Fresnel's propagation: each frequency is turned by its square. */
static void propagate(const work *k, double defocus, int64_t height, int64_t width) {
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, k->wave, false);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double  fy = (double)(y < (height + 1) / 2 ? y : y - height) / (double)height;
            double  fx = (double)(x < (width + 1) / 2 ? x : x - width) / (double)width;
            double  angle = -0x1.921fb54442d18p+1 * defocus * (fy * fy + fx * fx), c = fv__cos(angle), s = fv__sin(angle);
            double *v = k->wave + 2 * (y * width + x), re = v[0];
            v[0] = fma(re, c, -(v[1] * s)); /* fused as written, and not as a compiler likes it */
            v[1] = fma(v[1], c, re * s);
        }
    FV_ISA_NAME(fv__spectrum_image)(k->axes, 2, k->wave, true);
}

static fv_status run(fv_run *r, fv_error *error) {
    const make_probe *p = r->need.params;
    int64_t           height = r->need.out->image.shape[0], width = r->need.out->image.shape[1];
    double            power = 0;
    work              k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fill_aperture(p, height, width, k.wave);
    if (p->defocus != 0) propagate(&k, p->defocus, height, width);
    for (int64_t i = 0; i < 2 * height * width; i++) power += k.wave[i] * k.wave[i];
    double by = power > 0 ? sqrt(p->counts / power) : 0;
    for (int64_t y = 0; y < r->out->region.size[0]; y++) {
        const double *from = k.wave + 2 * ((r->out->region.start[0] + y) * width + r->out->region.start[1]);
        float        *to = (float *)r->out->data + 2 * y * r->out->stride[0];
        for (int64_t x = 0; x < 2 * r->out->region.size[1]; x++) to[x] = (float)(from[x] * by);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 2 * sizeof *chunk); }

static const fv_pass passes[] = { { .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(make_probe) = {
    .name = "make_probe",
    .family = "ptychography",
    .stage = "simulate",
    .brief = "the wave behind an aperture, to simulate or to begin with",
    .version = 1,
    .params = params,
    .params_size = sizeof(make_probe),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "A round aperture with a soft edge, propagated by Fresnel's formula. A defocus of 500 px^2 is, for pixels of 10 nm and a "
        "wavelength of 0.1 nm, a distance of 0.5 mm. The result is complex64.",
    .example = "write(amplitude(make_probe(128, radius = 30, defocus = 1000)), \"probe.tif\")",
    .see = "diffract ptycho amplitude phase",
};
