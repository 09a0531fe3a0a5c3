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

fv_status fv__unit_log_open(const char *store, const fv_unit_list *list, bool share, fv_unit_log **out, fv_error *error) {
    fv_unit_log *log = fv__calloc(sizeof *log);
    char        *place = fv__store_place(store, true);
    *out = log;
    name_folder(list, place, &log->folder);
    free(place);
    FV_TRY(fv__store_check_folder(store, error));
    log->fd = -1;
    log->share = share;
    log->batch = (list->count + BATCHES - 1) / BATCHES;
    log->printed = fv__path_inside(log->folder, "printed");
    log->path = fv__sprintf("%s/done-%s-%d.log", log->folder, fv__host_self()->name, (int)getpid());
    log->had_printed = fv__path_is_folder(log->printed);
    FV_TRY(fv__path_make_folders(log->printed, error));
    log->environment = fv__environment_keep(log->printed);
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0) return fv_fail(error, FV_ERROR_IO, "cannot write %s", log->path);
    name_units(list, log->units);
    return share ? FV_OK : be_alone(log, error);
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

/* ---------------------------------------------------------------- lines: KEY CODE TRIES SECONDS CPU MEMORY STARTED HOST */

typedef struct keyed {
    fv_hash  key;
    fv_unit *unit;
} keyed;

static int by_key(const void *a, const void *b) { return memcmp(a, b, sizeof(fv_hash)); }

static bool still_there(const fv_unit_list *list, const fv_unit *unit) {
    char *output = fv__unit_output(list, unit);
    bool  there = !output || fv__file_exists(output);
    free(output);
    return there;
}

/* True: the line marks a unit that was not marked before. */
static bool read_line(const char *line, const fv_unit_list *list, const keyed *sorted) {
    unsigned long long low, high;
    fv_unit_result     r = { .kept = true };
    long long          memory;
    if (sscanf(line, "%llx %llx %d %d %lf %lf %lld %lf %64s", &low, &high, &r.code, &r.tries, &r.seconds, &r.cpu_seconds, &memory,
               &r.started, r.host) != 9)
        return false;
    keyed        wanted = { .key = { low, high } };
    const keyed *found = bsearch(&wanted, sorted, (size_t)list->count, sizeof *sorted, by_key);
    if (!found || found->unit->stand != FV_UNIT_WAITS || !still_there(list, found->unit)) return false;
    r.memory = memory;
    found->unit->stand = FV_UNIT_DONE;
    found->unit->result = r;
    return true;
}

static int64_t read_log(const char *path, const fv_unit_list *list, const keyed *sorted) {
    fv_bytes text = { 0 };
    int64_t  count = 0;
    if (fv__file_read_all(path, SIZE_MAX / 2, &text, NULL) == FV_OK)
        for (char *line = (char *)text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            count += read_line(line, list, sorted);
        }
    fv__bytes_release(&text);
    return count;
}

int64_t fv__unit_log_read(fv_unit_log *log, fv_unit_list *list) {
    DIR    *folder = opendir(log->folder);
    keyed  *sorted = fv__calloc((size_t)FV_MAX(list->count, 1) * sizeof *sorted);
    int64_t count = 0;
    for (int64_t u = 0; u < list->count; u++) sorted[u] = (keyed){ list->units[u].key, &list->units[u] };
    qsort(sorted, (size_t)list->count, sizeof *sorted, by_key);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, "done-", 5)) continue;
        char *path = fv__path_inside(log->folder, entry->d_name);
        count += read_log(path, list, sorted);
        free(path);
    }
    if (folder) closedir(folder);
    free(sorted);
    return count;
}

fv_status fv__unit_log_add(fv_unit_log *log, const fv_unit *unit, fv_error *error) {
    const fv_unit_result *r = &unit->result;
    char                  line[256];
    int length = snprintf(line, sizeof line, "%llx %llx %d %d %.6f %.6f %lld %.3f %s\n", (unsigned long long)unit->key.low,
                          (unsigned long long)unit->key.high, r->code, r->tries, r->seconds, r->cpu_seconds, (long long)r->memory,
                          r->started, r->host);
    if (write(log->fd, line, (size_t)length) != length)
        return fv_fail(error, FV_ERROR_IO, "cannot write %s: is the disk full?", log->path);
    if (fv__now() < log->synced + SYNC) return FV_OK;
    log->synced = fv__now();
    return fv__file_sync(log->fd, log->path, error);
}

fv_status fv__unit_log_keep(fv_unit_log *log, const fv_unit *unit, const char *command, bool well, const fv_bytes *printed,
                            fv_error *error) {
    const fv_unit_result *r = &unit->result;
    char                  hex[33], memory[24];
    fv_bytes              text = { 0 };
    fv_status             status = FV_OK;
    fv__hash_format(unit->key, hex);
    char *path = fv__sprintf("%s/%.16s.txt", log->printed, hex);
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
