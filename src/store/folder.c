/* The files of all writers in a store's folder: reading their logs as they grow, and throwing away what nobody needs.
 *
 * Whether a writer lives is known from the lock on its log. That holds on one machine, and on shared file systems that carry
 * locks; where the lock may say nothing (another host), a log is read again and again, and its files are removed only when
 * they were not used for a day.
 */
#include "base/file.h"
#include "base/host.h"
#include "store/parts.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_OPEN_PACKS = 128, AHEAD = 16 };

/* ---------------------------------------------------------------- sources */

static char *path_of(const char *folder, const char *writer, const char *extension) {
    return fv__sprintf("%s/%s.%s", folder, writer, extension);
}

uint32_t fv__folder_add_source(fv_store *store, const char *writer) {
    fv_source *source = fv__calloc(sizeof *source);
    source->writer = fv__strdup(writer ? writer : "");
    source->hash = fv__writer_hash(source->writer);
    source->pack_fd = -1;
    pthread_mutex_lock(&store->lock);
    store->sources = fv__realloc(store->sources, (store->nsources + 1) * sizeof *store->sources);
    uint32_t number = store->nsources++;
    store->sources[number] = source;
    pthread_mutex_unlock(&store->lock);
    if (number == 0) source->users = 1; /* the own pack is closed by its writer */
    return number;
}

void fv__source_free(fv_source *source) {
    if (source->pack_fd >= 0 && source->users == 0) close(source->pack_fd);
    fv__bytes_release(&source->open);
    free(source->writer);
    free(source);
}

void fv__source_touch(fv_store *store, fv_source *source) {
    if (source->touched || !source->settled) return;
    char *path = path_of(store->folder, source->writer, "log");
    source->touched = true;
    utimensat(AT_FDCWD, path, NULL, 0);
    free(path);
}

static int idle_pack(fv_store *store) { /* lock held; takes one that nobody reads from, -1 if none */
    for (uint32_t i = 1; i < store->nsources; i++) {
        fv_source *source = store->sources[i];
        if (source->pack_fd < 0 || source->users) continue;
        int fd = source->pack_fd;
        source->pack_fd = -1;
        store->open_packs--;
        return fd;
    }
    return -1;
}

fv_status fv__source_enter(fv_store *store, uint32_t number, int *fd, fv_error *error) {
    pthread_mutex_lock(&store->lock);
    fv_source *source = store->sources[number];
    source->users++;
    *fd = source->pack_fd;
    bool away = source->away;
    pthread_mutex_unlock(&store->lock);
    if (*fd >= 0 || away) return FV_OK;
    char     *path = path_of(store->folder, source->writer, "pack");
    int       opened, surplus = -1;
    fv_status status = fv__file_open_read(path, &opened, error);
    free(path);
    pthread_mutex_lock(&store->lock);
    if (status != FV_OK) {
        source->users--;
    } else if (source->pack_fd >= 0) { /* somebody else was faster */
        surplus = opened;
    } else {
        source->pack_fd = opened;
        if (++store->open_packs > MOST_OPEN_PACKS) surplus = idle_pack(store);
    }
    *fd = source->pack_fd;
    pthread_mutex_unlock(&store->lock);
    if (surplus >= 0) close(surplus);
    return status;
}

void fv__source_leave(fv_store *store, uint32_t number) {
    pthread_mutex_lock(&store->lock);
    store->sources[number]->users--;
    pthread_mutex_unlock(&store->lock);
}

/* ---------------------------------------------------------------- taking in lines; lock and scanning held */

static fv_hash dropped_key(fv_hash key, uint64_t source) { return (fv_hash){ key.low ^ source, key.high }; }

static void take_blob(fv_store *store, uint32_t number, const fv_line *line, int64_t position) {
    fv_source *source = store->sources[number];
    bool       inside =
        line->size >= 0 && line->offset >= 0 && line->size <= source->pack_size && line->offset <= source->pack_size - line->size;
    if (line->size != 0 && !inside) return; /* the pack lacks it: absent */
    fv_entry *dropped = store->dropped.count ? fv__entries_find(&store->dropped, dropped_key(line->key, source->hash)) : NULL;
    if (dropped && line->time <= dropped->offset) return;
    fv_entry *entry = fv__entries_find(&store->entries, line->key);
    if (entry && entry->file != number) {
        source->doubled = true;
        return;
    }
    if (!entry) {
        entry = fv__entries_add(&store->entries, line->key);
        entry->file = number;
        entry->size = line->size;
        entry->offset = line->offset;
        entry->content = line->content;
        entry->flags = FV_ENTRY_LOGGED | FV_ENTRY_KEEP | (line->size ? FV_ENTRY_PLACED : 0);
        source->live += line->size;
    }
    if (line->kind == FV_LINE_COMMITTED) {
        entry->flags |= FV_ENTRY_COMMITTED;
    } else {
        fv_open_line open = { line->key, position };
        fv__bytes_append(&source->open, &open, sizeof open);
    }
}

static void take_synced(fv_store *store, uint32_t number, int64_t end) {
    fv_source    *source = store->sources[number];
    fv_open_line *open = (fv_open_line *)(void *)source->open.data;
    size_t        n = 0, count = source->open.size / sizeof *open;
    for (size_t i = 0; i < count; i++) {
        if (open[i].position >= end) {
            open[n++] = open[i];
            continue;
        }
        fv_entry *entry = fv__entries_find(&store->entries, open[i].key);
        if (entry && entry->file == number) entry->flags |= FV_ENTRY_COMMITTED;
    }
    source->open.size = n * sizeof *open;
}

/* Within one log the order of lines decides, between logs the time. */
static void take_dropped(fv_store *store, uint32_t number, const fv_line *line, fv_bytes *debris) {
    fv_entry *entry = fv__entries_find(&store->entries, line->key);
    bool      abroad = line->source != store->sources[number]->hash;
    if (abroad && store->rereading) return;
    if (abroad) {
        fv_hash   key = dropped_key(line->key, line->source);
        fv_entry *dropped = fv__entries_find(&store->dropped, key);
        if (!dropped) dropped = fv__entries_add(&store->dropped, key);
        dropped->offset = FV_MAX(dropped->offset, line->time);
    }
    if (!entry || !(entry->flags & FV_ENTRY_LOGGED)) return;
    uint64_t place = entry->file ? store->sources[entry->file]->hash : fv__writer_hash(store->pack.writer);
    if (place != line->source) return;
    fv__store_forget(store, entry, debris);
    store->bereft = store->bereft || abroad;
}

static void take_line(fv_store *store, uint32_t number, const fv_line *line, int64_t position, fv_bytes *debris) {
    fv_source *source = store->sources[number];
    switch (line->kind) {
    case FV_LINE_WRITER:
        source->headed = true;
        source->foreign = !fv__hash_equal(line->key, fv__host_self()->boot);
        source->same_host = line->source == fv__hash_bytes(fv__host_self()->name, strlen(fv__host_self()->name)).low;
        break;
    case FV_LINE_COMMITTED:
    case FV_LINE_SHARED: take_blob(store, number, line, position); break;
    case FV_LINE_SYNCED: take_synced(store, number, line->offset); break;
    case FV_LINE_DROPPED: take_dropped(store, number, line, debris); break;
    }
}

/* Lines that cannot be read are left out; at the end of the log they may be on their way, so they are looked at again. */
static void take_piece(fv_store *store, uint32_t number, const fv_bytes *piece, int64_t start) {
    fv_source     *source = store->sources[number];
    fv_bytes       debris = { 0 };
    int64_t        count = (int64_t)(piece->size / FV_SLOT);
    const fv_line *lines = (const fv_line *)(const void *)piece->data;
    pthread_mutex_lock(&store->lock);
    fv__entries_reserve(&store->entries, count);
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count) fv__entries_prefetch(&store->entries, lines[i + AHEAD].key);
        if (!fv__slot_valid(&lines[i], FV_LINE_MAGIC)) continue;
        take_line(store, number, &lines[i], start + i * FV_SLOT, &debris);
        source->consumed = start + (i + 1) * FV_SLOT;
    }
    pthread_mutex_unlock(&store->lock);
    fv__store_dispose(store, &debris);
}

/* Another machine may have stopped before the lines that were there when we first looked became durable: such a line and
 * whatever it stands for count only once its writer says so. Until then they are read again. */
static void doubt(fv_store *store, uint32_t number) {
    fv_source    *source = store->sources[number];
    fv_open_line *open = (fv_open_line *)(void *)source->open.data;
    fv_bytes      debris = { 0 };
    size_t        count = source->open.size / sizeof *open;
    if (!source->foreign || count == 0 || open[0].position >= source->doubted) return;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < count && open[i].position < source->doubted; i++) {
        fv_entry *entry = fv__entries_find(&store->entries, open[i].key);
        if (entry && entry->file == number && !(entry->flags & FV_ENTRY_COMMITTED)) fv__store_forget(store, entry, &debris);
    }
    pthread_mutex_unlock(&store->lock);
    source->consumed = open[0].position;
    fv__bytes_clear(&source->open);
    fv__store_dispose(store, &debris);
}

/* ---------------------------------------------------------------- reading logs; scanning held */

static bool writer_dead(int log_fd) { return !flock(log_fd, LOCK_SH | LOCK_NB); }

static fv_status read_log(fv_store *store, uint32_t number, int fd, const char *path, fv_error *error) {
    fv_source  *source = store->sources[number];
    bool        dead = !source->met && writer_dead(fd); /* first, so that what a dead writer wrote is read to its end */
    struct stat s;
    char       *pack = path_of(store->folder, source->writer, "pack");
    source->seen = fstat(fd, &s) ? 0 : s.st_size;
    bool here = !stat(pack, &s);
    source->pack_size = here ? s.st_size : store->mirror ? fv__mirror_extent(store->mirror, source->writer) : 0;
    pthread_mutex_lock(&store->lock);
    source->away = !here && source->pack_size;
    pthread_mutex_unlock(&store->lock);
    free(pack);
    if (!source->met) source->doubted = source->seen;
    fv_bytes  piece = { 0 };
    fv_status status = FV_OK;
    for (int64_t at = source->consumed; status == FV_OK;) {
        int64_t start = at;
        status = fv__slots_read(fd, path, &at, source->seen, &piece, error);
        if (piece.size == 0) break;
        take_piece(store, number, &piece, start);
    }
    fv__bytes_release(&piece);
    doubt(store, number);
    source->met = true;
    pthread_mutex_lock(&store->lock);
    source->settled = source->settled || (dead && source->headed && (!source->foreign || source->same_host));
    pthread_mutex_unlock(&store->lock);
    return status == FV_ERROR_INPUT ? FV_OK : status; /* it was cut while we read: what is left was taken in */
}

static fv_status read_news(fv_store *store, uint32_t number, fv_error *error) {
    fv_source  *source = store->sources[number];
    struct stat s;
    char       *path = path_of(store->folder, source->writer, "log");
    int         fd = -1;
    fv_status   status = FV_OK;
    if (!stat(path, &s) && (!source->met || s.st_size != source->seen)) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            status = read_log(store, number, fd, path, error);
        else if (errno != ENOENT)
            status = fv_fail(error, FV_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    }
    if (fd >= 0) close(fd);
    free(path);
    return status;
}

/* Only the first line met for a key is remembered. When that one turns out to be void, another log may hold a good one that
 * was passed over. */
static fv_status reread_doubled(fv_store *store, fv_error *error) {
    fv_status status = FV_OK;
    store->rereading = true;
    for (uint32_t i = 1; status == FV_OK && i < store->nsources; i++) {
        fv_source *source = store->sources[i];
        if (!source->doubled) continue;
        source->consumed = 0;
        source->seen = -1;
        fv__bytes_clear(&source->open);
        status = read_news(store, i, error);
    }
    store->rereading = store->bereft = false;
    return status;
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/* Names of the files with an extension, without it, as NUL-ended words. */
static fv_status list(const char *folder, const char *extension, fv_bytes *names, fv_error *error) {
    DIR *dir = opendir(folder);
    if (!dir) return fv_fail(error, FV_ERROR_IO, "cannot list %s: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!ends_in(entry->d_name, extension)) continue;
        fv__bytes_append(names, entry->d_name, strlen(entry->d_name) - strlen(extension));
        fv__bytes_append(names, "", 1);
    }
    closedir(dir);
    return FV_OK;
}

static fv_status find_writers(fv_store *store, fv_error *error) {
    fv_bytes  names = { 0 };
    fv_status status = list(store->folder, ".log", &names, error);
    fv__io_lock(&store->files); /* after listing: our own log may just have been made */
    char *own = store->pack.log_path ? fv__strdup(store->pack.writer) : NULL;
    pthread_mutex_unlock(&store->files);
    for (size_t at = 0; at < names.size; at += strlen((char *)names.data + at) + 1) {
        const char *name = (char *)names.data + at;
        fv_hash     key = fv__hash_bytes(name, strlen(name));
        if ((own && !strcmp(own, name)) || fv__entries_find(&store->names, key)) continue;
        fv__entries_add(&store->names, key)->file = fv__folder_add_source(store, name);
    }
    free(own);
    fv__bytes_release(&names);
    return status;
}

fv_status fv__folder_scan(fv_store *store, fv_error *error) {
    /* A folder's time tells whether a file was made since, but only to a tick of the system: a young one is listed again. */
    struct stat     s;
    struct timespec now;
    if (stat(store->folder, &s)) return fv_fail(error, FV_ERROR_IO, "cannot read %s: %s", store->folder, strerror(errno));
    int64_t time = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - time;
    if (time != store->folder_time) FV_TRY(find_writers(store, error));
    store->folder_time = age < 0 || age > 100000000 ? time : -1;
    for (uint32_t i = 1; i < store->nsources; i++)
        if (!store->sources[i]->settled) FV_TRY(read_news(store, i, error));
    return store->bereft ? reread_doubled(store, error) : FV_OK;
}

/* ---------------------------------------------------------------- throwing away */

typedef struct pair { /* of files */
    char   *writer;
    int64_t bytes, used; /* on disk; when last */
} pair;

static int by_use(const void *a, const void *b) {
    int64_t x = ((const pair *)a)->used, y = ((const pair *)b)->used;
    return (x > y) - (x < y);
}

/* Locks the log of a dead writer; -1 if it may live. */
static int lock_dead(const char *folder, const char *writer, bool of_any_host) {
    char       *path = path_of(folder, writer, "log");
    int         fd = open(path, O_RDWR | O_CLOEXEC);
    fv_line     first = { 0 };
    struct stat s;
    free(path);
    if (fd < 0) return -1;
    bool free_to_go = !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &s);
    bool headed = free_to_go && pread(fd, &first, sizeof first, 0) == sizeof first && fv__slot_valid(&first, FV_LINE_MAGIC);
    const fv_host *host = fv__host_self();
    if (free_to_go && !of_any_host && !(headed && first.source == fv__hash_bytes(host->name, strlen(host->name)).low))
        free_to_go = time(NULL) - s.st_mtim.tv_sec > 24 * 3600; /* of another host, or still without its first line */
    if (free_to_go) return fd;
    close(fd);
    return -1;
}

static void remove_pair(const char *folder, const char *writer) {
    char *log = path_of(folder, writer, "log"), *pack = path_of(folder, writer, "pack");
    unlink(log); /* first: a pack without a log is removed by whoever finds it */
    unlink(pack);
    free(log);
    free(pack);
}

void fv__folder_remove_orphans(const char *folder) {
    fv_bytes names = { 0 };
    list(folder, ".pack", &names, NULL);
    for (size_t at = 0; at < names.size; at += strlen((char *)names.data + at) + 1) {
        char *log = path_of(folder, (char *)names.data + at, "log");
        if (!fv__file_exists(log)) remove_pair(folder, (char *)names.data + at);
        free(log);
    }
    fv__bytes_release(&names);
}

static pair measure(const char *folder, const char *writer) {
    struct stat s;
    pair        found = { .writer = fv__strdup(writer) };
    char       *log = path_of(folder, writer, "log"), *pack = path_of(folder, writer, "pack");
    if (!stat(log, &s)) {
        found.bytes += s.st_blocks * 512;
        found.used = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    }
    if (!stat(pack, &s)) found.bytes += s.st_blocks * 512;
    free(log);
    free(pack);
    return found;
}

void fv__store_trim(const char *folder, int64_t budget) {
    fv_bytes names = { 0 }, all = { 0 };
    int64_t  total = 0;
    list(folder, ".log", &names, NULL);
    for (size_t at = 0; at < names.size; at += strlen((char *)names.data + at) + 1) {
        pair found = measure(folder, (char *)names.data + at);
        total += found.bytes;
        fv__bytes_append(&all, &found, sizeof found);
    }
    pair  *pairs = (pair *)(void *)all.data;
    size_t count = all.size / sizeof *pairs;
    if (count) qsort(pairs, count, sizeof *pairs, by_use);
    for (size_t i = 0; i < count; i++) {
        int fd = total > budget ? lock_dead(folder, pairs[i].writer, budget == 0) : -1;
        if (fd >= 0) {
            remove_pair(folder, pairs[i].writer);
            total -= pairs[i].bytes;
            close(fd);
        }
        free(pairs[i].writer);
    }
    fv__bytes_release(&names);
    fv__bytes_release(&all);
}

/* A writer is called HOST-PID-TIME: a lock on what one of this host has left tells that it is gone. */
static bool is_of_this_host(const char *writer) {
    const char *host = fv__host_self()->name;
    return !strncmp(writer, host, strlen(host)) && writer[strlen(host)] == '-';
}

int64_t fv__store_clean(const char *folder, double older, bool tell_only) {
    fv_bytes names = { 0 };
    int64_t  total = 0;
    list(folder, ".log", &names, NULL);
    for (size_t at = 0; at < names.size; at += strlen((char *)names.data + at) + 1) {
        pair found = measure(folder, (char *)names.data + at);
        bool old = (double)(time(NULL) - found.used / 1000000000) >= older;
        int  fd = old ? lock_dead(folder, found.writer, is_of_this_host(found.writer)) : -1;
        if (fd >= 0) {
            total += found.bytes;
            if (!tell_only) remove_pair(folder, found.writer);
            close(fd);
        }
        free(found.writer);
    }
    fv__bytes_release(&names);
    return total;
}

bool fv__store_writer_lives(const char *folder, const char *writer) {
    char *path = path_of(folder, writer, "log");
    bool  there = fv__file_exists(path);
    int   fd = there ? lock_dead(folder, writer, is_of_this_host(writer)) : -1;
    if (fd >= 0) close(fd);
    free(path);
    return there && fd < 0;
}

typedef struct extent {
    int64_t offset, size;
} extent;

static int by_offset(const void *a, const void *b) {
    int64_t x = ((const extent *)a)->offset, y = ((const extent *)b)->offset;
    return (x > y) - (x < y);
}

static void sweep_source(fv_store *store, uint32_t number, int64_t pack_size, const char *path) {
    fv_bytes live = { 0 };
    for (fv_entry *entry = NULL; (entry = fv__entries_next(&store->entries, entry));) {
        extent e = { entry->offset, entry->size };
        if (entry->file == number && entry->flags & FV_ENTRY_PLACED) fv__bytes_append(&live, &e, sizeof e);
    }
    extent *extents = (extent *)(void *)live.data;
    size_t  count = live.size / sizeof *extents;
    int     fd = open(path, O_RDWR | O_CLOEXEC);
    int64_t end = 0;
    if (count) qsort(extents, count, sizeof *extents, by_offset);
    for (size_t i = 0; fd >= 0 && i <= count; i++) {
        int64_t next = i < count ? extents[i].offset : pack_size;
        if (next > end) fv__pack_punch(fd, end, next - end);
        if (i < count) end = FV_MAX(end, extents[i].offset + extents[i].size);
    }
    if (fd >= 0) close(fd);
    fv__bytes_release(&live);
}

/* A run that was killed leaves in its pack what it had spilled. */
void fv__folder_sweep(fv_store *store) {
    enum { WORTH_IT = 1 << 26 };
    for (uint32_t i = 1; i < store->nsources; i++) {
        fv_source  *source = store->sources[i];
        struct stat s;
        if (!source->settled || source->doubled) continue;
        char *path = path_of(store->folder, source->writer, "pack");
        if (!stat(path, &s) && s.st_blocks * 512 > source->live + source->live / 4 + WORTH_IT) {
            int lock = lock_dead(store->folder, source->writer, false);
            if (lock >= 0) sweep_source(store, i, s.st_size, path);
            if (lock >= 0) close(lock);
        }
        free(path);
    }
}
