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

#define SUM(SUFFIX, TYPE, SUM_TYPE, MEAN)                                                                                        \
    static void mean_##SUFFIX(const job *j) {                                                                                    \
        SUM_TYPE sum[STRIP];                                                                                                     \
        TYPE    *to = j->to;                                                                                                     \
        int64_t  step = j->paired ? STRIP / 2 : STRIP;                                                                           \
        for (int64_t done = 0; done < j->count; done += step) {                                                                  \
            int64_t from = j->paired ? 2 * done : done, n = FV_MIN(j->length - from, (int64_t)STRIP);                            \
            int64_t pairs = j->paired ? n / 2 : 0;                                                                               \
            for (int64_t i = 0; i < n; i++) sum[i] = ((const TYPE *)j->row[0])[from + i];                                        \
            for (int r = 1; r < j->nrows; r++) {                                                                                 \
                const TYPE *row = (const TYPE *)j->row[r] + from;                                                                \
                for (int64_t i = 0; i < n; i++) sum[i] += row[i];                                                                \
            }                                                                                                                    \
            int voxels = j->nrows * 2;                                                                                           \
            for (int64_t i = 0; i < pairs; i++) to[done + i] = (TYPE)MEAN(sum[2 * i] + sum[2 * i + 1], voxels);                  \
            voxels = j->nrows;                                                                                                   \
            for (int64_t i = 2 * pairs; i < n; i++) to[done + i - pairs] = (TYPE)MEAN(sum[i], voxels);                           \
        }                                                                                                                        \
    }

#define ROUNDED(SUM, N) (((SUM) + ((N) >> 1)) >> __builtin_ctz((unsigned)(N)))
#define REAL(SUM, N) ((SUM) * (1.0 / (N)))
SUM(uint8, uint8_t, int32_t, ROUNDED)
SUM(int8, int8_t, int32_t, ROUNDED)
SUM(uint16, uint16_t, int32_t, ROUNDED)
SUM(int16, int16_t, int32_t, ROUNDED)
SUM(float32, float, double, REAL)
SUM(float64, double, double, REAL)

static void pick(const job *j, size_t size) { fv_copy_strided(j->to, 1, j->row[0], j->paired ? 2 : 1, j->count, size); }

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
    case FV_UINT8: mean_uint8(j); return;
    case FV_INT8: mean_int8(j); return;
    case FV_UINT16: mean_uint16(j); return;
    case FV_INT16: mean_int16(j); return;
    case FV_FLOAT32: mean_float32(j); return;
    case FV_FLOAT64: mean_float64(j); return;
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
    j->row[0] = fv_block_at(from, first);
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

void fv_zarr_shrink(const fv_block *from, const fv_block *to, const bool *halved, bool mean) {
    fv_rows rows;
    for (fv_rows_begin(&rows, &to->region); fv_rows_next(&rows);) {
        job j = { .to = fv_block_at(to, rows.position), .count = to->region.size[to->region.ndim - 1] };
        find_rows(from, rows.position, halved, &j);
        j.length = FV_MIN(j.length, j.paired ? 2 * j.count : j.count);
        if (mean)
            mean_row(&j, from->dtype);
        else
            pick(&j, fv_dtype_size(from->dtype));
    }
}
