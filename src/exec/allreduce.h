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
    bool (*share)(void *const *parts, const int64_t *sizes, const int *owners, int count, bool (*given_up)(void *context),
                  void *context);
} fv_exchange;

struct fv_team {
    int         rank, size, threads;
    fv_exchange exchange;
    float      *sums, *slices, *scratch; /* kept from call to call */
    size_t      sums_size, slices_size, scratch_size;
};

/* The sum of vectors of which each element is zero in all ranks but one. Adding zeros changes nothing, and of the sum only its
 * second half is left: every part goes from the rank that has it to all others, bit by bit (-0 and NaN too). */
typedef struct fv_allreduce_part {
    void   *data; /* of size bytes: in its rank what it has, in others room for it */
    int64_t size;
    int     rank; /* -1: it needs no exchange */
} fv_allreduce_part;

/* All ranks call it with the same sizes and ranks in the same order. A rank that cannot take part says why in `failed` (else
 * NULL), and that is the answer of all of them, before anything is sent. given_up: asked now and then; once it says so,
 * FV_ERROR_CANCELLED is the answer, and data must stay where it is until the process ends. */
fv_status fv__allreduce_parts(fv_team *team, const fv_allreduce_part *parts, int count, const fv_error *failed,
                              bool (*given_up)(void *context), void *context, fv_error *error);

#endif
