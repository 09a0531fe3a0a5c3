/* Networks of comparators that merge sorted lists, or select one rank of their union. A network does the same steps whatever
 * the data, so it runs on whole vectors of independent problems.
 *
 * Values are numbered: 0 ... inputs - 1 are the elements of the lists, list by list and ascending within each; every
 * comparator makes new ones. Steps whose result nobody needs are left out (K. E. Batcher's odd-even merge, 1968).
 */
#ifndef FV_NETWORK_H
#define FV_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

enum { FV_NETWORK_INPUTS = 256, FV_NETWORK_COMPARATORS = 6000, FV_NETWORK_NONE = 0xffff };

typedef struct fv_comparator {
    uint16_t a, b, low, high;
} fv_comparator; /* low or high may be FV_NETWORK_NONE, not both */

typedef struct fv_network {
    int           inputs, values, count, outputs;
    uint16_t      output[FV_NETWORK_INPUTS];
    fv_comparator comparator[FV_NETWORK_COMPARATORS];
} fv_network;

/* Merges the lists (rank -1), or finds the element with `rank` elements before it. False: the lists are too long together. */
bool fv__network_build(fv_network *network, const int *length, int lists, int rank);

#endif
