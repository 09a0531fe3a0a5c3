/* fovea logs: what the jobs of a submitted run have said. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *job;
    bool        failed;
    const char *store;
} logs_options;

static const fv_option options[] = {
    FV_OPTION(logs_options, job, .argument = "NAME", .doc = "only of this job, such as stage-1 or finish"),
    FV_OPTION(logs_options, failed, .doc = "only of jobs that failed"),
    FV_OPTION(logs_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const logs_options *o = options_;
    fv_error            error = { 0 };
    char               *run_folder, *text = NULL;
    fv_status           status = fv_cluster_find(o->store, nargs ? args[0] : NULL, &run_folder, &error);
    if (status == FV_OK) status = fv_cluster_logs(run_folder, o->job, o->failed, &text, &error);
    if (status == FV_OK) fputs(text, stdout);
    free(text);
    free(run_folder);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("logs", NULL, status, &error);
}

const fv_command fv_cmd_logs = {
    .name = "logs",
    .brief = "show the logs of a submitted run",
    .usage = "[RUN]",
    .least = 0,
    .most = 1,
    .doc = "RUN is the folder of a run, or the beginning of its name. If left out, it is the one submitted last.",
    .examples = "fovea logs --failed\nfovea logs 0123 --job finish",
    .options = options,
    .options_size = sizeof(logs_options),
    .run = run,
};
