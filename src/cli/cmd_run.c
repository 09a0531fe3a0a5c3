/* fovea run: a pipeline from text to finished results. */
#include "execute.h"
#include "piloted.h"
#include "pipeline_options.h"
#include "placed.h"
#include "watching.h"
#include "within.h"
#include <fovea/cluster.h>
#include <fovea/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    FV_EXECUTE_FIELDS;
    const char *profile;
    bool        one_job;
    const char *pilot;
    const char *master;
    int64_t     executors;
    fv_texts    spark_conf;
    bool        mpi, apart;
    const char *scheduler;
    bool        watch;
    const char *within, *within_error;
} run_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(run_options),
    FV_EXECUTE_OPTIONS(run_options),
    FV_ALLOW_COMMANDS(run_options),
    FV_OPTION(run_options, profile, .argument = "NAME", .doc = "with --engine slurm: name of the cluster's profile"),
    FV_OPTION(run_options, one_job, .doc = "with --engine slurm: one job whose workers fetch the tasks, instead of job arrays"),
    FV_OPTION(run_options, pilot, .argument = "NAME", .doc = "let this pilot do it (`fovea pilot start`), and wait"),
    FV_OPTION(run_options, master, .argument = "URL",
              .doc = "with --engine spark: the cluster, such as spark://host:7077, yarn, or local[4] to try it out"),
    FV_OPTION(run_options, executors, .min = 1, .max = 1e5, .argument = "N", .doc = "with --engine spark: how many executors"),
    FV_OPTION(run_options, spark_conf, .argument = "KEY=VALUE", .doc = "with --engine spark: a setting of Spark"),
    FV_OPTION(run_options, mpi, .doc = "with --engine spark: workers are ranks of MPI that live in the executors"),
    FV_OPTION(run_options, apart,
              .doc = "with --engine spark or dask: the workers share no folder with this machine, which keeps all files"),
    FV_OPTION(run_options, scheduler, .argument = "ADDRESS",
              .doc =
                  "with --engine dask: where the cluster's scheduler listens, such as tcp://host:8786, or local to try it out"),
    FV_OPTION(run_options, watch, .doc = "print a link to a page that shows the run while it goes on"),
    FV_OPTION(run_options, within, .argument = "TIME",
              .doc = "estimate printed statistics in this time, such as 30s or 2min; images are not written"),
    FV_OPTION(run_options, within_error, .argument = "PART",
              .doc = "estimate them until each is known to this part of its value, such as 1% or 0.01"),
    FV_OPTION_END,
};

typedef struct job {
    fv_pipeline       *pipeline;
    fv_cluster_options cluster;
} job;

/* Submits, waits, and then finds everything done: what is left is to show it. */
static fv_status run_on_cluster(void *context, const fv_run_options *given, fv_result **result, fv_error *error) {
    const job     *j = context;
    fv_run_options here = *given;
    char          *run_folder, *text = NULL;
    here.engine = NULL;
    fv_status status = fv_pipeline_freeze(j->pipeline, &here, &run_folder, error);
    if (status == FV_OK) status = fv_cluster_submit(run_folder, &j->cluster, &text, error);
    if (status == FV_OK) status = fv_cluster_wait(run_folder, &here, error);
    free(text);
    free(run_folder);
    here.fresh = false;
    if (status == FV_OK) return fv_pipeline_run(j->pipeline, &here, result, error);
    *result = fv_result_new();
    return status;
}

static void add_number(fv_placing *placing, const char *option, int64_t number, char text[24]) {
    snprintf(text, 24, "%lld", (long long)number);
    fv_placing_add(placing, option, number ? text : NULL);
}

static int run_elsewhere(const run_options *o, fv_pipeline *pipeline, const fv_execute *execute) {
    fv_placing placing = { .engine = o->engine };
    char       executors[24], workers[24], memory[24];
    add_number(&placing, "--workers", o->workers, workers);
    add_number(&placing, "--memory", o->memory.bytes, memory);
    add_number(&placing, "--executors", o->executors, executors);
    fv_placing_add(&placing, "--overwrite", o->overwrite ? "yes" : NULL);
    fv_placing_add(&placing, "--scheduler", o->scheduler);
    fv_placing_add(&placing, "--master", o->master);
    fv_placing_add(&placing, "--mpi", o->mpi ? "yes" : NULL);
    fv_placing_add(&placing, "--apart", o->apart ? "yes" : NULL);
    for (int i = 0; i < o->spark_conf.count; i++) fv_placing_add(&placing, "--conf", o->spark_conf.items[i]);
    return fv_execute_placed("run", pipeline, &placing, execute);
}

/* An option of one engine that another would leave aside is a mistake: most often the engine was forgotten. */
static bool options_suit(const run_options *o) {
    const struct {
        bool        given;
        const char *option, *engine, *other;
    } rules[] = {
        { o->profile, "--profile", "slurm" },
        { o->one_job, "--one-job", "slurm" },
        { o->master, "--master", "spark" },
        { o->executors, "--executors", "spark" },
        { o->spark_conf.count, "--spark-conf", "spark" },
        { o->mpi, "--mpi", "spark" },
        { o->scheduler, "--scheduler", "dask" },
        { o->apart, "--apart", "spark", "dask" },
    };
    const char *engine = o->engine ? o->engine : "threads";
    for (int i = 0; i < (int)(sizeof rules / sizeof *rules); i++) {
        const char *other = rules[i].other;
        if (!rules[i].given || !strcasecmp(engine, rules[i].engine) || (other && !strcasecmp(engine, other))) continue;
        fv_complain("run", "%s goes with --engine %s%s%s, and this run is on %s", rules[i].option, rules[i].engine,
                    other ? " or " : "", other ? other : "", o->pilot ? "a pilot" : engine);
        return false;
    }
    return true;
}

static int run(const void *options_, int nargs, char **args) {
    const run_options *o = options_;
    int                status;
    bool elsewhere = o->engine && (!strcmp(o->engine, "spark") || !strcmp(o->engine, "dask") || !strcmp(o->engine, "slurm"));
    if (o->watch && elsewhere) {
        fv_complain("run", "--watch is for runs of this process; for one with --engine %s, type `fovea watch` beside it",
                    o->engine);
        return FV_EXIT_REFUSED;
    }
    if (!options_suit(o)) return FV_EXIT_REFUSED;
    if (o->pilot && o->engine) {
        fv_complain("run", "--pilot says already where it runs; leave out --engine %s", o->engine);
        return FV_EXIT_REFUSED;
    }
    if (!fv_ranks_lead(o->engine, &status)) return status;
    fv_pipeline *pipeline = fv_pipeline_from_options("run", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return fv_ranks_end(status);
    fv_execute execute = { o->engine, o->workers,   o->memory,        o->patience,       o->store,
                           o->fresh,  o->overwrite, o->stop_on_error, o->allow_commands, o->items,
                           o->into,   o->device,    o->quiet,         o->verbose,        o->json };
    if (!fv_within("run", o->within, o->within_error, &execute.within, &execute.within_error)) {
        fv_pipeline_free(pipeline);
        return fv_ranks_end(FV_EXIT_REFUSED);
    }
    if (o->pilot) return fv_execute_piloted("run", pipeline, o->pilot, &execute);
    if (o->engine && (!strcmp(o->engine, "spark") || !strcmp(o->engine, "dask"))) return run_elsewhere(o, pipeline, &execute);
    if (!o->engine || strcmp(o->engine, "slurm")) {
        int watcher = o->watch ? fv_watching_start("run", o->store) : 0;
        status = fv_execute_pipeline("run", pipeline, &execute);
        fv_watching_end(watcher);
        return fv_ranks_end(status);
    }
    job j = { pipeline, { .profile = o->profile, .pilot = o->one_job, .overwrite = o->overwrite } };
    if (o->workers) { /* as many jobs, or nodes of a pilot, however little each has to do */
        *(o->one_job ? &j.cluster.nodes : &j.cluster.array) = o->workers;
        j.cluster.minimum = 1e-6;
    }
    status = fv_execute_work("run", run_on_cluster, &j, pipeline, &execute);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_run = {
    .name = "run",
    .brief = "run a pipeline",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "A result gets its name only when it is complete. After an interruption, even a power cut, the same "
           "command continues where it stopped. What has not changed is not computed again. File names are relative "
           "to the folder in which you type the command.\n"
           "Exit status: 0 everything was done, 1 some work failed, 2 nothing was started, 130 interrupted.",
    .examples = "fovea run foam.fov\nfovea run foam.fov --set radius=8,12,16\n"
                "fovea run -e 'read(\"in.png\") |> median(5) |> write(\"out.png\")'",
    .options = options,
    .options_size = sizeof(run_options),
    .run = run,
};
