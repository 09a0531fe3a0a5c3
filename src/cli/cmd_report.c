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
    .doc =
        "What workers spent in each operator, all of them together, and in reading, writing and the store. The residual of every "
        "iteration of a reconstruction: what it leaves unexplained as a part of what was measured, of all "
        "slices together and of the best and the worst of those that still took part.\n"
        "RUN is the folder of a run or the begin of its name; the one that ran last if left out.",
    .examples = "fovea report\nfovea report 0123 --json",
    .options = options,
    .options_size = sizeof(report_options),
    .run = run,
};
