/* Values that are estimated from a part of their chunks. */
#ifndef FV_APPROXIMATE_H
#define FV_APPROXIMATE_H

#include "graph/build.h"

bool fv__can_approximate(const fv_node *node);
/* The node again, sampled so; sampling lives as long as the graph. */
fv_node *fv__approximate(fv_graph *graph, const fv_node *node, const fv_sampling *sampling);
/* The value of a call of approx. */
APART value fv__approximate_call(builder *b, const fv_expr *expr, const fv_op *op, void *params, const fv_node *node);

#endif
