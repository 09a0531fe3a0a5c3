/* siddon: reconstruction with the exact lengths of rays in voxels, as TomoPy does it. */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/tomography/scan.h"

typedef struct {
    fv_geometry geometry;
    fv_choice   method;
    int64_t     iterations;
    double      initial;
    fv_numbers  size;
} siddon;

enum { BACKPROJECT, ART, SIRT };
enum { LANES = FV_BEAM_LANES };

static const fv_param params[] = {
    FV_PARAM(siddon, geometry, .doc = "angles and centre of rotation: parallel(angles = range(0, 179))"),
    FV_PARAM(siddon, method, .def = "sirt", .choices = "backproject|art|sirt",
             .doc = "which method; backproject is "
                    "unfiltered and makes one pass"),
    FV_PARAM(siddon, iterations, .def = "10", .min = 1, .max = 100000, .doc = "how often all projections are used"),
    FV_PARAM(siddon, initial, .def = "0", .min = -1e30, .max = 1e30, .doc = "start value of every voxel; TomoPy: 1e-6"),
    FV_PARAM(siddon, size, .def = "", .min = 1, .max = 8192, .unit = "px",
             .doc = "rows and columns of a slice, one number or two; left out: the width of the detector"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "projections", FV_KIND_IMAGE, .doc = "line integrals, as minus_log gives them; axes angle z x, z angle x, or angle x" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    siddon *p = i->params;
    fv_scan scan;
    FV_TRY(fv__scan_find(&i->in[0]->image, &p->geometry, &scan, error));
    if (p->geometry.beam != FV_GEOMETRY_PARALLEL) return fv_fail(error, FV_ERROR_USAGE, "geometry must be parallel(...)");
    return fv__scan_volume(&i->in[0]->image, &scan, &p->size, &i->out->image, error);
}

static void need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv__scan_find(&n->in[0]->image, &((const siddon *)n->params)->geometry, &scan, NULL);
    in[0] = fv__scan_need(&scan, &n->in[0]->image, &n->region);
}

typedef struct work {
    fv_scan  scan;
    int64_t  rows, width;
    double  *turn;     /* cosine and sine of every angle */
    double  *crossing; /* where a ray meets lines between rows, and between columns, then both in order */
    int64_t *voxel;    /* a ray's voxels and its length in each */
    float   *length, *sinogram, *raw;
    float   *image, *update; /* [voxels][16] */
    double  *covered;        /* [voxels]: lengths of all rays there */
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    const siddon        *p = n->params;
    const fv_image_type *out = &n->out->image;
    fv_scratch           pieces = { memory };
    fv__scan_find(&n->in[0]->image, &p->geometry, &w->scan, NULL);
    w->rows = out->shape[out->ndim - 2];
    w->width = out->shape[out->ndim - 1];
    int64_t most = w->rows + w->width + 4, voxels = w->rows * w->width;
    fv_beam beam = { w->scan.nangles, w->scan.ncolumns, w->rows, w->width, NULL };
    w->turn = fv__scratch_take(&pieces, 2 * w->scan.nangles * (int64_t)sizeof(double));
    w->crossing = fv__scratch_take(&pieces, 2 * most * (int64_t)sizeof(double));
    w->voxel = fv__scratch_take(&pieces, most * (int64_t)sizeof(int64_t));
    w->length = fv__scratch_take(&pieces, most * (int64_t)sizeof(float));
    w->raw = fv__scratch_take(&pieces, fv__bundle_rows_bytes(w->scan.ncolumns));
    w->sinogram = fv__scratch_take(&pieces, fv__beam_sinogram_bytes(&beam));
    w->image = fv__scratch_take(&pieces, voxels * LANES * (int64_t)sizeof(float));
    w->update = fv__scratch_take(&pieces, p->method.index == SIRT ? voxels * LANES * (int64_t)sizeof(float) : 0);
    w->covered = fv__scratch_take(&pieces, p->method.index == SIRT ? voxels * (int64_t)sizeof(double) : 0);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    return lay_out(n, &w, NULL);
}

/* Where the ray meets the n + 1 lines of one kind, in increasing order; only where it is inside along the other, a hundredth of a
 * voxel from the border, as TomoPy has it. */
static int64_t cross_lines(int64_t n, double from, double along, int64_t other, double other_from, double other_along,
                           double *to) {
    int64_t count = 0;
    double  reach = (double)other / 2 - 0.01;
    if (fabs(along) < 1e-9) return 0;
    for (int64_t i = 0; i <= n; i++) {
        double k = ((double)(along > 0 ? i : n - i) - (double)n / 2 - from) / along;
        if (fabs(other_from + k * other_along) <= reach) to[count++] = k;
    }
    return count;
}

/* Voxels and lengths of a ray at this distance from the axis; gives how many. */
static int64_t trace(const work *w, double cosine, double sine, double distance) {
    double  y = -distance * sine, x = distance * cosine, *a = w->crossing, *b;
    int64_t na = cross_lines(w->rows, y, cosine, w->width, x, sine, a), count = 0;
    b = a + na;
    int64_t nb = cross_lines(w->width, x, sine, w->rows, y, cosine, b), i = 0, k = 0;
    double  before = 0;
    for (int64_t met = 0; met < na + nb; met++) {
        double here = k == nb || (i < na && a[i] <= b[k]) ? a[i++] : b[k++];
        double middle = (before + here) / 2;
        double row = floor(y + middle * cosine + (double)w->rows / 2), column = floor(x + middle * sine + (double)w->width / 2);
        if (met && here > before && row >= 0 && column >= 0 && row < (double)w->rows && column < (double)w->width) {
            w->voxel[count] = (int64_t)row * w->width + (int64_t)column;
            w->length[count++] = (float)(here - before);
        }
        before = here;
    }
    return count;
}

static void add(const work *w, int64_t count, const float *amount, float *image) {
    for (int64_t k = 0; k < count; k++)
        for (int l = 0; l < LANES; l++) image[w->voxel[k] * LANES + l] += w->length[k] * amount[l];
}

/* By how much a ray's voxels would have to grow to explain what was measured. */
static void shortfall(const work *w, int64_t count, const float *measured, float *amount) {
    double square = 0, sum[LANES] = { 0 };
    for (int64_t k = 0; k < count; k++) {
        square += (double)w->length[k] * (double)w->length[k];
        for (int l = 0; l < LANES; l++) sum[l] += (double)w->length[k] * (double)w->image[w->voxel[k] * LANES + l];
    }
    for (int l = 0; l < LANES; l++) amount[l] = square > 0 ? (float)(((double)measured[l] - sum[l]) / square) : 0;
}

static void iterate(const work *w, const siddon *p) {
    const fv_geometry *g = &p->geometry;
    int64_t            voxels = w->rows * w->width;
    int                method = p->method.index;
    if (method == SIRT) {
        memset(w->update, 0, (size_t)(voxels * LANES) * sizeof *w->update);
        memset(w->covered, 0, (size_t)voxels * sizeof *w->covered);
    }
    for (int64_t a = 0; a < w->scan.nangles; a++)
        for (int64_t u = 0; u < w->scan.ncolumns; u++) {
            double center = (double)(w->scan.ncolumns - 1) / 2;
            if (g->center.count) center = g->center.value[g->center.count > 1 ? a : 0];
            int64_t      count = trace(w, w->turn[2 * a], w->turn[2 * a + 1], (double)u - center);
            const float *measured = w->sinogram + (a * (w->scan.ncolumns + 2 * FV_BEAM_PAD) + u + FV_BEAM_PAD) * LANES;
            float        amount[LANES];
            if (method == BACKPROJECT)
                memcpy(amount, measured, sizeof amount);
            else
                shortfall(w, count, measured, amount);
            add(w, count, amount, method == SIRT ? w->update : w->image);
            for (int64_t k = 0; k < count && method == SIRT; k++) w->covered[w->voxel[k]] += (double)w->length[k];
        }
    for (int64_t v = 0; v < voxels && method == SIRT; v++)
        for (int l = 0; l < LANES && w->covered[v] > 0; l++)
            w->image[v * LANES + l] += (float)((double)w->update[v * LANES + l] / w->covered[v]);
}

static fv_status run(fv_run *r, fv_error *error) {
    const siddon   *p = r->need.params;
    const fv_block *out = r->out;
    int             flat = out->region.ndim < 3;
    int64_t         first, count, y = out->region.start[1 - flat], x = out->region.start[2 - flat];
    work            w;
    lay_out(&r->need, &w, r->scratch);
    for (int64_t a = 0; a < w.scan.nangles; a++) {
        double angle = p->geometry.angles.value[a] * (p->geometry.radians ? 1 : 0x1.1df46a2529d39p-6); /* pi / 180 */
        w.turn[2 * a] = fv__cos(angle);
        w.turn[2 * a + 1] = fv__sin(angle);
    }
    fv__scan_slices(&out->region, flat ? -1 : 0, &first, &count);
    for (int64_t z = 0; z < count; z += LANES) {
        int64_t slices = FV_MIN(LANES, count - z), stride = flat ? 0 : out->stride[0];
        float   initial = p->method.index == BACKPROJECT ? 0 : (float)p->initial;
        FV_TRY(fv__scan_pack(&w.scan, r->in[0], first + z, slices, w.raw, w.sinogram, error));
        for (int64_t i = 0; i < w.rows * w.width * LANES; i++) w.image[i] = initial;
        for (int64_t k = 0; k < (p->method.index == BACKPROJECT ? 1 : p->iterations); k++) iterate(&w, p);
        for (int64_t i = 0; i < out->region.size[1 - flat]; i++)
            fv__bundle_unpack(w.image + ((y + i) * w.width + x) * LANES, out->region.size[2 - flat], slices,
                              (float *)out->data + z * stride + i * out->stride[1 - flat], stride);
    }
    return FV_OK;
}

static void slab(const fv_need *n, int64_t *chunk) {
    memcpy(chunk, n->out->image.shape, sizeof(int64_t) * FV_MAX_DIMS);
    if (n->out->image.ndim == 3) chunk[0] = LANES;
}

static double cost(const fv_need *n) {
    const siddon *p = n->params;
    return 4 * (double)p->geometry.angles.count * (double)(p->method.index == BACKPROJECT ? 1 : p->iterations);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(siddon) = {
    .name = "siddon",
    .family = "tomography",
    .stage = "reconstruct",
    .brief = "reconstruct with the exact lengths of rays in voxels, as TomoPy does",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(siddon),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .doc = "A ray counts with its exact length in each voxel it crosses, where fbp, art and sirt interpolate. Meant for "
           "comparisons with TomoPy: art and sirt are many times faster. The result is float32.\n"
           "backproject is what TomoPy calls fbp without a filter. art corrects ray after ray. sirt corrects all rays at "
           "once, dividing rays by the sum of their squared lengths and voxels by the sum of lengths.",
    .citation = "Siddon, Fast calculation of the exact radiological path for a three-dimensional CT array, Med. Phys. 12, 1985",
    .example = "g = parallel(range(-72, 72, 3))\n"
               "p = xray(phantom(\"shepp-logan\", [128, 128]), g)\n"
               "write(siddon(p, g, \"art\", iterations = 2), \"slice.tif\")",
    .see = "sirt art fbp",
};
