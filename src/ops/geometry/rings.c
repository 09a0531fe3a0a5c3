/* Polar coordinates: angles along the first axis of the plane, radii along the second, as skimage.transform.warp_polar. */
#include "ops/geometry/rings.h"
#include "base/math.h"
#include "op/axes.h"
#include "op/place.h"
#include <stdio.h>

typedef struct {
    fv_mapping m;
    double     center[2], radius, per_angle, per_radius; /* per_: indices for one radian, and for one voxel or its logarithm */
    double     size[2];
    bool       logarithmic;
} rings;

static fv_status set(rings *g, const fv_type *image, const fv_rings *p, bool logarithmic, fv_error *error) {
    FV_TRY(fv__spline_check(&p->spline, image, &g->m, error));
    if (g->m.naxes < 2) return fv_fail(error, FV_ERROR_USAGE, "the image has one spatial axis: polar coordinates need a plane");
    for (int k = 0; k < 2; k++) g->m.axis[k] = g->m.axis[g->m.naxes - 2 + k];
    g->m.naxes = 2;
    memset(g->m.matrix, 0, sizeof g->m.matrix); /* both axes are interpolated */
    int64_t shape[3];
    fv__spline_shape(&g->m, &image->image, shape);
    if (p->center.count && p->center.count != 2)
        return fv_fail(error, FV_ERROR_USAGE, "center has %d numbers; it needs two, y and x", p->center.count);
    for (int k = 0; k < 2; k++) {
        g->center[k] = p->center.count ? p->center.value[k] : (double)shape[k] / 2 - 0.5;
        if (!isfinite(g->center[k])) return fv_fail(error, FV_ERROR_USAGE, "center = %g: must be finite", g->center[k]);
    }
    double height = (double)shape[0] / 2, width = (double)shape[1] / 2;
    g->radius = p->radius > 0 ? p->radius : sqrt(height * height + width * width);
    if (!(g->radius < 0x1p30) || (logarithmic && !(g->radius > 1)))
        return fv_fail(error, FV_ERROR_USAGE, "radius = %g: must be %s", g->radius,
                       logarithmic ? "larger than 1" : "less than 2^30");
    if (p->output_shape.count && p->output_shape.count != 2)
        return fv_fail(error, FV_ERROR_USAGE, "output_shape has %d numbers; it needs two, angles and radii",
                       p->output_shape.count);
    g->size[0] = p->output_shape.count ? p->output_shape.value[0] : 360;
    g->size[1] = p->output_shape.count ? p->output_shape.value[1] : ceil(g->radius);
    g->per_angle = g->size[0] / (2 * 0x1.921fb54442d18p+1);
    g->per_radius = g->size[1] / (logarithmic ? fv__ln(g->radius) : g->radius);
    g->logarithmic = logarithmic;
    return FV_OK;
}

fv_status fv__rings_infer(fv_infer *i, bool logarithmic, fv_error *error) {
    rings          g;
    fv_image_type *out = &i->out->image;
    FV_TRY(set(&g, i->in[0], i->params, logarithmic, error));
    int angle = g.m.axis[0], radius = g.m.axis[1];
    for (int d = 0; d < out->ndim; d++)
        if (!strcmp(out->axis[d], "angle") || !strcmp(out->axis[d], "radius"))
            return fv_fail(error, FV_ERROR_USAGE, "the image has an axis %s already", out->axis[d]);
    FV_TRY(fv__spline_sizes(&g.m, g.size, "output_shape", out, error));
    out->dtype = fv__mapping_type(g.m.order, i->in[0]->image.dtype);
    fv__place_forget_world(out); /* a place in it is no place in the world */
    snprintf(out->axis[angle], sizeof out->axis[angle], "angle");
    snprintf(out->axis[radius], sizeof out->axis[radius], "radius");
    snprintf(out->unit[angle], sizeof out->unit[angle], "degree");
    out->spacing[angle] = 360 / g.size[0];
    out->spacing[radius] = logarithmic ? 1 : out->spacing[radius] / g.per_radius;
    if (logarithmic) *out->unit[radius] = 0;
    out->origin[angle] = out->origin[radius] = 0;
    return FV_OK;
}

fv_status fv__rings_expand(fv_infer *i, const char *name, bool logarithmic, fv_bytes *text, fv_error *error) {
    const fv_rings *p = i->params;
    rings           g;
    char            arguments[200];
    FV_TRY(set(&g, i->in[0], p, logarithmic, error));
    snprintf(arguments, sizeof arguments, "center = [%.17g, %.17g], radius = %.17g, output_shape = [%.17g, %.17g], ", g.center[0],
             g.center[1], g.radius, g.size[0], g.size[1]);
    fv__spline_expand(&p->spline, &g.m, &i->in[0]->image, name, arguments, text);
    return FV_OK;
}

static double distance(const rings *g, double index) {
    return g->logarithmic ? fv__exp(index / g->per_radius) : index / g->per_radius;
}

/* Bounds of a function of the angle that is largest at `top` and least opposite, over angles a to b. */
static void bounds(double a, double b, double top, double *low, double *high) {
    const double pi = 0x1.921fb54442d18p+1, near = 1e-9;
    double       first = fv__cos(a - top), last = fv__cos(b - top);
    *low = FV_MIN(first, last);
    *high = FV_MAX(first, last);
    if (floor((b - top + near) / (2 * pi)) >= ceil((a - top - near) / (2 * pi))) *high = 1;
    if (floor((b - top - pi + near) / (2 * pi)) >= ceil((a - top - pi - near) / (2 * pi))) *low = -1;
}

static void box(const rings *g, const fv_need *n, fv_region *in) {
    int    angle = g->m.axis[0], radius = g->m.axis[1];
    double a = (double)n->region.start[angle] / g->per_angle;
    double b = (double)(n->region.start[angle] + n->region.size[angle] - 1) / g->per_angle;
    double near = distance(g, (double)n->region.start[radius]);
    double far = distance(g, (double)(n->region.start[radius] + n->region.size[radius] - 1)), low[2], high[2];
    for (int k = 0; k < 2; k++) { /* sine, then cosine */
        bounds(a, b, k ? 0 : 0x1.921fb54442d18p+0, &low[k], &high[k]);
        double slack = 1e-9 * (1 + far);
        low[k] = g->center[k] + (low[k] < 0 ? low[k] * far : low[k] * near) - slack;
        high[k] = g->center[k] + (high[k] > 0 ? high[k] * far : high[k] * near) + slack;
    }
    fv__points_need(&g->m, &n->in[0]->image, low, high, in);
}

void fv__rings_need(const fv_need *n, bool logarithmic, fv_region *in) {
    rings g;
    if (set(&g, n->in[0], n->params, logarithmic, NULL) == FV_OK) box(&g, n, in);
}

size_t fv__rings_scratch(const fv_need *n, bool logarithmic) {
    rings     g;
    fv_region in = n->region;
    if (set(&g, n->in[0], n->params, logarithmic, NULL) != FV_OK) return 0;
    box(&g, n, &in);
    return fv__points_scratch(&g.m, &n->in[0]->image, &in, &n->region);
}

static fv_status place(const void *context, const int64_t *position, int64_t n, double *const coordinate[3], fv_error *error) {
    (void)error;
    const rings *g = context;
    double       angle = (double)position[g->m.axis[0]] / g->per_angle, sine = fv__sin(angle), cosine = fv__cos(angle);
    for (int64_t i = 0; i < n; i++) {
        double r = distance(g, (double)(position[g->m.axis[1]] + i));
        coordinate[0][i] = r * sine + g->center[0];
        coordinate[1][i] = r * cosine + g->center[1];
    }
    return FV_OK;
}

fv_status fv__rings_run(fv_run *r, bool logarithmic, fv_error *error) {
    rings g;
    FV_TRY(set(&g, r->need.in[0], r->need.params, logarithmic, error));
    fv_points points = { .mapping = g.m, .place = place, .context = &g };
    return fv__points_run(&points, r, error);
}

double fv__rings_cost(const fv_need *n) { return ((const fv_rings *)n->params)->spline.order == 3 ? 15 : 4; }
