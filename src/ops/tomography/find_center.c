/* find_center: the detector column of the axis of rotation, from two projections half a turn apart. */
#include "op/kernels.h"
#include "op/reduce.h"
#include "ops/tomography/scan.h"
#include <stdlib.h>

typedef struct {
    fv_geometry geometry;
} find_center;

static const fv_param params[] = {
    FV_PARAM(find_center, geometry, .doc = "parallel(angles); its centre is not used"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "projections", FV_KIND_IMAGE, .doc = "axes angle z x, z angle x, or angle x: line integrals" }, FV_INPUT_END
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

static fv_status infer(fv_infer *i, fv_error *error) {
    const find_center *p = i->params;
    fv_scan            scan;
    int64_t            pair[2];
    FV_TRY(fv__scan_find(&i->in[0]->image, &p->geometry, &scan, error));
    if (p->geometry.beam != FV_GEOMETRY_PARALLEL) return fv_fail(error, FV_ERROR_USAGE, "geometry must be parallel(...)");
    if (scan.ncolumns < 8) return fv_fail(error, FV_ERROR_USAGE, "the detector has fewer than 8 columns");
    double miss = find_pair(&p->geometry, pair);
    if (!(miss <= 2))
        return fv_fail(error, FV_ERROR_USAGE,
                       "no two projections are half a turn apart (the nearest pair misses it by %.3g degrees)", miss);
    return fv_infer_scalar(i, FV_FLOAT64, error);
}

/* Of a chunk only the two projections; a single voxel where it has neither. */
static void need(const fv_need *n, fv_region *in) {
    const find_center *p = n->params;
    fv_scan            scan;
    int64_t            pair[2], first = -1, last = -1;
    fv__scan_find(&n->in[0]->image, &p->geometry, &scan, NULL);
    find_pair(&p->geometry, pair);
    for (int k = 0; k < 2; k++) {
        int64_t inside = pair[k] - n->region.start[scan.angle];
        if (inside < 0 || inside >= n->region.size[scan.angle]) continue;
        first = first < 0 ? pair[k] : first;
        last = pair[k];
    }
    if (first < 0)
        for (int d = 0; d < in[0].ndim; d++) in[0].size[d] = FV_MIN(in[0].size[d], 1);
    else {
        in[0].start[scan.angle] = first;
        in[0].size[scan.angle] = last - first + 1;
    }
}

typedef struct piece {
    int64_t side, row, column, count;
} piece; /* followed by count floats */

static size_t bound(const fv_need *n) {
    int64_t rows = fv_region_voxels(&n->region) / FV_MAX(n->region.size[n->region.ndim - 1], 1);
    return 2 * ((size_t)rows * sizeof(piece) + (size_t)fv_region_voxels(&n->region) * sizeof(float));
}

static size_t scratch(const fv_need *n) { return (size_t)n->region.size[n->region.ndim - 1] * sizeof(float); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const find_center *p = r->need.params;
    const fv_block    *in = r->in[0];
    fv_scan            scan;
    int64_t            pair[2], first, count, n = r->need.region.size[r->need.region.ndim - 1];
    fv__scan_find(&r->need.in[0]->image, &p->geometry, &scan, NULL);
    find_pair(&p->geometry, pair);
    fv__scan_slices(&in->region, scan.row, &first, &count);
    for (int k = 0; k < 2; k++) {
        int64_t a = pair[k] - r->need.region.start[scan.angle];
        if (a < 0 || a >= r->need.region.size[scan.angle]) continue;
        for (int64_t z = 0; z < count; z++) {
            int64_t offset = (pair[k] - in->region.start[scan.angle]) * in->stride[scan.angle];
            piece   head = { k, first + z, in->region.start[scan.column], n };
            if (scan.row >= 0) offset += z * in->stride[scan.row];
            fv_kernels_current()->convert(r->scratch, FV_FLOAT32,
                                          (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype), in->dtype, n);
            fv_bytes_append(r->partial, &head, sizeof head);
            fv_bytes_append(r->partial, r->scratch, (size_t)n * sizeof(float));
        }
    }
    return FV_OK;
}

/* Mean squared difference of one projection and the other mirrored about column sum / 2. */
static double mismatch(const float *a, const float *b, int64_t rows, int64_t n, int64_t sum) {
    int64_t from = FV_MAX(0, sum - (n - 1)), until = FV_MIN(n, sum + 1);
    double  total = 0;
    for (int64_t z = 0; z < rows; z++) {
        double row = 0;
        for (int64_t x = from; x < until; x++) {
            double d = (double)a[z * n + x] - (double)b[z * n + sum - x];
            row += d * d;
        }
        total += row;
    }
    return total / (double)(rows * (until - from));
}

static double best_center(const float *a, const float *b, int64_t rows, int64_t n) {
    double  least = INFINITY;
    int64_t best = n - 1;
    for (int64_t sum = n / 2; sum <= n + n / 2 - 2; sum++) { /* at least half of the columns overlap */
        double d = mismatch(a, b, rows, n, sum);
        if (!(d < least)) continue;
        least = d;
        best = sum;
    }
    double before = mismatch(a, b, rows, n, best - 1), after = mismatch(a, b, rows, n, best + 1),
           bend = before - 2 * least + after;
    double shift = bend > 0 ? 0.5 * (before - after) / bend : 0;
    return ((double)best + (fabs(shift) <= 1 ? shift : 0)) / 2;
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
    int64_t   each = scan.nrows * scan.ncolumns;
    float    *images = fv_calloc((size_t)(2 * each) * sizeof *images);
    fv_status status = collect(f, images, scan.nrows, scan.ncolumns, error);
    double    center = status == FV_OK ? best_center(images, images + each, scan.nrows, scan.ncolumns) : 0;
    free(images);
    FV_TRY(status);
    return fv_put_real(f, center, error);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish },
                                  FV_PASS_END };

const fv_op FV_OP(find_center) = {
    .name = "find_center",
    .family = "tomography",
    .brief = "find the detector column of the axis of rotation",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(find_center),
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .doc =
        "Half a turn mirrors a projection about the axis: the centre is where the two projections that are half a turn apart (up "
        "to "
        "2 degrees) differ least once one is mirrored, by least mean squares over all rows, between columns by a parabola. Print "
        "it, or give it on: parallel(angles, center = find_center(p, parallel(angles))).",
    .example = "g = parallel(angles = range(0, 180)); find_center(xray(phantom(\"shepp-logan\", [64, 64]), g), g)",
};
