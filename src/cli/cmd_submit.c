/* fovea submit: a pipeline as jobs of a Slurm cluster. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include <fovea/estimate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    FV_CLUSTER_FIELDS;
    const char *store;
    int64_t     items;
    const char *into, *device;
    bool        overwrite, allow_commands;
    bool        dry_run;
    double      measure;
    const char *again;
} submit_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(submit_options),
    FV_CLUSTER_OPTIONS(submit_options),
    FV_OPTION(submit_options, store, .argument = "FOLDER",
              .doc = "where the run keeps what it needs to continue later; .fovea if left out"),
    FV_OPTION(submit_options, items, .min = 1, .max = 1e15, .argument = "N",
              .doc = "process only N items of a collection, chosen evenly over their sizes; to try something out"),
    FV_OPTION(submit_options, into, .argument = "FOLDER",
              .doc = "write all results below this folder instead of where the pipeline says"),
    FV_OPTION(submit_options, device, .choices = "cpu|opencl",
              .doc = "opencl: run operators on devices of the same kind as those of this machine; jobs then ask for --gres "
                     "gpu:1, unless --gres says otherwise"),
    FV_ALLOW_COMMANDS(submit_options),
    FV_OPTION(submit_options, overwrite, .doc = "replace files that Fovea did not make"),
    FV_OPTION(submit_options, measure, .min = 0, .max = 3600, .def = "5", .argument = "SECONDS",
              .doc = "first run a few tasks for about this long, to find out how many workers are useful; 0: guess"),
    FV_OPTION(submit_options, dry_run, .doc = "write the job scripts, but submit nothing"),
    FV_OPTION(submit_options, again, .argument = "RUN_FOLDER",
              .doc = "submit again what is missing of a run, with more memory if memory had run out; jobs "
                     "do this themselves"),
    FV_OPTION_END,
};

static int show(const char *run_folder, char *text, fv_status status, const fv_error *error) {
    if (status == FV_OK) printf("%s\n%s", run_folder, text);
    free(text);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("submit", NULL, status, error);
}

/* Seconds of one core that the run takes; 0 if that cannot be found out, and mistakes are told later. */
static double measure(fv_pipeline *pipeline, const submit_options *o) {
    fv_estimate_options how = { .budget = o->measure, .store = o->store };
    fv_estimate         estimate;
    fv_error            error = { 0 };
    double              work = 0;
    if (o->measure <= 0 || fv_pipeline_estimate(pipeline, &how, &estimate, &error) != FV_OK) return 0;
    for (int k = 0; k < FV_COSTS; k++) work += estimate.work[k];
    return work;
}

static int run(const void *options_, int nargs, char **args) {
    const submit_options *o = options_;
    int                   status;
    fv_error              error = { 0 };
    char                 *text = NULL, *run_folder = NULL;
    if (o->again) {
        fv_status again = fv_cluster_submit_again(o->again, &text, &error);
        return show(o->again, text, again, &error);
    }
    fv_pipeline *pipeline = fv_pipeline_from_options("submit", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    fv_run_options run_options = {
        .store = o->store,
        .items = o->items,
        .into = o->into,
        .device = o->device,
        .overwrite = o->overwrite,
        .allow_commands = o->allow_commands,
    };
    fv_cluster_options cluster = FV_CLUSTER_FROM(o);
    cluster.dry = o->dry_run;
    cluster.overwrite = o->overwrite;
    cluster.device = o->device && !strcmp(o->device, "opencl");
    cluster.work = measure(pipeline, o);
    fv_status result = fv_pipeline_freeze(pipeline, &run_options, &run_folder, &error);
    if (result != FV_OK)
        status = fv_explain("submit", pipeline, result, &error);
    else {
        result = fv_cluster_submit(run_folder, &cluster, &text, &error);
        status = show(run_folder, text, result, &error);
    }
    free(run_folder);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_submit = {
    .name = "submit",
    .brief = "run a pipeline as jobs of a Slurm cluster",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "Writes job scripts, submits all of them at once and returns. Each stage is an array of workers that share its "
           "tasks. If a job is killed, its unfinished tasks are done by other workers. The first line that is printed is the "
           "folder of the run. The same command, typed again, does only what is missing.",
    .examples = "fovea submit foam.fov --dry-run\nfovea submit foam.fov --profile genoa --array-size 50 --time 1:00:00\n"
                "fovea submit foam.fov --one-job --nodes 4",
    .options = options,
    .options_size = sizeof(submit_options),
    .run = run,
};
