/* A coarse level of a file's pyramid as what is known of all chunks before any is read: a control variate. */
#ifndef FV_COARSE_SUMS_H
#define FV_COARSE_SUMS_H

#include "exec/exec.h"

/* For each task of a stage that reduces the image of node's first input: what the coarse level says of the sum over its chunk,
 * less what it would say if all chunks were alike; together they are 0. NULL in control: the image is not that of a file with
 * a coarse level of at most so many voxels. The caller frees. */
fv_status fv__coarse_sums(const fv_stage *stage, const fv_node *node, int64_t most, double **control, fv_error *error);

#endif
