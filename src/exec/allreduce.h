/* Sums over ranks and threads whose bits do not depend on their number: blocks are the leaves of one fixed binary tree.
 *
 * A rank adds up the whole subtrees that it holds, element by element, with its threads. What is left of each rank (one vector
 * where ranks hold aligned runs of blocks, a few otherwise) is cut into one slice per rank; each rank gets all vectors of its
 * slice, adds the rest of the tree, and hands the sum of its slice to all. Every element travels twice, as in the best sums that
 * do not keep an order.
 */
#ifndef FV_ALLREDUCE_H
#define FV_ALLREDUCE_H

#include "base/base.h"
#include <fovea/ranks.h>

/* How ranks reach each other; all of them call the same. NULL where there is one rank. */
typedef struct fv_exchange {
    void (*allgather)(const void *mine, void *all, size_t size);
    void (*scatter)(const void *const *vectors, const int *counts, const int64_t *borders, void *slices);
    void (*gather)(void *vector, const int64_t *borders);
} fv_exchange;

struct fv_team {
    int         rank, size, threads;
    fv_exchange exchange;
    float      *sums, *slices; /* kept from call to call */
    size_t      sums_size, slices_size;
};

#endif
