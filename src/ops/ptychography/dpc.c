/* dpc: differential phase contrast, a quick look at the phase of a scan from where the counts of its frames lie. */
#include "op/op.h"

typedef struct {
    fv_list positions;
    double  step;
} dpc;
enum { FRAMES, MASK };

static const fv_param params[] = {
    FV_PARAM(dpc, positions, .each = 2, .doc = "row and column of each frame in pixels of the object: y0, x0, y1, x1, ..."),
    FV_PARAM(dpc, step, .def = "0", .min = 0, .max = 1e6, .unit = "px",
             .doc = "pixel of the result, in pixels of the object; 0: the mean distance of neighbours"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "frames", FV_KIND_IMAGE, .doc = "counts of each frame; axes frame y x" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "pixels of the detector that measure; 0: one that does not" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const dpc           *p = i->params;
    const fv_image_type *f = &i->in[FRAMES]->image;
    if (f->ndim != 3 || fv_dtype_is_complex(f->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "frames must be real and have three axes (frame, y, x); they have %d", f->ndim);
    if (p->positions.count != 2 * f->shape[0])
        return fv_fail(error, FV_ERROR_USAGE, "there are %lld frames and %g positions", (long long)f->shape[0],
                       (double)p->positions.count / 2);
    fv__bytes_printf(text, "integrate_slopes(frame_centers(frames%s), positions = [",
                     i->in[MASK]->kind == FV_KIND_IMAGE ? ", mask = mask" : "");
    for (int64_t k = 0; k < p->positions.count; k++) fv__bytes_printf(text, "%s%.9g", k ? "," : "", p->positions.value[k]);
    fv__bytes_printf(text, "], size = [%lld, %lld], step = %.17g)\n", (long long)f->shape[1], (long long)f->shape[2], p->step);
    return FV_OK;
}

/* It is always written in its steps. */
static fv_status infer(fv_infer *i, fv_error *error) {
    (void)i;
    return fv_fail(error, FV_ERROR_INTERNAL, "dpc was not written in its steps");
}
static fv_status run(fv_run *r, fv_error *error) {
    (void)r;
    return fv_fail(error, FV_ERROR_INTERNAL, "dpc was not written in its steps");
}
static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(dpc) = {
    .name = "dpc",
    .family = "ptychography",
    .stage = "reconstruct",
    .brief = "differential phase contrast: a quick look at the phase of a scan",
    .also = "differential phase contrast, iDPC, scanning transmission",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(dpc),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .doc = "Where the phase of the object rises, the counts of a frame move to one side: their center of mass tells the slope of "
           "the "
           "phase there, averaged over the probe. The slopes are put onto a grid and integrated (integrate_slopes). It takes no "
           "start "
           "and no iterations, and shows at once whether positions and orientation of a scan are right, as a picture that is as "
           "coarse "
           "as the probe. The result has no constant: its mean is 0.",
    .citation = "Thibault et al., Contrast mechanisms in scanning transmission x-ray microscopy, Phys. Rev. A 80, 2009",
    .example = "o = complex_image(ones([200, 200]), gaussian(phantom(\"cells\", [200, 200]) / 100, 2))\n"
               "p = make_probe(32, radius = 6, counts = 1e5)\n"
               "at = scan_positions(\"fermat\", 167, 4)\n"
               "write(dpc(poisson(diffract(o, p, at)), positions = at), \"dpc.tif\")",
    .see = "center_of_mass integrate_slopes ptycho",
};
