/* cone: the geometry of a point source and a flat detector, as in laboratory and dental CT. */
#include "ops/tomography/scan.h"

typedef struct {
    fv_list   angles;
    double    source, detector, pitch;
    fv_choice unit;
    fv_list   center;
    double    offset;
} cone;

static const fv_param params[] = {
    FV_PARAM(cone, angles, .doc = "angle of each projection: a list, or range(0, 360, count = 360)"),
    FV_PARAM(cone, source, .above = true, .max = 1e9, .unit = "voxels",
             .doc = "distance of the source from the axis of rotation"),
    FV_PARAM(cone, detector, .min = 0, .max = 1e9, .unit = "voxels", .doc = "distance of the detector from the axis"),
    FV_PARAM(cone, pitch, .def = "1", .above = true, .max = 1e6, .unit = "voxels", .doc = "width of a detector pixel"),
    FV_PARAM(cone, unit, .def = "deg", .choices = "deg|rad", .doc = "degrees or radians"),
    FV_PARAM(cone, center, .def = "", .unit = "px",
             .doc = "detector column at which the axis of rotation is seen, as find_center prints it; left out: the middle"),
    FV_PARAM(cone, offset, .def = "0", .unit = "px",
             .doc = "detector row at which the plane of the source is seen, counted from the middle row"),
    FV_PARAM_END,
};

static fv_status geometry(const void *parameters, fv_geometry *out, fv_error *error) {
    const cone *p = parameters;
    FV_TRY(fv__angles_check(&p->angles, p->unit.index == 1, error));
    if (p->center.count > 1)
        return fv_fail(error, FV_ERROR_USAGE, "center has %lld numbers; a cone has one", (long long)p->center.count);
    if (!isfinite(p->offset)) return fv_fail(error, FV_ERROR_USAGE, "offset must be finite");
    *out = (fv_geometry){ .beam = FV_GEOMETRY_CONE,
                          .angles = p->angles,
                          .radians = p->unit.index == 1,
                          .center = p->center,
                          .source = p->source,
                          .detector = p->detector,
                          .pitch = p->pitch,
                          .offset = p->offset };
    return FV_OK;
}

const fv_op FV_OP(cone) = {
    .name = "cone",
    .family = "tomography",
    .brief = "the geometry of projections from a point source onto a flat detector (cone beam, fan beam)",
    .version = 1,
    .params = params,
    .params_size = sizeof(cone),
    .result = FV_KIND_GEOMETRY,
    .geometry = geometry,
    .doc = "Let s = (x - mx) cos(a) - (y - my) sin(a) be the place of a voxel across the beam, t = (x - mx) sin(a) + (y - "
           "my) cos(a) its place towards the detector, and m = (source + detector) / (source + t) its magnification. It is "
           "then seen at column center + m s / pitch and row middle + offset + m (z - mz) / pitch. With a distant source "
           "this is parallel(...).",
    .example = "g = cone(range(0, 358, 2), 300, 100)\n"
               "xray(phantom(\"shepp-logan\", [1, 128, 128])[0], g) |> write(\"fan.tif\")",
    .see = "parallel fdk xray find_center",
};
