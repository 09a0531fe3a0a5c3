/* parallel: the geometry of parallel rays, as at a synchrotron or in an electron microscope. */
#include "ops/tomography/scan.h"

typedef struct {
    fv_list   angles;
    fv_choice unit;
    fv_list   center;
} parallel;

static const fv_param params[] = {
    FV_PARAM(parallel, angles, .doc = "angle of each projection: a list, or range(-73, 73, 2)"),
    FV_PARAM(parallel, unit, .def = "deg", .choices = "deg|rad", .doc = "degrees or radians"),
    FV_PARAM(parallel, center, .def = "", .unit = "px", .late = true,
             .doc = "detector column of the axis of rotation: one number (find_center computes it) or one per angle; left "
                    "out: the middle"),
    FV_PARAM_END,
};

static fv_status geometry(const void *parameters, fv_geometry *out, fv_error *error) {
    const parallel *p = parameters;
    FV_TRY(fv__angles_check(&p->angles, p->unit.index == 1, error));
    if (p->center.count > 1 && p->center.count != p->angles.count)
        return fv_fail(error, FV_ERROR_USAGE, "center has %lld numbers for %lld angles; give one, or one per angle",
                       (long long)p->center.count, (long long)p->angles.count);
    *out = (fv_geometry){ .beam = FV_GEOMETRY_PARALLEL, .angles = p->angles, .radians = p->unit.index == 1, .center = p->center };
    return FV_OK;
}

const fv_op FV_OP(parallel) = {
    .name = "parallel",
    .family = "tomography",
    .brief = "the geometry of projections with parallel rays",
    .also = "create_proj_geom",
    .version = 1,
    .params = params,
    .params_size = sizeof(parallel),
    .result = FV_KIND_GEOMETRY,
    .geometry = geometry,
    .doc = "At angle a, the voxel in row y and column x of a slice is seen at detector column center + (x - mx) cos(a) - (y "
           "- my) sin(a), where my and mx are the middle of the slice, (n - 1) / 2. This is the direction of rotation of "
           "scikit-image and TomoPy. Slice z is seen by detector row z. A list of centres corrects projections that are "
           "shifted sideways.",
    .example = "xray(phantom(\"shepp-logan\", [128, 128]), parallel(angles = range(0, 179))) |> write(\"sinogram.tif\")",
    .see = "cone fbp xray find_center range",
};
