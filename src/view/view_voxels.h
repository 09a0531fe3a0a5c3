/* Voxels as numbers, and as the page wants to have them. */
#ifndef FV_VIEW_VOXELS_H
#define FV_VIEW_VOXELS_H

#include "base/base.h"
#include <fovea/image.h>

typedef enum fv_view_part { FV_VIEW_AMPLITUDE, FV_VIEW_PHASE } fv_view_part; /* of complex voxels */

/* One voxel; a complex one by its part. */
double fv_view_voxel(fv_dtype dtype, const void *data, int64_t index, fv_view_part part);
/* How they are sent unless something else is asked for: complex ones as float32, bool as uint8. */
fv_dtype fv_view_voxels_sent(fv_dtype dtype);
/* n voxels as another type; integers keep their low bits. to may be from if it is not wider. */
void fv_view_voxels_convert(fv_dtype from_type, const void *from, fv_view_part part, fv_dtype to_type, void *to, int64_t n);
/* n voxels as bytes: low and below is 0, high and above 255. NaN is 0. */
void fv_view_voxels_scale(fv_dtype from_type, const void *from, fv_view_part part, double low, double high, uint8_t *to,
                          int64_t n);

#endif
