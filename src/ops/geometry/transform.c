/* transform: an image seen through a transform that was found by register or read from a file. */
#include "kernels/bspline.h"
#include "ops/geometry/spline.h"
#include <stdio.h>

typedef struct {
    fv_spline spline;
    double    limit;
} transform;

enum { IMAGE, TRANSFORM, ONTO };

static const fv_param params[] = {
    FV_PARAM(transform, limit, .def = "", .min = 0, .above = true, .unit = "px",
             .doc = "no voxel moves further; left out: any distance, and all of the image is read for every part of the result"),
    FV_SPLINE_PARAMS("1", "constant"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "the moving image, or another that lies where it does" },
    { "transform", FV_KIND_IMAGE, .doc = "what register(...) gave, linear or B-splines, or read(\"t.tfm\")" },
    { "onto", FV_KIND_IMAGE, .optional = true,
      .doc = "image whose grid the result has, usually the fixed one; its voxels are not read. Left out: the grid of image" },
    FV_INPUT_END,
};

/* The control points of B-splines, at the last place of the axes before that was asked for. */
typedef struct {
    bool    loaded;
    int64_t before[FV_MAX_DIMS];
    double *control;
} kept;

/* How the voxels of the result lead to those of the image. */
typedef struct {
    const transform *p;
    fv_mapping       m;
    bool             bends; /* by B-splines */
    fv_transform     t;     /* before: that of B-splines too */
    fv_control_grid  grid;
    fv_physical      image, onto;
    double           back[12];          /* physical space to voxels of the image */
    double           unmoved[12];       /* voxels of the result to those of the image that lie at the same place */
    int              component[3];      /* x, y or z, by spatial axis of the mapping */
    int              axis[FV_MAX_DIMS]; /* of the image, for each axis before the transform's own */
    const fv_block  *block;
    kept            *kept;
} way;

static fv_status find_way(const transform *p, const fv_type *const *in, way *w, fv_error *error) {
    *w = (way){ .p = p };
    FV_TRY(fv__spline_check(&p->spline, in[IMAGE], &w->m, error));
    w->bends = fv__control_is(&in[TRANSFORM]->image);
    if (w->bends) {
        FV_TRY(fv__control_find(&in[TRANSFORM]->image, "transform", &w->grid, error));
        w->t = (fv_transform){ .n = w->grid.n, .before = w->grid.before };
    } else
        FV_TRY(fv__transform_find(&in[TRANSFORM]->image, "transform", &w->t, error));
    fv_image_type image = in[IMAGE]->image;
    for (int k = 0; k < w->m.naxes; k++) image.shape[w->m.axis[k]] -= 2 * w->m.margin;
    fv__spline_place(&w->m, &image);
    const fv_image_type *onto = in[ONTO]->kind == FV_KIND_IMAGE ? &in[ONTO]->image : &image;
    FV_TRY(fv__physical_compare(&image, "image", onto, "onto", error));
    FV_TRY(fv__physical_find(&image, "image", &w->image, error));
    FV_TRY(fv__physical_find(onto, "onto", &w->onto, error));
    if (w->t.n != w->image.n)
        return fv_fail(error, FV_ERROR_USAGE, "the transform has %d dimensions, and image has %d spatial axes", w->t.n,
                       w->image.n);
    FV_TRY(fv__transform_match(&in[TRANSFORM]->image, &w->t, &image, "image", w->axis, error));
    fv__matrix_invert(w->image.space, w->back);
    fv__matrix_chain(w->back, w->onto.space, w->unmoved);
    for (int k = 0; k < w->m.naxes; k++) {
        w->m.matrix[k][k] = 0; /* every axis is interpolated */
        for (int c = 0; c < w->image.n; c++)
            if (w->image.axis[c] == w->m.axis[k]) w->component[k] = c;
    }
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_image_type *out = &i->out->image;
    way            w;
    FV_TRY(find_way(i->params, i->in, &w, error));
    out->dtype = fv__mapping_type(w.m.order, i->in[IMAGE]->image.dtype);
    if (i->in[ONTO]->kind != FV_KIND_IMAGE) {
        for (int k = 0; k < w.m.naxes; k++) out->shape[w.m.axis[k]] -= 2 * w.m.margin;
        fv__spline_place(&w.m, out);
        return FV_OK;
    }
    const fv_image_type *onto = &i->in[ONTO]->image;
    for (int c = 0; c < w.image.n; c++) {
        out->shape[w.image.axis[c]] = onto->shape[w.onto.axis[c]];
        out->spacing[w.image.axis[c]] = onto->spacing[w.onto.axis[c]];
        out->origin[w.image.axis[c]] = onto->origin[w.onto.axis[c]];
    }
    memcpy(out->affine, onto->affine, sizeof out->affine);
    out->has_affine = onto->has_affine;
    out->affine_code = onto->affine_code;
    if (fv_image_type_bytes(out) < 0) return fv_fail(error, FV_ERROR_USAGE, "the image would be larger than can be counted");
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const transform *p = i->params;
    char             arguments[80];
    way              w;
    FV_TRY(find_way(p, i->in, &w, error));
    bool onto = i->in[ONTO]->kind == FV_KIND_IMAGE;
    snprintf(arguments, sizeof arguments, "transform, %s%s", onto ? "onto, " : "", p->limit > 0 ? "limit = limit, " : "");
    fv__spline_expand(&p->spline, &w.m, &i->in[IMAGE]->image, "transform", arguments, text);
    return FV_OK;
}

/* A row of a matrix at a voxel x, y, z. */
static double at(const double *row, const double *voxel) {
    return ((row[0] * voxel[0] + row[1] * voxel[1]) + row[2] * voxel[2]) + row[3];
}

static void need(const fv_need *n, fv_region *in) {
    way    w;
    double low[3], high[3];
    find_way(n->params, n->in, &w, NULL);
    in[TRANSFORM] = fv__region_whole(&n->in[TRANSFORM]->image);
    for (int d = 0; d < w.t.before; d++) {
        in[TRANSFORM].start[d] = n->region.start[w.axis[d]];
        in[TRANSFORM].size[d] = n->region.size[w.axis[d]];
    }
    in[ONTO] = (fv_region){ .ndim = n->in[ONTO]->kind == FV_KIND_IMAGE ? n->in[ONTO]->image.ndim : 0 };
    for (int k = 0; k < w.m.naxes; k++) {
        low[k] = w.p->limit > 0 ? INFINITY : -INFINITY;
        high[k] = -low[k];
        for (int corner = 0; corner < 8 && w.p->limit > 0; corner++) {
            double voxel[3] = { 0 };
            for (int c = 0; c < w.image.n; c++) {
                int d = w.image.axis[c];
                voxel[c] = (double)(n->region.start[d] + (corner >> c & 1 ? n->region.size[d] - 1 : 0));
            }
            double place = at(w.unmoved + 4 * w.component[k], voxel);
            low[k] = FV_MIN(low[k], place - w.p->limit);
            high[k] = FV_MAX(high[k], place + w.p->limit);
        }
    }
    fv__points_need(&w.m, &n->in[IMAGE]->image, low, high, &in[IMAGE]);
}

/* Bytes of the control points, which lie after the scratch of the interpolation. */
static size_t control_bytes(const way *w) {
    return w->bends ? (size_t)(w->grid.n * fv__control_points(&w->grid)) * sizeof(double) : 0;
}

static size_t points_scratch(const fv_need *n, const way *w) {
    fv_region in[FV_MAX_INPUTS];
    for (int i = 0; i < FV_MAX_INPUTS; i++) in[i] = n->region;
    need(n, in);
    return (fv__points_scratch(&w->m, &n->in[IMAGE]->image, &in[IMAGE], &n->region) + 63) & ~(size_t)63;
}

static size_t scratch(const fv_need *n) {
    way w;
    find_way(n->params, n->in, &w, NULL);
    return points_scratch(n, &w) + control_bytes(&w);
}

/* Coordinates that are further from where they would be without the transform than limit are an error. */
static fv_status check_limit(const way *w, int k, double first, double voxel[3], int64_t n, const double *coordinate,
                             fv_error *error) {
    int x = w->component[w->m.naxes - 1];
    for (int64_t i = 0; i < n && w->p->limit > 0; i++) {
        voxel[x] = first + (double)i;
        double moved = fabs(coordinate[i] - at(w->unmoved + 4 * w->component[k], voxel));
        if (moved > w->p->limit)
            return fv_fail(error, FV_ERROR_INPUT, "the transform moves a voxel by %g voxels, more than limit = %g", moved,
                           w->p->limit);
    }
    return FV_OK;
}

static fv_status place_linear(const way *w, const int64_t *before, double voxel[3], int64_t n, double *const coordinate[3],
                              fv_error *error) {
    int    x = w->component[w->m.naxes - 1];
    double through[12], first = voxel[x];
    fv__transform_load(w->block, &w->t, before, through);
    fv__matrix_chain(through, w->onto.space, through);
    fv__matrix_chain(w->back, through, through);
    for (int k = 0; k < 12; k++) through[k] = fv__settle(through[k]);
    for (int k = 0; k < w->m.naxes; k++) {
        for (int64_t i = 0; i < n; i++) {
            voxel[x] = first + (double)i;
            coordinate[k][i] = at(through + 4 * w->component[k], voxel);
        }
        FV_TRY(check_limit(w, k, first, voxel, n, coordinate[k], error));
    }
    return FV_OK;
}

/* The unmoved place in voxels of the image, and the displacement there. */
static fv_status place_bent(const way *w, double voxel[3], int64_t n, double *const coordinate[3], fv_error *error) {
    int    x = w->component[w->m.naxes - 1];
    double line[3 * FV_CONTROL_MOST], room[3][FV_POINTS_STRIP], to[12], base[3], step[3], first = voxel[x];
    fv__matrix_chain(w->grid.cells, w->onto.space, to);
    voxel[x] = 0;
    for (int c = 0; c < 3; c++) {
        base[c] = fv__settle(at(to + 4 * c, voxel));
        step[c] = fabs(to[4 * c + x]) < 1e-9 ? 0 : to[4 * c + x]; /* but for rounding, it lies across the row */
    }
    fv__bspline_row(&w->grid, w->kept->control, base, step, (int64_t)first, n, line,
                    (double *const[]){ room[0], room[1], room[2] });
    for (int k = 0; k < w->m.naxes; k++) {
        const double *back = w->back + 4 * w->component[k];
        for (int64_t i = 0; i < n; i++) {
            double moved = back[0] * room[0][i] + back[1] * room[1][i];
            if (w->grid.n == 3) moved += back[2] * room[2][i];
            voxel[x] = first + (double)i;
            coordinate[k][i] = at(w->unmoved + 4 * w->component[k], voxel) + moved;
        }
        FV_TRY(check_limit(w, k, first, voxel, n, coordinate[k], error));
    }
    return FV_OK;
}

static fv_status place(const void *context, const int64_t *position, int64_t n, double *const coordinate[3], fv_error *error) {
    const way *w = context;
    double     voxel[3] = { 0 };
    int64_t    before[FV_MAX_DIMS] = { 0 };
    for (int d = 0; d < w->t.before; d++) before[d] = position[w->axis[d]];
    for (int c = 0; c < w->image.n; c++) voxel[c] = (double)position[w->image.axis[c]];
    if (!w->bends) return place_linear(w, before, voxel, n, coordinate, error);
    if (!w->kept->loaded || memcmp(before, w->kept->before, sizeof before)) {
        fv__control_load(w->block, &w->grid, before, w->kept->control);
        memcpy(w->kept->before, before, sizeof before);
        w->kept->loaded = true;
    }
    return place_bent(w, voxel, n, coordinate, error);
}

static fv_status run(fv_run *r, fv_error *error) {
    way w;
    FV_TRY(find_way(r->need.params, r->need.in, &w, error));
    w.block = r->in[TRANSFORM];
    kept at = { .control = (double *)((char *)r->scratch + points_scratch(&r->need, &w)) };
    w.kept = &at;
    fv_points points = { .mapping = w.m, .place = place, .context = &w };
    return fv__points_run(&points, r, error);
}

static double cost(const fv_need *n) { return ((const transform *)n->params)->spline.order == 3 ? 22 : 5; }

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(transform) = {
    .name = "transform",
    .family = "registration",
    .brief = "bring an image to its place by a transform",
    .also = "antsApplyTransforms, applywarp, apply_transform, transformix",
    .doc =
        "The result lies on the grid of onto: each of its places goes through the transform to a place of the image, through the "
        "matrices of both to the world (NIfTI orientation included), and takes the value there. The moving image lies upon the "
        "fixed one after transform(moving, t, onto = fixed). order = 0 suits labels. Transforms of a movie, one for each time, "
        "are "
        "applied time by time. Of B-splines no voxel moves further than the largest displacement of a control point, "
        "max(abs(t)): "
        "divided by the spacing that is a limit to give for an image larger than memory. Beyond their grid the displacement goes "
        "on straight, where ITK's is none.\n" FV_SPLINE_DOC,
    .citation = "SimpleITK.Resample",
    .example = "fixed = phantom(\"cells\", [200, 200])\n"
               "moving = affine(fixed, [0.99, -0.1, 0.1, 0.99], offset = [8, -12])\n"
               "transform(moving, register(moving, fixed, kind = \"rigid\"), onto = fixed) |> write(\"aligned.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(transform),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "register resample affine warp",
};
