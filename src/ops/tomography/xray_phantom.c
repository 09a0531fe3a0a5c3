/* xray_phantom: the exact projections of the Shepp-Logan head, to judge projectors and reconstructions by. */
#include "base/math.h"
#include "kernels/shepp_logan.h"
#include "op/axes.h"
#include "op/source.h"
#include "ops/tomography/cone_scan.h"

typedef struct {
    fv_numbers  shape;
    fv_geometry geometry;
    int64_t     columns, rows;
} xray_phantom;

static const fv_param params[] = {
    FV_PARAM_SHAPE(xray_phantom),
    FV_PARAM(xray_phantom, geometry, .doc = "parallel(angles = range(0, 179)) or cone(range(0, 359), 500, 200)"),
    FV_PARAM(xray_phantom, columns, .def = "0", .min = 0, .max = 8192, .unit = "px",
             .doc = "width of the detector; 0: the longer side of a slice"),
    FV_PARAM(xray_phantom, rows, .def = "0", .min = 0, .max = 8192, .unit = "px",
             .doc = "height of the detector of a cone beam; 0: as many rows as slices"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    xray_phantom *p = i->params;
    fv_type       volume = { 0 };
    FV_TRY(fv__source_type(&p->shape, FV_FLOAT32, 2, 3, &volume, error));
    const fv_image_type *in = &volume.image;
    bool                 flat = in->ndim == 2, cone = p->geometry.beam == FV_GEOMETRY_CONE;
    if (p->rows && (flat || !cone))
        return fv_fail(error, FV_ERROR_USAGE, "rows = %lld: only a cone through a volume has detector rows of its own",
                       (long long)p->rows);
    if (!p->columns) p->columns = FV_MAX(in->shape[in->ndim - 2], in->shape[in->ndim - 1]);
    int64_t shape[3] = { p->geometry.angles.count, flat ? p->columns : p->rows ? p->rows : in->shape[0], p->columns };
    *i->out = (fv_type){ .kind = FV_KIND_IMAGE };
    fv_image_type_init(&i->out->image, FV_FLOAT32, in->ndim, shape);
    FV_TRY(fv__axes_name(&i->out->image, flat ? "angle x" : "angle z x", error));
    fv_scan scan;
    FV_TRY(fv__scan_find(&i->out->image, &p->geometry, &scan, error));
    return cone ? fv__cone_check(&p->geometry, &i->out->image, in, error) : FV_OK;
}

/* A ray from a point in a direction of length 1, in voxels from the middle of the volume: x, y (downwards) and z. */
typedef struct ray {
    double from[3], along[3];
} ray;

/* Density times length inside one ellipsoid: in its own coordinates it is the unit ball. */
static double inside(const fv_ellipsoid *e, const ray *r, const double half[3]) {
    double q[2][3];
    for (int k = 0; k < 2; k++) {
        const double *v = k ? r->along : r->from;
        double        a = v[0] / half[0] - (k ? 0 : e->at_x), b = -v[1] / half[1] - (k ? 0 : e->at_y);
        q[k][0] = (a * e->cosine + b * e->sine) / e->x;
        q[k][1] = (b * e->cosine - a * e->sine) / e->y;
        q[k][2] = half[2] > 0 ? (v[2] / half[2] - (k ? 0 : e->at_z)) / e->z : 0;
    }
    double speed = q[1][0] * q[1][0] + q[1][1] * q[1][1] + q[1][2] * q[1][2];
    double across = q[0][0] * q[1][0] + q[0][1] * q[1][1] + q[0][2] * q[1][2];
    double apart = q[0][0] * q[0][0] + q[0][1] * q[0][1] + q[0][2] * q[0][2] - 1;
    double rest = across * across - speed * apart;
    return rest > 0 ? 2 * e->density * sqrt(rest) / speed : 0;
}

/* From coordinates across the beam (s), towards the detector (t) and along the axis (z) to those of the volume. */
static void turn(double s, double t, double z, double cosine, double sine, double to[3]) {
    to[0] = s * cosine + t * sine;
    to[1] = t * cosine - s * sine;
    to[2] = z;
}

static ray ray_of(const xray_phantom *p, const fv_image_type *out, int64_t a, int64_t v, int64_t u) {
    const fv_geometry *g = &p->geometry;
    double             angle = g->angles.value[a] * (g->radians ? 1 : 0x1.1df46a2529d39p-6); /* pi / 180 */
    double             cosine = fv__cos(angle), sine = fv__sin(angle), center = (double)(p->columns - 1) / 2;
    double             middle = out->ndim < 3 ? 0 : (double)(out->shape[1] - 1) / 2;
    ray                r = { { 0 }, { 0 } };
    if (g->center.count) center = g->center.value[g->center.count > 1 ? a : 0];
    double s = (double)u - center, z = (double)v - middle;
    if (g->beam != FV_GEOMETRY_CONE) {
        turn(s, 0, z, cosine, sine, r.from);
        turn(0, 1, 0, cosine, sine, r.along);
        return r;
    }
    double way = g->source + g->detector, dz = out->ndim < 3 ? 0 : (z - g->offset) * g->pitch, ds = s * g->pitch;
    double length = sqrt(way * way + ds * ds + dz * dz);
    turn(0, -g->source, 0, cosine, sine, r.from);
    turn(ds / length, way / length, dz / length, cosine, sine, r.along);
    return r;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const xray_phantom  *p = r->need.params;
    const fv_image_type *type = &r->need.out->image;
    const fv_block      *out = r->out;
    int                  last = type->ndim - 1, row = last == 2 ? 1 : -1, n = p->shape.count;
    double               half[3] = { p->shape.value[n - 1] / 2, p->shape.value[n - 2] / 2, n == 3 ? p->shape.value[0] / 2 : 0 };
    int64_t              first, count;
    fv__scan_slices(&out->region, row, &first, &count);
    for (int64_t a = 0; a < out->region.size[0]; a++)
        for (int64_t v = 0; v < count; v++)
            for (int64_t u = 0; u < out->region.size[last]; u++) {
                ray    line = ray_of(p, type, out->region.start[0] + a, first + v, out->region.start[last] + u);
                double sum = 0;
                for (int k = 0; k < FV_SHEPP_LOGAN_PARTS; k++) sum += inside(&fv_shepp_logan[k], &line, half);
                ((float *)out->data)[a * out->stride[0] + (row < 0 ? 0 : v * out->stride[1]) + u] = (float)sum;
            }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 300;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };

const fv_op FV_OP(xray_phantom) = {
    .name = "xray_phantom",
    .family = "tomography",
    .stage = "simulate",
    .brief = "exact projections of the Shepp-Logan head",
    .version = 1,
    .params = params,
    .params_size = sizeof(xray_phantom),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "What xray(phantom(\"shepp-logan\", shape), geometry) approximates: the line integrals through the ellipses of a "
           "slice, or the ellipsoids of a volume, by formula, along the middle of every detector pixel. The result is "
           "float32.",
    .citation = "Kak and Slaney, Principles of Computerized Tomographic Imaging, 1988, section 3.1",
    .example = "xray_phantom([128, 128], parallel(range(0, 179))) |> write(\"sinogram.tif\")",
    .see = "xray phantom parallel cone",
};
