/* clahe_tables: what clahe makes of each grey value, tile by tile. */
#include "op/axes.h"
#include "op/scratch.h"
#include "op/tally.h"
#include "op/window.h"
#include "ops/intensity/tiles.h"

typedef struct {
    fv_numbers tiles;
    double     clip_limit;
} tables;

static const fv_param params[] = {
    FV_PARAM(tables, tiles, .def = "8", .min = 1, .max = 256,
             .doc = "number of tiles along the spatial axes, one for all or one for each"),
    FV_PARAM(tables, clip_limit, .def = "40", .min = 0,
             .doc = "how much contrast may be raised: bins of a tile's histogram are cut off at this multiple of their mean; 0: "
                    "no limit"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image of uint8 or uint16" }, FV_INPUT_END };

static int64_t levels_of(fv_dtype dtype) { return dtype == FV_UINT8 ? 256 : 65536; }

static fv__tiles tiles_of(const fv_need *n) {
    const tables *p = n->params;
    int64_t       count[3] = { 0 };
    for (int k = 0; k < FV_MIN(p->tiles.count, 3); k++) count[k] = (int64_t)p->tiles.value[k];
    return fv__tiles_new(&n->in[0]->image, count);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    tables              *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    int                  axis[FV_MAX_DIMS], n;
    if (in->dtype != FV_UINT8 && in->dtype != FV_UINT16)
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; it must be uint8 or uint16", fv_dtype_name(in->dtype));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__numbers_spread(&p->tiles, n, "tiles", error));
    if (in->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "image has %d axes: there is no room for that of the grey values", in->ndim);
    int64_t shape[FV_MAX_DIMS];
    memcpy(shape, in->shape, sizeof shape);
    for (int k = 0; k < n; k++) {
        if (p->tiles.value[k] != floor(p->tiles.value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "tiles = %g: must be a whole number", p->tiles.value[k]);
        shape[axis[k]] = (int64_t)p->tiles.value[k];
    }
    fv_image_type_init(out, in->dtype, in->ndim, shape);
    memcpy(out->axis, in->axis, sizeof in->axis);
    fv__axis_append(out, "level", levels_of(in->dtype));
    return FV_OK;
}

/* The place in the image of a place behind its end. */
static int64_t mirrored(int64_t p, int64_t n) {
    if (n == 1) return 0;
    while (p < 0 || p >= n) p = p < 0 ? -p : 2 * (n - 1) - p;
    return p;
}

static void need(const fv_need *n, fv_region *in) {
    fv__tiles t = tiles_of(n);
    in->ndim = n->in[0]->image.ndim;
    in->start[in->ndim] = in->size[in->ndim] = 0;
    for (int k = 0; k < t.naxes; k++) {
        int     d = t.axis[k];
        int64_t from = n->region.start[d] * t.edge[k], to = from + n->region.size[d] * t.edge[k];
        int64_t start = FV_MIN(from, t.shape[k] - 1), end = FV_MIN(to, t.shape[k]);
        for (int64_t p = FV_MAX(from, t.shape[k]); p < to; p++) {
            int64_t at = mirrored(p, t.shape[k]);
            start = FV_MIN(start, at);
            end = FV_MAX(end, at + 1);
        }
        in->start[d] = start;
        in->size[d] = FV_MAX(end, start + 1) - start;
    }
}

static size_t scratch(const fv_need *n) { return fv__tally_scratch(n->in[0]->image.dtype); }

static void count_row(const fv_block *in, const fv__tiles *t, int64_t *position, int64_t from, uint32_t *counts) {
    int     k = t->naxes - 1, d = t->axis[k];
    int64_t end = from + t->edge[k], inside = FV_MIN(end, t->shape[k]);
    bool    narrow = in->dtype == FV_UINT8;
    if (from < inside && d == in->region.ndim - 1) {
        position[d] = from;
        if (narrow)
            fv__tally_uint8(counts, fv__block_at(in, position), inside - from);
        else
            fv__tally_uint16(counts, fv__block_at(in, position), inside - from);
        from = inside;
    }
    for (; from < end; from++) { /* what is mirrored, and images whose channels are last */
        position[d] = mirrored(from, t->shape[k]);
        const void *at = fv__block_at(in, position);
        counts[narrow ? *(const uint8_t *)at : *(const uint16_t *)at]++;
    }
}

/* Counts of one tile; places of the other axes are in position. */
static void count_tile(const fv_block *in, const fv__tiles *t, int64_t *position, const int64_t *tile, uint32_t *counts) {
    int64_t rows[2] = { 1, 1 };
    for (int k = 0; k + 1 < t->naxes; k++) rows[2 - t->naxes + 1 + k] = t->edge[k];
    for (int64_t a = 0; a < rows[0]; a++)
        for (int64_t b = 0; b < rows[1]; b++) {
            for (int k = 0; k + 1 < t->naxes; k++) {
                int64_t step = k + 3 - t->naxes == 0 ? a : b;
                position[t->axis[k]] = mirrored(tile[k] * t->edge[k] + step, t->shape[k]);
            }
            count_row(in, t, position, tile[t->naxes - 1] * t->edge[t->naxes - 1], counts);
        }
}

/* What is above the limit is spread over all bins, in whole numbers and in OpenCV's order. */
static void cut_off(uint32_t *counts, int64_t levels, double clip_limit, int64_t voxels) {
    if (!(clip_limit > 0)) return;
    double   wanted = clip_limit * (double)voxels / (double)levels;
    uint32_t limit = wanted < UINT32_MAX ? FV_MAX((uint32_t)wanted, 1u) : UINT32_MAX;
    int64_t  clipped = 0;
    for (int64_t i = 0; i < levels; i++) {
        clipped += counts[i] > limit ? counts[i] - limit : 0;
        counts[i] = FV_MIN(counts[i], limit);
    }
    int64_t each = clipped / levels, rest = clipped % levels;
    for (int64_t i = 0; i < levels; i++) counts[i] += (uint32_t)each;
    int64_t step = rest ? FV_MAX(levels / rest, 1) : 1;
    for (int64_t i = 0; i < levels && rest > 0; i += step, rest--) counts[i]++;
}

/* Part start ... start + n - 1 of the table; counts become their own sums on the way, so that the rest is a loop of vectors. */
static void write_table(uint32_t *counts, int64_t levels, int64_t voxels, void *to, fv_dtype dtype, int64_t start, int64_t n) {
    float           scale = (float)(levels - 1) / (float)voxels, most = (float)(levels - 1);
    const uint32_t *sums = counts + start;
    for (int64_t i = 1; i < start + n; i++) counts[i] += counts[i - 1];
    if (dtype == FV_UINT8)
        for (int64_t i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)FV_MIN(rintf((float)(int32_t)sums[i] * scale), most);
    else
        for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[i] = (uint16_t)FV_MIN(rintf((float)(int32_t)sums[i] * scale), most);
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *in = r->in[0], *out = r->out;
    const tables   *p = r->need.params;
    fv__tiles       t = tiles_of(&r->need);
    int64_t         levels = levels_of(in->dtype), voxels = 1;
    int             last = out->region.ndim - 1;
    uint32_t       *counts = r->scratch;
    fv_rows         rows;
    for (int k = 0; k < t.naxes; k++)
        if (!fv__mul(voxels, t.edge[k], &voxels) || voxels > INT32_MAX)
            return fv_fail(error, FV_ERROR_USAGE, "a tile has more than %d voxels; take more tiles", INT32_MAX);
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        int64_t position[FV_MAX_DIMS], tile[3] = { 0 };
        memcpy(position, rows.position, sizeof position);
        for (int k = 0; k < t.naxes; k++) tile[k] = rows.position[t.axis[k]];
        memset(counts, 0, fv__tally_scratch(in->dtype));
        count_tile(in, &t, position, tile, counts);
        for (int64_t i = 0; i < levels && in->dtype == FV_UINT8; i++) /* that counts in four tables */
            counts[i] += counts[256 + i] + counts[512 + i] + counts[768 + i];
        cut_off(counts, levels, p->clip_limit, voxels);
        write_table(counts, levels, voxels, fv__block_at(out, rows.position), out->dtype, out->region.start[last],
                    out->region.size[last]);
    }
    return FV_OK;
}

/* A row of tiles at a time: whole tables, of as many tiles as lie side by side. */
static void slab(const fv_need *n, int64_t *chunk) {
    int last = n->out->image.ndim - 1;
    for (int d = 0; d < last; d++) chunk[d] = 1;
    chunk[last] = n->out->image.shape[last];
    chunk[last - 1] = n->out->image.shape[last - 1];
}

static double cost(const fv_need *n) {
    fv__tiles t = tiles_of(n);
    double    voxels = 1;
    for (int k = 0; k < t.naxes; k++) voxels *= (double)t.edge[k];
    return 1 + voxels / (double)levels_of(n->in[0]->image.dtype);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(clahe_tables) = {
    .name = "clahe_tables",
    .family = "intensity",
    .brief = "what clahe makes of each grey value, tile by tile",
    .version = 1,
    .doc = "An image of the tiles with an additional axis level, which holds what each grey value becomes in the middle of the "
           "tile. clahe makes it by itself; give it to clahe to treat one image as another: clahe(b, clahe_tables(a)).",
    .citation = "OpenCV: createCLAHE",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(tables),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .example = "clahe_tables(phantom(\"cells\", [200, 200]), tiles = 2)[0] |> write(\"tables.npy\")",
    .see = "clahe equalize",
};
