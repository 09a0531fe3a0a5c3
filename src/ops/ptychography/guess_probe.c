/* guess_probe: a probe to begin with, from the mean of all frames. */
#include "base/math.h"
#include "kernels/spectrum.h"
#include "op/kernels.h"
#include "op/op.h"
#include "op/scratch.h"

typedef struct {
    double defocus;
} guess_probe;

static const fv_param params[] = {
    FV_PARAM(guess_probe, defocus, .def = "0", .unit = "px^2",
             .doc = "distance from the focus: wavelength times distance, by the area of a pixel of the object"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "mean frame, zero frequency in the middle; axes y x" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    if (in->ndim != 2 || fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image must be real with axes y x: project(frames, \"frame\", \"mean\")");
    i->out->image.dtype = FV_COMPLEX64;
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

typedef struct {
    fv_spectrum axes[2];
    double     *wave, *row;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    fv_scratch     pieces = { memory };
    const int64_t *shape = n->out->image.shape;
    k->wave = fv__scratch_take(&pieces, 2 * shape[0] * shape[1] * (int64_t)sizeof(double));
    k->row = fv__scratch_take(&pieces, shape[1] * (int64_t)sizeof(double));
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

/* The root of the frame with the phase of a defocused wave. Signs alternate, so that the wave comes to lie in the middle. */
static void fill(const work *k, const fv_block *in, double defocus) {
    int64_t height = in->region.size[0], width = in->region.size[1];
    for (int64_t y = 0; y < height; y++) {
        int64_t fy = (y + height / 2) % height;
        fv__kernels_current()->convert(
            k->row, FV_FLOAT64, (char *)in->data + fy * in->stride[0] * (int64_t)fv_dtype_size(in->dtype), in->dtype, width);
        for (int64_t x = 0; x < width; x++) {
            double v = (double)(y < (height + 1) / 2 ? y : y - height) / (double)height;
            double u = (double)(x < (width + 1) / 2 ? x : x - width) / (double)width;
            double value = k->row[(x + width / 2) % width], size = value > 0 && isfinite(value) ? sqrt(value) : 0;
            double angle =
                -0x1.921fb54442d18p+1 * (defocus * (v * v + u * u) + 2 * (v * (double)(height / 2) + u * (double)(width / 2)));
            k->wave[2 * (y * width + x)] = size * fv__cos(angle);
            k->wave[2 * (y * width + x) + 1] = size * fv__sin(angle);
        }
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    int64_t height = r->need.out->image.shape[0], width = r->need.out->image.shape[1];
    double  by = 1 / sqrt((double)(height * width));
    work    k;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    fill(&k, r->in[0], ((const guess_probe *)r->need.params)->defocus);
    FV_ISA_NAME(fv__spectrum_image)(k.axes, 2, k.wave, true);
    for (int64_t y = 0; y < r->out->region.size[0]; y++) {
        const double *from = k.wave + 2 * ((r->out->region.start[0] + y) * width + r->out->region.start[1]);
        float        *to = (float *)r->out->data + 2 * y * r->out->stride[0];
        for (int64_t x = 0; x < 2 * r->out->region.size[1]; x++) to[x] = (float)(from[x] * by);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) { memcpy(chunk, n->out->image.shape, 2 * sizeof *chunk); }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(guess_probe) = {
    .name = "guess_probe",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "a probe to begin with, from the mean frame",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(guess_probe),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .doc =
        "The mean of all frames is nearly the squared spectrum of the probe, because the object scatters to all sides. Its root "
        "with a phase of 0 is a focused probe, with a quadratic phase a defocused one. If you know how far the object was from "
        "the focus, say so: a start with the right defocus saves many iterations.",
    .example = "o = complex_image(ones([160, 160]), phantom(\"cells\", [160, 160]) / 255)\n"
               "at = scan_positions(\"fermat\", 96, 12)\n"
               "frames = diffract(o, make_probe(64, radius = 16, defocus = 200), at)\n"
               "write(amplitude(guess_probe(project(frames, \"frame\", \"mean\"))), \"probe.tif\")",
    .see = "ptycho make_probe project",
};
