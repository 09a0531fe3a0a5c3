/* zoom: more or fewer voxels for the same picture, as scipy.ndimage.zoom. */
#include "op/place.h"
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline  spline;
    fv_numbers zoom;
    bool       grid_mode;
} zoom;

static const fv_param params[] = {
    FV_PARAM(zoom, zoom, .min = 0, .above = true, .max = 1e6,
             .doc = "voxels of the result for each one of the image, one number or one per spatial axis"),
    FV_SPLINE_PARAMS("3", "constant"),
    FV_PARAM(
        zoom, grid_mode, .def = "false",
        .doc = "false: the centres of the first and last voxels stay where they are; true: the outer borders of these voxels do"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to enlarge or reduce" }, FV_INPUT_END };

/* Voxels of the result: rounded to even half way, as Python does. */
static void sizes(const fv_mapping *m, const fv_image_type *in, const zoom *p, double *size) {
    int64_t shape[3];
    fv__spline_shape(m, in, shape);
    for (int k = 0; k < m->naxes; k++) {
        double wanted = (double)shape[k] * p->zoom.value[p->zoom.count == 1 ? 0 : k], down = floor(wanted);
        size[k] = wanted - down > 0.5 || (wanted - down == 0.5 && fmod(down, 2) != 0) ? down + 1 : down;
    }
}

static void set(fv_mapping *m, const fv_image_type *in, const zoom *p, const double *size) {
    int64_t shape[3];
    fv__spline_shape(m, in, shape);
    m->before = p->grid_mode ? 0.5 : 0;
    for (int k = 0; k < m->naxes; k++) {
        double less = p->grid_mode ? 0 : 1;
        m->matrix[k][k] = size[k] - less == 0 ? 1 : ((double)shape[k] - less) / (size[k] - less);
        m->offset[k] = p->grid_mode ? -0.5 : 0;
    }
}

static fv_mapping mapping(const fv_need *n) {
    const zoom *p = n->params;
    fv_mapping  m = { 0 };
    double      size[3];
    if (fv__spline_check(&p->spline, n->in[0], &m, NULL) != FV_OK) return m;
    sizes(&m, &n->in[0]->image, p, size);
    set(&m, &n->in[0]->image, p, size);
    return m;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    zoom          *p = i->params;
    fv_image_type *out = &i->out->image;
    fv_mapping     m;
    double         size[3];
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(fv__numbers_spread(&p->zoom, m.naxes, "zoom", error));
    sizes(&m, &i->in[0]->image, p, size);
    FV_TRY(fv__spline_sizes(&m, size, "zoom", out, error));
    set(&m, &i->in[0]->image, p, size);
    for (int k = 0; k < m.naxes; k++) {
        double step = m.matrix[k][k], start = m.before * step + m.offset[k];
        if (step == 0) step = 1 / size[k]; /* one voxel becomes many at the same place: share its width among them */
        fv__place_step(out, m.axis[k], start + (double)m.margin, step);
    }
    out->dtype = fv__mapping_type(m.order, i->in[0]->image.dtype);
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const zoom *p = i->params;
    fv_mapping  m;
    double      size[3];
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    if (p->zoom.count != 1 && p->zoom.count != m.naxes) return FV_OK; /* infer says it */
    sizes(&m, &i->in[0]->image, p, size);
    set(&m, &i->in[0]->image, p, size);
    fv__spline_expand(&p->spline, &m, &i->in[0]->image, "zoom", "zoom, grid_mode = grid_mode, ", text);
    return FV_OK;
}

FV_MAPPING_PASSES

const fv_op FV_OP(zoom) = {
    .name = "zoom",
    .family = "geometry",
    .brief = "enlarge or reduce an image by factors",
    .also = "scipy.ndimage.zoom, rescale image, scale, enlarge, magnify, upsample, downsample",
    .doc = "Each spatial axis gets round(voxels * zoom) voxels. Spacing and origin follow, so that everything stays where it is "
           "in the "
           "world. Nothing is smoothed before an image gets smaller: resize does that.\n" FV_SPLINE_DOC,
    .citation = "scipy.ndimage.zoom",
    .example = "phantom(\"cells\", [100, 100]) |> zoom(2.5) |> write(\"larger.tif\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(zoom),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .see = "resize resample bin affine spline_filter",
};
