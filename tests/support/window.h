/* Boxes around voxels by brute force, for tests of neighbourhood operators. */
#ifndef FV_TEST_WINDOW_H
#define FV_TEST_WINDOW_H

#include "op/border.h"
#include "support/apply.h"

typedef struct test_window {
    int       naxes;
    int       axis[FV_MAX_DIMS];   /* spatial axes of the image */
    int64_t   size[FV_MAX_DIMS];   /* of the box, along each of them */
    int64_t   before[FV_MAX_DIMS]; /* voxels of the box before its centre */
    fv_border border;
    double    cval;
} test_window;

/* A box of these sizes over the spatial axes of the image, centred as scipy does: size / 2 voxels before. */
test_window test_window_new(const test_image *image, const int64_t *size, fv_border border, double cval);
int64_t     test_window_count(const test_window *window);
/* The values of the box around voxel `index` (C order), in C order. */
void test_window_values(const test_window *window, const test_image *image, int64_t index, double *values);
/* Element `index` of a dense array as a number. */
double test_number(fv_dtype dtype, const void *data, int64_t index);

extern const char *const test_borders[]; /* names in the order of fv_border, ended by NULL */

#endif
