/* Counted quanta: Poisson's distribution, from random numbers of a place. */
#ifndef FV_QUANTA_H
#define FV_QUANTA_H

#include "op/op.h"

/* n counts whose means are given, in place, for the voxels from `start` of a row with this key. Means that are not positive give
 * 0, what is no number stays. */
void FV_ISA_NAME(fv__quanta_row)(float *values, int64_t n, uint64_t key, int64_t start);
/* Key of the row of a region that `at` says (all axes but the last are used), the same whatever the region. */
uint64_t FV_ISA_NAME(fv__quanta_key)(int64_t seed, int ndim, const int64_t *at);

#endif
