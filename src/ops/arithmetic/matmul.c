/* matmul: the matrix product of two images. */
#include "kernels/separable.h"
#include "kernels/vectors.h"
#include "op/kernels.h"
#include "op/place.h"
#include "op/scratch.h"

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "image of at least two axes; its last two are the matrix" },
    { "b", FV_KIND_IMAGE, .doc = "matrix, or image with the same axes before the last two" },
    FV_INPUT_END,
};

enum { ROWS = 4, PANEL = 64 }; /* rows of a and columns of b that are worked on together */

static fv_dtype result_type(const fv_type *a, const fv_type *b) {
    fv_dtype x = fv__separable_type(a->image.dtype), y = fv__separable_type(b->image.dtype);
    return x == FV_FLOAT64 || y == FV_FLOAT64 ? FV_FLOAT64 : FV_FLOAT32;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *a = &i->in[0]->image, *b = &i->in[1]->image;
    int                  last = a->ndim - 1;
    if (fv_dtype_is_complex(a->dtype) || fv_dtype_is_complex(b->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "matmul: complex images are not possible; both must be real");
    if (a->ndim < 2 || b->ndim < 2 || (b->ndim != 2 && b->ndim != a->ndim))
        return fv_fail(error, FV_ERROR_USAGE, "a has %d axes and b %d; both need at least two, and b two or as many as a",
                       a->ndim, b->ndim);
    if (a->shape[last] != b->shape[b->ndim - 2])
        return fv_fail(error, FV_ERROR_USAGE, "a has %lld columns and b %lld rows; they must agree", (long long)a->shape[last],
                       (long long)b->shape[b->ndim - 2]);
    for (int d = 0; d < last - 1 && b->ndim > 2; d++)
        if (a->shape[d] != b->shape[d])
            return fv_fail(error, FV_ERROR_USAGE, "axis %d has %lld voxels in a and %lld in b; they must agree", d,
                           (long long)a->shape[d], (long long)b->shape[d]);
    i->out->image.dtype = result_type(i->in[0], i->in[1]);
    i->out->image.shape[last] = b->shape[b->ndim - 1];
    i->out->image.spacing[last] = b->spacing[b->ndim - 1];
    i->out->image.origin[last] = b->origin[b->ndim - 1];
    memcpy(i->out->image.unit[last], b->unit[b->ndim - 1], sizeof b->unit[0]);
    fv__place_forget_world(&i->out->image);
    return FV_OK;
}

/* Whole rows of a, whole columns of b. */
static void need(const fv_need *n, fv_region *in) {
    int last = n->region.ndim - 1, b_last = n->in[1]->image.ndim - 1;
    in[0] = n->region;
    in[0].start[last] = 0;
    in[0].size[last] = n->in[0]->image.shape[last];
    in[1] = fv__region_whole(&n->in[1]->image);
    for (int d = 0; d < b_last - 1; d++) in[1].start[d] = n->region.start[d], in[1].size[d] = n->region.size[d];
    in[1].start[b_last] = n->region.start[last];
    in[1].size[b_last] = n->region.size[last];
}

/* A panel of b and some rows of a in the type that is computed in, and the results of these. */
typedef struct {
    char *panel, *rows, *sums;
} pieces_of;

static size_t lay_out(const fv_need *n, void *memory, pieces_of *p) {
    int64_t    inner = n->in[0]->image.shape[n->region.ndim - 1], real = (int64_t)fv_dtype_size(n->out->image.dtype);
    fv_scratch pieces = { memory, 0 };
    p->panel = fv__scratch_take(&pieces, inner * PANEL * real);
    p->rows = fv__scratch_take(&pieces, inner * ROWS * real);
    p->sums = fv__scratch_take(&pieces, ROWS * PANEL * real);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    pieces_of p;
    return lay_out(n, NULL, &p);
}

/* ROWS rows of a times a panel: each product is fused into its sum, in the order of the columns of a. */
#define MULTIPLY(NAME, REAL, VECTOR, LANES)                                                                                      \
    static void NAME(const REAL *rows, const REAL *panel, int64_t inner, REAL *sums) {                                           \
        for (int64_t c = 0; c < PANEL; c += 2 * LANES) {                                                                         \
            VECTOR sum[ROWS][2] = { { { 0 } } };                                                                                 \
            for (int64_t k = 0; k < inner; k++) {                                                                                \
                VECTOR x = VECTOR##_load(panel + k * PANEL + c), y = VECTOR##_load(panel + k * PANEL + c + LANES);               \
                _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++) {                                                         \
                    VECTOR a = VECTOR##_splat(rows[r * inner + k]);                                                              \
                    sum[r][0] = VECTOR##_fma(a, x, sum[r][0]);                                                                   \
                    sum[r][1] = VECTOR##_fma(a, y, sum[r][1]);                                                                   \
                }                                                                                                                \
            }                                                                                                                    \
            _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++) {                                                             \
                VECTOR##_store(sums + r * PANEL + c, sum[r][0]);                                                                 \
                VECTOR##_store(sums + r * PANEL + c + LANES, sum[r][1]);                                                         \
            }                                                                                                                    \
        }                                                                                                                        \
    }
MULTIPLY(multiply_f32, float, fv_f32v, FV_F32_LANES)
MULTIPLY(multiply_f64, double, fv_f64v, FV_F64_LANES)

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* `count` elements of the row at `position`, in the type that is computed in. */
static void load(const fv_block *block, const int64_t *position, int64_t count, fv_dtype type, char *to) {
    FV_PASTE(fv_kernels_, FV_ISA).convert(to, type, fv__block_at(block, position), block->dtype, count);
}

/* The matrix of the result whose first voxel is at `corner`. */
static void matrix(const fv_run *r, const int64_t *corner, const pieces_of *p) {
    int      last = r->out->region.ndim - 1, b_last = r->in[1]->region.ndim - 1;
    fv_dtype type = r->out->dtype;
    int64_t  real = (int64_t)fv_dtype_size(type), inner = r->in[0]->region.size[last];
    int64_t  nrows = r->out->region.size[last - 1], ncolumns = r->out->region.size[last];
    int64_t  a[FV_MAX_DIMS], b[FV_MAX_DIMS] = { 0 }, c[FV_MAX_DIMS];
    memcpy(a, corner, sizeof a);
    memcpy(c, corner, sizeof c);
    if (b_last == last) memcpy(b, corner, sizeof b);
    for (int64_t column = 0; column < ncolumns; column += PANEL) {
        int64_t width = FV_MIN(PANEL, ncolumns - column);
        b[b_last] = c[last] = corner[last] + column;
        for (int64_t k = 0; k < inner; k++) {
            b[b_last - 1] = k;
            load(r->in[1], b, width, type, p->panel + k * PANEL * real);
            memset(p->panel + (k * PANEL + width) * real, 0, (size_t)((PANEL - width) * real));
        }
        for (int64_t row = 0; row < nrows; row += ROWS) {
            int64_t height = FV_MIN(ROWS, nrows - row);
            a[last] = 0;
            for (int64_t i = 0; i < ROWS; i++) {
                a[last - 1] = corner[last - 1] + row + FV_MIN(i, height - 1);
                load(r->in[0], a, inner, type, p->rows + i * inner * real);
            }
            if (type == FV_FLOAT32)
                multiply_f32((float *)p->rows, (float *)p->panel, inner, (float *)p->sums);
            else
                multiply_f64((double *)p->rows, (double *)p->panel, inner, (double *)p->sums);
            for (int64_t i = 0; i < height; i++) {
                c[last - 1] = corner[last - 1] + row + i;
                memcpy(fv__block_at(r->out, c), p->sums + i * PANEL * real, (size_t)(width * real));
            }
        }
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    int       last = r->out->region.ndim - 1;
    pieces_of p;
    fv_region corners = r->out->region;
    fv_rows   walk;
    if (fv__region_empty(&r->out->region)) return FV_OK;
    lay_out(&r->need, r->scratch, &p);
    corners.size[last] = corners.size[last - 1] = 1;
    for (fv__rows_begin(&walk, &corners); fv__rows_next(&walk);) matrix(r, walk.position, &p);
    return FV_OK;
}

static double cost(const fv_need *n) {
    double inner = (double)n->in[0]->image.shape[n->region.ndim - 1];
    return 0.5 + inner * (n->out->image.dtype == FV_FLOAT32 ? 0.03 : 0.06);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(matmul) = {
    .name = "matmul",
    .family = "arithmetic",
    .brief = "matrix product of two images",
    .also = "dot, np.matmul",
    .doc = "As numpy.matmul over the last two axes. The axes before these are independent, and one matrix b may serve all of "
           "them. Sums run in the order of a's columns, each product fused into the sum. The spacing of the last axis is "
           "that of b.\n"
           "The result is float32, or float64 if an image is float64 or has 32 or 64-bit integers.",
    .citation = "numpy.matmul",
    .inputs = inputs,
    .result = FV_KIND_IMAGE,
    .version = 1,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(matmul(a, a) / 200, \"product.tif\")",
    .see = "multiply project",
};
