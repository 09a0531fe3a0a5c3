/* warp_part: what of a warped image comes from a part of the image, laid over what came from others.
 *
 * The lengths of displacements are not known when a run is planned. So that a large image need not be read whole for each part
 * of the result, warp takes it part by part: each voxel of the result is made by the part that its place lies in.
 */
#include "ops/geometry/warp_field.h"

enum { BEFORE = 2, CHUNK_BYTES = 4 << 20, BEYOND = 8 };
#define ANYWHERE 1e300 /* no bound */

static const fv_param params[] = {
    FV_PARAM(warp, from, .def = "-1e300", .unit = "px", .doc = "the part begins at this place along the first spatial axis"),
    FV_PARAM(warp, until, .def = "1e300", .unit = "px", .doc = "and ends before this one"),
    FV_SPLINE_PARAMS("1", "constant"),
    FV_PARAM(fv_spline, margin, .def = "0", .min = 0, .max = 64, .doc = "voxels around the image, which warp has added"),
    FV_PARAM(fv_spline, partly, .def = "false", .doc = "prefiltered along some axes only, by warp"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to move" },
    { "field", FV_KIND_IMAGE, .doc = "displacements in voxels, as warp has them" },
    { "before", FV_KIND_IMAGE, .optional = true,
      .doc = "what the result is where its places do not lie in the part; left out: cval" },
    FV_INPUT_END,
};

static fv_status infer_part(fv_infer *i, fv_error *error) {
    FV_TRY(infer(i, error));
    const fv_image_type *before = &i->in[BEFORE]->image, *out = &i->out->image;
    if (i->in[BEFORE]->kind == FV_KIND_IMAGE &&
        (before->dtype != out->dtype || before->ndim != out->ndim || memcmp(before->shape, out->shape, sizeof out->shape)))
        return fv_fail(error, FV_ERROR_USAGE, "before must have the type and shape of the result");
    return FV_OK;
}

/* The first part has all that lies before it and the last one all behind it, infinitely far too. What is not a number is every
 * part's, and cval in each. */
static bool owns(const warp *p, double place) {
    bool before = p->from > -ANYWHERE && place < p->from, behind = p->until < ANYWHERE && place >= p->until;
    return !before && !behind;
}

static void bounds(const fv_need *n, const fv_mapping *m, int k, double *low, double *high) {
    const warp *p = n->params;
    double      most = (double)(n->in[IMAGE]->image.shape[m->axis[k]] + BEYOND), least = -(double)(m->margin + BEYOND);
    *low = k ? least : FV_MAX(p->from, least);
    *high = k ? most : FV_MIN(p->until, most);
}

static void need(const fv_need *n, fv_region *in) { need_between(n, bounds, in); }

static size_t scratch(const fv_need *n) { return scratch_for(n, need); }

/* Places of other parts are no places here: nothing is read for them. */
static fv_status place_own(const void *context_, const int64_t *position, int64_t n, double *const coordinate[3],
                           fv_error *error) {
    const context *c = context_;
    int64_t        own = 0;
    FV_TRY(place_along(c, position, 0, n, coordinate[0], error));
    for (int64_t i = 0; i < n; i++) {
        bool mine = owns(c->p, coordinate[0][i]);
        own += mine;
        coordinate[0][i] = mine ? coordinate[0][i] : NAN;
    }
    for (int k = 1; k < c->m.naxes && own; k++) FV_TRY(place_along(c, position, k, n, coordinate[k], error));
    return FV_OK;
}

static fv_status take_over(const context *c, const fv_block *before, const fv_block *out, fv_error *error) {
    int       x = c->m.axis[c->m.naxes - 1];
    size_t    size = fv_dtype_size(out->dtype);
    fv_region starts = out->region;
    fv_rows   rows;
    double    places[FV_POINTS_STRIP];
    starts.size[x] = 1;
    for (int d = starts.ndim - 1; d > x; d--) starts.size[d] = 1;
    int64_t together = 1; /* channels behind x: they have the same place */
    for (int d = x + 1; d < out->region.ndim; d++) together *= out->region.size[d];
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);) {
        int64_t position[FV_MAX_DIMS], end = out->region.start[x] + out->region.size[x];
        memcpy(position, rows.position, sizeof position);
        for (; position[x] < end; position[x] += FV_POINTS_STRIP) {
            int64_t n = FV_MIN(FV_POINTS_STRIP, end - position[x]);
            FV_TRY(place_along(c, position, 0, n, places, error));
            char       *to = fv__block_at(out, position);
            const char *from = fv__block_at(before, position);
            for (int64_t i = 0; i < n; i++)
                if (!owns(c->p, places[i]))
                    memcpy(to + (size_t)(i * out->stride[x]) * size, from + (size_t)(i * before->stride[x]) * size,
                           (size_t)together * size);
        }
    }
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    context c = { .p = r->need.params, .field = r->in[FIELD] };
    FV_TRY(check(c.p, r->need.in, &c.m, &c.l, error));
    fv_points points = { .mapping = c.m, .place = place_own, .context = &c };
    FV_TRY(fv__points_run(&points, r, error));
    return r->in[BEFORE] ? take_over(&c, r->in[BEFORE], r->out, error) : FV_OK;
}

static double cost(const fv_need *n) { return ((const warp *)n->params)->spline.order == 3 ? 25 : 8; }

/* Each is stored, so that parts of the image follow one another and are never there together. */
static void slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *out = &n->out->image;
    int64_t              bytes = (int64_t)fv_dtype_size(out->dtype);
    for (int d = out->ndim - 1; d >= 0; d--) {
        chunk[d] = FV_MAX(FV_MIN(out->shape[d], CHUNK_BYTES / bytes), 1);
        bytes *= chunk[d];
    }
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(warp_part) = {
    .name = "warp_part",
    .family = "geometry",
    .brief = "move the voxels whose places lie in a part of the image",
    .doc = "What warp becomes for a large image whose displacements are not limited: parts of the image, along its first spatial "
           "axis, one after another.",
    .example = "cells = phantom(\"cells\", [200, 200])\n"
               "wave = name_axes(gaussian(phantom(\"cells\", [2, 200, 200]), [0, 20, 20]), \"c y x\") / 10\n"
               "upper = warp_part(cells, wave, until = 100)\n"
               "warp_part(cells, wave, upper, from = 100) |> write(\"warped.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(warp),
    .result = FV_KIND_IMAGE,
    .infer = infer_part,
    .passes = passes,
    .moves = true,
    .slab = slab,
    .cost = cost,
    .see = "warp",
};
