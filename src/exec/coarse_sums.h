/* A coarse level of a file's pyramid as what is known of all chunks before any is read: a control variate. */
#ifndef FV_COARSE_SUMS_H
#define FV_COARSE_SUMS_H

#include "exec/exec.h"
#include "op/sampling.h"

/* A level of few voxels, but some for each chunk, of the file that node's first input reads. NULL in reader: there is none. The
 * caller releases it. */
fv_status fv__coarse_level(const fv_stage *stage, const fv_node *node, struct fv_reader **reader, fv_error *error);
/* For each task of a stage that reduces this image: what the level says of the sum over its chunk, or of the ranks there, less
 * what it would say if all chunks were alike; together they are 0. NULL in control: it says nothing of some chunks. The caller
 * frees. */
fv_status fv__coarse_sums(const fv_stage *stage, const fv_node *node, struct fv_reader *level, fv_control kind, double **control,
                          fv_error *error);

#endif
