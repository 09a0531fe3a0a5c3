/* Polar and log-polar coordinates about a centre in the plane of the last two spatial axes: polar and log_polar. */
#ifndef FV_RINGS_H
#define FV_RINGS_H

#include "ops/geometry/spline.h"

typedef struct fv_rings {
    fv_spline  spline;
    fv_numbers center, output_shape;
    double     radius;
} fv_rings;

#define FV_RINGS_PARAMS                                                                                                          \
    FV_PARAM(fv_rings, center, .def = "", .unit = "px",                                                                          \
             .doc = "place of the centre, y and x; left out: the middle of the image"),                                          \
        FV_PARAM(fv_rings, radius, .def = "0", .min = 0, .unit = "px",                                                           \
                 .doc = "of the circle that is unrolled; 0: that through the corners"),                                          \
        FV_PARAM(fv_rings, output_shape, .def = "", .min = 1, .max = 1e9, .unit = "px",                                          \
                 .doc = "angles and radii of the result; left out: 360 and the radius, rounded up"),                             \
        FV_SPLINE_PARAMS("1", "grid-constant"), FV_SPLINE_OWN

#define fv__rings_infer FV_ISA_NAME(fv__rings_infer)
#define fv__rings_expand FV_ISA_NAME(fv__rings_expand)
#define fv__rings_need FV_ISA_NAME(fv__rings_need)
#define fv__rings_scratch FV_ISA_NAME(fv__rings_scratch)
#define fv__rings_run FV_ISA_NAME(fv__rings_run)
#define fv__rings_cost FV_ISA_NAME(fv__rings_cost)

fv_status fv__rings_infer(fv_infer *i, bool logarithmic, fv_error *error);
fv_status fv__rings_expand(fv_infer *i, const char *name, bool logarithmic, fv_bytes *text, fv_error *error);
void      fv__rings_need(const fv_need *n, bool logarithmic, fv_region *in);
size_t    fv__rings_scratch(const fv_need *n, bool logarithmic);
fv_status fv__rings_run(fv_run *r, bool logarithmic, fv_error *error);
double    fv__rings_cost(const fv_need *n);

/* All that an operator's file needs beside its descriptor. */
#define FV_RINGS_OPERATOR(NAME, LOGARITHMIC)                                                                                     \
    static const fv_param params[] = { FV_RINGS_PARAMS, FV_PARAM_END };                                                          \
    static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to unroll; planes of a volume one by one" },      \
                                       FV_INPUT_END };                                                                           \
    static fv_status      infer(fv_infer *i, fv_error *error) { return fv__rings_infer(i, LOGARITHMIC, error); }                 \
    static fv_status      unroll(fv_infer *i, fv_bytes *text, fv_error *error) {                                                 \
             return fv__rings_expand(i, NAME, LOGARITHMIC, text, error);                                                         \
    }                                                                                                                            \
    static void          need(const fv_need *n, fv_region *in) { fv__rings_need(n, LOGARITHMIC, in); }                           \
    static size_t        scratch(const fv_need *n) { return fv__rings_scratch(n, LOGARITHMIC); }                                 \
    static fv_status     run(fv_run *r, fv_error *error) { return fv__rings_run(r, LOGARITHMIC, error); }                        \
    static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

#endif
