/* blend_tiles: one image of tiles whose places are known.
 *
 * A tile is put at the nearest whole pixel, so that where one tile alone is seen its pixels are those of the file. Where several
 * are, each counts by how far the pixel is from its border, along y times along x: from one tile to the next it changes steadily.
 * A pixel's sum is made tile by tile in their order, whatever the region.
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
    if (places->ndim != 2 || places->shape[0] != fv__tiles_count(&found) || places->shape[1] != 3 || places->dtype != FV_FLOAT64)
        return fv_fail(error, FV_ERROR_USAGE, "places is not what place_tiles gives for these tiles");
    *out = tile;
    int y = fv__axis_find(out, "y");
    for (int d = 0; d < 2; d++) {
        double last = 0;
        for (int64_t k = 0; k < fv__tiles_count(&found); k++) last = FV_MAX(last, fv__tiles_place(&found, k, d));
        out->shape[y + d] = (int64_t)floor(last + 0.5) + fv__tiles_edge(&found, d) + 2 * p->margin;
        out->origin[y + d] = 0;
    }
    fv__place_forget_world(out);
    if (fv_image_type_bytes(out) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "the stitched image would be larger than can be counted");
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { in[0] = fv__region_whole(&n->in[0]->image); }

/* ---------------------------------------------------------------- one region */

typedef struct {
    const blend_tiles *p;
    const fv_block    *out, *places;
    int                y; /* number of that axis */
    int64_t            planes, rows, columns, inner;
    void              *pixels; /* of a tile in the region */
    double            *sum;    /* of each voxel */
    double            *total;  /* of each pixel: the weights of all its tiles, or with blend none the largest */
    double            *owner;  /* of each pixel, with blend none: the tile that has it */
    double            *part;   /* of each pixel of a row: how much of it a tile makes */
    double            *line;
} work;

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    voxels = fv__region_voxels(&n->region), number = sizeof(double);
    w->p = n->params;
    w->y = fv__axis_find(&n->out->image, "y");
    w->rows = n->region.size[w->y];
    w->columns = n->region.size[w->y + 1];
    w->inner = 1;
    for (int d = w->y + 2; d < n->region.ndim; d++) w->inner *= n->region.size[d];
    w->planes = voxels / (w->rows * w->columns * w->inner);
    w->pixels = fv__scratch_take(&pieces, voxels * (int64_t)fv_dtype_size(n->out->image.dtype));
    w->sum = fv__scratch_take(&pieces, voxels * number);
    w->total = fv__scratch_take(&pieces, w->rows * w->columns * number);
    w->owner = fv__scratch_take(&pieces, w->p->blend.index == NONE ? w->rows * w->columns * number : 0);
    w->part = fv__scratch_take(&pieces, w->columns * number);
    w->line = fv__scratch_take(&pieces, w->columns * w->inner * number);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work          w;
    fv_image_type type;
    int64_t       memory = 0;
    FV_ISA_NAME(fv__tile_type)(found_in(n->params), &type, &memory, NULL);
    return lay_out(n, &w, NULL) + (size_t)memory;
}

/* Where the first pixel of a tile lies in the image. */
static int64_t corner(const work *w, int64_t tile, int d) {
    const double *row = (const double *)w->places->data + tile * w->places->stride[0];
    return (int64_t)floor(row[d] + 0.5) + w->p->margin;
}

/* The part of the region that a tile fills, and where the tile lies; false: none. */
static bool meet(const work *w, int64_t tile, fv_region *common, int64_t *at) {
    *common = w->out->region;
    for (int d = 0; d < 2; d++) {
        int     axis = w->y + d;
        int64_t end = common->start[axis] + common->size[axis];
        at[d] = corner(w, tile, d);
        common->start[axis] = FV_MAX(common->start[axis], at[d]);
        common->size[axis] = FV_MIN(end, at[d] + fv__tiles_edge(found_in(w->p), d)) - common->start[axis];
        if (common->size[axis] <= 0) return false;
    }
    return true;
}

/* How far a pixel is from the border of its tile, from a half on. */
static double depth(int64_t i, int64_t n) { return (double)FV_MIN(i, n - 1 - i) + 0.5; }

/* The weights of a row of a tile, from a pixel of it on. */
static void weigh(const work *w, int64_t row, int64_t column, int64_t count, double *weight) {
    int64_t width = fv__tiles_edge(found_in(w->p), 1);
    double  edge = depth(row, fv__tiles_edge(found_in(w->p), 0));
    for (int64_t x = 0; x < count; x++) weight[x] = edge * depth(column + x, width);
}

static void count_tile(const work *w, int64_t tile) {
    fv_region common;
    int64_t   at[2];
    if (!meet(w, tile, &common, at)) return;
    int64_t count = common.size[w->y + 1], x0 = common.start[w->y + 1] - w->out->region.start[w->y + 1];
    for (int64_t y = common.start[w->y]; y < common.start[w->y] + common.size[w->y]; y++) {
        int64_t row = (y - w->out->region.start[w->y]) * w->columns + x0;
        weigh(w, y - at[0], common.start[w->y + 1] - at[1], count, w->part);
        for (int64_t x = 0; x < count; x++) {
            if (w->p->blend.index == LINEAR)
                w->total[row + x] += w->part[x];
            else if (w->part[x] > w->total[row + x]) {
                w->total[row + x] = w->part[x];
                w->owner[row + x] = (double)tile;
            }
        }
    }
}

static void add_line(const double *restrict part, const double *restrict line, int64_t count, int64_t inner,
                     double *restrict sum) {
    if (inner == 1)
        for (int64_t x = 0; x < count; x++) sum[x] += part[x] > 0 ? part[x] * line[x] : 0;
    else
        for (int64_t x = 0; x < count; x++)
            for (int64_t c = 0; c < inner; c++) sum[x * inner + c] += part[x] > 0 ? part[x] * line[x * inner + c] : 0;
}

static fv_status add_tile(const work *w, int64_t tile, fv_error *error) {
    fv_region common;
    fv_block  block;
    int64_t   at[2];
    if (!meet(w, tile, &common, at)) return FV_OK;
    for (int d = 0; d < 2; d++) common.start[w->y + d] -= at[d];
    fv__block_init(&block, w->out->dtype, &common, w->pixels);
    FV_TRY(FV_ISA_NAME(fv__tile_read)(found_in(w->p), tile, &block, error));
    int64_t rows = common.size[w->y], count = common.size[w->y + 1], size = (int64_t)fv_dtype_size(w->out->dtype);
    int64_t x0 = common.start[w->y + 1] + at[1] - w->out->region.start[w->y + 1];
    for (int64_t y = 0; y < rows; y++) {
        int64_t row = common.start[w->y] + y + at[0] - w->out->region.start[w->y], first = row * w->columns + x0;
        weigh(w, common.start[w->y] + y, common.start[w->y + 1], count, w->part);
        for (int64_t x = 0; x < count; x++) {
            bool own = w->p->blend.index == NONE && w->owner[first + x] == (double)tile;
            w->part[x] = w->p->blend.index == LINEAR ? w->part[x] / w->total[first + x] : own;
        }
        for (int64_t plane = 0; plane < w->planes; plane++) {
            const char *from = (const char *)w->pixels + (plane * rows + y) * count * w->inner * size;
            double     *sum = w->sum + (plane * w->rows * w->columns + first) * w->inner;
            fv__kernels_current()->convert(w->line, FV_FLOAT64, from, w->out->dtype, count * w->inner);
            add_line(w->part, w->line, count, w->inner, sum);
        }
    }
    return FV_OK;
}

/* Sums become pixels: whole numbers are the nearest. */
static void finish_rows(const work *w) {
    bool    whole = !fv_dtype_is_float(w->out->dtype);
    fv_rows rows;
    int64_t length = w->out->region.size[w->out->region.ndim - 1];
    double *sum = w->sum;
    for (fv__rows_begin(&rows, &w->out->region); fv__rows_next(&rows); sum += length) {
        if (whole)
            for (int64_t i = 0; i < length; i++) sum[i] = floor(sum[i] + 0.5);
        fv__kernels_current()->convert(fv__block_at(w->out, rows.position), w->out->dtype, sum, FV_FLOAT64, length);
    }
}

/* The only tile of a region that it fills; -1: it has several, or gaps. */
static int64_t only_tile(const work *w) {
    int64_t found = -1;
    for (int64_t tile = 0; tile < fv__tiles_count(found_in(w->p)); tile++) {
        fv_region common;
        int64_t   at[2];
        if (!meet(w, tile, &common, at)) continue;
        if (found >= 0 || !fv__region_equal(&common, &w->out->region)) return -1;
        found = tile;
    }
    return found;
}

static fv_status copy_tile(const work *w, int64_t tile, fv_error *error) {
    fv_block block = *w->out;
    for (int d = 0; d < 2; d++) block.region.start[w->y + d] -= corner(w, tile, d);
    return FV_ISA_NAME(fv__tile_read)(found_in(w->p), tile, &block, error);
}

static fv_status run(fv_run *r, fv_error *error) {
    work w;
    lay_out(&r->need, &w, r->scratch);
    w.out = r->out;
    w.places = r->in[0];
    int64_t tiles = fv__tiles_count(found_in(w.p)), only = only_tile(&w);
    if (only >= 0) return copy_tile(&w, only, error);
    memset(w.sum, 0, (size_t)fv__region_voxels(&r->out->region) * sizeof *w.sum);
    memset(w.total, 0, (size_t)(w.rows * w.columns) * sizeof *w.total);
    for (int64_t tile = 0; tile < tiles; tile++) count_tile(&w, tile);
    for (int64_t tile = 0; tile < tiles; tile++) FV_TRY(add_tile(&w, tile, error));
    finish_rows(&w);
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
    .version = 1,
    .also = "fuse_tiles, tile_fusion",
    .doc = "What stitch does last, with the places that place_tiles gives.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(blend_tiles),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch place_tiles",
};
