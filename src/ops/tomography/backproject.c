/* backproject: the adjoint of xray, every projection smeared back along its rays. */
#include "op/scratch.h"
#include "ops/tomography/beam_device.h"
#include "ops/tomography/cone_scan.h"

typedef struct {
    fv_geometry geometry;
    fv_numbers  size;
    bool        mean;
} backproject;

static const fv_param params[] = {
    FV_PARAM(backproject, geometry, .each = 1, .doc = "parallel(angles = range(0, 179)) or cone(range(0, 359), 500, 200)"),
    FV_PARAM(backproject, size, .def = "", .min = 1, .max = 8192, .unit = "px",
             .doc = "rows and columns of a slice, one number or two (of a cone beam: slices, rows, columns); left out: the "
                    "detector's size"),
    FV_PARAM(backproject, mean, .def = "false",
             .doc = "divide by what projections of ones would give; 0 where that is below 0.001"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "projections", FV_KIND_IMAGE, .doc = "axes angle z x, z angle x, or angle x" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    backproject *p = i->params;
    fv_scan      scan;
    if (p->geometry.beam == FV_GEOMETRY_CONE)
        return fv__cone_volume(&p->geometry, &i->in[0]->image, &p->size, &i->out->image, error);
    FV_TRY(fv__scan_find(&i->in[0]->image, &p->geometry, &scan, error));
    return fv__scan_volume(&i->in[0]->image, &scan, &p->size, &i->out->image, error);
}

static bool is_cone(const fv_need *n) { return ((const backproject *)n->params)->geometry.beam == FV_GEOMETRY_CONE; }
static bool is_mean(const fv_need *n) { return ((const backproject *)n->params)->mean; }

static void need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    if (is_cone(n)) {
        fv__cone_spread_need(n, &((const backproject *)n->params)->geometry, in);
        return;
    }
    fv__scan_find(&n->in[0]->image, &((const backproject *)n->params)->geometry, &scan, NULL);
    in[0] = fv__scan_need(&scan, &n->in[0]->image, &n->region);
}

typedef struct work {
    fv_scan scan;
    fv_beam beam;
    float  *rows, *sinogram, *line, *cover;
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    const backproject   *p = n->params;
    const fv_image_type *out = &n->out->image;
    fv_scratch           pieces = { memory };
    fv__scan_find(&n->in[0]->image, &p->geometry, &w->scan, NULL);
    w->beam = (fv_beam){ w->scan.nangles, w->scan.ncolumns, out->shape[out->ndim - 2], out->shape[out->ndim - 1], NULL };
    w->beam.angle = fv__scratch_take(&pieces, w->beam.nangles * (int64_t)sizeof(fv_beam_angle));
    w->rows = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->scan.ncolumns));
    w->line = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->beam.width));
    w->cover = fv__scratch_take(&pieces, is_mean(n) ? w->beam.width * (int64_t)sizeof(float) : 0);
    w->sinogram = fv__scratch_take(&pieces, fv__beam_sinogram_bytes(&w->beam));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    if (is_cone(n)) return fv__cone_spread_scratch(n, &((const backproject *)n->params)->geometry, is_mean(n));
    return lay_out(n, &w, NULL);
}

/* A line of n voxels becomes the mean of what its rays hold. */
static void divide(const work *w, int64_t y, int64_t x, int64_t n) {
    FV_ISA_NAME(fv__beam_coverage)(&w->beam, 0, w->beam.nangles, y, w->cover);
    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < FV_BEAM_LANES; l++) {
            float *to = w->line + i * FV_BEAM_LANES + l;
            *to = w->cover[x + i] > 1e-3f ? *to / w->cover[x + i] : 0;
        }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    int             flat = out->region.ndim < 3;
    int64_t         first, count, y = out->region.start[1 - flat], x = out->region.start[2 - flat];
    work            w;
    if (is_cone(&r->need))
        return fv__cone_spread_run(r, &((const backproject *)r->need.params)->geometry, is_mean(&r->need), error);
    lay_out(&r->need, &w, r->scratch);
    FV_ISA_NAME(fv__beam_prepare)(&w.beam, &((const backproject *)r->need.params)->geometry);
    fv__scan_slices(&out->region, flat ? -1 : 0, &first, &count);
    for (int64_t z = 0; z < count; z += FV_BEAM_LANES) {
        int64_t slices = FV_MIN(FV_BEAM_LANES, count - z), stride = flat ? 0 : out->stride[0];
        FV_TRY(fv__scan_pack(&w.scan, r->in[0], first + z, slices, w.rows, w.sinogram, error));
        for (int64_t i = 0; i < out->region.size[1 - flat]; i++) {
            FV_ISA_NAME(fv__beam_gather)
            (&w.beam, w.sinogram, FV_BEAM_JOSEPH, 0, w.beam.nangles, y + i, x, out->region.size[2 - flat], w.line);
            if (is_mean(&r->need)) divide(&w, y + i, x, out->region.size[2 - flat]);
            fv__bundle_unpack(w.line, out->region.size[2 - flat], slices,
                              (float *)out->data + z * stride + i * out->stride[1 - flat], stride);
        }
    }
    return FV_OK;
}

static bool able(const fv_need *n) { return !is_cone(n) && !is_mean(n); }

static int64_t least(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    return fv__beam_gather_least(&w.beam, 0);
}

static int64_t wanted(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    return fv__beam_gather_wanted(&w.beam, 0);
}

static fv_status run_device(fv_run *r, fv_device *device, fv_error *error) {
    work w;
    lay_out(&r->need, &w, r->scratch);
    FV_ISA_NAME(fv__beam_prepare)(&w.beam, &((const backproject *)r->need.params)->geometry);
    fv_beam_job job = { .scan = w.scan, .beam = w.beam, .rows = w.rows, .weights = FV_BEAM_JOSEPH };
    return fv__beam_gather_run(r, &job, device, error);
}

static const fv_device_kernel device = { .tolerance = 1e-5, .able = able, .least = least, .wanted = wanted, .run = run_device };

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    chunk[0] = n->out->image.ndim < 3 || is_cone(n) ? FV_CONE_HEIGHT : FV_BEAM_LANES;
}

static double cost(const fv_need *n) {
    return (is_mean(n) ? 2 : 1) * (is_cone(n) ? 1.2 : 0.2) * (double)((const backproject *)n->params)->geometry.angles.count;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(backproject) = {
    .name = "backproject",
    .family = "tomography",
    .also = "bp",
    .stage = "reconstruct",
    .brief = "smear projections back along their rays: the adjoint of xray",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(backproject),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .device = &device,
    .doc = "This is not a reconstruction (fbp is one) but the exact adjoint of xray, which gradient methods need: the scalar "
           "product of xray(a) with b equals that of a with backproject(b). With mean = true every voxel gets the weighted "
           "mean of what its rays hold. The result is float32.",
    .citation = "Joseph, An improved algorithm for reprojecting rays through pixel images, IEEE Trans. Med. Imaging 1, 1982",
    .example = "g = parallel(range(0, 179))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(backproject(p, g), \"smeared.tif\")",
    .see = "xray fbp fdk",
};
