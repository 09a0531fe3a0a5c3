/* invert_transform: the way back. */
#include "ops/registration/matrices.h"
#include "ops/registration/ways.h"

enum { TRANSFORM, ONTO };
enum { TRANSFORMS = 1, MOST_STEPS = 60 };

typedef struct {
    double grid;
} inverting;

static const fv_param params[] = {
    FV_PARAM(inverting, grid, .def = "", .min = 0, .above = true,
             .doc = "of B-splines: distance of control points of the way back; left out: half that of transform"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "transform", FV_KIND_IMAGE, .doc = "a linear transform, B-splines, or one for each time" },
    { "onto", FV_KIND_IMAGE, .optional = true,
      .doc =
          "of B-splines: the moving image, over which the way back is told; its voxels are not read. Left out: where transform "
          "has its control points" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const inverting     *p = i->params;
    const fv_image_type *type = &i->in[TRANSFORM]->image;
    fv_image_type        made;
    fv_control_grid      from, to;
    if (!fv__control_is(type)) {
        if (p->grid > 0) return fv_fail(error, FV_ERROR_USAGE, "grid is that of B-splines, and transform is linear");
        return fv__matrices_infer(i, inputs, TRANSFORMS, error);
    }
    FV_TRY(fv__control_find(type, "transform", &from, error));
    FV_TRY(
        fv__ways_over(type, "transform", i->in[ONTO]->kind == FV_KIND_IMAGE ? &i->in[ONTO]->image : NULL, p->grid, &made, error));
    FV_TRY(fv__control_find(&made, "onto", &to, error));
    if (from.n != to.n)
        return fv_fail(error, FV_ERROR_USAGE, "transform has %d dimensions, and onto has %d spatial axes", from.n, to.n);
    i->out->image = made;
    return FV_OK;
}

static fv_status make(const fv_need *n, double (*const in)[12], double out[12], fv_error *error) {
    (void)n;
    if (!fv__matrix_invert(in[0], out))
        return fv_fail(error, FV_ERROR_INPUT, "transform is singular: it presses the image flat, and there is no way back");
    return FV_OK;
}

/* ---------------------------------------------------------------- B-splines */

/* The place that leads to another, by steps of Newton: shorter ones where they lead away. */
static fv_status find_back(const void *context, const double place[3], double to[3], fv_error *error) {
    const fv_way *way = context;
    double        at[3], slope[9], best = INFINITY, step[3] = { 0 }, far = 1, edge = INFINITY;
    for (int c = 0; c < way->n; c++) {
        const double *m = way->grid.space + c;
        edge = FV_MIN(edge, sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]));
    }
    memcpy(to, place, 3 * sizeof *to);
    for (int i = 0; i < MOST_STEPS; i++) {
        double left[3], turn[12] = { 0 }, back[12], sum = 0;
        fv__way_to(way, to, at, slope);
        for (int c = 0; c < 3; c++) {
            left[c] = place[c] - at[c];
            sum += left[c] * left[c];
        }
        if (sum <= 1e-20 * edge * edge) return FV_OK;
        if (sum > best) { /* too far: half of the last step */
            for (int c = 0; c < 3; c++) to[c] -= far / 2 * step[c];
            far /= 2;
            continue;
        }
        best = sum;
        far = 1;
        for (int k = 0; k < 9; k++) turn[k / 3 * 4 + k % 3] = slope[k];
        if (!fv__matrix_invert(turn, back)) break;
        for (int c = 0; c < 3; c++) {
            step[c] = (back[c * 4] * left[0] + back[c * 4 + 1] * left[1]) + back[c * 4 + 2] * left[2];
            to[c] += step[c];
        }
    }
    if (best <= 1e-8 * edge * edge) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT,
                   "transform folds, so that nothing leads back to the place %g, %g, %g: register with a larger grid or more "
                   "bending, or the other way round, register(fixed, moving)",
                   place[0], place[1], place[2]);
}

static size_t lay_out(const fv_need *n, void *scratch, fv_way *way, fv_control_grid *grid, double **control, void **memory) {
    fv_scratch pieces = { scratch, 0 };
    fv__way_find(&n->in[TRANSFORM]->image, "", way, NULL);
    if (!way->bends) return 0;
    fv__control_find(&n->out->image, "", grid, NULL);
    fv__way_lay_out(way, &pieces);
    *control = fv__scratch_take(&pieces, grid->n * fv__control_points(grid) * (int64_t)sizeof(double));
    *memory = fv__scratch_take(&pieces, fv__bspline_solve_bytes(grid));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    fv_way          way;
    fv_control_grid grid;
    double         *control;
    void           *memory;
    return lay_out(n, NULL, &way, &grid, &control, &memory);
}

static void need(const fv_need *n, fv_region *in) { fv__ways_need(n, TRANSFORMS, in); }

static fv_status run(fv_run *r, fv_error *error) {
    fv_way          way;
    fv_control_grid grid;
    double         *control;
    void           *memory;
    fv_rows         walk;
    fv_region       places = r->out->region;
    lay_out(&r->need, r->scratch, &way, &grid, &control, &memory);
    if (!way.bends) return fv__matrices_run(r, TRANSFORMS, make, error);
    for (int d = grid.control; d < places.ndim; d++) places.size[d] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        fv__way_load(&way, &r->need.in[TRANSFORM]->image, r->in[TRANSFORM], &r->need.out->image, walk.position);
        FV_TRY(fv__way_sample(&grid, find_back, &way, memory, control, error));
        fv__control_store(r->out, &grid, walk.position, control);
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(invert_transform) = {
    .name = "invert_transform",
    .family = "registration",
    .brief = "turn a transform round, from moving to fixed",
    .also = "GetInverse, convert_xfm -inverse, inverse_transform, invert displacement field",
    .doc =
        "transform(fixed, invert_transform(t), onto = moving) brings the fixed image to the moving one, where "
        "t = register(moving, fixed).\n"
        "The way back of B-splines is found place by place with Newton's method and told by B-splines again, which go through "
        "it at their control points and are close to it between: a finer grid is closer. If the transform holds a turn or a "
        "large shift, give onto = moving, so that the way back is told where it is needed. Where a transform folds there is no "
        "way back, and a message says where.",
    .example = "fixed = phantom(\"cells\", [200, 200])\n"
               "moving = rotate(fixed, 5, reshape = false)\n"
               "back = invert_transform(register(moving, fixed))\n"
               "transform(fixed, back, onto = moving) |> write(\"turned.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(inverting),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = fv__ways_slab,
    .see = "concatenate_transforms register transform",
};
