/* blend_tiles: one image of tiles whose places are known.
 *
 * A tile is put at the nearest whole pixel, so that where one tile alone is seen its pixels are those of the file. Where several
 * are, each counts by how far the pixel is from its border, along y times along x (times along z, if volumes move along it): from
 * one tile to the next it changes steadily. Volumes that move along z are made plane by plane.
 * A pixel is made tile by tile in their order, whatever the region. Rows are cut into stretches that the same tiles show: those
 * of one tile are copied; of two, the first is copied and the second joins it; only of three or more a sum is kept.
 */
#include "op/axes.h"
#include "op/kernels.h"
#include "op/place.h"
#include "op/scratch.h"
#include "ops/registration/stitch_tiles.h"

typedef struct {
    FV__TILES_FIELDS
    fv_choice blend;
    int64_t   margin;
    FV__TILES_OWN
} blend_tiles;

enum { LINEAR, NONE };

static const fv_param params[] = {
    FV__TILES_PARAMS(blend_tiles),
    FV_PARAM(blend_tiles, blend, .def = "linear", .choices = "linear|none",
             .doc = "where tiles overlap: a steady change from one to the other, or the pixel of the "
                    "tile whose border is farthest"),
    FV_PARAM(blend_tiles, margin, .def = "0", .min = 0, .max = 1e6, .unit = "px",
             .doc = "pixels around the image that tiles should fill, for those that lie farther out"),
    FV__TILES_OWN_PARAMS(blend_tiles)
};
static const fv_input inputs[] = { { "places", FV_KIND_IMAGE, .doc = "what place_tiles gives for the same tiles" },
                                   FV_INPUT_END };

static const fv__tiles_found *found_in(const blend_tiles *p) { return (const fv__tiles_found *)&p->paths; }

static fv_status infer(fv_infer *i, fv_error *error) {
    blend_tiles    *p = i->params;
    fv_image_type  *out = &i->out->image, tile;
    fv__tiles_found found;
    FV_TRY(FV_ISA_NAME(fv__tiles_find)((const fv__tiles *)p, i->arena, &found, &tile, error));
    p->paths = found.paths;
    p->places = found.places;
    p->pairs = found.pairs;
    const fv_image_type *places = &i->in[0]->image;
    if (places->ndim != 2 || places->shape[0] != fv__tiles_count(&found) || places->shape[1] != fv__tiles_axes(&found) + 1 ||
        places->dtype != FV_FLOAT64)
        return fv_fail(error, FV_ERROR_USAGE, "places is not what place_tiles gives for these tiles");
    *out = tile;
    int y = fv__axis_find(out, "y");
    for (int d = 3 - fv__tiles_axes(&found); d < 3; d++) {
        double last = 0;
        for (int64_t k = 0; k < fv__tiles_count(&found); k++) last = FV_MAX(last, fv__tiles_place(&found, k, d));
        out->shape[y - 1 + d] = (int64_t)floor(last + 0.5) + fv__tiles_edge(&found, d) + 2 * p->margin;
        out->origin[y - 1 + d] = 0;
    }
    fv__place_forget_world(out);
    if (fv_image_type_bytes(out) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "the stitched image would be larger than can be counted");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

/* Tiles are read as far as they meet the region, if they lie where they should. */
static int64_t reads(const fv_need *n) {
    const blend_tiles     *p = n->params;
    const fv__tiles_found *found = found_in(p);
    int                    z = fv__axis_find(&n->out->image, "y") - 1, first = 3 - fv__tiles_axes(found);
    int64_t                pixels = 0, region = 1;
    for (int d = first; d < 3; d++) region *= n->region.size[z + d];
    for (int64_t tile = 0; tile < fv__tiles_count(found); tile++) {
        int64_t met = 1;
        for (int d = first; d < 3; d++) {
            int64_t at = (int64_t)floor(fv__tiles_place(found, tile, d) + 0.5) + p->margin - n->region.start[z + d];
            met *= FV_MAX(FV_MIN(at + fv__tiles_edge(found, d), n->region.size[z + d]) - FV_MAX(at, 0), 0);
        }
        pixels += met;
    }
    return fv__region_voxels(&n->region) / region * pixels * (int64_t)fv_dtype_size(n->out->image.dtype);
}

/* ---------------------------------------------------------------- one region */

typedef struct {
    int64_t tile;
    int64_t at[2], start[2], end[2]; /* of its first pixel, and of what the region has of it, in the region's rows and columns */
    int64_t plane;                   /* of the tile, if volumes move along z */
    double  deep;                    /* how far that is from its first or last one, from a half on; 1 if they do not */
} met;

typedef struct {
    const blend_tiles *p;
    const fv_block    *places;
    fv_block           out;  /* dense behind x */
    int                y;    /* number of that axis */
    bool               deep; /* volumes move along z, which is the axis before: one plane after the other is made */
    int64_t            planes, rows, columns, inner;
    int64_t            count;  /* of tiles that meet the region */
    met               *met;    /* in their order */
    void              *pixels; /* of a tile in the region */
    void              *own;    /* of out, where a pixel has several elements */
    double            *sum;    /* of each voxel that three tiles or more show, one after another */
    int64_t           *before; /* of each row: how many pixels of the rows before have a sum; of all */
    double            *weight[2], *line[2];
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    fv_scratch pieces = { memory };
    int64_t voxels = fv__region_voxels(&n->region), number = sizeof(double), size = (int64_t)fv_dtype_size(n->out->image.dtype);
    w->p = n->params;
    w->y = fv__axis_find(&n->out->image, "y");
    w->deep = fv__tiles_axes(found_in(w->p)) == 3;
    if (w->deep) voxels /= n->region.size[w->y - 1];
    w->rows = n->region.size[w->y];
    w->columns = n->region.size[w->y + 1];
    w->inner = 1;
    for (int d = w->y + 2; d < n->region.ndim; d++) w->inner *= n->region.size[d];
    w->planes = voxels / (w->rows * w->columns * w->inner);
    w->met = fv__scratch_take(&pieces, fv__tiles_count(found_in(w->p)) * (int64_t)sizeof *w->met);
    w->pixels = fv__scratch_take(&pieces, voxels * size);
    w->own = fv__scratch_take(&pieces, w->inner > 1 ? voxels * size : 0);
    w->sum = fv__scratch_take(&pieces, w->p->blend.index == LINEAR ? voxels * number : 0);
    w->before = fv__scratch_take(&pieces, (w->rows + 1) * (int64_t)sizeof *w->before);
    for (int k = 0; k < 2; k++) {
        w->weight[k] = fv__scratch_take(&pieces, w->columns * w->inner * number);
        w->line[k] = fv__scratch_take(&pieces, w->columns * w->inner * number);
    }
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work          w;
    fv_image_type type;
    int64_t       memory = 0;
    FV_ISA_NAME(fv__tile_type)(found_in(n->params), &type, &memory, NULL);
    return lay_out(n, &w, NULL) + (size_t)memory;
}

/* Where the region's first plane lies in a tile; false: nowhere. */
static bool meet_plane(const work *w, const fv_region *region, double place, met *m) {
    int64_t depth = fv__tiles_edge(found_in(w->p), 0);
    m->plane = region->start[w->y - 1] - (int64_t)floor(place + 0.5) - w->p->margin;
    m->deep = (double)FV_MIN(m->plane, depth - 1 - m->plane) + 0.5;
    return m->plane >= 0 && m->plane < depth;
}

/* The tiles that have a part of the region. */
static void meet_all(work *w, const fv_region *region) {
    w->count = 0;
    for (int64_t tile = 0; tile < fv__tiles_count(found_in(w->p)); tile++) {
        const double *place = (const double *)w->places->data + tile * w->places->stride[0];
        met           m = { .tile = tile, .deep = 1 };
        bool          any = !w->deep || meet_plane(w, region, *place++, &m);
        for (int d = 0; d < 2; d++) {
            m.at[d] = (int64_t)floor(place[d] + 0.5) + w->p->margin - region->start[w->y + d];
            m.start[d] = FV_MAX(m.at[d], 0);
            m.end[d] = FV_MIN(m.at[d] + fv__tiles_edge(found_in(w->p), 1 + d), region->size[w->y + d]);
            any = any && m.start[d] < m.end[d];
        }
        if (any) w->met[w->count++] = m;
    }
}

/* Pixels beside each other in a row that the same tiles show. */
typedef struct {
    int64_t start, end;
    int64_t count, before; /* of tiles, and of those before the one that is asked about */
    int64_t other;         /* the last of the others */
    int64_t sums;          /* pixels of the row before it that have a sum; told where it has one itself */
} stretch;

static stretch stretch_at(const work *w, int64_t row, int64_t column, int64_t mine) {
    stretch s = { .start = column, .end = w->columns };
    for (int64_t k = 0; k < w->count; k++) {
        const met *m = &w->met[k];
        if (row < m->start[0] || row >= m->end[0] || column >= m->end[1]) continue;
        if (column < m->start[1]) {
            s.end = FV_MIN(s.end, m->start[1]);
            continue;
        }
        s.end = FV_MIN(s.end, m->end[1]);
        s.count++;
        s.before += k < mine;
        if (k != mine) s.other = k;
    }
    return s;
}

/* How far pixels of a row are from the border of a tile, from a half on: along all axes, multiplied. */
typedef struct {
    double edge, left, right; /* above or below, and deep; of the first pixel */
} distance;

static distance distance_of(const work *w, const met *m, int64_t row, const stretch *s) {
    int64_t height = fv__tiles_edge(found_in(w->p), 1), width = fv__tiles_edge(found_in(w->p), 2), above = row - m->at[0];
    return (distance){ .edge = ((double)FV_MIN(above, height - 1 - above) + 0.5) * m->deep,
                       .left = (double)(s->start - m->at[1]),
                       .right = (double)(width - 1 - (s->start - m->at[1])) };
}

static inline double weight_at(distance d, int x) {
    double a = d.left + x, b = d.right - x;
    return d.edge * ((a < b ? a : b) + 0.5);
}

static void weigh(const work *w, const met *m, int64_t row, const stretch *s, double *weight) {
    distance d = distance_of(w, m, row, s);
    for (int x = 0; x < (int)(s->end - s->start); x++) weight[x] = weight_at(d, x);
}

/* Where the elements of a row of a plane are, from a column on. */
static char *row_at(const work *w, int64_t plane, int64_t row, int64_t column) {
    int64_t offset = row * w->out.stride[w->y] + column * w->out.stride[w->y + 1];
    for (int d = w->y - 1; d >= 0; d--) {
        offset += plane % w->out.region.size[d] * w->out.stride[d];
        plane /= w->out.region.size[d];
    }
    return (char *)w->out.data + offset * (int64_t)fv_dtype_size(w->out.dtype);
}

/* Whole numbers are the nearest. */
static void put_line(const work *w, double *line, int64_t n, char *to) {
    if (!fv_dtype_is_float(w->out.dtype))
        for (int64_t i = 0; i < n; i++) line[i] = floor(line[i] + 0.5);
    fv__kernels_current()->convert(to, w->out.dtype, line, FV_FLOAT64, n);
}

/* Two tiles: that before is in the image already. weight: of it, and of this one. */
static void join_two(const work *w, int64_t n, const char *from, char *to) {
    double *restrict a = w->line[0];
    const double *restrict b = w->line[1], *restrict u = w->weight[0], *restrict v = w->weight[1];
    fv__kernels_current()->convert(w->line[0], FV_FLOAT64, to, w->out.dtype, n);
    fv__kernels_current()->convert(w->line[1], FV_FLOAT64, from, w->out.dtype, n);
    for (int64_t i = 0; i < n; i++) a[i] = (u[i] * a[i] + v[i] * b[i]) / (u[i] + v[i]);
    put_line(w, a, n, to);
}

/* The same for the usual pixels of microscopes, in one go. */
#define JOIN(type)                                                                                                               \
    static void join_##type(const type *restrict from, type *restrict to, int n, distance before, distance mine) {               \
        for (int x = 0; x < n; x++) {                                                                                            \
            double u = weight_at(before, x), v = weight_at(mine, x);                                                             \
            to[x] = (type)(int)((u * (double)to[x] + v * (double)from[x]) / (u + v) + 0.5);                                      \
        }                                                                                                                        \
    }
JOIN(uint8_t)
JOIN(uint16_t)

static bool is_usual(const work *w) { return w->inner == 1 && (w->out.dtype == FV_UINT8 || w->out.dtype == FV_UINT16); }

static void join_usual(const work *w, int64_t row, const stretch *s, int64_t mine, const char *from, char *to) {
    distance before = distance_of(w, &w->met[s->other], row, s), own = distance_of(w, &w->met[mine], row, s);
    int      n = (int)(s->end - s->start);
    if (w->out.dtype == FV_UINT8)
        join_uint8_t((const uint8_t *)from, (uint8_t *)to, n, before, own);
    else
        join_uint16_t((const uint16_t *)from, (uint16_t *)to, n, before, own);
}

/* Three or more: their sum is kept until the last. weight: of all of them, and of this one. */
static void join_many(const work *w, const stretch *s, int64_t n, double *restrict sum, const char *from, char *to) {
    const double *restrict all = w->weight[0], *restrict mine = w->weight[1];
    double *restrict line = w->line[0];
    fv__kernels_current()->convert(w->line[0], FV_FLOAT64, from, w->out.dtype, n);
    if (s->before)
        for (int64_t i = 0; i < n; i++) sum[i] += mine[i] * line[i];
    else
        for (int64_t i = 0; i < n; i++) sum[i] = mine[i] * line[i];
    if (s->before + 1 < s->count) return;
    for (int64_t i = 0; i < n; i++) line[i] = sum[i] / all[i];
    put_line(w, line, n, to);
}

/* The pixels that lie farther from the border of this tile than from that of any before. weight: the largest before, and mine. */
static void replace(const work *w, const stretch *s, const char *from, char *to) {
    size_t size = fv_dtype_size(w->out.dtype) * (size_t)w->inner;
    for (int64_t x = 0; x < s->end - s->start; x++)
        if (w->weight[1][x] > w->weight[0][x]) memcpy(to + (size_t)x * size, from + (size_t)x * size, size);
}

/* Weights of pixels become those of their elements. */
static void spread_weights(const work *w, const stretch *s) {
    for (int k = 0; k < 2 && w->inner > 1; k++)
        for (int64_t x = s->end - s->start - 1; x >= 0; x--)
            for (int64_t c = w->inner - 1; c >= 0; c--) w->weight[k][x * w->inner + c] = w->weight[k][x];
}

/* Weights of several tiles for a stretch: of that before, the sum of all (once the last joins), or the largest of those before.
 */
static void weigh_others(const work *w, int64_t row, const stretch *s, int64_t mine) {
    double *restrict to = w->weight[0], *restrict one = w->line[0];
    bool linear = w->p->blend.index == LINEAR;
    if (linear && s->count == 2) {
        weigh(w, &w->met[s->other], row, s, to);
        return;
    }
    if (linear && s->before + 1 < s->count) return;
    memset(to, 0, (size_t)(s->end - s->start) * sizeof *to);
    for (int64_t k = 0; k < (linear ? w->count : mine); k++) {
        const met *m = &w->met[k];
        int64_t    n = s->end - s->start;
        if (row < m->start[0] || row >= m->end[0] || s->start < m->start[1] || s->start >= m->end[1]) continue;
        weigh(w, m, row, s, one);
        if (linear)
            for (int64_t x = 0; x < n; x++) to[x] += one[x];
        else
            for (int64_t x = 0; x < n; x++) to[x] = FV_MAX(to[x], one[x]);
    }
}

/* Pixels of a row, before a column, that have a sum. */
static int64_t sums_before(const work *w, int64_t row, int64_t column) {
    int64_t before = 0;
    for (int64_t x = 0; x < column;) {
        stretch s = stretch_at(w, row, x, w->count);
        before += s.count > 2 ? s.end - x : 0;
        x = s.end;
    }
    return before;
}

static double *sum_at(const work *w, int64_t plane, int64_t row, const stretch *s) {
    return w->sum + (plane * w->before[w->rows] + w->before[row] + s->sums) * w->inner;
}

/* The first row behind this one, up to `last`, that is not cut into the same stretches. */
static int64_t band_end(const work *w, int64_t row, int64_t last) {
    for (int64_t k = 0; k < w->count; k++) {
        if (w->met[k].start[0] > row) last = FV_MIN(last, w->met[k].start[0]);
        if (w->met[k].end[0] > row) last = FV_MIN(last, w->met[k].end[0]);
    }
    return last;
}

/* A stretch of a row of a tile; from: its elements in the first plane, which are `apart` bytes from those of the next. */
static void add_stretch(const work *w, int64_t row, const stretch *s, int64_t mine, const char *from, int64_t apart) {
    bool linear = w->p->blend.index == LINEAR, copied = s->before == 0 && (s->count <= 2 || !linear);
    bool usual = linear && s->count == 2 && is_usual(w);
    if (!copied && !usual) {
        weigh_others(w, row, s, mine);
        weigh(w, &w->met[mine], row, s, w->weight[1]);
        if (linear) spread_weights(w, s);
    }
    int64_t n = (s->end - s->start) * w->inner;
    for (int64_t plane = 0; plane < w->planes; plane++, from += apart) {
        char *to = row_at(w, plane, row, s->start);
        if (copied)
            memcpy(to, from, (size_t)n * fv_dtype_size(w->out.dtype));
        else if (usual)
            join_usual(w, row, s, mine, from, to);
        else if (!linear)
            replace(w, s, from, to);
        else if (s->count == 2)
            join_two(w, n, from, to);
        else
            join_many(w, s, n, sum_at(w, plane, row, s), from, to);
    }
}

static fv_status add_tile(const work *w, int64_t mine, fv_error *error) {
    const met *m = &w->met[mine];
    fv_region  part = w->out.region;
    fv_block   block;
    int64_t    size[2], element = (int64_t)fv_dtype_size(w->out.dtype) * w->inner;
    for (int d = 0; d < 2; d++) {
        part.start[w->y + d] = m->start[d] - m->at[d];
        size[d] = part.size[w->y + d] = m->end[d] - m->start[d];
    }
    if (w->deep) part.start[w->y - 1] = m->plane;
    fv__block_init(&block, w->out.dtype, &part, w->pixels);
    FV_TRY(FV_ISA_NAME(fv__tile_read)(found_in(w->p), m->tile, &block, error));
    for (int64_t first = m->start[0], end; first < m->end[0]; first = end) {
        end = band_end(w, first, m->end[0]);
        for (int64_t x = m->start[1]; x < m->end[1];) {
            stretch s = stretch_at(w, first, x, mine);
            if (s.count > 2) s.sums = sums_before(w, first, x);
            for (int64_t row = first; row < end; row++) {
                const char *from = (const char *)w->pixels + ((row - m->start[0]) * size[1] + x - m->start[1]) * element;
                add_stretch(w, row, &s, mine, from, size[0] * size[1] * element);
            }
            x = s.end;
        }
    }
    return FV_OK;
}

/* Zeros where no tile is, and room for sums where three or more are. */
static void prepare_rows(work *w) {
    w->before[0] = 0;
    for (int64_t first = 0, end; first < w->rows; first = end) {
        end = band_end(w, first, w->rows);
        int64_t many = sums_before(w, first, w->columns);
        for (int64_t row = first; row < end; row++) w->before[row + 1] = w->before[row] + many;
        for (int64_t x = 0; x < w->columns;) {
            stretch s = stretch_at(w, first, x, w->count);
            size_t  bytes = (size_t)((s.end - s.start) * w->inner) * fv_dtype_size(w->out.dtype);
            for (int64_t row = first; row < end && !s.count; row++)
                for (int64_t plane = 0; plane < w->planes; plane++) memset(row_at(w, plane, row, x), 0, bytes);
            x = s.end;
        }
    }
}

/* The region of one tile alone is read where it belongs. */
static fv_status copy_tile(const work *w, const fv_block *out, fv_error *error) {
    fv_block block = *out;
    for (int d = 0; d < 2; d++) block.region.start[w->y + d] = -w->met[0].at[d];
    if (w->deep) block.region.start[w->y - 1] = w->met[0].plane;
    return FV_ISA_NAME(fv__tile_read)(found_in(w->p), w->met[0].tile, &block, error);
}

static fv_status blend(work *w, const fv_block *out, fv_error *error) {
    const fv_region *region = &out->region;
    w->out = *out;
    if (w->inner > 1) fv__block_init(&w->out, out->dtype, region, w->own);
    meet_all(w, region);
    bool whole = w->count == 1;
    for (int d = 0; d < 2 && whole; d++) whole = w->met[0].start[d] == 0 && w->met[0].end[d] == region->size[w->y + d];
    if (whole) return copy_tile(w, out, error);
    prepare_rows(w);
    for (int64_t k = 0; k < w->count; k++) FV_TRY(add_tile(w, k, error));
    if (w->inner > 1) fv__block_copy(out, &w->out);
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    work w;
    lay_out(&r->need, &w, r->scratch);
    w.places = r->in[0];
    if (!w.deep) return blend(&w, r->out, error);
    int z = w.y - 1;
    for (int64_t k = 0; k < r->out->region.size[z]; k++) {
        fv_block plane = *r->out;
        plane.region.start[z] += k;
        plane.region.size[z] = 1;
        plane.data = (char *)r->out->data + k * r->out->stride[z] * (int64_t)fv_dtype_size(r->out->dtype);
        FV_TRY(blend(&w, &plane, error));
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(blend_tiles) = {
    .name = "blend_tiles",
    .family = "registration",
    .brief = "one image of tiles whose places are known",
    .version = 2,
    .also = "fuse_tiles, tile_fusion",
    .doc = "What stitch does last, with the places that place_tiles gives.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(blend_tiles),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .reads = reads,
    .cost = cost,
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch place_tiles",
};
