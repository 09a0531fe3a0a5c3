/* The record of a run: append-only logs of checksummed entries, and the SQLite file made from them. */
#include "record/record.h"
#include "base/file.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, MAGIC = 0x31544346, FACT = 1, TASK = 2 };

typedef struct header { /* before every entry */
    uint32_t magic, kind;
    uint64_t size, checksum;
} header;

struct fv_record {
    char           *path;
    int             fd;
    int64_t         offset;
    fv_bytes        buffer;
    double          flushed;
    pthread_mutex_t mutex;
};

/* ---------------------------------------------------------------- writing */

fv_status fv_record_open(const char *folder, const char *worker, fv_record **out, fv_error *error) {
    FV_TRY(fv_path_make_folders(folder, error));
    fv_record *record = fv_calloc(sizeof *record);
    record->path = fv_sprintf("%s/task-%s.log", folder, worker);
    fv_status status = fv_file_open_write(record->path, &record->fd, error);
    if (status != FV_OK) {
        free(record->path);
        free(record);
        return status;
    }
    record->flushed = fv_now();
    pthread_mutex_init(&record->mutex, NULL);
    *out = record;
    return FV_OK;
}

static fv_status flush_locked(fv_record *record, fv_error *error) {
    fv_status status = fv_file_write_at(record->fd, record->buffer.data, record->buffer.size, record->offset, record->path, error);
    if (status == FV_OK) record->offset += (int64_t)record->buffer.size;
    fv_bytes_clear(&record->buffer);
    record->flushed = fv_now();
    return status;
}

/* A record that cannot be written must not stop the run: what is lost is only the account of it. */
static void append(fv_record *record, uint32_t kind, const void *data, size_t size) {
    header h = { MAGIC, kind, size, fv_hash_bytes(data, size).low };
    pthread_mutex_lock(&record->mutex);
    fv_bytes_append(&record->buffer, &h, sizeof h);
    fv_bytes_append(&record->buffer, data, size);
    if (record->buffer.size >= BUFFER || fv_now() - record->flushed > 1) flush_locked(record, NULL);
    pthread_mutex_unlock(&record->mutex);
}

void fv_record_task(fv_record *record, const fv_task_facts *facts) { append(record, TASK, facts, sizeof *facts); }

void fv_record_fact(fv_record *record, const char *name, const char *value) {
    fv_bytes text = { 0 };
    fv_bytes_append(&text, name, strlen(name) + 1);
    fv_bytes_append(&text, value, strlen(value) + 1);
    append(record, FACT, text.data, text.size);
    fv_bytes_release(&text);
}

fv_status fv_record_flush(fv_record *record, fv_error *error) {
    pthread_mutex_lock(&record->mutex);
    fv_status status = flush_locked(record, error);
    pthread_mutex_unlock(&record->mutex);
    return status;
}

void fv_record_close(fv_record *record) {
    if (!record) return;
    flush_locked(record, NULL);
    close(record->fd);
    pthread_mutex_destroy(&record->mutex);
    fv_bytes_release(&record->buffer);
    free(record->path);
    free(record);
}

/* ---------------------------------------------------------------- reading */

typedef fv_status (*visitor)(void *context, uint32_t kind, const void *data, size_t size, fv_error *error);

/* Entries of one log up to the first that is torn or damaged. */
static fv_status read_log(const char *path, visitor visit, void *context, fv_error *error) {
    fv_bytes bytes = { 0 };
    FV_TRY(fv_file_read_all(path, (size_t)1 << 36, &bytes, error));
    fv_status status = FV_OK;
    for (size_t at = 0; status == FV_OK && at + sizeof(header) <= bytes.size;) {
        header h;
        memcpy(&h, bytes.data + at, sizeof h);
        at += sizeof h;
        if (h.magic != MAGIC || h.size > bytes.size - at || fv_hash_bytes(bytes.data + at, h.size).low != h.checksum) break;
        status = visit(context, h.kind, bytes.data + at, h.size, error);
        at += h.size;
    }
    fv_bytes_release(&bytes);
    return status;
}

static fv_status read_logs(const char *folder, visitor visit, void *context, fv_error *error) {
    DIR *d = opendir(folder);
    if (!d) return fv_fail(error, FV_ERROR_INPUT, "there is no run in %s", folder);
    fv_status      status = FV_OK;
    struct dirent *entry;
    while (status == FV_OK && (entry = readdir(d))) {
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, "task-", 5) || length < 9 || strcmp(entry->d_name + length - 4, ".log")) continue;
        char *path = fv_sprintf("%s/%s", folder, entry->d_name);
        status = read_log(path, visit, context, error);
        free(path);
    }
    closedir(d);
    return status;
}

/* ---------------------------------------------------------------- SQLite */

typedef struct building { sqlite3 *database; sqlite3_stmt *task, *fact; } building;

static fv_status refused(sqlite3 *database, fv_error *error) {
    return fv_fail(error, FV_ERROR_IO, "cannot build the record: %s", sqlite3_errmsg(database));
}

static fv_status insert(void *context, uint32_t kind, const void *data, size_t size, fv_error *error) {
    building     *b = context;
    sqlite3_stmt *s = kind == TASK ? b->task : b->fact;
    if (kind == TASK && size == sizeof(fv_task_facts)) {
        fv_task_facts f;
        char          key[33];
        memcpy(&f, data, sizeof f);
        fv_hash_format(f.key, key);
        sqlite3_bind_text(s, 1, key, -1, SQLITE_TRANSIENT);
        const int64_t integers[] = { f.item, f.stage, f.task, f.worker };
        const double  times[] = { f.start, f.wait, f.read, f.compute, f.write };
        const int64_t amounts[] = { f.bytes_read, f.bytes_written, f.memory };
        for (int i = 0; i < 4; i++) sqlite3_bind_int64(s, 2 + i, integers[i]);
        for (int i = 0; i < 5; i++) sqlite3_bind_double(s, 6 + i, times[i]);
        for (int i = 0; i < 3; i++) sqlite3_bind_int64(s, 11 + i, amounts[i]);
        sqlite3_bind_text(s, 14, fv_status_name((fv_status)f.status), -1, SQLITE_STATIC);
    } else if (kind == FACT && size >= 2 && !((const char *)data)[size - 1] && strlen(data) + 1 < size) {
        sqlite3_bind_text(s, 1, data, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, (const char *)data + strlen(data) + 1, -1, SQLITE_STATIC);
    } else
        return FV_OK;
    int result = sqlite3_step(s);
    sqlite3_reset(s);
    return result == SQLITE_DONE ? FV_OK : refused(b->database, error);
}

static fv_status fill(const char *folder, building *b, fv_error *error) {
    static const char tables[] =
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;" /* a temporary file that can be made again */
        "CREATE TABLE run(name TEXT, value TEXT);"
        "CREATE TABLE task(key TEXT, item INTEGER, stage INTEGER, task INTEGER, worker INTEGER, start REAL, wait REAL, read REAL,"
        " compute REAL, write REAL, bytes_read INTEGER, bytes_written INTEGER, memory INTEGER, status TEXT);";
    if (sqlite3_exec(b->database, tables, NULL, NULL, NULL) ||
        sqlite3_prepare_v2(b->database, "INSERT INTO task VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1, &b->task, NULL) ||
        sqlite3_prepare_v2(b->database, "INSERT INTO run VALUES(?,?)", -1, &b->fact, NULL))
        return refused(b->database, error);
    FV_TRY(read_logs(folder, insert, b, error));
    return sqlite3_exec(b->database, "COMMIT", NULL, NULL, NULL) ? refused(b->database, error) : FV_OK;
}

fv_status fv_record_build(const char *folder, fv_error *error) {
    char     *path = fv_sprintf("%s/record.db", folder), *temporary = fv_sprintf("%s/.record.db.%d", folder, (int)getpid());
    building  b = { 0 };
    fv_status status;
    unlink(temporary);
    if (sqlite3_open(temporary, &b.database)) status = refused(b.database, error);
    else status = fill(folder, &b, error);
    sqlite3_finalize(b.task);
    sqlite3_finalize(b.fact);
    sqlite3_close(b.database);
    if (status == FV_OK) status = fv_rename(temporary, path, error);
    if (status != FV_OK) unlink(temporary);
    free(path);
    free(temporary);
    return status;
}

/* ---------------------------------------------------------------- counting */

typedef struct keys { fv_hash *items; int64_t count, tasks; } keys;

static fv_status take_key(void *context, uint32_t kind, const void *data, size_t size, fv_error *error) {
    (void)error;
    keys         *k = context;
    fv_task_facts f;
    if (kind != TASK || size != sizeof f) return FV_OK;
    memcpy(&f, data, sizeof f);
    k->tasks++;
    if (f.status != FV_OK) return FV_OK;
    if (!(k->count & (k->count - 1))) k->items = fv_realloc(k->items, (size_t)FV_MAX(2 * k->count, 1) * sizeof *k->items);
    k->items[k->count++] = f.key;
    return FV_OK;
}

static int by_key(const void *a, const void *b) { return memcmp(a, b, sizeof(fv_hash)); }

fv_status fv_record_count(const char *folder, int64_t *tasks, int64_t *repeated, fv_error *error) {
    keys      k = { 0 };
    fv_status status = read_logs(folder, take_key, &k, error);
    if (k.count) qsort(k.items, (size_t)k.count, sizeof *k.items, by_key);
    *tasks = k.tasks;
    *repeated = 0;
    for (int64_t i = 1; i < k.count; i++) *repeated += fv_hash_equal(k.items[i - 1], k.items[i]);
    free(k.items);
    return status;
}
