/* fovea report: what the record of a run says. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <fovea/report.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *store;
    bool        json;
} report_options;

static const fv_option options[] = {
    FV_OPTION(report_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION(report_options, json, .doc = "print JSON"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const report_options *o = options_;
    fv_error              error = { 0 };
    char                 *run_folder, *text = NULL;
    fv_status             status = fv_run_find(o->store, nargs ? args[0] : NULL, &run_folder, &error);
    if (status == FV_OK) status = fv_run_report(run_folder, o->json ? FV_FORM_JSON : FV_FORM_TEXT, &text, &error);
    if (status == FV_OK) fputs(text, stdout);
    free(text);
    free(run_folder);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("report", NULL, status, &error);
}

const fv_command fv_cmd_report = {
    .name = "report",
    .brief = "show what the record of a run says",
    .usage = "[RUN]",
    .least = 0,
    .most = 1,
    .doc = "Shows how much time all workers together spent in each operator, in reading, in writing and in the "
           "store. For iterative reconstructions it also shows the residual of every iteration: which part of the "
           "measured projections is left unexplained, for all slices together and for the best and the worst of "
           "those that were still being solved.\n"
           "RUN is the folder of a run, or the beginning of its name. If left out, it is the one that ran last.",
    .examples = "fovea report\nfovea report 0123 --json",
    .options = options,
    .options_size = sizeof(report_options),
    .run = run,
};
