/* approx(statistic): the statistic's node again, marked to be sampled. */
#include "graph/approximate.h"

static const char *hint_for(const fv_op *op) {
    if (!strcmp(fv__op_stage(op), "statistics")) return "quantile(image, 0.999) is near an extreme value and can be estimated";
    return "mean, sum, std, var, count, quantile and thresholds of 8 and 16 bit images can be estimated";
}

static const fv_image_type *whole_image(const fv_node *node) {
    return node->ninputs && node->in[0] && node->in[0]->type.kind == FV_KIND_IMAGE ? &node->in[0]->type.image : NULL;
}

static value refuse(builder *b, const fv_node *node, fv_span span, const char *why) {
    const char *name = node->op ? fv__node_called(node, NULL)->name : "a constant";
    return fv__mistake(b, span, FV_ERROR_USAGE, node->op ? hint_for(node->op) : NULL, "approx: %s cannot be estimated: %s", name,
                       why);
}

static const char *hinders(const fv_node *node) {
    if (!node->op) return "it is known already";
    if (node->type.kind == FV_KIND_IMAGE)
        return "it is an image, and each of its voxels is its own value; estimate a statistic of it";
    if (node->type.kind == FV_KIND_TABLE) return "it is a table; estimate a number, as approx(count(image > 100), error = 0.01)";
    if (node->sampling) return "it is an estimate already";
    if (fv__op_is_point(node->op))
        return "it is computed from other numbers; estimate these, as in approx(mean(a), error = 0.01) * 2";
    const fv_estimator *estimator = fv__op_estimator(node->op);
    if (!estimator || !whole_image(node)) return "chunks that were not seen may change it as much as they like";
    return estimator->hindered ? estimator->hindered(&node->in[0]->type) : NULL;
}

bool fv__can_approximate(const fv_node *node) { return !hinders(node); }

fv_node *fv__approximate(fv_graph *graph, const fv_node *node, const fv_sampling *sampling) {
    fv_node  *sampled = fv__arena_alloc(&graph->arena, sizeof *sampled);
    fv_hasher hasher;
    *sampled = *node;
    sampled->sampling = sampling;
    sampled->exact = node->key;
    sampled->called = NULL;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, "approx 1");
    fv__hasher_add(&hasher, &node->key, sizeof node->key);
    fv__hasher_add(&hasher, &sampling->error, sizeof sampling->error);
    fv__hasher_add(&hasher, &sampling->absolute, sizeof sampling->absolute);
    fv__hasher_add(&hasher, &sampling->time, sizeof sampling->time);
    fv__hasher_add(&hasher, &sampling->confidence, sizeof sampling->confidence);
    fv__hasher_int(&hasher, sampling->seed);
    fv__hasher_int(&hasher, sampling->whole);
    sampled->key = fv__hasher_finish(&hasher);
    return fv__graph_share(graph, sampled);
}

value fv__approximate_call(builder *b, const fv_expr *expr, const fv_op *op, void *params, const fv_node *node) {
    fv_type     out;
    fv_infer    i = { .params = params, .params_size = op->params_size, .out = &out };
    fv_error    error = { 0 };
    const char *why = hinders(node);
    if (why) return refuse(b, node, expr->span, why);
    if (op->infer(&i, &error) != FV_OK) return fv__from_error(b, expr->span, op, &error);
    return node_value(fv__approximate(b->graph, node, params));
}
