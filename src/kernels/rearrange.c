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

/* A plane whose rows run across those of the input: to[i][j] = from[i * step + j * across] for i < n, j < m; to's rows are
 * `pitch` apart, step is 1 or -1. */
typedef struct plane {
    const char *from;
    char       *to;
    int64_t     n, m, across, pitch, step;
} plane;

/* Part of it, as rows of another pitch: to[i][j] is element (i0 + i, j0 + j) of the plane. */
typedef struct part {
    int64_t i0, i1, j0, j1, pitch;
    void   *to;
} part;

#define TURN(NAME, TYPE)                                                                                                         \
    static void NAME(const plane *p, const part *t, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {                            \
        const TYPE *restrict from = (const TYPE *)p->from;                                                                       \
        TYPE *restrict to = (TYPE *)t->to - t->i0 * t->pitch - t->j0;                                                            \
        for (int64_t i = i0; i < i1; i++)                                                                                        \
            for (int64_t j = j0; j < j1; j++) to[i * t->pitch + j] = from[i * p->step + j * p->across];                          \
    }
TURN(turn_1, uint8_t)
TURN(turn_2, uint16_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)
TURN(turn_16, sixteen)

/* ---------------------------------------------------------------- squares in registers */

enum { LINE = 64, AHEAD = 2 }; /* bytes of a line of the cache; lines of a row between the tile and what is asked for */

typedef uint8_t  bytes __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(16)));
typedef uint8_t  bytes_unaligned __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t shorts_unaligned __attribute__((vector_size(16), aligned(2), may_alias));

FV_INLINE bytes  bytes_load(const uint8_t *p) { return *(const bytes_unaligned *)p; }
FV_INLINE void   bytes_store(uint8_t *p, bytes v) { *(bytes_unaligned *)p = v; }
FV_INLINE shorts shorts_load(const uint16_t *p) { return *(const shorts_unaligned *)p; }
FV_INLINE void   shorts_store(uint16_t *p, shorts v) { *(shorts_unaligned *)p = v; }

/* Each step brings elements that lie half the square apart side by side; after all of them rows are columns. */
FV_INLINE void bytes_transpose(bytes v[16]) {
#pragma GCC    unroll 4
    for (int step = 0; step < 4; step++) {
           bytes w[16];
#pragma GCC unroll 8
        for (int l = 0; l < 8; l++) {
            w[2 * l] = __builtin_shufflevector(v[l], v[l + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            w[2 * l + 1] = __builtin_shufflevector(v[l], v[l + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
#pragma GCC unroll 16
        for (int l = 0; l < 16; l++) v[l] = w[l];
    }
}
FV_INLINE void shorts_transpose(shorts v[8]) {
#pragma GCC    unroll 3
    for (int step = 0; step < 3; step++) {
           shorts w[8];
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++) {
            w[2 * l] = __builtin_shufflevector(v[l], v[l + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            w[2 * l + 1] = __builtin_shufflevector(v[l], v[l + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
#pragma GCC unroll 8
        for (int l = 0; l < 8; l++) v[l] = w[l];
    }
}

/* Squares of LANES x LANES in registers, a line of the input after the other; what is left over by the plain loop. What later
 * tiles need of the same rows is asked for before, into the second cache: no processor sees so many rows coming. */
#define TURN_SQUARES(NAME, PLAIN, TYPE, VECTOR, LANES)                                                                           \
    static void NAME(const plane *p, const part *t, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {                            \
        const TYPE *from = (const TYPE *)p->from;                                                                                \
        TYPE       *to = (TYPE *)t->to - t->i0 * t->pitch - t->j0;                                                               \
        bool        back = p->step < 0; /* the columns of a square then come last first */                                       \
        int64_t     i = i0, j = j0;                                                                                              \
        for (; j + (LANES) <= j1; j += (LANES)) {                                                                                \
            const TYPE *next = from + j * p->across + p->step * (i1 + AHEAD * LINE / (int64_t)sizeof(TYPE));                     \
            for (int l = 0; l < (LANES); l++) __builtin_prefetch(next + l * p->across, 0, 2);                                    \
            for (i = i0; i + (LANES) <= i1; i += (LANES)) {                                                                      \
                const TYPE *column = from + (back ? -i - ((LANES)-1) : i);                                                       \
                TYPE       *row = to + (back ? i + ((LANES)-1) : i) * t->pitch;                                                  \
                VECTOR      v[LANES];                                                                                            \
                for (int l = 0; l < (LANES); l++) v[l] = FV_PASTE(VECTOR, _load)(column + (j + l) * p->across);                  \
                FV_PASTE(VECTOR, _transpose)(v);                                                                                 \
                for (int l = 0; l < (LANES); l++) FV_PASTE(VECTOR, _store)(row + l * p->step * t->pitch + j, v[l]);              \
            }                                                                                                                    \
            PLAIN(p, t, i, i1, j, j + (LANES));                                                                                  \
        }                                                                                                                        \
        PLAIN(p, t, i0, i1, j, j1);                                                                                              \
    }
TURN_SQUARES(squares_1, turn_1, uint8_t, bytes, 16)
TURN_SQUARES(squares_2, turn_2, uint16_t, shorts, 8)
TURN_SQUARES(squares_4, turn_4, float, fv_f32v, FV_F32_LANES)
TURN_SQUARES(squares_8, turn_8, double, fv_f64v, FV_F64_LANES)

static void turn_part(const plane *p, const part *t, size_t size) {
    switch (size) {
    case 1: squares_1(p, t, t->i0, t->i1, t->j0, t->j1); break;
    case 2: squares_2(p, t, t->i0, t->i1, t->j0, t->j1); break;
    case 4: squares_4(p, t, t->i0, t->i1, t->j0, t->j1); break;
    case 8: squares_8(p, t, t->i0, t->i1, t->j0, t->j1); break;
    default: turn_16(p, t, t->i0, t->i1, t->j0, t->j1); break;
    }
}

/* ---------------------------------------------------------------- planes */

enum { LINES = 8 };      /* lines of a row of a tile; its rows are one line of the input high */
enum { HELD = 1 << 20 }; /* bytes of a plane that stays in the cache */

/* A line at a multiple of LINE, past the cache: what is there before is not fetched. */
FV_INLINE void stream_line(char *to, const char *from) {
#if FV_VECTOR_BYTES == 64
    _mm512_stream_si512((void *)to, _mm512_loadu_si512(from));
#elif FV_VECTOR_BYTES == 32
    for (int i = 0; i < LINE; i += 32) _mm256_stream_si256((__m256i *)(to + i), _mm256_loadu_si256((const __m256i *)(from + i)));
#elif defined(__SSE2__)
    for (int i = 0; i < LINE; i += 16) _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
#else
    memcpy(to, from, LINE);
#endif
}

static void stream_row(char *to, const char *from, int64_t length) {
    int64_t head = FV_MIN((int64_t)(-(uintptr_t)to % LINE), length);
    memcpy(to, from, (size_t)head);
    for (; head + LINE <= length; head += LINE) stream_line(to + head, from + head);
    memcpy(to + head, from + head, (size_t)(length - head));
}

/* Bytes from the last multiple of LINE to the place. */
static int64_t beyond_line(const plane *p, int64_t i, int64_t j, int64_t size) {
    return (int64_t)((uintptr_t)(p->to + (i * p->pitch + j) * size) % LINE);
}

/* A tile of a large plane. Its rows end where lines of the memory do, and not at j1: what is behind belongs to the next tile,
 * and what the tile before left is made here. */
static void turn_tile(const plane *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t size) {
    _Alignas(LINE) char tile[LINE * (LINES + 1) * LINE];
    int64_t             left = j0 ? LINE / size : 0;
    part                t = { i0, i1, j0 - left, j1, (LINES + 1) * LINE / size, tile };
    bool                aligned = !beyond_line(p, 0, 0, size) && !(p->pitch * size % LINE);
    if (aligned) t.j0 = j0;
    turn_part(p, &t, (size_t)size);
    for (int64_t i = i0; i < i1; i++) {
        int64_t start = j0 ? j0 - beyond_line(p, i, j0, size) / size : 0;
        int64_t end = j1 < p->m ? j1 - beyond_line(p, i, j1, size) / size : p->m;
        stream_row(p->to + (i * p->pitch + start) * size, tile + ((i - i0) * t.pitch + start - t.j0) * size,
                   (end - start) * size);
    }
}

static void fence(bool streamed) {
#if defined(__SSE2__)
    if (streamed) _mm_sfence();
#else
    (void)streamed;
#endif
}

static void turn_plane(const plane *p, size_t size_) {
    int64_t size = (int64_t)size_, wide = LINES * LINE / size, high = FV_MAX(LINE / size, 16);
    bool    large = p->n * p->m * size > HELD && p->m >= wide && LINE % size == 0;
    for (int64_t j = 0; j < p->m; j += wide)
        for (int64_t i = 0; i < p->n; i += high) {
            int64_t i1 = FV_MIN(i + high, p->n), j1 = FV_MIN(j + wide, p->m);
            part    t = { i, i1, j, j1, p->pitch, p->to + (i * p->pitch + j) * size };
            if (large)
                turn_tile(p, i, i1, j, j1, size);
            else
                turn_part(p, &t, size_);
        }
    fence(large);
}

#define REVERSE(TYPE)                                                                                                            \
    for (int64_t i = 0; i < n; i++) ((TYPE *)to)[i] = ((const TYPE *)from)[-i];                                                  \
    return
static void reverse_row(void *restrict to, const void *restrict from, int64_t n, size_t size) {
    switch (size) {
    case 1: REVERSE(uint8_t);
    case 2: REVERSE(uint16_t);
    case 4: REVERSE(uint32_t);
    case 8: REVERSE(uint64_t);
    default: REVERSE(sixteen);
    }
}

/* Of a large image by pieces, which then go past the cache. */
static void copy_row(char *restrict to, const char *restrict from, int64_t n, int64_t step, size_t size, bool large) {
    _Alignas(LINE) char piece[LINES * LINE];
    int64_t             most = (int64_t)(sizeof piece / size);
    if (step == 1)
        memcpy(to, from, (size_t)n * size);
    else if (!large)
        reverse_row(to, from, n, size);
    for (int64_t i = 0, head = (int64_t)(-(uintptr_t)to % LINE / size); step != 1 && large && i < n;) {
        int64_t count = FV_MIN(i || !head ? most : head, n - i);
        reverse_row(piece, from - (size_t)i * size, count, size);
        stream_row(to + (size_t)i * size, piece, count * (int64_t)size);
        i += count;
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
    bool    large = fv__region_voxels(&out->region) * (int64_t)size > HELD;
    for (fv__rows_begin(&rows, &outer); fv__rows_next(&rows);) {
        for (int d = 0; d <= last; d++) at[a->source[d]] = a->first[d] + a->step[d] * rows.position[d];
        const char *from = fv__block_at(in, at);
        char       *to = fv__block_at(out, rows.position);
        if (across == last) {
            copy_row(to, from, out->region.size[last], a->step[last], size, large);
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
    fence(large);
}
