/* fovea run: a pipeline from text to finished results. */
#include "execute.h"
#include "pipeline_options.h"
#include <fovea/ranks.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    FV_EXECUTE_FIELDS;
} run_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(run_options),
    FV_EXECUTE_OPTIONS(run_options),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const run_options *o = options_;
    int                status;
    if (!fv_ranks_lead(o->engine, &status)) return status;
    fv_pipeline       *pipeline = fv_pipeline_from_options("run", o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return fv_ranks_end(status);
    fv_execute execute = { o->engine,    o->workers,       o->memory, o->patience, o->store, o->fresh,
                           o->overwrite, o->stop_on_error, o->items,  o->into,     o->quiet, o->verbose,
                           o->json };
    return fv_ranks_end(fv_execute_pipeline("run", pipeline, &execute));
}

const fv_command fv_cmd_run = {
    .name = "run",
    .brief = "run a pipeline",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc =
        "Results appear under their names only when they are complete. After an interruption, even a power cut, the same command "
        "goes on where it stopped; what has not changed is not computed again.\n"
        "Exit status: 0 all well, 1 some work failed, 2 nothing was started, 130 interrupted.",
    .examples = "fovea run foam.fov\nfovea run foam.fov --set radius=8,12,16\n"
                "fovea run -e 'read(\"in.png\") |> median(5) |> write(\"out.png\")'",
    .options = options,
    .options_size = sizeof(run_options),
    .run = run,
};
