/* find_center: the detector column of the axis of rotation. */
#include "base/take.h"
#include "op/kernels.h"
#include "op/reduce.h"
#include "ops/tomography/center_methods.h"
#include "ops/tomography/scan.h"
#include <stdlib.h>

typedef struct {
    fv_geometry geometry;
    fv_choice   method;
} find_center;

enum { MIRROR, PHASE, VO };

static const fv_param params[] = {
    FV_PARAM(find_center, geometry, .each = 1,
             .doc = "parallel(angles), or cone(...) over a whole turn; the centre in it is not used"),
    FV_PARAM(find_center, method, .def = "mirror", .choices = "mirror|phase|vo",
             .doc = "mirror or phase compare two projections half a turn apart, vo uses a whole sinogram; of a cone beam "
                    "only mirror"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "projections", FV_KIND_IMAGE, .doc = "line integrals, as minus_log gives them; axes angle z x, z angle x, or angle x" },
    FV_INPUT_END,
};

/* The pair of angles that is nearest to half a turn apart; gives by how many degrees it misses. */
static double find_pair(const fv_geometry *g, int64_t pair[2]) {
    pair[0] = pair[1] = 0;
    double best = INFINITY, half = g->radians ? 0x1.921fb54442d18p+1 : 180;
    for (int64_t i = 0; i < g->angles.count; i++)
        for (int64_t k = i + 1; k < g->angles.count; k++) {
            double miss = fabs(fabs(g->angles.value[k] - g->angles.value[i]) - half);
            if (miss >= best) continue;
            best = miss;
            pair[0] = i;
            pair[1] = k;
        }
    return best * 180 / half;
}

static double degrees(const fv_geometry *g, int64_t i) {
    return g->angles.value[i] * (g->radians ? 180 / 0x1.921fb54442d18p+1 : 1);
}

/* Vo's method continues half a turn by its mirror image. */
static fv_status check_sweep(const fv_geometry *g, fv_error *error) {
    double first = degrees(g, 0), last = degrees(g, g->angles.count - 1), gap = 0;
    for (int64_t i = 1; i < g->angles.count; i++) {
        double step = degrees(g, i) - degrees(g, i - 1);
        if (!(step > 0)) return fv_fail(error, FV_ERROR_USAGE, "method = \"vo\" needs angles that increase");
        gap = FV_MAX(gap, step);
    }
    if (!(last - first + gap >= 179.9 && gap <= 10))
        return fv_fail(
            error, FV_ERROR_USAGE,
            "method = \"vo\" needs angles over half a turn, at most 10 degrees apart; these span %.4g degrees with gaps "
            "of up to %.4g",
            last - first, gap);
    return FV_OK;
}

/* Every ray of the plane in which the source turns is met from both ends in a whole turn. */
static fv_status check_turn(const find_center *p, fv_error *error) {
    const fv_geometry *g = &p->geometry;
    double             first = degrees(g, 0), last = degrees(g, g->angles.count - 1), gap = first + 360 - last;
    if (p->method.index != MIRROR) return fv_fail(error, FV_ERROR_USAGE, "method: of a cone only \"mirror\" is possible");
    for (int64_t i = 1; i < g->angles.count; i++) {
        if (!(degrees(g, i) > degrees(g, i - 1)))
            return fv_fail(error, FV_ERROR_USAGE, "the centre of a cone needs angles that increase");
        gap = FV_MAX(gap, degrees(g, i) - degrees(g, i - 1));
    }
    if (gap <= 10 && last - first <= 360.01) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "the centre of a cone needs angles over a whole turn, at most 10 degrees apart; these span %.4g degrees with "
                   "gaps of up to %.4g: reconstruct a slice with several values of center and take the sharpest",
                   last - first, gap);
}

static bool is_cone(const find_center *p) { return p->geometry.beam == FV_GEOMETRY_CONE; }

static fv_status infer(fv_infer *i, fv_error *error) {
    const find_center *p = i->params;
    fv_scan            scan;
    int64_t            pair[2];
    FV_TRY(fv__scan_find(&i->in[0]->image, &p->geometry, &scan, error));
    if (scan.ncolumns < 8) return fv_fail(error, FV_ERROR_USAGE, "the detector has fewer than 8 columns");
    if (is_cone(p)) {
        FV_TRY(check_turn(p, error));
        return fv__infer_scalar(i, FV_FLOAT64, error);
    }
    double miss = p->method.index == VO ? 0 : find_pair(&p->geometry, pair);
    if (p->method.index == VO) FV_TRY(check_sweep(&p->geometry, error));
    if (!(miss <= 2))
        return fv_fail(error, FV_ERROR_USAGE,
                       "no two projections are half a turn apart (the nearest pair misses it by %.3g degrees)", miss);
    return fv__infer_scalar(i, FV_FLOAT64, error);
}

/* Which projections and rows are looked at: two of all rows, or all of the middle row. */
typedef struct choice {
    int64_t pair[2];
    int64_t nsides, row, nrows;
    bool    all;
} choice;

static choice choose(const find_center *p, const fv_scan *scan) {
    choice c = { .nsides = 2, .nrows = scan->nrows };
    if (is_cone(p)) { /* the row nearest to the plane of the source */
        double row = floor((double)(scan->nrows - 1) / 2 + p->geometry.offset + 0.5);
        row = FV_MIN(FV_MAX(row, 0), (double)(scan->nrows - 1));
        return (choice){ .nsides = scan->nangles, .row = scan->row < 0 ? 0 : (int64_t)row, .nrows = 1, .all = true };
    }
    if (p->method.index == VO) return (choice){ .nsides = scan->nangles, .row = scan->nrows / 2, .nrows = 1, .all = true };
    find_pair(&p->geometry, c.pair);
    return c;
}

static int64_t projection(const choice *c, int64_t side) { return c->all ? side : c->pair[side]; }

/* What of a chunk is looked at; false: nothing. */
static bool find_part(const fv_region *chunk, const choice *c, const fv_scan *scan, fv_region *part) {
    int64_t first = -1, last = -1;
    *part = *chunk;
    for (int64_t k = 0; k < c->nsides; k++) {
        int64_t inside = projection(c, k) - chunk->start[scan->angle];
        if (inside < 0 || inside >= chunk->size[scan->angle]) continue;
        first = first < 0 ? projection(c, k) : first;
        last = projection(c, k);
    }
    part->start[scan->angle] = first;
    part->size[scan->angle] = last - first + 1;
    if (scan->row < 0) return first >= 0;
    int64_t row = FV_MAX(c->row, chunk->start[scan->row]);
    int64_t end = FV_MIN(c->row + c->nrows, chunk->start[scan->row] + chunk->size[scan->row]);
    part->start[scan->row] = row;
    part->size[scan->row] = end - row;
    return first >= 0 && row < end;
}

/* Where nothing of a chunk is looked at, a single voxel that others need anyway. */
static void need(const fv_need *n, fv_region *in) {
    const find_center *p = n->params;
    fv_scan            scan;
    fv__scan_find(&n->in[0]->image, &p->geometry, &scan, NULL);
    choice c = choose(p, &scan);
    if (find_part(&n->region, &c, &scan, &in[0])) return;
    in[0] = (fv_region){ .ndim = n->region.ndim };
    for (int d = 0; d < in[0].ndim; d++) in[0].size[d] = 1;
    in[0].start[scan.angle] = projection(&c, 0);
    if (scan.row >= 0) in[0].start[scan.row] = c.row;
}

typedef struct piece {
    int64_t side, row, column, count;
} piece; /* followed by count floats */

static size_t bound(const fv_need *n) {
    int64_t rows = fv__region_voxels(&n->region) / FV_MAX(n->region.size[n->region.ndim - 1], 1);
    return 2 * ((size_t)rows * sizeof(piece) + (size_t)fv__region_voxels(&n->region) * sizeof(float));
}

static size_t scratch(const fv_need *n) { return (size_t)n->region.size[n->region.ndim - 1] * sizeof(float); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const find_center *p = r->need.params;
    const fv_block    *in = r->in[0];
    fv_scan            scan;
    int64_t            first, count, n = r->need.region.size[r->need.region.ndim - 1];
    fv__scan_find(&r->need.in[0]->image, &p->geometry, &scan, NULL);
    choice    c = choose(p, &scan);
    fv_region part;
    if (!find_part(&r->need.region, &c, &scan, &part)) return FV_OK;
    fv__scan_slices(&in->region, scan.row, &first, &count);
    for (int64_t k = 0; k < c.nsides; k++) {
        int64_t a = projection(&c, k) - r->need.region.start[scan.angle];
        if (a < 0 || a >= r->need.region.size[scan.angle]) continue;
        for (int64_t z = 0; z < count; z++) {
            if (first + z < c.row || first + z >= c.row + c.nrows) continue;
            int64_t offset = (projection(&c, k) - in->region.start[scan.angle]) * in->stride[scan.angle];
            piece   head = { k, first + z - c.row, in->region.start[scan.column], n };
            if (scan.row >= 0) offset += z * in->stride[scan.row];
            fv__kernels_current()->convert(r->scratch, FV_FLOAT32,
                                           (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype), in->dtype, n);
            fv__bytes_append(r->partial, &head, sizeof head);
            fv__bytes_append(r->partial, r->scratch, (size_t)n * sizeof(float));
        }
    }
    return FV_OK;
}

static fv_status collect(fv_finish *f, float *images, int64_t rows, int64_t n, fv_error *error) {
    for (int64_t k = 0; k < f->npartials; k++) {
        const void *data;
        size_t      size = f->size(f, k), at = 0;
        FV_TRY(f->partial(f, k, &data, error));
        while (at < size) {
            piece head;
            memcpy(&head, (const char *)data + at, sizeof head);
            at += sizeof head;
            memcpy(images + (head.side * rows + head.row) * n + head.column, (const char *)data + at,
                   (size_t)head.count * sizeof(float));
            at += (size_t)head.count * sizeof(float);
        }
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const find_center *p = f->params;
    fv_scan            scan;
    fv__scan_find(&f->in[0]->image, &p->geometry, &scan, NULL);
    choice  c = choose(p, &scan);
    int64_t each = c.nrows * scan.ncolumns;
    float  *images;
    FV_TRY(FV_TAKE_ZEROED(images, (size_t)(c.nsides * each) * sizeof *images, error));
    double   *angle = fv__calloc((size_t)scan.nangles * sizeof *angle), center = 0;
    fv_status status = collect(f, images, c.nrows, scan.ncolumns, error);
    for (int64_t a = 0; a < scan.nangles; a++) angle[a] = degrees(&p->geometry, a);
    fv_fan fan = { images, angle, scan.nangles, scan.ncolumns, p->geometry.source + p->geometry.detector, p->geometry.pitch };
    if (status == FV_OK && is_cone(p))
        center = FV_ISA_NAME(fv__center_fan)(&fan);
    else if (status == FV_OK && p->method.index == VO)
        status = FV_ISA_NAME(fv__center_vo)(images, angle, scan.nangles, scan.ncolumns, &center, error);
    else if (status == FV_OK)
        center = (p->method.index == PHASE ? FV_ISA_NAME(fv__center_phase)
                                           : FV_ISA_NAME(fv__center_mirror))(images, images + each, scan.nrows, scan.ncolumns);
    free(angle);
    free(images);
    FV_TRY(status);
    return fv__put_real(f, center, error);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish },
                                  FV_PASS_END };

const fv_op FV_OP(find_center) = {
    .name = "find_center",
    .family = "tomography",
    .also = "find_center_vo, find_center_pc, center_of_rotation",
    .stage = "filter",
    .brief = "find the detector column of the axis of rotation",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(find_center),
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .doc = "Print it, or pass it on: parallel(angles, center = find_center(p, parallel(angles))).\n"
           "Half a turn mirrors a projection about the axis. mirror: takes two projections half a turn apart (up to 2 "
           "degrees), mirrors one of them, and looks where they differ least (least squares over all rows, a parabola "
           "between columns). phase: looks where they correlate best by phase. vo: combines the sinogram of the middle row "
           "with its mirror image to a whole turn; away from the true centre, its spectrum leaves the double wedge that "
           "sinograms have. It needs no exact pair and tolerates noise.\n"
           "For a cone beam over a whole turn: looks where the rays of the plane in which the source turns differ least from "
           "those that run the opposite way. Print it and write the number into cone(center = ...). The object must be in "
           "view from side to side.\n"
           "In a half acquisition (a whole turn with the axis near the edge of the detector) only a narrow strip is seen from "
           "both sides, and the answer may be wrong by many columns. Compare slices made with a few centres there.",
    .citation = "Vo, Drakopoulos, Atwood and Reinhard, Reliable method for calculating the center of rotation in parallel-beam "
                "tomography, Optics Express 22, 2014",
    .example = "g = parallel(range(0, 180))\n"
               "find_center(xray(phantom(\"shepp-logan\", [64, 64]), g), g)",
    .see = "parallel cone align fbp",
};
