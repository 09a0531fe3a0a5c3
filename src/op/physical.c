/* Physical space and transforms of it; see physical.h. */
#include "op/physical.h"
#include "op/axes.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- matrices */

static void identity(double a[12]) {
    for (int k = 0; k < 12; k++) a[k] = k % 5 == 0;
}

bool fv__matrix_invert(const double a[12], double inverse[12]) {
    double cofactor[9], shift[3] = { a[3], a[7], a[11] }, largest = 0;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
            cofactor[r * 3 + c] = a[r1 * 4 + c1] * a[r2 * 4 + c2] - a[r1 * 4 + c2] * a[r2 * 4 + c1];
            largest = FV_MAX(largest, fabs(a[r * 4 + c]));
        }
    double determinant = a[0] * cofactor[0] + a[1] * cofactor[1] + a[2] * cofactor[2];
    if (!(fabs(determinant) > 1e-12 * largest * largest * largest)) return false;
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) inverse[r * 4 + c] = cofactor[c * 3 + r] / determinant;
        inverse[r * 4 + 3] = -(inverse[r * 4] * shift[0] + inverse[r * 4 + 1] * shift[1] + inverse[r * 4 + 2] * shift[2]);
    }
    return true;
}

void fv__matrix_chain(const double outer[12], const double inner[12], double result[12]) {
    double product[12];
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++) {
            product[r * 4 + c] = c == 3 ? outer[r * 4 + 3] : 0;
            for (int i = 0; i < 3; i++) product[r * 4 + c] += outer[r * 4 + i] * inner[i * 4 + c];
        }
    memcpy(result, product, sizeof product);
}

double fv__settle(double x) { return fabs(x - floor(x + 0.5)) < 1e-9 ? floor(x + 0.5) : x; }

/* ---------------------------------------------------------------- places */

/* Which of x, y, z a spatial axis is by its name. */
static int rank_of(const char *name) { return !strcmp(name, "x") || !strcmp(name, "u") ? 0 : !strcmp(name, "z") ? 2 : 1; }

/* Whether the matrix to the world tells where the voxels lie: of a plane, if it leaves the plane as it is. */
static bool by_matrix(const fv_image_type *type, const fv_physical *p) {
    if (p->n == 3 || !type->has_affine) return type->has_affine;
    return !strcmp(type->axis[p->axis[0]], "x") && !strcmp(type->axis[p->axis[1]], "y") && type->affine[8] == 0 &&
           type->affine[9] == 0;
}

fv_status fv__physical_find(const fv_image_type *type, const char *name, fv_physical *p, fv_error *error) {
    int axis[FV_MAX_DIMS];
    p->n = fv_image_type_spatial(type, axis);
    if (p->n < 2 || p->n > 3)
        return fv_fail(error, FV_ERROR_USAGE, "%s has %d spatial axes; it must have 2 or 3 of z, y and x, or v and u", name,
                       p->n);
    for (int k = 0; k < p->n; k++) {
        int component = 0;
        for (int j = 0; j < p->n; j++) component += rank_of(type->axis[axis[j]]) < rank_of(type->axis[axis[k]]);
        p->axis[component] = axis[k];
    }
    identity(p->space);
    p->placed = by_matrix(type, p);
    for (int c = 0; c < p->n; c++) {
        p->space[c * 5] = type->spacing[p->axis[c]];
        p->space[c * 4 + 3] = type->origin[p->axis[c]];
    }
    for (int k = 0; k < p->n * 4 && p->placed; k++)
        if (k % 4 != 2 || p->n == 3) p->space[k] = k < 8 ? -type->affine[k] : type->affine[k];
    double unused[12];
    if (!fv__matrix_invert(p->space, unused))
        return fv_fail(error, FV_ERROR_USAGE, "the matrix of %s to the world is singular: its voxels lie upon each other", name);
    return FV_OK;
}

void fv__image_place(fv_image_type *type, const double affine[12]) {
    fv_physical place;
    fv__physical_find(type, "", &place, NULL);
    memcpy(type->affine, affine, sizeof type->affine);
    for (int c = 0; c < 3; c++) {
        const double *m = affine + c;
        type->spacing[place.axis[c]] = sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]);
    }
    type->has_affine = true;
}

bool fv__physical_moved(const fv_physical *moving, const double transform[12], double affine[12]) {
    double back[12];
    if (!fv__matrix_invert(transform, back)) return false;
    fv__matrix_chain(back, moving->space, affine);
    for (int k = 0; k < 8 && moving->placed; k++) affine[k] = -affine[k]; /* x and y of ITK's space point the other way */
    return true;
}

fv_status fv__physical_compare(const fv_image_type *a, const char *a_name, const fv_image_type *b, const char *b_name,
                               fv_error *error) {
    fv_physical first, second;
    FV_TRY(fv__physical_find(a, a_name, &first, error));
    FV_TRY(fv__physical_find(b, b_name, &second, error));
    if (first.n != second.n)
        return fv_fail(error, FV_ERROR_USAGE, "%s has %d spatial axes and %s has %d: both must have the same", a_name, first.n,
                       b_name, second.n);
    if (by_matrix(a, &first) != by_matrix(b, &second))
        return fv_fail(
            error, FV_ERROR_USAGE,
            "%s has a matrix to the world and %s has none: their places cannot be compared; set_sform gives a volume one",
            by_matrix(a, &first) ? a_name : b_name, by_matrix(a, &first) ? b_name : a_name);
    for (int c = 0; c < first.n; c++)
        if (strcmp(a->unit[first.axis[c]], b->unit[second.axis[c]]))
            return fv_fail(error, FV_ERROR_USAGE, "the spacing along %s is in \"%s\" in %s and in \"%s\" in %s",
                           a->axis[first.axis[c]], a->unit[first.axis[c]], a_name, b->unit[second.axis[c]], b_name);
    return FV_OK;
}

/* ---------------------------------------------------------------- transforms */

fv_status fv__transform_find(const fv_image_type *type, const char *name, fv_transform *t, fv_error *error) {
    int row = fv__axis_find(type, "row"), column = fv__axis_find(type, "column"), axis[FV_MAX_DIMS];
    *t = (fv_transform){ .row = row, .before = row };
    bool well = row >= 0 && type->dtype == FV_FLOAT64;
    if (well) t->n = (int)type->shape[row];
    well = well && (t->n == 2 || t->n == 3) && column == row + 1 && column == type->ndim - 1 && type->shape[column] == t->n + 1 &&
           !fv_image_type_spatial(type, axis);
    if (fv__axis_find(type, "control") >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "%s is a B-spline transform; a linear one is asked for here", name);
    if (!well)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s is no transform: give what register(...) found, or a file of one, as read(\"t.tfm\")", name);
    return FV_OK;
}

void fv__transform_linear(const fv_image_type *image, int n, fv_image_type *type) {
    int64_t       shape[2] = { n, n + 1 };
    int           axis[FV_MAX_DIMS], spatial = fv_image_type_spatial(image, axis), at = 0;
    fv_image_type result;
    fv_image_type_init(&result, FV_FLOAT64, 2, shape);
    snprintf(result.axis[0], sizeof result.axis[0], "row");
    snprintf(result.axis[1], sizeof result.axis[1], "column");
    for (int d = 0; d < image->ndim; d++) {
        bool inside = false;
        for (int k = 0; k < spatial; k++) inside = inside || axis[k] == d;
        if (inside) continue;
        fv__axis_insert(&result, at, image->axis[d], image->shape[d]);
        result.spacing[at] = image->spacing[d];
        result.origin[at] = image->origin[d];
        memcpy(result.unit[at], image->unit[d], sizeof result.unit[at]);
        at++;
    }
    *type = result;
}

fv_status fv__transform_match(const fv_image_type *type, const fv_transform *t, const fv_image_type *image,
                              const char *image_name, int axis[FV_MAX_DIMS], fv_error *error) {
    for (int d = 0; d < t->before; d++) {
        axis[d] = fv__axis_find(image, type->axis[d]);
        if (axis[d] < 0)
            return fv_fail(error, FV_ERROR_USAGE, "there is a transform for each of %lld places along %s, an axis that %s lacks",
                           (long long)type->shape[d], type->axis[d], image_name);
        if (image->shape[axis[d]] != type->shape[d])
            return fv_fail(error, FV_ERROR_USAGE, "there are %lld transforms along %s, and %lld places of %s",
                           (long long)type->shape[d], type->axis[d], (long long)image->shape[axis[d]], image_name);
    }
    return FV_OK;
}

static double *entry(const fv_block *block, const fv_transform *t, const int64_t *before, int row, int column) {
    int64_t at[FV_MAX_DIMS] = { 0 };
    for (int d = 0; d < t->before; d++) at[d] = before[d];
    at[t->row] = row;
    at[t->row + 1] = column;
    for (int d = 0; d < block->region.ndim; d++)
        if (at[d] < block->region.start[d] || at[d] >= block->region.start[d] + block->region.size[d]) return NULL;
    return fv__block_at(block, at);
}

/* A plane's last column is its third; of a volume it is the fourth. */
static int place_of(const fv_transform *t, int row, int column) { return row * 4 + (column == t->n ? 3 : column); }

void fv__transform_load(const fv_block *block, const fv_transform *t, const int64_t *before, double matrix[12]) {
    identity(matrix);
    for (int r = 0; r < t->n; r++)
        for (int c = 0; c <= t->n; c++) matrix[place_of(t, r, c)] = *entry(block, t, before, r, c);
}

void fv__transform_store(const fv_block *block, const fv_transform *t, const int64_t *before, const double matrix[12]) {
    for (int r = 0; r < t->n; r++)
        for (int c = 0; c <= t->n; c++) {
            double *to = entry(block, t, before, r, c);
            if (to) *to = matrix[place_of(t, r, c)];
        }
}
