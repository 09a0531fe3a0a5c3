/* rotate: an image turned in a plane, as scipy.ndimage.rotate. */
#include "base/math.h"
#include "op/axes.h"
#include "op/place.h"
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline   spline;
    double      angle;
    const char *axes;
    bool        reshape;
} rotate;

static const fv_param params[] = {
    FV_PARAM(rotate, angle, .unit = "degrees", .doc = "by how much"),
    FV_PARAM(rotate, axes, .def = "", .doc = "the plane that is turned, two spatial axes as \"z x\"; left out: the last two"),
    FV_PARAM(rotate, reshape, .def = "true", .doc = "make the result large enough for all of the turned image"),
    FV_SPLINE_PARAMS("3", "constant"),
    FV_SPLINE_OWN,
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to turn" }, FV_INPUT_END };

/* Cosine and sine of degrees, exact at right angles. */
static void turn(double degrees, double *cosine, double *sine) {
    const double radian = 0x1.1df46a2529d39p-6;
    double       rest = fmod(degrees, 360);
    if (rest < 0) rest += 360;
    *cosine = rest == 90 || rest == 270 ? 0 : rest == 0 ? 1 : rest == 180 ? -1 : fv__cos(rest * radian);
    *sine = rest == 0 || rest == 180 ? 0 : rest == 90 ? 1 : rest == 270 ? -1 : fv__sin(rest * radian);
}

/* Numbers of the plane's axes among the spatial ones, in order. */
static fv_status plane_of(const fv_mapping *m, const fv_image_type *type, const rotate *p, int plane[2], fv_error *error) {
    const char *words = p->axes ? p->axes : "";
    int         axis[FV_MAX_DIMS], count, found = 0;
    FV_TRY(fv__axes_pick(type, words, axis, &count, error));
    if (!*words && count > 2) {
        axis[0] = axis[count - 2];
        axis[1] = axis[count - 1];
        count = 2;
    }
    for (int k = 0; k < m->naxes; k++)
        for (int i = 0; i < count; i++)
            if (m->axis[k] == axis[i] && found < 2) plane[found++] = k;
    if (count != 2 || found != 2)
        return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": a plane has two spatial axes, as \"y x\"%s", words,
                       *words ? "" : "; the image has only one");
    return FV_OK;
}

static fv_status set(fv_mapping *m, const fv_image_type *type, const rotate *p, double size[3], fv_error *error) {
    int     plane[2];
    int64_t shape[3];
    double  c, s;
    if (!isfinite(p->angle)) return fv_fail(error, FV_ERROR_USAGE, "angle = %g: must be finite", p->angle);
    FV_TRY(plane_of(m, type, p, plane, error));
    fv__spline_shape(m, type, shape);
    turn(p->angle, &c, &s);
    for (int k = 0; k < m->naxes; k++) size[k] = (double)shape[k];
    int    a = plane[0], b = plane[1];
    double height = size[a], width = size[b];
    if (p->reshape) {
        const double y[4] = { 0, 0, height, height }, x[4] = { 0, width, 0, width };
        double       low[2] = { 0, 0 }, high[2] = { 0, 0 };
        for (int i = 1; i < 4; i++) {
            double v[2] = { c * y[i] + s * x[i], -s * y[i] + c * x[i] };
            for (int k = 0; k < 2; k++) {
                low[k] = FV_MIN(low[k], v[k]);
                high[k] = FV_MAX(high[k], v[k]);
            }
        }
        for (int k = 0; k < 2; k++) size[plane[k]] = floor(high[k] - low[k] + 0.5);
    }
    m->matrix[a][a] = m->matrix[b][b] = c;
    m->matrix[a][b] = s;
    m->matrix[b][a] = -s;
    m->offset[a] = (height - 1) / 2 - (c * ((size[a] - 1) / 2) + s * ((size[b] - 1) / 2));
    m->offset[b] = (width - 1) / 2 - (-s * ((size[a] - 1) / 2) + c * ((size[b] - 1) / 2));
    return FV_OK;
}

static fv_mapping mapping(const fv_need *n) {
    const rotate *p = n->params;
    fv_mapping    m = { 0 };
    double        size[3];
    if (fv__spline_check(&p->spline, n->in[0], &m, NULL) == FV_OK) set(&m, &n->in[0]->image, p, size, NULL);
    return m;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const rotate  *p = i->params;
    fv_image_type *out = &i->out->image;
    fv_mapping     m;
    double         size[3];
    int64_t        shape[3];
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(set(&m, &i->in[0]->image, p, size, error));
    FV_TRY(fv__spline_sizes(&m, size, "angle", out, error));
    fv__spline_shape(&m, &i->in[0]->image, shape);
    out->dtype = fv__mapping_type(m.order, i->in[0]->image.dtype);
    fv__spline_place(&m, out);
    for (int k = 0; k < m.naxes; k++) fv__place_step(out, m.axis[k], ((double)shape[k] - size[k]) / 2, 1); /* about the centre */
    return FV_OK;
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const rotate *p = i->params;
    fv_mapping    m;
    double        size[3];
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(set(&m, &i->in[0]->image, p, size, error));
    fv__spline_expand(&p->spline, &m, &i->in[0]->image, "rotate", "angle, axes, reshape, ", text);
    return FV_OK;
}

FV_MAPPING_PASSES

const fv_op FV_OP(rotate) = {
    .name = "rotate",
    .family = "geometry",
    .brief = "turn an image in a plane by any angle",
    .also = "scipy.ndimage.rotate, imrotate, imrotate3, skimage.transform.rotate, getRotationMatrix2D",
    .doc = "The image is turned about its centre, which stays where it is in the world; a positive angle turns the first axis of "
           "the "
           "plane towards the second one's low indices (in a picture, whose y points down, anticlockwise). Angles are those "
           "between voxels: "
           "where the spacings of the two axes differ, resample to equal ones first. rotate90 turns by right angles without "
           "interpolation.\n" FV_SPLINE_DOC,
    .citation = "scipy.ndimage.rotate",
    .example = "phantom(\"cells\", [200, 200]) |> rotate(30) |> write(\"turned.tif\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(rotate),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "rotate90 affine shift spline_filter",
};
