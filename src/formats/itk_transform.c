/* ITK's transforms; see itk_transform.h. */
#include "formats/itk_transform.h"
#include "base/math.h"
#include "base/take.h"
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- the linear kinds of ITK */

static void identity(double m[12]) {
    for (int k = 0; k < 12; k++) m[k] = k % 5 == 0;
}

/* Turns about x, y or z (0, 1, 2), one after another: m becomes m times the turn. */
static void turn(double m[12], int about, double angle) {
    double by[12], c = fv__cos(angle), s = fv__sin(angle);
    int    a = (about + 1) % 3, b = (about + 2) % 3;
    identity(by);
    by[a * 4 + a] = by[b * 4 + b] = c;
    by[a * 4 + b] = -s;
    by[b * 4 + a] = s;
    fv__matrix_chain(m, by, m);
}

static void versor(double m[12], const double *v) {
    double x = v[0], y = v[1], z = v[2], w = sqrt(FV_MAX(1 - (x * x + y * y + z * z), 0));
    double turned[9] = { 1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
                         2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                         2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y) };
    for (int k = 0; k < 9; k++) m[k / 3 * 4 + k % 3] = turned[k];
}

static void scale(double m[12], int n, double by) {
    for (int k = 0; k < 12; k++)
        if (k % 4 < n && k / 4 < n) m[k] *= by;
}

typedef void build(const fv_itk_entry *e, double m[12]); /* all but the shift */

static void build_none(const fv_itk_entry *e, double m[12]) {
    (void)e;
    (void)m;
}
static void build_affine(const fv_itk_entry *e, double m[12]) {
    for (int k = 0; k < e->n * e->n; k++) m[k / e->n * 4 + k % e->n] = e->parameter[k];
}
static void build_turned_plane(const fv_itk_entry *e, double m[12]) { turn(m, 2, e->parameter[0]); }
static void build_similar_plane(const fv_itk_entry *e, double m[12]) {
    turn(m, 2, e->parameter[1]);
    scale(m, 2, e->parameter[0]);
}
static void build_euler(const fv_itk_entry *e, double m[12]) {
    bool zyx = e->nfixed > 3 && e->fixed[3] != 0;
    turn(m, 2, e->parameter[2]);
    turn(m, zyx ? 1 : 0, e->parameter[zyx ? 1 : 0]);
    turn(m, zyx ? 0 : 1, e->parameter[zyx ? 0 : 1]);
}
static void build_versor(const fv_itk_entry *e, double m[12]) { versor(m, e->parameter); }
static void build_similar(const fv_itk_entry *e, double m[12]) {
    versor(m, e->parameter);
    scale(m, 3, e->parameter[6]);
}

static const struct {
    const char *name;
    int         n, count, shift; /* dimensions (0: any), parameters (of any dimensions: see count_of), where the shift begins */
    build      *build;
} kinds[] = {
    { "AffineTransform", 0, 0, 0, build_affine },
    { "MatrixOffsetTransformBase", 0, 0, 0, build_affine },
    { "IdentityTransform", 0, 0, -1, build_none },
    { "TranslationTransform", 0, 0, 0, build_none },
    { "Euler2DTransform", 2, 3, 1, build_turned_plane },
    { "Rigid2DTransform", 2, 3, 1, build_turned_plane },
    { "Similarity2DTransform", 2, 4, 2, build_similar_plane },
    { "Euler3DTransform", 3, 6, 3, build_euler },
    { "VersorTransform", 3, 3, -1, build_versor },
    { "VersorRigid3DTransform", 3, 6, 3, build_versor },
    { "Similarity3DTransform", 3, 7, 3, build_similar },
};

/* The matrix of an entry, about its centre. */
static fv_status matrix_of(const char *path, const fv_itk_entry *e, double m[12], fv_error *error) {
    for (int i = 0; i < FV_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, e->kind)) continue;
        int count = kinds[i].n                                    ? kinds[i].count
                    : kinds[i].build == build_affine              ? e->n * e->n + e->n
                    : !strcmp(kinds[i].name, "IdentityTransform") ? 0
                                                                  : e->n;
        int shift = kinds[i].build == build_affine ? e->n * e->n : kinds[i].shift;
        if ((kinds[i].n && kinds[i].n != e->n) || (count && e->nparameters != count))
            return fv_fail(error, FV_ERROR_INPUT, "%s: a %s of %d dimensions has %lld parameters there; it takes %d", path,
                           e->kind, e->n, (long long)e->nparameters, count);
        identity(m);
        kinds[i].build(e, m);
        for (int r = 0; r < e->n; r++) {
            double centre = r < e->nfixed ? e->fixed[r] : 0, moved = centre + (shift < 0 || !count ? 0 : e->parameter[shift + r]);
            for (int c = 0; c < e->n && c < e->nfixed; c++) moved -= m[r * 4 + c] * e->fixed[c];
            m[r * 4 + 3] = moved;
        }
        for (int k = 0; k < 12; k++)
            if (!isfinite(m[k])) return fv_fail(error, FV_ERROR_INPUT, "%s: a number of the %s is not finite", path, e->kind);
        return FV_OK;
    }
    fv_bytes names = { 0 };
    for (int i = 0; i < FV_COUNT(kinds); i++) fv__bytes_printf(&names, "%s, ", kinds[i].name);
    fv__bytes_printf(&names, "BSplineTransform");
    fv_status status = fv_fail(error, FV_ERROR_INPUT, "%s holds a %s, which cannot be read; these can: %s", path, e->kind,
                               (const char *)names.data);
    fv__bytes_release(&names);
    return status;
}

/* ---------------------------------------------------------------- B-splines */

/* Fixed parameters: counts, origin, spacing, and the direction row by row. */
static fv_status grid_of(const char *path, const fv_itk_entry *e, fv_control_grid *grid, fv_error *error) {
    int           n = e->n;
    int64_t       size[3] = { 1, 1, 1 }, points = n;
    double        space[12];
    fv_image_type type;
    if (e->nfixed != n * (3 + n))
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s: a BSplineTransform of %d dimensions has %d fixed parameters there; it takes %d", path, n, e->nfixed,
                       n * (3 + n));
    for (int k = 0; k < e->nfixed; k++)
        if (!isfinite(e->fixed[k])) return fv_fail(error, FV_ERROR_INPUT, "%s: a fixed parameter is not finite", path);
    identity(space);
    for (int c = 0; c < n; c++) {
        if (!(e->fixed[c] >= FV_CONTROL_LEAST && e->fixed[c] <= FV_CONTROL_MOST))
            return fv_fail(error, FV_ERROR_INPUT, "%s: %g control points along an axis; there must be %d to %d", path,
                           e->fixed[c], FV_CONTROL_LEAST, FV_CONTROL_MOST);
        size[c] = (int64_t)e->fixed[c];
        points *= size[c];
        for (int r = 0; r < n; r++) space[r * 4 + c] = e->fixed[3 * n + r * n + c] * e->fixed[2 * n + c];
        space[c * 4 + 3] = e->fixed[n + c];
    }
    if (e->nparameters != points)
        return fv_fail(error, FV_ERROR_INPUT, "%s: %lld parameters of a BSplineTransform, and its grid takes %lld", path,
                       (long long)e->nparameters, (long long)points);
    FV_TRY(fv__control_type(n, size, space, path, &type, error));
    return fv__control_find(&type, path, grid, error);
}

/* The linear transforms that came before are applied after the B-splines: they are B-splines of the same grid. */
static fv_status add_bspline(const char *path, const fv_itk_entry *e, fv_itk_transform *t, fv_error *error) {
    FV_TRY(grid_of(path, e, &t->grid, error));
    int64_t points = fv__control_points(&t->grid), i = 0;
    FV_TRY(FV_TAKE(t->control, (size_t)e->nparameters * sizeof *t->control, error));
    for (int64_t z = 0; z < t->grid.size[2]; z++)
        for (int64_t y = 0; y < t->grid.size[1]; y++)
            for (int64_t x = 0; x < t->grid.size[0]; x++, i++) {
                double at[3], to[3] = { 0 };
                for (int r = 0; r < 3; r++) {
                    const double *m = t->grid.space + r * 4;
                    at[r] = ((m[0] * (double)x + m[1] * (double)y) + m[2] * (double)z) + m[3];
                    if (r < e->n) to[r] = e->parameter[r * points + i];
                    if (!isfinite(to[r])) return fv_fail(error, FV_ERROR_INPUT, "%s: a parameter is not finite", path);
                }
                for (int r = 0; r < e->n; r++) {
                    const double *m = t->matrix + r * 4;
                    double        moved = m[3]; /* by the linear ones, beyond the place itself */
                    for (int c = 0; c < 3; c++) moved += (m[c] - (r == c)) * at[c] + m[c] * to[c];
                    t->control[r * points + i] = moved;
                }
            }
    t->bends = true;
    return FV_OK;
}

/* ---------------------------------------------------------------- entries */

void fv__itk_init(fv_itk_transform *t) {
    *t = (fv_itk_transform){ .n = 0 };
    identity(t->matrix);
}

void fv__itk_release(fv_itk_transform *t) { free(t->control); }

fv_status fv__itk_begin(const char *path, const char *kind, fv_itk_entry *e, fv_error *error) {
    int length = (int)strcspn(kind, "_"), in = 0, out = 0;
    *e = (fv_itk_entry){ .n = 0 };
    snprintf(e->kind, sizeof e->kind, "%.*s", FV_MIN(length, 63), kind);
    if (sscanf(kind + length, "_%*[a-z]_%d_%d", &in, &out) != 2 || in != out || (in != 2 && in != 3))
        return fv_fail(error, FV_ERROR_INPUT, "%s: \"Transform: %.60s\" is no transform of 2 or 3 dimensions", path, kind);
    e->n = in;
    return FV_OK;
}

void fv__itk_end(fv_itk_entry *e) {
    free(e->parameter);
    e->parameter = NULL;
}

fv_status fv__itk_add(const char *path, const fv_itk_entry *e, fv_itk_transform *t, fv_error *error) {
    double m[12];
    bool   bends = !strcmp(e->kind, "BSplineTransform");
    if (!e->n || !strcmp(e->kind, "CompositeTransform")) return FV_OK;
    if (t->n && t->n != e->n)
        return fv_fail(error, FV_ERROR_INPUT, "%s holds transforms of %d and of %d dimensions", path, t->n, e->n);
    if (t->bends)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s holds a %s that is applied before a BSplineTransform: write them to files of their own, and put them "
                       "together with concatenate_transforms(first, second, onto = fixed)",
                       path, e->kind);
    t->n = e->n;
    if (bends) return add_bspline(path, e, t, error);
    FV_TRY(matrix_of(path, e, m, error));
    fv__matrix_chain(t->matrix, m, t->matrix);
    return FV_OK;
}

fv_status fv__itk_type(const char *path, const fv_itk_transform *t, fv_image_type *type, fv_bytes *facts, fv_error *error) {
    const fv_image_type none = { .ndim = 0 };
    fv__bytes_printf(facts, "transform: %s, %d dimensions\n", t->bends ? "B-splines" : "linear", t->n);
    if (t->bends) return fv__control_type(t->n, t->grid.size, t->grid.space, path, type, error);
    fv__transform_linear(&none, t->n, type);
    return FV_OK;
}

void fv__itk_store(const fv_itk_transform *t, const fv_image_type *type, const fv_block *block) {
    fv_transform linear;
    if (t->bends) {
        fv__control_store(block, &t->grid, NULL, t->control);
        return;
    }
    fv__transform_find(type, "", &linear, NULL);
    fv__transform_store(block, &linear, NULL, t->matrix);
}

/* ---------------------------------------------------------------- writing */

fv_status fv__itk_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    fv_transform    t;
    fv_control_grid grid;
    bool            bends = fv__control_is(file->type);
    if (bends) {
        FV_TRY(fv__control_find(file->type, file->path, &grid, error));
        t.before = grid.before;
    } else
        FV_TRY(fv__transform_find(file->type, file->path, &t, error));
    if (t.before)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: a file holds one transform, and there is one for each place along %s: take one, as t[0]", file->path,
                       file->type->axis[0]);
    memcpy(layout->piece, file->type->shape, sizeof layout->piece);
    layout->piece_memory = 4096 + (bends ? 40 * grid.n * fv__control_points(&grid) : 0);
    return FV_OK;
}

static fv_status bspline_entry(const fv_image_type *type, const char *path, const fv_block *block, fv_itk_entry *e,
                               fv_error *error) {
    fv_control_grid grid;
    FV_TRY(fv__control_find(type, path, &grid, error));
    int n = grid.n;
    *e = (fv_itk_entry){ .n = n, .nfixed = n * (3 + n), .nparameters = n * fv__control_points(&grid) };
    snprintf(e->kind, sizeof e->kind, "BSplineTransform");
    FV_TRY(FV_TAKE(e->parameter, (size_t)e->nparameters * sizeof *e->parameter, error));
    fv__control_load(block, &grid, NULL, e->parameter);
    for (int c = 0; c < n; c++) {
        const double *m = grid.space + c;
        double        length = sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]);
        e->fixed[c] = (double)grid.size[c];
        e->fixed[n + c] = grid.space[c * 4 + 3];
        e->fixed[2 * n + c] = length;
        for (int r = 0; r < n; r++) e->fixed[3 * n + r * n + c] = grid.space[r * 4 + c] / length;
    }
    return FV_OK;
}

fv_status fv__itk_entry_of(const fv_image_type *type, const char *path, const fv_block *block, fv_itk_entry *e, fv_error *error) {
    fv_transform t;
    double       m[12];
    if (fv__control_is(type)) return bspline_entry(type, path, block, e, error);
    FV_TRY(fv__transform_find(type, path, &t, error));
    fv__transform_load(block, &t, NULL, m);
    *e = (fv_itk_entry){ .n = t.n, .nfixed = t.n, .nparameters = t.n * (t.n + 1) };
    snprintf(e->kind, sizeof e->kind, "AffineTransform");
    FV_TRY(FV_TAKE(e->parameter, (size_t)e->nparameters * sizeof *e->parameter, error));
    for (int r = 0; r < t.n; r++) {
        for (int c = 0; c < t.n; c++) e->parameter[r * t.n + c] = m[r * 4 + c];
        e->parameter[t.n * t.n + r] = m[r * 4 + 3];
    }
    return FV_OK;
}
