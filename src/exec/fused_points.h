/* Fused point-wise operators: a tree of them is computed strip by strip, so that nothing in between reaches memory. */
#ifndef FV_POINTS_H
#define FV_POINTS_H

#include "plan/plan.h"

typedef struct fv_points_input {
    const fv_block  *block;  /* an image that the group reads */
    const fv_scalar *scalar; /* or a value */
} fv_points_input;

/* Gives block or scalar of a node that is not part of the group. */
typedef fv_status (*fv_points_resolve)(void *context, const fv_node *node, fv_points_input *input, fv_error *error);

/* Computes the group that ends in `root` over out's region. inside tells whether a node belongs to the group. scratch: at least
 * fv__points_scratch() bytes. */
size_t    fv__points_scratch(void);
fv_status fv__points_run(const fv_node *root, bool (*inside)(void *context, const fv_node *node), fv_points_resolve resolve,
                         void *context, const fv_block *out, void *scratch, fv_error *error);

#endif
