/* What reductions of an image to a number share: typing, partials and results. */
#ifndef FV_REDUCE_H
#define FV_REDUCE_H

#include "op/op.h"

/* The output is a scalar of a type; the input must be a real, integer or bool image. */
fv_status fv__infer_scalar(fv_infer *i, fv_dtype dtype, fv_error *error);
/* The scalar type that holds a value of an image: bool, int64, uint64 or float64. */
fv_dtype fv__scalar_type(fv_dtype dtype);

/* The one partial of a pass with combine, of exactly this size; NULL for an image without voxels. */
fv_status fv__finish_partial(fv_finish *f, const void **partial, size_t size, fv_error *error);
fv_status fv__put_real(fv_finish *f, double value, fv_error *error);
fv_status fv__put_whole(fv_finish *f, int64_t value, fv_error *error);
fv_status fv__put_scalar(fv_finish *f, const fv_scalar *scalar, fv_error *error);

/* Asks for nothing of input 0: for a pass that the image's type makes superfluous. */
void fv__need_nothing(fv_region *region);

#endif
