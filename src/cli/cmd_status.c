/* fovea status: where a submitted run is, and how streams do. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <fovea/stream.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *store;
    bool        json;
} status_options;

static const fv_option options[] = {
    FV_OPTION(status_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION(status_options, json, .doc = "print JSON"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const status_options *o = options_;
    fv_error              error = { 0 };
    fv_form               form = o->json ? FV_FORM_JSON : FV_FORM_TEXT;
    char                 *run_folder, *text = nargs ? NULL : fv_stream_status(o->store, form);
    if (text) fputs(text, stdout);
    bool streams = text != NULL;
    free(text);
    text = NULL;
    fv_status status = fv_cluster_find(o->store, nargs ? args[0] : NULL, &run_folder, &error);
    if (status != FV_OK && streams) return FV_EXIT_WELL;
    if (status == FV_ERROR_USAGE && !nargs) {
        fv_complain("status", "no stream runs in this folder, and %s", error.message);
        return FV_EXIT_REFUSED;
    }
    if (status == FV_OK) status = fv_cluster_status(run_folder, form, &text, &error);
    if (status == FV_OK) fputs(text, stdout);
    free(text);
    free(run_folder);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("status", NULL, status, &error);
}

const fv_command fv_cmd_status = {
    .name = "status",
    .brief = "show where a submitted run is, and how streams do",
    .usage = "[RUN]",
    .least = 0,
    .most = 1,
    .doc = "Counts the jobs and tasks that wait, run, are done, have failed or were queued again. When the run is "
           "over, it compares what was asked for with what was used, and shows how busy the workers were and which "
           "request would have been enough.\n"
           "RUN is the folder of a run, or the beginning of its name. If left out, it is the one submitted last, after the "
           "streams of this folder: their rate, latency and errors.",
    .examples = "fovea status\nfovea status 0123 --json",
    .options = options,
    .options_size = sizeof(status_options),
    .run = run,
};
