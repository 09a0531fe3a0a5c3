/* fovea report: what the record of a run says. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <fovea/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *store;
    bool        json;
    const char *output;
    bool        hash;
} report_options;

static const fv_option options[] = {
    FV_OPTION(report_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION(report_options, json, .doc = "print JSON"),
    FV_OPTION(report_options, output, .letter = 'o', .argument = "FILE.html",
              .doc = "write the whole story of the run to one HTML page instead"),
    FV_OPTION(report_options, hash, .doc = "read inputs of any size for their hashes; 128 MiB of them if left out"),
    FV_OPTION_END,
};

static bool is_page(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcasecmp(dot, ".html") || !strcasecmp(dot, ".htm"));
}

static int run(const void *options_, int nargs, char **args) {
    const report_options *o = options_;
    fv_error              error = { 0 };
    char                 *run_folder, *text = NULL;
    if (o->output && !is_page(o->output)) {
        fv_complain("report", "-o %s: the report is a page for a browser; give a name that ends with .html", o->output);
        return FV_EXIT_REFUSED;
    }
    fv_status status = fv_run_find(o->store, nargs ? args[0] : NULL, &run_folder, &error);
    if (status == FV_OK && o->output) {
        status = fv_run_report_page(run_folder, o->hash, o->output, &error);
        free(run_folder);
        return status == FV_OK ? FV_EXIT_WELL : fv_explain("report", NULL, status, &error);
    }
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
           "With -o it writes a page for a browser, in one file that needs nothing else: how the run ended and what "
           "failed, pictures of results, pipeline, inputs with hashes, graph, timeline of workers, memory, what was "
           "reused, the command that repeats it, and a paragraph for the methods section of a paper.\n"
           "RUN is the folder of a run, or the beginning of its name. If left out, it is the one that ran last.",
    .examples = "fovea report\nfovea report 0123 --json\nfovea report -o report.html",
    .options = options,
    .options_size = sizeof(report_options),
    .run = run,
};
