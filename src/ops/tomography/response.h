/* Filters of filtered back-projection: what each frequency of a projection is multiplied with. */
#ifndef FV_RESPONSE_H
#define FV_RESPONSE_H

#include "op/op.h"

#define FV_RESPONSE_CHOICES "ramp|shepp-logan|cosine|hamming|hann|parzen|butterworth|none"
typedef enum fv_response {
    FV_RESPONSE_RAMP,
    FV_RESPONSE_SHEPP_LOGAN,
    FV_RESPONSE_COSINE,
    FV_RESPONSE_HAMMING,
    FV_RESPONSE_HANN,
    FV_RESPONSE_PARZEN,
    FV_RESPONSE_BUTTERWORTH,
    FV_RESPONSE_NONE
} fv_response;

#define fv__response FV_ISA_NAME(fv__response)

/* Length of the transform for rows of that many columns: no row reaches round to its other end. */
static inline int64_t fv__response_length(int64_t columns) {
    int64_t n = 64;
    while (n < 2 * columns) n *= 2;
    return n;
}
/* out[0 .. n/2], times scale; table: n doubles of room. cutoff (of the highest frequency, 0 to 1) and order are butterworth's. */
void fv__response(fv_response kind, int64_t n, double scale, double cutoff, double order, double *table, double *out);

#endif
