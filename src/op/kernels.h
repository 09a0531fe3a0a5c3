/* Kernels that several parts share, compiled once per instruction set like operators. */
#ifndef FV_KERNELS_H
#define FV_KERNELS_H

#include <fovea/image.h>

typedef struct fv_kernels {
    /* n elements from one type to another: to integers by truncation towards zero with saturation (NaN gives 0), to bool by
     * != 0, integers to narrower integers by saturation. */
    void (*convert)(void *restrict to, fv_dtype to_type, const void *restrict from, fv_dtype from_type, int64_t n);
    /* Looks n keys of 1 or 2 bytes up in a table of elements of 1, 2, 4 or 8 bytes, one for each key. */
    void (*lookup)(void *restrict to, const void *restrict from, size_t key, int64_t n, const void *table, size_t size);
} fv_kernels;

/* The set in use. */
const fv_kernels *fv__kernels_current(void);

#endif
