/* bin: blocks of voxels made one, as skimage.measure.block_reduce. */
#include "kernels/separable.h"
#include "op/axes.h"
#include "op/kernels.h"
#include "op/place.h"
#include "op/scratch.h"
#include <stdlib.h>

typedef struct {
    fv_numbers  size;
    fv_choice   method;
    const char *axes;
} bin;
enum { MEAN, SUM, MEDIAN, MODE };

static const fv_param params[] = {
    FV_PARAM(bin, size, .min = 1, .max = 1e6, .unit = "px", .doc = "edge of a block, one number or one per axis"),
    FV_PARAM(bin, method, .def = "mean", .choices = "mean|sum|median|mode",
             .doc = "what becomes of a block; mode: its most frequent value, the least of several"),
    FV_PARAM(bin, axes, .def = "", .doc = "axes that are binned, as \"y x\"; left out: all spatial axes"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any real image" }, FV_INPUT_END };

enum { LARGEST = 1 << 20 }; /* voxels of a block that is sorted */

/* Edges of the block, by axis of the image. */
static void edges(const bin *p, const fv_image_type *in, int64_t edge[FV_MAX_DIMS]) {
    int axis[FV_MAX_DIMS], count;
    for (int d = 0; d < FV_MAX_DIMS; d++) edge[d] = 1;
    fv__axes_pick(in, p->axes, axis, &count, NULL);
    for (int k = 0; k < count; k++) edge[axis[k]] = (int64_t)p->size.value[k];
}

static int64_t block_voxels(const int64_t *edge, int ndim) {
    int64_t all = 1;
    for (int d = 0; d < ndim; d++)
        if (!fv__mul(all, edge[d], &all)) return INT64_MAX;
    return all;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    bin                 *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    int                  axis[FV_MAX_DIMS], count;
    int64_t              edge[FV_MAX_DIMS];
    if (fv_dtype_is_complex(in->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s: it must be real", fv_dtype_name(in->dtype));
    FV_TRY(fv__axes_pick(in, p->axes, axis, &count, error));
    FV_TRY(fv__numbers_spread(&p->size, count, "size", error));
    for (int k = 0; k < count; k++) {
        if (p->size.value[k] != floor(p->size.value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "size = %g: must be a whole number", p->size.value[k]);
        if (p->size.value[k] > (double)in->shape[axis[k]])
            return fv_fail(error, FV_ERROR_USAGE, "size = %g along %s, which has only %lld voxels: nothing would be left",
                           p->size.value[k], in->axis[axis[k]], (long long)in->shape[axis[k]]);
    }
    edges(p, in, edge);
    if (p->method.index >= MEDIAN && block_voxels(edge, in->ndim) > LARGEST)
        return fv_fail(error, FV_ERROR_USAGE, "a block of more than %d voxels: the %s takes no larger ones", LARGEST,
                       p->method.index == MEDIAN ? "median" : "mode");
    for (int d = 0; d < in->ndim; d++) {
        out->shape[d] = in->shape[d] / edge[d];
        fv__place_step(out, d, (double)(edge[d] - 1) / 2, (double)edge[d]);
    }
    if (p->method.index == SUM) out->dtype = FV_FLOAT64;
    if (p->method.index == MEAN || p->method.index == MEDIAN) out->dtype = fv__separable_type(in->dtype);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    int64_t edge[FV_MAX_DIMS];
    edges(n->params, &n->in[0]->image, edge);
    for (int d = 0; d < in->ndim; d++) {
        in->start[d] = n->region.start[d] * edge[d];
        in->size[d] = n->region.size[d] * edge[d];
    }
}

typedef struct {
    int64_t edge[FV_MAX_DIMS], rows, width; /* rows of a block, voxels of the input along x */
    char   *row, *sum, *values;
} work;

static fv_dtype compute_type(const bin *p, fv_dtype in) {
    if (p->method.index == SUM) return FV_FLOAT64;
    return p->method.index == MODE ? in : fv__separable_type(in);
}

static size_t lay_out(const fv_need *n, work *w, void *memory) {
    const bin *p = n->params;
    fv_scratch pieces = { memory };
    int        x = n->region.ndim - 1;
    edges(p, &n->in[0]->image, w->edge);
    w->width = n->region.size[x] * w->edge[x];
    w->rows = block_voxels(w->edge, x);
    int64_t all = p->method.index >= MEDIAN ? w->rows : 1;
    w->row = fv__scratch_take(&pieces, w->width * 8);
    w->sum = fv__scratch_take(&pieces, w->width * all * 8);
    w->values = fv__scratch_take(&pieces, p->method.index >= MEDIAN ? w->rows * w->edge[x] * 8 : 8);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    work w;
    return lay_out(n, &w, NULL);
}

/* Sums of `edge` neighbours times scale. The order of every sum is that of the voxels. */
#define GATHER(NAME, REAL)                                                                                                       \
    static void NAME(REAL *restrict to, const REAL *restrict from, int64_t n, int64_t edge, REAL count) {                        \
        if (edge == 1)                                                                                                           \
            for (int64_t i = 0; i < n; i++) to[i] = from[i] / count;                                                             \
        else if (edge == 2)                                                                                                      \
            for (int64_t i = 0; i < n; i++) to[i] = (from[2 * i] + from[2 * i + 1]) / count;                                     \
        else                                                                                                                     \
            for (int64_t i = 0; i < n; i++) {                                                                                    \
                REAL sum = from[i * edge];                                                                                       \
                for (int64_t k = 1; k < edge; k++) sum += from[i * edge + k];                                                    \
                to[i] = sum / count;                                                                                             \
            }                                                                                                                    \
    }
GATHER(gather_narrow, float)
GATHER(gather_wide, double)

static void add_narrow(float *restrict sum, const float *restrict row, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += row[i];
}
static void add_wide(double *restrict sum, const double *restrict row, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += row[i];
}

/* Row number k of the block of rows that belongs to a row of the result. */
static const void *row_of(const fv_block *in, const work *w, const int64_t *position, int64_t k) {
    int64_t at[FV_MAX_DIMS];
    int     x = in->region.ndim - 1;
    at[x] = position[x] * w->edge[x];
    for (int d = x - 1; d >= 0; k /= w->edge[d--]) at[d] = position[d] * w->edge[d] + k % w->edge[d];
    return fv__block_at(in, at);
}

/* Without a copy where the type is the computing one already. */
static const void *as_type(work *w, const void *from, fv_dtype dtype, fv_dtype compute) {
    if (dtype == compute) return from;
    fv__kernels_current()->convert(w->row, compute, from, dtype, w->width);
    return w->row;
}

/* ---------------------------------------------------------------- means of short integers
 * Their sums are whole numbers that fit into twice as many bits and that float32 tells exactly, so the bits are those of floats.
 */

/* Sums over the rows of a block, of each voxel or, where edge is 2, of each two of a row, which PAIR holds. */
#define SUM_ROWS(NAME, TYPE, PAIR, SHIFT)                                                                                        \
    static void NAME(PAIR *restrict sum, const void *from, int64_t n, bool pairs, bool first) {                                  \
        typedef PAIR __attribute__((aligned(1), may_alias)) both;                                                                \
        const TYPE *restrict one = from;                                                                                         \
        const both *restrict two = from;                                                                                         \
        if (pairs && first)                                                                                                      \
            for (int64_t i = 0; i < n; i++) sum[i] = (PAIR)((two[i] & (((PAIR)1 << SHIFT) - 1)) + (two[i] >> SHIFT));            \
        else if (pairs)                                                                                                          \
            for (int64_t i = 0; i < n; i++) sum[i] += (PAIR)((two[i] & (((PAIR)1 << SHIFT) - 1)) + (two[i] >> SHIFT));           \
        else if (first)                                                                                                          \
            for (int64_t i = 0; i < n; i++) sum[i] = one[i];                                                                     \
        else                                                                                                                     \
            for (int64_t i = 0; i < n; i++) sum[i] += one[i];                                                                    \
    }
SUM_ROWS(sum_u8, uint8_t, uint16_t, 8)
SUM_ROWS(sum_u16, uint16_t, uint32_t, 16)

#define SHARE(NAME, PAIR)                                                                                                        \
    static void NAME(float *restrict to, const PAIR *restrict sum, int64_t n, int64_t edge, int64_t count) {                     \
        float all = (float)count, part = 1 / all;                                                                                \
        if (edge == 1 && (count & (count - 1)) == 0)                                                                             \
            for (int64_t i = 0; i < n; i++) to[i] = (float)(int32_t)sum[i] * part;                                               \
        else if (edge == 1)                                                                                                      \
            for (int64_t i = 0; i < n; i++) to[i] = (float)(int32_t)sum[i] / all;                                                \
        else                                                                                                                     \
            for (int64_t i = 0; i < n; i++) {                                                                                    \
                int32_t total = 0;                                                                                               \
                for (int64_t k = 0; k < edge; k++) total += (int32_t)sum[i * edge + k];                                          \
                to[i] = (float)total / all;                                                                                      \
            }                                                                                                                    \
    }
SHARE(share_u8, uint16_t)
SHARE(share_u16, uint32_t)

/* Squares of two by two at once, which are asked for most. */
#define SQUARES(NAME, PAIR, SHIFT)                                                                                               \
    static void NAME(float *restrict to, const void *upper, const void *lower, int64_t n) {                                      \
        typedef PAIR __attribute__((aligned(1), may_alias)) both;                                                                \
        const both *restrict a = upper, *restrict b = lower;                                                                     \
        const PAIR low = (PAIR)(((PAIR)1 << SHIFT) - 1);                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            PAIR sum = (PAIR)((PAIR)((a[i] & low) + (PAIR)(a[i] >> SHIFT)) + (PAIR)((b[i] & low) + (PAIR)(b[i] >> SHIFT)));      \
            to[i] = (float)(int32_t)sum * 0.25f;                                                                                 \
        }                                                                                                                        \
    }
SQUARES(squares_u8, uint16_t, 8)
SQUARES(squares_u16, uint32_t, 16)

/* Blocks of 256 voxels at most: their sums are below 2^16 and 2^24. */
static bool is_short(const work *w, const bin *p, const fv_block *in) {
    return p->method.index == MEAN && (in->dtype == FV_UINT8 || in->dtype == FV_UINT16) &&
           w->rows * w->edge[in->region.ndim - 1] <= 256 && in->stride[in->region.ndim - 1] == 1;
}

static void mean_row(work *w, const fv_block *in, const int64_t *position, float *to, int64_t n) {
    int64_t edge = w->edge[in->region.ndim - 1], count = w->rows * edge;
    bool    pairs = edge == 2;
    if (pairs && w->rows == 2) {
        const void *upper = row_of(in, w, position, 0), *lower = row_of(in, w, position, 1);
        (in->dtype == FV_UINT8 ? squares_u8 : squares_u16)(to, upper, lower, n);
        return;
    }
    for (int64_t k = 0; k < w->rows; k++) {
        const void *row = row_of(in, w, position, k);
        if (in->dtype == FV_UINT8)
            sum_u8((uint16_t *)(void *)w->sum, row, pairs ? n : w->width, pairs, k == 0);
        else
            sum_u16((uint32_t *)(void *)w->sum, row, pairs ? n : w->width, pairs, k == 0);
    }
    if (in->dtype == FV_UINT8)
        share_u8(to, (const uint16_t *)(void *)w->sum, n, pairs ? 1 : edge, count);
    else
        share_u16(to, (const uint32_t *)(void *)w->sum, n, pairs ? 1 : edge, count);
}

static void reduce_row(work *w, const bin *p, const fv_block *in, const int64_t *position, fv_dtype compute, void *to,
                       int64_t n) {
    int64_t     edge = w->edge[in->region.ndim - 1];
    double      count = p->method.index == MEAN ? (double)(w->rows * edge) : 1;
    const void *total = as_type(w, row_of(in, w, position, 0), in->dtype, compute);
    if (w->rows > 1) {
        memcpy(w->sum, total, (size_t)w->width * fv_dtype_size(compute));
        total = w->sum;
    }
    for (int64_t k = 1; k < w->rows; k++) {
        const void *row = as_type(w, row_of(in, w, position, k), in->dtype, compute);
        if (compute == FV_FLOAT32)
            add_narrow((float *)w->sum, row, w->width);
        else
            add_wide((double *)w->sum, row, w->width);
    }
    if (compute == FV_FLOAT32)
        gather_narrow(to, total, n, edge, (float)count);
    else
        gather_wide(to, total, n, edge, count);
}

/* ---------------------------------------------------------------- median and mode */

/* Nan comes last, and is the median of a block that has one, as in numpy. */
#define ORDER(NAME, TYPE)                                                                                                        \
    static int NAME(const void *a_, const void *b_) {                                                                            \
        TYPE a = *(const TYPE *)a_, b = *(const TYPE *)b_;                                                                       \
        if (a != a || b != b) return (a != a) - (b != b);                                                                        \
        return (a > b) - (a < b);                                                                                                \
    }
ORDER(order_float, float)
ORDER(order_double, double)
ORDER(order_u8, uint8_t)
ORDER(order_i8, int8_t)
ORDER(order_u16, uint16_t)
ORDER(order_i16, int16_t)
ORDER(order_u32, uint32_t)
ORDER(order_i32, int32_t)
ORDER(order_u64, uint64_t)
ORDER(order_i64, int64_t)

typedef int      ordering(const void *, const void *);
static ordering *order_of(fv_dtype dtype) {
    static ordering *const all[FV_DTYPES] = {
        [FV_BOOL] = order_u8,   [FV_UINT8] = order_u8,      [FV_INT8] = order_i8,       [FV_UINT16] = order_u16,
        [FV_INT16] = order_i16, [FV_UINT32] = order_u32,    [FV_INT32] = order_i32,     [FV_UINT64] = order_u64,
        [FV_INT64] = order_i64, [FV_FLOAT32] = order_float, [FV_FLOAT64] = order_double
    };
    return all[dtype];
}

#define MIDDLE(NAME, REAL)                                                                                                       \
    static void NAME(const void *sorted, int64_t n, void *to) {                                                                  \
        const REAL *v = sorted;                                                                                                  \
        REAL        middle = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;                                                   \
        *(REAL *)to = v[n - 1] != v[n - 1] ? v[n - 1] : middle;                                                                  \
    }
MIDDLE(middle_narrow, float)
MIDDLE(middle_wide, double)

/* The value that is there most often; the first of several. */
static void commonest(const char *sorted, int64_t n, size_t size, ordering *order, void *to) {
    int64_t best = 0, found = 0;
    for (int64_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && !order(sorted + (size_t)i * size, sorted + (size_t)k * size); k++) {
        }
        if (k - i > best) {
            best = k - i;
            found = i;
        }
    }
    memcpy(to, sorted + (size_t)found * size, size);
}

static void sort_row(work *w, const bin *p, const fv_block *in, const int64_t *position, fv_dtype compute, char *to, int64_t n) {
    int64_t   edge = w->edge[in->region.ndim - 1], all = w->rows * edge;
    size_t    size = fv_dtype_size(compute);
    ordering *order = order_of(compute);
    for (int64_t k = 0; k < w->rows; k++)
        fv__kernels_current()->convert(w->sum + (size_t)(k * w->width) * size, compute, row_of(in, w, position, k), in->dtype,
                                       w->width);
    for (int64_t i = 0; i < n; i++, to += size) {
        for (int64_t k = 0; k < w->rows; k++)
            memcpy(w->values + (size_t)(k * edge) * size, w->sum + (size_t)(k * w->width + i * edge) * size, (size_t)edge * size);
        qsort(w->values, (size_t)all, size, order);
        if (p->method.index == MODE)
            commonest(w->values, all, size, order, to);
        else if (compute == FV_FLOAT32)
            middle_narrow(w->values, all, to);
        else
            middle_wide(w->values, all, to);
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const bin *p = r->need.params;
    work       w;
    fv_rows    rows;
    fv_dtype   compute = compute_type(p, r->in[0]->dtype);
    int64_t    n = r->out->region.size[r->out->region.ndim - 1];
    lay_out(&r->need, &w, r->scratch);
    for (fv__rows_begin(&rows, &r->out->region); fv__rows_next(&rows);) {
        void *to = fv__block_at(r->out, rows.position);
        if (p->method.index >= MEDIAN)
            sort_row(&w, p, r->in[0], rows.position, compute, to, n);
        else if (is_short(&w, p, r->in[0]))
            mean_row(&w, r->in[0], rows.position, to, n);
        else
            reduce_row(&w, p, r->in[0], rows.position, compute, to, n);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    const bin *p = n->params;
    int64_t    edge[FV_MAX_DIMS];
    edges(p, &n->in[0]->image, edge);
    return (double)block_voxels(edge, n->region.ndim) * (p->method.index >= MEDIAN ? 15 : 0.3);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(bin) = {
    .name = "bin",
    .family = "geometry",
    .brief = "make blocks of voxels one voxel",
    .also = "block_reduce, downscale_local_mean, binning, BinShrink, pool, rebin, mean pooling",
    .doc = "Blocks begin at the first voxel; what is left over at the end of an axis, and fills no block, is left out. Spacing "
           "and origin "
           "follow: a voxel of the result lies in the middle of its block. The mean and the median are float32, or float64 for "
           "float64 "
           "and 32 or 64-bit integers; the sum is float64; mode keeps the type, which suits labels. Nan in a block gives nan.",
    .citation = "skimage.measure.block_reduce",
    .example = "phantom(\"cells\", [400, 400]) |> bin(4) |> write(\"binned.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(bin),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "resize zoom",
};
