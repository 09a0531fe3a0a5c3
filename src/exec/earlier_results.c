/* Results of earlier passes, from the store. */
#include "exec/earlier_results.h"

void fv__pins_release(fv_pins *pins, fv_store *store) {
    for (int i = 0; i < pins->count; i++) fv__store_unpin(store, &pins->blobs[i]);
    pins->count = 0;
}

static fv_status get(fv_results *base, int64_t index, const void **data, size_t *size, fv_error *error) {
    fv_earlier_results *r = (fv_earlier_results *)base;
    const fv_plan      *plan = r->instance->plan;
    fv_store           *store = r->instance->context->store;
    fv_pins            *pins = r->pins;
    const fv_lattice   *lattice = &plan->stages[plan->pass_stage[r->node->id][r->pass]].lattice;
    fv_hash             key = fv__key_result(r->node, r->pass, lattice, index);
    *data = NULL;
    *size = 0;
    if (!fv__store_has(store, key)) return fv__store_check_lost(store, key, error); /* never put: empty */
    if (pins->count == pins->capacity) {
        pins->capacity = pins->capacity ? 2 * pins->capacity : 8;
        pins->blobs = fv__realloc(pins->blobs, (size_t)pins->capacity * sizeof *pins->blobs);
    }
    FV_TRY(fv__store_get(store, key, &pins->blobs[pins->count], error));
    *data = pins->blobs[pins->count].data;
    *size = pins->blobs[pins->count++].size;
    return FV_OK;
}

bool fv__earlier_results_init(fv_earlier_results *results, const fv_instance *instance, const fv_node *node, int pass,
                              fv_pins *pins) {
    *results = (fv_earlier_results){ .base.get = get, .instance = instance, .node = node, .pass = -1, .pins = pins };
    for (int k = 0; k < pass; k++)
        if (node->op->passes[k].finish) results->pass = k;
    return results->pass >= 0;
}
