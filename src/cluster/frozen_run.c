/* Opening a frozen run: its manifest, a unit of it, and what all units will need. */
#include "cluster/frozen_run.h"
#include "run/manifest.h"

fv_status fv__frozen_run_open(const char *run_folder, fv_frozen_run *run, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    *run = (fv_frozen_run){ .context.poison = -1 };
    fv_status status = fv__manifest_load(run_folder, &run->program, &run->bindings, &run->context.plan_options, error);
    run->context.program = run->program;
    run->context.bindings = &run->bindings;
    if (status == FV_OK) status = fv__run_sample(&run->context, 0, &run->sample, &diagnostics, error);
    if (status == FV_OK) status = fv__run_outlook(&run->context, &run->outlook, &diagnostics, error);
    fv__diagnostics_release(&diagnostics);
    return status;
}

void fv__frozen_run_close(fv_frozen_run *run) {
    fv__instance_close(run->sample);
    fv__program_free(run->program);
    fv__bindings_release(&run->bindings);
}
