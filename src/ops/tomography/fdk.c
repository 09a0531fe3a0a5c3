/* fdk: reconstruction from the projections of a cone beam, after Feldkamp, Davis and Kress. */
#include "base/math.h"
#include "kernels/fourier.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/tomography/cone_device.h"
#include "ops/tomography/cone_scan.h"
#include "ops/tomography/response.h"

typedef struct {
    fv_geometry geometry;
    fv_choice   filter;
    fv_numbers  size;
    double      cutoff, order;
} fdk;

enum { LANES = FV_BEAM_LANES, TILE = 16, BLOCK = 16 };
#define PI 0x1.921fb54442d18p+1

static const fv_param params[] = {
    FV_PARAM(fdk, geometry, .each = 1, .doc = "cone(angles, source, detector)"),
    FV_PARAM(fdk, filter, .def = "ramp", .choices = FV_RESPONSE_CHOICES, .doc = "ramp is sharpest, hann and parzen smooth most"),
    FV_PARAM(fdk, size, .def = "", .min = 1, .max = 8192, .unit = "px",
             .doc = "slices, rows and columns of the volume (of a fan beam: rows and columns); left out: the detector's size"),
    FV_PARAM(fdk, cutoff, .def = "0.5", .above = true, .max = 1,
             .doc = "of butterworth: where it falls to one half, as a "
                    "part of the highest frequency"),
    FV_PARAM(fdk, order, .def = "2", .min = 1, .max = 20, .doc = "of butterworth: how steeply it falls"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "projections", FV_KIND_IMAGE,
                                     .doc = "line integrals, as minus_log gives them; axes angle z x, z angle x, or of a fan "
                                            "beam angle x" },
                                   FV_INPUT_END };

/* How far the source turns; angles must go one way in even steps. */
static double span(const fv_geometry *g) {
    double first = g->angles.value[0], last = g->angles.value[g->angles.count - 1];
    return fabs(last - first) * (g->radians ? 1 : PI / 180);
}

static double center_of(const fv_geometry *g, int64_t columns) {
    return g->center.count ? g->center.value[0] : (double)(columns - 1) / 2;
}

/* A detector that sees the axis more than a tenth of its width from its middle is meant to see one side only. */
static bool displaced(const fv_geometry *g, int64_t columns) {
    return fabs(center_of(g, columns) - (double)(columns - 1) / 2) > (double)columns / 10;
}

/* The angle between the middle ray and the outermost one that is still measured on both sides. */
static double fan(const fv_geometry *g, int64_t columns) {
    double center = center_of(g, columns), half = FV_MIN(center, (double)(columns - 1) - center);
    return fv__atan(half * g->pitch / (g->source + g->detector));
}

static bool full_turn(const fv_geometry *g) {
    return g->angles.count > 2 && span(g) * (double)g->angles.count / (double)(g->angles.count - 1) > 2 * PI - 1e-3;
}

static fv_status check_angles(const fv_geometry *g, int64_t columns, fv_error *error) {
    const double *angle = g->angles.value;
    int64_t       n = g->angles.count;
    if (n < 3) return fv_fail(error, FV_ERROR_USAGE, "%lld angles; at least 3 are needed", (long long)n);
    double step = (angle[n - 1] - angle[0]) / (double)(n - 1);
    for (int64_t i = 1; i < n; i++)
        if (!(fabs(angle[i] - angle[i - 1] - step) <= 1e-3 * fabs(step)))
            return fv_fail(error, FV_ERROR_USAGE, "angles must go in even steps; between %g and %g it is %g elsewhere",
                           angle[i - 1], angle[i], step);
    if (displaced(g, columns) && !full_turn(g))
        return fv_fail(error, FV_ERROR_USAGE,
                       "center = %g: a detector of %lld columns that is displaced so far needs angles over a whole turn",
                       center_of(g, columns), (long long)columns);
    double least = PI + 2 * fan(g, columns), have = span(g) + fabs(step) * (g->radians ? 1 : PI / 180);
    if (full_turn(g) || have >= least - 1e-6) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "the angles span %.4g degrees; needed is a whole turn, or half a turn and the fan: %.4g degrees",
                   have * 180 / PI, least * 180 / PI);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fdk                 *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_scan              scan;
    FV_TRY(fv__scan_find(in, &p->geometry, &scan, error));
    if (p->geometry.beam != FV_GEOMETRY_CONE)
        return fv_fail(error, FV_ERROR_USAGE, "geometry must be cone(...); parallel beams have fbp");
    FV_TRY(check_angles(&p->geometry, scan.ncolumns, error));
    return fv__cone_volume(&p->geometry, in, &p->size, &i->out->image, error);
}

typedef struct work {
    fv_scan    scan;
    fv_cone    cone;
    fv_lines   lines;
    fv_fourier fourier;
    double    *table, *response;
    int64_t    before;        /* columns that are added before the detector's first */
    float     *slant, *share; /* of a ray: [nrows][columns] by its slant; [columns] where opposite rays are measured too */
    float     *raw, *padded, *filtered, *tile;
} work;

/* A displaced detector is made wide enough for both sides: what it does not see counts nothing, but filtering reaches there. */
static void widen(const fv_geometry *g, work *w) {
    int64_t more = (int64_t)ceil(fabs(2 * w->cone.center - (double)(w->cone.columns - 1)));
    w->before = 0;
    if (!displaced(g, w->cone.columns)) return;
    if (w->cone.center < (double)(w->cone.columns - 1) / 2) w->before = more;
    w->cone.columns += more;
    w->cone.center += (double)w->before;
}

static void set_up(const fv_need *n, work *w) {
    const fdk *p = n->params;
    bool       flat = n->out->image.ndim < 3;
    fv__scan_find(&n->in[0]->image, &p->geometry, &w->scan, NULL);
    fv__cone_set(&p->geometry, &n->in[0]->image, &n->out->image, &w->cone);
    widen(&p->geometry, w);
    w->lines = (fv_lines){ .samples = 1, .count = 1, .single = flat };
    if (!flat) {
        w->lines.first = n->region.start[0];
        w->lines.count = fv__lines_round(n->region.size[0]);
        FV_ISA_NAME(fv__cone_rows)(&w->cone, w->lines.first, w->lines.count, &w->lines.start, &w->lines.samples);
        w->lines.samples = fv__lines_round(w->lines.samples);
    }
    w->cone.first_row = w->lines.start;
    w->cone.nrows = w->lines.samples;
}

static void need(const fv_need *n, fv_region *in) {
    work w;
    set_up(n, &w);
    in[0] = fv__region_whole(&n->in[0]->image);
    if (w.scan.row < 0) return;
    int64_t first = FV_MIN(FV_MAX(w.cone.first_row, 0), w.scan.nrows - 1);
    int64_t end = FV_MAX(FV_MIN(w.cone.first_row + w.cone.nrows, w.scan.nrows), first + 1);
    in[0].start[w.scan.row] = first;
    in[0].size[w.scan.row] = end - first;
}

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    fv_scratch pieces = { memory };
    set_up(n, w);
    int64_t length = fv__response_length(w->cone.columns), size = (int64_t)sizeof(float);
    w->cone.cosine = fv__scratch_take(&pieces, w->cone.nangles * (int64_t)sizeof(double));
    w->cone.sine = fv__scratch_take(&pieces, w->cone.nangles * (int64_t)sizeof(double));
    w->fourier.n = length;
    w->fourier.turn = fv__scratch_take(&pieces, length * size);
    w->fourier.response = fv__scratch_take(&pieces, length * size);
    w->table = fv__scratch_take(&pieces, length * (int64_t)sizeof(double));
    w->response = fv__scratch_take(&pieces, (length / 2 + 1) * (int64_t)sizeof(double));
    w->raw = fv__scratch_take(&pieces, w->scan.ncolumns * size);
    w->padded = fv__scratch_take(&pieces, 2 * fv__bundle_rows_bytes(length));
    w->slant = fv__scratch_take(&pieces, w->cone.nrows * w->cone.columns * size);
    w->share = fv__scratch_take(&pieces, w->cone.columns * size);
    w->lines.blend = fv__scratch_take(&pieces, fv__lines_room(w->lines.samples) * size);
    w->tile = fv__scratch_take(&pieces, TILE * TILE * w->lines.count * size);
    w->filtered = fv__scratch_take(&pieces, w->cone.nangles * w->cone.columns * w->cone.nrows * size);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    return lay_out(n, &w, NULL);
}

/* Parker's weight: opposite rays of a short scan count once together, with a smooth beginning and end. beta: how far the source
 * has turned; gamma: the ray's angle from the middle one, in the sense in which opposite rays are beta + pi + 2 gamma apart. */
static double parker(double beta, double gamma, double delta) {
    double end = PI + 2 * delta, s;
    if (beta < 0 || beta > end) return 0;
    if (beta < 2 * (delta - gamma))
        s = fv__sin(PI / 4 * beta / FV_MAX(delta - gamma, 1e-9));
    else if (beta > PI - 2 * gamma)
        s = fv__sin(PI / 4 * (end - beta) / FV_MAX(delta + gamma, 1e-9));
    else
        return 1;
    return s * s;
}

static void weigh_slants(const work *w) {
    double d = w->cone.distance;
    for (int64_t row = 0; row < w->cone.nrows; row++) {
        double v = ((double)(w->cone.first_row + row) - w->cone.middle_row) * w->cone.pitch;
        for (int64_t x = 0; x < w->cone.columns; x++) {
            double u = ((double)x - w->cone.center) * w->cone.pitch;
            w->slant[row * w->cone.columns + x] = (float)(d / sqrt(d * d + u * u + v * v));
        }
    }
}

/* Wang's weight: what a displaced detector sees on one side only counts full, with a smooth change over what it sees on both.
 * gamma: the ray's angle from the middle one, positive on the longer side; delta: that of the last ray of the shorter side. */
static double wang(double gamma, double delta) {
    if (gamma >= delta) return 1;
    if (gamma <= -delta) return 0;
    return (fv__sin(PI / 2 * gamma / delta) + 1) / 2;
}

/* What the rays of a projection count where they were measured twice. */
static void weigh_shares(const work *w, const fv_geometry *g, int64_t angle) {
    double step = span(g) / (double)(g->angles.count - 1), over = (span(g) + step - PI) / 2, d = w->cone.distance;
    double sense = g->angles.value[g->angles.count - 1] > g->angles.value[0] ? 1 : -1;
    double side = w->before ? 1 : -1, both = fan(g, w->scan.ncolumns);
    for (int64_t x = 0; x < w->cone.columns; x++) {
        double gamma = fv__atan(((double)x - w->cone.center) * w->cone.pitch / d), share = 0.5;
        if (!full_turn(g))
            share = parker(((double)angle + 0.5) * step, sense * gamma, over);
        else if (displaced(g, w->scan.ncolumns))
            share = wang(side * gamma, both);
        w->share[x] = (float)(2 * share);
    }
}

/* Up to 16 rows of a projection from `first` on, weighted: to[column * step + row] where the detector is. */
static fv_status load_rows(const fv_run *r, const work *w, int64_t angle, int64_t first, int64_t rows, int64_t step, float *to,
                           fv_error *error) {
    const fv_block *in = r->in[0];
    for (int64_t l = 0; l < FV_MIN(rows, LANES); l++) {
        int64_t at = first + l, offset = angle * in->stride[w->scan.angle];
        if (at < 0 || at >= w->scan.nrows) continue;
        if (w->scan.row >= 0) offset += (at - in->region.start[w->scan.row]) * in->stride[w->scan.row];
        fv__kernels_current()->convert(w->raw, FV_FLOAT32, (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype),
                                       in->dtype, w->scan.ncolumns);
        int64_t bad = fv__first_bad(w->raw, w->scan.ncolumns);
        if (bad >= 0)
            return fv_fail(error, FV_ERROR_INPUT, "projection %lld, row %lld, column %lld is not a finite number",
                           (long long)angle, (long long)at, (long long)bad);
        const float *slant = w->slant + (at - w->cone.first_row) * w->cone.columns + w->before, *share = w->share + w->before;
        for (int64_t x = 0; x < w->scan.ncolumns; x++) to[(w->before + x) * step + l] = w->raw[x] * (slant[x] * share[x]);
    }
    return FV_OK;
}

/* Two projections at a time, 16 rows at a time; the result lies column by column. */
static fv_status filter(const fv_run *r, const work *w, fv_error *error) {
    for (int64_t a = 0; a < w->cone.nangles; a += 2)
        for (int64_t row = 0; row < w->cone.nrows; row += LANES) {
            int parts = a + 1 < w->cone.nangles ? 2 : 1;
            memset(w->padded, 0, (size_t)(w->fourier.n * 2 * LANES) * sizeof *w->padded);
            for (int part = 0; part < parts; part++) {
                weigh_shares(w, &((const fdk *)r->need.params)->geometry, a + part);
                FV_TRY(load_rows(r, w, a + part, w->cone.first_row + row, LANES, 2 * LANES, w->padded + part * LANES, error));
            }
            FV_ISA_NAME(fv__fourier_filter)(&w->fourier, w->padded);
            for (int part = 0; part < parts; part++)
                for (int64_t x = 0; x < w->cone.columns; x++)
                    memcpy(w->filtered + ((a + part) * w->cone.columns + x) * w->cone.nrows + row,
                           w->padded + (2 * x + part) * LANES, (size_t)FV_MIN(LANES, w->cone.nrows) * sizeof(float));
        }
    return FV_OK;
}

/* A square of columns of voxels, a few angles after the other: neighbours look at the same few columns of the detector. */
static void fill_tile(const work *w, const fv_block *out, int64_t y, int64_t x) {
    int     flat = out->region.ndim < 3;
    int64_t depth = w->lines.count, slices = flat ? 1 : out->region.size[0], stride = flat ? 0 : out->stride[0];
    int64_t height = FV_MIN(TILE, out->region.size[1 - flat] - y), width = FV_MIN(TILE, out->region.size[2 - flat] - x);
    memset(w->tile, 0, (size_t)(TILE * TILE * depth) * sizeof *w->tile);
    for (int64_t a = 0; a < w->cone.nangles; a += BLOCK)
        for (int64_t i = 0; i < height; i++)
            for (int64_t k = 0; k < width; k++) FV_ISA_NAME(fv__cone_gather)
    (&w->cone, &w->lines, w->filtered, a, FV_MIN(a + BLOCK, w->cone.nangles), out->region.start[1 - flat] + y + i,
     out->region.start[2 - flat] + x + k, w->tile + (i * TILE + k) * depth);
    for (int64_t z = 0; z < slices; z++)
        for (int64_t i = 0; i < height; i++)
            for (int64_t k = 0; k < width; k++)
                ((float *)out->data)[z * stride + (y + i) * out->stride[1 - flat] + x + k] = w->tile[(i * TILE + k) * depth + z];
}

/* What the back-projection of any region needs, but the projections. */
static void prepare(const fdk *p, work *w) {
    const fv_geometry *g = &p->geometry;
    fv__cone_turn(g, &w->cone);
    double step = span(g) / (double)(w->cone.nangles - 1),
           pixel = g->pitch * g->source / w->cone.distance; /* as seen at the axis */
    fv__response((fv_response)p->filter.index, w->fourier.n, step / 4 / pixel, p->cutoff, p->order, w->table, w->response);
    FV_ISA_NAME(fv__fourier_prepare)(&w->fourier, w->response);
    weigh_slants(w);
}

static fv_status run(fv_run *r, fv_error *error) {
    work w;
    int  flat = r->out->region.ndim < 3;
    lay_out(&r->need, &w, r->scratch);
    prepare(r->need.params, &w);
    FV_TRY(filter(r, &w, error));
    for (int64_t y = 0; y < r->out->region.size[1 - flat]; y += TILE)
        for (int64_t x = 0; x < r->out->region.size[2 - flat]; x += TILE) fill_tile(&w, r->out, y, x);
    return FV_OK;
}

/* ---------------------------------------------------------------- on a device */

typedef struct source {
    const fv_run *run;
    const work   *work;
} source;

static fv_status pack(void *context, int64_t angle, int64_t first, int64_t rows, float *to, fv_error *error) {
    const source *s = context;
    weigh_shares(s->work, &((const fdk *)s->run->need.params)->geometry, angle);
    for (int64_t row = 0; row < rows; row += LANES)
        FV_TRY(load_rows(s->run, s->work, angle, first + row, rows - row, rows, to + row, error));
    return FV_OK;
}

static fv_cone_job job_of(const work *w) {
    return (fv_cone_job){ .cone = w->cone,
                          .first = w->lines.first,
                          .count = fv__lines_round(w->lines.count),
                          .single = w->lines.single,
                          .fourier = &w->fourier,
                          .pack = pack };
}

static int64_t least(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    fv_cone_job job = job_of(&w);
    return fv__cone_gather_least(&job, &n->region);
}

static int64_t wanted(const fv_need *n) {
    work w;
    lay_out(n, &w, NULL);
    fv_cone_job job = job_of(&w);
    return fv__cone_gather_wanted(&job, &n->region);
}

static fv_status run_device(fv_run *r, fv_device *device, fv_error *error) {
    work w;
    lay_out(&r->need, &w, r->scratch);
    prepare(r->need.params, &w);
    fv_cone_job job = job_of(&w);
    job.context = &(source){ r, &w };
    return fv__cone_gather_run(r, &job, device, error);
}

static const fv_device_kernel device = { .tolerance = 1e-5, .least = least, .wanted = wanted, .run = run_device };

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    chunk[0] = FV_CONE_HEIGHT;
}

static double cost(const fv_need *n) { return 1.0 * (double)((const fdk *)n->params)->geometry.angles.count; }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(fdk) = {
    .name = "fdk",
    .family = "tomography",
    .stage = "reconstruct",
    .brief = "reconstruct a volume from a cone beam (Feldkamp, Davis and Kress)",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fdk),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .device = &device,
    .doc = "Exact in the plane in which the source turns, and good near it. The result is float32.\n"
           "Over a whole turn all rays count alike. Angles that span half a turn plus the fan are a short scan and get "
           "Parker's weights. If the axis is seen more than a tenth of the detector's width away from its middle, the "
           "detector is taken as displaced so that it sees one side only (half fan), and Wang's weights are used; this needs "
           "a whole turn.\n"
           "A part of the volume reads only the detector rows that see it.",
    .citation = "Feldkamp, Davis and Kress, Practical cone-beam algorithm, J. Opt. Soc. Am. A 1, 1984; Parker, Optimal short "
                "scan convolution reconstruction for fan beam CT, Med. Phys. 9, 1982; Wang, X-ray micro-CT with a displaced "
                "detector array, Med. Phys. 29, 2002",
    .example = "g = cone(range(0, 357, 3), 300, 100)\n"
               "p = xray(phantom(\"shepp-logan\", [16, 128, 128]), g)\n"
               "write(fdk(p, g), \"volume.tif\")",
    .see = "cone fbp sirt find_center",
};
