/* unwrap: phases without jumps of a whole turn, in planes.
 *
 * Pixels are joined edge by edge, those first between which the phase is smoothest, and a group that joins another is moved by
 * whole turns. The order of edges is total (smoothness in single precision, then the place of the edge), so that the result is
 * one, whatever the chunks. */
#include "base/math.h"
#include "op/scratch.h"
#include "ops/ptychography/phase_planes.h"

enum { IMAGE = FV_PLANES_IMAGE, MASK = FV_PLANES_MASK };
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "phase in radians, or a complex image; every plane y x is unwrapped for itself" },
    { "mask", FV_KIND_IMAGE, .optional = true,
      .doc = "pixels that count, axes y x; 0: one that is left as it is and joins nothing" },
    FV_INPUT_END,
};

enum { BITS = 11, DIGITS = 3, BUCKETS = 1 << BITS };
static const double   pi = 0x1.921fb54442d18p+1;
static const uint32_t last_of_all = 0x80000000u; /* set in the key of an edge at a border */

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[IMAGE]->image;
    FV_TRY(fv__planes_check(i, "unwrap", error));
    const int64_t *plane = a->shape + a->ndim - 2;
    if (plane[0] >= INT32_MAX / 2 / plane[1])
        return fv_fail(error, FV_ERROR_USAGE, "a plane of %lld x %lld pixels is too large: fewer than 2^30 are possible",
                       (long long)plane[0], (long long)plane[1]);
    i->out->image.dtype = fv__part_type(a->dtype);
    return FV_OK;
}

typedef struct {
    int64_t   height, width;
    double   *value;  /* phases of a plane; not a number: one that does not count */
    float    *rough;  /* how far from smooth the phase is at a pixel; negative: at a border, where less is known */
    uint64_t *edge;   /* key, and 2 * pixel + 1 if it goes down and not to the right */
    uint64_t *sorted; /* the same */
    int32_t  *parent; /* of a pixel in its group; its own number: it is the head */
    int32_t  *turns;  /* that the pixel is ahead of its parent */
    int32_t  *size;   /* of the group of a head */
    double   *row;
} work;

static size_t lay_out(const fv_need *n, work *k, void *memory) {
    const fv_image_type *type = &n->in[IMAGE]->image;
    fv_scratch           pieces = { memory };
    k->height = type->shape[type->ndim - 2];
    k->width = type->shape[type->ndim - 1];
    int64_t pixels = k->height * k->width;
    k->value = fv__scratch_take(&pieces, pixels * 8);
    k->rough = fv__scratch_take(&pieces, pixels * 4);
    k->edge = fv__scratch_take(&pieces, pixels * 16);
    k->sorted = fv__scratch_take(&pieces, pixels * 16);
    k->parent = fv__scratch_take(&pieces, pixels * 4);
    k->turns = fv__scratch_take(&pieces, pixels * 4);
    k->size = fv__scratch_take(&pieces, pixels * 4);
    k->row = fv__scratch_take(&pieces, k->width * 16);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work k;
    return lay_out(n, &k, NULL);
}

/* Whole turns that the second of two phases must be moved by to lie within half a turn of the first. */
static double turns_between(double a, double b) {
    double apart = a - b, size = fabs(apart);
    return size <= pi ? 0 : fv__with_sign(ceil((size - pi) / (2 * pi)), apart);
}
static double step(double a, double b) { return b - a + 2 * pi * turns_between(a, b); }

/* ---------------------------------------------------------------- the plane */

static void load(const work *k, const fv_block *image, const fv_block *mask, int64_t *at) {
    bool parts = fv_dtype_is_complex(image->dtype);
    for (int64_t y = 0; y < k->height; y++) {
        double *to = k->value + y * k->width, *row = parts ? k->row : to;
        fv__plane_row(image, at, y, 0, (parts ? 2 : 1) * k->width, row);
        for (int64_t x = 0; x < k->width && parts; x++) to[x] = fv__atan2(row[2 * x + 1], row[2 * x]);
        if (!mask) continue;
        fv__plane_row(mask, (int64_t[]){ 0, 0 }, y, 0, k->width, k->row);
        for (int64_t x = 0; x < k->width; x++) to[x] = k->row[x] != 0 ? to[x] : (double)NAN;
    }
}

/* The square of the second difference along a direction; false: a neighbour is missing. */
static bool bend(const work *k, int64_t y, int64_t x, int64_t dy, int64_t dx, double *sum) {
    if (y - dy < 0 || y + dy >= k->height || x - dx < 0 || x + dx >= k->width || x + dx < 0 || x - dx >= k->width) return false;
    const double *at = k->value + y * k->width + x;
    int64_t       by = dy * k->width + dx;
    double        second = step(at[-by], at[0]) - step(at[0], at[by]);
    if (!(fabs(second) < INFINITY)) return false;
    *sum += second * second;
    return true;
}

static void find_rough(const work *k) {
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++) {
            double sum = 0;
            int    known = bend(k, y, x, 0, 1, &sum) + bend(k, y, x, 1, 0, &sum);
            known += bend(k, y, x, 1, 1, &sum) + bend(k, y, x, 1, -1, &sum);
            k->rough[y * k->width + x] = known == 4 ? (float)sum : -(float)sum - 1e-30f;
        }
}

/* ---------------------------------------------------------------- edges */

static int64_t put_edge(const work *k, int64_t count, int64_t pixel, bool down) {
    int64_t  other = pixel + (down ? k->width : 1);
    uint32_t key;
    float    rough = fabsf(k->rough[pixel]) + fabsf(k->rough[other]);
    if (!(fabs(k->value[pixel]) < INFINITY && fabs(k->value[other]) < INFINITY)) return count;
    memcpy(&key, &rough, sizeof key);
    if (k->rough[pixel] < 0 || k->rough[other] < 0) key |= last_of_all;
    k->edge[count] = (uint64_t)key << 32 | (uint64_t)(2 * pixel + down);
    return count + 1;
}

static int64_t list_edges(const work *k) {
    int64_t count = 0;
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t x = 0; x < k->width; x++) {
            if (x + 1 < k->width) count = put_edge(k, count, y * k->width + x, false);
            if (y + 1 < k->height) count = put_edge(k, count, y * k->width + x, true);
        }
    return count;
}

/* By their keys, those of equal keys as they are: three digits, an odd number, so that the result is in `sorted`. */
static void sort_edges(const work *k, int64_t count) {
    uint64_t *from = k->edge, *to = k->sorted;
    for (int digit = 0; digit < DIGITS; digit++) {
        int64_t place[BUCKETS] = { 0 }, next = 0;
        int     shift = 32 + digit * BITS;
        for (int64_t i = 0; i < count; i++) place[from[i] >> shift & (BUCKETS - 1)]++;
        for (int b = 0; b < BUCKETS; b++) {
            int64_t here = place[b];
            place[b] = next;
            next += here;
        }
        for (int64_t i = 0; i < count; i++) to[place[from[i] >> shift & (BUCKETS - 1)]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
}

/* ---------------------------------------------------------------- groups */

/* The head of a pixel's group; *turns: that the pixel is ahead of it. The way there becomes shorter. */
static int32_t head_of(const work *k, int32_t pixel, int32_t *turns) {
    int32_t sum = 0;
    for (;;) {
        int32_t up = k->parent[pixel], above = k->parent[up];
        if (up == above) {
            *turns = sum + (up == pixel ? 0 : k->turns[pixel]);
            return up;
        }
        k->turns[pixel] += k->turns[up];
        k->parent[pixel] = above;
        sum += k->turns[pixel];
        pixel = above;
    }
}

static void join(const work *k, int32_t a, int32_t b) {
    int32_t of_a, of_b, head_a = head_of(k, a, &of_a), head_b = head_of(k, b, &of_b);
    if (head_a == head_b) return;
    int32_t ahead = of_a + (int32_t)turns_between(k->value[a], k->value[b]) - of_b; /* of b's head before a's */
    if (k->size[head_a] < k->size[head_b]) {
        int32_t swap = head_a;
        head_a = head_b;
        head_b = swap;
        ahead = -ahead;
    }
    k->parent[head_b] = head_a;
    k->turns[head_b] = ahead;
    k->size[head_a] += k->size[head_b];
}

/* The first pixel of each group keeps its phase. */
static void settle(const work *k) {
    int32_t *first = (int32_t *)k->edge;
    int64_t  pixels = k->height * k->width;
    for (int64_t i = 0; i < pixels; i++) first[i] = INT32_MIN;
    for (int64_t i = 0; i < pixels; i++) {
        int32_t turns, head = head_of(k, (int32_t)i, &turns);
        if (first[head] == INT32_MIN) first[head] = turns;
        k->value[i] += 2 * pi * (double)(turns - first[head]);
    }
}

static void unwrap_plane(const work *k) {
    int64_t pixels = k->height * k->width;
    for (int64_t i = 0; i < pixels; i++) {
        k->parent[i] = (int32_t)i;
        k->turns[i] = 0;
        k->size[i] = 1;
    }
    find_rough(k);
    int64_t count = list_edges(k);
    sort_edges(k, count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t edge = (uint32_t)k->sorted[i];
        join(k, (int32_t)(edge / 2), (int32_t)(edge / 2 + (edge % 2 ? k->width : 1)));
    }
    settle(k);
}

/* ---------------------------------------------------------------- running */

/* Phases of pixels that the mask leaves out. */
static void restore(const work *k, const fv_block *image, double *kept, int64_t *at) {
    work    plain = *k;
    int64_t pixels = k->height * k->width;
    plain.value = kept;
    load(&plain, image, NULL, at);
    for (int64_t i = 0; i < pixels; i++)
        if (k->value[i] != k->value[i]) k->value[i] = kept[i];
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *out = r->out;
    fv_region       planes = fv__planes_of(&out->region);
    int             last = planes.ndim - 1;
    int64_t         y0 = out->region.start[last - 1], x0 = out->region.start[last], n = out->region.size[last];
    work            k;
    fv_rows         rows;
    (void)error;
    lay_out(&r->need, &k, r->scratch);
    for (fv__rows_begin(&rows, &planes); fv__rows_next(&rows);) {
        int64_t at[FV_MAX_DIMS];
        memcpy(at, rows.position, sizeof at);
        load(&k, r->in[IMAGE], r->in[MASK], at);
        unwrap_plane(&k);
        if (r->in[MASK]) restore(&k, r->in[IMAGE], (double *)k.sorted, at);
        for (int64_t y = y0; y < y0 + out->region.size[last - 1]; y++)
            fv__plane_row_put(out, at, y, x0, n, k.value + y * k.width + x0);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 200;
}

static const fv_pass passes[] = { { .need = fv__planes_need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(unwrap) = {
    .name = "unwrap",
    .family = "ptychography",
    .stage = "finish",
    .brief = "phases without jumps of a whole turn",
    .also = "unwrap_phase, phase unwrapping",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = fv__planes_slab,
    .cost = cost,
    .doc =
        "Adds whole turns (2 pi) to pixels so that neighbours differ by less than half a turn, as far as that is possible: "
        "pixels "
        "are joined first where the phase is smoothest. The first pixel of every connected area keeps its phase. It equals "
        "scikit-image's unwrap_phase up to whole turns, except at borders where that one joins at random. Pixels that are not a "
        "number count as outside the mask. One task holds a plane, 60 bytes for each pixel.",
    .citation = "Herraez et al., Fast two-dimensional phase-unwrapping algorithm based on sorting by reliability following a "
                "noncontinuous path, Applied Optics 41, 2002",
    .example = "hill = gaussian(phantom(\"cells\", [200, 200]), 12) / 4\n"
               "wrapped = phase(complex_image(ones([200, 200]), hill))\n"
               "write(unwrap(wrapped), \"unwrapped.tif\")",
    .see = "phase remove_ramp",
};
