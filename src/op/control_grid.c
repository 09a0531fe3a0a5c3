/* B-spline transforms as images; see control_grid.h. */
#include "op/control_grid.h"
#include "op/axes.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "x", "y", "z" };

bool fv__control_is(const fv_image_type *type) { return fv__axis_find(type, "control") >= 0; }

fv_status fv__control_find(const fv_image_type *type, const char *name, fv_control_grid *grid, fv_error *error) {
    fv_physical place;
    int         control = fv__axis_find(type, "control");
    bool        well = control >= 0 && type->dtype == FV_FLOAT64 && fv__physical_find(type, name, &place, NULL) == FV_OK;
    if (well) well = control == type->ndim - place.n - 1 && type->shape[control] == place.n;
    for (int c = 0; well && c < place.n; c++)
        well = place.axis[c] == type->ndim - 1 - c && type->shape[place.axis[c]] >= FV_CONTROL_LEAST;
    if (!well)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s is no B-spline transform: it takes the axes control z y x (or control y x), a displacement of float64 "
                       "for each dimension, and at least %d control points along each axis",
                       name, FV_CONTROL_LEAST);
    *grid = (fv_control_grid){ .n = place.n, .control = control, .before = control, .size = { 1, 1, 1 } };
    for (int c = 0; c < place.n; c++) grid->size[c] = type->shape[place.axis[c]];
    memcpy(grid->space, place.space, sizeof grid->space);
    fv__matrix_invert(place.space, grid->cells);
    return FV_OK;
}

/* The type with these axes; where the matrix has a direction of its own, it is kept as NIfTI does. */
static fv_status make_type(int n, const int64_t size[3], const double space[12], const char *name, fv_image_type *type,
                           fv_error *error) {
    int64_t shape[4] = { n };
    bool    turned = false;
    for (int c = 0; c < n; c++) {
        shape[n - c] = size[c];
        if (size[c] > FV_CONTROL_MOST)
            return fv_fail(error, FV_ERROR_USAGE, "%s: %lld control points along %s, and %d are the most: give a larger grid",
                           name, (long long)size[c], names[c], FV_CONTROL_MOST);
    }
    fv_image_type_init(type, FV_FLOAT64, n + 1, shape);
    snprintf(type->axis[0], sizeof type->axis[0], "control");
    for (int c = 0; c < n; c++) {
        const double *m = space + c;
        snprintf(type->axis[n - c], sizeof type->axis[n - c], "%s", names[c]);
        type->spacing[n - c] = sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]);
        type->origin[n - c] = space[c * 4 + 3];
        for (int r = 0; r < n; r++) turned = turned || (r == c ? space[r * 5] <= 0 : space[r * 4 + c] != 0);
    }
    type->has_affine = turned;
    for (int k = 0; k < 12 && turned; k++) type->affine[k] = k < 8 ? -space[k] : space[k];
    return FV_OK;
}

fv_status fv__control_type(int n, const int64_t size[3], const double space[12], const char *path, fv_image_type *type,
                           fv_error *error) {
    fv_control_grid unused;
    FV_TRY(make_type(n, size, space, path, type, error));
    return fv__control_find(type, path, &unused, error);
}

fv_status fv__control_over(const fv_image_type *image, const char *name, const fv_image_type *movie, double distance,
                           fv_image_type *type, fv_error *error) {
    fv_physical place;
    double      space[12], length[3], longest = 0, first[3] = { 0 };
    int64_t     size[3] = { 1, 1, 1 };
    FV_TRY(fv__physical_find(image, name, &place, error));
    for (int c = 0; c < place.n; c++) {
        const double *m = place.space + c;
        length[c] = sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]) * (double)image->shape[place.axis[c]];
        longest = FV_MAX(longest, length[c]);
    }
    if (distance <= 0) distance = longest / 8;
    memcpy(space, place.space, sizeof space);
    for (int c = 0; c < place.n; c++) {
        double cells = FV_MIN(FV_MAX(floor(length[c] / distance + 0.5), 1), 1e6), voxels = (double)image->shape[place.axis[c]];
        size[c] = (int64_t)cells + 3;
        first[c] = -0.5 - voxels / cells;
        for (int r = 0; r < 3; r++) space[r * 4 + c] *= voxels / cells;
    }
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < place.n; c++) space[r * 4 + 3] += place.space[r * 4 + c] * first[c];
    FV_TRY(make_type(place.n, size, space, name, type, error));
    for (int c = 0; c < place.n; c++) memcpy(type->unit[place.n - c], image->unit[place.axis[c]], sizeof type->unit[0]);
    if (!movie) return FV_OK;
    fv_image_type linear;
    fv__transform_linear(movie, place.n, &linear);
    for (int d = 0; d < linear.ndim - 2; d++) {
        fv__axis_insert(type, d, linear.axis[d], linear.shape[d]);
        type->spacing[d] = linear.spacing[d];
        type->origin[d] = linear.origin[d];
        memcpy(type->unit[d], linear.unit[d], sizeof type->unit[d]);
    }
    return FV_OK;
}

fv_status fv__control_finer(const fv_image_type *from, const char *name, int times, fv_image_type *type, fv_error *error) {
    fv_control_grid grid;
    int64_t         size[3] = { 1, 1, 1 };
    double          space[12];
    fv_image_type   made;
    FV_TRY(fv__control_find(from, name, &grid, error));
    memcpy(space, grid.space, sizeof space);
    for (int c = 0; c < grid.n; c++) {
        size[c] = (grid.size[c] - 3) * times + 3;
        for (int r = 0; r < 3; r++) {
            space[r * 4 + c] /= times;
            space[r * 4 + 3] += grid.space[r * 4 + c] - space[r * 4 + c]; /* the second control point stays */
        }
    }
    FV_TRY(make_type(grid.n, size, space, name, &made, error));
    *type = *from;
    type->has_affine = made.has_affine;
    memcpy(type->affine, made.affine, sizeof type->affine);
    for (int c = 0; c < grid.n; c++) {
        int d = from->ndim - 1 - c, of = grid.n - c;
        type->shape[d] = made.shape[of];
        type->spacing[d] = made.spacing[of];
        type->origin[d] = made.origin[of];
    }
    return FV_OK;
}

/* Calls for every row of the control points: of a block that has some of them. */
static double *row_at(const fv_block *block, const fv_control_grid *g, const int64_t *before, int component, int64_t z,
                      int64_t y) {
    int64_t at[FV_MAX_DIMS] = { 0 };
    int     last = block->region.ndim - 1;
    for (int d = 0; d < g->before; d++) at[d] = before[d];
    at[g->control] = component;
    if (g->n == 3) at[last - 2] = z;
    at[last - 1] = y;
    for (int d = 0; d < last; d++)
        if (at[d] < block->region.start[d] || at[d] >= block->region.start[d] + block->region.size[d]) return NULL;
    at[last] = block->region.start[last];
    return fv__block_at(block, at);
}

void fv__control_load(const fv_block *block, const fv_control_grid *g, const int64_t *before, double *to) {
    int last = block->region.ndim - 1;
    for (int c = 0; c < g->n; c++)
        for (int64_t z = 0; z < g->size[2]; z++)
            for (int64_t y = 0; y < g->size[1]; y++) {
                const double *row = row_at(block, g, before, c, z, y);
                for (int64_t x = 0; x < g->size[0]; x++) *to++ = row[x * block->stride[last]];
            }
}

void fv__control_store(const fv_block *block, const fv_control_grid *g, const int64_t *before, const double *from) {
    int     last = block->region.ndim - 1;
    int64_t first = block->region.start[last], count = block->region.size[last];
    for (int c = 0; c < g->n; c++)
        for (int64_t z = 0; z < g->size[2]; z++)
            for (int64_t y = 0; y < g->size[1]; y++, from += g->size[0]) {
                double *row = row_at(block, g, before, c, z, y);
                for (int64_t x = 0; row && x < count; x++) row[x * block->stride[last]] = from[first + x];
            }
}
