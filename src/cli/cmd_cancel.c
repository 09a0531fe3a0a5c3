/* fovea cancel: ends the jobs of a run. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *store;
} cancel_options;

static const fv_option options[] = {
    FV_OPTION(cancel_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const cancel_options *o = options_;
    fv_error              error = { 0 };
    char                 *run_folder;
    fv_status             status = fv_cluster_find(o->store, nargs ? args[0] : NULL, &run_folder, &error);
    if (status == FV_OK) status = fv_cluster_cancel(run_folder, &error);
    if (status == FV_OK) fprintf(stderr, "fovea: cancelled; what is done stays, and the same submit goes on from there\n");
    free(run_folder);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("cancel", NULL, status, &error);
}

const fv_command fv_cmd_cancel = {
    .name = "cancel",
    .brief = "cancel the jobs of a submitted run",
    .usage = "[RUN]",
    .least = 0,
    .most = 1,
    .doc = "RUN is the folder of a run, or the beginning of its name. If left out, it is the one submitted last.",
    .examples = "fovea cancel\nfovea cancel 0123",
    .options = options,
    .options_size = sizeof(cancel_options),
    .run = run,
};
