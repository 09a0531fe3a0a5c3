/* Waiting for a run that others do. */
#include "base/file.h"
#include "cluster/overview.h"
#include <fovea/cluster.h>
#include <stdlib.h>
#include <time.h>

#define LOOK 1.0 /* seconds between looks at the queue */

static void tell(const fv_overview *o, const fv_run_options *options, double seconds) {
    fv_run_state state = { .seconds = seconds };
    if (!options || !options->progress) return;
    fv__overview_state(o, &state);
    options->progress(options->context, &state);
}

static bool cancelled(const fv_run_options *options) { return options && options->cancel && *options->cancel; }

static fv_status explain(const char *run_folder, const fv_overview *o, fv_error *error) {
    for (int i = 0; i < o->njobs; i++)
        if (o->jobs[i].failed && o->jobs[i].job.role != FV_ROLE_AGAIN)
            return fv_fail(
                error, FV_ERROR_INTERNAL,
                "job %s failed (%s) and the run is not complete; `fovea logs %s --failed` shows why, and the same command "
                "does what is missing",
                o->jobs[i].job.name, o->jobs[i].word, run_folder);
    return fv_fail(error, FV_ERROR_INTERNAL, "the jobs of %s are over, but it is not complete", run_folder);
}

fv_status fv_cluster_wait(const char *run_folder, const fv_run_options *options, fv_error *error) {
    double start = fv__now();
    for (int unknown = 0;;) {
        fv_overview overview;
        fv_error    own = { 0 };
        fv_status   status = fv__overview_make(run_folder, &overview, &own);
        bool        over = status == FV_OK && overview.over;
        if (status == FV_OK) tell(&overview, options, fv__now() - start);
        if (over && !overview.whole) explain(run_folder, &overview, error);
        bool whole = overview.whole;
        fv__overview_release(&overview);
        if (over) return whole ? FV_OK : error->code;
        unknown = status == FV_OK ? 0 : unknown + 1;
        if (unknown > 60) { /* a controller that restarts is away for a while */
            *error = own;
            return status;
        }
        for (double slept = 0; slept < LOOK; slept += 0.1) {
            if (cancelled(options))
                return fv_fail(error, FV_ERROR_CANCELLED,
                               "the jobs go on without this command; `fovea status` shows where they "
                               "are, `fovea cancel` ends them");
            nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        }
    }
}
