/* Projections that are moved sideways: random displacements put in, found ones taken out. */
#ifndef FV_DISPLACE_H
#define FV_DISPLACE_H

#include "ops/tomography/scan.h"

#define fv__shift_axes FV_ISA_NAME(fv__shift_axes)
#define fv__shift_need FV_ISA_NAME(fv__shift_need)
#define fv__shift_plane FV_ISA_NAME(fv__shift_plane)

/* Axes of projections without a geometry. */
fv_status fv__shift_axes(const fv_image_type *projections, fv_scan *scan, fv_error *error);
/* The region with `most` more rows and columns to each side, inside the image. */
void fv__shift_need(const fv_scan *scan, const fv_image_type *projections, int64_t most, fv_region *region);
/* Fills projection a (its number in the image) of out, float32, with what lies dz rows and dx columns further in the input;
 * between pixels linearly, outside the image as on its border. */
void fv__shift_plane(const fv_scan *scan, const fv_block *in, const fv_block *out, int64_t a, double dz, double dx, float *row);

#endif
