/* warp: an image moved by a field of displacements. */
#include "ops/geometry/warp_field.h"

/* An image of more bytes is not read whole for a part of the result: if no displacement is larger than NEAR, it is that much
 * around the part, else the image is taken in so many parts along its first axis, one after another. Each part reads the field
 * and what the parts before it made, and writes that again: of 320 x 256 x 256 float32 in 256 MiB, where reading all of it takes
 * 0.5 s of processors, parts of 4, 8 and 16 million voxels take 2.3, 1.2 and 0.8 s; the last do not fit into 128 MiB. So images
 * that do not press the least memory are read whole, parts are 8 million voxels, and their number is bounded, because the work
 * grows with it. */
enum { MOST_WHOLE = 64 << 20, NEAR = 64, PART_VOXELS = 8 << 20, MOST_PARTS = 32 };

static const fv_param params[] = {
    FV_PARAM(warp, limit, .def = "", .min = 0, .max = 1e9, .unit = "px",
             .doc = "no displacement is larger, one number or one per spatial axis; left out: any"),
    FV_SPLINE_PARAMS("1", "constant"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to move" },
    { "field", FV_KIND_IMAGE,
      .doc = "displacements in voxels: the spatial axes of the result, and one more axis with a component for each of them, in "
             "their order (c z y x with dz, dy, dx)" },
    FV_INPUT_END,
};

/* Whether coordinates that lie outside read nothing but the edge. */
static bool ends_at_edges(const fv_spline *s) {
    return s->mode.index == FV_EXTEND_CONSTANT || s->mode.index == FV_EXTEND_NEAREST || s->mode.index == FV_EXTEND_GRID_CONSTANT;
}

/* What a part of the result would read: series of images are taken image by image. */
static int64_t voxels_read(const fv_mapping *m, const fv_image_type *image) {
    int64_t voxels = 1;
    for (int d = m->axis[0]; d < image->ndim; d++) voxels *= image->shape[d];
    return voxels;
}

static void unroll_parts(const fv_mapping *m, const fv_image_type *image, fv_bytes *text) {
    static const char same[] = "order = order, mode = mode, cval = cval, prefilter = prefilter, margin = margin, partly = partly";
    int64_t           shape[3], count = FV_MIN(voxels_read(m, image) / PART_VOXELS, MOST_PARTS);
    fv__spline_shape(m, image, shape);
    count = FV_MAX(FV_MIN(count, shape[0] / 2), 1);
    for (int64_t k = 0; k < count; k++) {
        fv__bytes_printf(text, "part%lld = warp_part(image, field, ", (long long)k);
        if (k) fv__bytes_printf(text, "part%lld, from = %lld, ", (long long)k - 1, (long long)(k * shape[0] / count));
        if (k < count - 1) fv__bytes_printf(text, "until = %lld, ", (long long)((k + 1) * shape[0] / count));
        fv__bytes_printf(text, "%s)\n", same);
    }
    fv__bytes_printf(text, "choose(maximum(max(field), 0 - min(field)) <= %d, warp(image, field, limit = %d, %s), part%lld)\n",
                     NEAR, NEAR, same, (long long)count - 1);
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const warp          *p = i->params;
    const fv_image_type *image = &i->in[IMAGE]->image;
    fv_mapping           m;
    layout               l;
    FV_TRY(check(p, i->in, &m, &l, error));
    fv__spline_expand(&p->spline, &m, image, "warp", p->limit.count ? "field, limit, " : "field, ", text);
    bool large = voxels_read(&m, image) * (int64_t)fv_dtype_size(image->dtype) > MOST_WHOLE;
    if (!text->size && !p->limit.count && ends_at_edges(&p->spline) && large) unroll_parts(&m, image, text);
    return FV_OK;
}

static void bounds(const fv_need *n, const fv_mapping *m, int k, double *low, double *high) {
    const warp *p = n->params;
    *low = (double)n->region.start[m->axis[k]] - limit_of(p, k);
    *high = (double)(n->region.start[m->axis[k]] + n->region.size[m->axis[k]] - 1) + limit_of(p, k);
}

static void need(const fv_need *n, fv_region *in) { need_between(n, bounds, in); }

static size_t scratch(const fv_need *n) { return scratch_for(n, need); }

static fv_status place(const void *context_, const int64_t *position, int64_t n, double *const coordinate[3], fv_error *error) {
    const context *c = context_;
    for (int k = 0; k < c->m.naxes; k++) FV_TRY(place_along(c, position, k, n, coordinate[k], error));
    return FV_OK;
}

static fv_status run(fv_run *r, fv_error *error) {
    context c = { .p = r->need.params, .field = r->in[FIELD] };
    FV_TRY(check(c.p, r->need.in, &c.m, &c.l, error));
    fv_points points = { .mapping = c.m, .place = place, .context = &c };
    return fv__points_run(&points, r, error);
}

static double cost(const fv_need *n) { return ((const warp *)n->params)->spline.order == 3 ? 22 : 5; }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(warp) = {
    .name = "warp",
    .family = "geometry",
    .brief = "move every voxel by its own displacement",
    .also = "skimage.transform.warp, map_coordinates, geometric_transform, remap, displacement field, elastic, deform",
    .doc =
        "The result at o is the image at o + field(o), in voxels, as skimage.transform.warp with coordinates and "
        "optical_flow_tvl1's "
        "flow. The result has the shape of the field and lies on the grid of the image. With limit, "
        "only so much around a part of the result is read for it, and a larger displacement is an error. Without it, an image of "
        "at most 64 MiB is read whole; for a larger one the displacements are looked at first: if they are below 64 voxels, that "
        "is taken for limit, else the image is taken in at most 32 parts, one after another, which is slow but fits into little "
        "memory. (With the modes that repeat or mirror the image, it is read whole.) A displacement of nan gives "
        "cval.\n" FV_SPLINE_DOC,
    .citation = "skimage.transform.warp; scipy.ndimage.map_coordinates",
    .example = "cells = phantom(\"cells\", [200, 200])\n"
               "wave = name_axes(gaussian(phantom(\"cells\", [2, 200, 200]), [0, 20, 20]), \"c y x\") / 10\n"
               "warp(cells, wave, limit = 30) |> write(\"warped.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(warp),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "warp_part affine resample spline_filter",
};
