/* Finds the B-spline transform under which a moving image resembles a fixed one most, at one resolution.
 *
 * The fixed image is compared along whole rows of it, which lie along the control points: for a row, the control points across it
 * become one line of numbers, so that a voxel costs four of them and not sixty-four. Steps are those of the BFGS method with
 * limited memory (Nocedal, 1980), which begins with the curvature of each control point by itself. Every sum is in order of the
 * rows: the result depends on the values alone.
 */
#ifndef FV_BSPLINE_FIT_H
#define FV_BSPLINE_FIT_H

#include "base/isa.h"
#include "kernels/bspline.h"
#include "op/op.h"
#include "op/scratch.h"

enum { FV_BSPLINE_PAIRS = 6 }; /* steps that the curvature is known from */

typedef struct fv_bspline_fit {
    fv_control_grid grid;
    int             metric, bins, iterations; /* metric: FV_FIT_... */
    double          bending;                  /* weight of the bending energy */
    double          edge;                     /* of a voxel, the least */
    float          *fixed, *moving;           /* x fastest */
    int64_t         of_fixed[3], of_moving[3];
    double          space[12];            /* voxels of fixed to physical space */
    double          voxels[12];           /* physical space to voxels of moving */
    double          fixed_low, fixed_bin; /* the least value, and the width of a bin */
    double          low, width;           /* the same of moving */
    int64_t         rows, room;           /* of the fixed image that are compared, and for how many there is memory */
    int64_t        *row;                  /* their number, y + z * height */
    float          *seen, *slope[3];      /* by row: moving at the places of fixed, nan outside; its slope in space */
    double         *along, *line;         /* weights of four control points at each x; lines of control points */
    int64_t        *first;                /* the first of these */
    double         *way[3];               /* of a row: the displacement, or what is added to control points */
    double         *joint, *given;        /* mutual information: the joint histogram, and ln p(fixed, moving) / p(moving) */
    double         *control, *gradient, *diagonal, *step, *before, *gradient_before;
    double         *moves[FV_BSPLINE_PAIRS], *turns[FV_BSPLINE_PAIRS]; /* steps, and changes of the gradient by them */
} fv_bspline_fit;

#define fv__bspline_fit_lay_out FV_ISA_NAME(fv__bspline_fit_lay_out)
#define fv__bspline_measure FV_ISA_NAME(fv__bspline_measure)
#define fv__bspline_fit_run FV_ISA_NAME(fv__bspline_fit_run)

/* grid, metric, bins, of_fixed, of_moving and room are set. */
void fv__bspline_fit_lay_out(fv_bspline_fit *f, fv_scratch *pieces);
/* The cost at the control points (infinite: too little is seen of moving), and its gradient; curvature: and the diagonal. */
double fv__bspline_measure(fv_bspline_fit *f, bool curvature);
/* Betters the control points. false: the images do not overlap where it begins. */
bool fv__bspline_fit_run(fv_bspline_fit *f);

#endif
