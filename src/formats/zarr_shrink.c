/* Means and picks of 2 x 2 x 2 voxels. Rows that lie below one row of the result are added up in a strip that stays in the cache,
 * then neighbours along the row. Sums are exact: integers in 32 bits, single precision in double; the mean is a multiplication by
 * a power of two, so the result depends on nothing but the voxels. */
#include "formats/zarr_shrink.h"
#include "op/dense.h"

enum { STRIP = 1024, MOST_ROWS = 1 << (FV_MAX_DIMS - 1) };

typedef struct {
    const void *row[MOST_ROWS]; /* that lie below one row of the result */
    int         nrows;          /* 1, 2, 4, ... */
    int64_t     length;         /* of each */
    void       *to;
    int64_t     count;  /* voxels of the result */
    bool        paired; /* the rows are halved too */
} job;

/* Rows are added in order, so that sums of real numbers do not depend on the path taken. nrows is a constant where this is
 * inlined. */
#define ADD_ROWS(SUFFIX, TYPE, SUM_TYPE)                                                                                         \
    static inline __attribute__((always_inline)) void add_##SUFFIX(SUM_TYPE *restrict sum, const void *const *rows, int nrows,   \
                                                                   int64_t from, int64_t n) {                                    \
        const TYPE *row[4] = { 0 };                                                                                              \
        for (int r = 0; r < nrows; r++) row[r] = (const TYPE *)rows[r] + from;                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            SUM_TYPE s = row[0][i];                                                                                              \
            for (int r = 1; r < nrows; r++) s += row[r][i];                                                                      \
            sum[i] = s;                                                                                                          \
        }                                                                                                                        \
    }

/* Any number of rows, odd ends: neighbours along the row are added from a strip of sums. */
#define MEAN(SUFFIX, TYPE, SUM_TYPE, DIVIDED)                                                                                    \
    ADD_ROWS(SUFFIX, TYPE, SUM_TYPE)                                                                                             \
    static void mean_##SUFFIX(const job *j, int64_t start) {                                                                     \
        SUM_TYPE sum[STRIP];                                                                                                     \
        TYPE    *to = j->to;                                                                                                     \
        int64_t  step = j->paired ? STRIP / 2 : STRIP;                                                                           \
        for (int64_t done = start; done < j->count; done += step) {                                                              \
            int64_t from = j->paired ? 2 * done : done, n = FV_MIN(j->length - from, (int64_t)STRIP);                            \
            int64_t pairs = j->paired ? n / 2 : 0;                                                                               \
            switch (j->nrows) {                                                                                                  \
            case 1: add_##SUFFIX(sum, j->row, 1, from, n); break;                                                                \
            case 2: add_##SUFFIX(sum, j->row, 2, from, n); break;                                                                \
            default: add_##SUFFIX(sum, j->row, 4, from, n); break;                                                               \
            }                                                                                                                    \
            for (int r = 4; r < j->nrows; r++) {                                                                                 \
                const TYPE *row = (const TYPE *)j->row[r] + from;                                                                \
                for (int64_t i = 0; i < n; i++) sum[i] += row[i];                                                                \
            }                                                                                                                    \
            int voxels = j->nrows * 2;                                                                                           \
            for (int64_t i = 0; i < pairs; i++) to[done + i] = (TYPE)DIVIDED(sum[2 * i] + sum[2 * i + 1], voxels);               \
            voxels = j->nrows;                                                                                                   \
            for (int64_t i = 2 * pairs; i < n; i++) to[done + i - pairs] = (TYPE)DIVIDED(sum[i], voxels);                        \
        }                                                                                                                        \
    }

#define ROUNDED(SUM, N) (((SUM) + ((N) >> 1)) >> __builtin_ctz((unsigned)(N)))
#define REAL(SUM, N) ((SUM) * (1.0 / (N)))
MEAN(uint8, uint8_t, int32_t, ROUNDED)
MEAN(int8, int8_t, int32_t, ROUNDED)
MEAN(uint16, uint16_t, int32_t, ROUNDED)
MEAN(int16, int16_t, int32_t, ROUNDED)
MEAN(float32, float, double, REAL)
MEAN(float64, double, double, REAL)

/* Narrow integers, two rows or four, which is nearly all there is to do: a pair of neighbours is one word, whose halves are
 * added without unpacking it. Gives how many voxels are done. */
#define PAIRS(SUFFIX, TYPE, WORD, SUM_TYPE, HALVES)                                                                              \
    static inline __attribute__((always_inline)) void pair_##SUFFIX(const job *j, int nrows, int64_t n) {                        \
        typedef WORD __attribute__((aligned(1), may_alias)) word;                                                                \
        TYPE *restrict to = j->to;                                                                                               \
        const word *row[4] = { 0 };                                                                                              \
        for (int r = 0; r < nrows; r++) row[r] = j->row[r];                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            SUM_TYPE s = (SUM_TYPE)nrows;                                                                                        \
            for (int r = 0; r < nrows; r++) s = (SUM_TYPE)(s + HALVES(row[r][i]));                                               \
            to[i] = (TYPE)(s >> (nrows == 4 ? 3 : 2));                                                                           \
        }                                                                                                                        \
    }                                                                                                                            \
    static int64_t pairs_##SUFFIX(const job *j) {                                                                                \
        if (!j->paired || (j->nrows != 2 && j->nrows != 4)) return 0;                                                            \
        if (j->nrows == 4)                                                                                                       \
            pair_##SUFFIX(j, 4, j->length / 2);                                                                                  \
        else                                                                                                                     \
            pair_##SUFFIX(j, 2, j->length / 2);                                                                                  \
        return j->length / 2;                                                                                                    \
    }

#define HALVES_UINT8(W) ((uint16_t)((W)&0xff) + (uint16_t)((W) >> 8))
#define HALVES_INT8(W) ((int16_t)(int8_t)(W) + (int16_t)((W) >> 8))
#define HALVES_UINT16(W) (((W)&0xffff) + ((W) >> 16))
#define HALVES_INT16(W) ((int32_t)(int16_t)(W) + ((W) >> 16))
PAIRS(uint8, uint8_t, uint16_t, uint16_t, HALVES_UINT8)
PAIRS(int8, int8_t, int16_t, int16_t, HALVES_INT8)
PAIRS(uint16, uint16_t, uint32_t, uint32_t, HALVES_UINT16)
PAIRS(int16, int16_t, int32_t, int32_t, HALVES_INT16)

static void pick(const job *j, size_t size) { fv__copy_strided(j->to, 1, j->row[0], j->paired ? 2 : 1, j->count, size); }

/* Complex numbers are few: pairs of parts, one after the other. */
static void mean_complex(const job *j, bool wide) {
    for (int64_t i = 0; i < 2 * j->count; i++) {
        int64_t voxel = i / 2, part = i % 2, first = j->paired ? 2 * voxel : voxel;
        int64_t n = j->paired ? FV_MIN(j->length - first, 2) : 1;
        double  sum = 0;
        for (int r = 0; r < j->nrows; r++)
            for (int64_t k = first; k < first + n; k++)
                sum += wide ? ((const double *)j->row[r])[2 * k + part] : ((const float *)j->row[r])[2 * k + part];
        sum *= 1.0 / (double)(j->nrows * n);
        if (wide)
            ((double *)j->to)[i] = sum;
        else
            ((float *)j->to)[i] = (float)sum;
    }
}

static void mean_row(const job *j, fv_dtype dtype) {
    switch (dtype) {
    case FV_UINT8: mean_uint8(j, pairs_uint8(j)); return;
    case FV_INT8: mean_int8(j, pairs_int8(j)); return;
    case FV_UINT16: mean_uint16(j, pairs_uint16(j)); return;
    case FV_INT16: mean_int16(j, pairs_int16(j)); return;
    case FV_FLOAT32: mean_float32(j, 0); return;
    case FV_FLOAT64: mean_float64(j, 0); return;
    case FV_COMPLEX64:
    case FV_COMPLEX128: mean_complex(j, dtype == FV_COMPLEX128); return;
    default: pick(j, fv_dtype_size(dtype)); return; /* wide integers are labels, bool has no mean */
    }
}

/* The rows of `from` below the row of the result that begins at a position. */
static void find_rows(const fv_block *from, const int64_t *position, const bool *halved, job *j) {
    int     last = from->region.ndim - 1;
    int64_t first[FV_MAX_DIMS];
    for (int d = 0; d <= last; d++) first[d] = halved[d] ? 2 * position[d] : position[d];
    j->row[0] = fv__block_at(from, first);
    j->nrows = 1;
    j->length = from->region.start[last] + from->region.size[last] - first[last];
    j->paired = halved[last];
    for (int d = 0; d < last; d++) {
        if (!halved[d] || first[d] + 1 >= from->region.start[d] + from->region.size[d]) continue;
        int64_t step = from->stride[d] * (int64_t)fv_dtype_size(from->dtype);
        for (int r = 0; r < j->nrows; r++) j->row[j->nrows + r] = (const char *)j->row[r] + step;
        j->nrows *= 2;
    }
}

fv_region fv__zarr_shrunk(const fv_region *region, const bool *halved) {
    fv_region over = *region;
    for (int d = 0; d < region->ndim; d++)
        if (halved[d]) {
            over.start[d] /= 2;
            over.size[d] = (region->size[d] + 1) / 2;
        }
    return over;
}

void fv__zarr_shrink(const fv_block *from, const fv_block *to, const bool *halved, bool mean) {
    fv_rows rows;
    for (fv__rows_begin(&rows, &to->region); fv__rows_next(&rows);) {
        job j = { .to = fv__block_at(to, rows.position), .count = to->region.size[to->region.ndim - 1] };
        find_rows(from, rows.position, halved, &j);
        j.length = FV_MIN(j.length, j.paired ? 2 * j.count : j.count);
        if (mean)
            mean_row(&j, from->dtype);
        else
            pick(&j, fv_dtype_size(from->dtype));
    }
}
