/* What operators that interpolate have in common: the spline's parameters, and the prefilter that order 3 needs, which is a
 * step of its own in the pipeline. */
#ifndef FV_SPLINE_H
#define FV_SPLINE_H

#include "kernels/interpolate.h"
#include "op/window.h"

/* First member of the parameters of every such operator. */
typedef struct fv_spline {
    int64_t   order;
    fv_choice mode;
    double    cval;
    bool      prefilter;
    int64_t   margin; /* this and the next are given by the operator's own expansion */
    bool      partly; /* prefiltered along those axes only that need it */
} fv_spline;

/* scipy surrounds the image by so many voxels where a mode has no closed form of the prefilter. */
enum { FV_SPLINE_MARGIN = 12 };

#define FV_SPLINE_PARAMS(order_, mode_)                                                                                          \
    FV_PARAM(fv_spline, order, .def = order_, .min = 0, .max = 3,                                                                \
             .doc = "0: the nearest voxel, 1: linear, 3: a cubic spline through the voxels"),                                    \
        FV_PARAM(fv_spline, mode, .def = mode_, .choices = FV_EXTEND_CHOICES, .doc = FV_EXTEND_DOC),                             \
        FV_PARAM(fv_spline, cval, .def = "0", .doc = "the value outside, for the modes constant and grid-constant"),             \
        FV_PARAM(fv_spline, prefilter, .def = "true", .doc = "false: the image is spline_filter's result already (order 3)")
#define FV_SPLINE_OWN                                                                                                            \
    FV_PARAM(fv_spline, margin, .def = "0", .min = 0, .max = 64, .own = true, .doc = "voxels around the image"),                 \
        FV_PARAM(fv_spline, partly, .def = "false", .own = true, .doc = "prefiltered along some axes only")

#define FV_SPLINE_DOC                                                                                                            \
    "Order 0 keeps the element type, which suits labels and masks. Orders 1 and 3 give float32, or float64 for float64 and "     \
    "32 or 64-bit integers. (scipy rounds to the type of the input.)"

#define fv__spline_check FV_ISA_NAME(fv__spline_check)
#define fv__spline_expand FV_ISA_NAME(fv__spline_expand)
#define fv__spline_shape FV_ISA_NAME(fv__spline_shape)
#define fv__spline_place FV_ISA_NAME(fv__spline_place)
#define fv__spline_sizes FV_ISA_NAME(fv__spline_sizes)

/* That the order is one we have, and the image has 1 to 3 spatial axes; gives the mapping of the image onto itself. */
fv_status fv__spline_check(const fv_spline *s, const fv_type *image, fv_mapping *mapping, fv_error *error);
/* The image's shape without its margin, by spatial axis. */
void fv__spline_shape(const fv_mapping *m, const fv_image_type *type, int64_t shape[3]);
/* Spacing, origin and matrix of a result on the grid that the image had without its margin. */
void fv__spline_place(const fv_mapping *m, fv_image_type *type);
/* Checks a shape that was asked for and puts it into a type. */
fv_status fv__spline_sizes(const fv_mapping *m, const double *size, const char *name, fv_image_type *type, fv_error *error);
/* For order 3: the call of the operator with the same parameters (arguments: those that are not fv_spline's, "" or ended by a
 * comma and a blank) on the image that was prefiltered along the axes which need it. */
void fv__spline_expand(const fv_spline *s, const fv_mapping *m, const fv_image_type *type, const char *name,
                       const char *arguments, fv_bytes *text);

/* The passes of an operator whose file has `static fv_mapping mapping(const fv_need *n)`. */
#define FV_MAPPING_PASSES                                                                                                        \
    FV_MAPPING_WORK                                                                                                              \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv_mapping m = mapping(n);                                                                                               \
        in[0] = fv__mapping_need(&m, n);                                                                                         \
    }                                                                                                                            \
    static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };
/* The same without need and passes. */
#define FV_MAPPING_WORK                                                                                                          \
    static size_t scratch(const fv_need *n) {                                                                                    \
        fv_mapping m = mapping(n);                                                                                               \
        return fv__mapping_scratch(&m, n);                                                                                       \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv_mapping m = mapping(&r->need);                                                                                        \
        fv__mapping_run(&m, r);                                                                                                  \
        return FV_OK;                                                                                                            \
    }                                                                                                                            \
    static double cost(const fv_need *n) {                                                                                       \
        fv_mapping m = mapping(n);                                                                                               \
        return fv__mapping_cost(&m, n);                                                                                          \
    }

#endif
