/* Taking away what runs have left behind. */
#include "base/file.h"
#include "base/host.h"
#include "cluster/jobs.h"
#include "run/claims.h"
#include "run/temporaries.h"
#include "store/lease.h"
#include "store/store.h"
#include "store/store_place.h"
#include <dirent.h>
#include <fovea/clean.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct cleaning {
    const fv_clean_options *options;
    fv_cleaned             *cleaned;
    const char             *place;
} cleaning;

typedef void entry_visit(cleaning *c, const char *folder, const char *name);

static void each_entry(cleaning *c, const char *folder, entry_visit *visit) {
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) visit(c, folder, entry->d_name);
    if (dir) closedir(dir);
}

/* Bytes on disk of a file or of all that is in a folder, and when any of it was last written. */
static int64_t measure(const char *path, double *used) {
    struct stat s;
    if (lstat(path, &s)) return 0;
    int64_t bytes = (int64_t)s.st_blocks * 512;
    *used = FV_MAX(*used, (double)s.st_mtim.tv_sec);
    DIR *dir = S_ISDIR(s.st_mode) ? opendir(path) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *inside = fv__sprintf("%s/%s", path, entry->d_name);
        bytes += measure(inside, used);
        free(inside);
    }
    if (dir) closedir(dir);
    return bytes;
}

static void take(cleaning *c, const char *path, fv_clean_count *count) {
    double  used = 0;
    int64_t bytes = measure(path, &used);
    if ((double)time(NULL) - used < c->options->older) return;
    if (!c->options->tell_only && fv__path_remove(path, NULL) != FV_OK) return;
    if (c->options->found) c->options->found(c->options->context, path);
    count->count++;
    count->bytes += bytes;
}

/* ---------------------------------------------------------------- runs */

/* A writer HOST-PID-TIME of this machine whose process is there counts as alive: it may not have stored anything yet. */
static bool process_lives(const char *writer) {
    char        host[64] = "";
    const char *end = strrchr(writer, '-'), *start = end;
    gethostname(host, sizeof host - 1);
    while (start && start > writer && start[-1] != '-') start--;
    if (!start || start == writer || (size_t)(start - 1 - writer) != strlen(host) || strncmp(writer, host, strlen(host)))
        return false;
    return !kill((pid_t)atoi(start), 0);
}

static bool run_lives(const cleaning *c, const char *run) {
    char         *store = fv__sprintf("%s/store", c->place);
    DIR          *dir = opendir(run);
    fv_submission last;
    bool lives = fv__jobs_read(run, 0, &last, NULL) == FV_OK && !fv__claims_are_finished(run); /* jobs may wait in a queue */
    fv__submission_release(&last);
    for (const struct dirent *entry; dir && !lives && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 10 || strncmp(entry->d_name, "task-", 5) || strcmp(entry->d_name + length - 4, ".log")) continue;
        char *writer = fv__sprintf("%.*s", (int)length - 9, entry->d_name + 5);
        lives = process_lives(writer) || fv__store_writer_lives(store, writer);
        free(writer);
    }
    if (dir) closedir(dir);
    free(store);
    return lives;
}

static void look_at_run(cleaning *c, const char *folder, const char *name) {
    char *run = fv__sprintf("%s/%s", folder, name);
    if (run_lives(c, run))
        c->cleaned->live++;
    else if (c->options->runs)
        take(c, run, &c->cleaned->runs);
    free(run);
}

/* ---------------------------------------------------------------- streams */

/* A process of a stream holds a lease on its log. */
static bool stream_lives(const char *stream) {
    DIR *dir = opendir(stream);
    bool lives = false;
    for (const struct dirent *entry; dir && !lives && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || length < 5 || strcmp(entry->d_name + length - 4, ".log")) continue;
        char *log = fv__sprintf("%s/%s", stream, entry->d_name);
        lives = fv__lease_busy(log);
        free(log);
    }
    if (dir) closedir(dir);
    return lives;
}

static void look_at_stream(cleaning *c, const char *folder, const char *name) {
    char *stream = fv__sprintf("%s/%s", folder, name);
    if (stream_lives(stream))
        c->cleaned->live++;
    else if (c->options->streams)
        take(c, stream, &c->cleaned->streams);
    free(stream);
}

/* ---------------------------------------------------------------- units */

static char *owner_of(const char *name);

/* What one command of `fovea each` keeps, unless somebody has a lease on its units. */
static void look_at_units(cleaning *c, const char *folder, const char *name) {
    char *units = fv__sprintf("%s/%s", folder, name);
    DIR  *dir = opendir(units);
    bool  lives = false;
    for (const struct dirent *entry; dir && !lives && (entry = readdir(dir));) {
        char *owner = entry->d_name[0] == '.' ? owner_of(entry->d_name) : NULL,
             *path = owner ? fv__path_inside(units, owner) : NULL;
        lives = path && fv__lease_busy(path);
        free(owner);
        free(path);
    }
    if (dir) closedir(dir);
    if (lives)
        c->cleaned->live++;
    else if (c->options->runs)
        take(c, units, &c->cleaned->units);
    free(units);
}

/* ---------------------------------------------------------------- leftovers */

/* trial-PID-TIME of an estimate that was killed. */
static void look_at_trial(cleaning *c, const char *folder, const char *name) {
    if (strncmp(name, "trial-", 6) || !kill((pid_t)atoi(name + 6), 0)) return;
    char *trial = fv__sprintf("%s/%s", folder, name);
    take(c, trial, &c->cleaned->leftovers);
    free(trial);
}

static char *owner_of(const char *name) {
    static const char ending[] = ".fovea-lease";
    size_t            length = strlen(name), end = sizeof ending - 1;
    if (name[0] == '.' && length > end + 1 && !strcmp(name + length - end, ending))
        return fv__sprintf("%.*s", (int)(length - end - 1), name + 1);
    return fv__temporaries_owner(name);
}

static void look_at_file(cleaning *c, const char *folder, const char *name) {
    bool  here = !strcmp(folder, ".");
    char *path = here ? fv__strdup(name) : fv__sprintf("%s/%s", folder, name), *owner = owner_of(name);
    if (owner) {
        char *output = here ? fv__strdup(owner) : fv__sprintf("%s/%s", folder, owner);
        if (!fv__lease_busy(output)) take(c, path, &c->cleaned->leftovers);
        free(output);
    } else if (name[0] != '.' && fv__path_is_folder(path) && !fv__path_has_extension(path, "zarr")) {
        struct stat s;
        if (!lstat(path, &s) && S_ISDIR(s.st_mode)) each_entry(c, path, look_at_file);
    }
    free(owner);
    free(path);
}

/* ---------------------------------------------------------------- all of it */

static void clean_place(cleaning *c) {
    const fv_clean_options *o = c->options;
    char                   *runs = fv__sprintf("%s/runs", c->place), *store = fv__sprintf("%s/store", c->place);
    char                   *streams = fv__sprintf("%s/streams", c->place);
    char                   *each = fv__sprintf("%s/each", c->place);
    char                   *notes = fv__sprintf("%s/outputs", c->place), *list = fv__sprintf("%s/outputs.log", c->place);
    each_entry(c, runs, look_at_run);
    each_entry(c, streams, look_at_stream);
    each_entry(c, each, look_at_units);
    if (o->results) c->cleaned->results.bytes = fv__store_clean(store, o->older, o->tell_only);
    if (o->leftovers) each_entry(c, c->place, look_at_trial);
    if (o->notes && !c->cleaned->live) { /* a run that lives writes them */
        take(c, notes, &c->cleaned->notes);
        take(c, list, &c->cleaned->notes);
    }
    if (!o->tell_only) { /* what is empty now */
        rmdir(runs);
        rmdir(each);
        rmdir(store);
        rmdir(streams);
        rmdir(c->place);
    }
    free(runs);
    free(each);
    free(store);
    free(streams);
    free(notes);
    free(list);
}

fv_status fv_clean(const fv_clean_options *options, fv_cleaned *cleaned, fv_error *error) {
    char *place = fv__store_place(options->store, false);
    *cleaned = (fv_cleaned){ 0 };
    fv_text_cut(place, cleaned->place, sizeof cleaned->place);
    cleaning  c = { options, cleaned, place };
    fv_status status = FV_OK;
    for (int i = 0; i < options->nfolders && status == FV_OK; i++)
        if (!fv__path_is_folder(options->folders[i]))
            status = fv_fail(error, FV_ERROR_USAGE, "%s is no folder", options->folders[i]);
    if (options->store && !fv__path_is_folder(options->store) && status == FV_OK)
        status = fv_fail(error, FV_ERROR_USAGE, "there is no folder %s", options->store);
    for (int i = 0; i < options->nfolders && status == FV_OK && options->leftovers; i++)
        each_entry(&c, options->folders[i], look_at_file);
    if (status == FV_OK) clean_place(&c);
    free(place);
    return status;
}
