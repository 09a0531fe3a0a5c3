/* Logs of units, and claims on them. */
#include "units/unit_log.h"
#include "base/file.h"
#include "base/host.h"
#include "base/program.h"
#include "store/lease.h"
#include "store/store_place.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCHES = 256 };
static const double SYNC = 1, ASK_AGAIN = 1;

typedef struct claim {
    fv_lease *lease;
    double    asked; /* when it was last refused */
} claim;

struct fv_unit_log {
    char   *folder, *printed, *path;
    char    units[33]; /* which these are, in names of leases */
    int     fd;
    double  synced;
    bool    share, had_printed; /* earlier calls may have kept what units printed */
    bool    own_only;           /* what other sessions did does not count */
    char    session[33];        /* "-": none */
    char   *environment;        /* file that lists it */
    int64_t batch;              /* units in one */
    claim   claims[BATCHES];    /* alone, the first is for all units */
};

/* ---------------------------------------------------------------- opening */

static void name_folder(const fv_unit_list *list, const char *store, char **folder) {
    fv_hasher hasher;
    char      hex[33];
    fv__hasher_init(&hasher);
    fv__hasher_int(&hasher, list->command.shell);
    for (int i = 0; i < list->command.nwords; i++) fv__hasher_text(&hasher, list->command.words[i]);
    fv__hasher_text(&hasher, list->output ? list->output : "");
    fv__hash_format(fv__hasher_finish(&hasher), hex);
    *folder = fv__sprintf("%s/each/%.16s", store, hex);
}

static void name_units(const fv_unit_list *list, char hex[33]) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    for (int64_t u = 0; u < list->count; u++) fv__hasher_add(&hasher, &list->units[u].key, sizeof list->units[u].key);
    fv__hash_format(fv__hasher_finish(&hasher), hex);
}

static fv_status be_alone(fv_unit_log *log, fv_error *error) {
    bool      taken_over;
    char     *path = fv__sprintf("%s/%.16s-all", log->folder, log->units);
    fv_status status = fv__lease_acquire(path, &log->claims[0].lease, &taken_over, error);
    if (error) fv__error_rename(error, path, "this list of units (--share would share it)");
    free(path);
    return status;
}

fv_status fv__unit_log_open(const fv_units_options *o, const fv_unit_list *list, fv_unit_log **out, fv_error *error) {
    fv_unit_log *log = fv__calloc(sizeof *log);
    char        *place = fv__store_place(o->store, true);
    *out = log;
    name_folder(list, place, &log->folder);
    free(place);
    log->fd = -1;
    FV_TRY(fv__store_check_folder(o->store, error));
    log->share = o->share;
    log->own_only = o->session && o->again;
    snprintf(log->session, sizeof log->session, "%s", o->session ? o->session : "-");
    log->batch = (list->count + BATCHES - 1) / BATCHES;
    log->printed = fv__path_inside(log->folder, "printed");
    log->path = fv__sprintf("%s/done-%s-%d.log", log->folder, fv__host_self()->name, (int)getpid());
    log->had_printed = fv__path_is_folder(log->printed);
    FV_TRY(fv__path_make_folders(log->printed, error));
    log->environment = fv__environment_keep(log->printed);
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0) return fv_fail(error, FV_ERROR_IO, "cannot write %s", log->path);
    name_units(list, log->units);
    return log->share ? FV_OK : be_alone(log, error);
}

static void give_back(fv_unit_log *log) {
    for (int b = 0; b < BATCHES; b++)
        if (log->claims[b].lease) fv__lease_release(log->claims[b].lease);
}

void fv__unit_log_close(fv_unit_log *log) {
    if (!log) return;
    give_back(log);
    if (log->fd >= 0) {
        fsync(log->fd);
        if (lseek(log->fd, 0, SEEK_END) == 0) unlink(log->path); /* nothing to tell */
        close(log->fd);
    }
    free(log->environment);
    free(log->folder);
    free(log->printed);
    free(log->path);
    free(log);
}

/* ---------------------------------------------------------------- lines */

/* STATE KEY CODE SIGNAL TRIES SECONDS CPU MEMORY STARTED HOST SESSION WHY, where STATE is done or failed. */

typedef struct keyed {
    fv_hash  key;
    fv_unit *unit;
} keyed;

static int by_key(const void *a, const void *b) { return memcmp(a, b, sizeof(fv_hash)); }

/* A file that still has its temporary name was made when the process was killed, and what has its own name is another one. */
static bool still_there(const fv_unit_list *list, const fv_unit *unit) {
    char *output = fv__unit_output(list, unit), *temporary = output ? fv__unit_temporary(output, unit) : NULL;
    bool  there = !output || (fv__file_exists(output) && !fv__file_exists(temporary));
    free(output);
    free(temporary);
    return there;
}

/* The unit that the line marks, and that was not marked before; NULL: none. */
static fv_unit *read_line(const fv_unit_log *log, const char *line, const fv_unit_list *list, const keyed *sorted) {
    unsigned long long low, high;
    fv_unit_result     r = { 0 };
    long long          memory;
    char               state[8], session[33];
    int                why = 0;
    if (sscanf(line, "%7s %llx %llx %d %d %d %lf %lf %lld %lf %64s %32s %n", state, &low, &high, &r.code, &r.signal, &r.tries,
               &r.seconds, &r.cpu_seconds, &memory, &r.started, r.host, session, &why) != 12)
        return NULL;
    bool well = !strcmp(state, "done"), own = *log->session != '-' && !strcmp(session, log->session);
    if (!own && (!well || log->own_only)) return NULL;
    keyed        wanted = { .key = { low, high } };
    const keyed *found = bsearch(&wanted, sorted, (size_t)list->count, sizeof *sorted, by_key);
    if (!found || found->unit->stand != FV_UNIT_WAITS || (well && !still_there(list, found->unit))) return NULL;
    r.memory = memory;
    r.kept = !own;
    snprintf(r.why, sizeof r.why, "%s", well ? "" : line + why);
    found->unit->stand = well ? FV_UNIT_DONE : FV_UNIT_FAILED;
    found->unit->result = r;
    return found->unit;
}

typedef struct reading {
    const fv_unit_log  *log;
    const fv_unit_list *list;
    const keyed        *sorted;
    void (*marked)(void *context, fv_unit *unit);
    void *context;
} reading;

static void read_log(const reading *r, const char *path) {
    fv_bytes text = { 0 };
    if (fv__file_read_all(path, SIZE_MAX / 2, &text, NULL) == FV_OK)
        for (char *line = (char *)text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            fv_unit *unit = read_line(r->log, line, r->list, r->sorted);
            if (unit && r->marked) r->marked(r->context, unit);
        }
    fv__bytes_release(&text);
}

void fv__unit_log_read(fv_unit_log *log, fv_unit_list *list, void (*marked)(void *context, fv_unit *unit), void *context) {
    DIR   *folder = opendir(log->folder);
    keyed *sorted = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *sorted);
    for (int64_t u = 0; u < list->count; u++) sorted[u] = (keyed){ list->units[u].key, &list->units[u] };
    qsort(sorted, (size_t)list->count, sizeof *sorted, by_key);
    reading r = { log, list, sorted, marked, context };
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, "done-", 5)) continue;
        char *path = fv__path_inside(log->folder, entry->d_name);
        read_log(&r, path);
        free(path);
    }
    if (folder) closedir(folder);
    free(sorted);
}

fv_status fv__unit_log_add(fv_unit_log *log, const fv_unit *unit, bool well, fv_error *error) {
    const fv_unit_result *r = &unit->result;
    char                  line[512];
    if (!well && *log->session == '-') return FV_OK;
    int length =
        snprintf(line, sizeof line, "%s %llx %llx %d %d %d %.6f %.6f %lld %.3f %s %s %s\n", well ? "done" : "failed",
                 (unsigned long long)unit->key.low, (unsigned long long)unit->key.high, r->code, r->signal, r->tries, r->seconds,
                 r->cpu_seconds, (long long)r->memory, r->started, r->host, log->session, well ? "" : r->why);
    if (write(log->fd, line, (size_t)length) != length)
        return fv_fail(error, FV_ERROR_IO, "cannot write %s: is the disk full?", log->path);
    if (fv__now() < log->synced + SYNC) return FV_OK;
    log->synced = fv__now();
    return fv__file_sync(log->fd, log->path, error);
}

static char *printed_path(const fv_unit_log *log, const fv_unit *unit) {
    char hex[33];
    fv__hash_format(unit->key, hex);
    return fv__sprintf("%s/%.16s.txt", log->printed, hex);
}

void fv__unit_log_printed(const fv_unit_log *log, const fv_unit *unit, fv_bytes *printed) {
    char    *path = printed_path(log, unit);
    fv_bytes text = { 0 };
    if (fv__file_read_all(path, 1 << 22, &text, NULL) == FV_OK) {
        const char *body = strstr((char *)text.data, "\n\n"); /* behind what became of it */
        if (body) fv__bytes_append(printed, body + 2, text.size - (size_t)(body + 2 - (char *)text.data));
    }
    fv__bytes_release(&text);
    free(path);
}

fv_status fv__unit_log_keep(fv_unit_log *log, const fv_unit *unit, const char *command, bool well, const fv_bytes *printed,
                            fv_error *error) {
    const fv_unit_result *r = &unit->result;
    char                  memory[24], *path = printed_path(log, unit);
    fv_bytes              text = { 0 };
    fv_status             status = FV_OK;
    if (well && !printed->size) {
        if (log->had_printed || r->tries > 1) status = fv__path_remove(path, error);
    } else {
        fv_size_format(r->memory, memory);
        fv__bytes_printf(&text, "state: %s\nunit: %s\ncommand: %s\nended: %s\ntook: %.3f s, %.3f s of processors, %s, on %s\n",
                         well ? "done" : "failed", unit->name, command, well ? "well" : r->why, r->seconds, r->cpu_seconds,
                         memory, r->host);
        fv__bytes_printf(&text, "environment: %s\n\n", log->environment ? log->environment : "");
        fv__bytes_append(&text, printed->data, printed->size);
        status = fv__file_write_all(path, text.data, text.size, false, error);
    }
    fv__bytes_release(&text);
    free(path);
    return status;
}

const char *fv__unit_log_folder(const fv_unit_log *log) { return log->printed; }

/* ---------------------------------------------------------------- claims */

bool fv__unit_log_claim(fv_unit_log *log, int64_t unit, bool *fresh) {
    fv_hash dead;
    if (!log->share) return true;
    claim *c = &log->claims[unit / log->batch];
    if (c->lease) return fv__lease_held(c->lease);
    if (c->asked > 0 && fv__now() < c->asked + ASK_AGAIN) return false;
    char     *path = fv__sprintf("%s/%.16s-%lld", log->folder, log->units, (long long)(unit / log->batch));
    fv_status status = fv__lease_try(path, &c->lease, &dead, NULL);
    free(path);
    if (status == FV_OK) return *fresh = true;
    c->asked = fv__now();
    return false;
}
