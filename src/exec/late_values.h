/* Parameters that the pipeline itself computes: they are put in when a task runs. */
#ifndef FV_LATE_H
#define FV_LATE_H

#include "graph/graph.h"

/* Of a node that is late: *params becomes a copy in *room (the caller frees it) whose geometry has its center at the value of the
 * last scalar, and which is checked as a constant would have been. Of any other node *params stays and *room is NULL. */
fv_status fv__late_params(const fv_node *node, const fv_scalar *const *scalars, const void **params, void **room,
                          fv_error *error);

#endif
