/* fbp: filtered back-projection of parallel rays. */
#include "kernels/fourier.h"
#include "op/scratch.h"
#include "ops/tomography/beam_device.h"
#include "ops/tomography/response.h"
#include "ops/tomography/scan.h"

typedef struct {
    fv_geometry geometry;
    fv_choice   filter;
    fv_numbers  size;
    double      cutoff, order;
    int         kind; /* no parameter: what the centre that is known when the run is planned makes of it */
} fbp;
enum { UNKNOWN, USUAL, HALF_ACQUISITION };

static const fv_param params[] = {
    FV_PARAM(fbp, geometry, .each = 1, .doc = "angles and centre of rotation: parallel(angles = range(0, 179))"),
    FV_PARAM(fbp, filter, .def = "ramp", .choices = FV_RESPONSE_CHOICES, .doc = "ramp is sharpest, hann and parzen smooth most"),
    FV_PARAM(fbp, size, .def = "", .min = 1, .max = 8192, .unit = "px",
             .doc = "rows and columns of a slice, one number or two; left out: the width of the detector, or of what a half "
                    "acquisition sees"),
    FV_PARAM(fbp, cutoff, .def = "0.5", .above = true, .max = 1,
             .doc = "of butterworth: where it falls to one half, as a "
                    "part of the highest frequency"),
    FV_PARAM(fbp, order, .def = "2", .min = 1, .max = 20, .doc = "of butterworth: how steeply it falls"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "projections", FV_KIND_IMAGE,
                                     .doc = "line integrals, as minus_log gives them; axes angle z x, z angle x, or angle x" },
                                   FV_INPUT_END };

/* A centre that the pipeline computes comes when the size of the slices is known already. */
static fv_status check_half(fbp *p, const fv_scan *scan, fv_error *error) {
    int kind = scan->half ? HALF_ACQUISITION : USUAL;
    if (p->kind != UNKNOWN && p->kind != kind)
        return fv_fail(
            error, FV_ERROR_INPUT,
            "the centre was found at column %g, far from the middle of a detector of %lld columns, and the angles make a "
            "whole turn: a half acquisition. Write the number into parallel(..., center = %g), since it changes the size "
            "of the slices",
            p->geometry.center.value[0], (long long)scan->ncolumns, p->geometry.center.value[0]);
    p->kind = kind;
    if (scan->half && p->geometry.center.count > 1)
        return fv_fail(
            error, FV_ERROR_USAGE,
            "center: a half acquisition (a whole turn, the axis near the edge of the detector) has one centre here; shift "
            "the projections first, or take sirt");
    if (scan->half && scan->field > 8192)
        return fv_fail(error, FV_ERROR_USAGE, "this half acquisition sees %lld columns; at most 8192 are possible",
                       (long long)scan->field);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fbp    *p = i->params;
    fv_scan scan;
    FV_TRY(fv__scan_find(&i->in[0]->image, &p->geometry, &scan, error));
    if (p->geometry.beam != FV_GEOMETRY_PARALLEL)
        return fv_fail(error, FV_ERROR_USAGE, "geometry must be parallel(...); cone beams are reconstructed by fdk");
    FV_TRY(check_half(p, &scan, error));
    return fv__scan_volume(&i->in[0]->image, &scan, &p->size, &i->out->image, error);
}

static void need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv__scan_find(&n->in[0]->image, &((const fbp *)n->params)->geometry, &scan, NULL);
    in[0] = fv__scan_need(&scan, &n->in[0]->image, &n->region);
}

typedef struct work {
    fv_scan    scan;
    fv_beam    beam;
    fv_fourier fourier;
    double    *table, *response;
    float     *weights; /* of a half acquisition */
    float     *rows, *sinogram, *line, *padded;
    int64_t    planes; /* projections in the sinogram */
} work;

static size_t lay_out_planes(const fv_need *n, int64_t planes, work *w, void *memory) {
    const fbp           *p = n->params;
    const fv_image_type *out = &n->out->image;
    fv_scratch           pieces = { memory };
    fv__scan_find(&n->in[0]->image, &p->geometry, &w->scan, NULL);
    int64_t columns = w->scan.field, length = fv__response_length(columns);
    w->beam = (fv_beam){ w->scan.nangles, columns, out->shape[out->ndim - 2], out->shape[out->ndim - 1], NULL };
    w->weights = fv__scratch_take(&pieces, w->scan.half ? w->scan.ncolumns * (int64_t)sizeof(float) : 0);
    w->beam.angle = fv__scratch_take(&pieces, w->beam.nangles * (int64_t)sizeof(fv_beam_angle));
    w->rows = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->scan.ncolumns));
    w->line = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->beam.width));
    w->fourier.n = length;
    w->fourier.turn = fv__scratch_take(&pieces, length * (int64_t)sizeof(float));
    w->fourier.response = fv__scratch_take(&pieces, length * (int64_t)sizeof(float));
    w->table = fv__scratch_take(&pieces, length * (int64_t)sizeof(double));
    w->response = fv__scratch_take(&pieces, (length / 2 + 1) * (int64_t)sizeof(double));
    w->padded = fv__scratch_take(&pieces, 2 * fv__bundle_rows_bytes(length));
    fv_beam part = w->beam;
    part.nangles = w->planes = planes < 0 ? w->scan.nangles : planes;
    w->sinogram = fv__scratch_take(&pieces, fv__beam_sinogram_bytes(&part));
    return pieces.used;
}

static size_t lay_out(const fv_need *n, work *w, void *memory) { return lay_out_planes(n, -1, w, memory); }

static size_t scratch(const fv_need *n) {
    work w;
    return lay_out(n, &w, NULL);
}

/* Projections 2k and 2k + 1 of the same slices go through the transform together. */
static void filter_rows(const work *w) {
    enum { LANES = FV_BEAM_LANES };
    int64_t n = w->beam.columns;
    for (int64_t a = 0; a < w->planes; a += 2) {
        int pairs = a + 1 < w->planes ? 2 : 1;
        memset(w->padded, 0, (size_t)(w->fourier.n * 2 * LANES) * sizeof *w->padded);
        for (int part = 0; part < pairs; part++) {
            const float *row = fv__beam_ray(&w->beam, w->sinogram, a + part, 0);
            for (int64_t x = 0; x < n; x++) memcpy(w->padded + (2 * x + part) * LANES, row + x * LANES, LANES * sizeof *row);
        }
        FV_ISA_NAME(fv__fourier_filter)(&w->fourier, w->padded);
        for (int part = 0; part < pairs; part++) {
            float *row = fv__beam_ray(&w->beam, w->sinogram, a + part, 0);
            for (int64_t x = 0; x < n; x++) memcpy(row + x * LANES, w->padded + (2 * x + part) * LANES, LANES * sizeof *row);
        }
    }
}

/* The whole field is as wide as on both sides of the axis the longer one; what the detector did not see there counts nothing, but
 * filtering reaches there. */
static void prepare(const fbp *p, work *w, bool responds) {
    fv_geometry moved = p->geometry;
    double      center = w->scan.half ? p->geometry.center.value[0] + (double)w->scan.before : 0;
    if (w->scan.half) {
        moved.center = (fv_list){ 1, &center };
        fv__scan_weigh(&w->scan, &p->geometry, w->weights);
        w->scan.weights = w->weights;
    }
    FV_ISA_NAME(fv__beam_prepare)(&w->beam, &moved);
    if (!responds)
        fv__response((fv_response)p->filter.index, w->fourier.n, 0x1.921fb54442d18p+0 / (double)w->scan.nangles, p->cutoff,
                     p->order, w->table, w->response);
    FV_ISA_NAME(fv__fourier_prepare)(&w->fourier, w->response);
}

typedef struct slices { /* of the region that is made */
    int64_t first, count, y, rows, x, columns;
} slices;

static slices slices_of(const fv_region *region) {
    int    flat = region->ndim < 3;
    slices s = { .y = region->start[1 - flat],
                 .rows = region->size[1 - flat],
                 .x = region->start[2 - flat],
                 .columns = region->size[2 - flat] };
    fv__scan_slices(region, flat ? -1 : 0, &s.first, &s.count);
    return s;
}

/* A row of a bundle of slices goes to its place. */
static void put_row(const fv_block *out, const slices *s, int64_t z, int64_t row, const float *line) {
    int     flat = out->region.ndim < 3;
    int64_t stride = flat ? 0 : out->stride[0];
    fv__bundle_unpack(line, s->columns, FV_MIN(FV_BEAM_LANES, s->count - z),
                      (float *)out->data + z * stride + row * out->stride[1 - flat], stride);
}

static fv_status run(fv_run *r, fv_error *error) {
    slices s = slices_of(&r->out->region);
    work   w;
    lay_out(&r->need, &w, r->scratch);
    prepare(r->need.params, &w, false);
    for (int64_t z = 0; z < s.count; z += FV_BEAM_LANES) {
        FV_TRY(fv__scan_pack(&w.scan, r->in[0], s.first + z, FV_MIN(FV_BEAM_LANES, s.count - z), w.rows, w.sinogram, error));
        filter_rows(&w);
        for (int64_t i = 0; i < s.rows; i++) {
            FV_ISA_NAME(fv__beam_gather)(&w.beam, w.sinogram, FV_BEAM_LINEAR, 0, w.beam.nangles, s.y + i, s.x, s.columns, w.line);
            put_row(r->out, &s, z, i, w.line);
        }
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- while projections come in */

enum { SUMS = 3 }; /* of a voxel: what blocks of angles gave, and two of the block that is not complete */

static int sum_axis(const fv_need *n) {
    fv_scan scan;
    fv__scan_find(&n->in[0]->image, &((const fbp *)n->params)->geometry, &scan, NULL);
    return scan.angle;
}

/* Projections are filtered in pairs. */
static int64_t sum_until(const fv_need *n, int64_t planes) {
    return planes == n->in[0]->image.shape[sum_axis(n)] ? planes : planes / 2 * 2;
}

static int64_t bundle_size(const slices *s) { return s->rows * s->columns * FV_BEAM_LANES; } /* floats of one sum */

/* Behind the sums lies the response of the filter, which takes longer to find than a projection to be added. */
static int64_t sum_floats(const slices *s) { return (s->count + FV_BEAM_LANES - 1) / FV_BEAM_LANES * bundle_size(s) * SUMS; }

static size_t sum_bytes(const fv_need *n) {
    slices s = slices_of(&n->region);
    work   w;
    lay_out_planes(n, 0, &w, NULL);
    return (size_t)sum_floats(&s) * sizeof(float) + (size_t)(w.fourier.n / 2 + 1) * sizeof(double);
}

static size_t sum_scratch(const fv_need *n, int64_t planes) {
    work w;
    return lay_out_planes(n, planes, &w, NULL);
}

/* Where the sums of a row of slices from z on begin, and those of its block that is not complete. */
static float *sums_of(const slices *s, void *sum, int64_t z, int64_t i, float **open) {
    int64_t row = i * s->columns * FV_BEAM_LANES;
    float  *first = (float *)sum + z / FV_BEAM_LANES * bundle_size(s) * SUMS;
    *open = first + bundle_size(s) + 2 * row;
    return first + row;
}

static void put_sums(const fv_block *out, const slices *s, int64_t z, int64_t i, const float *to, const float *open,
                     float *line) {
    for (int64_t x = 0; x < s->columns; x++)
        for (int l = 0; l < FV_BEAM_LANES; l++) {
            int64_t at = x * FV_BEAM_LANES + l, low = 2 * x * FV_BEAM_LANES + l;
            line[at] = to[at] + (open[low] + open[low + FV_BEAM_LANES]);
        }
    put_row(out, s, z, i, line);
}

/* The image is made row by row as sums are added to: they are at hand then. */
static fv_status sum_add(fv_run *r, int64_t from, int64_t until, void *sum, fv_error *error) {
    slices s = slices_of(&r->need.region);
    work   w;
    float *open;
    lay_out_planes(&r->need, until - from, &w, r->scratch);
    w.response = (double *)((float *)sum + sum_floats(&s));
    prepare(r->need.params, &w, from > 0);
    fv_scan part = w.scan;
    part.nangles = w.planes;
    for (int64_t z = 0; z < s.count; z += FV_BEAM_LANES) {
        FV_TRY(fv__scan_pack(&part, r->in[0], s.first + z, FV_MIN(FV_BEAM_LANES, s.count - z), w.rows, w.sinogram, error));
        filter_rows(&w);
        for (int64_t i = 0; i < s.rows; i++) {
            float *to = sums_of(&s, sum, z, i, &open);
            FV_ISA_NAME(fv__beam_gather_on)
            (&w.beam, w.sinogram, FV_BEAM_LINEAR, from, until, s.y + i, s.x, s.columns, open, to);
            if (r->out) put_sums(r->out, &s, z, i, to, open, w.line);
        }
    }
    return FV_OK;
}

static void sum_image(fv_run *r, const void *sum) {
    slices s = slices_of(&r->out->region);
    work   w;
    float *open;
    lay_out_planes(&r->need, 0, &w, r->scratch);
    for (int64_t z = 0; z < s.count; z += FV_BEAM_LANES)
        for (int64_t i = 0; i < s.rows; i++) {
            const float *to = sums_of(&s, (void *)(uintptr_t)sum, z, i, &open);
            put_sums(r->out, &s, z, i, to, open, w.line);
        }
}

static const fv_pass_sum sum = {
    .axis = sum_axis, .until = sum_until, .bytes = sum_bytes, .scratch = sum_scratch, .add = sum_add, .image = sum_image
};

/* ---------------------------------------------------------------- on a device */

static int64_t least(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    return fv__beam_gather_least(&w.beam, w.fourier.n);
}

static int64_t wanted(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    return fv__beam_gather_wanted(&w.beam, w.fourier.n);
}

static fv_status run_device(fv_run *r, fv_device *device, fv_error *error) {
    work w;
    lay_out(&r->need, &w, r->scratch);
    prepare(r->need.params, &w, false);
    fv_beam_job job = { .scan = w.scan, .beam = w.beam, .rows = w.rows, .weights = FV_BEAM_LINEAR, .fourier = &w.fourier };
    return fv__beam_gather_run(r, &job, device, error);
}

static const fv_device_kernel device = { .tolerance = 1e-5, .least = least, .wanted = wanted, .run = run_device };

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    chunk[0] = n->out->image.ndim == 3 ? FV_BEAM_LANES : 64;
}

static double cost(const fv_need *n) { return 0.2 * (double)((const fbp *)n->params)->geometry.angles.count; }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run, .sum = &sum }, FV_PASS_END };

const fv_op FV_OP(fbp) = {
    .name = "fbp",
    .family = "tomography",
    .also = "iradon, gridrec, filtered_backprojection, fourierrec, lprec",
    .stage = "reconstruct",
    .brief = "reconstruct slices by filtered back-projection",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fbp),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .device = &device,
    .doc =
        "Each projection is filtered along x and back-projected with linear interpolation, as skimage.transform.iradon "
        "does, with the same filters and scale: pi / (2 * number of angles), right for angles that are spread over half a "
        "turn or a whole one. parzen and butterworth are TomoPy's filters. Slices are independent: a part of the volume "
        "needs only its own detector rows. Angles over a whole turn with a centre more than a tenth of the detector's width "
        "from its middle are a half acquisition, which sees almost twice the width: what is measured from one side only counts "
        "twice, with a smooth change over what is measured from both. The result is float32.",
    .citation = "Kak and Slaney, Principles of Computerized Tomographic Imaging, 1988; Wang, X-ray micro-CT with a displaced "
                "detector array, Med. Phys. 29, 2002",
    .example = "g = parallel(range(0, 179))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(fbp(p, g), \"slice.tif\")",
    .see = "fdk sirt parallel find_center remove_rings circle",
};
