/* approx(statistic): the statistic's node again, marked to be sampled. */
#include "graph/approximate.h"
#include "graph/gathered.h"

static fv_chain chain_of(const fv_node *node) {
    const fv_estimator *estimator = node && node->op ? fv__op_estimator(node->op) : NULL;
    return estimator ? estimator->chain : FV_CHAIN_NONE;
}

/* A table of all items of a collection. */
static bool is_gathered(const fv_node *node) { return node && node->type.kind == FV_KIND_TABLE && node->type.items; }
/* A summary of such rows as the items made them: then items can be sampled. */
static bool is_of_items(const fv_node *node) { return node->ninputs && node->in[0] && fv__gathered_of(node->in[0]); }

/* Whether rows of a table come from a file, and not from images. */
static bool is_of_file(const fv_node *node) {
    while (node->ninputs && node->in[0] && node->in[0]->type.kind == FV_KIND_TABLE) node = node->in[0];
    return node->op && node->type.kind == FV_KIND_TABLE && !node->ninputs && !is_gathered(node);
}

static const char *hint_for(const fv_node *node) {
    const fv_op *op = node->op;
    if (node->sampling) return "a smaller error or more time can be asked for where it is estimated";
    if (is_of_file(node))
        return "fovea sql --within-error 1% cells.csv 'SELECT type, count(*), avg(volume) FROM cells GROUP BY type' estimates "
               "counts, sums and means of a table";
    if (is_of_items(node))
        return "approx(group(measure(label(masks)), \"\", \"count(), mean(volume)\"), error = 0.02) looks at some of the items; "
               "approx(objects(masks, \"count(), mean(volume)\"), error = 0.02) at some chunks of each item, and has a row for "
               "each";
    if (op->result == FV_KIND_TABLE && node->ninputs && is_gathered(node->in[0]))
        return "what can be estimated is a summary, as approx(group(measure(label(masks)), \"\", \"count(), mean(volume)\"), "
               "error = 0.02)";
    if (chain_of(node) == FV_CHAIN_LAST)
        return "what can be estimated is one row of all objects, by = \"\", with label, measure and filter once each, as in "
               "approx(group(filter(measure(label(mask)), \"volume > 9\"), \"\", \"count(), mean(volume)\"), error = 0.02)";
    bool labelled = node->ninputs && chain_of(node->in[0]) == FV_CHAIN_FIRST; /* the greatest label is their number */
    if (op->result == FV_KIND_IMAGE && chain_of(node) != FV_CHAIN_FIRST)
        return "approx(mean(image), error = 0.01) and approx(quantile(image, 0.5), error = 0.01), its median, can be estimated, "
               "and "
               "approx(objects(mask, \"count(), mean(volume)\"), error = 0.02)";
    if (op->result == FV_KIND_IMAGE || (labelled && op->result != FV_KIND_TABLE))
        return "approx(objects(mask, \"count(), mean(volume)\"), error = 0.02) counts and measures objects";
    if (op->result == FV_KIND_TABLE)
        return "approx(group(measure(label(mask)), \"\", \"mean(volume)\"), error = 0.02) can be estimated";
    if (!strcmp(fv__op_stage(op), "statistics")) return "quantile(image, 0.999) is near an extreme value and can be estimated";
    return "mean, sum, std, var, count, quantile, histograms and thresholds can be estimated";
}

static const fv_image_type *whole_image(const fv_node *node) {
    return node->ninputs && node->in[0] && node->in[0]->type.kind == FV_KIND_IMAGE ? &node->in[0]->type.image : NULL;
}

static value refuse(builder *b, const fv_node *node, fv_span span, const char *why) {
    const char *name = node->op ? fv__node_called(node, NULL)->name : "a constant";
    return fv__mistake(b, span, FV_ERROR_USAGE, node->op ? hint_for(node) : NULL, "approx: %s cannot be estimated: %s", name,
                       why);
}

static const char *hinders(const fv_node *node) {
    if (!node->op) return "it is known already";
    if (node->type.kind == FV_KIND_IMAGE)
        return "it is an image, and each of its voxels is its own value; estimate a statistic of it";
    if (node->sampling) return "it is an estimate already";
    if (fv__op_is_point(node->op))
        return "it is computed from other numbers; estimate these, as in approx(mean(a), error = 0.01) * 2";
    const fv_estimator *estimator = fv__op_estimator(node->op);
    if (estimator && estimator->rows && is_of_items(node)) return estimator->hindered(node->params, node->in_type);
    if (node->type.kind == FV_KIND_TABLE && node->ninputs && is_gathered(node->in[0]))
        return "it needs the rows of all items at once; estimate a summary of rows that each item has";
    if (!estimator || !whole_image(node) || (!estimator->estimate && !estimator->rows))
        return node->type.kind == FV_KIND_TABLE
                   ? "it is a table of which the chunks do not each have a part; estimate a summary of it"
                   : "chunks that were not seen may change it as much as they like";
    return estimator->hindered ? estimator->hindered(node->params, node->in_type) : NULL;
}

bool fv__can_approximate(const fv_node *node) { return !hinders(node); }

/* ---------------------------------------------------------------- chains of operators that one can do chunk by chunk */

static bool is_left_out(const fv_param *p, const void *params) {
    const char *text = p->kind == FV_PARAM_TEXT ? *(const char *const *)((const char *)params + p->offset) : "?";
    return !text || !*text;
}

/* Parameters that the twin lacks must have been left out. */
static bool take_params(const fv_op *twin, void *to, const fv_node *node) {
    for (const fv_param *p = node->op->params; p && p->name; p++) {
        const fv_param *own = fv__params_find(twin, p->name);
        const void     *from = (const char *)node->params + p->offset;
        if (!own && !is_left_out(p, node->params)) return false;
        if (!own || own->kind != p->kind) continue;
        if (p->kind == FV_PARAM_TEXT) memcpy((char *)to + own->offset, from, sizeof(const char *));
        if (p->kind == FV_PARAM_INTEGER) memcpy((char *)to + own->offset, from, sizeof(int64_t));
    }
    return true;
}

static void take_inputs(const fv_op *twin, fv_node **to, const fv_node *node) {
    for (int i = 1; i < node->ninputs; i++)
        for (int k = 1; twin->inputs[k].name && node->in[i]; k++)
            if (!strcmp(twin->inputs[k].name, node->op->inputs[i].name)) to[k] = node->in[i];
}

/* Whether the chain has its operator before: the twin has each only once. */
static bool is_again(const fv_node *first, const fv_node *at) {
    for (; first != at; first = first->in[0])
        if (first->op == at->op) return true;
    return false;
}

fv_node *fv__sampled_twin(fv_graph *graph, fv_node *node) {
    if (chain_of(node) != FV_CHAIN_LAST || is_of_items(node)) return node;
    const fv_op    *twin = fv__op_find(fv__op_estimator(node->op)->twin);
    void           *params = fv__arena_alloc(&graph->arena, twin->params_size);
    const fv_param *all = fv__params_find(twin, "all");
    fv_node        *inputs[FV_MAX_INPUTS] = { 0 }, *at = node, *made;
    fv_error        error = { 0 };
    fv__params_default(twin, params);
    memcpy((char *)params + all->offset, &(bool){ true }, sizeof(bool));
    for (;; at = at->in[0]) {
        if (chain_of(at) == FV_CHAIN_NONE || is_again(node, at) || !take_params(twin, params, at)) return node;
        take_inputs(twin, inputs, at);
        if (chain_of(at) == FV_CHAIN_FIRST) break;
    }
    inputs[0] = at->in[0];
    return fv__graph_call(graph, twin, params, inputs, node->span, &made, &error) == FV_OK ? made : node;
}

/* ---------------------------------------------------------------- the sampled node */

fv_status fv__approximate(fv_graph *graph, const fv_node *node, const fv_sampling *sampling, fv_node **out, fv_error *error) {
    fv_node  *sampled = fv__arena_alloc(&graph->arena, sizeof *sampled);
    fv_hasher hasher;
    *sampled = *node;
    sampled->sampling = sampling;
    sampled->exact = node->key;
    sampled->called = NULL;
    graph->sampled = true;
    if (node->type.kind == FV_KIND_TABLE) {
        fv_table_type      *table = fv__arena_alloc(&graph->arena, sizeof *table);
        const fv_estimator *estimator = fv__op_estimator(node->op);
        int                 plain = estimator->plain_of ? estimator->plain_of(node->params, node->in_type) : estimator->plain;
        FV_TRY(fv__sampling_table(node->type.table, plain, whole_image(node) ? "chunks" : "items", table, error));
        sampled->type.table = table;
    }
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, "approx 5");
    fv__hasher_add(&hasher, &node->key, sizeof node->key);
    fv__hasher_add(&hasher, &sampling->error, sizeof sampling->error);
    fv__hasher_add(&hasher, &sampling->absolute, sizeof sampling->absolute);
    fv__hasher_add(&hasher, &sampling->time, sizeof sampling->time);
    fv__hasher_add(&hasher, &sampling->confidence, sizeof sampling->confidence);
    fv__hasher_int(&hasher, sampling->seed);
    fv__hasher_int(&hasher, sampling->joint);
    fv__hasher_int(&hasher, sampling->whole);
    sampled->key = fv__hasher_finish(&hasher);
    *out = fv__graph_share(graph, sampled);
    return FV_OK;
}

value fv__approximate_call(builder *b, const fv_expr *expr, const fv_op *op, void *params, fv_node *node) {
    fv_type     out;
    fv_infer    i = { .params = params, .params_size = op->params_size, .out = &out };
    fv_error    error = { 0 };
    fv_node    *made;
    const char *why = hinders(node = fv__sampled_twin(b->graph, node));
    if (why) return refuse(b, node, expr->span, why);
    if (op->infer(&i, &error) != FV_OK || fv__approximate(b->graph, node, params, &made, &error) != FV_OK)
        return fv__from_error(b, expr->span, op, &error);
    return node_value(made);
}
