/* Values that are estimated from a part of their chunks. */
#ifndef FV_APPROXIMATE_H
#define FV_APPROXIMATE_H

#include "graph/build.h"

bool fv__can_approximate(const fv_node *node);
/* The node again, sampled so; sampling lives as long as the graph. */
fv_status fv__approximate(fv_graph *graph, const fv_node *node, const fv_sampling *sampling, fv_node **sampled, fv_error *error);
/* What is sampled in the place of a node that several operators make of an image: group(measure(label(mask))) is objects(mask).
 * The node itself where there is no such thing. */
fv_node *fv__sampled_twin(fv_graph *graph, fv_node *node);
/* The value of a call of approx. */
APART value fv__approximate_call(builder *b, const fv_expr *expr, const fv_op *op, void *params, fv_node *node);

#endif
