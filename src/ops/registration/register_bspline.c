/* register_bspline: the B-spline transform that brings one image upon another, at one resolution. */
#include "op/random.h"
#include "ops/registration/bspline_fit.h"
#include "ops/registration/fitting.h"
#include "ops/registration/voxels.h"
#include "ops/registration/ways.h"

typedef struct {
    double    grid;
    fv_choice metric;
    int64_t   iterations;
    double    bending;
    int64_t   samples, bins;
} bending_to;

enum { MOVING, FIXED, START };
/* Mutual information follows noise of a few voxels, so it gets more bending energy beside it: chosen on seven pictures and on two
 * bent phantoms. */
enum { MORE = 30 };

static const fv_param params[] = {
    FV_PARAM(bending_to, grid, .def = "", .min = 0, .above = true,
             .doc = "distance of control points, in units of the spacing; left out: an eighth of the longest side"),
    FV_PARAM(bending_to, metric, .def = "correlation", .choices = "mean_squares|correlation|mutual_information",
             .doc = "how the images are compared; see register"),
    FV_PARAM(bending_to, iterations, .def = "40", .min = 1, .max = 10000, .doc = "most steps"),
    FV_PARAM(bending_to, bending, .def = "0.01", .min = 0, .max = 1e6,
             .doc =
                 "weight of the bending energy, times 30 for mutual_information: the more, the smoother the displacement; 0: as "
                 "the grid allows"),
    FV_PARAM(bending_to, samples, .def = "4000000", .min = 100, .max = 1e9,
             .doc = "most voxels of fixed that are compared: a random choice of its rows, always the same"),
    FV_PARAM(bending_to, bins, .def = "32", .min = 8, .max = FV_FIT_BINS, .doc = "of mutual_information, for each image"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "moving", FV_KIND_IMAGE, .doc = "image to bring upon the other; of a movie each time by itself" },
    { "fixed", FV_KIND_IMAGE, .doc = "image that stays where it is" },
    { "start", FV_KIND_IMAGE, .doc = "transform to begin with: linear, or B-splines of any grid" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const bending_to    *p = i->params;
    const fv_image_type *moving = &i->in[MOVING]->image, *fixed = &i->in[FIXED]->image;
    fv_way               start;
    fv_control_grid      grid;
    int                  axis[FV_MAX_DIMS];
    for (int k = MOVING; k <= FIXED; k++)
        if (fv_dtype_is_complex(i->in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s: it must be real", inputs[k].name,
                           fv_dtype_name(i->in[k]->image.dtype));
    FV_TRY(fv__physical_compare(moving, "moving", fixed, "fixed", error));
    FV_TRY(fv__way_find(&i->in[START]->image, "start", &start, error));
    FV_TRY(fv__control_over(fixed, "fixed", moving, p->grid, &i->out->image, error));
    fv__control_find(&i->out->image, "", &grid, NULL);
    if (start.n != grid.n)
        return fv_fail(error, FV_ERROR_USAGE, "start has %d dimensions, and the images have %d", start.n, grid.n);
    return fv__transform_match(&i->in[START]->image, &start.linear, moving, "moving", axis, error);
}

typedef struct {
    fv_bspline_fit fit;
    fv_way         start;
    fv_physical    moving, fixed;
    float         *row;
    void          *memory;
} state;

static size_t lay_out(const fv_need *n, void *scratch, state *s) {
    const bending_to *p = n->params;
    fv_scratch        pieces = { scratch, 0 };
    int64_t           longest = 0;
    *s = (state){ .fit = { .metric = p->metric.index,
                           .bins = (int)p->bins,
                           .iterations = (int)p->iterations,
                           .bending = p->bending * (p->metric.index == FV_FIT_MUTUAL_INFORMATION ? MORE : 1) } };
    fv__physical_find(&n->in[MOVING]->image, "", &s->moving, NULL);
    fv__physical_find(&n->in[FIXED]->image, "", &s->fixed, NULL);
    fv__control_find(&n->out->image, "", &s->fit.grid, NULL);
    fv__way_find(&n->in[START]->image, "", &s->start, NULL);
    for (int c = 0; c < 3; c++) {
        s->fit.of_fixed[c] = c < s->fixed.n ? n->in[FIXED]->image.shape[s->fixed.axis[c]] : 1;
        s->fit.of_moving[c] = c < s->moving.n ? n->in[MOVING]->image.shape[s->moving.axis[c]] : 1;
    }
    s->fit.room = FV_MAX(FV_MIN(s->fit.of_fixed[1] * s->fit.of_fixed[2], p->samples / s->fit.of_fixed[0]), 1);
    for (int k = MOVING; k <= FIXED; k++) longest = FV_MAX(longest, n->in[k]->image.shape[n->in[k]->image.ndim - 1]);
    s->row = fv__scratch_take(&pieces, longest * (int64_t)sizeof(float));
    s->memory = fv__scratch_take(&pieces, fv__bspline_solve_bytes(&s->fit.grid));
    fv__way_lay_out(&s->start, &pieces);
    fv__bspline_fit_lay_out(&s->fit, &pieces);
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    state s;
    return lay_out(n, NULL, &s);
}

static int before_of(const fv_need *n) {
    fv_control_grid grid;
    fv__control_find(&n->out->image, "", &grid, NULL);
    return grid.before;
}

static void need(const fv_need *n, fv_region *in) {
    for (int k = MOVING; k <= START; k++) fv__voxels_part(n, k, before_of(n), &in[k]);
}

/* ---------------------------------------------------------------- the work */

/* All rows, or so many of them as there is memory for. */
static void choose_rows(fv_bspline_fit *f) {
    int64_t  all = f->of_fixed[1] * f->of_fixed[2];
    uint64_t limit = all > f->room ? (uint64_t)((double)f->room / (double)all * 0x1p64) : 0;
    f->rows = 0;
    for (int64_t r = 0; r < all && f->rows < f->room; r++)
        if (!limit || fv__place_hash(1, 0, r / f->of_fixed[1], r % f->of_fixed[1], 0) < limit) f->row[f->rows++] = r;
}

static fv_status load_images(state *s, const fv_run *r, const fv_need *one, fv_error *error) {
    fv_bspline_fit    *f = &s->fit;
    fv_voxel_summary   of[2];
    fv_voxel_scale     scale[2] = { 0 };
    fv_region          part[2];
    const fv_physical *place[2] = { &s->moving, &s->fixed };
    for (int k = FIXED; k >= MOVING; k--) {
        fv__voxels_part(one, k, before_of(one), &part[k]);
        FV_TRY(fv__voxels_summarize(r->in[k], place[k], &part[k], s->row, inputs[k].name, &of[k], error));
        scale[k] = k == MOVING && f->metric == FV_FIT_MEAN_SQUARES
                       ? scale[FIXED]
                       : fv__voxels_scale(&of[k], fv__voxels_count(&one->in[k]->image, place[k]));
        fv__voxels_keep(r->in[k], place[k], &part[k], s->row, &scale[k], k == MOVING ? f->of_moving : f->of_fixed,
                        k == MOVING ? f->moving : f->fixed);
    }
    f->low = (of[MOVING].low - scale[MOVING].offset) * scale[MOVING].share;
    f->width = (of[MOVING].high - of[MOVING].low) * scale[MOVING].share / (f->bins - 5);
    f->fixed_low = (of[FIXED].low - scale[FIXED].offset) * scale[FIXED].share;
    f->fixed_bin = (of[FIXED].high - of[FIXED].low) * scale[FIXED].share / f->bins;
    return FV_OK;
}

static fv_status follow(const void *context, const double place[3], double to[3], fv_error *error) {
    (void)error;
    fv__way_to(context, place, to, NULL);
    return FV_OK;
}

static fv_status fit_one(state *s, const fv_run *r, const int64_t *before, fv_error *error) {
    fv_bspline_fit *f = &s->fit;
    fv_need         one = r->need;
    double          unused[12];
    for (int d = 0; d < before_of(&one); d++) {
        one.region.start[d] = before[d];
        one.region.size[d] = 1;
    }
    FV_TRY(load_images(s, r, &one, error));
    memcpy(f->space, s->fixed.space, sizeof f->space);
    fv__matrix_invert(s->moving.space, f->voxels);
    f->edge = INFINITY;
    for (int c = 0; c < s->fixed.n; c++) {
        const double *m = s->fixed.space + c;
        f->edge = FV_MIN(f->edge, sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]));
    }
    choose_rows(f);
    fv__way_load(&s->start, &one.in[START]->image, r->in[START], &one.out->image, before);
    if (!s->start.bends && !fv__matrix_invert(s->start.matrix, unused))
        return fv_fail(error, FV_ERROR_INPUT, "start is singular: it presses the image flat, and nothing can begin there");
    FV_TRY(fv__way_sample(&f->grid, follow, &s->start, s->memory, f->control, error));
    if (!fv__bspline_fit_run(f))
        return fv_fail(error, FV_ERROR_INPUT,
                       "moving and fixed do not overlap, or are constant where they do, where it begins: give another start");
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    state     s;
    fv_rows   walk;
    fv_region places = r->out->region;
    lay_out(&r->need, r->scratch, &s);
    for (int d = s.fit.grid.control; d < places.ndim; d++) places.size[d] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        FV_TRY(fit_one(&s, r, walk.position, error));
        fv__control_store(r->out, &s.fit.grid, walk.position, s.fit.control);
    }
    return FV_OK;
}

/* Each transform whole, and by itself. */
static void slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *out = &n->out->image;
    int                  before = before_of(n);
    for (int d = 0; d < out->ndim; d++) chunk[d] = d < before ? 1 : out->shape[d];
}

static double cost(const fv_need *n) {
    const bending_to *p = n->params;
    state             s;
    lay_out(n, NULL, &s);
    double voxels = (double)(s.fit.room * s.fit.of_fixed[0]), numbers = (double)(s.fit.grid.n * fv__control_points(&s.fit.grid));
    return voxels * (double)p->iterations * (s.fit.metric == FV_FIT_MUTUAL_INFORMATION ? 60 : 25) / numbers;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(register_bspline) = {
    .name = "register_bspline",
    .family = "registration",
    .brief = "bend one image upon another by B-splines, at one resolution",
    .also = "BSplineTransform, free-form deformation, nonrigid registration",
    .doc =
        "register(moving, fixed, kind = \"bspline\") does this at several resolutions, and is what one usually wants. Here the "
        "images are compared as they are, from a start that may be linear or B-splines. The result holds a displacement for each "
        "control point, in the units of the spacing; no place moves further than the largest of them. Steps are those of the "
        "BFGS method with limited memory, and end early when no control point moves by a thousandth of a voxel.",
    .citation = "Rueckert et al., Nonrigid registration using free-form deformations, IEEE TMI 18, 1999; Nocedal, Updating "
                "quasi-Newton matrices with limited storage, Mathematics of Computation 35, 1980",
    .example = "fixed = gaussian(phantom(\"cells\", [100, 100]), 2)\n"
               "moving = gaussian(shift(fixed, [1.5, -2], mode = \"mirror\"), 1)\n"
               "t = register_bspline(moving, fixed, register(moving, fixed, kind = \"shift\"), grid = 25)\n"
               "transform(moving, t, onto = fixed) |> write(\"aligned.tif\")",
    .version = 3,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(bending_to),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = slab,
    .cost = cost,
    .see = "register transform",
};
