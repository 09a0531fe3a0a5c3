/* Separable filters over a region: slow axis first, everything between reading a voxel and writing the result in cache.
 *
 *     input rows --z sums--> ring of rows (BLOCK planes) --y sums, transposed--> strip --x sums, transposed back--> output
 *
 * A block is BLOCK neighbouring results along the axis that is summed, times one vector across it. Each input vector is
 * loaded once for all BLOCK sums, which stay in registers. The strip holds BLOCK rows with the row index innermost, so the
 * sums along x are the same code as those along y. Rows are reached through pointers, which makes any boundary mode free.
 * Float input is read in place; other types, interleaved channels and rows that wrap are first copied to rows of floats.
 */
#include "kernels/separable.h"
#include "kernels/kernels.h"
#include "kernels/lanes.h"

enum { Z, Y, X };
enum { GROUP = 8 };              /* anchored groups of a mean */
enum { CACHE = 288 << 10 };      /* bytes that rows and strip of a tile may take: a part of the second-level cache */
enum { NARROWEST = 192 };        /* columns of a tile, unless the image has less */

/* One of the three directions; a missing one has a single voxel. */
typedef struct side {
    int64_t n;                   /* voxels of the image */
    int64_t start, end;          /* results wanted */
    int64_t anchor;              /* first result computed: start, or the multiple of GROUP below it */
    int64_t in_start, in_end;    /* what the input block holds */
    int64_t in_stride, out_stride;
    int64_t taps, before;
} side;

typedef struct job {
    const fv_separable *s;
    side                side[3];
    fv_dtype            dtype;    /* of the input; a complex number is two channels of its parts */
    bool                wide;     /* compute in double */
    bool                in_place; /* input rows can be read where they are */
    int64_t             width;    /* results along x of one tile */
    int64_t             span;     /* positions along x of one tile: width and what lies before and after */
    int64_t             pitch;    /* elements from one scratch row to the next */
    int64_t             planes;   /* that share a ring: one block, or 1 without a sum along z */
    int64_t             ring;     /* rows of the ring for each plane; 0: rows are read in place */
    bool                ring_by_position; /* slot from the row's place in the window, not from its index in the image */
    /* Scratch. Rows and weights are float or double. */
    void          *weights[3], *edge[3], *staged, *rows, *strip;
    const void   **pointer_z, **pointer_y;
    int64_t       *slot, *held, *map;
    double        *exact;
} job;

fv_dtype fv_separable_type(fv_dtype in) {
    switch (in) {
    case FV_UINT32: case FV_INT32: case FV_UINT64: case FV_INT64: case FV_FLOAT64: return FV_FLOAT64;
    case FV_COMPLEX64: case FV_COMPLEX128: return in;
    default: return FV_FLOAT32;
    }
}

fv_region fv_separable_need(const fv_separable *s, const fv_image_type *type, const fv_region *region) {
    int64_t before[FV_MAX_DIMS] = { 0 }, after[FV_MAX_DIMS] = { 0 };
    for (int k = 0; k < s->naxes; k++) {
        before[s->axis[k]] = s->before[k];
        after[s->axis[k]] = s->taps[k] - 1 - s->before[k];
    }
    return fv_border_need(s->border, region, before, after, type->shape);
}

/* ---------------------------------------------------------------- layout */

static void *carve(char **cursor, int64_t bytes) {
    void *place = *cursor;
    *cursor += (bytes + 63) / 64 * 64;
    return place;
}

static int64_t block_length(bool wide) { return FV_MAX(GROUP, wide ? FV_F64_LANES : FV_F32_LANES); }

static void set_sides(job *j, const fv_separable *s, const fv_need *need) {
    const fv_image_type *type = &need->in[0]->image;
    fv_region            in = fv_separable_need(s, type, &need->region);
    for (int d = 0; d < 3; d++) j->side[d] = (side){ .n = 1, .end = 1, .in_end = 1, .taps = 1 };
    for (int k = 0; k < s->naxes; k++) {
        int     d = k + 3 - s->naxes, axis = s->axis[k];
        int64_t start = need->region.start[axis];
        j->side[d] = (side){ .n = type->shape[axis], .start = start, .end = start + need->region.size[axis],
                             .anchor = s->weights ? start : start / GROUP * GROUP, .in_start = in.start[axis],
                             .in_end = in.start[axis] + in.size[axis], .taps = s->taps[k], .before = s->before[k] };
    }
}

/* A complex image is one of its parts with twice the strides. */
static bool contiguous(const job *j, const fv_separable *s, const fv_image_type *type) {
    return s->axis[s->naxes - 1] == type->ndim - 1 && !fv_dtype_is_complex(type->dtype) && j->dtype == (j->wide ? FV_FLOAT64 : FV_FLOAT32);
}

static void set_tile(job *j) {
    const side *y = &j->side[Y], *x = &j->side[X];
    int64_t     real = j->wide ? 8 : 4, block = block_length(j->wide), all = x->end - x->anchor;
    int64_t     rows = j->planes * FV_MIN(y->taps + block, y->in_end - y->in_start) + block;
    if (j->planes > 1 && !j->in_place) rows += j->side[Z].taps + block;
    int64_t width = FV_MAX(CACHE / (real * rows), FV_MAX(NARROWEST, 2 * x->taps)) / 64 * 64;
    int64_t tiles = FV_MAX((all + width / 2) / width, 1); /* nearly equal ones */
    j->width = ((all + tiles - 1) / tiles + GROUP - 1) / GROUP * GROUP;
    j->span = j->width + x->taps - 1;
    j->pitch = (j->span + 2 * block + 15) / 16 * 16;
    if (j->pitch * real % 4096 < 256) j->pitch += 80; /* rows whose addresses agree in the low bits evict each other */
}

/* Fills everything that follows from sizes alone and lays out scratch from `memory`; returns the bytes it takes. */
static size_t lay_out(job *j, const fv_separable *s, const fv_need *need, void *memory) {
    const fv_image_type *type = &need->in[0]->image;
    *j = (job){ .s = s, .dtype = type->dtype };
    if (fv_dtype_is_complex(type->dtype)) j->dtype = type->dtype == FV_COMPLEX64 ? FV_FLOAT32 : FV_FLOAT64;
    j->wide = fv_separable_type(j->dtype) == FV_FLOAT64;
    j->in_place = contiguous(j, s, type);
    set_sides(j, s, need);
    int64_t block = block_length(j->wide), real = j->wide ? 8 : 4, taps[3];
    for (int d = 0; d < 3; d++) taps[d] = j->side[d].taps;
    j->planes = taps[Z] > 1 ? block : 1;
    set_tile(j);
    int64_t held = j->side[Y].in_end - j->side[Y].in_start, window = taps[Y] + block - 1;
    j->ring = FV_MIN(window, held);
    j->ring_by_position = s->border == FV_BORDER_WRAP && j->ring < held;
    char *cursor = memory;
    for (int d = 0; d < 3; d++) {
        j->weights[d] = carve(&cursor, taps[d] * real);
        j->edge[d] = carve(&cursor, j->pitch * real);
    }
    j->exact = carve(&cursor, FV_MAX(taps[Z], FV_MAX(taps[Y], taps[X])) * 8);
    j->pointer_z = carve(&cursor, (taps[Z] + block) * 8);
    j->pointer_y = carve(&cursor, window * 8);
    j->slot = carve(&cursor, window * 8);
    j->held = carve(&cursor, j->ring * 8);
    j->map = carve(&cursor, j->span * 8);
    j->strip = carve(&cursor, (j->span + 2 * block) * block * real);
    j->staged = carve(&cursor, (j->planes > 1 ? taps[Z] + block : 0) * j->pitch * real);
    j->rows = carve(&cursor, j->planes * j->ring * j->pitch * real);
    return (size_t)(cursor - (char *)memory);
}

size_t fv_separable_scratch(const fv_separable *s, const fv_need *need) {
    job j;
    return lay_out(&j, s, need, NULL);
}

/* ---------------------------------------------------------------- both precisions */

/* Copies n elements that lie `stride` apart to a row of floats or doubles. */
#define GATHER(REAL, TYPE)                                                                        \
    for (int64_t i = 0; i < n; i++) to[i] = (REAL)((const TYPE *)from)[i * stride];               \
    break
#define DEFINE_GATHER(NAME, REAL, DTYPE)                                                          \
    static void NAME(REAL *restrict to, const void *restrict from, fv_dtype dtype, int64_t stride, int64_t n) { \
        if (stride == 1) {                                                                        \
            FV_PASTE(fv_kernels_, FV_ISA).convert(to, DTYPE, from, dtype, n);                     \
            return;                                                                               \
        }                                                                                         \
        switch (dtype) {                                                                          \
        case FV_BOOL: case FV_UINT8: GATHER(REAL, uint8_t);                                       \
        case FV_INT8: GATHER(REAL, int8_t);                                                       \
        case FV_UINT16: GATHER(REAL, uint16_t);                                                   \
        case FV_INT16: GATHER(REAL, int16_t);                                                     \
        case FV_UINT32: GATHER(REAL, uint32_t);                                                   \
        case FV_INT32: GATHER(REAL, int32_t);                                                     \
        case FV_UINT64: GATHER(REAL, uint64_t);                                                   \
        case FV_INT64: GATHER(REAL, int64_t);                                                     \
        case FV_FLOAT32: GATHER(REAL, float);                                                     \
        case FV_FLOAT64: GATHER(REAL, double);                                                    \
        default: break;                                                                           \
        }                                                                                         \
    }
extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);
DEFINE_GATHER(gather_f32, float, FV_FLOAT32)
DEFINE_GATHER(gather_f64, double, FV_FLOAT64)

#define REAL float
#define VECTOR fv_f32v
#define LANES FV_F32_LANES
#define R(name) FV_PASTE(name, _f32)
#include "kernels/separable_real.h"
#undef REAL
#undef VECTOR
#undef LANES
#undef R

#define REAL double
#define VECTOR fv_f64v
#define LANES FV_F64_LANES
#define R(name) FV_PASTE(name, _f64)
#include "kernels/separable_real.h"

/* ---------------------------------------------------------------- all channels */

/* Offsets of the next combination of the axes that are not summed along; false after the last. */
static bool next_channel(const fv_separable *s, const fv_region *region, int64_t *position) {
    for (int d = region->ndim - 1; d >= 0; d--) {
        bool spatial = false;
        for (int k = 0; k < s->naxes; k++) spatial |= s->axis[k] == d;
        if (spatial) continue;
        if (++position[d] < region->start[d] + region->size[d]) return true;
        position[d] = region->start[d];
    }
    return false;
}

void fv_separable_run(const fv_separable *s, const fv_run *r) {
    job j;
    lay_out(&j, s, &r->need, r->scratch);
    const fv_block *in = r->in[0], *out = r->out;
    int             parts = fv_dtype_is_complex(in->dtype) ? 2 : 1;
    size_t          in_size = fv_dtype_size(in->dtype) / (size_t)parts, out_size = fv_dtype_size(out->dtype) / (size_t)parts;
    for (int k = 0; k < s->naxes; k++) {
        j.side[k + 3 - s->naxes].in_stride = in->stride[s->axis[k]] * parts;
        j.side[k + 3 - s->naxes].out_stride = out->stride[s->axis[k]] * parts;
    }
    if (j.wide) prepare_f64(&j);
    else prepare_f32(&j);
    int64_t position[FV_MAX_DIMS], from[FV_MAX_DIMS];
    memcpy(position, out->region.start, sizeof position);
    do {
        memcpy(from, position, sizeof from);
        for (int k = 0; k < s->naxes; k++) from[s->axis[k]] = in->region.start[s->axis[k]];
        for (int part = 0; part < parts; part++) {
            const char *source = (const char *)fv_block_at(in, from) + (size_t)part * in_size;
            char       *target = (char *)fv_block_at(out, position) + (size_t)part * out_size;
            if (j.wide) channel_f64(&j, source, (double *)target);
            else channel_f32(&j, source, (float *)target);
        }
    } while (next_channel(s, &out->region, position));
}
