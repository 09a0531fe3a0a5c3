/* Extrema of windows, tile by tile: voxels become integer keys whose least one is wanted, with all that the windows look at. */
#include "kernels/extrema.h"
#include "kernels/padded.h"
#include "kernels/rank.h"
#include "kernels/vectors.h"
#include "op/kernels.h"
#include "op/scratch.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { PLANE_BYTES = 128 << 10, VOLUME_BYTES = 8 << 20, ROUND_BYTES = 1 << 20 };
enum { SLACK = 4 * FV_VECTOR_BYTES }; /* bytes behind a row that vectors may touch */

typedef struct job {
    const fv_extrema *e;
    fv_side           side[3];
    fv_dtype          dtype;
    int64_t           size;     /* of a voxel */
    int64_t           tile[3];  /* results of a tile */
    int64_t           rows;     /* of a padded plane */
    int64_t           pitch;    /* keys from one row to the next */
    int64_t           plane;    /* keys from one plane of the result to the next */
    uint64_t          constant; /* an element, outside the image */
    uint64_t          neutral;  /* the greatest key */
    void             *padded;   /* what a tile looks at: for boxes one plane, for round windows all */
    void             *result;   /* for boxes with the planes that the last axis looks at */
    int64_t          *first;    /* round: first[h] ... first[h + 1] - 1 are the rows of half-length h */
    int64_t          *offset;   /* round: of rows in `padded` */
} job;

typedef struct tile {
    int64_t start[3], count[3];
} tile;

/* ---------------------------------------------------------------- layout */

/* Windows that are no boxes: all that a tile looks at is kept, and rows of it are gathered. */
static bool scattered(const fv_extrema *e) { return e->round || e->pattern; }

/* Halves sides until the voxels that a tile looks at fit, but not below twice the window: beyond that, what neighbouring tiles
 * look at both would outweigh the tiles. */
static void shrink(job *j, int from, int64_t limit) {
    for (;;) {
        int64_t voxels = 1;
        int     longest = -1;
        for (int d = from; d < 3; d++) {
            const fv_side *s = &j->side[d];
            voxels *= j->tile[d] + s->size - 1;
            if (j->tile[d] > FV_MAX(2 * s->size, d == X ? 256 : 8) &&
                (longest < 0 || j->tile[d] * j->side[longest].size > j->tile[longest] * s->size))
                longest = d;
        }
        if (voxels <= limit || longest < 0) return;
        j->tile[longest] = (j->tile[longest] + 1) / 2;
    }
}

/* A box is summed up plane by plane, and then column by column through all planes, each of which should stay in the cache. */
static void set_tile(job *j) {
    for (int d = 0; d < 3; d++) j->tile[d] = j->side[d].end - j->side[d].start;
    if (scattered(j->e)) {
        shrink(j, Z, ROUND_BYTES / j->size);
        return;
    }
    shrink(j, Y, PLANE_BYTES / j->size);
    int64_t least = FV_MAX(4 * j->side[Z].size, VOLUME_BYTES / j->size / (j->tile[Y] * j->tile[X]));
    j->tile[Z] = FV_MIN(j->tile[Z], least);
}

/* A distance of keys at which addresses do not agree in their low bits: such rows evict each other. */
static int64_t spread(int64_t distance, int64_t size) {
    int64_t low = distance * size % 4096;
    return low < 256 || low > 3840 ? distance + (320 + 4096 - low) % 4096 / size : distance;
}

/* Rows that are gathered, at most: of a pattern one for each of its voxels. */
static int64_t window_rows(const job *j) {
    if (!scattered(j->e)) return 0;
    return j->side[Z].size * j->side[Y].size * (j->e->pattern ? j->side[X].size : 1);
}

static size_t lay_out(job *j, const fv_extrema *e, const fv_need *need, void *memory) {
    *j = (job){ .e = e, .dtype = need->in[0]->image.dtype };
    j->size = (int64_t)fv_dtype_size(j->dtype);
    fv__box_sides(&e->box, need, j->side);
    set_tile(j);
    j->rows = j->tile[Y] + j->side[Y].size - 1;
    j->pitch = (j->tile[X] + j->side[X].size - 1 + SLACK / j->size + 15) / 16 * 16;
    j->pitch = spread(j->pitch, j->size);
    j->plane = spread(j->tile[Y] * j->pitch, j->size);
    int64_t    planes = j->tile[Z] + j->side[Z].size - 1, row = j->pitch * j->size;
    fv_scratch pieces = { memory, 0 };
    j->padded = fv__scratch_take(&pieces, (scattered(e) ? planes : 1) * j->rows * row + SLACK);
    j->result = fv__scratch_take(&pieces, (scattered(e) ? j->tile[Z] : planes) * j->plane * j->size + SLACK);
    j->first = fv__scratch_take(&pieces, (scattered(e) ? j->side[X].before + 2 : 0) * 8);
    j->offset = fv__scratch_take(&pieces, window_rows(j) * 8);
    return pieces.used;
}

size_t fv__extrema_scratch(const fv_extrema *e, const fv_need *need) {
    job j;
    return fv__region_empty(&need->region) ? 0 : lay_out(&j, e, need, NULL);
}

double fv__extrema_cost(const fv_extrema *e, fv_dtype dtype) {
    double steps = 0, rows = 1, bytes = (double)fv_dtype_size(dtype);
    for (int d = 0; e->pattern && d < 3; d++) rows *= (double)e->pattern_size[d];
    if (e->pattern) return bytes * 0.01 * (2 + rows);
    for (int k = 0; k < e->box.naxes; k++) {
        steps += 2;
        for (int64_t have = 1; have < e->box.size[k]; have *= 2) steps++;
        if (k < e->box.naxes - 1) rows *= (double)e->box.size[k];
    }
    return bytes * (0.03 * steps + (e->round ? 0.01 * rows : 0));
}

/* Half the length of a round window's row at (z, y) from its middle; -1: no row. */
static int64_t half_length(const job *j, int64_t z, int64_t y) {
    int64_t rest = j->e->limit - z * z - y * y;
    if (rest < 0) return -1;
    int64_t half = (int64_t)sqrt((double)rest);
    while (half * half > rest) half--;
    while ((half + 1) * (half + 1) <= rest) half++;
    return FV_MIN(half, j->side[X].before);
}

/* Whether the voxel at an offset belongs to a pattern. For the greatest value it is turned round, as dilating wants. */
static bool belongs(const job *j, int64_t z, int64_t y, int64_t x) {
    const int64_t *size = j->e->pattern_size;
    int64_t        turn = j->e->greatest ? -1 : 1;
    return j->e->pattern[((size[Z] / 2 + turn * z) * size[Y] + size[Y] / 2 + turn * y) * size[X] + size[X] / 2 + turn * x] != 0;
}

/* The voxels of a pattern, as rows of half-length 0. */
static void list_voxels(job *j) {
    int64_t count = 0, before_z = j->side[Z].before, before_y = j->side[Y].before, before_x = j->side[X].before;
    for (int64_t z = -before_z; z <= before_z; z++)
        for (int64_t y = -before_y; y <= before_y; y++)
            for (int64_t x = -before_x; x <= before_x; x++)
                if (belongs(j, z, y, x)) j->offset[count++] = ((z + before_z) * j->rows + y + before_y) * j->pitch + x;
    j->first[0] = 0;
    j->first[1] = count;
}

/* Sorts the rows of a round window by their length. */
static void list_rows(job *j) {
    int64_t count = 0, before_z = j->side[Z].before, before_y = j->side[Y].before;
    for (int64_t h = 0; h <= j->side[X].before; h++) {
        j->first[h] = count;
        for (int64_t z = -before_z; z <= before_z; z++)
            for (int64_t y = -before_y; y <= before_y; y++)
                if (half_length(j, z, y) == h) j->offset[count++] = ((z + before_z) * j->rows + y + before_y) * j->pitch;
    }
    j->first[j->side[X].before + 1] = count;
}

/* ---------------------------------------------------------------- keys */

/* Whatever is wanted, the least key is it: for the greatest value all bits are turned. */
static void to_keys(const job *j, void *row, int64_t n, bool back);

static void load_row(const job *j, const char *in, const tile *t, int64_t z, int64_t y, int64_t n, void *row) {
    fv__padded_row(j->side, j->e->box.border, in, t->start[Z] - j->side[Z].before + z, t->start[Y] - j->side[Y].before + y,
                   t->start[X] - j->side[X].before, n, (size_t)j->size, &j->constant, row);
    to_keys(j, row, n, false);
}

#define KEY uint8_t
#define VECTOR fv_u8v
#define K(name) FV_PASTE(name, _1)
#include "kernels/extrema_key.h"
#undef KEY
#undef VECTOR
#undef K
#define KEY uint16_t
#define VECTOR fv_u16v
#define K(name) FV_PASTE(name, _2)
#include "kernels/extrema_key.h"
#undef KEY
#undef VECTOR
#undef K
#define KEY int32_t
#define VECTOR fv_i32v
#define K(name) FV_PASTE(name, _4)
#include "kernels/extrema_key.h"
#undef KEY
#undef VECTOR
#undef K
#define KEY int64_t
#define VECTOR fv_i64v
#define K(name) FV_PASTE(name, _8)
#include "kernels/extrema_key.h"
#undef KEY
#undef VECTOR
#undef K

/* Negative floats are ordered backwards: all bits but the sign are turned, which is its own inverse. */
static void order_floats_4(int32_t *row, int64_t n) {
    for (int64_t i = 0; i < n; i++) row[i] ^= row[i] < 0 ? INT32_MAX : 0;
}
static void order_floats_8(int64_t *row, int64_t n) {
    for (int64_t i = 0; i < n; i++) row[i] ^= row[i] < 0 ? INT64_MAX : 0;
}

static void to_keys(const job *j, void *row, int64_t n, bool back) {
    bool     is_signed = j->size > 2; /* keys of 1 and 2 bytes are unsigned, because that has instructions everywhere */
    uint64_t sign = fv__key_of(j->dtype, is_signed) == FV_KEY_FLIP ? (uint64_t)1 << (8 * j->size - 1) : 0;
    if (j->e->greatest) sign = ~sign;
    bool floats = fv_dtype_is_float(j->dtype);
    if (floats && !back) j->size == 4 ? order_floats_4(row, n) : order_floats_8(row, n);
    if (sign) switch (j->size) {
        case 1: flip_1(row, n, (uint8_t)sign); break;
        case 2: flip_2(row, n, (uint16_t)sign); break;
        case 4: flip_4(row, n, (int32_t)(uint32_t)sign); break;
        default: flip_8(row, n, (int64_t)sign);
        }
    if (floats && back) j->size == 4 ? order_floats_4(row, n) : order_floats_8(row, n);
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* The element that the constant is, or one whose key nothing exceeds. */
static void set_constant(job *j) {
    j->neutral = j->size > 2 ? ((uint64_t)1 << (8 * j->size - 1)) - 1 : ((uint64_t)1 << 8 * j->size) - 1;
    if (j->e->neutral) {
        j->constant = j->neutral;
        to_keys(j, &j->constant, 1, true);
    } else
        FV_PASTE(fv_kernels_, FV_ISA).convert(&j->constant, j->dtype, &j->e->box.cval, FV_FLOAT64, 1);
}

/* ---------------------------------------------------------------- the region */

static void tile_of_keys(const job *j, const char *in, const tile *t) {
    switch (j->size) {
    case 1: (scattered(j->e) ? round_tile_1 : box_tile_1)(j, in, t); break;
    case 2: (scattered(j->e) ? round_tile_2 : box_tile_2)(j, in, t); break;
    case 4: (scattered(j->e) ? round_tile_4 : box_tile_4)(j, in, t); break;
    default: (scattered(j->e) ? round_tile_8 : box_tile_8)(j, in, t);
    }
}

static void store_tile(const job *j, const tile *t, char *out) {
    for (int64_t z = 0; z < t->count[Z]; z++)
        for (int64_t y = 0; y < t->count[Y]; y++) {
            char   *row = (char *)j->result + (z * j->plane + y * j->pitch) * j->size;
            int64_t place = (t->start[Z] + z - j->side[Z].start) * j->side[Z].out_stride +
                            (t->start[Y] + y - j->side[Y].start) * j->side[Y].out_stride +
                            (t->start[X] - j->side[X].start) * j->side[X].out_stride;
            char *to = out + place * j->size;
            to_keys(j, row, t->count[X], true);
            if (j->side[X].out_stride == 1)
                memcpy(to, row, (size_t)(t->count[X] * j->size));
            else
                for (int64_t x = 0; x < t->count[X]; x++)
                    memcpy(to + x * j->side[X].out_stride * j->size, row + x * j->size, (size_t)j->size);
        }
}

void fv__extrema_run(const fv_extrema *e, const fv_run *r) {
    job  j;
    tile t;
    if (fv__region_empty(&r->need.region)) return;
    lay_out(&j, e, &r->need, r->scratch);
    fv__box_strides(&e->box, r, 1, j.side);
    set_constant(&j);
    if (e->pattern)
        list_voxels(&j);
    else if (e->round)
        list_rows(&j);
    fv_channels c;
    for (fv__channels_begin(&c, &e->box, r); fv__channels_next(&c);)
        for (t.start[Z] = j.side[Z].start; t.start[Z] < j.side[Z].end; t.start[Z] += j.tile[Z])
            for (t.start[Y] = j.side[Y].start; t.start[Y] < j.side[Y].end; t.start[Y] += j.tile[Y])
                for (t.start[X] = j.side[X].start; t.start[X] < j.side[X].end; t.start[X] += j.tile[X]) {
                    for (int d = 0; d < 3; d++) t.count[d] = FV_MIN(j.tile[d], j.side[d].end - t.start[d]);
                    tile_of_keys(&j, c.in, &t);
                    store_tile(&j, &t, c.out);
                }
}
