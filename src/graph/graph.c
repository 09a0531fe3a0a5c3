/* Nodes: typing, identity and sharing. */
#include "graph/graph.h"
#include "base/take.h"
#include "op/array.h"
#include "op/channels.h"
#include "op/column_units.h"
#include "op/device_kernel.h"
#include "op/kernels.h"
#include <stdlib.h>

static const fv_type absent_type = { .kind = FV_KIND_NONE };

const fv_op *fv__node_called(const fv_node *node, fv_hash *call) {
    if (call) *call = node->called ? node->call : node->key;
    return node->called ? node->called : node->op;
}

const char *fv__node_label(const fv_node *node) { return node->name ? node->name : node->op ? node->op->name : "constant"; }

/* ---------------------------------------------------------------- sharing */

typedef struct wanted {
    const fv_graph *graph;
    fv_hash         key;
} wanted;

static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return fv__hash_equal(w->graph->nodes[number]->key, w->key);
}

static fv_node *find(const fv_graph *graph, fv_hash key) {
    wanted  w = { graph, key };
    int64_t number = fv__hash_table_number(&graph->table, key.low, is_wanted, &w);
    return number < 0 ? NULL : graph->nodes[number];
}

static void append(fv_graph *graph, fv_node *node) {
    if (graph->nnodes == graph->capacity) {
        graph->capacity = graph->capacity ? 2 * graph->capacity : 32;
        graph->nodes = fv__realloc(graph->nodes, (size_t)graph->capacity * sizeof *graph->nodes);
    }
    fv__hash_table_reserve(&graph->table, 64, graph->nnodes + 1);
    fv__hash_table_add(&graph->table, true, (uint32_t)node->key.low, (uint32_t)graph->nnodes);
    node->id = graph->nnodes;
    graph->nodes[graph->nnodes++] = node;
}

fv_node *fv__graph_share(fv_graph *graph, fv_node *node) {
    fv_node *same = find(graph, node->key);
    if (!same) append(graph, node);
    return same ? same : node;
}

/* ---------------------------------------------------------------- nodes */

static fv_node *constant(fv_graph *graph, const fv_scalar *value, fv_hash key) {
    fv_node *node = find(graph, key);
    if (node) return node;
    node = fv__arena_alloc(&graph->arena, sizeof *node);
    node->value = *value;
    node->type.kind = FV_KIND_SCALAR;
    node->type.dtype = value->dtype;
    node->key = key;
    append(graph, node);
    return node;
}

fv_node *fv__graph_constant(fv_graph *graph, const fv_scalar *value) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, "constant");
    fv__hasher_int(&hasher, value->dtype);
    fv__hasher_int(&hasher, value->integer);
    return constant(graph, value, fv__hasher_finish(&hasher));
}

fv_node *fv__graph_later(fv_graph *graph, fv_dtype dtype, const char *what, int expr, int combination) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, "later");
    fv__hasher_int(&hasher, expr);
    fv__hasher_int(&hasher, combination);
    fv_node *node = constant(graph, &(fv_scalar){ .dtype = dtype }, fv__hasher_finish(&hasher));
    node->later = what;
    return node;
}

/* Identity: what the value depends on, and nothing else. */
fv_status fv__graph_identify(const fv_graph *graph, fv_node *node, fv_error *error) {
    fv_hasher hasher;
    fv_bytes  text = { 0 };
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, node->op->name);
    fv__hasher_int(&hasher, node->op->version);
    fv__hasher_int(&hasher, node->op->numerics);
    if (node->on_device) fv__hasher_text(&hasher, graph->device.kind);
    fv__params_format(node->op, node->params, &text);
    fv__hasher_add(&hasher, text.data, text.size);
    fv__bytes_release(&text);
    for (int i = 0; i < node->ninputs; i++) {
        fv_hash none = { 0, 0 };
        fv__hasher_add(&hasher, node->in[i] ? &node->in[i]->key : &none, sizeof none);
    }
    fv_status status = node->op->identity ? node->op->identity(node->params, &hasher, error) : FV_OK;
    node->key = fv__hasher_finish(&hasher);
    return status;
}

static fv_status infer(fv_graph *graph, fv_node *node, fv_error *error) {
    fv_infer i = { .params = node->params,
                   .params_size = node->op->params_size,
                   .ninputs = node->ninputs,
                   .out = &node->type,
                   .arena = &graph->arena };
    for (int k = 0; k < node->ninputs; k++) i.in[k] = node->in_type[k];
    if (node->ninputs && node->in[0]) node->type = node->in[0]->type;
    FV_TRY(node->op->infer(&i, error));
    node->compute = i.compute;
    fv__column_units(node->op, i.in, i.ninputs, &node->type, &graph->arena);
    if (node->type.kind != FV_KIND_IMAGE) return FV_OK;
    fv__channels_settle(node->op, i.in, i.ninputs, &node->type.image);
    if (node->type.image.ndim < 1 || node->type.image.ndim > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the result would have %d axes; 1 to %d are possible", node->type.image.ndim,
                       FV_MAX_DIMS);
    for (int d = 0; d < node->type.image.ndim; d++)
        if (node->type.image.shape[d] < 1)
            return fv_fail(error, node->ninputs ? FV_ERROR_USAGE : FV_ERROR_INPUT,
                           "the result would be empty: axis %s has no voxels", node->type.image.axis[d]);
    if (fv_image_type_bytes(&node->type.image) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "the result would have more bytes than a number can count");
    return FV_OK;
}

/* Whether the device makes it. Depends on types and parameters alone, so that all parts of an image are made alike. */
static fv_status place(const fv_graph *graph, fv_node *node, fv_error *error) {
    const fv_device_kernel *kernel = node->op->device;
    if (!graph->device.kind || !kernel || node->type.kind != FV_KIND_IMAGE) return FV_OK;
    fv_need need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type };
    need.region = fv__region_whole(&node->type.image);
    for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
    if (kernel->able && !kernel->able(&need)) return FV_OK;
    int64_t least = kernel->least(&need);
    node->on_device = least <= graph->device.memory;
    if (node->on_device || !graph->device.strict) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "needs %lld MB of the device, which has %lld MB; --device cpu or auto runs it all the same",
                   (long long)(least >> 20) + 1, (long long)(graph->device.memory >> 20));
}

fv_status fv__graph_call(fv_graph *graph, const fv_op *op, void *params, fv_node *const *inputs, fv_span span, fv_node **out,
                         fv_error *error) {
    return fv__graph_call_late(graph, op, params, inputs, NULL, span, out, error);
}

fv_status fv__graph_call_late(fv_graph *graph, const fv_op *op, void *params, fv_node *const *inputs, fv_node *late, fv_span span,
                              fv_node **out, fv_error *error) {
    FV_TRY(fv__memory_check(error));
    fv_node *node = fv__arena_alloc(&graph->arena, sizeof *node);
    node->op = op;
    node->params = params;
    node->ninputs = fv__inputs_count(op);
    node->span = span;
    for (int i = 0; i < node->ninputs; i++) {
        node->in[i] = inputs[i];
        node->in_type[i] = inputs[i] ? &inputs[i]->type : &absent_type;
        if (fv__placed_later(inputs[i]) && !op->sink)
            return fv_fail(error, FV_ERROR_USAGE, "where %s lies " FV_PLACED_LATER, op->inputs[i].name);
    }
    if (late) {
        if (node->ninputs == FV_MAX_INPUTS) return fv_fail(error, FV_ERROR_INTERNAL, "%s has no room for a late value", op->name);
        node->late = true;
        node->in[node->ninputs] = late;
        node->in_type[node->ninputs++] = &late->type;
    }
    FV_TRY(infer(graph, node, error));
    FV_TRY(place(graph, node, error));
    FV_TRY(fv__graph_identify(graph, node, error));
    *out = fv__graph_share(graph, node);
    return FV_OK;
}

fv_status fv__graph_array(fv_graph *graph, const fv_array *array, fv_node **node, fv_error *error) {
    fv_array_params *params = fv__arena_alloc(&graph->arena, sizeof *params);
    params->name = fv__arena_strdup(&graph->arena, array->name);
    params->type = array->type;
    params->data = array->data;
    params->content = array->content;
    params->read = array->read;
    params->context = array->context;
    memcpy(params->chunk, array->chunk, sizeof params->chunk);
    return fv__graph_call(graph, fv__op_of_role(array->read ? FV_OP_PROVIDED : FV_OP_ARRAY), params, NULL, (fv_span){ 1, 1, 1 },
                          node, error);
}

void fv__graph_free(fv_graph *graph) {
    if (!graph) return;
    fv__arena_release(&graph->arena);
    free(graph->nodes);
    free(graph->table.slot);
    free(graph->sinks);
    free(graph);
}

/* ---------------------------------------------------------------- scalars */

static const void *scalar_bytes(const fv_scalar *scalar, fv_dtype *dtype, uint8_t *flag) {
    *dtype = scalar->dtype;
    if (scalar->dtype != FV_BOOL) return &scalar->integer;
    *flag = scalar->integer != 0;
    return flag;
}

fv_status fv__scalar_apply(const fv_op *op, const void *params, fv_dtype compute, const fv_type *type, const fv_scalar *const *in,
                           int ninputs, fv_scalar *out, fv_error *error) {
    const fv_kernels *kernels = fv__kernels_current();
    int64_t           value[FV_MAX_INPUTS], result = 0, converted = 0;
    const void       *pointers[FV_MAX_INPUTS] = { NULL };
    if (!op->point[compute])
        return fv_fail(error, FV_ERROR_INTERNAL, "%s has no kernel for %s", op->name, fv_dtype_name(compute));
    for (int i = 0; i < ninputs; i++) {
        if (!in[i]) continue;
        fv_dtype    dtype;
        uint8_t     flag;
        const void *bytes = scalar_bytes(in[i], &dtype, &flag);
        kernels->convert(&value[i], compute, bytes, dtype, 1);
        pointers[i] = &value[i];
    }
    op->point[compute](params, 1, &result, pointers);
    *out = (fv_scalar){ .dtype = type->dtype };
    kernels->convert(&converted, type->dtype, &result, type->dtype == FV_BOOL ? FV_BOOL : compute, 1);
    if (type->dtype == FV_BOOL)
        out->integer = *(uint8_t *)&converted;
    else
        memcpy(&out->integer, &converted, 8);
    return FV_OK;
}
