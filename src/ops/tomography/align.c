/* align: a tilt series whose projections were displaced, put straight by correlating each with the one before. */
#include "base/math.h"
#include "base/take.h"
#include "kernels/spectrum.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/tomography/displace.h"
#include <stdlib.h>

typedef struct {
    int64_t     limit;
    bool        subpixel;
    fv_geometry geometry;
} align;

static const fv_param params[] = {
    FV_PARAM(align, limit, .def = "32", .min = 1, .max = 1000, .unit = "px", .doc = "no projection is moved by more than this"),
    FV_PARAM(align, subpixel, .def = "false", .doc = "move by fractions of pixels too, with linear interpolation"),
    FV_PARAM(align, geometry, .def = "", .each = 1,
             .doc = "parallel(angles), if all of the object is in view: its centre of mass is then followed across the axis"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "projections", FV_KIND_IMAGE, .doc = "axes angle z x, z angle x, or angle x; angles in order" }, FV_INPUT_END
};

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_scan scan;
    FV_TRY(fv__shift_axes(&i->in[0]->image, &scan, error));
    if (scan.ncolumns < 4) return fv_fail(error, FV_ERROR_USAGE, "the detector has fewer than 4 columns");
    const fv_geometry *g = &((const align *)i->params)->geometry;
    if (g->beam == FV_GEOMETRY_CONE) return fv_fail(error, FV_ERROR_USAGE, "geometry must be parallel(...)");
    if (g->beam == FV_GEOMETRY_PARALLEL) FV_TRY(fv__scan_find(&i->in[0]->image, g, &scan, error));
    if (g->beam == FV_GEOMETRY_PARALLEL && scan.nangles < 4)
        return fv_fail(error, FV_ERROR_USAGE, "%lld projections are too few to follow the centre of mass; at least 4",
                       (long long)scan.nangles);
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

/* ---------------------------------------------------------------- first pass: how far each is from the one before */

static bool has_corner(const fv_region *chunk, const fv_scan *scan) {
    return !chunk->start[scan->column] && (scan->row < 0 || !chunk->start[scan->row]);
}

/* Whole projections, and the one before, for the chunk that has their corner. */
static void pair_need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv__shift_axes(&n->in[0]->image, &scan, NULL);
    if (!has_corner(&n->region, &scan)) {
        for (int d = 0; d < in[0].ndim; d++) in[0].size[d] = FV_MIN(in[0].size[d], 1);
        return;
    }
    int64_t first = FV_MAX(n->region.start[scan.angle] - 1, 0), end = n->region.start[scan.angle] + n->region.size[scan.angle];
    in[0] = fv__region_whole(&n->in[0]->image);
    in[0].start[scan.angle] = first;
    in[0].size[scan.angle] = end - first;
}

typedef struct work {
    fv_scan scan;
    int64_t height, width; /* of the transform */
    void   *tables[2];     /* of its axes */
    double *plane;
    double *profile; /* mass of the rows of the projection loaded last */
    float  *row;
} work;

typedef struct pair {
    double number, dz, dx;
    double mass, moment; /* of the projection, its border taken away */
} pair;                  /* where the geometry is known, followed by the mass of each row */

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    fv_scratch pieces = { memory };
    fv__shift_axes(&n->in[0]->image, &w->scan, NULL);
    w->height = fv__spectrum_length(w->scan.nrows);
    w->width = fv__spectrum_length(w->scan.ncolumns);
    w->row = fv__scratch_take(&pieces, w->scan.ncolumns * (int64_t)sizeof(float));
    w->profile = fv__scratch_take(&pieces, w->scan.nrows * (int64_t)sizeof(double));
    w->tables[0] = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(w->height));
    w->tables[1] = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(w->width));
    w->plane = fv__scratch_take(&pieces, 2 * w->height * w->width * (int64_t)sizeof(double));
    return pieces.used;
}

static size_t pair_scratch(const fv_need *n) {
    work w;
    fv__shift_axes(&n->in[0]->image, &w.scan, NULL);
    return has_corner(&n->region, &w.scan) ? lay_out(n, &w, NULL) : 64;
}

/* Falls to 0 over an eighth of the width at each border, so that opposite borders do not meet in a step. */
static double taper(int64_t i, int64_t n) {
    double part = ((double)FV_MIN(i, n - 1 - i) + 0.5) * 8 / (double)n;
    return n < 8 || part >= 1 ? 1 : 0.5 - 0.5 * fv__cos(0x1.921fb54442d18p+1 * part);
}

static const float *load_row(const work *w, const fv_block *in, int64_t a, int64_t z) {
    const fv_scan *scan = &w->scan;
    int64_t        offset = (a - in->region.start[scan->angle]) * in->stride[scan->angle];
    if (scan->row >= 0) offset += z * in->stride[scan->row];
    fv__kernels_current()->convert(w->row, FV_FLOAT32, (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype),
                                   in->dtype, scan->ncolumns);
    return w->row;
}

/* One projection into the real (part 0) or imaginary (1) numbers of the plane, the mean of its border taken away: what the taper
 * cuts off must be near 0, or its own shape, which does not move, would correlate. */
static void load(const work *w, const fv_block *in, int64_t a, int part, pair *found) {
    const fv_scan *scan = &w->scan;
    found->mass = found->moment = 0;
    double  border = 0;
    int64_t count = 0, n = scan->ncolumns;
    for (int64_t z = 0; z < scan->nrows; z++) {
        const float *row = load_row(w, in, a, z);
        bool         whole = scan->nrows > 1 && (z == 0 || z == scan->nrows - 1);
        for (int64_t x = 0; x < n; x += whole ? 1 : n - 1, count++) border += (double)row[x];
    }
    border /= (double)count;
    for (int64_t z = 0; z < scan->nrows; z++) {
        const float *row = load_row(w, in, a, z);
        double      *to = w->plane + 2 * z * w->width + part, edge = taper(z, scan->nrows);
        double       mass = 0, moment = 0;
        for (int64_t x = 0; x < n; x++) {
            double value = (double)row[x] - border;
            mass += value;
            moment += value * (double)x;
            to[2 * x] = value * edge * taper(x, n);
        }
        w->profile[z] = mass;
        found->mass += mass;
        found->moment += moment;
    }
}

/* The plane holds the spectrum of a + ib: a's conjugate times b's, its size reduced to the root, so that coarse features do not
 * hide where fine ones meet. */
static void correlate(const work *w) {
    for (int64_t z = 0; z < w->height; z++)
        for (int64_t x = 0; x < w->width; x++) {
            int64_t other_z = (w->height - z) % w->height, other_x = (w->width - x) % w->width;
            if (other_z < z || (other_z == z && other_x < x)) continue;
            double *p = w->plane + 2 * (z * w->width + x), *q = w->plane + 2 * (other_z * w->width + other_x);
            double  a[2], b[2];
            fv__spectrum_split(p, q, a, b);
            double re = a[0] * b[0] + a[1] * b[1], im = a[0] * b[1] - a[1] * b[0], size = sqrt(sqrt(re * re + im * im));
            double scale = size > 0 ? 1 / size : 0;
            p[0] = q[0] = re * scale;
            p[1] = im * scale;
            q[1] = -p[1];
        }
}

static double at(const work *w, int64_t z, int64_t x) {
    z = (z % w->height + w->height) % w->height;
    x = (x % w->width + w->width) % w->width;
    return w->plane[2 * (z * w->width + x)];
}

static double summit(double before, double peak, double after) {
    double bend = before - 2 * peak + after, shift = bend < 0 ? 0.5 * (before - after) / bend : 0;
    return fabs(shift) <= 0.5 ? shift : 0;
}

static pair find_peak(const work *w, const align *p) {
    int64_t most_z = FV_MIN(p->limit, w->scan.nrows / 2), most_x = FV_MIN(p->limit, w->scan.ncolumns / 2), z = 0, x = 0;
    double  best = -INFINITY;
    for (int64_t dz = -most_z; dz <= most_z; dz++)
        for (int64_t dx = -most_x; dx <= most_x; dx++) {
            double value = at(w, dz, dx);
            if (!(value > best)) continue;
            best = value;
            z = dz;
            x = dx;
        }
    pair found = { .dz = (double)z, .dx = (double)x };
    if (w->height > 1) found.dz += summit(at(w, z - 1, x), best, at(w, z + 1, x));
    found.dx += summit(at(w, z, x - 1), best, at(w, z, x + 1));
    return found;
}

static size_t pair_bound(const fv_need *n) {
    fv_scan scan;
    fv__shift_axes(&n->in[0]->image, &scan, NULL);
    bool follow = ((const align *)n->params)->geometry.beam == FV_GEOMETRY_PARALLEL;
    return (size_t)n->region.size[scan.angle] * (sizeof(pair) + (follow ? (size_t)scan.nrows * sizeof(double) : 0));
}

static fv_status pair_run(fv_run *r, fv_error *error) {
    (void)error;
    fv_scan scan;
    work    w;
    fv__shift_axes(&r->need.in[0]->image, &scan, NULL);
    if (!has_corner(&r->need.region, &scan)) return FV_OK;
    bool follow = ((const align *)r->need.params)->geometry.beam == FV_GEOMETRY_PARALLEL;
    lay_out(&r->need, &w, r->scratch);
    fv_spectrum axes[2];
    FV_ISA_NAME(fv__spectrum_prepare)(&axes[0], w.height, w.tables[0]);
    FV_ISA_NAME(fv__spectrum_prepare)(&axes[1], w.width, w.tables[1]);
    for (int64_t k = 0; k < r->need.region.size[scan.angle]; k++) {
        int64_t a = r->need.region.start[scan.angle] + k;
        pair    found = { .number = (double)a }, before;
        memset(w.plane, 0, (size_t)(2 * w.height * w.width) * sizeof *w.plane);
        if (follow) {
            load(&w, r->in[0], a, 1, &found);
            fv__bytes_append(r->partial, &found, sizeof found);
            fv__bytes_append(r->partial, w.profile, (size_t)scan.nrows * sizeof *w.profile);
            continue;
        }
        if (!a) continue;
        load(&w, r->in[0], a - 1, 0, &before);
        load(&w, r->in[0], a, 1, &before);
        FV_ISA_NAME(fv__spectrum_image)(axes, 2, w.plane, false);
        correlate(&w);
        FV_ISA_NAME(fv__spectrum_image)(axes, 2, w.plane, true);
        found = find_peak(&w, r->need.params);
        found.number = (double)a;
        fv__bytes_append(r->partial, &found, sizeof found);
    }
    return FV_OK;
}

/* The determinant of m with column `from` of it replaced by `with`; from 3: as it is. */
static double determinant(double m[3][3], const double with[3], int from) {
    double c[3][3];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) c[i][k] = k == from ? with[i] : m[i][k];
    return c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) - c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0]) +
           c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]);
}

/* Turning moves the centre of mass along a sine about the axis: what is left beside the best one is displacement. An error of the
 * sine itself is no more than a displacement of the object. center: of each projection, becomes its displacement. */
static fv_status follow_mass(const fv_geometry *g, int64_t nangles, double *center, fv_error *error) {
    double m[3][3] = { { 0 } }, right[3] = { 0 }, turn = g->radians ? 1 : 0x1.1df46a2529d39p-6, solution[3];
    for (int64_t a = 0; a < nangles; a++) {
        double basis[3] = { 1, fv__cos(turn * g->angles.value[a]), fv__sin(turn * g->angles.value[a]) };
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < 3; k++) m[i][k] += basis[i] * basis[k];
            right[i] += basis[i] * center[a];
        }
    }
    double whole = determinant(m, right, 3);
    if (!(whole > 1e-6))
        return fv_fail(error, FV_ERROR_INPUT,
                       "the angles are too near each other to follow the centre of mass; leave geometry out");
    for (int k = 0; k < 3; k++) solution[k] = determinant(m, right, k) / whole;
    for (int64_t a = 0; a < nangles; a++) {
        double angle = turn * g->angles.value[a];
        center[a] -= solution[0] + solution[1] * fv__cos(angle) + solution[2] * fv__sin(angle);
    }
    return FV_OK;
}

/* How far a profile lies behind the reference: least mean squares where both are known. */
static double match(const double *profile, const double *reference, int64_t n, int64_t limit) {
    double  least = INFINITY, around[3] = { INFINITY, INFINITY, INFINITY }, before = INFINITY;
    int64_t most = FV_MIN(limit, n / 2), best = 0;
    for (int64_t d = -most; d <= most; d++) {
        double sum = 0;
        for (int64_t z = FV_MAX(-d, 0); z < n - FV_MAX(d, 0); z++) {
            double rest = profile[z + d] - reference[z];
            sum += rest * rest;
        }
        sum /= (double)(n - (d < 0 ? -d : d));
        if (d == best + 1) around[2] = sum;
        if (sum < least) {
            least = around[1] = sum;
            around[0] = before;
            around[2] = INFINITY;
            best = d;
        }
        before = sum;
    }
    bool inside = around[0] < INFINITY && around[2] < INFINITY;
    return (double)best + (inside ? summit(-around[0], -around[1], -around[2]) : 0);
}

enum { ROUNDS = 4 };

/* The mass of each row is the same in all projections: they are matched to their common profile, which gets better each time. */
static void follow_rows(const double *profiles, int64_t nangles, int64_t n, int64_t limit, double *dz, double *reference) {
    memcpy(reference, profiles + nangles / 2 * n, (size_t)n * sizeof *reference);
    for (int round = 0; round < ROUNDS && n > 1; round++) {
        double mean = 0;
        for (int64_t a = 0; a < nangles; a++) dz[a] = match(profiles + a * n, reference, n, limit);
        for (int64_t a = 0; a < nangles; a++) mean += dz[a] / (double)nangles;
        for (int64_t a = 0; a < nangles; a++) dz[a] -= mean;
        for (int64_t z = 0; z < n; z++) {
            reference[z] = 0;
            for (int64_t a = 0; a < nangles; a++) {
                double  at = FV_MIN(FV_MAX((double)z + dz[a], 0), (double)(n - 1)), low = floor(at);
                int64_t k = (int64_t)low;
                reference[z] += (profiles[a * n + k] * (1 - (at - low)) + profiles[a * n + FV_MIN(k + 1, n - 1)] * (at - low)) /
                                (double)nangles;
            }
        }
    }
}

/* Every projection by itself: rows by their mass, columns by the centre of mass. */
static fv_status find_by_mass(fv_finish *f, const fv_scan *scan, double *total, fv_error *error) {
    const align *p = f->params;
    int64_t      n = scan->nrows, nangles = scan->nangles;
    size_t       each = sizeof(pair) + (size_t)n * sizeof(double);
    double      *center;
    FV_TRY(FV_TAKE_ZEROED(center, (size_t)(nangles * (n + 2) + n) * sizeof *center, error));
    double   *dz = center + nangles;
    double   *profiles = dz + nangles, *reference = profiles + nangles * n;
    fv_status status = FV_OK;
    for (int64_t k = 0; k < f->npartials && status == FV_OK; k++) {
        const void *data = NULL;
        size_t      size = f->size(f, k);
        status = f->partial(f, k, &data, error);
        for (size_t at = 0; status == FV_OK && at + each <= size; at += each) {
            pair found;
            memcpy(&found, (const char *)data + at, sizeof found);
            memcpy(profiles + (int64_t)found.number * n, (const char *)data + at + sizeof found, (size_t)n * sizeof(double));
            center[(int64_t)found.number] = found.moment / found.mass;
            if (!(found.mass > 0))
                status = fv_fail(error, FV_ERROR_INPUT,
                                 "projection %lld is not brighter than its border, so that it has no centre of mass; leave "
                                 "geometry out, or give line integrals (minus_log)",
                                 (long long)found.number);
        }
    }
    if (status == FV_OK) status = follow_mass(&p->geometry, nangles, center, error);
    if (status == FV_OK) follow_rows(profiles, nangles, n, p->limit, dz, reference);
    for (int64_t a = 0; a < nangles; a++) {
        total[2 * a] = dz[a];
        total[2 * a + 1] = center[a];
    }
    free(center);
    return status;
}

/* Displacements from each to the next add up; the series as a whole stays where it is. */
static fv_status find_by_pairs(fv_finish *f, const fv_scan *scan, double *total, fv_error *error) {
    const align *p = f->params;
    for (int64_t k = 0; k < f->npartials; k++) {
        const void *data = NULL;
        size_t      size = f->size(f, k);
        FV_TRY(f->partial(f, k, &data, error));
        for (size_t at = 0; at + sizeof(pair) <= size; at += sizeof(pair)) {
            pair found;
            memcpy(&found, (const char *)data + at, sizeof found);
            total[2 * (int64_t)found.number] = p->subpixel ? found.dz : floor(found.dz + 0.5);
            total[2 * (int64_t)found.number + 1] = p->subpixel ? found.dx : floor(found.dx + 0.5);
        }
    }
    for (int axis = 0; axis < 2; axis++) {
        double from_first = 0, mean = 0;
        for (int64_t a = 0; a < scan->nangles; a++) total[2 * a + axis] = from_first += total[2 * a + axis];
        for (int64_t a = 0; a < scan->nangles; a++) mean += total[2 * a + axis] / (double)scan->nangles;
        for (int64_t a = 0; a < scan->nangles; a++) total[2 * a + axis] -= mean;
    }
    return FV_OK;
}

static fv_status pair_finish(fv_finish *f, fv_error *error) {
    const align *p = f->params;
    fv_scan      scan;
    fv__shift_axes(&f->in[0]->image, &scan, NULL);
    double   *total = fv__calloc((size_t)(2 * scan.nangles) * sizeof *total), limit = (double)p->limit;
    bool      follow = p->geometry.beam == FV_GEOMETRY_PARALLEL;
    fv_status status = (follow ? find_by_mass : find_by_pairs)(f, &scan, total, error);
    for (int64_t i = 0; i < 2 * scan.nangles; i++) {
        double d = p->subpixel ? total[i] : floor(total[i] + 0.5);
        total[i] = d > limit ? limit : d < -limit ? -limit : d;
    }
    if (status == FV_OK) status = f->put(f, 0, total, (size_t)(2 * scan.nangles) * sizeof *total, error);
    free(total);
    return status;
}

/* ---------------------------------------------------------------- second pass: back to their place */

static void move_need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv__shift_axes(&n->in[0]->image, &scan, NULL);
    fv__shift_need(&scan, &n->in[0]->image, ((const align *)n->params)->limit + 1, &in[0]);
}

static size_t move_scratch(const fv_need *n) {
    return (size_t)(n->region.size[n->region.ndim - 1] + 2 * ((const align *)n->params)->limit + 2) * sizeof(float);
}

static fv_status move_run(fv_run *r, fv_error *error) {
    fv_scan     scan;
    const void *data;
    size_t      size;
    fv__shift_axes(&r->need.in[0]->image, &scan, NULL);
    FV_TRY(r->results->get(r->results, 0, &data, &size, error));
    const double *total = data;
    for (int64_t k = 0; k < r->out->region.size[scan.angle]; k++) {
        int64_t a = r->out->region.start[scan.angle] + k;
        fv__shift_plane(&scan, r->in[0], r->out, a, total[2 * a], total[2 * a + 1], r->scratch);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 100;
}

static const fv_pass passes[] = { { .name = "correlate",
                                    .need = pair_need,
                                    .scratch = pair_scratch,
                                    .bound = pair_bound,
                                    .run = pair_run,
                                    .finish = pair_finish },
                                  { .name = "move", .need = move_need, .scratch = move_scratch, .run = move_run },
                                  FV_PASS_END };

const fv_op FV_OP(align) = {
    .name = "align",
    .family = "tomography",
    .also = "align_joint",
    .stage = "filter",
    .brief = "move the displaced projections of a tilt series back into place",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(align),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Each projection is compared with the one before by correlation (mutual correlation: the square root of the "
           "spectrum's magnitude, with tapered borders). The displacements add up, and their mean is subtracted, so that the "
           "series as a whole stays where it is. The result is float32.\n"
           "This is a coarse alignment, as that of tiltxcorr: the object's own rotation between two angles looks like a "
           "displacement across the axis, and adds up to some pixels over a series. With geometry, the centre of mass is "
           "followed across the axis instead. Rotation moves it along a sine, so this is exact if all of the object is in "
           "view before an even background. Where the image is moved, its border is repeated.",
    .citation = "van Heel, Schatz and Orlova, Correlation functions revisited, Ultramicroscopy 46, 1992",
    .example = "tilts = xray(phantom(\"shepp-logan\", [64, 128, 128]), parallel(range(-60, 60, 3)))\n"
               "misalign(tilts, 5, whole = true) |> align |> write(\"aligned.tif\")",
    .see = "misalign find_center",
};
