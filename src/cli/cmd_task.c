/* fovea task: what an engine's worker process runs. */
#include "cli.h"
#include <fovea/pipeline.h>
#include <stdio.h>

typedef struct {
    bool apart;
} task_options;

static const fv_option options[] = {
    FV_OPTION(task_options, apart, .doc = "standard input is a socket to an engine that shares no folder with this machine"),
    FV_OPTION_END,
};

static int run(const void *options_, int nargs, char **args) {
    const task_options *o = options_;
    if (o->apart) return fv_task_serve_apart();
    if (nargs == 1) return fv_task_serve(args[0]);
    fputs("fovea task: a run's folder is needed\n", stderr);
    return FV_EXIT_REFUSED;
}

const fv_command fv_cmd_task = {
    .name = "task",
    .brief = "run jobs of a run, read from standard input",
    .usage = "[RUN_FOLDER]",
    .most = 1,
    .doc = "Started by engines. Each line of standard input names a job; each line of standard output tells how it went.",
    .options = options,
    .options_size = sizeof(task_options),
    .hidden = true,
    .run = run,
};
