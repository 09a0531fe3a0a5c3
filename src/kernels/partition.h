/* Cutting a sorted list of weighted values into classes, so that the sum of squared distances of the values from the means of
 * their classes is least. The exact optimum (not only a local one, as in k-means of several dimensions): dynamic programming,
 * where the best last cut moves in the same direction as the end of the list, so that a range of it is halved again and again. */
#ifndef FV_PARTITION_H
#define FV_PARTITION_H

#include "base/isa.h"
#include <stdint.h>

#define fv__partition FV_ISA_NAME(fv__partition)

/* n ascending values with weights above 0, at least as many as classes. first[k] gets the index of the first value of class k,
 * mean[k] the mean of the class. Of equally good cuts the first one is taken. */
void fv__partition(const double *value, const double *weight, int64_t n, int classes, int64_t *first, double *mean);

#endif
