/* Rows of complex images as real and imaginary parts, whatever type they have. */
#ifndef FV_COMPLEX_ROWS_H
#define FV_COMPLEX_ROWS_H

#include "op/kernels.h"
#include "op/op.h"

/* n numbers from a voxel on along the last axis. A real image has no imaginary parts. */
static inline void fv__complex_row(const fv_block *block, const int64_t *at, int64_t n, float *restrict re, float *restrict im) {
    const void *from = fv__block_at(block, at);
    if (block->dtype == FV_COMPLEX64)
        for (int64_t x = 0; x < n; x++) {
            re[x] = ((const float *)from)[2 * x];
            im[x] = ((const float *)from)[2 * x + 1];
        }
    else if (block->dtype == FV_COMPLEX128)
        for (int64_t x = 0; x < n; x++) {
            re[x] = (float)((const double *)from)[2 * x];
            im[x] = (float)((const double *)from)[2 * x + 1];
        }
    else {
        fv__kernels_current()->convert(re, FV_FLOAT32, from, block->dtype, n);
        memset(im, 0, (size_t)n * sizeof *im);
    }
}

#endif
