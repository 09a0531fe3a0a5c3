/* Images that are wanted back and that no stage reads again: tasks put them where the result will be, not into the store. */
#include "base/take.h"
#include "exec/exec.h"
#include <stdlib.h>
#include <sys/mman.h>

/* Whether a stage reads what this one stores, or another sink takes it too. */
static bool is_read(const fv_instance *instance, const fv_sink *sink) {
    const fv_plan *plan = instance->plan;
    int            stage = plan->store_stage[sink->value->id];
    for (int k = 0; k < plan->nstages; k++)
        for (int i = 0; i < plan->stages[k].nneeds; i++)
            if (plan->stages[k].needs[i] == stage) return true;
    for (int k = 0; k < instance->graph->nsinks; k++)
        if (&instance->graph->sinks[k] != sink && instance->graph->sinks[k].value == sink->value) return true;
    return plan->stages[stage].serial;
}

bool fv__direct_takes(const fv_instance *instance, const fv_sink *sink) {
    return sink->kind == FV_SINK_KEEP && sink->value->type.kind == FV_KIND_IMAGE && !is_read(instance, sink);
}

void *fv__image_memory(const fv_image_type *type) {
    enum { HUGE_PAGE = 1 << 21 };
    size_t size = (size_t)fv_image_type_bytes(type);
    void  *data = fv__try_alloc(size);
    if (!data || size < 2 * HUGE_PAGE) return data;
    uintptr_t first = ((uintptr_t)data + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    madvise((void *)first, ((uintptr_t)data + size - first) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* a hint */
    return data;
}

void *fv__direct_room(const fv_instance *instance, const fv_sink *sink) {
    const fv_bindings *b = instance->context->bindings;
    for (int k = 0; b->rooms && k < b->nkeeps; k++)
        if (!strcmp(b->keeps[k], sink->name)) return b->rooms[k];
    return NULL;
}

static fv_status begin_image(fv_instance *instance, const fv_sink *sink, fv_error *error) {
    bool  given = instance->context->bindings->rooms;
    void *data = given ? fv__direct_room(instance, sink) : fv__image_memory(&sink->value->type.image);
    if (!data) return fv_fail(error, FV_ERROR_MEMORY, "%s does not fit into memory", sink->name);
    instance->direct[sink->value->id] = data;
    return FV_OK;
}

fv_status fv__direct_begin(fv_instance *instance, fv_error *error) {
    const fv_graph *graph = instance->graph;
    instance->direct = fv__calloc((size_t)(graph->nnodes + 1) * sizeof *instance->direct);
    for (int k = 0; k < graph->nsinks; k++) {
        const fv_sink *sink = &graph->sinks[k];
        if (instance->context->bindings->rooms && sink->kind == FV_SINK_KEEP && sink->value->type.kind != FV_KIND_IMAGE)
            return fv_fail(error, FV_ERROR_USAGE, "%s is no image: it cannot be put into memory of the caller's", sink->name);
        if (fv__direct_takes(instance, sink)) FV_TRY(begin_image(instance, sink, error));
    }
    return FV_OK;
}

bool fv__direct_block(const fv_instance *instance, const fv_node *node, const fv_region *region, fv_block *block) {
    if (!instance->direct || !instance->direct[node->id]) return false;
    fv_region whole = fv__region_whole(&node->type.image);
    fv_block  all;
    fv__block_init(&all, node->type.image.dtype, &whole, instance->direct[node->id]);
    *block = fv__block_window(&all, region);
    return true;
}

bool fv__direct_put(const fv_instance *instance, const fv_node *node, const fv_region *chunk, const fv_block *block) {
    fv_block part;
    if (!fv__direct_block(instance, node, chunk, &part)) return false;
    if (part.data != block->data) fv__block_copy(&part, block); /* else it was made there */
    return true;
}

void *fv__direct_take(fv_instance *instance, const fv_node *node) {
    void *data = instance->direct ? instance->direct[node->id] : NULL;
    if (data) instance->direct[node->id] = NULL;
    return data;
}

void fv__direct_end(fv_instance *instance) {
    bool given = instance->context->bindings->rooms;
    for (int id = 0; instance->direct && !given && id < instance->graph->nnodes; id++) free(instance->direct[id]);
    free(instance->direct);
    instance->direct = NULL;
}
