/* Voxels in another order of axes. Where rows stay rows they are copied; else tiles of rows are turned in registers. */
#include "kernels/rearrange.h"
#include "kernels/vectors.h"

fv_region fv__rearrange_need(const fv_rearrangement *a, const fv_region *region) {
    fv_region in = { .ndim = region->ndim };
    for (int d = 0; d < region->ndim; d++) {
        int64_t start = a->first[d] + a->step[d] * region->start[d], last = start + a->step[d] * (region->size[d] - 1);
        in.start[a->source[d]] = FV_MIN(start, last);
        in.size[a->source[d]] = region->size[d];
    }
    return in;
}

typedef struct sixteen {
    uint64_t half[2];
} sixteen;

/* A plane whose rows run across those of the input: to[i][j] = from[i + j * across] for i < n, j < m; to's rows are `pitch`
 * apart, from's columns step (1 or -1). */
typedef struct plane {
    const char *from;
    char       *to;
    int64_t     n, m, across, pitch, step;
} plane;

/* Rows of the result that are made together: the voxels of a cache line of the input. */
#define TURN(NAME, TYPE)                                                                                                         \
    static void NAME(const plane *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {                                           \
        const TYPE *restrict from = (const TYPE *)p->from;                                                                       \
        TYPE *restrict to = (TYPE *)p->to;                                                                                       \
        for (int64_t i = i0; i < i1; i++)                                                                                        \
            for (int64_t j = j0; j < j1; j++) to[i * p->pitch + j] = from[i * p->step + j * p->across];                          \
    }
TURN(turn_1, uint8_t)
TURN(turn_2, uint16_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)
TURN(turn_16, sixteen)

/* Squares of LANES x LANES in registers; what is left over by the plain loop. */
#define TURN_SQUARES(NAME, PLAIN, TYPE, VECTOR, LANES)                                                                           \
    static void NAME(const plane *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {                                           \
        const TYPE *from = (const TYPE *)p->from;                                                                                \
        TYPE       *to = (TYPE *)p->to;                                                                                          \
        int64_t     j = j0, i;                                                                                                   \
        if (p->step != 1) {                                                                                                      \
            PLAIN(p, i0, i1, j0, j1);                                                                                            \
            return;                                                                                                              \
        }                                                                                                                        \
        for (; j + (LANES) <= j1; j += (LANES)) {                                                                                \
            for (i = i0; i + (LANES) <= i1; i += (LANES)) {                                                                      \
                VECTOR v[LANES];                                                                                                 \
                for (int l = 0; l < (LANES); l++) v[l] = FV_PASTE(VECTOR, _load)(from + i + (j + l) * p->across);                \
                FV_PASTE(VECTOR, _transpose)(v);                                                                                 \
                for (int l = 0; l < (LANES); l++) FV_PASTE(VECTOR, _store)(to + (i + l) * p->pitch + j, v[l]);                   \
            }                                                                                                                    \
            PLAIN(p, i, i1, j, j + (LANES));                                                                                     \
        }                                                                                                                        \
        PLAIN(p, i0, i1, j, j1);                                                                                                 \
    }
TURN_SQUARES(squares_4, turn_4, float, fv_f32v, FV_F32_LANES)
TURN_SQUARES(squares_8, turn_8, double, fv_f64v, FV_F64_LANES)

static void turn_plane(const plane *p, size_t size) {
    const int64_t line = size < 16 ? 64 / (int64_t)size : 4, stretch = 32; /* few enough pages at a time */
    for (int64_t j = 0; j < p->m; j += stretch)
        for (int64_t i = 0; i < p->n; i += line) {
            int64_t i1 = FV_MIN(i + line, p->n), j1 = FV_MIN(j + stretch, p->m);
            switch (size) {
            case 1: turn_1(p, i, i1, j, j1); break;
            case 2: turn_2(p, i, i1, j, j1); break;
            case 4: squares_4(p, i, i1, j, j1); break;
            case 8: squares_8(p, i, i1, j, j1); break;
            default: turn_16(p, i, i1, j, j1); break;
            }
        }
}

#define REVERSE(TYPE)                                                                                                            \
    for (int64_t i = 0; i < n; i++) ((TYPE *)to)[i] = ((const TYPE *)from)[-i];                                                  \
    return
static void copy_row(void *restrict to, const void *restrict from, int64_t n, int64_t step, size_t size) {
    if (step == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: REVERSE(uint8_t);
    case 2: REVERSE(uint16_t);
    case 4: REVERSE(uint32_t);
    case 8: REVERSE(uint64_t);
    default: REVERSE(sixteen);
    }
}

void fv__rearrange_run(const fv_rearrangement *a, const fv_block *in, const fv_block *out) {
    int     last = out->region.ndim - 1, across = last;
    size_t  size = fv_dtype_size(out->dtype);
    int64_t at[FV_MAX_DIMS];
    while (a->source[across] != last) across--; /* axis of the result along which the input's rows run */
    fv_region outer = out->region;
    outer.size[last] = 1;
    outer.size[across] = 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &outer); fv__rows_next(&rows);) {
        for (int d = 0; d <= last; d++) at[a->source[d]] = a->first[d] + a->step[d] * rows.position[d];
        const char *from = fv__block_at(in, at);
        char       *to = fv__block_at(out, rows.position);
        if (across == last) {
            copy_row(to, from, out->region.size[last], a->step[last], size);
            continue;
        }
        plane p = { .from = from,
                    .to = to,
                    .n = out->region.size[across],
                    .m = out->region.size[last],
                    .across = in->stride[a->source[last]] * a->step[last],
                    .pitch = out->stride[across],
                    .step = a->step[across] };
        turn_plane(&p, size);
    }
}
