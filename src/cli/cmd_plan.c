/* fovea plan: what a pipeline will do. */
#include "pipeline_options.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    int64_t     workers;
    fv_size     memory;
    const char *engine;
    int64_t     ranks;
    const char *device;
    bool        json;
} plan_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(plan_options),
    FV_OPTION(plan_options, workers, .min = 1, .max = 4096, .def = NULL,
              .doc = "how many tasks run at once; all cores if "
                     "left out"),
    FV_OPTION(plan_options, memory,
              .doc = "how much memory the run may use, such as 512M or 4G; half of the free memory if "
                     "left out"),
    FV_OPTION(plan_options, engine, .argument = "NAME", .doc = "threads, processes or mpi: what each takes for itself differs"),
    FV_OPTION(plan_options, ranks, .min = 1, .max = 4096, .argument = "N",
              .doc = "of engine mpi: ranks on each machine, which share its memory; 1 if left out"),
    FV_OPTION(plan_options, device, .argument = "auto|cpu|opencl[:N]",
              .doc = "where to run operators that can use a device; cpu if left out"),
    FV_OPTION(plan_options, json, .doc = "print JSON"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const plan_options *o = options_;
    int                 status;
    fv_pipeline        *pipeline = fv_pipeline_from_options("plan", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    fv_run_options run_options = {
        .workers = (int)o->workers, .memory = o->memory.bytes, .engine = o->engine, .ranks = (int)o->ranks, .device = o->device
    };
    fv_error  error = { 0 };
    char     *text;
    fv_status result = fv_pipeline_plan(pipeline, &run_options, o->json ? FV_FORM_JSON : FV_FORM_TEXT, &text, &error);
    status = result == FV_OK ? FV_EXIT_WELL : fv_explain("plan", pipeline, result, &error);
    if (result == FV_OK) fputs(text, stdout);
    free(text);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_plan = {
    .name = "plan",
    .brief = "say what a pipeline will read, compute and write",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "Shows the stages with their tasks, chunks and halos (the margins that filters need), the memory that is needed, "
           "and how much work it is. No pixel is read.",
    .examples = "fovea plan foam.fov\nfovea plan foam.fov --memory 2G --json",
    .options = options,
    .options_size = sizeof(plan_options),
    .run = run,
};
