/* fovea clean: what runs have left behind, and taking it away. */
#include "cli.h"
#include <fovea/clean.h>
#include <fovea/text.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    bool        all, runs, results, leftovers, streams, dry_run, quiet;
    const char *older, *store;
} clean_options;

static const fv_option options[] = {
    FV_OPTION(clean_options, all, .letter = 'a', .doc = "remove all of it, and the note of which files Fovea made"),
    FV_OPTION(clean_options, runs,
              .doc = "remove the records of runs, which `fovea report` shows, and what `fovea each` has done"),
    FV_OPTION(clean_options, results, .doc = "remove intermediate results, from which later runs go on"),
    FV_OPTION(clean_options, leftovers, .doc = "remove what killed runs left unfinished beside their outputs"),
    FV_OPTION(clean_options, streams, .doc = "forget how far streams are, and scans that they have not completed"),
    FV_OPTION(clean_options, older, .argument = "TIME", .doc = "only what was not used for so long: 90m, 12h, 7d"),
    FV_OPTION(clean_options, dry_run, .letter = 'n', .doc = "remove nothing and say what would be removed"),
    FV_OPTION(clean_options, quiet, .letter = 'q', .doc = "do not list what is removed"),
    FV_OPTION(clean_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION_END,
};

static void say(void *context, const char *path) {
    const clean_options *o = context;
    if (!o->quiet) printf("%s %s\n", o->dry_run ? "would remove" : "removed", path);
}

static void put_count(const char *what, const char *one, fv_clean_count count) {
    char size[24], things[24];
    fv_size_format(count.bytes, size);
    snprintf(things, sizeof things, "%s%s", one, count.count == 1 ? "" : "s");
    if (*one)
        printf("%-22s %8lld %-6s %10s\n", what, (long long)count.count, things, size);
    else
        printf("%-22s %15s %10s\n", what, "", size);
}

static int show(const clean_options *o, double older, const char *const *folders, int nfolders) {
    fv_clean_options asked = { .store = o->store,
                               .runs = true,
                               .results = true,
                               .leftovers = true,
                               .streams = true,
                               .notes = true,
                               .older = older,
                               .folders = folders,
                               .nfolders = nfolders,
                               .tell_only = true };
    fv_cleaned       found;
    fv_error         error = { 0 };
    if (fv_clean(&asked, &found, &error) != FV_OK) {
        fv_complain("clean", "%s", error.message);
        return FV_EXIT_REFUSED;
    }
    printf("%s\n", found.place);
    put_count("  runs", "run", found.runs);
    if (found.units.count) put_count("  units of fovea each", "list", found.units);
    put_count("  intermediate results", "", found.results);
    put_count("  unfinished leftovers", "file", found.leftovers);
    put_count("  streams", "stream", found.streams);
    put_count("  notes about outputs", "", found.notes);
    if (found.live)
        printf("  %lld run%s untouched\n", (long long)found.live, found.live == 1 ? " lives and stays" : "s live and stay");
    printf(
        "nothing was removed: --runs, --results, --leftovers, --streams or --all does that, with --older 7d only what is old\n");
    return FV_EXIT_WELL;
}

static int run(const void *options_, int nargs, char **args) {
    static const char   *here[] = { "." };
    const clean_options *o = options_;
    double               older = 0;
    const char *const   *folders = nargs ? (const char *const *)args : here;
    int                  nfolders = nargs ? nargs : 1;
    if (o->older && !fv_time_parse(o->older, &older)) {
        fv_complain("clean", "--older %s: expected a time such as 90m, 12h or 7d", o->older);
        return FV_EXIT_REFUSED;
    }
    if (!o->all && !o->runs && !o->results && !o->leftovers && !o->streams) return show(o, older, folders, nfolders);
    fv_clean_options asked = { .store = o->store,
                               .runs = o->all || o->runs,
                               .results = o->all || o->results,
                               .leftovers = o->all || o->leftovers,
                               .streams = o->all || o->streams,
                               .notes = o->all,
                               .older = older,
                               .folders = folders,
                               .nfolders = nfolders,
                               .tell_only = o->dry_run,
                               .found = say,
                               .context = (void *)o };
    fv_cleaned       found;
    fv_error         error = { 0 };
    char             size[24];
    if (fv_clean(&asked, &found, &error) != FV_OK) {
        fv_complain("clean", "%s", error.message);
        return FV_EXIT_REFUSED;
    }
    fv_size_format(found.runs.bytes + found.results.bytes + found.leftovers.bytes + found.streams.bytes + found.notes.bytes +
                       found.units.bytes,
                   size);
    printf("%s %s\n", size, o->dry_run ? "would be free" : "are free again");
    if (found.live)
        printf("%lld run%s untouched\n", (long long)found.live, found.live == 1 ? " lives and stays" : "s live and stay");
    return FV_EXIT_WELL;
}

const fv_command fv_cmd_clean = {
    .name = "clean",
    .brief = "show or remove what runs have left behind",
    .usage = "[FOLDER...]",
    .least = 0,
    .most = -1,
    .doc = "Without options it only shows what there is. Finished outputs are never touched, and nothing of a run that lives, "
           "here or "
           "perhaps on another machine. Leftovers are looked for in and below the folders given, or the current one. After --all "
           "Fovea does not know any more which files it made, and replaces them only with --overwrite.",
    .examples = "fovea clean\nfovea clean --results --older 7d\nfovea clean --all --dry-run",
    .options = options,
    .options_size = sizeof(clean_options),
    .run = run,
};
