/* fovea each: a program for each file or each row of a table. */
#include "cli.h"
#include "piloted.h"
#include "pipeline_options.h"
#include "stopping.h"
#include <fovea/units.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *from, *name, *after, *output, *cpus, *memory, *time, *ranks, *device, *order, *by, *ok, *pause, *results, *store,
        *pilot, *engine, *profile;
    int64_t workers, retries;
    fv_size bound;
    bool    shell, again, overwrite, share, one_job, quiet, dry_run, json;
} each_options;

static const fv_option options[] = {
    FV_OPTION(each_options, from, .argument = "TABLE", .doc = "run it for each row of this table; columns are the {names}"),
    FV_OPTION(each_options, output, .argument = "NAME",
              .doc = "the file that a unit makes, as '{stem}.jpg'; {output} in the command stands for it. The file gets its name "
                     "when the program has ended well, so half a file is never there"),
    FV_OPTION(each_options, workers, .letter = 'j', .argument = "N", .min = 1, .max = 4096,
              .doc = "processors for all programs together; those of the machine if left out"),
    FV_OPTION(each_options, bound, .argument = "SIZE", .doc = "memory for all programs together, for those that say --memory"),
    FV_OPTION(each_options, cpus, .argument = "N", .doc = "processors that one program uses, or the column that says so"),
    FV_OPTION(each_options, memory, .argument = "SIZE",
              .doc = "memory that one program may use, or the column that says so; one that uses more is ended"),
    FV_OPTION(each_options, time, .argument = "TIME",
              .doc = "how long one program may run, as 30s or 10m, or the column that says so; then it is ended"),
    FV_OPTION(each_options, ranks, .argument = "N",
              .doc =
                  "MPI ranks of one program, or the column that says so; started by srun inside of a Slurm job, else by mpiexec"),
    FV_OPTION(each_options, device, .argument = "SIZE",
              .doc = "memory of a device that one program uses, or the column that says so; the node's scheduler gives it one"),
    FV_OPTION(each_options, retries, .argument = "N", .max = 1000, .doc = "try one that failed so many times more"),
    FV_OPTION(each_options, pause, .argument = "TIME", .def = "1s", .doc = "before it is tried again; twice as long each time"),
    FV_OPTION(each_options, ok, .argument = "CODES", .def = "0", .doc = "exit codes that mean that all is well, as 0,2"),
    FV_OPTION(each_options, name, .argument = "COLUMN", .doc = "column that names the rows, for --after and messages"),
    FV_OPTION(each_options, after, .argument = "COLUMN", .doc = "column with the names of rows that must be done before"),
    FV_OPTION(each_options, order, .def = "fifo", .choices = "fifo|backfill|longest|memory|round-robin",
              .doc =
                  "who comes next: as given; as given, but such as fit into a gap may pass; longest --time or largest --memory "
                  "first; the values of --by in turn"),
    FV_OPTION(each_options, by, .argument = "COLUMN", .doc = "column whose values take turns in round-robin, as a user's name"),
    FV_OPTION(each_options, shell, .doc = "the command is a text for /bin/sh; what takes the place of {names} is quoted"),
    FV_OPTION(each_options, share, .doc = "several of the same command at once, here or on other machines, share the work"),
    FV_OPTION(each_options, pilot, .argument = "NAME", .doc = "let this pilot run them (`fovea pilot start`), and wait"),
    FV_OPTION(each_options, engine, .choices = "threads|processes|mpi|slurm",
              .doc = "who starts the programs: this process (threads, the default); worker processes of this machine; the ranks "
                     "that mpiexec or srun has started; or jobs of Slurm, --workers of them"),
    FV_OPTION(each_options, profile, .argument = "NAME", .doc = "with --engine slurm: name of the cluster's profile"),
    FV_OPTION(each_options, one_job, .doc = "with --engine slurm: one job of --workers nodes, instead of an array of jobs"),
    FV_OPTION(each_options, again, .doc = "run all of them, also those that are done"),
    FV_OPTION(each_options, overwrite, .doc = "replace outputs that are there already"),
    FV_OPTION(each_options, results, .letter = 'o', .argument = "TABLE",
              .doc = "write what became of each: state, exit code, time, memory, host, why"),
    FV_OPTION(each_options, store, .argument = "FOLDER", .doc = "where it is kept what is done; .fovea if left out"),
    FV_OPTION(each_options, dry_run, .letter = 'n', .doc = "print the commands and run none"),
    FV_OPTION(each_options, json, .doc = "print how it ended as JSON"),
    FV_OPTION(each_options, quiet, .letter = 'q', .doc = "say nothing but what fails"),
    FV_OPTION_END,
};

typedef struct {
    bool quiet, terminal, drawn;
} teller;

static void clear_line(teller *t) {
    if (t->drawn) fputs("\r\033[K", stderr);
    t->drawn = false;
}

static void show_end(void *context, const fv_unit_end *end) {
    teller *t = context;
    clear_line(t);
    if (!t->quiet && end->output_size) {
        fwrite(end->output, 1, (size_t)end->output_size, stdout);
        fflush(stdout);
    }
    if (!end->why || (end->again && t->quiet)) return;
    fv_complain("each", "%s %s%s", end->command, end->why, end->again ? "; it is tried again" : "");
    if (t->quiet && end->output_size) fwrite(end->output, 1, (size_t)end->output_size, stderr);
}

static void show_state(void *context, const fv_units_state *state) {
    teller *t = context;
    if (t->quiet || !t->terminal) return;
    fprintf(stderr, "\r\033[K%lld of %lld done, %lld running", (long long)state->done, (long long)state->units,
            (long long)state->running);
    if (state->failed) fprintf(stderr, ", %lld failed", (long long)state->failed);
    fflush(stderr);
    t->drawn = true;
}

static void show_result(const each_options *o, const fv_units_state *s) {
    if (o->json) {
        printf("{\"units\": %lld, \"done\": %lld, \"kept\": %lld, \"failed\": %lld, \"blocked\": %lld, \"seconds\": %.3f}\n",
               (long long)s->units, (long long)s->done, (long long)s->kept, (long long)s->failed, (long long)s->blocked,
               s->seconds);
        return;
    }
    if (o->quiet) return;
    fprintf(stderr, "fovea each: %lld of %lld done", (long long)s->done, (long long)s->units);
    if (s->kept) fprintf(stderr, ", %lld of them before", (long long)s->kept);
    if (s->failed) fprintf(stderr, ", %lld failed", (long long)s->failed);
    if (s->blocked) fprintf(stderr, ", %lld not started because one before failed", (long long)s->blocked);
    fprintf(stderr, ", in %.2f s\n", s->seconds);
}

static bool make_options(const each_options *o, int nargs, char **args, fv_units_options *out) {
    *out = (fv_units_options){
        .command = args[0],
        .shell = o->shell,
        .files = (const char *const *)args + 1,
        .nfiles = nargs - 1,
        .from = o->from,
        .name = o->name,
        .after = o->after,
        .output = o->output,
        .cpus = o->cpus,
        .memory = o->memory,
        .time = o->time,
        .ranks = o->ranks,
        .device = o->device,
        .order = o->order,
        .by = o->by,
        .ok = o->ok,
        .workers = o->workers,
        .memory_bound = o->bound.bytes,
        .retries = o->retries,
        .results = o->results,
        .store = o->store,
        .overwrite = o->overwrite,
        .again = o->again,
        .share = o->share,
    };
    const char *mistake = NULL;
    if (o->from && nargs > 1)
        mistake = "--from has a unit for each row; leave out the files";
    else if (!o->from && nargs < 2)
        mistake = "for which files? Name them behind the command, or give a table with --from";
    else if (!o->from && (o->name || o->after || o->by))
        mistake = "--name, --after and --by are columns of a table: add --from";
    else if (!strcmp(o->order, "round-robin") && !o->by)
        mistake = "--order round-robin needs --by, the column whose values take turns";
    else if (o->pilot && o->engine)
        mistake = "--pilot says already where they run; leave out --engine";
    else if ((o->profile || o->one_job) && (!o->engine || strcmp(o->engine, "slurm")))
        mistake = "--profile and --one-job are for --engine slurm";
    else if (!fv_time_parse(o->pause, &out->pause))
        mistake = "--pause: expected a time such as 5s or 1m";
    if (mistake) fv_complain("each", "%s", mistake);
    for (int i = 1; i < nargs && !mistake; i++) /* the shell leaves a pattern as it is */
        if (strpbrk(args[i], "*?") && access(args[i], F_OK)) {
            fv_complain("each", "%s: there is no such file", args[i]);
            return false;
        }
    return !mistake;
}

static int run(const void *options_, int nargs, char **args) {
    const each_options *o = options_;
    fv_units_options    asked;
    fv_units_state      state = { 0 };
    fv_error            error = { 0 };
    if (!make_options(o, nargs, args, &asked)) return FV_EXIT_REFUSED;
    if (o->dry_run) {
        char     *text = NULL;
        fv_status status = fv_units_list(&asked, &text, &error);
        if (status == FV_OK) fputs(text, stdout);
        free(text);
        return status == FV_OK ? FV_EXIT_WELL : fv_explain("each", NULL, status, &error);
    }
    teller t = { .quiet = o->quiet, .terminal = isatty(2) };
    asked.stop = fv_stopping(true);
    asked.ended = show_end;
    asked.progress = show_state;
    asked.context = &t;
    fv_units_engine engine = { o->engine, o->profile, o->one_job };
    bool            elsewhere = o->engine && strcmp(o->engine, "threads"), speaks = true;
    fv_status       status = o->pilot    ? fv_units_piloted(o->pilot, &asked, &state, &error)
                             : elsewhere ? fv_units_engine_run(&engine, &asked, &state, &speaks, &error)
                                         : fv_units_run(&asked, &state, &error);
    clear_line(&t);
    if (!speaks) return status == FV_OK ? FV_EXIT_WELL : FV_EXIT_FAILED;
    if (status != FV_OK && status != FV_ERROR_CANCELLED) return fv_explain("each", NULL, status, &error);
    show_result(o, &state);
    if (status == FV_ERROR_CANCELLED) return fv_explain("each", NULL, status, &error);
    return state.failed || state.blocked ? FV_EXIT_FAILED : FV_EXIT_WELL;
}

const fv_command fv_cmd_each = {
    .name = "each",
    .brief = "run any program for each file or each row of a table",
    .usage = "COMMAND [FILE...]",
    .least = 1,
    .most = -1,
    .doc =
        "The command is one text: {} is the file, {stem}, {name} and {folder} are parts of its name, {index} its number. With "
        "--from the names of the table's columns stand in braces. No shell sees it: quotes group words, and nothing else is "
        "special, so file names may contain anything. As many programs run at once as there are processors.\n"
        "What is done stays done: the same command again runs what failed, what is new and what has changed (the program, its "
        "words, or the file). Stop it with Ctrl-C, or kill it; then type it again.\n"
        "The output of each program is printed when it ends, and kept in .fovea/each. A program that runs too long or uses too "
        "much memory is ended with all that it started. The exit status is 1 if some failed.",
    .examples = "fovea each 'convert {} {output}' scans/*.png --output '{stem}.jpg'\n"
                "fovea each 'sim --seed {seed} --out {output}' --from seeds.csv --output 'runs/{seed}.h5' -o units.csv\n"
                "fovea each 'python3 fit.py {}' data/*.npy --time 10m --retries 2",
    .options = options,
    .options_size = sizeof(each_options),
    .run = run,
};
