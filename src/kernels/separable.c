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
#include "kernels/vectors.h"
#include "op/kernels.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { GROUP = 8 };         /* anchored groups of a mean */
enum { CACHE = 288 << 10 }; /* bytes that rows and strip of a tile may take: a part of the second-level cache */
enum { NARROWEST = 192 };   /* columns of a tile, unless the image has less */

typedef struct job {
    const fv_separable *s;
    fv_side             side[3];
    int64_t             anchor[3];        /* first result computed: the start, or for a mean the multiple of GROUP below it */
    fv_dtype            dtype;            /* of the input; a complex number is two channels of its parts */
    bool                wide;             /* compute in double */
    bool                in_place;         /* input rows can be read where they are */
    int64_t             width;            /* results along x of one tile */
    int64_t             span;             /* positions along x of one tile: width and what lies before and after */
    int64_t             pitch;            /* elements from one scratch row to the next */
    int64_t             planes;           /* that share a ring: one block, or 1 without a sum along z */
    int64_t             ring;             /* rows of the ring for each plane; 0: rows are read in place */
    bool                ring_by_position; /* slot from the row's place in the window, not from its index in the image */
    /* Scratch. Rows and weights are float or double. */
    void        *weights[3], *edge[3], *staged, *rows, *strip;
    const void **pointer_z, **pointer_y;
    int64_t     *slot, *held, *map;
    double      *exact;
} job;

fv_dtype fv__separable_type(fv_dtype in) {
    switch (in) {
    case FV_UINT32:
    case FV_INT32:
    case FV_UINT64:
    case FV_INT64:
    case FV_FLOAT64: return FV_FLOAT64;
    case FV_COMPLEX64:
    case FV_COMPLEX128: return in;
    default: return FV_FLOAT32;
    }
}

/* ---------------------------------------------------------------- layout */

static void *carve(char **cursor, int64_t bytes) {
    void *place = *cursor;
    *cursor += (bytes + 63) / 64 * 64;
    return place;
}

static int64_t block_length(bool wide) { return FV_MAX(GROUP, wide ? FV_F64_LANES : FV_F32_LANES); }

/* A complex image is one of its parts with twice the strides. */
static bool contiguous(const job *j, const fv_separable *s, const fv_image_type *type) {
    return s->box.axis[s->box.naxes - 1] == type->ndim - 1 && !fv_dtype_is_complex(type->dtype) &&
           j->dtype == (j->wide ? FV_FLOAT64 : FV_FLOAT32);
}

static void set_tile(job *j) {
    const fv_side *y = &j->side[Y], *x = &j->side[X];
    int64_t        real = j->wide ? 8 : 4, block = block_length(j->wide), all = x->end - j->anchor[X];
    int64_t        rows = j->planes * FV_MIN(y->size + block, y->in_end - y->in_start) + block;
    if (j->planes > 1 && !j->in_place) rows += j->side[Z].size + block;
    int64_t width = FV_MAX(CACHE / (real * rows), FV_MAX(NARROWEST, 2 * x->size)) / 64 * 64;
    int64_t tiles = FV_MAX((all + width / 2) / width, 1); /* nearly equal ones */
    j->width = ((all + tiles - 1) / tiles + GROUP - 1) / GROUP * GROUP;
    j->span = j->width + x->size - 1;
    j->pitch = (j->span + 2 * block + 15) / 16 * 16;
    if (j->pitch * real % 4096 < 256) j->pitch += 80; /* rows whose addresses agree in the low bits evict each other */
}

/* Fills everything that follows from sizes alone and lays out scratch from `memory`; returns the bytes it takes. */
static size_t lay_out(job *j, const fv_separable *s, const fv_need *need, void *memory) {
    const fv_image_type *type = &need->in[0]->image;
    *j = (job){ .s = s, .dtype = type->dtype };
    if (fv_dtype_is_complex(type->dtype)) j->dtype = type->dtype == FV_COMPLEX64 ? FV_FLOAT32 : FV_FLOAT64;
    j->wide = fv__separable_type(j->dtype) == FV_FLOAT64;
    j->in_place = contiguous(j, s, type);
    fv__box_sides(&s->box, need, j->side);
    int64_t block = block_length(j->wide), real = j->wide ? 8 : 4, taps[3];
    for (int d = 0; d < 3; d++) {
        taps[d] = j->side[d].size;
        j->anchor[d] = s->weights ? j->side[d].start : j->side[d].start / GROUP * GROUP;
    }
    j->planes = taps[Z] > 1 ? block : 1;
    set_tile(j);
    int64_t held = j->side[Y].in_end - j->side[Y].in_start, window = taps[Y] + block - 1;
    j->ring = FV_MIN(window, held);
    j->ring_by_position = s->box.border == FV_BORDER_WRAP && j->ring < held;
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

size_t fv__separable_scratch(const fv_separable *s, const fv_need *need) {
    job j;
    return lay_out(&j, s, need, NULL);
}

/* ---------------------------------------------------------------- both precisions */

/* Copies n elements that lie `stride` apart to a row of floats or doubles. */
#define GATHER(REAL, TYPE)                                                                                                       \
    for (int64_t i = 0; i < n; i++) to[i] = (REAL)((const TYPE *)from)[i * stride];                                              \
    break
#define DEFINE_GATHER(NAME, REAL, DTYPE)                                                                                         \
    static void NAME(REAL *restrict to, const void *restrict from, fv_dtype dtype, int64_t stride, int64_t n) {                  \
        if (stride == 1) {                                                                                                       \
            FV_PASTE(fv_kernels_, FV_ISA).convert(to, DTYPE, from, dtype, n);                                                    \
            return;                                                                                                              \
        }                                                                                                                        \
        switch (dtype) {                                                                                                         \
        case FV_BOOL:                                                                                                            \
        case FV_UINT8: GATHER(REAL, uint8_t);                                                                                    \
        case FV_INT8: GATHER(REAL, int8_t);                                                                                      \
        case FV_UINT16: GATHER(REAL, uint16_t);                                                                                  \
        case FV_INT16: GATHER(REAL, int16_t);                                                                                    \
        case FV_UINT32: GATHER(REAL, uint32_t);                                                                                  \
        case FV_INT32: GATHER(REAL, int32_t);                                                                                    \
        case FV_UINT64: GATHER(REAL, uint64_t);                                                                                  \
        case FV_INT64: GATHER(REAL, int64_t);                                                                                    \
        case FV_FLOAT32: GATHER(REAL, float);                                                                                    \
        case FV_FLOAT64: GATHER(REAL, double);                                                                                   \
        default: break;                                                                                                          \
        }                                                                                                                        \
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

/* ---------------------------------------------------------------- the region */

void fv__separable_run(const fv_separable *s, const fv_run *r) {
    job j;
    lay_out(&j, s, &r->need, r->scratch);
    int    parts = fv_dtype_is_complex(r->in[0]->dtype) ? 2 : 1;
    size_t in_size = fv_dtype_size(r->in[0]->dtype) / (size_t)parts, out_size = fv_dtype_size(r->out->dtype) / (size_t)parts;
    fv__box_strides(&s->box, r, parts, j.side);
    if (j.wide)
        prepare_f64(&j);
    else
        prepare_f32(&j);
    fv_channels c;
    for (fv__channels_begin(&c, &s->box, r); fv__channels_next(&c);)
        for (size_t part = 0; part < (size_t)parts; part++) {
            const char *in = (const char *)c.in + part * in_size;
            char       *out = (char *)c.out + part * out_size;
            if (j.wide)
                channel_f64(&j, in, (double *)out);
            else
                channel_f32(&j, in, (float *)out);
        }
}
