/* fovea estimate: what a pipeline will cost. */
#include "pipeline_options.h"
#include "stopping.h"
#include "trying.h"
#include <fovea/estimate.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    int64_t     items, workers;
    fv_size     memory;
    double      seconds;
    const char *store;
    bool        quiet, json;
} estimate_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(estimate_options),
    FV_OPTION(estimate_options, items, .min = 1, .argument = "N",
              .doc = "predict for a collection of N items, more or fewer than there are"),
    FV_OPTION(estimate_options, workers, .min = 1, .max = 1000000, .argument = "N",
              .doc = "predict for 1 to N workers; all cores of this machine if left out"),
    FV_OPTION(estimate_options, memory,
              .doc = "how much memory the run may use, such as 512M or 4G; half of the free memory "
                     "if left out"),
    FV_OPTION(estimate_options, seconds, .min = 0.1, .max = 86400, .def = "20",
              .doc = "about how long to measure; longer is more exact"),
    FV_OPTION(estimate_options, store, .argument = "FOLDER",
              .doc = "where the trials run; they are removed afterwards; "
                     ".fovea if left out"),
    FV_OPTION(estimate_options, quiet, .letter = 'q', .doc = "do not say what is being measured"),
    FV_OPTION(estimate_options, json, .doc = "print JSON"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const estimate_options *o = options_;
    int                     status;
    fv_pipeline *pipeline = fv_pipeline_from_options("estimate", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    fv_estimate_options asked = { .items = o->items,
                                  .workers = (int)o->workers,
                                  .memory = o->memory.bytes,
                                  .budget = o->seconds,
                                  .store = o->store,
                                  .cancel = fv_stopping(false),
                                  .tell = o->quiet ? NULL : fv_trying_tell };
    fv_estimate         estimate;
    fv_error            error = { 0 };
    fv_status           result = fv_pipeline_estimate(pipeline, &asked, &estimate, &error);
    status = result == FV_OK ? FV_EXIT_WELL : fv_explain("estimate", pipeline, result, &error);
    if (result == FV_OK) {
        char *text = fv_estimate_print(&estimate, o->json ? FV_FORM_JSON : FV_FORM_TEXT);
        fputs(text, stdout);
        free(text);
    }
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_estimate = {
    .name = "estimate",
    .brief = "predict time and memory of a pipeline on any number of workers",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "Runs a few items, or a few slabs of a single image, in a temporary store, and measures how time and memory grow. "
           "From this it predicts what the whole job takes on 1 to N workers, what takes most of the time, and what to ask "
           "Slurm for.",
    .examples = "fovea estimate denoise.fov\nfovea estimate denoise.fov --items 40000 --workers 256\n"
                "fovea estimate foam.fov --seconds 60 --json",
    .options = options,
    .options_size = sizeof(estimate_options),
    .run = run,
};
