/* The adjoint of projections by a cone: slabs of slices, each from the detector rows whose rays cross it. */
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/tomography/cone_scan.h"

enum { TILE = 32 };

typedef struct work {
    fv_scan  scan;
    fv_cone  cone;
    fv_lines lines;
    float   *row, *rays, *line, *tile; /* rays: [angles][columns][count]; tile: [TILE][TILE][samples] */
    float   *ones, *cover;             /* the same for projections of ones; NULL: not wanted */
} work;

static void set_up(const fv_need *n, const fv_geometry *g, work *w) {
    bool flat = n->out->image.ndim < 3;
    fv__scan_find(&n->in[0]->image, g, &w->scan, NULL);
    fv__cone_set(g, &n->in[0]->image, &n->out->image, &w->cone);
    w->lines = (fv_lines){ .samples = 1, .count = 1, .single = flat };
    if (flat) return;
    w->lines.start = n->region.start[0];
    w->lines.samples = fv__lines_round(n->region.size[0]);
    FV_ISA_NAME(fv__cone_near_rows)(&w->cone, w->lines.start, w->lines.samples, &w->lines.first, &w->lines.count);
}

void fv__cone_spread_need(const fv_need *n, const fv_geometry *g, fv_region *in) {
    work w;
    set_up(n, g, &w);
    in[0] = fv__region_whole(&n->in[0]->image);
    if (w.scan.row < 0) return;
    int64_t first = FV_MIN(FV_MAX(w.lines.first, 0), w.scan.nrows - 1);
    int64_t end = FV_MAX(FV_MIN(w.lines.first + w.lines.count, w.scan.nrows), first + 1);
    in[0].start[w.scan.row] = first;
    in[0].size[w.scan.row] = end - first;
}

static int64_t rays_of(const work *w) { return w->cone.nangles * w->cone.columns * w->lines.count + FV_LINES_ROOM; }

static size_t lay_out(const fv_need *n, const fv_geometry *g, bool mean, work *w, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    size = (int64_t)sizeof(float);
    *w = (work){ 0 };
    set_up(n, g, w);
    w->cone.cosine = fv__scratch_take(&pieces, w->cone.nangles * (int64_t)sizeof(double));
    w->cone.sine = fv__scratch_take(&pieces, w->cone.nangles * (int64_t)sizeof(double));
    w->row = fv__scratch_take(&pieces, w->cone.columns * size);
    w->line = fv__scratch_take(&pieces, w->lines.samples * size);
    w->tile = fv__scratch_take(&pieces, TILE * TILE * w->lines.samples * size);
    w->rays = fv__scratch_take(&pieces, rays_of(w) * size);
    if (mean) w->cover = fv__scratch_take(&pieces, TILE * TILE * w->lines.samples * size);
    if (mean) w->ones = fv__scratch_take(&pieces, rays_of(w) * size);
    return pieces.used;
}

size_t fv__cone_spread_scratch(const fv_need *n, const fv_geometry *g, bool mean) {
    work w;
    return lay_out(n, g, mean, &w, NULL);
}

/* Projections to lines along the axis, times the length between crossings; what lies outside the detector is 0. */
static fv_status turn_projection(const work *w, const fv_block *in, int64_t angle, fv_error *error) {
    bool    flat = w->scan.row < 0;
    int64_t first = flat ? 0 : in->region.start[w->scan.row], rows = flat ? 1 : in->region.size[w->scan.row];
    float  *rays = w->rays + angle * w->cone.columns * w->lines.count;
    float  *ones = w->ones ? w->ones + angle * w->cone.columns * w->lines.count : NULL;
    for (int64_t v = 0; v < rows; v++) {
        int64_t at = first + v - w->lines.first;
        int64_t offset = angle * in->stride[w->scan.angle] + (flat ? 0 : v * in->stride[w->scan.row]);
        if (at < 0 || at >= w->lines.count) continue;
        fv__kernels_current()->convert(w->row, FV_FLOAT32, (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype),
                                       in->dtype, w->cone.columns);
        int64_t bad = fv__first_bad(w->row, w->cone.columns);
        if (bad >= 0)
            return fv_fail(error, FV_ERROR_INPUT, "projection %lld, row %lld, column %lld is not a finite number",
                           (long long)angle, (long long)(first + v), (long long)bad);
        for (int64_t u = 0; u < w->cone.columns; u++) rays[u * w->lines.count + at] = w->row[u];
        for (int64_t u = 0; u < w->cone.columns && ones; u++) ones[u * w->lines.count + at] = 1;
    }
    for (int64_t u = 0; u < w->cone.columns; u++) {
        fv_cone_ray ray;
        FV_ISA_NAME(fv__cone_ray_find)(&w->cone, angle, u, &ray);
        for (int64_t k = 0; k < w->lines.count; k++) {
            float length = fv__cone_ray_length(&w->cone, &ray, w->lines.first + k);
            rays[u * w->lines.count + k] *= length;
            if (ones) ones[u * w->lines.count + k] *= length;
        }
    }
    return FV_OK;
}

/* What the rays of all angles bring to the columns of voxels [y0, y0 + height) x [x0, x0 + width). */
static void spread(const work *w, const float *rays, int64_t y0, int64_t x0, int64_t height, int64_t width, float *tile) {
    memset(tile, 0, (size_t)(height * width * w->lines.samples) * sizeof *tile);
    for (int64_t a = 0; a < w->cone.nangles; a++) {
        int64_t first, count;
        FV_ISA_NAME(fv__cone_columns)(&w->cone, a, y0, x0, height, width, &first, &count);
        for (int64_t u = first; u < first + count; u++) {
            fv_cone_ray ray;
            FV_ISA_NAME(fv__cone_ray_find)(&w->cone, a, u, &ray);
            FV_ISA_NAME(fv__cone_ray_spread)
            (&w->cone, &w->lines, &ray, rays + (a * w->cone.columns + u) * w->lines.count, y0, x0, height, width, w->line, tile);
        }
    }
}

static void fill_tile(const work *w, const fv_block *out, int64_t y, int64_t x) {
    int     flat = out->region.ndim < 3;
    int64_t y0 = out->region.start[1 - flat] + y, x0 = out->region.start[2 - flat] + x, n = w->lines.samples;
    int64_t height = FV_MIN(TILE, out->region.size[1 - flat] - y), width = FV_MIN(TILE, out->region.size[2 - flat] - x);
    spread(w, w->rays, y0, x0, height, width, w->tile);
    if (w->ones) spread(w, w->ones, y0, x0, height, width, w->cover);
    for (int64_t i = 0; i < height * width * n && w->ones; i++) w->tile[i] = w->cover[i] > 1e-3f ? w->tile[i] / w->cover[i] : 0;
    for (int64_t z = 0; z < (flat ? 1 : out->region.size[0]); z++)
        for (int64_t i = 0; i < height; i++) {
            float *to = (float *)out->data + (flat ? 0 : z * out->stride[0]) + (y + i) * out->stride[1 - flat] + x;
            for (int64_t k = 0; k < width; k++) to[k] = w->tile[(i * width + k) * n + z];
        }
}

fv_status fv__cone_spread_run(fv_run *r, const fv_geometry *g, bool mean, fv_error *error) {
    const fv_block *out = r->out;
    int             flat = out->region.ndim < 3;
    work            w;
    lay_out(&r->need, g, mean, &w, r->scratch);
    fv__cone_turn(g, &w.cone);
    memset(w.rays, 0, (size_t)rays_of(&w) * sizeof *w.rays);
    if (w.ones) memset(w.ones, 0, (size_t)rays_of(&w) * sizeof *w.ones);
    for (int64_t a = 0; a < w.cone.nangles; a++) FV_TRY(turn_projection(&w, r->in[0], a, error));
    for (int64_t y = 0; y < out->region.size[1 - flat]; y += TILE)
        for (int64_t x = 0; x < out->region.size[2 - flat]; x += TILE) fill_tile(&w, out, y, x);
    return FV_OK;
}
