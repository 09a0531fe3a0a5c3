/* Projections of a volume by a cone: slabs of detector rows, each from the slices that its rays cross. */
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/tomography/cone_scan.h"

typedef struct work {
    fv_cone      cone;
    fv_lines     lines;
    fv_cone_ray *ray;
    float       *row, *volume, *rays; /* volume: [rows][width][samples]; rays: [columns][count] */
} work;

static void set_up(const fv_need *n, const fv_geometry *g, work *w) {
    bool flat = n->out->image.ndim < 3;
    fv__cone_set(g, &n->out->image, &n->in[0]->image, &w->cone);
    w->lines = (fv_lines){ .samples = 1, .count = 1, .single = flat };
    if (flat) return;
    w->lines.first = n->region.start[1];
    w->lines.count = fv__lines_round(n->region.size[1]);
    FV_ISA_NAME(fv__cone_slices)(&w->cone, w->lines.first, w->lines.count, &w->lines.start, &w->lines.samples);
    w->lines.samples = fv__lines_round(w->lines.samples);
}

void fv__cone_xray_need(const fv_need *n, const fv_geometry *g, fv_region *in) {
    work w;
    set_up(n, g, &w);
    in[0] = fv__region_whole(&n->in[0]->image);
    if (in[0].ndim < 3) return;
    int64_t first = FV_MIN(FV_MAX(w.lines.start, 0), in[0].size[0] - 1);
    int64_t end = FV_MAX(FV_MIN(w.lines.start + w.lines.samples, in[0].size[0]), first + 1);
    in[0].start[0] = first;
    in[0].size[0] = end - first;
}

static size_t lay_out(const fv_need *n, const fv_geometry *g, work *w, void *memory) {
    fv_scratch pieces = { memory };
    set_up(n, g, w);
    int64_t size = (int64_t)sizeof(float), columns = n->region.size[n->region.ndim - 1];
    w->cone.cosine = fv__scratch_take(&pieces, w->cone.nangles * (int64_t)sizeof(double));
    w->cone.sine = fv__scratch_take(&pieces, w->cone.nangles * (int64_t)sizeof(double));
    w->ray = fv__scratch_take(&pieces, columns * (int64_t)sizeof(fv_cone_ray));
    w->row = fv__scratch_take(&pieces, w->cone.width * size);
    w->rays = fv__scratch_take(&pieces, columns * w->lines.count * size);
    w->lines.blend = fv__scratch_take(&pieces, fv__lines_room(w->lines.samples) * size);
    w->volume = fv__scratch_take(&pieces, w->cone.height * w->cone.width * w->lines.samples * size);
    return pieces.used;
}

size_t fv__cone_xray_scratch(const fv_need *n, const fv_geometry *g) {
    work w;
    return lay_out(n, g, &w, NULL);
}

/* Slices to lines along the axis; what lies outside the volume is 0. */
static fv_status turn_volume(const work *w, const fv_block *in, fv_error *error) {
    int     flat = in->region.ndim < 3;
    int64_t n = w->lines.samples, first = flat ? 0 : in->region.start[0], slices = flat ? 1 : in->region.size[0];
    memset(w->volume, 0, (size_t)(w->cone.height * w->cone.width * n) * sizeof *w->volume);
    for (int64_t z = 0; z < slices; z++) {
        int64_t at = flat ? 0 : first + z - w->lines.start;
        if (at < 0 || at >= n) continue;
        for (int64_t y = 0; y < w->cone.height; y++) {
            int64_t offset = (flat ? 0 : z * in->stride[0]) + y * in->stride[1 - flat];
            fv__kernels_current()->convert(w->row, FV_FLOAT32,
                                           (const char *)in->data + offset * (int64_t)fv_dtype_size(in->dtype), in->dtype,
                                           w->cone.width);
            int64_t bad = fv__first_bad(w->row, w->cone.width);
            if (bad >= 0)
                return fv_fail(error, FV_ERROR_INPUT, "volume: slice %lld, row %lld, column %lld is not a finite number",
                               (long long)(first + z), (long long)y, (long long)bad);
            float *to = w->volume + y * w->cone.width * n + at;
            for (int64_t x = 0; x < w->cone.width; x++) to[x * n] = w->row[x];
        }
    }
    return FV_OK;
}

/* One angle: a block of crossings for all columns before the next block, so that lines of voxels are met while they are near. */
static void project(const work *w, int64_t angle, int64_t first, int64_t columns) {
    int64_t crossings = FV_MAX(w->cone.height, w->cone.width), count = w->lines.count;
    memset(w->rays, 0, (size_t)(columns * count) * sizeof *w->rays);
    for (int64_t u = 0; u < columns; u++) FV_ISA_NAME(fv__cone_ray_find)(&w->cone, angle, first + u, &w->ray[u]);
    for (int64_t j = 0; j < crossings; j += FV_LINES_MOST)
        for (int64_t u = 0; u < columns; u++) {
            int64_t most = w->ray[u].upright ? w->cone.height : w->cone.width;
            FV_ISA_NAME(fv__cone_ray_gather)
            (&w->cone, &w->lines, &w->ray[u], w->volume, FV_MIN(j, most), FV_MIN(j + FV_LINES_MOST, most), w->rays + u * count);
        }
}

fv_status fv__cone_xray_run(fv_run *r, const fv_geometry *g, fv_error *error) {
    const fv_block *out = r->out;
    int             last = out->region.ndim - 1, flat = last < 2;
    int64_t         columns = out->region.size[last], rows = flat ? 1 : out->region.size[1];
    work            w;
    lay_out(&r->need, g, &w, r->scratch);
    fv__cone_turn(g, &w.cone);
    FV_TRY(turn_volume(&w, r->in[0], error));
    for (int64_t a = 0; a < out->region.size[0]; a++) {
        project(&w, out->region.start[0] + a, out->region.start[last], columns);
        for (int64_t v = 0; v < rows; v++) {
            float *to = (float *)out->data + a * out->stride[0] + (flat ? 0 : v * out->stride[1]);
            for (int64_t u = 0; u < columns; u++)
                to[u] = w.rays[u * w.lines.count + v] * fv__cone_ray_length(&w.cone, &w.ray[u], w.lines.first + v);
        }
    }
    return FV_OK;
}
