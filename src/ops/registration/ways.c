/* Transforms of either kind; see ways.h. */
#include "ops/registration/ways.h"
#include "op/axes.h"

fv_status fv__way_find(const fv_image_type *type, const char *name, fv_way *way, fv_error *error) {
    *way = (fv_way){ .bends = fv__control_is(type) };
    if (!way->bends) {
        FV_TRY(fv__transform_find(type, name, &way->linear, error));
        way->n = way->linear.n;
        return FV_OK;
    }
    FV_TRY(fv__control_find(type, name, &way->grid, error));
    way->n = way->grid.n;
    way->linear = (fv_transform){ .n = way->n, .before = way->grid.before };
    return FV_OK;
}

void fv__way_lay_out(fv_way *way, fv_scratch *pieces) {
    if (way->bends) way->control = fv__scratch_take(pieces, way->n * fv__control_points(&way->grid) * (int64_t)sizeof(double));
}

void fv__way_load(fv_way *way, const fv_image_type *type, const fv_block *block, const fv_image_type *out,
                  const int64_t *before) {
    int     axis[FV_MAX_DIMS];
    int64_t at[FV_MAX_DIMS] = { 0 };
    fv__transform_match(type, &way->linear, out, "", axis, NULL);
    for (int d = 0; d < way->linear.before; d++) at[d] = before[axis[d]];
    if (way->bends)
        fv__control_load(block, &way->grid, at, way->control);
    else
        fv__transform_load(block, &way->linear, at, way->matrix);
}

void fv__way_to(const fv_way *way, const double place[3], double to[3], double slope[9]) {
    if (way->bends) {
        fv__bspline_at(&way->grid, way->control, place, to, slope);
        for (int c = 0; c < 3; c++) to[c] += place[c];
        for (int c = 0; c < 3 && slope; c++) slope[c * 4] += 1;
        return;
    }
    for (int r = 0; r < 3; r++) {
        const double *m = way->matrix + r * 4;
        to[r] = ((m[0] * place[0] + m[1] * place[1]) + m[2] * place[2]) + m[3];
        for (int c = 0; c < 3 && slope; c++) slope[r * 3 + c] = m[c];
    }
}

fv_status fv__way_sample(const fv_control_grid *g, fv_way_find_to *find, const void *context, void *memory, double *control,
                         fv_error *error) {
    int64_t points = fv__control_points(g), i = 0;
    for (int64_t z = 0; z < g->size[2]; z++)
        for (int64_t y = 0; y < g->size[1]; y++)
            for (int64_t x = 0; x < g->size[0]; x++, i++) {
                double site[3] = { fv__bspline_site(x, g->size[0]), fv__bspline_site(y, g->size[1]) }, place[3], to[3];
                if (g->n == 3) site[2] = fv__bspline_site(z, g->size[2]);
                for (int r = 0; r < 3; r++) {
                    const double *m = g->space + r * 4;
                    place[r] = ((m[0] * site[0] + m[1] * site[1]) + m[2] * site[2]) + m[3];
                }
                FV_TRY(find(context, place, to, error));
                for (int c = 0; c < g->n; c++) control[c * points + i] = to[c] - place[c];
            }
    fv__bspline_solve(g, control, memory);
    return FV_OK;
}

/* ---------------------------------------------------------------- operators on transforms */

fv_status fv__ways_over(const fv_image_type *from, const char *name, const fv_image_type *onto, double distance,
                        fv_image_type *type, fv_error *error) {
    fv_control_grid grid;
    double          finest = INFINITY;
    FV_TRY(fv__control_find(from, name, &grid, error));
    for (int c = 0; c < grid.n; c++) finest = FV_MIN(finest, from->spacing[from->ndim - 1 - c]);
    if (onto) {
        fv_image_type before = *from;
        for (int d = grid.control; d < from->ndim; d++) fv__axis_drop(&before, grid.control);
        return fv__control_over(onto, "onto", &before, distance > 0 ? distance : finest / 2, type, error);
    }
    int times = distance > 0 ? (int)FV_MIN(FV_MAX(floor(finest / distance + 0.5), 1), FV_CONTROL_MOST) : 2;
    return fv__control_finer(from, name, times, type, error);
}

/* Each transform is made whole, and by itself. */
void fv__ways_need(const fv_need *n, int transforms, fv_region *in) {
    for (int k = 0; k < n->ninputs; k++) {
        const fv_image_type *type = &n->in[k]->image;
        in[k] = (fv_region){ .ndim = n->in[k]->kind == FV_KIND_IMAGE ? type->ndim : 0 };
        if (k >= transforms) continue;
        fv_way way;
        fv__way_find(type, "", &way, NULL);
        in[k] = fv__region_whole(type);
        for (int d = 0; d < way.linear.before; d++) {
            int axis = fv__axis_find(&n->out->image, type->axis[d]);
            in[k].start[d] = n->region.start[axis];
            in[k].size[d] = n->region.size[axis];
        }
    }
}

void fv__ways_slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *out = &n->out->image;
    int                  own = fv__axis_find(out, fv__control_is(out) ? "control" : "row");
    for (int d = 0; d < out->ndim; d++) chunk[d] = d < own ? 1 : out->shape[d];
}
