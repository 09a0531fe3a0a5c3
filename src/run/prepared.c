/* Runs that are kept ready. What a run needs beside its pixels is made once: graph, plan, and the memory of a worker. */
#include "run/prepared.h"
#include "op/array.h"
#include "run/results.h"
#include "store/store_place.h"
#include <stdlib.h>

struct fv_prepared {
    fv_bindings       bindings;
    fv_context        context;
    fv_budget         budget;
    char             *folder; /* for what does not fit into memory */
    fv_instance      *instance;
    fv_worker        *worker;
    fv_array_params **arrays; /* by array of the bindings: what its node knows; NULL: nothing uses it */
    const fv_sink   **kept;   /* by name that is kept */
    bool             *direct; /* the same: tasks put it where it belongs */
};

/* ---------------------------------------------------------------- making */

static const double brief = 1e6; /* nanoseconds of work that are not worth a thread */

/* All stages are needed, and each by what follows: what is in the plan is what the kept images are made of. */
static bool is_plain(const fv_instance *instance) {
    const fv_plan  *plan = instance->plan;
    const fv_graph *graph = instance->graph;
    bool            plain = plan->nfiles == 0 && plan->work < brief && !graph->device.kind;
    for (int k = 0; k < graph->nsinks; k++)
        plain = plain && graph->sinks[k].kind == FV_SINK_KEEP && graph->sinks[k].value->type.kind == FV_KIND_IMAGE;
    for (int k = 0; k < plan->nstages; k++) plain = plain && !plan->stages[k].gate;
    return plain;
}

static bool fits(const fv_budget *budget, const fv_plan *plan) {
    fv_demand demand = fv__plan_demand(plan, 1, 1);
    return fv__budget_suffices(budget, 1, &demand) && fv__budget_check(budget, plan->memory, NULL) == FV_OK;
}

static void find_arrays(fv_prepared *p) {
    const fv_graph *graph = p->instance->graph;
    p->arrays = fv__calloc((size_t)(p->bindings.narrays + 1) * sizeof *p->arrays);
    for (int id = 0; id < graph->nnodes; id++) {
        const fv_node *node = graph->nodes[id];
        if (!node->op || node->op->role != FV_OP_ARRAY) continue;
        fv_array_params *params = node->params;
        for (int a = 0; a < p->bindings.narrays; a++)
            if (!strcmp(p->bindings.arrays[a].name, params->name)) p->arrays[a] = params;
    }
}

/* False if a name is kept that the text gives no image. */
static bool find_kept(fv_prepared *p) {
    const fv_graph *graph = p->instance->graph;
    int             n = p->bindings.nkeeps;
    p->kept = fv__calloc((size_t)(n + 1) * sizeof *p->kept);
    p->direct = fv__calloc((size_t)n + 1);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < graph->nsinks; k++)
            if (!strcmp(graph->sinks[k].name, p->bindings.keeps[i])) p->kept[i] = &graph->sinks[k];
        if (!p->kept[i]) return false;
        p->direct[i] = fv__direct_takes(p->instance, p->kept[i]);
    }
    return true;
}

fv_status fv__prepared_new(const fv_program *program, fv_bindings *bindings, const fv_plan_options *options, fv_prepared **out,
                           fv_diagnostics *diagnostics, fv_error *error) {
    *out = NULL;
    if (bindings->nunits != 1 || bindings->names_files || bindings->ncombinations > 1) return FV_OK;
    fv_prepared *p = fv__calloc(sizeof *p);
    p->bindings = *bindings;
    p->budget = fv__budget_smallest(&(fv_sharers){ 0 });
    p->context = (fv_context){ .program = program, .bindings = &p->bindings, .plan_options = *options, .poison = -1 };
    fv_status status = fv__run_sample(&p->context, 0, &p->instance, diagnostics, error);
    bool      ready = status == FV_OK && is_plain(p->instance) && fits(&p->budget, p->instance->plan) && find_kept(p);
    if (!ready) {
        p->bindings = (fv_bindings){ 0 }; /* still the caller's */
        fv__prepared_free(p);
        return status;
    }
    find_arrays(p);
    p->worker = fv__worker_new();
    p->folder = fv__strdup(fv__temporary_place());
    p->instance->direct = fv__calloc((size_t)(p->instance->graph->nnodes + 1) * sizeof *p->instance->direct);
    *out = p;
    return FV_OK;
}

void fv__prepared_free(fv_prepared *p) {
    if (!p) return;
    fv__instance_close(p->instance);
    fv__worker_free(p->worker);
    fv__bindings_release(&p->bindings);
    free(p->folder);
    free(p->arrays);
    free(p->kept);
    free(p->direct);
    free(p);
}

/* ---------------------------------------------------------------- running */

static fv_status run_stages(fv_prepared *p, fv_error *error) {
    const fv_plan *plan = p->instance->plan;
    for (int k = 0; k < plan->nstages; k++) {
        const fv_stage *stage = &plan->stages[k];
        fv_task_facts   facts = { 0 };
        for (int64_t task = 0; task < (stage->serial ? 1 : stage->ntasks); task++) {
            if (p->context.cancel && *p->context.cancel) return fv_fail(error, FV_ERROR_CANCELLED, "stopped");
            FV_TRY(fv__task_run(p->instance, stage, task, p->worker, &facts, error));
        }
        FV_TRY(fv__stage_end(p->instance, stage, error));
    }
    return FV_OK;
}

static fv_status fetch_images(fv_prepared *p, void *const *images, fv_error *error) {
    for (int i = 0; i < p->bindings.nkeeps; i++)
        if (!p->direct[i]) FV_TRY(fv__fetch_image(p->instance, p->kept[i]->value, images[i], error));
    return FV_OK;
}

static void point_to(fv_prepared *p, const void *const *arrays, void *const *images) {
    for (int a = 0; a < p->bindings.narrays; a++)
        if (p->arrays[a]) p->arrays[a]->data = arrays[a];
    for (int i = 0; i < p->bindings.nkeeps; i++)
        if (p->direct[i]) p->instance->direct[p->kept[i]->value->id] = images ? images[i] : NULL;
}

fv_status fv__prepared_run(fv_prepared *p, const void *const *arrays, void *const *images, const volatile int *cancel,
                           fv_error *error) {
    fv_store_options options = { .folder = p->folder, .writer = "transient", .memory = p->budget.store, .transient = true };
    FV_TRY(fv__store_open(&options, &p->context.store, error));
    memset(p->instance->scalar_known, 0, (size_t)p->instance->graph->nnodes);
    p->context.cancel = cancel;
    point_to(p, arrays, images);
    fv_status status = run_stages(p, error);
    if (status == FV_OK) status = fetch_images(p, images, error);
    point_to(p, arrays, NULL); /* they are not ours to free */
    fv__store_close(p->context.store);
    p->context.store = NULL;
    return status;
}
