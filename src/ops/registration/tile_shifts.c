/* tile_shifts: how far neighbouring tiles lie from where they should, by phase correlation of what they share. */
#include "base/math.h"
#include "kernels/phase_correlation.h"
#include "op/axes.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "ops/registration/phase.h"
#include "ops/registration/stitch_tiles.h"
#include <stdio.h>

typedef struct {
    FV__TILES_FIELDS
    FV__TILES_OWN
} tile_shifts;

static const fv_param params[] = { FV__TILES_PARAMS(tile_shifts), FV__TILES_OWN_PARAMS(tile_shifts) };

enum { WINDOW, FINE };                                             /* what is compared, and what fractions of pixels come from: */
static const int64_t edges[2][2] = { { 512, 256 }, { 128, 128 } }; /* longest edges, of planes and of volumes */
enum { LARGE = 192, PEAKS = 5, STEPS = 16 }; /* an edge that is compared with half as many pixels; places that are tried */
/* Pixels that tell how much there is to see, and how well tiles agree: of more every so many rows count. */
enum { GLANCE = 1 << 14, PLENTY = 1 << 16 };
enum { LANES = 8 };

static const fv__tiles_found *found_in(const tile_shifts *p) { return (const fv__tiles_found *)&p->paths; }

static fv_status infer(fv_infer *i, fv_error *error) {
    tile_shifts    *p = i->params;
    fv_image_type   tile;
    fv__tiles_found found;
    FV_TRY(FV_ISA_NAME(fv__tiles_find)((const fv__tiles *)p, i->arena, &found, &tile, error));
    p->paths = found.paths;
    p->places = found.places;
    p->pairs = found.pairs;
    int64_t pairs = fv__tiles_pairs(&found), shape[] = { FV_MAX(pairs, 1), fv__tiles_axes(&found) + 1 };
    i->out->kind = FV_KIND_IMAGE;
    fv_image_type_init(&i->out->image, FV_FLOAT64, 2, shape);
    snprintf(i->out->image.axis[0], sizeof i->out->image.axis[0], "pair");
    snprintf(i->out->image.axis[1], sizeof i->out->image.axis[1], "number");
    return FV_OK;
}

static fv_status identity(const void *params_, fv_hasher *hasher, fv_error *error) {
    return FV_ISA_NAME(fv__tiles_identify)(params_, hasher, error);
}

/* A pair is compared by itself. */
static void slab(const fv_need *n, int64_t *chunk) {
    chunk[0] = 1;
    chunk[1] = n->out->image.shape[1];
}

static double cost(const fv_need *n) {
    (void)n;
    return 1e7;
}

/* Both tiles of a pair, where they share anything. */
static int64_t reads(const fv_need *n) {
    const tile_shifts *p = n->params;
    fv_image_type      type;
    int64_t            memory, shared = 0;
    if (!p->refine || FV_ISA_NAME(fv__tile_type)(found_in(p), &type, &memory, NULL) != FV_OK) return 0;
    for (int64_t k = n->region.start[0]; k < n->region.start[0] + n->region.size[0] && k < fv__tiles_pairs(found_in(p)); k++) {
        fv__tile_pair pair = FV_ISA_NAME(fv__tiles_pair)(found_in(p), k);
        shared += pair.size[0] * pair.size[1] * pair.size[2];
    }
    int64_t pixels = 1;
    for (int d = 0; d < 3; d++) pixels *= fv__tiles_edge(found_in(p), d);
    return 2 * shared * (fv_image_type_bytes(&type) / pixels);
}

/* ---------------------------------------------------------------- one pair */

typedef struct {
    const fv__tiles_found *found;
    fv_image_type          type;
    fv__tile_pair          pair;
    int                    n, skip;           /* axes along which tiles move, and those of z y x before them */
    int                    axis[3];           /* z, y, x of the type; z: -1 */
    int64_t                inner;             /* elements of a pixel: axes behind x */
    int64_t                planes;            /* axes before those along which tiles move */
    int64_t                start[3], size[3]; /* of the window in what is shared */
    void                  *pixels;            /* of one z, as they are read */
    float                 *line;
    float                 *shared[2]; /* what both tiles show */
    fv_correlation         correlation;
    void                  *tables; /* and data of the correlation */
    fv_phase               phase;  /* of volumes: what their fractions of voxels come from */
} work;

static int64_t edge_of(const work *w, int which) { return edges[w->n - 2][which]; }

/* Room for the largest pair of a tile: it shares no more than a whole tile. */
static size_t lay_out(work *w, const int64_t *shared, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    plane = shared[1] * shared[2], shape[3];
    for (int d = 0; d < 3; d++) shape[d] = fv__spectrum_direct_length(FV_MIN(shared[d], edge_of(w, WINDOW)));
    w->pixels = fv__scratch_take(&pieces, plane * w->inner * (int64_t)fv_dtype_size(w->type.dtype));
    w->line = fv__scratch_take(&pieces, shared[2] * w->inner * (int64_t)sizeof(float));
    for (int k = 0; k < 2; k++) w->shared[k] = fv__scratch_take(&pieces, shared[0] * plane * (int64_t)sizeof(float));
    w->phase =
        (fv_phase){ .n = w->n, .size = { shared[2], shared[1], shared[0] }, .moving = w->shared[1], .fixed = w->shared[0] };
    if (w->n == 3) fv__shift_lay_out(&w->phase, &pieces);
    w->tables = fv__scratch_take(&pieces, FV_ISA_NAME(fv__correlation_bytes)(w->n, shape + w->skip));
    return pieces.used;
}

static void describe(work *w) {
    int y = fv__axis_find(&w->type, "y");
    w->n = fv__tiles_axes(w->found);
    w->skip = 3 - w->n;
    w->axis[0] = w->n == 3 ? y - 1 : -1;
    w->axis[1] = y;
    w->axis[2] = y + 1;
    w->planes = w->inner = 1;
    for (int d = 0; d < w->axis[w->skip]; d++) w->planes *= w->type.shape[d];
    for (int d = y + 2; d < w->type.ndim; d++) w->inner *= w->type.shape[d];
}

static size_t scratch(const fv_need *n) {
    const tile_shifts *p = n->params;
    work               w = { .found = found_in(p) };
    int64_t            memory, most[3] = { 1, 1, 1 };
    if (FV_ISA_NAME(fv__tile_type)(w.found, &w.type, &memory, NULL) != FV_OK) return 64;
    describe(&w);
    for (int64_t k = n->region.start[0]; k < n->region.start[0] + n->region.size[0]; k++)
        for (int d = 0; d < 3 && k < fv__tiles_pairs(w.found); d++)
            most[d] = FV_MAX(most[d], FV_ISA_NAME(fv__tiles_pair)(w.found, k).size[d]);
    return lay_out(&w, most, NULL) + (size_t)memory;
}

/* Adds the pixels that were read, the colours of each together. */
static void add_plane(const work *w, float *shared) {
    const fv__tile_pair *pair = &w->pair;
    int64_t              length = pair->size[2] * w->inner;
    for (int64_t row = 0; row < pair->size[1]; row++) {
        const char *from = (const char *)w->pixels + row * length * (int64_t)fv_dtype_size(w->type.dtype);
        float      *to = shared + row * pair->size[2];
        fv__kernels_current()->convert(w->line, FV_FLOAT32, from, w->type.dtype, length);
        for (int64_t i = 0; i < length; i++)
            if (isfinite(w->line[i])) to[i / w->inner] += w->line[i];
    }
}

/* One z of what the pair shares, of one of its tiles: the mean of all planes and colours. */
static fv_status load_plane(work *w, int side, int64_t z, fv_error *error) {
    const fv__tile_pair *pair = &w->pair;
    fv_region            region = fv__region_whole(&w->type);
    int64_t              n = pair->size[1] * pair->size[2];
    float               *shared = w->shared[side] + z * n;
    for (int d = w->skip; d < 3; d++) {
        region.start[w->axis[d]] = pair->start[side][d] + (d ? 0 : z);
        region.size[w->axis[d]] = d ? pair->size[d] : 1;
    }
    for (int d = 0; d < w->axis[w->skip]; d++) region.size[d] = 1;
    bool plain = w->planes * w->inner == 1 && !fv_dtype_is_float(w->type.dtype);
    if (!plain) memset(shared, 0, (size_t)n * sizeof(float));
    for (int64_t plane = 0; plane < w->planes; plane++) {
        int64_t rest = plane;
        for (int d = w->axis[w->skip] - 1; d >= 0; d--) {
            region.start[d] = rest % w->type.shape[d];
            rest /= w->type.shape[d];
        }
        fv_block block;
        fv__block_init(&block, w->type.dtype, &region, w->pixels);
        FV_TRY(FV_ISA_NAME(fv__tile_read)(w->found, pair->tile[side], &block, error));
        if (plain)
            fv__kernels_current()->convert(shared, FV_FLOAT32, w->pixels, w->type.dtype, n);
        else
            add_plane(w, shared);
    }
    return FV_OK;
}

static fv_status load(work *w, int side, fv_error *error) {
    for (int64_t z = 0; z < w->pair.size[0]; z++) FV_TRY(load_plane(w, side, z, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- sums */

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef float  floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* Sums over two images, lane by lane: of a, b, a a, b b, a b. */
typedef struct {
    lanes a, b, aa, bb, ab;
} products;

static double sum_lanes(lanes v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

static void add_products(const float *a, const float *b, int64_t n, products *sum) {
    products s = *sum;
    for (int64_t x = 0; x < n; x += LANES) {
        floats here = { 0 }, there = { 0 };
        if (x + LANES <= n) {
            here = *(const floats *)(a + x);
            there = *(const floats *)(b + x);
        } else
            for (int l = 0; l < n - x; l++) {
                here[l] = a[x + l];
                there[l] = b[x + l];
            }
        lanes u = __builtin_convertvector(here, lanes), v = __builtin_convertvector(there, lanes);
        s.a += u;
        s.b += v;
        s.aa += u * u;
        s.bb += v * v;
        s.ab += u * v;
    }
    *sum = s;
}

/* Where row y of plane z of what is shared begins, at column x. */
static int64_t offset_of(const work *w, int64_t z, int64_t y, int64_t x) {
    return (z * w->pair.size[1] + y) * w->pair.size[2] + x;
}

/* How much there is to see in a window of both tiles: the variance of the one that shows less. */
static double to_see(const work *w, const int64_t *start, const int64_t *size) {
    products sum = { 0 };
    int64_t  every = FV_MAX(size[0] * size[1] * size[2] / GLANCE, 1), rows = 0;
    for (int64_t r = 0; r < size[0] * size[1]; r += every, rows++) {
        int64_t row = offset_of(w, start[0] + r / size[1], start[1] + r % size[1], start[2]);
        add_products(w->shared[0] + row, w->shared[1] + row, size[2], &sum);
    }
    double n = (double)(rows * size[2]), a = sum_lanes(sum.a) / n, b = sum_lanes(sum.b) / n;
    return FV_MIN(sum_lanes(sum.aa) / n - a * a, sum_lanes(sum.bb) / n - b * b);
}

/* Of a large box the part with most to see is compared. */
static void choose_window(work *w, int which) {
    const int64_t *shared = w->pair.size;
    double         best = -1;
    int64_t        start[3];
    for (int d = 0; d < 3; d++) w->size[d] = FV_MIN(shared[d], edge_of(w, which));
    for (start[0] = 0; start[0] + w->size[0] <= shared[0]; start[0] += w->size[0])
        for (start[1] = 0; start[1] + w->size[1] <= shared[1]; start[1] += w->size[1])
            for (start[2] = 0; start[2] + w->size[2] <= shared[2]; start[2] += w->size[2]) {
                double seen = to_see(w, start, w->size);
                if (seen <= best) continue;
                best = seen;
                memcpy(w->start, start, sizeof w->start);
            }
}

/* Falls to 0 over a part of the width at each border, so that opposite borders do not meet in a step. */
static double taper(int64_t i, int64_t n, double part) {
    double in = ((double)FV_MIN(i, n - 1 - i) + 0.5) / (part * (double)n);
    return in >= 1 ? 1 : 0.5 - 0.5 * fv__cos(0x1.921fb54442d18p+1 * in);
}

/* A row of the window, of one of the tiles, as the correlation takes it. bin: pixels of an edge that become one, 1 or 2. */
static void fill_row(const work *w, const float *row, int64_t n, double mean, double edge, int bin, double *to) {
    if (bin == 1)
        for (int64_t x = 0; x < n; x++) to[2 * x] = ((double)row[x] - mean) * edge * (double)w->line[x];
    else
        for (int64_t x = 0; x < n; x++) {
            const float *below = row + w->pair.size[2];
            double       four = (double)(row[2 * x] + row[2 * x + 1]) + (double)(below[2 * x] + below[2 * x + 1]);
            to[2 * x] = (four / 4 - mean) * edge * (double)w->line[x];
        }
}

/* The same window of what both tiles show, the second moved by whole pixels, as far as it shows anything there; bin is 1 for
 * volumes. */
static void fill(work *w, const int64_t *shift, double part, int bin) {
    const int64_t *shared = w->pair.size;
    int64_t        size[3], start[2][3], half[3], shape[3];
    for (int d = 0; d < 3; d++) {
        int64_t far = shift[d] < 0 ? -shift[d] : shift[d];
        size[d] = FV_MIN(w->size[d], shared[d] - far);
        half[d] = d ? size[d] / bin : size[d];
        shape[d] = fv__spectrum_direct_length(half[d]);
        start[0][d] = FV_MIN(w->start[d], shared[d] - far - size[d]) + FV_MAX(shift[d], 0);
        start[1][d] = start[0][d] - shift[d];
    }
    if (w->n == 2) shape[0] = 1;
    FV_ISA_NAME(fv__correlation_prepare)(&w->correlation, w->n, shape + w->skip, w->tables);
    memset(w->correlation.data, 0, (size_t)(2 * shape[0] * shape[1] * shape[2]) * sizeof(double));
    for (int64_t x = 0; x < half[2]; x++) w->line[x] = (float)taper(x, half[2], part);
    const float *from[2];
    products     sum = { 0 };
    for (int side = 0; side < 2; side++)
        from[side] = w->shared[side] + offset_of(w, start[side][0], start[side][1], start[side][2]);
    for (int64_t r = 0; r < size[0] * size[1]; r++) {
        int64_t row = offset_of(w, r / size[1], r % size[1], 0);
        add_products(from[0] + row, from[1] + row, size[2], &sum);
    }
    double n = (double)(size[0] * size[1] * size[2]), mean[2] = { sum_lanes(sum.a) / n, sum_lanes(sum.b) / n };
    for (int64_t r = 0; r < half[0] * half[1]; r++) {
        int64_t z = r / half[1], y = r % half[1];
        double  edge = (w->n == 3 ? taper(z, half[0], part) : 1) * taper(y, half[1], part);
        double *to = w->correlation.data + 2 * (z * shape[1] + y) * shape[2];
        for (int side = 0; side < 2; side++)
            fill_row(w, from[side] + offset_of(w, z, y * bin, 0), half[2], mean[side], edge, bin, to + side);
    }
}

/* Pearson's correlation of all that the tiles share when the second is moved by whole pixels; 0 where too little is left. */
static double agreement(const work *w, const int64_t *shift) {
    const int64_t *size = w->pair.size;
    int64_t        first[3], extent[3];
    products       sum = { 0 };
    for (int d = 0; d < 3; d++) { /* first[i] = second[i - shift] */
        first[d] = FV_MAX(shift[d], 0);
        extent[d] = FV_MIN(size[d], size[d] + shift[d]) - first[d];
        if (extent[d] < FV_MIN(FV_MAX(size[d] / 4, 4), size[d])) return 0;
    }
    int64_t every = FV_MAX(extent[0] * extent[1] * extent[2] / PLENTY, 1), rows = 0;
    for (int64_t r = 0; r < extent[0] * extent[1]; r += every, rows++) {
        int64_t z = first[0] + r / extent[1], y = first[1] + r % extent[1];
        add_products(w->shared[0] + offset_of(w, z, y, first[2]),
                     w->shared[1] + offset_of(w, z - shift[0], y - shift[1], first[2] - shift[2]), extent[2], &sum);
    }
    double n = (double)(rows * extent[2]), a = sum_lanes(sum.a), b = sum_lanes(sum.b), aa = sum_lanes(sum.aa),
           bb = sum_lanes(sum.bb), spread_a = aa - a * a / n, spread_b = bb - b * b / n;
    bool flat = spread_a <= 1e-12 * aa || spread_b <= 1e-12 * bb;
    return flat ? 0 : (sum_lanes(sum.ab) - a * b / n) / sqrt(spread_a * spread_b);
}

/* Goes to the neighbour at which the tiles agree better than here and at all other neighbours; false: there is none. */
static bool try_beside(const work *w, int64_t *shift, double *agrees) {
    int64_t from[3] = { shift[0], shift[1], shift[2] }, deep = w->n == 3;
    bool    better = false;
    for (int64_t z = -deep; z <= deep; z++)
        for (int64_t y = -1; y <= 1; y++)
            for (int64_t x = -1; x <= 1; x++) {
                int64_t near[3] = { from[0] + z, from[1] + y, from[2] + x };
                double  here = z || y || x ? agreement(w, near) : 0;
                if (here <= *agrees) continue;
                *agrees = here;
                memcpy(shift, near, sizeof near);
                better = true;
            }
    return better;
}

/* Of the highest peaks of the correlation the one at which the pixels agree best; false: none. A large window of planes is
 * compared with half as many pixels along each edge. */
static bool find_whole_shift(work *w, int64_t limit, int64_t *shift, double *agrees) {
    fv_correlation_peak peaks[PEAKS];
    int64_t             limits[3], none[3] = { 0 };
    int                 bin = w->n == 2 && FV_MIN(w->size[1], w->size[2]) >= LARGE ? 2 : 1;
    for (int d = 0; d < 3; d++) limits[d] = (limit ? limit : w->pair.size[d] / 2) / bin;
    fill(w, none, 0.125, bin);
    FV_ISA_NAME(fv__correlation_run)(&w->correlation, true);
    int count = FV_ISA_NAME(fv__correlation_peaks)(&w->correlation, limits + w->skip, peaks, PEAKS);
    *agrees = 0;
    for (int k = 0; k < count; k++) {
        int64_t at[3] = { 0 };
        for (int d = w->skip; d < 3; d++) at[d] = peaks[k].shift[d - w->skip] * bin;
        double here = agreement(w, at);
        if (here <= *agrees) continue;
        *agrees = here;
        memcpy(shift, at, sizeof at);
    }
    /* Volumes share boxes that are short along one axis, where the correlation draws towards 0. */
    int most = *agrees <= 0 ? 0 : w->n == 3 ? STEPS : bin - 1;
    while (most-- > 0 && try_beside(w, shift, agrees)) {
    }
    return *agrees > 0;
}

/* Once whole pixels are known, both windows show the same: a fraction of them then comes without a bias from the plain
 * correlation, which hears noise least. */
static void find_fraction(work *w, const int64_t *shift, double *fraction) {
    fv_correlation_peak near[1];
    const int64_t       one[2] = { 1, 1 };
    choose_window(w, FINE);
    fill(w, shift, 0.5, 1);
    FV_ISA_NAME(fv__correlation_run)(&w->correlation, false);
    if (FV_ISA_NAME(fv__correlation_peaks)(&w->correlation, one, near, 1))
        FV_ISA_NAME(fv__correlation_refine)(&w->correlation, near[0].shift, fraction + w->skip);
}

/* The windows of volumes are too short for that along one axis, and have voxels enough to be compared themselves. */
static void compare_voxels(const work *w, const int64_t *shift, double *fraction) {
    double way[3];
    for (int d = 0; d < 3; d++) way[2 - d] = -(double)shift[d];
    fv__shift_settle(&w->phase, way);
    for (int d = 0; d < 3; d++) fraction[d] = -way[2 - d] - (double)shift[d];
}

static void compare(work *w, int64_t limit, double *out) {
    double  fraction[3] = { 0 };
    int64_t shift[3];
    choose_window(w, WINDOW);
    for (int d = 0; d < w->n; d++) out[d] = 0;
    if (!find_whole_shift(w, limit, shift, &out[w->n])) return;
    if (w->n == 3)
        compare_voxels(w, shift, fraction);
    else
        find_fraction(w, shift, fraction);
    for (int d = w->skip; d < 3; d++) {
        double  apart = fv__tiles_place(w->found, w->pair.tile[1], d) - fv__tiles_place(w->found, w->pair.tile[0], d);
        int64_t whole = w->pair.start[0][d] - w->pair.start[1][d] + shift[d];
        out[d - w->skip] = (double)whole + fraction[d] - apart;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const tile_shifts *p = r->need.params;
    const fv_region   *region = &r->out->region;
    work               w = { .found = found_in(p) };
    int64_t            memory;
    FV_TRY(FV_ISA_NAME(fv__tile_type)(w.found, &w.type, &memory, error));
    describe(&w);
    for (int64_t k = 0; k < region->size[0]; k++) {
        double  found[4] = { 0 };
        int64_t number = region->start[0] + k;
        if (p->refine && number < fv__tiles_pairs(w.found)) {
            w.pair = FV_ISA_NAME(fv__tiles_pair)(w.found, number);
            lay_out(&w, w.pair.size, r->scratch);
            for (int side = 0; side < 2; side++) FV_TRY(load(&w, side, error));
            compare(&w, p->limit, found);
        }
        double *to = (double *)r->out->data + k * r->out->stride[0];
        for (int64_t c = 0; c < region->size[1]; c++) to[c] = found[region->start[1] + c];
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(tile_shifts) = {
    .name = "tile_shifts",
    .family = "registration",
    .brief = "how far neighbouring tiles lie from where they should",
    .version = 2,
    .also = "pairwise_shifts, translation_computation",
    .doc =
        "The tiles of the example: tile_shifts(\"tiles/*.tif\", grid = [1, 2], overlap = 0.3). What stitch finds out first. A "
        "row "
        "for each two tiles that share enough: how far, in pixels along (z) y and x, the second lies from where it should "
        "against "
        "the "
        "first, and how well they agree there, from 0 to 1. Phase correlation of the part with most to see of what they share, "
        "up "
        "to 512 pixels long and at half resolution if it is large, names five places. That at which the shared pixels agree best "
        "is refined to a fraction of a pixel, by the correlation of the same part of both, up to 256 pixels long. "
        "Volumes that move along z are compared by boxes of up to 128 voxels, and voxel by voxel in the end.",
    .citation =
        "Guizar-Sicairos, Thurman, Fienup, Optics Letters 33, 156 (2008); Preibisch, Saalfeld, Tomancak, Bioinformatics 25, "
        "1463 (2009)",
    .params = params,
    .params_size = sizeof(tile_shifts),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .identity = identity,
    .reads = reads,
    .slab = slab,
    .cost = cost,
    .example = "image = phantom(\"cells\", [200, 300])\n"
               "write(image[:, 0:180], \"tiles/left.tif\")\n"
               "write(image[:, 120:300], \"tiles/right.tif\")",
    .see = "stitch stitch_positions",
};
