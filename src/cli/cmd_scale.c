/* fovea scale: how a pipeline's time changes with the number of workers. */
#include "pipeline_options.h"
#include "scaling_sheet.h"
#include "simulation.h"
#include "stopping.h"
#include "trying.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fovea/report.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    FV_PIPELINE_FIELDS;
    const char *workers;
    bool        strong, weak;
    int64_t     repeats, items;
    const char *engine, *launcher, *output, *store;
    fv_size     memory;
    bool        quiet, json;
    const char *simulate, *run;
    int64_t     times, volumes, most_tasks, cores;
    fv_size     disk, network;
    double      stragglers, node_hours;
} scale_options;

static const fv_option options[] = {
    FV_PIPELINE_OPTIONS(scale_options),
    FV_OPTION(scale_options, workers, .argument = "N,N,...", .def = "1,2,4", .doc = "numbers of workers to compare"),
    FV_OPTION(scale_options, strong, .doc = "the same work for every number of workers; the default if neither is given"),
    FV_OPTION(scale_options, weak, .doc = "each worker gets the same work, so N workers get N times as much"),
    FV_OPTION(scale_options, repeats, .min = 1, .max = 100, .def = "3", .argument = "N",
              .doc = "how many runs of each, for "
                     "the median"),
    FV_OPTION(scale_options, items, .min = 1, .argument = "N", .doc = "use only N items of a collection; all if left out"),
    FV_OPTION(scale_options, engine, .argument = "NAME", .doc = "threads, processes, mpi or slurm; threads if left out"),
    FV_OPTION(scale_options, launcher, .argument = "WORDS",
              .doc = "command that starts MPI ranks, such as \"srun --mpi=pmi2\"; -n N is added; mpiexec if left out"),
    FV_OPTION(scale_options, output, .letter = 'o', .argument = "FOLDER", .def = "scaling",
              .doc = "where tables (CSV) and pictures (SVG, PNG) go"),
    FV_OPTION(scale_options, store, .argument = "FOLDER",
              .doc = "where the runs keep their data while they run; .fovea if "
                     "left out"),
    FV_OPTION(scale_options, memory,
              .doc = "how much memory each run may use, such as 512M or 4G; half of the free memory "
                     "if left out"),
    FV_OPTION(scale_options, simulate, .argument = "N,N,...",
              .doc = "simulate these numbers of workers instead, from the tasks of a run on one worker"),
    FV_OPTION(scale_options, run, .argument = "RUN", .doc = "with --simulate: replay this recorded run; nothing is run"),
    FV_OPTION(scale_options, times, .min = 1, .max = 1e6, .def = "1", .argument = "N",
              .doc = "with --simulate: as if the work were N times as much"),
    FV_OPTION(scale_options, volumes, .min = 1, .max = 1e6, .def = "1", .argument = "N",
              .doc = "with --simulate: as if there were N of them, none of which waits for another"),
    FV_OPTION(scale_options, most_tasks, .min = 1, .max = 1e8, .def = "4000000", .argument = "N",
              .doc = "with --simulate: play at most about N tasks; where there are more, each stands for several"),
    FV_OPTION(scale_options, cores, .min = 1, .max = 4096, .argument = "N",
              .doc = "with --simulate: workers of a node; the cores of this machine if left out"),
    FV_OPTION(scale_options, disk, .doc = "with --simulate: bytes a second that all nodes together can read and write; 20G"),
    FV_OPTION(scale_options, network, .doc = "with --simulate: bytes a second of a node; 1.25G if left out"),
    FV_OPTION(scale_options, stragglers, .min = 0, .max = 1, .def = "0.001", .argument = "PART",
              .doc = "with --simulate: part of the tasks that take three times as long"),
    FV_OPTION(scale_options, node_hours, .min = 0.001, .max = 1e9, .def = "20000", .argument = "HOURS",
              .doc = "with --simulate: how long a node lives before it fails"),
    FV_OPTION(scale_options, quiet, .letter = 'q', .doc = "do not say what is being run"),
    FV_OPTION(scale_options, json, .doc = "print JSON"),
    FV_OPTION_END,
};

enum { MOST = 32 };

static int parse_workers(const char *text, int *workers) {
    int count = 0;
    for (const char *p = text; count < MOST;) {
        char *end;
        long  number = strtol(p, &end, 10);
        if (end == p || number < 1 || number > 65536 || (*end && *end != ',')) return 0;
        workers[count++] = (int)number;
        if (!*end) return count;
        p = end + 1;
    }
    return 0;
}

static void print_table(const fv_scaling *s) {
    printf("study   workers     size   tasks     time  from .. to          speed-up  efficiency\n");
    for (int i = 0; i < s->nrows; i++) {
        const fv_scale_row *r = &s->rows[i];
        char                range[40];
        snprintf(range, sizeof range, "%.3f .. %.3f", r->least, r->most);
        printf("%-7s %7d %8.0f %7lld %6.3f s  %-18s %9.2f %9.1f %%\n", r->weak ? "weak" : "strong", r->workers, r->size,
               (long long)r->tasks, r->seconds, range, r->speedup, 100 * r->efficiency);
    }
    if (s->fitted) printf("Amdahl: serial part %.1f %%, %.3f s on one worker\n", 100 * s->serial, s->serial_seconds);
    if (isnan(s->noise))
        printf("noise: unknown with one repeat; --repeats 3 tells how much runs of the same kind differ\n");
    else
        printf("noise: runs of the same kind differ by up to %.0f %%%s\n", 100 * s->noise,
               s->noise > 0.15 ? "; the machine is busy, read the figures with care" : "");
}

static cJSON *row_json(const fv_scaling *s, const fv_scale_row *r) {
    cJSON *row = cJSON_CreateObject(), *stages = cJSON_CreateArray();
    cJSON_AddStringToObject(row, "study", r->weak ? "weak" : "strong");
    cJSON_AddNumberToObject(row, "workers", r->workers);
    cJSON_AddNumberToObject(row, "size", r->size);
    cJSON_AddNumberToObject(row, "tasks", (double)r->tasks);
    cJSON_AddNumberToObject(row, "seconds", r->seconds);
    cJSON_AddNumberToObject(row, "least", r->least);
    cJSON_AddNumberToObject(row, "most", r->most);
    cJSON_AddNumberToObject(row, "speedup", r->speedup);
    cJSON_AddNumberToObject(row, "efficiency", r->efficiency);
    for (int c = 0; c < FV_COSTS; c++) cJSON_AddNumberToObject(row, fv_cost_name((fv_cost)c), r->work[c]);
    cJSON_AddNumberToObject(row, "memory", (double)r->memory);
    for (int k = 0; k < s->nstages; k++) cJSON_AddItemToArray(stages, cJSON_CreateNumber(r->stages[k]));
    cJSON_AddItemToObject(row, "stages", stages);
    return row;
}

static void print_json(const fv_scaling *s) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (int i = 0; i < s->nrows; i++) cJSON_AddItemToArray(rows, row_json(s, &s->rows[i]));
    if (s->fitted) cJSON_AddNumberToObject(root, "serial_fraction", s->serial);
    if (isnan(s->noise))
        cJSON_AddNullToObject(root, "noise");
    else
        cJSON_AddNumberToObject(root, "noise", s->noise);
    cJSON_AddNumberToObject(root, "repeats", s->repeats);
    char *text = cJSON_Print(root);
    printf("%s\n", text);
    free(text);
    cJSON_Delete(root);
}

static int present(const scale_options *o, const fv_scaling *s, const char *title) {
    fv_error error = { 0 };
    if (o->json)
        print_json(s);
    else
        print_table(s);
    if (fv_scaling_save(s, o->output, title, &error) != FV_OK) {
        fv_complain("scale", "%s", error.message);
        return FV_EXIT_FAILED;
    }
    if (!o->quiet) fprintf(stderr, "fovea: tables and pictures are in %s\n", o->output);
    return FV_EXIT_WELL;
}

/* ---------------------------------------------------------------- simulated */

static void print_simulation(const fv_simulation *s) {
    char sentence[FV_SIMULATION_SENTENCE];
    printf("SIMULATED from %s; measured: %.3f s on %d worker%s\n", fv_simulation_played(s, sentence), s->measured, s->recorded,
           s->recorded == 1 ? "" : "s");
    if (s->predicted_two > 0)
        printf("check on this machine: 2 workers are predicted to take %.3f s and took %.3f s (%.0f %% off)\n", s->predicted_two,
               s->measured_two, 100 * fabs(s->predicted_two / s->measured_two - 1));
    printf("workers   nodes         time  speed-up  efficiency  what hinders most\n");
    for (int i = 0; i < s->nrows; i++) {
        const fv_simulated *r = &s->rows[i];
        if (r->asked)
            printf("%7d %7d %10.3f s %9.1f %9.1f %%  %s\n", r->workers, r->nodes, r->seconds, r->speedup, 100 * r->efficiency,
                   r->bottleneck);
    }
    printf("%s\n", fv_simulation_sentence(s, sentence));
    printf("assumed: %s\n", fv_simulation_assumed(s, sentence));
}

static void print_simulation_json(const fv_simulation *s) {
    cJSON *root = cJSON_CreateObject(), *rows;
    char   sentence[FV_SIMULATION_SENTENCE];
    cJSON_AddBoolToObject(root, "simulated", true);
    cJSON_AddNumberToObject(root, "tasks", (double)s->tasks);
    cJSON_AddNumberToObject(root, "together", (double)s->together);
    cJSON_AddNumberToObject(root, "all_tasks", s->all_tasks);
    cJSON_AddNumberToObject(root, "measured", s->measured);
    cJSON_AddNumberToObject(root, "recorded_workers", s->recorded);
    if (s->predicted_two > 0) cJSON_AddNumberToObject(root, "measured_two", s->measured_two);
    if (s->predicted_two > 0) cJSON_AddNumberToObject(root, "predicted_two", s->predicted_two);
    cJSON_AddNumberToObject(root, "worth", s->worth);
    cJSON_AddNumberToObject(root, "fastest", s->fastest);
    cJSON_AddStringToObject(root, "assumed", fv_simulation_assumed(s, sentence));
    rows = cJSON_AddArrayToObject(root, "rows");
    for (int i = 0; i < s->nrows; i++) {
        const fv_simulated *r = &s->rows[i];
        cJSON              *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "workers", r->workers);
        cJSON_AddNumberToObject(row, "nodes", r->nodes);
        cJSON_AddNumberToObject(row, "seconds", r->seconds);
        cJSON_AddNumberToObject(row, "speedup", r->speedup);
        cJSON_AddNumberToObject(row, "efficiency", r->efficiency);
        cJSON_AddNumberToObject(row, "unsure", r->unsure);
        cJSON_AddStringToObject(row, "bottleneck", r->bottleneck);
        cJSON_AddItemToArray(rows, row);
    }
    char *text = cJSON_Print(root);
    printf("%s\n", text);
    free(text);
    cJSON_Delete(root);
}

static int simulate(const scale_options *o, fv_pipeline *pipeline, const int *workers, int count, const char *title) {
    fv_simulate_options asked = { .workers = workers,
                                  .nworkers = count,
                                  .engine = o->engine,
                                  .times = o->times,
                                  .volumes = o->volumes,
                                  .most = o->most_tasks,
                                  .repeats = (int)o->repeats,
                                  .cores = (int)o->cores,
                                  .disk = (double)o->disk.bytes,
                                  .network = (double)o->network.bytes,
                                  .stragglers = o->stragglers,
                                  .failures = o->node_hours,
                                  .memory = o->memory.bytes,
                                  .store = o->store,
                                  .tell = o->quiet ? NULL : fv_trying_tell,
                                  .cancel = fv_stopping(false) };
    fv_simulation      *s = NULL;
    fv_error            error = { 0 };
    char               *folder = NULL;
    fv_status           status = o->run ? fv_run_find(o->store, o->run, &folder, &error) : FV_OK;
    asked.run = folder;
    if (status == FV_OK) status = fv_simulate(pipeline, &asked, &s, &error);
    if (status == FV_OK && o->json) print_simulation_json(s);
    if (status == FV_OK && !o->json) print_simulation(s);
    if (folder)
        title = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder; /* also of the last run, which has no name yet */
    if (status == FV_OK) status = fv_simulation_save(s, o->output, title, &error);
    if (status == FV_OK && !o->quiet) fprintf(stderr, "fovea: a page, a table and a picture are in %s\n", o->output);
    fv_simulation_free(s);
    free(folder);
    return status == FV_OK ? FV_EXIT_WELL : fv_explain("scale", pipeline, status, &error);
}

static int run(const void *options_, int nargs, char **args) {
    const scale_options *o = options_;
    int                  status, workers[MOST], count = parse_workers(o->simulate ? o->simulate : o->workers, workers);
    if (!count) {
        fv_complain("scale", "--%s %s: expected up to %d numbers from 1 to 65536, as 1,2,4", o->simulate ? "simulate" : "workers",
                    o->simulate ? o->simulate : o->workers, MOST);
        return FV_EXIT_REFUSED;
    }
    if (o->run && !o->simulate) {
        fv_complain("scale", "--run is for --simulate: a recorded run is replayed and not measured again");
        return FV_EXIT_REFUSED;
    }
    if (o->simulate && o->run) return simulate(o, NULL, workers, count, NULL);
    fv_pipeline *pipeline = fv_pipeline_from_options("scale", &o->expression, &o->set, o->chunk, nargs, args, &status);
    if (!pipeline) return status;
    if (o->simulate) {
        status = simulate(o, pipeline, workers, count, nargs ? args[0] : "a pipeline");
        fv_pipeline_free(pipeline);
        return status;
    }
    fv_scale_options asked = { .workers = workers,
                               .nworkers = count,
                               .strong = o->strong || !o->weak,
                               .weak = o->weak,
                               .repeats = (int)o->repeats,
                               .items = o->items,
                               .engine = o->engine,
                               .launcher = o->launcher,
                               .memory = o->memory.bytes,
                               .store = o->store,
                               .cancel = fv_stopping(false),
                               .tell = o->quiet ? NULL : fv_trying_tell };
    fv_scaling      *scaling;
    fv_error         error = { 0 };
    fv_status        result = fv_pipeline_scale(pipeline, &asked, &scaling, &error);
    status = result == FV_OK ? present(o, scaling, nargs ? args[0] : "Scaling") : fv_explain("scale", pipeline, result, &error);
    fv_scaling_free(scaling);
    fv_pipeline_free(pipeline);
    return status;
}

const fv_command fv_cmd_scale = {
    .name = "scale",
    .brief = "measure how a pipeline scales with the number of workers",
    .usage = "[FILE]",
    .least = 0,
    .most = 1,
    .doc = "Every run starts with an empty temporary store, so nothing comes from a cache. Strong scaling does the same work "
           "with every number of workers (efficiency T1 / (N TN)). Weak scaling gives each worker the same amount of work "
           "(efficiency T1 / TN): items of a collection, or slabs of a single image. Medians of some repeats, Amdahl's "
           "serial part, times of stages and timelines of workers are written to CSV files and pictures.\n"
           "With --simulate nothing is measured but one and two workers: the tasks of the run on one worker are played "
           "through a model of an engine on many nodes, which share a disk and a network, start late, are slow and fail. It "
           "tells how many are worth it and what hinders most. --run RUN replays a run that was recorded before.",
    .examples = "fovea scale denoise.fov --workers 1,2,4,8 --strong --weak\n"
                "fovea scale denoise.fov --engine processes --items 64 --repeats 5 -o study\n"
                "fovea scale denoise.fov --simulate 24,192,1000 --cores 24 --times 100",
    .options = options,
    .options_size = sizeof(scale_options),
    .run = run,
};
