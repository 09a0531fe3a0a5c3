/* Back-projection along the rays of a cone: voxels of a slab look into filtered projections that lie column by column. */
#ifndef FV_CONE_BEAM_H
#define FV_CONE_BEAM_H

#include "kernels/lines.h"

typedef struct fv_cone {
    int64_t nangles, columns;
    int64_t first_row, nrows;   /* detector rows that are held; those outside the detector hold zeros */
    int64_t height, width;      /* of a slice */
    double  source, distance;   /* of the axis and of the detector from the source */
    double  pitch, center;      /* width of a detector pixel; column of the axis */
    double  middle_row, middle; /* row and slice of the plane of the source */
    double  magnify;            /* distance / pitch */
    double *cosine, *sine;      /* of each angle */
} fv_cone;

/* Detector rows that slices [first, first + count) look at, at any angle; not clipped to the detector. */
void FV_ISA_NAME(fv__cone_rows)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_row, int64_t *nrows);
/* Adds to line[lines->count] what the column of voxels (y, x) sees at angles [from, until). filtered:
 * [angles][columns][nrows]. */
void FV_ISA_NAME(fv__cone_gather)(const fv_cone *c, const fv_lines *lines, const float *filtered, int64_t from, int64_t until,
                                  int64_t y, int64_t x, float *line);

#endif
