/* resample: an image on another grid of the same world, as nibabel.processing.resample_from_to and SimpleITK.Resample. */
#include "op/axes.h"
#include "op/physical.h"
#include "op/place.h"
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline  spline;
    fv_numbers spacing;
} resample;

enum { IMAGE, ONTO };

static const fv_param params[] = {
    FV_PARAM(resample, spacing, .def = "", .min = 0, .above = true,
             .doc = "distance of voxels in the units of the image, one number or one per spatial axis"),
    FV_SPLINE_PARAMS("3", "constant"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to resample" },
    { "onto", FV_KIND_IMAGE, .optional = true, .doc = "image whose grid the result has; its voxels are not read" },
    FV_INPUT_END,
};

/* ---------------------------------------------------------------- places in the world */

static const char *const names[] = { "x", "y", "z" };

/* Voxel to world, 3 x 4, x y z as in NIfTI; axes that the image lacks have one voxel at 0. */
static void world_of(const fv_image_type *type, double world[12]) {
    memset(world, 0, 12 * sizeof *world);
    for (int c = 0; c < 3; c++) {
        int d = fv__axis_find(type, names[c]);
        world[c * 5] = d < 0 ? 1 : type->spacing[d];
        world[c * 4 + 3] = d < 0 ? 0 : type->origin[d];
    }
    if (type->has_affine) memcpy(world, type->affine, 12 * sizeof *world);
}

/* Matrix and offset from the voxels of onto to those of the image, in the order of the image's spatial axes. */
static fv_status set_by_world(fv_mapping *m, const fv_image_type *image, const fv_image_type *onto, fv_error *error) {
    double from[12], to[12], back[12];
    int    column[3], at[3] = { -1, -1, -1 };
    world_of(image, from);
    world_of(onto, to);
    if (!fv__matrix_invert(from, back)) return fv_fail(error, FV_ERROR_USAGE, "the matrix of image is singular");
    for (int k = 0; k < m->naxes; k++)
        for (int c = 0; c < 3; c++)
            if (!strcmp(image->axis[m->axis[k]], names[c])) at[column[k] = c] = k;
    for (int r = 0; r < 3; r++) {
        double row[4] = { 0, 0, 0, back[r * 4 + 3] };
        for (int i = 0; i < 3; i++)
            for (int c = 0; c < 4; c++) row[c] += back[r * 4 + i] * to[i * 4 + c];
        if (at[r] >= 0)
            m->offset[at[r]] = fv__settle(row[3] - (double)m->margin);
        else if (!(fabs(row[3]) < 0.01))
            return fv_fail(error, FV_ERROR_USAGE,
                           "the plane of onto does not lie in that of the image: it is %g voxels of %s off", row[3], names[r]);
        for (int k = 0; k < m->naxes && at[r] >= 0; k++) m->matrix[at[r]][k] = fv__settle(row[column[k]]);
    }
    return FV_OK;
}

static fv_status check_onto(const fv_mapping *m, const fv_image_type *image, const fv_image_type *onto, int axis[3],
                            fv_error *error) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(onto, spatial);
    for (int k = 0; k < m->naxes; k++) {
        const char *name = image->axis[m->axis[k]];
        axis[k] = fv__axis_find(onto, name);
        if (axis[k] < 0 || n != m->naxes)
            return fv_fail(error, FV_ERROR_USAGE, "image and onto must have the same spatial axes: %s",
                           axis[k] < 0 ? name : "z, y, x");
        if (strcmp(image->unit[m->axis[k]], onto->unit[axis[k]]))
            return fv_fail(error, FV_ERROR_USAGE, "the spacing along %s is in \"%s\" in the image and in \"%s\" in onto", name,
                           image->unit[m->axis[k]], onto->unit[axis[k]]);
    }
    if (image->has_affine != onto->has_affine)
        return fv_fail(
            error, FV_ERROR_USAGE,
            "%s has a matrix to the world and the other has none: their places cannot be compared; set_sform gives a volume one",
            image->has_affine ? "image" : "onto");
    return FV_OK;
}

static fv_status set(fv_mapping *m, const fv_type *const *in, const resample *p, int axis[3], fv_error *error) {
    const fv_image_type *image = &in[IMAGE]->image;
    if (in[ONTO]->kind != FV_KIND_IMAGE) {
        for (int k = 0; k < m->naxes; k++)
            m->matrix[k][k] = fv__settle(p->spacing.value[p->spacing.count == 1 ? 0 : k] / image->spacing[m->axis[k]]);
        return FV_OK;
    }
    const fv_image_type *onto = &in[ONTO]->image;
    FV_TRY(check_onto(m, image, onto, axis, error));
    if (!strcmp(image->axis[m->axis[0]], "v") || !strcmp(image->axis[m->axis[0]], "u")) {
        for (int k = 0; k < m->naxes; k++) {
            m->matrix[k][k] = fv__settle(onto->spacing[axis[k]] / image->spacing[m->axis[k]]);
            m->offset[k] =
                fv__settle((onto->origin[axis[k]] - image->origin[m->axis[k]]) / image->spacing[m->axis[k]] - (double)m->margin);
        }
        return FV_OK;
    }
    return set_by_world(m, image, onto, error);
}

static fv_status check(const resample *p, const fv_type *const *in, fv_mapping *m, int axis[3], fv_error *error) {
    FV_TRY(fv__spline_check(&p->spline, in[IMAGE], m, error));
    bool given = in[ONTO]->kind == FV_KIND_IMAGE;
    if (given == (p->spacing.count > 0))
        return fv_fail(error, FV_ERROR_USAGE, "give either onto or spacing = ..., %s", given ? "not both" : "one of them");
    if (!given && p->spacing.count != 1 && p->spacing.count != m->naxes)
        return fv_fail(error, FV_ERROR_USAGE, "spacing has %d numbers; give one, or %d (one per axis)", p->spacing.count,
                       m->naxes);
    return set(m, in, p, axis, error);
}

static fv_mapping mapping(const fv_need *n) {
    fv_mapping m = { 0 };
    int        axis[3];
    check(n->params, n->in, &m, axis, NULL);
    return m;
}

static void take_grid(const fv_mapping *m, const fv_image_type *onto, const int *axis, fv_image_type *out) {
    for (int k = 0; k < m->naxes; k++) {
        out->spacing[m->axis[k]] = onto->spacing[axis[k]];
        out->origin[m->axis[k]] = onto->origin[axis[k]];
    }
    memcpy(out->affine, onto->affine, sizeof out->affine);
    out->affine_code = onto->affine_code;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const resample *p = i->params;
    fv_image_type  *out = &i->out->image;
    fv_mapping      m;
    int             axis[3];
    int64_t         shape[3];
    double          size[3];
    FV_TRY(check(p, i->in, &m, axis, error));
    fv__spline_shape(&m, &i->in[IMAGE]->image, shape);
    for (int k = 0; k < m.naxes; k++)
        size[k] = p->spacing.count ? FV_MAX(floor((double)shape[k] / m.matrix[k][k] + 0.5), 1)
                                   : (double)i->in[ONTO]->image.shape[axis[k]];
    FV_TRY(fv__spline_sizes(&m, size, p->spacing.count ? "spacing" : "onto", out, error));
    out->dtype = fv__mapping_type(m.order, i->in[IMAGE]->image.dtype);
    if (!p->spacing.count)
        take_grid(&m, &i->in[ONTO]->image, axis, out);
    else {
        fv__spline_place(&m, out);
        for (int k = 0; k < m.naxes; k++) fv__place_step(out, m.axis[k], 0, m.matrix[k][k]);
    }
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const resample *p = i->params;
    fv_mapping      m;
    int             axis[3];
    FV_TRY(check(p, i->in, &m, axis, error));
    fv__spline_expand(&p->spline, &m, &i->in[IMAGE]->image, "resample", p->spacing.count ? "spacing = spacing, " : "onto, ",
                      text);
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_mapping m = mapping(n);
    in[IMAGE] = fv__mapping_need(&m, n);
    in[ONTO] = (fv_region){ .ndim = n->in[ONTO]->kind == FV_KIND_IMAGE ? n->in[ONTO]->image.ndim : 0 };
}

FV_MAPPING_WORK
static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(resample) = {
    .name = "resample",
    .family = "geometry",
    .brief = "bring an image to another spacing, or onto the grid of another image",
    .also = "resample_from_to, resample_to_output, ResampleImageFilter, Spacing, reslice, regrid, coregister, flirt -applyxfm",
    .doc =
        "Everything stays where it is in the world; only the places of the voxels change. With onto, the result has that "
        "image's shape, spacing, origin and matrix: a voxel goes through the matrix of onto to the world, and through that of "
        "the image back to its voxels (NIfTI orientation included). What lies outside the image is cval. With spacing, the "
        "centre of the "
        "first voxel and the directions of the axes stay, and an axis gets round(voxels * old / new) voxels. Nothing is smoothed "
        "before: for a much coarser grid, use gaussian first.\n" FV_SPLINE_DOC,
    .citation = "nibabel.processing.resample_from_to",
    .example = "phantom(\"t1\", [30, 60, 60]) |> resample(spacing = [1, 1.5, 1.5], order = 1) |> write(\"finer.nii.gz\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(resample),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .see = "zoom resize affine",
};
