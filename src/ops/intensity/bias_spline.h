/* The smooth field of N4: a cubic B-spline over an image, given by a lattice of control points.
 *
 * All is separable, and an image of fewer than three axes has missing ones with one control point each. A value of the field is
 * always summed in the same order, along z, y and then x: it does not depend on which part of the image is asked for.
 */
#ifndef FV_BIAS_SPLINE_H
#define FV_BIAS_SPLINE_H

#include "base/isa.h"
#include "op/op.h"
#include "op/scratch.h"

/* Parameters that all operators of the field share. */
typedef struct fv__bias {
    fv_numbers shrink, iterations, shape; /* shape: of the whole image along its spatial axes, if only some voxels are given */
    double     tolerance, width, noise;
    int64_t    points, bins;
} fv__bias;

#define FV_BIAS_PARAMS                                                                                                           \
    FV_PARAM(fv__bias, shrink, .def = "", .min = 1, .max = 1e6, .unit = "px",                                                    \
             .doc = "the field is estimated on every so-many-th voxel along each axis, one number or one for each; left out: "   \
                    "the least by which at most a million voxels are left"),                                                     \
        FV_PARAM(fv__bias, iterations, .def = "[50, 50, 50, 50]", .min = 1, .max = 10000,                                        \
                 .doc = "most rounds at each level; from level to level the control points become twice as dense"),              \
        FV_PARAM(fv__bias, tolerance, .def = "0.001", .min = 0, .max = 1,                                                        \
                 .doc = "a level ends before when a round changes the field by less: the coefficient of variation of the "       \
                        "quotient of both; 0: never"),                                                                           \
        FV_PARAM(fv__bias, width, .def = "0.15", .min = 0, .max = 10, .above = true,                                             \
                 .doc = "full width at half maximum of the Gaussian, in the logarithm of grey values, by which the field is "    \
                        "thought to blur the histogram"),                                                                        \
        FV_PARAM(fv__bias, noise, .def = "0.01", .min = 0, .max = 10, .above = true,                                             \
                 .doc = "of the Wiener filter that sharpens the histogram"),                                                     \
        FV_PARAM(fv__bias, points, .def = "4", .min = 4, .max = 64, .doc = "control points along each axis at the first level"), \
        FV_PARAM(fv__bias, bins, .def = "200", .min = 16, .max = 2048, .doc = "of the histogram")
#define FV_BIAS_SAME "iterations = iterations, tolerance = tolerance, width = width, noise = noise, points = points, bins = bins"

enum { FV__BIAS_WIDTH = 4, FV__BIAS_LEVELS = 10 };

/* One of z, y and x: voxels, and the control points that they depend on. */
typedef struct fv__bias_axis {
    int64_t  n, points;
    int      width;  /* points that a voxel depends on: 4, or 1 of a missing axis */
    int64_t *first;  /* by voxel: the first of them */
    double  *weight; /* by point and voxel: weight[j * n + i] */
} fv__bias_axis;

/* Of `factor` voxels the one in the middle is taken: of n, how many that are. */
static inline int64_t fv__bias_first(int64_t factor) { return factor / 2; }
static inline int64_t fv__bias_left(int64_t n, int64_t factor) { return (n - fv__bias_first(factor) + factor - 1) / factor; }
/* Control points at a level. */
static inline int64_t fv__bias_points(const fv__bias *p, int level) { return ((p->points - 3) << level) + 3; }
/* Those of the last level of an image along its axes, whether spatial or not: the shape of the lattice. */
#define fv__bias_shape FV_ISA_NAME(fv__bias_shape)
void fv__bias_shape(const fv__bias *p, const fv_image_type *image, int64_t shape[FV_MAX_DIMS]);

#define fv__bias_axis_take FV_ISA_NAME(fv__bias_axis_take)
#define fv__bias_axis_fill FV_ISA_NAME(fv__bias_axis_fill)
#define fv__bias_refine FV_ISA_NAME(fv__bias_refine)
#define fv__bias_plane FV_ISA_NAME(fv__bias_plane)
#define fv__bias_line FV_ISA_NAME(fv__bias_line)
#define fv__bias_row FV_ISA_NAME(fv__bias_row)

/* Memory for an axis of n voxels. */
void fv__bias_axis_take(fv__bias_axis *axis, int64_t n, fv_scratch *pieces);
/* Weights of voxels first, first + step, ... of an axis that has `length` of them: its points lie from the first voxel to the
 * last. points 1: a missing axis. */
void fv__bias_axis_fill(fv__bias_axis *axis, int64_t first, int64_t step, int64_t length, int64_t points);
/* The same field by points that lie twice as dense: points[k] along z, y, x become 2 points[k] - 3, those of missing axes stay.
 * Both have room for the new ones. */
void fv__bias_refine(const int64_t points[3], double *lattice, double *room);

/* The field, from large to small: control points of plane z of it, of line y of that, and its values. */
void fv__bias_plane(const fv__bias_axis axis[3], const double *lattice, int64_t z, double *plane);
void fv__bias_line(const fv__bias_axis axis[3], const double *plane, int64_t y, double *line);
void fv__bias_row(const fv__bias_axis axis[3], const double *line, double *to);

#endif
