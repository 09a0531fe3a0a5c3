/* A curve from value to value that follows from a histogram, and how an image is sent through it: the last pass of operators that
 * count levels first (kernels/levels.h).
 *
 * Whole: y of the integer low + i is y[i]. Nearest: that of the nearest x. Otherwise straight lines between the points (x, y),
 * level outside, as numpy.interp.
 */
#ifndef FV_CURVE_H
#define FV_CURVE_H

#include "kernels/levels.h"

typedef struct fv__curve {
    int64_t  count;
    int64_t  whole, nearest;
    uint64_t low;
    double   step; /* between neighbours in x, about; 0: it varies */
    double   xy[]; /* count of x, then count of y */
} fv__curve;

#define fv__curve_put FV_ISA_NAME(fv__curve_put)
#define fv__curve_apply FV_ISA_NAME(fv__curve_apply)
#define fv__curve_scratch FV_ISA_NAME(fv__curve_scratch)

/* Puts a curve as the result of a pass. x may be NULL for a whole one. */
fv_status fv__curve_put(fv_finish *f, const fv__curve *head, const double *x, const double *y, fv_error *error);
/* Fills a float32 or float64 output from input number `input`. */
fv_status fv__curve_apply(fv_run *r, int input, fv_error *error);
size_t    fv__curve_scratch(const fv_need *n);

#endif
