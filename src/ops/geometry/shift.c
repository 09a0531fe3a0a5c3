/* shift: an image moved by a part of a voxel or by many, as scipy.ndimage.shift. */
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline  spline;
    fv_numbers shift;
} shift;

static const fv_param params[] = {
    FV_PARAM(shift, shift, .unit = "px",
             .doc = "by how much, one number or one per spatial axis; positive: towards higher indices"),
    FV_SPLINE_PARAMS("3", "constant"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to move" }, FV_INPUT_END };

static fv_status set(fv_mapping *m, fv_numbers by, fv_error *error) {
    FV_TRY(fv__numbers_spread(&by, m->naxes, "shift", error));
    for (int k = 0; k < m->naxes; k++) {
        m->offset[k] = -by.value[k];
        if (!isfinite(m->offset[k])) return fv_fail(error, FV_ERROR_USAGE, "shift = %g: must be finite", by.value[k]);
    }
    return FV_OK;
}

static fv_mapping mapping(const fv_need *n) {
    const shift *p = n->params;
    fv_mapping   m = { 0 };
    if (fv__spline_check(&p->spline, n->in[0], &m, NULL) == FV_OK) set(&m, p->shift, NULL);
    return m;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const shift *p = i->params;
    fv_mapping   m;
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(set(&m, p->shift, error));
    for (int k = 0; k < m.naxes; k++) i->out->image.shape[m.axis[k]] -= 2 * m.margin;
    i->out->image.dtype = fv__mapping_type(m.order, i->in[0]->image.dtype);
    fv__spline_place(&m, &i->out->image);
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const shift *p = i->params;
    fv_mapping   m;
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(set(&m, p->shift, error));
    fv__spline_expand(&p->spline, &m, &i->in[0]->image, "shift", "shift, ", text);
    return FV_OK;
}

FV_MAPPING_PASSES

const fv_op FV_OP(shift) = {
    .name = "shift",
    .family = "geometry",
    .brief = "move an image by whole voxels or parts of one",
    .also = "translate, imtranslate, roll, scipy.ndimage.shift, drift correction",
    .doc = "The voxel at i goes to i + shift. The grid stays where it is in the world, and what is in the image moves. "
           "To cut the image elsewhere without moving it, use slices, crop or pad.\n" FV_SPLINE_DOC,
    .citation = "scipy.ndimage.shift",
    .example = "phantom(\"cells\", [200, 200]) |> shift([10.5, -20.25]) |> write(\"moved.tif\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(shift),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "affine align spline_filter",
};
