/* The Euclidean distance of a box of voxels to the nearest zero, axis by axis, in whole numbers.
 *
 * With weights w (the squared spacing along each axis in units that make all of them whole), the squared distance of a voxel is
 * the least sum of w * offset^2 over all zeros: a whole number, so that every way to find it gives the same bits. The first axis
 * is scanned with counters, along the others the result is min over k of before[i +- k] + w * k^2.
 *
 * "Near" works in saturating lanes of 16 bits by direct search and ends for each stretch as soon as no further step can help; a
 * plane in which it saturates is done again "far", in doubles that hold whole numbers below 2^53, by direct search where that
 * is short and by the lower envelope of parabolas otherwise.
 */
#ifndef FV_EDT_H
#define FV_EDT_H

#include "op/op.h"

#define FV__EDT_NONE INT32_MAX /* a carry that no zero made */

typedef struct fv__edt_weights {
    double axis[3]; /* whole numbers: scanned axis, middle, last */
    double unit;    /* squared distance that 1 means */
} fv__edt_weights;

/* Rows of the last axis are dense; planes are ny * nx. Axes that an image lacks have length 1. */
typedef struct fv__edt {
    fv__edt_weights weights;
    int64_t         nz, ny, nx;
    int64_t         z0, z1, y0, y1, x0, x1; /* what is asked for, inside 0..n */
    bool            squared;

    uint8_t         *steps; /* nz planes: voxels to the nearest zero along z; 255: so many or more */
    int32_t         *far;   /* the same without that limit, once it is needed */
    bool             far_made;
    const int32_t   *above, *below; /* a plane each: steps from the first and last plane to a zero outside; NULL: none */
    uint16_t        *plane;         /* closeness 65535 - d^2 before the search along y */
    uint16_t        *nothing, *line, *result, *squares;
    const uint16_t **rows;
    double          *wide, *wide_spread, *wide_line, *wide_result, *wide_nothing, *parabola;
    const double   **wide_rows;
    int64_t         *vertex, *start;
} fv__edt;

#define fv__edt_scratch FV_ISA_NAME(fv__edt_scratch)
#define fv__edt_scan FV_ISA_NAME(fv__edt_scan)
#define fv__edt_plane FV_ISA_NAME(fv__edt_plane)

/* Lays out what a box needs (nz, ny, nx must be set); with scratch NULL only counts. */
size_t fv__edt_scratch(fv__edt *e, void *scratch);
/* steps holds 0 at zeros and anything else elsewhere; above and below are set. */
void fv__edt_scan(fv__edt *e);
/* Row y of plane z from x0 to x1, for all y from y0 to y1: put is called with the row's squared distances in units (infinite
 * where there is no zero at all), as 16-bit numbers or as doubles. */
typedef void fv__edt_put(void *context, int64_t z, int64_t y, const uint16_t *near, const double *far);
void         fv__edt_plane(fv__edt *e, int64_t z, fv__edt_put *put, void *context);

#endif
