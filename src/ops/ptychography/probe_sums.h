/* Where the sums for the probe lie: an image of four axes (block, y, line, x), as ptycho_overlap gives it, or the first rows of a
 * block of what ptycho_errors gives. Lines are real and imaginary parts of each mode, and at last weights. */
#ifndef FV_PROBE_SUMS_H
#define FV_PROBE_SUMS_H

#include "op/op.h"

/* Rows of two lines. */
static inline int64_t fv__probe_sum_rows(int64_t height, int64_t modes) { return (height * (2 * modes + 1) + 1) / 2; }

/* A line of row y, of a block counted from the first that is there. */
static inline const float *fv__probe_sum_line(const fv_block *sums, int64_t block, int64_t modes, int64_t y, int64_t line) {
    const float *data = (float *)sums->data + block * sums->stride[0];
    int64_t      at = y * (2 * modes + 1) + line;
    if (sums->region.ndim == 4) return data + y * sums->stride[1] + line * sums->stride[2];
    return data + at / 2 * sums->stride[1] + at % 2 * (sums->region.size[2] / 2);
}

#endif
