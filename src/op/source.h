/* What operators that make an image from nothing share: the shape parameter and filling. */
#ifndef FV_SOURCE_H
#define FV_SOURCE_H

#include "op/op.h"

#define FV_PARAM_SHAPE(type) FV_PARAM(type, shape, .min = 1, .max = 1e15, .unit = "px", .doc = "size of each axis, slowest first")

/* The type of a source's output. The shape must be least..most whole numbers and the image must be countable in 63 bits. */
fv_status fv__source_type(const fv_numbers *shape, fv_dtype dtype, int least, int most, fv_type *out, fv_error *error);
/* Every voxel of the block takes the given element of the block's type. */
void fv__block_fill(const fv_block *block, const void *element);

#endif
