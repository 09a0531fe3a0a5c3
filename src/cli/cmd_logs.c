/* fovea logs: what the jobs of a submitted run have said, and the programs that commands and units have run. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <fovea/units.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *job;
    bool        failed;
    const char *store;
} logs_options;

static const fv_option options[] = {
    FV_OPTION(logs_options, job, .argument = "NAME", .doc = "only of this job, such as stage-1 or finish"),
    FV_OPTION(logs_options, failed, .doc = "only of jobs and programs that failed"),
    FV_OPTION(logs_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const logs_options *o = options_;
    fv_error            error = { 0 };
    const char         *name = nargs ? args[0] : NULL;
    char               *run_folder, *text = NULL, *programs = NULL;
    int64_t             nprograms = 0;
    fv_status           status = fv_cluster_find(o->store, name, &run_folder, &error);
    fv_error            ignored;
    if (status == FV_OK) status = fv_cluster_logs(run_folder, o->job, o->failed, &text, &error);
    if (status == FV_OK) fputs(text, stdout);
    if (!o->job && fv_units_logs(o->store, name, o->failed, &nprograms, &programs, &ignored) == FV_OK) fputs(programs, stdout);
    if (nprograms) status = FV_OK; /* nothing was submitted, but there is something to tell */
    free(text);
    free(programs);
    free(run_folder);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("logs", NULL, status, &error);
}

const fv_command fv_cmd_logs = {
    .name = "logs",
    .brief = "show the logs of a submitted run and of programs",
    .usage = "[RUN]",
    .least = 0,
    .most = 1,
    .doc = "RUN is the folder of a run, or the beginning of its name. If left out, it is the one submitted last. Then what the "
           "programs "
           "of the operator command have printed is shown, and what those of `fovea each` have.",
    .examples = "fovea logs --failed\nfovea logs 0123 --job finish",
    .options = options,
    .options_size = sizeof(logs_options),
    .run = run,
};
