/* fit_polynomial: the polynomial in the coordinates that fits an image best.
 *
 * Products of Legendre polynomials in coordinates from -1 to 1, up to a total degree. The sums of value times product are exact
 * (each product is rounded, always alike), so that they do not depend on the chunks; the equations are solved once.
 */
#include "base/exact_sum.h"
#include "kernels/separable.h"
#include "op/kernels.h"
#include "op/reduce.h"
#include "op/scratch.h"
#include "op/window.h"
#include <stdlib.h>

typedef struct {
    int64_t order;
} fit_polynomial;

enum { MOST_ORDER = 6, MOST_TERMS = 84 /* of degree 6 in three coordinates */ };

static const fv_param params[] = {
    FV_PARAM(fit_polynomial, order, .def = "2", .min = 0, .max = MOST_ORDER,
             .doc = "total degree: 0 a constant, 1 a plane, 2 a bowl"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to fit" }, FV_INPUT_END };

/* Terms by their degrees along the spatial axes. */
typedef struct {
    int naxes, axis[3], count;
    int degree[MOST_TERMS][3];
} basis;

static basis basis_of(const fv_image_type *image, int64_t order) {
    basis b = { 0 };
    int   axis[FV_MAX_DIMS];
    b.naxes = fv_image_type_spatial(image, axis);
    for (int k = 0; k < b.naxes && k < 3; k++) b.axis[k] = axis[k];
    for (int i = 0; i <= order; i++)
        for (int j = 0; i + j <= order; j++)
            for (int k = 0; i + j + k <= order; k++) {
                int degree[3] = { i, j, k }; /* those that a missing axis would have are left out */
                if ((b.naxes < 2 && j) || (b.naxes < 3 && k)) continue;
                memcpy(b.degree[b.count++], degree, sizeof degree);
            }
    return b;
}

/* All Legendre polynomials up to the order at a voxel of an axis. */
static void legendre(int64_t at, int64_t n, int64_t order, double *value) {
    double x = n > 1 ? 2 * (double)at / (double)(n - 1) - 1 : 0;
    value[0] = 1;
    if (order) value[1] = x;
    for (int64_t k = 2; k <= order; k++)
        value[k] = ((double)(2 * k - 1) * x * value[k - 1] - (double)(k - 1) * value[k - 2]) / (double)k;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    for (int d = 0, k = 0; d < i->in[0]->image.ndim; d++)
        if (k < n && axis[k] == d)
            k++;
        else if (i->in[0]->image.shape[d] > 1 || d > axis[n - 1]) /* rows go along the last axis */
            return fv_fail(error, FV_ERROR_USAGE, "the image has an axis %s: fit one place of it at a time (split takes it)",
                           i->in[0]->image.axis[d]);
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

/* ---------------------------------------------------------------- first pass: sums */

typedef struct {
    double *values, *products, *x; /* a row, the same times a term, and polynomials of all voxels of a row, by degree */
} memory;

static size_t lay_out(const fv_need *n, void *scratch, memory *m) {
    fv_scratch pieces = { scratch, 0 };
    basis      b = basis_of(&n->in[0]->image, ((const fit_polynomial *)n->params)->order);
    int64_t    row = n->region.size[b.axis[b.naxes - 1]];
    m->values = fv__scratch_take(&pieces, row * 8);
    m->products = fv__scratch_take(&pieces, row * 8);
    m->x = fv__scratch_take(&pieces, row * 8 * (MOST_ORDER + 1));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    memory m;
    return lay_out(n, NULL, &m);
}

static size_t bound(const fv_need *n) {
    basis b = basis_of(&n->in[0]->image, ((const fit_polynomial *)n->params)->order);
    return (size_t)b.count * sizeof(fv_sum_float64);
}

static void fill_x(const basis *b, const fv_need *n, int64_t order, double *x) {
    int     d = b->axis[b->naxes - 1];
    int64_t row = n->region.size[d];
    for (int64_t i = 0; i < row; i++) {
        double value[MOST_ORDER + 1];
        legendre(n->region.start[d] + i, n->in[0]->image.shape[d], order, value);
        for (int64_t k = 0; k <= order; k++) x[k * row + i] = value[k];
    }
}

/* The part of each term that is the same along a row. */
static void row_factors(const basis *b, const fv_image_type *image, const int64_t *position, int64_t order, double *factor) {
    double value[2][MOST_ORDER + 1];
    for (int k = 0; k + 1 < b->naxes; k++) legendre(position[b->axis[k]], image->shape[b->axis[k]], order, value[k]);
    for (int t = 0; t < b->count; t++) {
        factor[t] = 1;
        for (int k = 0; k + 1 < b->naxes; k++) factor[t] *= value[k][b->degree[t][k]];
    }
}

/* Rows along the last axis, which is one of space. */
static fv_status run_sums(fv_run *r, fv_error *error) {
    (void)error;
    int64_t              order = ((const fit_polynomial *)r->need.params)->order;
    const fv_image_type *image = &r->need.in[0]->image;
    basis                b = basis_of(image, order);
    int                  d = b.axis[b.naxes - 1];
    fv_region            lines = r->in[0]->region;
    int64_t              n = lines.size[d];
    fv_sum_float64      *sums = fv__bytes_append(r->partial, NULL, (size_t)b.count * sizeof *sums);
    double               factor[MOST_TERMS];
    memory               m;
    fv_rows              rows;
    memset(sums, 0, (size_t)b.count * sizeof *sums);
    for (int t = 0; t < b.count; t++) fv__sum_init(&sums[t].sum, FV_SUM_FLOAT64);
    lay_out(&r->need, r->scratch, &m);
    fill_x(&b, &r->need, order, m.x);
    lines.size[d] = 1;
    for (fv__rows_begin(&rows, &lines); fv__rows_next(&rows);) {
        fv__kernels_current()->convert(m.values, FV_FLOAT64, fv__block_at(r->in[0], rows.position), r->in[0]->dtype, n);
        row_factors(&b, image, rows.position, order, factor);
        for (int t = 0; t < b.count; t++) {
            const double *x = m.x + b.degree[t][b.naxes - 1] * n;
            for (int64_t i = 0; i < n; i++) m.products[i] = m.values[i] * (factor[t] * x[i]);
            fv__sum_add_doubles(&sums[t].sum, NULL, m.products, n);
        }
    }
    return FV_OK;
}

static void combine(const void *params_, fv_bytes *into, const void *partial, size_t size) {
    (void)params_;
    fv_sum_float64       *a = (fv_sum_float64 *)into->data;
    const fv_sum_float64 *b = partial;
    for (size_t t = 0; t < size / sizeof *b; t++) fv__sum_merge(&a[t].sum, &b[t].sum);
}

/* Sums of products of two terms over all voxels are products of sums along the axes. */
static void normal_matrix(const basis *b, const fv_image_type *image, int64_t order, double *matrix) {
    double sums[3][MOST_ORDER + 1][MOST_ORDER + 1] = { { { 0 } } };
    for (int k = 0; k < b->naxes; k++)
        for (int64_t at = 0; at < image->shape[b->axis[k]]; at++) {
            double value[MOST_ORDER + 1];
            legendre(at, image->shape[b->axis[k]], order, value);
            for (int i = 0; i <= order; i++)
                for (int j = 0; j <= order; j++) sums[k][i][j] += value[i] * value[j];
        }
    for (int s = 0; s < b->count; s++)
        for (int t = 0; t < b->count; t++) {
            double product = 1;
            for (int k = 0; k < b->naxes; k++) product *= sums[k][b->degree[s][k]][b->degree[t][k]];
            matrix[s * b->count + t] = product;
        }
}

/* Cholesky's method. A term that follows from others, as x of an image of one column, is left out. */
static void solve(double *a, double *right, int n) {
    for (int j = 0; j < n; j++) {
        double pivot = a[j * n + j], own = pivot;
        for (int k = 0; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
        bool free = pivot > 1e-10 * own;
        a[j * n + j] = free ? sqrt(pivot) : 0;
        for (int i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = free ? sum / a[j * n + j] : 0;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) right[i] -= a[i * n + k] * right[k];
        right[i] = a[i * n + i] > 0 ? right[i] / a[i * n + i] : 0;
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) right[i] -= a[k * n + i] * right[k];
        right[i] = a[i * n + i] > 0 ? right[i] / a[i * n + i] : 0;
    }
}

static fv_status finish(fv_finish *f, fv_error *error) {
    int64_t               order = ((const fit_polynomial *)f->params)->order;
    basis                 b = basis_of(&f->in[0]->image, order);
    const fv_sum_float64 *sums;
    double                right[MOST_TERMS];
    FV_TRY(fv__finish_partial(f, (const void **)&sums, (size_t)b.count * sizeof *sums, error));
    if (!sums) return fv_fail(error, FV_ERROR_INPUT, "the image has no voxels");
    double *matrix = fv__alloc((size_t)(b.count * b.count) * sizeof *matrix);
    for (int t = 0; t < b.count; t++) right[t] = fv__sum_value(&sums[t].sum);
    normal_matrix(&b, &f->in[0]->image, order, matrix);
    solve(matrix, right, b.count);
    free(matrix);
    return f->put(f, 0, right, (size_t)b.count * sizeof *right, error);
}

/* ---------------------------------------------------------------- second pass: the polynomial */

static void need_nothing(const fv_need *n, fv_region *in) {
    (void)n;
    fv__need_nothing(&in[0]);
}

static fv_status run(fv_run *r, fv_error *error) {
    int64_t              order = ((const fit_polynomial *)r->need.params)->order;
    const fv_image_type *image = &r->need.in[0]->image;
    basis                b = basis_of(image, order);
    int                  d = b.axis[b.naxes - 1];
    fv_region            lines = r->out->region;
    int64_t              n = lines.size[d];
    double               factor[MOST_TERMS];
    const double        *coefficient;
    size_t               size;
    memory               m;
    fv_rows              rows;
    FV_TRY(r->results->get(r->results, 0, (const void **)&coefficient, &size, error));
    lay_out(&r->need, r->scratch, &m);
    fill_x(&b, &r->need, order, m.x);
    lines.size[d] = 1;
    for (fv__rows_begin(&rows, &lines); fv__rows_next(&rows);) {
        row_factors(&b, image, rows.position, order, factor);
        for (int64_t i = 0; i < n; i++) m.values[i] = 0;
        for (int t = 0; t < b.count; t++) {
            const double *x = m.x + b.degree[t][b.naxes - 1] * n, weight = coefficient[t] * factor[t];
            for (int64_t i = 0; i < n; i++) m.values[i] += weight * x[i];
        }
        fv__kernels_current()->convert(fv__block_at(r->out, rows.position), r->out->dtype, m.values, FV_FLOAT64, n);
    }
    return FV_OK;
}

static const fv_pass passes[] = {
    { .name = "sums", .scratch = scratch, .run = run_sums, .bound = bound, .combine = combine, .finish = finish },
    { .name = "polynomial", .need = need_nothing, .scratch = scratch, .run = run },
    FV_PASS_END,
};

static double cost(const fv_need *n) { return basis_of(&n->in[0]->image, ((const fit_polynomial *)n->params)->order).count; }

const fv_op FV_OP(fit_polynomial) = {
    .name = "fit_polynomial",
    .family = "intensity",
    .brief = "the smooth surface, a polynomial of the coordinates, that fits an image best",
    .version = 1,
    .also = "polyfit, polyfit2, surface_fit",
    .doc =
        "Least squares over all voxels, with all products of powers of the coordinates up to a total degree. Nan anywhere makes "
        "the whole result nan. The result is float32; it is float64 for images of float64 and of 32 or 64-bit integers.",
    .citation = "numpy.linalg.lstsq",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fit_polynomial),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "phantom(\"cells\", [200, 200]) |> fit_polynomial(2) |> convert(\"uint8\") |> write(\"surface.png\")",
    .see = "background flatfield",
};
