/* Claims by leases, strikes for what killed a worker. */
#include "run/claims.h"
#include "base/file.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCHES = 1024, LARGEST = 64, SLOT = 192, SLOTS = 64 };

struct fv_claim {
    fv_claim *next;
    fv_lease *lease;
    int64_t   batch;
    int       stage, users;
    bool      left;
};

typedef struct strike {
    long long item, stage, task;
} strike;

struct fv_claims {
    fv_share        share;
    fv_store       *store;
    char           *folder;
    pthread_mutex_t mutex;       /* guards what follows up to `doing`; no file is touched under it */
    fv_claim       *held, *over; /* in use; waiting to be given back */
    fv_bytes        strikes;     /* strike */
    int64_t         strikes_time;
    pthread_mutex_t doing; /* guards what follows */
    int             now;   /* file that says what this process does, -1: not made yet */
    char           *now_path;
    bool            used[SLOTS];
};

fv_status fv__claims_open(const fv_share *share, fv_store *store, fv_claims **out, fv_error *error) {
    fv_claims *c = fv__calloc(sizeof *c);
    *c = (fv_claims){ .share = *share, .store = store, .folder = fv__sprintf("%s/claims", share->run_folder), .now = -1 };
    pthread_mutex_init(&c->mutex, NULL);
    pthread_mutex_init(&c->doing, NULL);
    char     *strikes = fv__sprintf("%s/strikes", c->folder);
    fv_status status = fv__path_make_folders(strikes, error);
    free(strikes);
    *out = c;
    return status;
}

static void give_back(fv_claim *claim) {
    while (claim) {
        fv_claim *next = claim->next;
        fv__lease_release(claim->lease);
        free(claim);
        claim = next;
    }
}

void fv__claims_close(fv_claims *c) {
    if (!c) return;
    give_back(c->held);
    give_back(c->over);
    if (c->now >= 0) {
        close(c->now);
        unlink(c->now_path);
    }
    pthread_mutex_destroy(&c->mutex);
    pthread_mutex_destroy(&c->doing);
    fv__bytes_release(&c->strikes);
    free(c->now_path);
    free(c->folder);
    free(c);
}

static char *finished_path(const char *run_folder) { return fv__sprintf("%s/claims/finished", run_folder); }

void fv__claims_finished(const char *run_folder, bool finished) {
    char *path = finished_path(run_folder), *folder = fv__sprintf("%s/claims", run_folder);
    if (!finished)
        unlink(path);
    else if (fv__path_make_folders(folder, NULL) == FV_OK)
        fv__file_write_all(path, "", 0, false, NULL);
    free(folder);
    free(path);
}

bool fv__claims_are_finished(const char *run_folder) {
    char *path = finished_path(run_folder);
    bool  finished = fv__file_exists(path);
    free(path);
    return finished;
}

int64_t fv__claims_batch(int64_t count) { return FV_MIN(FV_MAX(count / BATCHES, 1), LARGEST); }

fv_lot fv__lot_of(const fv_bindings *bindings, int segment) {
    fv_lot lot = { 0 };
    for (int s = 0; s <= segment && s < bindings->nsegments; s++) {
        lot.batch += lot.batches;
        lot.first = bindings->segments[s].first;
        lot.count = bindings->segments[s].count;
        lot.size = fv__claims_batch(lot.count);
        lot.batches = (lot.count + lot.size - 1) / lot.size;
    }
    return lot;
}

bool fv__lot_units(const fv_bindings *bindings, int64_t batch, int64_t *first, int64_t *end) {
    for (int s = 0; s < bindings->nsegments; s++) {
        fv_lot lot = fv__lot_of(bindings, s);
        if (batch < lot.batch || batch >= lot.batch + lot.batches) continue;
        *first = lot.first + (batch - lot.batch) * lot.size;
        *end = FV_MIN(*first + lot.size, lot.first + lot.count);
        return true;
    }
    return false;
}

int64_t fv__claims_first(const fv_claims *c, int64_t nbatches) {
    return c->share.places > 1 ? nbatches * (c->share.place % c->share.places) / c->share.places : 0;
}

/* ---------------------------------------------------------------- strikes */

static char *now_path(const fv_claims *c, fv_hash token) {
    char hex[33];
    fv__hash_format(token, hex);
    return fv__sprintf("%s/%s.now", c->folder, hex);
}

int fv__claims_doing(const fv_bytes *file, int slot, long long *item, long long *stage, long long *task) {
    size_t at = (size_t)SLOT * ((size_t)slot + 1);
    if (at + SLOT > file->size) return -1;
    return sscanf((const char *)file->data + at, "%lld %lld %lld", item, stage, task) == 3;
}

/* What a dead worker was doing gets a strike, once, however many find it dead. */
static void strike_for(fv_claims *c, fv_hash dead) {
    long long item, stage, task;
    char     *path = now_path(c, dead), hex[33];
    fv_bytes  bytes = { 0 };
    fv__hash_format(dead, hex);
    if (fv__file_read_all(path, (size_t)SLOT * (SLOTS + 1), &bytes, NULL) == FV_OK)
        for (int slot = 0, found; (found = fv__claims_doing(&bytes, slot, &item, &stage, &task)) >= 0; slot++) {
            if (!found) continue;
            char *name = fv__sprintf("%s/strikes/%lld_%lld_%lld_%s", c->folder, item, stage, task, hex);
            int   fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
            if (fd >= 0) {
                (void)!write(fd, bytes.data, strnlen((char *)bytes.data, SLOT));
                close(fd);
            }
            free(name);
        }
    unlink(path);
    fv__bytes_release(&bytes);
    free(path);
}

static bool is_known(fv_claims *c, int64_t time) {
    pthread_mutex_lock(&c->mutex);
    bool known = time == c->strikes_time;
    pthread_mutex_unlock(&c->mutex);
    return known;
}

static void read_strikes(fv_claims *c) {
    char       *path = fv__sprintf("%s/strikes", c->folder);
    struct stat s;
    fv_bytes    strikes = { 0 };
    bool        there = !stat(path, &s);
    int64_t     time = there ? (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec : 0;
    DIR        *dir = there && !is_known(c, time) ? opendir(path) : NULL;
    free(path);
    if (!dir) return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        strike found;
        if (sscanf(entry->d_name, "%lld_%lld_%lld_", &found.item, &found.stage, &found.task) == 3)
            fv__bytes_append(&strikes, &found, sizeof found);
    }
    closedir(dir);
    pthread_mutex_lock(&c->mutex);
    fv_bytes old = c->strikes;
    c->strikes = strikes;
    c->strikes_time = time;
    pthread_mutex_unlock(&c->mutex);
    fv__bytes_release(&old);
}

static bool meant(const strike *s, int64_t item, int stage, int64_t task) {
    return s->item == item && (stage < 0 || (s->stage == stage && s->task == task));
}

int fv__claims_strikes(fv_claims *c, int64_t item, int stage, int64_t task) {
    int count = 0;
    pthread_mutex_lock(&c->mutex);
    const strike *s = (const strike *)(const void *)c->strikes.data;
    for (size_t i = 0; i < c->strikes.size / sizeof *s; i++) count += meant(&s[i], item, stage, task);
    pthread_mutex_unlock(&c->mutex);
    return count;
}

void fv__claims_blame(fv_claims *c, int64_t item, int stage, int64_t task, fv_error *error) {
    char    *path = fv__sprintf("%s/strikes", c->folder);
    DIR     *dir = opendir(path);
    fv_bytes who = { 0 };
    int      count = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        strike   s;
        fv_bytes line = { 0 };
        if (sscanf(entry->d_name, "%lld_%lld_%lld_", &s.item, &s.stage, &s.task) != 3 || !meant(&s, item, stage, task)) continue;
        char *name = fv__sprintf("%s/%s", path, entry->d_name);
        count++;
        if (fv__file_read_all(name, 4096, &line, NULL) == FV_OK)
            fv__bytes_printf(&who, "%s%s", who.size ? "; " : "", (char *)line.data);
        fv__bytes_release(&line);
        free(name);
    }
    if (dir) closedir(dir);
    free(path);
    char where[64] = "this item";
    if (stage >= 0) snprintf(where, sizeof where, "stage %d, task %lld", stage + 1, (long long)task);
    fv_fail(error, FV_ERROR_INTERNAL, "%d worker%s died on %s: %.700s", count, count == 1 ? "" : "s", where,
            who.size ? (char *)who.data : "nothing is known of them");
    fv__bytes_release(&who);
}

/* ---------------------------------------------------------------- what this process does */

/* The first slot says who we are: for the message about a strike. */
static void make_now(fv_claims *c) {
    char        host[40] = "host", text[SLOT] = "";
    const char *job = getenv("SLURM_JOB_ID"), *log = getenv("FOVEA_LOG");
    gethostname(host, sizeof host - 1);
    if (log)
        snprintf(text, sizeof text, "%.191s", log);
    else
        snprintf(text, sizeof text, "process %d on %.20s%s%.12s", (int)getpid(), host, job ? ", job " : "", job ? job : "");
    c->now_path = now_path(c, fv__lease_token());
    c->now = open(c->now_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (c->now >= 0) (void)!pwrite(c->now, text, sizeof text, 0);
}

static void write_slot(const fv_claims *c, int slot, const char *text) {
    char padded[SLOT] = "";
    snprintf(padded, sizeof padded, "%s", text);
    if (c->now >= 0) (void)!pwrite(c->now, padded, sizeof padded, (off_t)SLOT * (slot + 1));
}

void fv__claims_do(fv_claims *c, int64_t item, int stage, int64_t task, int *slot) {
    char text[SLOT];
    snprintf(text, sizeof text, "%lld %d %lld", (long long)item, stage, (long long)task);
    pthread_mutex_lock(&c->doing);
    if (!c->now_path) make_now(c);
    *slot = 0;
    while (*slot < SLOTS - 1 && c->used[*slot]) ++*slot;
    c->used[*slot] = true;
    write_slot(c, *slot, text);
    pthread_mutex_unlock(&c->doing);
}

void fv__claims_did(fv_claims *c, int slot) {
    pthread_mutex_lock(&c->doing);
    write_slot(c, slot, "");
    c->used[slot] = false;
    pthread_mutex_unlock(&c->doing);
}

/* ---------------------------------------------------------------- taking and giving back */

static char *claim_path(const fv_claims *c, int stage, int64_t batch) {
    if (stage < 0) return fv__sprintf("%s/items-%lld", c->folder, (long long)batch);
    if (batch < 0) return fv__sprintf("%s/stage-%d-end", c->folder, stage + 1);
    return fv__sprintf("%s/stage-%d-%lld", c->folder, stage + 1, (long long)batch);
}

fv_claim *fv__claims_take(fv_claims *c, int stage, int64_t batch) {
    char     *path = claim_path(c, stage, batch);
    fv_lease *lease;
    fv_hash   dead;
    fv_status status = fv__lease_try(path, &lease, &dead, NULL);
    free(path);
    if (status != FV_OK) return NULL;
    if (dead.high || dead.low) strike_for(c, dead);
    read_strikes(c);
    fv__store_refresh(c->store, NULL); /* what the owner before us has done */
    fv_claim *claim = fv__calloc(sizeof *claim);
    *claim = (fv_claim){ .lease = lease, .batch = batch, .stage = stage, .users = 1 };
    pthread_mutex_lock(&c->mutex);
    claim->next = c->held;
    c->held = claim;
    pthread_mutex_unlock(&c->mutex);
    return claim;
}

void fv__claim_use(fv_claims *c, fv_claim *claim) {
    pthread_mutex_lock(&c->mutex);
    claim->users++;
    pthread_mutex_unlock(&c->mutex);
}

void fv__claim_left(fv_claims *c, fv_claim *claim) {
    pthread_mutex_lock(&c->mutex);
    claim->left = true;
    pthread_mutex_unlock(&c->mutex);
}

bool fv__claim_held(const fv_claim *claim) { return fv__lease_held(claim->lease); }

/* Mutex held. */
static void unlink_claim(fv_claims *c, const fv_claim *claim) {
    for (fv_claim **p = &c->held; *p; p = &(*p)->next)
        if (*p == claim) {
            *p = claim->next;
            return;
        }
}

void fv__claim_leave(fv_claims *c, fv_claim *claim) {
    pthread_mutex_lock(&c->mutex);
    if (!--claim->users) {
        unlink_claim(c, claim);
        claim->next = c->over;
        c->over = claim;
    }
    pthread_mutex_unlock(&c->mutex);
}

bool fv__claims_unsettled(fv_claims *c) {
    pthread_mutex_lock(&c->mutex);
    bool unsettled = c->over != NULL;
    pthread_mutex_unlock(&c->mutex);
    return unsettled;
}

static char *over_path(const fv_claims *c, int64_t batch) {
    return fv__sprintf("%s/items-%lld.over", c->folder, (long long)batch);
}

bool fv__claims_over(const fv_claims *c, int64_t batch) {
    char *path = over_path(c, batch);
    bool  over = fv__file_exists(path);
    free(path);
    return over;
}

/* By a file of which only the name counts: another name for one that is there, which costs a fraction of a new file. */
static fv_status note_over(fv_claims *c, int64_t batch, fv_error *error) {
    char *path = over_path(c, batch);
    int   fd = -1;
    pthread_mutex_lock(&c->doing);
    const char *now = c->now >= 0 ? c->now_path : NULL; /* it stays as it is until the end */
    pthread_mutex_unlock(&c->doing);
    bool      noted = fv__file_exists(path) || (now && !link(now, path));
    fv_status status = noted ? FV_OK : fv__file_open_update(path, &fd, error);
    if (fd >= 0) close(fd);
    free(path);
    return status;
}

fv_status fv__claims_settle(fv_claims *c, fv_error *error) {
    pthread_mutex_lock(&c->mutex);
    fv_claim *over = c->over;
    c->over = NULL;
    pthread_mutex_unlock(&c->mutex);
    if (!over) return FV_OK;
    fv_status status = fv__store_flush(c->store, error);
    for (const fv_claim *claim = over; claim && status == FV_OK; claim = claim->next)
        if (claim->stage < 0 && !claim->left) status = note_over(c, claim->batch, error);
    give_back(over);
    return status;
}
