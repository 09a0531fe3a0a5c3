/* k-means of points of several dimensions: Lloyd's method from several starts that k-means++ chooses. One thread, a fixed order.
 */
#ifndef FV_LLOYD_H
#define FV_LLOYD_H

#include "base/isa.h"
#include <fovea/status.h>
#include <stdint.h>

typedef struct fv__lloyd {
    const double *point; /* count rows of `dimensions` numbers */
    int64_t       count;
    int           dimensions, classes;
    uint64_t      seed;
} fv__lloyd;

#define fv__lloyd_find FV_ISA_NAME(fv__lloyd_find)

/* Fills classes * dimensions numbers, classes by rising sum of their centre. *found is the number of classes, or less if there
 * are fewer different points; -1 if a number is nan or infinite. */
fv_status fv__lloyd_find(const fv__lloyd *job, double *centre, int64_t *found, fv_error *error);

#endif
