/* The one-dimensional Gaussian kernel and its derivatives, as scipy.ndimage samples them. */
#ifndef FV_BELL_H
#define FV_BELL_H

#include "kernels/separable.h"

enum { FV_BELL_MAX_ORDER = 12 };

/* Compiled per instruction set; a caller uses its own. */
#define fv__bell_radius FV_ISA_NAME(fv__bell_radius)
#define fv__bell_weights FV_ISA_NAME(fv__bell_weights)
#define fv__bell_check FV_ISA_NAME(fv__bell_check)

/* Voxels on each side; 0 for a deviation that scipy takes as none. */
int64_t fv__bell_radius(double sigma, double truncate);
/* 2 radius + 1 weights for a sum of weight times voxel; the order-th derivative. A deviation of none gives 1. */
void fv__bell_weights(double sigma, int64_t radius, int order, double *weight);
/* Spreads the deviations over n axes and refuses kernels that are too long; `name` is that of the parameter. */
fv_status fv__bell_check(fv_numbers *sigma, double truncate, int n, const char *name, fv_error *error);

#endif
