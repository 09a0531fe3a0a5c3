/* concatenate_transforms: two transforms as one. */
#include "op/axes.h"
#include "ops/registration/matrices.h"
#include "ops/registration/ways.h"

enum { FIRST, SECOND, ONTO };
enum { TRANSFORMS = 2 };

typedef struct {
    double grid;
} joining;

static const fv_param params[] = {
    FV_PARAM(joining, grid, .def = "", .min = 0, .above = true,
             .doc = "where B-splines come second: distance of control points of the result; left out: half that of first, or of "
                    "second where first is linear"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "first", FV_KIND_IMAGE, .doc = "from the fixed image to one between, as register(between, fixed)" },
    { "second", FV_KIND_IMAGE, .doc = "from there to the moving one, as register(moving, between)" },
    { "onto", FV_KIND_IMAGE, .optional = true,
      .doc = "the fixed image, over which B-splines that follow a linear transform are told; its voxels are not read" },
    FV_INPUT_END,
};

/* B-splines and then a linear transform are B-splines of the same grid, and nothing is lost. */
static bool stays(const fv_way *first, const fv_way *second, const joining *p, bool onto) {
    return first->bends && !second->bends && !(p->grid > 0) && !onto;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const joining       *p = i->params;
    const fv_image_type *type[TRANSFORMS] = { &i->in[FIRST]->image, &i->in[SECOND]->image };
    const fv_image_type *onto = i->in[ONTO]->kind == FV_KIND_IMAGE ? &i->in[ONTO]->image : NULL, *grid;
    fv_image_type        made;
    fv_way               way[TRANSFORMS];
    for (int k = 0; k < TRANSFORMS; k++) FV_TRY(fv__way_find(type[k], inputs[k].name, &way[k], error));
    if (!way[FIRST].bends && !way[SECOND].bends) return fv__matrices_infer(i, inputs, TRANSFORMS, error);
    if (way[FIRST].n != way[SECOND].n)
        return fv_fail(error, FV_ERROR_USAGE, "first has %d dimensions and second has %d: they cannot go together", way[FIRST].n,
                       way[SECOND].n);
    if (!way[FIRST].bends && !onto)
        return fv_fail(error, FV_ERROR_USAGE,
                       "B-splines that follow a linear transform are told over the fixed image: give it, onto = fixed");
    grid = way[FIRST].bends ? type[FIRST] : type[SECOND];
    made = *grid;
    if (!stays(&way[FIRST], &way[SECOND], p, onto))
        FV_TRY(fv__ways_over(grid, way[FIRST].bends ? "first" : "second", onto, p->grid, &made, error));
    int more = way[SECOND].linear.before > way[FIRST].linear.before ? SECOND : FIRST, less = TRANSFORMS - 1 - more;
    int have = fv__control_is(&made) ? fv__axis_find(&made, "control") : 0, axis[FV_MAX_DIMS];
    for (int d = have; d < way[more].linear.before; d++) {
        fv__axis_insert(&made, d, type[more]->axis[d], type[more]->shape[d]);
        made.spacing[d] = type[more]->spacing[d];
    }
    FV_TRY(fv__transform_match(type[less], &way[less].linear, &made, inputs[more].name, axis, error));
    FV_TRY(fv__transform_match(type[more], &way[more].linear, &made, inputs[less].name, axis, error));
    i->out->image = made;
    return FV_OK;
}

static fv_status make(const fv_need *n, double (*const in)[12], double out[12], fv_error *error) {
    (void)n;
    (void)error;
    fv__matrix_chain(in[1], in[0], out);
    return FV_OK;
}

/* ---------------------------------------------------------------- B-splines */

typedef struct {
    fv_way          way[TRANSFORMS];
    fv_control_grid grid;
    double         *control;
    void           *memory;
} state;

static size_t lay_out(const fv_need *n, void *scratch, state *s) {
    fv_scratch pieces = { scratch, 0 };
    for (int k = 0; k < TRANSFORMS; k++) fv__way_find(&n->in[k]->image, "", &s->way[k], NULL);
    if (!fv__control_is(&n->out->image)) return 0;
    fv__control_find(&n->out->image, "", &s->grid, NULL);
    for (int k = 0; k < TRANSFORMS; k++) fv__way_lay_out(&s->way[k], &pieces);
    s->control = fv__scratch_take(&pieces, s->grid.n * fv__control_points(&s->grid) * (int64_t)sizeof(double));
    s->memory = fv__scratch_take(&pieces, fv__bspline_solve_bytes(&s->grid));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    state s;
    return lay_out(n, NULL, &s);
}

static fv_status follow(const void *context, const double place[3], double to[3], fv_error *error) {
    const state *s = context;
    double       between[3];
    (void)error;
    fv__way_to(&s->way[FIRST], place, between, NULL);
    fv__way_to(&s->way[SECOND], between, to, NULL);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) { fv__ways_need(n, TRANSFORMS, in); }

static fv_status run(fv_run *r, fv_error *error) {
    state     s;
    fv_rows   walk;
    fv_region places = r->out->region;
    lay_out(&r->need, r->scratch, &s);
    if (!fv__control_is(&r->need.out->image)) return fv__matrices_run(r, TRANSFORMS, make, error);
    for (int d = s.grid.control; d < places.ndim; d++) places.size[d] = 1;
    for (fv__rows_begin(&walk, &places); fv__rows_next(&walk);) {
        for (int k = 0; k < TRANSFORMS; k++)
            fv__way_load(&s.way[k], &r->need.in[k]->image, r->in[k], &r->need.out->image, walk.position);
        FV_TRY(fv__way_sample(&s.grid, follow, &s, s.memory, s.control, error));
        fv__control_store(r->out, &s.grid, walk.position, s.control);
    }
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(concatenate_transforms) = {
    .name = "concatenate_transforms",
    .family = "registration",
    .brief = "make one transform of two that follow each other",
    .also = "CompositeTransform, convert_xfm -concat, ComposeMultiTransform, convertwarp",
    .doc =
        "A place of the fixed image goes through first, and then through second. An image that goes through both is interpolated "
        "only once: a functional scan to the T1, and that to a template.\n"
        "Two linear transforms are a linear one. B-splines and then a linear one are B-splines, with nothing lost. Where "
        "B-splines come second, the result goes through what both do at its control points and is close to it between: a finer "
        "grid is closer.",
    .example = "template = phantom(\"cells\", [200, 200])\n"
               "between = rotate(template, 5, reshape = false)\n"
               "moving = shift(between, [6, -4])\n"
               "t = concatenate_transforms(register(between, template), register(moving, between, kind = \"shift\"))\n"
               "transform(moving, t, onto = template) |> write(\"aligned.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(joining),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .slab = fv__ways_slab,
    .see = "invert_transform register transform",
};
