/* Runs on which several processes work: beginning anew, and how far they are. */
#include "base/file.h"
#include "cluster/overview.h"
#include "plan/print.h"
#include "run/claims.h"
#include <cjson/cJSON.h>
#include <fovea/cluster.h>
#include <stdlib.h>

fv_status fv_run_renew(const char *run_folder, fv_error *error) {
    char     *claims = fv__sprintf("%s/claims", run_folder);
    fv_status status = fv__file_exists(claims) ? fv__path_remove(claims, error) : FV_OK;
    free(claims);
    return status;
}

fv_status fv_run_look(const char *run_folder, fv_run_state *state, fv_error *error) {
    fv_frozen_run run;
    fv_overview   overview = { 0 };
    *state = (fv_run_state){ 0 };
    fv_status status = fv__frozen_run_open(run_folder, &run, error);
    if (status == FV_OK) status = fv__overview_tasks(run_folder, &run, &overview, error);
    if (status == FV_OK) fv__overview_state(&overview, state);
    fv__overview_release(&overview);
    fv__frozen_run_close(&run);
    return status;
}

/* Of a collection all stages of an item are one. */
static char *title_of(const fv_frozen_run *run, int stage) {
    const fv_plan *plan = run->sample->plan;
    fv_bytes       title = { 0 };
    for (int k = 0; k < plan->nstages; k++) {
        if (!run->bindings.collection && k != stage) continue;
        if (title.size) fv__bytes_printf(&title, "; ");
        fv__stage_title(&plan->stages[k], &title);
    }
    fv__bytes_append(&title, "", 1);
    return (char *)title.data;
}

static cJSON *stages_json(const fv_frozen_run *run, const fv_overview *o) {
    cJSON *stages = cJSON_CreateArray();
    for (int k = 0; k < o->nstages; k++) {
        cJSON *stage = cJSON_CreateObject();
        char  *title = title_of(run, k);
        cJSON_AddStringToObject(stage, "name", title);
        cJSON_AddNumberToObject(stage, "tasks", (double)o->stages[k].tasks);
        cJSON_AddNumberToObject(stage, "done", (double)FV_MIN(o->stages[k].done, o->stages[k].tasks));
        cJSON_AddNumberToObject(stage, "running", (double)o->stages[k].running);
        cJSON_AddNumberToObject(stage, "failed", (double)o->stages[k].failed);
        double work = run->bindings.collection ? run->outlook.work : run->sample->plan->stages[k].work;
        cJSON_AddNumberToObject(stage, "work_seconds", work * 1e-9);
        cJSON_AddItemToArray(stages, stage);
        free(title);
    }
    return stages;
}

static char *run_json(const char *run_folder, const fv_frozen_run *run, const fv_overview *o) {
    fv_sharers   sharers = { .driver = fv__budget_driver(&run->bindings) };
    int64_t      bound = fv__budget_bound(&sharers, run->outlook.most, 1);
    fv_run_state state = { 0 };
    cJSON       *root = cJSON_CreateObject();
    fv__overview_state(o, &state);
    cJSON_AddBoolToObject(root, "collection", o->collection);
    cJSON_AddBoolToObject(root, "finished", fv__claims_are_finished(run_folder));
    cJSON_AddNumberToObject(root, "fraction", state.fraction);
    cJSON_AddNumberToObject(root, "tasks_done", (double)o->tasks_done);
    cJSON_AddNumberToObject(root, "tasks_repeated", (double)o->tasks_repeated);
    cJSON_AddNumberToObject(root, "bound", (double)bound);
    cJSON_AddNumberToObject(root, "ask", (double)fv__budget_ask(bound));
    cJSON_AddNumberToObject(root, "least", (double)fv__budget_least(&sharers, run->outlook.memory));
    cJSON_AddItemToObject(root, "stages", stages_json(run, o));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

fv_status fv_run_describe(const char *run_folder, char **json, fv_error *error) {
    fv_frozen_run run;
    fv_overview   overview = { 0 };
    *json = NULL;
    fv_status status = fv__frozen_run_open(run_folder, &run, error);
    if (status == FV_OK) status = fv__overview_tasks(run_folder, &run, &overview, error);
    if (status == FV_OK) *json = run_json(run_folder, &run, &overview);
    fv__overview_release(&overview);
    fv__frozen_run_close(&run);
    return status;
}
