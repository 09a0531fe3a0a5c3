/* fovea task: what an engine's worker process runs. */
#include "cli.h"
#include <fovea/pipeline.h>

static const fv_option options[] = { FV_OPTION_END };

static int run(const void *options_, int nargs, char **args) {
    (void)options_;
    (void)nargs;
    return fv_task_serve(args[0]);
}

const fv_command fv_cmd_task = {
    .name = "task",
    .brief = "run jobs of a run, read from standard input",
    .usage = "RUN_FOLDER",
    .least = 1,
    .most = 1,
    .doc = "Started by engines. Each line of standard input names a job; each line of standard output tells how it went.",
    .options = options,
    .hidden = true,
    .run = run,
};
